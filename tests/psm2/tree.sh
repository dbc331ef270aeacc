#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: tree.sh FOLDER [NAME]
# Writes what the hfi1 driver shows of an adapter in /sys/class/infiniband/NAME (hfi1_0), as far as libpsm2 reads it.
set -eu
unit=$1/${2:-hfi1_0}
mkdir -p "$unit/ports/1/gids" "$unit/ports/1/pkeys"
put() { printf '%s\n' "$2" >"$unit/$1"; }
put nctxts 64
put nfreectxts 64
put ports/1/phys_state '5: LinkUp'
put ports/1/state '4: ACTIVE'
put ports/1/lid 0x1
put ports/1/lid_mask_count 0
put ports/1/rate '100 Gb/sec (4X EDR)'
put ports/1/gids/0 fe80:0000:0000:0000:0011:7501:0101:0001
put ports/1/pkeys/0 0x8001

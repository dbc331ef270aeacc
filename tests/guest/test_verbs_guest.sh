#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Raw verbs for real, over soft-RoCE: one boot of an emulated machine, in which verbs_in_guest.sh runs all the cases.
# xb-timeout: 1560
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/guest/run_in_guest.sh
. tests/guest/run_in_guest.sh
run_in_guest "raw verbs in a guest" verbs_in_guest.sh 1500 verbs fault null tcp

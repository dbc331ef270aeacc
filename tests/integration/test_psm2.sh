#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# xb-sanitize: no (the plugin runs sanitized in test_ofi.sh; libpsm2 itself is not ours)
# Omni-Path's path, ofi:psm2, with the real provider and the real libpsm2 on a machine without an adapter: PSM2's shared
# memory behind a presence shim (tests/psm2). What is measured must be called what it is, "self,shm", and the adapter
# must be found under the name that rdma-core gives it.
# xb-timeout: 600
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/lib/cases.sh
. tests/lib/cases.sh
build=${XB_BUILD:-$PWD/build}
exercise=$build/tests/exercise
plugin=$build/plugins/libxb-ofi.so
work=$(mktemp -d)
log=$work/log
trap 'rm -rf "$work"' EXIT

if [ ! -e "$plugin" ] || [ ! -x "$exercise" ]; then
	skip "ofi:psm2" "the libfabric backend is not built here"
	exit 0
fi
if ls /dev/hfi1_* >/dev/null 2>&1; then
	skip "ofi:psm2 without an adapter" "this machine has one: run xportbench -t ofi:psm2 between two hosts"
	exit 0
fi
run() { timeout 150 tests/psm2/with-psm2 "$exercise" -T 140 -n 50 -x 5 "$@" >"$work/log" 2>&1 </dev/null; }

run -b pingpong -s 8 "$plugin" psm2
if grep -q 'does not offer it' "$work/log"; then
	skip "ofi:psm2" "$(grep -o 'does not offer it:.*' "$work/log" | head -n 1)"
	exit 0
fi

# --- function: every benchmark and operation, on both sides of the inject size and of the rendezvous threshold
for op in send write read; do
	blocks "ofi:psm2 $op: pingpong, bw and bibw, verified" 24 -o $op -W 16 -s 0,1,64,65,5000,16000,64K,1048577 "$plugin" psm2
done

# --- honesty: never as a result of the fabric
says "the resolved path says self,shm" 'resolved "psm2 \(self,shm\) hfi1_0"; device ""; path ok.*not Omni-Path'
silent "and nothing else" 'resolved "psm2 \(hfi|device "hfi'
KEEP_PSM2_DEVICES_UNSET=1 blocks "ofi:psm2/shm chooses shared memory by the path" 2 -b pingpong -s 8,64K "$plugin" psm2/shm
says "and says so" 'resolved "psm2 \(self,shm\) hfi1_0"; device ""; path ok'
KEEP_PSM2_DEVICES_UNSET=1 run -b pingpong -s 8 "$plugin" psm2
says "without PSM2_DEVICES the (absent) adapter is wanted, and the error says what would do" \
	'open failed.*ofi:psm2: fi_endpoint failed.*ofi:psm2/shm uses shared memory only'

# --- an endpoint killed once its connection has carried a block, in one that lasts, leaves nothing
timeout 60 tests/psm2/with-psm2 "$exercise" -T 50 -n 2000 -x 5 -b pingpong -s 4,16M "$plugin" psm2 >"$work/log" 2>&1 </dev/null &
disown
for _ in $(seq 1 300); do
	grep -q ' 4 B ' "$work/log" && break
	sleep 0.1
done
mine=$(pgrep -f "exercise -T 50 -n 2000 -x 5 -b pingpong -s 4,16M $plugin psm2" | tr '\n' ' ')
kids=""
for pid in $mine; do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = timeout ] || kids+="$pid "; done
# shellcheck disable=SC2086
kill -KILL $kids 2>/dev/null
sleep 0.5
left=""
# the file is named after the endpoint id, and that begins with the process id in hexadecimal
for pid in $kids; do left+=$(find /dev/shm -maxdepth 1 -name "psm2_shm.*$(printf '%06x' "$pid")*" -printf '%f '); done
if [ -z "$kids" ]; then
	not_ok "a kill leaves nothing in /dev/shm" "the endpoints did not start"
elif [ -n "$left" ]; then
	not_ok "a kill leaves nothing in /dev/shm" "left: $left"
else
	ok "a kill leaves nothing in /dev/shm"
fi

# --- the device naming trap: rdma-core calls the adapter opap1s0, libpsm2 looks for hfi1_0 in /sys/class/infiniband
cat >"$work/renamed" <<'EOF'
set -e
mount --make-rprivate /
mkdir "$1/net" && mount --bind /sys/class/net "$1/net"
mount -t tmpfs tmpfs /sys/class
mkdir /sys/class/net /sys/class/infiniband
mount --bind "$1/net" /sys/class/net
"$2/tests/psm2/tree.sh" /sys/class/infiniband opap1s0
work=$1
shift 2
LD_PRELOAD=$work/presence.so ASAN_OPTIONS="verify_asan_link_order=0:$ASAN_OPTIONS" TMPDIR=$work/tmp "$@"
EOF
mkdir "$work/tmp"
${CC:-cc} -shared -fPIC -o "$work/presence.so" tests/psm2/presence.c -ldl
renamed() {
	[ -n "${with_path:-}" ] || unset HFI_SYSFS_PATH
	timeout 100 unshare -m bash "$work/renamed" "$work" "$PWD" "$@" >"$work/log" 2>&1 </dev/null
}
if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
	skip "the adapter under rdma-core's name" "needs root and a mount namespace"
else
	run() { renamed "$exercise" -T 90 -n 50 -x 5 "$@"; }
	blocks "an adapter that rdma-core has renamed to opap1s0 is found" 2 -b pingpong -s 8,64K "$plugin" psm2/shm
	says "and named by its RDMA device" 'resolved "psm2 \(self,shm\) opap1s0"'
	HFI_SYSFS_PATH=/sys/class/infiniband/hfi1_0 with_path=1 renamed "$exercise" -b pingpong -s 8 "$plugin" psm2/shm
	says "libpsm2 left to itself would not find it" 'open failed.*libfabric [0-9.]+ does not offer it'
	if [ -n "$(ls -A "$work/tmp")" ]; then
		not_ok "the private folder with the link is gone afterwards" "left: $(ls "$work/tmp")"
	else
		ok "the private folder with the link is gone afterwards"
	fi
	mkdir "$work/tmp/xportbench-hfi-999999999-dead00" && ln -s /nowhere "$work/tmp/xportbench-hfi-999999999-dead00/hfi1_0"
	run -b pingpong -s 8 "$plugin" psm2/opap1s0
	says "a device can be given by that name, and PSM2 then wants its hardware" 'open failed.*fi_endpoint failed'
	if [ -n "$(ls -A "$work/tmp")" ]; then
		not_ok "a folder that a killed process left is swept" "left: $(ls "$work/tmp")"
	else
		ok "a folder that a killed process left is swept"
	fi
	refuses "an unknown adapter: which ones there are" 'asked for ofi:psm2/opap7s0; Omni-Path adapters here: opap1s0;' "$plugin" psm2/opap7s0
	renamed "$exercise" --probe "$plugin"
	says "the list shows the adapter" 'path "psm2/opap1s0": psm2'
fi
exit $failed

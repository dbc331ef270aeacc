# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Runs in the guest, started by test_verbs_guest.sh. Times mean nothing here: what counts is that blocks complete, that every payload
# is right, that packets went where they should, and what errors say.
cp -r /guest/xb /tmp/xb && cd /tmp/xb || exit 2
# shellcheck source=tests/guest/two_devices.sh
. ./two_devices.sh
# shellcheck source=tests/guest/cases.sh
. ./cases.sh

modprobe ib_uverbs
# --- no device yet
./exercise --probe "$plugin" >"$log" 2>&1
says "no RDMA device: why, and the remedy" 'not usable: no RDMA device.*remedy: .*rdma link add'
refuses "no RDMA device: a run says so too" '\(unavailable\).*asked for verbs; no RDMA device.*rdma link add' "$plugin"
two_devices >"$log" 2>&1 || {
	not_ok "two soft-RoCE devices" "they do not come up"
	exit 1
}
take_baseline

# --- the list
timeout 60 ./xportbench list >"$log" 2>&1
check "list shows both devices, with link layer, state, MTU and the GID to be used" "no such lines" eval \
	'grep -q "rxe0/1.*Ethernet, active, .*MTU 4096.*RoCE v2 ::ffff:10.8.0.1" $log && grep -q "rxe1/1.*10.8.0.2" $log'

if [ -n "${XB_SANITIZE:-}" ]; then # an emulated machine and a sanitizer: one of each kind
	# shellcheck source=tests/guest/sanitized.sh
	. ./sanitized.sh
	exit $failed
fi

# --- sizes on both sides of everything that changes the protocol
blocks "without a path: the first active port" 1 -b pingpong -s 8 "$plugin"
says "it says which, how it is routed, and what it may inline" \
	'resolved "RC on rxe0 port 1, RoCE v2 gid 1 \(::ffff:10.8.0.1\), mtu 4096, inline [0-9]+"; device "rxe0/1"; path ok; max 8388608'
inline=$(sed -n 's/.*; eager \([0-9]*\);.*/\1/p' "$log" | head -n 1)
small=0,1,$inline,$((inline + 1)),4095,4096,4097
for op in send write read; do
	before=$(rdma_counter rxe0 sent_pkts)
	blocks "RC $op: pingpong, bw and bibw up to the MTU and a byte more" 21 -o $op -s "$small" "$plugin" rxe0
	check "RC $op: the device has counted packets" "sent_pkts did not grow" [ "$(rdma_counter rxe0 sent_pkts)" -gt "$((before + 21 * 8))" ]
	blocks "RC $op: 64 KiB and 1 MiB + 1" 6 -o $op -W 3 -n 2 -s 64K,1048577 "$plugin" rxe0
	blocks "RC $op: the largest message of the device" 3 -o $op -W 2 -n 1 -s 8388608 "$plugin" rxe0
done
blocks "RC write with immediate: pingpong, bw and bibw up to the MTU and a byte more" 21 -o write -s "$small" "$plugin" rxe0 write=imm
says "write=imm is noted" 'writes with immediate'
blocks "RC write with immediate: 64 KiB and 1 MiB + 1" 6 -o write -W 3 -n 2 -s 64K,1048577 "$plugin" rxe0 write=imm
blocks "RC write with immediate: the largest message of the device" 3 -o write -W 2 -n 1 -s 8388608 "$plugin" rxe0 write=imm
blocks "RC write with immediate: asleep on the completion channel" 3 -o write -s 4096 "$plugin" rxe0 write=imm events=1
blocks "RC write with immediate: a window of 100" 1 -o write -b bw -W 100 -s 8 "$plugin" rxe0 write=imm
polled=1,$inline,$((inline + 1)),4095,4096,4097
blocks "RC write-poll: both sides write and watch their memory, up to the MTU and a byte more" 6 -o write-poll -b pingpong -s "$polled" "$plugin" rxe0
says "write-poll is noted" 'the target polls its memory'
blocks "RC write-poll: 64 KiB, 1 MiB + 1 and the largest message of the device" 3 -o write-poll -b pingpong -n 2 -s 64K,1048577,8388608 "$plugin" rxe0
blocks "RC write-poll with immediate: the target waits for a completion" 6 -o write-poll -b pingpong -s "$polled" "$plugin" rxe0 write=imm
says "and that is noted" 'the target waits for a completion'
blocks "RC write-poll with immediate: asleep on the completion channel" 2 -o write-poll -b pingpong -s 8,4096 "$plugin" rxe0 write=imm events=1
blocks "RC write-poll: more messages than the queue is deep, nothing inline" 1 -o write-poll -b pingpong -n 300 -s 64 "$plugin" rxe0 inline=0 depth=16
blocks "RC write-poll: more inline messages than the queue is deep" 1 -o write-poll -b pingpong -n 300 -s 8 "$plugin" rxe0 depth=16
blocks "rdma_cm: write-poll" 1 -o write-poll -b pingpong -s 64 "$plugin" rxe0 cm=1
for op in send write read; do
	blocks "rdma_cm: $op: pingpong, bw and bibw" 9 -o $op -s 0,8,4097 "$plugin" rxe0 cm=1
	blocks "rdma_cm: $op: the largest message of the device" 3 -o $op -W 2 -n 1 -s 8388608 "$plugin" rxe0 cm=1
done
says "rdma_cm: says so, with the address and the GID that goes with it" 'gid 1 \(::ffff:10.8.0.1\), rdma_cm from 10.8.0.1'
blocks "rdma_cm: write with immediate" 2 -b pingpong,bw -o write -s 64 "$plugin" rxe0 cm=1 write=imm
blocks "rdma_cm: mtu=1024" 1 -b bw -s 4096 "$plugin" rxe0 cm=1 mtu=1024
says "rdma_cm: mtu=1024 is what was resolved" 'mtu 1024'
CPUS=0,1,2 blocks "rdma_cm: every pair of three endpoints" 3 -N 3 -b pingpong -s 64 "$plugin" rxe0 cm=1
blocks "UD: pingpong, bw and bibw up to the MTU" 18 -s "0,1,$inline,$((inline + 1)),4095,4096" "$plugin" rxe0 qp=ud
says "UD: says so, and that its limit is the MTU" 'resolved "UD on rxe0 .*max 4096;.*unreliable'
if run -b pingpong -s 4097 "$plugin" rxe0 qp=ud; then
	not_ok "UD: a byte more than the MTU is refused" "it ran"
else
	says "UD: a byte more than the MTU is refused" '4097 bytes.*limit on this path is 4096'
fi
if run -b pingpong -s 8388609 "$plugin" rxe0; then
	not_ok "RC: more than the device's largest message is refused" "it ran"
else
	says "RC: more than the device's largest message is refused" '8388609 bytes.*limit on this path is 8388608'
fi

# --- across the pair of interfaces
before=$(cat /sys/class/net/v0/statistics/tx_packets)
there=$(rdma_counter rxe1 rcvd_pkts)
blocks "one device to the other" 3 -s 4096 "$plugin" rxe0+rxe1
check "its packets cross the interfaces" "v0 has sent too few" [ "$(cat /sys/class/net/v0/statistics/tx_packets)" -gt "$((before + 30))" ]
check "and arrive at the other device" "rcvd_pkts did not grow" [ "$(rdma_counter rxe1 rcvd_pkts)" -gt "$((there + 30))" ]
blocks "UD from one device to the other" 3 -s 1000 "$plugin" rxe0+rxe1 qp=ud

# --- keys
blocks "events=1: RC asleep on the completion channel" 3 -s 4096 "$plugin" rxe0 events=1
says "events=1 is noted" 'asleep on a completion channel'
blocks "events=1: UD" 2 -b pingpong,bw -s 64 "$plugin" rxe0 events=1 qp=ud
blocks "events=1: write" 2 -b pingpong,bw -o write -s 64 "$plugin" rxe0 events=1
blocks "inline=0: nothing is sent inline" 6 -s 0,64 "$plugin" rxe0 inline=0
says "inline=0 is what was resolved" 'inline 0"'
blocks "inline=0: write and write with immediate" 6 -o write -s 0,64 "$plugin" rxe0 inline=0 write=imm
blocks "inline=0: UD" 2 -b pingpong,bw -s 64 "$plugin" rxe0 inline=0 qp=ud
blocks "flush=read: a put is visible after a read behind it" 6 -o write -s 1,4096 "$plugin" rxe0 flush=read
blocks "relaxed=1: write" 6 -o write -s 1,4097 "$plugin" rxe0 relaxed=1
says "relaxed=1 is noted" 'relaxed PCIe ordering'
blocks "relaxed=0: read" 3 -o read -s 4097 "$plugin" rxe0 relaxed=0
silent "relaxed=0 is not" 'relaxed PCIe ordering'
blocks "mtu=1024" 4 -b pingpong,bw -s 1024,1025 "$plugin" rxe0 mtu=1024
says "mtu=1024 is what was resolved" 'mtu 1024'
blocks "depth=16: a sender with a deeper window waits for room" 4 -b bw,bibw -W 40 -s 8,1000 "$plugin" rxe0 depth=16
blocks "gid=0: a link-local address" 1 -b pingpong -s 8 "$plugin" rxe0 gid=0
says "gid=0 is what was resolved" 'gid 0 \(fe80::'
blocks "a window of 500" 1 -b bw -W 500 -n 2 -s 8 "$plugin" rxe0
CPUS=0,1,2 blocks "every pair of three endpoints" 3 -N 3 -b pingpong -s 64 "$plugin" rxe0

# --- errors
refuses "a device that is not there: which ones are" 'asked for verbs:mlx5_0; there is no such device; use one of: .*rxe0' "$plugin" mlx5_0
# as if the kernel had a device more, for which there is no provider library: libibverbs is told of devices by the kernel, not by this folder
mkdir -p /tmp/devices/mlx5_7
for device in rxe0 rxe1; do ln -sfn "$(readlink -f /sys/class/infiniband/$device)" /tmp/devices/$device; done
mount --bind /tmp/devices /sys/class/infiniband
./exercise --probe "$plugin" >"$log" 2>&1
says "a device without a provider library: the list says so" 'path "mlx5_7": ; not usable: libibverbs finds no provider library for it; remedy: install ibverbs-providers'
check "and shows the others as before" "they are not" grep -q 'rxe1/1.*10.8.0.2' "$log"
refuses "a run on it says so too" 'asked for verbs:mlx5_7; libibverbs finds no provider library for it; install ibverbs-providers' "$plugin" mlx5_7
umount /sys/class/infiniband
refuses "a port that is not there" 'rxe0: port 2 cannot be queried.*1 port' "$plugin" rxe0/2
refuses "a GID that is not there: which ones are" 'asked for gid=9 on verbs:rxe0/1; its GIDs are 0 .*::ffff:10.8.0.1' "$plugin" rxe0 gid=9
refuses "more inline than the device grants" 'asked for inline=60000 on verbs:rxe0; it grants' "$plugin" rxe0 inline=60000
refuses "one-sided operations on datagrams" 'datagrams have no write' -o write "$plugin" rxe0 qp=ud
refuses "datagrams through rdma_cm" 'datagrams are not connected' "$plugin" rxe0 qp=ud cm=1
refuses "a GID where rdma_cm finds it" 'asked for gid=, lid= or sl= on verbs with cm=1; rdma_cm finds the route; leave out' "$plugin" rxe0 cm=1 gid=1
refuses "another LID of a port that has none" 'asked for lid=1 on verbs:rxe0/1; RoCE has no LIDs' "$plugin" rxe0 lid=1
refuses "a target that polls its memory asleep" 'asked for events=1 on verbs with --op write-poll; a target that polls its memory cannot sleep' -o write-poll -b pingpong "$plugin" rxe0 events=1
refuses "writes with immediate that are none" 'it is a way to write; use --op write' -o read "$plugin" rxe0 write=imm
refuses "an unknown kind of queue pair" 'asked for qp=xrc.*qp=rc and qp=ud' "$plugin" rxe0 qp=xrc
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all bash -c "ulimit -l $1; ./exercise --probe $plugin" >"$log" 2>&1; }
as_nobody 64
says "a low limit of locked memory: the list says so" 'rxe0/1.*not usable: the limit of locked memory is 64 kB; remedy: .*ulimit -l'
as_nobody 8192
says "the limit that Debian has by default: the list says that 4 MiB messages will not do" 'rxe0/1.*locked memory too little for 4 MiB messages .ulimit -l unlimited'
silent "but it is usable" 'not usable'
as_nobody unlimited
silent "without a limit there is no such note" 'locked memory'
chmod 600 /dev/infiniband/uverbs*
as_nobody 64
says "no permission on the device: the list says so" 'not usable: cannot open /dev/infiniband/uverbs.: Permission denied; remedy: .*read and write access'

# --- what a correct run never does: the error in words, with the operation, its size and the peer
# shellcheck source=tests/guest/provoked.sh
. ./provoked.sh
nothing_left "no queue pair, memory region or rdma_cm identifier is left after errors"

# --- the program itself
timeout 120 ./xportbench -t verbs:rxe0 -s 8,4096 --launches 1:1 -n 20 --bind none -q -o /tmp/run.json >"$log" 2>&1
status=$?
cat "$log" >>/tmp/real
check "xportbench measures verbs:rxe0" "exit status $status" [ "$status" = 0 ] # evidence and verification are part of that
check "its document has the device's packets as evidence" "no evidence of rxe0/1" python3 - <<'END'
import json, sys
run = json.load(open("/tmp/run.json"))
t = run["transports"][0]
e = [x for x in t["evidence"] if x["device"].startswith("rxe0")]
sys.exit(0 if t["status"] == "ok" and e and all(r["verified"] for r in run["results"]) and len(run["results"]) == 2 else 1)
END

# --- the swap: all its protocols, synchronous and ready sends among them
for order in ordered:0-10 unordered:1-9; do
	timeout 150 ./xportbench -t verbs:rxe0 -b swap --order ${order%:*} --total 64K -s 4K,16K -n 2 -x 1 --launches 1:1 --bind none -q \
		-o /tmp/swap.json >"$log" 2>&1
	status=$?
	check "xportbench swaps over verbs:rxe0, ${order%:*}" "exit status $status" [ "$status" = 0 ]
	check "every protocol of the ${order%:*} swap is verified at both sizes" "not so" python3 -c 'import json, sys
first, last = map(int, sys.argv[1].split("-"))
swaps = json.load(open("/tmp/swap.json"))["swaps"]
wanted = {(p, size) for p in range(first, last + 1) for size in (4096, 16384)}
sys.exit({(s["protocol"], s["size"]) for s in swaps} != wanted or not all(s["verified"] for s in swaps))' "${order#*:}"
done

# shellcheck source=tests/guest/perftest.sh
. ./perftest.sh
# shellcheck source=tests/guest/faults.sh
. ./faults.sh
exit $failed

# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Runs in both guests, started by test_two_guests.sh; NODE is 0 or 1. Each pair is run by endpoint 0 here and endpoint 1 there; host 0 reports
# it, and host 1 only what fails on it.
cp -r /guest/xb /tmp/xb && cd /tmp/xb && chmod 600 key || exit 2
# shellcheck source=tests/guest/cases.sh
. ./cases.sh
# shellcheck source=tests/guest/two_devices.sh
. ./two_devices.sh
pairs=0

# The device of eth0 is up, and its address is a GID.
one_device() {
	local module
	for module in virtio_net rdma_rxe rdma_ucm ib_uverbs; do modprobe $module || return 1; done
	hostname "host$NODE"
	for _ in $(seq 100); do
		[ -e /sys/class/net/eth0 ] && break
		sleep 0.1
	done
	ip link set eth0 mtu 4200 up && ip address add "10.8.0.$((NODE + 1))/24" dev eth0 && rdma link add rxe0 type rxe netdev eth0 || return 1
	for _ in $(seq 200); do
		rdma link | grep -q 'state ACTIVE' && grep -q "0a08:000$((NODE + 1))" /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null && return 0
		sleep 0.1
	done
	return 1
}
# pair NAME COUNT OPTIONS…
pair() {
	local name=$1 count=$2 where=(--listen "$((7000 + (pairs += 1)))") verified status
	shift 2
	[ "$NODE" = 0 ] || where=(--join "10.8.0.1:$((7000 + pairs))" --endpoint 1)
	timeout 100 ./exercise -T 90 --cpus 0 -n 5 -x 1 -W 4 "${where[@]}" "$@" >"$log" 2>&1
	status=$?
	verified=$(grep -c ' verified$' "$log")
	if [ "$NODE" = 1 ]; then
		check "host 1: $name" "exit status $status" [ $status = 0 ]
	elif [ "$status" = 0 ] && [ "$verified" = "$count" ]; then
		ok "$name"
	else
		not_ok "$name" "exit status $status, $verified of $count blocks verified"
	fi
}

one_device >"$log" 2>&1 || {
	not_ok "host $NODE has a soft-RoCE device" "it does not come up"
	exit 1
}
take_baseline
there=$(rdma_counter rxe0 rcvd_pkts)
for op in send write read; do pair "between two hosts: RC $op: pingpong, bw and bibw" 12 -o $op -s 0,64,4097,65536 "$plugin" rxe0; done
check "host $NODE: its device has received the packets" "rcvd_pkts did not grow" [ "$(rdma_counter rxe0 rcvd_pkts)" -gt "$((there + 300))" ]
pair "between two hosts: write with immediate" 6 -o write -s 8,4097 "$plugin" rxe0 write=imm
pair "between two hosts: write-poll" 4 -b pingpong -o write-poll -s 1,64,4097,65536 "$plugin" rxe0
pair "between two hosts: UD" 4 -b pingpong,bw -s 8,4096 "$plugin" rxe0 qp=ud
pair "between two hosts: asleep on the completion channel" 2 -b pingpong,bw -s 64 "$plugin" rxe0 events=1
for op in send write; do pair "between two hosts: rdma_cm: $op" 3 -o $op -s 4097 "$plugin" rxe0 cm=1; done
says "rdma_cm took the address of host $NODE" "endpoint $NODE .*rdma_cm from 10.8.0.$((NODE + 1))"

# --- the program itself: host 0 listens, host 1 runs with an endpoint here and one there. A pair that is run after it tells
# host 0 that it is over.
if [ "$NODE" = 0 ]; then
	./xportbench listen --key-file key >/tmp/listener 2>&1 &
	listener=$!
	timeout 330 ./exercise -T 320 --listen 6999 -b pingpong -s 8 -n 5 -x 1 --cpus 0 "$plugin" rxe0 >"$log" 2>&1
	kill $listener
	wait $listener
	cp /tmp/listener "$log"
	says "the listener on host 0 has served host 1" 'host1 is connected'
else
	for _ in $(seq 100); do
		(: >/dev/tcp/10.8.0.1/18599) 2>/dev/null && break
		sleep 0.2
	done
	timeout 150 ./xportbench -t verbs:rxe0,verbs:rxe0,label=cm,cm=1 @10.8.0.1 --key-file key -s 8,65536 --launches 1:1 -n 50 --bind none -q \
		-o /tmp/run.json >"$log" 2>&1
	status=$?
	check "a run between two hosts: raw verbs, connected by either way" "exit status $status" [ "$status" = 0 ]
	check "its document has both hosts, their devices' packets, and verified payload" "not so: $(head -c 3000 /tmp/run.json 2>&1)" python3 -c 'import json, sys
run = json.load(open("/tmp/run.json"))
hosts = {h["name"] for h in run["hosts"]}
ok = hosts == {"host0", "host1"} and len(run["results"]) == 4 and all(r["verified"] for r in run["results"])
for t in run["transports"]:
    seen = {e["host"] for e in t["evidence"] if e["device"] == "rxe0/1" and e.get("tx_packets", 0) >= 100 and e.get("rx_packets", 0) >= 100}
    ok = ok and t["status"] == "ok" and seen == hosts and "rxe0/1" in t["carried"]["devices"]
sys.exit(not ok)'
	# the usual mistake: large frames at one end only
	ip link set eth0 mtu 1500
	timeout 150 ./xportbench -t verbs:rxe0 @10.8.0.1 --key-file key -s 65536 --launches 1:1 -n 20 --bind none -q -o /tmp/mtu.json >"$log" 2>&1
	status=$?
	check "a run between ports with different MTUs" "exit status $status" [ "$status" = 0 ]
	check "says so, and that the smaller one was used" "not so: $(head -c 3000 /tmp/mtu.json 2>&1)" python3 -c 'import json, sys
run = json.load(open("/tmp/mtu.json"))
told = [f["text"] for f in run["findings"] if f["code"] == "mtu-differs" and f["label"] == "verbs:rxe0"]
sys.exit(len(told) != 1 or "1024 on host1" not in told[0] or "4096 on host0" not in told[0] or "mtu 1024" not in run["transports"][0]["resolved_path"])'
	check "equal MTUs are not remarked on" "they were: $(head -c 3000 /tmp/run.json 2>&1)" sh -c '! grep -q mtu-differs /tmp/run.json'
	ip link set eth0 mtu 4200
	timeout 60 ./exercise -T 50 --join 10.8.0.1:6999 --endpoint 1 -b pingpong -s 8 -n 5 -x 1 --cpus 0 "$plugin" rxe0 >"$log" 2>&1
fi

# --- the process on the other host is killed in the middle
pairs=$((pairs + 1))
if [ "$NODE" = 1 ]; then
	before=$(rdma_counter rxe0 rcvd_pkts)
	timeout 100 ./exercise -T 90 --cpus 0 -b pingpong -s 64 -n 1000000 --join "10.8.0.1:$((7000 + pairs))" --endpoint 1 "$plugin" rxe0 \
		timeout=14 >"$log" 2>&1 &
	for _ in $(seq 600); do
		[ "$(rdma_counter rxe0 rcvd_pkts)" -gt "$((before + 200))" ] && break
		sleep 0.1
	done
	kill -9 "$(pgrep -P $! exercise)"
	wait
else
	timeout 100 ./exercise -T 90 --cpus 0 -b pingpong -s 64 -n 1000000 --listen "$((7000 + pairs))" "$plugin" rxe0 timeout=14 >"$log" 2>&1
	status=$?
	check "a peer on another host that is killed ends the block" "exit status $status" [ "$status" = 1 ]
	says "and that is said" 'an endpoint has left|transport retry counter exceeded'
fi
nothing_left "host $NODE: no queue pair, memory region or rdma_cm identifier is left"
exit $failed

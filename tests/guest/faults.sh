# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # "$plugin", $log: cases.sh
# Sourced by verbs_in_guest.sh. What goes wrong in the middle: the cause is named, results are kept, nothing hangs and nothing is left behind.

until_true() { # SECONDS COMMAND…
	local left=$(($1 * 10))
	shift
	while ! "$@"; do
		[ $((left -= 1)) -gt 0 ] || return 1
		sleep 0.1
	done
}

# --- packet loss
retries() { rdma_counter rxe0 completer_retry_err; }
before=$(retries)
tc qdisc add dev v0 root netem loss 10%
LIMIT=110 blocks "a tenth of the packets is lost: repeated, and all is right" 3 -W 4 -n 20 -s 4096 "$plugin" rxe0+rxe1 timeout=12
check "and the device has repeated some" "completer_retry_err did not grow" [ "$(retries)" -gt "$before" ]
tc qdisc replace dev v0 root netem loss 60%
run -b bw -n 200 -s 64 "$plugin" rxe0+rxe1 qp=ud
says "lost datagrams are not repeated: the block ends and says so" 'a datagram before it was lost|passed its deadline|told to stop'
tc qdisc replace dev v0 root netem loss 0%
timeout 80 ./exercise -T 60 --cpus 0,2 -b pingpong -s 64 -n 1000000 "$plugin" rxe0+rxe1 timeout=10 >"$log" 2>&1 &
busy() { [ "$(rdma_counter rxe1 rcvd_pkts)" -gt "$1" ]; }
until_true 30 busy "$(($(rdma_counter rxe1 rcvd_pkts) + 300))"
tc qdisc replace dev v0 root netem loss 100%
wait $!
status=$?
check "all packets are lost from one moment on: the block ends" "exit status $status" [ "$status" = 1 ]
says "and the cause is named" 'transport retry counter exceeded.*does not answer'
tc qdisc replace dev v0 root netem loss 0%
timeout 80 ./exercise -T 60 --cpus 0,2 -b pingpong -o write-poll -s 64 -n 1000000 "$plugin" rxe0+rxe1 timeout=10 >"$log" 2>&1 &
until_true 30 busy "$(($(rdma_counter rxe1 rcvd_pkts) + 300))"
tc qdisc replace dev v0 root netem loss 100%
wait $!
status=$?
check "they are lost while both sides watch their memory: the block ends" "exit status $status" [ "$status" = 1 ]
says "and the cause is named there too" 'the write of 64 bytes .*transport retry counter exceeded.*does not answer'
tc qdisc del dev v0 root

# --- the peer is killed
timeout 260 ./xportbench -t verbs:rxe0 -s 8 --launches 100:100 -n 5000 --time 220 --bind 0,2 -q -o /tmp/killed.json >"$log" 2>&1 &
controller=$!
has_result() { grep -q '"latency_us": {' /tmp/killed.json 2>/dev/null; }
# A worker of a later launch, in a block. One that was closing anyway is not missed: until the run has ended of it.
is_over() { ! kill -0 $controller 2>/dev/null; }
received() { [ "$(rdma_counter rxe0 rcvd_pkts)" -gt "$1" ]; }
kill_worker() {
	is_over && return
	until_true 10 received "$(($(rdma_counter rxe0 rcvd_pkts) + 300))"
	{ kill -9 "$(pgrep -P "$(pgrep -P $controller -o)" -n)" && until_true 5 is_over; } 2>/dev/null
}
until_true 150 has_result && until_true 60 kill_worker || echo "no result, or nobody to kill" >>"$log"
wait $controller
status=$?
check "a worker is killed in the middle: the run ends with status 4" "exit status $status" [ "$status" = 4 ]
python3 -c 'import json
t = json.load(open("/tmp/killed.json"))["transports"][0]
print(t["status"], t["error"])' >>"$log" 2>&1
says "its end is named" 'killed by signal 9|signal 9|SIGKILL|Killed'
check "what was measured before is kept" "no result" python3 -c 'import json, sys
run = json.load(open("/tmp/killed.json"))
sys.exit(0 if run["results"] and run["transports"][0]["status"] == "failed" else 1)'
nothing_left "no queue pair, memory region or rdma_cm identifier of a killed worker is left"

# --- the link goes down
timeout 80 ./exercise -T 60 --cpus 0,2 -b pingpong -s 64 -n 1000000 "$plugin" rxe0+rxe1 >"$log" 2>&1 &
until_true 30 busy "$(($(rdma_counter rxe1 rcvd_pkts) + 300))"
ip link set v0 down
wait $!
status=$?
check "a link that goes down ends the block" "exit status $status" [ "$status" = 1 ]
says "and the cause is named" 'the port went down; check the link'
ip link set v1 down
is_down() { ! rdma link show rxe1/1 | grep -q 'state ACTIVE'; }
until_true 20 is_down
refuses "a port that is down" 'rxe1: the port is .*; bring its network interface up' "$plugin" rxe1
ip link set v0 up
ip link set v1 up
two_devices_ready >"$log" 2>&1 && blocks "and up again it works" 1 -b pingpong -s 64 "$plugin" rxe0+rxe1

# --- and under a whole run: what was measured before is kept. Its blocks are long enough for the link to go in one.
timeout 260 ./xportbench -t verbs:rxe0+rxe1 -s 8 --launches 100:100 -n 5000 --time 220 --bind 0,2 -q -o /tmp/down.json >"$log" 2>&1 &
controller=$!
has_result_before_the_link_goes() { grep -q '"latency_us": {' /tmp/down.json 2>/dev/null; }
until_true 150 has_result_before_the_link_goes || echo "no result" >>"$log"
until_true 30 busy "$(($(rdma_counter rxe1 rcvd_pkts) + 300))" || echo "no traffic" >>"$log"
ip link set v0 down
wait $controller
status=$?
check "a link goes down in the middle of a run: it ends with status 4" "exit status $status" [ "$status" = 4 ]
python3 -c 'import json
run = json.load(open("/tmp/down.json"))
t = run["transports"][0]
print(len(run["results"]), "results", t["status"], t["error"])' >>"$log" 2>&1
says "what was measured before is kept, and the cause is named" '^[1-9][0-9]* results (failed|unavailable) .*(the port went down|the port is down, not active)'
ip link set v0 up
two_devices_ready >"$log" 2>&1

# --- nothing but the event tells of it
only_event='^endpoint 0: transport: verbs: waited for endpoint 1; rxe0/1 reports "port error": the port went down'
PROVOKE_PATH=rxe0+rxe1 provoked "the link goes down while a receive waits: the event ends the wait" idle "$only_event"
ip link set v0 up
two_devices_ready >"$log" 2>&1
PROVOKE_PATH=rxe0+rxe1 provoked "the link goes down while a full queue waits for room: so it does there" full "$only_event"
tc qdisc del dev v0 root
ip link set v0 up
two_devices_ready >"$log" 2>&1
nothing_left "no queue pair, memory region or rdma_cm identifier is left at the end"

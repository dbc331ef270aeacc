#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The tcp backend takes the network that its path names, on two hosts made of network namespaces, or says why it cannot.
# xb-timeout: 600
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/lib/interfaces.sh
. tests/lib/interfaces.sh
build=${XB_BUILD:-build}
exercise=$build/tests/exercise
plugin=$build/plugins/libxb-tcp.so
work=$(mktemp -d "${TMPDIR:-/tmp}/xb-tcp.XXXXXX")
a=xbtcpA$$ b=xbtcpB$$
failed=0
limit=60
[[ -n ${XB_SANITIZE:-} ]] && limit=180

ok() { echo "ok - $1"; }
not_ok() { # NAME WHY: with what the endpoints said
	for log in "$work"/run/*.log; do
		[[ -e $log ]] && tail -n 8 "$log" | sed "s/^/  | $(basename "$log"): /"
	done
	echo "not ok - $1: $2"
	failed=1
}
finish() {
	ip netns del "$a" 2>/dev/null
	ip netns del "$b" 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT

for needed in "$exercise" "$plugin"; do
	if [[ ! -e $needed ]]; then
		not_ok 'the driver and the plugin are built' "$needed is missing; make exercise plugins"
		exit 1
	fi
done
if ! ip netns add "$a" 2>/dev/null || ! ip netns add "$b" 2>/dev/null; then
	echo 'skip - tcp over two hosts: network namespaces cannot be made here (needs root)'
	exit 0
fi

# net0: IPv4 and IPv6 in a common subnet. net1: a second link, in the same IPv4 subnet. net2: IPv6 link-local only.
# net3: up, no address. net4: down. net5: up, but its other end is down. lan7/lan8: names differ between the hosts.
link() { # NAME_A NAME_B
	ip link add "$1" netns "$a" type veth peer name "$2" netns "$b" || exit 1
	ip netns exec "$a" sysctl -qw "net.ipv6.conf.$1.accept_dad=0" "net.ipv6.conf.$1.accept_ra=0" 2>/dev/null
	ip netns exec "$b" sysctl -qw "net.ipv6.conf.$2.accept_dad=0" "net.ipv6.conf.$2.accept_ra=0" 2>/dev/null
}
for net in net0 net1 net2 net3 net4 net5; do link $net $net; done
link lan7 lan8
host=1
for ns in "$a" "$b"; do
	at() { ip -n "$ns" "$@"; }
	at link set lo up
	ip netns exec "$ns" sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 \
		net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
	ip netns exec "$ns" sysctl -qw net.ipv6.conf.net3.disable_ipv6=1 2>/dev/null
	at address add 10.91.0.$host/24 dev net0
	at address add fd00:91::$host/64 dev net0 nodad
	at address add 10.91.0.10$host/24 dev net1
	lan=lan7
	[[ $ns == "$b" ]] && lan=lan8
	at address add 10.92.0.$host/24 dev $lan
	for net in net0 net1 net2 net3 "$lan"; do at link set "$net" up; done
	host=$((host + 1))
done
ip -n "$a" link set net5 up
for net in net0 net1 net2 net3; do is_up "$a" $net && is_up "$b" $net || exit 1; done
is_up "$a" lan7 && is_up "$b" lan8 || exit 1
# the first neighbour solicitation after link-up is often lost; wait here, not in a test
for _ in {1..50}; do
	ip netns exec "$a" ping -6 -q -c1 -W1 fd00:91::2 >/dev/null 2>&1 && break
done

bytes_of() { # NAMESPACE INTERFACE: sent so far
	ip netns exec "$1" cat "/sys/class/net/$2/statistics/tx_bytes"
}

# two PATH_A PATH_B ARGUMENTS...: one endpoint on each host. Sets said_a, said_b, status_a, status_b.
two() {
	local path_a=$1 path_b=$2 pid
	shift 2
	rm -rf "$work/run"
	mkdir -p "$work/run"
	OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 timeout $((limit + 20)) ip netns exec "$a" "$exercise" --mpi \
		--dir "$work/run/oob" -T $limit -b pingpong,bw,bibw -n 4 -x 2 -W 4 -s 0,8,64K,1048577 "$@" "$plugin" "$path_a" \
		"${keys[@]}" >"$work/run/a.log" 2>&1 &
	pid=$!
	OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 timeout $((limit + 20)) ip netns exec "$b" "$exercise" --mpi \
		--dir "$work/run/oob" -T $limit -b pingpong,bw,bibw -n 4 -x 2 -W 4 -s 0,8,64K,1048577 "$@" "$plugin" "$path_b" \
		"${keys[@]}" >"$work/run/b.log" 2>&1
	status_b=$?
	wait $pid
	status_a=$?
	said_a=$(<"$work/run/a.log")
	said_b=$(<"$work/run/b.log")
}
keys=()

# runs NAME PATH_A PATH_B RESOLVED DEVICE_A ARGUMENTS...: completes, verified, by that way, and the device carried it
runs() {
	local name=$1 path_a=$2 path_b=$3 resolved=$4 device=$5 before carried
	shift 5
	before=$(bytes_of "$a" "$device")
	two "$path_a" "$path_b" "$@"
	carried=$(($(bytes_of "$a" "$device") - before))
	if [[ $status_a != 0 || $status_b != 0 ]]; then
		not_ok "$name" "exit status $status_a and $status_b"
	elif [[ $said_a != *"resolved \"tcp $resolved"* ]]; then
		not_ok "$name" "not resolved as '$resolved'"
	elif [[ $said_a == *'path NOT OK'* || $said_b == *'path NOT OK'* ]]; then
		not_ok "$name" 'path not ok'
	elif [[ $(grep -c ' verified$' "$work/run/a.log") != 12 ]]; then
		not_ok "$name" 'not every block was verified'
	elif ((carried < 20 * 1048577)); then
		not_ok "$name" "$device carried only $carried bytes"
	else
		ok "$name"
	fi
}

gave_up() { # STATUS: neither success, nor ended by timeout or a signal
	(($1 > 0 && $1 < 124))
}

# refused NAME PATH WORD...: host A gives the reason, in words that contain each WORD, and does not hang
refused() {
	local name=$1 path=$2 word
	shift 2
	rm -rf "$work/run"
	mkdir -p "$work/run"
	timeout 30 ip netns exec "$a" "$exercise" -T 20 -s 8 -b pingpong "$plugin" "$path" "${keys[@]}" >"$work/run/a.log" 2>&1
	status_a=$?
	if ! gave_up "$status_a"; then
		not_ok "$name" "exit status $status_a"
		return
	fi
	for word in "$@"; do
		if ! grep -qF -- "$word" "$work/run/a.log"; then
			not_ok "$name" "does not say '$word'"
			return
		fi
	done
	ok "$name"
}

runs 'without a path, the common subnet is found' '' '' '10.91.0.1 -> 10.91.0.2 on net0, spinning' net0
runs 'over the interface of the path' net0 net0 '10.91.0.1 -> 10.91.0.2 on net0' net0
runs 'over the second link of one subnet' net1 net1 '10.91.0.101 -> 10.91.0.102 on net1' net1
runs 'over a subnet whose interfaces differ in name' 10.92.0.0/24 10.92.0.0/24 '10.92.0.1 -> 10.92.0.2 on lan7' lan7
runs 'over interfaces that differ in name' lan7 lan8 '10.92.0.1 -> 10.92.0.2 on lan7' lan7
runs 'over IPv6 link-local addresses' net2 net2 'fe80:' net2
keys=(poll=block)
runs 'asleep instead of spinning' net0 net0 '10.91.0.1 -> 10.91.0.2 on net0, blocking' net0
keys=(family=6)
runs 'over IPv6' net0 net0 'fd00:91::1 -> fd00:91::2 on net0' net0
runs 'over IPv6 without a path' '' '' 'fd00:91::1 -> fd00:91::2 on net0' net0
keys=(family=6 poll=block sndbuf=64K rcvbuf=64K)
runs 'over IPv6, asleep, with small buffers' net0 net0 'fd00:91::1 -> fd00:91::2 on net0, blocking' net0
keys=()

two lo lo
if gave_up $status_a && gave_up $status_b && [[ $said_a == *'on different hosts'* && $said_b == *'on different hosts'* ]]; then
	ok 'the loopback interface between two hosts is refused at both'
else
	not_ok 'the loopback interface between two hosts is refused at both' "exit status $status_a and $status_b"
fi

refused 'an interface that does not exist' eth77 'asked for tcp:eth77' 'no such interface' net0 'net4 (down)'
refused 'an interface that is down' net4 'asked for tcp:net4' 'is down' 'ip link set net4 up'
refused 'an interface without carrier' net5 'asked for tcp:net5' 'no carrier'
refused 'an interface without an address' net3 'asked for tcp:net3' 'no IPv4 or IPv6 address'
refused 'a subnet that is not here' 198.51.100.0/24 'asked for tcp:198.51.100.0/24' 'no interface that is up has an address'
keys=(family=6)
ip -n "$a" -6 address flush dev net1
refused 'an interface without an address of the family' net1 'no IPv6 address' 'leave out family='
keys=()

# one host: the bytes cannot take the interface that was asked for, and that is said
rm -rf "$work/run"
mkdir -p "$work/run"
timeout $limit ip netns exec "$a" "$exercise" -T 20 -s 8 -b pingpong -n 10 "$plugin" net0 >"$work/run/a.log" 2>&1
if grep -q 'path NOT OK.*device "lo"\|device "lo".*path NOT OK' "$work/run/a.log" && grep -q 'both ends are on this host' "$work/run/a.log"; then
	ok 'between two endpoints of one host, net0 is seen to be lo'
else
	not_ok 'between two endpoints of one host, net0 is seen to be lo' 'not said'
fi

ip netns exec "$a" "$exercise" --probe "$plugin" >"$work/run/a.log" 2>&1
wrong=
grep -q '"net0": 10.91.0.1/24, fd00:91::1/64.*MTU 1500' "$work/run/a.log" || wrong='net0 with its addresses'
grep -q '"net3".*no IPv4 or IPv6 address.*ip address add' "$work/run/a.log" || wrong='net3 has no address'
grep -q '"net4".*is down.*ip link set net4 up' "$work/run/a.log" || wrong='net4 is down'
grep -q '"net5".*no carrier' "$work/run/a.log" || wrong='net5 has no carrier'
if [[ -z $wrong ]]; then
	ok 'probe tells the interfaces, and what is wrong with the unusable ones'
else
	not_ok 'probe tells the interfaces, and what is wrong with the unusable ones' "not said: $wrong"
fi

ended() { # PID
	grep -q 'endpoint 0: pingpong 8 B: peer: ' "$work/run/a.log" || [[ $(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) != [RSD] ]]
}

# a killed peer: the other end notices by itself
for poll in spin block; do
	rm -rf "$work/run"
	mkdir -p "$work/run"
	timeout 90 ip netns exec "$a" "$exercise" -T 60 -b pingpong -n 1000000 -s 8 "$plugin" lo poll=$poll >"$work/run/a.log" 2>&1 &
	pid=$!
	for _ in {1..100}; do
		grep -q 'endpoint 1 (connected)' "$work/run/a.log" && break
		sleep 0.1
	done
	sleep 0.3
	# timeout runs ip, which has become the driver, which has forked the endpoints in order. It sleeps meanwhile, so
	# that it does not tell endpoint 0 before that has noticed.
	driver=$(pgrep -n -P $pid)
	endpoint=
	[[ $driver ]] && endpoint=$(pgrep -n -P "$driver") && survivor=$(pgrep -o -P "$driver")
	if [[ $endpoint ]]; then
		kill -STOP "$driver"
		kill -KILL "$endpoint"
		for _ in {1..200}; do
			ended "$survivor" && break
			sleep 0.1
		done
		kill -CONT "$driver"
	fi
	wait $pid 2>/dev/null
	if grep -q 'endpoint 0: pingpong 8 B: peer: .*endpoint 1 at 127.0.0.1' "$work/run/a.log"; then
		ok "a killed peer is noticed while it is waited for (poll=$poll)"
	else
		not_ok "a killed peer is noticed while it is waited for (poll=$poll)" 'not said'
	fi
done
exit $failed

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The libfabric backend over every provider that runs without a fabric: blocks of all benchmarks and operations around
# each provider's inject size, what it says of the path, its errors, two network namespaces, and what a kill leaves.
# xb-timeout: 900
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/lib/interfaces.sh
. tests/lib/interfaces.sh
# shellcheck source=tests/lib/cases.sh
. tests/lib/cases.sh
build=${XB_BUILD:-$PWD/build}
exercise=$build/tests/exercise
plugin=$build/plugins/libxb-ofi.so
work=$(mktemp -d)
log=$work/log
names=()
cleanup() {
	local name
	for name in "${names[@]}"; do ip netns del "$name" 2>/dev/null; done
	rm -rf "$work"
}
trap cleanup EXIT
# a smaller run under the sanitizers and for the providers that crawl
large=1048577
[ -n "${XB_SANITIZE:-}" ] && large=65537

if [ ! -e "$plugin" ] || [ ! -x "$exercise" ]; then
	skip "libfabric backend" "it is not built here"
	exit 0
fi
run() { timeout 150 "$exercise" -T 140 -n 50 -x 5 "$@" >"$work/log" 2>&1 </dev/null; }
offered() { grep -q "path \"$1[/\"+]" "$work/offers" && ! grep -q "path \"$1\": ; not usable" "$work/offers"; }

"$exercise" --probe "$plugin" >"$work/offers" 2>&1

# --- every provider; sizes on both sides of its inject size
for item in tcp:64 net:128 shm:4096 sockets:64; do
	provider=${item%:*} inject=${item#*:}
	if ! offered "$provider"; then
		skip "ofi:$provider" "not offered here"
		continue
	fi
	for op in send write read; do
		blocks "ofi:$provider $op: pingpong, bw and bibw around the inject size and beyond" 21 \
			-o $op -W 16 -s 0,1,"$inject",$((inject + 1)),5000,64K,$large "$plugin" "$provider"
	done
done
if offered udp; then
	# reliable datagrams over UDP: slow, and slower still when its two cores are shared
	blocks "ofi:udp send" 10 -b pingpong,bw -W 4 -s 0,1,1256,1257,16K "$plugin" udp
	blocks "ofi:udp write" 5 -b pingpong -o write -W 4 -s 0,1,1256,1257,16K "$plugin" udp
	blocks "ofi:udp read" 5 -b pingpong -o read -W 4 -s 1,64,1256,1257,16K "$plugin" udp
	refuses "empty reads over udp, which never complete" 'never completes them' -o read -s 0 "$plugin" udp
else
	skip "ofi:udp" "not offered here"
fi

# --- what it says
if offered tcp; then
	blocks "ofi:tcp on the loopback interface" 1 -b pingpong -s 8 "$plugin" tcp/lo
	says "tcp says which provider it resolved to, and where" 'resolved "tcp(;ofi_rxm)? on lo [0-9.:]+"; device "lo"; path ok'
	blocks "ofi:tcp+rxm needs no quotes" 1 -b pingpong -s 8 "$plugin" tcp+rxm
	says "tcp+rxm is tcp;ofi_rxm" 'resolved "tcp;ofi_rxm on lo'
	blocks "ofi:tcp by address" 1 -b pingpong -s 8 "$plugin" tcp/127.0.0.1
	blocks "ofi without a path takes libfabric's first choice" 1 -b pingpong -s 8 "$plugin"
	says "and says which" 'libfabric [0-9.]+; resolved "[a-z0-9;_]+ '
	blocks "wait=sread sleeps in the provider" 3 -b pingpong -s 0,64,64K "$plugin" tcp wait=sread
	says "wait=sread is noted" 'asleep in fi_cq_sread'
	blocks "flush=read: a put is visible after a read-back" 6 -b pingpong,bw -o write -W 8 -s 1,4K,64K "$plugin" tcp flush=read
	says "flush=read is noted" 'visible by read-back'
	blocks "1000 messages outstanding" 1 -b bibw -W 1000 -s 8 "$plugin" tcp
fi
if offered shm; then
	blocks "ofi:shm" 1 -b pingpong -s 8 "$plugin" shm
	says "shm names no device" 'resolved "shm \(shared memory\)"; device ""; path ok'
fi
if offered net; then
	blocks "1000 messages outstanding over a provider with shorter queues" 1 -b bibw -W 1000 -s 8 "$plugin" net
fi

# --- errors
refuses "an unknown provider: what there is instead" 'asked for ofi:warp.*use one of: .*shm' "$plugin" warp
refuses "an unknown device: which ones there are" 'asked for ofi:tcp/nic7.*on .*lo' "$plugin" tcp/nic7
refuses "a utility provider alone" 'asked for ofi:rxm.*tcp\+rxm' "$plugin" rxm
refuses "a path without provider" 'asked for ofi:/lo.*the provider is missing' "$plugin" /lo
refuses "a path that ends in its slash" 'the device after the slash is missing' "$plugin" tcp/
refuses "an unknown value of a key" 'asked for wait=nap.*spin and wait=sread' "$plugin" tcp wait=nap
if ! offered psm2; then
	refuses "psm2 without an adapter: why" 'asked for ofi:psm2.*no Omni-Path adapter.*hfi1' "$plugin" psm2
fi
if grep -q 'path "verbs": ; not usable: .*remedy: ' "$work/offers"; then
	ok "the list says why verbs is missing, and the remedy"
elif offered verbs; then
	skip "why verbs is missing" "it is there"
else
	cp "$work/offers" "$work/log"
	not_ok "the list says why verbs is missing" "no such line"
fi

# --- two hosts: network namespaces joined by a pair of interfaces
two_hosts() {
	local a=xbofi$$a b=xbofi$$b
	ip netns add "$a" 2>/dev/null && names+=("$a") && ip netns add "$b" && names+=("$b") &&
		ip link add xo0 netns "$a" type veth peer name xo1 netns "$b" &&
		ip -n "$a" address add 10.77.31.1/24 dev xo0 && ip -n "$b" address add 10.77.31.2/24 dev xo1 &&
		ip -n "$a" link set lo up && ip -n "$b" link set lo up &&
		ip -n "$a" link set xo0 up && ip -n "$b" link set xo1 up && is_up "$a" xo0 && is_up "$b" xo1
}
between() { # PROVIDER DEVICE0 DEVICE1 OPTIONS…
	local provider=$1 first=$2 second=$3 rc=0
	shift 3
	rm -rf "$work/meet"
	mkdir "$work/meet"
	for rank in 0 1; do
		local device=$first
		[ $rank = 1 ] && device=$second
		OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 PMI_RANK=$rank PMI_SIZE=2 XB_SAME_HOST=0 timeout 100 \
			ip netns exec "${names[$rank]}" "$exercise" --mpi --dir "$work/meet" -T 90 -n 50 -x 5 "$@" "$plugin" \
			"$provider$device" >"$work/log.$rank" 2>&1 </dev/null &
	done
	wait -n || rc=1
	wait -n || rc=1
	cat "$work/log.0" "$work/log.1" >"$work/log"
	return $rc
}
if [ "$(id -u)" -eq 0 ] && two_hosts >"$work/log" 2>&1; then
	for provider in tcp net; do
		offered $provider || continue
		for device in "" named; do
			for op in send write; do
				name="ofi:$provider${device:+/DEVICE} $op between two network namespaces"
				if ! between $provider "${device:+/xo0}" "${device:+/xo1}" -o $op -b pingpong,bw -W 16 \
					-s 0,64,65,4097,64K; then
					not_ok "$name" "exercise failed"
				elif ! grep -q 'on xo0 10.77.31.1"; device "xo0"; path ok' "$work/log"; then
					not_ok "$name" "it is not bound to xo0"
				else
					ok "$name"
				fi
			done
		done
	done
else
	skip "two network namespaces" "they cannot be made here"
fi

# --- a killed endpoint, once its connection has carried a block, in one that lasts
if offered shm; then
	"$exercise" -T 60 -n 2000 -x 5 -b pingpong -s 4,16M "$plugin" shm >"$work/log" 2>&1 </dev/null &
	parent=$!
	for _ in $(seq 1 300); do
		grep -q ' 4 B ' "$work/log" && break
		sleep 0.1
	done
	kids=$(pgrep -P $parent | tr '\n' ' ')
	# shellcheck disable=SC2086
	kill -KILL $kids 2>/dev/null
	kill -KILL $parent 2>/dev/null
	wait $parent 2>/dev/null
	left=""
	for pid in $kids; do left+=$(find /dev/shm -maxdepth 1 -name "*$pid*" -printf '%f '); done
	if [ -z "$kids" ]; then
		not_ok "a kill leaves nothing in /dev/shm" "the endpoints did not start"
	elif [ -n "$left" ]; then
		not_ok "a kill leaves nothing in /dev/shm" "left: $left"
	else
		ok "a kill leaves nothing in /dev/shm"
	fi
fi
exit $failed

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The UCX backend over every transport that runs without a fabric: blocks of all benchmarks and operations around UCX's
# protocol thresholds, what it says of the path, its errors, two network namespaces, and what a kill leaves.
# xb-timeout: 900
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/lib/interfaces.sh
. tests/lib/interfaces.sh
# shellcheck source=tests/lib/cases.sh
. tests/lib/cases.sh
build=${XB_BUILD:-$PWD/build}
exercise=$build/tests/exercise
plugin=$build/plugins/libxb-ucx.so
work=$(mktemp -d "${TMPDIR:-/tmp}/xb-ucx.XXXXXX")
log=$work/log
a=xbucxA$$ b=xbucxB$$
cleanup() {
	ip netns del "$a" 2>/dev/null
	ip netns del "$b" 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
# what the user's own settings would change
unset "${!UCX_@}"
# a smaller run under the sanitizers
large=1048577
[ -n "${XB_SANITIZE:-}" ] && large=65537

if [ ! -e "$plugin" ] || [ ! -x "$exercise" ]; then
	skip "UCX backend" "it is not built here"
	exit 0
fi
run() { timeout 170 "$exercise" -T 150 -n 20 -x 3 "$@" >"$work/log" 2>&1 </dev/null; }
shm_left() { # what the tests must not leave: UCX's files and System V segments
	find /dev/shm -iname '*ucx*' 2>/dev/null | sort
	ipcs -m | awk '$1 ~ /^0x/ && $6 == 0 {print "sysv", $2}' | sort
}
shm_left >"$work/before"

"$exercise" --probe "$plugin" >"$work/offers" 2>&1

# --- every transport, sizes around the thresholds of short, copied and rendezvous messages
for path in tcp/lo posix sysv shm ""; do
	name="ucx${path:+:$path}"
	for op in send write read; do
		blocks "$name $op: pingpong, bw and bibw at twelve sizes" 36 -o $op -W 8 \
			-s 0,1,8,64,93,1000,8191,8192,8193,64K,256K,$large "$plugin" ${path:+"$path"}
	done
done
if [ -z "${XB_SANITIZE:-}" ]; then
	for path in tcp posix cma; do
		blocks "ucx:$path: messages of 64 MiB" 2 -b pingpong,bw -n 2 -x 1 -W 2 -s 64M "$plugin" $path
	done
	blocks "1000 messages outstanding both ways" 2 -b bibw -n 3 -W 1000 -s 8,64K "$plugin" posix
fi
blocks "three endpoints, every pair" 9 -N 3 --cpus none -b pingpong -s 0,8,64K "$plugin" posix
blocks "memory=ucx: send" 6 -b pingpong,bw -W 8 -s 1,8192,$large "$plugin" posix memory=ucx
says "memory=ucx is noted" 'buffers allocated by UCX'
blocks "memory=ucx: write into mapped memory of the peer" 6 -o write -b pingpong,bw -W 8 -s 1,8192,$large "$plugin" posix memory=ucx
blocks "memory=ucx: read from mapped memory of the peer" 6 -o read -b pingpong,bw -W 8 -s 1,8192,$large "$plugin" sysv memory=ucx
blocks "errors=peer over tcp" 6 -b pingpong,bw -W 8 -s 1,8192,$large "$plugin" tcp errors=peer

# --- what it says
blocks "ucx:tcp/lo" 1 -b pingpong -s 8 "$plugin" tcp/lo
says "tcp/lo uses tcp over lo and nothing else" 'UCX [0-9.]+; resolved "tcp/lo"; device "lo"; path ok'
blocks "ucx:tcp" 1 -b pingpong -s 8 "$plugin" tcp
silent "no shared memory sneaks into ucx:tcp" 'resolved "[^"]*(posix|sysv|cma|memory)'
blocks "ucx:posix" 1 -b pingpong -s 8 "$plugin" posix
says "posix names no device" 'resolved "posix/memory"; device ""; path ok'
blocks "ucx without a path" 1 -b pingpong -s 8 "$plugin"
says "and says that it is shared memory" 'UCX chose shared memory'
blocks "ucx:cma" 1 -b pingpong -s 8 "$plugin" cma
says "cma alone gets posix for its small messages, and says so" 'posix added for the small ones'
says "the eager limit is read back" 'eager [1-9][0-9]+'
UCX_TLS=posix run -b pingpong -s 8 "$plugin" tcp/lo
says "the path has precedence over UCX_TLS" 'resolved "tcp/lo"'
UCX_TLS=sysv run -b pingpong -s 8 "$plugin"
says "without a path UCX_TLS decides" 'resolved "sysv/memory"'
UCX_RNDV_THRESH=1000 run -b pingpong -s 8 "$plugin" tcp/lo
says "the user's other settings stay in effect" 'eager 999'
UCX_NO_SUCH_THING=1 run -b pingpong -s 8 "$plugin" posix
says "a setting that UCX does not know is told" 'UCX_NO_SUCH_THING'

# --- errors
refuses "an unknown transport: what there is instead" '"warp" was asked for; UCX offers here .*tcp \(.*lo' "$plugin" warp
silent "and UCX's own warning is not printed as well" 'UCX +(WARN|ERROR)'
refuses "one unknown transport among several" '"warp" was asked for' "$plugin" tcp+warp
refuses "an unknown device: which ones there are" '"nic7" was asked for with transport tcp; usable here: .*lo' "$plugin" tcp/nic7
refuses "a device for shared memory" 'has no network device' "$plugin" posix/lo
refuses "self" 'only the process itself' "$plugin" self
refuses "an empty name" 'no valid transport name' "$plugin" tcp+
refuses "an unknown value of a key" 'memory=yours was asked for; memory is "user" or "ucx"' "$plugin" tcp memory=yours
if ls /sys/class/infiniband/* >/dev/null 2>&1; then
	skip "rc without an RDMA device" "there is one here"
else
	refuses "rc without an RDMA device: the reason and the remedy" 'no RDMA device.*rdma link add' "$plugin" rc
	cp "$work/offers" "$work/log"
	says "probe tells the reason and the remedy too" '"rc".*no RDMA device.*rdma link add'
fi
cp "$work/offers" "$work/log"
says "probe lists tcp with its interfaces" '"tcp/lo"'
says "probe lists shared memory" '"posix"'

# --- a killed peer
for path in tcp/lo posix; do
	timeout 100 "$exercise" -T 90 -b pingpong -n 1000000 -s 8 "$plugin" $path >"$work/log" 2>&1 </dev/null &
	runner=$!
	for _ in {1..100}; do
		side=$(pgrep -P "$(pgrep -P $runner 2>/dev/null)" 2>/dev/null | tail -n 1)
		[ -n "$side" ] && grep -q '(connected)' "$work/log" && break
		sleep 0.1
	done
	kill -KILL "$side" 2>/dev/null
	wait $runner
	status=$?
	if [ "$status" -eq 0 ] || [ "$status" -ge 124 ]; then
		not_ok "a killed peer over $path ends the run" "exit status $status"
	else
		ok "a killed peer over $path ends the run"
	fi
	[ $path = tcp/lo ] && silent "without a backtrace of UCX's" 'backtrace'
done
sleep 0.5
shm_left >"$work/after"
left=$(comm -13 "$work/before" "$work/after" | tr '\n' ' ') # what others had may have gone meanwhile
check "no shared memory is left behind, not even by a kill" "$left" [ -z "$left" ]

# --- two hosts
if ! ip netns add "$a" 2>/dev/null || ! ip netns add "$b" 2>/dev/null; then
	skip "ucx over two hosts" "network namespaces cannot be made here (needs root)"
	exit $failed
fi
ip link add net0 netns "$a" type veth peer name net0 netns "$b" || exit 1
for ns in "$a" "$b"; do
	ip -n "$ns" link set lo up
	ip -n "$ns" link set net0 up
done
ip -n "$a" address add 10.91.3.1/24 dev net0
ip -n "$b" address add 10.91.3.2/24 dev net0
is_up "$a" net0 && is_up "$b" net0 || exit 1
bytes_of() { ip netns exec "$a" cat /sys/class/net/net0/statistics/tx_bytes; }

# host NAMESPACE RANK SHARE ARGUMENTS…: one endpoint there; SHARE own: with /dev/shm and System V memory of its own
host() {
	local ns=$1 rank=$2 share=$3
	shift 3
	local wrap=()
	[ "$share" = own ] && wrap=(unshare --ipc --mount sh -c 'mount -t tmpfs tmpfs /dev/shm; exec "$@"' sh)
	OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=$rank timeout 120 ip netns exec "$ns" "${wrap[@]}" "$exercise" --mpi \
		--dir "$work/oob" -T 100 -b pingpong,bw -n 8 -x 2 -W 4 -s 0,8,64K,$large "$@" </dev/null
}
two() { # SHARE ARGUMENTS…
	rm -rf "$work/oob"
	host "$a" 0 "$@" >"$work/log" 2>&1 &
	local pid=$!
	host "$b" 1 "$@" >"$work/b.log" 2>&1
	status_b=$?
	wait $pid
	status_a=$?
}
across() { # NAME SHARE PATTERN ARGUMENTS…: runs, is verified, resolves to PATTERN
	local name=$1 share=$2 pattern=$3 why=
	shift 3
	two "$share" "$@"
	if [ "$status_a" != 0 ] || [ "$status_b" != 0 ]; then
		why="exit status $status_a and $status_b"
	elif [ "$(grep -c ' verified$' "$work/log")" -ne 8 ]; then
		why="not every block was verified"
	elif ! grep -Eq -- "$pattern" "$work/log"; then
		why="no line matches $pattern"
	fi
	if [ -z "$why" ]; then
		ok "$name"
	else
		tail -n 7 "$work/b.log" >>"$work/log"
		not_ok "$name" "$why"
	fi
}
before=$(bytes_of)
across "between two hosts over tcp" shared 'resolved "tcp/net0"; device "net0"; path ok' "$plugin" tcp
if [ $(($(bytes_of) - before)) -gt $((20 * large)) ]; then
	ok "and the interface counted the bytes"
else
	not_ok "and the interface counted the bytes" "$(($(bytes_of) - before)) bytes"
fi
across "between two hosts over tcp, one-sided" shared 'resolved "tcp/net0"' -o write "$plugin" tcp/net0
across "two hosts that share nothing: UCX takes the network by itself" own 'resolved "tcp/net0"; device "net0"' "$plugin"
across "two hosts that share /dev/shm: shared memory is told as such" shared 'different network namespaces' "$plugin"
two shared "$plugin" tcp/lo
if [ "$status_a" != 0 ] && [ "$status_b" != 0 ] && grep -q 'cannot be reached over tcp/lo' "$work/log"; then
	ok "the loopback interface between two hosts is refused"
else
	not_ok "the loopback interface between two hosts is refused" "exit status $status_a and $status_b"
fi
two own "$plugin" posix
if [ "$status_a" != 0 ] && [ "$status_b" != 0 ] && grep -q 'cannot be reached over posix' "$work/log"; then
	ok "shared memory between two hosts that share nothing is refused"
else
	not_ok "shared memory between two hosts that share nothing is refused" "exit status $status_a and $status_b"
fi
exit $failed

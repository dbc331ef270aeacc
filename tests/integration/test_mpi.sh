#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2086,SC2054,SC2206 # flags and lists are split into words on purpose
# The MPI backend over every path that runs without a fabric: all benchmarks, operations and modes, verified; what it
# says of the path, also between two network namespaces and beneath a launcher of another MPI; its errors; leftovers.
# xb-timeout: 1500
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/lib/interfaces.sh
. tests/lib/interfaces.sh
# shellcheck source=tests/lib/cases.sh
. tests/lib/cases.sh
build=${XB_BUILD:-$PWD/build}
xb=${XB_BIN:-$build/xportbench}
exercise=$build/tests/exercise
plugin=$build/plugins/libxb-mpi.so
psm2=tests/psm2/with-psm2
work=$(mktemp -d "${TMPDIR:-/tmp}/xb-mpi.XXXXXX")
log=$work/log
names=()
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 NO_COLOR=1
# MPI libraries leak at exit by design
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
cleanup() {
	local name
	for name in "${names[@]}"; do ip netns del "$name" 2>/dev/null; done
	rm -rf "$work"
}
trap cleanup EXIT

if [ ! -e "$plugin" ] || [ ! -x "$exercise" ] || ! command -v mpirun >/dev/null; then
	skip "MPI backend" "it is not built here, or there is no mpirun"
	exit 0
fi
if ! mpirun --version 2>/dev/null | grep -q "Open MPI"; then
	skip "MPI backend" "mpirun is not Open MPI's"
	exit 0
fi
"$exercise" --probe "$plugin" >"$work/offers" 2>&1
installed() { ! grep -Eq "path \"$1\": .*not usable: this Open MPI has no" "$work/offers"; }

sizes=0,1,8,1000,4096,64K,1M,1048577
window=8
iterations=3
ops=(send write read)
# a smaller run under the sanitizers; tests/contract/run has every operation there
[ -n "${XB_SANITIZE:-}" ] && sizes=0,1,8,4096,64K,300000 ops=(send write)

# The blocks of a run: all verified, over the path that was asked for. PATTERN must match the resolved path.
examine='
import json, re, sys
document, pattern, wanted = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3])
transport = document["transports"][0]
if transport["status"] != "ok":
    sys.exit("status %s: %s" % (transport["status"], transport["error"]))
if not re.fullmatch(pattern, transport["resolved_path"]):
    sys.exit("resolved path %s" % transport["resolved_path"])
bad = ["%s at %d" % (r["bench"], r["size"]) for r in document["results"] if r["verified"] is not True]
if bad or len(document["results"]) != wanted:
    sys.exit("%d results instead of %d; not verified: %s" % (len(document["results"]), wanted, bad))
wrong = [f["text"] for f in document["findings"] if f["code"] == "wrong-path"]
if wrong:
    sys.exit(wrong[0])
'
# measures NAME PATTERN TRANSPORT BENCHES OPTIONS…
measures() {
	local name=$1 pattern=$2 transport=$3 benches=$4 wanted why status
	shift 4
	wanted=$(($(tr ',' '\n' <<<"$benches" | wc -l) * $(tr ',' '\n' <<<"$sizes" | wc -l)))
	timeout 170 ${before:-} "$xb" -t "$transport" -b "$benches" -s "$sizes" -W $window -n $iterations -x 2 --launches 1 \
		--time 1 --format json "$@" >"$work/json" 2>"$work/log" </dev/null
	status=$?
	# 3: measured, but something (here the noise of a shared machine) makes it unfit as a result
	if [ $status != 0 ] && [ $status != 3 ]; then
		not_ok "$name" "exit status $status"
	elif why=$(python3 -c "$examine" "$work/json" "$pattern" "$wanted" 2>&1); then
		ok "$name"
	else
		not_ok "$name" "$why"
	fi
}
all=pingpong,bw,bibw
lane='[a-z]+/[a-z0-9]+'

# --- every path, operation and benchmark; for write and read the one-sided component is named, and it is on the path too
for op in "${ops[@]}"; do
	osc() { if [ $op = send ]; then echo "$2"; else echo "osc $1, messages $2"; fi; }
	measures "mpi $op: what MPI picks" "$(osc 'rdma/vader' 'ob1/vader')" mpi $all --op $op
	measures "mpi:tcp $op" "$(osc pt2pt 'ob1/tcp')" mpi:tcp/lo $all --op $op
	measures "mpi:shm $op" "$(osc 'rdma/vader' 'ob1/vader')" mpi:shm $all --op $op
	if installed ucx; then
		measures "mpi:ucx $op" "$(osc "ucx \(($lane, )*$lane\)" "ucx \(($lane, )*$lane\)")" mpi:ucx $all --op $op
		measures "mpi:ucx/tcp/lo $op" "$(osc 'ucx \(tcp/lo\)' 'ucx \(tcp/lo\)')" mpi:ucx/tcp/lo $all --op $op
	else
		skip "mpi:ucx $op" "this Open MPI has no pml/ucx"
	fi
	if installed ofi; then
		measures "mpi:ofi/tcp $op" "$(osc pt2pt 'cm/ofi/tcp(;ofi_rxm)?')" mpi:ofi/tcp $all --op $op
		before=$psm2 measures "mpi:ofi/psm2 $op" "$(osc pt2pt 'cm/ofi/psm2 \(self,shm\)')" mpi:ofi/psm2 $all --op $op
	else
		skip "mpi:ofi $op" "this Open MPI has no mtl/ofi"
	fi
	if installed psm2; then
		before=$psm2 measures "mpi:psm2 $op" "$(osc pt2pt 'cm/psm2 \(shm\)')" mpi:psm2 $all --op $op
	else
		skip "mpi:psm2 $op" "this Open MPI has no mtl/psm2"
	fi
done
measures "mpi:shm with full thread support" ob1/vader mpi:shm,threads=multiple $all
for path in tcp/lo shm; do
	[ $path = shm ] && layer=ob1/vader || layer=ob1/tcp
	measures "mpi:$path with blocking calls, one way" $layer "mpi:$path,mode=blocking" pingpong,bw
	measures "mpi:$path with non-blocking calls" $layer "mpi:$path,mode=nonblocking" $all
	for op in "${ops[@]}"; do
		sizes=16M window=2 measures "mpi:$path $op: 16 MiB" '.*' mpi:$path pingpong,bw --op $op
	done
done

# --- errors: refused before anything runs, in one sentence
# refuses NAME STATUS TEXT OPTIONS…
refuses() {
	local name=$1 wanted=$2 text=$3 status
	shift 3
	timeout 60 "$xb" -s 8 --launches 1 --time 1 "$@" >"$work/log" 2>&1 </dev/null
	status=$?
	if [ $status != "$wanted" ]; then
		not_ok "$name" "exit status $status instead of $wanted"
	elif ! tr '\n' ' ' <"$work/log" | grep -Eq -- "$text"; then
		not_ok "$name" "the error does not say $text"
	else
		ok "$name"
	fi
}
refuses "an unknown path: the list" 2 'asked for mpi:warp; the paths of mpi are tcp' -t mpi:warp
refuses "an unknown mode" 2 'asked for mode=fast; mode is auto' -t mpi:shm,mode=fast
refuses "an unknown level of thread support" 2 'asked for threads=two; threads is single' -t mpi:shm,threads=two
refuses "both directions with blocking calls" 2 'asked for data in both directions.*mode=blocking|both' \
	-t mpi:shm,mode=blocking -b bibw
refuses "an interface that is not there: which ones are" 4 'no interface xbnone0; it has .*lo' -t mpi:tcp/xbnone0
refuses "an unknown UCX transport" 4 'UCX transport "warp" is not known' -t mpi:ucx/warp
refuses "a device that UCX does not have" 4 'no interface xbnone0' -t mpi:ucx/tcp/xbnone0
refuses "an unknown provider" 4 'libfabric provider "warp" is not known' -t mpi:ofi/warp
refuses "a provider that MPI does not take" 2 'MPI takes only providers that reach other hosts' -t mpi:ofi/shm
if [ ! -e /dev/hfi1_0 ]; then
	refuses "psm2 without an adapter" 4 'no Omni-Path adapter' -t mpi:psm2
	refuses "psm2 under libfabric without an adapter" 4 'psm2 needs an Omni-Path adapter' -t mpi:ofi/psm2
fi
if grep -Eq 'path "psm2": .*not usable: .*; remedy: ' "$work/offers" || [ -e /dev/hfi1_0 ]; then
	ok "the list says why psm2 is missing, and the remedy"
else
	cp "$work/offers" "$work/log"
	not_ok "the list says why psm2 is missing, and the remedy" "no such line"
fi

# --- the launcher and the library must belong together, and ranks must be numbered alike
run() { timeout 60 "$@" >"$work/log" 2>&1 </dev/null; }
says() {
	if tr '\n' ' ' <"$work/log" | grep -Eq -- "$2"; then ok "$1"; else not_ok "$1" "nothing matches $2"; fi
}
mkdir "$work/meet"
for rank in 0 1; do
	# two processes that no mpirun has started: each is an MPI job of its own
	OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 timeout 60 "$exercise" --mpi --dir "$work/meet" -s 8 "$plugin" \
		>"$work/single.$rank" 2>&1 </dev/null &
done
wait
cat "$work"/single.? >"$work/log"
says "two singletons are told from a job of two" 'asked for 2 ranks; MPI sees 1: the launcher and this MPI library'

# --- a path that is not taken is noticed: ask for one thing, force another
other() { # NAME TEXT PATH FLAGS…
	local name=$1 text=$2 path=$3
	shift 3
	run mpirun -np 2 --oversubscribe --bind-to none "$@" "$exercise" --mpi --cpus none -b pingpong -s 8 "$plugin" "$path"
	says "$name" "$text"
}
other "shared memory instead of TCP" 'resolved "ob1/vader".*path NOT OK.*asked for mpi:tcp; Open MPI uses ob1/vader' tcp \
	--mca pml ob1 --mca btl self,vader
other "TCP instead of shared memory" 'resolved "ob1/tcp".*path NOT OK' shm --mca pml ob1 --mca btl self,tcp \
	--mca btl_tcp_if_include lo
if installed ucx; then
	ucx=(--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any)
	other "UCX over shared memory instead of TCP" 'resolved "ucx \([^)]*memory[^)]*\)".*path NOT OK' ucx/tcp \
		"${ucx[@]}" -x UCX_TLS=sm,self
	other "UCX over a different shared memory" 'resolved "ucx \(sysv/memory\)".*path NOT OK' ucx/posix \
		"${ucx[@]}" -x UCX_TLS=sysv,self
	other "the same with aliases" 'resolved "ucx \(sysv/memory\)".*path ok' ucx/shm "${ucx[@]}" -x UCX_TLS=sysv,self
	other "ob1 instead of UCX" 'resolved "ob1/vader".*path NOT OK' ucx --mca pml ob1 --mca btl self,vader
fi
if installed ofi; then
	other "another provider" 'resolved "cm/ofi/udp;ofi_rxd".*path NOT OK' ofi/tcp --mca pml cm --mca mtl ofi \
		--mca mtl_ofi_provider_include udp
fi
if installed ucx && installed ofi; then
	# messages go over libfabric as asked; put and get would take shared memory
	run mpirun -np 2 --oversubscribe --bind-to none --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include tcp \
		--mca osc rdma "$exercise" --mpi --cpus none -b pingpong -s 8 -o write "$plugin" ofi/tcp
	says "one-sided operations that leave the path" \
		'resolved "osc rdma/vader, messages cm/ofi/tcp(;ofi_rxm)?".*path NOT OK'
fi

# --- two hosts made of network namespaces: the device is the link between them
two_hosts() {
	local a=xbmpiA$$ b=xbmpiB$$
	ip netns add "$a" 2>/dev/null && names+=("$a") && ip netns add "$b" && names+=("$b") &&
		ip link add xm0 netns "$a" type veth peer name xm1 netns "$b" &&
		ip -n "$a" address add 10.77.43.1/24 dev xm0 && ip -n "$b" address add 10.77.43.2/24 dev xm1 &&
		ip -n "$a" link set lo up && ip -n "$b" link set lo up &&
		ip -n "$a" link set xm0 up && ip -n "$b" link set xm1 up && is_up "$a" xm0 && is_up "$b" xm1
}
if [ "$(id -u)" -eq 0 ] && two_hosts >"$work/log" 2>&1; then
	cat >"$work/agent" <<-'END'
		#!/bin/sh
		# in place of ssh: the rest of the arguments is a command line for the host's shell
		host=$1
		shift
		exec ip netns exec "$host" unshare --uts --mount --ipc sh -c \
			"hostname $host; mount -t tmpfs tmpfs /dev/shm; $*"
	END
	chmod +x "$work/agent"
	between() { # NAME TEXT PATH OP FLAGS…
		local name=$1 text=$2 path=$3 op=$4
		shift 4
		rm -rf "$work/meet"
		mkdir "$work/meet"
		run ip netns exec "${names[0]}" unshare --uts --mount --ipc sh -c \
			"hostname ${names[0]}; mount -t tmpfs tmpfs /dev/shm; exec \"\$@\"" sh \
			mpirun --host "${names[0]},${names[1]}" -np 2 --bind-to none --mca plm_rsh_agent "$work/agent" "$@" \
			"$exercise" --mpi --dir "$work/meet" -W 8 -b pingpong,bw -s 8,64K -o "$op" "$plugin" "$path"
		if [ "$(grep -c ' verified$' "$work/log")" -ne 4 ]; then
			not_ok "$name" "not 4 verified blocks"
		else
			says "$name" "$text"
		fi
	}
	on='device "xm0"; path ok'
	between "two hosts: what MPI picks is TCP on the link" "resolved \"ob1/tcp\"; $on" "" send
	between "two hosts: mpi:tcp by subnet" "resolved \"ob1/tcp\"; $on" tcp/10.77.43.0/24 send \
		--mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include 10.77.43.0/24
	between "two hosts: mpi:tcp write" "resolved \"osc pt2pt, messages ob1/tcp\"; $on" tcp write \
		--mca pml ob1 --mca btl self,tcp --mca osc ^ucx
	if installed ucx; then
		between "two hosts: mpi:ucx takes the link" "resolved \"ucx \(tcp/xm0\)\"; $on" ucx/tcp send \
			"${ucx[@]}" -x UCX_TLS=tcp,self
		between "two hosts: mpi:ucx read" 'resolved "osc ucx \(tcp/xm0\), messages ucx \(tcp/xm0\)"; '"$on" ucx/tcp read \
			"${ucx[@]}" --mca osc ^rdma,pt2pt,sm -x UCX_TLS=tcp,self
	fi
else
	skip "MPI between two network namespaces" "they cannot be made here"
fi
if [ ${#names[@]} -gt 0 ]; then
	# no interface but lo: Open MPI would end the process without a word on the cause
	lonely=xbmpiC$$
	ip netns add $lonely && names+=("$lonely") && ip -n $lonely link set lo up
	run ip netns exec $lonely "$xb" -t mpi:tcp -s 8 --launches 1 --time 1
	says "a host with nothing but lo" 'no interface but lo is up here.*ask for mpi:tcp/lo'
fi

# --- a killed rank leaves no process and nothing in /dev/shm
for item in shm psm2; do
	installed $item || continue
	before=() flags=(--mca pml ob1 --mca btl self,vader)
	[ $item = psm2 ] && before=($psm2) flags=(--mca pml cm --mca mtl psm2)
	find /dev/shm -maxdepth 1 | sort >"$work/shm.before"
	timeout 60 "${before[@]}" mpirun -np 2 --oversubscribe --bind-to none "${flags[@]}" "$exercise" --mpi --cpus none -T 50 \
		-m 20000 -b pingpong -s 8 "$plugin" $item >"$work/log" 2>&1 </dev/null &
	job=$!
	victim=
	for _ in $(seq 300); do
		grep -q 'endpoint 1 (connected)' "$work/log" && grep -q 'endpoint 0 (connected)' "$work/log" && break
		sleep 0.1
	done
	# the last rank of this job: descendants of the job, by their program
	for pid in $(pgrep -x exercise); do
		up=$pid
		while [ "${up:-1}" -gt 1 ] && [ "$up" != $job ]; do up=$(awk '/^PPid:/ {print $2}' "/proc/$up/status" 2>/dev/null); done
		[ "${up:-1}" = $job ] && victim=$pid
	done
	[ -n "$victim" ] && kill -KILL "$victim"
	wait $job
	sleep 1
	mine=$(find /dev/shm -maxdepth 1 \( -name 'psm2_shm.*' -o -name 'vader_segment.*' \) | sort | comm -13 "$work/shm.before" -)
	for file in $mine; do
		# those of other jobs on this machine are in use
		grep -qs "$file" /proc/[0-9]*/maps && mine=${mine//"$file"/}
	done
	if [ -z "$victim" ]; then
		not_ok "a killed rank of mpi:$item leaves nothing behind" "the ranks did not start"
	elif [ -n "${mine//[[:space:]]/}" ]; then
		not_ok "a killed rank of mpi:$item leaves nothing behind" "left: $mine"
	else
		ok "a killed rank of mpi:$item leaves nothing behind"
	fi
done
exit $failed

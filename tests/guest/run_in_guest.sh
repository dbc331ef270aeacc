# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# To be sourced by a test, in the top folder.
#   run_in_guest TITLE SCRIPT LIMIT_S PLUGIN…       boots a guest that runs tests/guest/SCRIPT with copies of the program and the plugins in
#                                                   /guest/xb, so that a build meanwhile does not matter
#   run_in_two_guests TITLE SCRIPT LIMIT_S PLUGIN…  the same in two guests at once, joined by a network: eth0 of each, and NODE is 0 or 1
# Either exits with the status of it all. SCRIPT prints the cases and ends with 0 or 1; whatever else happens to a guest is a failed
# case of its own.
boots=()
share=

# Leaves what the guest takes along in $share, or ends the test.
prepare_share() { # TITLE PLUGIN…
	local title=$1 build=${XB_BUILD:-$PWD/build} name status why
	shift
	: "${TMPDIR:=/tmp}" "${ASAN_OPTIONS:=}" "${UBSAN_OPTIONS:=}"
	for name in "$@"; do
		if [ ! -e "$build/plugins/libxb-$name.so" ]; then
			echo "skip - $title: the backend $name is not built here"
			exit 0
		fi
	done
	share=$(mktemp -d) || exit 1
	trap '[ ${#boots[@]} = 0 ] || { kill "${boots[@]}" && wait "${boots[@]}"; } 2>/dev/null; rm -rf "$share"' EXIT
	trap 'exit 143' TERM INT
	tests/guest/kernel.sh >/dev/null 2>"$share/why"
	status=$?
	why=$(tail -n 1 "$share/why")
	if [ "$status" = 77 ]; then
		echo "skip - $title: $why"
		exit 0
	elif [ "$status" != 0 ]; then
		echo "not ok - $title, the guest's kernel: $why"
		exit 1
	fi
	mkdir -p "$share/xb/plugins"
	cp "$build/xportbench" "$build/tests/"{exercise,provoke,count_verbs.so} tests/guest/*.sh "$share/xb/" || exit 1
	cp tests/lib/cases.sh "$share/xb/lib_cases.sh" || exit 1
	for name in "$@"; do cp "$build/plugins/libxb-$name.so" "$share/xb/plugins/"; done
}

# Reports of sanitizers go to the share, and from there to where the runner looks for them.
start_guest() { # SHARE LIMIT_S COMMAND
	GUEST_SHARE=$1 GUEST_TIMEOUT=$2 tests/guest/boot.sh "export XB_SANITIZE='${XB_SANITIZE:-}' LSAN_OPTIONS='${LSAN_OPTIONS:-}' \
		ASAN_OPTIONS='${ASAN_OPTIONS//$TMPDIR//guest}' UBSAN_OPTIONS='${UBSAN_OPTIONS//$TMPDIR//guest}'
		$3" &
	boots+=($!)
}

judge_guest() { # TITLE LIMIT_S SHARE STATUS
	cp "$3"/sanitizer* "$TMPDIR" 2>/dev/null
	case $4 in
	0 | 1) ;; # its cases say it all
	124) echo "not ok - $1: the guest's time of $2 s was up" ;;
	*) echo "not ok - $1: the guest ended with status $4" ;;
	esac
}

run_in_guest() {
	local title=$1 script=$2 limit=$3 status
	shift 3
	prepare_share "$title" "$@"
	start_guest "$share" "$limit" "bash /guest/xb/$script"
	wait "${boots[0]}"
	status=$?
	boots=()
	judge_guest "$title" "$limit" "$share" "$status"
	exit "$status"
}

run_in_two_guests() {
	local title=$1 script=$2 limit=$3 node status=(0 0) server=on
	shift 3
	prepare_share "$title" "$@"
	# the key that `xportbench listen` and its client share
	(umask 077 && od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' >"$share/xb/key") || exit 1
	for node in 0 1; do
		mkdir "$share/$node" && cp -pr "$share/xb" "$share/$node/" || exit 1
	done
	for node in 0 1; do
		GUEST_CPUS=2 GUEST_MEMORY=768 GUEST_QEMU="-netdev stream,id=n0,server=$server,addr.type=unix,addr.path=$share/net
			-device virtio-net-pci,netdev=n0,mac=52:54:00:00:00:1$node,host_mtu=4200,romfile=" \
			start_guest "$share/$node" "$limit" "export NODE=$node; bash /guest/xb/$script"
		server=off
		for _ in $(seq 300); do # the second one connects to the first
			[ -S "$share/net" ] && break
			sleep 0.1
		done
	done
	for node in 0 1; do
		wait "${boots[node]}"
		status[node]=$?
	done
	boots=()
	for node in 0 1; do judge_guest "$title, host $node" "$limit" "$share/$node" "${status[node]}"; done
	[ "${status[0]}" = 0 ] || exit "${status[0]}"
	exit "${status[1]}"
}

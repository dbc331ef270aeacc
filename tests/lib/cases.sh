# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# To be sourced by a test written in shell: how cases are reported. The script sets $log, the file with what the last run said, and
# ends with `exit $failed`; blocks and refuses need a function `run OPTIONS…` of its own that runs the contract's driver into $log.
# shellcheck disable=SC2034,SC2154 # used, and set, by those who source it
failed=0

ok() { echo "ok - $1"; }
skip() { echo "skip - $1: $2"; }
not_ok() { # NAME WHY
	echo "not ok - $1: $2"
	[ ! -e "$log" ] || tail -n 15 "$log" | cut -c 1-500 | sed 's/^/  | /'
	failed=1
}
check() { # NAME WHY COMMAND…
	local name=$1 why=$2
	shift 2
	if "$@"; then ok "$name"; else not_ok "$name" "$why"; fi
}
says() { # NAME PATTERN: of the last run
	if grep -Eq -- "$2" "$log"; then ok "$1"; else not_ok "$1" "no line matches $2"; fi
}
silent() { # NAME PATTERN: no line of the last run
	if grep -Eq -- "$2" "$log"; then not_ok "$1" "a line matches $2"; else ok "$1"; fi
}
# blocks NAME COUNT OPTIONS…: that many blocks ran, over the path asked for, and every payload was right
blocks() {
	local name=$1 count=$2 verified
	shift 2
	if ! run "$@"; then
		not_ok "$name" "exercise failed"
		return
	fi
	verified=$(grep -c ' verified$' "$log")
	if [ "$verified" != "$count" ]; then
		not_ok "$name" "$verified of $count blocks verified"
	elif grep -q 'path NOT OK' "$log"; then
		not_ok "$name" "the path is not the one asked for"
	else
		ok "$name"
	fi
}
# refuses NAME PATTERN OPTIONS…: a run that fails, and says why
refuses() {
	local name=$1 pattern=$2
	shift 2
	if run -b pingpong -s 8 "$@"; then not_ok "$name" "it ran"; else says "$name" "$pattern"; fi
}

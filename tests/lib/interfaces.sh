# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests that make network namespaces; to be sourced.

is_up() { # NAMESPACE INTERFACE: the kernel needs a moment after "up"; a library that looks meanwhile sees only lo
	local i
	for i in $(seq 100); do
		ip -n "$1" link show "$2" | grep -q 'state UP' && return 0
		sleep 0.1
	done
	echo "$2 did not come up within $i tenths of a second"
	return 1
}

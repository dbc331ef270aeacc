# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# To be sourced in a guest, in a folder with the program, the driver and the plugins: how cases are run and reported. Ends with `exit $failed`.
# shellcheck disable=SC2034 # used by those who source it
plugin=plugins/libxb-verbs.so
log=/tmp/log
: >$log
# shellcheck source=tests/lib/cases.sh
. ./lib_cases.sh

run() { timeout "${LIMIT:-90}" ./exercise -T "$((${LIMIT:-90} - 10))" --cpus "${CPUS:-0,2}" -n 4 -x 1 -W 8 "$@" >"$log" 2>&1; }
# How many objects of each kind the kernel holds for each device, whoever made them: it does not list what belongs to a process that is gone.
resources() { rdma resource show; }
# To be called once the devices are up: what they hold by themselves (a queue pair for management) is not ours.
resources_before=
take_baseline() {
	resources_before=$(resources)
	check "the kernel counts the devices' objects" "rdma resource show says: $resources_before" grep -q ' qp [0-9]* .*mr [0-9]' <<<"$resources_before"
}
# nothing_left NAME: nothing is held that was not at the beginning; processes that were killed take a moment
nothing_left() {
	for _ in $(seq 100); do
		resources >"$log"
		[ -n "$resources_before" ] && [ "$(cat "$log")" = "$resources_before" ] && break
		sleep 0.1
	done
	check "$1" "there was: ${resources_before:-nothing known}" [ "$(cat "$log")" = "${resources_before:-nothing known}" ]
}

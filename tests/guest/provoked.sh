# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # set, and used, by verbs_in_guest.sh and cases.sh
# To be sourced after cases.sh: what a correct run never does, and the error in words, with the operation, its size and the peer.
provoked() { # NAME CASE PATTERN…: patterns of lines of its output
	local name=$1 case=$2 pattern missing=
	shift 2
	./provoke "$plugin" "${PROVOKE_PATH:-rxe0}" "$case" >"$log" 2>&1
	status=$?
	for pattern in "$@"; do grep -Eq -- "$pattern" "$log" || missing+=" /$pattern/"; done
	check "$name" "status $status, missing:$missing" [ "$status$missing" = 0 ]
}
# an adapter calls it a local length error; soft-RoCE says queue pair operation error
provoked "a message longer than its receive" length \
	'^endpoint 1: .*verbs:rxe0/1: the receive of 1000 bytes from endpoint 0 failed: local (length|QP operation) error \(status [0-9]+, vendor code 0x.*longer than the receive' \
	'^endpoint 0: .*the send of 2000 bytes to endpoint 1 failed: remote (invalid request|operation) error'
provoked "a send that never finds a receive" no-receive \
	'^endpoint 0: peer: .*the send of 2000 bytes to endpoint 1 failed: RNR retry counter exceeded.*posts no receives'
provoked "a send to a peer that is gone" gone \
	'^endpoint 0: peer: .*the send of 2000 bytes to endpoint 1 failed: transport retry counter exceeded.*does not answer'
provoked "a write a byte beyond the peer's memory" access \
	'^endpoint 0: .*the write of 1000 bytes to endpoint 1 failed: remote access error.*not registered for this'
provoked "a send of memory that is not registered" unregistered \
	'^endpoint 0: .*the send of 2000 bytes to endpoint 1 failed: local protection error.*not registered'
provoked "a synchronous send is complete when its receive has taken it, and not before" synchronous
provoked "a stranger is not let in through rdma_cm, and the peer is, after it" stranger \
	'^the stranger: .*connecting to endpoint 0 through rdma_cm failed: RDMA_CM_EVENT_REJECTED' '^endpoint 1: was let in'

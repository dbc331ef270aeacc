#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Raw verbs, UCX, libfabric and MPI side by side over soft-RoCE in an emulated machine; the cases are in stack_in_guest.sh.
# xb-timeout: 600
# xb-sanitize: no
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/guest/run_in_guest.sh
. tests/guest/run_in_guest.sh
run_in_guest "verbs and what is built on it, in a guest" stack_in_guest.sh 570 verbs ucx ofi mpi

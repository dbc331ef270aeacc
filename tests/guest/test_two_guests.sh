#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two hosts, each an emulated machine of its own, joined by a network: the exchange of addresses goes over TCP and the messages over
# soft-RoCE on the same interface. The cases are in two_hosts_in_guest.sh.
# xb-timeout: 860
# xb-sanitize: no
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=tests/guest/run_in_guest.sh
. tests/guest/run_in_guest.sh
run_in_two_guests "raw verbs between two hosts" two_hosts_in_guest.sh 800 verbs fault null tcp

# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # set, and used, by verbs_in_guest.sh and cases.sh
# To be sourced by verbs_in_guest.sh: every path of the backend once, built with sanitizers; a report of theirs fails the test.
LIMIT=240
for op in send write read; do blocks "RC $op: pingpong, bw and bibw" 9 -o $op -s 0,64,4097 "$plugin" rxe0; done
blocks "RC write with immediate" 3 -o write -s 4097 "$plugin" rxe0 write=imm
blocks "RC write-poll" 3 -b pingpong -o write-poll -s 1,64,4097 "$plugin" rxe0
blocks "RC write-poll with immediate" 1 -b pingpong -o write-poll -s 64 "$plugin" rxe0 write=imm
blocks "RC asleep on the completion channel" 1 -b bw -s 64 "$plugin" rxe0 events=1
blocks "rdma_cm" 3 -s 64 "$plugin" rxe0 cm=1
blocks "UD" 6 -s 0,4096 "$plugin" rxe0 qp=ud
refuses "a device that is not there" 'asked for verbs:mlx5_0; there is no such device' "$plugin" mlx5_0
# shellcheck source=tests/guest/provoked.sh
. ./provoked.sh
nothing_left "no queue pair, memory region or rdma_cm identifier is left"

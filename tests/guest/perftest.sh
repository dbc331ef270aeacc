# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # "$plugin", $log: cases.sh
# Sourced by verbs_in_guest.sh. Equivalence with perftest without a clock: the packets on the wire for each message are the same, and no more work
# requests, doorbells, receives, completions and polls that found some are needed. Each program is run with N and with 2 N iterations, and the
# difference counts: what comes before and after the loop falls out.
port=18600

# packets_of COMMAND…: sets $packets (sent, received) and $counts (post_send calls, sends, post_recv calls, receives, polls, completions; all
# endpoints together)
packets_of() {
	local sent received
	rm -f /tmp/counts
	sent=$(rdma_counter rxe0 sent_pkts)
	received=$(rdma_counter rxe0 rcvd_pkts)
	"$@" >"$log" 2>&1 || return 1
	sleep 0.1 # the kernel keeps counters for 10 ms
	packets="$(($(rdma_counter rxe0 sent_pkts) - sent)) $(($(rdma_counter rxe0 rcvd_pkts) - received))"
	counts=$(awk '{ for (i = 1; i <= 6; i++) sum[i] += $i } END { for (i = 1; i <= 6; i++) printf "%d ", sum[i] }' /tmp/counts)
}
perftest_run() { # PROGRAM SIZE ITERATIONS OPTIONS…
	local program=$1 size=$2 n=$3 server
	shift 3
	port=$((port + 1))
	set -- "$program" -d rxe0 -x 1 -p $port -s "$size" -n "$n" -F "$@"
	COUNT_VERBS=/tmp/counts LD_PRELOAD=./count_verbs.so timeout 60 taskset -c 0 "$@" >/dev/null 2>&1 &
	server=$!
	for _ in $(seq 100); do
		ss -Htln "sport = :$port" | grep -q . && break
		sleep 0.1
	done
	COUNT_VERBS=/tmp/counts LD_PRELOAD=./count_verbs.so timeout 60 taskset -c 2 "$@" 127.0.0.1
	status=$?
	wait $server && [ $status = 0 ]
}
ours_run() { # BENCH OP SIZE ITERATIONS WINDOW
	COUNT_VERBS=/tmp/counts LD_PRELOAD=./count_verbs.so timeout 60 ./exercise -T 50 --cpus 0,2 -b "$1" -o "$2" -s "$3" -n "$4" -x 1 -W "$5" \
		"$plugin" rxe0
}
# difference FILE N COMMAND…: @N in the command is the number of iterations. FILE: packets and counts of 2 N less those of N
difference() {
	local file=$1 n=$2 command=() word first
	shift 2
	for word in "$@"; do command+=("${word/@N/$n}"); done
	packets_of "${command[@]}" || return 1
	first="$packets $counts"
	command=()
	for word in "$@"; do command+=("${word/@N/$((2 * n))}"); done
	packets_of "${command[@]}" || return 1
	echo "$first $packets $counts" | awk '{ for (i = 1; i <= 8; i++) printf "%d ", $(i + 8) - $i; print "" }' >"$file"
}
# Packets agree to 5 %: a timer that fires late on a busy machine repeats some, while one more packet for a message, or for a window, is more than that.
# Polls that found completions: where one message is under way at a time they are no more than perftest's either, to 5 %. In a stream of messages it is
# timing how many completions have gathered when a poll comes, from one for each to one for many (here the difference of two runs was between -0.9 and
# 1.8 a message, perftest's between -0.3 and 0.1), so only the completions are judged there. A reply to a window is one more message of each kind; it is
# taken off, with its acknowledgement and a completion at either end.
compare() { # MESSAGES-OF-OURS MESSAGES-OF-THEIRS REPLIES
	cat /tmp/ours /tmp/theirs | tr '\n' ' ' | awk -v om="$1" -v tm="$2" -v replies="$3" '{
		split("packets_sent packets_received post_send work_requests post_recv receives polls completions", name, " ")
		for (i = 1; i <= 8; i++) {
			mine = ($i - replies * (i < 3 || i > 6 ? 2 : 1)) / om
			theirs = $(i + 8) / tm
			limit = i == 7 ? 1.05 * theirs : theirs
			printf "%s: %.3f a message, perftest %.3f\n", name[i], mine, theirs
			if (i < 3 && (mine > 1.05 * theirs || mine < 0.95 * theirs)) bad = 1
			if (i > 2 && !(i == 7 && replies) && mine > limit) bad = 1
		}
		exit bad
	}'
}
# equivalent NAME "N MESSAGES REPLIES" "N MESSAGES" OURS… -- THEIRS…: N iterations have so many messages, and windows so many replies
equivalent() {
	local name=$1 n messages replies theirs_n theirs_messages why ours=()
	read -r n messages replies <<<"$2"
	read -r theirs_n theirs_messages <<<"$3"
	shift 3
	while [ "$1" != -- ]; do
		ours+=("$1")
		shift
	done
	shift
	# a timer that fires late on a busy machine repeats packets, or a program gives up: then again
	for _ in 1 2 3 4 5 6; do
		why="a run failed"
		if ! difference /tmp/ours "$n" "${ours[@]}" || ! difference /tmp/theirs "$theirs_n" "$@"; then
			continue
		fi
		why="packets differ, or it needs more than perftest"
		if compare "$messages" "$theirs_messages" "$replies" >"$log"; then
			[ -z "${SHOW:-}" ] || cat "$log"
			ok "$name"
			return
		fi
		[ -z "${SHOW:-}" ] || sed 's/^/again: /' "$log"
	done
	not_ok "$name" "$why"
}
# A sender of many messages passes by a receiver that the machine does not let run, and is refused (RNR) until it has posted more: ib_send_bw posts all
# receives first, as far as -r lets it, and packets are not repeated for that.
n=100
for size in 8 10000; do
	equivalent "as ib_send_lat at $size bytes: packets, doorbells, work requests, receives, polls, completions" "$n $((2 * n)) 0" "$n $((2 * n))" \
		ours_run pingpong send $size @N 1 -- perftest_run ib_send_lat $size @N -r 64
	equivalent "as ib_write_lat at $size bytes" "$n $((2 * n)) 0" "$n $((2 * n))" \
		ours_run pingpong write-poll $size @N 1 -- perftest_run ib_write_lat $size @N
	equivalent "a write that nobody answers takes what one of ib_write_lat does, at $size bytes" "$n $n 0" "$n $((2 * n))" \
		ours_run pingpong write $size @N 1 -- perftest_run ib_write_lat $size @N
	equivalent "as ib_read_lat at $size bytes" "$n $n 0" "$n $n" \
		ours_run pingpong read $size @N 1 -- perftest_run ib_read_lat $size @N
	equivalent "as ib_send_bw at $size bytes, but for the replies to windows" "10 160 10" "160 160" \
		ours_run bw send $size @N 16 -- perftest_run ib_send_bw $size @N -r 512
done

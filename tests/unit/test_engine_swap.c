/* SPDX-License-Identifier: BSD-3-Clause */
/* The swap: call sequences of every protocol, order and side; payload; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_transport.h"

#define SIZE 16 /* of a message: neither a signal (8) nor a control message (64) */

/*
 * The protocols as P. Worley's swap_comm has them, in MPI's words, stages separated by '|'. hi is NULL where
 * both sides do the same.
 */
static const struct line {
	unsigned order, protocol;
	const char *lo, *hi;
} lines[] = {
	{XB_SWAP_ORDERED, 0, "|Send,Recv|", "|Recv,Send|"},
	{XB_SWAP_ORDERED, 1, "|Isend,Recv|Wait(s)", "|Recv,Isend|Wait(s)"},
	{XB_SWAP_ORDERED, 2, "Irecv|Send,Wait(r)|", "Irecv|Wait(r),Send|"},
	{XB_SWAP_ORDERED, 3, "Irecv|Isend,Wait(r)|Wait(s)", "Irecv|Wait(r),Isend|Wait(s)"},
	{XB_SWAP_ORDERED, 4, "Irecv,Recv(sig)|Rsend,Wait(r)|", "Irecv,Send(sig)|Wait(r),Rsend|"},
	{XB_SWAP_ORDERED, 5, "Irecv,Recv(sig)|Irsend,Wait(r)|Wait(s)",
	 "Irecv,Send(sig)|Wait(r),Irsend|Wait(s)"},
	{XB_SWAP_ORDERED, 6, "|Recv(sig),Send,Recv|", "|Send(sig),Recv,Send|"},
	{XB_SWAP_ORDERED, 7, "|Issend,Recv|Wait(s)", "|Recv,Issend|Wait(s)"},
	{XB_SWAP_ORDERED, 8, "Irecv|Ssend,Wait(r)|", "Irecv|Wait(r),Ssend|"},
	{XB_SWAP_ORDERED, 9, "Irecv|Issend,Wait(r)|Wait(s)", "Irecv|Wait(r),Issend|Wait(s)"},
	{XB_SWAP_ORDERED, 10, "|Ssend,Recv|", "|Recv,Ssend|"},
	{XB_SWAP_UNORDERED, 1, "|Isend,Recv|Wait(s)", NULL},
	{XB_SWAP_UNORDERED, 2, "Irecv|Send,Wait(r)|", NULL},
	{XB_SWAP_UNORDERED, 3, "Irecv|Isend,Wait(r)|Wait(s)", NULL},
	{XB_SWAP_UNORDERED, 4, "Irecv,Send(sig),Recv(sig)|Rsend,Wait(r)|", NULL},
	{XB_SWAP_UNORDERED, 5, "Irecv,Send(sig),Recv(sig)|Irsend,Wait(r)|Wait(s)", NULL},
	{XB_SWAP_UNORDERED, 6, "|Irecv,Send,Wait(r)|", NULL}, /* Sendrecv */
	{XB_SWAP_UNORDERED, 7, "|Issend,Recv|Wait(s)", NULL},
	{XB_SWAP_UNORDERED, 8, "Irecv|Ssend,Wait(r)|", NULL},
	{XB_SWAP_UNORDERED, 9, "Irecv|Issend,Wait(r)|Wait(s)", NULL},
	{XB_SWAP_DELAYED, 1, "|Isend|Recv,Wait(s)", NULL},
	{XB_SWAP_DELAYED, 2, "Irecv|Send|Wait(r)", NULL},
	{XB_SWAP_DELAYED, 3, "Irecv|Isend|Wait(r),Wait(s)", NULL},
	{XB_SWAP_DELAYED, 4, "Irecv,Send(sig),Recv(sig)|Rsend|Wait(r)", NULL},
	{XB_SWAP_DELAYED, 5, "Irecv,Send(sig),Recv(sig)|Irsend|Wait(r),Wait(s)", NULL},
	{XB_SWAP_DELAYED, 7, "|Isend|Recv,Wait(s)", NULL},
	{XB_SWAP_DELAYED, 8, "Irecv|Ssend|Wait(r)", NULL},
	{XB_SWAP_DELAYED, 9, "Irecv|Issend|Wait(r),Wait(s)", NULL},
};
#define LINES (sizeof lines / sizeof lines[0])

static const char *operations_of(const char *word)
{
	static const struct {
		const char *word, *operations;
	} known[] = {{"Send", "send 16, wait 1, "},
		     {"Isend", "send 16, "},
		     {"Ssend", "send_sync 16, wait 1, "},
		     {"Issend", "send_sync 16, "},
		     {"Rsend", "send_ready 16, wait 1, "},
		     {"Irsend", "send_ready 16, "},
		     {"Recv", "recv 16, wait 1, "},
		     {"Irecv", "recv 16, "},
		     {"Wait(s)", "wait 1, "},
		     {"Wait(r)", "wait 1, "},
		     {"Send(sig)", "send 8, wait 1, "},
		     {"Recv(sig)", "wait 1, "}};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (!strcmp(known[i].word, word))
			return known[i].operations;
	fail_msg("no operation %s", word);
	return "";
}

/* Appends what stage number `stage` of the line does. */
static void append_stage(char *expected, const char *line, unsigned stage)
{
	char copy[128], *save = NULL;

	for (; stage > 0; stage--)
		line = strchr(line, '|') + 1;
	snprintf(copy, sizeof copy, "%.*s", (int)strcspn(line, "|"), line);
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save))
		strcat(expected, operations_of(word));
}

/* One swap of `messages` messages in batches. Receives of signals are posted at the beginning of a batch. */
static void expect_train(char *expected, const char *line, uint32_t messages, uint32_t batch)
{
	for (uint32_t first = 0; first < messages; first += batch) {
		uint32_t end = messages - first < batch ? messages : first + batch;
		for (uint32_t i = first; i < end && strstr(line, "Recv(sig)"); i++)
			strcat(expected, "recv 8, ");
		for (unsigned stage = 0; stage < 3; stage++)
			for (uint32_t i = first; i < end; i++)
				append_stage(expected, line, stage);
	}
}

static struct fake_link *open_link(void)
{
	struct fake_link *link = fake_open(4096);
	static unsigned char sweep[2][1 << 16];

	for (int i = 0; i < 2; i++) {
		link->side[i].endpoint.caps |= XB_CAP_SYNC_SEND | XB_CAP_READY_SEND;
		link->side[i].endpoint.sweep = sweep[i];
		link->side[i].endpoint.sweep_bytes = sizeof sweep[i];
	}
	return link;
}

static struct xb_block swap_block(unsigned order, unsigned protocol, uint32_t messages)
{
	struct xb_block b = block(XB_BENCH_SWAP, XB_OP_SEND, SIZE);

	b.swap = (struct xb_swap){.protocol = (uint8_t)protocol,
				  .order = (uint8_t)order,
				  .mode = XB_SWAP_ONE,
				  .messages = messages};
	b.warmup = 1;
	b.iterations = 2;
	return b;
}

/* What surrounds a swap: see loops_swap.c. */
#define LEAD "wait 1, send 64, wait 1, "
#define SERVE "send 64, wait 1, wait 1, "

/* The two timed swaps stand in the log, with the receive of the word for the second between them. */
static void assert_log(const struct fake_side *side, const char *begin, const char *train, const char *what)
{
	static char expected[1 << 15];

	snprintf(expected, sizeof expected, "%s%srecv 64, %s%s", begin, train, begin, train);
	if (!strstr(side->log, expected))
		fail_msg("%s\nexpected %s\nfound    %.3000s", what, expected, side->log);
}

static void check_sequence(const struct line *line, uint32_t messages, int overlap, uint32_t depth)
{
	static char lo[1 << 14], hi[1 << 14];
	struct fake_link *link = open_link();
	struct xb_block b = swap_block(line->order, line->protocol, messages);
	char what[128];

	b.swap.overlap = (uint8_t)overlap;
	b.swap.depth = depth;
	xb_swap_text(&b.swap, what, sizeof what);
	lo[0] = hi[0] = 0;
	expect_train(lo, line->lo, messages, xb_swap_batch(&b.swap));
	expect_train(hi, line->hi ? line->hi : line->lo, messages, xb_swap_batch(&b.swap));
	fake_run(link, &b, NULL, both);
	assert_good(what, SIZE);
	assert_log(&link->side[0], LEAD, lo, what);
	assert_log(&link->side[1], SERVE, hi, what);
	assert_true(link->side[0].most_sends <= xb_block_outstanding(xb_swap_batch(&b.swap)));
	assert_true(link->side[0].most_receives <= xb_block_outstanding(xb_swap_batch(&b.swap)));
	fake_close(link);
}

static void every_protocol_makes_the_calls_of_its_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < LINES; i++)
		check_sequence(&lines[i], 3, 0, 0);
}

static void overlap_splits_the_stages_over_the_batch(void **state)
{
	(void)state;
	for (size_t i = 0; i < LINES; i++) {
		if (!xb_swap_overlaps(lines[i].protocol))
			continue;
		check_sequence(&lines[i], 5, 1, 0);
		check_sequence(&lines[i], 5, 1, 2);
	}
}

static void the_tables_hold_exactly_these_protocols(void **state)
{
	size_t known = 0;
	const char *why;

	(void)state;
	for (unsigned order = 0; order < XB_SWAP_ORDERS; order++)
		for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++) {
			size_t i = 0;
			while (i < LINES && (lines[i].order != order || lines[i].protocol != p))
				i++;
			assert_int_equal(xb_swap_exists(order, p, &why), i < LINES);
			assert_int_equal(xb_swap_train_of(order, p, 0) != NULL, i < LINES);
			assert_int_equal(xb_swap_train_of(order, p, 1) != NULL, i < LINES);
			known += i < LINES;
		}
	assert_int_equal(known, LINES);
	for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++) /* the rows that the published report has */
		assert_int_equal(xb_swap_overlaps(p), p != 0 && p != 6 && p != 10);
}

static void every_mode_runs_and_is_verified(void **state)
{
	struct fake_link *link = open_link();

	(void)state;
	for (unsigned mode = 0; mode < XB_SWAP_MODES; mode++) {
		struct xb_block b = swap_block(XB_SWAP_ORDERED, 3, 4);
		b.swap.mode = (uint8_t)mode;
		fake_run(link, &b, NULL, both);
		assert_good(xb_swap_mode_name(mode), SIZE);
		assert_int_equal(both[0].result.iterations, 2);
		/* hello, step twice, ready or go, verification step and done come on top */
		uint64_t swaps = mode == XB_SWAP_TEN ? 4 * 10 : 4;
		assert_true(both[0].result.messages >= 4 * swaps);
		assert_true(both[0].result.checked_messages >= 3 * 4);
		assert_true(both[0].result.median_ns > 0);
	}
	/* automatic counts: at least the three repetitions of COMMTEST */
	struct xb_block b = swap_block(XB_SWAP_UNORDERED, 9, 8);
	b.warmup = b.iterations = 0;
	b.target_ns = 1;
	fake_run(link, &b, NULL, both);
	assert_good("automatic", SIZE);
	assert_int_equal(both[0].result.iterations, 3);
	fake_close(link);
}

static void cold_caches_are_swept_before_every_timed_swap(void **state)
{
	struct fake_link *link = open_link();
	struct xb_block b = swap_block(XB_SWAP_ORDERED, 2, 4);

	(void)state;
	for (int mode = XB_SWAP_COLD; mode <= XB_SWAP_ONE; mode++) {
		b.swap.mode = (uint8_t)mode;
		for (int i = 0; i < 2; i++)
			memset(link->side[i].endpoint.sweep, 0, link->side[i].endpoint.sweep_bytes);
		fake_run(link, &b, NULL, both);
		assert_good("cold", SIZE);
		for (int i = 0; i < 2; i++)
			for (size_t at = 0; at < link->side[i].endpoint.sweep_bytes; at += 64)
				assert_int_equal(link->side[i].endpoint.sweep[at],
						 mode == XB_SWAP_COLD ? 1 + 2 : 0);
	}
	fake_close(link);
}

static uint64_t fastest_sweep_ns(const struct xb_endpoint *e)
{
	volatile unsigned char *at = e->sweep;
	uint64_t fastest = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t begin = xb_clock_ns(CLOCK_MONOTONIC), spent;
		for (size_t k = 0; k < e->sweep_bytes; k += 64)
			at[k]++;
		spent = xb_clock_ns(CLOCK_MONOTONIC) - begin;
		fastest = spent < fastest ? spent : fastest;
	}
	return fastest;
}

/* The sweep takes far longer than the swap: it counts for the deadline, and for the swaps that are chosen. */
static void time_between_the_swaps_is_granted_and_bounded(void **state)
{
	static unsigned char large[2][(size_t)8 << 20];
	struct fake_link *link = open_link();
	struct xb_block b = swap_block(XB_SWAP_ORDERED, 2, 4);
	uint64_t sweep_ns;

	(void)state;
	for (int i = 0; i < 2; i++) {
		memset(large[i], 1, sizeof large[i]);
		link->side[i].endpoint.sweep = large[i];
		link->side[i].endpoint.sweep_bytes = sizeof large[i];
	}
	sweep_ns = fastest_sweep_ns(&link->side[0].endpoint);
	b.swap.mode = XB_SWAP_COLD;
	b.iterations = 100;
	fake_run(link, &b, NULL, both);
	assert_good("cold", SIZE);
	assert_true(link->side[0].granted_ns[XB_PHASE_TIMED] > UINT64_C(5000000000) + 100 * sweep_ns);
	b.iterations = 0;
	b.target_ns = sweep_ns;
	fake_run(link, &b, NULL, both);
	assert_good("cold", SIZE);
	assert_in_range(both[0].result.iterations, 3, 100);
	fake_close(link);
}

static void a_wrong_payload_is_found(void **state)
{
	static const enum fake_wrong wrongs[] = {FAKE_FLIP, FAKE_NOTHING, FAKE_HALF, FAKE_STALE};

	(void)state;
	/* swaps: one of warm-up, two timed, one for verification, four messages each */
	for (size_t w = 0; w < sizeof wrongs / sizeof wrongs[0]; w++)
		for (long message = 0; message < 16; message++) {
			struct fake_link *link = open_link();
			struct xb_block b = swap_block(XB_SWAP_ORDERED, (unsigned)(message % 11), 4);
			if (wrongs[w] == FAKE_STALE && message == 0)
				message++;
			link->side[1].wrong = wrongs[w];
			link->side[1].wrong_message = message;
			fake_run(link, &b, NULL, both);
			if (both[1].status != XB_E_CORRUPT)
				fail_msg("fault %d in message %ld: %s", (int)wrongs[w], message,
					 xb_status_name(both[1].status));
			assert_int_equal(both[1].result.verified, 0);
			fake_close(link);
		}
}

static void sides_that_do_not_agree_are_told(void **state)
{
	struct fake_link *link = open_link();
	struct xb_block lead = swap_block(XB_SWAP_ORDERED, 3, 4), serve = lead;

	(void)state;
	lead.initiator = 1;
	serve.swap.protocol = 2;
	fake_run(link, &lead, &serve, both);
	assert_int_equal(both[0].status, XB_E_PEER);
	assert_non_null(strstr(both[0].error.text, "do not agree on the swap"));
	fake_close(link);
	link = open_link();
	serve.swap.protocol = lead.swap.protocol;
	lead.swap.overlap = serve.swap.overlap = 1;
	lead.swap.depth = 0; /* all four: the windows are alike, the words on the command line were not */
	serve.swap.depth = 4;
	fake_run(link, &lead, &serve, both);
	for (int side = 0; side < 2; side++) {
		if (both[side].status != XB_E_PEER || !strstr(both[side].error.text, "depth"))
			fail_msg("side %d: %s", side, both[side].error.text);
	}
	fake_close(link);
}

static void refuse(struct fake_link *link, const struct xb_block *b, int status, const char *words)
{
	struct xb_error error = {0, ""};

	assert_int_equal(xb_block_check(&link->side[0].endpoint, b, &error), status);
	if (!strstr(error.text, words))
		fail_msg("'%s' does not say '%s'", error.text, words);
}

static void what_makes_no_sense_is_refused_by_name(void **state)
{
	struct fake_link *link = open_link();
	struct xb_block b = swap_block(XB_SWAP_UNORDERED, 0, 4);

	(void)state;
	refuse(link, &b, XB_E_USAGE, "wait in a send for each other");
	b = swap_block(XB_SWAP_DELAYED, 6, 4);
	refuse(link, &b, XB_E_USAGE, "protocol 6");
	b = swap_block(XB_SWAP_ORDERED, 10, 4);
	b.swap.overlap = 1;
	refuse(link, &b, XB_E_USAGE, "no stage that could overlap");
	b = swap_block(XB_SWAP_ORDERED, 1, 0);
	refuse(link, &b, XB_E_USAGE, "0 messages");
	b = swap_block(XB_SWAP_ORDERED, 1, 1000000);
	refuse(link, &b, XB_E_USAGE, "the buffers have");
	b = swap_block(XB_SWAP_ORDERED, 1, 4);
	b.op = XB_OP_WRITE;
	refuse(link, &b, XB_E_USAGE, "--op write");
	b = swap_block(XB_SWAP_ORDERED, 1, 4);
	b.size_bytes = 4;
	refuse(link, &b, XB_E_USAGE, "at least 8");
	b = swap_block(XB_SWAP_ORDERED, 3, 4);
	b.swap.mode = XB_SWAP_COLD;
	link->side[0].endpoint.sweep = NULL;
	refuse(link, &b, XB_E_USAGE, "cold caches");
	fake_close(link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_protocol_makes_the_calls_of_its_table),
		cmocka_unit_test(overlap_splits_the_stages_over_the_batch),
		cmocka_unit_test(the_tables_hold_exactly_these_protocols),
		cmocka_unit_test(every_mode_runs_and_is_verified),
		cmocka_unit_test(cold_caches_are_swept_before_every_timed_swap),
		cmocka_unit_test(time_between_the_swaps_is_granted_and_bounded),
		cmocka_unit_test(a_wrong_payload_is_found),
		cmocka_unit_test(sides_that_do_not_agree_are_told),
		cmocka_unit_test(what_makes_no_sense_is_refused_by_name),
	};
	alarm(120); /* a dead-lock must not hang the build */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

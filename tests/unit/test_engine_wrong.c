/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_transport.h"

/* --- wrong payload */

struct wrong_case {
	enum fake_wrong wrong;
	size_t offset;
	const char *said;
};

static const struct wrong_case wrongs[] = {
	{FAKE_FLIP, 0, "corrupted on the way"},
	{FAKE_FLIP, 4095, "corrupted on the way"},
	{FAKE_NOTHING, 0, "premature completion"},
	{FAKE_STALE, 0, "stale buffer"},
	{FAKE_HALF, 0, "the beginning of the message is there"},
};

/* Of a ping-pong with 3 + 20 iterations: warm-up, first, middle and last of the timed part, verification. */
static void found_wherever_it_is(enum xb_op op)
{
	static const long messages[] = {1, 3, 11, 22, 23, 26};
	struct fake_link *link = fake_open(4096);

	for (size_t k = 0; k < sizeof wrongs / sizeof wrongs[0]; k++)
		for (size_t m = 0; m < sizeof messages / sizeof messages[0]; m++)
			for (int receiver = 0; receiver < 2; receiver++) {
				struct xb_block b = block(XB_BENCH_PINGPONG, op, 4096);
				struct fake_side *s = &link->side[receiver];
				s->wrong = wrongs[k].wrong;
				s->wrong_offset = wrongs[k].offset;
				s->wrong_message = messages[m];
				fake_run(link, &b, NULL, both);
				s->wrong_message = -1;
				if (both[receiver].status != XB_E_CORRUPT)
					fail_msg("case %zu, message %ld not found", k, messages[m]);
				assert_false(both[receiver].result.verified);
				/* the poisoned slot of the verification shows no stale content */
				if (!strstr(both[receiver].error.text, wrongs[k].said) &&
				    !(messages[m] >= 23 && strstr(both[receiver].error.text, "premature")))
					fail_msg("case %zu, message %ld: %s", k, messages[m],
						 both[receiver].error.text);
				/* the other side has nothing to complain of, and the block has ended on both
				 */
				assert_int_equal(both[!receiver].status, 0);
				fake_run(link, &b, NULL, both);
				assert_good("the block after", 4096);
			}
	fake_close(link);
}

static void a_wrong_message_is_found_wherever_it_is(void **state)
{
	(void)state;
	found_wherever_it_is(XB_OP_SEND);
	found_wherever_it_is(XB_OP_WRITE_POLL);
}

/* Only verification looks at the inside of messages that are not the last of the timed part. */
static void a_byte_in_the_middle_is_found_in_the_last_message_and_in_verification(void **state)
{
	struct fake_link *link = fake_open(4096);
	(void)state;

	for (long message = 22; message < 27; message++) {
		struct xb_block b = block(XB_BENCH_PINGPONG, XB_OP_SEND, 4096);
		link->side[1].wrong = FAKE_FLIP;
		link->side[1].wrong_offset = 2000;
		link->side[1].wrong_message = message;
		fake_run(link, &b, NULL, both);
		assert_int_equal(both[1].status, XB_E_CORRUPT);
		assert_non_null(strstr(both[1].error.text, "offset 2000 "));
		assert_non_null(strstr(both[1].error.text, message == 22 ? "timed part" : "verification"));
		assert_int_equal(both[0].status, 0);
	}
	fake_close(link);
}

static void a_wrong_message_is_found_in_every_benchmark_and_operation(void **state)
{
	struct fake_link *link = fake_open(4096);
	(void)state;

	FOR_ALL_KINDS(bench, op)
	for (int last = 0; last < 2; last++)
		for (size_t k = 0; k < sizeof wrongs / sizeof wrongs[0]; k++) {
			struct xb_block b = block(bench, op, 4096);
			/* a write is received by the responder, a read by the initiator */
			struct fake_side *s = &link->side[op == XB_OP_READ ? 0 : 1];
			long windows = 23, per_window = bench == XB_BENCH_PINGPONG ? 1 : b.window;
			/* last of the timed part (0), first of verification (1) */
			if (!last && wrongs[k].wrong == FAKE_STALE && op != XB_OP_SEND)
				continue; /* what is read or written at once is the same as before */
			if (!last && op != XB_OP_SEND && bench != XB_BENCH_PINGPONG)
				continue; /* one of a window that is overwritten by the next */
			s->wrong = wrongs[k].wrong;
			s->wrong_offset = wrongs[k].offset;
			s->wrong_message = windows * per_window - !last;
			fake_run(link, &b, NULL, both);
			s->wrong_message = -1;
			if (both[s == &link->side[1]].status != XB_E_CORRUPT &&
			    !(bench != XB_BENCH_PINGPONG && !last))
				fail_msg("%s %s, case %zu, %s: not found", xb_bench_name(bench),
					 xb_op_name(op), k, last ? "verification" : "timed part");
			assert_int_equal(both[s != &link->side[1]].status, 0);
		}
	fake_close(link);
}

/* --- the sides do not agree */

static void assert_disagree(const struct xb_block *a, const struct xb_block *b, const char *said)
{
	struct fake_link *link = fake_open(4096);

	fake_run(link, a, b, both);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(both[i].status, XB_E_PEER);
		if (!strstr(both[i].error.text, said))
			fail_msg("side %d says: %s", i, both[i].error.text);
	}
	fake_close(link);
}

static void a_disagreement_is_named_on_both_sides(void **state)
{
	struct xb_block a = block(XB_BENCH_BW, XB_OP_SEND, 64), b = a;
	(void)state;

	a.initiator = 1;
	b.size_bytes = 65;
	assert_disagree(&a, &b, "65");
	b = a;
	b.initiator = 0;
	b.window = 5;
	assert_disagree(&a, &b, "window");
	b = a;
	b.initiator = 0;
	b.nonce++;
	assert_disagree(&a, &b, "nonce");
	b = a;
	b.initiator = 0;
	b.bench = XB_BENCH_PINGPONG;
	assert_disagree(&a, &b, "pingpong");
	b = a;
	b.initiator = 0;
	b.op = XB_OP_WRITE;
	assert_disagree(&a, &b, "write");
	b = a;
	b.initiator = 0;
	b.iterations = 21;
	assert_disagree(&a, &b, "21");
}

static void two_initiators_are_told_so(void **state)
{
	struct xb_block a = block(XB_BENCH_PINGPONG, XB_OP_SEND, 64);
	(void)state;

	a.initiator = 1;
	assert_disagree(&a, &a, "initiator");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_message_is_found_wherever_it_is),
		cmocka_unit_test(a_byte_in_the_middle_is_found_in_the_last_message_and_in_verification),
		cmocka_unit_test(a_wrong_message_is_found_in_every_benchmark_and_operation),
		cmocka_unit_test(a_disagreement_is_named_on_both_sides),
		cmocka_unit_test(two_initiators_are_told_so),
	};
	alarm(120); /* a dead-lock must not hang the build */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

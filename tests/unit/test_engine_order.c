/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_transport.h"

/* --- order of operations */

/* One iteration of warm-up and three timed, with windows of two. */
static void run_short(struct fake_link *link, enum xb_bench bench, enum xb_op op)
{
	struct xb_block b = block(bench, op, 8);

	b.window = 2;
	b.warmup = 1;
	b.iterations = 3;
	fake_run(link, &b, NULL, both);
	assert_good(xb_bench_name(bench), 8);
}

/* hello, and a step with its go: what comes before an iteration */
#define HELLO_LEAD "recv 64, send 64, wait 1, wait 1, "
#define STEP_LEAD "recv 64, send 64, wait 1, wait 1, "
#define STEP_LEAD_POSTED(receive) "recv 64, " receive "send 64, wait 1, wait 1, "
#define HELLO_SERVE "recv 64, wait 1, send 64, wait 1, "

static void assert_log_begins(const struct fake_side *side, const char *expected)
{
	if (strncmp(side->log, expected, strlen(expected)))
		fail_msg("expected %s\nfound    %.*s", expected, (int)strlen(expected) + 40, side->log);
}

static void ping_pong_posts_each_receive_a_message_ahead(void **state)
{
	struct fake_link *link = fake_open(64);
	(void)state;

	run_short(link, XB_BENCH_PINGPONG, XB_OP_SEND);
#define PING "send 8, recv 8, wait 1, wait 1, "
#define LAST_PING "send 8, wait 1, wait 1, "
	assert_log_begins(&link->side[0], HELLO_LEAD STEP_LEAD_POSTED("recv 8, ")
						  LAST_PING STEP_LEAD_POSTED("recv 8, ") PING PING LAST_PING);
#define PONG "wait 1, send 8, recv 8, wait 1, "
#define LAST "wait 1, send 8, wait 1, "
	assert_log_begins(&link->side[1],
			  HELLO_SERVE "recv 64, wait 1, recv 8, send 64, wait 1, " LAST
				      "recv 64, wait 1, recv 8, recv 8, send 64, wait 1, " PONG LAST LAST);
	fake_close(link);
}

static void bw_has_the_next_window_posted_before_it_replies(void **state)
{
	struct fake_link *link = fake_open(64);
	(void)state;

	run_short(link, XB_BENCH_BW, XB_OP_SEND);
#define WINDOW "send 8, send 8, recv 64, wait_all 2, wait 1, "
#define LAST_WINDOW "send 8, send 8, wait_all 2, wait 1, "
	assert_log_begins(&link->side[0],
			  HELLO_LEAD STEP_LEAD_POSTED("recv 64, ") LAST_WINDOW STEP_LEAD_POSTED("recv 64, ")
				  WINDOW WINDOW LAST_WINDOW);
	assert_log_begins(&link->side[1],
			  HELLO_SERVE "recv 64, wait 1, recv 8, recv 8, send 64, wait 1, "
				      "wait_all 2, send 64, wait 1, "
				      "recv 64, wait 1, recv 8, recv 8, recv 8, recv 8, send 64, wait 1, "
				      "wait_all 2, send 64, recv 8, recv 8, wait 1, "
				      "wait_all 2, send 64, wait 1, wait_all 2, send 64, wait 1, ");
	fake_close(link);
}

static void bibw_is_the_same_on_both_sides(void **state)
{
	struct fake_link *link = fake_open(64);
	(void)state;

	run_short(link, XB_BENCH_BIBW, XB_OP_SEND);
#define POSTS "recv 8, recv 8, recv 64, "
#define BIBW "send 8, send 8, wait_all 2, wait_all 2, send 64, " POSTS "wait 1, wait 1, "
#define BIBW_LAST "send 8, send 8, wait_all 2, wait_all 2, send 64, wait 1, wait 1, "
	assert_log_begins(&link->side[0], HELLO_LEAD "recv 64, " POSTS "send 64, wait 1, wait 1, " BIBW_LAST
						     "recv 64, " POSTS POSTS
						     "send 64, wait 1, wait 1, " BIBW BIBW_LAST BIBW_LAST);
	assert_log_begins(&link->side[1], HELLO_SERVE "recv 64, wait 1, " POSTS "send 64, wait 1, " BIBW_LAST
						      "recv 64, wait 1, " POSTS POSTS
						      "send 64, wait 1, " BIBW BIBW_LAST BIBW_LAST);
	fake_close(link);
}

static void a_write_is_flushed_once_per_window(void **state)
{
	struct fake_link *link = fake_open(64);
	(void)state;

	run_short(link, XB_BENCH_PINGPONG, XB_OP_WRITE);
#define PUT "put 8, flush 0, wait_all 1, "
	assert_log_begins(&link->side[0], HELLO_LEAD STEP_LEAD PUT STEP_LEAD PUT PUT PUT "send 64, wait 1, ");
	/* the target only waits, and so makes progress: hello, step, step, sync */
	assert_log_begins(&link->side[1], HELLO_SERVE "recv 64, wait 1, send 64, wait 1, "
						      "recv 64, wait 1, send 64, wait 1, recv 64, wait 1, ");
	run_short(link, XB_BENCH_BW, XB_OP_WRITE);
#define PUTS "put 8, put 8, flush 0, wait_all 2, "
	assert_log_begins(&link->side[0], HELLO_LEAD STEP_LEAD PUTS STEP_LEAD PUTS PUTS PUTS);
	run_short(link, XB_BENCH_BW, XB_OP_READ);
#define GETS "get 8, get 8, flush 0, wait_all 2, "
	assert_log_begins(&link->side[0], HELLO_LEAD STEP_LEAD GETS STEP_LEAD GETS GETS GETS);
	run_short(link, XB_BENCH_BIBW, XB_OP_WRITE);
#define BOTH PUTS "send 64, recv 64, wait 1, wait 1, "
#define BOTH_LAST PUTS "send 64, wait 1, wait 1, "
	assert_log_begins(&link->side[0],
			  HELLO_LEAD "recv 64, recv 64, send 64, wait 1, wait 1, " BOTH_LAST
				     "recv 64, recv 64, send 64, wait 1, wait 1, " BOTH BOTH BOTH_LAST);
	assert_log_begins(&link->side[1],
			  HELLO_SERVE "recv 64, wait 1, recv 64, send 64, wait 1, " BOTH_LAST
				      "recv 64, wait 1, recv 64, send 64, wait 1, " BOTH BOTH BOTH_LAST);
	fake_close(link);
}

static void both_write_and_watch_with_write_poll(void **state)
{
	struct fake_link *link = fake_open(64);
	(void)state;

	run_short(link, XB_BENCH_PINGPONG, XB_OP_WRITE_POLL);
#define THERE "put 8, watch 0, wait 1, "
	assert_log_begins(&link->side[0], HELLO_LEAD STEP_LEAD THERE STEP_LEAD THERE THERE THERE);
#define BACK "watch 0, put 8, wait 1, "
	assert_log_begins(&link->side[1], HELLO_SERVE "recv 64, wait 1, send 64, wait 1, " BACK
						      "recv 64, wait 1, send 64, wait 1, " BACK BACK BACK);
	fake_close(link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ping_pong_posts_each_receive_a_message_ahead),
		cmocka_unit_test(bw_has_the_next_window_posted_before_it_replies),
		cmocka_unit_test(bibw_is_the_same_on_both_sides),
		cmocka_unit_test(a_write_is_flushed_once_per_window),
		cmocka_unit_test(both_write_and_watch_with_write_poll),
	};
	alarm(120); /* a dead-lock must not hang the build */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

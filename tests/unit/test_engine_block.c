/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_transport.h"
#include "engine/run.h"

static void every_benchmark_and_operation_is_verified_at_any_size(void **state)
{
	static const size_t sizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 64, 1000, 4096, 100000, 300000};
	struct fake_link *link = fake_open(300000);
	(void)state;

	FOR_ALL_KINDS(bench, op)
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct xb_block b = block(bench, op, sizes[i]);
		fake_run(link, &b, NULL, both);
		assert_good(xb_bench_name(bench), sizes[i]);
		for (int s = 0; s < 2; s++) {
			assert_int_equal(both[s].result.iterations, 20);
			assert_int_equal(both[s].result.warmup, 3);
			assert_int_equal(link->side[s].sends + link->side[s].receives, 0);
		}
		assert_int_equal(both[0].result.histogram.count, 20);
		assert_true(both[0].result.median_ns >= 0);
	}
	fake_close(link);
}

static void watched_memory_is_verified_at_any_size(void **state)
{
	static const size_t sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 64, 1000, 4096, 100000};
	struct fake_link *link = fake_open(100000);
	struct xb_error error;
	(void)state;

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct xb_block b = block(XB_BENCH_PINGPONG, XB_OP_WRITE_POLL, sizes[i]);
		fake_run(link, &b, NULL, both);
		assert_good("write-poll", sizes[i]);
		double round_trips = both[0].result.histogram.sum_ns * 2,
		       elapsed = (double)both[0].result.elapsed_ns;
		assert_true(round_trips > elapsed - 40 && round_trips < elapsed + 40);
		for (int s = 0; s < 2; s++) {
			assert_int_equal(both[s].result.iterations, 20);
			assert_true(both[s].result.checked_messages > 23); /* both receive */
			assert_null(link->side[s].arrivals);
		}
	}
	struct xb_block none = block(XB_BENCH_PINGPONG, XB_OP_WRITE_POLL, 0);
	assert_int_equal(xb_block_check(&link->side[0].endpoint, &none, &error), XB_E_UNSUPPORTED);
	assert_non_null(strstr(error.text, "0 bytes"));
	struct xb_block window = block(XB_BENCH_BW, XB_OP_WRITE_POLL, 8);
	assert_int_equal(xb_block_check(&link->side[0].endpoint, &window, &error), XB_E_UNSUPPORTED);
	link->side[0].endpoint.caps &= ~XB_CAP_PUT_WATCH;
	window.bench = XB_BENCH_PINGPONG;
	assert_int_equal(xb_block_check(&link->side[0].endpoint, &window, &error), XB_E_UNSUPPORTED);
	assert_non_null(strstr(error.text, "comes in order"));
	fake_close(link);
}

static void time_is_in_the_unit_of_the_benchmark(void **state)
{
	struct fake_link *link = fake_open(64);
	(void)state;

	FOR_ALL_KINDS(bench, op)
	{
		struct xb_block b = block(bench, op, 64);
		double unit = bench != XB_BENCH_PINGPONG ? b.window : op == XB_OP_SEND ? 2 : 1;
		fake_run(link, &b, NULL, both);
		assert_good(xb_bench_name(bench), 64);
		/* the samples follow on one another without gaps; rounded to 1 ns each */
		double sum = both[0].result.histogram.sum_ns * unit,
		       elapsed = (double)both[0].result.elapsed_ns;
		assert_true(sum > elapsed - 20 * unit && sum < elapsed + 20 * unit);
	}
	fake_close(link);
}

static void the_median_is_that_of_the_iterations(void **state)
{
	uint64_t odd[] = {100, 110, 140, 141, 171, 172}, even[] = {100, 110, 140, 141, 171};
	double median;
	(void)state;

	xb_samples_evaluate(odd, 5, 2.0, 1.0, NULL, &median); /* 10 30 1 30 1 */
	assert_true(median == 20.0);
	xb_samples_evaluate(even, 4, 1.0, 2.0, NULL, &median); /* 10 30 1 30 */
	assert_true(median == 10.0);
}

static void what_was_sent_is_counted_on_both_sides(void **state)
{
	struct fake_link *link = fake_open(4096);
	struct xb_block b = block(XB_BENCH_BW, XB_OP_SEND, 4096);
	(void)state;

	fake_run(link, &b, NULL, both);
	/* 23 windows of 4, one of verification; hello, three steps, verify and done */
	assert_int_equal(both[0].result.messages, 24 * 4 + 6);
	assert_int_equal(both[0].result.payload_bytes, 24 * 4 * 4096 + 6 * XB_AGREE_BYTES);
	/* a reply per window; hello, go three times, go for verification, done */
	assert_int_equal(both[1].result.messages, 23 + 6);
	assert_int_equal(both[1].result.payload_bytes, 29 * XB_AGREE_BYTES);
	fake_close(link);
}

static void no_more_is_outstanding_than_was_announced(void **state)
{
	struct fake_link *link = fake_open(64);
	(void)state;

	FOR_ALL_KINDS(bench, op)
	{
		struct xb_block b = block(bench, op, 64);
		b.window = XB_MAX_WINDOW;
		fake_run(link, &b, NULL, both);
		assert_good(xb_bench_name(bench), 64);
		for (int s = 0; s < 2; s++) {
			assert_true(link->side[s].most_sends <= xb_block_outstanding(b.window));
			assert_true(link->side[s].most_receives <= xb_block_outstanding(b.window));
		}
	}
	fake_close(link);
}

static void a_window_of_large_messages_is_bounded_in_bytes(void **state)
{
	struct xb_block b = block(XB_BENCH_BW, XB_OP_SEND, 0);
	(void)state;

	b.window = 64;
	assert_int_equal(xb_block_window(&b), 64);
	b.size_bytes = (size_t)4 << 20;
	assert_int_equal(xb_block_window(&b), 64);
	b.size_bytes = (size_t)16 << 20;
	assert_int_equal(xb_block_window(&b), 16);
	b.size_bytes = (size_t)1 << 30;
	assert_int_equal(xb_block_window(&b), 2);
	b.window = 1;
	assert_int_equal(xb_block_window(&b), 1);
	b.bench = XB_BENCH_PINGPONG;
	b.window = 64;
	assert_int_equal(xb_block_window(&b), 1);
}

static void iterations_are_chosen_for_the_wanted_time(void **state)
{
	struct fake_link *link = fake_open(64);
	struct xb_block b = block(XB_BENCH_PINGPONG, XB_OP_SEND, 64);
	(void)state;

	b.iterations = b.warmup = 0;
	b.target_ns = 1; /* less than any iteration takes */
	fake_run(link, &b, NULL, both);
	assert_good("pingpong", 64);
	assert_int_equal(both[0].result.iterations, 5);
	assert_true(both[0].result.warmup >= 2);
	b.bench = XB_BENCH_BW;
	fake_run(link, &b, NULL, both);
	assert_good("bw", 64);
	assert_int_equal(both[0].result.iterations, 1);
	assert_true(both[0].result.warmup >= 1);
	b.target_ns = 100000000;
	fake_run(link, &b, NULL, both);
	assert_good("bw", 64);
	assert_true(both[0].result.iterations > 5);
	assert_int_equal(both[0].result.iterations, both[1].result.iterations);
	assert_int_equal(both[0].result.warmup, both[1].result.warmup);
	fake_close(link);
}

static void both_sides_are_given_deadlines_and_taken_off_them(void **state)
{
	struct fake_link *link = fake_open(64);
	struct xb_block b = block(XB_BENCH_PINGPONG, XB_OP_SEND, 64);
	(void)state;

	fake_run(link, &b, NULL, both);
	for (int s = 0; s < 2; s++) {
		assert_true(link->side[s].deadlines >= 3); /* at the start, warm-up, timed part */
		assert_true(link->side[s].disarmed);
	}
	assert_int_equal(atomic_load(&xb_block_phase), XB_PHASE_IDLE);
	fake_close(link);
}

/* --- refused before anything is sent */

static void assert_refused(struct fake_link *link, const struct xb_block *b, int status, const char *said)
{
	struct xb_error error = {0, ""};

	link->side[0].log_length = 0;
	assert_int_equal(xb_block_run(&link->side[0].endpoint, b, &both[0].result, &error), status);
	assert_int_equal(link->side[0].log_length, 0);
	if (!strstr(error.text, said))
		fail_msg("said: %s", error.text);
	assert_int_equal(xb_block_check(&link->side[0].endpoint, b, &error), status);
}

static void what_cannot_be_done_is_refused_before_anything_is_sent(void **state)
{
	struct fake_link *link = fake_open(4096);
	struct xb_endpoint *e = &link->side[0].endpoint;
	struct xb_block b = block(XB_BENCH_BW, XB_OP_SEND, 64);
	(void)state;

	b.initiator = 1;
	b.window = 0;
	assert_refused(link, &b, XB_E_USAGE, "window");
	b.window = XB_MAX_WINDOW + 1;
	assert_refused(link, &b, XB_E_USAGE, "1024");
	b.window = 4;
	b.iterations = XB_MAX_ITERATIONS + 1;
	assert_refused(link, &b, XB_E_USAGE, "1000000");
	b.iterations = 1;
	b.size_bytes = e->buffer_bytes;
	assert_refused(link, &b, XB_E_USAGE, "buffers");
	e->max_message_bytes = 1000;
	b.size_bytes = 1001;
	assert_refused(link, &b, XB_E_UNSUPPORTED, "limit");
	b.size_bytes = 1000;
	e->caps = XB_CAP_SEND;
	b.bench = XB_BENCH_BIBW;
	assert_refused(link, &b, XB_E_UNSUPPORTED, "both directions");
	b.bench = XB_BENCH_BW;
	b.op = XB_OP_WRITE;
	assert_refused(link, &b, XB_E_UNSUPPORTED, "put");
	b.op = XB_OP_READ;
	assert_refused(link, &b, XB_E_UNSUPPORTED, "get");
	b.op = XB_OP_SEND;
	b.bench = XB_BENCH_SWAP;
	b.swap = (struct xb_swap){.protocol = 9, .messages = 1};
	assert_refused(link, &b, XB_E_UNSUPPORTED, "synchronous sends");
	b.swap.protocol = 4;
	assert_refused(link, &b, XB_E_UNSUPPORTED, "ready sends");
	e->caps |= XB_CAP_SYNC_SEND | XB_CAP_BLOCKING;
	b.swap.protocol = 9;
	assert_refused(link, &b, XB_E_UNSUPPORTED, "started now and waited for later");
	fake_close(link);
}

/* --- failing */

static void a_failed_operation_is_explained_by_the_transport(void **state)
{
	struct fake_link *link = fake_open(64);
	struct xb_block b = block(XB_BENCH_PINGPONG, XB_OP_SEND, 64);
	(void)state;

	link->side[1].wrong = FAKE_FAIL;
	link->side[1].wrong_message = 10;
	fake_run(link, &b, NULL, both);
	assert_int_equal(both[1].status, XB_E_TRANSPORT);
	assert_string_equal(both[1].error.text, "the fake was told to fail");
	/* the other one was told to stop meanwhile */
	assert_int_equal(both[0].status, XB_E_ABORTED);
	assert_true(link->side[0].disarmed && link->side[1].disarmed);
	assert_int_equal(atomic_load(&xb_block_phase), XB_PHASE_IDLE);
	fake_close(link);
}

static void *raise_abort(void *argument)
{
	usleep(20000);
	atomic_store((atomic_int *)argument, 1);
	return NULL;
}

static void a_side_that_waits_in_vain_can_be_stopped(void **state)
{
	struct fake_link *link = fake_open(64);
	struct xb_block b = block(XB_BENCH_PINGPONG, XB_OP_SEND, 64);
	struct xb_error error;
	pthread_t thread;
	(void)state;

	b.initiator = 1;
	assert_int_equal(pthread_create(&thread, NULL, raise_abort, &link->abort), 0);
	assert_int_equal(xb_block_run(&link->side[0].endpoint, &b, &both[0].result, &error), XB_E_ABORTED);
	assert_non_null(strstr(error.text, "agreement"));
	pthread_join(thread, NULL);
	fake_close(link);
}

static void without_payload_nothing_is_agreed_or_verified(void **state)
{
	struct fake_link *link = fake_open(64);
	struct xb_block b = block(XB_BENCH_PINGPONG, XB_OP_SEND, 32);
	(void)state;

	for (int i = 0; i < 2; i++)
		link->side[i].endpoint.caps |= XB_CAP_NO_PAYLOAD;
	fake_run(link, &b, NULL, both);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(both[i].status, 0);
		assert_false(both[i].result.verified);
		assert_int_equal(both[i].result.checked_messages, 0);
		assert_int_equal(both[i].result.payload_bytes, 0);
		assert_int_equal(both[i].result.iterations, 20);
		assert_null(strstr(link->side[i].log, " 64"));
	}
	b.iterations = b.warmup = 0;
	b.target_ns =
		UINT64_C(1) << 40; /* however slow this machine is: this link does want both sides alike */
	fake_run(link, &b, NULL, both);
	assert_int_equal(both[0].result.iterations, 10000);
	assert_int_equal(both[1].result.iterations, 10000);
	assert_int_equal(both[0].result.warmup, 100);
	b.target_ns = 10000000;
	/* a decorator's delay, which the warm-up need not have shown */
	for (int i = 0; i < 2; i++)
		link->side[i].endpoint.imposed_ns = 1000000000;
	fake_run(link, &b, NULL, both);
	assert_int_equal(both[0].result.iterations, 5);
	assert_true(link->side[0].deadlines >= 3);
	assert_true(link->side[0].granted_ns[XB_PHASE_TIMED] > UINT64_C(15000000000));
	fake_close(link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_benchmark_and_operation_is_verified_at_any_size),
		cmocka_unit_test(watched_memory_is_verified_at_any_size),
		cmocka_unit_test(time_is_in_the_unit_of_the_benchmark),
		cmocka_unit_test(the_median_is_that_of_the_iterations),
		cmocka_unit_test(what_was_sent_is_counted_on_both_sides),
		cmocka_unit_test(no_more_is_outstanding_than_was_announced),
		cmocka_unit_test(a_window_of_large_messages_is_bounded_in_bytes),
		cmocka_unit_test(iterations_are_chosen_for_the_wanted_time),
		cmocka_unit_test(both_sides_are_given_deadlines_and_taken_off_them),
		cmocka_unit_test(what_cannot_be_done_is_refused_before_anything_is_sent),
		cmocka_unit_test(a_failed_operation_is_explained_by_the_transport),
		cmocka_unit_test(a_side_that_waits_in_vain_can_be_stopped),
		cmocka_unit_test(without_payload_nothing_is_agreed_or_verified),
	};
	alarm(120); /* a dead-lock must not hang the build */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault decorator around the fake transport: what it does is what was asked for, and what it reports is
 * what it did. */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "engine/decorator.h"
#include "fake_transport.h"

static const struct xb_decorator *fault;
static void *state_of_fault;

static int load(void **state)
{
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	(void)state;

	self[n > 0 ? n : 0] = 0;
	snprintf(path, sizeof path, "%s/../plugins/libxb-fault.so", dirname(self));
	void *handle = dlopen(path, RTLD_NOW);
	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	fault = handle ? dlsym(handle, "xb_decorator") : NULL;
	return fault ? 0 : -1;
}

/* On side 0, which is endpoint 0; keys end with NULL. Returns the status. */
static int attach(struct fake_link *link, struct xb_error *error, const char *const *keys)
{
	struct xb_key_value pairs[8];
	struct xb_setup setup = {.abort = &link->abort,
				 .endpoints = 2,
				 .keys = pairs,
				 .max_outstanding = xb_block_outstanding(4)};

	for (; keys[0]; keys += 2)
		pairs[setup.key_count++] = (struct xb_key_value){keys[0], keys[1]};
	return fault->attach(&link->side[0].endpoint, &setup, &state_of_fault, error);
}

#define ATTACH(link, ...)                                                                                    \
	do {                                                                                                 \
		const char *const keys_[] = {__VA_ARGS__, NULL, NULL};                                       \
		struct xb_error error_ = {0, ""};                                                            \
		if (attach(link, &error_, keys_))                                                            \
			fail_msg("%s", error_.text);                                                         \
	} while (0)

static const struct xb_hot *prepared(struct fake_link *link, enum xb_bench bench, enum xb_op op, size_t size)
{
	struct xb_pattern pattern = {
		.bench = bench, .op = op, .size_bytes = size, .window = 4, .initiator = 1};
	struct xb_error error;
	return link->side[0].endpoint.prepare(link->side[0].endpoint.conn, &pattern, &error);
}

static double number(json_t *report, const char *group, const char *key)
{
	json_t *value = json_object_get(json_object_get(report, group), key);
	assert_non_null(value);
	return json_number_value(value);
}

static void finish(struct fake_link *link)
{
	fault->detach(state_of_fault);
	fake_close(link);
}

static void operations_that_no_fault_concerns_stay_the_backends_own(void **state)
{
	struct fake_link *link = fake_open(65536);
	(void)state;

	ATTACH(link, "step", "8K/5us", "delay", "0us");
	assert_memory_equal(prepared(link, XB_BENCH_PINGPONG, XB_OP_SEND, 8191), &fake_hot, sizeof fake_hot);
	const struct xb_hot *hot = prepared(link, XB_BENCH_PINGPONG, XB_OP_SEND, 8192);
	assert_true(hot->send != fake_send);
	assert_true(hot->recv == fake_recv && hot->wait == fake_wait && hot->wait_all == fake_wait_all &&
		    hot->test == fake_test && hot->flush == fake_flush);
	finish(link);
}

static void another_endpoint_is_left_alone(void **state)
{
	struct fake_link *link = fake_open(64);
	(void)state;

	ATTACH(link, "endpoint", "1", "delay", "1us", "corrupt", "1", "premature", "0", "hang", "1", "crash",
	       "1");
	assert_memory_equal(prepared(link, XB_BENCH_PINGPONG, XB_OP_SEND, 64), &fake_hot, sizeof fake_hot);
	finish(link);
}

static void destruction_is_for_endpoint_1_unless_said_otherwise(void **state)
{
	struct fake_link *link = fake_open(64);
	(void)state;

	ATTACH(link, "corrupt", "1", "premature", "0", "hang", "1", "crash", "1");
	assert_memory_equal(prepared(link, XB_BENCH_PINGPONG, XB_OP_SEND, 64), &fake_hot, sizeof fake_hot);
	finish(link);
}

static void every_data_message_is_delayed_and_the_delay_is_reported(void **state)
{
	struct fake_link *link = fake_open(4096);
	(void)state;

	ATTACH(link, "delay", "20us", "step", "1K/10us", "cap", "100M");
	for (enum xb_op op = XB_OP_SEND; op <= XB_OP_READ; op++) {
		struct xb_block b = block(XB_BENCH_BW, op, 2000);
		fake_run(link, &b, NULL, both);
		assert_good("bw", 2000);
		json_t *report = fault->report(state_of_fault);
		assert_non_null(report);
		/* windows of 4: 3 and 20, and one of verification; control messages are not delayed */
		assert_true(number(report, "imposed_delay_ns", "count") == 24 * 4);
		/* 20 + 10 + 2000 bytes at 100 MB/s */
		assert_true(number(report, "imposed_delay_ns", "min") >= 49990);
		assert_true(number(report, "imposed_delay_ns", "median") >=
			    number(report, "imposed_delay_ns", "min"));
		assert_true(number(report, "imposed_delay_ns", "max") >=
			    number(report, "imposed_delay_ns", "median"));
		double mean = number(report, "imposed_delay_ns", "total") /
			      number(report, "imposed_delay_ns", "count");
		assert_true(mean > 0.999 * number(report, "imposed_delay_ns", "mean"));
		json_decref(report);
		assert_true(both[0].result.median_ns >= 49990); /* per message */
	}
	assert_null(fault->report(state_of_fault)); /* nothing since */
	finish(link);
}

static void jitter_lies_between_nothing_and_its_limit(void **state)
{
	struct fake_link *link = fake_open(64);
	struct xb_block b = block(XB_BENCH_PINGPONG, XB_OP_SEND, 64);
	(void)state;

	b.iterations = 500;
	ATTACH(link, "delay", "1us", "jitter", "20us");
	fake_run(link, &b, NULL, both);
	assert_good("pingpong", 64);
	json_t *report = fault->report(state_of_fault);
	assert_true(number(report, "imposed_delay_ns", "min") >= 999);
	assert_true(number(report, "imposed_delay_ns", "min") < 6000);
	assert_true(number(report, "imposed_delay_ns", "median") > 6000);
	json_decref(report);
	finish(link);
}

static void corruption_is_found_by_the_engine_and_counted(void **state)
{
	struct fake_link *link = fake_open(4096);
	(void)state;

	ATTACH(link, "corrupt", "7", "endpoint", "0");
	for (enum xb_bench bench = XB_BENCH_PINGPONG; bench <= XB_BENCH_BIBW; bench += 2) {
		struct xb_block b = block(bench, XB_OP_SEND, 1000);
		fake_run(link, &b, NULL, both);
		assert_int_equal(both[0].status, XB_E_CORRUPT);
		assert_non_null(strstr(both[0].error.text, "corrupted on the way"));
		assert_int_equal(both[1].status, 0);
		json_t *report = fault->report(state_of_fault);
		json_int_t messages = json_integer_value(json_object_get(report, "messages"));
		assert_int_equal((json_int_t)number(report, "injected", "corrupt"), messages / 7);
		json_decref(report);
	}
	finish(link);
}

static void corruption_of_written_and_read_memory_is_found(void **state)
{
	struct fake_link *link = fake_open(4096);
	(void)state;

	ATTACH(link, "corrupt", "1", "endpoint", "0");
	struct xb_block b = block(XB_BENCH_PINGPONG, XB_OP_READ, 1000);
	fake_run(link, &b, NULL, both);
	assert_int_equal(both[0].status, XB_E_CORRUPT);
	b = block(XB_BENCH_BIBW, XB_OP_WRITE, 1000); /* in ping-pong side 0 receives nothing */
	fake_run(link, &b, NULL, both);
	assert_int_equal(both[0].status, XB_E_CORRUPT);
	assert_int_equal(both[1].status, 0);
	finish(link);
}

static void a_watching_target_is_misled_and_says_so(void **state)
{
	struct fake_link *link = fake_open(4096);
	struct xb_block b = block(XB_BENCH_PINGPONG, XB_OP_WRITE_POLL, 1000);
	(void)state;

	ATTACH(link, "corrupt", "7", "endpoint", "0");
	fake_run(link, &b, NULL, both);
	assert_int_equal(both[0].status, XB_E_CORRUPT);
	assert_non_null(strstr(both[0].error.text, "corrupted on the way"));
	assert_int_equal(both[1].status, 0);
	finish(link);

	link = fake_open(4096);
	ATTACH(link, "premature", "0", "endpoint", "0");
	fake_run(link, &b, NULL, both);
	assert_int_equal(both[0].status, XB_E_CORRUPT);
	assert_non_null(strstr(both[0].error.text, "premature completion"));
	assert_int_equal(both[1].status, 0);
	finish(link);
}

static void premature_completion_is_found_and_leaves_nothing_behind(void **state)
{
	struct fake_link *link = fake_open(65536);
	(void)state;

	ATTACH(link, "premature", "1K", "endpoint", "0");
	for (enum xb_bench bench = XB_BENCH_PINGPONG; bench <= XB_BENCH_BIBW; bench += 2)
		for (int round = 0; round < 20; round++) {
			struct xb_block b = block(bench, XB_OP_SEND, 65536);
			fake_run(link, &b, NULL, both);
			assert_int_equal(both[0].status, XB_E_CORRUPT);
			assert_non_null(strstr(both[0].error.text, "premature completion"));
			/* a ping that leaves before the pong has come finds the next receive of the peer */
			if (both[1].status)
				assert_true(bench == XB_BENCH_PINGPONG && both[1].status == XB_E_CORRUPT &&
					    strstr(both[1].error.text, "content of a later message"));
			assert_null(link->side[0].posted);
			assert_null(link->side[0].inbox);
			assert_true(link->side[0].most_receives <= xb_block_outstanding(4));
			json_t *report = fault->report(state_of_fault);
			assert_true(number(report, "injected", "premature") > 20);
			json_decref(report);
			b = block(bench, XB_OP_SEND, 1023);
			fake_run(link, &b, NULL, both);
			assert_good("a smaller size", 1023);
		}
	finish(link);
}

static void *raise_abort(void *argument)
{
	usleep(50000);
	atomic_store((atomic_int *)argument, 1);
	return NULL;
}

static void a_hang_lasts_until_the_abort_flag_is_raised(void **state)
{
	struct fake_link *link = fake_open(64);
	struct xb_block b = block(XB_BENCH_PINGPONG, XB_OP_SEND, 32);
	pthread_t thread;
	(void)state;

	ATTACH(link, "hang", "33", "endpoint", "0");
	fake_run(link, &b, NULL, both);
	assert_good("pingpong", 32);
	b = block(XB_BENCH_PINGPONG, XB_OP_SEND, 33);
	assert_int_equal(pthread_create(&thread, NULL, raise_abort, &link->abort), 0);
	fake_run(link, &b, NULL, both);
	pthread_join(thread, NULL);
	assert_int_equal(both[0].status, XB_E_ABORTED);
	finish(link);
}

static void impossible_values_are_refused_with_the_key_and_the_value(void **state)
{
	static const char *const bad[][2] = {
		{"delay", "2"},	    {"delay", ""},	  {"delay", "-1us"},	{"delay", "2 us"},
		{"delay", "inf"},   {"delay", "2usx"},	  {"delay", "2h"},	{"jitter", "x"},
		{"step", "8K"},	    {"step", "/5us"},	  {"step", "8K/"},	{"step", "8X/5us"},
		{"cap", "0"},	    {"cap", "1T"},	  {"cap", "fast"},	{"corrupt", "0"},
		{"corrupt", "-1"},  {"corrupt", "1.5"},	  {"premature", "1.5"}, {"hang", ""},
		{"hang", "big"},    {"crash", "1Q"},	  {"endpoint", "2"},	{"endpoint", "x"},
		{"endpoint", "-1"}, {"delay", "1e400ns"}, {"delay", "61s"},
	};
	struct fake_link *link = fake_open(64);
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		const char *const keys[] = {bad[i][0], bad[i][1], NULL, NULL};
		struct xb_error error = {0, ""};
		if (attach(link, &error, keys) != XB_E_USAGE)
			fail_msg("%s=%s was accepted", bad[i][0], bad[i][1]);
		assert_non_null(strstr(error.text, bad[i][0]));
		assert_non_null(strstr(error.text, bad[i][1]));
		assert_true(link->side[0].endpoint.prepare == fake_prepare);
	}
	fake_close(link);
}

static void good_values_are_taken(void **state)
{
	struct fake_link *link = fake_open(64);
	(void)state;

	ATTACH(link, "delay", "1.5us", "jitter", "300ns", "step", "0/1ms", "cap", "2.5G", "corrupt", "",
	       "premature", "", "endpoint", "0");
	finish(link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_that_no_fault_concerns_stay_the_backends_own),
		cmocka_unit_test(another_endpoint_is_left_alone),
		cmocka_unit_test(destruction_is_for_endpoint_1_unless_said_otherwise),
		cmocka_unit_test(every_data_message_is_delayed_and_the_delay_is_reported),
		cmocka_unit_test(jitter_lies_between_nothing_and_its_limit),
		cmocka_unit_test(corruption_is_found_by_the_engine_and_counted),
		cmocka_unit_test(corruption_of_written_and_read_memory_is_found),
		cmocka_unit_test(a_watching_target_is_misled_and_says_so),
		cmocka_unit_test(premature_completion_is_found_and_leaves_nothing_behind),
		cmocka_unit_test(a_hang_lasts_until_the_abort_flag_is_raised),
		cmocka_unit_test(impossible_values_are_refused_with_the_key_and_the_value),
		cmocka_unit_test(good_values_are_taken),
	};
	alarm(120); /* a dead-lock must not hang the build */
	return cmocka_run_group_tests(tests, load, NULL);
}

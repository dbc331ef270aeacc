/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits file: what is understood, and that everything else is refused with its line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "accept/limits.h"
#include "cli/options.h"
#include "stats/stats.h"

static int parse(const char *text, struct xb_limits *limits, struct xb_error *error)
{
	*error = (struct xb_error){0};
	return xb_limits_parse(text, strlen(text), "l.ini", limits, error);
}

static void a_whole_file_is_understood(void **state)
{
	(void)state;
	struct xb_limits l;
	struct xb_error error;
	const char *text = "# a comment\n"
			   "[run]\n"
			   "transports = tcp,mpi:tcp ; what to measure\n"
			   "noise_budget = 40 %\n"
			   "\n"
			   "[limit small-latency]\n"
			   "transport = tcp\n"
			   "metric = latency_us\n"
			   "sizes = 0,8, 1K:64K\n"
			   "max = 1.07 us\n"
			   "within = 50 % of median\n"
			   "violated_when = both\r\n"
			   "[limit mpi]\n"
			   "  transport: mpi:tcp\n"
			   "metric = overhead_pct\n"
			   "over = tcp\n"
			   "max = 30%";
	assert_int_equal(parse(text, &l, &error), 0);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.run_count, 2);
	assert_string_equal(l.run[0].value, "tcp,mpi:tcp");
	assert_true(l.noise_budget_pct == 40);
	assert_string_equal(l.limits[0].name, "small-latency");
	assert_int_equal(l.limits[0].line, 6);
	assert_int_equal(l.limits[0].range_count, 3);
	assert_int_equal(l.limits[0].ranges[2].low, 1024);
	assert_int_equal(l.limits[0].ranges[2].high, 65536);
	assert_true(fabs(l.limits[0].max - 1.07) < 1e-12);
	assert_true(fabs(l.limits[0].within - 0.5) < 1e-12);
	assert_int_equal(l.limits[0].relation, XB_RELATION_MEDIAN);
	assert_true(l.limits[0].both);
	assert_int_equal(l.limits[0].bench, XB_BENCH_PINGPONG);
	assert_string_equal(l.limits[1].transport, "mpi:tcp");
	assert_string_equal(l.limits[1].over, "tcp");
	assert_true(xb_limit_covers(&l.limits[0], 5000));
	assert_false(xb_limit_covers(&l.limits[0], 9));
	xb_limits_free(&l);
}

static void values_are_converted_to_the_unit_of_the_metric(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum xb_metric metric;
		double value;
	} good[] = {
		{"12000", XB_METRIC_BANDWIDTH, 12000},	  {"12 GB/s", XB_METRIC_BANDWIDTH, 12000},
		{"100 Gb/s", XB_METRIC_BANDWIDTH, 12500}, {"1MiB/s", XB_METRIC_BANDWIDTH, 1.048576},
		{"900 ns", XB_METRIC_LATENCY, 0.9},	  {"1.5 ms", XB_METRIC_P99, 1500},
		{"-0.5 us", XB_METRIC_OVERHEAD_US, -0.5}, {"30 %", XB_METRIC_NOISE, 30},
		{"95 %", XB_METRIC_SHARE, 0.95},	  {"0.95", XB_METRIC_SHARE, 0.95},
		{"120 %", XB_METRIC_SHARE, 1.2},	  {"1", XB_METRIC_SHARE, 1},
		{"3 Mmsg/s", XB_METRIC_RATE, 3},
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		double value = NAN;
		assert_int_equal(xb_parse_quantity(good[i].text, good[i].metric, &value, NULL), 0);
		assert_true(fabs(value - good[i].value) < 1e-9);
	}
}

/* Each is refused with its line and a word that names what is wrong. */
static void what_is_wrong_is_named_with_its_line(void **state)
{
	(void)state;
#define L "[limit a]\ntransport = tcp\nmetric = latency_us\n"
#define S "[limit a]\ntransport = tcp\nmetric = share_of_payload\n"
#define B "[limit a]\ntransport = tcp\nmetric = bandwidth_MBps\n"
	static const struct {
		const char *text, *line, *word;
	} bad[] = {
		{"", "l.ini:1:", "without a limit"},
		{"[run]\ntransports = tcp\n", "l.ini:2:", "without a limit"},
		{"max = 3\n", "l.ini:1:", "no section"},
		{"[limits a]\n", "l.ini:1:", "[limit NAME]"},
		{"[limit]\n", "l.ini:1:", "name"},
		{"[limit a b]\n", "l.ini:1:", "letters"},
		{"[limit a\n", "l.ini:1:", "heading"},
		{"[limit a] x\n", "l.ini:1:", "heading"},
		{L "max = 1\n" L, "l.ini:5:", "twice"},
		{L "max = 1\nmax = 2\n", "l.ini:5:", "twice"},
		{L "maximum = 1\n", "l.ini:4:", "unknown key 'maximum'"},
		{L "max 1\n", "l.ini:4:", "KEY = VALUE"},
		{L "max =\n", "l.ini:4:", "not a value"},
		{S "min = 95\n", "l.ini:4:", "more than all of the payload; write '95 %'"},
		{S "min = 105 %\n", "l.ini:4:", "more than all of the payload; allowed are 0 to 100 %"},
		{L "max = 1 GB/s\n", "l.ini:4:", "not a unit of latency_us; choose from us, ns, ms, s"},
		{L "max = -1\n", "l.ini:4:", "not negative"},
		{L "max = nan\n", "l.ini:4:", "not a value"},
		{L "max = inf\n", "l.ini:4:", "not a value"},
		{L "max = 0x10\n", "l.ini:4:", "not a unit"},
		{L "max = 1,5\n", "l.ini:4:", "not a unit"},
		{L "max = 1e3\n", "l.ini:4:", "not a unit"},
		{L "max = 99999999999999\n", "l.ini:4:", "out of range"},
		{L "sizes = 8,,9\nmax = 1\n", "l.ini:4:", "sizes"},
		{L "sizes = 9:8\nmax = 1\n", "l.ini:4:", "downwards"},
		{L "sizes = 8 B\nmax = 1\n", "l.ini:4:", "not a message size"},
		{L, "l.ini:1:", "limits nothing"},
		{L "min = 5\nmax = 4\n", "l.ini:1:", "contradicts itself"},
		{L "max = 1\nwithin = 5 % of median\n", "l.ini:1:", "violated_when"},
		{L "max = 1\nviolated_when = both\n", "l.ini:1:", "relative part"},
		{L "max = 1\nwithin = 5 % of median\nviolated_when = all\n", "l.ini:6:", "either, both"},
		{L "within = 5 of median\n", "l.ini:4:", "N % of WHAT"},
		{L "within = 5 % of mean\n", "l.ini:4:", "median, best, link"},
		{L "within = 0 % of median\n", "l.ini:4:", "out of range"},
		{L "within = 2000 % of median\n", "l.ini:4:", "out of range"},
		{L "within = 5 % of reference\n", "l.ini:4:", "names no file"},
		{L "within = 5 % of median x\n", "l.ini:4:", "after its end"},
		{L "within = 5 % of link\n", "l.ini:4:", "bandwidth_MBps"},
		{B "within = 100 % of link\n", "l.ini:4:", "less than nothing"},
		{B "op = put\nmin = 1\n", "l.ini:4:", "send, write, read"},
		{B "benchmark = latency\nmin = 1\n", "l.ini:4:", "pingpong, bw"},
		{B "benchmark = swap\nmin = 1\n", "l.ini:4:", "pingpong, bw, bibw"},
		{B "over = tcp\nmin = 1\n", "l.ini:1:", "over is for"},
		{"[limit a]\nmetric = latency_us\nmax = 1\n", "l.ini:1:", "no transport"},
		{"[limit a]\ntransport = tcp\nmax = 1\n", "l.ini:3:", "write metric first"},
		{"[limit a]\ntransport = tcp\n", "l.ini:1:", "no metric"},
		{"[limit a]\nmetric = latency\n", "l.ini:2:", "latency_us, p99_us"},
		{"[limit a]\nmetric = noise_pct\nsizes = 8\nmax = 5\n", "l.ini:1:", "whole run"},
		{"[limit a]\ntransport = tcp\nmetric = message_rate_Mps\nbenchmark = pingpong\nmin = 1\n",
		 "l.ini:1:", "no message rate"},
		{"[limit a]\ntransport = tcp\nmetric = overhead_us\nwithin = 5 % of median\n",
		 "l.ini:4:", "give overhead_us"},
		{"[run]\nhosts = a,b\n", "l.ini:2:", "[run] has transports"},
		{"[run]\ntime = 5\ntime = 6\n", "l.ini:3:", "first in line 2"},
		{"[run]\nnoise_budget = 101 %\n", "l.ini:2:", "0 to 100"},
		{L "max = 1\n\x01\n", "l.ini:5:", "control character"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct xb_limits l;
		struct xb_error error;
		if (parse(bad[i].text, &l, &error) != XB_E_USAGE || !strstr(error.text, bad[i].line) ||
		    !strstr(error.text, bad[i].word))
			fail_msg("case %zu: '%s' gave '%s', wanted '%s' and '%s'", i, bad[i].text, error.text,
				 bad[i].line, bad[i].word);
		assert_int_equal(l.count, 0);
	}
}

static void long_lines_zeros_and_large_files_are_refused(void **state)
{
	(void)state;
	struct xb_limits l;
	struct xb_error error = {0};
	static char text[4000];
	memset(text, 'x', sizeof(text));
	assert_int_equal(xb_limits_parse(text, sizeof(text), "l.ini", &l, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "l.ini:1: the line has more than"));
	assert_int_equal(xb_limits_parse("[run]\n\0\n", 8, "l.ini", &l, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "l.ini:2: the line has a control character"));
	/* one limit too many */
	char *many = calloc(1, 100000);
	for (unsigned i = 0; i <= XB_LIMITS_MAX; i++)
		sprintf(many + strlen(many), "[limit n%u]\nmetric = noise_pct\nmax = 5\n", i);
	assert_int_equal(xb_limits_parse(many, strlen(many), "l.ini", &l, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "more than 256 limits"));
	free(many);
}

/* Damaged files: whatever comes out, it is either a sound set of limits or an error with a place. */
static void damaged_files_do_no_harm(void **state)
{
	(void)state;
	static const char good[] =
		"[run]\ntransports = tcp\nnoise_budget = 30 %\n[limit a]\ntransport = tcp\n"
		"metric = bandwidth_MBps\nsizes = 64K,1M:4M\nmin = 12 GB/s\nwithin = 20 % of best\n"
		"violated_when = either\n[limit b]\nmetric = noise_pct\nmax = 10 %\n";
	static const char alphabet[] = "[]=:;#%,. \t\n\r\\\"'0159KMGx-\x01\x7f\xff";
	struct xb_rng rng;
	size_t accepted = 0;
	xb_rng_seed(&rng, 7);
	for (int round = 0; round < 20000; round++) {
		char text[sizeof(good)];
		size_t length = sizeof(good) - 1;
		struct xb_limits l;
		struct xb_error error = {0};
		memcpy(text, good, sizeof(good));
		for (size_t edits = xb_rng_below(&rng, 4); edits > 0; edits--) {
			size_t at = xb_rng_below(&rng, length), what = xb_rng_below(&rng, 3);
			if (what == 0)
				text[at] = alphabet[xb_rng_below(&rng, sizeof(alphabet) - 1)];
			else if (what == 1)
				length = at + 1;
			else
				memmove(text + at, text + at + 1, --length - at);
			if (length == 0)
				length = 1;
		}
		if (xb_limits_parse(text, length, "l.ini", &l, &error) == 0) {
			accepted++;
			for (size_t i = 0; i < l.count; i++) {
				assert_true(l.limits[i].has_metric);
				assert_true(l.limits[i].has_max || l.limits[i].has_min ||
					    l.limits[i].relation);
			}
			xb_limits_free(&l);
		} else {
			assert_non_null(strstr(error.text, "l.ini:"));
			assert_int_equal(l.count, 0);
		}
	}
	assert_true(accepted > 4000); /* the undamaged quarter at least */
}

static struct xb_config config_of(const char *transports, const char *sizes)
{
	struct xb_config c = {.op = XB_OP_SEND};
	c.benches[0] = XB_BENCH_PINGPONG;
	c.bench_count = 1;
	assert_int_equal(xb_parse_transports(transports, &c, NULL), 0);
	assert_int_equal(xb_parse_sizes(sizes, c.sizes, XB_MAX_SIZES, &c.size_count, NULL), 0);
	return c;
}

static void a_limit_that_matches_nothing_is_an_error(void **state)
{
	(void)state;
	static const struct {
		const char *text, *word;
	} none[] = {
		{"[limit a]\ntransport = ucx\nmetric = latency_us\nmax = 1\n",
		 "called 'ucx'; there are tcp, mpi"},
		{"[limit a]\ntransport = tcp\nmetric = latency_us\nsizes = 4K:8K\nmax = 1\n",
		 "those measured: 1, 8, 64"},
		{"[limit a]\ntransport = tcp\nmetric = bandwidth_MBps\nmin = 1\n", "benchmark bw"},
		{"[limit a]\ntransport = tcp\nmetric = latency_us\nop = read\nmax = 1\n", "op read"},
		{"[limit a]\ntransport = tcp\nmetric = overhead_us\nmax = 1\n",
		 "the others are compared with"},
		{"[limit a]\ntransport = mpi\nmetric = overhead_us\nover = ucx\nmax = 1\n", "called 'ucx'"},
		{"[limit a]\ntransport = tcp\nmetric = latency_us\nwithin = 5 % of median\n",
		 "this run has one pair"},
	};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct xb_limits l;
		struct xb_error error = {0};
		struct xb_config c = config_of("tcp,mpi", "1,8,64");
		assert_int_equal(parse(none[i].text, &l, &error), 0);
		assert_int_equal(xb_limits_match(&l, &c, 1, &error), XB_E_USAGE);
		if (!strstr(error.text, none[i].word) ||
		    !strstr(error.text, "l.ini:1: the limit 'a' matches nothing"))
			fail_msg("case %zu: '%s'", i, error.text);
		xb_limits_free(&l);
		xb_config_free(&c);
	}
}

static void the_run_measures_what_the_limits_speak_of(void **state)
{
	(void)state;
	struct xb_limits l;
	struct xb_error error;
	struct xb_config c = {.op = XB_OP_SEND};
	assert_int_equal(parse("[run]\ntransports = tcp\nbaseline = tcp\nlaunches = 9:11\n[limit "
			       "a]\ntransport = tcp\nmetric "
			       "= latency_us\n"
			       "sizes = 0,8:32\nmax = 9\n[limit b]\ntransport = tcp\nmetric = "
			       "bandwidth_MBps\nsizes = 1M\n"
			       "min = 1\n",
			       &l, &error),
			 0);
	assert_int_equal(xb_limits_apply(&l, 0, &c, &error), 0);
	assert_int_equal(c.transport_count, 1);
	assert_string_equal(c.baseline, "tcp"); /* an option without a parser of its own */
	assert_int_equal(c.launches_min, 9);
	assert_int_equal(c.bench_count, 2);
	assert_int_equal(c.size_count, 5); /* 0 8 16 32 1M */
	assert_int_equal(c.sizes[0], 0);
	assert_int_equal(c.sizes[4], 1048576);
	assert_int_equal(xb_limits_match(&l, &c, 1, &error), 0);
	xb_config_free(&c);
	/* what the command line says stands */
	c = config_of("null", "8");
	uint64_t given = 0;
	for (size_t i = 0; i < xb_option_count; i++)
		if (!strcmp(xb_options[i].name, "transports") || !strcmp(xb_options[i].name, "sizes"))
			given |= UINT64_C(1) << i;
	assert_int_equal(xb_limits_apply(&l, given, &c, &error), 0);
	assert_string_equal(c.transports[0].name, "null");
	assert_int_equal(c.size_count, 1);
	xb_config_free(&c);
	xb_limits_free(&l);
	/* an option of [run] that is wrong has its line */
	assert_int_equal(parse("[run]\nlaunches = 0\n[limit a]\nmetric = noise_pct\nmax = 5\n", &l, &error),
			 0);
	c = (struct xb_config){0};
	assert_int_equal(xb_limits_apply(&l, 0, &c, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "l.ini:2: launches: '0' is not allowed"));
	xb_config_free(&c);
	xb_limits_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_file_is_understood),
		cmocka_unit_test(values_are_converted_to_the_unit_of_the_metric),
		cmocka_unit_test(what_is_wrong_is_named_with_its_line),
		cmocka_unit_test(long_lines_zeros_and_large_files_are_refused),
		cmocka_unit_test(damaged_files_do_no_harm),
		cmocka_unit_test(a_limit_that_matches_nothing_is_an_error),
		cmocka_unit_test(the_run_measures_what_the_limits_speak_of),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* From blocks to headlines, overheads and findings: worked examples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "report_fixture.h"

#define close_to(a, b) assert_true(fabs((a) - (b)) < 1e-8) /* ten digits */

static struct fixture f;

static void the_headline_is_the_median_of_launch_medians_with_ranked_limits(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
	/* three blocks a launch; their medians are 10, 20 ... 90 us */
	for (unsigned l = 0; l < 9; l++)
		for (unsigned round = 0; round < 3; round++)
			add_block(r, 0, XB_BENCH_PINGPONG, 8, l, round,
				  (l + 1) * 10000.0 + (round - 1.0) * 1000.0);
	launches_done(r, 9);
	json_t *d = xb_results_document(r), *result = find_result(d, "tcp", "pingpong", 8);
	close_to(number_at(result, "latency_us", "median"), 50);
	close_to(number_at(result, "latency_us", "ci_low"), 20); /* n = 9: ranks 2 and 8 */
	close_to(number_at(result, "latency_us", "ci_high"), 80);
	close_to(number_at(result, "launches", NULL), 9);
	close_to(number_at(result, "rounds", NULL), 27);
	close_to(number_at(result, "iterations", NULL), 27);
	close_to(number_at(result, "spread_us", "within_launch"), 2); /* of -1, 0, +1: third minus first */
	close_to(number_at(result, "spread_us", "between_launches"), 40); /* of 10 ... 90: 7th minus 3rd */
	close_to(number_at(result, "bandwidth_MBps", "median"), 8.0 / 50);
	close_to(number_at(result, "bandwidth_MBps", "ci_low"), 8.0 / 80);
	close_to(number_at(result, "bandwidth_MBps", "ci_high"), 8.0 / 20);
	close_to(json_number_value(json_array_get(json_object_get(result, "launch_medians"), 2)), 30);
	json_decref(d);
	fixture_end(&f);
}

static void an_overhead_is_the_median_over_launches_of_paired_differences(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp,mpi:tcp -s 8");
	for (unsigned l = 0; l < 7; l++) {
		double drift = l * 5000.0; /* common to both: it cancels */
		for (unsigned round = 0; round < 3; round++) {
			add_block(r, 0, XB_BENCH_PINGPONG, 8, l, round, 4000.0 + drift);
			add_block(r, 1, XB_BENCH_PINGPONG, 8, l, round,
				  6000.0 + drift + l * 100.0 + (round - 1.0) * 700.0);
		}
	}
	launches_done(r, 7);
	json_t *d = xb_results_document(r), *c = find_comparison(d, "tcp", "mpi:tcp", 8);
	close_to(number_at(c, "overhead_us", "median"), 2.3);
	close_to(number_at(c, "overhead_us", "ci_low"), 2.0);
	close_to(number_at(c, "overhead_us", "ci_high"), 2.6);
	close_to(number_at(c, "overhead_pct", NULL), 100 * 2.3 / 19.0);
	assert_true(json_is_true(json_object_get(c, "distinguishable")));
	assert_true(json_is_true(json_object_get(c, "baseline")));
	assert_true(json_is_true(json_object_get(c, "adjacent")));
	close_to(number_at(c, "launches", NULL), 7);
	json_decref(d);
	fixture_end(&f);
}

static void only_rounds_that_both_have_are_paired(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp,ucx:tcp -s 8");
	for (unsigned l = 0; l < 6; l++) {
		for (unsigned round = 0; round < 4; round++)
			add_block(r, 0, XB_BENCH_PINGPONG, 8, l, round, 1000.0 + round * 100.0);
		if (l == 5)
			break; /* the last launch has nothing to pair */
		add_block(r, 1, XB_BENCH_PINGPONG, 8, l, 3, 1350.0);
		add_block(r, 1, XB_BENCH_PINGPONG, 8, l, 9, 99999.0);
	}
	launches_done(r, 6);
	json_t *d = xb_results_document(r), *c = find_comparison(d, "tcp", "ucx:tcp", 8);
	close_to(number_at(c, "overhead_us", "median"), 0.05);
	close_to(number_at(c, "rounds", NULL), 5);
	close_to(number_at(c, "launches", NULL), 5);
	/* the block medians of both are listed by the same rounds: 0, 1, 2, 3, 9 */
	json_t *lower =
		json_array_get(json_object_get(find_result(d, "tcp", "pingpong", 8), "block_medians"), 0);
	json_t *upper =
		json_array_get(json_object_get(find_result(d, "ucx:tcp", "pingpong", 8), "block_medians"), 0);
	assert_int_equal(json_array_size(lower), 5);
	assert_int_equal(json_array_size(upper), 5);
	close_to(json_number_value(json_array_get(lower, 3)), 1.3);
	close_to(json_number_value(json_array_get(upper, 3)), 1.35);
	assert_true(json_is_null(json_array_get(lower, 4)));
	assert_true(json_is_null(json_array_get(upper, 0)));
	json_decref(d);
	fixture_end(&f);
}

static void fewer_than_six_launches_give_no_interval_and_no_judgement(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp,mpi:tcp -s 8");
	add_launches(r, 0, 8, (double[]){1000, 1001, 1002, 1003, 1004}, 5);
	add_launches(r, 1, 8, (double[]){9000, 9001, 9002, 9003, 9004}, 5);
	launches_done(r, 5);
	xb_results_stopped_by(r, "fixed");
	xb_results_conclude(r);
	json_t *d = xb_results_document(r), *c = find_comparison(d, "tcp", "mpi:tcp", 8);
	close_to(number_at(c, "overhead_us", "median"), 8);
	assert_true(json_is_null(json_object_get(json_object_get(c, "overhead_us"), "ci_low")));
	assert_true(json_is_false(json_object_get(c, "distinguishable")));
	assert_non_null(find_finding(d, "too-few-launches", NULL));
	json_decref(d);
	fixture_end(&f);
}

static void an_interval_with_zero_in_it_is_not_distinguishable(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp,tcp,label=again,tcp,label=faster -s 8");
	add_launches(r, 0, 8, (double[]){5000, 5000, 5000, 5000, 5000, 5000}, 6);
	add_launches(r, 1, 8, (double[]){5100, 5100, 5100, 5100, 5100, 4999}, 6);
	add_launches(r, 2, 8, (double[]){4100, 4200, 4300, 4400, 4500, 4999}, 6);
	launches_done(r, 6);
	json_t *d = xb_results_document(r), *c = find_comparison(d, "tcp", "again", 8);
	close_to(number_at(c, "overhead_us", "ci_low"), -0.001);
	assert_true(json_is_false(json_object_get(c, "distinguishable")));
	c = find_comparison(d, "tcp", "faster", 8);
	close_to(number_at(c, "overhead_us", "ci_high"), -0.001);
	assert_true(json_is_true(json_object_get(c, "distinguishable")));
	json_decref(d);
	fixture_end(&f);
}

static void all_pairs_are_compared_and_the_baseline_is_always_the_lower(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp,ucx:tcp,mpi:ucx --baseline ucx:tcp -s 8");
	for (size_t t = 0; t < 3; t++)
		add_launches(r, t, 8, (double[]){1000.0 * (double)(t + 1), 1000.0 * (double)(t + 1)}, 2);
	launches_done(r, 2);
	json_t *d = xb_results_document(r);
	assert_int_equal(json_array_size(json_object_get(d, "comparisons")), 3);
	close_to(number_at(find_comparison(d, "ucx:tcp", "tcp", 8), "overhead_us", "median"), -1);
	close_to(number_at(find_comparison(d, "ucx:tcp", "mpi:ucx", 8), "overhead_us", "median"), 1);
	close_to(number_at(find_comparison(d, "tcp", "mpi:ucx", 8), "overhead_us", "median"), 2);
	assert_true(json_is_false(json_object_get(find_comparison(d, "tcp", "mpi:ucx", 8), "baseline")));
	assert_string_equal(member_text(d, "baseline"), "ucx:tcp");
	json_decref(d);
	fixture_end(&f);
}

static const char *below(json_t *document, const char *upper)
{
	size_t i;
	json_t *item;
	json_array_foreach(
		json_object_get(document, "comparisons"), i,
		item) if (strcmp(member_text(item, "upper"), upper) == 0 &&
			  json_is_true(json_object_get(item, "adjacent"))) return member_text(item, "lower");
	return "";
}

static void the_layer_below_is_the_one_the_path_names(void **state)
{
	(void)state;
	struct xb_results *r =
		fixture_begin(&f, "-t tcp,ofi:tcp,ucx:tcp,mpi:tcp,mpi:ofi,mpi:shm,tcp,label=again -s 8");
	for (size_t t = 0; t < 7; t++)
		add_launches(r, t, 8, (double[]){1000}, 1);
	launches_done(r, 1);
	json_t *d = xb_results_document(r);
	assert_string_equal(below(d, "ofi:tcp"), "tcp");
	assert_string_equal(below(d, "ucx:tcp"), "tcp"); /* and not ofi:tcp, which is beside it */
	assert_string_equal(below(d, "mpi:tcp"), "tcp");
	assert_string_equal(below(d, "mpi:ofi"), "ofi:tcp");
	assert_string_equal(below(d, "mpi:shm"), "ucx:tcp"); /* nothing named: the nearest lower layer */
	assert_string_equal(below(d, "again"), "mpi:shm"); /* nothing lower: the one before it */
	json_decref(d);
	fixture_end(&f);
}

static void an_unfinished_launch_counts_for_nothing(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
	for (unsigned l = 0; l < 2; l++) {
		add_block(r, 0, XB_BENCH_PINGPONG, 8, l, 0, 1000.0);
		xb_results_launch_done(r, l);
	}
	for (unsigned round = 0; round < 5; round++)
		add_block(r, 0, XB_BENCH_PINGPONG, 8, 2, round, 77777.0);
	json_t *d = xb_results_document(r), *result = find_result(d, "tcp", "pingpong", 8);
	close_to(number_at(result, "launches", NULL), 2);
	close_to(number_at(result, "iterations", NULL), 2);
	close_to(number_at(result, "latency_us", "max"), 1);
	assert_true(json_is_true(json_object_get(d, "partial")));
	assert_true(json_is_null(json_object_get(result, "stopped_by")));
	json_decref(d);
	/* without any whole launch, what there is is better than nothing: it has no interval anyway */
	fixture_end(&f);
	r = fixture_begin(&f, "-t tcp -s 8");
	add_block(r, 0, XB_BENCH_PINGPONG, 8, 0, 0, 5000.0);
	d = xb_results_document(r);
	close_to(number_at(find_result(d, "tcp", "pingpong", 8), "latency_us", "median"), 5);
	close_to(number_at(find_result(d, "tcp", "pingpong", 8), "latency_us", "max"), 5);
	close_to(number_at(d, "launches", NULL), 0);
	json_decref(d);
	fixture_end(&f);
}

static void convergence_needs_the_least_launches_and_narrow_intervals_everywhere(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp,mpi:tcp -s 8,64 --launches 7:25 --ci 2");
	double tight[] = {10000, 10010, 10020, 10030, 10040, 10050, 10060, 10000};
	double upper[] = {20000, 20010, 20020, 20030, 20040, 20050, 20060, 20000};
	for (size_t size = 8; size <= 64; size += 56) {
		add_launches(r, 0, size, tight, 7);
		add_launches(r, 1, size, upper, 7);
	}
	launches_done(r, 6);
	assert_int_equal(xb_results_converged(r), 0); /* six launches */
	launches_done(r, 7);
	assert_int_equal(xb_results_converged(r), 1);
	fixture_end(&f);
	/* without an interval nothing is known, however alike the launches are */
	r = fixture_begin(&f, "-t tcp -s 8 --launches 3:5");
	add_launches(r, 0, 8, (double[]){10000, 10000, 10000, 10000, 10000}, 5);
	launches_done(r, 5);
	assert_int_equal(xb_results_converged(r), 0);
	fixture_end(&f);
	/* one size of the upper one is spread by +-300 ns: 3 % of the lower's 10 us, though 1.5 % of its own
	 * 20 us */
	r = fixture_begin(&f, "-t tcp,mpi:tcp -s 8,64 --launches 7:25 --ci 2");
	double spread[] = {19700, 19800, 19900, 20000, 20100, 20200, 20300};
	for (size_t size = 8; size <= 64; size += 56) {
		add_launches(r, 0, size, tight, 7);
		add_launches(r, 1, size, size == 8 ? upper : spread, 7);
	}
	launches_done(r, 7);
	assert_int_equal(xb_results_converged(r), 0);
	/* a transport that no longer runs is not waited for */
	xb_results_transport_status(r, 1, "failed", "gone");
	assert_int_equal(xb_results_converged(r), 1);
	fixture_end(&f);
}

static void a_narrow_difference_does_not_hide_a_wide_headline(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp,mpi:tcp -s 8 --launches 7:25 --ci 2");
	double drift[] = {8000, 9000, 10000, 11000, 12000, 13000, 14000}, above[7];
	for (int l = 0; l < 7; l++)
		above[l] = drift[l] + 500;
	add_launches(r, 0, 8, drift, 7);
	add_launches(r, 1, 8, above, 7);
	launches_done(r, 7);
	assert_int_equal(xb_results_converged(r), 0);
	xb_results_stopped_by(r, "time");
	xb_results_conclude(r);
	json_t *d = xb_results_document(r), *finding = find_finding(d, "not-converged", "tcp");
	assert_non_null(finding);
	close_to(number_at(finding, "size", NULL), 8);
	assert_non_null(strstr(member_text(finding, "text"), "--time"));
	/* the difference itself is exact */
	close_to(number_at(find_comparison(d, "tcp", "mpi:tcp", 8), "overhead_us", "ci_low"), 0.5);
	assert_true(
		json_is_true(json_object_get(find_comparison(d, "tcp", "mpi:tcp", 8), "distinguishable")));
	/* and the headline is as noisy as it looks: the interval's half-width is 27 % */
	const char *noisy = member_text(find_finding(d, "noisy", "tcp"), "text");
	assert_non_null(
		strstr(noisy, "spreads over up to 36 % of the median")); /* of 8 ... 14: 13 - 9, of 11 */
	assert_non_null(strstr(noisy, "interval is up to +-27 %"));
	json_decref(d);
	fixture_end(&f);
}

static void the_first_failure_wins_and_decides_the_exit_status(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp,mpi:tcp -s 8");
	json_t *d = xb_results_document(r);
	assert_int_equal(xb_results_exit_status(d), 0);
	json_decref(d);
	xb_results_finding(r, "invalid", "wrong-path", "tcp", NULL, SIZE_MAX, "asked this; found that");
	d = xb_results_document(r);
	assert_int_equal(xb_results_exit_status(d), 3);
	json_decref(d);
	xb_results_transport_status(r, 1, "ok", NULL);
	xb_results_transport_status(r, 1, "failed", "worker 1 was killed by signal 9");
	xb_results_transport_status(r, 1, "unavailable", "later");
	xb_results_transport_status(r, 1, "ok", NULL);
	d = xb_results_document(r);
	json_t *t = json_array_get(json_object_get(d, "transports"), 1);
	assert_string_equal(member_text(t, "status"), "failed");
	assert_string_equal(member_text(t, "error"), "worker 1 was killed by signal 9");
	assert_int_equal(xb_results_exit_status(d), 4);
	json_decref(d);
	fixture_end(&f);
}

static void a_finding_is_kept_once(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
	xb_results_finding(r, "warning", "noise-detours", NULL, NULL, SIZE_MAX, "first");
	xb_results_finding(r, "warning", "noise-detours", NULL, NULL, SIZE_MAX, "second");
	xb_results_finding(r, "warning", "noise-detours", "tcp", NULL, SIZE_MAX, "other label");
	xb_results_finding(r, "warning", "noise-detours", "tcp", NULL, 0, "other size");
	xb_results_finding(r, "warning", "noise-detours", "tcp", "bw", 0, "other benchmark");
	json_t *d = xb_results_document(r);
	assert_int_equal(json_array_size(json_object_get(d, "findings")), 4);
	assert_string_equal(member_text(find_finding(d, "noise-detours", ""), "text"), "first");
	json_decref(d);
	fixture_end(&f);
}

static void unverified_payload_is_not_compared_but_null_may_be(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t null,tcp,ucx:tcp -s 0,8");
	struct xb_block_record b = {.iterations = 1, .median_ns = 50, .imposed_delay_ns = NAN};
	for (size_t t = 0; t < 3; t++)
		for (size_t s = 0; s <= 8; s += 8) {
			b.transport = t;
			b.size_bytes = s;
			b.verified = t == 1 && s > 0;
			xb_results_add_block(r, &b);
		}
	launches_done(r, 1);
	xb_results_conclude(r);
	json_t *d = xb_results_document(r);
	assert_non_null(find_comparison(d, "null", "tcp", 8));
	assert_null(find_comparison(d, "null", "ucx:tcp", 8));
	assert_null(find_comparison(d, "tcp", "ucx:tcp", 8));
	assert_non_null(find_comparison(d, "tcp", "ucx:tcp", 0)); /* no bytes, nothing to verify */
	assert_true(json_is_true(json_object_get(find_result(d, "tcp", "pingpong", 8), "verified")));
	assert_true(json_is_false(json_object_get(find_result(d, "ucx:tcp", "pingpong", 8), "verified")));
	assert_true(json_is_null(json_object_get(find_result(d, "null", "pingpong", 8), "verified")));
	assert_non_null(find_finding(d, "not-verified", "ucx:tcp"));
	assert_null(find_finding(d, "not-verified", "tcp"));
	assert_null(find_finding(d, "not-verified", "null"));
	json_decref(d);
	fixture_end(&f);
}

static void rates_follow_from_the_time_per_message(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp -s 1K -b pingpong,bw,bibw");
	add_block(r, 0, XB_BENCH_PINGPONG, 1024, 0, 0, 4096.0);
	add_block(r, 0, XB_BENCH_BW, 1024, 0, 0, 512.0);
	add_block(r, 0, XB_BENCH_BIBW, 1024, 0, 0, 512.0);
	launches_done(r, 1);
	json_t *d = xb_results_document(r);
	close_to(number_at(find_result(d, "tcp", "pingpong", 1024), "bandwidth_MBps", "median"), 250);
	assert_true(
		json_is_null(json_object_get(find_result(d, "tcp", "pingpong", 1024), "message_rate_Mps")));
	close_to(number_at(find_result(d, "tcp", "bw", 1024), "bandwidth_MBps", "median"), 2000);
	close_to(number_at(find_result(d, "tcp", "bw", 1024), "message_rate_Mps", NULL), 1 / 0.512);
	/* one message each way in that time */
	close_to(number_at(find_result(d, "tcp", "bibw", 1024), "bandwidth_MBps", "median"), 4000);
	close_to(number_at(find_result(d, "tcp", "bibw", 1024), "message_rate_Mps", NULL), 2 / 0.512);
	json_decref(d);
	fixture_end(&f);
}

static void far_quantiles_need_ten_samples_beyond_them(void **state)
{
	(void)state;
	static struct xb_histogram h; /* large */
	static const struct {
		unsigned samples;
		const char *given, *withheld;
	} cases[] = {{99, "p50", "p90"},    {100, "p90", "p99"},   {999, "p90", "p99"},
		     {1000, "p99", "p999"}, {9999, "p99", "p999"}, {10000, "p999", NULL}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
		xb_hist_clear(&h);
		for (unsigned v = 0; v < cases[i].samples; v++)
			xb_hist_add(&h, 1000 + v % 100);
		struct xb_block_record b = {.size_bytes = 8,
					    .iterations = cases[i].samples,
					    .median_ns = 1050,
					    .histogram = &h,
					    .verified = 1,
					    .imposed_delay_ns = NAN};
		xb_results_add_block(r, &b);
		launches_done(r, 1);
		json_t *d = xb_results_document(r), *result = find_result(d, "tcp", "pingpong", 8);
		assert_true(isfinite(number_at(result, "latency_us", cases[i].given)));
		if (cases[i].withheld != NULL)
			assert_true(json_is_null(
				json_object_get(json_object_get(result, "latency_us"), cases[i].withheld)));
		json_decref(d);
		fixture_end(&f);
	}
}

static void the_distribution_can_be_recomputed_from_the_document(void **state)
{
	(void)state;
	static struct xb_histogram h, again; /* large */
	struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
	struct xb_rng rng;
	xb_rng_seed(&rng, 9);
	for (unsigned l = 0; l < 3; l++) {
		xb_hist_clear(&h);
		for (int i = 0; i < 5000; i++)
			xb_hist_add(&h, 3000 + xb_rng_below(&rng, 9000));
		struct xb_block_record b = {.size_bytes = 8,
					    .launch = l,
					    .iterations = 5000,
					    .median_ns = xb_hist_quantile(&h, 0.5),
					    .histogram = &h,
					    .verified = 1,
					    .imposed_delay_ns = NAN};
		xb_results_add_block(r, &b);
		xb_results_launch_done(r, l);
	}
	json_t *d = xb_results_document(r), *result = find_result(d, "tcp", "pingpong", 8), *bucket;
	size_t i;
	xb_hist_clear(&again);
	json_array_foreach(json_object_get(result, "histogram_ns"), i, bucket)
	{
		uint64_t low = (uint64_t)json_integer_value(json_array_get(bucket, 0));
		for (json_int_t n = json_integer_value(json_array_get(bucket, 1)); n > 0; n--)
			xb_hist_add(&again, low);
	}
	assert_int_equal(again.count, 15000);
	close_to(number_at(result, "iterations", NULL), 15000);
	const char *const names[] = {"p50", "p90", "p99", "p999"};
	const double quantiles[] = {0.5, 0.9, 0.99, 0.999};
	for (int q = 0; q < 4; q++) {
		double told = number_at(result, "latency_us", names[q]) * 1000;
		assert_true(fabs(xb_hist_quantile(&again, quantiles[q]) - told) <= told / 64);
	}
	json_decref(d);
	fixture_end(&f);
}

static void a_timer_that_drifts_is_a_finding(void **state)
{
	(void)state;
	const double drifts[] = {NAN, 3.0, -150.0};
	for (int i = 0; i < 3; i++) {
		struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
		xb_results_timer(r, "tsc", 16, 1, drifts[i]);
		xb_results_conclude(r);
		json_t *d = xb_results_document(r);
		assert_int_equal(find_finding(d, "timer-drift", NULL) != NULL, i == 2);
		json_decref(d);
		fixture_end(&f);
	}
}

static void preempted_blocks_are_a_finding(void **state)
{
	(void)state;
	for (long per_block = 0; per_block <= 3; per_block += 3) {
		struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
		for (unsigned round = 0; round < 8; round++) {
			struct xb_block_record b = {.size_bytes = 8,
						    .round = round,
						    .iterations = 10,
						    .median_ns = 1000,
						    .verified = 1,
						    .imposed_delay_ns = NAN,
						    .voluntary_switches = 1,
						    .involuntary_switches = round < 3 ? per_block : 0};
			xb_results_add_block(r, &b);
		}
		launches_done(r, 1);
		xb_results_conclude(r);
		json_t *d = xb_results_document(r), *result = find_result(d, "tcp", "pingpong", 8);
		close_to(number_at(result, "context_switches", "involuntary"), 3.0 * (double)per_block);
		close_to(number_at(result, "context_switches", "voluntary"), 8);
		close_to(number_at(result, "context_switches", "disturbed_blocks"), (double)per_block);
		assert_int_equal(find_finding(d, "context-switches", "tcp") != NULL, per_block > 0);
		json_decref(d);
		fixture_end(&f);
	}
}

static void an_injected_delay_is_told_with_the_result(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
	for (unsigned l = 0; l < 3; l++) {
		struct xb_block_record b = {.size_bytes = 8,
					    .launch = l,
					    .iterations = 1,
					    .median_ns = 9000,
					    .verified = 1,
					    .imposed_delay_ns = 2000.0 + l * 10.0};
		xb_results_add_block(r, &b);
	}
	launches_done(r, 3);
	json_t *d = xb_results_document(r),
	       *fault = json_object_get(find_result(d, "tcp", "pingpong", 8), "fault");
	close_to(number_at(fault, "imposed_delay_us", "median"), 2.01);
	close_to(number_at(fault, "imposed_delay_us", "min"), 2.00);
	close_to(number_at(fault, "imposed_delay_us", "max"), 2.02);
	json_decref(d);
	fixture_end(&f);
}

static void one_host_described_by_many_is_one_host(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
	const char *const hosts[] = {
		"{\"name\":\"a\",\"boot_id\":\"1\",\"cpus_used\":[0,1]}",
		"{\"name\":\"a\",\"boot_id\":\"1\",\"cpus_used\":[1,2],\"kernel\":\"6\"}",
		"{\"name\":\"b\",\"boot_id\":\"1\",\"cpus_used\":[0]}", "[]"};
	for (int i = 0; i < 4; i++) {
		json_t *host = json_loads(hosts[i], 0, NULL);
		xb_results_host(r, host);
		json_decref(host);
	}
	json_t *d = xb_results_document(r), *list = json_object_get(d, "hosts");
	assert_int_equal(json_array_size(list), 2);
	assert_int_equal(json_array_size(json_object_get(json_array_get(list, 0), "cpus_used")), 3);
	assert_string_equal(member_text(json_array_get(list, 0), "kernel"), "6");
	json_decref(d);
	fixture_end(&f);
}

static void nothing_is_lost_of_odd_input(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
	xb_results_started(r, NULL, UINT64_MAX); /* a seed beyond JSON's integers */
	xb_results_timer(r, "tsc", 16.5, 1.0, NAN);
	xb_results_transport_start_ms(r, 0, 30);
	xb_results_transport_start_ms(r, 0, 10);
	xb_results_transport_start_ms(r, 0, 20);
	xb_results_controller(r, 0.01, 5.0, 3);
	xb_results_transport_status(r, 0, "failed", "it said: \xff\xfe \x1b[31m");
	/* what belongs to no cell is left out */
	add_block(r, 7, XB_BENCH_PINGPONG, 8, 0, 0, 1.0);
	add_block(r, 0, XB_BENCH_PINGPONG, 9, 0, 0, 1.0);
	add_block(r, 0, (enum xb_bench)9, 8, 0, 0, 1.0);
	struct xb_block_record bad = {.size_bytes = 8, .median_ns = NAN};
	xb_results_add_block(r, &bad);
	xb_results_launch_done(r, UINT32_MAX);
	json_t *d = xb_results_document(r);
	assert_non_null(d);
	assert_string_equal(member_text(d, "seed"), "18446744073709551615");
	assert_true(json_is_null(json_object_get(json_object_get(d, "timer"), "drift_ppm")));
	json_t *t = json_array_get(json_object_get(d, "transports"), 0);
	assert_string_equal(member_text(t, "error"), "it said: ?? \x1b[31m");
	close_to(number_at(t, "start_ms", "median"), 20);
	close_to(number_at(t, "start_ms", "min"), 10);
	close_to(number_at(t, "start_ms", "max"), 30);
	close_to(number_at(d, "controller", "strangers"), 3);
	assert_int_equal(json_array_size(json_object_get(d, "results")), 0);
	json_decref(d);
	fixture_end(&f);
}

static void without_results_every_call_is_harmless(void **state)
{
	(void)state;
	struct xb_block_record b = {.size_bytes = 8};
	xb_results_started(NULL, "now", 1);
	xb_results_timer(NULL, "tsc", 1, 1, 1);
	xb_results_host(NULL, NULL);
	xb_results_transport_status(NULL, 0, "ok", NULL);
	xb_results_transport_description(NULL, 0, "", "", "", "", XB_LAYER_MPI);
	xb_results_transport_start_ms(NULL, 0, 1);
	xb_results_evidence(NULL, 0, "h", NULL, NULL, 0, 0, 0);
	xb_results_add_block(NULL, &b);
	xb_results_finding(NULL, "info", "x", NULL, NULL, SIZE_MAX, "x");
	xb_results_controller(NULL, 0, 0, 0);
	xb_results_launch_done(NULL, 0);
	xb_results_link_rate(NULL, 0, "h", "eth0", 1);
	xb_results_stopped_by(NULL, "ci");
	xb_results_conclude(NULL);
	assert_int_equal(xb_results_converged(NULL), 0);
	xb_results_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_headline_is_the_median_of_launch_medians_with_ranked_limits),
		cmocka_unit_test(an_overhead_is_the_median_over_launches_of_paired_differences),
		cmocka_unit_test(only_rounds_that_both_have_are_paired),
		cmocka_unit_test(fewer_than_six_launches_give_no_interval_and_no_judgement),
		cmocka_unit_test(an_interval_with_zero_in_it_is_not_distinguishable),
		cmocka_unit_test(all_pairs_are_compared_and_the_baseline_is_always_the_lower),
		cmocka_unit_test(the_layer_below_is_the_one_the_path_names),
		cmocka_unit_test(an_unfinished_launch_counts_for_nothing),
		cmocka_unit_test(convergence_needs_the_least_launches_and_narrow_intervals_everywhere),
		cmocka_unit_test(a_narrow_difference_does_not_hide_a_wide_headline),
		cmocka_unit_test(the_first_failure_wins_and_decides_the_exit_status),
		cmocka_unit_test(a_finding_is_kept_once),
		cmocka_unit_test(unverified_payload_is_not_compared_but_null_may_be),
		cmocka_unit_test(rates_follow_from_the_time_per_message),
		cmocka_unit_test(far_quantiles_need_ten_samples_beyond_them),
		cmocka_unit_test(the_distribution_can_be_recomputed_from_the_document),
		cmocka_unit_test(a_timer_that_drifts_is_a_finding),
		cmocka_unit_test(preempted_blocks_are_a_finding),
		cmocka_unit_test(an_injected_delay_is_told_with_the_result),
		cmocka_unit_test(one_host_described_by_many_is_one_host),
		cmocka_unit_test(nothing_is_lost_of_odd_input),
		cmocka_unit_test(without_results_every_call_is_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

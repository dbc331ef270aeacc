/* SPDX-License-Identifier: BSD-3-Clause */
/* From blocks to headlines, overheads, evidence and findings: worked examples. */
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

static json_t *carried(json_t *document, size_t transport)
{
	return json_object_get(json_array_get(json_object_get(document, "transports"), transport), "carried");
}

static void evidence_accumulates_and_names_the_carrier(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp,tcp:eth1,label=eth -s 8");
	for (int i = 0; i < 10; i++) {
		xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 200000);
		xb_results_evidence(r, 0, "node1", "lo", "loopback", 208000, 208000, 0);
		xb_results_evidence(r, 0, "node1", "eth0", "netdev", 100, 90, 0);
	}
	/* two hosts: each sends its own half */
	xb_results_evidence(r, 1, "node1", NULL, NULL, 0, 0, 1000000);
	xb_results_evidence(r, 1, "node2", NULL, NULL, 0, 0, 1000000);
	xb_results_evidence(r, 1, "node1", "eth1", "netdev", 1050000, 1040000, 0);
	xb_results_evidence(r, 1, "node2", "eth1", "netdev", 1040000, 1050000, 0);
	xb_results_transport_description(r, 1, "tcp on eth1", "Linux TCP", "6", "eth1", XB_LAYER_FABRIC);
	xb_results_conclude(r);
	json_t *d = xb_results_document(r);
	json_t *evidence = json_object_get(json_array_get(json_object_get(d, "transports"), 0), "evidence");
	assert_int_equal(json_array_size(evidence), 2);
	close_to(number_at(json_array_get(evidence, 0), "tx_bytes", NULL), 2080000);
	close_to(number_at(json_array_get(evidence, 0), "share_of_payload", NULL), 1.04);
	assert_string_equal(json_string_value(json_array_get(json_object_get(carried(d, 0), "devices"), 0)),
			    "lo");
	assert_string_equal(member_text(carried(d, 0), "text"), "lo carried 104 % of the payload");
	assert_int_equal(json_array_size(json_object_get(carried(d, 1), "devices")), 1);
	assert_string_equal(member_text(carried(d, 1), "text"), "eth1 carried 105 % of the payload");
	assert_int_equal(json_array_size(json_object_get(d, "findings")), 0);
	json_decref(d);
	fixture_end(&f);
}

struct path_case {
	const char *arguments, *resolved, *device;
	enum xb_layer layer;
	const char *counted; /* device with all the payload, or NULL: no device saw it */
	const char *code, *severity;
};

static void the_path_taken_is_held_against_the_path_asked_for(void **state)
{
	(void)state;
	static const struct path_case cases[] = {
		/* asked for shared memory, or for nothing in particular: worth knowing */
		{"-t mpi:shm -s 8", "ob1/vader", "", XB_LAYER_MPI, NULL, "shared-memory", "info"},
		{"-t ucx:posix -s 8", "posix", "", XB_LAYER_MIDDLEWARE, NULL, "shared-memory", "info"},
		{"-t mpi -s 8", "ob1/vader", "", XB_LAYER_MPI, NULL, "shared-memory", "info"},
		/* a fabric whose library uses shared memory within a host, and says so */
		{"-t ofi:psm2 -s 8", "psm2 self,shm", "", XB_LAYER_MIDDLEWARE, NULL, "shared-memory",
		 "warning"},
		{"-t ofi:psm2 -s 8", "psm2 self,shm", "hfi1_0", XB_LAYER_MIDDLEWARE, NULL, "shared-memory",
		 "warning"},
		/* a network that saw nothing */
		{"-t mpi:tcp -s 8", "ob1/tcp", "", XB_LAYER_MPI, NULL, "wrong-device", "invalid"},
		{"-t ucx:tcp -s 8", "tcp/lo self/memory", "", XB_LAYER_MIDDLEWARE, NULL, "wrong-device",
		 "invalid"},
		{"-t tcp -s 8", "tcp on lo", "lo", XB_LAYER_FABRIC, NULL, "wrong-device", "invalid"},
		/* another device than the one that should have */
		{"-t tcp:eth1 -s 8", "tcp on eth1", "eth1", XB_LAYER_FABRIC, "lo", "wrong-device", "invalid"},
		{"-t mpi:shm -s 8", "ob1/vader", "", XB_LAYER_MPI, "lo", "wrong-device", "invalid"},
		/* as it should be */
		{"-t tcp:eth1 -s 8", "tcp on eth1", "eth1", XB_LAYER_FABRIC, "eth1", NULL, NULL},
		{"-t verbs:mlx5_0/1 -s 8", "mlx5_0", "mlx5_0", XB_LAYER_FABRIC, "mlx5_0/1", NULL, NULL},
		{"-t mpi:tcp -s 8", "ob1/tcp", "", XB_LAYER_MPI, "lo", NULL, NULL},
		/* a truth transport moves nothing */
		{"-t null -s 8", "nothing", "", XB_LAYER_TRUTH, NULL, NULL, NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct path_case *c = &cases[i];
		struct xb_results *r = fixture_begin(&f, c->arguments);
		xb_results_transport_description(r, 0, c->resolved, "library", "1", c->device, c->layer);
		xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 5000000);
		xb_results_evidence(r, 0, "node1", "eth9", "netdev", 1000, 1000, 0);
		if (c->counted != NULL)
			xb_results_evidence(r, 0, "node1", c->counted, "netdev", 5100000, 5100000, 0);
		xb_results_conclude(r);
		json_t *d = xb_results_document(r),
		       *finding = json_array_get(json_object_get(d, "findings"), 0);
		if (json_array_size(json_object_get(d, "findings")) != (c->code != NULL) ||
		    (c->code != NULL && (strcmp(member_text(finding, "code"), c->code) != 0 ||
					 strcmp(member_text(finding, "severity"), c->severity) != 0)))
			fail_msg("%s, resolved %s, device '%s', counted on %s: found %s %s", c->arguments,
				 c->resolved, c->device, c->counted ? c->counted : "none",
				 member_text(finding, "severity"), member_text(finding, "code"));
		json_decref(d);
		fixture_end(&f);
	}
}

static void little_payload_proves_nothing(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t mpi:tcp -s 8");
	xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 999999);
	xb_results_conclude(r);
	json_t *d = xb_results_document(r);
	assert_string_equal(member_text(carried(d, 0), "text"), "too little payload to tell");
	assert_int_equal(json_array_size(json_object_get(d, "findings")), 0);
	json_decref(d);
	xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 1);
	d = xb_results_document(r);
	assert_string_equal(member_text(carried(d, 0), "text"), "no device carried it: shared memory");
	json_decref(d);
	fixture_end(&f);
}

static void a_device_with_part_of_the_payload_proves_no_path(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t mpi:tcp -s 8");
	xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 10000000);
	xb_results_evidence(r, 0, "node1", "eth0", "netdev", 2000000, 1, 0);
	xb_results_conclude(r);
	json_t *d = xb_results_document(r);
	assert_string_equal(member_text(carried(d, 0), "text"),
			    "no device carried half of it; eth0 carried 20 %");
	assert_non_null(find_finding(d, "path-unproven", "mpi:tcp"));
	json_decref(d);
	fixture_end(&f);
}

/* The document's word on a device of the second host, and whether the run is said to be on the wrong one. */
static int own_and_wrong(const char *here, const char *there, const char *counted, int *wrong)
{
	struct xb_results *r = fixture_begin(&f, "-t verbs -s 8");
	json_t *entry, *own = NULL;
	size_t i;

	xb_results_transport_description(r, 0, "RC", "libibverbs", "1", here, XB_LAYER_FABRIC);
	xb_results_end(r, 0, "node1", here, "RC", 1);
	xb_results_end(r, 0, "node2", there, "RC", 1);
	xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 10000000);
	xb_results_evidence(r, 0, "node1", "eth0", "netdev", 11000000, 0, 0);
	xb_results_evidence(r, 0, "node2", NULL, NULL, 0, 0, 10000000);
	xb_results_evidence(r, 0, "node2", counted, "rdma", 11000000, 0, 0);
	xb_results_conclude(r);
	json_t *d = xb_results_document(r);
	json_array_foreach(json_object_get(json_array_get(json_object_get(d, "transports"), 0), "evidence"),
			   i, entry) if (!strcmp(member_text(entry, "host"), "node2")) own =
		json_object_get(entry, "own");
	int found = json_is_null(own) ? -1 : json_is_true(own);
	*wrong = find_finding(d, "wrong-device", NULL) != NULL;
	json_decref(d);
	fixture_end(&f);
	return found;
}

static void the_device_of_each_host_is_what_it_says_itself(void **state)
{
	static const struct {
		const char *there, *counted;
		int own, wrong;
	} cases[] = {
		{"eth0", "eth0", 1, 0},		 {"enp94s0", "enp94s0", 1, 0},
		{"enp94s0", "eth0", 0, 1}, /* right on the first host only */
		{"hfi1_0", "hfi1_0/1", 1, 0},	 {"mlx5_0/1", "mlx5_0/1", 1, 0},
		{"mlx5_0:1", "mlx5_0/1", 1, 0},	 {"mlx5_0:1", "mlx5_0/2", 0, 1},
		{"mlx5_1:1", "mlx5_10/1", 0, 1}, {"", "eth1", -1, 0},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int wrong, own = own_and_wrong("eth0", cases[i].there, cases[i].counted, &wrong);
		if (own != cases[i].own || wrong != cases[i].wrong)
			fail_msg("case %zu: own %d, wrong %d", i, own, wrong);
	}
}

/* cxgb4 counts no bytes of RDMA; a software adapter's go by the interface below it. */
static void a_device_that_nothing_counts_proves_no_path(void **state)
{
	(void)state;
	for (int below = 0; below < 2; below++) {
		struct xb_results *r = fixture_begin(&f, "-t verbs:iwp175s0 -s 8");
		xb_results_transport_description(r, 0, "RC on iwp175s0/1", "libibverbs", "1", "iwp175s0/1",
						 XB_LAYER_FABRIC);
		xb_results_end(r, 0, "node1", "iwp175s0/1", "RC", 0);
		xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 5000000);
		if (below)
			xb_results_evidence(r, 0, "node1", "eth0", "netdev", 5100000, 0, 0);
		xb_results_conclude(r);
		json_t *d = xb_results_document(r);
		assert_null(find_finding(d, "wrong-device", NULL));
		assert_int_equal(find_finding(d, "path-unproven", NULL) != NULL, !below);
		assert_string_equal(member_text(carried(d, 0), "text"),
				    below ? "eth0 carried 102 % of the payload"
					  : "not known: iwp175s0/1 keeps no counters of its bytes");
		json_decref(d);
		fixture_end(&f);
	}
}

static void a_bandwidth_above_the_link_rate_cannot_be(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp:eth1 -s 1M -b bw");
	xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 50000000);
	xb_results_evidence(r, 0, "node1", "eth1", "netdev", 51000000, 0, 0);
	xb_results_evidence(r, 0, "node1", "eth2", "netdev", 1000, 0, 0);
	xb_results_link_rate(r, 0, "node1", "eth1", 10000000000u);
	xb_results_link_rate(r, 0, "node1", "eth2", 1000000u); /* carried nothing of it */
	add_block(r, 0, XB_BENCH_BW, 1048576, 0, 0, 840000.0); /* 9.99 Gb/s */
	launches_done(r, 1);
	xb_results_conclude(r);
	json_t *d = xb_results_document(r);
	assert_null(find_finding(d, "exceeds-link-rate", NULL));
	json_decref(d);
	for (unsigned l = 1; l < 4; l++)
		add_block(r, 0, XB_BENCH_BW, 1048576, l, 0, 400000.0);
	launches_done(r, 4);
	xb_results_conclude(r);
	d = xb_results_document(r);
	json_t *finding = find_finding(d, "exceeds-link-rate", "tcp:eth1");
	assert_non_null(finding);
	assert_string_equal(member_text(finding, "severity"), "invalid");
	assert_string_equal(member_text(finding, "text"),
			    "tcp:eth1 bw moved 21.0 Gb/s, but eth1 can carry 10.0 Gb/s at most");
	assert_int_equal(xb_results_exit_status(d), 3);
	json_decref(d);
	fixture_end(&f);
}

static void rails_are_a_limit_together(void **state)
{
	(void)state;
	/* headers make both look like carriers; together they take 20 Gb/s */
	for (int too_fast = 0; too_fast < 2; too_fast++) {
		struct xb_results *r = fixture_begin(&f, "-t ucx -s 1M -b bw");
		xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 50000000);
		xb_results_evidence(r, 0, "node1", "mlx5_0/1", "rdma", 28000000, 0, 0);
		xb_results_evidence(r, 0, "node1", "mlx5_1/1", "rdma", 26000000, 0, 0);
		xb_results_link_rate(r, 0, "node1", "mlx5_0/1", 10000000000u);
		xb_results_link_rate(r, 0, "node1", "mlx5_1/1", 10000000000u);
		add_block(r, 0, XB_BENCH_BW, 1048576, 0, 0, too_fast ? 400000.0 : 441506.0); /* 21, 19 Gb/s */
		launches_done(r, 1);
		xb_results_conclude(r);
		json_t *d = xb_results_document(r), *finding = find_finding(d, "exceeds-link-rate", "ucx");
		assert_int_equal(finding != NULL, too_fast);
		if (finding)
			assert_string_equal(member_text(finding, "text"),
					    "ucx bw moved 21.0 Gb/s, but mlx5_0/1 and mlx5_1/1 can carry "
					    "20.0 Gb/s at most");
		json_decref(d);
		fixture_end(&f);
	}
}

static void ends_with_one_finding_are_gathered_in_it(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t mpi:tcp -s 8");
	xb_results_end_finding(r, "invalid", "wrong-path", "mpi:tcp", "first", 5, 3);
	xb_results_end_finding(r, "invalid", "wrong-path", "mpi:tcp", "second", 5, 4);
	xb_results_end_finding(r, "invalid", "wrong-path", "mpi:tcp", "again", 5, 3);
	json_t *d = xb_results_document(r), *findings = json_object_get(d, "findings"),
	       *expected = json_pack("[[i,i],[i,i]]", 5, 3, 5, 4);
	assert_int_equal(json_array_size(findings), 1);
	assert_string_equal(member_text(json_array_get(findings, 0), "text"), "first");
	assert_true(json_equal(json_object_get(json_array_get(findings, 0), "ends"), expected));
	json_decref(expected);
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
		cmocka_unit_test(evidence_accumulates_and_names_the_carrier),
		cmocka_unit_test(the_path_taken_is_held_against_the_path_asked_for),
		cmocka_unit_test(little_payload_proves_nothing),
		cmocka_unit_test(a_device_with_part_of_the_payload_proves_no_path),
		cmocka_unit_test(the_device_of_each_host_is_what_it_says_itself),
		cmocka_unit_test(a_device_that_nothing_counts_proves_no_path),
		cmocka_unit_test(a_bandwidth_above_the_link_rate_cannot_be),
		cmocka_unit_test(rails_are_a_limit_together),
		cmocka_unit_test(ends_with_one_finding_are_gathered_in_it),
		cmocka_unit_test(a_timer_that_drifts_is_a_finding),
		cmocka_unit_test(preempted_blocks_are_a_finding),
		cmocka_unit_test(an_injected_delay_is_told_with_the_result),
		cmocka_unit_test(one_host_described_by_many_is_one_host),
		cmocka_unit_test(nothing_is_lost_of_odd_input),
		cmocka_unit_test(without_results_every_call_is_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "stats/histogram.h"
#include "stats/stats.h"

static struct xb_histogram h, other; /* large */

static int setup(void **state)
{
	(void)state;
	xb_hist_clear(&h);
	xb_hist_clear(&other);
	return 0;
}

static void buckets_tile_the_range_without_gap(void **state)
{
	(void)state;
	for (size_t b = 0; b + 1 < XB_HIST_BUCKETS; b++) {
		uint64_t low = xb_hist_bucket_low(b), next = xb_hist_bucket_low(b + 1);
		assert_true(low < next);
		assert_int_equal(xb_hist_bucket_of(low), b);
		assert_int_equal(xb_hist_bucket_of(next - 1), b);
	}
	assert_int_equal(xb_hist_bucket_low(XB_HIST_BUCKETS), (uint64_t)1 << 45);
}

static void the_middle_of_a_bucket_is_within_a_128th_of_its_values(void **state)
{
	(void)state;
	for (size_t b = 0; b + 1 < XB_HIST_BUCKETS; b++) {
		double low = (double)xb_hist_bucket_low(b), high = (double)(xb_hist_bucket_low(b + 1) - 1);
		double middle = (low + high) / 2;
		assert_true(fabs(middle - low) <= low / 128);
		assert_true(fabs(middle - high) <= high / 128);
	}
}

static void values_below_128_ns_are_exact(void **state)
{
	(void)state;
	for (uint64_t v = 0; v < 128; v++) {
		assert_int_equal(xb_hist_bucket_low(xb_hist_bucket_of(v)), v);
		assert_int_equal(xb_hist_bucket_low(xb_hist_bucket_of(v) + 1), v + 1);
	}
}

static void too_large_values_go_to_the_last_bucket_and_keep_their_maximum(void **state)
{
	(void)state;
	xb_hist_add(&h, UINT64_MAX);
	xb_hist_add(&h, (uint64_t)1 << 50);
	xb_hist_add(&h, 5);
	assert_int_equal(h.bucket[XB_HIST_BUCKETS - 1], 2);
	assert_true(xb_hist_quantile(&h, 1.0) == (double)UINT64_MAX);
	assert_int_equal(h.min_ns, 5);
}

static void an_empty_histogram_has_no_numbers(void **state)
{
	(void)state;
	assert_true(xb_hist_quantile(&h, 0.5) == 0.0);
	assert_true(xb_hist_mean(&h) == 0.0);
	assert_true(xb_hist_stddev(&h) == 0.0);
	assert_int_equal(h.min_ns, UINT64_MAX);
	assert_int_equal(h.max_ns, 0);
	xb_hist_merge(&h, &other);
	assert_int_equal(h.count, 0);
	assert_int_equal(h.min_ns, UINT64_MAX);
}

static void quantiles_of_a_known_list(void **state)
{
	(void)state;
	for (uint64_t v = 1; v <= 100; v++)
		xb_hist_add(&h, v);
	assert_true(xb_hist_quantile(&h, 0.0) == 1);
	assert_true(xb_hist_quantile(&h, 0.5) == 50);
	assert_true(xb_hist_quantile(&h, 0.505) == 51);
	assert_true(xb_hist_quantile(&h, 0.9) == 90);
	assert_true(xb_hist_quantile(&h, 0.99) == 99);
	assert_true(xb_hist_quantile(&h, 0.07) == 7); /* 0.07 * 100 is a little more than 7 */
	assert_true(xb_hist_quantile(&h, 1.0) == 100);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void quantiles_of_random_values_are_within_the_error_bound(void **state)
{
	(void)state;
	enum { COUNT = 20000 };
	double *values = malloc(COUNT * sizeof(*values));
	struct xb_rng rng;
	xb_rng_seed(&rng, 1);
	for (size_t i = 0; i < COUNT; i++) {
		uint64_t v = (uint64_t)1 << (6 + xb_rng_below(&rng, 30));
		v += xb_rng_next(&rng) % v;
		values[i] = (double)v;
		xb_hist_add(&h, v);
	}
	qsort(values, COUNT, sizeof(*values), compare);
	for (int i = 1; i < 1000; i++) {
		double q = i / 1000.0;
		double exact = xb_quantile(values, COUNT, q), found = xb_hist_quantile(&h, q);
		assert_true(fabs(found - exact) <= exact / 128);
	}
	free(values);
}

static void mean_and_deviation_of_a_known_list(void **state)
{
	(void)state;
	static const uint64_t values[] = {2, 4, 4, 4, 5, 5, 7, 9};
	for (size_t i = 0; i < 8; i++)
		xb_hist_add(&h, values[i]);
	assert_true(fabs(xb_hist_mean(&h) - 5.0) < 1e-12);
	assert_true(fabs(xb_hist_stddev(&h) - sqrt(32.0 / 7.0)) < 1e-12); /* sample, not population */
}

static void equal_values_have_no_deviation(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++)
		xb_hist_add(&h, 1000000007); /* the sums, rounded, give a variance below 0 */
	assert_true(xb_hist_stddev(&h) == 0.0);
}

static void merging_is_adding_all(void **state)
{
	(void)state;
	for (uint64_t v = 1; v <= 50; v++)
		xb_hist_add(&h, v * 1000);
	for (uint64_t v = 51; v <= 100; v++)
		xb_hist_add(&other, v * 1000);
	xb_hist_merge(&h, &other);
	assert_int_equal(h.count, 100);
	assert_int_equal(h.min_ns, 1000);
	assert_int_equal(h.max_ns, 100000);
	assert_true(fabs(xb_hist_mean(&h) - 50500.0) < 1e-9);
	assert_true(fabs(xb_hist_quantile(&h, 0.5) - 50000.0) <= 50000.0 / 128);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_tile_the_range_without_gap),
		cmocka_unit_test(the_middle_of_a_bucket_is_within_a_128th_of_its_values),
		cmocka_unit_test(values_below_128_ns_are_exact),
		cmocka_unit_test_setup(too_large_values_go_to_the_last_bucket_and_keep_their_maximum, setup),
		cmocka_unit_test_setup(an_empty_histogram_has_no_numbers, setup),
		cmocka_unit_test_setup(quantiles_of_a_known_list, setup),
		cmocka_unit_test_setup(quantiles_of_random_values_are_within_the_error_bound, setup),
		cmocka_unit_test_setup(mean_and_deviation_of_a_known_list, setup),
		cmocka_unit_test_setup(equal_values_have_no_deviation, setup),
		cmocka_unit_test_setup(merging_is_adding_all, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

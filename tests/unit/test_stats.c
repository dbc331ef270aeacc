/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "stats/stats.h"

#define close_to(a, b) assert_true(fabs((a) - (b)) < 1e-12)

static void median_of_odd_and_even_counts(void **state)
{
	(void)state;
	close_to(xb_median((double[]){3, 1, 2}, 3), 2);
	close_to(xb_median((double[]){4, 1, 3, 2}, 4), 2.5);
	close_to(xb_median((double[]){7}, 1), 7);
	assert_true(isnan(xb_median(NULL, 0)));
}

static void median_leaves_its_input_alone(void **state)
{
	(void)state;
	double values[] = {3, 1, 2};
	(void)xb_median(values, 3);
	(void)xb_median_interval(values, 3, 0.95);
	close_to(values[0], 3);
	close_to(values[1], 1);
	close_to(values[2], 2);
}

static void median_of_many_and_huge_values(void **state)
{
	(void)state;
	double many[1001];
	for (int i = 0; i < 1001; i++)
		many[i] = 1000 - i;
	close_to(xb_median(many, 1001), 500);
	assert_true(isfinite(xb_median((double[]){1.7e308, 1.7e308}, 2)));
}

static void quantiles_are_nearest_ranks(void **state)
{
	(void)state;
	double ten[] = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
	close_to(xb_quantile(ten, 10, 0.0), 10);
	close_to(xb_quantile(ten, 10, 0.05), 10);
	close_to(xb_quantile(ten, 10, 0.1), 10);
	close_to(xb_quantile(ten, 10, 0.25), 30);
	close_to(xb_quantile(ten, 10, 0.3), 30); /* 0.3 * 10 is not exactly 3 */
	close_to(xb_quantile(ten, 10, 0.7), 70); /* nor 0.7 * 10 exactly 7 */
	close_to(xb_quantile(ten, 10, 0.99), 100);
	close_to(xb_quantile(ten, 10, 1.0), 100);
	assert_true(isnan(xb_quantile(NULL, 0, 0.5)));
}

/* Ranks k of the 95 % interval [x(k), x(n+1-k)], as in tables of confidence intervals for the median: the
 * interval of the highest k whose confidence is at least 95 %, e.g. n = 17: [x(5), x(13)] at 95.1 %, n = 20:
 * [x(6), x(15)] at 95.9 %; for n >= 25 one more than the two-sided 5 % critical value of the sign test. */
static void ranks_of_the_interval_agree_with_published_tables(void **state)
{
	(void)state;
	static const struct {
		size_t n, k;
	} table[] = {{1, 0},   {2, 0},	 {3, 0},   {4, 0},   {5, 0},   {6, 1},	 {7, 1},   {8, 1},
		     {9, 2},   {10, 2},	 {11, 2},  {12, 3},  {13, 3},  {14, 3},	 {15, 4},  {16, 4},
		     {17, 5},  {18, 5},	 {19, 5},  {20, 6},  {21, 6},  {22, 6},	 {23, 7},  {24, 7},
		     {25, 8},  {26, 8},	 {27, 8},  {28, 9},  {29, 9},  {30, 10}, {35, 12}, {40, 14},
		     {45, 16}, {50, 18}, {60, 22}, {70, 27}, {80, 31}, {90, 36}, {100, 40}};
	assert_int_equal(xb_median_rank(0, 0.95), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(xb_median_rank(table[i].n, 0.95), table[i].k);
}

static void ranks_of_other_levels_and_large_counts(void **state)
{
	(void)state;
	assert_int_equal(xb_median_rank(7, 0.99), 0);
	assert_int_equal(xb_median_rank(8, 0.99), 1);
	assert_int_equal(xb_median_rank(2, 0.5), 1); /* P(Bin(2,1/2) <= 0) is exactly (1-0.5)/2 */
	/* n/2 - 1.96 sqrt(n)/2 for a large n, which 2^-n cannot be computed for */
	assert_in_range(xb_median_rank(100000, 0.95), 49680, 49700);
}

static void interval_is_the_pair_of_ranked_values(void **state)
{
	(void)state;
	double nine[] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
	struct xb_interval i = xb_median_interval(nine, 9, 0.95);
	assert_int_equal(i.valid, 1);
	close_to(i.median, 5);
	close_to(i.low, 2);
	close_to(i.high, 8);
	i = xb_median_interval(nine, 7, 0.95); /* 9 ... 3 */
	close_to(i.median, 6);
	close_to(i.low, 3);
	close_to(i.high, 9);
}

static void five_values_give_a_median_but_no_interval(void **state)
{
	(void)state;
	struct xb_interval i = xb_median_interval((double[]){1, 2, 3, 4, 5}, 5, 0.95);
	assert_int_equal(i.valid, 0);
	close_to(i.median, 3);
	assert_true(isnan(i.low) && isnan(i.high));
	i = xb_median_interval(NULL, 0, 0.95);
	assert_int_equal(i.valid, 0);
	assert_true(isnan(i.median));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(median_of_odd_and_even_counts),
		cmocka_unit_test(median_leaves_its_input_alone),
		cmocka_unit_test(median_of_many_and_huge_values),
		cmocka_unit_test(quantiles_are_nearest_ranks),
		cmocka_unit_test(ranks_of_the_interval_agree_with_published_tables),
		cmocka_unit_test(ranks_of_other_levels_and_large_counts),
		cmocka_unit_test(interval_is_the_pair_of_ranked_values),
		cmocka_unit_test(five_values_give_a_median_but_no_interval),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "accept/verdict.h"

static struct xb_judgement judge(const struct xb_limit *limit, const struct xb_against *against,
				 const double *values, size_t n)
{
	struct xb_judgement out;
	xb_judge(limit, against, values, n, 0, &out);
	return out;
}

static const struct xb_limit at_most_10 = {.metric = XB_METRIC_LATENCY, .has_max = 1, .max = 10};
static const struct xb_against nothing = {.low = NAN, .high = NAN};
#define JUDGE(limit, against, ...)                                                                           \
	judge(limit, against, (double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

static void inside_outside_and_across_the_limit(void **state)
{
	(void)state;
	assert_int_equal(JUDGE(&at_most_10, &nothing, 7, 8, 8, 8, 9, 9, 9.9).verdict, XB_VERDICT_PASS);
	assert_int_equal(JUDGE(&at_most_10, &nothing, 10.1, 11, 11, 11, 12, 12, 13).verdict, XB_VERDICT_FAIL);
	struct xb_judgement j = JUDGE(&at_most_10, &nothing, 9, 9, 9, 9.5, 11, 11, 11);
	assert_int_equal(j.verdict, XB_VERDICT_INCONCLUSIVE);
	assert_true(j.ci_low == 9 && j.ci_high == 11 && j.value == 9.5);
	assert_non_null(strstr(j.reason, "straddles the limit of 10 us"));
	/* half an interval of 1.5 has to shrink to 0.5: nine times the launches */
	assert_true(fabs(j.launches_needed - 63) < 1e-9);
}

static void exactly_at_the_limit_is_not_beyond_it(void **state)
{
	(void)state;
	assert_int_equal(JUDGE(&at_most_10, &nothing, 10, 10, 10, 10, 10, 10).verdict, XB_VERDICT_PASS);
	struct xb_judgement j = JUDGE(&at_most_10, &nothing, 9, 9, 9, 10, 11, 11, 11);
	assert_int_equal(j.verdict, XB_VERDICT_INCONCLUSIVE);
	assert_true(isinf(j.launches_needed));
	assert_non_null(strstr(j.reason, "lies at the limit"));
}

static void too_few_launches_give_no_verdict_however_clear(void **state)
{
	(void)state;
	struct xb_judgement j = JUDGE(&at_most_10, &nothing, 100, 100, 100, 100, 100);
	assert_int_equal(j.verdict, XB_VERDICT_INCONCLUSIVE);
	assert_true(j.launches_needed == 6);
	assert_non_null(strstr(j.reason, "5 launches give no interval; 6 are needed"));
	j = JUDGE(&at_most_10, &nothing, NAN, NAN);
	assert_int_equal(j.verdict, XB_VERDICT_UNMEASURED);
}

static void a_minimum_is_the_mirror_image(void **state)
{
	(void)state;
	struct xb_limit l = {.metric = XB_METRIC_BANDWIDTH, .has_min = 1, .min = 10};
	assert_int_equal(JUDGE(&l, &nothing, 11, 12, 12, 12, 12, 13).verdict, XB_VERDICT_PASS);
	assert_int_equal(JUDGE(&l, &nothing, 7, 8, 8, 8, 9, 9).verdict, XB_VERDICT_FAIL);
	assert_int_equal(JUDGE(&l, &nothing, 9, 9, 9, 12, 12, 12).verdict, XB_VERDICT_INCONCLUSIVE);
	l.has_max = 1;
	l.max = 20; /* more than the link can carry */
	assert_int_equal(JUDGE(&l, &nothing, 11, 12, 12, 12, 12, 13).verdict, XB_VERDICT_PASS);
	assert_int_equal(JUDGE(&l, &nothing, 21, 22, 22, 22, 22, 23).verdict, XB_VERDICT_FAIL);
}

static void relative_to_all_pairs_goes_launch_by_launch(void **state)
{
	(void)state;
	/* a launch that is slow for all is no fault of this pair */
	static const double typical[] = {10, 30, 10, 10, 20, 10, 10};
	struct xb_against against = {.by_launch = typical, .low = NAN, .high = NAN};
	struct xb_limit l = {.metric = XB_METRIC_LATENCY, .relation = XB_RELATION_MEDIAN, .within = 0.2};
	assert_int_equal(JUDGE(&l, &against, 11, 33, 11, 11, 22, 11, 11).verdict, XB_VERDICT_PASS);
	assert_int_equal(JUDGE(&l, &against, 13, 39, 13, 13, 26, 13, 13).verdict, XB_VERDICT_FAIL);
	/* a launch without a value shifts nothing */
	assert_int_equal(JUDGE(&l, &against, 11, NAN, 11, 11, 22, 11, 11).verdict, XB_VERDICT_PASS);
	struct xb_limit b = {.metric = XB_METRIC_BANDWIDTH, .relation = XB_RELATION_BEST, .within = 0.2};
	assert_int_equal(JUDGE(&b, &against, 7, 21, 7, 7, 14, 7, 7).verdict, XB_VERDICT_FAIL);
	assert_int_equal(JUDGE(&b, &against, 9, 27, 9, 9, 18, 9, 9).verdict, XB_VERDICT_PASS);
}

static void an_uncertain_baseline_decides_only_what_it_can(void **state)
{
	(void)state;
	struct xb_limit l = {.metric = XB_METRIC_LATENCY, .relation = XB_RELATION_BASELINE, .within = 0.1};
	struct xb_against against = {.low = 9, .high = 11}; /* bounds 9.9 ... 12.1 */
	assert_int_equal(JUDGE(&l, &against, 9, 9, 9, 9, 9, 9.8).verdict, XB_VERDICT_PASS);
	assert_int_equal(JUDGE(&l, &against, 11, 11, 11, 11, 11, 11).verdict, XB_VERDICT_INCONCLUSIVE);
	assert_int_equal(JUDGE(&l, &against, 12.2, 13, 13, 13, 13, 13).verdict, XB_VERDICT_FAIL);
}

static void both_and_either(void **state)
{
	(void)state;
	struct xb_limit l = {.metric = XB_METRIC_LATENCY,
			     .has_max = 1,
			     .max = 10,
			     .relation = XB_RELATION_REFERENCE,
			     .within = 0.5,
			     .has_combination = 1};
	struct xb_against against = {.low = 10, .high = 10}; /* bound 15 */
	for (int both = 0; both < 2; both++) {
		l.both = both;
		assert_int_equal(JUDGE(&l, &against, 9, 9, 9, 9, 9, 9).verdict, XB_VERDICT_PASS);
		assert_int_equal(JUDGE(&l, &against, 12, 12, 12, 12, 12, 12).verdict,
				 both ? XB_VERDICT_PASS : XB_VERDICT_FAIL);
		assert_int_equal(JUDGE(&l, &against, 16, 16, 16, 16, 16, 16).verdict, XB_VERDICT_FAIL);
		/* across the relative bound, beyond the absolute one */
		assert_int_equal(JUDGE(&l, &against, 14, 14, 14, 16, 16, 16).verdict,
				 both ? XB_VERDICT_INCONCLUSIVE : XB_VERDICT_FAIL);
		/* the relative part is not known: only the other may decide */
		assert_int_equal(JUDGE(&l, &nothing, 9, 9, 9, 9, 9, 9).verdict,
				 both ? XB_VERDICT_PASS : XB_VERDICT_INCONCLUSIVE);
		assert_int_equal(JUDGE(&l, &nothing, 16, 16, 16, 16, 16, 16).verdict,
				 both ? XB_VERDICT_INCONCLUSIVE : XB_VERDICT_FAIL);
	}
}

static void counters_need_no_interval(void **state)
{
	(void)state;
	struct xb_limit l = {.metric = XB_METRIC_SHARE, .has_min = 1, .min = 0.95};
	struct xb_judgement j;
	xb_judge(&l, &nothing, (double[]){0.99}, 1, 1, &j);
	assert_int_equal(j.verdict, XB_VERDICT_PASS);
	xb_judge(&l, &nothing, (double[]){0.5}, 1, 1, &j);
	assert_int_equal(j.verdict, XB_VERDICT_FAIL);
}

static void only_fresh_launches_confirm_a_violation(void **state)
{
	(void)state;
	struct xb_judgement fails = {.verdict = XB_VERDICT_FAIL}, passes = {.verdict = XB_VERDICT_PASS},
			    open = {.verdict = XB_VERDICT_INCONCLUSIVE};
	assert_int_equal(xb_confirmed(&fails, &fails), XB_VERDICT_FAIL);
	assert_int_equal(xb_confirmed(&fails, &passes), XB_VERDICT_PASS);
	assert_int_equal(xb_confirmed(&fails, &open), XB_VERDICT_INCONCLUSIVE);
	assert_int_equal(xb_confirmed(&passes, NULL), XB_VERDICT_PASS);
	assert_int_equal(xb_verdict_worse(XB_VERDICT_UNMEASURED, XB_VERDICT_INCONCLUSIVE),
			 XB_VERDICT_UNMEASURED);
	assert_int_equal(xb_verdict_worse(XB_VERDICT_UNMEASURED, XB_VERDICT_FAIL), XB_VERDICT_FAIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inside_outside_and_across_the_limit),
		cmocka_unit_test(exactly_at_the_limit_is_not_beyond_it),
		cmocka_unit_test(too_few_launches_give_no_verdict_however_clear),
		cmocka_unit_test(a_minimum_is_the_mirror_image),
		cmocka_unit_test(relative_to_all_pairs_goes_launch_by_launch),
		cmocka_unit_test(an_uncertain_baseline_decides_only_what_it_can),
		cmocka_unit_test(both_and_either),
		cmocka_unit_test(counters_need_no_interval),
		cmocka_unit_test(only_fresh_launches_confirm_a_violation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "accept/accept.h"
#include "accept/places.h"

#define NODES 4u
#define PAIRS (NODES * (NODES - 1) / 2)

static struct xb_limit limit = {.name = "l", .metric = XB_METRIC_LATENCY, .has_max = 1, .max = 10};
static struct xb_ruling list[PAIRS], fresh_one;
static struct xb_rulings rulings = {.list = list, .count = PAIRS}, fresh = {.list = &fresh_one, .count = 1};

/* Every pair of node 2 is violated, by its doing. */
static void node_2_is_blamed(enum xb_cause cause)
{
	size_t n = 0;

	for (uint32_t a = 0; a < NODES; a++)
		for (uint32_t b = a + 1; b < NODES; b++) {
			int bad = a == 2 || b == 2;
			list[n] = (struct xb_ruling){.limit = &limit,
						     .size_bytes = 8,
						     .a = a,
						     .b = b,
						     .typical = NAN,
						     .typical_alone = NAN};
			list[n].first.verdict = list[n].verdict = bad ? XB_VERDICT_FAIL : XB_VERDICT_PASS;
			list[n].cause = bad ? cause : XB_CAUSE_NONE;
			list[n++].culprit = 2;
		}
}

/* The retest of node 2 with node 0 ends like this. */
static void retest_says(const struct xb_retest *retest, enum xb_verdict verdict, int doubt_a, int doubt_b)
{
	fresh_one = (struct xb_ruling){
		.limit = &limit, .size_bytes = 8, .a = 0, .b = 1, .doubt_a = doubt_a, .doubt_b = doubt_b};
	fresh_one.first.verdict = verdict;
	fresh_one.first.launches = 10;
	fresh_one.first.launches_needed = 14;
	strcpy(fresh_one.first.reason, "so it is");
	xb_retest_take(&rulings, retest, &fresh, 3);
	xb_retest_conclude(&rulings, retest);
}

static json_t *told(void)
{
	static struct xb_config config; /* large */
	static struct xb_acceptance a;
	static struct xb_known known;
	static char path[] = "l.ini";
	static struct xb_limits limits = {.path = path};

	a = (struct xb_acceptance){.limits = &limits,
				   .known = &known,
				   .rulings = rulings,
				   .endpoints = NODES,
				   .config = &config,
				   .launch_s = 100};
	json_t *document = json_object(), *acceptance = xb_acceptance_json(&a, document);
	json_decref(document);
	assert_non_null(acceptance);
	return acceptance;
}

/* Verdicts of the nodes as letters: p, f, i, u. */
static const char *nodes(void)
{
	static char letters[NODES + 1];
	json_t *acceptance = told(), *node;
	size_t i;

	json_array_foreach(json_object_get(acceptance, "nodes"), i, node) letters[i] =
		*json_string_value(json_object_get(node, "verdict"));
	json_decref(acceptance);
	return letters;
}

static void partners_are_spared_whatever_the_retest_of_the_node_says(void **state)
{
	(void)state;
	static const struct {
		enum xb_verdict verdict;
		const char *nodes;
	} cases[] = {{XB_VERDICT_FAIL, "ppfp"},
		     {XB_VERDICT_INCONCLUSIVE, "ppip"},
		     {XB_VERDICT_UNMEASURED, "ppup"}};
	struct xb_retest retest;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		node_2_is_blamed(XB_CAUSE_NODE);
		assert_int_equal(xb_retest_next(&rulings, NODES, &retest), 1);
		assert_true(retest.of_node && retest.node == 2 && retest.a == 0 && retest.b == 2);
		retest_says(&retest, cases[i].verdict, 0, 0);
		assert_string_equal(nodes(), cases[i].nodes);
	}
}

static void of_a_link_no_node_is_named(void **state)
{
	(void)state;
	struct xb_retest retest;
	node_2_is_blamed(XB_CAUSE_LINK);
	while (xb_retest_next(&rulings, NODES, &retest))
		retest_says(&retest, XB_VERDICT_INCONCLUSIVE, 0, 0);
	assert_string_equal(nodes(), "pppp");
	/* where node and link cannot be told apart, both ends are meant */
	node_2_is_blamed(XB_CAUSE_UNKNOWN);
	while (xb_retest_next(&rulings, NODES, &retest))
		retest_says(&retest, XB_VERDICT_INCONCLUSIVE, 0, 0);
	assert_string_equal(nodes(), "iiii");
}

static void noise_in_the_retest_is_put_down_to_the_end_that_has_it(void **state)
{
	(void)state;
	struct xb_retest retest;

	node_2_is_blamed(XB_CAUSE_UNKNOWN);
	while (xb_retest_next(&rulings, NODES, &retest))
		retest_says(&retest, XB_VERDICT_INCONCLUSIVE, retest.a == 2, retest.b == 2);
	assert_string_equal(nodes(), "ppip");
	/* noise at the partner does not clear the node that is blamed */
	node_2_is_blamed(XB_CAUSE_NODE);
	assert_int_equal(xb_retest_next(&rulings, NODES, &retest), 1);
	retest_says(&retest, XB_VERDICT_INCONCLUSIVE, 1, 0);
	assert_true(list[1].doubt_a && !list[1].doubt_b && !list[3].doubt_a); /* 0-2, 1-2 */
	assert_string_equal(nodes(), "ppip");
}

/* Of all pairs 30 among the others; node 2 has 48, which is beyond 50 % more. Pair 0, 1 is nearest to that.
 */
static void typical_of_30(void)
{
	node_2_is_blamed(XB_CAUSE_NODE);
	for (size_t i = 0; i < PAIRS; i++) {
		list[i].typical = 30;
		list[i].first.value = list[i].cause == XB_CAUSE_NODE ? 48 : 30 + (double)i;
	}
}

/* The verdict on a pair that has this value alone, where a pair that has 30 among the others has `reference`.
 */
static char verdict_alone(double suspect, double reference, double *bound)
{
	static const struct xb_rulings none;
	struct xb_against against = {.low = NAN, .high = NAN};
	struct xb_judgement judged;
	struct xb_retest retest;
	uint32_t a = 9, b = 9;
	double values[6] = {suspect, suspect, suspect, suspect, suspect, suspect};

	typical_of_30();
	assert_int_equal(xb_retest_next(&rulings, NODES, &retest), 1);
	assert_int_equal(xb_reference_choose(&rulings, &retest, &a, &b), 1);
	assert_true(a == 0 && b == 1);
	fresh_one = (struct xb_ruling){.limit = &limit, .size_bytes = 8, .a = 0, .b = 1};
	fresh_one.first.value = reference;
	xb_reference_take(&rulings, a, b, isnan(reference) ? &none : &fresh);
	double typical = isfinite(list[1].typical_alone) ? list[1].typical_alone : list[1].typical;
	against.low = against.high = typical;
	xb_judge(&limit, &against, values, 6, 0, &judged);
	*bound = judged.bound;
	return *xb_verdict_name(judged.verdict);
}

static void a_pair_alone_is_compared_with_what_pairs_have_alone(void **state)
{
	(void)state;
	double bound;
	struct xb_retest retest;
	uint32_t a, b;

	limit = (struct xb_limit){
		.name = "l", .metric = XB_METRIC_LATENCY, .relation = XB_RELATION_MEDIAN, .within = 0.5};
	assert_true(fabs(xb_typical_alone(30, 30, 10) - 10) < 1e-9);
	assert_true(isnan(xb_typical_alone(30, NAN, 10)) && isnan(xb_typical_alone(30, 30, NAN)) &&
		    isnan(xb_typical_alone(NAN, 30, 10)) && isnan(xb_typical_alone(30, 0, 10)));
	assert_int_equal(verdict_alone(16, 10, &bound), 'f');
	assert_true(fabs(bound - 15) < 1e-9);
	assert_int_equal(verdict_alone(10, 10, &bound), 'p');
	/* where nothing is known of pairs alone, it stays, and is said */
	assert_int_equal(verdict_alone(16, NAN, &bound), 'p');
	assert_true(fabs(bound - 45) < 1e-9);
	assert_int_equal(xb_retest_next(&rulings, NODES, &retest), 1);
	retest_says(&retest, XB_VERDICT_FAIL, 0, 0);
	assert_non_null(strstr(list[1].fresh.reason, "so it is; alone, but compared with pairs that ran"));
	assert_int_equal(list[0].no_reference, 1); /* kept for what is measured again later */
	/* no pair passed: there is none to measure */
	typical_of_30();
	for (size_t i = 0; i < PAIRS; i++)
		list[i].first.verdict = XB_VERDICT_FAIL;
	assert_int_equal(xb_reference_choose(&rulings, &retest, &a, &b), 0);
	/* an absolute limit needs none */
	limit = (struct xb_limit){.name = "l", .metric = XB_METRIC_LATENCY, .has_max = 1, .max = 10};
	typical_of_30();
	assert_int_equal(xb_retest_next(&rulings, NODES, &retest), 1);
	assert_int_equal(xb_reference_choose(&rulings, &retest, &a, &b), 0);
}

static void more_time_is_that_of_launches_of_the_retest(void **state)
{
	(void)state;
	struct xb_retest retest;
	json_t *acceptance, *ruling;

	node_2_is_blamed(XB_CAUSE_NODE);
	assert_int_equal(xb_retest_next(&rulings, NODES, &retest), 1);
	retest_says(&retest, XB_VERDICT_INCONCLUSIVE, 0, 0);
	acceptance = told();
	ruling = json_array_get(json_object_get(acceptance, "rulings"), 1);
	assert_true(fabs(json_number_value(json_object_get(ruling, "more_s")) - 4 * 3) < 1e-9);
	json_decref(acceptance);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(partners_are_spared_whatever_the_retest_of_the_node_says),
		cmocka_unit_test(of_a_link_no_node_is_named),
		cmocka_unit_test(noise_in_the_retest_is_put_down_to_the_end_that_has_it),
		cmocka_unit_test(a_pair_alone_is_compared_with_what_pairs_have_alone),
		cmocka_unit_test(more_time_is_that_of_launches_of_the_retest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

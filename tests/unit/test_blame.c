/* SPDX-License-Identifier: BSD-3-Clause */
/* Which node or link is to blame, from the values of all pairs of made-up networks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "accept/places.h"
#include "control/schedule.h"
#include "stats/stats.h"

#define MOST 64u

static struct xb_blame_pair pairs[MOST * (MOST - 1) / 2];
static double effects[MOST];

/* All pairs of n nodes at 100 with this relative noise. */
static size_t network(uint32_t n, double noise, uint64_t seed)
{
	struct xb_rng rng;
	size_t count = 0;
	xb_rng_seed(&rng, seed);
	for (uint32_t a = 0; a < n; a++)
		for (uint32_t b = a + 1; b < n; b++) {
			double u = (double)xb_rng_below(&rng, 2001) / 1000 - 1;
			pairs[count++] =
				(struct xb_blame_pair){.a = a, .b = b, .value = 100 * (1 + noise * u)};
		}
	return count;
}

/* A node slows all its pairs; a pair of two slow nodes is as slow as the slower (a bottleneck). */
static void slow_node(size_t count, uint32_t node, double factor)
{
	for (size_t i = 0; i < count; i++)
		if ((pairs[i].a == node || pairs[i].b == node) && pairs[i].value < 100 * factor * 0.9)
			pairs[i].value *= factor;
}

static void slow_link(size_t count, uint32_t a, uint32_t b, double factor)
{
	for (size_t i = 0; i < count; i++)
		if (pairs[i].a == a && pairs[i].b == b)
			pairs[i].value *= factor;
}

static void blame(size_t count, uint32_t n)
{
	for (size_t i = 0; i < count; i++)
		pairs[i].failed = pairs[i].value > 130;
	assert_int_equal(xb_blame(pairs, count, n, effects, NULL), 0);
}

static void expect_node(size_t count, uint32_t node)
{
	for (size_t i = 0; i < count; i++) {
		int its = pairs[i].a == node || pairs[i].b == node;
		assert_int_equal(pairs[i].cause, its ? XB_CAUSE_NODE : XB_CAUSE_NONE);
		if (its)
			assert_int_equal(pairs[i].culprit, node);
	}
}

static void one_bad_node_and_nothing_else(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {3, 4, 5, 8, 17, 64};
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (uint32_t bad = 0; bad < sizes[s]; bad += 1 + sizes[s] / 4) {
			size_t count = network(sizes[s], 0.05, 1 + s);
			slow_node(count, bad, 2);
			blame(count, sizes[s]);
			expect_node(count, bad);
			assert_true(fabs(effects[bad] - log(2)) < 0.1);
		}
}

static void a_bad_link_is_no_node(void **state)
{
	(void)state;
	for (uint32_t n = 4; n <= 16; n *= 2) {
		size_t count = network(n, 0.05, n);
		slow_link(count, 1, 3, 3);
		blame(count, n);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(pairs[i].cause,
					 pairs[i].a == 1 && pairs[i].b == 3 ? XB_CAUSE_LINK : XB_CAUSE_NONE);
	}
}

static void two_bad_nodes_are_both_named(void **state)
{
	(void)state;
	size_t count = network(8, 0.05, 3);
	slow_node(count, 2, 2);
	slow_node(count, 5, 4);
	blame(count, 8);
	for (size_t i = 0; i < count; i++) {
		int two = pairs[i].a == 2 || pairs[i].b == 2, five = pairs[i].a == 5 || pairs[i].b == 5;
		if (two && five) {
			assert_true(pairs[i].cause == XB_CAUSE_BOTH || pairs[i].cause == XB_CAUSE_NODE);
			assert_true(pairs[i].culprit == 2 || pairs[i].culprit == 5);
		} else if (two || five) {
			assert_int_equal(pairs[i].cause, XB_CAUSE_NODE);
			assert_int_equal(pairs[i].culprit, two ? 2 : 5);
		} else
			assert_int_equal(pairs[i].cause, XB_CAUSE_NONE);
	}
}

static void a_bad_node_and_a_bad_link_elsewhere(void **state)
{
	(void)state;
	size_t count = network(8, 0.05, 4);
	slow_node(count, 6, 2);
	slow_link(count, 0, 1, 2);
	blame(count, 8);
	for (size_t i = 0; i < count; i++) {
		int six = pairs[i].a == 6 || pairs[i].b == 6, link = pairs[i].a == 0 && pairs[i].b == 1;
		assert_int_equal(pairs[i].cause, six ? XB_CAUSE_NODE : link ? XB_CAUSE_LINK : XB_CAUSE_NONE);
	}
}

static void nothing_bad_blames_nobody(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		size_t count = network(8, 0.15, seed);
		blame(count, 8);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(pairs[i].cause, XB_CAUSE_NONE);
		for (uint32_t n = 0; n < 8; n++)
			assert_true(fabs(effects[n]) < 0.2);
	}
}

static void two_nodes_alone_cannot_be_told_from_their_link(void **state)
{
	(void)state;
	pairs[0] = (struct xb_blame_pair){.a = 0, .b = 1, .value = 500, .failed = 1};
	assert_int_equal(xb_blame(pairs, 1, 2, effects, NULL), 0);
	assert_int_equal(pairs[0].cause, XB_CAUSE_UNKNOWN);
}

static void pairs_without_a_value_change_nothing(void **state)
{
	(void)state;
	size_t count = network(8, 0.05, 9);
	slow_node(count, 4, 2);
	for (size_t i = 0; i < count; i++)
		if (pairs[i].a == 0 || pairs[i].b == 0)
			pairs[i].value = NAN; /* a node that was lost */
	blame(count, 8);
	for (size_t i = 0; i < count; i++)
		if (isfinite(pairs[i].value) && (pairs[i].a == 4 || pairs[i].b == 4))
			assert_int_equal(pairs[i].cause, XB_CAUSE_NODE);
		else
			assert_int_equal(pairs[i].cause, XB_CAUSE_NONE);
}

/* --- whom to measure again --- */

static const struct xb_limit limit = {.metric = XB_METRIC_LATENCY};
static struct xb_ruling list[MOST * (MOST - 1) / 2];

static struct xb_rulings rulings_of(size_t count)
{
	for (size_t i = 0; i < count; i++)
		list[i] = (struct xb_ruling){
			.limit = &limit,
			.size_bytes = 8,
			.a = pairs[i].a,
			.b = pairs[i].b,
			.first = {.verdict = pairs[i].failed ? XB_VERDICT_FAIL : XB_VERDICT_PASS,
				  .value = pairs[i].value}};
	return (struct xb_rulings){.list = list, .count = count};
}

static void judge_retest(struct xb_rulings *r, const struct xb_retest *t, enum xb_verdict verdict)
{
	for (size_t i = 0; i < r->count; i++) {
		if (!xb_retest_covers(t, &r->list[i]))
			continue;
		r->list[i].retested = 1;
		r->list[i].retest_a = t->a;
		r->list[i].retest_b = t->b;
		r->list[i].fresh.verdict = verdict;
		r->list[i].verdict = verdict;
	}
	xb_retest_conclude(r, t);
}

static void a_blamed_node_is_measured_once_with_a_partner_that_passed(void **state)
{
	(void)state;
	size_t count = network(8, 0.05, 5);
	slow_node(count, 3, 2);
	slow_node(count, 0, 2);
	blame(count, 8);
	struct xb_rulings r = rulings_of(count);
	struct xb_retest t;
	unsigned retests = 0;
	assert_int_equal(xb_rulings_blame(&r, 8, NULL), 0);
	while (xb_retest_next(&r, 8, &t)) {
		assert_true(t.of_node);
		assert_true(t.node == 3 || t.node == 0);
		assert_true((t.a == t.node) != (t.b == t.node));
		uint32_t partner = t.a == t.node ? t.b : t.a;
		assert_true(partner != 0 && partner != 3);
		judge_retest(&r, &t, XB_VERDICT_FAIL);
		assert_true(++retests <= 2);
	}
	assert_int_equal(retests, 2);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(list[i].retested, pairs[i].failed);
}

static void a_node_that_passes_elsewhere_leaves_its_links_to_be_measured(void **state)
{
	(void)state;
	size_t count = network(4, 0.02, 6);
	slow_node(count, 2, 2);
	blame(count, 4);
	struct xb_rulings r = rulings_of(count);
	struct xb_retest t;
	unsigned retests = 0, of_node = 0;
	assert_int_equal(xb_rulings_blame(&r, 4, NULL), 0);
	while (xb_retest_next(&r, 4, &t)) {
		of_node += (unsigned)t.of_node;
		judge_retest(&r, &t, t.of_node ? XB_VERDICT_PASS : XB_VERDICT_FAIL);
		assert_true(++retests <= 4);
	}
	assert_int_equal(of_node, 1);
	assert_int_equal(retests, 3); /* the node with its partner, then its two other pairs */
}

static struct xb_whole whole;
static struct xb_config config;

static void keep(char **hosts, size_t host_count, uint32_t endpoints, const char *text)
{
	char path[] = "/tmp/xb-pairs-XXXXXX";
	struct xb_error error = {0};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	config = (struct xb_config){.hosts = hosts,
				    .host_count = host_count,
				    .endpoints = endpoints,
				    .pairs = *text ? path : NULL,
				    .bind_count = endpoints};
	for (uint32_t e = 0; e < endpoints; e++)
		config.bind[e] = (int)(10 + e);
	assert_int_equal(xb_whole_keep(&whole, &config, &error), 0);
	unlink(path); /* it is not read again */
	config.pairs = *text ? "gone" : NULL;
}

static void expect_pairs(const struct xb_pair *expected, size_t count)
{
	struct xb_schedule schedule = {0};
	struct xb_error error = {0};
	size_t found = 0;

	assert_int_equal(xb_schedule_of(&config, config.endpoints, &schedule, &error), 0);
	assert_int_equal(schedule.round_start[schedule.rounds], count);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++)
			found += schedule.pairs[i].first == expected[k].first &&
				 schedule.pairs[i].second == expected[k].second;
	assert_int_equal(found, count);
	xb_schedule_free(&schedule);
}

static void nodes_that_are_left_out_take_their_pairs_with_them(void **state)
{
	char names[5][2] = {"a", "b", "c", "d", "e"};
	char *hosts[5] = {names[0], names[1], names[2], names[3], names[4]};
	unsigned char out[XB_MAX_ENDPOINTS] = {0};
	uint32_t original[XB_MAX_ENDPOINTS] = {0};
	(void)state;

	keep(hosts, 5, 5, "a b\nc e\n0 4\nd e\n");
	out[1] = 1;
	assert_int_equal(xb_whole_without(&whole, out, &config, original), 0);
	assert_int_equal(config.endpoints, 4);
	expect_pairs((struct xb_pair[]){{1, 3}, {0, 3}, {2, 3}}, 3); /* ce, ae, de */
	out[3] = 1;
	assert_int_equal(xb_whole_without(&whole, out, &config, original), 0);
	assert_int_equal(config.endpoints, 3);
	assert_int_equal(config.host_count, 3);
	assert_string_equal(config.hosts[1], "c");
	assert_string_equal(config.hosts[2], "e");
	assert_int_equal(original[1], 2);
	assert_int_equal(original[2], 4);
	assert_int_equal(config.bind[2], 14);
	expect_pairs((struct xb_pair[]){{1, 2}, {0, 2}}, 2); /* ce, ae */
	out[4] = 1; /* a and c have no pair between them */
	assert_int_equal(xb_whole_without(&whole, out, &config, original), -1);
	assert_int_equal(config.endpoints, 3);
	out[1] = out[3] = out[4] = 0; /* all are taken back */
	assert_int_equal(xb_whole_without(&whole, out, &config, original), 0);
	expect_pairs((struct xb_pair[]){{0, 1}, {2, 4}, {0, 4}, {3, 4}}, 4);
	xb_whole_end(&whole, &config);
	assert_string_equal(hosts[1], "b");
}

static void a_host_is_left_out_with_all_its_endpoints(void **state)
{
	char names[3][2] = {"a", "b", "c"};
	char *hosts[3] = {names[0], names[1], names[2]};
	unsigned char out[XB_MAX_ENDPOINTS] = {[3] = 1}; /* the second one of a */
	uint32_t original[XB_MAX_ENDPOINTS] = {0};
	static const uint32_t left[] = {1, 2, 4, 5};
	(void)state;

	keep(hosts, 3, 6, "");
	assert_int_equal(xb_whole_without(&whole, out, &config, original), 0);
	assert_int_equal(config.endpoints, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(original[i], left[i]);
		assert_int_equal(config.bind[i], 10 + left[i]);
		assert_string_equal(config.hosts[i % 2], i % 2 ? "c" : "b");
	}
	out[1] = 1;
	assert_int_equal(xb_whole_without(&whole, out, &config, original), -1); /* one host is no network */
	xb_whole_end(&whole, &config);
	assert_int_equal(config.host_count, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_bad_node_and_nothing_else),
		cmocka_unit_test(a_bad_link_is_no_node),
		cmocka_unit_test(two_bad_nodes_are_both_named),
		cmocka_unit_test(a_bad_node_and_a_bad_link_elsewhere),
		cmocka_unit_test(nothing_bad_blames_nobody),
		cmocka_unit_test(two_nodes_alone_cannot_be_told_from_their_link),
		cmocka_unit_test(pairs_without_a_value_change_nothing),
		cmocka_unit_test(a_blamed_node_is_measured_once_with_a_partner_that_passed),
		cmocka_unit_test(a_node_that_passes_elsewhere_leaves_its_links_to_be_measured),
		cmocka_unit_test(nodes_that_are_left_out_take_their_pairs_with_them),
		cmocka_unit_test(a_host_is_left_out_with_all_its_endpoints),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

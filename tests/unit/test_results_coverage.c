/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Do the intervals hold what they promise? Synthetic runs with the noise that real ones have: a constant of
 * each pair of processes that only a new launch redraws, drift of the whole machine, and block medians that
 * resemble their predecessor (AR(1)). All from fixed seeds, so that the counts are always the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "report_fixture.h"

#define LAUNCHES 9u
#define ROUNDS 5u
#define BASE_NS 4000.0
#define BIAS_NS 100.0 /* standard deviation of a launch's constant, per transport */
#define AR1_NS 40.0 /* of the correlated noise of a transport */
#define AR1 0.8
#define MACHINE_NS 300.0 /* of what both suffer alike */

struct noise {
	struct xb_rng rng;
	double drift_ns_per_block; /* grows from the first block of the run to the last */
	double bias[2], ar[2], machine;
	unsigned block;
};

static void new_launch(struct noise *n)
{
	for (int t = 0; t < 2; t++) {
		n->bias[t] = BIAS_NS * normal(&n->rng);
		n->ar[t] = AR1_NS * normal(&n->rng);
	}
	n->machine = MACHINE_NS * normal(&n->rng);
}

/* Medians of the two blocks of a round; the second transport is truly truth_ns slower. */
static void next_round(struct noise *n, double truth_ns, double median_ns[2])
{
	n->machine = AR1 * n->machine + sqrt(1 - AR1 * AR1) * MACHINE_NS * normal(&n->rng);
	double common = BASE_NS + fabs(n->machine) + n->drift_ns_per_block * n->block++;
	for (int t = 0; t < 2; t++) {
		n->ar[t] = AR1 * n->ar[t] + sqrt(1 - AR1 * AR1) * AR1_NS * normal(&n->rng);
		median_ns[t] = common + n->bias[t] + n->ar[t] + (t == 1 ? truth_ns : 0.0);
	}
}

struct outcome {
	int covered, distinguishable;
	int naive_covered; /* the same blocks, taken as if they were independent */
};

static struct outcome run_once(unsigned seed, double truth_ns)
{
	struct fixture f;
	struct xb_results *r = fixture_begin(&f, "-t tcp,tcp,label=other -s 8");
	struct noise noise = {.drift_ns_per_block = 8.0};
	double differences[LAUNCHES * ROUNDS], median_ns[2];
	xb_rng_seed(&noise.rng, seed);
	for (unsigned l = 0; l < LAUNCHES; l++) {
		new_launch(&noise);
		for (unsigned round = 0; round < ROUNDS; round++) {
			next_round(&noise, truth_ns, median_ns);
			for (size_t t = 0; t < 2; t++)
				add_block(r, t, XB_BENCH_PINGPONG, 8, l, round, median_ns[t]);
		}
		xb_results_launch_done(r, l);
	}
	json_t *d = xb_results_document(r), *c = find_comparison(d, "tcp", "other", 8);
	double low = number_at(c, "overhead_us", "ci_low") * 1000,
	       high = number_at(c, "overhead_us", "ci_high") * 1000;
	struct outcome outcome = {.covered = low <= truth_ns && truth_ns <= high,
				  .distinguishable = json_is_true(json_object_get(c, "distinguishable"))};
	json_decref(d);
	fixture_end(&f);
	/* the naive way: as many blocks, all from one launch, each taken for an independent value */
	new_launch(&noise);
	for (unsigned i = 0; i < LAUNCHES * ROUNDS; i++) {
		next_round(&noise, truth_ns, median_ns);
		differences[i] = median_ns[1] - median_ns[0];
	}
	struct xb_interval naive = xb_median_interval(differences, LAUNCHES * ROUNDS, 0.95);
	outcome.naive_covered = naive.low <= truth_ns && truth_ns <= naive.high;
	return outcome;
}

static void a_true_difference_is_covered_in_at_least_34_of_40_runs(void **state)
{
	(void)state;
	int covered = 0, distinguishable = 0;
	for (unsigned seed = 1; seed <= 40; seed++) {
		struct outcome o = run_once(seed, 2000.0);
		covered += o.covered;
		distinguishable += o.distinguishable;
	}
	print_message("covered in %d of 40, told from 0 in %d\n", covered, distinguishable);
	assert_in_range(covered, 34, 40);
	assert_int_equal(distinguishable, 40);
}

static void no_difference_is_found_where_there_is_none_in_at_least_16_of_20_runs(void **state)
{
	(void)state;
	int same = 0;
	for (unsigned seed = 101; seed <= 120; seed++)
		same += !run_once(seed, 0.0).distinguishable;
	print_message("not distinguishable in %d of 20\n", same);
	assert_in_range(same, 16, 20);
}

/* The interval of nine values covers its median with 96.1 %, whatever the distribution. */
static void coverage_over_many_runs_is_what_the_theory_says(void **state)
{
	(void)state;
	int covered = 0, false_alarms = 0;
	for (unsigned seed = 1; seed <= 1000; seed++) {
		covered += run_once(1000 + seed, 500.0).covered;
		false_alarms += run_once(5000 + seed, 0.0).distinguishable;
	}
	print_message("covered in %d of 1000, false alarms in %d of 1000\n", covered, false_alarms);
	assert_in_range(covered, 940, 980); /* 961 +- 3 sigma of 6 */
	assert_in_range(false_alarms, 20, 60);
}

/* If the launches were not the unit, this test would notice: blocks of one launch share its constant. */
static void intervals_within_one_launch_fail(void **state)
{
	(void)state;
	int covered = 0;
	for (unsigned seed = 1; seed <= 40; seed++)
		covered += run_once(seed, 2000.0).naive_covered;
	print_message("a naive interval covers in %d of 40\n", covered);
	assert_in_range(covered, 0, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_true_difference_is_covered_in_at_least_34_of_40_runs),
		cmocka_unit_test(no_difference_is_found_where_there_is_none_in_at_least_16_of_20_runs),
		cmocka_unit_test(coverage_over_many_runs_is_what_the_theory_says),
		cmocka_unit_test(intervals_within_one_launch_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

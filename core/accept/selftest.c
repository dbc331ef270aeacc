/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "selftest.h"
#include "verdict.h"
#include "../stats/stats.h"

#define PAIRS 28u /* all pairs of 8 nodes, of which one is the pair under test */
#define LAUNCHES_MAX 1000u
#define SPIKE_SHARE 0.05
#define SPIKE_FACTOR 10.0
#define DRIFT 0.0375 /* from one end of a run to the other 7.5 %: 0.3 us of 4 us */
#define ASSUMED_MARGIN 0.2 /* of an absolute limit: how far from it a good network is */
#define ASSUMED_LOWER 2.0 /* of a limit in us on an overhead: what the lower transport takes, in limits */
#define ASSUMED_OVERHEAD_PCT 40.0 /* where only a relative limit on it is given */
#define BASELINE_LAUNCHES 9u
#define WANTED_FALSE_ALARMS 0.01
#define WANTED_DETECTION 0.99

static const double spreads[] = {0.02, 0.05, 0.09};
#define SPREADS (sizeof(spreads) / sizeof(spreads[0]))

/* share of the allowed margin that the truth uses up; or how far beyond the limit it is */
static const struct row {
	const char *name;
	double used, beyond;
} rows[] = {
	{"as good as it should be", 0, 0},   {"half of what is allowed", 0.5, 0},
	{"90 % of what is allowed", 0.9, 0}, {"at the limit", 1, 0},
	{"5 % beyond the limit", 1, 0.05},   {"10 % beyond the limit", 1, 0.10},
	{"15 % beyond the limit", 1, 0.15},  {"30 % beyond the limit", 1, 0.30},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define ROW_HALF 1u
#define ROW_BEYOND 6u /* 15 % */

struct truth {
	const struct xb_limit *limit;
	double nominal, margin; /* of a good network; the limit is nominal * (1 +- margin) */
	double value; /* of the pair under test */
	double lower; /* of an overhead: the time that it comes on top of; else NAN */
	double spread;
};

struct rates {
	double verdict[3]; /* shares: pass, fail, inconclusive */
	double launches; /* mean, of the first run */
};

static double uniform(struct xb_rng *rng)
{
	return ((double)(xb_rng_next(rng) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct xb_rng *rng) /* Box & Muller 1958 */
{
	return sqrt(-2 * log(uniform(rng))) * cos(6.283185307179586 * uniform(rng));
}

/* One visit of a launch to one pair of processes. */
static double visit(const struct truth *t, double truth, double drift, struct xb_rng *rng)
{
	double slower = (1 + t->spread * normal(rng)) * drift;

	if (slower < 0.1)
		slower = 0.1;
	if (uniform(rng) < SPIKE_SHARE)
		slower *= SPIKE_FACTOR;
	return xb_metric_higher_is_better(t->limit->metric) ? truth / slower : truth * slower;
}

/* What a launch says of one pair. An overhead is the difference of two times, and each is that of processes
 * of its own: their errors do not cancel. */
static double draw(const struct truth *t, double truth, double drift, struct xb_rng *rng)
{
	int percent = t->limit->metric == XB_METRIC_OVERHEAD_PCT;

	if (isnan(t->lower))
		return visit(t, truth, drift, rng);
	double upper = percent ? t->lower * (1 + truth / 100) : t->lower + truth;
	double low = visit(t, t->lower, drift, rng), added = visit(t, upper, drift, rng) - low;
	return percent ? 100 * added / low : added;
}

struct launches {
	double values[LAUNCHES_MAX], typical[LAUNCHES_MAX];
	size_t count;
	double slope; /* of the drift in this run */
};

static void launch(const struct truth *t, struct launches *l, size_t most, struct xb_rng *rng)
{
	double place = most > 1 ? 2.0 * (double)l->count / (double)(most - 1) - 1 : 0; /* -1 ... 1 */
	double drift = 1 + l->slope * place, others[PAIRS];

	l->values[l->count] = draw(t, t->value, drift, rng);
	if (t->limit->relation == XB_RELATION_MEDIAN || t->limit->relation == XB_RELATION_BEST) {
		int highest = t->limit->relation == XB_RELATION_BEST &&
			      xb_metric_higher_is_better(t->limit->metric);
		others[0] = l->values[l->count];
		for (size_t p = 1; p < PAIRS; p++)
			others[p] = draw(t, t->nominal, drift, rng);
		l->typical[l->count] = t->limit->relation == XB_RELATION_MEDIAN
					       ? xb_median(others, PAIRS)
					       : xb_quantile(others, PAIRS, highest);
	}
	l->count++;
}

/* A run: launches until there is a verdict, or the most of them. among: all pairs run (else the pair alone,
 * compared with what was typical before). */
static void run(const struct truth *t, const struct xb_selftest *settings, double typical_before,
		struct xb_against *against, struct launches *l, struct xb_judgement *out, struct xb_rng *rng)
{
	int among = t->limit->relation == XB_RELATION_MEDIAN || t->limit->relation == XB_RELATION_BEST;

	l->count = 0;
	l->slope = DRIFT * (2 * uniform(rng) - 1);
	do {
		launch(t, l, settings->launches_max, rng);
		if (l->count < settings->launches_min)
			continue;
		if (among && isnan(typical_before))
			against->by_launch = l->typical;
		else if (among)
			*against = (struct xb_against){.low = typical_before, .high = typical_before};
		xb_judge(t->limit, against, l->values, l->count, 0, out);
	} while (l->count < settings->launches_max &&
		 (l->count < settings->launches_min || out->verdict == XB_VERDICT_INCONCLUSIVE));
}

static void known_value(const struct truth *t, struct xb_against *against, struct xb_rng *rng)
{
	*against = (struct xb_against){.low = t->nominal, .high = t->nominal};
	if (t->limit->relation != XB_RELATION_BASELINE)
		return;
	double values[BASELINE_LAUNCHES];
	for (size_t i = 0; i < BASELINE_LAUNCHES; i++)
		values[i] = draw(t, t->nominal, 1, rng);
	struct xb_interval interval = xb_median_interval(values, BASELINE_LAUNCHES, XB_VERDICT_LEVEL);
	against->low = interval.low;
	against->high = interval.high;
}

static struct rates try(const struct truth *t, const struct xb_selftest *settings, struct launches *l,
			struct xb_rng *rng)
{
	struct rates rates = {{0, 0, 0}, 0};

	for (unsigned trial = 0; trial < settings->trials; trial++) {
		struct xb_judgement first = {.verdict = XB_VERDICT_UNMEASURED}, fresh = first;
		struct xb_against against;
		int tripped;

		known_value(t, &against, rng);
		run(t, settings, NAN, &against, l, &first, rng);
		rates.launches += (double)l->count;
		tripped = first.verdict == XB_VERDICT_FAIL;
		if (tripped)
			run(t, settings, xb_median(l->typical, against.by_launch ? l->count : 0), &against, l,
			    &fresh, rng);
		rates.verdict[xb_confirmed(&first, tripped ? &fresh : NULL)]++;
	}
	for (int v = 0; v < 3; v++)
		rates.verdict[v] /= settings->trials;
	rates.launches /= settings->trials;
	return rates;
}

/* What a good network has, and how far the limit is from it. */
static struct truth truth_of(const struct xb_limit *limit)
{
	struct truth t = {.limit = limit,
			  .nominal = 100,
			  .margin = limit->relation ? limit->within : ASSUMED_MARGIN,
			  .lower = NAN};
	int high = xb_metric_higher_is_better(limit->metric);
	double bound = high ? limit->min : limit->max;

	if ((high ? limit->has_min : limit->has_max) && bound > 0)
		t.nominal = high ? bound / (1 - t.margin) : bound / (1 + t.margin);
	else if (limit->has_max || limit->has_min)
		t.nominal = 0; /* a bound on the good side only, or of 0: nothing to scale by */
	else if (limit->metric == XB_METRIC_OVERHEAD_PCT)
		t.nominal = ASSUMED_OVERHEAD_PCT;
	if (limit->metric == XB_METRIC_OVERHEAD_PCT)
		t.lower = 100; /* whatever: only the ratio counts */
	else if (limit->metric == XB_METRIC_OVERHEAD_US)
		t.lower = ASSUMED_LOWER * t.nominal * (1 + t.margin);
	return t;
}

static double true_value(const struct truth *t, const struct row *row)
{
	if (xb_metric_higher_is_better(t->limit->metric))
		return t->nominal * (1 - t->margin * row->used) * (1 - row->beyond);
	return t->nominal * (1 + t->margin * row->used) * (1 + row->beyond);
}

static void describe(const struct truth *t, const struct xb_selftest *settings, FILE *out)
{
	const struct xb_limit *l = t->limit;

	fprintf(out, "limit %s: %s", l->name, xb_metric_name(l->metric));
	if (l->has_min)
		fprintf(out, ", min %g %s", l->min, xb_metric_unit(l->metric));
	if (l->has_max)
		fprintf(out, ", max %g %s", l->max, xb_metric_unit(l->metric));
	if (l->relation)
		fprintf(out, ", within %g %% of %s", 100 * l->within, xb_relation_name(l->relation));
	else
		fprintf(out, " (a good network is taken to be %g %% from it)", 100 * t->margin);
	if (l->has_combination)
		fprintf(out, ", violated when %s", l->both ? "both" : "either");
	if (l->metric == XB_METRIC_OVERHEAD_US)
		fprintf(out,
			"\nthe difference of two times, each of them spread; the lower one is taken to be "
			"%.3g us",
			t->lower);
	else if (l->metric == XB_METRIC_OVERHEAD_PCT)
		fprintf(out, "\nfrom the difference of two times, each of them spread");
	fprintf(out,
		"\n%u to %u launches, a violation confirmed in fresh ones, %u trials each, seed %llu\n\n",
		settings->launches_min, settings->launches_max, settings->trials,
		(unsigned long long)settings->seed);
	fprintf(out, "%-24s", "");
	for (size_t s = 0; s < SPREADS; s++)
		fprintf(out, " | launches spread by %.0f %%%*s", 100 * spreads[s], 5, "");
	fprintf(out, "\n%-24s", "the truth");
	for (size_t s = 0; s < SPREADS; s++)
		fprintf(out, " | PASS%%  FAIL%%   ???%%    n");
	fputc('\n', out);
}

/* 1 when it keeps what is wanted. */
static int test_limit(const struct xb_limit *limit, const struct xb_selftest *settings, FILE *out,
		      struct launches *l)
{
	struct truth t = truth_of(limit);
	struct xb_rng rng;
	double false_alarms = 0, detection = 1;

	if (!(t.nominal > 0) || !xb_metric_has_size(limit->metric)) {
		fprintf(out, "limit %s: %s: no simulation (%s)\n\n", limit->name,
			xb_metric_name(limit->metric),
			xb_metric_has_size(limit->metric) ? "its bound has no scale"
							  : "it is not a sample of launches");
		return 1;
	}
	describe(&t, settings, out);
	for (size_t r = 0; r < ROWS; r++) {
		t.value = true_value(&t, &rows[r]);
		fprintf(out, "%-24s", rows[r].name);
		for (size_t s = 0; s < SPREADS; s++) {
			t.spread = spreads[s];
			/* every cell its own stream: one more row changes no other */
			xb_rng_seed(&rng, settings->seed * 1000003u + r * 101u + s);
			struct rates rates = try(&t, settings, l, &rng);
			fprintf(out, " | %5.1f %6.1f %6.1f %4.1f", 100 * rates.verdict[XB_VERDICT_PASS],
				100 * rates.verdict[XB_VERDICT_FAIL],
				100 * rates.verdict[XB_VERDICT_INCONCLUSIVE], rates.launches);
			if (r == ROW_HALF && rates.verdict[XB_VERDICT_FAIL] > false_alarms)
				false_alarms = rates.verdict[XB_VERDICT_FAIL];
			if (r == ROW_BEYOND && rates.verdict[XB_VERDICT_FAIL] < detection)
				detection = rates.verdict[XB_VERDICT_FAIL];
		}
		fputc('\n', out);
	}
	fprintf(out,
		"\nfalse alarms at half of what is allowed: at most %.1f %% (wanted: %.0f %%)\n"
		"detection at 15 %% beyond the limit: at least %.1f %% (wanted: %.0f %%)\n\n",
		100 * false_alarms, 100 * WANTED_FALSE_ALARMS, 100 * detection, 100 * WANTED_DETECTION);
	return false_alarms <= WANTED_FALSE_ALARMS && detection >= WANTED_DETECTION;
}

int xb_selftest(const struct xb_limits *limits, const struct xb_selftest *settings, void *stdio_file,
		struct xb_error *error)
{
	FILE *out = stdio_file;
	struct launches *work;
	int kept = 1;

	if (settings->launches_max > LAUNCHES_MAX || settings->launches_min < 1)
		return xb_fail(error, XB_E_USAGE, "the self-test takes 1 to %u launches", LAUNCHES_MAX);
	work = calloc(1, sizeof(*work));
	if (!work)
		return xb_fail(error, XB_E_RESOURCE, "out of memory");
	for (size_t i = 0; i < limits->count; i++)
		kept &= test_limit(&limits->limits[i], settings, out, work);
	free(work);
	return kept ? 0 : 1;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "verdict.h"
#include "../stats/stats.h"

#define WITHIN_REASON 100.0 /* times the launches so far */

struct part { /* of a limit: absolute max, absolute min, or relative */
	enum xb_verdict verdict;
	double needed, bound;
	double distance; /* of the value from the bound, in bounds: for the nearest one */
};

const char *xb_verdict_name(enum xb_verdict verdict)
{
	static const char *const names[] = {"pass", "fail", "inconclusive", "unmeasured"};
	return names[verdict];
}

/* Where an interval lies to a bound that may itself be uncertain. upper: the value should not be above. */
static struct part judge_bound(const struct xb_interval *value, size_t launches, double low, double high,
			       int upper)
{
	double nearest = value->median < low ? low : value->median > high ? high : value->median;
	struct part part = {XB_VERDICT_INCONCLUSIVE, NAN, upper ? high : low, 0};
	double distance = fabs(value->median - nearest), side;

	part.distance = fabs(part.bound) > 0 ? fabs(value->median - part.bound) / fabs(part.bound)
					     : fabs(value->median - part.bound);
	if (!value->valid) {
		part.needed = XB_VERDICT_LAUNCHES;
		return part;
	}
	if (upper ? value->high <= low : value->low >= high)
		part.verdict = XB_VERDICT_PASS;
	else if (upper ? value->low > high : value->high < low)
		part.verdict = XB_VERDICT_FAIL;
	else {
		/* an interval shrinks with the square root of the launches */
		side = value->median < nearest || (value->median == nearest && upper)
			       ? value->high - value->median
			       : value->median - value->low;
		double ratio = side / distance;
		part.needed =
			ratio * ratio <= WITHIN_REASON ? ceil(ratio * ratio * (double)launches) : INFINITY;
		if (part.needed <= (double)launches)
			part.needed = (double)launches + 1;
	}
	return part;
}

static enum xb_verdict combine(enum xb_verdict a, enum xb_verdict b, int both)
{
	enum xb_verdict decisive = both ? XB_VERDICT_PASS : XB_VERDICT_FAIL,
			other = both ? XB_VERDICT_FAIL : XB_VERDICT_PASS;

	if (a == decisive || b == decisive)
		return decisive;
	return a == other && b == other ? other : XB_VERDICT_INCONCLUSIVE;
}

/* Of two parts, the one to tell about: which decides; when nothing does, the one that needs less. */
static struct part joined(const struct part *a, const struct part *b, int both)
{
	enum xb_verdict verdict = combine(a->verdict, b->verdict, both);
	struct part out = a->verdict == verdict && b->verdict == verdict
				  ? (a->distance < b->distance ? *a : *b)
			  : a->verdict == verdict ? *a
						  : *b;
	out.verdict = verdict;
	return out;
}

static int relative(const struct xb_limit *limit, const struct xb_against *against, const double *values,
		    size_t count, int exact, struct part *out)
{
	int upper = !xb_metric_higher_is_better(limit->metric);
	double factor = upper ? 1 + limit->within : 1 - limit->within;

	if (against->by_launch) {
		double *ratios = malloc((count + 1) * sizeof(*ratios)),
		       *typical = malloc((count + 1) * sizeof(*typical));
		size_t n = 0;
		for (size_t i = 0; ratios && typical && i < count; i++) {
			if (!(against->by_launch[i] > 0) || !isfinite(values[i]))
				continue;
			typical[n] = against->by_launch[i];
			ratios[n++] = values[i] / against->by_launch[i];
		}
		struct xb_interval interval =
			xb_median_interval(ratios, ratios && typical ? n : 0, XB_VERDICT_LEVEL);
		*out = judge_bound(&interval, n, factor, factor, upper);
		out->bound *= n ? xb_median(typical, n) : NAN;
		free(ratios);
		free(typical);
		return n > 0;
	}
	if (!isfinite(against->low) || !isfinite(against->high))
		return 0;
	struct xb_interval interval = xb_median_interval(values, count, XB_VERDICT_LEVEL);
	if (exact)
		interval = (struct xb_interval){interval.median, interval.median, interval.median, 1};
	*out = judge_bound(&interval, count, against->low * factor, against->high * factor, upper);
	return 1;
}

static void explain(const struct xb_limit *limit, const struct part *part, struct xb_judgement *out)
{
	if (out->verdict != XB_VERDICT_INCONCLUSIVE)
		return;
	out->launches_needed = part->needed;
	if (out->launches < XB_VERDICT_LAUNCHES && isnan(out->ci_low))
		snprintf(out->reason, sizeof(out->reason), "%zu launch%s give%s no interval; %u are needed",
			 out->launches, out->launches == 1 ? "" : "es", out->launches == 1 ? "s" : "",
			 XB_VERDICT_LAUNCHES);
	else if (isinf(part->needed))
		snprintf(out->reason, sizeof(out->reason),
			 "the value lies at the limit of %.4g %s, as near as can be told", part->bound,
			 xb_metric_unit(limit->metric));
	else
		snprintf(out->reason, sizeof(out->reason),
			 "the interval straddles the limit of %.4g %s; about %.0f launches "
			 "would decide",
			 part->bound, xb_metric_unit(limit->metric), part->needed);
}

void xb_judge(const struct xb_limit *limit, const struct xb_against *against, const double *given,
	      size_t given_count, int exact, struct xb_judgement *out)
{
	struct part parts[2] = {{XB_VERDICT_UNMEASURED, NAN, NAN, NAN},
				{XB_VERDICT_UNMEASURED, NAN, NAN, NAN}};
	size_t part_count = 0, count = 0;
	double *values = malloc((given_count + 1) * sizeof(*values));

	*out = (struct xb_judgement){XB_VERDICT_UNMEASURED,   NAN, NAN, NAN, NAN, 0, NAN,
				     "no launch gave a value"};
	for (size_t i = 0; values && i < given_count; i++)
		if (isfinite(given[i]))
			values[count++] = given[i];
	if (count == 0) {
		free(values);
		return;
	}
	struct xb_interval interval = xb_median_interval(values, count, XB_VERDICT_LEVEL);
	if (exact)
		interval = (struct xb_interval){interval.median, interval.median, interval.median, 1};
	out->value = interval.median;
	out->ci_low = interval.low;
	out->ci_high = interval.high;
	out->launches = count;
	out->reason[0] = '\0';
	if (limit->has_max)
		parts[part_count++] = judge_bound(&interval, count, limit->max, limit->max, 1);
	if (limit->has_min)
		parts[part_count++] = judge_bound(&interval, count, limit->min, limit->min, 0);
	if (part_count == 2) /* outside on either side violates it */
		parts[0] = joined(&parts[0], &parts[1], 0);
	part_count = part_count > 0;
	if (limit->relation) {
		struct part part;
		/* launches that have no value must not shift those that have */
		if (relative(limit, against, against->by_launch ? given : values,
			     against->by_launch ? given_count : count, exact, &part)) {
			parts[0] = part_count ? joined(&parts[0], &part, limit->both) : part;
		} else {
			struct part unknown = {XB_VERDICT_INCONCLUSIVE, NAN, NAN, INFINITY};
			enum xb_verdict verdict =
				part_count ? combine(parts[0].verdict, unknown.verdict, limit->both)
					   : XB_VERDICT_INCONCLUSIVE;
			if (verdict == XB_VERDICT_INCONCLUSIVE) {
				out->verdict = verdict;
				snprintf(out->reason, sizeof(out->reason), "the %s is not known: %s",
					 xb_relation_name(limit->relation),
					 against->missing ? against->missing
							  : "there is nothing to compare with");
				free(values);
				return;
			}
		}
	}
	free(values);
	out->verdict = parts[0].verdict;
	out->bound = parts[0].bound;
	explain(limit, &parts[0], out);
}

enum xb_verdict xb_confirmed(const struct xb_judgement *first, const struct xb_judgement *fresh)
{
	return first->verdict == XB_VERDICT_FAIL && fresh ? fresh->verdict : first->verdict;
}

enum xb_verdict xb_verdict_worse(enum xb_verdict a, enum xb_verdict b)
{
	static const int rank[] = {[XB_VERDICT_PASS] = 0,
				   [XB_VERDICT_INCONCLUSIVE] = 1,
				   [XB_VERDICT_UNMEASURED] = 2,
				   [XB_VERDICT_FAIL] = 3};
	return rank[a] >= rank[b] ? a : b;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_VERDICT_H
#define XB_VERDICT_H
/*
 * From the launch values of one pair to a verdict on one limit. The interval is the distribution-free 95 %
 * interval of the median over launches (stats.h): PASS when it lies inside the limit, FAIL when it lies
 * outside, INCONCLUSIVE when it straddles. Live runs and the self-test use these functions alike.
 */
#include "limits.h"

enum xb_verdict { XB_VERDICT_PASS, XB_VERDICT_FAIL, XB_VERDICT_INCONCLUSIVE, XB_VERDICT_UNMEASURED };
const char *xb_verdict_name(enum xb_verdict verdict); /* "pass" */

#define XB_VERDICT_LEVEL 0.95
#define XB_VERDICT_LAUNCHES 6u /* fewest that give such an interval */

/* What a relative limit compares with. */
struct xb_against {
	const double *by_launch; /* of the same launches as the values (cancels what a launch does to all); or
				    NULL */
	double low, high; /* else: the reference with its own uncertainty, in the unit of the metric; NAN if
			     unknown */
	const char *missing; /* why it is not known, a clause; NULL: "nothing to compare with" */
};

struct xb_judgement {
	enum xb_verdict verdict;
	double value, ci_low, ci_high; /* unit of the metric; NAN when there is none */
	double bound; /* of the part that decided, or is nearest to; unit of the metric */
	size_t launches;
	/* INCONCLUSIVE: launches, in all, that would decide at the spread seen; INFINITY: none within reason,
	 * the value lies at the limit; NAN: more of them would not help. */
	double launches_needed;
	char reason[240]; /* "" for a plain PASS or FAIL */
};

/* exact: the values are no sample, one of them is the truth (byte counters). Values that are not finite are
 * left out. */
void xb_judge(const struct xb_limit *limit, const struct xb_against *against, const double *values,
	      size_t count, int exact, struct xb_judgement *out);

/* A first violation is no verdict: what counts is what fresh launches say. */
enum xb_verdict xb_confirmed(const struct xb_judgement *first, const struct xb_judgement *fresh);

/* The worst of them, as the exit status ranks them: FAIL, UNMEASURED, INCONCLUSIVE, PASS. */
enum xb_verdict xb_verdict_worse(enum xb_verdict a, enum xb_verdict b);

#endif

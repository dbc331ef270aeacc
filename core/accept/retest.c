/* SPDX-License-Identifier: BSD-3-Clause */
/* Which pair is measured again after a violation, and what follows from it. */
#include <math.h>
#include <string.h>
#include "places.h"
#include "../report/text.h"

#define NO_REFERENCE "alone, but compared with pairs that ran at the same time: none gave a value alone"

static int blames_node(const struct xb_ruling *r)
{
	return r->cause == XB_CAUSE_NODE || r->cause == XB_CAUSE_BOTH;
}

static int open_violation(const struct xb_ruling *r)
{
	return r->first.verdict == XB_VERDICT_FAIL && !r->retested;
}

/* Violations of a node, and passes with it. */
static void record_of(const struct xb_rulings *rulings, uint32_t node, size_t *violations, size_t *passes)
{
	*violations = *passes = 0;
	for (size_t i = 0; i < rulings->count; i++) {
		const struct xb_ruling *r = &rulings->list[i];
		if (r->a != node && r->b != node)
			continue;
		if (r->first.verdict == XB_VERDICT_FAIL)
			*violations += !blames_node(r) || r->culprit == node;
		else
			*passes += r->first.verdict == XB_VERDICT_PASS;
	}
}

/* A node without violations of its own, with the most passes; endpoints if there is none. */
static uint32_t good_partner(const struct xb_rulings *rulings, uint32_t endpoints, uint32_t node)
{
	uint32_t best = endpoints;
	size_t most = 0;

	for (uint32_t e = 0; e < endpoints; e++) {
		size_t violations, passes;
		record_of(rulings, e, &violations, &passes);
		if (e == node || violations > 0 || passes <= most)
			continue;
		most = passes;
		best = e;
	}
	return best;
}

int xb_retest_next(const struct xb_rulings *rulings, uint32_t endpoints, struct xb_retest *retest)
{
	for (size_t i = 0; i < rulings->count; i++) {
		const struct xb_ruling *r = &rulings->list[i];
		if (!open_violation(r))
			continue;
		*retest = (struct xb_retest){.a = r->a, .b = r->b};
		uint32_t partner = blames_node(r) ? good_partner(rulings, endpoints, r->culprit) : endpoints;
		if (partner == endpoints)
			return 1;
		retest->of_node = 1;
		retest->node = r->culprit;
		retest->a = r->culprit < partner ? r->culprit : partner;
		retest->b = r->culprit < partner ? partner : r->culprit;
		return 1;
	}
	return 0;
}

int xb_retest_covers(const struct xb_retest *retest, const struct xb_ruling *r)
{
	if (!open_violation(r))
		return 0;
	if (retest->of_node)
		return blames_node(r) && r->culprit == retest->node;
	return r->a == retest->a && r->b == retest->b;
}

int xb_limit_is_among_pairs(const struct xb_limit *limit)
{
	return limit->relation == XB_RELATION_MEDIAN || limit->relation == XB_RELATION_BEST;
}

int xb_reference_choose(const struct xb_rulings *rulings, const struct xb_retest *retest, uint32_t *a,
			uint32_t *b)
{
	const struct xb_ruling *wanted = NULL;
	double nearest = INFINITY;

	for (size_t i = 0; i < rulings->count && !wanted; i++)
		if (xb_retest_covers(retest, &rulings->list[i]) &&
		    xb_limit_is_among_pairs(rulings->list[i].limit))
			wanted = &rulings->list[i];
	for (size_t i = 0; wanted && i < rulings->count; i++) {
		const struct xb_ruling *r = &rulings->list[i];
		if (r->limit != wanted->limit || r->size_bytes != wanted->size_bytes ||
		    r->first.verdict != XB_VERDICT_PASS)
			continue;
		double distance = fabs(log(r->first.value / r->typical));
		if (!(distance < nearest))
			continue;
		nearest = distance;
		*a = r->a;
		*b = r->b;
	}
	return isfinite(nearest);
}

void xb_reference_take(struct xb_rulings *rulings, uint32_t a, uint32_t b, const struct xb_rulings *alone)
{
	for (size_t i = 0; i < rulings->count; i++) {
		struct xb_ruling *r = &rulings->list[i];
		if (!xb_limit_is_among_pairs(r->limit))
			continue;
		const struct xb_ruling *here = xb_ruling_find(rulings, r->limit, r->size_bytes, a, b),
				       *there = xb_ruling_find(alone, r->limit, r->size_bytes, 0, 1);
		if (here && there)
			r->typical_alone =
				xb_typical_alone(r->typical, here->first.value, there->first.value);
		r->no_reference = !isfinite(r->typical_alone);
	}
}

static int doubt_at(const struct xb_retest *retest, const struct xb_ruling *fresh, uint32_t endpoint)
{
	return (fresh->doubt_a && retest->a == endpoint) || (fresh->doubt_b && retest->b == endpoint);
}

void xb_retest_take(struct xb_rulings *rulings, const struct xb_retest *retest,
		    const struct xb_rulings *fresh, double launch_s)
{
	static const struct xb_judgement nothing = {XB_VERDICT_UNMEASURED,	  NAN, NAN, NAN, NAN, 0, NAN,
						    "the retest measured nothing"};

	for (size_t i = 0; i < rulings->count; i++) {
		struct xb_ruling *r = &rulings->list[i];
		if (!xb_retest_covers(retest, r))
			continue;
		const struct xb_ruling *f = xb_ruling_find(fresh, r->limit, r->size_bytes, 0, 1);
		r->retested = 1;
		r->retest_a = retest->a;
		r->retest_b = retest->b;
		r->retest_launch_s = launch_s;
		r->fresh = f ? f->first : nothing;
		r->doubt_a = f && doubt_at(retest, f, r->a);
		r->doubt_b = f && doubt_at(retest, f, r->b);
		if (f && r->no_reference)
			xb_append(r->fresh.reason, sizeof(r->fresh.reason), "%s" NO_REFERENCE,
				  *r->fresh.reason ? "; " : "");
		r->verdict = xb_confirmed(&r->first, &r->fresh);
	}
}

void xb_retest_conclude(struct xb_rulings *rulings, const struct xb_retest *retest)
{
	if (!retest->of_node)
		return;
	for (size_t i = 0; i < rulings->count; i++) {
		struct xb_ruling *r = &rulings->list[i];
		int same_pair = r->a == retest->a && r->b == retest->b;
		if (!r->retested || !blames_node(r) || r->culprit != retest->node || same_pair ||
		    r->retest_a != retest->a || r->retest_b != retest->b ||
		    r->fresh.verdict != XB_VERDICT_PASS)
			continue;
		/* the node is well; what is between these two is not known yet */
		r->cause = XB_CAUSE_LINK;
		r->retested = 0;
		r->verdict = r->first.verdict;
	}
}

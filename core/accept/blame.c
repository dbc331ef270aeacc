/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include "blame.h"
#include "../stats/stats.h"

#define STEPS_PER_NODE 20u
#define SETTLED 1e-9
#define OWN_SHARE 0.5 /* of a pair's excess: a node that explains so much is to blame */
#define JOINT_SHARE 0.3 /* two nodes that explain so much each are both */
#define PAIRS_TO_TELL                                                                                        \
	3u /* fewest measured pairs of a node that tell it from its links, with NODES_TO_TELL                \
	    */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Of the middle two, the one nearer to 0: half of a node's pairs is not enough to accuse it. */
static double cautious_median(double *values, size_t n)
{
	if (n == 0)
		return 0;
	qsort(values, n, sizeof(*values), by_size);
	if (n % 2)
		return values[n / 2];
	return fabs(values[n / 2 - 1]) < fabs(values[n / 2]) ? values[n / 2 - 1] : values[n / 2];
}

static double residual(const struct xb_blame_pair *p, double typical, const double *effects)
{
	return log(p->value) - typical - effects[p->a] - effects[p->b];
}

static int usable(const struct xb_blame_pair *p)
{
	return p->value > 0 && isfinite(p->value);
}

/* Median of what is left unexplained in the pairs of a node. */
static double left_over(const struct xb_blame_pair *pairs, size_t count, uint32_t node, double typical,
			const double *effects, double *work)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++)
		if (usable(&pairs[i]) && (pairs[i].a == node || pairs[i].b == node))
			work[n++] = residual(&pairs[i], typical, effects);
	return cautious_median(work, n);
}

static double fit(const struct xb_blame_pair *pairs, size_t count, uint32_t nodes, double *effects,
		  double *work)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++)
		if (usable(&pairs[i]))
			work[n++] = log(pairs[i].value);
	/* begin among the good pairs: with few nodes one bad node slows half of all pairs and more; the
	 * centring below ends at what is typical */
	double typical = n ? xb_quantile(work, n, 0.25) : 0;
	for (uint32_t i = 0; i < nodes; i++)
		effects[i] = 0;
	for (size_t step = 0; step < (size_t)STEPS_PER_NODE * nodes; step++) {
		uint32_t worst = 0;
		double most = 0;
		for (uint32_t i = 0; i < nodes; i++) {
			double m = left_over(pairs, count, i, typical, effects, work);
			if (fabs(m) > fabs(most)) {
				most = m;
				worst = i;
			}
		}
		if (fabs(most) < SETTLED)
			break;
		effects[worst] += most;
		/* nodes are measured against the typical one, and it is not allowed to move away */
		for (uint32_t i = 0; i < nodes; i++)
			work[i] = effects[i];
		double middle = xb_median(work, nodes);
		for (uint32_t i = 0; i < nodes; i++)
			effects[i] -= middle;
		typical += 2 * middle;
	}
	return typical;
}

static void explain(struct xb_blame_pair *p, double typical, const double *effects, const size_t *measured)
{
	double excess = log(p->value) - typical, a = effects[p->a], b = effects[p->b];
	uint32_t worse = b > a ? p->b : p->a, better = worse == p->a ? p->b : p->a;

	p->culprit = worse;
	if (!usable(p) || !(excess > 0))
		p->cause = XB_CAUSE_UNKNOWN;
	else if (a >= JOINT_SHARE * excess && b >= JOINT_SHARE * excess)
		p->cause = XB_CAUSE_BOTH;
	else if (effects[worse] >= OWN_SHARE * excess)
		p->cause = XB_CAUSE_NODE;
	else
		p->cause = XB_CAUSE_LINK;
	if (measured[worse] < 2 || (measured[worse] < PAIRS_TO_TELL && measured[better] < 2))
		p->cause = XB_CAUSE_UNKNOWN;
}

int xb_blame(struct xb_blame_pair *pairs, size_t count, uint32_t nodes, double *effects,
	     struct xb_error *error)
{
	double *work = malloc((count + nodes + 1u) * sizeof(*work));
	size_t *measured = calloc(nodes + 1u, sizeof(*measured));
	if (!work || !measured) {
		free(work);
		free(measured);
		return xb_fail(error, XB_E_RESOURCE, "out of memory");
	}
	double typical = fit(pairs, count, nodes, effects, work);
	for (size_t i = 0; i < count; i++)
		if (usable(&pairs[i])) {
			measured[pairs[i].a]++;
			measured[pairs[i].b]++;
		}
	for (size_t i = 0; i < count; i++) {
		pairs[i].cause = XB_CAUSE_NONE;
		if (pairs[i].failed)
			explain(&pairs[i], typical, effects, measured);
	}
	free(work);
	free(measured);
	return 0;
}

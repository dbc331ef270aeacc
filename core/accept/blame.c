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

static int usable(const struct xb_blame_pair *p)
{
	return p->value > 0 && isfinite(p->value);
}

/* The usable pairs, by node. */
struct index {
	size_t *first; /* of the pairs of a node in `of`; one more at the end */
	size_t *of;
	double *logs; /* of the values, by pair */
	double *work; /* as many as there are pairs and nodes */
};

static void index_free(struct index *x)
{
	free(x->first);
	free(x->of);
	free(x->logs);
	free(x->work);
}

static int index_make(struct index *x, const struct xb_blame_pair *pairs, size_t count, uint32_t nodes)
{
	*x = (struct index){.first = calloc(nodes + 2u, sizeof(*x->first)),
			    .of = malloc((2 * count + 1) * sizeof(*x->of)),
			    .logs = malloc((count + 1) * sizeof(*x->logs)),
			    .work = malloc((count + nodes + 1u) * sizeof(*x->work))};
	if (!x->first || !x->of || !x->logs || !x->work) {
		index_free(x);
		return -1;
	}
	/* counted two places on, then summed, so that filling in moves each to where it belongs */
	for (size_t i = 0; i < count; i++) {
		x->logs[i] = usable(&pairs[i]) ? log(pairs[i].value) : NAN;
		if (usable(&pairs[i])) {
			x->first[pairs[i].a + 2u]++;
			x->first[pairs[i].b + 2u]++;
		}
	}
	for (uint32_t n = 0; n < nodes; n++)
		x->first[n + 2u] += x->first[n + 1u];
	for (size_t i = 0; i < count; i++)
		if (usable(&pairs[i])) {
			x->of[x->first[pairs[i].a + 1u]++] = i;
			x->of[x->first[pairs[i].b + 1u]++] = i;
		}
	return 0;
}

/* Median of what is left unexplained in the pairs of a node. */
static double left_over(const struct index *x, const struct xb_blame_pair *pairs, uint32_t node,
			double typical, const double *effects)
{
	size_t n = 0;
	for (size_t k = x->first[node]; k < x->first[node + 1u]; k++) {
		const struct xb_blame_pair *p = &pairs[x->of[k]];
		x->work[n++] = x->logs[x->of[k]] - typical - effects[p->a] - effects[p->b];
	}
	return cautious_median(x->work, n);
}

static double fit(const struct index *x, const struct xb_blame_pair *pairs, size_t count, uint32_t nodes,
		  double *effects)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++)
		if (usable(&pairs[i]))
			x->work[n++] = x->logs[i];
	/* begin among the good pairs: with few nodes one bad node slows half of all pairs and more; the
	 * centring below ends at what is typical */
	double typical = n ? xb_quantile(x->work, n, 0.25) : 0;
	for (uint32_t i = 0; i < nodes; i++)
		effects[i] = 0;
	for (size_t step = 0; step < (size_t)STEPS_PER_NODE * nodes; step++) {
		uint32_t worst = 0;
		double most = 0;
		for (uint32_t i = 0; i < nodes; i++) {
			double m = left_over(x, pairs, i, typical, effects);
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
			x->work[i] = effects[i];
		double middle = xb_median(x->work, nodes);
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
	struct index x;
	size_t *measured = calloc(nodes + 1u, sizeof(*measured));
	if (!measured || index_make(&x, pairs, count, nodes)) {
		free(measured);
		return xb_fail(error, XB_E_RESOURCE, "out of memory");
	}
	double typical = fit(&x, pairs, count, nodes, effects);
	for (uint32_t i = 0; i < nodes; i++)
		measured[i] = x.first[i + 1u] - x.first[i];
	for (size_t i = 0; i < count; i++) {
		pairs[i].cause = XB_CAUSE_NONE;
		if (pairs[i].failed)
			explain(&pairs[i], typical, effects, measured);
	}
	index_free(&x);
	free(measured);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_BLAME_H
#define XB_BLAME_H
/*
 * Which node, or which link, makes pairs slow. Model: log(value of pair i,j) = typical + node_i + node_j +
 * link_ij, where almost all node and link terms are 0. Fitted by least absolute deviations through greedy
 * medians (the median polish of Tukey 1977, largest node first), so that one bad node does not smear over its
 * partners, as it would in a fit of means.
 */
#include <stddef.h>
#include <stdint.h>
#include "../error.h"

enum xb_cause { XB_CAUSE_NONE, XB_CAUSE_NODE, XB_CAUSE_BOTH, XB_CAUSE_LINK, XB_CAUSE_UNKNOWN };

struct xb_blame_pair {
	uint32_t a, b; /* nodes, 0 ... nodes-1 */
	double value; /* > 0; larger is worse. NAN: not measured */
	int failed; /* tripped its limit */
	/* found: */
	enum xb_cause cause; /* NONE unless failed; UNKNOWN: too few pairs to tell node from link */
	uint32_t culprit; /* for NODE */
};

/* effects: `nodes` entries, in log of the value: 0.1 is 10 % worse than typical. 0 or XB_E_RESOURCE. */
int xb_blame(struct xb_blame_pair *pairs, size_t count, uint32_t nodes, double *effects,
	     struct xb_error *error);

#endif

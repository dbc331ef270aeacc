/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_RULINGS_H
#define XB_RULINGS_H
/* All limits against one result document: a ruling for every limit, size and pair. */
#include <jansson.h>
#include "blame.h"
#include "known.h"
#include "verdict.h"

struct xb_ruling {
	const struct xb_limit *limit;
	size_t size_bytes; /* SIZE_MAX: of the run */
	uint32_t a, b; /* endpoints */
	struct xb_judgement first, fresh; /* fresh: of the retest */
	int retested;
	uint32_t retest_a, retest_b;
	double retest_launch_s; /* what a launch of the retest took */
	enum xb_verdict verdict; /* final */
	double typical; /* what a relative limit on all pairs compared with; NAN */
	/* the same for one pair at a time, where the pairs of the run ran at the same time; NAN: not known */
	double typical_alone;
	int no_reference; /* it was looked for, and is not known */
	int beyond_help; /* INCONCLUSIVE, and more launches would not change that */
	int doubt_a, doubt_b; /* no verdict because of this end: other work on its core, a wrong path */
	enum xb_cause cause;
	uint32_t culprit;
};

struct xb_rulings {
	struct xb_ruling *list;
	size_t count;
	char incomparable[240]; /* why the baseline cannot be compared with; "": it can, or there is none */
};

/* earlier: rulings of the run that these launches retest, whose median or best of all pairs (typical_alone,
 * if it is known) stays the measure, and whose comparison with the baseline holds; or NULL. XB_E_RESOURCE. */
int xb_rule(json_t *document, const struct xb_limits *limits, const struct xb_config *config,
	    const struct xb_known *known, const struct xb_rulings *earlier, struct xb_rulings *out,
	    struct xb_error *error);
void xb_rulings_free(struct xb_rulings *rulings);

/* What all pairs have typically when each is alone, by one that was measured both ways: among the others, and
 * alone. NAN where that cannot be told. */
double xb_typical_alone(double typical, double among_others, double alone);

/* Nothing that further launches could decide is open. */
int xb_rulings_settled(const struct xb_rulings *rulings);
/* The ruling of this limit, size and pair; NULL if there is none. */
struct xb_ruling *xb_ruling_find(const struct xb_rulings *rulings, const struct xb_limit *limit,
				 size_t size_bytes, uint32_t a, uint32_t b);
/* Names nodes and links behind the violations (blame.h), limit by limit and size by size. */
int xb_rulings_blame(struct xb_rulings *rulings, uint32_t endpoints, struct xb_error *error);

#endif

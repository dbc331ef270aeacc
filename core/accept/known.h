/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_KNOWN_H
#define XB_KNOWN_H
/* What is known from elsewhere: a recorded run of this network, and published tables. */
#include <jansson.h>
#include "verdict.h"

struct xb_known {
	json_t *baseline; /* document of a recorded run; NULL */
	char *baseline_path;
	json_t *tables[XB_LIMITS_MAX]; /* by limit: the published table that it names, or NULL */
	/* a pair is measured again alone: those of the whole run, where its endpoints were these */
	int stands_for;
	uint32_t stands_for_a, stands_for_b;
};

/* Reads what the limits refer to; every measured size that a limit covers must be in its reference. path may
 * be NULL: then no limit may speak of a baseline. */
int xb_known_read(const struct xb_limits *limits, const struct xb_config *config, const char *baseline_path,
		  struct xb_known *known, struct xb_error *error);
void xb_known_free(struct xb_known *known);

/* The value that a limit relative to a baseline or a reference compares with; the hosts, and among several
 * pairs of the same two the endpoints, decide which pair of the baseline it is. */
void xb_known_value(const struct xb_known *known, const struct xb_limits *limits,
		    const struct xb_limit *limit, size_t size_bytes, json_t *document, uint32_t a, uint32_t b,
		    struct xb_against *against);

/* How the run differs from its baseline: an array of {"kind", "text", "comparable"}; kinds are hardware,
 * placement, configuration, version and hosts. comparable is false where numbers of the two mean different
 * things. */
json_t *xb_baseline_differences(json_t *document, json_t *baseline);

#endif

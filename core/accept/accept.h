/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_ACCEPT_H
#define XB_ACCEPT_H
/* `xportbench accept`: docs/acceptance.md. */
#include <jansson.h>
#include "rulings.h"

#define XB_EXIT_FAILED 1 /* a limit is violated, and fresh launches say so too */

/* limits_path NULL: only to record a baseline (--record). given: bit i for xb_options[i]. Returns the exit
 * status. */
int xb_accept(const char *limits_path, uint64_t given, struct xb_config *config);

struct xb_left_out {
	uint32_t endpoint; /* of the hosts as they were given */
	size_t transport; /* that was the first to miss it */
	int of_host; /* its host could not be used at all */
	char host[256], reason[400];
};

/* Everything that the "acceptance" member of the document tells. */
struct xb_acceptance {
	const struct xb_limits *limits;
	const struct xb_known *known;
	struct xb_rulings rulings;
	uint32_t endpoints; /* of the run, without those left out */
	const struct xb_config *config;
	double launch_s; /* what a launch took */
	unsigned retests;
	int serial;
	uint32_t original[XB_MAX_ENDPOINTS]; /* number of an endpoint before others were left out */
	struct xb_left_out *left_out;
	size_t left_out_count;
};

enum xb_verdict xb_acceptance_verdict(const struct xb_acceptance *a);
json_t *xb_acceptance_json(const struct xb_acceptance *a, json_t *document); /* new reference */
/* JUnit XML of a document with "acceptance", written atomically. */
int xb_junit_write(json_t *document, const char *path, struct xb_error *error);

#endif

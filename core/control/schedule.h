/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_SCHEDULE_H
#define XB_SCHEDULE_H
#include <stddef.h>
#include <stdint.h>
#include "../error.h"
/*
 * A schedule: rounds of disjoint pairs among the endpoints of a team. Every round's pairs run at the same
 * time. Two endpoints have the trivial one. All pairs of n endpoints take n-1 rounds (n if odd) by the circle
 * method (Kirkman 1847): endpoint n-1 stays, the others rotate.
 */
struct xb_pair {
	uint32_t first, second; /* first < second; first starts and keeps time */
};

struct xb_schedule {
	struct xb_pair *pairs; /* of all rounds, one after the other */
	size_t *round_start; /* rounds + 1 entries: round r is pairs[round_start[r] ... round_start[r+1]) */
	size_t rounds;
};

/* All pairs once; endpoints >= 2. 0 or XB_E_USAGE / XB_E_RESOURCE. */
int xb_schedule_all_pairs(uint32_t endpoints, struct xb_schedule *schedule, struct xb_error *error);
struct xb_config;
/* As the configuration wants it (--pairs, --serial): all, ring (each endpoint with the next), quick (each
 * with one other), or the pairs of a file, named by host or by number. Disjoint pairs run at the same time
 * unless it is serial. XB_E_USAGE with FILE:LINE for what is wrong in the file. */
int xb_schedule_of(const struct xb_config *config, uint32_t endpoints, struct xb_schedule *schedule,
		   struct xb_error *error);
/* The pairs of the file in --pairs, each once, to be freed by the caller; none if it names no file. */
int xb_schedule_listed(const struct xb_config *config, uint32_t endpoints, struct xb_pair **pairs,
		       size_t *count, struct xb_error *error);
void xb_schedule_free(struct xb_schedule *schedule);

#endif

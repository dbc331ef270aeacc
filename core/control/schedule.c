/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "schedule.h"

int xb_schedule_all_pairs(uint32_t endpoints, struct xb_schedule *schedule, struct xb_error *error)
{
	if (endpoints < 2)
		return xb_fail(error, XB_E_USAGE, "a schedule needs at least 2 endpoints; %u given",
			       endpoints);
	uint32_t seats = endpoints + endpoints % 2; /* with an odd number, who meets the empty seat rests */
	size_t rounds = seats - 1;
	schedule->pairs = calloc((size_t)endpoints * (endpoints - 1) / 2, sizeof *schedule->pairs);
	schedule->round_start = calloc(rounds + 1, sizeof *schedule->round_start);
	schedule->rounds = rounds;
	if (!schedule->pairs || !schedule->round_start) {
		xb_schedule_free(schedule);
		return xb_fail(error, XB_E_RESOURCE, "out of memory for a schedule of %u endpoints",
			       endpoints);
	}
	size_t used = 0;
	for (uint32_t r = 0; r < rounds; r++) {
		schedule->round_start[r] = used;
		for (uint32_t k = 0; k < seats / 2; k++) {
			/* seat 0 is fixed and holds the last number; the others hold 0 ... seats-2 rotated by
			 * r */
			uint32_t a = k == 0 ? seats - 1 : (r + k) % (seats - 1);
			uint32_t b = (r + seats - 1 - k) % (seats - 1);
			if (a >= endpoints || b >= endpoints)
				continue;
			schedule->pairs[used++] = (struct xb_pair){a < b ? a : b, a < b ? b : a};
		}
	}
	schedule->round_start[rounds] = used;
	return 0;
}

void xb_schedule_free(struct xb_schedule *schedule)
{
	free(schedule->pairs);
	free(schedule->round_start);
	schedule->pairs = NULL;
	schedule->round_start = NULL;
	schedule->rounds = 0;
}

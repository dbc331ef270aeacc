/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_SELFTEST_H
#define XB_SELFTEST_H
#include "limits.h"
/*
 * How often the gate is wrong: the verdict code over synthetic truth. Launch values are drawn as
 *     truth * (1 + spread * normal) * drift(launch, the same for all pairs) * (10 in 5 % of the visits, else
 * 1) with the spreads between launches that raw TCP (2 %), shared memory (5 %) and MPI over TCP (9 %) show on
 * a virtual machine with two cores. An overhead is the difference of two times that are drawn so. Prints the
 * table to the stream; the same seed prints the same table. Returns 0 when every limit keeps what is wanted
 * of it (docs/acceptance.md), 1 when not, or a negative status.
 */
struct xb_selftest {
	uint64_t seed;
	unsigned launches_min, launches_max;
	unsigned trials; /* of each row and spread */
};
int xb_selftest(const struct xb_limits *limits, const struct xb_selftest *settings, void *stdio_file,
		struct xb_error *error);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_COMMTEST_H
#define XB_COMMTEST_H
/*
 * The arithmetic of the COMMTEST report (P. Worley). S(n) is the time in seconds of a swap of `total` bytes
 * in each direction in n messages, T(n) = S(n) / 2 the one-way time. Checked against the published tables of
 * 2000-05-25 (tests/unit/test_commtest.c).
 */
#include <stddef.h>
#include <stdint.h>
#include "../engine/swap.h"

#define XB_FASTEST_SHOWN 5u

/* Of one protocol over all message sizes. NAN: not enough to tell. */
struct xb_commtest_fit {
	double peak_MBps; /* largest 2 total / S / 1e6 */
	double latency_us; /* per message: (T(n1) - T(n2)) / (n1 - n2), n1 and n2 the two largest n */
	double error; /* max over n of |n latency + total / peak - T(n)| / T(n) */
};
/* messages[i] and seconds[i] belong together; seconds may be NAN where nothing was measured. */
struct xb_commtest_fit xb_commtest_fit(const double *messages, const double *seconds, size_t count,
				       double total_bytes);
/* |model - T| / T of one n. */
double xb_commtest_error(double latency_us, double peak_MBps, double messages, double total_bytes,
			 double seconds);

/* How much the choice of the protocol matters at one message size. */
struct xb_commtest_row {
	size_t count; /* protocols with a time */
	double min_s, min_s_per_message, max_MBps;
	double mean, median, max; /* over the protocols, (value - min) / min */
	unsigned order[XB_SWAP_PROTOCOLS]; /* by increasing time; equal times by number */
	unsigned within[3]; /* protocols with S <= min (1 + 1, 5, 25 %), the fastest included */
};
/* seconds[p] is NAN for protocols that were not measured; 0 if none was. */
int xb_commtest_row(const double seconds[XB_SWAP_PROTOCOLS], double messages, double total_bytes,
		    struct xb_commtest_row *row);

#endif

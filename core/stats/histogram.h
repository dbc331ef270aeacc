/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_HISTOGRAM_H
#define XB_HISTOGRAM_H
#include <stddef.h>
#include <stdint.h>
/*
 * Log-bucket histogram of nanoseconds: exact below 64 ns, then 64 buckets per power of two, so that a
 * bucket's middle is within 1/128 (0.8 %) of every value in it. Fixed size, no allocation; covers 0 ... 2^45
 * ns (9.8 h), larger ones go to the last bucket.
 */
#define XB_HIST_SUB 64u
#define XB_HIST_BUCKETS (XB_HIST_SUB * 40u)

struct xb_histogram {
	uint64_t count;
	uint64_t min_ns, max_ns; /* exact; UINT64_MAX and 0 when empty */
	double sum_ns, sum_sq_ns;
	uint64_t bucket[XB_HIST_BUCKETS];
};

void xb_hist_clear(struct xb_histogram *h);
void xb_hist_add(struct xb_histogram *h, uint64_t ns);
void xb_hist_merge(struct xb_histogram *into, const struct xb_histogram *from);
/* Value at quantile q in [0,1] (nearest rank: the smallest bucket holding at least ceil(q*count) values), ns;
 * 0 when empty. */
double xb_hist_quantile(const struct xb_histogram *h, double q);
double xb_hist_mean(const struct xb_histogram *h);
double xb_hist_stddev(const struct xb_histogram *h); /* sample standard deviation */
size_t xb_hist_bucket_of(uint64_t ns);
/* Lowest value that falls in bucket b, ns; the next bucket's lowest is xb_hist_bucket_low(b + 1). */
uint64_t xb_hist_bucket_low(size_t b);

#endif

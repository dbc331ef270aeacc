/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>
#include "histogram.h"

#define SUB_BITS 6u /* log2(XB_HIST_SUB) */

void xb_hist_clear(struct xb_histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min_ns = UINT64_MAX;
}

size_t xb_hist_bucket_of(uint64_t ns)
{
	if (ns < XB_HIST_SUB)
		return (size_t)ns;
	unsigned exponent = 63u - (unsigned)__builtin_clzll(ns);
	size_t bucket = XB_HIST_SUB * (size_t)(exponent - SUB_BITS) + (size_t)(ns >> (exponent - SUB_BITS));
	return bucket < XB_HIST_BUCKETS ? bucket : XB_HIST_BUCKETS - 1u;
}

uint64_t xb_hist_bucket_low(size_t b)
{
	if (b < XB_HIST_SUB)
		return b;
	return (uint64_t)(XB_HIST_SUB + b % XB_HIST_SUB) << (b / XB_HIST_SUB - 1u);
}

void xb_hist_add(struct xb_histogram *h, uint64_t ns)
{
	double value = (double)ns;
	h->bucket[xb_hist_bucket_of(ns)]++;
	h->count++;
	h->sum_ns += value;
	h->sum_sq_ns += value * value;
	if (ns < h->min_ns)
		h->min_ns = ns;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

void xb_hist_merge(struct xb_histogram *into, const struct xb_histogram *from)
{
	if (from->count == 0)
		return;
	for (size_t b = 0; b < XB_HIST_BUCKETS; b++)
		into->bucket[b] += from->bucket[b];
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	into->sum_sq_ns += from->sum_sq_ns;
	if (from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
}

/* ceil(q * count), 1 ... count; a product that misses an integer by rounding alone counts as that integer. */
static uint64_t nearest_rank(uint64_t count, double q)
{
	double exact = q * (double)count, whole = nearbyint(exact);
	double rank = fabs(exact - whole) <= 1e-10 * exact ? whole : ceil(exact);
	if (!(rank >= 1.0))
		return 1;
	return rank >= (double)count ? count : (uint64_t)rank;
}

double xb_hist_quantile(const struct xb_histogram *h, double q)
{
	if (h->count == 0)
		return 0.0;
	uint64_t rank = nearest_rank(h->count, q), seen = 0;
	if (rank == 1)
		return (double)h->min_ns;
	if (rank == h->count)
		return (double)h->max_ns;
	for (size_t b = 0; b + 1u < XB_HIST_BUCKETS; b++) {
		seen += h->bucket[b];
		if (seen < rank)
			continue;
		double middle =
			((double)xb_hist_bucket_low(b) + (double)(xb_hist_bucket_low(b + 1u) - 1u)) / 2.0;
		return fmin(fmax(middle, (double)h->min_ns), (double)h->max_ns);
	}
	return (double)h->max_ns; /* in the open-ended last bucket */
}

double xb_hist_mean(const struct xb_histogram *h)
{
	return h->count ? h->sum_ns / (double)h->count : 0.0;
}

double xb_hist_stddev(const struct xb_histogram *h)
{
	if (h->count < 2)
		return 0.0;
	double n = (double)h->count;
	double variance = (h->sum_sq_ns - h->sum_ns * (h->sum_ns / n)) / (n - 1.0);
	return variance > 0.0 ? sqrt(variance) : 0.0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_STATS_H
#define XB_STATS_H
#include <stddef.h>
/*
 * Order statistics. Intervals of a median are distribution-free: [x(k), x(n+1-k)] with the largest k for
 * which P(Bin(n,1/2) <= k-1) <= (1-level)/2 (Le Boudec 2010, Theorem 2.1; Hoefler & Belli SC'15 rule 5). For
 * n < 6 there is no such interval at 95 %.
 */
struct xb_interval {
	double median, low, high;
	int valid; /* 0: too few values for an interval; low and high are NAN */
};

double xb_median(const double *values, size_t n); /* NAN when n == 0; mean of the middle two when even */
double xb_quantile(const double *values, size_t n, double q); /* nearest rank */
size_t xb_median_rank(size_t n, double level); /* k above, 1-based; 0 when there is none */
struct xb_interval xb_median_interval(const double *values, size_t n, double level);

/* Deterministic shuffles and choices: xoshiro256** seeded through splitmix64 (Blackman & Vigna). */
struct xb_rng {
	unsigned long long s[4];
};
void xb_rng_seed(struct xb_rng *rng, unsigned long long seed);
unsigned long long xb_rng_next(struct xb_rng *rng);
size_t xb_rng_below(struct xb_rng *rng, size_t n); /* uniform in 0 ... n-1, without modulo bias */
void xb_rng_shuffle(struct xb_rng *rng, size_t *items, size_t n);

#endif

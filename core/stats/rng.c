/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"

static unsigned long long splitmix64(unsigned long long *state)
{
	unsigned long long z = (*state += 0x9e3779b97f4a7c15ULL);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

void xb_rng_seed(struct xb_rng *rng, unsigned long long seed)
{
	for (int i = 0; i < 4; i++)
		rng->s[i] = splitmix64(&seed);
}

static unsigned long long rotate_left(unsigned long long x, unsigned bits)
{
	return x << bits | x >> (64u - bits);
}

unsigned long long xb_rng_next(struct xb_rng *rng)
{
	unsigned long long *s = rng->s;
	unsigned long long result = rotate_left(s[1] * 5u, 7) * 9u;
	unsigned long long t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

size_t xb_rng_below(struct xb_rng *rng, size_t n)
{
	if (n < 2)
		return 0;
	/* 2^64 mod n: so many of the smallest values are drawn again, the rest is a whole multiple of n */
	unsigned long long surplus = -(unsigned long long)n % n, r;
	do
		r = xb_rng_next(rng);
	while (r < surplus);
	return (size_t)(r % n);
}

void xb_rng_shuffle(struct xb_rng *rng, size_t *items, size_t n)
{
	for (size_t left = n; left > 1; left--) {
		size_t other = xb_rng_below(rng, left), kept = items[left - 1u];
		items[left - 1u] = items[other];
		items[other] = kept;
	}
}

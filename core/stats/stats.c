/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "stats.h"

#define ON_STACK 64u /* launches and blocks are few: no allocation for them */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* A sorted copy of values, in local if it fits there; NULL when memory ran out. Released by release(). */
static double *sorted(const double *values, size_t n, double *local)
{
	double *copy = n <= ON_STACK ? local : malloc(n * sizeof(*copy));
	if (copy == NULL)
		return NULL;
	memcpy(copy, values, n * sizeof(*copy));
	qsort(copy, n, sizeof(*copy), compare);
	return copy;
}

static void release(double *copy, const double *local)
{
	if (copy != local)
		free(copy);
}

static double middle(const double *in_order, size_t n)
{
	return n % 2u ? in_order[n / 2u] : in_order[n / 2u - 1u] / 2.0 + in_order[n / 2u] / 2.0;
}

double xb_median(const double *values, size_t n)
{
	double local[ON_STACK], result = NAN;
	double *copy = n ? sorted(values, n, local) : NULL;
	if (copy != NULL) {
		result = middle(copy, n);
		release(copy, local);
	}
	return result;
}

double xb_quantile(const double *values, size_t n, double q)
{
	double local[ON_STACK], result = NAN;
	double *copy = n ? sorted(values, n, local) : NULL;
	if (copy != NULL) {
		/* a product that misses an integer by rounding alone counts as that integer */
		double exact = q * (double)n, whole = nearbyint(exact);
		double rank = fabs(exact - whole) <= 1e-10 * exact ? whole : ceil(exact);
		size_t index = !(rank >= 1.0) ? 0 : rank >= (double)n ? n - 1u : (size_t)rank - 1u;
		result = copy[index];
		release(copy, local);
	}
	return result;
}

size_t xb_median_rank(size_t n, double level)
{
	double limit = (1.0 - level) / 2.0 * (1.0 + 1e-12); /* the slack forgives rounding at equality only */
	double log_term = -(double)n * log(2.0); /* of P(Bin(n,1/2) = k); logarithms do not underflow */
	double tail = 0.0;
	size_t k = 0;
	while (k < n / 2u + n % 2u) {
		tail += exp(log_term); /* now P(Bin(n,1/2) <= k) */
		if (!(tail <= limit))
			break;
		log_term += log((double)(n - k) / (double)(k + 1u));
		k++;
	}
	return k;
}

struct xb_interval xb_median_interval(const double *values, size_t n, double level)
{
	struct xb_interval interval = {NAN, NAN, NAN, 0};
	double local[ON_STACK];
	double *copy = n ? sorted(values, n, local) : NULL;
	if (copy == NULL)
		return interval;
	size_t k = xb_median_rank(n, level);
	interval.median = middle(copy, n);
	if (k > 0) {
		interval.low = copy[k - 1u];
		interval.high = copy[n - k];
		interval.valid = 1;
	}
	release(copy, local);
	return interval;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* From timer reads to the numbers of a block. */
#include <math.h>
#include <string.h>

#include "run.h"

/* Hoare's selection: afterwards values[k] is what it would be if sorted, none before it is larger, none after
 * smaller. */
static void select_kth(uint64_t *values, size_t count, size_t k)
{
	size_t low = 0, high = count - 1;

	while (low < high) {
		uint64_t pivot = values[low + (high - low) / 2];
		size_t i = low, j = high;
		for (;;) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i >= j)
				break;
			uint64_t swap = values[i];
			values[i++] = values[j];
			values[j--] = swap;
		}
		if (k <= j)
			high = j;
		else
			low = j + 1;
	}
}

static double median_ticks(uint64_t *values, size_t count)
{
	size_t half = count / 2;
	uint64_t below = 0;

	select_kth(values, count, half);
	if (count % 2)
		return (double)values[half];
	for (size_t i = 0; i < half; i++)
		if (values[i] > below)
			below = values[i];
	return 0.5 * ((double)below + (double)values[half]);
}

void xb_samples_evaluate(uint64_t *samples, uint64_t count, double ns_per_tick, double divisor,
			 struct xb_histogram *histogram, double *median_ns)
{
	const double scale = ns_per_tick / divisor;

	for (uint64_t i = 0; i < count; i++)
		samples[i] = samples[i + 1] - samples[i];
	if (histogram) {
		xb_hist_clear(histogram);
		for (uint64_t i = 0; i < count; i++)
			xb_hist_add(histogram, (uint64_t)((double)samples[i] * scale + 0.5));
	}
	*median_ns = count ? median_ticks(samples, count) * scale : NAN;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Headlines and overheads: blocks -> launches -> median with its interval (docs/how-we-measure.md). The
 * launch is the unit of replication, because two identical process pairs differ by a constant that only a new
 * launch redraws.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

#define LEVEL 0.95

/* Points [first, next) of one launch that counts; returns 0 when there is no further one. */
static int next_launch(const struct xb_results *r, const struct xb_cell *cell, size_t *first, size_t *next)
{
	while (*next < cell->count) {
		*first = *next;
		unsigned launch = cell->points[*first].launch;
		while (*next < cell->count && cell->points[*next].launch == launch)
			(*next)++;
		if (xb_results_counts(r, launch))
			return 1;
	}
	return 0;
}

static double quartile_range(const double *values, size_t n)
{
	return n >= 2 ? xb_quantile(values, n, 0.75) - xb_quantile(values, n, 0.25) : NAN;
}

/* Moves the finite values to the front; returns how many there are. */
static size_t only_known(double *values, size_t n)
{
	size_t known = 0;
	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i]))
			values[known++] = values[i];
	return known;
}

static void count_blocks(const struct xb_point *points, size_t n, struct xb_headline *out)
{
	for (size_t i = 0; i < n; i++) {
		out->rounds++;
		out->iterations += points[i].iterations;
		out->voluntary += points[i].voluntary;
		out->involuntary += points[i].involuntary;
		out->disturbed_blocks += points[i].involuntary > 0;
		out->verified &= points[i].verified == 1;
	}
}

int xb_headline_of(const struct xb_results *r, const struct xb_cell *cell, struct xb_headline *out)
{
	memset(out, 0, sizeof(*out));
	out->verified = 1;
	size_t n = cell->count;
	double *work = n ? malloc(5u * n * sizeof(*work)) : NULL;
	out->launch_medians = n ? malloc(n * sizeof(double)) : NULL;
	out->launch_p99 = n ? malloc(n * sizeof(double)) : NULL;
	out->launch_ids = n ? malloc(n * sizeof(unsigned)) : NULL;
	if (work == NULL || out->launch_medians == NULL || out->launch_p99 == NULL || out->launch_ids == NULL)
		goto nothing;
	double *blocks = work, *ranges = work + n, *imposed = work + 2u * n, *delays = work + 3u * n,
	       *p99 = work + 4u * n;
	for (size_t first = 0, next = 0; next_launch(r, cell, &first, &next);) {
		size_t count = next - first, l = out->launches++;
		for (size_t i = 0; i < count; i++) {
			blocks[i] = cell->points[first + i].median_ns;
			delays[i] = cell->points[first + i].imposed_ns;
			p99[i] = cell->points[first + i].p99_ns;
		}
		out->launch_ids[l] = cell->points[first].launch;
		out->launch_medians[l] = xb_median(blocks, count);
		out->launch_p99[l] = xb_median(p99, only_known(p99, count));
		ranges[l] = quartile_range(blocks, count);
		imposed[l] = xb_median(delays, only_known(delays, count));
		count_blocks(&cell->points[first], count, out);
	}
	if (out->launches == 0)
		goto nothing;
	out->ns = xb_median_interval(out->launch_medians, out->launches, LEVEL);
	out->within_ns = xb_median(ranges, only_known(ranges, out->launches));
	out->between_ns = quartile_range(out->launch_medians, out->launches);
	size_t known = only_known(imposed, out->launches);
	out->imposed_ns = xb_median(imposed, known);
	out->imposed_least_ns = xb_quantile(imposed, known, 0.0);
	out->imposed_most_ns = xb_quantile(imposed, known, 1.0);
	free(work);
	return 1;
nothing:
	free(work);
	xb_headline_free(out);
	return 0;
}

void xb_headline_free(struct xb_headline *headline)
{
	free(headline->launch_medians);
	free(headline->launch_p99);
	free(headline->launch_ids);
	headline->launch_medians = NULL;
	headline->launch_p99 = NULL;
	headline->launch_ids = NULL;
}

static int before(const struct xb_point *a, const struct xb_point *b)
{
	return a->launch != b->launch ? a->launch < b->launch : a->round < b->round;
}

int xb_overhead_of(const struct xb_results *r, const struct xb_cell *lower, const struct xb_cell *upper,
		   struct xb_overhead *out)
{
	memset(out, 0, sizeof(*out));
	size_t most = lower->count < upper->count ? lower->count : upper->count;
	struct xb_headline base;
	if (most == 0 || !xb_headline_of(r, lower, &base))
		return 0;
	double base_ns = base.ns.median;
	xb_headline_free(&base);
	double *differences = malloc(most * sizeof(*differences));
	out->launch_medians = malloc(most * sizeof(double));
	if (differences == NULL || out->launch_medians == NULL)
		goto nothing;
	size_t pending = 0;
	unsigned launch = 0;
	for (size_t i = 0, j = 0; i < lower->count && j < upper->count;) {
		const struct xb_point *a = &lower->points[i], *b = &upper->points[j];
		if (before(a, b)) {
			i++;
			continue;
		}
		if (before(b, a)) {
			j++;
			continue;
		}
		if (pending > 0 && a->launch != launch) {
			out->launch_medians[out->launches++] = xb_median(differences, pending);
			pending = 0;
		}
		if (xb_results_counts(r, a->launch)) {
			launch = a->launch;
			differences[pending++] = b->median_ns - a->median_ns;
			out->rounds++;
		}
		i++;
		j++;
	}
	if (pending > 0)
		out->launch_medians[out->launches++] = xb_median(differences, pending);
	if (out->launches == 0)
		goto nothing;
	free(differences);
	out->ns = xb_median_interval(out->launch_medians, out->launches, LEVEL);
	out->percent = base_ns > 0.0 ? 100.0 * out->ns.median / base_ns : NAN;
	out->distinguishable = out->ns.valid && (out->ns.low > 0.0 || out->ns.high < 0.0);
	return 1;
nothing:
	free(differences);
	xb_overhead_free(out);
	return 0;
}

void xb_overhead_free(struct xb_overhead *overhead)
{
	free(overhead->launch_medians);
	overhead->launch_medians = NULL;
}

int xb_cell_comparable(const struct xb_results *r, size_t transport, const struct xb_cell *cell,
		       size_t size_bytes)
{
	if (size_bytes == 0 || r->transports[transport].layer == XB_LAYER_TRUTH)
		return 1; /* there is nothing that could have been checked */
	for (size_t i = 0; i < cell->count; i++)
		if (!cell->points[i].verified && xb_results_counts(r, cell->points[i].launch))
			return 0;
	return 1;
}

/* Does the path "ucx:..." or "ucx,self" begin with the word "ucx"? */
static int path_names(const char *path, const char *name)
{
	size_t n = strlen(name);
	return n > 0 && strncmp(path, name, n) == 0 && (path[n] == '\0' || strchr(":;,/", path[n]) != NULL);
}

size_t xb_results_below(const struct xb_results *r, size_t upper)
{
	size_t place = 0, n = r->config->transport_count;
	while (place < n && r->order[place] != upper)
		place++;
	if (place == 0 || place == n)
		return XB_NO_SIZE;
	for (size_t i = place; i-- > 0;)
		if (r->transports[r->order[i]].layer < r->transports[upper].layer &&
		    path_names(r->config->transports[upper].path, r->config->transports[r->order[i]].name))
			return r->order[i];
	for (size_t i = place; i-- > 0;)
		if (r->transports[r->order[i]].layer < r->transports[upper].layer &&
		    r->transports[r->order[i]].layer != XB_LAYER_TRUTH)
			return r->order[i];
	return r->order[place - 1u];
}

static int too_wide(const struct xb_interval *interval, double limit_ns)
{
	return !interval->valid || (interval->high - interval->low) / 2.0 > limit_ns;
}

int xb_pair_too_wide(const struct xb_results *r, const struct xb_cell *cell, const struct xb_cell *base)
{
	struct xb_headline own, lower;
	struct xb_overhead added;
	if (!xb_headline_of(r, cell, &own))
		return 0; /* not measured, for example too large for this transport */
	double reference_ns = own.ns.median;
	int wide = 0;
	if (base != NULL && xb_headline_of(r, base, &lower)) {
		reference_ns = lower.ns.median;
		xb_headline_free(&lower);
	}
	double limit_ns = reference_ns * r->config->ci_percent / 100.0;
	if (base != NULL && xb_overhead_of(r, base, cell, &added)) {
		wide = too_wide(&added.ns, limit_ns);
		xb_overhead_free(&added);
	}
	wide |= too_wide(&own.ns, limit_ns);
	xb_headline_free(&own);
	return wide;
}

int xb_cell_too_wide(const struct xb_results *r, size_t transport, enum xb_bench bench, size_t size_index)
{
	return xb_pair_too_wide(
		r, xb_results_cell(r, transport, bench, size_index),
		transport == r->baseline ? NULL : xb_results_cell(r, r->baseline, bench, size_index));
}

static int swaps_converged(const struct xb_results *r, size_t transport)
{
	for (size_t v = 0; v < r->config->swap.variant_count; v++)
		for (size_t s = 0; s < r->config->swap.size_count; s++)
			if (xb_pair_too_wide(r, xb_results_swap_cell(r, transport, v, s),
					     transport == r->baseline
						     ? NULL
						     : xb_results_swap_cell(r, r->baseline, v, s)))
				return 0;
	return 1;
}

int xb_results_converged(const struct xb_results *r)
{
	if (r == NULL || r->whole_count < r->config->launches_min || r->whole_count == 0)
		return 0;
	for (size_t t = 0; t < r->config->transport_count; t++) {
		if (xb_results_ok(r, t) && !swaps_converged(r, t))
			return 0;
		for (size_t b = 0; xb_results_ok(r, t) && b < r->config->bench_count; b++)
			for (size_t s = 0; s < r->config->size_count; s++)
				if (xb_cell_too_wide(r, t, r->config->benches[b], s))
					return 0;
	}
	return 1;
}

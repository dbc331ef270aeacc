/* SPDX-License-Identifier: BSD-3-Clause */
/* The swap records of the document. Times of a swap are kept in ns like all others, and told in s. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../engine/block.h"
#include "swaps.h"

/* A time of a swap and its parts: the least of all iterations, and the median over launches. */
struct swap_time {
	double min_ns, median_ns, low_ns, high_ns;
};

static json_t *scaled(const struct swap_time *t, double scale)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "min", xb_json_number(t->min_ns * scale), "median",
			 xb_json_number(t->median_ns * scale), "ci_low", xb_json_number(t->low_ns * scale),
			 "ci_high", xb_json_number(t->high_ns * scale));
}

static json_t *rates(const struct swap_time *t, double total_bytes)
{
	const double bytes = 2.0 * total_bytes * 1e3; /* bytes/ns = 1e3 MB/s */
	return json_pack("{s:o, s:o, s:o, s:o}", "max", xb_json_number(bytes / t->min_ns), "median",
			 xb_json_number(bytes / t->median_ns), "ci_low", xb_json_number(bytes / t->high_ns),
			 "ci_high", xb_json_number(bytes / t->low_ns));
}

static json_t *launch_list(const struct xb_headline *h, int ids)
{
	json_t *list = json_array();
	for (size_t l = 0; l < h->launches; l++)
		json_array_append_new(list, ids ? json_integer(h->launch_ids[l])
						: xb_json_us(h->launch_medians[l]));
	return list;
}

/* What names a swap, in records, estimates and comparisons alike. */
static json_t *identity(const struct xb_results *r, size_t variant)
{
	const struct xb_swap_variant *v = &r->config->swap.variants[variant];
	return json_pack("{s:s, s:i, s:s, s:s, s:s, s:b}", "bench", "swap", "protocol", v->protocol, "title",
			 xb_swap_title(r->config->swap.order, v->protocol), "order",
			 xb_swap_order_name(r->config->swap.order), "mode", xb_swap_mode_name(v->mode),
			 "overlap", v->overlap);
}

static json_t *record_json(const struct xb_results *r, size_t t, size_t variant, size_t s)
{
	const struct xb_swap_config *c = &r->config->swap;
	const struct xb_cell *cell = xb_results_swap_cell(r, t, variant, s);
	const struct xb_swap swap = xb_swap_of(r->config, &c->variants[variant], c->sizes[s]);
	const struct xb_histogram *histogram = xb_results_histogram(r, cell);
	struct xb_headline h;
	if (!xb_headline_of(r, cell, &h))
		return NULL;
	struct swap_time time = {histogram != NULL && histogram->count ? (double)histogram->min_ns : NAN,
				 h.ns.median, h.ns.low, h.ns.high};
	const int truth = r->transports[t].layer == XB_LAYER_TRUTH;
	json_t *record = identity(r, variant);
	json_object_set_new(record, "label", xb_json_text(r->config->transports[t].label));
	json_object_set_new(record, "overlap_depth",
			    swap.overlap ? json_integer(xb_swap_batch(&swap)) : json_null());
	json_object_set_new(record, "size", xb_json_count(c->sizes[s]));
	json_object_set_new(record, "messages", json_integer(swap.messages));
	json_object_set_new(record, "total", xb_json_count(c->total_bytes));
	json_object_set_new(record, "launches", xb_json_count(h.launches));
	json_object_set_new(record, "rounds", xb_json_count(h.rounds));
	json_object_set_new(record, "iterations", xb_json_count(h.iterations));
	json_object_set_new(record, "stopped_by", xb_json_text(r->stopped_by));
	json_object_set_new(record, "verified", truth ? json_null() : json_boolean(h.verified));
	json_object_set_new(record, "seconds", scaled(&time, 1e-9));
	json_object_set_new(record, "seconds_per_message", scaled(&time, 1e-9 / swap.messages));
	json_object_set_new(record, "MBps", rates(&time, (double)c->total_bytes));
	json_object_set_new(record, "fault",
			    isfinite(h.imposed_ns) ? json_pack("{s:{s:o, s:o, s:o}}", "imposed_delay_us",
							       "median", xb_json_us(h.imposed_ns), "min",
							       xb_json_us(h.imposed_least_ns), "max",
							       xb_json_us(h.imposed_most_ns))
						   : json_null());
	json_object_set_new(record, "context_switches",
			    json_pack("{s:I, s:I, s:o}", "voluntary", (json_int_t)h.voluntary, "involuntary",
				      (json_int_t)h.involuntary, "disturbed_blocks",
				      xb_json_count(h.disturbed_blocks)));
	json_object_set_new(record, "launch_ids", launch_list(&h, 1));
	json_object_set_new(record, "launch_medians", launch_list(&h, 0));
	json_object_set_new(record, "histogram_ns", xb_histogram_json(histogram));
	xb_headline_free(&h);
	return record;
}

/* --- estimates: latency and peak of a protocol over its message sizes */

/* (S(n1) - S(n2)) / 2 / (n1 - n2) of each launch that has both sizes; returns how many. */
static size_t launch_latencies(const struct xb_headline *most, const struct xb_headline *next, double n1,
			       double n2, double *ns)
{
	size_t count = 0;
	for (size_t a = 0, b = 0; a < most->launches && b < next->launches;) {
		if (most->launch_ids[a] < next->launch_ids[b])
			a++;
		else if (most->launch_ids[a] > next->launch_ids[b])
			b++;
		else
			ns[count++] =
				(most->launch_medians[a++] - next->launch_medians[b++]) / 2.0 / (n1 - n2);
	}
	return count;
}

/* Messages in each direction of a swap of that size; sizes divide the total. */
static double messages_of(const struct xb_swap_config *c, size_t s)
{
	size_t messages = c->total_bytes / c->sizes[s];
	return (double)messages;
}

static json_t *latency_json(const struct xb_results *r, size_t t, size_t variant, double from_minima_us)
{
	const struct xb_swap_config *c = &r->config->swap;
	struct xb_interval ns = {.median = NAN, .low = NAN, .high = NAN};
	struct xb_headline most = {.launches = 0}, next = {.launches = 0};
	size_t launches = 0;
	double *values = NULL;
	/* the smallest sizes have the most messages */
	if (c->size_count >= 2 && xb_headline_of(r, xb_results_swap_cell(r, t, variant, 0), &most) &&
	    xb_headline_of(r, xb_results_swap_cell(r, t, variant, 1), &next))
		values = malloc(most.launches * sizeof(*values));
	if (values != NULL)
		launches = launch_latencies(&most, &next, messages_of(c, 0), messages_of(c, 1), values);
	if (launches > 0)
		ns = xb_median_interval(values, launches, 0.95);
	free(values);
	xb_headline_free(&most);
	xb_headline_free(&next);
	return json_pack("{s:o, s:o, s:o, s:o}", "from_minima", xb_json_number(from_minima_us), "median",
			 xb_json_us(ns.median), "ci_low", xb_json_us(ns.low), "ci_high", xb_json_us(ns.high));
}

static json_t *estimate_json(const struct xb_results *r, size_t t, size_t variant)
{
	const struct xb_swap_config *c = &r->config->swap;
	double messages[XB_MAX_SIZES], seconds[XB_MAX_SIZES];
	for (size_t s = 0; s < c->size_count; s++) {
		const struct xb_histogram *h =
			xb_results_histogram(r, xb_results_swap_cell(r, t, variant, s));
		messages[s] = messages_of(c, s);
		seconds[s] = h != NULL && h->count ? (double)h->min_ns * 1e-9 : NAN;
	}
	struct xb_commtest_fit fit =
		xb_commtest_fit(messages, seconds, c->size_count, (double)c->total_bytes);
	if (!isfinite(fit.peak_MBps))
		return NULL;
	json_t *estimate = identity(r, variant);
	json_object_set_new(estimate, "label", xb_json_text(r->config->transports[t].label));
	json_object_set_new(estimate, "total", xb_json_count(c->total_bytes));
	json_object_set_new(estimate, "peak_MBps", xb_json_number(fit.peak_MBps));
	json_object_set_new(estimate, "latency_us", latency_json(r, t, variant, fit.latency_us));
	json_object_set_new(estimate, "model_error_pct", xb_json_number(100.0 * fit.error));
	return estimate;
}

/* --- comparisons */

static json_t *interval_us(const struct xb_interval *ns, double scale)
{
	return json_pack("{s:o, s:o, s:o}", "median", xb_json_us(ns->median * scale), "ci_low",
			 xb_json_us(ns->low * scale), "ci_high", xb_json_us(ns->high * scale));
}

static json_t *comparison_json(const struct xb_results *r, size_t lower, size_t upper, size_t variant,
			       size_t s)
{
	const struct xb_swap_config *c = &r->config->swap;
	const struct xb_cell *low = xb_results_swap_cell(r, lower, variant, s),
			     *up = xb_results_swap_cell(r, upper, variant, s);
	struct xb_overhead o;
	if (!xb_cell_comparable(r, lower, low, c->sizes[s]) ||
	    !xb_cell_comparable(r, upper, up, c->sizes[s]) || !xb_overhead_of(r, low, up, &o))
		return NULL;
	json_t *comparison = identity(r, variant), *list = json_array();
	json_object_set_new(comparison, "lower", xb_json_text(r->config->transports[lower].label));
	json_object_set_new(comparison, "upper", xb_json_text(r->config->transports[upper].label));
	json_object_set_new(comparison, "size", xb_json_count(c->sizes[s]));
	json_object_set_new(comparison, "messages", xb_json_count(c->total_bytes / c->sizes[s]));
	json_object_set_new(comparison, "launches", xb_json_count(o.launches));
	json_object_set_new(comparison, "rounds", xb_json_count(o.rounds));
	json_object_set_new(comparison, "overhead_us", interval_us(&o.ns, 1.0));
	json_object_set_new(comparison, "overhead_us_per_message",
			    interval_us(&o.ns, (double)c->sizes[s] / (double)c->total_bytes / 2.0));
	json_object_set_new(comparison, "overhead_pct", xb_json_number(o.percent));
	json_object_set_new(comparison, "distinguishable", json_boolean(o.distinguishable));
	json_object_set_new(comparison, "baseline", json_boolean(lower == r->baseline));
	json_object_set_new(comparison, "adjacent", json_boolean(lower == xb_results_below(r, upper)));
	for (size_t l = 0; l < o.launches; l++)
		json_array_append_new(list, xb_json_us(o.launch_medians[l]));
	json_object_set_new(comparison, "launch_overheads", list);
	xb_overhead_free(&o);
	return comparison;
}

static void append(json_t *list, json_t *item)
{
	if (item != NULL)
		json_array_append_new(list, item);
}

void xb_swaps_document(const struct xb_results *r, json_t *document)
{
	const struct xb_swap_config *c = &r->config->swap;
	const size_t n = r->config->transport_count;
	json_t *swaps = json_array(), *estimates = json_array(), *comparisons = json_array();
	if (c->variant_count == 0) {
		json_decref(swaps);
		json_decref(estimates);
		json_decref(comparisons);
		return;
	}
	for (size_t v = 0; v < c->variant_count; v++) {
		for (size_t s = 0; s < c->size_count; s++) {
			for (size_t t = 0; t < n; t++)
				append(swaps, record_json(r, t, v, s));
			for (size_t i = 0; i < n; i++)
				for (size_t j = i + 1u; j < n; j++)
					append(comparisons,
					       comparison_json(r, r->order[i], r->order[j], v, s));
		}
		for (size_t t = 0; t < n; t++)
			append(estimates, estimate_json(r, t, v));
	}
	json_object_set_new(document, "swaps", swaps);
	json_object_set_new(document, "swap_estimates", estimates);
	json_object_set_new(document, "swap_comparisons", comparisons);
}

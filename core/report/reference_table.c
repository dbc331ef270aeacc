/* SPDX-License-Identifier: BSD-3-Clause */
/* Published tables beside the run's own numbers. */
#include <math.h>
#include <string.h>
#include "internal.h"
#include "references.h"
#include "swaps.h"

#define MOST_SHOWN 6u /* transports beside a table */
#define LABEL_WIDTH 12

/* The run's own value at this size in the unit of the table: us, or MB/s. */
static double own_value(const struct xb_view *v, size_t bench, uint64_t size, size_t transport, int rate)
{
	for (size_t s = 0; s < v->size_count; s++)
		if (v->sizes[s] == size) {
			json_t *result = xb_view_result(v, bench, s, transport);
			return xb_number_of(json_object_get(result, rate ? "bandwidth_MBps" : "latency_us"),
					    "median");
		}
	return NAN;
}

/* The fastest protocol of the run in the mode of the point, us per message and direction. */
static double own_swap(json_t *document, json_t *point, const char *label)
{
	double best = NAN;
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(document, "swaps"), i, item)
	{
		if (xb_count_of(item, "size") != xb_count_of(point, "size") ||
		    strcmp(xb_text_of(item, "label"), label) != 0 ||
		    strcmp(xb_text_of(item, "mode"), xb_text_of(point, "mode")) != 0 ||
		    json_is_true(json_object_get(item, "overlap")) !=
			    json_is_true(json_object_get(point, "overlap")))
			continue;
		double us = xb_number_of(json_object_get(item, "seconds_per_message"), "min") * 1e6 / 2.0;
		if (!(best <= us))
			best = us;
	}
	return best;
}

static void put_number(struct xb_out *out, enum xb_style style, int width, double value, int rate,
		       const char *mark)
{
	char text[48], marked[56];
	if (rate)
		xb_rate_text(value, text, sizeof(text));
	else
		xb_time_text(value, text, sizeof(text));
	snprintf(marked, sizeof(marked), "%s%s", text, mark);
	xb_put(out, style, -width, marked);
}

static size_t bench_index(const char *name)
{
	size_t b = 0;
	while (b < XB_BENCH_COUNT && strcmp(xb_bench_names[b], name) != 0)
		b++;
	return b;
}

/* The run's estimate for the protocol and mode of a point that has no size: peak MB/s, or us per message. */
static double own_estimate(json_t *document, json_t *point, const char *label, int rate)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(document, "swap_estimates"), i, item)
	{
		if (xb_count_of(item, "protocol") == xb_count_of(point, "protocol") &&
		    strcmp(xb_text_of(item, "label"), label) == 0 &&
		    strcmp(xb_text_of(item, "mode"), xb_text_of(point, "mode")) == 0 &&
		    json_is_true(json_object_get(item, "overlap")) ==
			    json_is_true(json_object_get(point, "overlap")))
			return rate ? xb_number_of(item, "peak_MBps")
				    : xb_number_of(json_object_get(item, "latency_us"), "from_minima");
	}
	return NAN;
}

static void head(struct xb_out *out, const struct xb_view *v, const char *first, const char *unit,
		 size_t shown, int swap)
{
	xb_put(out, XB_PLAIN, -8, first);
	if (swap)
		xb_put(out, XB_PLAIN, -24, "mode");
	xb_put(out, XB_PLAIN, -14, "published");
	for (size_t t = 0; t < shown; t++) {
		xb_put(out, XB_PLAIN, 2, "");
		xb_put(out, XB_BOLD, -LABEL_WIDTH, v->transports[t].label);
	}
	xb_put(out, XB_PLAIN, 3, "");
	xb_put(out, XB_PLAIN, 0, unit);
	xb_newline(out);
}

static int has_size(json_t *point)
{
	return json_is_integer(json_object_get(point, "size"));
}

static void put_mode(struct xb_out *out, json_t *point)
{
	char text[40];
	snprintf(text, sizeof(text), "%.20s%s", xb_text_of(point, "mode"),
		 json_is_true(json_object_get(point, "overlap")) ? " w/overlap" : "");
	xb_put(out, XB_PLAIN, -24, text);
}

static void put_values(struct xb_out *out, json_t *point, const double *own, size_t shown, int rate)
{
	int wrong = json_is_true(json_object_get(point, "beyond"));
	put_number(out, wrong ? XB_YELLOW : XB_PLAIN, 14, xb_number_of(point, rate ? "MBps" : "latency_us"),
		   rate, wrong ? " !" : "");
	for (size_t t = 0; t < shown; t++) {
		xb_put(out, XB_PLAIN, 2, "");
		put_number(out, XB_PLAIN, LABEL_WIDTH, own[t], rate, "");
	}
	xb_newline(out);
}

static void put_point(struct xb_out *out, const struct xb_view *v, json_t *point, size_t bench, int rate,
		      size_t shown)
{
	const int swap = bench == XB_BENCH_SWAP;
	double own[MOST_SHOWN];
	int any = 0;
	char text[40];
	if (!has_size(point))
		return;
	for (size_t t = 0; t < shown; t++) {
		own[t] = swap ? own_swap(v->document, point, v->transports[t].label)
			      : own_value(v, bench, xb_count_of(point, "size"), t, rate);
		any |= isfinite(own[t]);
	}
	if (!any)
		return;
	xb_size_text(xb_count_of(point, "size"), text, sizeof(text));
	xb_put(out, XB_PLAIN, -8, text);
	if (swap)
		put_mode(out, point);
	put_values(out, point, own, shown, rate);
}

/* --- swaps by protocol, without a size: estimates over all sizes */

static void put_estimate(struct xb_out *out, const struct xb_view *v, json_t *point, int rate, size_t shown)
{
	double own[MOST_SHOWN];
	int any = 0;
	char text[40];
	if (has_size(point))
		return;
	for (size_t t = 0; t < shown; t++) {
		own[t] = own_estimate(v->document, point, v->transports[t].label, rate);
		any |= isfinite(own[t]);
	}
	if (!any)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)xb_count_of(point, "protocol"));
	xb_put(out, XB_PLAIN, -8, text);
	put_mode(out, point);
	put_values(out, point, own, shown, rate);
}

static void print_estimates(struct xb_out *out, const struct xb_view *v, json_t *points, size_t shown)
{
	for (int rate = 1; rate >= 0; rate--) {
		size_t i;
		json_t *point;
		head(out, v, "protocol", rate ? "peak MB/s" : "us per message", shown, 1);
		json_array_foreach(points, i, point) put_estimate(out, v, point, rate, shown);
	}
}

static size_t count_beyond(json_t *points)
{
	size_t i, n = 0;
	json_t *point;
	json_array_foreach(points, i, point) n += json_is_true(json_object_get(point, "beyond"));
	return n;
}

static void print_reference(struct xb_out *out, const struct xb_view *v, json_t *reference)
{
	json_t *points = json_object_get(reference, "points"), *point;
	const char *name = xb_text_of(reference, "bench");
	size_t bench = bench_index(name), i, wrong = count_beyond(points);
	const size_t shown = v->transport_count < MOST_SHOWN ? v->transport_count : MOST_SHOWN;
	const int rate = bench == XB_BENCH_BW || bench == XB_BENCH_BIBW, swap = bench == XB_BENCH_SWAP;
	char text[700];
	xb_newline(out);
	snprintf(text, sizeof(text), "reference %.100s: %.300s", xb_text_of(reference, "name"),
		 xb_text_of(reference, "title"));
	xb_put_wrapped(out, XB_BOLD, 2, text);
	xb_put(out, XB_PLAIN, 2, "");
	xb_put_wrapped(out, XB_PLAIN, 2, xb_text_of(reference, "provenance"));
	if (*xb_text_of(reference, "remark")) {
		xb_put(out, XB_PLAIN, 2, "");
		xb_put_wrapped(out, XB_YELLOW, 2, xb_text_of(reference, "remark"));
	}
	int measured = swap ? json_array_size(json_object_get(v->document, "swaps")) > 0
			    : bench < XB_BENCH_COUNT && v->has_bench[bench];
	if (!measured) {
		snprintf(text, sizeof(text), "  this run has no %s to set beside it",
			 bench < XB_BENCH_COUNT ? name : "benchmark");
		xb_put_wrapped(out, XB_PLAIN, 2, text);
		return;
	}
	if (swap && !has_size(json_array_get(points, 0))) {
		print_estimates(out, v, points, shown);
	} else {
		head(out, v, "size",
		     rate   ? "MB/s"
		     : swap ? "us per message, fastest protocol"
			    : "us",
		     shown, swap);
		json_array_foreach(points, i, point) put_point(out, v, point, bench, rate, shown);
	}
	if (wrong > 0) {
		snprintf(text, sizeof(text), "! beyond what the link can do (%zu of %zu published values)",
			 wrong, json_array_size(points));
		xb_put_wrapped(out, XB_YELLOW, 2, text);
	}
}

void xb_print_references(struct xb_out *out, const struct xb_view *v)
{
	size_t i;
	json_t *reference;
	json_array_foreach(json_object_get(v->document, "references"), i, reference)
		print_reference(out, v, reference);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of swaps: a row for each message size, a column for each protocol. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "swaps.h"
#include "text.h"

#define COLUMN 8

/* What a table shows of a record or comparison: us per message, one way. */
static double per_message_us(json_t *record)
{
	double us = xb_number_of(json_object_get(record, "seconds_per_message"), "median") * 1e6;
	return us / 2.0;
}

static void head(struct xb_out *out, const struct xb_sweep *sweep, const unsigned char *shown)
{
	char text[16];
	xb_put(out, XB_PLAIN, -5, "size");
	xb_put(out, XB_PLAIN, -6, "n");
	for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++) {
		if (!shown[p])
			continue;
		snprintf(text, sizeof(text), "P%u", p);
		xb_put(out, XB_BOLD, -COLUMN, text);
	}
	xb_newline(out);
	(void)sweep;
}

static void row_head(struct xb_out *out, const struct xb_sweep *sweep, size_t s)
{
	char text[24];
	xb_size_text(sweep->sizes[s], text, sizeof(text));
	xb_put(out, XB_PLAIN, -5, text);
	snprintf(text, sizeof(text), "%.0f", sweep->messages[s]);
	xb_put(out, XB_PLAIN, -6, text);
}

static unsigned fastest(const struct xb_sweep *sweep, size_t s)
{
	unsigned best = XB_SWAP_PROTOCOLS;
	double least = INFINITY;
	for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++) {
		double us = per_message_us(sweep->record[p][s]);
		if (sweep->record[p][s] != NULL && us < least) {
			least = us;
			best = p;
		}
	}
	return best;
}

static void times(struct xb_out *out, const struct xb_sweep *sweep, const unsigned char *shown)
{
	char text[40];
	for (size_t s = 0; s < sweep->size_count; s++) {
		unsigned best = fastest(sweep, s);
		row_head(out, sweep, s);
		for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++) {
			if (!shown[p])
				continue;
			json_t *record = sweep->record[p][s];
			xb_time_text(record != NULL ? per_message_us(record) : NAN, text, sizeof(text));
			xb_put(out, p == best ? XB_BOLD : XB_PLAIN, -COLUMN, text);
		}
		xb_newline(out);
	}
}

/* The estimate of this sweep and protocol in the document; NULL if there is none. */
static json_t *estimate_of(json_t *document, const struct xb_sweep *sweep, unsigned protocol)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(document, "swap_estimates"), i, item)
	{
		if (strcmp(xb_text_of(item, "label"), sweep->label) == 0 &&
		    xb_count_of(item, "protocol") == protocol &&
		    strcmp(xb_text_of(item, "mode"), xb_swap_mode_name(sweep->mode)) == 0 &&
		    json_is_true(json_object_get(item, "overlap")) == sweep->overlap)
			return item;
	}
	return NULL;
}

static void estimates(struct xb_out *out, json_t *document, const struct xb_sweep *sweep,
		      const unsigned char *shown)
{
	static const struct {
		const char *head, *object, *key;
	} rows[] = {{"peak MB/s", NULL, "peak_MBps"},
		    {"us/message", "latency_us", "median"},
		    {"model err %", NULL, "model_error_pct"}};
	char text[40];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		xb_put(out, XB_PLAIN, -11, rows[i].head);
		for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++) {
			if (!shown[p])
				continue;
			json_t *estimate = estimate_of(document, sweep, p);
			if (rows[i].object != NULL)
				estimate = json_object_get(estimate, rows[i].object);
			xb_rate_text(xb_number_of(estimate, rows[i].key), text, sizeof(text));
			xb_put(out, XB_PLAIN, -COLUMN, text);
		}
		xb_newline(out);
	}
}

/* --- comparisons with the baseline */

static json_t *comparison_of(json_t *document, const char *lower, const struct xb_sweep *sweep,
			     unsigned protocol, size_t s)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(document, "swap_comparisons"), i, item)
	{
		if (xb_count_of(item, "protocol") == protocol &&
		    xb_count_of(item, "size") == sweep->sizes[s] &&
		    strcmp(xb_text_of(item, "lower"), lower) == 0 &&
		    strcmp(xb_text_of(item, "upper"), sweep->label) == 0 &&
		    strcmp(xb_text_of(item, "mode"), xb_swap_mode_name(sweep->mode)) == 0 &&
		    json_is_true(json_object_get(item, "overlap")) == sweep->overlap)
			return item;
	}
	return NULL;
}

static void put_added(struct xb_out *out, json_t *comparison)
{
	char value[40] = "-", interval[40], marked[48];
	json_t *added = json_object_get(comparison, "overhead_us_per_message");
	if (isfinite(xb_number_of(added, "median")))
		xb_difference_text(xb_number_of(added, "median"), NAN, NAN, 0, value, interval,
				   sizeof(value));
	int known = json_is_true(json_object_get(comparison, "distinguishable"));
	snprintf(marked, sizeof(marked), "%s%s", comparison != NULL && !known ? "~" : "", value);
	xb_put(out, known ? XB_PLAIN : XB_DIM, -COLUMN, marked);
}

static void added(struct xb_out *out, json_t *document, const char *lower, const struct xb_sweep *sweep,
		  const unsigned char *shown)
{
	for (size_t s = 0; s < sweep->size_count; s++) {
		row_head(out, sweep, s);
		for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++)
			if (shown[p])
				put_added(out, comparison_of(document, lower, sweep, p, s));
		xb_newline(out);
	}
}

/* --- one sweep of one transport */

static void print_sweep(struct xb_out *out, const struct xb_view *view, const struct xb_sweep *sweep)
{
	unsigned char shown[XB_SWAP_PROTOCOLS] = {0};
	char title[300], size[24];
	const char *lower = view->baseline != SIZE_MAX ? view->transports[view->baseline].label : "";
	for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++)
		for (size_t s = 0; s < sweep->size_count; s++)
			shown[p] |= sweep->record[p][s] != NULL;
	xb_size_words((uint64_t)sweep->total_bytes, size, sizeof(size));
	snprintf(title, sizeof(title),
		 "swap, %s, %s in each direction, %s%s: %.60s, us per message and direction, by protocol",
		 xb_swap_order_name(sweep->order), size, xb_swap_mode_name(sweep->mode),
		 sweep->overlap ? " with overlap" : "", sweep->label);
	xb_newline(out);
	xb_put_wrapped(out, XB_BOLD, 0, title);
	head(out, sweep, shown);
	times(out, sweep, shown);
	estimates(out, view->document, sweep, shown);
	if (strcmp(lower, sweep->label) == 0 || lower[0] == '\0')
		return;
	snprintf(title, sizeof(title),
		 "%.60s adds to %.60s, us per message and direction (~ not distinguishable)", sweep->label,
		 lower);
	xb_put_wrapped(out, XB_PLAIN, 0, title);
	added(out, view->document, lower, sweep, shown);
}

int xb_print_swaps(struct xb_out *out, const struct xb_view *view, struct xb_error *error)
{
	int status = 0;
	if (json_array_size(json_object_get(view->document, "swaps")) == 0)
		return 0;
	struct xb_sweep *sweep = malloc(sizeof(*sweep));
	if (sweep == NULL)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for the swaps");
	for (int overlap = 0; overlap < 2; overlap++)
		for (unsigned mode = 0; mode < XB_SWAP_MODES; mode++)
			for (size_t t = 0; status == 0 && t < view->transport_count; t++) {
				status = xb_sweep_read(view->document, view->transports[t].label,
						       (enum xb_swap_mode)mode, overlap, sweep, error);
				if (status == 0 && sweep->any)
					print_sweep(out, view, sweep);
			}
	free(sweep);
	return status;
}

/* --- in words */

struct range {
	size_t cases, told_apart, slower; /* of those told apart */
	double least, most; /* us per message of those told apart */
};

/* What `upper` adds to the baseline in swaps of messages of this size, over protocols and modes. */
static struct range added_range(json_t *document, const char *upper, uint64_t size)
{
	struct range range = {.least = INFINITY, .most = -INFINITY};
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(document, "swap_comparisons"), i, item)
	{
		json_t *added = json_object_get(item, "overhead_us_per_message");
		if (strcmp(xb_text_of(item, "upper"), upper) != 0 || xb_count_of(item, "size") != size ||
		    !json_is_true(json_object_get(item, "baseline")) ||
		    !isfinite(xb_number_of(added, "ci_low")))
			continue;
		range.cases++;
		if (!json_is_true(json_object_get(item, "distinguishable")))
			continue;
		range.told_apart++;
		range.slower += xb_number_of(added, "median") > 0.0;
		range.least = fmin(range.least, xb_number_of(added, "median"));
		range.most = fmax(range.most, xb_number_of(added, "median"));
	}
	return range;
}

static uint64_t smallest_size(json_t *document)
{
	uint64_t smallest = UINT64_MAX;
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(document, "swaps"), i,
			   item) if (xb_count_of(item, "size") < smallest) smallest =
		xb_count_of(item, "size");
	return smallest;
}

/* "0.50 us", or "0.50 to 0.70 us" where that reads differently. */
static void amount_text(double least, double most, char *text, size_t bytes)
{
	char a[24], b[24];
	xb_us_words(least, a, sizeof(a));
	xb_us_words(most, b, sizeof(b));
	if (strcmp(a, b) == 0)
		snprintf(text, bytes, "%s us", a);
	else
		snprintf(text, bytes, "%s to %s us", a, b);
}

static void say(const struct range *range, const char *upper, const char *lower, const char *size, char *text,
		size_t bytes)
{
	const size_t faster = range->told_apart - range->slower;
	char amount[56], saved[56];
	if (range->told_apart == 0) {
		snprintf(text, bytes, "%.60s and %.60s cannot be told apart in swaps of %s messages.", upper,
			 lower, size);
	} else if (faster == 0) {
		amount_text(range->least, range->most, amount, sizeof(amount));
		snprintf(text, bytes,
			 "%.60s adds %s per message to %.60s in swaps of %s messages; %zu of %zu protocols "
			 "and modes are told apart.",
			 upper, amount, lower, size, range->told_apart, range->cases);
	} else if (range->slower == 0) {
		amount_text(-range->most, -range->least, amount, sizeof(amount));
		snprintf(text, bytes,
			 "%.60s takes %s less per message than %.60s in swaps of %s messages; %zu of %zu "
			 "protocols and modes are told apart.",
			 upper, amount, lower, size, range->told_apart, range->cases);
	} else {
		amount_text(range->most, range->most, amount, sizeof(amount));
		amount_text(-range->least, -range->least, saved, sizeof(saved));
		snprintf(
			text, bytes,
			"Beside %.60s, %.60s adds up to %s per message in swaps of %s messages by %zu of %zu "
			"protocols and modes, and takes up to %s less by %zu.",
			lower, upper, amount, size, range->slower, range->cases, saved, faster);
	}
}

void xb_print_swap_sentences(struct xb_out *out, const struct xb_view *view)
{
	const uint64_t size = smallest_size(view->document);
	int any = 0;
	for (size_t t = 0; view->baseline != SIZE_MAX && t < view->transport_count; t++) {
		struct range range = added_range(view->document, view->transports[t].label, size);
		char text[500], words[24];
		if (range.cases == 0)
			continue;
		if (any++ == 0) {
			xb_newline(out);
			xb_put_wrapped(out, XB_BOLD, 0, "swaps in words");
		}
		xb_size_words(size, words, sizeof(words));
		say(&range, view->transports[t].label, view->transports[view->baseline].label, words, text,
		    sizeof(text));
		xb_put(out, XB_PLAIN, 2, "");
		xb_put_wrapped(out, XB_PLAIN, 4, text);
	}
}

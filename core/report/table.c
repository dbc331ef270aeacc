/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables: one row a size, one column group a transport. A layout is tried from the most to the least
 * generous until it fits the page; when none does, the transports are spread over several tables under the
 * same baseline.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"
#include "text.h"
#include "view.h"

#define CELL 40u
#define NOT_DISTINGUISHABLE "not distinguishable"

struct cell {
	char median[CELL], own[CELL]; /* of the transport; own: its interval (baseline only) */
	char added[CELL], interval[CELL], percent[CELL];
	int not_distinguishable;
};

struct layout {
	int own_interval; /* the baseline's interval is shown */
	size_t gap, label_most;
};

static const struct layout layouts[] = {{1, 3, 24}, {1, 2, 20}, {0, 3, 20}, {0, 2, 12}, {0, 1, 8}};

/* What a group gives up, the widest first, when even the last layout is too wide. */
enum { FULL, WHOLE_PERCENT, FEWER_DIGITS };

struct table {
	const struct xb_view *view;
	size_t bench;
	size_t groups[XB_VIEW_TRANSPORTS]; /* transports shown; the first is the baseline if with_baseline */
	size_t group_count;
	int with_baseline;
	struct layout layout;
	int given_up[XB_VIEW_TRANSPORTS]; /* FULL ... */
	struct cell *cells; /* [size][group] */
	/* widths in columns */
	size_t size, median[XB_VIEW_TRANSPORTS], own, added[XB_VIEW_TRANSPORTS], interval[XB_VIEW_TRANSPORTS],
		percent[XB_VIEW_TRANSPORTS], rest[XB_VIEW_TRANSPORTS]; /* rest: all right of the median */
};

static int is_rate(size_t bench)
{
	return bench == XB_BENCH_BW || bench == XB_BENCH_BIBW;
}

static void own_texts(const struct table *t, json_t *result, struct cell *cell)
{
	json_t *shown = json_object_get(result, is_rate(t->bench) ? "bandwidth_MBps" : "latency_us");
	void (*text)(double, char *, size_t) = is_rate(t->bench) ? xb_rate_text : xb_time_text;
	char low[CELL / 2u - 2u], high[CELL / 2u - 2u];
	text(xb_number_of(shown, "median"), cell->median, CELL);
	if (isfinite(xb_number_of(shown, "ci_low"))) {
		text(xb_number_of(shown, "ci_low"), low, sizeof(low));
		text(xb_number_of(shown, "ci_high"), high, sizeof(high));
		snprintf(cell->own, CELL, "[%s,%s]", low, high);
	}
}

static void added_texts(int given_up, json_t *comparison, struct cell *cell)
{
	json_t *over = json_object_get(comparison, "overhead_us");
	double low = xb_number_of(over, "ci_low"), high = xb_number_of(over, "ci_high");
	cell->not_distinguishable =
		isfinite(low) && !json_is_true(json_object_get(comparison, "distinguishable"));
	if (cell->not_distinguishable)
		return;
	xb_difference_text(xb_number_of(over, "median"), low, high, given_up == FEWER_DIGITS, cell->added,
			   cell->interval, CELL);
	xb_percent_text(xb_number_of(comparison, "overhead_pct"), given_up >= WHOLE_PERCENT, cell->percent,
			CELL);
}

static void grow(size_t *width, size_t columns)
{
	if (columns > *width)
		*width = columns;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int is_baseline(const struct table *t, size_t group)
{
	return t->with_baseline && group == 0;
}

/* Fills the cells in the layout's form and takes the widths from them. */
static void fill(struct table *t)
{
	const struct xb_view *v = t->view;
	char size[24];
	t->size = strlen("size");
	t->own = 0;
	for (size_t g = 0; g < t->group_count; g++)
		t->added[g] = t->interval[g] = t->percent[g] = t->rest[g] = 0;
	for (size_t g = 0; g < t->group_count; g++)
		t->median[g] = strlen(is_rate(t->bench) ? "MB/s" : "us");
	for (size_t s = 0; s < v->size_count; s++) {
		for (size_t g = 0; g < t->group_count; g++) {
			struct cell *cell = &t->cells[s * t->group_count + g];
			json_t *result = xb_view_result(v, t->bench, s, t->groups[g]);
			json_t *comparison = xb_view_overhead(v, t->bench, s, t->groups[g]);
			memset(cell, 0, sizeof(*cell));
			if (result == NULL)
				continue;
			xb_size_text(v->sizes[s], size, sizeof(size));
			grow(&t->size, strlen(size));
			own_texts(t, result, cell);
			grow(&t->median[g], strlen(cell->median));
			if (is_baseline(t, g) && t->layout.own_interval)
				grow(&t->own, strlen(cell->own));
			if (is_baseline(t, g) || comparison == NULL)
				continue;
			added_texts(t->given_up[g], comparison, cell);
			grow(&t->added[g], strlen(cell->added));
			grow(&t->interval[g], strlen(cell->interval));
			grow(&t->percent[g], strlen(cell->percent));
			if (cell->not_distinguishable)
				grow(&t->rest[g], strlen(NOT_DISTINGUISHABLE));
		}
	}
	for (size_t g = 0; g < t->group_count; g++) {
		size_t parts = t->added[g] + t->interval[g] + (t->percent[g] ? 1u + t->percent[g] : 0);
		grow(&t->rest[g], parts);
		if (is_baseline(t, g))
			t->rest[g] = t->own;
	}
}

static size_t group_columns(const struct table *t, size_t g)
{
	return t->median[g] + (t->rest[g] ? 1u + t->rest[g] : 0);
}

/* Labels may ask for more room than the numbers, up to the layout's limit. */
static size_t total_columns(struct table *t)
{
	size_t total = t->size;
	for (size_t g = 0; g < t->group_count; g++) {
		size_t wanted =
			least(xb_columns(t->view->transports[t->groups[g]].label), t->layout.label_most);
		if (group_columns(t, g) < wanted)
			t->median[g] += wanted - group_columns(t, g);
		total += t->layout.gap + group_columns(t, g);
	}
	return total;
}

static void gap(struct xb_out *out, const struct table *t)
{
	for (size_t i = 0; i < t->layout.gap; i++)
		xb_put(out, XB_PLAIN, 1, "");
}

static void dashes(struct xb_out *out, size_t n)
{
	for (; n > 0; n--)
		xb_put(out, XB_DIM, 1, "-");
}

static void head(struct xb_out *out, const struct table *t)
{
	xb_put(out, XB_PLAIN, (int)t->size, "");
	for (size_t g = 0; g < t->group_count; g++) {
		gap(out, t);
		xb_put(out, XB_BOLD, (int)group_columns(t, g), t->view->transports[t->groups[g]].label);
	}
	xb_newline(out);
	xb_put(out, XB_PLAIN, -(int)t->size, "size");
	for (size_t g = 0; g < t->group_count; g++) {
		gap(out, t);
		xb_put(out, XB_PLAIN, -(int)t->median[g], is_rate(t->bench) ? "MB/s" : "us");
		if (t->rest[g] == 0)
			continue;
		const char *what = is_baseline(t, g)			    ? "[95 % int.]"
				   : t->interval[g] == 0 && t->added[g] > 0 ? "adds"
				   : is_rate(t->bench)			    ? "adds us [95 % int.]"
									    : "adds [95 % int.]";
		xb_put(out, XB_PLAIN, 1, "");
		xb_put(out, XB_PLAIN, (int)t->rest[g], what);
	}
	xb_newline(out);
	dashes(out, t->size);
	for (size_t g = 0; g < t->group_count; g++) {
		gap(out, t);
		dashes(out, group_columns(t, g));
	}
	xb_newline(out);
}

static void put_cell(struct xb_out *out, const struct table *t, size_t g, const struct cell *cell)
{
	xb_put(out, XB_PLAIN, -(int)t->median[g], cell->median[0] ? cell->median : "-");
	if (t->rest[g] == 0)
		return;
	xb_put(out, XB_PLAIN, 1, "");
	if (is_baseline(t, g)) {
		xb_put(out, XB_DIM, (int)t->rest[g], cell->own);
		return;
	}
	if (cell->not_distinguishable) {
		xb_put(out, XB_DIM, (int)t->rest[g], NOT_DISTINGUISHABLE);
		return;
	}
	if (cell->added[0] == '\0') {
		xb_put(out, XB_PLAIN, (int)t->rest[g], "");
		return;
	}
	size_t used = t->added[g] + t->interval[g];
	xb_put(out, XB_BOLD, -(int)t->added[g], cell->added);
	if (t->interval[g] > 0)
		xb_put(out, XB_PLAIN, (int)t->interval[g], cell->interval);
	if (t->rest[g] > used) /* the percentage stands at the right edge */
		xb_put(out, XB_PLAIN, -(int)(t->rest[g] - used), cell->percent);
}

static void rows(struct xb_out *out, const struct table *t)
{
	for (size_t s = 0; s < t->view->size_count; s++) {
		const struct cell *cells = &t->cells[s * t->group_count];
		int any = 0;
		for (size_t g = 0; g < t->group_count; g++)
			any |= cells[g].median[0] != '\0';
		if (!any)
			continue;
		char size[24];
		xb_size_text(t->view->sizes[s], size, sizeof(size));
		xb_put(out, XB_PLAIN, -(int)t->size, size);
		for (size_t g = 0; g < t->group_count; g++) {
			gap(out, t);
			put_cell(out, t, g, &cells[g]);
		}
		xb_newline(out);
	}
}

static int fits(struct table *t)
{
	memset(t->given_up, 0, sizeof(t->given_up));
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		t->layout = layouts[i];
		fill(t);
		if (total_columns(t) <= XB_PAGE_COLUMNS)
			return 1;
	}
	for (;;) {
		size_t widest = SIZE_MAX;
		for (size_t g = 0; g < t->group_count; g++)
			if (!is_baseline(t, g) && t->given_up[g] < FEWER_DIGITS &&
			    (widest == SIZE_MAX || group_columns(t, g) > group_columns(t, widest)))
				widest = g;
		if (widest == SIZE_MAX)
			return 0;
		t->given_up[widest]++;
		fill(t);
		if (total_columns(t) <= XB_PAGE_COLUMNS)
			return 1;
	}
}

static const char *title_of(const struct xb_view *v, size_t bench)
{
	const char *op = json_string_value(json_object_get(json_object_get(v->document, "config"), "op"));

	switch (bench) {
	case XB_BENCH_PINGPONG:
		if (op && !strcmp(op, "write"))
			return "pingpong: a write, until it is at the target, in us";
		if (op && !strcmp(op, "read"))
			return "pingpong: a read, until its data are here, in us";
		return "pingpong: half the round trip in us";
	case XB_BENCH_BW:
		return "bw: MB/s (10^6 bytes/s) one way, and us per message";
	case XB_BENCH_BIBW:
		return "bibw: MB/s (10^6 bytes/s) of both ways together, and us per message";
	default:
		return "swap: both sides send and receive, in us";
	}
}

/* One transport alone: there is room for its distribution. */
static void print_alone(struct xb_out *out, const struct xb_view *v, size_t bench, size_t transport)
{
	static const struct {
		const char *head, *object, *key;
		int width;
	} columns[] = {{"us", "latency_us", "median", 9},
		       {"low", "latency_us", "ci_low", 7},
		       {"high", "latency_us", "ci_high", 7},
		       {"min", "latency_us", "min", 8},
		       {"mean", "latency_us", "mean", 7},
		       {"p90", "latency_us", "p90", 7},
		       {"p99", "latency_us", "p99", 7},
		       {"p99.9", "latency_us", "p999", 7},
		       {"max", "latency_us", "max", 7},
		       {"within", "spread_us", "within_launch", 8},
		       {"between", "spread_us", "between_launches", 8}};
	size_t count = sizeof(columns) / sizeof(columns[0]);
	char text[CELL];
	xb_put(out, XB_BOLD, 0, v->transports[transport].label);
	xb_newline(out);
	xb_put(out, XB_PLAIN, -8, "size");
	if (is_rate(bench))
		xb_put(out, XB_PLAIN, -8, "MB/s");
	for (size_t c = 0; c < count; c++)
		xb_put(out, XB_PLAIN, -columns[c].width, columns[c].head);
	xb_newline(out);
	for (size_t s = 0; s < v->size_count; s++) {
		json_t *result = xb_view_result(v, bench, s, transport);
		if (result == NULL)
			continue;
		xb_size_text(v->sizes[s], text, sizeof(text));
		xb_put(out, XB_PLAIN, -8, text);
		if (is_rate(bench)) {
			xb_rate_text(xb_number_of(json_object_get(result, "bandwidth_MBps"), "median"), text,
				     sizeof(text));
			xb_put(out, XB_BOLD, -8, text);
		}
		for (size_t c = 0; c < count; c++) {
			xb_time_text(xb_number_of(json_object_get(result, columns[c].object), columns[c].key),
				     text, sizeof(text));
			xb_put(out, c == 0 && !is_rate(bench) ? XB_BOLD : XB_PLAIN, -columns[c].width, text);
		}
		xb_newline(out);
	}
}

static int print_bench(struct xb_out *out, const struct xb_view *v, size_t bench, struct xb_error *error)
{
	size_t shown[XB_VIEW_TRANSPORTS], count = 0, first = 0;
	struct table t = {.view = v, .bench = bench};
	size_t base = v->baseline;
	int with_baseline = base < v->transport_count && v->transports[base].measured;
	char title[256];
	for (size_t i = 0; i < v->transport_count; i++)
		if (v->transports[i].measured && !(with_baseline && i == base))
			shown[count++] = i;
	const char *label = with_baseline ? v->transports[base].label : "";
	if (count > 0 && with_baseline)
		snprintf(title, sizeof(title),
			 "%s; median over launches, and what each transport adds to %.40s",
			 title_of(v, bench), label);
	else if (count > 1)
		snprintf(title, sizeof(title),
			 "%s; median over launches, not compared: the baseline was not measured",
			 title_of(v, bench));
	else
		snprintf(title, sizeof(title),
			 "%s; median over launches with its 95 %% interval, all iterations, spread within "
			 "and between launches",
			 title_of(v, bench));
	xb_newline(out);
	xb_put_wrapped(out, XB_BOLD, 0, title);
	if (count + (size_t)with_baseline == 1u) {
		print_alone(out, v, bench, with_baseline ? base : shown[0]);
		return 0;
	}
	t.cells = calloc((count + 1u) * (v->size_count + 1u), sizeof(*t.cells));
	if (t.cells == NULL)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for a table of %zu sizes", v->size_count);
	while (first < count) {
		/* a single one that does not fit even so is printed as it is */
		size_t take = least(count - first, with_baseline ? 3u : 8u);
		for (;; take--) {
			t.with_baseline = with_baseline;
			t.group_count = 0;
			if (with_baseline)
				t.groups[t.group_count++] = base;
			for (size_t i = 0; i < take; i++)
				t.groups[t.group_count++] = shown[first + i];
			if (fits(&t) || take == 1)
				break;
		}
		if (first > 0)
			xb_newline(out);
		head(out, &t);
		rows(out, &t);
		first += take;
	}
	free(t.cells);
	return 0;
}

int xb_print_tables(struct xb_out *out, const struct xb_view *v, struct xb_error *error)
{
	for (size_t b = 0; b < XB_VIEW_BENCHES; b++) {
		int status = v->has_bench[b] ? print_bench(out, v, b, error) : 0;
		if (status < 0)
			return status;
	}
	return 0;
}

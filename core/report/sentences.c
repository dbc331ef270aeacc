/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One plain sentence per layer, from the comparisons: sizes are gathered into ranges over which the same can
 * be said, and nothing is said that an interval does not support.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"
#include "text.h"
#include "view.h"

#define CONSTANT_RATIO 1.25 /* overheads within this ratio are told as one */
#define SHORT_PIECE 2u /* neighbours with no more sizes than this are told as one growing range */
#define MOST_PIECES 6u /* more ranges than this are summed up */
#define WIDE_SHARE                                                                                           \
	0.10 /* an interval around 0 with a half-width above this share of the lower's time says nothing */

enum state { ADDS, SAVES, SAME, UNCLEAR };

struct piece {
	enum state state;
	size_t first, last, count; /* sizes: indices in the view, and how many were compared */
	double least, most; /* of the medians, us, as magnitudes */
	double low, high; /* of all interval limits, as magnitudes */
	double highest_low, lowest_high;
	double percent_least, percent_most;
	double sum; /* of the medians */
};

struct pair {
	const struct xb_view *view;
	size_t bench, lower, upper;
	int on_baseline;
};

static json_t *comparison_of(const struct pair *p, size_t s)
{
	return p->on_baseline ? xb_view_overhead(p->view, p->bench, s, p->upper)
			      : xb_view_above(p->view, p->bench, s, p->upper);
}

static struct piece piece_of(const struct pair *p, size_t s, json_t *comparison)
{
	json_t *over = json_object_get(comparison, "overhead_us");
	double median = xb_number_of(over, "median"), low = xb_number_of(over, "ci_low");
	double high = xb_number_of(over, "ci_high"), percent = xb_number_of(comparison, "overhead_pct");
	double lower = xb_number_of(
		json_object_get(xb_view_result(p->view, p->bench, s, p->lower), "latency_us"), "median");
	struct piece piece = {
		.first = s, .last = s, .count = 1, .percent_least = percent, .percent_most = percent};
	if (json_is_true(json_object_get(comparison, "distinguishable")) && isfinite(low))
		piece.state = median > 0.0 ? ADDS : SAVES;
	else
		piece.state = isfinite(low) && (high - low) / 2.0 <= WIDE_SHARE * lower ? SAME : UNCLEAR;
	piece.least = piece.most = piece.sum = fabs(median);
	piece.low = piece.highest_low = piece.state == SAVES ? -high : low;
	piece.high = piece.lowest_high = piece.state == SAVES ? -low : high;
	return piece;
}

static struct piece joined(const struct piece *a, const struct piece *b)
{
	struct piece j = *a;
	j.last = b->last;
	j.count += b->count;
	j.sum += b->sum;
	j.least = fmin(a->least, b->least);
	j.most = fmax(a->most, b->most);
	j.low = fmin(a->low, b->low);
	j.high = fmax(a->high, b->high);
	j.highest_low = fmax(a->highest_low, b->highest_low);
	j.lowest_high = fmin(a->lowest_high, b->lowest_high);
	j.percent_least = fmin(a->percent_least, b->percent_least);
	j.percent_most = fmax(a->percent_most, b->percent_most);
	return j;
}

/* One constant agrees with every interval, or the medians are close. */
static int is_constant(const struct piece *p)
{
	return p->highest_low <= p->lowest_high || p->most <= CONSTANT_RATIO * p->least;
}

/* Gathers the sizes into pieces; returns how many. */
static size_t gather(const struct pair *p, struct piece *pieces, size_t *without_interval)
{
	size_t n = 0, kept = 0;
	*without_interval = 0;
	for (size_t s = 0; s < p->view->size_count; s++) {
		json_t *comparison = comparison_of(p, s);
		if (comparison == NULL)
			continue;
		struct piece next = piece_of(p, s, comparison);
		*without_interval +=
			!isfinite(xb_number_of(json_object_get(comparison, "overhead_us"), "ci_low"));
		if (n > 0 && pieces[n - 1u].state == next.state) {
			struct piece both = joined(&pieces[n - 1u], &next);
			if (next.state == SAME || next.state == UNCLEAR || is_constant(&both)) {
				pieces[n - 1u] = both;
				continue;
			}
		}
		pieces[n++] = next;
	}
	for (size_t i = 0; i < n; i++) {
		struct piece *last = kept > 0 ? &pieces[kept - 1u] : NULL;
		if (last != NULL && last->state == pieces[i].state && pieces[i].count <= SHORT_PIECE &&
		    (last->count <= SHORT_PIECE || !is_constant(last)))
			*last = joined(last, &pieces[i]);
		else
			pieces[kept++] = pieces[i];
	}
	return kept;
}

static void percent_words(const struct piece *p, char *text, size_t bytes)
{
	char a[32], b[32];
	text[0] = '\0';
	if (!isfinite(p->percent_least) || !isfinite(p->percent_most))
		return;
	double from = p->state == SAVES ? p->percent_most : p->percent_least;
	double to = p->state == SAVES ? p->percent_least : p->percent_most;
	snprintf(a, sizeof(a), "%+.*f", fabs(from) < 9.95, from);
	snprintf(b, sizeof(b), "%+.*f", fabs(to) < 9.95, to);
	if (strcmp(a, b) == 0)
		snprintf(text, bytes, " (%s %%)", a);
	else
		snprintf(text, bytes, " (%s to %s %%)", a, b);
}

/* "1.7 us [1.5, 1.9] (+35 %)", or "2.1 to 60 us (+12 to +20 %)" where it is no constant. */
static void amount_words(const struct piece *p, char *text, size_t bytes)
{
	char a[32], b[32], c[32], percent[100];
	percent_words(p, percent, sizeof(percent));
	if (is_constant(p)) {
		xb_us_words(p->sum / (double)p->count, a, sizeof(a));
		xb_us_words(p->low, b, sizeof(b));
		xb_us_words(p->high, c, sizeof(c));
		snprintf(text, bytes, "%s us [%s, %s]%s", a, b, c, percent);
	} else {
		xb_us_words(p->least, a, sizeof(a));
		xb_us_words(p->most, b, sizeof(b));
		snprintf(text, bytes, "%s to %s us%s", a, b, percent);
	}
}

static void range_words(const struct pair *p, const struct piece *piece, int first, int last, char *text,
			size_t bytes)
{
	char from[40], to[40];
	xb_size_words(p->view->sizes[piece->first], from, sizeof(from));
	xb_size_words(p->view->sizes[piece->last], to, sizeof(to));
	if (piece->first == piece->last)
		snprintf(text, bytes, "at %s", from);
	else if (first && last)
		snprintf(text, bytes, "at every size from %s to %s", from, to);
	else if (first)
		snprintf(text, bytes, "up to %s", to);
	else if (last)
		snprintf(text, bytes, "from %s on", from);
	else
		snprintf(text, bytes, "from %s to %s", from, to);
}

/* What is said of a piece: with names in the first one, with "it" in the following ones. */
static void verb_words(const struct pair *p, const struct piece *piece, int first, char *text, size_t bytes)
{
	const char *upper = first ? p->view->transports[p->upper].label : "it";
	const char *lower = p->view->transports[p->lower].label;
	char amount[200];
	amount_words(piece, amount, sizeof(amount));
	switch (piece->state) {
	case ADDS:
		snprintf(text, bytes, "%.100s adds %s%s%.100s", upper, amount,
			 first ? " per message to " : "", first ? lower : "");
		break;
	case SAVES:
		snprintf(text, bytes, "%.100s takes %s less per message than %.100s", upper, amount, lower);
		break;
	case SAME:
		snprintf(text, bytes, "%.100s is not distinguishable from %.100s", upper, lower);
		break;
	case UNCLEAR:
		snprintf(text, bytes, "whether %.100s differs from %.100s is inconclusive", upper, lower);
		break;
	}
}

/* More ranges than a sentence can hold: how many sizes of which kind. */
static void sum_up(const struct pair *p, const struct piece *pieces, size_t n, char *text, size_t bytes)
{
	size_t count[UNCLEAR + 1u] = {0}, all = 0;
	struct piece total[UNCLEAR + 1u];
	char part[400], amount[200];
	const char *upper = p->view->transports[p->upper].label, *lower = p->view->transports[p->lower].label;
	memset(total, 0, sizeof(total));
	for (size_t i = 0; i < n; i++) {
		enum state state = pieces[i].state;
		total[state] = count[state] ? joined(&total[state], &pieces[i]) : pieces[i];
		count[state] += pieces[i].count;
		all += pieces[i].count;
	}
	snprintf(text, bytes, "there is no simple answer for %.100s against %.100s: of %zu sizes", upper,
		 lower, all);
	for (int state = ADDS, said = 0; state <= UNCLEAR; state++) {
		if (count[state] == 0)
			continue;
		amount_words(&total[state], amount, sizeof(amount));
		snprintf(part, sizeof(part), "%s %zu %s%s", said++ ? "," : "", count[state],
			 state == ADDS	  ? "cost more, by "
			 : state == SAVES ? "cost less, by "
			 : state == SAME  ? "are not distinguishable"
					  : "are inconclusive",
			 state == ADDS || state == SAVES ? amount : "");
		xb_append(text, bytes, "%s", part);
	}
	xb_append(text, bytes, "; the table has them all");
}

static void without_interval_words(const struct pair *p, char *text, size_t bytes)
{
	double least = INFINITY, most = -INFINITY;
	unsigned long long launches = 0;
	for (size_t s = 0; s < p->view->size_count; s++) {
		json_t *comparison = comparison_of(p, s);
		double median = xb_number_of(json_object_get(comparison, "overhead_us"), "median");
		if (!isfinite(median))
			continue;
		least = fmin(least, median);
		most = fmax(most, median);
		if (xb_count_of(comparison, "launches") > launches)
			launches = xb_count_of(comparison, "launches");
	}
	char a[32], b[32];
	xb_us_words(least, a, sizeof(a));
	xb_us_words(most, b, sizeof(b));
	snprintf(text, bytes,
		 "what %.100s adds to %.100s is not known: %llu launch%s no interval (the medians differ by "
		 "%s%s%s us)",
		 p->view->transports[p->upper].label, p->view->transports[p->lower].label, launches,
		 launches == 1 ? " gives" : "es give", a, strcmp(a, b) ? " to " : "", strcmp(a, b) ? b : "");
}

static void sentence(const struct pair *p, struct piece *pieces, char *text, size_t bytes)
{
	size_t without_interval, n = gather(p, pieces, &without_interval), compared = 0;
	char verb[600], range[120];
	for (size_t i = 0; i < n; i++)
		compared += pieces[i].count;
	text[0] = '\0';
	if (n == 0) {
		snprintf(text, bytes, "%.100s was not compared with %.100s%s",
			 p->view->transports[p->upper].label, p->view->transports[p->lower].label,
			 p->view->transports[p->lower].measured ? "" : ", which was not measured");
	} else if (without_interval == compared) {
		without_interval_words(p, text, bytes);
	} else if (n > MOST_PIECES) {
		sum_up(p, pieces, n, text, bytes);
	} else {
		for (size_t i = 0; i < n; i++) {
			verb_words(p, &pieces[i], i == 0, verb, sizeof(verb));
			range_words(p, &pieces[i], i == 0, i + 1u == n, range, sizeof(range));
			xb_append(text, bytes, "%s%s %s", i == 0 ? "" : "; ", i == 0 ? verb : range,
				  i == 0 ? range : verb);
		}
	}
	xb_append(text, bytes, ".");
}

static void put_sentence(struct xb_out *out, const struct xb_view *v, size_t bench, const char *text)
{
	size_t benches = 0;
	for (size_t b = 0; b < XB_VIEW_BENCHES; b++)
		benches += v->has_bench[b] != 0;
	xb_put(out, XB_PLAIN, 2, "");
	if (benches > 1) {
		xb_put(out, XB_PLAIN, 0, xb_bench_names[bench]);
		xb_put(out, XB_PLAIN, 0, ": ");
	}
	xb_put_wrapped(out, XB_PLAIN, 4, text);
}

/* The baseline has nothing below it: what it takes itself. */
static void baseline_sentence(struct xb_out *out, const struct xb_view *v, size_t bench)
{
	size_t first = SIZE_MAX, last = 0;
	for (size_t s = 0; s < v->size_count; s++) {
		if (xb_view_result(v, bench, s, v->baseline) == NULL)
			continue;
		first = first == SIZE_MAX ? s : first;
		last = s;
	}
	if (first == SIZE_MAX)
		return;
	char text[400], size[40], us[32], rate[32];
	xb_size_words(v->sizes[first], size, sizeof(size));
	xb_us_words(xb_number_of(json_object_get(xb_view_result(v, bench, first, v->baseline), "latency_us"),
				 "median"),
		    us, sizeof(us));
	snprintf(text, sizeof(text), "%.100s takes %s us per message at %s", v->transports[v->baseline].label,
		 us, size);
	json_t *largest = xb_view_result(v, bench, last, v->baseline);
	double moved = xb_number_of(json_object_get(largest, "bandwidth_MBps"), "median");
	if (last != first && isfinite(moved)) {
		xb_size_words(v->sizes[last], size, sizeof(size));
		xb_rate_text(moved, rate, sizeof(rate));
		xb_append(text, sizeof(text), " and moves %s MB/s at %s", rate, size);
	}
	xb_append(text, sizeof(text), ".");
	put_sentence(out, v, bench, text);
}

/* What fault injection did, as it measured it itself: the truth that the overhead is held against. */
static void fault_sentence(struct xb_out *out, const struct xb_view *v, size_t bench, size_t transport)
{
	double least = INFINITY, most = -INFINITY;
	char text[300], a[32], b[32];
	for (size_t s = 0; s < v->size_count; s++) {
		json_t *fault = json_object_get(xb_view_result(v, bench, s, transport), "fault");
		double us = xb_number_of(json_object_get(fault, "imposed_delay_us"), "median");
		least = isfinite(us) ? fmin(least, us) : least;
		most = isfinite(us) ? fmax(most, us) : most;
	}
	if (!isfinite(least))
		return;
	xb_us_words(least, a, sizeof(a));
	xb_us_words(most, b, sizeof(b));
	snprintf(text, sizeof(text),
		 "fault injection imposed %s%s%s us per message on %.100s, by its own measurement.", a,
		 strcmp(a, b) ? " to " : "", strcmp(a, b) ? b : "", v->transports[transport].label);
	put_sentence(out, v, bench, text);
}

int xb_print_sentences(struct xb_out *out, const struct xb_view *v, struct xb_error *error)
{
	struct piece *pieces = calloc(v->size_count + 1u, sizeof(*pieces));
	char text[4096];
	if (pieces == NULL)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for the sentences of %zu sizes",
			       v->size_count);
	xb_newline(out);
	xb_put(out, XB_BOLD, 0, v->size_count > 0 ? "in words" : "there are no results yet");
	if (v->transport_count > 1 && v->size_count > 0)
		xb_put(out, XB_DIM, 0,
		       " (in brackets: the outermost limits of the 95 % intervals of the sizes named)");
	xb_newline(out);
	for (size_t b = 0; b < XB_VIEW_BENCHES; b++) {
		if (!v->has_bench[b])
			continue;
		if (v->baseline < v->transport_count)
			baseline_sentence(out, v, b);
		for (size_t t = 0; t < v->transport_count; t++) {
			struct pair p = {
				.view = v, .bench = b, .lower = v->baseline, .upper = t, .on_baseline = 1};
			fault_sentence(out, v, b, t);
			if (t == v->baseline)
				continue;
			sentence(&p, pieces, text, sizeof(text));
			if (!v->transports[t].measured)
				snprintf(text, sizeof(text), "%.100s was not measured: see above.",
					 v->transports[t].label);
			put_sentence(out, v, b, text);
			if (v->transports[t].below == SIZE_MAX || v->transports[t].below == v->baseline)
				continue;
			p.lower = v->transports[t].below;
			p.on_baseline = 0;
			sentence(&p, pieces, text, sizeof(text));
			put_sentence(out, v, b, text);
		}
	}
	free(pieces);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdicts of `xportbench accept` as text, from the document's member "acceptance". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "text.h"
#include "view.h"
#include "../stats/stats.h"

#define PASSES_SHOWN 12u /* plain passes listed one by one; more are counted */
#define MAP_NODES_MAX 64u

static enum xb_style style_of(const char *verdict)
{
	return !strcmp(verdict, "fail") ? XB_RED : !strcmp(verdict, "pass") ? XB_PLAIN : XB_YELLOW;
}

static const char *word_of(const char *verdict)
{
	static const struct {
		const char *name, *word;
	} words[] = {{"pass", "PASS"},
		     {"fail", "FAIL"},
		     {"inconclusive", "INCONCLUSIVE"},
		     {"unmeasured", "UNMEASURED"}};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i].name, verdict))
			return words[i].word;
	return "?";
}

static const char *string_at(json_t *list, size_t i)
{
	const char *text = json_string_value(json_array_get(list, i));
	return text ? text : "?";
}

static void duration(double s, char *text, size_t bytes)
{
	if (s < 120)
		snprintf(text, bytes, "%.0f s", ceil(s));
	else if (s < 7200)
		snprintf(text, bytes, "%.0f min", ceil(s / 60));
	else
		snprintf(text, bytes, "%.0f h", ceil(s / 3600));
}

static void measured_text(json_t *j, const char *unit, char *text, size_t bytes)
{
	double low = xb_number_of(j, "ci_low"), high = xb_number_of(j, "ci_high"),
	       value = xb_number_of(j, "value");

	*text = '\0';
	if (!isfinite(value))
		snprintf(text, bytes, "not measured");
	else if (isfinite(low) && low != high)
		snprintf(text, bytes, "%.4g [%.4g, %.4g] %.8s", value, low, high, unit);
	else
		snprintf(text, bytes, "%.4g %.8s", value, unit);
}

static void print_ruling(struct xb_out *out, json_t *ruling, int many)
{
	json_t *fresh = json_object_get(ruling, "fresh"), *first = json_object_get(ruling, "first"), *size;
	json_t *j = json_is_object(fresh) ? fresh : first, *hosts = json_object_get(ruling, "hosts");
	const char *verdict = xb_text_of(ruling, "verdict"), *unit = xb_text_of(ruling, "unit");
	const char *cause = xb_text_of(ruling, "cause");
	char text[200], more[40], note[700] = "";
	double more_s = xb_number_of(ruling, "more_s");

	xb_put(out, XB_PLAIN, 2, "");
	xb_put(out, style_of(verdict), 14, word_of(verdict));
	xb_put(out, XB_BOLD, 22, xb_text_of(ruling, "limit"));
	size = json_object_get(ruling, "size");
	xb_size_text(xb_count_of(ruling, "size"), text, sizeof(text));
	xb_put(out, XB_PLAIN, 8, json_is_integer(size) ? text : "");
	if (many) {
		snprintf(text, sizeof(text), "%.24s - %.24s", string_at(hosts, 0), string_at(hosts, 1));
		xb_put(out, XB_PLAIN, 30, text);
	}
	measured_text(j, unit, text, sizeof(text));
	xb_append(text, sizeof(text), "%s%.4g %.8s", isfinite(xb_number_of(j, "bound")) ? ", limit " : "",
		  xb_number_of(j, "bound"), unit);
	if (!isfinite(xb_number_of(j, "bound")))
		measured_text(j, unit, text, sizeof(text));
	xb_put(out, XB_PLAIN, 0, text);
	xb_newline(out);
	xb_append(note, sizeof(note), "%.300s", xb_text_of(j, "reason"));
	if (isfinite(more_s)) {
		duration(more_s, more, sizeof(more));
		xb_append(note, sizeof(note), ": %s more", more);
	}
	if (json_is_object(fresh)) {
		json_t *pair = json_object_get(ruling, "retest_pair"), *own = json_object_get(ruling, "pair");
		measured_text(first, unit, text, sizeof(text));
		xb_append(note, sizeof(note), "%s%s first (%s), %s by fresh launches%s", *note ? "; " : "",
			  "violated at", text,
			  !strcmp(verdict, "fail")   ? "confirmed"
			  : !strcmp(verdict, "pass") ? "not confirmed"
						     : "neither confirmed nor refuted",
			  json_equal(pair, own) ? "" : " against another partner");
	}
	if (!strcmp(cause, "link") && many)
		xb_append(note, sizeof(note), "; a link, not a node");
	if (*note) {
		xb_put(out, XB_PLAIN, 16, "");
		xb_put_wrapped(out, XB_DIM, 16, note);
	}
}

/* One character a pair: how far the value is from the middle of all, on the bad side. */
static char mark(double value, double median, int higher_is_better)
{
	static const char marks[] = ".:-=+*#@";
	double worse = higher_is_better ? median / value - 1 : value / median - 1;

	if (!isfinite(value) || !isfinite(worse))
		return '?';
	int step = worse < 0.02 ? 0 : (int)(1 + log2(worse / 0.02)); /* 2, 4, 8 ... 128 % */
	return marks[step < 0 ? 0 : step > 7 ? 7 : step];
}

/* Of all pairs; NAN when there is none, or no memory. */
static double median_of(json_t *rows)
{
	size_t nodes = json_array_size(rows), n = 0, i, k;
	double *values = malloc((nodes * nodes + 1) * sizeof(*values)), median = NAN;
	json_t *row, *value;

	if (!values)
		return NAN;
	json_array_foreach(rows, i, row)
	{
		json_array_foreach(row, k, value)
		{
			if (k > i && k < nodes && json_is_number(value))
				values[n++] = json_number_value(value);
		}
	}
	if (n)
		median = xb_median(values, n);
	free(values);
	return median;
}

static void print_map(struct xb_out *out, json_t *matrix, json_t *nodes)
{
	json_t *rows = json_object_get(matrix, "values"), *row, *value;
	const char *metric = xb_text_of(matrix, "metric");
	int high = !strcmp(metric, "bandwidth_MBps") || !strcmp(metric, "message_rate_Mps") ||
		   !strcmp(metric, "share_of_payload");
	double median = json_array_size(rows) > MAP_NODES_MAX ? NAN : median_of(rows);
	char text[200], size[32];
	size_t i, k;

	/* too many to show, or near nothing, of which no part can be told: what one layer adds may be
	 * negative */
	if (!isfinite(median) || !(median > 0) || !strncmp(metric, "overhead_", strlen("overhead_")))
		return;
	xb_size_text(xb_count_of(matrix, "size"), size, sizeof(size));
	snprintf(text, sizeof(text), "%.60s%s%s: %.40s of all pairs, worse than the median of %.4g by",
		 xb_text_of(matrix, "limit"), json_is_integer(json_object_get(matrix, "size")) ? " at " : "",
		 json_is_integer(json_object_get(matrix, "size")) ? size : "", metric, median);
	xb_newline(out);
	xb_put_wrapped(out, XB_PLAIN, 0, text);
	xb_put_wrapped(
		out, XB_DIM, 0,
		". under 2 %  : 2 %  - 4 %  = 8 %  + 16 %  * 32 %  # 64 %  @ 128 % or more  ? not measured");
	json_array_foreach(rows, i, row)
	{
		json_t *node = json_array_get(nodes, i);
		char line[2 * MAP_NODES_MAX + 2] = "";
		snprintf(text, sizeof(text), "%.24s", xb_text_of(node, "host"));
		xb_put(out, XB_PLAIN, 26, text);
		json_array_foreach(row, k, value)
		{
			double v = json_is_number(value) ? json_number_value(value) : NAN;
			char one[3] = {k == i ? ' ' : mark(v, median, high), ' ', '\0'};
			if (k < MAP_NODES_MAX)
				strcat(line, one);
		}
		xb_put(out, XB_PLAIN, 0, line);
		xb_newline(out);
	}
}

static void print_nodes(struct xb_out *out, json_t *acceptance)
{
	json_t *entry;
	size_t i;
	char text[600];

	json_array_foreach(json_object_get(acceptance, "left_out"), i, entry)
	{
		snprintf(text, sizeof(text), "  %.60s was left out: %.400s", xb_text_of(entry, "host"),
			 xb_text_of(entry, "reason"));
		xb_put_wrapped(out, XB_YELLOW, 4, text);
	}
	if (json_array_size(json_object_get(acceptance, "nodes")) <= 2)
		return;
	json_array_foreach(json_object_get(acceptance, "nodes"), i, entry)
	{
		const char *verdict = xb_text_of(entry, "verdict");
		if (!strcmp(verdict, "pass"))
			continue;
		snprintf(text, sizeof(text), "  node %.60s: %s: %.300s", xb_text_of(entry, "host"),
			 word_of(verdict), xb_text_of(entry, "reason"));
		xb_put_wrapped(out, style_of(verdict), 4, text);
	}
}

void xb_print_acceptance(struct xb_out *out, json_t *document)
{
	json_t *a = json_object_get(document, "acceptance"), *rulings = json_object_get(a, "rulings"), *entry;
	json_t *nodes = json_object_get(a, "nodes");
	size_t i, passed = 0, shown = 0;
	int many = json_array_size(nodes) > 2;
	char text[600];

	if (!json_is_object(a))
		return;
	xb_newline(out);
	snprintf(text, sizeof(text), "Acceptance by %.200s: %s", xb_text_of(a, "limits"),
		 word_of(xb_text_of(a, "verdict")));
	xb_put_wrapped(out, XB_BOLD, 0, text);
	if (json_array_size(json_object_get(document, "hosts")) == 1) {
		snprintf(text, sizeof(text), "  All endpoints were on %.60s: no network was judged.",
			 xb_text_of(json_array_get(json_object_get(document, "hosts"), 0), "name"));
		xb_put_wrapped(out, XB_DIM, 2, text);
	}
	json_array_foreach(rulings, i, entry) passed += !strcmp(xb_text_of(entry, "verdict"), "pass");
	json_array_foreach(rulings, i, entry)
	{
		int plain = !strcmp(xb_text_of(entry, "verdict"), "pass") &&
			    !json_is_object(json_object_get(entry, "fresh"));
		if (plain && passed > PASSES_SHOWN)
			continue;
		shown += !strcmp(xb_text_of(entry, "verdict"), "pass");
		print_ruling(out, entry, many);
	}
	if (passed > shown) {
		snprintf(text, sizeof(text), "  %zu of %zu verdicts are a plain PASS and are not listed",
			 passed - shown, json_array_size(rulings));
		xb_put_wrapped(out, XB_PLAIN, 2, text);
	}
	json_array_foreach(json_object_get(json_object_get(a, "baseline"), "differences"), i, entry)
	{
		snprintf(text, sizeof(text), "  the baseline differs in %.20s: %.400s%s",
			 xb_text_of(entry, "kind"), xb_text_of(entry, "text"),
			 json_is_true(json_object_get(entry, "comparable"))
				 ? ""
				 : ": no comparison with it is made");
		xb_put_wrapped(out, XB_YELLOW, 4, text);
	}
	print_nodes(out, a);
	if (many && !strcmp(xb_text_of(a, "pairs_at_a_time"), "many"))
		xb_put_wrapped(
			out, XB_DIM, 2,
			"  Pairs ran at the same time, and shared what links they share; retests ran alone "
			"(--serial: all of them do).");
	json_array_foreach(json_object_get(a, "matrices"), i, entry) print_map(out, entry, nodes);
}

/* What a scheduler knows a node by: the host as it was given, without the number of the endpoint on it; where
 * no hosts were given, what this one calls itself. */
static void name_of_node(json_t *document, json_t *node, char *text, size_t bytes)
{
	const char *given = xb_text_of(node, "host");
	json_int_t endpoint = json_integer_value(json_object_get(node, "endpoint"));
	json_t *host, *number;
	char suffix[32];
	size_t i, k;

	snprintf(text, bytes, "%.200s", given);
	snprintf(suffix, sizeof(suffix), ":%lld", (long long)endpoint);
	size_t length = strlen(text), end = strlen(suffix);
	if (length > end && !strcmp(text + length - end, suffix))
		text[length - end] = '\0';
	if (strncmp(given, "endpoint-", 9) != 0)
		return;
	json_array_foreach(json_object_get(document, "hosts"), i, host)
	{
		json_array_foreach(json_object_get(host, "endpoints"), k, number)
		{
			if (json_is_integer(number) && json_integer_value(number) == endpoint &&
			    *xb_text_of(host, "name"))
				snprintf(text, bytes, "%.200s", xb_text_of(host, "name"));
		}
	}
}

static int rank_of(const char *verdict)
{
	static const char *const ranks[] = {"pass", "inconclusive", "unmeasured", "fail"};
	for (int i = 3; i > 0; i--)
		if (!strcmp(ranks[i], verdict))
			return i;
	return 0;
}

/* Of all endpoints on a host the one with the worst verdict, by the host's name and in the order of the
 * nodes. */
static json_t *worst_on_hosts(json_t *document, json_t *nodes)
{
	json_t *worst = json_object(), *node, *other;
	char name[256];
	size_t i;

	json_array_foreach(nodes, i, node)
	{
		name_of_node(document, node, name, sizeof(name));
		other = json_object_get(worst, name);
		if (!other || rank_of(xb_text_of(node, "verdict")) > rank_of(xb_text_of(other, "verdict")))
			json_object_set_nocheck(worst, name, node);
	}
	return worst;
}

int xb_print_node_lines(struct xb_out *out, json_t *document)
{
	json_t *a = json_object_get(document, "acceptance"), *entry;
	json_t *worst = worst_on_hosts(document, json_object_get(a, "nodes"));
	const char *name;
	size_t i;
	char text[800];

	json_object_foreach(worst, name, entry)
	{
		const char *reason = xb_text_of(entry, "reason");
		snprintf(text, sizeof(text), "%.200s %s%s%.300s", name, word_of(xb_text_of(entry, "verdict")),
			 *reason ? " " : "", reason);
		xb_put(out, XB_PLAIN, 0, text);
		xb_newline(out);
	}
	json_decref(worst);
	json_array_foreach(json_object_get(a, "left_out"), i, entry)
	{
		snprintf(text, sizeof(text), "%.200s UNMEASURED %.400s", xb_text_of(entry, "host"),
			 xb_text_of(entry, "reason"));
		xb_put(out, XB_PLAIN, 0, text);
		xb_newline(out);
	}
	return json_is_object(a);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* One row per label, benchmark and size with every number of it (RFC 4180); one for a transport without any
 * result. */
#include <string.h>
#include "internal.h"
#include "text.h"
#include "view.h"

enum source {
	TRANSPORT,
	RESULT,
	LATENCY,
	BANDWIDTH,
	SPREAD,
	DELAY,
	SWITCHES,
	OVERHEAD,
	OVERHEAD_US,
	BELOW,
	BELOW_US,
	SECONDS,
	MBPS,
	SOURCES
};

static const struct column {
	const char *head;
	enum source source;
	const char *key;
} columns[] = {
	{"label", TRANSPORT, "label"},
	{"transport", TRANSPORT, "name"},
	{"requested_path", TRANSPORT, "requested_path"},
	{"resolved_path", TRANSPORT, "resolved_path"},
	{"library", TRANSPORT, "library"},
	{"version", TRANSPORT, "version"},
	{"layer", TRANSPORT, "layer"},
	{"status", TRANSPORT, "status"},
	{"error", TRANSPORT, "error"},
	{"bench", RESULT, "bench"},
	{"size_bytes", RESULT, "size"},
	{"launches", RESULT, "launches"},
	{"rounds", RESULT, "rounds"},
	{"iterations", RESULT, "iterations"},
	{"stopped_by", RESULT, "stopped_by"},
	{"verified", RESULT, "verified"},
	{"latency_us_median", LATENCY, "median"},
	{"latency_us_ci_low", LATENCY, "ci_low"},
	{"latency_us_ci_high", LATENCY, "ci_high"},
	{"latency_us_min", LATENCY, "min"},
	{"latency_us_mean", LATENCY, "mean"},
	{"latency_us_stddev", LATENCY, "stddev"},
	{"latency_us_p50", LATENCY, "p50"},
	{"latency_us_p90", LATENCY, "p90"},
	{"latency_us_p99", LATENCY, "p99"},
	{"latency_us_p999", LATENCY, "p999"},
	{"latency_us_max", LATENCY, "max"},
	{"spread_within_launch_us", SPREAD, "within_launch"},
	{"spread_between_launches_us", SPREAD, "between_launches"},
	{"bandwidth_MBps_median", BANDWIDTH, "median"},
	{"bandwidth_MBps_ci_low", BANDWIDTH, "ci_low"},
	{"bandwidth_MBps_ci_high", BANDWIDTH, "ci_high"},
	{"message_rate_Mps", RESULT, "message_rate_Mps"},
	{"imposed_delay_us", DELAY, "median"},
	{"voluntary_switches", SWITCHES, "voluntary"},
	{"involuntary_switches", SWITCHES, "involuntary"},
	{"baseline", OVERHEAD, "lower"},
	{"paired_launches", OVERHEAD, "launches"},
	{"overhead_us_median", OVERHEAD_US, "median"},
	{"overhead_us_ci_low", OVERHEAD_US, "ci_low"},
	{"overhead_us_ci_high", OVERHEAD_US, "ci_high"},
	{"overhead_pct", OVERHEAD, "overhead_pct"},
	{"distinguishable", OVERHEAD, "distinguishable"},
	{"below", BELOW, "lower"},
	{"below_overhead_us_median", BELOW_US, "median"},
	{"below_overhead_us_ci_low", BELOW_US, "ci_low"},
	{"below_overhead_us_ci_high", BELOW_US, "ci_high"},
	{"below_overhead_pct", BELOW, "overhead_pct"},
	{"below_distinguishable", BELOW, "distinguishable"},
};

/* Behind them when there are swaps. Overheads are of the whole swap there. */
static const struct column swap_columns[] = {
	{"protocol", RESULT, "protocol"},
	{"order", RESULT, "order"},
	{"mode", RESULT, "mode"},
	{"overlap", RESULT, "overlap"},
	{"overlap_depth", RESULT, "overlap_depth"},
	{"messages", RESULT, "messages"},
	{"total_bytes", RESULT, "total"},
	{"swap_s_min", SECONDS, "min"},
	{"swap_s_median", SECONDS, "median"},
	{"swap_s_ci_low", SECONDS, "ci_low"},
	{"swap_s_ci_high", SECONDS, "ci_high"},
	{"swap_MBps_max", MBPS, "max"},
	{"swap_MBps_median", MBPS, "median"},
};

static void put_text(FILE *file, const char *text)
{
	if (strpbrk(text, ",\"\r\n") == NULL) {
		fputs(text, file);
		return;
	}
	fputc('"', file);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			fputc('"', file);
		fputc(*text, file);
	}
	fputc('"', file);
}

static void put_field(FILE *file, json_t *value)
{
	if (json_is_string(value))
		put_text(file, json_string_value(value));
	else if (json_is_integer(value))
		fprintf(file, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		fprintf(file, XB_REAL_FORMAT, json_real_value(value));
	else if (json_is_boolean(value))
		fputs(json_is_true(value) ? "true" : "false", file);
}

static void put_fields(FILE *file, json_t *const *sources, const struct column *list, size_t count, int first)
{
	for (size_t c = 0; c < count; c++) {
		if (c > 0 || !first)
			fputc(',', file);
		put_field(file, json_object_get(sources[list[c].source], list[c].key));
	}
}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void put_row(FILE *file, json_t *transport, json_t *result, json_t *overhead, json_t *below, int swaps)
{
	json_t *sources[SOURCES] = {
		[TRANSPORT] = transport,
		[RESULT] = result,
		[LATENCY] = json_object_get(result, "latency_us"),
		[BANDWIDTH] = json_object_get(result, "bandwidth_MBps"),
		[SPREAD] = json_object_get(result, "spread_us"),
		[DELAY] = json_object_get(json_object_get(result, "fault"), "imposed_delay_us"),
		[SWITCHES] = json_object_get(result, "context_switches"),
		[OVERHEAD] = overhead,
		[OVERHEAD_US] = json_object_get(overhead, "overhead_us"),
		[BELOW] = below,
		[BELOW_US] = json_object_get(below, "overhead_us"),
		[SECONDS] = json_object_get(result, "seconds"),
		[MBPS] = json_object_get(result, "MBps")};
	put_fields(file, sources, columns, COUNT(columns), 1);
	if (swaps)
		put_fields(file, sources, swap_columns, COUNT(swap_columns), 0);
	fputs("\r\n", file);
}

/* The comparison of this swap record with the baseline, or (adjacent) with the one directly below. */
static json_t *comparison_of(const struct xb_view *v, json_t *record, const char *which)
{
	static const char *const same[] = {"protocol", "order", "mode", "overlap", "size"};
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(v->document, "swap_comparisons"), i, item)
	{
		size_t k = 0;
		while (k < COUNT(same) &&
		       json_equal(json_object_get(item, same[k]), json_object_get(record, same[k])))
			k++;
		if (k == COUNT(same) && json_is_true(json_object_get(item, which)) &&
		    strcmp(xb_text_of(item, "upper"), xb_text_of(record, "label")) == 0)
			return item;
	}
	return NULL;
}

static void put_swaps(FILE *file, const struct xb_view *v)
{
	size_t i;
	json_t *record;
	json_array_foreach(json_object_get(v->document, "swaps"), i, record)
	{
		for (size_t t = 0; t < v->transport_count; t++)
			if (strcmp(v->transports[t].label, xb_text_of(record, "label")) == 0)
				put_row(file, v->transports[t].json, record,
					comparison_of(v, record, "baseline"),
					comparison_of(v, record, "adjacent"), 1);
	}
}

void xb_print_csv(struct xb_out *out, const struct xb_view *v)
{
	FILE *file = out->file;
	int swaps = json_array_size(json_object_get(v->document, "swaps")) > 0;
	for (size_t c = 0; c < COUNT(columns); c++)
		fprintf(file, "%s%s", c ? "," : "", columns[c].head);
	for (size_t c = 0; swaps && c < COUNT(swap_columns); c++)
		fprintf(file, ",%s", swap_columns[c].head);
	fputs("\r\n", file);
	for (size_t b = 0; b < XB_VIEW_BENCHES; b++)
		for (size_t s = 0; v->has_bench[b] && s < v->size_count; s++)
			for (size_t t = 0; t < v->transport_count; t++)
				if (xb_view_result(v, b, s, t) != NULL)
					put_row(file, v->transports[t].json, xb_view_result(v, b, s, t),
						xb_view_overhead(v, b, s, t), xb_view_above(v, b, s, t),
						swaps);
	put_swaps(file, v);
	for (size_t t = 0; t < v->transport_count; t++)
		if (!v->transports[t].measured)
			put_row(file, v->transports[t].json, NULL, NULL, NULL, swaps);
}

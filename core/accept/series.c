/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "series.h"
#include "../report/carriers.h"
#include "../report/results.h"
#include "../report/text.h"
#include "../stats/stats.h"
#include "../system/system.h"

static const char *const benches[] = {"pingpong", "bw", "bibw", "swap"}; /* order of enum xb_bench */

/* --- one list of numbers --- */

static double *numbers(json_t *list, size_t *count)
{
	size_t n = json_array_size(list);
	double *values = malloc((n + 1) * sizeof(*values));

	for (size_t i = 0; values && i < n; i++) {
		json_t *item = json_array_get(list, i);
		values[i] = json_is_number(item) ? json_number_value(item) : NAN;
	}
	*count = values ? n : 0;
	return values;
}

static double of_metric(enum xb_metric metric, enum xb_bench bench, size_t size_bytes, double us)
{
	double messages = bench == XB_BENCH_BIBW ? 2 : 1;

	if (metric == XB_METRIC_BANDWIDTH)
		return messages * (double)size_bytes / us; /* bytes per us are MB/s */
	if (metric == XB_METRIC_RATE)
		return messages / us;
	return us;
}

static struct xb_series *grow(struct xb_series_set *set)
{
	struct xb_series *grown = realloc(set->pairs, (set->count + 1) * sizeof(*grown));

	if (!grown)
		return NULL;
	set->pairs = grown;
	grown[set->count] = (struct xb_series){0};
	return &grown[set->count++];
}

static int matches(json_t *entry, const char *label, enum xb_bench bench, size_t size_bytes)
{
	return !strcmp(xb_text_of(entry, "label"), label) &&
	       !strcmp(xb_text_of(entry, "bench"), benches[bench]) &&
	       xb_count_of(entry, "size") == size_bytes;
}

/* Truth transports have no payload that could be verified. */
static int moves_nothing(json_t *document, const char *label)
{
	return !strcmp(xb_text_of(xb_transport_of(document, label), "layer"), "truth");
}

/* Launch medians (or 99th percentiles) of one transport for every pair. */
static int times_of(json_t *document, const char *label, const struct xb_limit *limit, size_t size_bytes,
		    struct xb_series_set *set)
{
	json_t *list = json_object_get(document, "pairs"), *entry;
	int many = json_array_size(list) > 0;
	size_t i;

	if (!many)
		list = json_object_get(document, "results");
	json_array_foreach(list, i, entry)
	{
		json_t *pair = json_object_get(entry, "pair"), *verified = json_object_get(entry, "verified");
		if (!matches(entry, label, limit->bench, size_bytes))
			continue;
		struct xb_series *s = grow(set);
		if (!s)
			return -1;
		s->a = many ? (uint32_t)json_integer_value(json_array_get(pair, 0)) : 0;
		s->b = many ? (uint32_t)json_integer_value(json_array_get(pair, 1)) : 1;
		s->unverified = json_is_false(verified) && size_bytes > 0 && !moves_nothing(document, label);
		s->values = numbers(json_object_get(entry, limit->metric == XB_METRIC_P99 ? "launch_p99"
											  : "launch_medians"),
				    &s->count);
		if (!s->values)
			return -1;
	}
	return 0;
}

static struct xb_series *find_pair(const struct xb_series_set *set, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->pairs[i].a == a && set->pairs[i].b == b)
			return &set->pairs[i];
	return NULL;
}

/* The comparison's own differences, which are paired round by round; NULL for more than one pair. */
static json_t *launch_overheads(json_t *document, const char *lower, const char *upper,
				const struct xb_limit *limit, size_t size_bytes)
{
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(document, "comparisons"), i, entry)
	{
		if (!strcmp(xb_text_of(entry, "lower"), lower) &&
		    !strcmp(xb_text_of(entry, "upper"), upper) &&
		    !strcmp(xb_text_of(entry, "bench"), benches[limit->bench]) &&
		    xb_count_of(entry, "size") == size_bytes)
			return json_object_get(entry, "launch_overheads");
	}
	return NULL;
}

static int overheads_of(json_t *document, const struct xb_limit *limit, size_t size_bytes,
			struct xb_series_set *set)
{
	const char *lower = limit->over ? limit->over : xb_text_of(document, "baseline");
	struct xb_series_set below = {0};
	int status = times_of(document, limit->transport, limit, size_bytes, set);

	if (!status)
		status = times_of(document, lower, limit, size_bytes, &below);
	int single = json_array_size(json_object_get(document, "pairs")) == 0;
	for (size_t i = 0; !status && i < set->count; i++) {
		/* both are in the order of the document */
		struct xb_series *s = &set->pairs[i], *b = i < below.count ? &below.pairs[i] : NULL;
		if (!b || b->a != s->a || b->b != s->b)
			b = find_pair(&below, s->a, s->b);
		json_t *paired =
			single ? launch_overheads(document, lower, limit->transport, limit, size_bytes)
			       : NULL;
		double lower_median = b ? xb_median(b->values, b->count) : NAN;
		int aligned = b && b->count == s->count; /* launch by launch */

		s->unverified |= b && b->unverified;
		if (paired) {
			free(s->values);
			s->values = numbers(paired, &s->count);
			status = s->values ? 0 : -1;
			aligned = aligned && s->count == b->count;
		}
		for (size_t l = 0; !status && l < s->count; l++) {
			double base = aligned ? b->values[l] : lower_median;
			double added = paired ? s->values[l] : aligned ? s->values[l] - base : NAN;
			s->values[l] = limit->metric == XB_METRIC_OVERHEAD_PCT ? 100 * added / base : added;
		}
	}
	xb_series_free(&below);
	return status;
}

/* --- what is of the run and not of messages --- */

const char *xb_host_of_endpoint(json_t *document, uint32_t endpoint)
{
	json_t *host, *number;
	size_t i, k;

	json_array_foreach(json_object_get(document, "hosts"), i, host)
	{
		json_array_foreach(json_object_get(host, "endpoints"), k, number)
		{
			if (json_is_integer(number) && json_integer_value(number) == (json_int_t)endpoint)
				return xb_text_of(host, "name");
		}
	}
	return NULL;
}

static void add_carriers(json_t *evidence, const char *host, struct xb_carriers *carriers)
{
	json_t *entry;
	size_t i;

	json_array_foreach(evidence, i, entry) if (strcmp(xb_text_of(entry, "host"), host) == 0)
		xb_carriers_add(carriers, xb_text_of(entry, "device"),
				xb_number_of(entry, "share_of_payload"),
				xb_number_of(entry, "link_bits_per_s"));
}

double xb_link_MBps(json_t *document, const char *label, uint32_t a, uint32_t b)
{
	json_t *evidence = json_object_get(xb_transport_of(document, label), "evidence");
	const char *hosts[2] = {xb_host_of_endpoint(document, a), xb_host_of_endpoint(document, b)};
	struct xb_link slowest = {"", 0};

	for (int i = 0; i < 2; i++) {
		struct xb_carriers carriers = {0};
		if (!hosts[i])
			continue;
		add_carriers(evidence, hosts[i], &carriers);
		struct xb_link link = xb_carriers_slowest(&carriers);
		xb_link_take_slower(&slowest, &link);
	}
	return slowest.bits_per_s > 0 ? slowest.bits_per_s / 8e6 : NAN;
}

/* Does an end on this host use a device whose bytes nothing counts? */
static int uncounted_on_host(json_t *transport, const char *host)
{
	json_t *end;
	size_t i;

	json_array_foreach(json_object_get(transport, "ends"), i, end)
	{
		if (!strcmp(xb_text_of(end, "host"), host) && json_is_false(json_object_get(end, "counted")))
			return 1;
	}
	return 0;
}

/*
 * Of the payload that left this host, on the device that the transport's endpoints there said they use; NAN
 * when nothing is known of it. Where they named none (shared memory, several rails, an MPI that does not
 * tell) it is none where no device carried it.
 */
static double share_on_host(json_t *transport, const char *host)
{
	double share = NAN, elsewhere = 0;
	json_t *entry;
	size_t i;

	if (!host || uncounted_on_host(transport, host))
		return NAN;
	json_array_foreach(json_object_get(transport, "evidence"), i, entry)
	{
		json_t *own = json_object_get(entry, "own");
		double seen = xb_number_of(entry, "share_of_payload");
		if (strcmp(xb_text_of(entry, "host"), host) != 0 || !isfinite(seen))
			continue;
		if (!isfinite(share))
			share = 0; /* there are counters, and they can only add to it */
		if (!json_is_boolean(own))
			elsewhere = seen > elsewhere ? seen : elsewhere;
		else if (json_is_true(own) && seen > share)
			share = seen;
	}
	return elsewhere >= XB_CARRIER_SHARE ? NAN : share;
}

static double noise_of_endpoint(json_t *document, uint32_t endpoint, size_t probe)
{
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(document, "noise"), i, entry)
	{
		json_t *value = json_array_get(json_object_get(entry, "detour_pct"), probe);
		if (xb_count_of(entry, "endpoint") == endpoint)
			return json_is_number(value) ? json_number_value(value) : NAN;
	}
	return NAN;
}

static double larger(double a, double b)
{
	return a > b || isnan(b) ? a : b;
}

double xb_noise_of_endpoint(json_t *document, uint32_t endpoint)
{
	double values[64];
	size_t n = 0;

	while (n < 64 && isfinite(values[n] = noise_of_endpoint(document, endpoint, n)))
		n++;
	return xb_median(values, n);
}

double xb_noise_of_pair(json_t *document, uint32_t a, uint32_t b)
{
	return larger(xb_noise_of_endpoint(document, a), xb_noise_of_endpoint(document, b));
}

/* Every pair that the run had, by its measurements or, for lack of them, the only one. */
static int all_pairs(json_t *document, struct xb_series_set *set)
{
	/* 1 where a pair is in the set */
	unsigned char *seen = calloc(XB_MAX_ENDPOINTS, XB_MAX_ENDPOINTS);
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(document, "pairs"), i, entry)
	{
		json_t *pair = json_object_get(entry, "pair");
		uint32_t a = (uint32_t)json_integer_value(json_array_get(pair, 0)),
			 b = (uint32_t)json_integer_value(json_array_get(pair, 1));
		if (seen && (a >= XB_MAX_ENDPOINTS || b >= XB_MAX_ENDPOINTS ||
			     seen[(size_t)a * XB_MAX_ENDPOINTS + b]))
			continue;
		struct xb_series *s = seen ? grow(set) : NULL;
		if (!s) {
			free(seen);
			return -1;
		}
		seen[(size_t)a * XB_MAX_ENDPOINTS + b] = 1;
		s->a = a;
		s->b = b;
	}
	free(seen);
	if (set->count == 0) {
		struct xb_series *s = grow(set);
		if (!s)
			return -1;
		s->b = 1;
	}
	return 0;
}

static int run_values(json_t *document, const struct xb_limit *limit, struct xb_series_set *set)
{
	if (all_pairs(document, set))
		return -1;
	for (size_t i = 0; i < set->count; i++) {
		struct xb_series *s = &set->pairs[i];
		s->values = malloc(64 * sizeof(*s->values));
		if (!s->values)
			return -1;
		if (limit->metric == XB_METRIC_SHARE) {
			json_t *transport = xb_transport_of(document, limit->transport);
			double a = share_on_host(transport, xb_host_of_endpoint(document, s->a)),
			       b = share_on_host(transport, xb_host_of_endpoint(document, s->b));
			s->exact = 1;
			s->values[s->count++] = isnan(a) || isnan(b) ? NAN : a < b ? a : b;
			continue;
		}
		for (; s->count < 64; s->count++) {
			double value = larger(noise_of_endpoint(document, s->a, s->count),
					      noise_of_endpoint(document, s->b, s->count));
			if (!isfinite(value))
				break;
			s->values[s->count] = value;
		}
	}
	return 0;
}

/* --- what all pairs are compared with --- */

static double middle_or_best(const struct xb_limit *limit, double *values, size_t n)
{
	if (limit->relation != XB_RELATION_BEST)
		return xb_median(values, n);
	return xb_quantile(values, n, xb_metric_higher_is_better(limit->metric) ? 1.0 : 0.0);
}

static int find_typical(const struct xb_limit *limit, struct xb_series_set *set)
{
	size_t launches = set->count ? set->pairs[0].count : 0, n = 0;
	double *column = malloc((set->count + 1) * sizeof(*column));

	if (!column)
		return -1;
	for (size_t i = 0; i < set->count; i++) {
		double median = xb_median(set->pairs[i].values, set->pairs[i].count);
		if (isfinite(median))
			column[n++] = median;
		if (set->pairs[i].count != launches)
			launches = 0;
	}
	set->point = middle_or_best(limit, column, n);
	set->typical = launches ? malloc(launches * sizeof(*set->typical)) : NULL;
	for (size_t l = 0; set->typical && l < launches; l++) {
		n = 0;
		for (size_t i = 0; i < set->count; i++)
			if (isfinite(set->pairs[i].values[l]))
				column[n++] = set->pairs[i].values[l];
		set->typical[l] = middle_or_best(limit, column, n);
	}
	set->typical_count = set->typical ? launches : 0;
	free(column);
	return 0;
}

int xb_series_of(json_t *document, const struct xb_limit *limit, size_t size_bytes, struct xb_series_set *set,
		 struct xb_error *error)
{
	int status;

	*set = (struct xb_series_set){.point = NAN};
	if (!xb_metric_has_size(limit->metric))
		status = run_values(document, limit, set);
	else if (limit->metric == XB_METRIC_OVERHEAD_US || limit->metric == XB_METRIC_OVERHEAD_PCT)
		status = overheads_of(document, limit, size_bytes, set);
	else
		status = times_of(document, limit->transport, limit, size_bytes, set);
	for (size_t i = 0; !status && i < set->count; i++)
		for (size_t l = 0; l < set->pairs[i].count && limit->metric <= XB_METRIC_RATE; l++)
			set->pairs[i].values[l] =
				of_metric(limit->metric, limit->bench, size_bytes, set->pairs[i].values[l]);
	if (!status)
		status = find_typical(limit, set);
	if (!status)
		return 0;
	xb_series_free(set);
	return xb_fail(error, XB_E_RESOURCE, "out of memory");
}

void xb_series_free(struct xb_series_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->pairs[i].values);
	free(set->pairs);
	free(set->typical);
	*set = (struct xb_series_set){0};
}

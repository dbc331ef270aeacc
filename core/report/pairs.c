/* SPDX-License-Identifier: BSD-3-Clause */
/* Results by pair of endpoints, where a team has more than two: which node, which link. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static int by_pair(const void *a, const void *b)
{
	const struct xb_point *x = a, *y = b;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->second != y->second)
		return x->second < y->second ? -1 : 1;
	if (x->launch != y->launch)
		return x->launch < y->launch ? -1 : 1;
	return x->round < y->round ? -1 : x->round > y->round;
}

int xb_pair_headline_of(const struct xb_results *r, const struct xb_cell *cell, uint32_t first,
			uint32_t second, struct xb_headline *out)
{
	struct xb_cell own = {.points = malloc((cell->count + 1u) * sizeof(*own.points))};
	for (size_t i = 0; own.points != NULL && i < cell->count; i++)
		if (cell->points[i].first == first && cell->points[i].second == second)
			own.points[own.count++] = cell->points[i];
	int found = xb_headline_of(r, &own, out);
	free(own.points);
	return found;
}

static json_t *interval_json(double median, double low, double high)
{
	return json_pack("{s:o, s:o, s:o}", "median", xb_json_number(median), "ci_low", xb_json_number(low),
			 "ci_high", xb_json_number(high));
}

static json_t *host_json(const struct xb_results *r, uint32_t endpoint)
{
	const struct xb_config *c = r->config;
	return c->host_count ? xb_json_text(c->hosts[endpoint % c->host_count]) : json_null();
}

static json_t *pair_json(const struct xb_results *r, size_t transport, enum xb_bench bench, size_t size,
			 const struct xb_point *point, const struct xb_headline *h)
{
	double bytes = (bench == XB_BENCH_BIBW ? 2000.0 : 1000.0) * (double)r->config->sizes[size];
	json_t *medians = json_array(), *p99 = json_array(), *bandwidth = json_null();
	for (size_t l = 0; l < h->launches; l++) {
		json_array_append_new(medians, xb_json_us(h->launch_medians[l]));
		json_array_append_new(p99, xb_json_us(h->launch_p99[l]));
	}
	if (bench != XB_BENCH_SWAP)
		bandwidth = interval_json(bytes / h->ns.median, bytes / h->ns.high, bytes / h->ns.low);
	return json_pack("{s:o, s:s, s:o, s:[i, i], s:[o, o], s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "label",
			 xb_json_text(r->config->transports[transport].label), "bench", xb_bench_names[bench],
			 "size", xb_json_count(r->config->sizes[size]), "pair", (int)point->first,
			 (int)point->second, "hosts", host_json(r, point->first), host_json(r, point->second),
			 "launches", xb_json_count(h->launches), "rounds", xb_json_count(h->rounds),
			 "verified", json_boolean(h->verified), "latency_us",
			 interval_json(h->ns.median / 1e3, h->ns.low / 1e3, h->ns.high / 1e3),
			 "bandwidth_MBps", bandwidth, "launch_medians", medians, "launch_p99", p99);
}

static void add_cell(const struct xb_results *r, size_t transport, enum xb_bench bench, size_t size,
		     json_t *list)
{
	const struct xb_cell *cell = xb_results_cell(r, transport, bench, size);
	struct xb_point *sorted = malloc((cell->count + 1u) * sizeof(*sorted));
	if (sorted == NULL)
		return;
	if (cell->count > 0)
		memcpy(sorted, cell->points, cell->count * sizeof(*sorted));
	qsort(sorted, cell->count, sizeof(*sorted), by_pair);
	for (size_t i = 0, next; i < cell->count; i = next) {
		struct xb_headline h;
		for (next = i; next < cell->count && sorted[next].first == sorted[i].first &&
			       sorted[next].second == sorted[i].second;)
			next++;
		struct xb_cell own = {.points = &sorted[i], .count = next - i};
		if (!xb_headline_of(r, &own, &h))
			continue;
		json_array_append_new(list, pair_json(r, transport, bench, size, &sorted[i], &h));
		xb_headline_free(&h);
	}
	free(sorted);
}

json_t *xb_pairs_json(const struct xb_results *r)
{
	json_t *list = json_array();
	if (r->config->endpoints <= 2)
		return list;
	for (size_t b = 0; b < r->config->bench_count; b++)
		for (size_t s = 0; s < r->config->size_count; s++)
			for (size_t t = 0; t < r->config->transport_count; t++)
				add_cell(r, t, r->config->benches[b], s, list);
	return list;
}

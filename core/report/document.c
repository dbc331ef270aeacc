/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON document of docs/schema/result-1.json from everything measured so far. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"
#include "references.h"
#include "swaps.h"

#ifndef XB_VERSION
#define XB_VERSION "unknown"
#endif
#define SAMPLES_BEYOND 10u /* a quantile is given only with this many samples beyond it */

/* With the digits that are written, so that a report of the run and one of its file are the same. */
json_t *xb_json_number(double value)
{
	char written[32];

	if (!isfinite(value))
		return json_null();
	snprintf(written, sizeof written, XB_REAL_FORMAT, value);
	return json_real(strtod(written, NULL));
}

json_t *xb_json_us(double ns)
{
	return xb_json_number(ns / 1000.0);
}

json_t *xb_json_count(uint64_t value)
{
	return json_integer(value <= INT64_MAX ? (json_int_t)value : INT64_MAX);
}

json_t *xb_json_text(const char *text)
{
	if (text == NULL)
		return json_null();
	json_t *string = json_string(text); /* NULL unless it is UTF-8 */
	char *ascii = string == NULL ? strdup(text) : NULL;
	if (ascii != NULL) {
		for (char *p = ascii; *p != '\0'; p++)
			if ((unsigned char)*p >= 0x80u)
				*p = '?';
		string = json_string(ascii);
		free(ascii);
	}
	return string != NULL ? string : json_null();
}

const char *xb_layer_name(enum xb_layer layer)
{
	static const char *const names[] = {[XB_LAYER_TRUTH] = "truth",
					    [XB_LAYER_FABRIC] = "fabric",
					    [XB_LAYER_MIDDLEWARE] = "middleware",
					    [XB_LAYER_MPI] = "mpi"};
	return (size_t)layer < sizeof(names) / sizeof(names[0]) ? names[layer] : "fabric";
}

/* A seed takes 64 bits and a JSON integer 63: larger ones are written as text, so that none is changed. */
static json_t *seed_json(uint64_t seed)
{
	char digits[24];
	if (seed <= INT64_MAX)
		return json_integer((json_int_t)seed);
	size_t at = sizeof(digits) - 1u;
	digits[at] = '\0';
	for (; seed > 0; seed /= 10u)
		digits[--at] = (char)('0' + seed % 10u);
	return json_string(&digits[at]);
}

static json_t *interval_json(const struct xb_interval *ns)
{
	return json_pack("{s:o, s:o, s:o}", "median", xb_json_us(ns->median), "ci_low", xb_json_us(ns->low),
			 "ci_high", xb_json_us(ns->high));
}

static json_t *us_array(const double *ns, size_t n)
{
	json_t *array = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, xb_json_us(ns[i]));
	return array;
}

static json_t *transport_json(const struct xb_results *r, size_t index)
{
	const struct xb_transport_spec *spec = &r->config->transports[index];
	const struct xb_transport_record *t = &r->transports[index];
	json_t *start = json_null();
	if (t->start_count > 0)
		start = json_pack("{s:o, s:o, s:o, s:o}", "min",
				  xb_json_number(xb_quantile(t->start_ms, t->start_count, 0.0)), "median",
				  xb_json_number(xb_median(t->start_ms, t->start_count)), "max",
				  xb_json_number(xb_quantile(t->start_ms, t->start_count, 1.0)), "launches",
				  xb_json_count(t->start_count));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "label", xb_json_text(spec->label), "name", xb_json_text(spec->name),
			 "requested_path", xb_json_text(spec->path), "resolved_path",
			 xb_json_text(t->resolved), "library", xb_json_text(t->library), "version",
			 xb_json_text(t->version), "device", xb_json_text(t->device), "layer",
			 xb_layer_name(t->layer), "status", xb_json_text(t->status ? t->status : "ok"),
			 "error", xb_json_text(t->error), "launcher", xb_json_text(t->launcher), "start_ms",
			 start, "ends", xb_ends_json(t), "evidence", xb_evidence_json(t), "carried",
			 xb_carried_json(t));
}

static json_t *quantile_json(const struct xb_histogram *h, double q)
{
	return (double)h->count * (1.0 - q) >= SAMPLES_BEYOND * (1.0 - 1e-9)
		       ? xb_json_us(xb_hist_quantile(h, q))
		       : json_null();
}

static void add_distribution(json_t *latency, const struct xb_histogram *h)
{
	int any = h != NULL && h->count > 0;
	json_object_set_new(latency, "min", any ? xb_json_us((double)h->min_ns) : json_null());
	json_object_set_new(latency, "mean", any ? xb_json_us(xb_hist_mean(h)) : json_null());
	json_object_set_new(latency, "p50", any ? xb_json_us(xb_hist_quantile(h, 0.5)) : json_null());
	json_object_set_new(latency, "p90", any ? quantile_json(h, 0.9) : json_null());
	json_object_set_new(latency, "p99", any ? quantile_json(h, 0.99) : json_null());
	json_object_set_new(latency, "p999", any ? quantile_json(h, 0.999) : json_null());
	json_object_set_new(latency, "max", any ? xb_json_us((double)h->max_ns) : json_null());
	json_object_set_new(latency, "stddev",
			    any && h->count > 1 ? xb_json_us(xb_hist_stddev(h)) : json_null());
}

json_t *xb_histogram_json(const struct xb_histogram *h)
{
	json_t *buckets = json_array();
	for (size_t b = 0; h != NULL && b < XB_HIST_BUCKETS; b++)
		if (h->bucket[b] > 0)
			json_array_append_new(buckets,
					      json_pack("[o, o]", xb_json_count(xb_hist_bucket_low(b)),
							xb_json_count(h->bucket[b])));
	return buckets;
}

/* Round numbers that any transport has in this launch, ascending; returns how many. The medians of all
 * transports are listed by these, so that the same index is the same round everywhere. */
static size_t rounds_of_launch(const struct xb_results *r, enum xb_bench bench, size_t size, unsigned launch,
			       unsigned **rounds)
{
	size_t n = 0, capacity = 0;
	*rounds = NULL;
	for (size_t t = 0; t < r->config->transport_count; t++) {
		const struct xb_cell *cell = xb_results_cell(r, t, bench, size);
		size_t at = 0; /* both lists ascend, so that this does */
		for (size_t i = 0; i < cell->count; i++) {
			const unsigned round = cell->points[i].round;
			if (cell->points[i].launch != launch)
				continue;
			if (at > 0 && (*rounds)[at - 1u] >= round)
				at = 0;
			while (at < n && (*rounds)[at] < round)
				at++;
			if (at < n && (*rounds)[at] == round)
				continue;
			if (n == capacity) {
				capacity = capacity ? capacity * 2u : 16u;
				unsigned *grown = realloc(*rounds, capacity * sizeof(**rounds));
				if (grown == NULL)
					return n;
				*rounds = grown;
			}
			memmove(*rounds + at + 1u, *rounds + at, (n - at) * sizeof(**rounds));
			(*rounds)[at] = cell->points[i].round;
			n++;
		}
	}
	return n;
}

/* One value of every block, by launch and round: its median, or its mean. */
static json_t *blocks_json(const struct xb_results *r, const struct xb_cell *cell, enum xb_bench bench,
			   size_t size, const struct xb_headline *headline, int mean)
{
	json_t *launches = json_array();
	for (size_t l = 0; l < headline->launches; l++) {
		unsigned *rounds;
		size_t n = rounds_of_launch(r, bench, size, headline->launch_ids[l], &rounds), i = 0;
		json_t *row = json_array();
		while (i < cell->count && cell->points[i].launch != headline->launch_ids[l])
			i++;
		for (size_t k = 0; k < n; k++) {
			int here = i < cell->count && cell->points[i].launch == headline->launch_ids[l] &&
				   cell->points[i].round == rounds[k];
			double ns = !here ? NAN : mean ? cell->points[i].mean_ns : cell->points[i].median_ns;
			json_array_append_new(row, xb_json_us(ns));
			i += here;
		}
		free(rounds);
		json_array_append_new(launches, row);
	}
	return launches;
}

/* bytes per us are MB/s. bibw moves a message each way in the time of one; swap has no bandwidth of its own.
 */
static void add_rates(json_t *result, enum xb_bench bench, size_t size, const struct xb_interval *ns)
{
	double messages = bench == XB_BENCH_BIBW ? 2.0 : 1.0, bytes = messages * (double)size * 1000.0;
	json_t *bandwidth = json_null(), *rate = json_null();
	if (bench != XB_BENCH_SWAP)
		bandwidth = json_pack("{s:o, s:o, s:o}", "median", xb_json_number(bytes / ns->median),
				      "ci_low", xb_json_number(bytes / ns->high), "ci_high",
				      xb_json_number(bytes / ns->low));
	if (bench == XB_BENCH_BW || bench == XB_BENCH_BIBW)
		rate = xb_json_number(messages * 1000.0 / ns->median);
	json_object_set_new(result, "bandwidth_MBps", bandwidth);
	json_object_set_new(result, "message_rate_Mps", rate);
}

static json_t *verified_json(const struct xb_results *r, size_t transport, size_t size, int verified)
{
	if (!verified && (size == 0 || r->transports[transport].layer == XB_LAYER_TRUTH))
		return json_null(); /* there is nothing to verify */
	return json_boolean(verified);
}

static json_t *result_json(const struct xb_results *r, size_t transport, enum xb_bench bench, size_t size)
{
	const struct xb_cell *cell = xb_results_cell(r, transport, bench, size);
	struct xb_headline h;
	if (!xb_headline_of(r, cell, &h))
		return NULL;
	const struct xb_histogram *histogram = xb_results_histogram(r, cell);
	json_t *latency = interval_json(&h.ns), *ids = json_array();
	add_distribution(latency, histogram);
	for (size_t l = 0; l < h.launches; l++)
		json_array_append_new(ids, json_integer(h.launch_ids[l]));
	json_t *result = json_pack(
		"{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "label",
		xb_json_text(r->config->transports[transport].label), "bench", xb_bench_names[bench], "size",
		xb_json_count(r->config->sizes[size]), "launches", xb_json_count(h.launches), "rounds",
		xb_json_count(h.rounds), "iterations", xb_json_count(h.iterations), "stopped_by",
		xb_json_text(r->stopped_by), "verified",
		verified_json(r, transport, r->config->sizes[size], h.verified), "latency_us", latency);
	add_rates(result, bench, r->config->sizes[size], &h.ns);
	json_object_set_new(result, "spread_us",
			    json_pack("{s:o, s:o}", "within_launch", xb_json_us(h.within_ns),
				      "between_launches", xb_json_us(h.between_ns)));
	if (isfinite(h.imposed_ns))
		json_object_set_new(result, "fault",
				    json_pack("{s:{s:o, s:o, s:o}}", "imposed_delay_us", "median",
					      xb_json_us(h.imposed_ns), "min", xb_json_us(h.imposed_least_ns),
					      "max", xb_json_us(h.imposed_most_ns)));
	else
		json_object_set_new(result, "fault", json_null());
	json_object_set_new(result, "context_switches",
			    json_pack("{s:I, s:I, s:o}", "voluntary", (json_int_t)h.voluntary, "involuntary",
				      (json_int_t)h.involuntary, "disturbed_blocks",
				      xb_json_count(h.disturbed_blocks)));
	json_object_set_new(result, "launch_ids", ids);
	json_object_set_new(result, "launch_medians", us_array(h.launch_medians, h.launches));
	json_object_set_new(result, "launch_p99", us_array(h.launch_p99, h.launches));
	json_object_set_new(result, "block_medians", blocks_json(r, cell, bench, size, &h, 0));
	json_object_set_new(result, "block_means", blocks_json(r, cell, bench, size, &h, 1));
	json_object_set_new(result, "histogram_ns", xb_histogram_json(histogram));
	xb_headline_free(&h);
	return result;
}

static json_t *comparison_json(const struct xb_results *r, size_t lower, size_t upper, enum xb_bench bench,
			       size_t size)
{
	const struct xb_cell *low = xb_results_cell(r, lower, bench, size),
			     *up = xb_results_cell(r, upper, bench, size);
	struct xb_overhead o;
	if (!xb_cell_comparable(r, lower, low, r->config->sizes[size]) ||
	    !xb_cell_comparable(r, upper, up, r->config->sizes[size]) || !xb_overhead_of(r, low, up, &o))
		return NULL;
	json_t *comparison = json_pack(
		"{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:o}", "lower",
		xb_json_text(r->config->transports[lower].label), "upper",
		xb_json_text(r->config->transports[upper].label), "bench", xb_bench_names[bench], "size",
		xb_json_count(r->config->sizes[size]), "launches", xb_json_count(o.launches), "rounds",
		xb_json_count(o.rounds), "overhead_us", interval_json(&o.ns), "overhead_pct",
		xb_json_number(o.percent), "distinguishable", o.distinguishable, "baseline",
		lower == r->baseline, "adjacent", lower == xb_results_below(r, upper), "launch_overheads",
		us_array(o.launch_medians, o.launches));
	xb_overhead_free(&o);
	return comparison;
}

static void add_measurements(const struct xb_results *r, json_t *results, json_t *comparisons)
{
	size_t n = r->config->transport_count;
	for (size_t b = 0; b < r->config->bench_count; b++) {
		enum xb_bench bench = r->config->benches[b];
		if (bench == XB_BENCH_SWAP)
			continue; /* records of their own */
		for (size_t s = 0; s < r->config->size_count; s++) {
			for (size_t t = 0; t < n; t++) {
				json_t *result = result_json(r, t, bench, s);
				if (result != NULL)
					json_array_append_new(results, result);
			}
			for (size_t i = 0; i < n; i++)
				for (size_t j = i + 1u; j < n; j++) {
					json_t *comparison =
						comparison_json(r, r->order[i], r->order[j], bench, s);
					if (comparison != NULL)
						json_array_append_new(comparisons, comparison);
				}
		}
	}
}

json_t *xb_results_document(const struct xb_results *r)
{
	json_t *transports = json_array(), *results = json_array(), *comparisons = json_array();
	int partial = r->stopped_by == NULL || strcmp(r->stopped_by, "interrupted") == 0;
	for (size_t t = 0; t < r->config->transport_count; t++)
		json_array_append_new(transports, transport_json(r, t));
	add_measurements(r, results, comparisons);
	const char *baseline = r->config->transport_count ? r->config->transports[r->baseline].label : NULL;
	json_t *config = xb_config_json(r->config);
	json_t *document = json_pack(
		"{s:s, s:i, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}, "
		"s:{s:o, s:o, s:o, s:o, s:o}, s:o, s:o, s:o, s:o, s:o, s:o}",
		"xportbench", XB_VERSION, "schema", 1, "started", xb_json_text(r->started), "seed",
		seed_json(r->seed), "launches", xb_json_count(r->whole_count), "stopped_by",
		xb_json_text(r->stopped_by), "partial", partial, "baseline", xb_json_text(baseline), "config",
		config != NULL ? config : json_object(), "hosts", json_deep_copy(r->hosts), "timer", "source",
		xb_json_text(r->timer_source), "cost_ns", xb_json_number(r->cost_ns), "resolution_ns",
		xb_json_number(r->resolution_ns), "drift_ppm", xb_json_number(r->drift_ppm), "controller",
		"cpu_s_while_timed", xb_json_number(r->controller_cpu_s), "timed_s",
		xb_json_number(r->timed_s), "strangers", xb_json_count(r->strangers), "rounds",
		xb_json_count(r->rounds_run), "memory_MB", xb_json_number(r->memory_MB), "transports",
		transports, "results", results, "pairs", xb_pairs_json(r), "comparisons", comparisons,
		"noise", json_deep_copy(r->noise), "findings", json_deep_copy(r->findings));
	xb_swaps_document(r, document);
	xb_references_add(r->config->reference, document);
	return document;
}

/* Of an acceptance run: 1 for a violated limit, which nothing else hides. */
static int exit_of_verdict(json_t *document)
{
	static const struct {
		const char *verdict;
		int status;
	} verdicts[] = {{"fail", 1}, {"unmeasured", 4}, {"inconclusive", 3}};
	json_t *acceptance = json_object_get(document, "acceptance");
	const char *verdict = json_string_value(json_object_get(acceptance, "verdict"));
	for (size_t i = 0; verdict != NULL && i < sizeof(verdicts) / sizeof(verdicts[0]); i++)
		if (strcmp(verdict, verdicts[i].verdict) == 0)
			return verdicts[i].status;
	return 0;
}

int xb_results_exit_status(json_t *document)
{
	size_t i;
	json_t *item;
	int by_verdict = exit_of_verdict(document);
	if (by_verdict == 1)
		return 1;
	json_array_foreach(json_object_get(document, "transports"), i, item)
	{
		const char *status = json_string_value(json_object_get(item, "status"));
		if (status != NULL && strcmp(status, "ok") != 0)
			return 4;
	}
	if (by_verdict)
		return by_verdict;
	json_array_foreach(json_object_get(document, "findings"), i, item)
	{
		const char *severity = json_string_value(json_object_get(item, "severity"));
		if (severity != NULL && strcmp(severity, "invalid") == 0)
			return 3;
	}
	return 0;
}

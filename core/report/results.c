/* SPDX-License-Identifier: BSD-3-Clause */
/* Accumulates what the controller reports; judges nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

const char *const xb_bench_names[XB_BENCH_COUNT] = {[XB_BENCH_PINGPONG] = "pingpong",
						    [XB_BENCH_BW] = "bw",
						    [XB_BENCH_BIBW] = "bibw",
						    [XB_BENCH_SWAP] = "swap"};

#define MAX_LAUNCH (1u << 20) /* far above any run; bounds the array of whole launches */

/* A layer for transports that never came up and so could not say it. */
static enum xb_layer layer_of_name(const char *name)
{
	if (strcmp(name, "null") == 0)
		return XB_LAYER_TRUTH;
	if (xb_is_mpi(name))
		return XB_LAYER_MPI;
	if (strcmp(name, "ofi") == 0 || strcmp(name, "ucx") == 0)
		return XB_LAYER_MIDDLEWARE;
	return XB_LAYER_FABRIC;
}

static char *copy(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

static void replace(char **slot, const char *text)
{
	free(*slot);
	*slot = copy(text);
}

static size_t cell_count(const struct xb_config *config)
{
	return config->transport_count * XB_BENCH_COUNT * config->size_count;
}

static size_t swap_cell_count(const struct xb_config *config)
{
	return config->transport_count * config->swap.variant_count * config->swap.size_count;
}

struct xb_results *xb_results_new(const struct xb_config *config)
{
	struct xb_results *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return NULL;
	r->config = config;
	r->cost_ns = r->resolution_ns = r->drift_ppm = r->controller_cpu_s = r->timed_s = r->memory_MB = NAN;
	r->hosts = json_array();
	r->findings = json_array();
	r->noise = json_array();
	r->cells = calloc(cell_count(config) + 1u, sizeof(*r->cells));
	r->swap_cells = calloc(swap_cell_count(config) + 1u, sizeof(*r->swap_cells));
	if (r->hosts == NULL || r->findings == NULL || r->noise == NULL || r->cells == NULL ||
	    r->swap_cells == NULL) {
		xb_results_free(r);
		return NULL;
	}
	for (size_t t = 0; t < config->transport_count; t++) {
		r->transports[t].layer = layer_of_name(config->transports[t].name);
		if (config->baseline != NULL && strcmp(config->baseline, config->transports[t].label) == 0)
			r->baseline = t;
	}
	r->order[0] = r->baseline;
	for (size_t t = 0, next = 1; t < config->transport_count; t++)
		if (t != r->baseline)
			r->order[next++] = t;
	return r;
}

static void free_end(struct xb_end *end)
{
	free(end->host);
	free(end->device);
	free(end->resolved);
}

static void free_transport(struct xb_transport_record *t)
{
	for (size_t e = 0; e < t->evidence_count; e++) {
		free(t->evidence[e].host);
		free(t->evidence[e].device);
		free(t->evidence[e].kind);
	}
	for (size_t i = 0; i < t->end_count; i++)
		free_end(&t->ends[i]);
	free(t->ends);
	free(t->evidence);
	free(t->start_ms);
	free(t->status);
	free(t->error);
	free(t->resolved);
	free(t->library);
	free(t->version);
	free(t->device);
	free(t->launcher);
}

static void free_cells(struct xb_cell *cells, size_t count)
{
	for (size_t c = 0; cells && c < count; c++) {
		free(cells[c].points);
		free(cells[c].whole);
		free(cells[c].pending);
	}
	free(cells);
}

void xb_results_free(struct xb_results *r)
{
	if (r == NULL)
		return;
	free_cells(r->cells, cell_count(r->config));
	free_cells(r->swap_cells, swap_cell_count(r->config));
	for (size_t t = 0; t < XB_MAX_TRANSPORTS; t++)
		free_transport(&r->transports[t]);
	json_decref(r->hosts);
	json_decref(r->findings);
	json_decref(r->noise);
	free(r->whole_launch);
	free(r->started);
	free(r->timer_source);
	free(r->stopped_by);
	free(r);
}

void xb_results_noise(struct xb_results *r, uint32_t endpoint, double detour_pct)
{
	json_t *entry = NULL;
	size_t i = 0;
	if (r == NULL)
		return;
	while (i < json_array_size(r->noise) &&
	       json_integer_value(json_object_get(json_array_get(r->noise, i), "endpoint")) !=
		       (json_int_t)endpoint)
		i++;
	entry = json_array_get(r->noise, i);
	if (entry == NULL) {
		entry = json_pack("{s:I, s:[]}", "endpoint", (json_int_t)endpoint, "detour_pct");
		json_array_append_new(r->noise, entry);
	}
	json_array_append_new(json_object_get(entry, "detour_pct"), xb_json_number(detour_pct));
}

void xb_results_started(struct xb_results *r, const char *iso8601_utc, uint64_t seed)
{
	if (r == NULL)
		return;
	replace(&r->started, iso8601_utc);
	r->seed = seed;
}

void xb_results_timer(struct xb_results *r, const char *source, double cost_ns, double resolution_ns,
		      double drift_ppm)
{
	if (r == NULL)
		return;
	replace(&r->timer_source, source);
	r->cost_ns = cost_ns;
	r->resolution_ns = resolution_ns;
	r->drift_ppm = drift_ppm;
}

static int same_text(json_t *a, json_t *b, const char *key)
{
	const char *x = json_string_value(json_object_get(a, key)),
		   *y = json_string_value(json_object_get(b, key));
	return (x == NULL && y == NULL) || (x != NULL && y != NULL && strcmp(x, y) == 0);
}

static int contains(json_t *array, json_t *value)
{
	size_t i;
	json_t *item;
	json_array_foreach(array, i, item) if (json_equal(item, value)) return 1;
	return 0;
}

/* The items of both lists under this key, each once; new reference. */
static json_t *united(json_t *a, json_t *b, const char *key)
{
	json_t *all = json_array(), *lists[] = {json_object_get(a, key), json_object_get(b, key)}, *item;
	size_t i;
	for (size_t l = 0; l < 2; l++)
		json_array_foreach(lists[l], i, item) if (!contains(all, item))
			json_array_append_new(all, json_deep_copy(item));
	return all;
}

/* Every team may describe its hosts: the entries of one host become one, with the CPUs of all. */
void xb_results_host(struct xb_results *r, json_t *host)
{
	if (r == NULL || !json_is_object(host))
		return;
	size_t i;
	json_t *known;
	json_array_foreach(r->hosts, i, known)
	{
		if (!same_text(known, host, "name") || !same_text(known, host, "boot_id") ||
		    !same_text(known, host, "netns"))
			continue;
		json_t *cpus = united(known, host, "cpus_used"),
		       *endpoints = united(known, host, "endpoints");
		json_object_update(known, host);
		json_object_set_new(known, "cpus_used", cpus);
		json_object_set_new(known, "endpoints", endpoints);
		return;
	}
	json_array_append_new(r->hosts, json_deep_copy(host));
}

void xb_results_transport_status(struct xb_results *r, size_t transport, const char *status,
				 const char *error)
{
	if (r == NULL || transport >= r->config->transport_count || !xb_results_ok(r, transport))
		return;
	replace(&r->transports[transport].status, status);
	replace(&r->transports[transport].error, error);
}

int xb_results_ok(const struct xb_results *r, size_t transport)
{
	const char *status = r->transports[transport].status;
	return status == NULL || strcmp(status, "ok") == 0;
}

void xb_results_transport_description(struct xb_results *r, size_t transport, const char *resolved,
				      const char *library, const char *version, const char *device,
				      enum xb_layer layer)
{
	if (r == NULL || transport >= r->config->transport_count)
		return;
	struct xb_transport_record *t = &r->transports[transport];
	replace(&t->resolved, resolved);
	replace(&t->library, library);
	replace(&t->version, version);
	replace(&t->device, device);
	t->layer = layer;
}

void xb_results_transport_launcher(struct xb_results *r, size_t transport, const char *launcher)
{
	if (r != NULL && transport < r->config->transport_count)
		replace(&r->transports[transport].launcher, launcher);
}

void xb_results_transport_start_ms(struct xb_results *r, size_t transport, double milliseconds)
{
	if (r == NULL || transport >= r->config->transport_count)
		return;
	struct xb_transport_record *t = &r->transports[transport];
	double *grown = realloc(t->start_ms, (t->start_count + 1u) * sizeof(*grown));
	if (grown == NULL) {
		r->lost_records++;
		return;
	}
	t->start_ms = grown;
	t->start_ms[t->start_count++] = milliseconds;
}

static int same_or_both_missing(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* The entry of this host and device (NULL: the payload of the host), new if need be; NULL when memory ran
 * out. */
static struct xb_evidence *evidence_of(struct xb_results *r, size_t transport, const char *host,
				       const char *device)
{
	struct xb_transport_record *t = &r->transports[transport];
	host = host != NULL ? host : "";
	for (size_t i = 0; i < t->evidence_count; i++)
		if (strcmp(t->evidence[i].host, host) == 0 &&
		    same_or_both_missing(t->evidence[i].device, device))
			return &t->evidence[i];
	struct xb_evidence *grown = realloc(t->evidence, (t->evidence_count + 1u) * sizeof(*grown));
	char *name = copy(host);
	if (grown != NULL)
		t->evidence = grown;
	if (grown == NULL || name == NULL) {
		free(name);
		r->lost_records++;
		return NULL;
	}
	struct xb_evidence *e = &t->evidence[t->evidence_count++];
	memset(e, 0, sizeof(*e));
	e->host = name;
	e->device = copy(device);
	return e;
}

void xb_results_evidence(struct xb_results *r, size_t transport, const char *host, const char *device,
			 const char *kind, uint64_t tx_bytes, uint64_t rx_bytes, uint64_t payload_bytes)
{
	struct xb_evidence *e = NULL;
	if (r != NULL && transport < r->config->transport_count)
		e = evidence_of(r, transport, host, device);
	if (e == NULL)
		return;
	if (e->kind == NULL)
		e->kind = copy(kind);
	e->tx_bytes += tx_bytes;
	e->rx_bytes += rx_bytes;
	e->payload_bytes += payload_bytes;
}

void xb_results_packets(struct xb_results *r, size_t transport, const char *host, const char *device,
			uint64_t tx_packets, uint64_t rx_packets)
{
	struct xb_evidence *e = NULL;
	if (r != NULL && transport < r->config->transport_count && device != NULL &&
	    tx_packets + rx_packets > 0)
		e = evidence_of(r, transport, host, device);
	if (e == NULL)
		return;
	e->tx_packets += tx_packets;
	e->rx_packets += rx_packets;
}

void xb_results_round_evidence(struct xb_results *r, size_t transport, const char *host, const char *device,
			       uint64_t tx_bytes, uint64_t payload_bytes)
{
	struct xb_evidence *e = NULL;
	double least = device != NULL ? XB_CARRIER_SHARE : XB_SHARED_MEMORY_SHARE;
	if (r != NULL && transport < r->config->transport_count && payload_bytes >= XB_EVIDENCE_ROUND_BYTES)
		e = evidence_of(r, transport, host, device);
	if (e == NULL)
		return;
	e->rounds++;
	e->carried_rounds += (double)tx_bytes >= least * (double)payload_bytes;
}

void xb_results_link_rate(struct xb_results *r, size_t transport, const char *host, const char *device,
			  uint64_t bits_per_s)
{
	struct xb_evidence *e = NULL;
	if (r != NULL && transport < r->config->transport_count && device != NULL && bits_per_s > 0)
		e = evidence_of(r, transport, host, device);
	if (e != NULL)
		e->link_bits_per_s = bits_per_s;
}

void xb_results_end(struct xb_results *r, size_t transport, const char *host, const char *device,
		    const char *resolved, int counted)
{
	if (r == NULL || transport >= r->config->transport_count)
		return;
	struct xb_transport_record *t = &r->transports[transport];
	for (size_t i = 0; i < t->end_count; i++)
		if (strcmp(t->ends[i].host, host) == 0 && strcmp(t->ends[i].device, device) == 0)
			return;
	struct xb_end *grown = realloc(t->ends, (t->end_count + 1u) * sizeof(*grown));
	struct xb_end end = {copy(host), copy(device), copy(resolved), counted};
	if (grown != NULL)
		t->ends = grown;
	if (grown == NULL || end.host == NULL || end.device == NULL || end.resolved == NULL) {
		free_end(&end);
		r->lost_records++;
		return;
	}
	t->ends[t->end_count++] = end;
}

struct xb_cell *xb_results_cell(const struct xb_results *r, size_t transport, enum xb_bench bench,
				size_t size_index)
{
	return &r->cells[(transport * XB_BENCH_COUNT + (size_t)bench) * r->config->size_count + size_index];
}

struct xb_cell *xb_results_swap_cell(const struct xb_results *r, size_t transport, size_t variant,
				     size_t size_index)
{
	const struct xb_swap_config *swap = &r->config->swap;
	return &r->swap_cells[(transport * swap->variant_count + variant) * swap->size_count + size_index];
}

/* Where the block belongs; NULL when the run has no such place. */
static struct xb_cell *cell_of(const struct xb_results *r, const struct xb_block_record *b)
{
	const int swap = b->bench == XB_BENCH_SWAP;
	const size_t *sizes = swap ? r->config->swap.sizes : r->config->sizes;
	const size_t count = swap ? r->config->swap.size_count : r->config->size_count;
	size_t s = 0;
	while (s < count && sizes[s] != b->size_bytes)
		s++;
	if (s == count || (swap && b->variant >= r->config->swap.variant_count))
		return NULL;
	return swap ? xb_results_swap_cell(r, b->transport, b->variant, s)
		    : xb_results_cell(r, b->transport, b->bench, s);
}

static struct xb_histogram *histogram_or_new(struct xb_histogram **slot)
{
	if (*slot == NULL && (*slot = malloc(sizeof(**slot))) != NULL)
		xb_hist_clear(*slot);
	return *slot;
}

#define P99_SAMPLES 100u /* fewer have no 99th percentile that is not their maximum */

static double p99_of(const struct xb_histogram *h)
{
	return h != NULL && h->count >= P99_SAMPLES ? xb_hist_quantile(h, 0.99) : NAN;
}

void xb_results_add_block(struct xb_results *r, const struct xb_block_record *b)
{
	if (r == NULL || b->transport >= r->config->transport_count || (unsigned)b->bench >= XB_BENCH_COUNT ||
	    b->launch >= MAX_LAUNCH || !isfinite(b->median_ns))
		return;
	struct xb_cell *cell = cell_of(r, b);
	if (cell == NULL)
		return;
	if (cell->count == cell->capacity) {
		size_t capacity = cell->capacity ? cell->capacity * 2u : 32u;
		struct xb_point *grown = realloc(cell->points, capacity * sizeof(*grown));
		if (grown == NULL) {
			r->lost_records++;
			return;
		}
		cell->points = grown;
		cell->capacity = capacity;
	}
	if (b->histogram != NULL) {
		int whole = b->launch < r->whole_capacity && r->whole_launch[b->launch];
		struct xb_histogram *h = histogram_or_new(whole ? &cell->whole : &cell->pending);
		if (h != NULL && !whole && cell->pending_launch != b->launch) {
			xb_hist_clear(h); /* of a launch that was given up */
			cell->pending_launch = b->launch;
		}
		if (h == NULL) {
			r->lost_records++;
			return;
		}
		xb_hist_merge(h, b->histogram);
	}
	size_t at = cell->count++;
	for (; at > 0; at--) {
		const struct xb_point *before = &cell->points[at - 1u];
		if (before->launch < b->launch || (before->launch == b->launch && before->round <= b->round))
			break;
		cell->points[at] = *before;
	}
	cell->points[at] = (struct xb_point){.launch = b->launch,
					     .round = b->round,
					     .first = b->first,
					     .second = b->second,
					     .iterations = b->iterations,
					     .median_ns = b->median_ns,
					     .p99_ns = p99_of(b->histogram),
					     .mean_ns = b->histogram ? xb_hist_mean(b->histogram) : NAN,
					     .imposed_ns = b->imposed_delay_ns,
					     .voluntary = b->voluntary_switches,
					     .involuntary = b->involuntary_switches,
					     .verified = b->verified};
}

/* The finding that is kept: this one, or the same that was there before. Borrowed; NULL when memory ran out.
 */
static json_t *keep_finding(struct xb_results *r, json_t *finding)
{
	size_t i;
	json_t *known;
	json_array_foreach(r->findings, i, known)
	{
		if (same_text(known, finding, "code") && same_text(known, finding, "label") &&
		    same_text(known, finding, "bench") &&
		    json_equal(json_object_get(known, "size"), json_object_get(finding, "size"))) {
			json_decref(finding);
			return known;
		}
	}
	if (finding != NULL && json_array_append_new(r->findings, finding) == 0)
		return finding;
	r->lost_records++;
	return NULL;
}

static json_t *finding_json(const char *severity, const char *code, const char *label, const char *bench,
			    size_t size, const char *text)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "severity", xb_json_text(severity), "code",
			 xb_json_text(code), "label", xb_json_text(label), "bench", xb_json_text(bench),
			 "size", size == XB_NO_SIZE ? json_null() : xb_json_count(size), "text",
			 xb_json_text(text));
}

void xb_results_finding(struct xb_results *r, const char *severity, const char *code, const char *label,
			const char *bench, size_t size, const char *text)
{
	if (r != NULL)
		keep_finding(r, finding_json(severity, code, label, bench, size, text));
}

void xb_results_end_finding(struct xb_results *r, const char *severity, const char *code, const char *label,
			    const char *text, uint32_t endpoint, uint32_t peer)
{
	json_t *finding, *end, *own;
	size_t i, count;
	if (r == NULL)
		return;
	finding = finding_json(severity, code, label, NULL, XB_NO_SIZE, text);
	own = json_pack("[I, I]", (json_int_t)endpoint, (json_int_t)peer);
	if (finding != NULL)
		json_object_set_new(finding, "ends", json_array());
	finding = keep_finding(r, finding);
	json_t *ends = json_object_get(finding, "ends");
	count = json_array_size(ends);
	json_array_foreach(ends, i, end) if (json_equal(end, own)) break;
	if (i == count && count < XB_FINDING_ENDS)
		json_array_append(ends, own);
	json_decref(own);
}

/* The iterations of a launch that is whole now count. */
static void settle(struct xb_cell *cells, size_t count, unsigned launch)
{
	for (size_t c = 0; c < count; c++) {
		struct xb_cell *cell = &cells[c];
		if (cell->pending == NULL || cell->pending_launch != launch)
			continue;
		if (cell->whole == NULL) {
			cell->whole = cell->pending;
		} else {
			xb_hist_merge(cell->whole, cell->pending);
			free(cell->pending);
		}
		cell->pending = NULL;
	}
}

void xb_results_launch_done(struct xb_results *r, unsigned launch)
{
	if (r == NULL || launch >= MAX_LAUNCH)
		return;
	if (launch >= r->whole_capacity) {
		size_t capacity = launch + 64u;
		unsigned char *grown = realloc(r->whole_launch, capacity);
		if (grown == NULL) {
			r->lost_records++;
			return;
		}
		memset(grown + r->whole_capacity, 0, capacity - r->whole_capacity);
		r->whole_launch = grown;
		r->whole_capacity = capacity;
	}
	if (r->whole_launch[launch])
		return;
	r->whole_launch[launch] = 1;
	r->whole_count++;
	settle(r->cells, cell_count(r->config), launch);
	settle(r->swap_cells, swap_cell_count(r->config), launch);
}

int xb_results_counts(const struct xb_results *r, unsigned launch)
{
	return r->whole_count == 0 || (launch < r->whole_capacity && r->whole_launch[launch]);
}

const struct xb_histogram *xb_results_histogram(const struct xb_results *r, const struct xb_cell *cell)
{
	return r->whole_count == 0 ? cell->pending : cell->whole;
}

void xb_results_controller(struct xb_results *r, double cpu_s_while_timed, double timed_s, uint64_t strangers)
{
	if (r == NULL)
		return;
	r->controller_cpu_s = cpu_s_while_timed;
	r->timed_s = timed_s;
	r->strangers = strangers;
}

void xb_results_cost(struct xb_results *r, double memory_MB, uint64_t rounds)
{
	if (r == NULL)
		return;
	r->memory_MB = memory_MB;
	r->rounds_run = rounds;
}

void xb_results_stopped_by(struct xb_results *r, const char *why)
{
	if (r != NULL)
		replace(&r->stopped_by, why);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Worker commands that measure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker_state.h"

static void arm(void *user, uint64_t monotonic_ns)
{
	struct xb_worker *w = user;
	uint64_t now = xb_clock_ns(CLOCK_MONOTONIC);
	if (monotonic_ns > now + w->default_patience_ns) {
		/* a long block: the controller must not lose patience before this side does */
		json_t *message = json_pack("{s:s, s:I}", "event", "deadline", "milliseconds",
					    (json_int_t)((monotonic_ns - now) / 1000000u));
		xb_channel_send(&w->channel, message, NULL);
		json_decref(message);
	}
	xb_watch_deadline(&w->watch, monotonic_ns);
}

static json_t *histogram_json(const struct xb_histogram *h)
{
	json_t *buckets = json_array();
	for (size_t i = 0; i < XB_HIST_BUCKETS; i++)
		if (h->bucket[i])
			json_array_append_new(buckets,
					      json_pack("[I,I]", (json_int_t)i, (json_int_t)h->bucket[i]));
	return json_pack("{s:I, s:I, s:I, s:f, s:f, s:o}", "count", (json_int_t)h->count, "min",
			 (json_int_t)h->min_ns, "max", (json_int_t)h->max_ns, "sum", h->sum_ns, "sum_sq",
			 h->sum_sq_ns, "buckets", buckets);
}

/* rates: also what each device can carry, read once a launch. */
static json_t *counters_json(struct xb_counters *counters, int rates)
{
	struct xb_counter_delta delta[64];
	size_t count = counters ? xb_counters_since_mark(counters, delta, 64) : 0;
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++) {
		json_t *entry =
			json_pack("{s:s, s:s, s:I, s:I}", "device", delta[i].device, "kind", delta[i].kind,
				  "tx", (json_int_t)delta[i].tx_bytes, "rx", (json_int_t)delta[i].rx_bytes);
		if (delta[i].tx_packets + delta[i].rx_packets) {
			json_object_set_new(entry, "tx_packets",
					    json_integer((json_int_t)delta[i].tx_packets));
			json_object_set_new(entry, "rx_packets",
					    json_integer((json_int_t)delta[i].rx_packets));
		}
		if (rates)
			json_object_set_new(
				entry, "bits_per_s",
				json_integer((json_int_t)xb_link_rate_bits("/sys", delta[i].device)));
		json_array_append_new(list, entry);
	}
	return list;
}

static void add_decorator_reports(struct xb_worker_link *link, json_t *reply)
{
	for (size_t i = 0; i < link->decorators; i++) {
		json_t *report = link->decorator[i]->report
					 ? link->decorator[i]->report(link->decorator_state[i])
					 : NULL;
		if (report)
			json_object_set_new(reply, link->decorator[i]->name, report);
	}
}

/* One for all peers. Every page is touched here. */
static int make_sweep(struct xb_worker *w, struct xb_endpoint *endpoint, struct xb_error *error)
{
	const size_t bytes = xb_block_sweep_bytes(xb_topology_last_level_cache_bytes());

	if (!w->sweep) {
		w->sweep = malloc(bytes);
		if (!w->sweep)
			return xb_fail(error, XB_E_RESOURCE,
				       "no memory for the %zu bytes that sweep the caches (--cache inv)",
				       bytes);
		memset(w->sweep, 1, bytes);
	}
	endpoint->sweep = w->sweep;
	endpoint->sweep_bytes = bytes;
	return 0;
}

static int read_swap(json_t *request, struct xb_swap *swap)
{
	json_int_t messages, depth;
	int protocol, order, mode, overlap;

	if (json_unpack(request, "{s:[i,i,i,i,I,I]}", "swap", &protocol, &order, &mode, &overlap, &messages,
			&depth) ||
	    protocol < 0 || protocol > UINT8_MAX || order < 0 || order > UINT8_MAX || mode < 0 ||
	    mode > UINT8_MAX || messages < 0 || messages > UINT32_MAX || depth < 0 || depth > UINT32_MAX)
		return -1;
	*swap = (struct xb_swap){.protocol = (uint8_t)protocol,
				 .order = (uint8_t)order,
				 .mode = (uint8_t)mode,
				 .overlap = overlap != 0,
				 .messages = (uint32_t)messages,
				 .depth = (uint32_t)depth};
	return 0;
}

int xb_worker_block(struct xb_worker *w, json_t *request, json_t *reply, struct xb_error *error)
{
	static struct xb_block_result result; /* large */
	json_int_t bench, op, size, window, iterations, warmup, target, nonce, peer, number;
	int initiator;

	if (json_unpack(request, "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "bench", &bench,
			"op", &op, "size", &size, "window", &window, "iterations", &iterations, "warmup",
			&warmup, "target_ns", &target, "nonce", &nonce, "peer", &peer, "block", &number,
			"initiator", &initiator) ||
	    !w->opened || peer < 0 || peer >= w->setup.endpoints || !w->links[peer].connected || size < 0)
		return xb_fail(error, XB_E_USAGE, "block: damaged request or no connection to that peer");
	struct xb_worker_link *link = &w->links[peer];
	struct xb_block block = {.bench = (enum xb_bench)bench,
				 .op = (enum xb_op)op,
				 .size_bytes = (size_t)size,
				 .window = (uint32_t)window,
				 .iterations = (uint64_t)iterations,
				 .warmup = (uint64_t)warmup,
				 .target_ns = (uint64_t)target,
				 .nonce = (uint64_t)nonce,
				 .initiator = initiator,
				 .deadline = arm,
				 .user = w};
	if (block.bench == XB_BENCH_SWAP) {
		if (read_swap(request, &block.swap))
			return xb_fail(error, XB_E_USAGE, "block: damaged description of a swap");
		int swept = block.swap.mode == XB_SWAP_COLD ? make_sweep(w, &link->endpoint, error) : 0;
		if (swept)
			return swept;
	}
	memset(&result, 0, sizeof result);
	w->watch.block = (uint64_t)number;
	if (w->counters)
		xb_counters_mark(w->counters);
	int status = xb_block_run(&link->endpoint, &block, &result, error);
	xb_watch_deadline(&w->watch, 0);
	json_object_set_new(reply, "counters", counters_json(w->counters, link->blocks == 0));
	json_object_set_new(reply, "block", json_integer(number));
	add_decorator_reports(link, reply);
	if (status)
		return status;
	if (link->blocks++ == 0) /* some libraries wire their lanes only when data flows */
		xb_worker_describe(w, link, reply);
	json_object_set_new(reply, "iterations", json_integer((json_int_t)result.iterations));
	json_object_set_new(reply, "warmup", json_integer((json_int_t)result.warmup));
	json_object_set_new(reply, "messages", json_integer((json_int_t)result.messages));
	json_object_set_new(reply, "payload_bytes", json_integer((json_int_t)result.payload_bytes));
	json_object_set_new(reply, "elapsed_ns", json_integer((json_int_t)result.elapsed_ns));
	json_object_set_new(reply, "verified", json_boolean(result.verified));
	json_object_set_new(reply, "checked_messages", json_integer((json_int_t)result.checked_messages));
	json_object_set_new(reply, "voluntary", json_integer(result.voluntary_switches));
	json_object_set_new(reply, "involuntary", json_integer(result.involuntary_switches));
	if (initiator) {
		json_object_set_new(reply, "median_ns", json_real(result.median_ns));
		json_object_set_new(reply, "histogram", histogram_json(&result.histogram));
	}
	return 0;
}

int xb_worker_noise(struct xb_worker *w, json_t *request, json_t *reply, struct xb_error *error)
{
	struct xb_noise noise;
	json_int_t duration_ns = json_integer_value(json_object_get(request, "duration_ns"));
	(void)w;
	if (duration_ns <= 0 || duration_ns > 1000000000)
		return xb_fail(error, XB_E_USAGE, "noise: duration out of range");
	xb_noise_probe((uint64_t)duration_ns, &noise);
	json_object_set_new(reply, "detour_share", json_real(noise.detour_share));
	json_object_set_new(reply, "worst_detour_us", json_real(noise.worst_detour_us));
	json_object_set_new(reply, "detours", json_integer((json_int_t)noise.detours));
	json_object_set_new(reply, "steal_share", json_real(noise.steal_share));
	return 0;
}

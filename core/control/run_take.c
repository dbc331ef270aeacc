/* SPDX-License-Identifier: BSD-3-Clause */
/* From workers' replies to results, evidence and findings. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run_internal.h"
#include "../engine/block.h"
#include "../report/text.h"
#include "../system/system.h"

#define NOISE_PROBE_NS 20000000
#define NOISE_WARNING_SHARE 0.05
#define NOISE_PROBES_MAX 64u /* endpoints that are probed, one after the other */
#define STEAL_WARNING_SHARE 0.02

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static void finding(struct xb_run *run, const char *severity, const char *code, const char *label,
		    const char *text)
{
	xb_results_finding(run->control.results, severity, code, label, NULL, SIZE_MAX, text);
}

static void take_hosts(struct xb_run *run, struct xb_team *team)
{
	json_t *seen[XB_TEAM_ENDPOINTS_MAX];
	size_t count = 0;
	for (uint32_t e = 0; e < team->endpoints; e++) {
		json_t *host = xb_team_host(team, e);
		size_t i = 0;
		while (i < count && !xb_same_host(seen[i], host))
			i++;
		if (i == count) {
			seen[count++] = host;
			json_object_set_new(host, "cpus_used", json_array());
			json_object_set_new(host, "endpoints", json_array());
		}
		json_array_append_new(json_object_get(seen[i], "endpoints"), json_integer(e));
		if (run->cpus[e] >= 0)
			json_array_append_new(json_object_get(seen[i], "cpus_used"),
					      json_integer(run->cpus[e]));
	}
	for (size_t i = 0; i < count; i++)
		xb_results_host(run->control.results, seen[i]);
}

static void check_path(struct xb_run *run, struct xb_team *team, json_t *d, uint32_t endpoint, uint32_t peer)
{
	const char *label = team->spec->label;
	char text[700];
	if (!json_object_get(d, "path_ok") || json_is_true(json_object_get(d, "path_ok"))) {
		if (*text_of(d, "note"))
			finding(run, "info", "transport-note", label, text_of(d, "note"));
		return;
	}
	const char *host = team->control->hosts ? team->control->hosts[endpoint] : NULL;
	snprintf(text, sizeof text, "asked for %s, but %s%.60s%sthe bytes use %s%s%s", team->spec->text,
		 host ? "on " : "", host ? host : "", host ? " " : "", text_of(d, "resolved"),
		 *text_of(d, "note") ? ": " : "", text_of(d, "note"));
	xb_results_end_finding(run->control.results, "invalid", "wrong-path", label, text, endpoint, peer);
}

static void take_description(struct xb_run *run, struct xb_team *team)
{
	json_t *d = team->description;
	xb_results_transport_description(run->control.results, team->index, text_of(d, "resolved"),
					 text_of(d, "library"), text_of(d, "version"), text_of(d, "device"),
					 team->layer);
}

void xb_run_take_team(struct xb_run *run, struct xb_team *team)
{
	const char *label = team->spec->label;
	xb_results_transport_start_ms(run->control.results, team->index, team->start_ms);
	xb_results_transport_launcher(run->control.results, team->index, team->launcher->name);
	take_description(run, team);
	if (run->launch > 0)
		return;
	take_hosts(run, team);
	xb_run_check_hosts(run, team);
	json_int_t caps = json_integer_value(json_object_get(team->description, "caps"));
	if (caps & XB_CAP_NO_PAYLOAD)
		finding(run, "info", "null-no-payload", label,
			"moves no payload: it measures the harness, and nothing can be verified");
	if (team->spec->fault_count)
		finding(run, "info", "fault-injected", label,
			"faults are injected on purpose (fault.* keys)");
}

/* What the devices of one host carried while it sent `payload` bytes. */
static void take_counters(struct xb_run *run, struct xb_team *team, const char *host, json_t *counters,
			  uint64_t payload)
{
	struct xb_results *results = run->control.results;
	uint64_t all_bytes = 0;
	json_t *entry;
	size_t i;
	json_array_foreach(counters, i, entry)
	{
		const char *device = text_of(entry, "device"), *kind = text_of(entry, "kind");
		uint64_t tx = (uint64_t)json_integer_value(json_object_get(entry, "tx")), room = tx;
		uint64_t packets = (uint64_t)json_integer_value(json_object_get(entry, "tx_packets"));
		uint64_t rate = run->config->link_bits_per_s && strcmp(kind, "loopback")
					? run->config->link_bits_per_s
					: (uint64_t)json_integer_value(json_object_get(entry, "bits_per_s"));
		xb_results_evidence(results, team->index, host, device, kind, tx,
				    (uint64_t)json_integer_value(json_object_get(entry, "rx")), 0);
		xb_results_packets(results, team->index, host, device, packets,
				   (uint64_t)json_integer_value(json_object_get(entry, "rx_packets")));
		if (packets)
			room = packets * XB_PACKET_BYTES < payload ? packets * XB_PACKET_BYTES : payload;
		xb_results_round_evidence(results, team->index, host, device, room, payload);
		xb_results_link_rate(results, team->index, host, device, rate);
		all_bytes += room;
	}
	xb_results_evidence(results, team->index, host, NULL, "payload", 0, 0, payload);
	xb_results_round_evidence(results, team->index, host, NULL, all_bytes, payload);
}

/* Endpoints on one host see the same devices at the same time: those are taken once a round, with the payload
 * of all. */
static void take_evidence(struct xb_run *run, struct xb_team *team, const struct xb_pair *pairs, size_t count,
			  json_t *const *replies)
{
	static uint64_t payload[XB_TEAM_ENDPOINTS_MAX]; /* by first endpoint of a host */
	static json_t *counters[XB_TEAM_ENDPOINTS_MAX];
	memset(payload, 0, sizeof payload);
	memset(counters, 0, sizeof counters);
	for (size_t i = 0; i < 2 * count; i++) {
		uint32_t first = team->host_of[i % 2 ? pairs[i / 2].second : pairs[i / 2].first];
		payload[first] += (uint64_t)json_integer_value(json_object_get(replies[i], "payload_bytes"));
		if (!counters[first])
			counters[first] = json_object_get(replies[i], "counters");
	}
	for (uint32_t e = 0; e < team->endpoints; e++)
		if (counters[e])
			take_counters(run, team, text_of(xb_team_host(team, e), "name"), counters[e],
				      payload[e]);
}

static void read_histogram(json_t *from, struct xb_histogram *h)
{
	json_t *buckets = json_object_get(from, "buckets"), *pair;
	size_t i;
	xb_hist_clear(h);
	json_array_foreach(buckets, i, pair)
	{
		json_int_t bucket = json_integer_value(json_array_get(pair, 0));
		if (bucket >= 0 && bucket < (json_int_t)XB_HIST_BUCKETS)
			h->bucket[bucket] = (uint64_t)json_integer_value(json_array_get(pair, 1));
	}
	h->count = (uint64_t)json_integer_value(json_object_get(from, "count"));
	h->min_ns = (uint64_t)json_integer_value(json_object_get(from, "min"));
	h->max_ns = (uint64_t)json_integer_value(json_object_get(from, "max"));
	h->sum_ns = json_number_value(json_object_get(from, "sum"));
	h->sum_sq_ns = json_number_value(json_object_get(from, "sum_sq"));
}

/* The delay that fault really imposed per message on this side, ns: what it waited, and what the backend's
 * call took longer for it. NAN if none. */
static double imposed(json_t *reply)
{
	json_t *delay = json_object_get(json_object_get(reply, "fault"), "imposed_delay_ns");
	json_t *median = json_object_get(delay, "median");
	return json_is_number(median)
		       ? json_number_value(median) + json_number_value(json_object_get(delay, "slower"))
		       : NAN;
}

static void take_end(struct xb_run *run, const struct xb_team *team, uint32_t endpoint, json_t *d)
{
	if (d)
		xb_results_end(run->control.results, team->index,
			       text_of(xb_team_host(team, endpoint), "name"), text_of(d, "device"),
			       text_of(d, "resolved"), !json_is_false(json_object_get(d, "counted")));
}

/*
 * What of both sides' delays the time of one message holds, NAN if nothing: half a round trip half of each,
 * and of a swap in which both send at once half of the longer one. A window or a one-sided operation is the
 * initiator's alone. Without payload nobody waits for the other side.
 */
static double imposed_per_message(const struct xb_item *item, enum xb_op op, int alone, double here,
				  double there)
{
	const int swap = item->bench == XB_BENCH_SWAP;
	const int halves = swap || (item->bench == XB_BENCH_PINGPONG && !xb_whole_operation(xb_op_name(op)));

	if (alone)
		return halves ? here / 2 : here;
	if (item->bench == XB_BENCH_BIBW)
		return fmax(here, there);
	if (!halves)
		return here;
	if (isnan(here) && isnan(there))
		return NAN;
	if (swap && item->swap.order != XB_SWAP_ORDERED)
		return fmax(here, there) / 2;
	return ((isnan(here) ? 0 : here) + (isnan(there) ? 0 : there)) / 2;
}

/* After the first block of a pair its ends say what the data really used. */
static void take_first_block(struct xb_run *run, struct xb_team *team, struct xb_pair pair, json_t *initiator,
			     json_t *responder)
{
	json_t *here = json_object_get(initiator, "description"),
	       *there = json_object_get(responder, "description");
	if (here && pair.first == 0) {
		json_decref(team->description);
		team->description = json_incref(here);
		take_description(run, team);
	}
	take_end(run, team, pair.first, here);
	take_end(run, team, pair.second, there);
	if (here)
		check_path(run, team, here, pair.first, pair.second);
	if (there)
		check_path(run, team, there, pair.second, pair.first);
}

static void take_block(struct xb_run *run, struct xb_team *team, const struct xb_item *item, unsigned round,
		       struct xb_pair pair, json_t *initiator, json_t *responder)
{
	static struct xb_histogram histogram; /* large */
	json_int_t caps = json_integer_value(json_object_get(team->description, "caps"));
	int alone = (caps & XB_CAP_NO_PAYLOAD) != 0;
	/* large messages have a smaller window than was asked for */
	const struct xb_block block = {.bench = item->bench,
				       .size_bytes = item->size_bytes,
				       .window = run->config->window,
				       .swap = item->swap};
	uint64_t window = item->bench == XB_BENCH_PINGPONG ? 1 : xb_block_window(&block);

	take_first_block(run, team, pair, initiator, responder);
	read_histogram(json_object_get(initiator, "histogram"), &histogram);
	struct xb_block_record record = {
		.transport = team->index,
		.bench = item->bench,
		.size_bytes = item->size_bytes,
		.variant = item->variant,
		.launch = run->launch,
		.round = round,
		.first = pair.first,
		.second = pair.second,
		.iterations = (uint64_t)json_integer_value(json_object_get(initiator, "iterations")),
		.messages_per_iteration = window,
		.median_ns = json_number_value(json_object_get(initiator, "median_ns")),
		.histogram = &histogram,
		.verified = json_is_true(json_object_get(initiator, "verified")) &&
			    json_is_true(json_object_get(responder, "verified")),
		.imposed_delay_ns = imposed_per_message(item, run->config->op, alone, imposed(initiator),
							imposed(responder)),
		.involuntary_switches = json_integer_value(json_object_get(initiator, "involuntary")) +
					json_integer_value(json_object_get(responder, "involuntary")),
		.voluntary_switches = json_integer_value(json_object_get(initiator, "voluntary")) +
				      json_integer_value(json_object_get(responder, "voluntary")),
	};
	xb_results_add_block(run->control.results, &record);
}

void xb_run_take_round(struct xb_run *run, struct xb_team *team, const struct xb_item *item, size_t visit,
		       size_t first, size_t count, json_t *const *replies)
{
	const struct xb_pair *pairs = run->schedule.pairs + first;
	size_t most = run->control.endpoints / 2;
	/* Blocks of the same number are compared between transports: all of them make the same visits, so it
	 * is the same pair at the same time. */
	for (size_t i = 0; i < count; i++)
		take_block(run, team, item, (unsigned)(visit * most + i), pairs[i], replies[2 * i],
			   replies[2 * i + 1]);
	take_evidence(run, team, pairs, count, replies);
}

void xb_run_probe_noise(struct xb_run *run, struct xb_team *team)
{
	for (uint32_t e = 0; e < team->endpoints && e < NOISE_PROBES_MAX; e++) {
		struct xb_error ignored = {0};
		json_t *reply = NULL;
		if (xb_team_ask(team, e,
				json_pack("{s:s, s:i}", "cmd", "noise", "duration_ns", NOISE_PROBE_NS), 5000,
				&reply, &ignored))
			continue;
		double share = json_number_value(json_object_get(reply, "detour_share"));
		xb_results_noise(run->control.results, e, 100 * share);
		if (!run->noisiest[0] || share > run->noise_share) {
			run->noise_share = share;
			snprintf(run->noisiest, sizeof run->noisiest,
				 "endpoint %u (CPU %d on %.100s) lost %.1f %% of its time to detours longer "
				 "than 1 us in a probe of %d ms; the worst took %.0f us",
				 e, run->cpus[e], text_of(xb_team_host(team, e), "name"), 100 * share,
				 NOISE_PROBE_NS / 1000000,
				 json_number_value(json_object_get(reply, "worst_detour_us")));
		}
		json_decref(reply);
	}
}

void xb_run_tell_noise(struct xb_run *run)
{
	if (run->noisiest[0])
		finding(run, run->noise_share > NOISE_WARNING_SHARE ? "warning" : "info", "noise-detours",
			NULL, run->noisiest);
}

void xb_run_check_steal(struct xb_run *run)
{
	uint64_t now;
	long per_second;
	char text[200];
	if (xb_noise_steal(&now, &per_second) || now < run->steal_begin || per_second <= 0)
		return;
	double seconds = (double)(xb_now_ms() - run->begin_ms) / 1e3;
	double share = (double)(now - run->steal_begin) / (double)per_second / seconds /
		       (double)sysconf(_SC_NPROCESSORS_ONLN);
	if (share < STEAL_WARNING_SHARE)
		return;
	snprintf(text, sizeof text, "the hypervisor took %.1f %% of the CPU time during the run (steal)",
		 100 * share);
	finding(run, "warning", "steal", NULL, text);
}

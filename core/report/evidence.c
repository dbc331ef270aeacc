/* SPDX-License-Identifier: BSD-3-Clause */
/* Which device carried how much of the payload, and whether that is the path that was asked for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "carriers.h"
#include "internal.h"
#include "../system/system.h"

#define RATE_SLACK 1.02 /* nominal rates are met to 100 ppm; a median is not that exact */

static uint64_t payload_of(const struct xb_transport_record *t, const char *host)
{
	uint64_t bytes = 0;
	for (size_t e = 0; e < t->evidence_count; e++)
		if (host == NULL || strcmp(t->evidence[e].host, host) == 0)
			bytes += t->evidence[e].payload_bytes;
	return bytes;
}

/* Bytes that a device has sent; of one that counts packets, as much of its host's payload as they had room
 * for. */
static double sent_by(const struct xb_transport_record *t, const struct xb_evidence *e)
{
	double payload = (double)payload_of(t, e->host),
	       room = (double)XB_PACKET_BYTES * (double)e->tx_packets;
	if (e->tx_packets == 0)
		return (double)e->tx_bytes;
	return room < payload ? room : payload;
}

static double share_of(const struct xb_transport_record *t, const struct xb_evidence *e)
{
	uint64_t payload = payload_of(t, e->host);
	return payload ? sent_by(t, e) / (double)payload : 0.0;
}

/* Rounds on this host (NULL: all hosts) that were judged one by one, and those in which a device carried. */
static uint64_t rounds_of(const struct xb_transport_record *t, const char *host, uint64_t *carried)
{
	uint64_t rounds = 0;
	*carried = 0;
	for (size_t e = 0; e < t->evidence_count; e++)
		if (t->evidence[e].device == NULL &&
		    (host == NULL || strcmp(t->evidence[e].host, host) == 0)) {
			rounds += t->evidence[e].rounds;
			*carried += t->evidence[e].carried_rounds;
		}
	return rounds;
}

/* Did this device carry the payload: in most of the rounds, or by the totals where those are all there is. */
static int carries(const struct xb_transport_record *t, const struct xb_evidence *e)
{
	uint64_t any, rounds = rounds_of(t, e->host, &any);
	return rounds > 0 ? 2 * e->carried_rounds >= rounds : share_of(t, e) >= XB_CARRIER_SHARE;
}

/* The device that the endpoints on this host said they use: one that was counted as `counted`, or (NULL) any.
 * NULL: none. */
static const char *own_device(const struct xb_transport_record *t, const char *host, const char *counted)
{
	for (size_t i = 0; i < t->end_count; i++)
		if (t->ends[i].device[0] != '\0' && strcmp(t->ends[i].host, host) == 0 &&
		    (counted == NULL || xb_counter_is_device(counted, t->ends[i].device)))
			return t->ends[i].device;
	if (t->end_count == 0 && t->device != NULL && t->device[0] != '\0' &&
	    (counted == NULL || xb_counter_is_device(counted, t->device)))
		return t->device;
	return NULL;
}

json_t *xb_ends_json(const struct xb_transport_record *t)
{
	json_t *list = json_array();
	for (size_t i = 0; i < t->end_count; i++) {
		const struct xb_end *end = &t->ends[i];
		json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:b}", "host", xb_json_text(end->host),
						      "device", xb_json_text(end->device), "resolved_path",
						      xb_json_text(end->resolved), "counted", end->counted));
	}
	return list;
}

json_t *xb_evidence_json(const struct xb_transport_record *t)
{
	json_t *list = json_array();
	for (size_t i = 0; i < t->evidence_count; i++) {
		const struct xb_evidence *e = &t->evidence[i];
		if (e->device == NULL)
			continue;
		int packets = e->tx_packets + e->rx_packets > 0;
		json_t *entry = json_pack(
			"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "host", xb_json_text(e->host), "device",
			xb_json_text(e->device), "kind", xb_json_text(e->kind), "own",
			own_device(t, e->host, NULL) ? json_boolean(own_device(t, e->host, e->device) != NULL)
						     : json_null(),
			"tx_bytes", xb_json_count(e->tx_bytes), "rx_bytes", xb_json_count(e->rx_bytes),
			"share_of_payload",
			xb_json_number(payload_of(t, e->host) && !packets ? share_of(t, e) : NAN),
			"link_bits_per_s",
			e->link_bits_per_s ? xb_json_count(e->link_bits_per_s) : json_null());
		if (packets) {
			json_object_set_new(entry, "tx_packets", xb_json_count(e->tx_packets));
			json_object_set_new(entry, "rx_packets", xb_json_count(e->rx_packets));
		}
		json_array_append_new(list, entry);
	}
	return list;
}

struct words {
	size_t shared, self, all;
};

/* Words of a path text that name a shared-memory mechanism, the word "self" (loopback within a process), and
 * all. */
static struct words words_of(const char *text)
{
	static const char *const known[] = {"shm",   "shmem", "sm",    "posix", "sysv",
					    "vader", "cma",   "xpmem", "knem",	"amsh"};
	static const char separators[] = " ,;:/+()";
	struct words found = {0, 0, 0};
	for (const char *p = text; p != NULL && *p != '\0';) {
		p += strspn(p, separators);
		size_t n = strcspn(p, separators);
		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
			found.shared += strlen(known[k]) == n && strncmp(known[k], p, n) == 0;
		found.self += n == 4 && strncmp(p, "self", n) == 0;
		found.all += n > 0;
		p += n;
	}
	return found;
}

static int names_shared_memory(const char *text)
{
	return words_of(text).shared > 0;
}

static int names_only_shared_memory(const char *text)
{
	struct words found = words_of(text);
	return found.shared > 0 && found.shared + found.self == found.all;
}

/* Is this device one of several that the transport itself says it uses ("tcp/eth0 tcp/eth1": two rails)? */
static int resolved_names(const struct xb_transport_record *t, const char *device)
{
	static const char separators[] = " ,;:/+()";
	size_t length = strlen(device);
	for (const char *p = t->resolved; p != NULL && *p != '\0' && length > 0;) {
		p += strspn(p, separators);
		size_t n = strcspn(p, separators);
		if (n == length && strncmp(p, device, n) == 0)
			return 1;
		p += n;
	}
	return 0;
}

struct verdict {
	uint64_t payload_bytes;
	double total_share; /* of all devices on all hosts */
	const struct xb_evidence *largest; /* device with the largest share, or NULL */
	int carried; /* largest is a carrier */
	int shared_memory; /* enough payload, and no device saw it */
	int enough;
	const char *uncounted; /* the transport's own device on a host where nothing counts it, or NULL */
};

/* Counters of the transport's own device on this host: of several the one that carried most; NULL if there
 * are none. */
static const struct xb_evidence *own_counters(const struct xb_transport_record *t, const char *host)
{
	const struct xb_evidence *best = NULL;
	for (size_t i = 0; i < t->evidence_count; i++) {
		const struct xb_evidence *e = &t->evidence[i];
		if (e->device == NULL || strcmp(e->host, host) != 0 || own_device(t, host, e->device) == NULL)
			continue;
		if (best == NULL || carries(t, e) > carries(t, best) ||
		    (carries(t, e) == carries(t, best) && share_of(t, e) > share_of(t, best)))
			best = e;
	}
	return best;
}

/* The transport's own device on a host that sent payload, where nothing counts it; NULL if there is none. */
static const char *find_uncounted(const struct xb_transport_record *t, const char *host)
{
	for (size_t i = 0; i < t->end_count; i++)
		if (!t->ends[i].counted && payload_of(t, t->ends[i].host) > 0 &&
		    (host == NULL || strcmp(host, t->ends[i].host) == 0))
			return t->ends[i].device;
	return NULL;
}

static struct verdict judge(const struct xb_transport_record *t)
{
	struct verdict v = {.payload_bytes = payload_of(t, NULL)};
	double tx_bytes = 0.0, largest = -1.0;
	for (size_t i = 0; i < t->evidence_count; i++) {
		const struct xb_evidence *e = &t->evidence[i];
		if (e->device == NULL)
			continue;
		tx_bytes += sent_by(t, e);
		/* a device that carries comes before one that only had other traffic */
		double rank = share_of(t, e) + (carries(t, e) ? 1e9 : 0.0);
		if (rank > largest) {
			largest = rank;
			v.largest = e;
		}
	}
	uint64_t any, rounds = rounds_of(t, NULL, &any);
	int silent = rounds > 0 ? 2 * any < rounds : 1;
	v.total_share = v.payload_bytes ? tx_bytes / (double)v.payload_bytes : 0.0;
	v.enough = v.payload_bytes >= XB_EVIDENCE_MIN_BYTES;
	v.carried = v.largest != NULL && v.payload_bytes > 0 && carries(t, v.largest);
	if (rounds == 0)
		silent = v.total_share < XB_SHARED_MEMORY_SHARE;
	v.uncounted = names_shared_memory(t->resolved) ? NULL : find_uncounted(t, NULL);
	v.shared_memory = v.enough && silent && t->layer != XB_LAYER_TRUTH && v.uncounted == NULL;
	return v;
}

/* Names of the devices that carried at least half of their host's payload, each once. */
static json_t *carriers(const struct xb_transport_record *t)
{
	json_t *names = json_array();
	for (size_t i = 0; i < t->evidence_count; i++) {
		const struct xb_evidence *e = &t->evidence[i];
		if (e->device == NULL || !carries(t, e))
			continue;
		size_t k;
		json_t *name, *device = xb_json_text(e->device);
		json_array_foreach(names, k, name) if (json_equal(name, device)) break;
		if (k == json_array_size(names))
			json_array_append(names, device);
		json_decref(device);
	}
	return names;
}

json_t *xb_carried_json(const struct xb_transport_record *t)
{
	struct verdict v = judge(t);
	char text[256];
	if (t->layer == XB_LAYER_TRUTH)
		snprintf(text, sizeof(text), "a truth transport: there is no payload to carry");
	else if (v.payload_bytes == 0)
		snprintf(text, sizeof(text), "no payload was counted");
	else if (v.shared_memory)
		snprintf(text, sizeof(text), "no device carried it: shared memory");
	else if (!v.carried && v.uncounted != NULL)
		snprintf(text, sizeof(text), "not known: %.100s keeps no counters of its bytes", v.uncounted);
	else if (v.carried && v.largest->tx_packets)
		snprintf(text, sizeof(text), "%.100s carried it: %llu packets", v.largest->device,
			 (unsigned long long)v.largest->tx_packets);
	else if (v.carried && share_of(t, v.largest) > 1.995)
		snprintf(text, sizeof(text), "%.100s carried it: %.0f times the payload, headers included",
			 v.largest->device, share_of(t, v.largest));
	else if (v.carried)
		snprintf(text, sizeof(text), "%.100s carried %.0f %% of the payload", v.largest->device,
			 100.0 * share_of(t, v.largest));
	else if (!v.enough)
		snprintf(text, sizeof(text), "too little payload to tell");
	else if (v.largest != NULL)
		snprintf(text, sizeof(text), "no device carried half of it; %.100s carried %.0f %%",
			 v.largest->device, 100.0 * share_of(t, v.largest));
	return json_pack("{s:o, s:b, s:o, s:o}", "devices", carriers(t), "shared_memory", v.shared_memory,
			 "payload_bytes", xb_json_count(v.payload_bytes), "text", xb_json_text(text));
}

/* A device that carried the payload on a host where the transport's own did not; the one with most of it,
 * NULL if there is none. */
static const struct xb_evidence *find_stray(const struct xb_transport_record *t)
{
	const struct xb_evidence *stray = NULL;
	for (size_t i = 0; i < t->evidence_count; i++) {
		const struct xb_evidence *e = &t->evidence[i], *own = own_counters(t, e->host);
		if (e->device == NULL || payload_of(t, e->host) == 0 || !carries(t, e) ||
		    own_device(t, e->host, NULL) == NULL || find_uncounted(t, e->host) != NULL ||
		    (own != NULL && carries(t, own)) || resolved_names(t, e->device))
			continue;
		if (stray == NULL || share_of(t, e) > share_of(t, stray))
			stray = e;
	}
	return stray;
}

/* Were the ends meant to be on different hosts? */
static int hosts_differ(const struct xb_config *config)
{
	for (size_t h = 1; h < config->host_count; h++)
		if (strcmp(config->hosts[h], config->hosts[0]) != 0)
			return 1;
	return config->listener != NULL;
}

static void judge_transport(struct xb_results *r, size_t index)
{
	const struct xb_transport_record *t = &r->transports[index];
	const char *label = r->config->transports[index].label, *path = r->config->transports[index].path;
	struct verdict v = judge(t);
	const struct xb_evidence *stray = find_stray(t);
	char text[700];
	int device_known = t->device != NULL && t->device[0] != '\0';
	if (t->layer == XB_LAYER_TRUTH || !v.enough)
		return;
	int admitted = names_shared_memory(path) || names_shared_memory(t->resolved) ||
		       (path[0] == '\0' && !device_known);
	if (v.shared_memory && !admitted) {
		snprintf(text, sizeof(text),
			 "%.100s should use %.100s, but no device carried its payload: it went through "
			 "shared memory, and "
			 "these are not times of that path",
			 label, device_known ? t->device : path);
		xb_results_finding(r, "invalid", "wrong-device", label, NULL, XB_NO_SIZE, text);
	} else if (v.shared_memory) {
		int asked_network = path[0] != '\0' && !names_shared_memory(path);
		int between_hosts = hosts_differ(r->config);
		snprintf(text, sizeof(text), "no device carried the payload of %.100s: shared memory%s",
			 label,
			 between_hosts ? " between ends that were asked for on different hosts: they share a "
					 "machine, and "
					 "these are not times of a network"
			 : asked_network ? ", as its resolved path says; these are not times of a network"
					 : "");
		xb_results_finding(r,
				   between_hosts   ? "invalid"
				   : asked_network ? "warning"
						   : "info",
				   "shared-memory", label, NULL, XB_NO_SIZE, text);
	} else if (stray != NULL) {
		const struct xb_evidence *own = own_counters(t, stray->host);
		snprintf(text, sizeof(text),
			 "%.100s should use %.100s, but %.100s carried %.0f %% of its payload on %.100s and "
			 "%.100s %.0f %%",
			 label, own_device(t, stray->host, NULL), stray->device, 100.0 * share_of(t, stray),
			 stray->host, own_device(t, stray->host, NULL),
			 own != NULL ? 100.0 * share_of(t, own) : 0.0);
		xb_results_finding(r, "invalid", "wrong-device", label, NULL, XB_NO_SIZE, text);
	} else if (v.carried && names_only_shared_memory(path)) {
		snprintf(text, sizeof(text),
			 "%.100s was asked for shared memory, but %.100s carried %.0f %% of its payload",
			 label, v.largest->device, 100.0 * share_of(t, v.largest));
		xb_results_finding(r, "invalid", "wrong-device", label, NULL, XB_NO_SIZE, text);
	} else if (!v.carried && v.uncounted != NULL) {
		snprintf(text, sizeof(text),
			 "%.100s keeps no counters of its bytes: that %.100s went this way is not proved",
			 v.uncounted, label);
		xb_results_finding(r, "warning", "path-unproven", label, NULL, XB_NO_SIZE, text);
	} else if (!v.carried) {
		snprintf(text, sizeof(text),
			 "no device carried half of the payload of %.100s (all together %.0f %%): its path "
			 "is not proved",
			 label, 100.0 * v.total_share);
		xb_results_finding(r, "warning", "path-unproven", label, NULL, XB_NO_SIZE, text);
	}
}

static struct xb_link slowest_on(const struct xb_transport_record *t, const char *host)
{
	struct xb_carriers carriers = {0};

	for (size_t i = 0; i < t->evidence_count; i++) {
		const struct xb_evidence *e = &t->evidence[i];
		if (e->device != NULL && strcmp(e->host, host) == 0)
			xb_carriers_add(&carriers, e->device, share_of(t, e), (double)e->link_bits_per_s);
	}
	return xb_carriers_slowest(&carriers);
}

static struct xb_link slowest_carriers(const struct xb_transport_record *t)
{
	struct xb_link slowest = {"", 0};
	for (size_t i = 0; i < t->evidence_count; i++) {
		const struct xb_link c = slowest_on(t, t->evidence[i].host);
		xb_link_take_slower(&slowest, &c);
	}
	return slowest;
}

/* More bits in one direction than the link takes: the payload did not go that way, or the time is wrong. */
static void judge_rate(struct xb_results *r, const char *label, const struct xb_link *link, double bits_per_s,
		       const char *bench, size_t size)
{
	char text[400];
	if (bits_per_s <= RATE_SLACK * link->bits_per_s)
		return;
	snprintf(text, sizeof(text), "%.100s %s moved %.1f Gb/s, but %s can carry %.1f Gb/s at most", label,
		 bench, bits_per_s / 1e9, link->names, link->bits_per_s / 1e9);
	xb_results_finding(r, "invalid", "exceeds-link-rate", label, bench, size, text);
}

static void judge_rates(struct xb_results *r, size_t index, const struct xb_link *link, enum xb_bench bench)
{
	for (size_t s = 0; s < r->config->size_count; s++) {
		struct xb_headline h;
		if (!xb_headline_of(r, xb_results_cell(r, index, bench, s), &h))
			continue;
		judge_rate(r, r->config->transports[index].label, link,
			   8e9 * (double)r->config->sizes[s] / h.ns.median, xb_bench_names[bench],
			   r->config->sizes[s]);
		xb_headline_free(&h);
	}
}

static void judge_swap_rates(struct xb_results *r, size_t index, const struct xb_link *link)
{
	const struct xb_swap_config *c = &r->config->swap;
	for (size_t v = 0; v < c->variant_count; v++)
		for (size_t s = 0; s < c->size_count; s++) {
			/* one direction after the other, or both at once */
			const double turns =
				c->order == XB_SWAP_ORDERED && !c->variants[v].overlap ? 2.0 : 1.0;
			struct xb_headline h;
			if (!xb_headline_of(r, xb_results_swap_cell(r, index, v, s), &h))
				continue;
			judge_rate(r, r->config->transports[index].label, link,
				   turns * 8e9 * (double)c->total_bytes / h.ns.median, "swap", c->sizes[s]);
			xb_headline_free(&h);
		}
}

void xb_evidence_findings(struct xb_results *r)
{
	for (size_t t = 0; t < r->config->transport_count; t++) {
		judge_transport(r, t);
		const struct xb_link link = slowest_carriers(&r->transports[t]);
		if (link.bits_per_s == 0)
			continue;
		for (size_t b = 0; b < r->config->bench_count; b++)
			if (r->config->benches[b] != XB_BENCH_SWAP)
				judge_rates(r, t, &link, r->config->benches[b]);
		judge_swap_rates(r, t, &link);
	}
}

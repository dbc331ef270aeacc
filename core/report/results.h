/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_RESULTS_H
#define XB_RESULTS_H
/*
 * What a run has measured, and the document made from it. The controller adds blocks, evidence and findings
 * as they come; xb_results_document makes the JSON of docs/schema/result-1.json from everything so far; every
 * printed form (table, csv, ...) is made from that document alone, so `xportbench report FILE` prints the
 * same.
 */
#include <jansson.h>
#include "../cli/config.h"
#include "../stats/histogram.h"
#include "../stats/stats.h"

struct xb_results;

struct xb_block_record {
	size_t transport; /* index into config->transports */
	enum xb_bench bench;
	size_t size_bytes;
	size_t variant; /* swap: index into config->swap.variants */
	unsigned launch;
	unsigned round; /* the same number in another transport: the same pair, the same repetition */
	uint32_t first, second; /* endpoints of the pair */
	uint64_t iterations; /* timed */
	uint64_t messages_per_iteration; /* 1 or the window (bibw: of one side) */
	double median_ns; /* as in xb_block_result */
	const struct xb_histogram *histogram; /* copied */
	int verified;
	double imposed_delay_ns; /* by fault; NAN if none */
	long involuntary_switches, voluntary_switches;
};

/* The configuration is borrowed and must outlive the results. */
struct xb_results *xb_results_new(const struct xb_config *config);
void xb_results_free(struct xb_results *results);

/* NULL-safe setters; all text is copied. json_t arguments are borrowed unless said otherwise. */
void xb_results_started(struct xb_results *r, const char *iso8601_utc, uint64_t seed);
void xb_results_timer(struct xb_results *r, const char *source, double cost_ns, double resolution_ns,
		      double drift_ppm);
/* An object: name, boot_id, kernel, cpu, cpus_used ... One host may be told many times. */
void xb_results_host(struct xb_results *r, json_t *host);
/* status "ok" | "unavailable" | "failed"; error may be NULL. The first failure of a transport wins. */
void xb_results_transport_status(struct xb_results *r, size_t transport, const char *status,
				 const char *error);
void xb_results_transport_description(struct xb_results *r, size_t transport, const char *resolved,
				      const char *library, const char *version, const char *device,
				      enum xb_layer layer);
/* The path that an endpoint on this host said it takes, and its device, "eth0" or "mlx5_0:1": another host
 * may have another. "": it does not say. The first of a host and device is kept. Where no end is told, the
 * device of the description counts for every host. counted: 0 if nothing there counts the bytes of the
 * device. */
void xb_results_end(struct xb_results *r, size_t transport, const char *host, const char *device,
		    const char *resolved, int counted);
/* What started it: "local", "ssh", ... */
void xb_results_transport_launcher(struct xb_results *r, size_t transport, const char *launcher);
/* Of one launch. */
void xb_results_transport_start_ms(struct xb_results *r, size_t transport, double milliseconds);
/* Byte counts of one device on one host during blocks of this transport; accumulates over calls.
 * kind: "netdev" | "rdma" | "loopback". payload_bytes is what the endpoints on that host sent meanwhile (add
 * it once per block, device NULL). */
void xb_results_evidence(struct xb_results *r, size_t transport, const char *host, const char *device,
			 const char *kind, uint64_t tx_bytes, uint64_t rx_bytes, uint64_t payload_bytes);
/* Of the payload of a host: a device carried it; has seen all of it but for rounding; has a part worth
 * counting. */
#define XB_CARRIER_SHARE 0.5
#define XB_WHOLE_SHARE 0.9
#define XB_RAIL_SHARE 0.05
/* Payload that a packet has room for: the largest MTU of InfiniBand and RoCE. */
#define XB_PACKET_BYTES UINT64_C(4096)
/* What a device has counted that counts packets and no bytes (soft-RoCE); 0 and 0 are ignored. */
void xb_results_packets(struct xb_results *r, size_t transport, const char *host, const char *device,
			uint64_t tx_packets, uint64_t rx_packets);
/* What one round of blocks showed on one host, where it sent payload_bytes: of each device whether it carried
 * them, and (device NULL, tx_bytes of all devices together) whether any did. Rounds are judged one by one, so
 * that other traffic, however much in one of them, does not decide. */
void xb_results_round_evidence(struct xb_results *r, size_t transport, const char *host, const char *device,
			       uint64_t tx_bytes, uint64_t payload_bytes);
/* Nominal rate of a device in one direction; 0 (unknown) is ignored. A bandwidth above it cannot be and
 * becomes a finding. */
void xb_results_link_rate(struct xb_results *r, size_t transport, const char *host, const char *device,
			  uint64_t bits_per_s);
/* Launches run one after the other: no block of an earlier launch comes after one of a later. */
void xb_results_add_block(struct xb_results *r, const struct xb_block_record *record);
/* severity "info" | "warning" | "invalid"; label, bench may be NULL, size SIZE_MAX for none. The same finding
 * (code, label, bench, size) is kept once. */
void xb_results_finding(struct xb_results *r, const char *severity, const char *code, const char *label,
			const char *bench, size_t size, const char *text);
#define XB_FINDING_ENDS 4096u /* a finding with so many may have more */
/* The same of one end of a pair: the ends are gathered in the finding, and its text is of the first. */
void xb_results_end_finding(struct xb_results *r, const char *severity, const char *code, const char *label,
			    const char *text, uint32_t endpoint, uint32_t peer);
/* Share of its time that the core of an endpoint lost in a probe; once or once a launch. */
void xb_results_noise(struct xb_results *r, uint32_t endpoint, double detour_pct);
/* What it took to run them: the controller's largest memory so far, and how many rounds of blocks there were.
 */
void xb_results_cost(struct xb_results *r, double memory_MB, uint64_t rounds);
/* How much the controller itself ran (CPU seconds) while blocks were timed (wall seconds), and how many
 * connections to the control port did not prove the key. */
void xb_results_controller(struct xb_results *r, double cpu_s_while_timed, double timed_s,
			   uint64_t strangers);
/* All blocks of a launch are in: recompute. Only whole launches count towards intervals while the run goes
 * on. */
void xb_results_launch_done(struct xb_results *r, unsigned launch);
/* 1 when every interval (headline and overhead, of every transport that still runs) has a half-width of at
 * most ci_percent of the lower layer's latency. Never before config->launches_min launches. */
int xb_results_converged(const struct xb_results *r);
/* "ci" | "verdict" | "time" | "fixed" | "failed" for all results, "interrupted" marks the document partial.
 * NULL while running: partial too. */
void xb_results_stopped_by(struct xb_results *r, const char *why);
/* Findings that follow from the data alone: too noisy, few launches, spread between launches, ... Called once
 * before the last document. */
void xb_results_conclude(struct xb_results *r);
json_t *xb_results_document(const struct xb_results *r); /* new reference */
/* Exit status that the document implies: 0, 3 (an "invalid" finding, an inconclusive acceptance) or 4 (a
 * transport not ok, something not measured), 1 (an acceptance limit violated). 1 wins over 4, and 4 over 3.
 */
int xb_results_exit_status(json_t *document);

/* Writes atomically (temporary file beside it, fsync, rename). */
int xb_document_write(json_t *document, const char *path, struct xb_error *error);
/* Whether that will do: what is at path stays as it is, unless it is a device or a pipe, which is written to.
 */
int xb_document_try(json_t *document, const char *path, struct xb_error *error);
/* Reads and checks a document (schema number, types that the printers rely on): hostile files are refused
 * with a sentence. */
int xb_document_read(const char *path, json_t **document, struct xb_error *error);

/* Printers; FILE * as void * so that this header needs no stdio. colour: 0 or 1. Return 0 or XB_E_SYSTEM
 * (write failed) or XB_E_UNSUPPORTED. */
int xb_print_document(json_t *document, enum xb_format format, void *stdio_file, int colour,
		      struct xb_error *error);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_REPORT_INTERNAL_H
#define XB_REPORT_INTERNAL_H
/* What a run has measured, in memory: shared by the files that accumulate, judge and write it out. */
#include "results.h"

#define XB_BENCH_COUNT 4u
#define XB_NO_SIZE SIZE_MAX

/* What one block contributed; times in ns, one value per block. */
struct xb_point {
	unsigned launch, round;
	uint32_t first, second; /* endpoints of the pair */
	uint64_t iterations;
	double median_ns, mean_ns; /* of its iterations; mean_ns is NAN when they are not known one by one */
	double p99_ns; /* NAN when they are not, or too few */
	double imposed_ns; /* NAN without fault injection */
	long voluntary, involuntary; /* context switches */
	int verified;
};

/* Everything of one transport, benchmark and size. */
struct xb_cell {
	struct xb_point *points; /* by launch, then round */
	size_t count, capacity;
	struct xb_histogram *whole,
		*pending; /* iterations of whole launches, and of the one that runs; NULL when none */
	unsigned pending_launch;
};

struct xb_evidence {
	char *host, *device, *kind; /* device is NULL in the entry that carries the payload of the host */
	uint64_t tx_bytes, rx_bytes, payload_bytes;
	uint64_t tx_packets, rx_packets; /* of a device that counts no bytes */
	uint64_t link_bits_per_s; /* 0: not known */
	uint64_t rounds; /* device NULL: judged one by one; 0: only the totals are known */
	uint64_t carried_rounds; /* of those, in how many this device carried the payload; NULL: any did */
};

struct xb_end { /* what endpoints on this host said of themselves */
	char *host, *device, *resolved;
	int counted; /* some adapters keep no counters of their bytes */
};

struct xb_transport_record {
	char *status, *error, *resolved, *library, *version, *device, *launcher;
	enum xb_layer layer;
	double *start_ms;
	size_t start_count;
	struct xb_evidence *evidence;
	size_t evidence_count;
	struct xb_end *ends; /* of each host and device one */
	size_t end_count;
};

struct xb_results {
	const struct xb_config *config; /* borrowed */
	char *started, *timer_source, *stopped_by;
	uint64_t seed;
	double cost_ns, resolution_ns, drift_ppm;
	double controller_cpu_s, timed_s; /* NAN until told */
	uint64_t strangers, rounds_run;
	double memory_MB; /* NAN until told */
	json_t *hosts, *findings, *noise;
	size_t baseline; /* index of a transport */
	size_t order[XB_MAX_TRANSPORTS]; /* the baseline, then the others as listed: a lower one precedes an
					    upper one */
	struct xb_transport_record transports[XB_MAX_TRANSPORTS];
	struct xb_cell *cells; /* [transport][bench][size] */
	struct xb_cell *swap_cells; /* [transport][variant][size] */
	unsigned char *whole_launch; /* by launch number */
	size_t whole_capacity, whole_count;
	size_t lost_records; /* dropped because memory ran out */
};

/* What is reported of one cell. */
struct xb_headline {
	struct xb_interval ns; /* of the launch medians */
	double within_ns; /* median over launches of the interquartile range of a launch's block medians */
	double between_ns; /* interquartile range of the launch medians */
	double imposed_ns; /* median over launches of the imposed delay; NAN if none */
	double imposed_least_ns, imposed_most_ns; /* of the launches */
	double *launch_medians; /* launches entries, ns; owned */
	double *launch_p99; /* median over the blocks of a launch; NAN where not known; owned */
	unsigned *launch_ids; /* owned */
	size_t launches, rounds; /* rounds: blocks in all launches */
	uint64_t iterations;
	long voluntary, involuntary;
	size_t disturbed_blocks; /* with an involuntary context switch in the timed part */
	int verified; /* 1 when every block was */
};

/* What an upper transport adds to a lower one, from rounds that have both. */
struct xb_overhead {
	struct xb_interval ns;
	double *launch_medians;
	size_t launches, rounds;
	double percent; /* of the lower headline */
	int distinguishable;
};

/* results.c */
struct xb_cell *xb_results_cell(const struct xb_results *r, size_t transport, enum xb_bench bench,
				size_t size_index);
struct xb_cell *xb_results_swap_cell(const struct xb_results *r, size_t transport, size_t variant,
				     size_t size_index);
int xb_results_ok(const struct xb_results *r, size_t transport); /* 1 while its status is "ok" */
/* 1 if blocks of this launch enter the statistics: it is whole, or no launch is. */
int xb_results_counts(const struct xb_results *r, unsigned launch);
const struct xb_histogram *xb_results_histogram(const struct xb_results *r,
						const struct xb_cell *cell); /* may be NULL */

/* estimate.c. Return 1, or 0 when there is nothing to report (then nothing is owned). */
int xb_headline_of(const struct xb_results *r, const struct xb_cell *cell, struct xb_headline *out);
/* The same of one pair's blocks alone. */
int xb_pair_headline_of(const struct xb_results *r, const struct xb_cell *cell, uint32_t first,
			uint32_t second, struct xb_headline *out);
void xb_headline_free(struct xb_headline *headline);
int xb_overhead_of(const struct xb_results *r, const struct xb_cell *lower, const struct xb_cell *upper,
		   struct xb_overhead *out);
void xb_overhead_free(struct xb_overhead *overhead);
/* Whether a comparison with this cell means anything: every payload that could be checked was. */
int xb_cell_comparable(const struct xb_results *r, size_t transport, const struct xb_cell *cell,
		       size_t size_bytes);
/* The transport that lies directly below `upper` (index of transport), or SIZE_MAX for the baseline:
 * the one its path names (mpi:ucx over ucx:..., ofi:verbs over verbs), else the nearest listed before it of a
 * lower layer, else the one listed before it. */
size_t xb_results_below(const struct xb_results *r, size_t upper);
/* Half-widths over the limit (ci_percent of the lower layer's median) of one transport, benchmark and size: 1
 * if so. */
int xb_pair_too_wide(const struct xb_results *r, const struct xb_cell *cell,
		     const struct xb_cell *base); /* base: NULL for the baseline itself */
int xb_cell_too_wide(const struct xb_results *r, size_t transport, enum xb_bench bench, size_t size_index);

/* evidence.c */
#define XB_SHARED_MEMORY_SHARE 0.05 /* all devices together below this: none carried it */
#define XB_EVIDENCE_MIN_BYTES 1000000u /* less payload than this proves nothing */
#define XB_EVIDENCE_ROUND_BYTES 100000u /* nor does this little within one round */
json_t *xb_ends_json(const struct xb_transport_record *t); /* array; new reference */
json_t *xb_evidence_json(const struct xb_transport_record *t); /* array; new reference */
json_t *xb_carried_json(const struct xb_transport_record *t); /* object; new reference */
void xb_evidence_findings(struct xb_results *r);

/* document.c: JSON values of numbers that may be missing */
#define XB_REAL_FORMAT "%.10g" /* digits of a real in a document */
json_t *xb_json_number(double value); /* null unless finite; as it will be read back */
json_t *xb_json_us(double ns);
json_t *xb_json_text(const char *text); /* null for NULL; bytes that are not UTF-8 become '?' */
json_t *xb_json_count(uint64_t value);
const char *xb_layer_name(enum xb_layer layer);

/* pairs.c: one entry for each transport, benchmark, size and pair, when there is more than one pair. */
json_t *xb_pairs_json(const struct xb_results *r);

/* check.c. XB_E_USAGE with "FILE: results[3].size: ..." in the sentence; name is the file's, or what it is.
 */
int xb_document_check(json_t *document, const char *name, struct xb_error *error);

/* text.c: bench names known to documents, in the order of enum xb_bench */
extern const char *const xb_bench_names[XB_BENCH_COUNT];

/* [[low edge of a bucket in ns, count], ...] of the buckets that have any. */
json_t *xb_histogram_json(const struct xb_histogram *h);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_LIMITS_H
#define XB_LIMITS_H
/*
 * The limits of an acceptance test, from an INI file (docs/acceptance.md):
 *
 *     [run]                            options of a run by their long names; the command line wins
 *     transports = tcp,mpi:tcp
 *     [limit small-latency]
 *     transport = tcp                  label of a transport
 *     metric = latency_us
 *     sizes = 0:8
 *     max = 12 us
 *     within = 50 % of median          of all pairs; or of best, link, baseline, reference FILE
 *     violated_when = both             which of max and within; or either
 */
#include "../cli/config.h"

#define XB_LIMITS_MAX 256u
#define XB_LIMIT_RANGES_MAX 32u
#define XB_LIMIT_NAME_MAX 40u
#define XB_LIMITS_FILE_MAX (1u << 20) /* bytes */
#define XB_LIMITS_LINE_MAX 190u /* characters */

enum xb_metric {
	XB_METRIC_LATENCY, /* us */
	XB_METRIC_P99, /* us */
	XB_METRIC_BANDWIDTH, /* MB/s */
	XB_METRIC_RATE, /* 10^6 messages/s */
	XB_METRIC_OVERHEAD_US, /* of a transport on the lower one, us */
	XB_METRIC_OVERHEAD_PCT, /* the same in percent of the lower one */
	XB_METRIC_NOISE, /* percent of the time of the measuring cores lost to others */
	XB_METRIC_SHARE, /* of the payload on the device of the transport: 1 is all of it */
	XB_METRIC_COUNT
};

enum xb_relation {
	XB_RELATION_NONE,
	XB_RELATION_MEDIAN, /* of all pairs */
	XB_RELATION_BEST, /* of all pairs */
	XB_RELATION_LINK, /* nominal rate of the slowest device that carried the payload */
	XB_RELATION_BASELINE, /* of a recorded run */
	XB_RELATION_REFERENCE, /* of a published table */
	XB_RELATION_COUNT
};

struct xb_size_range {
	size_t low, high; /* bytes, inclusive; equal for a single size */
};

struct xb_limit {
	char name[XB_LIMIT_NAME_MAX + 1];
	unsigned line; /* of its heading */
	char *transport,
		*over; /* labels; over: the lower transport of an overhead, NULL: the run's baseline */
	int has_bench, has_op, has_metric, has_max, has_min, has_combination;
	enum xb_bench bench;
	enum xb_op op;
	struct xb_size_range ranges[XB_LIMIT_RANGES_MAX];
	size_t range_count; /* 0: every size that is measured */
	char *sizes_text;
	enum xb_metric metric;
	double max, min; /* in the unit of the metric */
	enum xb_relation relation;
	double within; /* share: 0.2 for 20 % */
	char *reference; /* file, as written */
	unsigned relation_line;
	int both; /* absolute and relative must both be violated; else either */
};

struct xb_limits {
	char *path;
	struct xb_limit *limits;
	size_t count;
	struct {
		char *name, *value;
		unsigned line;
	} run[32]; /* the section [run], in its order */
	size_t run_count;
	double noise_budget_pct; /* of the time of a measuring core: above it there is no verdict */
};

/* XB_E_USAGE with "FILE:LINE: what is wrong; what is allowed", XB_E_SYSTEM when the file cannot be read. On
 * failure *limits is empty. */
int xb_limits_read(const char *path, struct xb_limits *limits, struct xb_error *error);
/* The same from memory; name is what errors call it. */
int xb_limits_parse(const char *text, size_t bytes, const char *name, struct xb_limits *limits,
		    struct xb_error *error);
void xb_limits_free(struct xb_limits *limits);

/* Completes the configuration of a run: what [run] says and the command line does not (bit i of given:
 * xb_options[i] was there), and the benchmarks and sizes that the limits speak of. */
int xb_limits_apply(const struct xb_limits *limits, uint64_t given, struct xb_config *config,
		    struct xb_error *error);
/* Every limit must apply to something that this run measures. pairs: how many there will be. */
int xb_limits_match(const struct xb_limits *limits, const struct xb_config *config, size_t pairs,
		    struct xb_error *error);

/* Is this limit about this size? */
int xb_limit_covers(const struct xb_limit *limit, size_t size_bytes);
/* Is it about messages at all, or about the run (noise, share)? */
int xb_metric_has_size(enum xb_metric metric);
int xb_metric_higher_is_better(enum xb_metric metric);
const char *xb_metric_name(enum xb_metric metric); /* "latency_us" */
const char *xb_metric_unit(enum xb_metric metric); /* "us" */
const char *xb_relation_name(enum xb_relation relation); /* "median" */

/* A value of a metric: a decimal number and, if wanted, a unit of its kind: "1.07 us", "12 GB/s", "20 %".
 * Locale, hexadecimal, inf and nan do not get in. */
int xb_parse_quantity(const char *text, enum xb_metric metric, double *value, struct xb_error *error);
/* "20 % of median", "5% of reference edr.csv": *file is new or NULL. */
int xb_parse_within(const char *text, double *share, enum xb_relation *relation, char **file,
		    struct xb_error *error);

#endif

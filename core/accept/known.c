/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "known.h"
#include "series.h"
#include "../cli/show.h"
#include "../engine/block.h"
#include "../report/references.h"
#include "../report/results.h"
#include "../report/text.h"
#include "../stats/stats.h"

/* --- published tables --- */

/* The row for this size; NULL when there is none. */
static json_t *row_of(json_t *table, size_t size)
{
	json_t *point;
	size_t i;

	json_array_foreach(json_object_get(table, "points"), i, point)
	{
		if (json_is_integer(json_object_get(point, "size")) && xb_count_of(point, "size") == size)
			return point;
	}
	return NULL;
}

static double of_table(json_t *table, const struct xb_limit *limit, size_t size)
{
	return xb_number_of(row_of(table, size), limit->metric == XB_METRIC_LATENCY ? "latency_us" : "MBps");
}

/* Does the table say of this size what the limit asks, and can that be true? */
static int check_row(const struct xb_limits *limits, const struct xb_limit *l, json_t *table, size_t size,
		     struct xb_error *error)
{
	if (!(of_table(table, l, size) > 0))
		return xb_fail(
			error, XB_E_USAGE,
			"%.150s:%u: the table '%s' has no %s for %zu bytes; leave that size out of the "
			"limit",
			limits->path, l->relation_line, XB_SHOW(l->reference), xb_metric_name(l->metric),
			size);
	if (json_is_true(json_object_get(row_of(table, size), "beyond")))
		return xb_fail(error, XB_E_USAGE,
			       "%.150s:%u: what the table '%s' has for %zu bytes is beyond what its network "
			       "can do; leave that size out of the limit, or choose another table",
			       limits->path, l->relation_line, XB_SHOW(l->reference), size);
	return 0;
}

/* Numbers of one benchmark say nothing about another one. */
static int check_bench(const struct xb_limits *limits, const struct xb_limit *l, json_t *table,
		       struct xb_error *error)
{
	const char *of = xb_text_of(table, "bench"), *wanted = xb_bench_name(l->bench);
	int usable = !strcmp(of, "pingpong") || !strcmp(of, "bw") || !strcmp(of, "bibw");

	if (!strcmp(of, wanted))
		return 0;
	return xb_fail(error, XB_E_USAGE,
		       "%.150s:%u: the table '%s' is of benchmark %s, and the limit of %s; choose another "
		       "table%s%s",
		       limits->path, l->relation_line, XB_SHOW(l->reference), of, wanted,
		       usable ? ", or write benchmark = " : "", usable ? of : "");
}

/* A file is looked for beside the limits, then from the current folder. */
static int read_reference(const struct xb_limits *limits, size_t index, const struct xb_config *config,
			  struct xb_known *known, struct xb_error *error)
{
	const struct xb_limit *l = &limits->limits[index];
	const char *slash = strrchr(limits->path, '/');
	struct xb_error cause = {0};
	char beside[1024];

	snprintf(beside, sizeof(beside), "%.*s%s",
		 slash && l->reference[0] != '/' ? (int)(slash - limits->path) + 1 : 0, limits->path,
		 l->reference);
	int is_beside = strstr(l->reference, ".csv") && access(beside, R_OK) == 0;
	if (xb_reference_load(is_beside ? beside : l->reference, &known->tables[index], &cause))
		return xb_fail(error, XB_E_USAGE, "%.150s:%u: %s", limits->path, l->relation_line,
			       cause.text);
	int status = check_bench(limits, l, known->tables[index], error);
	for (size_t s = 0; !status && s < config->size_count; s++)
		if (xb_limit_covers(l, config->sizes[s]))
			status = check_row(limits, l, known->tables[index], config->sizes[s], error);
	return status;
}

int xb_known_read(const struct xb_limits *limits, const struct xb_config *config, const char *baseline_path,
		  struct xb_known *known, struct xb_error *error)
{
	int status = 0;

	*known = (struct xb_known){0};
	for (size_t i = 0; !status && i < limits->count; i++) {
		const struct xb_limit *l = &limits->limits[i];
		if (l->relation == XB_RELATION_REFERENCE)
			status = read_reference(limits, i, config, known, error);
		else if (l->relation == XB_RELATION_BASELINE && !baseline_path)
			status = xb_fail(
				error, XB_E_USAGE,
				"%.150s:%u: the limit '%s' compares with a baseline, but none is given; add "
				"--against FILE, a run kept with 'xportbench accept --record FILE'",
				limits->path, l->relation_line, l->name);
	}
	if (!status && baseline_path)
		status = xb_document_read(baseline_path, &known->baseline, error);
	if (!status && baseline_path && json_is_true(json_object_get(known->baseline, "partial")))
		status = xb_fail(error, XB_E_USAGE,
				 "%.300s is no baseline: that run did not end; record a whole one with "
				 "'xportbench accept --record FILE'",
				 baseline_path);
	if (!status && baseline_path && !(known->baseline_path = strdup(baseline_path)))
		status = xb_fail(error, XB_E_RESOURCE, "out of memory");
	if (status)
		xb_known_free(known);
	return status;
}

void xb_known_free(struct xb_known *known)
{
	json_decref(known->baseline);
	free(known->baseline_path);
	for (size_t i = 0; i < XB_LIMITS_MAX; i++)
		json_decref(known->tables[i]);
	*known = (struct xb_known){0};
}

static int same_host(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/*
 * The pair of the baseline between the same hosts, and of several such, where hosts have more than one
 * endpoint, the one of the same endpoints; NULL if it had none.
 */
static const struct xb_series *same_pair(const struct xb_known *known, const struct xb_series_set *set,
					 json_t *document, uint32_t a, uint32_t b)
{
	const char *here = xb_host_of_endpoint(document, a), *there = xb_host_of_endpoint(document, b);
	const struct xb_series *found = NULL;
	size_t several = 0;

	if (known->stands_for) {
		a = known->stands_for_a;
		b = known->stands_for_b;
	}
	for (size_t i = 0; i < set->count; i++) {
		const struct xb_series *s = &set->pairs[i];
		const char *first = xb_host_of_endpoint(known->baseline, s->a),
			   *second = xb_host_of_endpoint(known->baseline, s->b);
		if (!(same_host(here, first) && same_host(there, second)) &&
		    !(same_host(here, second) && same_host(there, first)))
			continue;
		if ((s->a == a && s->b == b) || (s->a == b && s->b == a))
			return s;
		found = s;
		several++;
	}
	if (several)
		return several == 1 ? found : NULL;
	return set->count == 1 ? &set->pairs[0] : NULL;
}

static void of_baseline(const struct xb_known *known, const struct xb_limit *limit, size_t size_bytes,
			json_t *document, uint32_t a, uint32_t b, struct xb_against *against)
{
	struct xb_series_set set;
	struct xb_limit alone = *limit; /* its own numbers, compared with nothing */

	alone.relation = XB_RELATION_MEDIAN;
	against->missing = "the baseline has no such measurement";
	if (xb_series_of(known->baseline, &alone, size_bytes, &set, NULL))
		return;
	const struct xb_series *pair = same_pair(known, &set, document, a, b);
	against->low = against->high = set.point;
	if (pair) {
		struct xb_interval i = xb_median_interval(pair->values, pair->count, XB_VERDICT_LEVEL);
		against->low = i.low;
		against->high = i.high;
		against->missing = "the baseline has too few launches for an interval";
	}
	xb_series_free(&set);
}

void xb_known_value(const struct xb_known *known, const struct xb_limits *limits,
		    const struct xb_limit *limit, size_t size_bytes, json_t *document, uint32_t a, uint32_t b,
		    struct xb_against *against)
{
	if (limit->relation == XB_RELATION_REFERENCE)
		against->low = against->high =
			of_table(known->tables[limit - limits->limits], limit, size_bytes);
	else if (limit->relation == XB_RELATION_BASELINE && known->baseline)
		of_baseline(known, limit, size_bytes, document, a, b, against);
}

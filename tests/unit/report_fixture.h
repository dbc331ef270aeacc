/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_REPORT_FIXTURE_H
#define XB_REPORT_FIXTURE_H
/* Results made by hand, for the tests of statistics and reports. Include after cmocka.h. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/results.h"

struct fixture {
	struct xb_command_line line;
	struct xb_results *results;
};

/* arguments: words separated by one blank, as after the program's name. */
static inline struct xb_results *fixture_begin(struct fixture *f, const char *arguments)
{
	char text[512], *argv[32] = {"xportbench"};
	struct xb_error error = {0};
	int argc = 1;
	snprintf(text, sizeof(text), "%s", arguments);
	for (char *save = NULL, *word = strtok_r(text, " ", &save); word != NULL;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	memset(f, 0, sizeof(*f));
	if (xb_parse_command_line(argc, argv, &f->line, &error) != 0)
		fail_msg("%s", error.text);
	f->results = xb_results_new(&f->line.config);
	assert_non_null(f->results);
	xb_results_started(f->results, "2024-05-01T12:00:00Z", 42);
	return f->results;
}

static inline void fixture_end(struct fixture *f)
{
	xb_results_free(f->results);
	xb_command_line_free(&f->line);
}

/* A verified block; its histogram holds one value, the median. */
static inline void add_block(struct xb_results *r, size_t transport, enum xb_bench bench, size_t size,
			     unsigned launch, unsigned round, double median_ns)
{
	static struct xb_histogram h;
	xb_hist_clear(&h);
	xb_hist_add(&h, (uint64_t)median_ns);
	struct xb_block_record record = {.transport = transport,
					 .bench = bench,
					 .size_bytes = size,
					 .launch = launch,
					 .round = round,
					 .iterations = 1,
					 .messages_per_iteration = 1,
					 .median_ns = median_ns,
					 .histogram = &h,
					 .verified = 1,
					 .imposed_delay_ns = NAN};
	xb_results_add_block(r, &record);
}

/* One block per launch with these medians. */
static inline void add_launches(struct xb_results *r, size_t transport, size_t size, const double *median_ns,
				unsigned n)
{
	for (unsigned l = 0; l < n; l++)
		add_block(r, transport, XB_BENCH_PINGPONG, size, l, 0, median_ns[l]);
}

static inline void launches_done(struct xb_results *r, unsigned n)
{
	for (unsigned l = 0; l < n; l++)
		xb_results_launch_done(r, l);
}

static inline const char *member_text(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text != NULL ? text : "";
}

static inline json_t *find_result(json_t *document, const char *label, const char *bench, size_t size)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(document, "results"), i,
			   item) if (strcmp(member_text(item, "label"), label) == 0 &&
				     strcmp(member_text(item, "bench"), bench) == 0 &&
				     json_integer_value(json_object_get(item, "size")) ==
					     (json_int_t)size) return item;
	return NULL;
}

static inline json_t *find_comparison(json_t *document, const char *lower, const char *upper, size_t size)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(document, "comparisons"), i,
			   item) if (strcmp(member_text(item, "lower"), lower) == 0 &&
				     strcmp(member_text(item, "upper"), upper) == 0 &&
				     json_integer_value(json_object_get(item, "size")) ==
					     (json_int_t)size) return item;
	return NULL;
}

/* The finding with this code and label (NULL: any); NULL if there is none. */
static inline json_t *find_finding(json_t *document, const char *code, const char *label)
{
	size_t i;
	json_t *item;
	json_array_foreach(
		json_object_get(document, "findings"), i,
		item) if (strcmp(member_text(item, "code"), code) == 0 &&
			  (label == NULL || strcmp(member_text(item, "label"), label) == 0)) return item;
	return NULL;
}

static inline double number_at(json_t *object, const char *outer, const char *inner)
{
	json_t *value = json_object_get(object, outer);
	if (inner != NULL)
		value = json_object_get(value, inner);
	return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Standard normal, by Box and Muller. */
static inline double normal(struct xb_rng *rng)
{
	double u = ((double)(xb_rng_next(rng) >> 11) + 0.5) / 9007199254740992.0;
	double v = ((double)(xb_rng_next(rng) >> 11) + 0.5) / 9007199254740992.0;
	return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* What the document prints as, to be freed. */
static inline char *printed(json_t *document, enum xb_format format, int colour)
{
	char *text = NULL;
	size_t bytes = 0;
	struct xb_error error = {0};
	FILE *file = open_memstream(&text, &bytes);
	assert_non_null(file);
	int status = xb_print_document(document, format, file, colour, &error);
	fclose(file);
	if (status != 0)
		fail_msg("%s", error.text);
	return text;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "report_samples.h"

#define PAGE 100u

static const char golden[] =
#include "report_golden.inc"
	;

static json_t *golden_document(void)
{
	struct fixture f;
	fixture_begin(&f, "-t tcp,ofi:tcp,ucx:tcp,mpi:tcp -s 1,64,1000,8K,64K,1M");
	sample_surroundings(&f);
	sample_launches(&f, 0, 9, SIZE_MAX);
	xb_results_finding(f.results, "warning", "noise-detours", NULL, NULL, SIZE_MAX,
			   "endpoint 0 (CPU 2 on node1) lost 6.1 % of its time to detours longer than 1 us "
			   "in a probe of 20 "
			   "ms; the worst took 1200 us");
	return sample_end(&f, "ci");
}

static void the_whole_report_is_as_it_was_agreed(void **state)
{
	(void)state;
	json_t *d = golden_document();
	char *text = printed(d, XB_FORMAT_TABLE, 0);
	if (getenv("XB_PRINT_GOLDEN") != NULL)
		fputs(text, stderr);
	assert_string_equal(text, golden);
	free(text);
	json_decref(d);
}

static void ends_that_use_another_device_have_lines_of_their_own(void **state)
{
	(void)state;
	struct fixture f;
	char host[16];
	fixture_begin(&f, "-t verbs -s 8");
	xb_results_transport_description(f.results, 0, "RC on mlx5_0/1", "libibverbs", "1", "mlx5_0/1",
					 XB_LAYER_FABRIC);
	xb_results_end(f.results, 0, "node1", "mlx5_0/1", "RC on mlx5_0/1", 1);
	xb_results_end(f.results, 0, "node2", "mlx5_0/1", "RC on mlx5_0/1, GID 5", 1);
	for (int i = 3; i < 9; i++) {
		snprintf(host, sizeof(host), "node%d", i);
		xb_results_end(f.results, 0, host, "mlx5_2/1", "RC on mlx5_2/1", 1);
	}
	add_block(f.results, 0, XB_BENCH_PINGPONG, 8, 0, 0, 1000.0);
	xb_results_launch_done(f.results, 0);
	json_t *d = sample_end(&f, "fixed");
	char *text = printed(d, XB_FORMAT_TABLE, 0);
	assert_null(strstr(text, "on node2:"));
	assert_non_null(strstr(text, "\n         on node3: RC on mlx5_2/1\n"));
	assert_non_null(strstr(text, "on node6:"));
	assert_null(strstr(text, "on node7:"));
	assert_non_null(strstr(text, "and 2 more with a device of another name"));
	free(text);
	json_decref(d);
}

static size_t columns_of(const char *line, size_t bytes)
{
	size_t n = 0;
	for (size_t i = 0; i < bytes; i++)
		n += ((unsigned char)line[i] & 0xc0u) != 0x80u;
	return n;
}

/* Fails unless every line fits the page, ends without blanks and holds no control character. */
static void check_page(const char *text, const char *what)
{
	for (const char *line = text; *line != '\0';) {
		const char *end = strchr(line, '\n');
		assert_non_null(end);
		if (columns_of(line, (size_t)(end - line)) > PAGE)
			fail_msg("%s: %zu columns: %.*s", what, columns_of(line, (size_t)(end - line)),
				 (int)(end - line), line);
		if (end > line && end[-1] == ' ')
			fail_msg("%s: blank at the end: %.*s", what, (int)(end - line), line);
		for (const char *p = line; p < end; p++)
			if ((unsigned char)*p < 0x20u || *p == 0x7f)
				fail_msg("%s: control character %d", what, *p);
		line = end + 1;
	}
}

static void every_sample_fits_the_page(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLE_COUNT; i++) {
		json_t *d = samples[i].make();
		char *text = printed(d, XB_FORMAT_TABLE, 0);
		check_page(text, samples[i].name);
		free(text);
		json_decref(d);
	}
}

static json_t *random_document(struct xb_rng *rng, int transports)
{
	static const char *const labels[] = {
		"tcp",	   "ofi:tcp;ofi_rxm",	      "ucx:rc_mlx5,ud_mlx5,self",
		"mpi:tcp", "\xc3\xbc-transport",      "a-very-long-label-that-somebody-has-chosen",
		"b",	   "\x1b[31mred\xc2\x9b\x30m"};
	json_t *list = json_array(), *results = json_array(), *comparisons = json_array(),
	       *findings = json_array();
	for (int t = 0; t < transports; t++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:n, s:s, s:s, s:s, s:s, s:s, s:n, s:[]}",
						      "label", labels[t], "name", "x", "requested_path",
						      "resolved_path", "one two\x1b]0;title\x07 three",
						      "library", "lib", "version", "1", "layer", "fabric",
						      "status", "ok", "error", "evidence"));
	for (json_int_t size = 1; size <= 1 << 30; size *= 8) {
		for (int t = 0; t < transports; t++) {
			/* 10 ns ... 3 h, of either sign, with and without an interval */
			double us = pow(10.0, (double)xb_rng_below(rng, 1200) / 100.0 - 2.0);
			double over = us * ((double)xb_rng_below(rng, 2000) - 1000.0) / 700.0,
			       half = fabs(over) * (double)xb_rng_below(rng, 30) / 20;
			int have = xb_rng_below(rng, 4) > 0;
			json_array_append_new(
				results,
				json_pack("{s:s, s:s, s:I, s:i, s:i, s:i, s:n, s:b, s:{s:f, s:f, s:f, s:n, "
					  "s:n, s:n, s:n, s:n, s:n, "
					  "s:n}, s:{s:f, s:f, s:f}, s:n, s:[]}",
					  "label", labels[t], "bench", size % 3 == 1 ? "pingpong" : "bw",
					  "size", size + t, "launches", 7, "rounds", 21, "iterations", 1000,
					  "stopped_by", "verified", 1, "latency_us", "median", us, "ci_low",
					  us * 0.9, "ci_high", us * 1.1, "min", "mean", "p90", "p99", "p999",
					  "max", "stddev", "bandwidth_MBps", "median", 1e6 / us, "ci_low",
					  0.9e6 / us, "ci_high", 1.1e6 / us, "message_rate_Mps",
					  "launch_medians"));
			json_t *last = json_array_get(results, json_array_size(results) - 1);
			json_object_set_new(last, "size", json_integer(size));
			if (t > 0)
				json_array_append_new(
					comparisons,
					json_pack("{s:s, s:s, s:s, s:I, s:i, s:{s:f, s:o, s:o}, s:f, s:b, "
						  "s:b, s:b}",
						  "lower", labels[0], "upper", labels[t], "bench",
						  size % 3 == 1 ? "pingpong" : "bw", "size", size, "launches",
						  7, "overhead_us", "median", over, "ci_low",
						  have ? json_real(over - half) : json_null(), "ci_high",
						  have ? json_real(over + half) : json_null(), "overhead_pct",
						  100.0 * over / (us / (double)(1 + xb_rng_below(rng, 5000))),
						  "distinguishable", have && half < fabs(over), "baseline", 1,
						  "adjacent", t == 1));
		}
	}
	json_array_append_new(findings,
			      json_pack("{s:s, s:s, s:s, s:n, s:n, s:s}", "severity", "warning", "code",
					"co\x1b[1mde", "label", labels[0], "bench", "size", "text",
					"a word of many letters follows "
					"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
					"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
					"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
					"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
	return json_pack(
		"{s:s, s:i, s:s, s:i, s:{}, s:[{s:s, s:[i,i]}], s:{s:s, s:f, s:f, s:n}, s:o, s:o, s:o, s:o}",
		"xportbench", "0", "schema", 1, "started", "now", "seed", 1, "config", "hosts", "name",
		"h\x1b[2J", "cpus_used", 0, 1, "timer", "source", "tsc", "cost_ns", 16.0, "resolution_ns",
		1.0, "drift_ppm", "transports", list, "results", results, "comparisons", comparisons,
		"findings", findings);
}

/* As many and as long texts and numbers as a document may hold. */
static void the_largest_texts_do_not_overflow(void **state)
{
	(void)state;
	struct fixture f;
	char *text = malloc(8001);
	memset(text, 'x', 8000);
	text[8000] = '\0';
	struct xb_results *r = fixture_begin(&f, "-t tcp,tcp,label=b,tcp,label=c -s 8");
	json_t *cpus = json_array(), *host = json_object();
	for (int i = 0; i < 4000; i++)
		json_array_append_new(cpus, json_real(1e15 - i));
	json_object_set_new(host, "cpus_used", cpus);
	const char *const members[] = {"name", "boot_id", "kernel", "cpu"};
	for (int i = 0; i < 4; i++)
		json_object_set_new(host, members[i], json_string(text));
	xb_results_host(r, host);
	json_decref(host);
	xb_results_started(r, text, UINT64_MAX);
	xb_results_timer(r, text, 1e15, 1e15, 1e15);
	for (size_t t = 0; t < 3; t++) {
		xb_results_transport_description(r, t, text, text, text, text, XB_LAYER_FABRIC);
		xb_results_transport_start_ms(r, t, 1e15);
		xb_results_evidence(r, t, text, NULL, NULL, 0, 0, 1 << 30);
		xb_results_evidence(r, t, text, text, text, UINT64_MAX / 4, 1, 0);
	}
	sample_launches(&f, 0, 1, 2);
	xb_results_transport_status(r, 1, "failed", text);
	xb_results_transport_status(r, 2, "unavailable", text);
	xb_results_finding(r, "info", text, text, text, 8, text);
	json_t *d = sample_end(&f, "interrupted");
	char *page = printed(d, XB_FORMAT_TABLE, 0);
	check_page(page, "largest texts");
	free(page);
	free(text);
	json_decref(d);
}

static void any_values_fit_and_nothing_in_a_document_talks_to_the_terminal(void **state)
{
	(void)state;
	struct xb_rng rng;
	xb_rng_seed(&rng, 11);
	for (int i = 0; i < 400; i++) {
		char what[40];
		json_t *d = random_document(&rng, 1 + i % 8);
		assert_non_null(d);
		char *text = printed(d, XB_FORMAT_TABLE, 0);
		snprintf(what, sizeof(what), "random document %d", i);
		check_page(text, what);
		free(text);
		json_decref(d);
	}
}

/* Removes the escape sequences that the report uses; fails on any other. */
static void strip_colour(char *text)
{
	char *to = text;
	for (const char *p = text; *p != '\0';) {
		if (*p != '\033') {
			*to++ = *p++;
			continue;
		}
		size_t n = 2 + strspn(p + 2, "0123456789");
		assert_true(p[1] == '[' && p[n] == 'm');
		p += n + 1;
	}
	*to = '\0';
}

static void colour_changes_nothing_but_colour(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLE_COUNT; i++) {
		json_t *d = samples[i].make();
		char *plain = printed(d, XB_FORMAT_TABLE, 0), *coloured = printed(d, XB_FORMAT_TABLE, 1);
		assert_null(strchr(plain, '\033'));
		assert_non_null(strchr(coloured, '\033'));
		strip_colour(coloured);
		assert_string_equal(plain, coloured);
		free(plain);
		free(coloured);
		json_decref(d);
	}
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;
	for (const char *p = text; (p = strstr(p, what)) != NULL; p++)
		n++;
	return n;
}

static void more_than_four_transports_are_stacked_under_the_same_baseline(void **state)
{
	(void)state;
	struct fixture f;
	fixture_begin(&f, "-t tcp,tcp,label=a,tcp,label=b,tcp,label=c,tcp,label=d,tcp,label=e -s 1,64");
	sample_launches(&f, 0, 7, SIZE_MAX);
	json_t *d = sample_end(&f, "fixed");
	char *text = printed(d, XB_FORMAT_TABLE, 0);
	check_page(text, "six transports");
	assert_int_equal(count(text, "\nsize "), 2);
	assert_int_equal(count(text, "\n  64 "), 2);
	free(text);
	json_decref(d);
}

static void shapes_of_other_tools_without_anything_to_show_are_refused(void **state)
{
	(void)state;
	json_t *d = sample_nothing_yet();
	for (int format = XB_FORMAT_IMB; format <= XB_FORMAT_COMMTEST; format++) {
		struct xb_error error = {0};
		assert_int_equal(xb_print_document(d, (enum xb_format)format, stdout, 0, &error),
				 XB_E_UNSUPPORTED);
		assert_non_null(strstr(error.text, "in this run")); /* which has measured nothing */
	}
	json_decref(d);
}

static void a_full_disk_is_reported(void **state)
{
	(void)state;
	json_t *d = sample_complete();
	for (int format = XB_FORMAT_TABLE; format <= XB_FORMAT_JSON; format++) {
		struct xb_error error = {0};
		FILE *full = fopen("/dev/full", "w");
		assert_non_null(full);
		assert_int_equal(xb_print_document(d, (enum xb_format)format, full, 0, &error), XB_E_SYSTEM);
		assert_non_null(strstr(error.text, "No space left"));
		fclose(full);
	}
	json_decref(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_report_is_as_it_was_agreed),
		cmocka_unit_test(ends_that_use_another_device_have_lines_of_their_own),
		cmocka_unit_test(every_sample_fits_the_page),
		cmocka_unit_test(the_largest_texts_do_not_overflow),
		cmocka_unit_test(any_values_fit_and_nothing_in_a_document_talks_to_the_terminal),
		cmocka_unit_test(colour_changes_nothing_but_colour),
		cmocka_unit_test(more_than_four_transports_are_stacked_under_the_same_baseline),
		cmocka_unit_test(shapes_of_other_tools_without_anything_to_show_are_refused),
		cmocka_unit_test(a_full_disk_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

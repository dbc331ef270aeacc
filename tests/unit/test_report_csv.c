/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "report_samples.h"

#define MOST_COLUMNS 80u

/* Takes one record of RFC 4180 apart, in place; returns the number of fields. *text moves behind it. */
static size_t take_record(char **text, char *fields[MOST_COLUMNS])
{
	size_t n = 0;
	for (char *p = *text;;) {
		char *to = p;
		assert_true(n < MOST_COLUMNS);
		fields[n++] = p;
		if (*p == '"') {
			for (p++; p[0] != '"' || p[1] == '"'; p++) {
				assert_true(*p != '\0');
				*to++ = *p;
				p += *p == '"';
			}
			p++;
		} else {
			while (*p != ',' && *p != '\r' && *p != '\0') {
				assert_true(*p != '"' && *p != '\n');
				*to++ = *p++;
			}
		}
		char separator = *p++;
		*to = '\0';
		if (separator == ',')
			continue;
		assert_true(separator == '\r' && *p == '\n');
		*text = p + 1;
		return n;
	}
}

static const char *field(char *heads[], char *fields[], size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(heads[i], name) == 0)
			return fields[i];
	fail_msg("no column %s", name);
	return "";
}

static void there_is_a_row_for_every_result_and_for_what_has_none(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLE_COUNT; i++) {
		json_t *d = samples[i].make(), *transport;
		char *text = printed(d, XB_FORMAT_CSV, 1), *rest = text, *heads[MOST_COLUMNS],
		     *fields[MOST_COLUMNS];
		size_t n = take_record(&rest, heads), rows = 0,
		       expected = json_array_size(json_object_get(d, "results")), k;
		for (; *rest != '\0'; rows++)
			assert_int_equal(take_record(&rest, fields), n);
		json_array_foreach(json_object_get(d, "transports"), k, transport)
		{
			size_t r, own = 0;
			json_t *result;
			json_array_foreach(json_object_get(d, "results"), r, result) own += json_equal(
				json_object_get(result, "label"), json_object_get(transport, "label"));
			expected += own == 0;
		}
		assert_int_equal(rows, expected);
		free(text);
		json_decref(d);
	}
}

static void a_row_has_the_numbers_of_the_document(void **state)
{
	(void)state;
	json_t *d = sample_complete();
	char *text = printed(d, XB_FORMAT_CSV, 0), *rest = text, *heads[MOST_COLUMNS], *fields[MOST_COLUMNS];
	size_t n = take_record(&rest, heads), seen = 0;
	while (*rest != '\0') {
		take_record(&rest, fields);
		if (strcmp(fields[0], "mpi:tcp") != 0 ||
		    strcmp(field(heads, fields, n, "size_bytes"), "1024") != 0)
			continue;
		json_t *result = find_result(d, "mpi:tcp", "pingpong", 1024),
		       *c = find_comparison(d, "tcp", "mpi:tcp", 1024);
		static const struct {
			const char *column, *outer, *inner;
			int comparison;
		} same[] = {{"latency_us_median", "latency_us", "median", 0},
			    {"latency_us_p90", "latency_us", "p90", 0},
			    {"bandwidth_MBps_ci_low", "bandwidth_MBps", "ci_low", 0},
			    {"launches", "launches", NULL, 0},
			    {"overhead_us_median", "overhead_us", "median", 1},
			    {"overhead_us_ci_high", "overhead_us", "ci_high", 1},
			    {"below_overhead_us_ci_low", "overhead_us", "ci_low", 1},
			    {"overhead_pct", "overhead_pct", NULL, 1}};
		for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
			double told = atof(field(heads, fields, n, same[i].column));
			double true_one =
				number_at(same[i].comparison ? c : result, same[i].outer, same[i].inner);
			assert_true(fabs(told - true_one) <= fabs(true_one) * 1e-9);
		}
		assert_string_equal(field(heads, fields, n, "baseline"), "tcp");
		assert_string_equal(field(heads, fields, n, "distinguishable"), "true");
		assert_string_equal(field(heads, fields, n, "verified"), "true");
		assert_string_equal(field(heads, fields, n, "latency_us_p999"),
				    ""); /* too few samples: empty, not 0 */
		seen++;
	}
	assert_int_equal(seen, 1);
	free(text);
	json_decref(d);
}

static void commas_quotes_and_line_ends_are_quoted(void **state)
{
	(void)state;
	struct fixture f;
	struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
	xb_results_transport_status(r, 0, "failed", "it said \"no\",\r\nand ended");
	json_t *d = sample_end(&f, "fixed");
	char *text = printed(d, XB_FORMAT_CSV, 0), *rest = text, *heads[MOST_COLUMNS], *fields[MOST_COLUMNS];
	assert_non_null(strstr(text, "\"it said \"\"no\"\",\r\nand ended\""));
	size_t n = take_record(&rest, heads);
	take_record(&rest, fields);
	assert_string_equal(field(heads, fields, n, "error"), "it said \"no\",\r\nand ended");
	assert_string_equal(field(heads, fields, n, "status"), "failed");
	free(text);
	json_decref(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_a_row_for_every_result_and_for_what_has_none),
		cmocka_unit_test(a_row_has_the_numbers_of_the_document),
		cmocka_unit_test(commas_quotes_and_line_ends_are_quoted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Swaps in the document: records, estimates and comparisons follow from the blocks; every form prints them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "cli/config.h"
#include "report/internal.h"
#include "report/references.h"
#include "report_fixture.h"

#define LAUNCHES 7u

/* A swap block of variant v: its iterations all take `ns`. */
static void add_swap(struct xb_results *r, size_t transport, size_t variant, size_t size, unsigned launch,
		     double ns)
{
	static struct xb_histogram h;
	xb_hist_clear(&h);
	xb_hist_add(&h, (uint64_t)ns);
	struct xb_block_record record = {.transport = transport,
					 .bench = XB_BENCH_SWAP,
					 .size_bytes = size,
					 .variant = variant,
					 .launch = launch,
					 .iterations = 1,
					 .messages_per_iteration = 1,
					 .median_ns = ns,
					 .histogram = &h,
					 .verified = 1,
					 .imposed_delay_ns = NAN};
	xb_results_add_block(r, &record);
}

/* One-way time of n messages: n latency + 64 KiB at 1000 MB/s; launch l is l ns per message off. */
static double swap_ns(double messages, double latency_ns, unsigned launch)
{
	return 2.0 * (messages * (latency_ns + launch) + 65536.0);
}

/* Two transports, protocols 0 and 3, messages of 16K and 64K; the upper takes upper_ns[variant] per message,
 * the lower 1000 ns. */
static struct xb_results *make_of(struct fixture *f, const char *more, const double *upper_ns)
{
	char words[256];
	snprintf(words, sizeof(words),
		 "-t tcp,mpi -b swap --protocol 0,3 -s 16K,64K --total 64K --launches 7:7%s", more);
	struct xb_results *r = fixture_begin(f, words);
	for (unsigned l = 0; l < LAUNCHES; l++) {
		for (size_t v = 0; v < f->line.config.swap.variant_count; v++)
			for (size_t t = 0; t < 2; t++) {
				double ns = t ? upper_ns[v] : 1000;
				add_swap(r, t, v, 16384, l, swap_ns(4, ns, l));
				add_swap(r, t, v, 65536, l, swap_ns(1, ns, l));
			}
		xb_results_launch_done(r, l);
	}
	xb_results_stopped_by(r, "fixed");
	xb_results_conclude(r);
	return r;
}

static struct xb_results *make(struct fixture *f, const char *more)
{
	static double ns[64];
	for (size_t v = 0; v < sizeof(ns) / sizeof(ns[0]); v++)
		ns[v] = 1500;
	return make_of(f, more, ns);
}

static json_t *find(json_t *document, const char *list, const char *label_key, const char *label,
		    int protocol, json_int_t size)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(document, list), i, item)
	{
		if (!strcmp(member_text(item, label_key), label) &&
		    json_integer_value(json_object_get(item, "protocol")) == protocol &&
		    (!size || json_integer_value(json_object_get(item, "size")) == size))
			return item;
	}
	fail_msg("no %s of %s", list, label);
	return NULL;
}

static void near(double found, double expected)
{
	if (!(fabs(found - expected) <= 0.01 * fabs(expected))) /* the histogram rounds by 0.8 % */
		fail_msg("%.9g instead of %.9g", found, expected);
}

static void records_and_estimates_follow_from_the_blocks(void **state)
{
	struct fixture f;
	json_t *document = xb_results_document(make(&f, "")), *item;

	(void)state;
	assert_int_equal(json_array_size(json_object_get(document, "swaps")), 2 * 2 * 2);
	assert_int_equal(json_array_size(json_object_get(document, "results")), 0);
	item = find(document, "swaps", "label", "tcp", 3, 16384);
	assert_string_equal(member_text(item, "title"), "ordered swap using nonblocking send and receive");
	assert_string_equal(member_text(item, "mode"), "1 iter.");
	assert_true(json_is_true(json_object_get(item, "verified")));
	assert_int_equal(json_integer_value(json_object_get(item, "messages")), 4);
	near(number_at(item, "seconds", "median"), swap_ns(4, 1000, 3) * 1e-9);
	near(number_at(item, "seconds", "min"), swap_ns(4, 1000, 0) * 1e-9);
	near(number_at(item, "seconds_per_message", "median"), swap_ns(4, 1000, 3) * 1e-9 / 4);
	near(number_at(item, "MBps", "max"), 2 * 65536 / (swap_ns(4, 1000, 0) * 1e-3));
	item = find(document, "swap_estimates", "label", "mpi", 0, 0);
	near(number_at(item, "latency_us", "from_minima"), 1.5);
	near(number_at(item, "latency_us", "median"), 1.503);
	near(number_at(item, "latency_us", "ci_low"), 1.5);
	near(number_at(item, "latency_us", "ci_high"), 1.506);
	near(number_at(item, "peak_MBps", NULL), 2 * 65536 / (swap_ns(1, 1500, 0) * 1e-3));
	item = find(document, "swap_comparisons", "upper", "mpi", 3, 16384);
	near(number_at(item, "overhead_us", "median"), 2 * 4 * 0.5);
	near(number_at(item, "overhead_us_per_message", "median"), 0.5);
	assert_true(json_is_true(json_object_get(item, "distinguishable")));
	assert_true(json_is_true(json_object_get(item, "baseline")));
	assert_int_equal(xb_results_exit_status(document), 0);
	json_decref(document);
	fixture_end(&f);
}

static void every_form_prints_them_and_what_is_read_back_prints_the_same(void **state)
{
	struct fixture f;
	json_t *document = xb_results_document(make(&f, " --overlap both --cache all"));
	struct xb_error error = {0};

	(void)state;
	if (xb_document_check(document, "made", &error))
		fail_msg("%s", error.text);
	const enum xb_format forms[] = {XB_FORMAT_TABLE, XB_FORMAT_CSV, XB_FORMAT_JSON, XB_FORMAT_COMMTEST};
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		char *text = printed(document, forms[i], 0);
		assert_true(strlen(text) > 500);
		if (forms[i] == XB_FORMAT_TABLE)
			assert_non_null(
				strstr(text, "mpi adds 0.50 us per message to tcp in swaps of 16 KiB"));
		if (forms[i] == XB_FORMAT_TABLE)
			for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
				assert_true(end - line <= 100);
		if (forms[i] == XB_FORMAT_COMMTEST) {
			assert_non_null(
				strstr(text, "Protocol 3: ordered swap using nonblocking send and receive"));
			assert_non_null(strstr(text, "10 iter. w/overlap"));
			assert_null(strstr(text, "Protocol 1:"));
		}
		free(text);
	}
	json_decref(document);
	fixture_end(&f);
}

static void the_sentence_says_who_is_faster(void **state)
{
	static const struct {
		double ns[2]; /* of the two protocols */
		const char *said;
	} cases[] = {
		{{1500, 1700}, "mpi adds 0.50 to 0.70 us per message to tcp in swaps"},
		{{500, 500}, "mpi takes 0.50 us less per message than tcp in swaps"},
		{{500, 800}, "mpi takes 0.20 to 0.50 us less per message than tcp in swaps"},
		{{1500, 200},
		 "Beside tcp, mpi adds up to 0.50 us per message in swaps of 16 KiB messages by 1 of 2 "
		 "protocols and modes, and takes up to 0.80 us less by 1."},
		{{1000, 1000}, "mpi and tcp cannot be told apart"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		json_t *document = xb_results_document(make_of(&f, "", cases[i].ns));
		char *text = printed(document, XB_FORMAT_TABLE, 0), *to = text;
		for (const char *from = text; *from; from++) /* as it reads, whatever the width */
			if (!strchr(" \n", *from))
				*to++ = *from;
			else if (to > text && to[-1] != ' ')
				*to++ = ' ';
		*to = '\0';
		if (strstr(text, cases[i].said) == NULL)
			fail_msg("no \"%s\" in %s", cases[i].said, text);
		free(text);
		json_decref(document);
		fixture_end(&f);
	}
}

static void more_than_the_link_carries_is_invalid(void **state)
{
	struct fixture f;
	struct xb_results *r = make(&f, "");
	json_t *document;

	(void)state;
	/* 64 KiB in 66.5 us are 7.9 Gb/s */
	for (size_t t = 0; t < 2; t++) {
		xb_results_evidence(r, t, "a", "eth0", "netdev", 2000000, 2000000, 0);
		xb_results_evidence(r, t, "a", NULL, "payload", 0, 0, 2000000);
		xb_results_link_rate(r, t, "a", "eth0", t ? UINT64_C(1000000000) : UINT64_C(10000000000));
	}
	xb_results_conclude(r);
	document = xb_results_document(r);
	assert_null(find_finding(document, "exceeds-link-rate", "tcp"));
	assert_non_null(find_finding(document, "exceeds-link-rate", "mpi"));
	json_decref(document);
	fixture_end(&f);
}

static void an_unverified_swap_is_told_and_not_compared(void **state)
{
	struct fixture f;
	struct xb_results *r = fixture_begin(&f, "-t tcp,mpi -b swap --protocol 2 -s 64K --total 64K");
	struct xb_block_record record = {.transport = 1,
					 .bench = XB_BENCH_SWAP,
					 .size_bytes = 65536,
					 .median_ns = 1e5,
					 .iterations = 1,
					 .imposed_delay_ns = NAN};
	json_t *document;

	(void)state;
	add_swap(r, 0, 0, 65536, 0, 1e5);
	xb_results_add_block(r, &record);
	xb_results_launch_done(r, 0);
	xb_results_conclude(r);
	document = xb_results_document(r);
	assert_non_null(find_finding(document, "not-verified", "mpi"));
	assert_int_equal(json_array_size(json_object_get(document, "swap_comparisons")), 0);
	record.variant = 1; /* there is one only */
	xb_results_add_block(r, &record);
	json_decref(document);
	fixture_end(&f);
}

static void a_reference_says_where_it_is_from_and_what_is_beyond_the_link(void **state)
{
	json_t *reference = NULL;
	struct xb_error error = {0};

	(void)state;
	if (xb_reference_load("share/references/osu-latency-opa-openmpi-3.1.6.csv", &reference, &error))
		fail_msg("%s", error.text);
	assert_string_equal(member_text(reference, "bench"), "pingpong");
	json_t *first = json_array_get(json_object_get(reference, "points"), 0);
	assert_true(json_is_true(json_object_get(first, "beyond")));
	json_decref(reference);
	if (xb_reference_load("share/references/commtest-sp3-sensitivity.csv", &reference, &error))
		fail_msg("%s", error.text);
	assert_int_equal(json_array_size(json_object_get(reference, "points")), 66);
	first = json_array_get(json_object_get(reference, "points"), 0);
	assert_string_equal(member_text(first, "mode"), "cache inv.");
	near(number_at(first, "latency_us", NULL), 2.3645e-4 * 1e6 / 2);
	json_decref(reference);
	assert_int_equal(xb_reference_load("./no-such-file.csv", &reference, &error), XB_E_USAGE);
}

static void check_written(json_t *value)
{
	const char *key;
	json_t *item;
	size_t i;

	json_object_foreach(value, key, item) check_written(item);
	json_array_foreach(value, i, item) check_written(item);
	if (json_is_real(value)) {
		char written[32];
		snprintf(written, sizeof(written), XB_REAL_FORMAT, json_real_value(value));
		assert_true(strtod(written, NULL) == json_real_value(value));
	}
}

/* Digits that the file does not keep would let the report of a run and that of its file differ in a last
 * digit. */
static void no_real_has_more_digits_than_are_written(void **state)
{
	(void)state;
	struct fixture f;
	json_t *document = xb_results_document(make(&f, " --cache all"));
	json_t *third = xb_json_number(1.0 / 3);

	check_written(third);
	assert_true(json_real_value(third) != 1.0 / 3);
	check_written(document);
	json_decref(third);
	json_decref(document);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_and_estimates_follow_from_the_blocks),
		cmocka_unit_test(every_form_prints_them_and_what_is_read_back_prints_the_same),
		cmocka_unit_test(the_sentence_says_who_is_faster),
		cmocka_unit_test(no_real_has_more_digits_than_are_written),
		cmocka_unit_test(more_than_the_link_carries_is_invalid),
		cmocka_unit_test(an_unverified_swap_is_told_and_not_compared),
		cmocka_unit_test(a_reference_says_where_it_is_from_and_what_is_beyond_the_link),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

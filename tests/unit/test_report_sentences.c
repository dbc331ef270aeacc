/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said in words is what the intervals support, and no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <ctype.h>
#include <cmocka.h>
#include "report_samples.h"

/* The report of "tcp" and "upper" with these overheads by size, every launch alike but for +-spread; on one
 * line. */
struct story {
	size_t size;
	double over_ns, spread_ns;
};

static char *words_of_document(json_t *d)
{
	char *text = printed(d, XB_FORMAT_TABLE, 0), *words = strstr(text, "\nin words");
	assert_non_null(words);
	words = strdup(words);
	char *to = words;
	for (const char *p = words; *p != '\0'; p++) { /* undo the wrapping */
		if (isspace((unsigned char)*p) && (to == words || to[-1] == ' '))
			continue;
		*to++ = isspace((unsigned char)*p) ? ' ' : *p;
	}
	*to = '\0';
	free(text);
	json_decref(d);
	return words;
}

static char *told(const struct story *story, size_t n, unsigned launches)
{
	struct fixture f;
	char arguments[256] = "-t tcp,tcp,label=upper -s ";
	for (size_t i = 0; i < n; i++)
		sprintf(arguments + strlen(arguments), "%s%zu", i ? "," : "", story[i].size);
	fixture_begin(&f, arguments);
	for (unsigned l = 0; l < launches; l++)
		for (size_t i = 0; i < n; i++) {
			double wiggle = story[i].spread_ns * ((double)l - (launches - 1) / 2.0) /
					((launches - 1) / 2.0 + 1e-9);
			add_block(f.results, 0, XB_BENCH_PINGPONG, story[i].size, l, 0, 10000.0);
			add_block(f.results, 1, XB_BENCH_PINGPONG, story[i].size, l, 0,
				  10000.0 + story[i].over_ns + wiggle);
		}
	launches_done(f.results, launches);
	return words_of_document(sample_end(&f, "fixed"));
}

#define TELL(launches, ...)                                                                                  \
	told((struct story[]){__VA_ARGS__}, sizeof((struct story[]){__VA_ARGS__}) / sizeof(struct story),    \
	     launches)

static void expect(char *words, const char *sentence)
{
	if (strstr(words, sentence) == NULL)
		fail_msg("expected: %s\n   found: %s", sentence, words);
	free(words);
}

static void a_constant_overhead_is_one_number(void **state)
{
	(void)state;
	expect(TELL(7, {1, 1700, 100}, {64, 1720, 100}, {8192, 1690, 100}),
	       "upper adds 1.7 us [1.6, 1.8] (+17 %) per message to tcp at every size from 1 B to 8 KiB.");
}

static void what_one_constant_can_explain_is_told_as_one(void **state)
{
	(void)state;
	/* medians 60 % apart, but both intervals hold 0.7 ... 1.9 us */
	expect(TELL(7, {1, 1000, 900}, {64, 1600, 900}), "upper adds 1.3 us [0.10, 2.5] (+10 to +16 %) per "
							 "message to tcp at every size from 1 B to 64 B.");
}

static void a_single_size_is_named(void **state)
{
	(void)state;
	expect(TELL(7, {8, 2000, 100}), "upper adds 2.0 us [1.9, 2.1] (+20 %) per message to tcp at 8 B.");
}

static void what_no_longer_differs_is_not_distinguishable(void **state)
{
	(void)state;
	expect(TELL(7, {1, 1700, 100}, {8192, 1700, 100}, {16384, 50, 200}, {65536, -50, 200}),
	       "upper adds 1.7 us [1.6, 1.8] (+17 %) per message to tcp up to 8 KiB; from 16 KiB on it is "
	       "not "
	       "distinguishable from tcp.");
}

static void a_step_is_found_where_it_is(void **state)
{
	(void)state;
	expect(TELL(7, {1024, 50, 200}, {4096, -20, 200}, {8192, 5000, 100}, {16384, 5010, 100}),
	       "upper is not distinguishable from tcp up to 4 KiB; from 8 KiB on it adds 5.0 us [4.9, 5.1] "
	       "(+50 %).");
}

static void a_growing_overhead_is_told_from_to(void **state)
{
	(void)state;
	expect(TELL(7, {1, 1700, 10}, {64, 1700, 10}, {1024, 1700, 10}, {65536, 4000, 10}, {262144, 9000, 10},
		    {1048576, 36000, 10}),
	       "upper adds 1.7 us [1.7, 1.7] (+17 %) per message to tcp up to 1 KiB; from 64 KiB on it adds "
	       "4.0 to 36 us (+40 "
	       "to +360 %).");
}

static void a_faster_layer_takes_less(void **state)
{
	(void)state;
	expect(TELL(7, {1, -9000, 100}, {64, -9000, 100}),
	       "upper takes 9.0 us [8.9, 9.1] (-90 %) less per message than tcp at every size from 1 B to 64 "
	       "B.");
}

static void a_wide_interval_around_zero_is_inconclusive(void **state)
{
	(void)state;
	expect(TELL(7, {1, 100, 4000}, {64, 1700, 100}), "whether upper differs from tcp is inconclusive at "
							 "1 B; at 64 B it adds 1.7 us [1.6, 1.8] (+17 %).");
}

static void without_an_interval_nothing_is_claimed(void **state)
{
	(void)state;
	expect(TELL(3, {1, 1700, 10}, {64, 1900, 10}), "what upper adds to tcp is not known: 3 launches give "
						       "no interval (the medians differ by 1.7 to 1.9 us).");
	expect(TELL(1, {1, 1700, 0}), "what upper adds to tcp is not known: 1 launch gives no interval (the "
				      "medians differ by 1.7 us).");
}

static void what_has_no_simple_answer_is_summed_up(void **state)
{
	(void)state;
	expect(TELL(7, {1, 1700, 10}, {2, 0, 100}, {4, 1700, 10}, {8, 0, 100}, {16, -1700, 10}, {32, 0, 100},
		    {64, 1700, 10}, {128, 0, 9000}),
	       "there is no simple answer for upper against tcp: of 8 sizes 3 cost more, by 1.7 us [1.7, "
	       "1.7] (+17 %), 1 cost "
	       "less, by 1.7 us [1.7, 1.7] (-17 %), 3 are not distinguishable, 1 are inconclusive; the table "
	       "has them all.");
}

static void the_layer_directly_below_has_its_own_sentence(void **state)
{
	(void)state;
	struct fixture f;
	fixture_begin(&f, "-t tcp,ucx:tcp,mpi:ucx -s 8");
	for (unsigned l = 0; l < 7; l++) {
		add_block(f.results, 0, XB_BENCH_PINGPONG, 8, l, 0, 10000.0);
		add_block(f.results, 1, XB_BENCH_PINGPONG, 8, l, 0, 11000.0);
		add_block(f.results, 2, XB_BENCH_PINGPONG, 8, l, 0, 11400.0);
	}
	launches_done(f.results, 7);
	char *words = words_of_document(sample_end(&f, "ci"));
	assert_non_null(strstr(words, "mpi:ucx adds 1.4 us [1.4, 1.4] (+14 %) per message to tcp at 8 B."));
	expect(words, "mpi:ucx adds 0.40 us [0.40, 0.40] (+3.6 %) per message to ucx:tcp at 8 B.");
}

static void benchmarks_are_named_when_there_are_several(void **state)
{
	(void)state;
	char *words = words_of_document(sample_all_benches());
	assert_non_null(strstr(words, " pingpong: mpi:tcp adds "));
	assert_non_null(strstr(words, " bw: mpi:tcp adds "));
	expect(words, " bibw: mpi:tcp adds ");
}

static void an_injected_delay_is_told(void **state)
{
	(void)state;
	struct fixture f;
	fixture_begin(&f, "-t tcp,tcp,label=slow,fault.delay=2us -s 8");
	for (unsigned l = 0; l < 7; l++) {
		add_block(f.results, 0, XB_BENCH_PINGPONG, 8, l, 0, 10000.0);
		struct xb_block_record b = {.transport = 1,
					    .size_bytes = 8,
					    .launch = l,
					    .iterations = 1,
					    .median_ns = 12040,
					    .verified = 1,
					    .imposed_delay_ns = 2030};
		xb_results_add_block(f.results, &b);
	}
	launches_done(f.results, 7);
	expect(words_of_document(sample_end(&f, "ci")),
	       "fault injection imposed 2.0 us per message on slow, by its own measurement.");
}

static void what_was_not_measured_is_said_so(void **state)
{
	(void)state;
	char *words = words_of_document(sample_failures());
	assert_non_null(strstr(words, "ofi:tcp was not measured: see above."));
	free(words);
	expect(words_of_document(sample_baseline_failed()),
	       "mpi:tcp was not compared with tcp, which was not measured.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_constant_overhead_is_one_number),
		cmocka_unit_test(what_one_constant_can_explain_is_told_as_one),
		cmocka_unit_test(a_single_size_is_named),
		cmocka_unit_test(what_no_longer_differs_is_not_distinguishable),
		cmocka_unit_test(a_step_is_found_where_it_is),
		cmocka_unit_test(a_growing_overhead_is_told_from_to),
		cmocka_unit_test(a_faster_layer_takes_less),
		cmocka_unit_test(a_wide_interval_around_zero_is_inconclusive),
		cmocka_unit_test(without_an_interval_nothing_is_claimed),
		cmocka_unit_test(what_has_no_simple_answer_is_summed_up),
		cmocka_unit_test(the_layer_directly_below_has_its_own_sentence),
		cmocka_unit_test(benchmarks_are_named_when_there_are_several),
		cmocka_unit_test(an_injected_delay_is_told),
		cmocka_unit_test(what_was_not_measured_is_said_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of the COMMTEST and NOW reports, against what was published with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/classic.h"
#include "report/commtest.h"

#define TOTAL 2097152.0

struct published {
	char mode[16], overlap[4];
	double size, min_s;
	unsigned fastest;
};

/* Rows of share/references/commtest-sp3-sensitivity.csv. */
static size_t read_rows(struct published *rows, size_t most)
{
	FILE *file = fopen("share/references/commtest-sp3-sensitivity.csv", "r");
	char line[512];
	size_t n = 0;

	assert_non_null(file); /* run from the top folder */
	while (n < most && fgets(line, sizeof line, file)) {
		double per_message, MBps, mean, median, max;
		if (sscanf(line, "%15[^,],%3[^,],%lf,%lf,%lf,%lf,%lf,%lf,%lf,%u", rows[n].mode,
			   rows[n].overlap, &rows[n].size, &rows[n].min_s, &per_message, &MBps, &mean,
			   &median, &max, &rows[n].fastest) == 10)
			n++;
	}
	fclose(file);
	return n;
}

static void published_rows_follow_from_their_minima(void **state)
{
	static struct published rows[100];
	size_t n = read_rows(rows, 100);

	(void)state;
	assert_int_equal(n, 66);
	for (size_t i = 0; i < n; i++) {
		double seconds[XB_SWAP_PROTOCOLS];
		struct xb_commtest_row row;
		for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++)
			seconds[p] = rows[i].min_s * (p == rows[i].fastest ? 1.0 : 1.5);
		assert_true(xb_commtest_row(seconds, TOTAL / rows[i].size, TOTAL, &row));
		assert_int_equal(row.order[0], rows[i].fastest);
		assert_true(row.min_s == rows[i].min_s);
		assert_int_equal(row.within[0], 1);
		assert_int_equal(row.within[2], 1);
	}
}

/*
 * Model errors that can be computed again: where the protocol was the fastest, its own time is known; latency
 * and peak are those of its row. The maximum over these sizes is the printed one where the worst size is
 * among them, and never more.
 */
static void published_model_errors_are_reproduced(void **state)
{
	static const struct {
		unsigned protocol;
		const char *mode, *overlap;
		double MBps, latency_us, error_pct;
		int exact;
	} fits[] = {
		{4, "cache inv", "no", 40.27, 80.36, 12.3, 1},	{4, "1 iter", "no", 41.01, 79.67, 9.4, 1},
		{4, "cache inv", "yes", 40.46, 71.70, 12.6, 1}, {4, "10 iter", "yes", 41.34, 71.28, 9.5, 1},
		{5, "10 iter", "no", 41.31, 79.88, 8.7, 1},	{5, "1 iter", "yes", 41.24, 71.84, 8.7, 1},
		{4, "10 iter", "no", 41.09, 79.09, 8.6, 0},	{5, "cache inv", "no", 40.41, 81.34, 10.8, 0},
		{5, "1 iter", "no", 41.15, 81.27, 7.9, 0},	{4, "1 iter", "yes", 41.18, 70.18, 5.6, 0},
		{5, "cache inv", "yes", 40.49, 74.09, 7.2, 0},	{5, "10 iter", "yes", 41.32, 71.26, 8.6, 0},
	};
	static struct published rows[100];
	size_t n = read_rows(rows, 100), exact = 0;

	(void)state;
	for (size_t f = 0; f < sizeof fits / sizeof fits[0]; f++) {
		double most = 0;
		for (size_t i = 0; i < n; i++)
			if (rows[i].fastest == fits[f].protocol && !strcmp(rows[i].mode, fits[f].mode) &&
			    !strcmp(rows[i].overlap, fits[f].overlap))
				most = fmax(most, 100 * xb_commtest_error(fits[f].latency_us, fits[f].MBps,
									  TOTAL / rows[i].size, TOTAL,
									  rows[i].min_s));
		char printed[16], published[16];
		snprintf(printed, sizeof printed, "%.1f", most);
		snprintf(published, sizeof published, "%.1f", fits[f].error_pct);
		if (fits[f].exact)
			assert_string_equal(printed, published);
		else
			assert_true(most <= fits[f].error_pct + 0.1);
		exact += !strcmp(printed, published);
	}
	assert_true(exact >= 6);
}

static void a_fit_of_a_known_line_is_that_line(void **state)
{
	/* T(n) = n * 10 us + total / 100 MB/s */
	double messages[] = {1024, 512, 256, 4, 1}, seconds[5];
	struct xb_commtest_fit fit;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		seconds[i] = 2 * (messages[i] * 10e-6 + TOTAL / 100e6);
	fit = xb_commtest_fit(messages, seconds, 5, TOTAL);
	assert_true(fabs(fit.latency_us - 10) < 1e-6);
	assert_true(fabs(fit.peak_MBps - 2 * TOTAL / seconds[4] / 1e6) < 1e-9);
	/* the peak contains one latency, so the model has n + 1 of them */
	assert_true(fabs(fit.error - 10e-6 / (seconds[4] / 2)) < 1e-9);
	seconds[0] = NAN; /* not measured: the next two serve */
	fit = xb_commtest_fit(messages, seconds, 5, TOTAL);
	assert_true(fabs(fit.latency_us - 10) < 1e-6);
	fit = xb_commtest_fit(messages, seconds, 2, TOTAL);
	assert_true(isnan(fit.latency_us) && isnan(fit.error) && isfinite(fit.peak_MBps));
	fit = xb_commtest_fit(messages, seconds, 1, TOTAL);
	assert_true(isnan(fit.peak_MBps));
	/* P0, "1 iter.", published: 69.71 */
	const double p0[] = {0.24270, 0.17132}, n0[] = {1024, 512};
	assert_true(fabs(xb_commtest_fit(n0, p0, 2, TOTAL).latency_us - 69.71) < 0.005);
}

static void a_row_counts_and_ranks(void **state)
{
	double seconds[XB_SWAP_PROTOCOLS] = {1.30, 1.004, 1.00,	 NAN, 1.02, 1.10,
					     1.25, 1.01,  1.051, 1.2, 1.00};
	static const unsigned order[] = {2, 10, 1, 7, 4, 8, 5, 9, 6, 0};
	struct xb_commtest_row row;

	(void)state;
	assert_true(xb_commtest_row(seconds, 4, 1e6, &row));
	assert_int_equal(row.count, 10);
	assert_memory_equal(row.order, order, sizeof order); /* equal times by number */
	assert_int_equal(row.within[0], 4); /* the limits belong to them */
	assert_int_equal(row.within[1], 5);
	assert_int_equal(row.within[2], 9);
	assert_true(row.min_s_per_message == 0.25);
	assert_true(fabs(row.max_MBps - 2.0) < 1e-12);
	assert_true(fabs(row.median - 0.0355) < 1e-9); /* between the fifth and the sixth of ten */
	assert_true(fabs(row.max - 0.30) < 1e-9);
	assert_true(fabs(row.mean - 0.0935) < 1e-9);
	for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++)
		seconds[p] = NAN;
	assert_false(xb_commtest_row(seconds, 4, 1e6, &row));
}

/* What the four published NOW tables give: largest bandwidth, half-performance length seen and fitted. */
static void asymptotes_of_the_now_tables(void **state)
{
	static const struct {
		const char *name;
		double rate, half, fitted_half;
	} tables[] = {{"gam-ultrasparc", 38.621, 6102, 3238},
		      {"shm-e5000", 116.955, 2950, -191},
		      {"am2-ultrasparc", 24.594, 2167, 2364},
		      {"p4-ethernet", 0.989, 1176, 889}};

	(void)state;
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		double bytes[64], us[64];
		char path[128], line[256];
		size_t n = 0;
		snprintf(path, sizeof path, "share/references/now-mpi-%s.csv", tables[i].name);
		FILE *file = fopen(path, "r");
		assert_non_null(file);
		while (n < 64 && fgets(line, sizeof line, file))
			n += sscanf(line, "%lf,%lf", &bytes[n], &us[n]) == 2;
		fclose(file);
		assert_int_equal(n, 24);
		struct xb_asymptote a = xb_asymptote_of(bytes, us, n);
		assert_true(fabs(a.seen_MBps - tables[i].rate) < 0.0006);
		if (fabs(a.seen_half_bytes - tables[i].half) > 1 ||
		    fabs(a.fitted_half_bytes - tables[i].fitted_half) > 1)
			fail_msg("%s: %.1f and %.1f", tables[i].name, a.seen_half_bytes, a.fitted_half_bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_rows_follow_from_their_minima),
		cmocka_unit_test(published_model_errors_are_reproduced),
		cmocka_unit_test(a_fit_of_a_known_line_is_that_line),
		cmocka_unit_test(a_row_counts_and_ranks),
		cmocka_unit_test(asymptotes_of_the_now_tables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/timer.h"

static uint64_t ticks(const struct xb_timer *timer)
{
	return timer->source == XB_TIMER_TSC ? xb_ticks_tsc() : xb_ticks_clock();
}

/* The best of some tries: a preemption between two reads of different clocks says nothing about the rate. */
static double best_rate_error(const struct xb_timer *timer)
{
	double best = INFINITY;

	for (int try = 0; try < 10; try++) {
		uint64_t t0 = ticks(timer), c0 = xb_ticks_clock();
		while (xb_ticks_clock() < c0 + 5000000)
			;
		uint64_t t1 = ticks(timer), c1 = xb_ticks_clock();
		double error = fabs((double)(t1 - t0) * timer->ns_per_tick / (double)(c1 - c0) - 1);
		best = error < best ? error : best;
	}
	return best;
}

static void ticks_run_at_the_rate_that_was_calibrated(void **state)
{
	struct xb_timer timer;
	(void)state;

	xb_timer_start(&timer);
	assert_true(timer.ns_per_tick > 0);
	assert_true(best_rate_error(&timer) < 0.001);
}

static void ticks_never_go_back(void **state)
{
	struct xb_timer timer;
	(void)state;

	xb_timer_start(&timer);
	uint64_t before = ticks(&timer);
	for (int i = 0; i < 100000; i++) {
		uint64_t now = ticks(&timer);
		assert_true(now >= before);
		before = now;
	}
}

static void a_read_has_a_cost_and_a_resolution(void **state)
{
	struct xb_timer timer;
	(void)state;

	xb_timer_start(&timer);
	assert_true(timer.cost_ns >= 0 && isfinite(timer.cost_ns));
	assert_true(timer.resolution_ns > 0 && isfinite(timer.resolution_ns));
}

static void the_clock_can_be_forced(void **state)
{
	struct xb_timer timer;
	(void)state;

	setenv("XB_TIMER", "clock", 1);
	xb_timer_start(&timer);
	unsetenv("XB_TIMER");
	assert_int_equal(timer.source, XB_TIMER_CLOCK);
	assert_true(timer.ns_per_tick == 1.0);
	assert_string_equal(xb_timer_source_name(timer.source), "clock_gettime");
	assert_true(best_rate_error(&timer) < 0.001);
	xb_timer_finish(&timer);
	assert_true(timer.drift_ppm == 0);
}

static void another_process_takes_over_a_calibration(void **state)
{
	struct xb_timer timer;
	(void)state;

	xb_timer_adopt(&timer, "tsc", 0.4375);
	assert_int_equal(timer.source, XB_TIMER_TSC);
	assert_true(timer.ns_per_tick == 0.4375);
	xb_timer_adopt(&timer, "clock_gettime", 0.4375);
	assert_int_equal(timer.source, XB_TIMER_CLOCK);
	assert_true(timer.ns_per_tick == 1.0);
	assert_true(timer.resolution_ns > 0);
}

static void drift_is_the_difference_of_the_end_from_the_start(void **state)
{
	struct xb_timer timer;
	(void)state;

	xb_timer_start(&timer);
	assert_true(timer.drift_ppm == 0);
	while (xb_ticks_clock() < timer.start_ns + 20000000)
		;
	xb_timer_finish(&timer);
	assert_true(fabs(timer.drift_ppm) < 1000);
	if (timer.source == XB_TIMER_TSC) {
		timer.ns_per_tick *= 1.01; /* as if it had been calibrated 1 % wrong */
		xb_timer_finish(&timer);
		assert_true(timer.drift_ppm < -8000 && timer.drift_ppm > -12000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks_run_at_the_rate_that_was_calibrated),
		cmocka_unit_test(ticks_never_go_back),
		cmocka_unit_test(a_read_has_a_cost_and_a_resolution),
		cmocka_unit_test(the_clock_can_be_forced),
		cmocka_unit_test(another_process_takes_over_a_calibration),
		cmocka_unit_test(drift_is_the_difference_of_the_end_from_the_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

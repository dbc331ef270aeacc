/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_TIMER_H
#define XB_TIMER_H
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif
/*
 * Ticks: the invariant TSC where the kernel itself trusts it (constant_tsc, nonstop_tsc, rdtscp, clocksource
 * tsc), else nanoseconds of clock_gettime(CLOCK_MONOTONIC_RAW). The source is chosen once by xb_timer_start;
 * a timed loop is instantiated per source, so that it contains no branch on it.
 */
enum xb_timer_source { XB_TIMER_TSC, XB_TIMER_CLOCK };

struct xb_timer {
	enum xb_timer_source source;
	double ns_per_tick; /* from a regression against CLOCK_MONOTONIC_RAW over >= 50 ms */
	double cost_ns; /* median distance of two reads in a row */
	double resolution_ns; /* smallest non-zero distance seen */
	double drift_ppm; /* end calibration against start calibration; 0 until xb_timer_finish */
	uint64_t start_ticks, start_ns;
};

/* Chooses, calibrates (50 ms, spinning) and measures the timer. XB_TIMER=clock in the environment forces the
 * clock. */
void xb_timer_start(struct xb_timer *timer);
/* Cheap alternative for workers: takes over the controller's calibration of the same machine. */
void xb_timer_adopt(struct xb_timer *timer, const char *source, double ns_per_tick);
/* Calibrates once more over the whole interval since start and fills drift_ppm. */
void xb_timer_finish(struct xb_timer *timer);
const char *xb_timer_source_name(enum xb_timer_source source); /* "tsc", "clock_gettime" */

static inline uint64_t xb_clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline uint64_t xb_ticks_clock(void)
{
	return xb_clock_ns(CLOCK_MONOTONIC_RAW);
}
#if defined(__x86_64__)
/* As the kernel's rdtsc_ordered: all earlier instructions, the loads that saw the message among them, have
 * completed when the counter is read. Later ones may start early; a fence behind it as well (Paoloni 2010)
 * would hold up the next send by some nanoseconds in every iteration. */
static inline uint64_t xb_ticks_tsc(void)
{
	_mm_lfence();
	return __rdtsc();
}
#else
#define xb_ticks_tsc xb_ticks_clock
#endif

#endif

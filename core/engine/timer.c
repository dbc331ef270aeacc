/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timer.h"

#define CALIBRATION_NS 50000000u
#define CALIBRATION_POINTS 64
#define COST_READS 4096

static uint64_t ticks(enum xb_timer_source source)
{
	return source == XB_TIMER_TSC ? xb_ticks_tsc() : xb_ticks_clock();
}

#if defined(__x86_64__)
static int file_contains_words(const char *path, const char *const *words, size_t count)
{
	char line[8192];
	FILE *file = fopen(path, "re");
	size_t found = 0;

	if (!file)
		return 0;
	while (found < count && fgets(line, sizeof line, file)) {
		if (strncmp(line, "flags", 5))
			continue;
		for (char *save, *word = strtok_r(line, " \t\n", &save); word;
		     word = strtok_r(NULL, " \t\n", &save))
			for (size_t i = 0; i < count; i++)
				found += !strcmp(word, words[i]);
		break; /* the processors of one machine have the same flags */
	}
	fclose(file);
	return found >= count;
}

static int kernel_clock_is_tsc(void)
{
	char name[32] = "";
	FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");

	if (!file)
		return 0;
	if (!fgets(name, sizeof name, file))
		name[0] = 0;
	fclose(file);
	return !strcmp(name, "tsc\n");
}

/* The kernel watches the TSC of all processors and gives it up when they disagree: its own choice is the
 * evidence. */
static int tsc_is_trusted(void)
{
	static const char *const flags[] = {"constant_tsc", "nonstop_tsc", "rdtscp"};
	return kernel_clock_is_tsc() && file_contains_words("/proc/cpuinfo", flags, 3);
}
#else
static int tsc_is_trusted(void)
{
	return 0;
}
#endif

/*
 * One point of the calibration line: the clock read lies between two tick reads; of some tries the closest
 * pair is kept, so that an interrupt in between does not bend the line.
 */
static void read_both(enum xb_timer_source source, uint64_t *tick, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int try = 0; try < 8; try++) {
		uint64_t before = ticks(source);
		uint64_t clock = xb_ticks_clock();
		uint64_t after = ticks(source);
		if (after - before < best) {
			best = after - before;
			*tick = before + (after - before) / 2;
			*ns = clock;
		}
	}
}

/* Least squares slope of clock over ticks. */
static double regression(enum xb_timer_source source)
{
	double x[CALIBRATION_POINTS], y[CALIBRATION_POINTS], mean_x = 0, mean_y = 0, xx = 0, xy = 0;
	uint64_t first_tick = 0, first_ns = 0;

	read_both(source, &first_tick, &first_ns);
	for (int i = 0; i < CALIBRATION_POINTS; i++) {
		uint64_t tick = 0, ns = 0;
		uint64_t until = first_ns + CALIBRATION_NS / (CALIBRATION_POINTS - 1) * (uint64_t)i;
		while (xb_ticks_clock() < until)
			;
		read_both(source, &tick, &ns);
		x[i] = (double)(tick - first_tick);
		y[i] = (double)(ns - first_ns);
		mean_x += x[i] / CALIBRATION_POINTS;
		mean_y += y[i] / CALIBRATION_POINTS;
	}
	for (int i = 0; i < CALIBRATION_POINTS; i++) {
		xx += (x[i] - mean_x) * (x[i] - mean_x);
		xy += (x[i] - mean_x) * (y[i] - mean_y);
	}
	return xx > 0 ? xy / xx : 1.0;
}

static int compare_ticks(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void measure_cost(struct xb_timer *timer)
{
	uint64_t distance[COST_READS + 1], smallest = 0;

	for (int i = 0; i <= COST_READS; i++)
		distance[i] = ticks(timer->source);
	for (int i = 0; i < COST_READS; i++)
		distance[i] = distance[i + 1] - distance[i];
	qsort(distance, COST_READS, sizeof distance[0], compare_ticks);
	const uint64_t middle = distance[COST_READS / 2];
	timer->cost_ns = (double)middle * timer->ns_per_tick;
	for (int i = 0; i < COST_READS && !smallest; i++)
		smallest = distance[i];
	timer->resolution_ns = (double)smallest * timer->ns_per_tick;
}

static void begin(struct xb_timer *timer)
{
	read_both(timer->source, &timer->start_ticks, &timer->start_ns);
	timer->drift_ppm = 0;
	measure_cost(timer);
}

void xb_timer_start(struct xb_timer *timer)
{
	const char *forced = getenv("XB_TIMER");

	memset(timer, 0, sizeof *timer);
	timer->source =
		tsc_is_trusted() && !(forced && !strcmp(forced, "clock")) ? XB_TIMER_TSC : XB_TIMER_CLOCK;
	timer->ns_per_tick = timer->source == XB_TIMER_TSC ? regression(timer->source) : 1.0;
	begin(timer);
}

void xb_timer_adopt(struct xb_timer *timer, const char *source, double ns_per_tick)
{
	memset(timer, 0, sizeof *timer);
	timer->source = !strcmp(source, xb_timer_source_name(XB_TIMER_TSC)) ? XB_TIMER_TSC : XB_TIMER_CLOCK;
	timer->ns_per_tick = timer->source == XB_TIMER_TSC ? ns_per_tick : 1.0;
	begin(timer);
}

void xb_timer_finish(struct xb_timer *timer)
{
	uint64_t tick = 0, ns = 0;

	if (timer->source != XB_TIMER_TSC)
		return; /* the ticks are the clock itself */
	read_both(timer->source, &tick, &ns);
	if (tick <= timer->start_ticks || ns <= timer->start_ns)
		return;
	double whole = (double)(ns - timer->start_ns) / (double)(tick - timer->start_ticks);
	timer->drift_ppm = (whole / timer->ns_per_tick - 1.0) * 1e6;
}

const char *xb_timer_source_name(enum xb_timer_source source)
{
	return source == XB_TIMER_TSC ? "tsc" : "clock_gettime";
}

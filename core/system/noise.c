/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Selfish detour (Beckman et al., Cluster Computing 2008; part of netgauge): a loop that does nothing but
 * read the clock sees in the gaps between two readings when it was kept from running.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../engine/timer.h"
#include "system.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CALIBRATION_NS 200000u
#define DETOUR_NS 1000.0

struct spin {
	uint64_t least, lost, worst, detours; /* ticks, but for detours */
};

/* Reads the clock until `ticks` have gone by; gaps more than `threshold` above the least one are detours. */
static inline __attribute__((always_inline)) void spin_on(uint64_t (*read_ticks)(void), uint64_t ticks,
							  uint64_t threshold, struct spin *spin)
{
	uint64_t begin = read_ticks(), last = begin, now, least = spin->least, limit = least + threshold;

	do {
		uint64_t gap;

		now = read_ticks();
		gap = now - last;
		last = now;
		if (gap < least) {
			least = gap;
			limit = least + threshold;
		} else if (gap > limit) {
			spin->detours++;
			spin->lost += gap - least;
			if (gap > spin->worst)
				spin->worst = gap;
		}
	} while (now - begin < ticks);
	spin->least = least;
}

/* One loop per clock, so that neither holds a call. */
static void spin_clock(uint64_t ticks, uint64_t threshold, struct spin *spin)
{
	spin_on(xb_ticks_clock, ticks, threshold, spin);
}

#if defined(__x86_64__)
static void spin_tsc(uint64_t ticks, uint64_t threshold, struct spin *spin)
{
	spin_on(xb_ticks_tsc, ticks, threshold, spin);
}

/* rdtscp exists and the counter runs at one rate, whatever the core does. */
static int tsc_usable(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000001, &a, &b, &c, &d) && (d >> 27 & 1) &&
	       __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
}

/* Good to some 0.1 %: enough to tell 1 us and to express shares. */
static double tsc_per_ns(void)
{
	uint64_t ns = xb_clock_ns(CLOCK_MONOTONIC_RAW), ticks = xb_ticks_tsc(), now;

	do
		now = xb_clock_ns(CLOCK_MONOTONIC_RAW);
	while (now - ns < CALIBRATION_NS);
	return (double)(xb_ticks_tsc() - ticks) / (double)(now - ns);
}
#endif

/* The "steal" column of a line of /proc/stat ("cpu" or "cpu3"). */
static int read_steal(const char *name, uint64_t *jiffies)
{
	char line[512];
	size_t length = strlen(name);
	unsigned long long steal;
	int found = 0;
	FILE *file = fopen("/proc/stat", "re");

	while (file && !found && fgets(line, sizeof(line), file) && strncmp(line, "cpu", 3) == 0) {
		if (strncmp(line, name, length) != 0 || line[length] != ' ')
			continue;
		if (sscanf(line + length, " %*u %*u %*u %*u %*u %*u %*u %llu", &steal) != 1)
			break;
		*jiffies = steal;
		found = 1;
	}
	if (file)
		fclose(file);
	return found ? 0 : XB_E_SYSTEM;
}

void xb_noise_probe(uint64_t duration_ns, struct xb_noise *noise)
{
	struct spin spin = {.least = UINT64_MAX / 2};
	void (*run)(uint64_t, uint64_t, struct spin *) = spin_clock;
	double per_ns = 1;
	uint64_t steal_before = 0, steal_after = 0, begin_ns, elapsed_ns;
	char cpu[16];
	int stolen;

#if defined(__x86_64__)
	if (tsc_usable()) {
		run = spin_tsc;
		per_ns = tsc_per_ns();
	}
#endif
	snprintf(cpu, sizeof(cpu), "cpu%d", sched_getcpu());
	run((uint64_t)(CALIBRATION_NS * per_ns / 10), UINT64_MAX / 4, &spin); /* finds the least gap */
	stolen = read_steal(cpu, &steal_before) == 0;
	begin_ns = xb_clock_ns(CLOCK_MONOTONIC_RAW);
	run((uint64_t)((double)duration_ns * per_ns), (uint64_t)(DETOUR_NS * per_ns), &spin);
	elapsed_ns = xb_clock_ns(CLOCK_MONOTONIC_RAW) - begin_ns;
	stolen = stolen && read_steal(cpu, &steal_after) == 0 && steal_after > steal_before && elapsed_ns > 0;

	*noise = (struct xb_noise){.worst_detour_us = (double)spin.worst / per_ns / 1000,
				   .detours = spin.detours};
	if (elapsed_ns > 0)
		noise->detour_share = (double)spin.lost / per_ns / (double)elapsed_ns;
	if (stolen)
		noise->steal_share = (double)(steal_after - steal_before) / (double)sysconf(_SC_CLK_TCK) *
				     1e9 / (double)elapsed_ns;
	/* the jiffies of a short spin are coarse, and the two clocks of a share are not one */
	noise->detour_share = noise->detour_share > 1 ? 1 : noise->detour_share;
	noise->steal_share = noise->steal_share > 1 ? 1 : noise->steal_share;
}

int xb_noise_steal(uint64_t *jiffies, long *per_second)
{
	*per_second = sysconf(_SC_CLK_TCK);
	return read_steal("cpu", jiffies);
}

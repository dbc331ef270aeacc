/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "engine/timer.h"
#include "system/system.h"

static void shares_are_shares(void **state)
{
	struct xb_noise noise;

	(void)state;
	for (uint64_t ns = 1; ns <= 20000000; ns *= 20) {
		xb_noise_probe(ns, &noise);
		assert_true(noise.detour_share >= 0 && noise.detour_share <= 1);
		assert_true(noise.steal_share >= 0 && noise.steal_share <= 1);
		assert_true(isfinite(noise.worst_detour_us) && noise.worst_detour_us >= 0);
		assert_true(noise.detours > 0 || (noise.worst_detour_us == 0 && noise.detour_share == 0));
	}
}

static void a_detour_is_longer_than_a_microsecond(void **state)
{
	struct xb_noise noise;

	(void)state;
	xb_noise_probe(50000000, &noise);
	if (noise.detours == 0)
		return; /* a machine without a timer tick: enviable */
	assert_true(noise.worst_detour_us > 1);
	/* each of them took between 1 us and the worst one */
	assert_true(noise.detour_share * 50000 >= 0.9 * (double)noise.detours);
}

static volatile sig_atomic_t interruptions;
static volatile uint64_t last_end;

/*
 * Keeps the probe from running for 200 us, as an interrupt or another process would. One that follows another
 * at once is part of the same detour: between the two, the probe may not have run.
 */
static void interrupt(int number)
{
	uint64_t begin = xb_clock_ns(CLOCK_MONOTONIC), end;

	(void)number;
	if (begin - last_end > 100000)
		interruptions++;
	do
		end = xb_clock_ns(CLOCK_MONOTONIC);
	while (end - begin < 200000);
	last_end = end;
}

static void imposed_interruptions_are_seen(void **state)
{
	struct sigaction action = {.sa_handler = interrupt};
	struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	struct xb_noise noise;

	(void)state;
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	interruptions = 0;
	last_end = 0;
	xb_noise_probe(200000000, &noise);
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	if (interruptions < 10) /* hardly ever running at all: too busy a machine to tell */
		skip();
	/* those during the calibration before the probe do not count */
	assert_true(noise.detours + 5 >= (uint64_t)interruptions);
	assert_true(noise.worst_detour_us >= 200);
	assert_true(noise.detour_share * 200e6 >= ((double)interruptions - 5) * 200e3);
}

static void a_competitor_on_the_same_cpu_is_seen(void **state)
{
	cpu_set_t before, one;
	struct xb_noise noise;
	int cpu = sched_getcpu(), status;
	pid_t competitor;

	(void)state;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (cpu < 0 || sched_getaffinity(0, sizeof(before), &before) ||
	    sched_setaffinity(0, sizeof(one), &one))
		skip();
	competitor = fork(); /* inherits the affinity */
	if (competitor == 0) {
		alarm(20);
		for (volatile unsigned spin = 0;; spin++)
			;
	}
	assert_true(competitor > 0);
	xb_noise_probe(300000000, &noise);
	kill(competitor, SIGKILL);
	waitpid(competitor, &status, 0);
	sched_setaffinity(0, sizeof(before), &before);
	/* half of the time is the competitor's; on a shared machine more is lost, never much less */
	assert_true(noise.detour_share > 0.2);
	assert_true(noise.worst_detour_us > 100);
}

static void steal_never_runs_backwards(void **state)
{
	uint64_t first, second;
	long per_second;

	(void)state;
	assert_int_equal(xb_noise_steal(&first, &per_second), 0);
	assert_true(per_second > 0);
	assert_int_equal(xb_noise_steal(&second, &per_second), 0);
	assert_true(second >= first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_shares),
		cmocka_unit_test(a_detour_is_longer_than_a_microsecond),
		cmocka_unit_test(imposed_interruptions_are_seen),
		cmocka_unit_test(a_competitor_on_the_same_cpu_is_seen),
		cmocka_unit_test(steal_never_runs_backwards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

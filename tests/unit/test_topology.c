/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fixture.h"
#include "system/system.h"
#include "system/topology.h"

/* What is picked on a synthetic machine (hwloc's notation; CPUs numbered as in "indexes") out of a list of
 * CPUs. */
static int pick(const char *machine, const char *allowed_list, size_t count, int *cpus,
		struct xb_error *error)
{
	hwloc_topology_t topology;
	hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
	int rc;

	assert_int_equal(hwloc_topology_init(&topology), 0);
	assert_int_equal(hwloc_topology_set_synthetic(topology, machine), 0);
	assert_int_equal(hwloc_topology_load(topology), 0);
	if (allowed_list)
		assert_int_equal(hwloc_bitmap_list_sscanf(allowed, allowed_list), 0);
	else
		hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(topology));
	rc = xb_topology_pick(topology, allowed, count, cpus, error);
	hwloc_bitmap_free(allowed);
	hwloc_topology_destroy(topology);
	return rc;
}

#define assert_picked(machine, allowed, ...)                                                                 \
	do {                                                                                                 \
		const int wanted[] = {__VA_ARGS__};                                                          \
		const size_t count = sizeof(wanted) / sizeof(wanted[0]);                                     \
		int got[sizeof(wanted) / sizeof(wanted[0])];                                                 \
		struct xb_error error = {0};                                                                 \
                                                                                                             \
		assert_int_equal(pick(machine, allowed, count, got, &error), 0);                             \
		for (size_t i = 0; i < count; i++)                                                           \
			assert_int_equal(got[i], wanted[i]);                                                 \
	} while (0)

static void hardware_threads_of_one_core_are_not_taken_together(void **state)
{
	(void)state;
	/* CPUs of a core are neighbours */
	assert_picked("package:1 numa:1 core:4 pu:2", NULL, 2, 4);
	/* as Linux numbers them on most machines: the second threads come after all the first ones */
	assert_picked("package:1 numa:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)", NULL, 1, 2);
}

static void the_first_core_is_taken_last(void **state)
{
	(void)state;
	assert_picked("package:1 numa:1 core:2 pu:1", NULL, 1, 0);
	assert_picked("package:1 numa:1 core:3 pu:1", NULL, 1, 2);
	assert_picked("package:1 numa:1 core:3 pu:1", NULL, 1, 2, 0);
	/* but a common node matters more */
	assert_picked("package:2 numa:1 core:2 pu:1", "0-2", 1, 0);
}

static void both_endpoints_share_a_numa_node(void **state)
{
	(void)state;
	assert_picked("package:2 numa:1 core:4 pu:1", NULL, 1, 2);
	/* CPUs alternate between the sockets */
	assert_picked("package:2 numa:1 core:4 pu:1(indexes=0,2,4,6,1,3,5,7)", NULL, 2, 4);
	/* the first node has only one allowed core */
	assert_picked("package:2 numa:1 core:4 pu:1", "3,5-6", 5, 6);
	/* small nodes within a large package */
	assert_picked("package:1 numa:4 core:2 pu:1", NULL, 2, 3);
}

static void a_shared_last_level_cache_is_preferred_within_a_node(void **state)
{
	(void)state;
	/* of four caches in a node the first has one core left */
	assert_picked("package:1 numa:1 l3:4 core:2 pu:1", "1-7", 2, 3);
	/* a cache may span nodes: the node decides */
	assert_picked("package:1 l3:1 numa:2 core:3 pu:1", "2-5", 3, 4);
}

static void without_a_common_node_the_package_then_the_machine_decides(void **state)
{
	(void)state;
	assert_picked("package:2 numa:2 core:2 pu:1", "1,5,7", 5, 7);
	assert_picked("package:2 numa:2 core:2 pu:1", "1,6", 1, 6);
	assert_picked("package:2 numa:1 core:2 pu:1", NULL, 1, 2, 3, 0);
}

static void only_allowed_cpus_are_taken(void **state)
{
	(void)state;
	assert_picked("package:1 numa:1 core:4 pu:2", "1,5,7", 5, 7); /* CPU 1 is of the first core */
	assert_picked("package:1 numa:1 core:8 pu:1", "6-7", 6, 7);
	assert_picked("package:2 numa:1 core:4 pu:2(indexes=0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15)", "8-15",
		      9, 10);
}

static void every_cpu_is_a_core_where_no_cores_are_known(void **state)
{
	(void)state;
	assert_picked("numa:1 pu:4", NULL, 1, 2);
}

static void too_few_cores_are_shared_and_it_is_said(void **state)
{
	int cpus[5];
	struct xb_error note = {0};

	(void)state;
	/* two hardware threads of the only core */
	assert_int_equal(pick("package:1 numa:1 core:1 pu:2", NULL, 2, cpus, &note), 1);
	assert_int_equal(cpus[0], 0);
	assert_int_equal(cpus[1], 1);
	assert_int_equal(note.status, XB_OK);
	assert_string_equal(
		note.text,
		"2 endpoints have to share 1 core (on its hardware threads): allow more CPUs, or judge "
		"the times accordingly");
	/* one CPU for both */
	assert_int_equal(pick("package:1 numa:1 core:4 pu:2", "5", 2, cpus, &note), 1);
	assert_int_equal(cpus[0], 5);
	assert_int_equal(cpus[1], 5);
	assert_non_null(strstr(note.text, "several on one CPU"));
	/* first all cores, then their second threads, then over again */
	assert_int_equal(pick("package:1 numa:1 core:2 pu:2", NULL, 5, cpus, NULL), 1);
	assert_int_equal(cpus[0], 0);
	assert_int_equal(cpus[1], 2);
	assert_int_equal(cpus[2], 1);
	assert_int_equal(cpus[3], 3);
	assert_int_equal(cpus[4], 0);
}

static void no_allowed_cpu_is_an_error(void **state)
{
	int cpus[2];
	struct xb_error error = {0};

	(void)state;
	assert_int_equal(pick("package:1 numa:1 core:2 pu:1", "7", 2, cpus, &error), XB_E_UNAVAILABLE);
	assert_non_null(strstr(error.text, "no core"));
}

/* Runs a check in a process of its own, whose affinity it may change. */
static void in_a_process(int (*check)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(check());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int choose_on_synthetic_machine(void)
{
	int cpus[2] = {-1, -1};

	setenv("HWLOC_SYNTHETIC", "package:2 numa:1 core:8 pu:2", 1);
	return xb_topology_choose(2, cpus, NULL) != 0 || cpus[0] != 2 || cpus[1] != 4;
}

static void the_synthetic_machine_of_the_environment_is_used(void **state)
{
	(void)state;
	in_a_process(choose_on_synthetic_machine);
}

static int first_allowed(cpu_set_t *set)
{
	if (sched_getaffinity(0, sizeof(*set), set))
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, set))
			return cpu;
	}
	return -1;
}

static int choose_what_taskset_left(void)
{
	cpu_set_t set;
	int cpu = first_allowed(&set), cpus[2] = {-1, -1};
	struct xb_error note = {0};

	unsetenv("HWLOC_SYNTHETIC");
	if (cpu < 0)
		return 77;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return 77;
	return xb_topology_choose(2, cpus, &note) != 1 || cpus[0] != cpu || cpus[1] != cpu || !*note.text;
}

static void the_affinity_of_the_process_restricts_the_choice(void **state)
{
	(void)state;
	in_a_process(choose_what_taskset_left);
}

static int choose_twice_around_a_pin(void)
{
	int before[2], after[2];

	unsetenv("HWLOC_SYNTHETIC");
	if (xb_topology_choose(2, before, NULL) < 0 || xb_topology_pin(before[0], NULL) ||
	    xb_topology_choose(2, after, NULL) < 0)
		return 1;
	return before[0] != after[0] || before[1] != after[1];
}

static void pinning_does_not_change_the_choice(void **state)
{
	(void)state;
	in_a_process(choose_twice_around_a_pin);
}

static int pin_and_look(void)
{
	cpu_set_t set;
	int cpu = first_allowed(&set);

	if (cpu < 0)
		return 77;
	if (xb_topology_pin(cpu, NULL) || sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return CPU_COUNT(&set) != 1 || !CPU_ISSET(cpu, &set) || sched_getcpu() != cpu;
}

static void pinning_pins(void **state)
{
	(void)state;
	in_a_process(pin_and_look);
}

static int refused_cpu_leaves_affinity_alone(void)
{
	cpu_set_t before, after;
	struct xb_error error = {0};

	if (first_allowed(&before) < 0)
		return 77;
	if (xb_topology_pin(8000, &error) != XB_E_USAGE || !strstr(error.text, "CPU 8000") ||
	    !strstr(error.text, "allowed"))
		return 1;
	if (xb_topology_pin(-1, &error) != XB_E_USAGE || xb_topology_pin(1000000, &error) != XB_E_USAGE)
		return 2;
	if (xb_topology_allows(8000, &error) != XB_E_USAGE ||
	    xb_topology_allows(first_allowed(&before), &error) != 0)
		return 3;
	sched_getaffinity(0, sizeof(after), &after);
	return !CPU_EQUAL(&before, &after);
}

static void a_refused_cpu_is_named_with_those_allowed(void **state)
{
	(void)state;
	in_a_process(refused_cpu_leaves_affinity_alone);
}

/* ---- the size of the caches */

static size_t cache_of_cpu(const char *machine, int cpu)
{
	hwloc_topology_t topology;
	size_t bytes;

	assert_int_equal(hwloc_topology_init(&topology), 0);
	assert_int_equal(hwloc_topology_set_synthetic(topology, machine), 0);
	hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
	assert_int_equal(hwloc_topology_load(topology), 0);
	bytes = xb_topology_cache_of_cpu(topology, cpu);
	hwloc_topology_destroy(topology);
	return bytes;
}

static void the_outermost_cache_counts(void **state)
{
	static const char full[] =
		"package:2 l3:1(size=50331648) l2:2(size=1048576) l1d:1(size=32768) l1i:1(size=65536) pu:2";

	(void)state;
	assert_int_equal(cache_of_cpu(full, 0), 50331648);
	assert_int_equal(cache_of_cpu(full, 7), 50331648);
	assert_int_equal(cache_of_cpu(full, 8), 0); /* there is none */
	assert_int_equal(cache_of_cpu(full, -1), 0);
	assert_int_equal(cache_of_cpu("package:1 l2:2(size=262144) core:1 pu:1", 1), 262144);
	/* instructions do not count */
	assert_int_equal(cache_of_cpu("package:1 l1i:2(size=65536) pu:1", 0), 0);
	assert_int_equal(cache_of_cpu("package:1 core:2 pu:1", 0), 0);
}

static void hwloc_is_asked_where_sysfs_says_nothing(void **state)
{
	struct fixture machine;
	int with_sysfs, without;

	(void)state;
	fixture_open(&machine, "connectx");
	setenv("HWLOC_SYNTHETIC", "package:1 l3:1(size=12582912) core:8 pu:1", 1);
	with_sysfs = xb_topology_cache_bytes(machine.root, 0) == 49152 * 1024;
	without = xb_topology_cache_bytes(machine.root, 4) == 12582912;
	unsetenv("HWLOC_SYNTHETIC");
	fixture_close(&machine);
	assert_true(with_sysfs);
	assert_true(without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hardware_threads_of_one_core_are_not_taken_together),
		cmocka_unit_test(the_first_core_is_taken_last),
		cmocka_unit_test(both_endpoints_share_a_numa_node),
		cmocka_unit_test(a_shared_last_level_cache_is_preferred_within_a_node),
		cmocka_unit_test(without_a_common_node_the_package_then_the_machine_decides),
		cmocka_unit_test(only_allowed_cpus_are_taken),
		cmocka_unit_test(every_cpu_is_a_core_where_no_cores_are_known),
		cmocka_unit_test(too_few_cores_are_shared_and_it_is_said),
		cmocka_unit_test(no_allowed_cpu_is_an_error),
		cmocka_unit_test(the_synthetic_machine_of_the_environment_is_used),
		cmocka_unit_test(the_affinity_of_the_process_restricts_the_choice),
		cmocka_unit_test(pinning_does_not_change_the_choice),
		cmocka_unit_test(pinning_pins),
		cmocka_unit_test(a_refused_cpu_is_named_with_those_allowed),
		cmocka_unit_test(the_outermost_cache_counts),
		cmocka_unit_test(hwloc_is_asked_where_sysfs_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the endpoints run. hwloc is loaded at most once in a process, only by the one that chooses (its
 * plugins alone take 4 ms to load); pinning, which every worker does, needs system calls only.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sysfs.h"
#include "system.h"
#include "topology.h"

#define CPU_LIMIT 8192 /* of the kernel's largest configuration (NR_CPUS) */

/* --- choosing --- */

struct core {
	hwloc_bitmap_t cpus; /* allowed ones */
	int first; /* it holds CPU 0, where kernels put their housekeeping */
};

struct machine {
	hwloc_topology_t topology;
	struct core *cores;
	size_t count;
};

static void free_cores(struct machine *machine)
{
	for (size_t i = 0; i < machine->count; i++)
		hwloc_bitmap_free(machine->cores[i].cpus);
	free(machine->cores);
}

/* The cores that have an allowed CPU, in machine order; where no cores are known, as in some guests, every
 * CPU is one. */
static int find_cores(struct machine *machine, hwloc_const_bitmap_t allowed, struct xb_error *error)
{
	hwloc_obj_type_t type = hwloc_get_nbobjs_by_type(machine->topology, HWLOC_OBJ_CORE) > 0
					? HWLOC_OBJ_CORE
					: HWLOC_OBJ_PU;
	int objects = hwloc_get_nbobjs_by_type(machine->topology, type);

	machine->cores = calloc(objects > 0 ? (size_t)objects : 1, sizeof(machine->cores[0]));
	if (!machine->cores)
		return xb_fail(error, XB_E_RESOURCE, "out of memory while choosing cores");
	for (int i = 0; i < objects; i++) {
		hwloc_obj_t object = hwloc_get_obj_by_type(machine->topology, type, (unsigned)i);
		struct core core = {.cpus = hwloc_bitmap_alloc(),
				    .first = hwloc_bitmap_isset(object->cpuset, 0)};

		if (!core.cpus)
			return xb_fail(error, XB_E_RESOURCE, "out of memory while choosing cores");
		hwloc_bitmap_and(core.cpus, object->cpuset, allowed);
		if (hwloc_bitmap_iszero(core.cpus)) {
			hwloc_bitmap_free(core.cpus);
			continue;
		}
		machine->cores[machine->count++] = core;
	}
	return 0;
}

/* Is this core within both sets? NULL stands for the whole machine. */
static int within(const struct core *core, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b)
{
	return (!a || hwloc_bitmap_isincluded(core->cpus, a)) &&
	       (!b || hwloc_bitmap_isincluded(core->cpus, b));
}

/* Takes the first `count` cores of the domain, the first core of the machine last, if there are as many. */
static int take(const struct machine *machine, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b, int with_first,
		size_t count, int *cpus)
{
	size_t found = 0;

	for (int first = 0; first <= with_first; first++) {
		for (size_t i = 0; i < machine->count && found < count; i++) {
			const struct core *core = &machine->cores[i];

			if (core->first == first && within(core, a, b))
				cpus[found++] = hwloc_bitmap_first(core->cpus);
		}
	}
	return found == count;
}

static int take_from_type(const struct machine *machine, hwloc_obj_type_t type, int split_by_node,
			  size_t count, int *cpus)
{
	int objects = hwloc_get_nbobjs_by_type(machine->topology, type);
	int nodes = split_by_node ? hwloc_get_nbobjs_by_type(machine->topology, HWLOC_OBJ_NUMANODE) : 1;

	for (int with_first = 0; with_first <= 1; with_first++) {
		for (int i = 0; i < objects; i++) {
			hwloc_obj_t object = hwloc_get_obj_by_type(machine->topology, type, (unsigned)i);

			for (int n = 0; n < nodes; n++) {
				hwloc_obj_t node =
					split_by_node ? hwloc_get_obj_by_type(machine->topology,
									      HWLOC_OBJ_NUMANODE, (unsigned)n)
						      : NULL;

				if (take(machine, object->cpuset, node ? node->cpuset : NULL, with_first,
					 count, cpus))
					return 1;
			}
		}
	}
	return 0;
}

/* More endpoints than cores: first one CPU of each core, then a second of each, and so on, and all over
 * again. */
static int share_cores(const struct machine *machine, size_t count, int *cpus, struct xb_error *error)
{
	size_t found = 0, threads = 0;
	int more = 1;

	for (int depth = 0; more && found < count; depth++) {
		more = 0;
		for (size_t i = 0; i < machine->count; i++) {
			int cpu = hwloc_bitmap_first(machine->cores[i].cpus);

			for (int d = 0; cpu >= 0 && d < depth; d++)
				cpu = hwloc_bitmap_next(machine->cores[i].cpus, cpu);
			if (cpu < 0)
				continue;
			more = 1;
			threads++;
			if (found < count)
				cpus[found++] = cpu;
		}
	}
	for (size_t i = found; i < count; i++)
		cpus[i] = cpus[i - found];
	xb_fail(error, XB_OK,
		"%zu endpoints have to share %zu core%s (%s): allow more CPUs, or judge the times "
		"accordingly",
		count, machine->count, machine->count == 1 ? "" : "s",
		threads < count ? "several on one CPU" : "on its hardware threads");
	return 1;
}

int xb_topology_pick(hwloc_topology_t topology, hwloc_const_bitmap_t allowed, size_t count, int *cpus,
		     struct xb_error *error)
{
	struct machine machine = {.topology = topology};
	int rc = find_cores(&machine, allowed, error);

	if (!rc && machine.count == 0)
		rc = xb_fail(error, XB_E_UNAVAILABLE,
			     "no core of this machine is allowed to this process; see its cpuset");
	if (!rc && machine.count < count) {
		rc = share_cores(&machine, count, cpus, error);
	} else if (!rc && !take_from_type(&machine, HWLOC_OBJ_L3CACHE, 1, count, cpus) &&
		   !take_from_type(&machine, HWLOC_OBJ_NUMANODE, 0, count, cpus) &&
		   !take_from_type(&machine, HWLOC_OBJ_PACKAGE, 0, count, cpus)) {
		take(&machine, NULL, NULL, 1, count, cpus);
	}
	free_cores(&machine);
	return rc;
}

/* --- this machine --- */

static struct {
	hwloc_topology_t topology;
	hwloc_bitmap_t allowed; /* before anything was pinned */
} machine;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

static void load_machine(void)
{
	hwloc_topology_t topology;
	static const hwloc_obj_type_t types[] = {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_CORE};

	if (hwloc_topology_init(&topology))
		return;
	/* Only what the choice looks at. PUs and NUMA nodes are always kept. */
	hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		hwloc_topology_set_type_filter(topology, types[i], HWLOC_TYPE_FILTER_KEEP_ALL);
	machine.allowed = hwloc_bitmap_alloc();
	if (!machine.allowed || hwloc_topology_load(topology)) {
		hwloc_topology_destroy(topology);
		return;
	}
	/* What hwloc loaded may not be this machine (HWLOC_SYNTHETIC, HWLOC_XMLFILE): then all of it is
	 * allowed. */
	if (!hwloc_topology_is_thissystem(topology) ||
	    hwloc_get_cpubind(topology, machine.allowed, HWLOC_CPUBIND_THREAD))
		hwloc_bitmap_copy(machine.allowed, hwloc_topology_get_allowed_cpuset(topology));
	machine.topology = topology;
}

int xb_topology_choose(size_t count, int *cpus, struct xb_error *error)
{
	pthread_once(&machine_once, load_machine);
	if (!machine.topology)
		return xb_fail(error, XB_E_SYSTEM,
			       "hwloc cannot read the topology of this machine; choose CPUs with --bind");
	return xb_topology_pick(machine.topology, machine.allowed, count, cpus, error);
}

/* --- pinning --- */

/* "0-3,8" */
static void list_cpus(const cpu_set_t *set, size_t set_bytes, char *text, size_t capacity)
{
	size_t used = 0;

	text[0] = '\0';
	for (int cpu = 0; cpu < CPU_LIMIT; cpu++) {
		int last = cpu;

		if (!CPU_ISSET_S(cpu, set_bytes, set))
			continue;
		while (last + 1 < CPU_LIMIT && CPU_ISSET_S(last + 1, set_bytes, set))
			last++;
		used += (size_t)snprintf(text + used, capacity - used, last > cpu ? "%s%d-%d" : "%s%d",
					 used ? "," : "", cpu, last);
		if (used + 16 > capacity) {
			strcpy(text + used - (used + 4 > capacity ? 4 : 0), "...");
			return;
		}
		cpu = last;
	}
}

static int refuse_cpu(int cpu, cpu_set_t *allowed, size_t set_bytes, struct xb_error *error)
{
	char text[256];

	list_cpus(allowed, set_bytes, text, sizeof(text));
	return xb_fail(error, XB_E_USAGE,
		       "CPU %d was asked for; allowed to this process are %s: choose from these", cpu, text);
}

/* All that the kernel would let this thread have: it cuts a request for everything down to that. */
static void widest(cpu_set_t *set, size_t set_bytes)
{
	memset(set, 0xff, set_bytes);
	sched_setaffinity(0, set_bytes, set);
	if (sched_getaffinity(0, set_bytes, set))
		memset(set, 0, set_bytes);
}

static int pin(int cpu, int stay, struct xb_error *error)
{
	const size_t set_bytes = CPU_ALLOC_SIZE(CPU_LIMIT);
	cpu_set_t *wanted = CPU_ALLOC(CPU_LIMIT), *before = CPU_ALLOC(CPU_LIMIT),
		  *allowed = CPU_ALLOC(CPU_LIMIT);
	int rc = 0;

	if (!wanted || !before || !allowed) {
		rc = xb_fail(error, XB_E_RESOURCE, "out of memory while pinning to CPU %d", cpu);
	} else if (sched_getaffinity(0, set_bytes, before)) {
		rc = xb_fail(error, XB_E_SYSTEM,
			     "pinning to CPU %d: the kernel does not tell the allowed CPUs: %s", cpu,
			     strerror(errno));
	} else {
		CPU_ZERO_S(set_bytes, wanted);
		if (cpu >= 0 && cpu < CPU_LIMIT)
			CPU_SET_S(cpu, set_bytes, wanted);
		if (sched_setaffinity(0, set_bytes, wanted)) {
			widest(allowed, set_bytes);
			rc = refuse_cpu(cpu, allowed, set_bytes, error);
		}
		if (rc || !stay)
			sched_setaffinity(0, set_bytes, before);
	}
	CPU_FREE(wanted);
	CPU_FREE(before);
	CPU_FREE(allowed);
	return rc;
}

int xb_topology_pin(int cpu, struct xb_error *error)
{
	return pin(cpu, 1, error);
}

int xb_topology_allows(int cpu, struct xb_error *error)
{
	return pin(cpu, 0, error);
}

/* --- facts of a CPU; from sysfs, since a worker should not load hwloc for what is there --- */

int xb_topology_numa_of_cpu(int cpu)
{
	return cpu < 0 ? -1 : xb_sysfs_numa_of_cpu("", cpu);
}

size_t xb_topology_cache_of_cpu(hwloc_topology_t topology, int cpu)
{
	hwloc_obj_t object = cpu < 0 ? NULL : hwloc_get_pu_obj_by_os_index(topology, (unsigned)cpu);
	size_t bytes = 0;

	for (; object; object = object->parent)
		if (hwloc_obj_type_is_dcache(object->type) && object->attr->cache.size > 0)
			bytes = (size_t)object->attr->cache.size; /* the outermost comes last */
	return bytes;
}

/* With hwloc, which asks the CPU itself. */
static size_t ask_hwloc_for_cache(int cpu)
{
	hwloc_topology_t topology;
	size_t bytes = 0;

	if (hwloc_topology_init(&topology))
		return 0;
	hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
	if (!hwloc_topology_load(topology))
		bytes = xb_topology_cache_of_cpu(topology, cpu);
	hwloc_topology_destroy(topology);
	return bytes;
}

size_t xb_topology_cache_bytes(const char *root, int cpu)
{
	static int asked = -1; /* the CPU; a worker stays on its one, and asks before every block */
	static size_t answer;
	size_t bytes = xb_sysfs_cache_of_cpu(root, cpu);

	if (bytes)
		return bytes;
	if (asked != cpu) {
		answer = ask_hwloc_for_cache(cpu);
		asked = cpu;
	}
	return answer;
}

size_t xb_topology_last_level_cache_bytes(void)
{
	int cpu = sched_getcpu();

	return xb_topology_cache_bytes("", cpu < 0 ? 0 : cpu);
}

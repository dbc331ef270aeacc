/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_TOPOLOGY_H
#define XB_TOPOLOGY_H
/* The choice itself, on any hwloc topology; private to core/system and its tests. */
#include <hwloc.h>
#include "../error.h"

/* As xb_topology_choose, out of the CPUs in `allowed`. */
int xb_topology_pick(hwloc_topology_t topology, hwloc_const_bitmap_t allowed, size_t count, int *cpus,
		     struct xb_error *error);

/* Size of the last cache with data that this CPU has, in any topology; 0 if it has none. */
size_t xb_topology_cache_of_cpu(hwloc_topology_t topology, int cpu);
/* Of this machine: from sysfs below `root` ("" but for tests), else as hwloc finds it. Of one thread. */
size_t xb_topology_cache_bytes(const char *root, int cpu);

#endif

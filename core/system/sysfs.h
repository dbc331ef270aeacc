/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_SYSFS_H
#define XB_SYSFS_H
/* Small files of /sys and /proc. Private to core/system and its tests. */
#include <stddef.h>
#include <stdint.h>

/* First line of the file that the format names, without the newline; cut at capacity. Returns its length, or
 * -1. */
int xb_sysfs_line(char *line, size_t capacity, const char *format, ...) __attribute__((format(printf, 3, 4)));
int xb_sysfs_exists(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Parts of topology.c and host.c with the root of the tree given: "" on the machine itself. */
int xb_sysfs_numa_of_cpu(const char *root, int cpu);
size_t xb_sysfs_cache_of_cpu(const char *root,
			     int cpu); /* bytes of the largest-level data cache of this CPU; 0 unknown */
/* The RDMA MTU (256 ... 4096) that an interface of this MTU has room for; 0: none. */
int xb_link_roce_mtu(int interface_mtu_bytes);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_SYSTEM_H
#define XB_SYSTEM_H
/* What this host is, where processes run, what its devices carried, how noisy it is. Used by workers and
 * the controller; no global state but the topology, which is loaded once. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include "../error.h"

/* --- host.c: {"name","boot_id","kernel","cpu","cpus","numa_nodes","governor","netns","memory_MB"}, and
 * "container" inside one; texts are null where unknown. New reference. */
json_t *xb_host_describe(void);

/* --- topology.c (hwloc) */
/* Picks `count` distinct processing units for the endpoints on this host: allowed by the cpuset, on distinct
 * cores, the same package / NUMA node if possible, core 0's siblings last. Writes OS indices. If there are
 * fewer cores than endpoints, repeats and returns 1, else 0; negative on error. With 1 it also puts a
 * sentence about what is shared into *error, with the status XB_OK. */
int xb_topology_choose(size_t count, int *cpus, struct xb_error *error);
/* Pins this thread; XB_E_USAGE if the CPU is not allowed to this process, with a sentence that lists those
 * that are. */
int xb_topology_pin(int cpu, struct xb_error *error);
int xb_topology_allows(int cpu, struct xb_error *error); /* the same check and sentence, without pinning */
int xb_topology_numa_of_cpu(int cpu); /* -1 unknown */
size_t xb_topology_last_level_cache_bytes(void); /* 0 unknown */

/* --- counters.c: byte counters of all network interfaces and RDMA ports of this network namespace. Files are
 * opened once and re-read by pread, so that a snapshot costs microseconds. sysfs_root is "/sys" but for tests
 * with recorded trees, which have their proc/net/dev in "SYSFS_ROOT/../proc". */
struct xb_counters;
struct xb_counter_delta {
	char device[64]; /* "eth0"; an RDMA port is "mlx5_0/1" */
	char kind[16]; /* "netdev" | "loopback" | "rdma" */
	uint64_t tx_bytes, rx_bytes;
	uint64_t tx_packets, rx_packets; /* only of devices that do not count bytes (soft-RoCE), else 0 */
};
struct xb_counters *xb_counters_open(const char *sysfs_root);
void xb_counters_close(struct xb_counters *c); /* NULL is nothing */
void xb_counters_mark(struct xb_counters *c); /* start of a block */
/* Since the mark, the busiest first; devices with no traffic are left out, and those that were not there at
 * the mark. Wrap-around of 32-bit counters is handled. Returns how many were written. */
size_t xb_counters_since_mark(struct xb_counters *c, struct xb_counter_delta *out, size_t capacity);
/* Is this device, "eth0" or "mlx5_0:1", one of those that are counted? Some adapters keep no counters of
 * their bytes. */
int xb_counters_know(struct xb_counters *c, const char *device);
/* Is `counted`, the device of a delta, the one that a transport calls `device`: "mlx5_0", "mlx5_0/1",
 * "mlx5_0:1", "eth0"? */
int xb_counter_is_device(const char *counted, const char *device);

/* --- link.c: bits/s of an interface ("eth0") or RDMA port ("mlx5_0", "mlx5_0/1", "mlx5_0:1"); 0 if unknown
 * or made up, as for veth, which carries more than it says. */
uint64_t xb_link_rate_bits(const char *sysfs_root, const char *device);
/* Of a network interface of this network namespace, or that of RDMA over the one that a RoCE port belongs to,
 * bytes; 0 if unknown (InfiniBand's is known to libibverbs alone). */
int xb_link_mtu(const char *sysfs_root, const char *device);
/* NUMA node of an interface or RDMA device ("mlx5_0/1" too); -1 unknown, or a machine with one node. */
int xb_link_numa(const char *sysfs_root, const char *device);

/* --- noise.c */
struct xb_noise {
	double detour_share; /* of a spin on the calling thread's CPU, lost to gaps > 1 us; 0..1 */
	double worst_detour_us;
	uint64_t detours;
	double steal_share; /* /proc/stat of this CPU over the same time */
};
void xb_noise_probe(uint64_t duration_ns, struct xb_noise *noise);
/* Steal jiffies of all CPUs so far (/proc/stat), and ticks per second. */
int xb_noise_steal(uint64_t *jiffies, long *per_second);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_TEST_EXERCISE_H
#define XB_TEST_EXERCISE_H
/* Parts of the conformance driver: options.c reads the command line, side.c is one endpoint, exercise.c the
 * processes. */
#include "cli/config.h"
#include "engine/block.h"
#include "oob.h"

#define MOST_KEYS 64
#define EXIT_NOT_HERE 4 /* the transport or the operation is not offered here */

struct options {
	const char *plugin, *path;
	struct xb_key_value keys[MOST_KEYS], fault[MOST_KEYS];
	size_t key_count, fault_count;
	enum xb_bench benches[4];
	size_t bench_count;
	enum xb_op op;
	size_t sizes[XB_MAX_SIZES];
	size_t size_count;
	uint64_t iterations, warmup, target_ns;
	uint32_t window, endpoints;
	const char *trace, *folder;
	const char *join; /* HOST:PORT of the endpoint 0 that listens; NULL: none */
	uint16_t listen; /* port; 0: all endpoints are on this host */
	uint32_t endpoint; /* which one joins */
	int cpus[OOB_MOST_ENDPOINTS], cpu_count;
	int mpi, verbose;
	int only_probe;
	long timeout_s;
};

/* 0; 1: help was printed; -1: wrong, and said why. */
int options_parse(int argc, char **argv, struct options *options);

/* One endpoint from bring-up to close, in this process. fd: to the parent, or -1. Returns an exit status. */
int side_run(const struct options *options, uint32_t endpoint, uint32_t endpoints, int fd);
int side_probe(const struct options *options);

/* remote.c: fds[1 ... endpoints-1] of endpoints that join on port; or the socket of one that joins. -1:
 * failed, and said why. */
int remote_serve(uint16_t port, uint32_t endpoints, int64_t deadline_ms, int *fds);
int remote_join(const char *where, uint32_t endpoint, int64_t deadline_ms);

#endif

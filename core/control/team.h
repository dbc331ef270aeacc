/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_TEAM_H
#define XB_TEAM_H
/*
 * A team: the worker processes of one transport instance during one launch. Every function here drives the
 * hub's loop until its replies are in, a deadline passes, a process of the team ends, or the user interrupts;
 * and says which it was.
 */
#include "../launch/launcher.h"
#include "../report/results.h"
#include "hub.h"
#include "schedule.h"

#define XB_TEAM_ENDPOINTS_MAX XB_MAX_ENDPOINTS
#define XB_BLOCK_PATIENCE_MS 20000 /* for a block, unless a worker announces that it needs longer */

struct xb_tail {
	char text[1024];
	size_t used;
};

/* What all teams of a run share. */
struct xb_control {
	const struct xb_config *config;
	struct xb_hub hub;
	struct xb_results *results;
	const char *self; /* path of this program */
	int key_fd; /* memfd with the key in hex */
	const char *timer_source;
	double ns_per_tick;
	uint32_t endpoints; /* of every team */
	const char *const *hosts; /* per endpoint, or NULL: all here */
	unsigned char here[XB_TEAM_ENDPOINTS_MAX]; /* per endpoint: 1 if on this machine */
	int *cpus; /* per endpoint; -1: not pinned; -2: its host chooses, and what it chose takes its place */
	char run_id[17];
	json_t *timer_told; /* of endpoint 0, where it is on another host */
	uint64_t blocks; /* numbered through the whole run */
	uint64_t cpu_ns_while_timed, timed_ns; /* how much the controller itself ran while blocks ran */
};

struct xb_team {
	struct xb_control *control;
	size_t index; /* of the transport */
	const struct xb_transport_spec *spec;
	uint32_t endpoints;
	const struct xb_launcher *launcher;
	struct xb_launched *processes;
	size_t process_count;
	int64_t started_s; /* CLOCK_REALTIME */
	json_t *artifacts; /* shared memory files to remove if the workers are killed */
	json_t *description; /* of the resolved path, from endpoint 0 */
	json_t **descriptions; /* of every endpoint, towards its first peer */
	uint32_t *host_of; /* of every endpoint: the first endpoint on the same host */
	enum xb_layer layer;
	struct xb_tail *tails; /* last output of each process */
	double start_ms; /* from the first fork to all endpoints connected */
	char died[XB_ERROR_TEXT_BYTES]; /* how a process of the team ended, if one did */
	size_t dead; /* which: index into processes */
	int hung; /* endpoint that said it waits in vain; -1 */
	int lost; /* endpoint that died, hung or did not come; -1: none, or not known */
	int host_lost; /* 1: it did not get as far as a worker: the host, not the transport, is at fault */
};

/* Starts processes, opens the transport everywhere, connects all pairs of the schedule. On failure the team
 * is ended. */
int xb_team_start(struct xb_control *control, size_t index, struct xb_team *team, struct xb_error *error);
/* What a worker said of the host that it runs on; borrowed, NULL if it is not there. */
json_t *xb_team_host(const struct xb_team *team, uint32_t endpoint);
int xb_same_host(json_t *a, json_t *b);

struct xb_block_request {
	enum xb_bench bench;
	enum xb_op op;
	size_t size_bytes;
	uint32_t window;
	struct xb_swap swap;
	uint64_t iterations, warmup, target_ns;
};
/* Runs one block on each of the disjoint pairs at once. replies[2*i], replies[2*i+1]: of the pair's first
 * (initiator) and second endpoint, new references owned by the caller. XB_E_ABORTED: interrupted by the user.
 * Any other failure: the team must be ended. */
int xb_team_block(struct xb_team *team, const struct xb_pair *pairs, size_t pair_count,
		  const struct xb_block_request *request, json_t **replies, struct xb_error *error);
/* run_swap.c: does a swap of this run need synchronous sends? */
int xb_run_sync_sends(const struct xb_config *config);
/* Asks one endpoint, waits for its reply (new reference). */
int xb_team_ask(struct xb_team *team, uint32_t endpoint, json_t *request, int timeout_ms, json_t **reply,
		struct xb_error *error);
/* clean: close in order first. In any case nothing is left afterwards: processes reaped, shared memory files
 * removed. */
void xb_team_end(struct xb_team *team, int clean);

#endif

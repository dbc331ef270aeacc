/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_RUN_INTERNAL_H
#define XB_RUN_INTERNAL_H
/* State of a run; private to run*.c. */
#include "run.h"
#include "team.h"
#include "../engine/timer.h"

struct xb_item { /* one thing to visit in a launch */
	enum xb_bench bench;
	size_t size_bytes;
	struct xb_swap swap; /* swap only */
	size_t variant; /* of config->swap.variants */
};

struct xb_run {
	struct xb_config *config;
	struct xb_control control;
	struct xb_timer timer;
	struct xb_rng rng;
	uint64_t seed;
	struct xb_item *items;
	size_t item_count;
	struct xb_team teams[XB_MAX_TRANSPORTS];
	int up[XB_MAX_TRANSPORTS]; /* started in this launch */
	int failed[XB_MAX_TRANSPORTS]; /* not to be started again */
	unsigned rounds; /* per launch, item and team */
	uint64_t target_ns;
	int64_t begin_ms;
	unsigned launch;
	int cpus[XB_TEAM_ENDPOINTS_MAX];
	uint64_t steal_begin;
	double noise_share; /* of the noisiest endpoint in any probe, and what is said of it; "": none was
			       made */
	char noisiest[300];
	int document_failed; /* the last time */
	const struct xb_run_hooks *hooks; /* or NULL */
	int lost; /* a node was lost, and hooks want to know at once */
	struct xb_schedule schedule; /* of every team */
	const char *hosts[XB_TEAM_ENDPOINTS_MAX]; /* by endpoint, where hosts are given */
	struct xb_launched session; /* with a listener, if there is one */
	int host_lost; /* the run ended because a host could not be used at all */
};

/* The first, non-recoverable refusal of a transport in the first launch: nothing has been measured yet. 0 if
 * the run can go on. */
int xb_run_launch(struct xb_run *run, struct xb_error *error);

/* What is learnt from replies: into the results. */
void xb_run_take_team(struct xb_run *run, struct xb_team *team);
/* Replies of the blocks on schedule.pairs[first ... first + count), two for each; visit: how many rounds of
 * the schedule this launch has made at the item before. */
void xb_run_take_round(struct xb_run *run, struct xb_team *team, const struct xb_item *item, size_t visit,
		       size_t first, size_t count, json_t *const *replies);
void xb_run_probe_noise(struct xb_run *run, struct xb_team *team);
void xb_run_tell_noise(
	struct xb_run *run); /* once, at the end: the finding is about the worst of all probes */
void xb_run_check_steal(struct xb_run *run);
/* run_hosts.c: findings about the places that a team runs on. */
void xb_run_check_hosts(struct xb_run *run, struct xb_team *team);

/* run_prepare.c: what is known before anything is started: items, places, CPUs, the timer. */
int xb_run_prepare(struct xb_run *run, struct xb_error *error);
/* The control port, and the key where launchers find it. */
int xb_run_open_hub(struct xb_run *run, struct xb_error *error);

/* run_swap.c */
size_t xb_run_count_items(const struct xb_config *config);
size_t xb_run_swap_items(const struct xb_config *config, struct xb_item *items); /* returns how many */
unsigned xb_run_rounds(const struct xb_run *run, const struct xb_item *item); /* of a launch */
void xb_run_item_text(const struct xb_item *item, char *text, size_t bytes); /* "bw at 64K" */

#endif

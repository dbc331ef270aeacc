/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_RUN_H
#define XB_RUN_H
#include "../cli/config.h"
/*
 * The main job: launches, rounds and blocks over all transports of the configuration; prints the report on
 * stdout and keeps the document. Returns the exit status of the program.
 */
#define XB_EXIT_USAGE 2
#define XB_EXIT_INVALID 3
#define XB_EXIT_UNAVAILABLE 4
#define XB_EXIT_OUTPUT 5 /* measured, but the result could not be written where asked */

int xb_run(struct xb_config *config);

struct xb_lost {
	uint32_t endpoint;
	size_t transport;
	int of_host; /* 1: its host could not be used at all; 0: maybe only the transport's worker there */
	const char *why;
};

/* For those who want the document and not the report. */
struct xb_run_hooks {
	/* Asked after every launch from the least number on, instead of --ci: 1 to stop. document is
	 * borrowed. */
	int (*settled)(void *user, json_t *document);
	void *user;
	/* A worker died, hung or could not be started, and it is known where: 1 to end the run at
	 * once. NULL, or 0: it goes on without the transport. */
	int (*lost)(void *user, const struct xb_lost *lost);
	int noise_every_launch; /* the probe of the measuring cores, instead of once a run */
};
/* Inside a job of Slurm, and when no hosts are named: its hosts become those of the configuration. */
int xb_run_find_hosts(struct xb_config *config, struct xb_error *error);
/* Measures; hooks may be NULL. *document is new, or NULL when nothing was measured (then the return value is
 * the exit status, and why has been said). Returns 0, 128 + signal, or an exit status. May be called again.
 */
int xb_run_measure(struct xb_config *config, const struct xb_run_hooks *hooks, json_t **document);

/* `xportbench list`: what every transport can use here, and for what it cannot, why and what to do. */
int xb_list(const struct xb_config *config);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_LAUNCHER_H
#define XB_LAUNCHER_H
/*
 * A launcher starts the worker processes of one team. It knows nothing of blocks or frames: it makes
 * processes that run `xportbench worker`, hands them the key by a way that no `ps` shows, and can end them.
 */
#include <stdint.h>
#include <sys/types.h>
#include "../cli/config.h"

struct xb_launch_request {
	const struct xb_config *config;
	const struct xb_transport_spec *spec;
	uint32_t team, endpoints;
	const char *const *hosts; /* endpoints entries, or NULL: all on this machine. The same name is the
				     same pointer. */
	const unsigned char *here; /* endpoints entries, with hosts: 1 if that host is this machine */
	const char *control_address; /* "127.0.0.1:40123" or "[::1]:40123" */
	const unsigned char *key; /* 32 bytes */
	int key_fd; /* memfd holding the key in hex, for launchers that cannot feed every worker's stdin */
	const char *run_id; /* random hex of the run: no secret, names its files */
	const char *self; /* path of the xportbench binary */
};

/* One process that the controller started and must reap: a worker (endpoint >= 0) or a helper such as mpirun
 * (endpoint == -1). */
struct xb_launched {
	pid_t pid; /* -1 once it has been reaped */
	pid_t started_pid; /* stays */
	int endpoint;
	const char *host; /* borrowed from the request; NULL: this machine */
	int input_fd; /* write end of its stdin, kept open so that its end can be noticed there; or -1 */
	int output_fd; /* its stdout and stderr, non-blocking read end; drained and quoted when it fails */
};

struct xb_launcher {
	const char *name; /* "local", "mpirun", ... */
	/* Starts the team; writes up to capacity processes and their number. On failure nothing is left
	 * running. */
	int (*start)(const struct xb_launch_request *request, struct xb_launched *out, size_t capacity,
		     size_t *count, struct xb_error *error);
	/* What the end of a process before its worker has reported means: a sentence with XB_E_UNAVAILABLE,
	 * or 0 if there is nothing better to say than its status and output. `output` is its last output, in
	 * one line. May be NULL. */
	int (*explain)(const struct xb_launch_request *request, const struct xb_launched *process,
		       int wait_status, const char *output, struct xb_error *error);
	/* Signal that asks a helper to end its job (SIGTERM for mpirun), and milliseconds to grant before
	 * SIGKILL. */
	int end_signal;
	unsigned grace_ms;
	unsigned hello_ms; /* within this, and some for each endpoint, all workers of a team have reported */
	int children; /* 1: every worker on this machine is a child of the controller */
};

extern const struct xb_launcher xb_launcher_local, xb_launcher_ssh, xb_launcher_mpirun, xb_launcher_srun,
	xb_launcher_listen;

/* The launcher for a transport: MPI ones always come from a job launcher. */
const struct xb_launcher *xb_launcher_choose(const struct xb_config *config, const char *transport);

/* --- hosts.c */
int xb_in_slurm_job(void); /* 1 inside an allocation of Slurm with srun at hand */
/* Is this the name of the machine that we are on? "localhost", its host name, or a name of one of its
 * addresses. May ask the resolver. */
int xb_host_is_here(const char *host);
/* Numeric address of this machine for workers on other hosts to call: of `interface` (a name or an address),
 * or with NULL the one that the route to `host` leaves from. XB_E_USAGE or XB_E_UNAVAILABLE with what to do.
 */
int xb_control_address(const char *interface, const char *host, char *address, size_t capacity,
		       struct xb_error *error);

/* --- mpirun_path.c: the MCA flags and environment that force mpi:PATH. Pure. Writes strdup'ed words to
 * argv[0
 * ...] and their number to *count; XB_E_USAGE for a path it does not know, with the list. */
int xb_mpirun_path_flags(const char *path, char **argv, size_t capacity, size_t *count,
			 struct xb_error *error);

#endif

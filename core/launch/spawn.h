/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_SPAWN_H
#define XB_SPAWN_H
#include "launcher.h"

#define XB_SPAWN_ARGS 512 /* Hydra takes three words for each env.NAME */

struct xb_argv { /* grows by xb_argv_add; all strings are its own */
	char *items[XB_SPAWN_ARGS + 1];
	size_t count;
	int full; /* a word had no room, or no memory */
};
void xb_argv_add(struct xb_argv *argv, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* XB_E_USAGE if words are missing: such a command must not be run. */
int xb_argv_whole(const struct xb_argv *argv, struct xb_error *error);
/* Splits a command as a user gives it ("mpirun --foo", quotes as in a shell, no substitutions). XB_E_USAGE if
 * it cannot be split. */
int xb_argv_add_words(struct xb_argv *argv, const char *command, struct xb_error *error);
/* The words of `xportbench worker`, beginning with the program. key_source and endpoint as in
 * control/worker.h. */
void xb_argv_add_worker(struct xb_argv *argv, const struct xb_launch_request *request, const char *program,
			const char *key_source, const char *endpoint);
void xb_argv_free(struct xb_argv *argv);
/* All words from `first` on as one command for a shell, each in quotes; malloc'ed, or NULL. */
char *xb_argv_shell(const struct xb_argv *argv, size_t first);

struct xb_spawn_options {
	const struct xb_key_value *env; /* extends its environment */
	size_t env_count;
	const char *stdin_text; /* fed to its stdin (a pipe, so that nothing appears in `ps`), or NULL for
				   /dev/null */
	int keep_stdin; /* leave that pipe open, as out->input_fd */
	int death_signal; /* sent to it when the controller dies */
};

/*
 * Starts argv, if it is whole, in a process group of its own (Ctrl-C at the terminal reaches the controller
 * alone). Output goes through a pipe.
 */
int xb_spawn(const struct xb_argv *argv, const struct xb_spawn_options *options, struct xb_launched *out,
	     struct xb_error *error);

/* Everything that a short-lived command prints (up to capacity - 1 bytes), within timeout_ms. */
int xb_spawn_output(const struct xb_argv *argv, char *text, size_t capacity, int timeout_ms,
		    struct xb_error *error);

/* Starts what holds the run's key for workers on every host of the request (`xportbench hold`): a child here,
 * over the remote shell elsewhere. Appends to out[*count ...]. */
int xb_spawn_holders(const struct xb_launch_request *request, struct xb_launched *out, size_t capacity,
		     size_t *count, struct xb_error *error);
/* Ends and reaps out[0 ... *count), when the rest of the team could not be started. */
void xb_spawn_undo(struct xb_launched *out, size_t *count);

/* ssh.c: the words that run a command on a host, up to and including the host's name. */
int xb_ssh_words(const struct xb_config *config, const char *host, struct xb_argv *argv,
		 struct xb_error *error);
/* What ssh's end and its output mean for this host; 0 if nothing particular. `program` was to be run there.
 */
int xb_ssh_explain(const char *host, const char *program, int wait_status, const char *output,
		   struct xb_error *error);

#endif

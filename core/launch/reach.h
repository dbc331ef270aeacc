/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_REACH_H
#define XB_REACH_H
/*
 * The client's side of `xportbench listen`. `xportbench reach` is to it what ssh is to sshd: a process of its
 * own for every worker on the other machine, which hands over the key that it reads from its stdin, waits for
 * the worker's end and exits with its status; and one that stands for the session as a whole.
 *   reach --to HOST[:PORT] --session ID [--key-file FILE] [worker arguments ...]
 */
#include "spawn.h"

int xb_reach_main(char **arguments, size_t count);
/* Opens the session of a run and waits until the listener has taken it; out stands for it until it is ended
 * by closing its input. XB_E_UNAVAILABLE with what to do. */
int xb_reach_open(const struct xb_config *config, const char *self, const char *run_id,
		  struct xb_launched *out, struct xb_error *error);
void xb_reach_close(struct xb_launched *session);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_HOLD_H
#define XB_HOLD_H
/*
 * How ranks of an MPI job on other hosts get the run's key, when their launcher gives only rank 0 an input:
 * `xportbench hold NAME` runs on each host, started by ssh, reads the key from its stdin and gives it to
 * processes of the same user on the same host, over a socket without a file (abstract, so of this network
 * namespace), until its stdin closes. Both sides ask the kernel who the other one is. Nothing of it is left
 * behind, however it ends.
 */
#include <stddef.h>
#include "../control/channel.h"

int xb_hold_main(const char *name);
/* The key in hex from the holder of this name, waiting up to timeout_ms for it to appear. XB_E_PEER or
 * XB_E_TIMEOUT. */
int xb_held_key(const char *name, char hex[2 * XB_KEY_BYTES + 1], int timeout_ms, struct xb_error *error);

#endif

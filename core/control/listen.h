/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_LISTEN_H
#define XB_LISTEN_H
#include "../cli/config.h"
/*
 * `xportbench listen`: starts workers on this machine for a run on another one that holds the same key. One
 * run at a time. Whoever does not prove the key gets not one byte.
 *
 * Messages on an authenticated connection (channel.h), one JSON object each:
 *   {"session": ID, "who": TEXT, "version": V}      a run says who it is -> {"status": 0, "version": V}, or
 *                                                   {"status": negative, "error": SENTENCE} and the end
 *   {"start": {"connect", "key", "team", "endpoint", "env": {...}, "plugin_dir"}}   start a worker of that
 *                                                   session -> at its end {"exited": S, "output": TEXT}
 * A worker ends when its connection does; a session when the first connection of it does.
 */
#define XB_LISTEN_PORT 18599
/* Runs until a signal comes; returns the exit status of the program. */
int xb_listen(const struct xb_config *config);
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_WORKER_H
#define XB_WORKER_H
/*
 * `xportbench worker --connect ADDRESS --key stdin|held:NAME|FILE --team T --endpoint E|env:NAME[/NAME]
 * [--guard yes] [--plugin-dir DIR]`: one endpoint of a team, its number from the first of these variables
 * that is set. It authenticates, then sleeps on the control channel and does what it is told: open, connect,
 * block, noise, close. Every command gets one reply {"re": command, "status": 0 or negative, "error":
 * sentence, ...}.
 */
#include <stddef.h>
#include "../error.h"

/* Returns the exit status of the process. */
int xb_worker_main(char **arguments, size_t count);

/* worker_guard.c: from here on this is a child of the process that was started, which stays behind as its
 * guard and ends it when its stdin does. Exits with the worker's status. */
int xb_worker_guard(struct xb_error *error);

/* `xportbench probe NAME [--plugin-dir DIR]`: prints what the transport's probe finds as one JSON object on
 * stdout. */
int xb_probe_main(char **arguments, size_t count);

#endif

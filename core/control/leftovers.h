/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_LEFTOVERS_H
#define XB_LEFTOVERS_H
/*
 * Shared memory of a worker that was killed before it could say what it made. Libraries name POSIX segments
 * at random and give them to the peer; only a worker's own end removes them. On this host only.
 */
#include <stddef.h>
#include <stdint.h>

/* Removes files of known libraries in `folder` ("/dev/shm") that belong to this user, were made at since_s
 * (CLOCK_REALTIME) or later and at least age_ms ago, and that no process maps or has open. Returns how many.
 */
size_t xb_leftovers_remove_files(const char *folder, int64_t since_s, int age_ms);
/* Removes files "PID:..." of libfabric's shm provider in `folder` that these (ended) processes made, if they
 * are this user's and not older than since_s. Returns how many. */
size_t xb_leftovers_remove_named(const char *folder, const int *pids, size_t count, int64_t since_s);
/* Removes SysV segments that one of these (ended) processes made and that nobody has attached. Returns how
 * many. */
size_t xb_leftovers_remove_sysv(const int *pids, size_t count);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_WATCH_H
#define XB_WATCH_H
/*
 * The worker's watcher: a thread that sleeps in poll() and ends the process when the control channel is lost,
 * even if the main thread spins or hangs inside a library; and that reports a block which has passed its
 * deadline. Time that the main thread spent waiting for a CPU does not count: a busy machine is slow, not
 * hung.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "channel.h"

#define XB_WATCH_GRACE_MS 400 /* for the main thread to end by itself once the abort flag is up */
#define XB_WATCH_ARTIFACTS 16
#define XB_WATCH_EXTENSIONS_MAX 3 /* each as long as the time granted at first */
#define XB_WORKER_LOST_EXIT 70 /* exit status of a worker whose controller is gone */

struct xb_watch {
	struct xb_channel *channel;
	atomic_int abort; /* the flag that every spin loop looks at */
	int timer_fd; /* CLOCK_MONOTONIC deadline of the block, disarmed when idle */
	pthread_t thread;
	pthread_mutex_t lock; /* of the artifacts */
	char artifacts[XB_WATCH_ARTIFACTS][256]; /* shared memory files to remove if this process must die */
	size_t artifact_count;
	uint64_t block; /* number of the block that the deadline belongs to */
	_Atomic uint64_t armed_ns, armed_waited_ns; /* when the deadline was set, and the main thread's wait
						       for a CPU until then */
	_Atomic uint64_t granted_ns; /* from arming to the deadline */
	unsigned extensions; /* of this deadline, because the machine was busy */
};

int xb_watch_start(struct xb_watch *watch, struct xb_channel *channel, struct xb_error *error);
/* Arms (or with 0 disarms) the deadline, CLOCK_MONOTONIC ns. A few system calls; never in a timed loop. */
void xb_watch_deadline(struct xb_watch *watch, uint64_t monotonic_ns);
/* Notes the files under /dev/shm that this process has mapped and that came into being after since_s
 * (CLOCK_REALTIME). */
void xb_watch_note_artifacts(struct xb_watch *watch, int64_t since_s);
/* Removes them: only when the transport could not be closed in order. */
void xb_watch_remove_artifacts(struct xb_watch *watch);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_FAULT_H
#define XB_FAULT_H
/* The fault decorator; private to this folder. README.md says what it does to whom. */
#include "engine/decorator.h"

/* What was asked for. Times in ns; a feature is off when its field is 0 (SIZE_MAX for sizes). */
struct fault_settings {
	uint64_t delay_ns, jitter_ns, step_ns;
	size_t step_bytes;
	double cap_bytes_per_s;
	uint64_t corrupt_every;
	size_t premature_bytes, hang_bytes, crash_bytes;
	long endpoint; /* -1: not given */
};

int fault_settings_parse(const struct xb_setup *setup, struct fault_settings *settings,
			 struct xb_error *error);

/* Delays that were really imposed since the last report. The median comes from the last FAULT_KEPT of them.
 */
#define FAULT_KEPT 65536u
struct fault_delays {
	uint64_t count, min, max; /* ticks */
	double sum;
	uint32_t *kept;
};

/* What the backend's own call took in the warm-up, ticks: [1] with delays, [0] without. */
#define FAULT_CALLS 4096u
struct fault_calls {
	uint32_t ticks[2][FAULT_CALLS];
	uint64_t count[2], messages;
};

/* One request of the engine, by its place in endpoint->requests. */
struct fault_slot {
	unsigned char *buffer; /* of a data message that is being received; NULL: none */
	size_t bytes;
	uint64_t shadow; /* number of the request that stands in for it, from 1; 0: none */
	uint64_t before; /* stand-ins posted before it */
};

struct fault {
	struct fault *next; /* attached in this thread */
	struct xb_endpoint *endpoint;
	void *conn;
	const struct xb_hot *(*prepare)(void *conn, const struct xb_pattern *pattern, struct xb_error *error);
	const atomic_int *abort;
	struct fault_settings settings;
	int delays_here, breaks_here; /* this endpoint is one of those meant */
	/* of the block */
	struct xb_pattern pattern;
	const struct xb_hot *inner;
	struct xb_hot hot;
	uintptr_t send_end, recv_end; /* control messages lie from here on */
	uint64_t delay_ticks, jitter_ticks, random;
	/* delay */
	uint64_t hidden_ticks; /* cost of a delayed call that its own time stamps do not see; added to what is
				  recorded */
	struct fault_delays delays;
	struct fault_calls *calls;
	/* received messages */
	struct fault_slot *slots; /* XB_BLOCK_REQUESTS */
	uint64_t received, corrupted, premature;
	unsigned char *shadows; /* requests that stand in for prematurely completed ones, a ring */
	uint64_t shadow_capacity, shadow_head, shadow_tail;
};

/* delay.c */
int fault_delay(struct fault *f);
uint64_t fault_ticks(const struct fault *f);
/* Replaces the sending operations of f->hot if a delay applies to this block. */
void fault_delay_prepare(struct fault *f);
void fault_delay_calibrate(struct fault *f);
/* By how much the backend's own call takes longer after a delay than without one, ticks; 0 if too few were
 * seen. */
double fault_delay_slower(const struct fault *f);
double fault_median(uint32_t *values, size_t count);

/* receive.c: corruption and premature completion */
void fault_receive_prepare(struct fault *f);
/* break.c: hang and crash */
void fault_break_prepare(struct fault *f);

/* The fault of the block that this thread runs; why it is not reached through conn: see fault.c. */
struct fault *fault_current(void);

#endif

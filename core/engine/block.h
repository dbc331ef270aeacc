/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_BLOCK_H
#define XB_BLOCK_H
/*
 * A block: one benchmark at one size between one pair, over one transport. Both sides call xb_block_run with
 * the same xb_block but for `initiator`. In order: agree in-band, warm up, run a fixed number of iterations
 * and record each, verify outside the timed part, drain. Works over any two connected endpoints; knows
 * nothing of controller or launcher.
 */
#include <stdint.h>
#include "../transport.h"
#include "../stats/histogram.h"
#include "swap.h"
#include "timer.h"

/* An opened transport with one connection, as the engine needs it. Decorators (fault, trace) wrap it. */
struct xb_endpoint {
	const struct xb_transport *transport;
	void *context;
	void *conn;
	const struct xb_hot *(*prepare)(void *conn, const struct xb_pattern *pattern, struct xb_error *error);
	void (*explain)(void *conn, struct xb_error *error);
	size_t request_bytes;
	uint32_t caps;
	size_t max_message_bytes; /* of the transport; 0 = no limit */
	const atomic_int *abort;
	const struct xb_timer *timer;
	const atomic_int *phase; /* what the block does (enum xb_phase), for decorators; NULL: not told */
	uint64_t imposed_ns; /* by which a decorator delays a data message of the prepared pattern, at either
				end: it need not do so in the warm-up */
	/* memory of the run, registered by the owner of the endpoint */
	unsigned char *send_buffer, *recv_buffer; /* each buffer_bytes long, page aligned */
	size_t buffer_bytes; /* see xb_block_buffer_bytes */
	void *send_region, *recv_region; /* private areas filled by transport->memory */
	void *remote_send, *remote_recv; /* imported regions of the peer; NULL unless put/get */
	void *requests; /* request_bytes * XB_BLOCK_REQUESTS, zeroed, 64-byte aligned */
	uint64_t *samples; /* XB_MAX_ITERATIONS + 1 ticks */
	uint64_t *stamps; /* 2 * (XB_MAX_ITERATIONS + 1) words seen by the receiver */
	unsigned char *sweep; /* larger than the last-level cache; NULL unless a swap runs with cold caches */
	size_t sweep_bytes;
};
#define XB_MAX_WINDOW 1024u
#define XB_MAX_ITERATIONS 1000000u
/* Sends of one window and a reply; receives of two windows (one is always posted ahead) and their replies. */
#define XB_BLOCK_REQUESTS (3u * (XB_MAX_WINDOW + 2u))
/* The last page of each buffer holds control messages and replies; data messages lie below it. */
#define XB_CONTROL_BYTES 4096u

struct xb_block {
	enum xb_bench bench;
	enum xb_op op;
	size_t size_bytes;
	uint32_t window; /* bw, bibw */
	struct xb_swap swap; /* swap: size_bytes is that of one of its messages */
	uint64_t iterations; /* timed; 0 = choose so that the timed part takes about target_ns */
	uint64_t warmup; /* 0 = choose: until warm, at least 2 */
	uint64_t target_ns;
	uint64_t nonce; /* differs for every block of a run: part of the payload pattern */
	int initiator;
	/* Called on both sides before each part of the block, with the time by which that must have ended
	 * (CLOCK_MONOTONIC ns), so that a watchdog can be armed; and with 0 when the block is over. May be
	 * NULL. */
	void (*deadline)(void *user, uint64_t monotonic_ns);
	void *user;
};

/* Where a block is, for a watchdog that has to say what hung. Written with relaxed stores outside timed
 * loops. */
enum xb_phase {
	XB_PHASE_IDLE,
	XB_PHASE_AGREE,
	XB_PHASE_WARMUP,
	XB_PHASE_TIMED,
	XB_PHASE_VERIFY,
	XB_PHASE_DRAIN
};
extern atomic_int xb_block_phase;
const char *xb_phase_name(int phase);

struct xb_block_result {
	uint64_t iterations, warmup; /* for bw and bibw an iteration is a window */
	uint64_t messages,
		payload_bytes; /* sent by this side in the whole block, warm-up and verification included */
	uint64_t elapsed_ns; /* of the timed part, initiator only */
	/* initiator only: per-iteration times in ns, already in the unit of the benchmark:
	 * ping-pong: half the round trip (send, write-poll), or the whole operation until remote visibility
	 * (write, read); bw, bibw: window time divided by the number of messages one side sent in it; swap:
	 * the swap of all messages in both directions. */
	double median_ns;
	struct xb_histogram histogram;
	int verified; /* 1: every check passed on this side; 0: nothing could be checked */
	uint64_t checked_messages; /* how many messages were checked on this side */
	long minor_faults, voluntary_switches, involuntary_switches; /* getrusage deltas of the timed part */
};

/* Bytes that each of the two buffers needs for messages up to max_message_bytes: a multiple of 4096, at least
 * 260 KiB. */
size_t xb_block_buffer_bytes(size_t max_message_bytes);

/* Bytes to sweep through so that nothing stays in caches of which the last holds so many (0: not known). */
size_t xb_block_sweep_bytes(size_t last_level_cache_bytes);

/*
 * Messages per iteration and direction that a block uses: 1 for ping-pong, else the window, but no more than
 * make 256 MiB and at least 2: with messages of seconds a deeper window measures nothing more.
 */
uint32_t xb_block_window(const struct xb_block *block);

/* Most sends, and most receives, that a block with this window has outstanding: what xb_setup.max_outstanding
 * must say. */
uint32_t xb_block_outstanding(uint32_t window);

/*
 * Runs one block. Returns 0, or a negative status with *error: XB_E_ABORTED, XB_E_CORRUPT (payload differs:
 * offset, expected, found, and whether it looks like a stale or a premature buffer), XB_E_UNSUPPORTED /
 * XB_E_USAGE (cannot be done here: size over the transport's limit, missing capability; nothing was sent), or
 * what the transport reported.
 */
int xb_block_run(struct xb_endpoint *endpoint, const struct xb_block *block, struct xb_block_result *result,
		 struct xb_error *error);

/* Checks what xb_block_run would refuse, without running: capability, size limit, window. */
int xb_block_check(const struct xb_endpoint *endpoint, const struct xb_block *block, struct xb_error *error);

const char *xb_bench_name(enum xb_bench bench); /* "pingpong" */
const char *xb_op_name(enum xb_op op); /* "send" */

#endif

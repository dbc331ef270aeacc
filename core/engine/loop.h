/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_LOOP_H
#define XB_LOOP_H
/*
 * The timed loops. They are the same for every transport, and contain nothing but hot operations, one timer
 * read per iteration (distance of consecutive reads = one iteration) and the plain stores and loads of
 * stamps: no allocation, no log, no branch on an option, no call of ours. Each is instantiated per timer
 * source, and without a timer for the side that does not keep time.
 *
 * Order of operations, and why:
 *
 * ping-pong, initiator   one receive posted ahead; send · recv of the next · wait(send) · wait(recv) · [time]
 *            responder   two receives posted ahead; wait(recv) · send · recv of the one after the next ·
 * wait(send)
 *   Each side posts behind its own send, while the message is in flight, so that posting costs nothing on the
 * path that is timed and the reply leaves as early as it can; and it posts one message ahead, so that the
 * receive is there a round trip before its message can be sent. A receive posted for the reply to the very
 * send before it would race with that reply: a fabric that carries messages out within the call that sends
 * them (soft-RoCE, shared memory) wins, and the message is refused (RNR) or unexpected. perftest keeps
 * receives posted ahead as well. Posting the receive before the send, as fabtests do, puts it on the timed
 * path (fabtests issue 10394).
 *
 * bw, initiator          the reply's receive posted ahead; W sends · recv of the next reply · wait_all(sends)
 * · wait(reply) · [time] responder          two windows of receives posted ahead; wait_all(window w) · send
 * the reply · W receives of window w+2 · wait(reply sent) The next window is always posted when its first
 * message can arrive, and posting is not between the last message of a window and its reply.
 *
 * bibw, both             two windows of receives and their replies posted ahead;
 *                        W sends · wait_all(sends) · wait_all(window w) · send reply · receives of window w+2
 * and of its reply · wait(reply sent) · wait(reply w) · [time]
 *
 * write, read            W puts (gets) · flush · wait_all · [time]; the other side waits in recv, thus
 * progresses both ways            then, per window: send done · recv of the next done · wait(sent) ·
 * wait(done w) · [time]
 *
 * write-poll, initiator  put · watch · wait(put) · [time]
 *             responder  watch · put · wait(put)
 *   As ib_write_lat and ucx_perftest's put latency do. A put has long completed when the reply to it is seen.
 *
 * swap                   see loops_swap.c: there each swap has its own two readings
 *
 * Windows are sent from and received into one place of the buffer, as OSU and ucx_perftest do: their cache
 * footprint is that of one message.
 */
#include "block.h"
#include "payload.h"

struct xb_loop {
	const struct xb_hot *hot;
	void *conn;
	unsigned char *send, *recv; /* data messages */
	unsigned char *reply_send, *reply_recv; /* XB_AGREE_BYTES each; four slots of reply_recv in turn */
	void *send_region, *recv_region, *remote_send, *remote_recv;
	size_t size, tail; /* tail: offset of the second stamp */
	uint32_t window;
	size_t stride; /* of requests */
	unsigned char *send_requests; /* window */
	unsigned char *reply_send_request;
	unsigned char *recv_requests[2]; /* window each */
	unsigned char *reply_recv_requests; /* 4 */
	uint64_t stamp; /* of my first message of this step */
	uint64_t expected; /* write-poll: the peer's first, and where to look for it */
	struct xb_spot watch;
	uint64_t *samples; /* n + 1 ticks, initiator */
	uint64_t *stamps; /* 2 words per iteration: of the last message received in it */
	/* swap */
	uint32_t messages, repeats; /* of a swap; swaps between two readings of the clock */
	xb_swap_train train;
	unsigned char *signal_send, *signal_recv;
	struct xb_run *run; /* for what happens between the swaps */
};

typedef int (*xb_loop_fn)(const struct xb_loop *loop, uint64_t n);

/* What one side has to do: before it tells the other to start, and then. Each function returns 0 or a hot
 * status. */
struct xb_loop_pair {
	xb_loop_fn post; /* receives posted ahead; NULL: none */
	xb_loop_fn run; /* NULL: nothing, wait for the next control message */
};

/* The loops of a benchmark and operation on one side, with the timer source instantiated on the initiator. */
struct xb_loop_pair xb_loops_send(enum xb_bench bench, int initiator, enum xb_timer_source source);
struct xb_loop_pair xb_loops_swap(int initiator, enum xb_timer_source source);
struct xb_loop_pair xb_loops_onesided(enum xb_bench bench, enum xb_op op, int initiator,
				      enum xb_timer_source source);

/* --- for the loops themselves */
#define XB_HOT static inline __attribute__((always_inline))
enum { XB_TIMED_TSC = XB_TIMER_TSC, XB_TIMED_CLOCK = XB_TIMER_CLOCK, XB_UNTIMED = -1 };

XB_HOT void xb_loop_time(uint64_t *sample, const int source)
{
	if (source == XB_TIMED_TSC)
		*sample = xb_ticks_tsc();
	else if (source == XB_TIMED_CLOCK)
		*sample = xb_ticks_clock();
}

/* Hot operations fail at most once per connection: out of line, and the loop ends. */
#define XB_DO(operation)                                                                                     \
	do {                                                                                                 \
		int status_ = (operation);                                                                   \
		if (__builtin_expect(status_ < 0, 0))                                                        \
			return status_;                                                                      \
	} while (0)

/* Defines name_tsc, name_clock and name_untimed from the inline body name_body(loop, n, source). */
#define XB_LOOP_INSTANCES(name)                                                                              \
	static int name##_tsc(const struct xb_loop *l, uint64_t n)                                           \
	{                                                                                                    \
		return name##_body(l, n, XB_TIMED_TSC);                                                      \
	}                                                                                                    \
	static int name##_clock(const struct xb_loop *l, uint64_t n)                                         \
	{                                                                                                    \
		return name##_body(l, n, XB_TIMED_CLOCK);                                                    \
	}
#define XB_LOOP_TIMED(name, source) ((source) == XB_TIMER_TSC ? name##_tsc : name##_clock)

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_SWAP_H
#define XB_SWAP_H
/*
 * The swap benchmark (COMMTEST of P. Worley): two endpoints exchange `total` bytes in each direction, cut
 * into `messages` messages that are swapped one after the other by one of eleven protocols. Endpoint 0 is
 * "lo", the side that sends first in the ordered swap; it keeps time.
 */
#include <stddef.h>
#include <stdint.h>

#include "../error.h"

#define XB_SWAP_PROTOCOLS 11u
#define XB_SWAP_TEN_SWAPS 10u
#define XB_SWAP_SIGNAL_BYTES 8u /* one REAL*8, its value means nothing */
#define XB_SWAP_SMALLEST_BYTES 8u /* of a message: one REAL*8 */

enum xb_swap_order {
	XB_SWAP_ORDERED, /* one direction at a time: lo sends, hi answers */
	XB_SWAP_UNORDERED, /* both send, then receive */
	XB_SWAP_DELAYED, /* both send; receives are completed in stage 3 */
	XB_SWAP_ORDERS
};
enum xb_swap_mode {
	XB_SWAP_COLD, /* "cache inv.": caches are swept before each timed swap */
	XB_SWAP_ONE, /* "1 iter.": one timed swap, buffers warm */
	XB_SWAP_TEN, /* "10 iter.": ten swaps between one pair of clock readings, divided by ten */
	XB_SWAP_MODES
};

struct xb_swap {
	uint8_t protocol, order, mode, overlap;
	uint32_t messages; /* in each direction */
	uint32_t depth; /* with overlap: messages in a batch; 0 = all */
};

const char *xb_swap_order_name(unsigned order); /* "ordered" */
const char *xb_swap_mode_name(unsigned mode); /* "cache inv." */
/* Title of the published report, "ordered swap using nonblocking send"; for the other orders without
 * "ordered". */
const char *xb_swap_title(unsigned order, unsigned protocol);
/* Does the protocol exist in this order? In the sentence: why not. */
int xb_swap_exists(unsigned order, unsigned protocol, const char **why);
/* Has it stages that can be spread over several messages? {1,2,3,4,5,7,8,9} in every order. */
int xb_swap_overlaps(unsigned protocol);
/* Capabilities that it needs (XB_CAP_*). */
uint32_t xb_swap_caps(const struct xb_swap *swap);
/* Messages that pass the stages together: 1 without overlap, else the depth, at most XB_MAX_WINDOW. */
uint32_t xb_swap_batch(const struct xb_swap *swap);
/* Does it use synchronous sends; is every send, every receive completed at once? */
int xb_swap_sync_sends(const struct xb_swap *swap);
int xb_swap_blocking_sends(const struct xb_swap *swap);
int xb_swap_blocking_receives(const struct xb_swap *swap);
/* Does it start operations of which it waits for some later: not for XB_CAP_BLOCKING? */
int xb_swap_waits_later(const struct xb_swap *swap);
/* "protocol 4 ordered, 1 iter., 16 messages, batches of 8": for logs. */
void xb_swap_text(const struct xb_swap *swap, char *text, size_t bytes);
/* The operations of a stage (0 ... 3) of one side, blanks between them: "IRECV SEND_SIGNAL"; NULL if there is
 * no such protocol. hi: 1 for the side that does not keep time. */
const char *xb_swap_stage(unsigned order, unsigned protocol, int hi, unsigned stage);

/* --- between the engine's files */
struct xb_run;
struct xb_loop;
typedef int (*xb_swap_train)(const struct xb_loop *loop);
/* One swap of all messages; NULL if there is no such protocol. */
xb_swap_train xb_swap_train_of(unsigned order, unsigned protocol, int hi);
/* Outside the clock, before and after the timed swap number `sample` of a step, on both sides. */
void xb_swap_before(struct xb_run *run, uint64_t sample);
void xb_swap_after(struct xb_run *run, uint64_t sample);
/* All bytes of the last swap of a step of n. */
void xb_swap_check_last(struct xb_run *run, uint64_t n);
/* Contents of the send buffer, poison in the receive buffer. */
void xb_swap_fill(struct xb_run *run);
/* XB_E_USAGE when the parameters make no sense. */
int xb_swap_check(const struct xb_swap *swap, size_t size_bytes, struct xb_error *error);
uint64_t xb_swap_pack(const struct xb_swap *swap); /* for the agreement of both sides */

#endif

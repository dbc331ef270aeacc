/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of the swap: one function per order, side and protocol, made from swap_protocols.inc. Between two
 * readings of the clock there is nothing but hot operations; what is sent is stamped before, what came is
 * looked at after (xb_swap_before, xb_swap_after).
 *
 * Each timed swap begins like this, outside the clock but for the last step:
 *
 *   initiator   prepares; wait(ready) · go · [time] · swap · [time] · receive of the next ready
 *   responder   prepares; ready · wait(go) · swap · receive of the next go
 *
 * so that the responder neither sends before the clock runs nor is late because it was still preparing.
 */
#include "loop.h"
#include "swap.h"

XB_HOT unsigned char *data_send_request(const struct xb_loop *l, uint32_t slot)
{
	return l->send_requests + slot * l->stride;
}

XB_HOT unsigned char *data_recv_request(const struct xb_loop *l, uint32_t slot)
{
	return l->recv_requests[0] + slot * l->stride;
}

XB_HOT unsigned char *signal_request(const struct xb_loop *l, uint32_t slot)
{
	return l->recv_requests[1] + slot * l->stride;
}

XB_HOT int start(const struct xb_loop *l, int (*send)(void *, const void *, size_t, void *, void *),
		 uint32_t message, uint32_t slot)
{
	return send(l->conn, l->send + message * l->size, l->size, l->send_region,
		    data_send_request(l, slot));
}

XB_HOT int post(const struct xb_loop *l, const struct xb_hot *hot, uint32_t message, uint32_t slot)
{
	return hot->recv(l->conn, l->recv + message * l->size, l->size, l->recv_region,
			 data_recv_request(l, slot));
}

XB_HOT int send_signal(const struct xb_loop *l, const struct xb_hot *hot)
{
	XB_DO(hot->send(l->conn, l->signal_send, XB_SWAP_SIGNAL_BYTES, l->send_region,
			l->reply_send_request));
	return hot->wait(l->conn, l->reply_send_request);
}

/* The operations of swap_protocols.inc, on message i of the batch that begins at `first`. */
#define ISEND XB_DO(start(l, hot.send, i, i - first));
#define ISSEND XB_DO(start(l, hot.send_sync, i, i - first));
#define IRSEND XB_DO(start(l, hot.send_ready, i, i - first));
#define WAIT_SEND XB_DO(hot.wait(l->conn, data_send_request(l, i - first)));
#define SEND ISEND WAIT_SEND
#define SSEND ISSEND WAIT_SEND
#define RSEND IRSEND WAIT_SEND
#define IRECV XB_DO(post(l, &hot, i, i - first));
#define WAIT_RECV XB_DO(hot.wait(l->conn, data_recv_request(l, i - first)));
#define RECV IRECV WAIT_RECV
#define SENDRECV IRECV SEND WAIT_RECV
#define POST_SIGNAL                                                                                          \
	XB_DO(hot.recv(l->conn, l->signal_recv, XB_SWAP_SIGNAL_BYTES, l->recv_region,                        \
		       signal_request(l, i - first)));
#define RECV_SIGNAL XB_DO(hot.wait(l->conn, signal_request(l, i - first)));
#define SEND_SIGNAL XB_DO(send_signal(l, &hot));
#define EACH(stage)                                                                                          \
	for (uint32_t i = first; i < end; i++) {                                                             \
		stage                                                                                        \
	}

#define SWAP_TRAIN(order, side, protocol, stage0, stage1, stage2, stage3)                                    \
	static int order##_##side##_##protocol(const struct xb_loop *l)                                      \
	{                                                                                                    \
		const struct xb_hot hot = *l->hot;                                                           \
		const uint32_t messages = l->messages, batch = l->window;                                    \
                                                                                                             \
		for (uint32_t first = 0, end; first < messages; first = end) {                               \
			end = messages - first < batch ? messages : first + batch;                           \
			EACH(stage0)                                                                         \
			EACH(stage1)                                                                         \
			EACH(stage2)                                                                         \
			EACH(stage3)                                                                         \
		}                                                                                            \
		return 0;                                                                                    \
	}
#include "swap_protocols.inc"
#undef SWAP_TRAIN

xb_swap_train xb_swap_train_of(unsigned order, unsigned protocol, int hi)
{
	enum { lo_side, hi_side };
	/* as the lines stand: a later side "both" fills both places */
	static const xb_swap_train table[XB_SWAP_ORDERS][XB_SWAP_PROTOCOLS][2] = {
#define ORDER_ordered XB_SWAP_ORDERED
#define ORDER_unordered XB_SWAP_UNORDERED
#define ORDER_delayed XB_SWAP_DELAYED
#define PLACE_lo(order, protocol) [ORDER_##order][protocol][lo_side] = order##_lo_##protocol,
#define PLACE_hi(order, protocol) [ORDER_##order][protocol][hi_side] = order##_hi_##protocol,
#define PLACE_both(order, protocol)                                                                          \
	[ORDER_##order][protocol] = {order##_both_##protocol, order##_both_##protocol},
#define SWAP_TRAIN(order, side, protocol, stage0, stage1, stage2, stage3) PLACE_##side(order, protocol)
#include "swap_protocols.inc"
#undef SWAP_TRAIN
	};
	if (order >= XB_SWAP_ORDERS || protocol >= XB_SWAP_PROTOCOLS)
		return NULL;
	return table[order][protocol][!!hi];
}

/* --- a step of n timed swaps */

static int post_word(const struct xb_loop *l)
{
	return l->hot->recv(l->conn, l->reply_recv, XB_AGREE_BYTES, l->recv_region, l->reply_recv_requests);
}

static int post_first_word(const struct xb_loop *l, uint64_t n)
{
	(void)n;
	return post_word(l);
}

static int wait_word(const struct xb_loop *l)
{
	return l->hot->wait(l->conn, l->reply_recv_requests);
}

static int send_word(const struct xb_loop *l)
{
	XB_DO(l->hot->send(l->conn, l->reply_send, XB_AGREE_BYTES, l->send_region, l->reply_send_request));
	return l->hot->wait(l->conn, l->reply_send_request);
}

/* The word that begins the next swap is posted as soon as no receive of this one is to come before it. */
static int end_swap(const struct xb_loop *l, uint64_t k, uint64_t n)
{
	if (k + 1 < n)
		XB_DO(post_word(l));
	xb_swap_after(l->run, k);
	return 0;
}

XB_HOT int initiator_body(const struct xb_loop *l, uint64_t n, const int source)
{
	uint64_t *sample = l->samples, begin = 0, end = 0;

	*sample = 0; /* samples add up, so that differences are swaps as in the other benchmarks */
	for (uint64_t k = 0; k < n; k++) {
		xb_swap_before(l->run, k);
		XB_DO(wait_word(l));
		XB_DO(send_word(l));
		xb_loop_time(&begin, source);
		for (uint32_t repeat = 0; repeat < l->repeats; repeat++)
			XB_DO(l->train(l));
		xb_loop_time(&end, source);
		sample[1] = sample[0] + (end - begin);
		sample++;
		XB_DO(end_swap(l, k, n));
	}
	return 0;
}
XB_LOOP_INSTANCES(initiator)

static int responder(const struct xb_loop *l, uint64_t n)
{
	for (uint64_t k = 0; k < n; k++) {
		xb_swap_before(l->run, k);
		XB_DO(send_word(l));
		XB_DO(wait_word(l));
		for (uint32_t repeat = 0; repeat < l->repeats; repeat++)
			XB_DO(l->train(l));
		XB_DO(end_swap(l, k, n));
	}
	return 0;
}

struct xb_loop_pair xb_loops_swap(int is_initiator, enum xb_timer_source source)
{
	return (struct xb_loop_pair){post_first_word,
				     is_initiator ? XB_LOOP_TIMED(initiator, source) : responder};
}

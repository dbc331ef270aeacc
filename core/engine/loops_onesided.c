/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over put, get and flush; their order is explained in loop.h. */
#include "loop.h"

XB_HOT int write_window(const struct xb_loop *l, const struct xb_hot *hot, uint64_t w)
{
	unsigned char *request = l->send_requests;

	xb_stamp_write(l->send, l->tail, l->stamp + w * XB_STAMP_STEP);
	for (uint32_t k = 0; k < l->window; k++, request += l->stride)
		XB_DO(hot->put(l->conn, l->send, l->size, l->send_region, l->remote_recv, 0, request));
	XB_DO(hot->flush(l->conn));
	return hot->wait_all(l->conn, l->send_requests, l->window);
}

/* What is read stays the same, so each read first spoils the two words in which it will be noticed. */
XB_HOT int read_window(const struct xb_loop *l, const struct xb_hot *hot, uint64_t w)
{
	unsigned char *request = l->recv_requests[0];

	xb_stamp_write(l->recv, l->tail, XB_POISON_WORD);
	for (uint32_t k = 0; k < l->window; k++, request += l->stride)
		XB_DO(hot->get(l->conn, l->recv, l->size, l->recv_region, l->remote_send, 0, request));
	XB_DO(hot->flush(l->conn));
	XB_DO(hot->wait_all(l->conn, l->recv_requests[0], l->window));
	xb_stamp_read(l->recv, l->tail, l->stamps + 2 * w);
	return 0;
}

/* --- one side works, the other waits for the next control message */

XB_HOT int write_body(const struct xb_loop *l, uint64_t n, const int source)
{
	const struct xb_hot hot = *l->hot;
	uint64_t *sample = l->samples;

	xb_loop_time(sample, source);
	for (uint64_t w = 0; w < n; w++) {
		XB_DO(write_window(l, &hot, w));
		xb_loop_time(++sample, source);
	}
	return 0;
}
XB_LOOP_INSTANCES(write)

XB_HOT int read_body(const struct xb_loop *l, uint64_t n, const int source)
{
	const struct xb_hot hot = *l->hot;
	uint64_t *sample = l->samples;

	xb_loop_time(sample, source);
	for (uint64_t w = 0; w < n; w++) {
		XB_DO(read_window(l, &hot, w));
		xb_loop_time(++sample, source);
	}
	return 0;
}
XB_LOOP_INSTANCES(read)

/* --- both at once */

XB_HOT int post_done(const struct xb_loop *l, const struct xb_hot *hot, uint64_t w)
{
	return hot->recv(l->conn, l->reply_recv + (w & 3) * XB_AGREE_BYTES, XB_AGREE_BYTES, l->recv_region,
			 l->reply_recv_requests + (w & 3) * l->stride);
}

static int both_post(const struct xb_loop *l, uint64_t n)
{
	(void)n;
	return post_done(l, l->hot, 0);
}

XB_HOT int exchange_done(const struct xb_loop *l, const struct xb_hot *hot, uint64_t w, const int post)
{
	XB_DO(hot->send(l->conn, l->reply_send, XB_AGREE_BYTES, l->send_region, l->reply_send_request));
	if (post)
		XB_DO(post_done(l, hot, w + 1));
	XB_DO(hot->wait(l->conn, l->reply_send_request));
	return hot->wait(l->conn, l->reply_recv_requests + (w & 3) * l->stride);
}

XB_HOT int both_body(const struct xb_loop *l, uint64_t n, const int source, const int writes)
{
	const struct xb_hot hot = *l->hot;
	uint64_t *sample = l->samples;
	uint64_t w = 0;

	xb_loop_time(sample, source);
	for (; w + 1 < n; w++) {
		XB_DO(writes ? write_window(l, &hot, w) : read_window(l, &hot, w));
		XB_DO(exchange_done(l, &hot, w, 1));
		xb_loop_time(++sample, source);
	}
	XB_DO(writes ? write_window(l, &hot, w) : read_window(l, &hot, w));
	XB_DO(exchange_done(l, &hot, w, 0));
	xb_loop_time(++sample, source);
	return 0;
}

XB_HOT int write_both_body(const struct xb_loop *l, uint64_t n, const int source)
{
	return both_body(l, n, source, 1);
}
XB_LOOP_INSTANCES(write_both)

static int write_both_untimed(const struct xb_loop *l, uint64_t n)
{
	return both_body(l, n, XB_UNTIMED, 1);
}

XB_HOT int read_both_body(const struct xb_loop *l, uint64_t n, const int source)
{
	return both_body(l, n, source, 0);
}
XB_LOOP_INSTANCES(read_both)

static int read_both_untimed(const struct xb_loop *l, uint64_t n)
{
	return both_body(l, n, XB_UNTIMED, 0);
}

/* --- both write and watch their memory */

/* What is watched for must not be there already: a message of one byte looks like one in 256 of those before.
 */
static int poll_post(const struct xb_loop *l, uint64_t n)
{
	const int alike = ((XB_POISON_WORD ^ l->expected) & l->watch.tail_mask) == 0;

	(void)n;
	xb_stamp_write(l->recv, l->tail, alike ? ~XB_POISON_WORD : XB_POISON_WORD);
	return 0;
}

XB_HOT int put_one(const struct xb_loop *l, const struct xb_hot *hot, uint64_t i)
{
	xb_stamp_write(l->send, l->tail, l->stamp + i * XB_STAMP_STEP);
	return hot->put(l->conn, l->send, l->size, l->send_region, l->remote_recv, 0, l->send_requests);
}

XB_HOT int watch_one(const struct xb_loop *l, const struct xb_hot *hot, uint64_t i, uint64_t *words)
{
	XB_DO(hot->watch(l->conn, &l->watch, l->expected + i * XB_STAMP_STEP));
	xb_stamp_read(l->recv, l->tail, words);
	return 0;
}

XB_HOT int poll_initiator_body(const struct xb_loop *l, uint64_t n, const int source)
{
	const struct xb_loop mine = *l;
	const struct xb_hot hot = *l->hot;
	uint64_t *words = l->stamps, *sample = l->samples;

	xb_loop_time(sample, source);
	for (uint64_t i = 0; i < n; i++, words += 2) {
		XB_DO(put_one(&mine, &hot, i));
		XB_DO(watch_one(&mine, &hot, i, words));
		XB_DO(hot.wait(mine.conn, mine.send_requests));
		xb_loop_time(++sample, source);
	}
	return 0;
}
XB_LOOP_INSTANCES(poll_initiator)

static int poll_responder(const struct xb_loop *l, uint64_t n)
{
	const struct xb_loop mine = *l;
	const struct xb_hot hot = *l->hot;
	uint64_t *words = l->stamps;

	for (uint64_t i = 0; i < n; i++, words += 2) {
		XB_DO(watch_one(&mine, &hot, i, words));
		XB_DO(put_one(&mine, &hot, i));
		XB_DO(hot.wait(mine.conn, mine.send_requests));
	}
	return 0;
}

struct xb_loop_pair xb_loops_onesided(enum xb_bench bench, enum xb_op op, int initiator,
				      enum xb_timer_source source)
{
	if (op == XB_OP_WRITE_POLL)
		return (struct xb_loop_pair){poll_post, initiator ? XB_LOOP_TIMED(poll_initiator, source)
								  : poll_responder};
	if (bench == XB_BENCH_BIBW && op == XB_OP_WRITE)
		return (struct xb_loop_pair){both_post, initiator ? XB_LOOP_TIMED(write_both, source)
								  : write_both_untimed};
	if (bench == XB_BENCH_BIBW)
		return (struct xb_loop_pair){both_post, initiator ? XB_LOOP_TIMED(read_both, source)
								  : read_both_untimed};
	if (!initiator)
		return (struct xb_loop_pair){NULL, NULL};
	return (struct xb_loop_pair){NULL, op == XB_OP_WRITE ? XB_LOOP_TIMED(write, source)
							     : XB_LOOP_TIMED(read, source)};
}

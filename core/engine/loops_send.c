/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over send and recv; their order is explained in loop.h. */
#include "loop.h"

/* --- ping-pong: message i is received by request i & 1, since the next one is already posted */

static int pingpong_post(const struct xb_loop *l, uint64_t n, uint64_t ahead)
{
	for (uint64_t i = 0; i < n && i < ahead; i++)
		XB_DO(l->hot->recv(l->conn, l->recv, l->size, l->recv_region, l->recv_requests[i & 1]));
	return 0;
}

static int pingpong_initiator_post(const struct xb_loop *l, uint64_t n)
{
	return pingpong_post(l, n, 1);
}

static int pingpong_responder_post(const struct xb_loop *l, uint64_t n)
{
	return pingpong_post(l, n, 2);
}

XB_HOT int ping(const struct xb_loop *l, const struct xb_hot *hot, uint64_t i, uint64_t *words,
		const int post)
{
	xb_stamp_write(l->send, l->tail, l->stamp + i * XB_STAMP_STEP);
	XB_DO(hot->send(l->conn, l->send, l->size, l->send_region, l->send_requests));
	if (post)
		XB_DO(hot->recv(l->conn, l->recv, l->size, l->recv_region, l->recv_requests[(i + 1) & 1]));
	XB_DO(hot->wait(l->conn, l->send_requests));
	XB_DO(hot->wait(l->conn, l->recv_requests[i & 1]));
	xb_stamp_read(l->recv, l->tail, words);
	return 0;
}

XB_HOT int pingpong_initiator_body(const struct xb_loop *l, uint64_t n, const int source)
{
	const struct xb_loop mine = *l;
	const struct xb_hot hot = *l->hot;
	uint64_t *words = l->stamps, *sample = l->samples;
	uint64_t i = 0;

	xb_loop_time(sample, source);
	for (; i + 1 < n; i++, words += 2) {
		XB_DO(ping(&mine, &hot, i, words, 1));
		xb_loop_time(++sample, source);
	}
	/* the last one has no next */
	XB_DO(ping(&mine, &hot, i, words, 0));
	xb_loop_time(++sample, source);
	return 0;
}
XB_LOOP_INSTANCES(pingpong_initiator)

XB_HOT int pong(const struct xb_loop *l, const struct xb_hot *hot, uint64_t i, uint64_t *words,
		const int post)
{
	XB_DO(hot->wait(l->conn, l->recv_requests[i & 1]));
	xb_stamp_read(l->recv, l->tail, words);
	xb_stamp_write(l->send, l->tail, l->stamp + i * XB_STAMP_STEP);
	XB_DO(hot->send(l->conn, l->send, l->size, l->send_region, l->send_requests));
	if (post)
		XB_DO(hot->recv(l->conn, l->recv, l->size, l->recv_region, l->recv_requests[i & 1]));
	return hot->wait(l->conn, l->send_requests);
}

static int pingpong_responder(const struct xb_loop *l, uint64_t n)
{
	const struct xb_loop mine = *l;
	const struct xb_hot hot = *l->hot;
	uint64_t *words = l->stamps;
	uint64_t i = 0;

	for (; i + 2 < n; i++, words += 2)
		XB_DO(pong(&mine, &hot, i, words, 1));
	for (; i < n; i++, words += 2)
		XB_DO(pong(&mine, &hot, i, words, 0));
	return 0;
}

/* --- windows */

XB_HOT int send_window(const struct xb_loop *l, const struct xb_hot *hot)
{
	unsigned char *request = l->send_requests;
	for (uint32_t k = 0; k < l->window; k++, request += l->stride)
		XB_DO(hot->send(l->conn, l->send, l->size, l->send_region, request));
	return 0;
}

XB_HOT int post_window(const struct xb_loop *l, const struct xb_hot *hot, uint64_t w)
{
	unsigned char *request = l->recv_requests[w & 1];
	for (uint32_t k = 0; k < l->window; k++, request += l->stride)
		XB_DO(hot->recv(l->conn, l->recv, l->size, l->recv_region, request));
	return 0;
}

XB_HOT unsigned char *reply_request(const struct xb_loop *l, uint64_t w)
{
	return l->reply_recv_requests + (w & 3) * l->stride;
}

XB_HOT unsigned char *reply_slot(const struct xb_loop *l, uint64_t w)
{
	return l->reply_recv + (w & 3) * XB_AGREE_BYTES;
}

XB_HOT int post_reply(const struct xb_loop *l, const struct xb_hot *hot, uint64_t w)
{
	return hot->recv(l->conn, reply_slot(l, w), XB_AGREE_BYTES, l->recv_region, reply_request(l, w));
}

XB_HOT int send_reply(const struct xb_loop *l, const struct xb_hot *hot, uint64_t stamp)
{
	xb_stamp_write(l->reply_send, XB_AGREE_BYTES - 8, stamp);
	return hot->send(l->conn, l->reply_send, XB_AGREE_BYTES, l->send_region, l->reply_send_request);
}

/* --- bw */

static int bw_initiator_post(const struct xb_loop *l, uint64_t n)
{
	(void)n;
	return post_reply(l, l->hot, 0);
}

XB_HOT int bw_initiator_body(const struct xb_loop *l, uint64_t n, const int source)
{
	const struct xb_hot hot = *l->hot;
	uint64_t *words = l->stamps, *sample = l->samples;
	uint64_t stamp = l->stamp;

	xb_loop_time(sample, source);
	for (uint64_t w = 0; w < n; w++) {
		xb_stamp_write(l->send, l->tail, stamp);
		XB_DO(send_window(l, &hot));
		if (w + 1 < n)
			XB_DO(post_reply(l, &hot, w + 1));
		XB_DO(hot.wait_all(l->conn, l->send_requests, l->window));
		XB_DO(hot.wait(l->conn, reply_request(l, w)));
		xb_stamp_read(reply_slot(l, w), XB_AGREE_BYTES - 8, words);
		xb_loop_time(++sample, source);
		words += 2;
		stamp += XB_STAMP_STEP;
	}
	return 0;
}
XB_LOOP_INSTANCES(bw_initiator)

static int bw_responder_post(const struct xb_loop *l, uint64_t n)
{
	XB_DO(post_window(l, l->hot, 0));
	return n > 1 ? post_window(l, l->hot, 1) : 0;
}

XB_HOT int bw_responder_window(const struct xb_loop *l, const struct xb_hot *hot, uint64_t w, const int post)
{
	XB_DO(hot->wait_all(l->conn, l->recv_requests[w & 1], l->window));
	xb_stamp_read(l->recv, l->tail, l->stamps + 2 * w);
	XB_DO(send_reply(l, hot, l->stamp + w * XB_STAMP_STEP));
	if (post)
		XB_DO(post_window(l, hot, w));
	return hot->wait(l->conn, l->reply_send_request);
}

static int bw_responder(const struct xb_loop *l, uint64_t n)
{
	const struct xb_hot hot = *l->hot;
	uint64_t w = 0;

	for (; w + 2 < n; w++)
		XB_DO(bw_responder_window(l, &hot, w, 1));
	for (; w < n; w++)
		XB_DO(bw_responder_window(l, &hot, w, 0));
	return 0;
}

/* --- bibw */

static int bibw_post(const struct xb_loop *l, uint64_t n)
{
	for (uint64_t w = 0; w < n && w < 2; w++) {
		XB_DO(post_window(l, l->hot, w));
		XB_DO(post_reply(l, l->hot, w));
	}
	return 0;
}

XB_HOT int bibw_window(const struct xb_loop *l, const struct xb_hot *hot, uint64_t w, const int post)
{
	const uint64_t stamp = l->stamp + w * XB_STAMP_STEP;

	xb_stamp_write(l->send, l->tail, stamp);
	XB_DO(send_window(l, hot));
	XB_DO(hot->wait_all(l->conn, l->send_requests, l->window));
	XB_DO(hot->wait_all(l->conn, l->recv_requests[w & 1], l->window));
	xb_stamp_read(l->recv, l->tail, l->stamps + 2 * w);
	XB_DO(send_reply(l, hot, stamp));
	if (post) {
		XB_DO(post_window(l, hot, w));
		XB_DO(post_reply(l, hot, w + 2));
	}
	XB_DO(hot->wait(l->conn, l->reply_send_request));
	return hot->wait(l->conn, reply_request(l, w));
}

XB_HOT int bibw_body(const struct xb_loop *l, uint64_t n, const int source)
{
	const struct xb_hot hot = *l->hot;
	uint64_t *sample = l->samples;
	uint64_t w = 0;

	xb_loop_time(sample, source);
	for (; w + 2 < n; w++) {
		XB_DO(bibw_window(l, &hot, w, 1));
		xb_loop_time(++sample, source);
	}
	for (; w < n; w++) {
		XB_DO(bibw_window(l, &hot, w, 0));
		xb_loop_time(++sample, source);
	}
	return 0;
}
XB_LOOP_INSTANCES(bibw)

static int bibw_untimed(const struct xb_loop *l, uint64_t n)
{
	return bibw_body(l, n, XB_UNTIMED);
}

struct xb_loop_pair xb_loops_send(enum xb_bench bench, int initiator, enum xb_timer_source source)
{
	switch (bench) {
	case XB_BENCH_PINGPONG:
		return initiator ? (struct xb_loop_pair){pingpong_initiator_post,
							 XB_LOOP_TIMED(pingpong_initiator, source)}
				 : (struct xb_loop_pair){pingpong_responder_post, pingpong_responder};
	case XB_BENCH_BW:
		return initiator
			       ? (struct xb_loop_pair){bw_initiator_post, XB_LOOP_TIMED(bw_initiator, source)}
			       : (struct xb_loop_pair){bw_responder_post, bw_responder};
	case XB_BENCH_BIBW:
		return (struct xb_loop_pair){bibw_post,
					     initiator ? XB_LOOP_TIMED(bibw, source) : bibw_untimed};
	case XB_BENCH_SWAP:
		break;
	}
	return (struct xb_loop_pair){NULL, NULL};
}

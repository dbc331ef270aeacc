/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw bytes: no header, since both ends know the length of every message. A message costs one send() and one
 * recv(), as long as the socket buffers take it in one piece. The tables differ in how they wait, and are
 * chosen in prepare.
 *
 * A posted receive makes no system call: the data cannot be there yet when the receive is posted ahead. A
 * send is tried at once. What does not fit goes to the queue, and every wait moves both queues, so that two
 * ends that send to each other cannot block each other. The abort flag is looked at only after a call that
 * moved nothing.
 */
#include <errno.h>
#include <poll.h>

#include "tcp.h"

int tcp_failure_status(int error_number)
{
	switch (error_number) {
	case 0:
	case EPIPE:
	case ECONNRESET:
	case ECONNABORTED:
	case ECONNREFUSED:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENETDOWN:
	case EPROTO:
		return XB_E_PEER;
	default:
		return XB_E_SYSTEM;
	}
}

int tcp_broken(struct tcp_connection *c, const char *what, int error_number)
{
	c->failed_what = what;
	c->failed_errno = error_number;
	return tcp_failure_status(error_number);
}

static int stalled(struct tcp_connection *c, const char *what)
{
	if (errno != EAGAIN && errno != EINTR)
		return tcp_broken(c, what, errno);
	return atomic_load_explicit(c->abort, memory_order_relaxed) ? XB_E_ABORTED : 0;
}

/* One attempt on the oldest send. 1: bytes were moved, 0: none could be, negative: failed. */
static inline int push(struct tcp_connection *c, int flags)
{
	struct tcp_request *r = c->sends.head;
	ssize_t n = send(c->fd, r->at, r->left, flags | MSG_NOSIGNAL);
	if (__builtin_expect(n < 0, 0))
		return stalled(c, "send");
	r->at += n;
	r->left -= (size_t)n;
	if (!r->left)
		c->sends.head = r->next;
	return 1;
}

static inline int pull(struct tcp_connection *c, int flags)
{
	struct tcp_request *r = c->receives.head;
	ssize_t n = recv(c->fd, r->at, r->left, flags);
	if (n <= 0)
		return n ? stalled(c, "receive") : tcp_broken(c, "receive", 0);
	r->at += n;
	r->left -= (size_t)n;
	if (!r->left)
		c->receives.head = r->next;
	return 1;
}

static inline void fill(struct tcp_connection *c, struct tcp_request *r, const void *buf, size_t bytes)
{
	/* a zero-byte message must still reach the other side: it travels as one byte */
	r->at = bytes ? (unsigned char *)buf : &c->pad;
	r->left = bytes ? bytes : 1;
}

static int post_receive(void *conn, void *buf, size_t bytes, void *region, void *request)
{
	struct tcp_connection *c = conn;
	(void)region;
	fill(c, request, buf, bytes);
	tcp_enqueue(&c->receives, request);
	return 0;
}

/* Sends what the socket takes now, and leaves the rest to wait. */
static int start_send(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct tcp_connection *c = conn;
	bool first = !c->sends.head;
	(void)region;
	fill(c, request, buf, bytes);
	tcp_enqueue(&c->sends, request);
	if (__builtin_expect(!first, 0))
		return 0;
	int status = push(c, MSG_DONTWAIT);
	return status < 0 ? status : 0;
}

/* A wait that could not end: a mistake of the caller, named instead of hanging. */
static int never_posted(struct tcp_connection *c)
{
	return tcp_broken(c, "wait for an operation that was never started", EINVAL);
}

/* --- spinning */

/*
 * One way: what is being sent goes first, since a receive posted ahead of it (the reply) cannot complete
 * before. Both ways: each in turn.
 */
static inline int spin_once(struct tcp_connection *c, const bool both_ways)
{
	bool sending = c->sends.head;
	if (sending) {
		int status = push(c, MSG_DONTWAIT);
		if (status < 0 || (status && !both_ways))
			return status;
	}
	if (c->receives.head)
		return pull(c, MSG_DONTWAIT);
	return sending ? 0 : never_posted(c);
}

static inline int spin(struct tcp_connection *c, struct tcp_request *r, const bool both_ways)
{
	while (r->left) {
		int status = spin_once(c, both_ways);
		if (__builtin_expect(status < 0, 0))
			return status;
	}
	return 0;
}

static int spin_wait(void *conn, void *request)
{
	return spin(conn, request, false);
}

static int spin_wait_both(void *conn, void *request)
{
	return spin(conn, request, true);
}

static inline int spin_all(void *conn, void *requests, size_t count, const bool both_ways)
{
	struct tcp_request *r = requests;
	for (size_t i = 0; i < count; i++) {
		int status = spin(conn, r + i, both_ways);
		if (__builtin_expect(status < 0, 0))
			return status;
	}
	return 0;
}

static int spin_wait_all(void *conn, void *requests, size_t count)
{
	return spin_all(conn, requests, count, false);
}

static int spin_wait_all_both(void *conn, void *requests, size_t count)
{
	return spin_all(conn, requests, count, true);
}

static int test(void *conn, void *request)
{
	struct tcp_request *r = request;
	if (r->left) {
		int status = spin_once(conn, true);
		if (status < 0)
			return status;
	}
	return !r->left;
}

/* --- sleeping: the descriptor is blocking, and its calls come back every TCP_WAKE_MS */

/* One way: the peer is receiving, so the whole message goes down in one blocking call, as NPtcp does it. */
static int block_send(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct tcp_connection *c = conn;
	struct tcp_request *r = request;
	(void)region;
	fill(c, r, buf, bytes);
	tcp_enqueue(&c->sends, r);
	while (c->sends.head) {
		int status = push(c, 0);
		/* a peer that sends as well, against the pattern, must not block us for ever */
		if (!status && c->receives.head)
			status = pull(c, MSG_DONTWAIT);
		if (__builtin_expect(status < 0, 0))
			return status;
	}
	return 0;
}

static int sleep_both(struct tcp_connection *c)
{
	struct pollfd fd = {.fd = c->fd, .events = POLLIN | POLLOUT};
	if (poll(&fd, 1, TCP_WAKE_MS) > 0)
		return 0;
	return atomic_load_explicit(c->abort, memory_order_relaxed) ? XB_E_ABORTED : 0;
}

static int block_wait(void *conn, void *request)
{
	struct tcp_connection *c = conn;
	struct tcp_request *r = request;
	while (r->left) {
		int status;
		if (c->receives.head && !c->sends.head) {
			status = pull(c, MSG_WAITALL);
		} else if (!c->receives.head && c->sends.head) {
			status = push(c, 0);
		} else if (!c->receives.head) {
			status = never_posted(c);
		} else {
			int received = pull(c, MSG_DONTWAIT);
			status = received < 0 ? received : push(c, MSG_DONTWAIT);
			if (!received && !status)
				status = sleep_both(c);
		}
		if (__builtin_expect(status < 0, 0))
			return status;
	}
	return 0;
}

static int block_wait_all(void *conn, void *requests, size_t count)
{
	struct tcp_request *r = requests;
	for (size_t i = 0; i < count; i++) {
		int status = block_wait(conn, r + i);
		if (__builtin_expect(status < 0, 0))
			return status;
	}
	return 0;
}

#define TCP_TABLE(SEND, WAIT, WAIT_ALL)                                                                      \
	{                                                                                                    \
		.send = SEND, .send_sync = xb_hot_unsupported_send, .send_ready = SEND,                      \
		.recv = post_receive, .wait = WAIT, .wait_all = WAIT_ALL, .test = test,                      \
		.put = xb_hot_unsupported_put, .get = xb_hot_unsupported_get,                                \
		.flush = xb_hot_unsupported_flush, .watch = xb_hot_unsupported_watch                         \
	}
static const struct xb_hot spin_one_way = TCP_TABLE(start_send, spin_wait, spin_wait_all);
static const struct xb_hot spin_both_ways = TCP_TABLE(start_send, spin_wait_both, spin_wait_all_both);
static const struct xb_hot block_one_way = TCP_TABLE(block_send, block_wait, block_wait_all);
static const struct xb_hot block_both_ways = TCP_TABLE(start_send, block_wait, block_wait_all);

const struct xb_hot *tcp_hot_table(bool block, const struct xb_pattern *pattern)
{
	/* a receiver cannot know without a header that a message is a synchronous one */
	if (pattern->sync_sends)
		return block ? &tcp_framed_block : &tcp_framed_spin;
	if (pattern->both_ways)
		return block ? &block_both_ways : &spin_both_ways;
	return block ? &block_one_way : &spin_one_way;
}

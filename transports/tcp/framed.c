/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages with a one-byte header, for patterns that may contain synchronous sends. The header says whether
 * the sender waits for an acknowledgement; the receiver gives it, as one byte on a second connection, when
 * the header has met a posted receive. That is the handshake of an MPI synchronous send. Acknowledgements
 * have a connection of their own, because on the data connection they would queue behind messages whose
 * receives are not posted yet: a deadlock where MPI has none. They need no number: matching is in order, so
 * the n-th belongs to the n-th synchronous message.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>

#include "tcp.h"

enum { HEADER_STANDARD = 0x6d, HEADER_SYNC = 0xb6 };
#define ACK_BATCH 64u

static int stalled(struct tcp_connection *c, const char *what)
{
	return errno == EAGAIN || errno == EINTR ? 0 : tcp_broken(c, what, errno);
}

static inline size_t pieces(struct tcp_request *r, struct iovec piece[2])
{
	size_t count = 0, payload = r->left;
	if (r->left > r->payload) {
		piece[count++] = (struct iovec){&r->header, 1};
		payload--;
	}
	if (payload)
		piece[count++] = (struct iovec){r->at, payload};
	return count;
}

static inline void moved(struct tcp_request *r, size_t bytes)
{
	size_t header = r->left > r->payload;
	r->left -= bytes;
	r->at += bytes - header;
}

static int push(struct tcp_connection *c)
{
	struct tcp_request *r = c->sends.head;
	struct iovec piece[2];
	struct msghdr message = {.msg_iov = piece, .msg_iovlen = pieces(r, piece)};
	ssize_t n = sendmsg(c->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n <= 0)
		return n ? stalled(c, "send") : 0;
	moved(r, (size_t)n);
	if (!r->left)
		c->sends.head = r->next;
	return 1;
}

static int give_acks(struct tcp_connection *c)
{
	static const unsigned char ones[ACK_BATCH];
	unsigned count = c->acks_owed < ACK_BATCH ? c->acks_owed : ACK_BATCH;
	ssize_t n = send(c->ack_fd, ones, count, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return stalled(c, "send an acknowledgement");
	c->acks_owed -= (unsigned)n;
	return 1;
}

static int take_acks(struct tcp_connection *c)
{
	unsigned char bytes[ACK_BATCH];
	ssize_t n = recv(c->ack_fd, bytes, sizeof bytes, MSG_DONTWAIT);
	if (n <= 0)
		return n ? stalled(c, "receive an acknowledgement")
			 : tcp_broken(c, "receive an acknowledgement", 0);
	c->acks_received += (uint64_t)n;
	return 1;
}

static int pull(struct tcp_connection *c)
{
	struct tcp_request *r = c->receives.head;
	bool unmatched = r->left > r->payload;
	struct iovec piece[2];
	struct msghdr message = {.msg_iov = piece, .msg_iovlen = pieces(r, piece)};
	ssize_t n = recvmsg(c->fd, &message, MSG_DONTWAIT);
	if (n <= 0)
		return n ? stalled(c, "receive") : tcp_broken(c, "receive", 0);
	moved(r, (size_t)n);
	if (!r->left)
		c->receives.head = r->next;
	if (unmatched && r->header != HEADER_STANDARD) {
		if (r->header != HEADER_SYNC)
			return tcp_broken(c, "receive: not the header of a message", EPROTO);
		c->acks_owed++;
		return give_acks(c) < 0 ? XB_E_PEER : 1;
	}
	return 1;
}

static void post(struct tcp_request *r, const void *buf, size_t bytes, unsigned char header,
		 uint64_t ack_number)
{
	r->at = (unsigned char *)buf;
	r->payload = bytes;
	r->left = bytes + 1;
	r->header = header;
	r->ack_number = ack_number;
}

static int start_send(struct tcp_connection *c, struct tcp_request *r)
{
	bool first = !c->sends.head;
	tcp_enqueue(&c->sends, r);
	int status = first ? push(c) : 0;
	return status < 0 ? status : 0;
}

static int framed_send(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	(void)region;
	post(request, buf, bytes, HEADER_STANDARD, 0);
	return start_send(conn, request);
}

static int framed_send_sync(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct tcp_connection *c = conn;
	(void)region;
	post(request, buf, bytes, HEADER_SYNC, ++c->acks_wanted);
	return start_send(c, request);
}

static int framed_recv(void *conn, void *buf, size_t bytes, void *region, void *request)
{
	struct tcp_connection *c = conn;
	(void)region;
	post(request, buf, bytes, 0, 0);
	tcp_enqueue(&c->receives, request);
	return 0;
}

static inline bool done(const struct tcp_connection *c, const struct tcp_request *r)
{
	return !r->left && c->acks_received >= r->ack_number && !c->acks_owed;
}

/* One round over everything that can move. Like push and pull: 1, 0 or negative. */
static inline int progress(struct tcp_connection *c, const struct tcp_request *r)
{
	int any = 0, status = 0;
	if (c->receives.head && (status = pull(c)) < 0)
		return status;
	any |= status;
	status = 0;
	if (c->sends.head && (status = push(c)) < 0)
		return status;
	any |= status;
	status = 0;
	if (c->acks_owed && (status = give_acks(c)) < 0)
		return status;
	any |= status;
	status = 0;
	if (c->acks_received < r->ack_number && (status = take_acks(c)) < 0)
		return status;
	return any | status;
}

static void sleep_until_ready(const struct tcp_connection *c, const struct tcp_request *r)
{
	struct pollfd fds[2] = {{.fd = c->fd}, {.fd = c->ack_fd}};
	fds[0].events = (short)((c->receives.head ? POLLIN : 0) | (c->sends.head ? POLLOUT : 0));
	fds[1].events =
		(short)((c->acks_received < r->ack_number ? POLLIN : 0) | (c->acks_owed ? POLLOUT : 0));
	poll(fds, 2, TCP_WAKE_MS);
}

static inline int wait_for(struct tcp_connection *c, struct tcp_request *r, const bool block)
{
	while (!done(c, r)) {
		int status = progress(c, r);
		if (status < 0)
			return status;
		if (status || done(c, r))
			continue;
		if (atomic_load_explicit(c->abort, memory_order_relaxed))
			return XB_E_ABORTED;
		if (block)
			sleep_until_ready(c, r);
	}
	return 0;
}

static int spin_wait(void *conn, void *request)
{
	return wait_for(conn, request, false);
}

static int block_wait(void *conn, void *request)
{
	return wait_for(conn, request, true);
}

static inline int wait_for_all(void *conn, void *requests, size_t count, const bool block)
{
	struct tcp_request *r = requests;
	for (size_t i = 0; i < count; i++) {
		int status = wait_for(conn, r + i, block);
		if (status < 0)
			return status;
	}
	return 0;
}

static int spin_wait_all(void *conn, void *requests, size_t count)
{
	return wait_for_all(conn, requests, count, false);
}

static int block_wait_all(void *conn, void *requests, size_t count)
{
	return wait_for_all(conn, requests, count, true);
}

static int framed_test(void *conn, void *request)
{
	struct tcp_connection *c = conn;
	if (!done(c, request)) {
		int status = progress(c, request);
		if (status < 0)
			return status;
	}
	return done(c, request);
}

#define TCP_FRAMED_TABLE(WAIT, WAIT_ALL)                                                                     \
	{                                                                                                    \
		.send = framed_send, .send_sync = framed_send_sync, .send_ready = framed_send,               \
		.recv = framed_recv, .wait = WAIT, .wait_all = WAIT_ALL, .test = framed_test,                \
		.put = xb_hot_unsupported_put, .get = xb_hot_unsupported_get,                                \
		.flush = xb_hot_unsupported_flush, .watch = xb_hot_unsupported_watch                         \
	}
const struct xb_hot tcp_framed_spin = TCP_FRAMED_TABLE(spin_wait, spin_wait_all);
const struct xb_hot tcp_framed_block = TCP_FRAMED_TABLE(block_wait, block_wait_all);

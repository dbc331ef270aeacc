/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker's end of the control channel. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"
#include "../engine/timer.h"

#define CONNECT_ATTEMPTS 6

static int64_t now_ms(void)
{
	return (int64_t)(xb_clock_ns(CLOCK_MONOTONIC) / 1000000u);
}

static int is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;
	if (address->ss_family == AF_INET)
		return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
	return address->ss_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
		(IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127));
}

void xb_channel_keep_alive(int fd)
{
	struct sockaddr_storage other = {0};
	socklen_t length = sizeof other;
	if (getpeername(fd, (struct sockaddr *)&other, &length) == 0 && is_loopback(&other))
		return; /* one machine: both are there, or neither is */
	int one = 1, quiet_s = XB_CHANNEL_QUIET_S, interval_s = 1, count = 3;
	unsigned unanswered_ms = 8000;
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &quiet_s, sizeof quiet_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
	/* the same for data that nobody acknowledges */
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

void xb_channel_acknowledge(int fd)
{
	int one = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one);
}

int xb_write_all(int fd, const void *bytes, size_t count, int timeout_ms)
{
	const unsigned char *at = bytes;
	int64_t end = now_ms() + timeout_ms;
	while (count) {
		ssize_t n = write(fd, at, count);
		if (n > 0) {
			at += n;
			count -= (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
			return XB_E_PEER;
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		int64_t left = end - now_ms();
		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			return XB_E_TIMEOUT;
	}
	return 0;
}

/* Reads exactly count bytes within the time left until end_ms. */
static int read_exactly(int fd, void *bytes, size_t count, int64_t end_ms)
{
	unsigned char *at = bytes;
	while (count) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int64_t left = end_ms - now_ms();
		int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
		if (ready == 0)
			return XB_E_TIMEOUT;
		ssize_t n = ready > 0 ? read(fd, at, count) : -1;
		if (n > 0) {
			at += n;
			count -= (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			return XB_E_PEER;
		}
	}
	return 0;
}

/* Splits "HOST:PORT" or "[V6]:PORT" in place. */
static int split_address(char *text, char **host, char **port)
{
	char *colon = strrchr(text, ':');
	if (!colon || colon == text || !colon[1])
		return -1;
	*colon = 0;
	*port = colon + 1;
	*host = text;
	size_t length = strlen(text);
	if (text[0] == '[' && text[length - 1] == ']') {
		text[length - 1] = 0;
		*host = text + 1;
	}
	return 0;
}

static int tcp_connect(const char *address, int timeout_ms, struct xb_error *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
	char *copy = strdup(address), *host, *port;
	int fd = -1, cause = 0;

	if (!copy || split_address(copy, &host, &port)) {
		free(copy);
		return xb_fail(error, XB_E_USAGE, "control address \"%s\": expected HOST:PORT or [IPV6]:PORT",
			       address);
	}
	int failed = getaddrinfo(host, port, &hints, &list);
	free(copy);
	if (failed)
		return xb_fail(error, XB_E_UNAVAILABLE, "control address \"%s\": %s", address,
			       gai_strerror(failed));
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			continue;
		cause = connect(fd, a->ai_addr, a->ai_addrlen) ? errno : 0;
		if (cause == EINPROGRESS) {
			struct pollfd p = {.fd = fd, .events = POLLOUT};
			socklen_t length = sizeof cause;
			cause = ETIMEDOUT;
			if (poll(&p, 1, timeout_ms) > 0)
				getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &length);
		}
		if (cause) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	if (fd < 0)
		return xb_fail(error, XB_E_PEER, "cannot reach the controller at %s: %s", address,
			       strerror(cause));
	int one = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	xb_channel_keep_alive(fd);
	return fd;
}

/* *end: of the time to reach it; once it is reached, of the time for its reply. */
static int connect_once(struct xb_channel *channel, const char *address, const unsigned char *key,
			int64_t *end, int reply_ms, struct xb_error *error)
{
	unsigned char nonce_w[XB_NONCE_BYTES], nonce_c[XB_NONCE_BYTES];
	unsigned char hello[XB_HELLO_BYTES], reply[XB_REPLY_BYTES], proof[XB_PROOF_BYTES];
	const int timeout_ms = *end > now_ms() ? (int)(*end - now_ms()) : 0;

	memset(channel, 0, sizeof *channel);
	channel->fd = tcp_connect(address, timeout_ms, error);
	if (channel->fd < 0)
		return channel->fd;
	*end = now_ms() + reply_ms;
	pthread_mutex_init(&channel->send_lock, NULL);
	xb_random_bytes(nonce_w, sizeof nonce_w);
	xb_hello_make(key, nonce_w, hello);
	int status = xb_write_all(channel->fd, hello, sizeof hello, reply_ms);
	if (!status)
		status = read_exactly(channel->fd, reply, sizeof reply, *end);
	if (!status)
		status = xb_reply_check(key, nonce_w, reply, nonce_c);
	if (!status) {
		xb_proof_make(key, nonce_w, nonce_c, proof);
		status = xb_write_all(channel->fd, proof, sizeof proof, reply_ms);
	}
	if (status) {
		xb_channel_close(channel);
		return xb_fail(
			error, status,
			"the controller at %s did not prove that it holds this run's key (%s): it is another "
			"program, or the key is of another run",
			address, xb_status_name(status));
	}
	xb_session_derive(key, nonce_w, nonce_c, 0, &channel->session);
	return 0;
}

int xb_channel_connect(struct xb_channel *channel, const char *address, const unsigned char *key,
		       int reach_ms, int reply_ms, struct xb_error *error)
{
	int64_t end = now_ms() + reach_ms;
	int status;

	/* a controller with a crowd of strangers at its door may have closed it before it read who we are */
	for (int attempt = 0;; attempt++) {
		status = connect_once(channel, address, key, &end, reply_ms, error);
		if (status != XB_E_PEER || attempt + 1 == CONNECT_ATTEMPTS || now_ms() >= end)
			return status;
		poll(NULL, 0, 20 * (attempt + 1) * (attempt + 1));
	}
}

int xb_channel_send(struct xb_channel *channel, json_t *message, struct xb_error *error)
{
	size_t frame_bytes = 0;
	char *text = json_dumps(message, JSON_COMPACT);
	if (!text)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for a control message");
	pthread_mutex_lock(&channel->send_lock);
	unsigned char *frame = xb_frame_seal(&channel->session, text, strlen(text), &frame_bytes);
	int status = frame ? xb_write_all(channel->fd, frame, frame_bytes, 10000) : XB_E_RESOURCE;
	pthread_mutex_unlock(&channel->send_lock);
	free(frame);
	free(text);
	return status ? xb_fail(error, status, "cannot send to the controller: %s", xb_status_name(status))
		      : 0;
}

int xb_channel_receive(struct xb_channel *channel, json_t **message, struct xb_error *error)
{
	unsigned char chunk[16384];
	for (;;) {
		int status = xb_parser_next(&channel->parser, &channel->session, message);
		if (status == 1)
			return 0;
		if (status == 0) {
			struct pollfd p = {.fd = channel->fd, .events = POLLIN};
			if (poll(&p, 1, -1) < 0 && errno == EINTR)
				continue;
			ssize_t n = read(channel->fd, chunk, sizeof chunk);
			if (n < 0 && (errno == EINTR || errno == EAGAIN))
				continue;
			if (n <= 0)
				return xb_fail(error, XB_E_PEER, "the controller closed the control channel");
			xb_channel_acknowledge(channel->fd);
			status = xb_parser_feed(&channel->parser, chunk, (size_t)n);
		}
		if (status < 0)
			return xb_fail(error, status, "a frame from the controller is damaged or forged");
	}
}

void xb_channel_close(struct xb_channel *channel)
{
	if (channel->fd >= 0)
		close(channel->fd);
	channel->fd = -1;
	xb_parser_free(&channel->parser);
}

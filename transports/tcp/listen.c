/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The listening side. A caller says who it is and proves, with the random token of our address blob, that it
 * belongs to this run; we answer with the other token, by which it knows that it has reached us and not
 * another host with the same private address; it confirms. Whoever does not speak so is dropped. Callers that
 * we are not waiting for yet are kept.
 *
 *     caller                                        we
 *     "xbtcp/1\n" token[16] endpoint channel  ->
 *                                             <-    reply[16]
 *     'c'                                     ->
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tcp.h"

#define CALLER_LIMIT_NS 10000000000u
static const unsigned char magic[8] = "xbtcp/1\n";

uint64_t tcp_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void put_u32(unsigned char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static uint32_t get_u32(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

void tcp_write_hello(unsigned char *bytes, const unsigned char *token, uint32_t endpoint,
		     enum tcp_channel channel)
{
	memcpy(bytes, magic, 8);
	memcpy(bytes + 8, token, TCP_TOKEN_BYTES);
	put_u32(bytes + 24, endpoint);
	put_u32(bytes + 28, channel);
}

void tcp_make_sockaddr(struct sockaddr_storage *out, const struct tcp_address *address, uint16_t port)
{
	memset(out, 0, sizeof *out);
	if (address->family == AF_INET) {
		struct sockaddr_in *in = (void *)out;
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, address->bytes, 4);
	} else {
		struct sockaddr_in6 *in6 = (void *)out;
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, address->bytes, 16);
		in6->sin6_scope_id = address->link_local ? address->index : 0;
	}
}

socklen_t tcp_sockaddr_bytes(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* Listens on one address, port chosen by the kernel. `device`: only for what comes in by its interface, if
 * permitted. */
static int listen_on(struct tcp_context *context, const struct tcp_address *address, bool device,
		     unsigned char audience, struct xb_error *error)
{
	struct sockaddr_storage at;
	socklen_t bytes = sizeof at;
	char text[TCP_ADDRESS_TEXT];
	const int on = 1;
	struct tcp_listener *listener = &context->listeners[context->listener_count];

	tcp_make_sockaddr(&at, address, 0);
	int fd = socket(address->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return xb_fail(error, XB_E_RESOURCE, "cannot make a socket for %s: %s",
			       tcp_address_text(&at, text), strerror(errno));
	if (address->family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	if (device && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, address->interface,
				 (socklen_t)strlen(address->interface))) {
		close(fd);
		return XB_E_UNSUPPORTED;
	}
	int status = tcp_set_options(context, fd, error);
	if (!status && (bind(fd, (struct sockaddr *)&at, tcp_sockaddr_bytes(&at)) ||
			listen(fd, (int)TCP_MAX_CALLERS) || getsockname(fd, (struct sockaddr *)&at, &bytes)))
		status = xb_fail(error, XB_E_SYSTEM, "cannot listen on %s: %s", tcp_address_text(&at, text),
				 strerror(errno));
	if (status) {
		close(fd);
		return status;
	}
	listener->fd = fd;
	listener->address = *address;
	listener->audience = audience;
	listener->port = ntohs(at.ss_family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port
						       : ((struct sockaddr_in6 *)&at)->sin6_port);
	context->listener_count++;
	return 0;
}

/*
 * One address of a path. Other hosts must come in by its interface, and be answered through it: that needs a
 * listener bound to the device. What comes from this host comes in by lo: that needs one that is not.
 */
static int listen_on_path(struct tcp_context *context, const struct tcp_address *address,
			  struct xb_error *error)
{
	unsigned char rest = TCP_FOR_THIS_HOST;
	int status = address->loopback ? XB_E_UNSUPPORTED
				       : listen_on(context, address, true, TCP_FOR_OTHER_HOSTS, error);
	if (status == XB_E_UNSUPPORTED)
		rest |= TCP_FOR_OTHER_HOSTS;
	else if (status)
		return status;
	return listen_on(context, address, false, rest, error);
}

/* With a path: on its addresses. Without one: on every address of each family. */
int tcp_listen(struct tcp_context *context, struct xb_error *error)
{
	const struct tcp_inventory *inventory = &context->inventory;
	int status = 0;

	if (context->setup->endpoint + 1 >= context->setup->endpoints)
		return 0; /* nobody is higher, so nobody calls */
	if (context->setup->path[0]) {
		for (size_t i = 0; i < inventory->address_count && i < TCP_MAX_LISTENERS / 2 && !status; i++)
			status = listen_on_path(context, &inventory->addresses[i], error);
		return status;
	}
	for (int family = AF_INET, done = 0; !done && !status; family = AF_INET6) {
		done = family == AF_INET6;
		for (size_t i = 0; i < inventory->address_count; i++) {
			if (inventory->addresses[i].family != family)
				continue;
			status = listen_on(context, &(struct tcp_address){.family = family}, false,
					   TCP_FOR_THIS_HOST | TCP_FOR_OTHER_HOSTS, error);
			break;
		}
	}
	return status;
}

static void hang_up(struct tcp_caller *caller)
{
	close(caller->fd);
	caller->fd = -1;
}

static void add_caller(struct tcp_context *context, int fd)
{
	struct tcp_caller *slot = &context->callers[0];
	for (size_t i = 0; i < TCP_MAX_CALLERS; i++) {
		struct tcp_caller *caller = &context->callers[i];
		if (caller->fd < 0) {
			slot = caller;
			break;
		}
		if (caller->since_ns < slot->since_ns)
			slot = caller;
	}
	if (slot->fd >= 0)
		hang_up(slot); /* the oldest has had its time */
	*slot = (struct tcp_caller){.fd = fd, .since_ns = tcp_now_ns()};
}

static bool valid_hello(const struct tcp_context *context, const unsigned char *bytes)
{
	unsigned char difference = 0;
	for (size_t i = 0; i < TCP_TOKEN_BYTES; i++)
		difference |= bytes[8 + i] ^ context->token[i];
	uint32_t endpoint = get_u32(bytes + 24), channel = get_u32(bytes + 28);
	return !memcmp(bytes, magic, 8) && !difference && endpoint > context->setup->endpoint &&
	       endpoint < context->setup->endpoints && channel <= TCP_ACKS;
}

static bool answer(const struct tcp_context *context, const struct tcp_caller *caller)
{
	return valid_hello(context, caller->bytes) &&
	       send(caller->fd, context->reply, TCP_TOKEN_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT) ==
		       (ssize_t)TCP_TOKEN_BYTES;
}

/* The caller has heard the answer and stays: keep the connection for whoever connects to that endpoint. */
static bool admit(struct tcp_context *context, struct tcp_caller *caller)
{
	int *arrived = &context->arrived[get_u32(caller->bytes + 24)][get_u32(caller->bytes + 28)];
	if (caller->bytes[TCP_HELLO_BYTES] != TCP_CONFIRM || *arrived >= 0)
		return false;
	*arrived = caller->fd;
	caller->fd = -1;
	return true;
}

/* Reads what the caller has said so far; it keeps its slot until it has said everything or something wrong.
 */
static void serve_caller(struct tcp_context *context, struct tcp_caller *caller)
{
	for (;;) {
		/* not a byte more than belongs to the handshake */
		unsigned end = caller->got < TCP_HELLO_BYTES ? TCP_HELLO_BYTES : TCP_HELLO_BYTES + 1;
		ssize_t n = recv(caller->fd, caller->bytes + caller->got, end - caller->got, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR) &&
		    tcp_now_ns() - caller->since_ns <= CALLER_LIMIT_NS)
			return;
		if (n <= 0)
			break;
		caller->got += (unsigned)n;
		if (caller->got == TCP_HELLO_BYTES && !answer(context, caller))
			break;
		if (caller->got <= TCP_HELLO_BYTES)
			continue;
		if (admit(context, caller))
			return;
		break;
	}
	hang_up(caller);
}

static void serve(struct tcp_context *context)
{
	for (size_t i = 0; i < context->listener_count; i++) {
		int fd;
		while ((fd = accept4(context->listeners[i].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >=
		       0)
			add_caller(context, fd);
	}
	for (size_t i = 0; i < TCP_MAX_CALLERS; i++)
		if (context->callers[i].fd >= 0)
			serve_caller(context, &context->callers[i]);
}

int tcp_wait_serving(struct tcp_context *context, int fd, short events, int wait_ms)
{
	struct pollfd fds[1 + TCP_MAX_LISTENERS + TCP_MAX_CALLERS];
	nfds_t count = 0;

	fds[count++] = (struct pollfd){.fd = fd, .events = events};
	for (size_t i = 0; i < context->listener_count; i++)
		fds[count++] = (struct pollfd){.fd = context->listeners[i].fd, .events = POLLIN};
	for (size_t i = 0; i < TCP_MAX_CALLERS; i++)
		if (context->callers[i].fd >= 0)
			fds[count++] = (struct pollfd){.fd = context->callers[i].fd, .events = POLLIN};
	int ready = poll(fds, count, wait_ms < TCP_WAKE_MS ? wait_ms : TCP_WAKE_MS);
	if (atomic_load(context->setup->abort))
		return XB_E_ABORTED;
	serve(context);
	return ready > 0 && fds[0].revents;
}

void tcp_listen_close(struct tcp_context *context)
{
	for (size_t i = 0; i < context->listener_count; i++)
		close(context->listeners[i].fd);
	context->listener_count = 0;
	for (size_t i = 0; i < TCP_MAX_CALLERS; i++)
		if (context->callers[i].fd >= 0)
			hang_up(&context->callers[i]);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bringing a pair together. The lower endpoint has listened since open; the higher one chooses among its
 * addresses and calls, once for the data and once for the acknowledgements of synchronous sends.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "tcp.h"

#define MAX_CANDIDATES 128u
#define TRY_MS 3000 /* for one address, when there are others to try */
#define DIAL_MS 10000 /* for the only one: listeners are up before their address is known */

/* --- the address blob: "XBT1" boot_id[16] netns[8] token[16] reply[16] flags count entries */

#define BLOB_HEADER 62u
#define BLOB_ENTRY 20u /* family and audience, prefix, port[2], address[16] */
#define BLOB_MAX_ENTRIES 128u
enum { BLOB_PATH = 1, BLOB_PATH_LOOPBACK = 2 };

static bool path_is_loopback(const struct tcp_context *context)
{
	return context->setup->path[0] && context->inventory.addresses[0].loopback;
}

static void write_entry(unsigned char *at, const struct tcp_address *address,
			const struct tcp_listener *listener)
{
	at[0] = (unsigned char)((address->family == AF_INET ? 4 : 6) | listener->audience);
	at[1] = (unsigned char)address->prefix;
	at[2] = (unsigned char)(listener->port >> 8);
	at[3] = (unsigned char)listener->port;
	memcpy(at + 4, address->bytes, 16);
}

int tcp_write_address(struct tcp_context *context, unsigned char *blob, size_t *bytes, struct xb_error *error)
{
	const struct tcp_inventory *inventory = &context->inventory;
	size_t count = 0;

	if (*bytes < BLOB_HEADER + BLOB_ENTRY * BLOB_MAX_ENTRIES)
		return xb_fail(error, XB_E_USAGE,
			       "an address of this transport takes up to %u bytes; given %zu",
			       BLOB_HEADER + BLOB_ENTRY * BLOB_MAX_ENTRIES, *bytes);
	memcpy(blob, "XBT1", 4);
	memcpy(blob + 4, context->boot_id, 16);
	for (unsigned i = 0; i < 8; i++)
		blob[20 + i] = (unsigned char)(context->netns >> (56 - 8 * i));
	memcpy(blob + 28, context->token, TCP_TOKEN_BYTES);
	memcpy(blob + 44, context->reply, TCP_TOKEN_BYTES);
	blob[60] = (unsigned char)((context->setup->path[0] ? BLOB_PATH : 0) |
				   (path_is_loopback(context) ? BLOB_PATH_LOOPBACK : 0));
	for (size_t l = 0; l < context->listener_count; l++) {
		const struct tcp_listener *listener = &context->listeners[l];
		for (size_t i = 0; i < inventory->address_count && count < BLOB_MAX_ENTRIES; i++) {
			const struct tcp_address *a = &inventory->addresses[i];
			/* a listener of a path offers its own address, the others all of their family */
			if (a->family != listener->address.family ||
			    (context->setup->path[0] && memcmp(a->bytes, listener->address.bytes, 16)))
				continue;
			write_entry(blob + BLOB_HEADER + BLOB_ENTRY * count++, a, listener);
			if (context->setup->path[0])
				break;
		}
	}
	blob[61] = (unsigned char)count;
	*bytes = BLOB_HEADER + BLOB_ENTRY * count;
	return 0;
}

static int check_blob(const unsigned char *blob, size_t bytes, uint32_t peer, struct xb_error *error)
{
	if (bytes >= BLOB_HEADER && !memcmp(blob, "XBT1", 4) && blob[61] <= BLOB_MAX_ENTRIES &&
	    bytes == BLOB_HEADER + BLOB_ENTRY * (size_t)blob[61])
		return 0;
	return xb_fail(error, XB_E_PEER,
		       "the address of endpoint %u (%zu bytes) is not one of the tcp transport; use the same "
		       "version of "
		       "xportbench on all hosts",
		       peer, bytes);
}

static bool on_same_host(const struct tcp_context *context, const unsigned char *blob)
{
	uint64_t netns = 0;
	for (unsigned i = 0; i < 8; i++)
		netns = netns << 8 | blob[20 + i];
	return !memcmp(context->boot_id, blob + 4, 16) && context->netns == netns;
}

/* --- candidates: the pairs of addresses worth trying, best first */

struct candidate {
	struct sockaddr_storage remote;
	const struct tcp_address *local; /* to bind to; NULL = leave it to the kernel */
	int rank;
};

struct candidates {
	struct candidate list[MAX_CANDIDATES];
	size_t count;
};

static bool is_loopback(const struct tcp_address *a)
{
	static const unsigned char one[16] = {[15] = 1};
	return a->family == AF_INET ? a->bytes[0] == 127 : !memcmp(a->bytes, one, 16);
}

static void add_candidate(struct candidates *all, const struct tcp_address *to, uint16_t port,
			  const struct tcp_address *local, int rank)
{
	size_t at = all->count;
	if (at == MAX_CANDIDATES)
		return;
	for (; at > 0 && all->list[at - 1].rank > rank; at--)
		all->list[at] = all->list[at - 1];
	all->list[at] = (struct candidate){.local = local, .rank = rank};
	tcp_make_sockaddr(&all->list[at].remote, to, port);
	all->count++;
}

/* The best of our addresses to reach `to` from: in its subnet, or else any of the family. */
static const struct tcp_address *local_for(const struct tcp_context *context, const struct tcp_address *to,
					   bool *same_subnet)
{
	const struct tcp_address *any = NULL;
	*same_subnet = false;
	for (size_t i = 0; i < context->inventory.address_count; i++) {
		const struct tcp_address *a = &context->inventory.addresses[i];
		if (a->family != to->family || a->link_local || (a->loopback && !is_loopback(to)))
			continue;
		if (tcp_same_subnet(a, to->bytes, to->family)) {
			*same_subnet = true;
			return a;
		}
		if (!any)
			any = a;
	}
	return any;
}

static bool is_mine(const struct tcp_context *context, const struct tcp_address *to)
{
	for (size_t i = 0; i < context->inventory.address_count; i++) {
		const struct tcp_address *a = &context->inventory.addresses[i];
		if (a->family == to->family && !memcmp(a->bytes, to->bytes, 16))
			return true;
	}
	return false;
}

/* Ranks: loopback (one host only), same subnet, elsewhere, link-local; IPv4 before IPv6 in each. */
static void consider(struct tcp_context *context, struct candidates *all, struct tcp_address *to,
		     uint16_t port, bool same_host)
{
	bool path = context->setup->path[0], same_subnet;
	int six = to->family == AF_INET6;

	if (!same_host && (is_loopback(to) || is_mine(context, to)))
		return;
	if (to->link_local) {
		/* the scope is ours to say: every interface of ours that has a link-local address may be the
		 * one */
		for (size_t i = 0; i < context->inventory.address_count; i++) {
			const struct tcp_address *a = &context->inventory.addresses[i];
			if (!a->link_local || (same_host && memcmp(a->bytes, to->bytes, 16)))
				continue;
			to->index = a->index;
			add_candidate(all, to, port, path ? a : NULL, 6);
		}
		return;
	}
	const struct tcp_address *local = local_for(context, to, &same_subnet);
	if (!local)
		return;
	int rank = same_host && is_loopback(to) ? 0 : same_subnet ? 2 : 4;
	add_candidate(all, to, port, path ? local : NULL, rank + six);
}

static void find_candidates(struct tcp_context *context, const unsigned char *blob, bool same_host,
			    struct candidates *all)
{
	all->count = 0;
	for (unsigned i = 0; i < blob[61]; i++) {
		const unsigned char *entry = blob + BLOB_HEADER + BLOB_ENTRY * i;
		struct tcp_address to = {.family = (entry[0] & 0x0f) == 4 ? AF_INET : AF_INET6};
		if (!(entry[0] & (same_host ? TCP_FOR_THIS_HOST : TCP_FOR_OTHER_HOSTS)))
			continue;
		memcpy(to.bytes, entry + 4, 16);
		to.link_local = to.family == AF_INET6 && to.bytes[0] == 0xfe && (to.bytes[1] & 0xc0) == 0x80;
		consider(context, all, &to, (uint16_t)(entry[2] << 8 | entry[3]), same_host);
	}
}

/* --- calling */

int tcp_set_options(const struct tcp_context *context, int fd, struct xb_error *error)
{
	if ((context->sndbuf && setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &context->sndbuf, sizeof(int))) ||
	    (context->rcvbuf && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &context->rcvbuf, sizeof(int))))
		return xb_fail(error, XB_E_SYSTEM,
			       "cannot set the socket buffers to sndbuf=%d, rcvbuf=%d bytes: %s",
			       context->sndbuf, context->rcvbuf, strerror(errno));
	if (!context->congestion || !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, context->congestion,
						(socklen_t)strlen(context->congestion)))
		return 0;
	int cause = errno;
	char available[256] = "unknown";
	FILE *f = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");
	if (f) {
		if (fgets(available, sizeof available, f))
			available[strcspn(available, "\n")] = 0;
		fclose(f);
	}
	return xb_fail(error, XB_E_UNAVAILABLE, "asked for congestion=%s; %s; available are: %s",
		       context->congestion, strerror(cause), available);
}

static void remember(char *trouble, size_t bytes, const struct candidate *candidate, const char *what)
{
	char address[TCP_ADDRESS_TEXT];
	size_t used = strlen(trouble);
	if (used + 1 < bytes)
		snprintf(trouble + used, bytes - used, "%s%s: %s", used ? "; " : "",
			 tcp_address_text(&candidate->remote, address), what);
}

/* Makes, binds and connects a socket. Returns it, XB_E_ABORTED, or XB_E_PEER with errno set. */
static int dial(struct tcp_context *context, const struct candidate *candidate, bool same_host,
		uint64_t until_ns, struct xb_error *error)
{
	struct sockaddr_storage from;
	int cause = 0, status;
	socklen_t bytes = sizeof cause;
	int fd = socket(candidate->remote.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return xb_fail(error, XB_E_RESOURCE, "cannot make a socket: %s", strerror(errno));
	if ((status = tcp_set_options(context, fd, error)))
		goto close_socket;
	if (candidate->local) {
		/* not permitted everywhere; then the address alone must do, and describe checks the route */
		if (!same_host)
			setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, candidate->local->interface,
				   (socklen_t)strlen(candidate->local->interface));
		tcp_make_sockaddr(&from, candidate->local, 0);
		if (bind(fd, (struct sockaddr *)&from, tcp_sockaddr_bytes(&from))) {
			cause = errno;
			status = XB_E_PEER;
			goto close_socket;
		}
	}
	if (connect(fd, (const struct sockaddr *)&candidate->remote,
		    tcp_sockaddr_bytes(&candidate->remote)) &&
	    errno != EINPROGRESS) {
		cause = errno;
		status = XB_E_PEER;
		goto close_socket;
	}
	while (!(status = tcp_wait_serving(context, fd, POLLOUT, TCP_WAKE_MS)))
		if (tcp_now_ns() > until_ns) {
			cause = ETIMEDOUT;
			status = XB_E_PEER;
			goto close_socket;
		}
	if (status < 0)
		goto close_socket;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &bytes))
		cause = errno;
	if (!cause)
		return fd;
	status = XB_E_PEER;
close_socket:
	close(fd);
	errno = cause;
	return status;
}

/* Tells who we are and hears who they are. 0, XB_E_ABORTED, XB_E_PEER (not the one we look for, errno set).
 */
static int introduce(struct tcp_context *context, int fd, const unsigned char *blob, enum tcp_channel channel,
		     uint64_t until_ns)
{
	unsigned char hello[TCP_HELLO_BYTES], reply[TCP_TOKEN_BYTES];
	size_t got = 0;
	const unsigned char confirm = TCP_CONFIRM;

	tcp_write_hello(hello, blob + 28, context->setup->endpoint, channel);
	if (send(fd, hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello)
		return XB_E_PEER;
	while (got < sizeof reply) {
		int status = tcp_wait_serving(context, fd, POLLIN, TCP_WAKE_MS);
		if (status < 0)
			return status;
		ssize_t n = recv(fd, reply + got, sizeof reply - got, MSG_DONTWAIT);
		if (n == 0)
			errno = ECONNRESET;
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return XB_E_PEER;
		got += n > 0 ? (size_t)n : 0;
		if (got < sizeof reply && tcp_now_ns() > until_ns) {
			errno = ETIMEDOUT;
			return XB_E_TIMEOUT;
		}
	}
	if (memcmp(reply, blob + 44, sizeof reply)) {
		errno = EPROTO;
		return XB_E_PEER;
	}
	return send(fd, &confirm, 1, MSG_NOSIGNAL) == 1 ? 0 : XB_E_PEER;
}

/* Both connections to one candidate; `alone`: there is no other, so it is worth waiting for. */
static int call(struct tcp_context *context, const struct candidate *candidate, const unsigned char *blob,
		bool alone, struct tcp_connection *c, struct xb_error *error)
{
	const uint64_t dial_ns = (alone ? DIAL_MS : TRY_MS) * 1000000ull;
	int fds[2] = {-1, -1}, status = 0;

	for (int channel = TCP_DATA; channel <= TCP_ACKS && status >= 0; channel++) {
		uint64_t now_ns = tcp_now_ns();
		status = fds[channel] = dial(context, candidate, c->same_host, now_ns + dial_ns, error);
		if (status >= 0)
			status = introduce(context, fds[channel], blob, (enum tcp_channel)channel,
					   alone ? UINT64_MAX : now_ns + dial_ns);
	}
	if (status >= 0) {
		c->fd = fds[TCP_DATA];
		c->ack_fd = fds[TCP_ACKS];
		return 0;
	}
	int cause = errno;
	for (int channel = TCP_DATA; channel <= TCP_ACKS; channel++)
		if (fds[channel] >= 0)
			close(fds[channel]);
	errno = cause;
	return status;
}

static int call_one_of(struct tcp_context *context, struct candidates *all, const unsigned char *blob,
		       struct tcp_connection *c, struct xb_error *error)
{
	const char *path = context->setup->path;
	char trouble[384];
	bool again;

	do {
		trouble[0] = 0;
		again = false;
		for (size_t i = 0; i < all->count; i++) {
			int status = call(context, &all->list[i], blob, all->count == 1, c, error);
			if (status != XB_E_PEER && status != XB_E_TIMEOUT)
				return status;
			remember(trouble, sizeof trouble, &all->list[i],
				 errno == EPROTO ? "answered by somebody else" : strerror(errno));
			again |= status == XB_E_TIMEOUT;
		}
	} while (again);
	return xb_fail(error, XB_E_PEER,
		       "endpoint %u cannot reach endpoint %u over tcp%s%s: %s; check routes and firewalls "
		       "between the "
		       "hosts, or name a common network in the path",
		       context->setup->endpoint, c->peer, path[0] ? ":" : "", path,
		       trouble[0] ? trouble : "no address of one suits the other");
}

static int await(struct tcp_context *context, struct tcp_connection *c)
{
	int *arrived = context->arrived[c->peer];
	while (arrived[TCP_DATA] < 0 || arrived[TCP_ACKS] < 0) {
		int status = tcp_wait_serving(context, -1, 0, TCP_WAKE_MS);
		if (status < 0)
			return status;
	}
	c->fd = arrived[TCP_DATA];
	c->ack_fd = arrived[TCP_ACKS];
	arrived[TCP_DATA] = arrived[TCP_ACKS] = -1;
	return 0;
}

/* --- the connection is there */

static int settle(struct tcp_context *context, struct tcp_connection *c, struct xb_error *error)
{
	int nodelay = context->nodelay, on = 1;
	socklen_t local_bytes = sizeof c->local, remote_bytes = sizeof c->remote;
	struct timeval wake = {.tv_usec = TCP_WAKE_MS * 1000};

	if (getsockname(c->fd, (struct sockaddr *)&c->local, &local_bytes) ||
	    getpeername(c->fd, (struct sockaddr *)&c->remote, &remote_bytes) ||
	    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof nodelay) ||
	    setsockopt(c->ack_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) ||
	    (context->block &&
	     (setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &wake, sizeof wake) ||
	      setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &wake, sizeof wake) || fcntl(c->fd, F_SETFL, 0))))
		return xb_fail(error, XB_E_PEER, "the new connection to endpoint %u is not usable: %s",
			       c->peer, strerror(errno));
	return 0;
}

int tcp_connect(struct tcp_context *context, uint32_t peer, const unsigned char *blob, size_t bytes,
		struct tcp_connection *c, struct xb_error *error)
{
	struct candidates all;
	const char *path = context->setup->path;
	int status = check_blob(blob, bytes, peer, error);

	if (status)
		return status;
	c->peer = peer;
	c->same_host = on_same_host(context, blob);
	if (!c->same_host && (path_is_loopback(context) || (blob[60] & BLOB_PATH_LOOPBACK)))
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"asked for tcp:%s between endpoints %u and %u; they are on different hosts (or "
			"network "
			"namespaces), which a loopback interface does not connect; name a network interface",
			path, context->setup->endpoint, peer);
	if (peer > context->setup->endpoint) {
		status = await(context, c);
	} else {
		find_candidates(context, blob, c->same_host, &all);
		status = call_one_of(context, &all, blob, c, error);
	}
	if (status == XB_E_ABORTED)
		return xb_fail(error, status, "gave up connecting endpoint %u to endpoint %u, as told",
			       context->setup->endpoint, peer);
	return status ? status : settle(context, c, error);
}

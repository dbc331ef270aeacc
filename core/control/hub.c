/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hub.h"
#include "../engine/timer.h"

#define HELLOS_FACTOR 4 /* so many times the room for strangers is that for those that have said a hello */

int64_t xb_now_ms(void)
{
	return (int64_t)(xb_clock_ns(CLOCK_MONOTONIC) / 1000000u);
}

static int watch(struct xb_hub *hub, int fd, void *tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};
	return epoll_ctl(hub->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int open_listener(struct xb_hub *hub, const char *host, uint16_t number, struct xb_error *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICHOST},
			*list = NULL;
	struct sockaddr_storage bound = {0};
	socklen_t length = sizeof bound;
	char port[16], name[64];
	int one = 1, zero = 0;

	snprintf(port, sizeof port, "%u", number);
	int failed = getaddrinfo(host ? host : "::", port, &hints, &list);
	if (failed)
		return xb_fail(error, XB_E_USAGE, "cannot listen on \"%s\": %s",
			       host ? host : "::", gai_strerror(failed));
	hub->listen_fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (hub->listen_fd >= 0 && number)
		setsockopt(hub->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (hub->listen_fd >= 0 && list->ai_family == AF_INET6)
		setsockopt(hub->listen_fd, IPPROTO_IPV6, IPV6_V6ONLY, host ? &one : &zero, sizeof one);
	if (hub->listen_fd < 0 || bind(hub->listen_fd, list->ai_addr, list->ai_addrlen) ||
	    listen(hub->listen_fd, SOMAXCONN) ||
	    getsockname(hub->listen_fd, (struct sockaddr *)&bound, &length)) {
		failed = errno;
		freeaddrinfo(list);
		return xb_fail(error, failed == EADDRNOTAVAIL ? XB_E_USAGE : XB_E_SYSTEM,
			       "cannot listen on %s%s%s: %s%s", host ? host : "any address",
			       number ? ", port " : "", number ? port : "", strerror(failed),
			       failed == EADDRINUSE ? "; is another xportbench listening? See --port" : "");
	}
	freeaddrinfo(list);
	getnameinfo((struct sockaddr *)&bound, length, name, sizeof name, port, sizeof port,
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(hub->address, sizeof hub->address, bound.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", name,
		 port);
	return 0;
}

/* A team of 1024 endpoints needs a connection and a pipe for each. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int xb_hub_open(struct xb_hub *hub, const char *host, uint16_t port, const unsigned char *key,
		struct xb_error *error)
{
	sigset_t mask;

	memset(hub, 0, sizeof *hub);
	hub->epoll_fd = hub->listen_fd = hub->signal_fd = -1;
	int status = xb_channel_library_init(error);
	if (status)
		return status;
	if (key)
		memcpy(hub->key, key, sizeof hub->key);
	else
		xb_random_bytes(hub->key, sizeof hub->key);
	raise_descriptor_limit();
	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, &hub->old_mask);
	signal(SIGPIPE, SIG_IGN);
	hub->nonces = calloc(XB_HUB_NONCES, sizeof *hub->nonces);
	if (!hub->nonces)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for the control port");
	hub->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	hub->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (hub->epoll_fd < 0 || hub->signal_fd < 0)
		return xb_fail(error, XB_E_SYSTEM, "cannot set up epoll and signalfd: %s", strerror(errno));
	status = open_listener(hub, host, port, error);
	if (status)
		return status;
	if (watch(hub, hub->listen_fd, &hub->listen_fd) || watch(hub, hub->signal_fd, &hub->signal_fd))
		return xb_fail(error, XB_E_SYSTEM, "cannot watch descriptors: %s", strerror(errno));
	return 0;
}

static void peer_disconnect(struct xb_hub *hub, struct xb_peer *peer, int why)
{
	if (peer->fd < 0)
		return;
	if (!peer->authenticated) {
		hub->pending--;
		hub->strangers++;
	}
	close(peer->fd); /* leaves the epoll set by itself */
	peer->fd = -1;
	peer->broken = why;
}

static void peer_free(struct xb_peer *peer)
{
	xb_parser_free(&peer->parser);
	json_decref(peer->inbox);
	json_decref(peer->hello);
	free(peer);
}

void xb_hub_close(struct xb_hub *hub)
{
	for (size_t i = 0; i < hub->peer_count; i++) {
		peer_disconnect(hub, hub->peers[i], XB_E_PEER);
		peer_free(hub->peers[i]);
	}
	free(hub->peers);
	free(hub->nonces);
	hub->nonces = NULL;
	for (size_t t = 0; t < XB_HUB_TEAMS; t++) {
		free(hub->seats[t]);
		hub->seats[t] = NULL;
	}
	if (hub->listen_fd >= 0)
		close(hub->listen_fd);
	if (hub->signal_fd >= 0)
		close(hub->signal_fd);
	if (hub->epoll_fd >= 0)
		close(hub->epoll_fd);
	memset(hub->key, 0, sizeof hub->key);
	hub->peers = NULL;
	hub->peer_count = 0;
}

/* Removes closed connections that nobody will ask for: strangers, and workers that never said who they are.
 */
static void forget_strangers(struct xb_hub *hub)
{
	size_t kept = 0;
	for (size_t i = 0; i < hub->peer_count; i++) {
		struct xb_peer *peer = hub->peers[i];
		if (peer->fd < 0 && !peer->hello)
			peer_free(peer);
		else
			hub->peers[kept++] = peer;
	}
	hub->peer_count = kept;
}

/* A worker takes a new nonce for each connection: 0 if this one came before, else it is remembered. */
static int is_new(struct xb_hub *hub, const unsigned char nonce[XB_NONCE_BYTES])
{
	uint64_t known = hub->nonce_count < XB_HUB_NONCES ? hub->nonce_count : XB_HUB_NONCES;
	for (uint64_t i = 0; i < known; i++)
		if (!memcmp(hub->nonces[i], nonce, XB_NONCE_BYTES))
			return 0;
	memcpy(hub->nonces[hub->nonce_count++ % XB_HUB_NONCES], nonce, XB_NONCE_BYTES);
	return 1;
}

/* Hello, then proof; both of fixed length. Reads no more than is still due, so that frames stay in the
 * socket. */
static void handshake(struct xb_hub *hub, struct xb_peer *peer)
{
	size_t due = peer->hello_seen ? XB_PROOF_BYTES : XB_HELLO_BYTES;
	ssize_t n = read(peer->fd, peer->early + peer->early_used, due - peer->early_used);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		peer_disconnect(hub, peer, XB_E_PEER);
		return;
	}
	peer->early_used += (size_t)n;
	if (peer->early_used < due)
		return;
	peer->early_used = 0;
	if (!peer->hello_seen) {
		unsigned char reply[XB_REPLY_BYTES];
		if (xb_hello_check(hub->key, peer->early, peer->nonce_w) || !is_new(hub, peer->nonce_w)) {
			peer_disconnect(hub, peer, XB_E_CORRUPT);
			return;
		}
		peer->hello_seen = 1;
		xb_random_bytes(peer->nonce_c, sizeof peer->nonce_c);
		xb_reply_make(hub->key, peer->nonce_w, peer->nonce_c, reply);
		if (xb_write_all(peer->fd, reply, sizeof reply, 1000))
			peer_disconnect(hub, peer, XB_E_PEER);
		return;
	}
	if (xb_proof_check(hub->key, peer->nonce_w, peer->nonce_c, peer->early)) {
		peer_disconnect(hub, peer, XB_E_CORRUPT);
		return;
	}
	xb_session_derive(hub->key, peer->nonce_w, peer->nonce_c, 1, &peer->session);
	peer->authenticated = 1;
	peer->inbox = json_array();
	hub->pending--;
}

static void expire_pending(struct xb_hub *hub)
{
	int64_t now = xb_now_ms();
	for (size_t i = 0; i < hub->peer_count; i++) {
		struct xb_peer *peer = hub->peers[i];
		if (peer->fd >= 0 && !peer->authenticated && peer->deadline_ms <= now)
			peer_disconnect(hub, peer, XB_E_TIMEOUT);
	}
}

/* The oldest have to go until fewer than limit wait. What they have sent meanwhile is looked at first, so
 * that a crowd of strangers does not push a worker out. */
static void evict(struct xb_hub *hub, int hello_seen, size_t limit)
{
	for (size_t i = 0; i < hub->peer_count && hub->pending >= limit; i++) {
		struct xb_peer *peer = hub->peers[i];
		if (peer->fd < 0 || peer->authenticated || peer->hello_seen != hello_seen)
			continue;
		handshake(hub, peer);
		if (peer->fd >= 0 && !peer->authenticated && peer->hello_seen == hello_seen)
			peer_disconnect(hub, peer, XB_E_RESOURCE);
	}
}

/* Too many connections wait for their handshake: first those go that have not shown that they know the key,
 * then, where there are many more, those that have said a hello, for it may have been recorded. */
static void make_room(struct xb_hub *hub)
{
	size_t room = XB_HUB_PENDING_MAX + hub->expected;
	evict(hub, 0, room);
	evict(hub, 1, HELLOS_FACTOR * room);
}

static void accept_all(struct xb_hub *hub)
{
	/* bounded: a flood cannot keep the controller here */
	for (int i = 0; i < 32; i++) {
		int fd = accept4(hub->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), one = 1;
		if (fd < 0)
			return;
		make_room(hub);
		if (hub->peer_count == hub->peer_capacity) {
			size_t capacity = hub->peer_capacity ? 2 * hub->peer_capacity : 32;
			struct xb_peer **grown = realloc(hub->peers, capacity * sizeof *grown);
			if (!grown) {
				close(fd);
				return;
			}
			hub->peers = grown;
			hub->peer_capacity = capacity;
		}
		struct xb_peer *peer = calloc(1, sizeof *peer);
		if (!peer || watch(hub, fd, peer)) {
			free(peer);
			close(fd);
			return;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		xb_channel_keep_alive(fd);
		peer->fd = fd;
		peer->team = peer->endpoint = -1;
		peer->deadline_ms = xb_now_ms() + XB_HUB_HANDSHAKE_MS;
		hub->peers[hub->peer_count++] = peer;
		hub->pending++;
	}
}

static void take_hello(struct xb_hub *hub, struct xb_peer *peer, json_t *hello)
{
	json_int_t team = json_integer_value(json_object_get(hello, "team"));
	json_int_t endpoint = json_integer_value(json_object_get(hello, "endpoint"));

	peer->hello = json_incref(hello);
	peer->pid = (int)json_integer_value(json_object_get(hello, "pid"));
	if (team < 0 || team >= (json_int_t)XB_HUB_TEAMS || endpoint < 0 || endpoint >= XB_MAX_ENDPOINTS)
		return;
	peer->team = (int)team;
	peer->endpoint = (int)endpoint;
	if (!hub->seats[team])
		hub->seats[team] = calloc(XB_MAX_ENDPOINTS, sizeof **hub->seats);
	if (hub->seats[team] && !hub->seats[team][endpoint])
		hub->seats[team][endpoint] = peer;
	else
		hub->duplicates[team]++;
}

static void read_frames(struct xb_hub *hub, struct xb_peer *peer)
{
	unsigned char chunk[65536];
	json_t *message;
	int status = 0;
	ssize_t n = read(peer->fd, chunk, sizeof chunk);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		xb_channel_acknowledge(peer->fd);
	if (n > 0)
		status = xb_parser_feed(&peer->parser, chunk, (size_t)n);
	while (status >= 0 && (status = xb_parser_next(&peer->parser, &peer->session, &message)) == 1) {
		json_t *hello = json_object_get(message, "hello");
		if (json_is_object(hello) && !peer->hello)
			take_hello(hub, peer, hello);
		else
			json_array_append(peer->inbox, message);
		json_decref(message);
	}
	if (n <= 0 || status < 0)
		peer_disconnect(hub, peer, n <= 0 ? XB_E_PEER : status);
}

static void read_signals(struct xb_hub *hub)
{
	struct signalfd_siginfo info;
	while (read(hub->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo == SIGCHLD) {
			hub->child_exited = 1;
		} else {
			hub->interrupted = (int)info.ssi_signo;
			hub->interrupts++;
		}
	}
}

void xb_hub_poll(struct xb_hub *hub, int timeout_ms)
{
	struct epoll_event events[64];
	if (hub->pending && (timeout_ms < 0 || timeout_ms > 1000))
		timeout_ms = 1000; /* to time out strangers */
	int n = epoll_wait(hub->epoll_fd, events, 64, timeout_ms);
	for (int i = 0; i < n; i++) {
		void *tag = events[i].data.ptr;
		if (tag == &hub->listen_fd) {
			accept_all(hub);
		} else if (tag == &hub->signal_fd) {
			read_signals(hub);
		} else {
			struct xb_peer *peer = tag;
			if (peer->fd < 0)
				continue; /* closed by an earlier event of this batch */
			if (peer->authenticated)
				read_frames(hub, peer);
			else
				handshake(hub, peer);
		}
	}
	if (hub->pending)
		expire_pending(hub);
	forget_strangers(hub);
}

struct xb_peer *xb_hub_find(struct xb_hub *hub, int team, int endpoint)
{
	if (team < 0 || team >= (int)XB_HUB_TEAMS || !hub->seats[team] || endpoint < 0 ||
	    endpoint >= (int)XB_MAX_ENDPOINTS)
		return NULL;
	return hub->seats[team][endpoint];
}

json_t *xb_peer_take(struct xb_peer *peer)
{
	if (json_array_size(peer->inbox) == 0)
		return NULL;
	json_t *message = json_incref(json_array_get(peer->inbox, 0));
	json_array_remove(peer->inbox, 0);
	return message;
}

int xb_hub_send(struct xb_hub *hub, struct xb_peer *peer, json_t *message, struct xb_error *error)
{
	size_t bytes = 0;
	char *text = json_dumps(message, JSON_COMPACT);
	json_decref(message);
	if (peer->fd < 0) {
		free(text);
		return xb_fail(error, XB_E_PEER, "the worker is gone");
	}
	unsigned char *frame = text ? xb_frame_seal(&peer->session, text, strlen(text), &bytes) : NULL;
	int status = frame ? xb_write_all(peer->fd, frame, bytes, 5000) : XB_E_RESOURCE;
	free(frame);
	free(text);
	if (status) {
		peer_disconnect(hub, peer, status);
		return xb_fail(error, status, "cannot send to a worker: %s", xb_status_name(status));
	}
	return 0;
}

void xb_hub_drop(struct xb_hub *hub, struct xb_peer *peer)
{
	size_t kept = 0;
	if (peer->team >= 0 && hub->seats[peer->team] && hub->seats[peer->team][peer->endpoint] == peer)
		hub->seats[peer->team][peer->endpoint] = NULL;
	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub->peers[i] != peer)
			hub->peers[kept++] = hub->peers[i];
	hub->peer_count = kept;
	peer_disconnect(hub, peer, XB_E_PEER);
	peer_free(peer);
}

void xb_hub_drop_team(struct xb_hub *hub, int team)
{
	size_t kept = 0;
	if (hub->seats[team])
		memset(hub->seats[team], 0, XB_MAX_ENDPOINTS * sizeof **hub->seats);
	hub->duplicates[team] = 0;
	for (size_t i = 0; i < hub->peer_count; i++) {
		struct xb_peer *peer = hub->peers[i];
		if (peer->hello && peer->team == team) {
			peer_disconnect(hub, peer, XB_E_PEER);
			peer_free(peer);
		} else {
			hub->peers[kept++] = peer;
		}
	}
	hub->peer_count = kept;
}

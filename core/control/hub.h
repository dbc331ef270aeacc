/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_HUB_H
#define XB_HUB_H
/*
 * The controller's side of all control channels: it listens, lets workers in that prove the key, turns away
 * everybody else at once and in bounded memory, and collects messages, child exits and signals. It sleeps in
 * epoll; it does nothing on its own while a block runs.
 */
#include <jansson.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include "../cli/config.h"
#include "channel.h"

#define XB_HUB_PENDING_MAX 64 /* strangers that are let wait; beyond them the oldest makes room */
#define XB_HUB_NONCES 4096u /* hellos that are remembered: a repeated one was recorded */
#define XB_HUB_TEAMS XB_MAX_TRANSPORTS
#define XB_HUB_HANDSHAKE_MS 5000 /* a connection that has not proved itself by then is closed */

/* An authenticated worker, or one that is about to be. */
struct xb_peer {
	int fd; /* -1: gone */
	int authenticated;
	unsigned char nonce_w[XB_NONCE_BYTES], nonce_c[XB_NONCE_BYTES];
	unsigned char early[XB_HELLO_BYTES]; /* handshake bytes so far */
	size_t early_used;
	int hello_seen;
	int64_t deadline_ms; /* of the handshake */
	struct xb_session session;
	struct xb_parser parser;
	json_t *inbox; /* array of messages not yet taken */
	int broken; /* XB_E_PEER closed, XB_E_CORRUPT damaged frame; 0 while fine */
	/* set from its first message, {"hello": ...} */
	int team, endpoint, pid;
	json_t *hello;
};

struct xb_hub {
	int epoll_fd, listen_fd, signal_fd;
	char address[80]; /* for workers: "127.0.0.1:PORT" */
	unsigned char key[XB_KEY_BYTES];
	struct xb_peer **peers;
	size_t peer_count, peer_capacity, pending;
	size_t expected; /* connections of our own that may be waiting to be let in as well */
	struct xb_peer **seats[XB_HUB_TEAMS]; /* by endpoint, once it has said who it is */
	unsigned duplicates[XB_HUB_TEAMS]; /* workers that came as an endpoint that was there already */
	unsigned char (*nonces)[XB_NONCE_BYTES]; /* of the last hellos, a ring of XB_HUB_NONCES */
	uint64_t nonce_count; /* since the beginning */
	uint64_t strangers; /* connections that did not prove the key */
	int interrupted; /* signal number of SIGINT or SIGTERM; counts further ones below */
	int interrupts;
	int child_exited; /* SIGCHLD came; the owner clears it after reaping */
	sigset_t old_mask;
};

/* Listens on `host` (numeric, "127.0.0.1" or "::1"; an interface address for other hosts; NULL: all) and
 * `port` (0: any free one), with a fresh key or the one given. Blocks SIGINT, SIGTERM and SIGCHLD in this
 * process and takes them through a descriptor. */
int xb_hub_open(struct xb_hub *hub, const char *host, uint16_t port, const unsigned char *key,
		struct xb_error *error);
void xb_hub_close(struct xb_hub *hub);
/* Sleeps until something happens or timeout_ms (-1 for ever) is over; handles everything that is ready. */
void xb_hub_poll(struct xb_hub *hub, int timeout_ms);
/* The authenticated worker of a team; NULL if it is not (or no longer) there. */
struct xb_peer *xb_hub_find(struct xb_hub *hub, int team, int endpoint);
/* Oldest message of a worker (new reference), or NULL. */
json_t *xb_peer_take(struct xb_peer *peer);
/* Sends and drops the caller's reference to message. */
int xb_hub_send(struct xb_hub *hub, struct xb_peer *peer, json_t *message, struct xb_error *error);
/* Closes one connection and forgets it. */
void xb_hub_drop(struct xb_hub *hub, struct xb_peer *peer);
/* Closes the connections of a team and forgets them. */
void xb_hub_drop_team(struct xb_hub *hub, int team);
int64_t xb_now_ms(void); /* CLOCK_MONOTONIC */

#endif

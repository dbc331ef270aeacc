/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_VERBS_H
#define XB_VERBS_H
/*
 * Raw verbs backend, inside view. One context is one port of one device: protection domain, memory regions
 * and, for each peer, a queue pair with a completion queue of its own. A connection is one such pair.
 *
 * settings.c    keys and path                    device.c, probe.c  devices, ports, what is wrong with them
 * gid.c, route.c  which GID, which route          endpoint.c         open ... close
 * queue_pair.c  with as much inline as there is  connect.c          queue pairs, addresses, connecting
 * cm.c          rdma_cm                          hot.c              timed operations
 * ring.c        receives into a ring             failure.c          errors and events in words
 * describe.c    what was resolved
 */
#include <infiniband/verbs.h>
#include <stdbool.h>

#include "route.h"
#include "transport.h"

#define VB_NAME_BYTES 64u
#define VB_MAX_REGIONS 16u
#define VB_GRH_BYTES 40u
#define VB_MAX_GIDS 256u
/* Completions taken from the queue in one call. */
#define VB_BATCH 16

/* ---- settings.c */
enum vb_kind { VB_RC, VB_UD };
struct vb_settings {
	enum vb_kind kind;
	int gid; /* index, -1: choose */
	unsigned mtu_bytes; /* 0: what the port has */
	int inline_bytes; /* -1: choose */
	int lid; /* which of the LIDs of both ports; -1: the first */
	uint8_t sl, tc, timeout;
	uint8_t rnr; /* repetitions of a send that finds no receive; 7: for ever */
	uint32_t depth; /* of the send queue, 0: choose */
	bool events; /* sleep on a completion channel */
	bool read_back; /* flush reads back the last put */
	bool immediate; /* puts are writes with immediate */
	bool cm; /* connect through rdma_cm */
	bool relaxed; /* the adapter's writes of data may pass each other on the bus */
};
struct vb_path {
	char device[VB_NAME_BYTES]; /* "": the first active port */
	unsigned port; /* 0: the first active one of the device */
};
int vb_settings_parse(const struct xb_setup *setup, struct vb_settings *settings, struct xb_error *error);
/* XB_E_USAGE if a key is given that has no meaning where rdma_cm finds the route. */
int vb_settings_routed(const struct xb_setup *setup, struct xb_error *error);
/* The part of `text` (DEVICE[/PORT][+DEVICE[/PORT]...]) that is for this endpoint: they take turns. */
int vb_path_parse(const char *text, uint32_t endpoint, struct vb_path *path, struct xb_error *error);

/* ---- gid.c */
struct vb_gid {
	int index;
	enum ibv_gid_type type;
	union ibv_gid gid;
};
#define VB_GID_TEXT_BYTES 48u
size_t vb_gids(struct ibv_context *device, unsigned port, struct vb_gid *list, size_t capacity);
/* The best of a RoCE port: version 2 before 1, IPv4 before IPv6, routable before link-local; NULL if none. */
const struct vb_gid *vb_gid_best(const struct vb_gid *list, size_t count);
bool vb_gid_is_ipv4(const union ibv_gid *gid);
const char *vb_gid_text(const union ibv_gid *gid, char text[VB_GID_TEXT_BYTES]);
const char *vb_gid_type_name(uint32_t type); /* "RoCE v2" */
/* One line for messages: "0 (RoCE v2 fe80::1), 1 (...)" */
void vb_gids_text(const struct vb_gid *list, size_t count, char *text, size_t bytes);

/* ---- device.c */
struct vb_port {
	struct ibv_context *device;
	char name[VB_NAME_BYTES];
	unsigned number;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct vb_gid gid; /* to be used; on InfiniBand the one at index 0 */
};
struct vb_why { /* why something cannot be used; reason[0] == 0: it can */
	char reason[256], remedy[256];
};
/* Why there is no device at all. */
void vb_none(struct vb_why *why);
/* Tells of each device of the kernel that libibverbs has not listed. */
void vb_not_listed(struct ibv_device **list, int count,
		   void (*tell)(void *user, const char *name, const struct vb_why *why), void *user);
/* Opens a device; NULL with *why. */
struct ibv_context *vb_device_open(struct ibv_device *device, struct vb_why *why);
/* Fills *port but for its GID; false with *why if it cannot carry messages. */
bool vb_port_usable(struct ibv_context *device, unsigned number, struct vb_port *port, struct vb_why *why);
/* Opens the port that the path names, or the first usable one. On success *port owns the device. */
int vb_port_find(const struct vb_path *path, int gid, struct vb_port *port, struct xb_error *error);
bool vb_is_ethernet(const struct vb_port *port);
bool vb_is_iwarp(const struct vb_port *port); /* connects through rdma_cm only; acknowledges locally */
unsigned vb_mtu_bytes(enum ibv_mtu mtu);
bool vb_is_soft(const char *device); /* soft-RoCE, soft-iWARP */
/* Version of libibverbs in use, from the name of its file: "1.14.44.0" (the end is rdma-core's). */
void vb_library_version(char *text, size_t bytes);
/* First line of a file below /sys/class/infiniband/DEVICE; "" if there is none. */
void vb_sysfs(const char *device, const char *file, char *text, size_t bytes);

/* ---- endpoint.c */
struct vb_region {
	struct ibv_mr *mr;
	uint32_t lkey;
};
struct vb_remote {
	uint64_t base;
	uint32_t rkey;
};
struct vb_request {
	const uint32_t *done; /* counter of its queue */
	uint32_t number; /* complete when *done has reached it */
};
struct vb_peer {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel; /* events=1 */
	struct ibv_ah *ah; /* datagrams */
	struct vb_ring *ring;
};
struct vb_context {
	const atomic_int *abort;
	uint32_t endpoint, endpoints;
	enum xb_op op;
	struct vb_settings set;
	struct vb_path path;
	struct vb_port port;
	struct ibv_pd *pd;
	struct ibv_mr *regions[VB_MAX_REGIONS];
	unsigned region_count;
	struct vb_peer *peers; /* endpoints of them; my own place is empty */
	struct vb_cm *cm; /* cm=1 */
	uint32_t send_depth, recv_depth, outstanding, inline_bytes, psn;
	unsigned mtu_bytes;
	uint8_t retries; /* of a message that is not acknowledged */
	char event[256]; /* the asynchronous event that ended the connection */
	/* where a read-back lands */
	_Alignas(64) unsigned char scratch[64];
	struct ibv_mr *scratch_mr;
};

struct vb_connection {
	/* what the timed operations touch comes first */
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	const atomic_int *abort;
	/* Work requests on the send queue are numbered from 1 and complete in order, so that the number of
	 * the last signalled completion says it all. Receives likewise. All wrap around. */
	uint32_t posted, signalled, send_done, recv_posted, recv_done;
	uint32_t unsignalled; /* since the last signalled one */
	uint32_t batch, window; /* position in a window of operations whose completion is waited for */
	uint32_t mask, slack, depth, inline_bytes;
	uint32_t immediates,
		watched; /* of this block: writes with immediate that came, and watches for them */
	size_t data_bytes;
	struct ibv_sge send_sge, recv_sge;
	struct ibv_send_wr send_wr, put_wr, get_wr, mark_wr;
	struct ibv_recv_wr recv_wr;
	struct vb_ring *ring; /* receives go to a ring and are copied; NULL: they go where they belong */
	struct ibv_comp_channel *channel;
	bool armed; /* a completion event has been asked for */
	bool wrote; /* a put of at least one byte has been made */
	uint64_t last_address;
	uint32_t last_rkey;

	struct vb_context *context;
	uint32_t peer;
	unsigned mtu_bytes;
	struct vb_route route;
	struct xb_hot hot;
	struct xb_error failure;
};

/* ---- queue_pair.c: a queue pair that sends up to *ask bytes inline, or as many as the device takes, which
 * *ask becomes; *granted may be more. NULL, and errno, if there is none at all. */
struct ibv_qp *vb_queue_pair(struct vb_context *c, struct ibv_cq *cq, uint32_t *ask, uint32_t *granted);

/* ---- connect.c */
int vb_peers_create(struct vb_context *c, struct xb_error *error);
void vb_peers_destroy(struct vb_context *c);
int vb_address(void *context, uint32_t peer, void *address, size_t *bytes, struct xb_error *error);
int vb_connect(void *context, uint32_t peer, const void *address, size_t bytes, void *conn,
	       struct xb_error *error);

/* ---- cm.c */
#define VB_CM_TOKEN_BYTES 16u
struct vb_cm_address {
	uint16_t family, port; /* AF_INET, AF_INET6; port in network order */
	uint32_t scope;
	uint8_t ip[16];
	uint8_t token[VB_CM_TOKEN_BYTES]; /* whoever asks to connect has to name it */
};
/* Starts to listen on an address of the context's port, which goes into *address. */
int vb_cm_listen(struct vb_context *c, struct vb_cm_address *address, struct xb_error *error);
/* Connects k->qp to the peer, whose listener is `theirs`; `reads`: outstanding reads that it serves. */
int vb_cm_connect(struct vb_connection *k, const struct vb_cm_address *theirs, uint8_t reads,
		  struct xb_error *error);
void vb_cm_close(struct vb_context *c);
void vb_cm_text(const struct vb_context *c, char *text, size_t bytes); /* the address listened on */

/* ---- ring.c: receives that are always posted, into a ring, and copied to where recv wants them. For
 * datagrams, which are dropped when no receive waits, and beside writes with immediate, which use up any
 * receive. */
int vb_ring_create(struct vb_connection *k, struct vb_peer *peer, struct xb_error *error);
void vb_ring_destroy(struct vb_ring *ring);
int vb_ring_arrived(struct vb_connection *k, const struct ibv_wc *wc);
int vb_ring_recv(void *conn, void *buf, size_t bytes, void *region, void *request);
size_t vb_ring_largest(const struct vb_connection *k); /* message that a slot takes, bytes */

/* ---- hot.c */
const struct xb_hot *vb_prepare(void *conn, const struct xb_pattern *pattern, struct xb_error *error);

/* An acknowledgement means that the peer's receive has been used: what send_sync needs. */
bool vb_acknowledges_receives(const struct vb_context *c);

/* Identity of a work request: what it was, for explain; and its number. Sizes from 1 GiB on are cut. */
enum vb_work { VB_SEND, VB_PUT, VB_GET, VB_RECV };
static inline uint64_t vb_wr_id(enum vb_work work, size_t bytes, uint32_t number)
{
	const uint64_t most = (UINT64_C(1) << 30) - 1;

	return (uint64_t)work << 62 | (bytes < most ? bytes : most) << 32 | number;
}

/* ---- failure.c. The failing operation's status is returned, its cause kept in the connection. */
/* wc: the first that failed, and those behind it of the same poll, `count` in all. */
int vb_completion_failed(struct vb_connection *k, const struct ibv_wc *wc, int count);
int vb_call_failed(struct vb_connection *k, const char *call, int code);
/* A wait takes long: 0, or the status if an event has told that the device or the port is gone. */
int vb_check_events(struct vb_connection *k);
/* Sentence of a failed call of a cold slot. */
int vb_fail(const struct vb_context *c, struct xb_error *error, int status, const char *call, int code,
	    const char *advice);

/* ---- describe.c, probe.c */
int vb_describe(void *context, void *conn, struct xb_description *out, struct xb_error *error);
int vb_probe(const struct xb_probe_sink *sink, struct xb_error *error);
/* "2.5 Gb/s", "" if unknown */
void vb_rate_text(const char *device, unsigned port, char *text, size_t bytes);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting through rdma_cm, which finds the route itself and is all that iWARP has. The queue pairs are
 * those of connect.c: rdma_cm hands out the attributes of each step and carries the numbers, the steps are
 * made here. The endpoint with the lower number waits for the other's request.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "verbs.h"

#define RESOLVE_MS 5000
#define LOOK_MS 50 /* at the abort flag, while waiting */
#define PATIENCE_LOOKS (30000 / LOOK_MS) /* the peer comes to connect at about the same time */

/* Private data of a request: who asks, and that they know the address that came over the control channel. */
struct hello {
	uint32_t endpoint;
	uint8_t token[VB_CM_TOKEN_BYTES];
};

struct vb_cm {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id **ids; /* for each peer: its request, or mine; NULL: none yet */
	uint8_t token[VB_CM_TOKEN_BYTES];
};

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int failed(const struct vb_context *c, const char *call, const char *advice, struct xb_error *error)
{
	return vb_fail(c, error, errno == ETIMEDOUT ? XB_E_PEER : XB_E_TRANSPORT, call, errno, advice);
}

/* ---- my address */

static bool is_on_port(const struct vb_context *c, const struct rdma_cm_id *id)
{
	return id->verbs && id->port_num == c->port.number &&
	       !strcmp(ibv_get_device_name(id->verbs->device), c->port.name);
}

/* An identifier bound to the address, if that belongs to the port; else NULL. */
static struct rdma_cm_id *bind_to(struct vb_context *c, const struct sockaddr *from, int family)
{
	struct rdma_cm_id *id;
	union address address;

	if (!from || from->sa_family != family || rdma_create_id(c->cm->channel, &id, NULL, RDMA_PS_TCP))
		return NULL;
	memset(&address, 0, sizeof(address));
	memcpy(&address, from, family == AF_INET ? sizeof(address.v4) : sizeof(address.v6));
	if (family == AF_INET)
		address.v4.sin_port = 0;
	else
		address.v6.sin6_port = 0;
	if (!rdma_bind_addr(id, &address.any) && is_on_port(c, id))
		return id;
	rdma_destroy_id(id);
	return NULL;
}

/* The GID that was chosen is an address of the port, on RoCE; elsewhere each of the host's is tried. */
static struct rdma_cm_id *bind_any(struct vb_context *c)
{
	static const int families[] = {AF_INET, AF_INET6};
	struct rdma_cm_id *id = NULL;
	struct ifaddrs *all = NULL;

	if (c->port.gid.type != IBV_GID_TYPE_IB && vb_gid_is_ipv4(&c->port.gid.gid)) {
		union address address = {.v4 = {.sin_family = AF_INET}};

		memcpy(&address.v4.sin_addr, c->port.gid.gid.raw + 12, 4);
		id = bind_to(c, &address.any, AF_INET);
	}
	if (!id && getifaddrs(&all))
		all = NULL;
	for (size_t f = 0; f < 2; f++)
		for (const struct ifaddrs *i = all; i && !id; i = i->ifa_next)
			id = bind_to(c, i->ifa_addr, families[f]);
	if (all)
		freeifaddrs(all);
	return id;
}

static int create(struct vb_context *c, struct xb_error *error)
{
	int flags;

	c->cm = calloc(1, sizeof(*c->cm));
	if (c->cm)
		c->cm->ids = calloc(c->endpoints, sizeof(struct rdma_cm_id *));
	if (!c->cm || !c->cm->ids)
		return xb_fail(error, XB_E_RESOURCE, "verbs: out of memory");
	if (getrandom(c->cm->token, sizeof(c->cm->token), 0) != (ssize_t)sizeof(c->cm->token))
		return xb_fail(error, XB_E_SYSTEM, "verbs: cannot get random bytes: %s", strerror(errno));
	c->cm->channel = rdma_create_event_channel();
	if (!c->cm->channel)
		return failed(c, "rdma_create_event_channel",
			      "load the module rdma_ucm, and give this user /dev/infiniband/rdma_cm", error);
	flags = fcntl(c->cm->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(c->cm->channel->fd, F_SETFL, flags | O_NONBLOCK))
		return failed(c, "fcntl(rdma_cm)", NULL, error);
	return XB_OK;
}

int vb_cm_listen(struct vb_context *c, struct vb_cm_address *address, struct xb_error *error)
{
	const struct sockaddr *mine;
	int rc = c->cm ? XB_OK : create(c, error);

	if (rc != XB_OK)
		return rc;
	if (!c->cm->listener) {
		c->cm->listener = bind_any(c);
		if (!c->cm->listener)
			return xb_fail(
				error, XB_E_UNAVAILABLE,
				"asked for rdma_cm on verbs:%s/%u; none of this host's IP addresses belongs "
				"to it; give its network interface (IPoIB on InfiniBand) an address",
				c->port.name, c->port.number);
		if (rdma_listen(c->cm->listener, (int)c->endpoints))
			return failed(c, "rdma_listen", NULL, error);
	}
	mine = rdma_get_local_addr(c->cm->listener);
	*address =
		(struct vb_cm_address){.family = mine->sa_family, .port = rdma_get_src_port(c->cm->listener)};
	memcpy(address->token, c->cm->token, sizeof(address->token));
	if (mine->sa_family == AF_INET) {
		memcpy(address->ip, &((const struct sockaddr_in *)(const void *)mine)->sin_addr, 4);
	} else {
		const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)mine;

		memcpy(address->ip, &six->sin6_addr, 16);
		address->scope = six->sin6_scope_id;
	}
	return XB_OK;
}

void vb_cm_text(const struct vb_context *c, char *text, size_t bytes)
{
	const struct sockaddr *mine;

	snprintf(text, bytes, "no address");
	if (!c->cm || !c->cm->listener)
		return;
	mine = rdma_get_local_addr(c->cm->listener);
	if (mine->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)mine)->sin_addr, text,
			  (socklen_t)bytes);
	else
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)mine)->sin6_addr, text,
			  (socklen_t)bytes);
}

/* ---- events */

/* A request is kept for the connect that will ask for it; that of a stranger takes nobody's place. */
static void keep_request(struct vb_context *c, const struct rdma_cm_event *event)
{
	struct hello hello;

	if (!event->param.conn.private_data || event->param.conn.private_data_len < sizeof(hello))
		return;
	memcpy(&hello, event->param.conn.private_data, sizeof(hello));
	if (!memcmp(hello.token, c->cm->token, sizeof(hello.token)) && hello.endpoint < c->endpoints &&
	    !c->cm->ids[hello.endpoint])
		c->cm->ids[hello.endpoint] = event->id;
}

static bool is_request(const struct vb_context *c, const struct rdma_cm_event *event)
{
	return event->event == RDMA_CM_EVENT_CONNECT_REQUEST && event->listen_id == c->cm->listener;
}

/* Takes one event, waiting LOOK_MS at most. Sets *kind if it is one of `id`. */
static int take_event(struct vb_context *c, const struct rdma_cm_id *id, int *kind, int *status,
		      struct xb_error *error)
{
	struct pollfd fd = {.fd = c->cm->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	struct rdma_cm_id *stranger = NULL;

	if (atomic_load_explicit(c->abort, memory_order_relaxed))
		return xb_fail(error, XB_E_ABORTED, "verbs: told to stop while connecting");
	if (poll(&fd, 1, LOOK_MS) <= 0)
		return XB_OK;
	if (rdma_get_cm_event(c->cm->channel, &event))
		return errno == EAGAIN || errno == EINTR ? XB_OK
							 : failed(c, "rdma_get_cm_event", NULL, error);
	if (is_request(c, event)) {
		stranger = event->id;
		keep_request(c, event);
		for (uint32_t e = 0; e < c->endpoints; e++)
			if (c->cm->ids[e] == stranger)
				stranger = NULL;
	} else if (event->id == id) {
		*kind = (int)event->event;
		*status = event->status;
	}
	rdma_ack_cm_event(event);
	if (stranger) {
		rdma_reject(stranger, NULL, 0);
		rdma_destroy_id(stranger);
	}
	return XB_OK;
}

/* Waits until `id` reports `wanted` or `or_else`; *got is which. */
static int await(struct vb_context *c, uint32_t peer, const struct rdma_cm_id *id, int wanted, int or_else,
		 int *got, struct xb_error *error)
{
	for (int looks = 0; looks < PATIENCE_LOOKS; looks++) {
		int kind = -1, status = 0;
		int rc = take_event(c, id, &kind, &status, error);

		if (rc != XB_OK)
			return rc;
		if (kind == wanted || kind == or_else) {
			*got = kind;
			return XB_OK;
		}
		if (kind >= 0)
			return xb_fail(error, XB_E_PEER,
				       "verbs:%s/%u: connecting to endpoint %u through rdma_cm failed: %s "
				       "(%d); check "
				       "that the peer's address can be reached on the RDMA network (rping)",
				       c->port.name, c->port.number, peer,
				       rdma_event_str((enum rdma_cm_event_type)kind), status);
	}
	return xb_fail(error, XB_E_PEER,
		       "verbs:%s/%u: endpoint %u did not answer through rdma_cm within %d s (waited for %s)",
		       c->port.name, c->port.number, peer, PATIENCE_LOOKS * LOOK_MS / 1000,
		       rdma_event_str((enum rdma_cm_event_type)wanted));
}

/* ---- the queue pair's steps */

/* What rdma_cm chose, for describe to tell. */
static void note_route(struct vb_connection *k, const struct ibv_ah_attr *ah)
{
	struct vb_port *port = &k->context->port;
	struct vb_gid gids[VB_MAX_GIDS];
	size_t count = ah->is_global ? vb_gids(port->device, port->number, gids, VB_MAX_GIDS) : 0;

	k->route = (struct vb_route){ah->dlid, ah->src_path_bits, ah->is_global};
	for (size_t i = 0; i < count; i++)
		if (gids[i].index == ah->grh.sgid_index)
			port->gid = gids[i];
}

static int step(struct vb_connection *k, struct rdma_cm_id *id, enum ibv_qp_state state,
		struct xb_error *error)
{
	struct vb_context *c = k->context;
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = 0, rc;

	if (rdma_init_qp_attr(id, &attr, &mask))
		return failed(c, "rdma_init_qp_attr", NULL, error);
	if (mask & IBV_QP_ACCESS_FLAGS) /* as in connect.c */
		attr.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | (c->op != XB_OP_SEND ? IBV_ACCESS_REMOTE_READ : 0);
	if (mask & IBV_QP_PATH_MTU) {
		while (vb_mtu_bytes(attr.path_mtu) > k->mtu_bytes)
			attr.path_mtu--;
		k->mtu_bytes = vb_mtu_bytes(attr.path_mtu);
	}
	if (mask & IBV_QP_MIN_RNR_TIMER)
		attr.min_rnr_timer = 1; /* rdma_cm says 0, which is 0.66 s */
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr.max_rd_atomic > c->port.attr.max_qp_init_rd_atom)
		attr.max_rd_atomic = (uint8_t)c->port.attr.max_qp_init_rd_atom; /* the peer serves more */
	if (mask & IBV_QP_TIMEOUT)
		attr.timeout = c->set.timeout;
	if (mask & IBV_QP_AV)
		note_route(k, &attr.ah_attr);
	rc = ibv_modify_qp(k->qp, &attr, mask);
	return rc ? vb_fail(c, error, XB_E_TRANSPORT,
			    state == IBV_QPS_INIT  ? "ibv_modify_qp(INIT)"
			    : state == IBV_QPS_RTR ? "ibv_modify_qp(RTR)"
						   : "ibv_modify_qp(RTS)",
			    rc, NULL)
		  : XB_OK;
}

static int all_steps(struct vb_connection *k, struct rdma_cm_id *id, struct xb_error *error)
{
	int rc = step(k, id, IBV_QPS_INIT, error);

	if (rc == XB_OK)
		rc = step(k, id, IBV_QPS_RTR, error);
	return rc == XB_OK ? step(k, id, IBV_QPS_RTS, error) : rc;
}

static struct rdma_conn_param parameters(const struct vb_connection *k, uint8_t reads,
					 const struct hello *hello)
{
	const int most = k->context->port.attr.max_qp_rd_atom;

	return (struct rdma_conn_param){.private_data = hello,
					.private_data_len = hello ? sizeof(*hello) : 0,
					.responder_resources = (uint8_t)(most < 255 ? most : 255),
					.initiator_depth = reads,
					.retry_count = k->context->retries,
					.rnr_retry_count = k->context->set.rnr,
					.qp_num = k->qp->qp_num};
}

/* ---- the two sides */

static int accept_peer(struct vb_connection *k, uint8_t reads, struct xb_error *error)
{
	struct vb_context *c = k->context;
	struct rdma_conn_param param = parameters(k, reads, NULL);
	struct rdma_cm_id *id;
	int rc = XB_OK, kind = -1, status = 0;

	for (int looks = 0; !c->cm->ids[k->peer] && rc == XB_OK && looks < PATIENCE_LOOKS; looks++)
		rc = take_event(c, NULL, &kind, &status, error);
	if (rc != XB_OK)
		return rc;
	id = c->cm->ids[k->peer];
	if (!id)
		return xb_fail(error, XB_E_PEER,
			       "verbs:%s/%u: endpoint %u did not ask to connect through rdma_cm within %d s",
			       c->port.name, c->port.number, k->peer, PATIENCE_LOOKS * LOOK_MS / 1000);
	rc = all_steps(k, id, error);
	if (rc != XB_OK)
		return rc;
	if (rdma_accept(id, &param))
		return failed(c, "rdma_accept", NULL, error);
	return await(c, k->peer, id, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_ESTABLISHED, &kind, error);
}

static int resolve(struct vb_connection *k, const struct vb_cm_address *theirs, struct xb_error *error)
{
	struct vb_context *c = k->context;
	struct sockaddr *from = rdma_get_local_addr(c->cm->listener);
	union address source = {0}, to = {0};
	struct rdma_cm_id *id;
	uint8_t tos = c->set.tc;
	int got, rc;

	if (rdma_create_id(c->cm->channel, &c->cm->ids[k->peer], NULL, RDMA_PS_TCP))
		return failed(c, "rdma_create_id", NULL, error);
	id = c->cm->ids[k->peer];
	if (tos && rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
		return failed(c, "rdma_set_option(TOS)", "leave out tc=", error);
	to.any.sa_family = theirs->family;
	memcpy(&source, from, theirs->family == AF_INET ? sizeof(source.v4) : sizeof(source.v6));
	if (theirs->family == AF_INET) {
		memcpy(&to.v4.sin_addr, theirs->ip, 4);
		to.v4.sin_port = theirs->port;
		source.v4.sin_port = 0;
	} else {
		memcpy(&to.v6.sin6_addr, theirs->ip, 16);
		to.v6.sin6_port = theirs->port;
		to.v6.sin6_scope_id = source.v6.sin6_scope_id; /* the same link, under my own number */
		source.v6.sin6_port = 0;
	}
	if (rdma_resolve_addr(id, &source.any, &to.any, RESOLVE_MS))
		return failed(c, "rdma_resolve_addr", "check that the peer's address can be reached", error);
	rc = await(c, k->peer, id, RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_RESOLVED, &got, error);
	if (rc != XB_OK)
		return rc;
	if (!is_on_port(c, id))
		return xb_fail(
			error, XB_E_PATH,
			"verbs:%s/%u: the way to endpoint %u leaves by %s port %u, says rdma_cm; name that "
			"device, or correct the routes",
			c->port.name, c->port.number, k->peer, ibv_get_device_name(id->verbs->device),
			id->port_num);
	if (rdma_resolve_route(id, RESOLVE_MS))
		return failed(c, "rdma_resolve_route", NULL, error);
	return await(c, k->peer, id, RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED, &got, error);
}

static int ask_peer(struct vb_connection *k, const struct vb_cm_address *theirs, uint8_t reads,
		    struct xb_error *error)
{
	struct vb_context *c = k->context;
	struct hello hello = {.endpoint = c->endpoint};
	struct rdma_conn_param param = parameters(k, reads, &hello);
	struct rdma_cm_id *id;
	int got, rc = resolve(k, theirs, error);

	memcpy(hello.token, theirs->token, sizeof(hello.token));
	if (rc != XB_OK)
		return rc;
	id = c->cm->ids[k->peer];
	rc = step(k, id, IBV_QPS_INIT, error);
	if (rc != XB_OK)
		return rc;
	if (rdma_connect(id, &param))
		return failed(c, "rdma_connect", NULL, error);
	rc = await(c, k->peer, id, RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_ESTABLISHED, &got, error);
	/* iWARP's queue pairs are ready by then */
	if (rc != XB_OK || got == RDMA_CM_EVENT_ESTABLISHED)
		return rc;
	rc = step(k, id, IBV_QPS_RTR, error);
	if (rc == XB_OK)
		rc = step(k, id, IBV_QPS_RTS, error);
	if (rc == XB_OK && rdma_establish(id))
		rc = failed(c, "rdma_establish", NULL, error);
	return rc;
}

int vb_cm_connect(struct vb_connection *k, const struct vb_cm_address *theirs, uint8_t reads,
		  struct xb_error *error)
{
	const struct sockaddr *mine = rdma_get_local_addr(k->context->cm->listener);

	if (mine->sa_family != theirs->family)
		return xb_fail(error, XB_E_PEER,
			       "verbs: endpoint %u listens on an IPv%d address, endpoint %u on one of the "
			       "other kind; "
			       "give both interfaces addresses of one kind",
			       k->context->endpoint, mine->sa_family == AF_INET ? 4 : 6, k->peer);
	return k->context->endpoint < k->peer ? accept_peer(k, reads, error)
					      : ask_peer(k, theirs, reads, error);
}

void vb_cm_close(struct vb_context *c)
{
	if (!c->cm)
		return;
	for (uint32_t e = 0; c->cm->ids && e < c->endpoints; e++)
		if (c->cm->ids[e])
			rdma_destroy_id(c->cm->ids[e]);
	if (c->cm->listener)
		rdma_destroy_id(c->cm->listener);
	if (c->cm->channel)
		rdma_destroy_event_channel(c->cm->channel);
	free(c->cm->ids);
	free(c->cm);
	c->cm = NULL;
}

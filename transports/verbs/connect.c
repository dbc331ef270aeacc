/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs. The address of an endpoint is asked for once, before the peer is known, so the pairs for all
 * peers are made when the endpoint opens, and their numbers travel together.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

#define QKEY 0x11111111u
#define MOST_ENDPOINTS 256u
#define DEFAULT_INLINE 236u /* perftest's for sends */

/* What a peer needs. Same machine type at both ends, so no byte order. */
struct address {
	uint32_t kind; /* enum vb_kind */
	uint32_t link_layer, gid_type, mtu_bytes, psn, lid, lmc, needs_grh;
	uint32_t uses_cm;
	uint32_t reads; /* outstanding reads that it serves */
	uint32_t endpoints;
	uint8_t gid[16];
	struct vb_cm_address cm;
	uint32_t qpn[MOST_ENDPOINTS]; /* only `endpoints` of them travel */
};
_Static_assert(sizeof(struct address) <= XB_ADDRESS_MAX, "address is too long");

/* ask: what to ask for inline; becomes what the device takes, for the next one. */
static int create_qp(struct vb_context *c, struct vb_peer *peer, uint32_t *ask, struct xb_error *error)
{
	const uint32_t asked = *ask;
	uint32_t granted = 0;

	peer->qp = vb_queue_pair(c, peer->cq, ask, &granted);
	if (!peer->qp)
		return vb_fail(c, error, XB_E_RESOURCE, "ibv_create_qp", errno,
			       errno == ENOMEM
				       ? "raise the limit of locked memory (ulimit -l), or use a smaller "
					 "window (-W)"
				       : NULL);
	if (c->set.inline_bytes >= 0 && granted < asked)
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "asked for inline=%u on verbs:%s; it grants about %u bytes; use less", asked,
			       c->port.name, granted);
	/* an explicit limit is a limit, though devices round up */
	c->inline_bytes = c->set.inline_bytes >= 0 ? asked : granted;
	return XB_OK;
}

static int to_init(struct vb_context *c, struct ibv_qp *qp, struct xb_error *error)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .pkey_index = 0, .port_num = (uint8_t)c->port.number};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT, rc;

	if (c->set.kind == VB_UD) {
		attr.qkey = QKEY;
		mask |= IBV_QP_QKEY;
	} else {
		/* The empty write that stands in for a missing completion (hot.c) needs this with --op send
		 * too. No memory is open to it unless it was registered for that. */
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		if (c->op != XB_OP_SEND)
			attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
		mask |= IBV_QP_ACCESS_FLAGS;
	}
	rc = ibv_modify_qp(qp, &attr, mask);
	return rc ? vb_fail(c, error, XB_E_TRANSPORT, "ibv_modify_qp(INIT)", rc, NULL) : XB_OK;
}

/* One for each peer: an event that came during a block with another peer would be missed. */
static int create_channel(struct vb_context *c, struct vb_peer *peer, struct xb_error *error)
{
	int flags;

	peer->channel = ibv_create_comp_channel(c->port.device);
	if (!peer->channel)
		return vb_fail(c, error, XB_E_RESOURCE, "ibv_create_comp_channel", errno, NULL);
	flags = fcntl(peer->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(peer->channel->fd, F_SETFL, flags | O_NONBLOCK))
		return vb_fail(c, error, XB_E_SYSTEM, "fcntl(completion channel)", errno, NULL);
	return XB_OK;
}

int vb_peers_create(struct vb_context *c, struct xb_error *error)
{
	uint32_t ask = c->set.inline_bytes < 0 ? DEFAULT_INLINE : (uint32_t)c->set.inline_bytes;
	int entries = (int)(c->send_depth + c->recv_depth), rc;

	if (c->endpoints > MOST_ENDPOINTS)
		return xb_fail(error, XB_E_UNSUPPORTED, "asked for %u endpoints on verbs; it takes up to %u",
			       c->endpoints, MOST_ENDPOINTS);
	c->peers = calloc(c->endpoints, sizeof(*c->peers));
	if (!c->peers)
		return xb_fail(error, XB_E_RESOURCE, "verbs: out of memory for %u peers", c->endpoints);
	for (uint32_t e = 0; e < c->endpoints; e++) {
		struct vb_peer *peer = &c->peers[e];

		if (e == c->endpoint)
			continue;
		rc = c->set.events ? create_channel(c, peer, error) : XB_OK;
		if (rc != XB_OK)
			return rc;
		peer->cq = ibv_create_cq(c->port.device, entries, NULL, peer->channel, 0);
		if (!peer->cq)
			return vb_fail(c, error, XB_E_RESOURCE, "ibv_create_cq", errno,
				       errno == ENOMEM ? "raise the limit of locked memory (ulimit -l)"
						       : "use a smaller window (-W)");
		rc = create_qp(c, peer, &ask, error);
		if (rc == XB_OK)
			rc = to_init(c, peer->qp, error);
		if (rc != XB_OK)
			return rc;
		c->psn = peer->qp->qp_num * 2654435761u & 0xffffffu;
	}
	return XB_OK;
}

void vb_peers_destroy(struct vb_context *c)
{
	for (uint32_t e = 0; c->peers && e < c->endpoints; e++) {
		struct vb_peer *peer = &c->peers[e];

		if (peer->qp)
			ibv_destroy_qp(peer->qp);
		if (peer->ah)
			ibv_destroy_ah(peer->ah);
		vb_ring_destroy(peer->ring);
		if (peer->cq)
			ibv_destroy_cq(peer->cq);
		if (peer->channel)
			ibv_destroy_comp_channel(peer->channel);
	}
	free(c->peers);
	c->peers = NULL;
}

static struct vb_route_end end_of(const struct vb_context *c)
{
	struct vb_route_end end = {.ethernet = vb_is_ethernet(&c->port),
				   .needs_grh = c->port.port.flags & IBV_QPF_GRH_REQUIRED,
				   .lid = c->port.port.lid,
				   .lmc = c->port.port.lmc};

	memcpy(end.gid, c->port.gid.gid.raw, sizeof(end.gid));
	return end;
}

int vb_address(void *context, uint32_t peer, void *address, size_t *bytes, struct xb_error *error)
{
	struct vb_context *c = context;
	struct address mine = {.kind = c->set.kind,
			       .link_layer = c->port.port.link_layer,
			       .gid_type = c->port.gid.type,
			       .mtu_bytes = c->mtu_bytes,
			       .psn = c->psn,
			       .lid = c->port.port.lid,
			       .lmc = c->port.port.lmc,
			       .needs_grh = !!(c->port.port.flags & IBV_QPF_GRH_REQUIRED),
			       .uses_cm = c->set.cm,
			       .reads = (uint32_t)c->port.attr.max_qp_rd_atom,
			       .endpoints = c->endpoints};
	size_t length = offsetof(struct address, qpn) + c->endpoints * sizeof(uint32_t);

	int rc;

	(void)peer; /* it finds its own queue pair in the list */
	if (*bytes < length)
		return xb_fail(error, XB_E_RESOURCE,
			       "verbs: an address needs %zu bytes; there is room for %zu", length, *bytes);
	memcpy(mine.gid, c->port.gid.gid.raw, sizeof(mine.gid));
	rc = c->set.cm ? vb_cm_listen(c, &mine.cm, error) : XB_OK;
	if (rc != XB_OK)
		return rc;
	for (uint32_t e = 0; e < c->endpoints; e++)
		mine.qpn[e] = c->peers[e].qp ? c->peers[e].qp->qp_num : 0;
	memcpy(address, &mine, length);
	*bytes = length;
	return XB_OK;
}

/* The same kind of queue pair, network and GID at both ends. */
static int check_peer(const struct vb_context *c, uint32_t peer, const struct address *theirs,
		      struct xb_error *error)
{
	char a[VB_GID_TEXT_BYTES], b[VB_GID_TEXT_BYTES];
	union ibv_gid gid;

	memcpy(gid.raw, theirs->gid, sizeof(gid.raw));
	if (theirs->kind != (uint32_t)c->set.kind || theirs->uses_cm != c->set.cm)
		return xb_fail(error, XB_E_PEER,
			       "verbs: endpoints %u and %u have different qp= or cm= settings", c->endpoint,
			       peer);
	if (theirs->link_layer != c->port.port.link_layer)
		return xb_fail(error, XB_E_PEER,
			       "verbs: endpoint %u took %s/%u (%s) but endpoint %u a port of another kind "
			       "(%s); name "
			       "the device",
			       c->endpoint, c->port.name, c->port.number,
			       vb_is_ethernet(&c->port) ? "Ethernet" : "InfiniBand", peer,
			       vb_is_ethernet(&c->port) ? "InfiniBand" : "Ethernet");
	if (vb_is_ethernet(&c->port) && !c->set.cm &&
	    (theirs->gid_type != (uint32_t)c->port.gid.type ||
	     vb_gid_is_ipv4(&gid) != vb_gid_is_ipv4(&c->port.gid.gid)))
		return xb_fail(error, XB_E_PEER,
			       "verbs: endpoint %u took GID %s (%s), endpoint %u GID %s (%s): these cannot "
			       "reach each "
			       "other; give both interfaces addresses of one kind, or choose with gid=",
			       c->endpoint, vb_gid_text(&c->port.gid.gid, a),
			       vb_gid_type_name(c->port.gid.type), peer, vb_gid_text(&gid, b),
			       vb_gid_type_name(theirs->gid_type));
	return XB_OK;
}

#define PREFIX_TEXT_BYTES 20u

static const char *prefix_text(const uint8_t gid[16], char text[PREFIX_TEXT_BYTES])
{
	snprintf(text, PREFIX_TEXT_BYTES, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", gid[0], gid[1], gid[2],
		 gid[3], gid[4], gid[5], gid[6], gid[7]);
	return text;
}

static int choose_route(const struct vb_context *c, uint32_t peer, const struct address *theirs,
			struct vb_route *route, struct xb_error *error)
{
	const struct vb_route_end mine = end_of(c);
	struct vb_route_end end = {.ethernet = theirs->link_layer == IBV_LINK_LAYER_ETHERNET,
				   .needs_grh = theirs->needs_grh,
				   .lid = (uint16_t)theirs->lid,
				   .lmc = (uint8_t)theirs->lmc};
	char here[PREFIX_TEXT_BYTES], there[PREFIX_TEXT_BYTES];

	memcpy(end.gid, theirs->gid, sizeof(end.gid));
	switch (vb_route_choose(&mine, &end, c->set.gid >= 0, c->set.lid, route)) {
	case VB_ROUTE_OK:
		break;
	case VB_ROUTE_NO_LID:
		return xb_fail(
			error, XB_E_PEER,
			"verbs: endpoint %u has no LID; see that a subnet manager runs on the fabric, or "
			"route by GID (gid=0)",
			peer);
	case VB_ROUTE_OTHER_SUBNET:
		return xb_fail(
			error, XB_E_UNSUPPORTED,
			"asked for verbs:%s/%u; endpoint %u is in another subnet (%s, here %s); the way to "
			"the router is known to the subnet manager: use cm=1",
			c->port.name, c->port.number, peer, prefix_text(end.gid, there),
			prefix_text(mine.gid, here));
	case VB_ROUTE_FEW_LIDS_HERE:
	case VB_ROUTE_FEW_LIDS_THERE:
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"asked for lid=%d on verbs:%s/%u; the subnet manager gave this port %u LID(s) and "
			"that of endpoint %u %u; take a smaller number or raise its LMC",
			c->set.lid, c->port.name, c->port.number, 1u << mine.lmc, peer, 1u << end.lmc);
	}
	return XB_OK;
}

static struct ibv_ah_attr handle_of(const struct vb_context *c, const struct address *theirs,
				    const struct vb_route *route)
{
	struct ibv_ah_attr ah = {.sl = c->set.sl,
				 .port_num = (uint8_t)c->port.number,
				 .dlid = route->dlid,
				 .src_path_bits = route->path_bits};

	if (!route->global)
		return ah;
	ah.is_global = 1;
	memcpy(ah.grh.dgid.raw, theirs->gid, sizeof(theirs->gid));
	ah.grh.sgid_index = (uint8_t)c->port.gid.index;
	ah.grh.hop_limit = 64;
	ah.grh.traffic_class = c->set.tc;
	return ah;
}

static uint8_t fewer_reads(const struct vb_context *c, const struct address *theirs)
{
	uint32_t mine = (uint32_t)c->port.attr.max_qp_init_rd_atom;
	uint32_t reads = mine < theirs->reads ? mine : theirs->reads;

	return (uint8_t)(reads < 255 ? reads : 255);
}

static enum ibv_mtu mtu_of(unsigned bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && vb_mtu_bytes(mtu) < bytes)
		mtu++;
	return mtu;
}

static int connect_rc(struct vb_context *c, struct vb_connection *k, const struct address *theirs,
		      const struct ibv_ah_attr *ah, struct xb_error *error)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = *ah,
		.path_mtu = mtu_of(k->mtu_bytes),
		.dest_qp_num = theirs->qpn[c->endpoint],
		.rq_psn = theirs->psn,
		.max_dest_rd_atomic =
			(uint8_t)(c->port.attr.max_qp_rd_atom < 255 ? c->port.attr.max_qp_rd_atom : 255),
		/* a receive that is a little late costs 10 us, not perftest's 0.64 ms */
		.min_rnr_timer = 1};
	int rc = ibv_modify_qp(k->qp, &attr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);

	if (rc)
		return vb_fail(
			c, error, XB_E_TRANSPORT, "ibv_modify_qp(RTR)", rc,
			"the route to the peer was refused: check the GIDs, and that the peer's address "
			"can be resolved (ping)");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .sq_psn = c->psn,
				    .timeout = c->set.timeout,
				    .retry_cnt = c->retries,
				    .rnr_retry = c->set.rnr,
				    .max_rd_atomic = fewer_reads(c, theirs)};
	rc = ibv_modify_qp(k->qp, &attr,
			   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	return rc ? vb_fail(c, error, XB_E_TRANSPORT, "ibv_modify_qp(RTS)", rc, NULL) : XB_OK;
}

static int connect_ud(struct vb_context *c, struct vb_connection *k, const struct address *theirs,
		      struct ibv_ah_attr *ah, struct xb_error *error)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct vb_peer *peer = &c->peers[k->peer];
	int rc = ibv_modify_qp(k->qp, &attr, IBV_QP_STATE);

	if (rc)
		return vb_fail(c, error, XB_E_TRANSPORT, "ibv_modify_qp(RTR)", rc, NULL);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = c->psn};
	rc = ibv_modify_qp(k->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (rc)
		return vb_fail(c, error, XB_E_TRANSPORT, "ibv_modify_qp(RTS)", rc, NULL);
	peer->ah = ibv_create_ah(c->pd, ah);
	if (!peer->ah)
		return vb_fail(c, error, XB_E_TRANSPORT, "ibv_create_ah", errno,
			       "check that the peer's address can be resolved (ping)");
	k->send_wr.wr.ud.ah = peer->ah;
	k->send_wr.wr.ud.remote_qpn = theirs->qpn[c->endpoint];
	k->send_wr.wr.ud.remote_qkey = QKEY;
	return XB_OK;
}

static void prepare_requests(struct vb_connection *k)
{
	k->send_wr.opcode = IBV_WR_SEND;
	k->send_wr.sg_list = &k->send_sge;
	k->put_wr.opcode = k->context->set.immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	k->put_wr.sg_list = &k->send_sge;
	k->get_wr.opcode = IBV_WR_RDMA_READ;
	k->get_wr.sg_list = &k->send_sge;
	/* an empty write needs no memory at the peer */
	k->mark_wr.opcode = IBV_WR_RDMA_WRITE;
	k->mark_wr.sg_list = &k->send_sge;
	k->recv_wr.sg_list = &k->recv_sge;
}

int vb_connect(void *context, uint32_t peer, const void *address, size_t bytes, void *conn,
	       struct xb_error *error)
{
	struct vb_context *c = context;
	struct vb_connection *k = conn;
	struct address theirs = {0};
	struct ibv_ah_attr ah;
	int rc;

	if (bytes != offsetof(struct address, qpn) + c->endpoints * sizeof(uint32_t))
		return xb_fail(
			error, XB_E_PEER,
			"verbs: endpoint %u sent an address of %zu bytes, which is not one for %u endpoints",
			peer, bytes, c->endpoints);
	memcpy(&theirs, address, bytes);
	rc = check_peer(c, peer, &theirs, error);
	if (rc != XB_OK)
		return rc;
	k->context = c;
	k->qp = c->peers[peer].qp;
	k->cq = c->peers[peer].cq;
	k->channel = c->peers[peer].channel;
	k->abort = c->abort;
	k->peer = peer;
	k->depth = c->send_depth;
	k->slack = c->send_depth / 4;
	k->inline_bytes = c->inline_bytes;
	k->mtu_bytes = theirs.mtu_bytes < c->mtu_bytes ? theirs.mtu_bytes : c->mtu_bytes;
	prepare_requests(k);
	/* the ring must be there before the peer can send; a queue pair in INIT takes receives */
	rc = c->set.kind == VB_UD || c->set.immediate ? vb_ring_create(k, &c->peers[peer], error) : XB_OK;
	if (rc == XB_OK && c->set.cm)
		return vb_cm_connect(k, &theirs.cm, fewer_reads(c, &theirs), error);
	if (rc == XB_OK)
		rc = choose_route(c, peer, &theirs, &k->route, error);
	if (rc != XB_OK)
		return rc;
	ah = handle_of(c, &theirs, &k->route);
	return c->set.kind == VB_UD ? connect_ud(c, k, &theirs, &ah, error)
				    : connect_rc(c, k, &theirs, &ah, error);
}

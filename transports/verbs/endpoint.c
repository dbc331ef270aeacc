/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "verbs.h"

/* Magic-free: the core delivers it whole, and both ends are of one version. */
struct exported {
	uint64_t base;
	uint32_t rkey, spare;
};

int vb_fail(const struct vb_context *c, struct xb_error *error, int status, const char *call, int code,
	    const char *advice)
{
	return xb_fail(error, status, "verbs:%s/%u: %s failed: %s (%d)%s%s", c->port.name, c->port.number,
		       call, strerror(code), code, advice ? "; " : "", advice ? advice : "");
}

/* Queue depths: deep enough for the run, no deeper than the device allows. */
static int choose_depths(struct vb_context *c, const struct xb_setup *setup, struct xb_error *error)
{
	uint32_t most = (uint32_t)c->port.attr.max_qp_wr;

	c->outstanding = setup->max_outstanding;
	c->recv_depth = setup->max_outstanding + 16;
	c->send_depth = c->set.depth ? c->set.depth : setup->max_outstanding + 32;
	if (c->send_depth < 64 && !c->set.depth)
		c->send_depth = 64;
	if (c->set.depth > most)
		return xb_fail(error, XB_E_USAGE,
			       "asked for depth=%u on verbs:%s; the device has queues of %u", c->set.depth,
			       c->port.name, most);
	if (c->send_depth > most)
		c->send_depth = most; /* a sender waits for room */
	if (c->recv_depth > most || c->recv_depth + c->send_depth > (uint32_t)c->port.attr.max_cqe)
		return xb_fail(
			error, XB_E_UNSUPPORTED,
			"asked for %u outstanding receives on verbs:%s; its queues have %u entries, its "
			"completion queues %d; use a smaller window (-W)",
			c->recv_depth, c->port.name, most, c->port.attr.max_cqe);
	return XB_OK;
}

static int choose_mtu(struct vb_context *c, struct xb_error *error)
{
	unsigned active = vb_mtu_bytes(c->port.port.active_mtu);

	if (c->set.mtu_bytes > active)
		return xb_fail(
			error, XB_E_UNAVAILABLE, "asked for mtu=%u on verbs:%s/%u; the port has %u; %s",
			c->set.mtu_bytes, c->port.name, c->port.number, active,
			vb_is_ethernet(&c->port) ? "raise the MTU of its network interface"
						 : "use a smaller one or change the fabric's partition");
	c->mtu_bytes = c->set.mtu_bytes ? c->set.mtu_bytes : active;
	return XB_OK;
}

static int open_objects(struct vb_context *c, struct xb_error *error)
{
	struct ibv_context *device = c->port.device;

	/* events are looked at while a wait spins, and must not block it */
	if (fcntl(device->async_fd, F_SETFL, fcntl(device->async_fd, F_GETFL) | O_NONBLOCK))
		return vb_fail(c, error, XB_E_SYSTEM, "fcntl(async_fd)", errno, NULL);
	c->pd = ibv_alloc_pd(device);
	if (!c->pd)
		return vb_fail(c, error, XB_E_RESOURCE, "ibv_alloc_pd", errno, NULL);
	return XB_OK;
}

static int registration_failed(const struct vb_context *c, size_t bytes, int code, struct xb_error *error)
{
	struct rlimit limit = {0, 0};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if ((code == ENOMEM || code == EAGAIN || code == EPERM) && limit.rlim_cur != RLIM_INFINITY)
		return xb_fail(
			error, XB_E_RESOURCE,
			"verbs:%s: %zu bytes of memory cannot be registered: %s; the limit of locked memory "
			"is %llu kB; raise it (ulimit -l unlimited, limits.conf, LimitMEMLOCK=infinity)",
			c->port.name, bytes, strerror(code), (unsigned long long)limit.rlim_cur / 1024);
	return xb_fail(error, XB_E_RESOURCE,
		       "verbs:%s: %zu bytes of memory cannot be registered: %s; use smaller "
		       "messages or free memory",
		       c->port.name, bytes, strerror(code));
}

/*
 * iWARP connects through rdma_cm, and its completions say that TCP has the message: only a read behind a put
 * tells that it has arrived.
 */
static int settle_link(struct vb_context *c, const struct xb_setup *setup, struct xb_error *error)
{
	/* soft-RoCE takes 7 for "for ever", and a peer that died would never be noticed */
	c->retries = vb_is_soft(c->port.name) ? 6 : 7;
	if (c->set.lid >= 0 && vb_is_ethernet(&c->port))
		return xb_fail(error, XB_E_USAGE,
			       "asked for lid=%d on verbs:%s/%u; RoCE has no LIDs; leave it out", c->set.lid,
			       c->port.name, c->port.number);
	if (!vb_is_iwarp(&c->port))
		return XB_OK;
	if (c->set.kind == VB_UD || c->set.immediate)
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "asked for %s on verbs:%s/%u; iWARP has neither datagrams nor writes with "
			       "immediate; leave it out",
			       c->set.immediate ? "write=imm" : "qp=ud", c->port.name, c->port.number);
	c->set.cm = true;
	c->set.read_back = true;
	return vb_settings_routed(setup, error);
}

bool vb_acknowledges_receives(const struct vb_context *c)
{
	return c->set.kind == VB_RC && !c->set.immediate && !vb_is_iwarp(&c->port);
}

static int open_context(void *context, const struct xb_setup *setup, struct xb_error *error)
{
	struct vb_context *c = context;
	unsigned access;
	int rc;

	c->abort = setup->abort;
	c->endpoint = setup->endpoint;
	c->endpoints = setup->endpoints;
	c->op = setup->op;
	rc = vb_settings_parse(setup, &c->set, error);
	if (rc == XB_OK)
		rc = vb_path_parse(setup->path, setup->endpoint, &c->path, error);
	if (rc == XB_OK)
		rc = vb_port_find(&c->path, c->set.gid, &c->port, error);
	if (rc == XB_OK)
		rc = settle_link(c, setup, error);
	if (rc == XB_OK)
		rc = choose_mtu(c, error);
	if (rc == XB_OK)
		rc = choose_depths(c, setup, error);
	if (rc == XB_OK)
		rc = open_objects(c, error);
	if (rc != XB_OK)
		return rc;
	/* on iWARP the response to a read is a write of the peer */
	access = IBV_ACCESS_LOCAL_WRITE | (vb_is_iwarp(&c->port) ? IBV_ACCESS_REMOTE_WRITE : 0);
	c->scratch_mr = ibv_reg_mr(c->pd, c->scratch, sizeof(c->scratch), access);
	if (!c->scratch_mr)
		return registration_failed(c, sizeof(c->scratch), errno, error);
	return vb_peers_create(c, error);
}

static int memory(void *context, void *base, size_t bytes, void *region, struct xb_error *error)
{
	struct vb_context *c = context;
	struct vb_region *r = region;
	unsigned access = IBV_ACCESS_LOCAL_WRITE;

	if (c->op != XB_OP_SEND)
		access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	if (c->set.relaxed) /* ignored by kernels and devices that do not know it */
		access |= IBV_ACCESS_RELAXED_ORDERING;
	if (c->region_count == VB_MAX_REGIONS)
		return xb_fail(error, XB_E_RESOURCE, "verbs: more than %u memory regions were asked for",
			       VB_MAX_REGIONS);
	r->mr = ibv_reg_mr(c->pd, base, bytes, access);
	if (!r->mr)
		return registration_failed(c, bytes, errno, error);
	r->lkey = r->mr->lkey;
	c->regions[c->region_count++] = r->mr;
	return XB_OK;
}

static int export_region(void *context, void *region, void *blob, size_t *bytes, struct xb_error *error)
{
	const struct vb_context *c = context;
	const struct vb_region *r = region;
	struct exported out = {.base = (uint64_t)(uintptr_t)r->mr->addr, .rkey = r->mr->rkey};

	if (c->op == XB_OP_SEND)
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "verbs was opened for --op send; it exports no memory");
	if (*bytes < sizeof(out))
		return xb_fail(error, XB_E_RESOURCE,
			       "verbs: an exported region needs %zu bytes; there is room for %zu",
			       sizeof(out), *bytes);
	memcpy(blob, &out, sizeof(out));
	*bytes = sizeof(out);
	return XB_OK;
}

static int import_region(void *conn, const void *blob, size_t bytes, void *remote, struct xb_error *error)
{
	const struct vb_connection *k = conn;
	struct vb_remote *r = remote;
	struct exported in;

	if (bytes != sizeof(in))
		return xb_fail(error, XB_E_PEER,
			       "verbs: endpoint %u exported a region of %zu bytes; expected %zu", k->peer,
			       bytes, sizeof(in));
	memcpy(&in, blob, sizeof(in));
	r->base = in.base;
	r->rkey = in.rkey;
	return XB_OK;
}

static void explain(void *conn, struct xb_error *error)
{
	const struct vb_connection *k = conn;

	if (k->failure.status != XB_OK)
		*error = k->failure;
	else
		xb_fail(error, XB_E_TRANSPORT, "verbs: no operation on this connection has failed");
}

static void close_context(void *context, int clean)
{
	struct vb_context *c = context;

	(void)clean; /* nothing here waits for a peer */
	vb_cm_close(c);
	vb_peers_destroy(c);
	while (c->region_count)
		ibv_dereg_mr(c->regions[--c->region_count]);
	if (c->scratch_mr)
		ibv_dereg_mr(c->scratch_mr);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
	if (c->port.device)
		ibv_close_device(c->port.device);
	c->scratch_mr = NULL;
	c->pd = NULL;
	c->port.device = NULL;
}

static const struct xb_key keys[] = {
	{"qp", "rc|ud", "kind of queue pair: reliable connection, or unreliable datagrams up to the MTU"},
	{"gid", "INDEX", "GID to use; default: RoCE v2 with an IPv4 address, LID on InfiniBand"},
	{"mtu", "256|512|1024|2048|4096", "path MTU; default: what both ports have"},
	{"inline", "BYTES",
	 "largest message sent inline; default: what the device grants, if asked for 236 at most"},
	{"sl", "0..15", "service level"},
	{"lid", "0..127", "which of the LIDs that the subnet manager gave both ports (LMC)"},
	{"tc", "0..255", "traffic class of the global route header (RoCE: DSCP * 4)"},
	{"depth", "N", "entries of the send queue; default: enough for the window"},
	{"events", "0|1", "poll, or sleep on a completion channel"},
	{"flush", "ack|read",
	 "a put is visible when it is acknowledged, or when a read behind it has returned"},
	{"write", "poll|imm", "a put is a plain write, or one with immediate, which the target is told of"},
	{"cm", "0|1", "connect through rdma_cm; always on iWARP"},
	{"relaxed", "0|1",
	 "PCIe relaxed ordering of the message buffers; default as perftest: 1, but 0 for --op write"},
	{"timeout", "1..31", "acknowledgement timeout, 4.096 us * 2^N; 7 repetitions (16)"},
	{"rnr", "0..7", "repetitions of a send that finds no receive; 7 is for ever (7)"},
	{0},
};

const __attribute__((visibility("default"))) struct xb_transport xb_transport = {
	.abi = XB_TRANSPORT_ABI,
	.name = "verbs",
	.summary = "raw verbs (libibverbs): InfiniBand and RoCE queue pairs",
	.layer = XB_LAYER_FABRIC,
	.context_bytes = sizeof(struct vb_context),
	.connection_bytes = sizeof(struct vb_connection),
	.request_bytes = sizeof(struct vb_request),
	.region_bytes = sizeof(struct vb_region),
	.remote_bytes = sizeof(struct vb_remote),
	.keys = keys,
	.probe = vb_probe,
	.open = open_context,
	.memory = memory,
	.address = vb_address,
	.connect = vb_connect,
	.export_region = export_region,
	.import_region = import_region,
	.prepare = vb_prepare,
	.describe = vb_describe,
	.explain = explain,
	.close = close_context,
};

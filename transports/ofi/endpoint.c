/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ofi.h"

/* What a peer needs to reach this endpoint, and to notice that it resolved to something else. Same machine
 * type at both ends, so no byte order. */
struct ofi_address {
	char provider[OFI_NAME_BYTES];
	uint32_t format; /* FI_SOCKADDR_IN, FI_ADDR_STR ... */
	uint32_t bytes;
	unsigned char name[256];
};

struct ofi_exported {
	uint64_t base, key;
	uint32_t raw_bytes;
	unsigned char raw[OFI_RAW_KEY_BYTES];
};

int ofi_fail(const struct ofi_context *context, struct xb_error *error, int status, const char *call,
	     long code, const char *advice)
{
	const char *provider = context->info ? context->info->fabric_attr->prov_name : context->path.provider;

	return xb_fail(error, status, "ofi:%s: %s failed: %s (%ld)%s%s", provider, call,
		       context->lib.strerror((int)(code < 0 ? -code : code)), code, advice ? "; " : "",
		       advice ? advice : "");
}

static int open_queue(struct ofi_context *c, uint32_t outstanding, struct xb_error *error)
{
	struct fi_cq_attr attr = {0};
	int rc;

	/* One queue for both directions: every wait then progresses everything with one call. */
	attr.size = (size_t)outstanding * 2 + 64;
	attr.format = FI_CQ_FORMAT_CONTEXT;
	attr.wait_obj = c->sleeping ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
	rc = fi_cq_open(c->domain, &attr, &c->cq, NULL);
	if (rc)
		return ofi_fail(c, error, XB_E_TRANSPORT, "fi_cq_open", rc,
				c->sleeping ? "the provider may not be able to sleep: leave out wait=sread"
					    : NULL);
	return XB_OK;
}

static int open_endpoint(struct ofi_context *c, uint32_t outstanding, struct xb_error *error)
{
	struct fi_av_attr av = {0};
	int rc = c->lib.fabric(c->info->fabric_attr, &c->fabric, NULL);

	if (rc)
		return ofi_fail(c, error, XB_E_TRANSPORT, "fi_fabric", rc, NULL);
	rc = fi_domain(c->fabric, c->info, &c->domain, NULL);
	if (rc)
		return ofi_fail(c, error, XB_E_TRANSPORT, "fi_domain", rc, NULL);
	rc = open_queue(c, outstanding, error);
	if (rc)
		return rc;
	av.type = c->info->domain_attr
			  ->av_type; /* psm2 forces FI_AV_TABLE; unspecified means the provider's choice */
	av.count = c->endpoints;
	rc = fi_av_open(c->domain, &av, &c->av, NULL);
	if (rc)
		return ofi_fail(c, error, XB_E_TRANSPORT, "fi_av_open", rc, NULL);
	rc = fi_endpoint(c->domain, c->info, &c->ep, NULL);
	if (rc)
		return ofi_fail(
			c, error, XB_E_TRANSPORT, "fi_endpoint", rc,
			c->info->addr_format == FI_ADDR_PSMX2
				? "PSM2 could not open the adapter; ofi:psm2/shm uses shared memory only"
				: NULL);
	rc = fi_ep_bind(c->ep, &c->av->fid, 0);
	if (!rc)
		rc = fi_ep_bind(c->ep, &c->cq->fid, FI_TRANSMIT | FI_RECV);
	if (rc)
		return ofi_fail(c, error, XB_E_TRANSPORT, "fi_ep_bind", rc, NULL);
	rc = fi_enable(c->ep);
	if (rc)
		return ofi_fail(c, error, XB_E_TRANSPORT, "fi_enable", rc, NULL);
	c->name_bytes = sizeof(c->name);
	rc = fi_getname(&c->ep->fid, c->name, &c->name_bytes);
	if (rc)
		return ofi_fail(c, error, XB_E_TRANSPORT, "fi_getname", rc, NULL);
	return XB_OK;
}

/* Values that libfabric reads once, when it is first asked. What the user has set is left alone. */
static void set_environment(const struct ofi_path *path)
{
	/* verbs sizes its completion queues for 256 peers, which is more than small adapters and soft-RoCE
	 * allow: fi_enable then fails with "Unable to create verbs CQ". */
	if (!path->provider[0] || !strncmp(path->provider, "verbs", 5))
		setenv("FI_UNIVERSE_SIZE", "16", 0);
}

static int wait_mode(struct ofi_context *c, const struct xb_setup *setup, struct xb_error *error)
{
	const char *wait = xb_setup_value(setup, "wait", "spin");

	if (strcmp(wait, "spin") && strcmp(wait, "sread"))
		return xb_fail(error, XB_E_USAGE, "asked for wait=%s; ofi knows wait=spin and wait=sread",
			       wait);
	c->sleeping = !strcmp(wait, "sread");
	return XB_OK;
}

static int flush_mode(const struct xb_setup *setup, struct ofi_need *need, struct xb_error *error)
{
	const char *flush = xb_setup_value(setup, "flush", "auto");

	if (strcmp(flush, "auto") && strcmp(flush, "delivery") && strcmp(flush, "read"))
		return xb_fail(error, XB_E_USAGE,
			       "asked for flush=%s; ofi knows flush=auto, delivery and read", flush);
	need->read_back = need->rma && !strcmp(flush, "read");
	return XB_OK;
}

static int check_flush(const struct ofi_context *c, const struct xb_setup *setup, struct xb_error *error)
{
	if (c->rma && !c->delivery && !strcmp(xb_setup_value(setup, "flush", "auto"), "delivery"))
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "asked for flush=delivery; ofi:%s does not offer FI_DELIVERY_COMPLETE; use "
			       "flush=read",
			       c->info->fabric_attr->prov_name);
	return XB_OK;
}

static int ofi_memory(void *context, void *base, size_t bytes, void *region, struct xb_error *error);

static int ofi_open(void *context, const struct xb_setup *setup, struct xb_error *error)
{
	struct ofi_context *c = context;
	const char *host = getenv("XB_SAME_HOST");
	struct ofi_need need = {.rma = setup->op != XB_OP_SEND,
				.same_host = !host || strcmp(host, "0") != 0,
				/* each synchronous send has the receive of its answer as well */
				.outstanding = setup->max_outstanding * (setup->sync_sends ? 2 : 1)};
	int rc;

	c->abort = setup->abort;
	c->endpoint = setup->endpoint;
	c->endpoints = setup->endpoints;
	c->rma = need.rma;
	c->same_host = need.same_host;
	rc = ofi_path_parse(setup->path, &c->path, error);
	if (rc == XB_OK)
		rc = wait_mode(c, setup, error);
	if (rc == XB_OK)
		rc = flush_mode(setup, &need, error);
	if (rc == XB_OK)
		rc = ofi_omnipath_prepare(&c->opa, &c->path, error);
	if (rc != XB_OK)
		return rc;
	set_environment(&c->path);
	rc = ofi_library_load(&c->lib, error);
	if (rc == XB_OK)
		rc = ofi_select(&c->lib, &c->path, &need, &c->opa, &c->info, error);
	c->delivery = need.rma && !need.read_back;
	if (rc == XB_OK)
		rc = check_flush(c, setup, error);
	if (rc != XB_OK)
		return rc;
	c->tagged = (c->info->caps & FI_TAGGED) != 0;
	if (!c->tagged && c->endpoints > 2)
		return xb_fail(
			error, XB_E_UNSUPPORTED,
			"asked for %u endpoints on ofi:%s; without tagged messages it can tell only one peer "
			"apart; use 2 endpoints",
			c->endpoints, c->info->fabric_attr->prov_name);
	c->sync = setup->sync_sends && c->tagged && !c->rma;
	rc = open_endpoint(c, need.outstanding, error);
	if (rc == XB_OK && ((c->rma && !c->delivery) || c->sync))
		rc = ofi_memory(c, c->scratch, sizeof(c->scratch), &c->scratch_region, error);
	return rc;
}

static int ofi_memory(void *context, void *base, size_t bytes, void *region, struct xb_error *error)
{
	struct ofi_context *c = context;
	struct ofi_region *r = region;
	uint64_t access = FI_SEND | FI_RECV;
	int mode = c->info->domain_attr->mr_mode, rc;

	r->base = base;
	r->bytes = bytes;
	if (c->rma)
		access |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	else if (!(mode & FI_MR_LOCAL))
		return XB_OK; /* plain messages from any memory */
	if (c->region_count == OFI_MAX_REGIONS)
		return xb_fail(error, XB_E_RESOURCE, "ofi:%s: more than %u memory regions were asked for",
			       c->info->fabric_attr->prov_name, OFI_MAX_REGIONS);
	rc = fi_mr_reg(c->domain, base, bytes, access, 0, c->region_count + 1u, 0, &r->mr, NULL);
	if (rc)
		return ofi_fail(c, error, XB_E_RESOURCE, "fi_mr_reg", rc,
				"the locked-memory limit (ulimit -l) may be too low");
	c->regions[c->region_count++] = r->mr;
	if (mode & FI_MR_ENDPOINT) {
		rc = fi_mr_bind(r->mr, &c->ep->fid, 0);
		if (!rc)
			rc = fi_mr_enable(r->mr);
		if (rc)
			return ofi_fail(c, error, XB_E_TRANSPORT, "fi_mr_enable", rc, NULL);
	}
	r->desc = fi_mr_desc(r->mr);
	return XB_OK;
}

static int ofi_address(void *context, uint32_t peer, void *address, size_t *bytes, struct xb_error *error)
{
	const struct ofi_context *c = context;
	struct ofi_address mine = {.format = c->info->addr_format, .bytes = (uint32_t)c->name_bytes};

	(void)peer; /* a reliable datagram endpoint has one address for all */
	if (*bytes < sizeof(mine))
		return xb_fail(error, XB_E_RESOURCE, "ofi: an address needs %zu bytes; there is room for %zu",
			       sizeof(mine), *bytes);
	snprintf(mine.provider, sizeof(mine.provider), "%s", c->info->fabric_attr->prov_name);
	memcpy(mine.name, c->name, c->name_bytes);
	memcpy(address, &mine, sizeof(mine));
	*bytes = sizeof(mine);
	return XB_OK;
}

/*
 * Largest message to inject. An injected message has no completion to wait for, so after the last one of a
 * block nobody progresses the provider any more: it must already be on its way when the call returns. sockets
 * only queues it.
 */
static size_t inject_limit(const struct fi_info *info)
{
	return strncmp(info->fabric_attr->prov_name, "sockets", 7) ? info->tx_attr->inject_size : 0;
}

/* Nothing is sent: the provider connects with the first message, which the block's agreement is. Waiting for
 * the peer here could deadlock a team whose endpoints connect in different orders. */
static int ofi_connect(void *context, uint32_t peer, const void *address, size_t bytes, void *conn,
		       struct xb_error *error)
{
	struct ofi_context *c = context;
	struct ofi_connection *k = conn;
	struct ofi_address theirs;
	int rc;

	if (bytes != sizeof(theirs))
		return xb_fail(error, XB_E_PEER,
			       "ofi: endpoint %u sent an address of %zu bytes; expected %zu", peer, bytes,
			       sizeof(theirs));
	memcpy(&theirs, address, sizeof(theirs));
	theirs.provider[sizeof(theirs.provider) - 1] = '\0';
	if (strcmp(theirs.provider, c->info->fabric_attr->prov_name) ||
	    theirs.format != c->info->addr_format || theirs.bytes > sizeof(theirs.name))
		return xb_fail(
			error, XB_E_PEER,
			"asked for ofi:%s; endpoint %u resolved to provider %s, endpoint %u to %s; name the "
			"provider, and use the same libfabric on both hosts",
			c->path.provider, c->endpoint, c->info->fabric_attr->prov_name, peer,
			theirs.provider);
	rc = fi_av_insert(c->av, theirs.name, 1, &k->peer, 0, NULL);
	if (rc != 1)
		return ofi_fail(c, error, XB_E_PEER, "fi_av_insert", rc < 0 ? rc : -FI_EINVAL, NULL);
	k->context = c;
	k->ep = c->ep;
	k->cq = c->cq;
	k->abort = c->abort;
	k->send_tag = c->endpoint; /* the tag names the sender: one endpoint serves all connections */
	k->recv_tag = peer;
	k->peer_endpoint = peer;
	k->inject_bytes = inject_limit(c->info);
	memcpy(k->peer_name, theirs.name, theirs.bytes);
	k->peer_name_bytes = theirs.bytes;
	c->connections++;
	return XB_OK;
}

static int ofi_export(void *context, void *region, void *blob, size_t *bytes, struct xb_error *error)
{
	const struct ofi_context *c = context;
	const struct ofi_region *r = region;
	int mode = c->info->domain_attr->mr_mode;
	struct ofi_exported out = {0};

	if (!r->mr)
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "ofi:%s was opened for --op send; it exports no memory",
			       c->info->fabric_attr->prov_name);
	if (*bytes < sizeof(out))
		return xb_fail(error, XB_E_RESOURCE,
			       "ofi: an exported region needs %zu bytes; there is room for %zu", sizeof(out),
			       *bytes);
	out.base = mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)r->base : 0;
	if (mode & FI_MR_RAW) {
		size_t raw = sizeof(out.raw);
		int rc = fi_mr_raw_attr(r->mr, &out.base, out.raw, &raw, 0);

		if (rc)
			return ofi_fail(c, error, XB_E_TRANSPORT, "fi_mr_raw_attr", rc, NULL);
		out.raw_bytes = (uint32_t)raw;
	} else {
		out.key = fi_mr_key(r->mr);
	}
	memcpy(blob, &out, sizeof(out));
	*bytes = sizeof(out);
	return XB_OK;
}

static int ofi_import(void *conn, const void *blob, size_t bytes, void *remote, struct xb_error *error)
{
	const struct ofi_connection *k = conn;
	struct ofi_remote *r = remote;
	struct ofi_exported in;

	if (bytes != sizeof(in))
		return xb_fail(error, XB_E_PEER,
			       "ofi: endpoint %u exported a region of %zu bytes; expected %zu",
			       k->peer_endpoint, bytes, sizeof(in));
	memcpy(&in, blob, sizeof(in));
	r->base = in.base;
	r->key = in.key;
	if (in.raw_bytes) {
		int rc = fi_mr_map_raw(k->context->domain, in.base, in.raw,
				       in.raw_bytes < sizeof(in.raw) ? in.raw_bytes : sizeof(in.raw), &r->key,
				       0);

		if (rc)
			return ofi_fail(k->context, error, XB_E_TRANSPORT, "fi_mr_map_raw", rc, NULL);
		r->raw = 1;
	}
	return XB_OK;
}

static void ofi_explain(void *conn, struct xb_error *error)
{
	const struct ofi_connection *k = conn;

	if (k->failure.status != XB_OK)
		*error = k->failure;
	else
		xb_fail(error, XB_E_TRANSPORT, "ofi:%s: no operation on this connection has failed",
			k->context ? k->context->info->fabric_attr->prov_name : "");
}

static void ofi_close(void *context, int clean)
{
	struct ofi_context *c = context;

	ofi_leftover_unlink(c, NULL, 0);
	/* A provider may wait for its peers when an endpoint closes (psm2 5 s, rxd for acknowledgements).
	 * After a failure the process is about to end and the kernel closes sockets and devices. */
	if (clean) {
		if (c->ep)
			fi_close(&c->ep->fid);
		while (c->region_count)
			fi_close(&c->regions[--c->region_count]->fid);
		if (c->av)
			fi_close(&c->av->fid);
		if (c->cq)
			fi_close(&c->cq->fid);
		if (c->domain)
			fi_close(&c->domain->fid);
		if (c->fabric)
			fi_close(&c->fabric->fid);
		if (c->info)
			c->lib.freeinfo(c->info);
	}
	ofi_omnipath_release(&c->opa);
	/* libfabric stays loaded: it has registered handlers that run when the process exits. */
	c->ep = NULL;
	c->av = NULL;
	c->cq = NULL;
	c->domain = NULL;
	c->fabric = NULL;
	c->info = NULL;
}

static const struct xb_key keys[] = {
	{"wait", "spin|sread", "poll the completion queue, or sleep in fi_cq_sread"},
	{"flush", "auto|delivery|read",
	 "how a put is known to be visible: the provider's acknowledgement or a read-back"},
	{0},
};

const __attribute__((visibility("default"))) struct xb_transport xb_transport = {
	.abi = XB_TRANSPORT_ABI,
	.name = "ofi",
	.summary = "libfabric, reliable datagram endpoint (Omni-Path: ofi:psm2)",
	.layer = XB_LAYER_MIDDLEWARE,
	.context_bytes = sizeof(struct ofi_context),
	.connection_bytes = sizeof(struct ofi_connection),
	.request_bytes = sizeof(struct ofi_request),
	.region_bytes = sizeof(struct ofi_region),
	.remote_bytes = sizeof(struct ofi_remote),
	.keys = keys,
	.probe = ofi_probe,
	.open = ofi_open,
	.memory = ofi_memory,
	.address = ofi_address,
	.connect = ofi_connect,
	.export_region = ofi_export,
	.import_region = ofi_import,
	.prepare = ofi_prepare,
	.describe = ofi_describe,
	.explain = ofi_explain,
	.close = ofi_close,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses, wire-up and shutdown. UCX connects lazily, with the first message; here the two ends greet each
 * other, so that the lanes are final when connect returns and nothing of the wire-up falls into a
 * measurement.
 */
#include <string.h>
#include <time.h>

#include "place.h"
#include "ucx.h"

#define CONNECT_TIMEOUT_NS 60000000000u
#define CLOSE_TIMEOUT_NS 2000000000u

#define MAGIC 0x58435558u /* "XUCX" */

/* Tags: what it is and who sent it. Messages of one direction share a tag, so UCX matches them in order. */
#define TAG_DATA ((ucp_tag_t)1 << 32)
#define TAG_HELLO ((ucp_tag_t)2 << 32)
#define TAG_READY ((ucp_tag_t)3 << 32)

struct wire_address {
	uint32_t magic, endpoint;
	struct xb_place place;
	/* UCX's worker address follows */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int xb_ucx_address(void *context, uint32_t peer, void *address, size_t *bytes, struct xb_error *error)
{
	struct xb_ucx_context *x = context;
	const struct wire_address head = {.magic = MAGIC, .endpoint = x->endpoint, .place = xb_place_here()};
	ucp_address_t *worker;
	size_t worker_bytes;
	ucs_status_t status;

	(void)peer; /* one address serves all */
	status = ucp_worker_get_address(x->worker, &worker, &worker_bytes);
	if (status != UCS_OK)
		return xb_fail(error, XB_E_TRANSPORT, "ucx: no worker address: %s",
			       ucs_status_string(status));
	if (sizeof(head) + worker_bytes > *bytes) {
		ucp_worker_release_address(x->worker, worker);
		return xb_fail(error, XB_E_RESOURCE,
			       "ucx: the address of this endpoint takes %zu bytes, %zu are available; name "
			       "fewer devices in the path",
			       worker_bytes, *bytes - sizeof(head));
	}
	memcpy(address, &head, sizeof(head));
	memcpy((char *)address + sizeof(head), worker, worker_bytes);
	*bytes = sizeof(head) + worker_bytes;
	ucp_worker_release_address(x->worker, worker);
	return 0;
}

/* Runs for free: UCX calls it where a transport notices that the peer is gone, even with errors=none. */
static void peer_failed(void *user_data, ucp_ep_h ep, ucs_status_t status)
{
	struct xb_ucx_connection *c = user_data;

	(void)ep;
	if (!c->failed) {
		c->failed = 1;
		c->status = status;
	}
}

/* Progresses until *pointer is done. Frees the request on success only: otherwise it may still be in use. */
static int complete(struct xb_ucx_connection *c, ucs_status_ptr_t pointer, uint64_t deadline_ns,
		    const char *what, struct xb_error *error)
{
	ucs_status_t status = UCS_OK;
	char log[400];

	if (UCS_PTR_IS_ERR(pointer))
		status = UCS_PTR_STATUS(pointer);
	while (UCS_PTR_IS_PTR(pointer) && (status = ucp_request_check_status(pointer)) == UCS_INPROGRESS) {
		for (int i = 0; i < 64; i++)
			ucp_worker_progress(c->worker);
		if (atomic_load_explicit(c->abort, memory_order_relaxed))
			return xb_fail(error, XB_E_ABORTED, "ucx: given up while connecting to endpoint %u",
				       c->peer);
		if (c->failed)
			status = c->status;
		else if (now_ns() > deadline_ns)
			status = UCS_ERR_TIMED_OUT;
		if (status != UCS_INPROGRESS)
			break;
	}
	if (status != UCS_OK) {
		xb_ucx_log_text(log, sizeof(log));
		return xb_fail(
			error, status == UCS_ERR_TIMED_OUT ? XB_E_TIMEOUT : XB_E_PEER,
			"ucx: no connection to endpoint %u over %s (%s): %s%s; check that the two ends reach "
			"each other on this path and that no firewall is between them",
			c->peer, c->context->path.text, what,
			status == UCS_ERR_TIMED_OUT ? "nothing within 60 s" : ucs_status_string(status), log);
	}
	if (UCS_PTR_IS_PTR(pointer))
		ucp_request_free(pointer);
	return 0;
}

/* One byte each way. */
static int greet(struct xb_ucx_connection *c, ucp_tag_t tag, uint64_t deadline_ns, const char *what,
		 struct xb_error *error)
{
	const ucp_request_param_t plain = {.op_attr_mask = 0};
	ucs_status_ptr_t in =
		ucp_tag_recv_nbx(c->worker, &c->hello_in, 1, tag | c->peer, (ucp_tag_t)-1, &plain);
	ucs_status_ptr_t out = ucp_tag_send_nbx(c->ep, &c->hello_out, 1, tag | c->context->endpoint, &plain);
	int status = complete(c, out, deadline_ns, what, error);

	return status ? status : complete(c, in, deadline_ns, what, error);
}

/*
 * First greeting: the wire-up has got far enough for messages. Flush: it is finished on this side. Second
 * greeting: it is finished on the other side too, which until then needs this side's progress; after it both
 * may go to sleep.
 */
static int wire_up(struct xb_ucx_connection *c, struct xb_error *error)
{
	const ucp_request_param_t plain = {.op_attr_mask = 0};
	uint64_t deadline_ns = now_ns() + CONNECT_TIMEOUT_NS;
	int status = greet(c, TAG_HELLO, deadline_ns, "first message", error);

	if (status == 0)
		status = complete(c, ucp_ep_flush_nbx(c->ep, &plain), deadline_ns, "wire-up", error);
	if (status == 0)
		status = greet(c, TAG_READY, deadline_ns, "second message", error);
	return status;
}

int xb_ucx_connect(void *context, uint32_t peer, const void *address, size_t bytes, void *conn,
		   struct xb_error *error)
{
	struct xb_ucx_context *x = context;
	struct xb_ucx_connection *c = conn;
	struct wire_address head;
	const struct xb_place here = xb_place_here();
	ucp_ep_params_t parameters = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
			      UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.err_mode = x->peer_errors ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE,
		.err_handler = {.cb = peer_failed, .arg = c},
	};
	ucs_status_t status;
	char log[400];

	if (bytes <= sizeof(head) || (memcpy(&head, address, sizeof(head)), head.magic != MAGIC))
		return xb_fail(error, XB_E_PEER,
			       "ucx: endpoint %u sent an address of %zu bytes that is not one of the ucx "
			       "backend; run the same version of xportbench at both ends",
			       peer, bytes);
	c->context = x;
	c->worker = x->worker;
	c->abort = x->abort;
	c->peer = peer;
	c->same_host = xb_place_same_host(&here, &head.place);
	c->same_netns = xb_place_same_netns(&here, &head.place);
	c->send_tag = TAG_DATA | x->endpoint;
	c->recv_tag = TAG_DATA | peer;
	xb_ucx_hot_setup(c);

	xb_ucx_log_clear();
	parameters.address = (const ucp_address_t *)((const char *)address + sizeof(head));
	status = ucp_ep_create(x->worker, &parameters, &c->ep);
	if (status != UCS_OK) {
		c->ep = NULL;
		xb_ucx_log_text(log, sizeof(log));
		return xb_fail(error, status == UCS_ERR_UNREACHABLE ? XB_E_UNAVAILABLE : XB_E_TRANSPORT,
			       "ucx: endpoint %u cannot be reached over %s: %s%s; %s", peer, x->path.text,
			       ucs_status_string(status), log,
			       x->peer_errors
				       ? "leave out errors=peer, which few shared-memory transports support"
				       : "choose a path that both ends have, or none to let UCX choose");
	}
	c->next = x->connections;
	x->connections = c;
	return wire_up(c, error);
}

static void close_flushed(struct xb_ucx_connection *c, uint64_t deadline_ns)
{
	const ucp_request_param_t flush_first = {.op_attr_mask = 0};
	ucs_status_ptr_t pointer = ucp_ep_close_nbx(c->ep, &flush_first);

	if (!UCS_PTR_IS_PTR(pointer))
		return;
	while (ucp_request_check_status(pointer) == UCS_INPROGRESS && now_ns() < deadline_ns &&
	       !atomic_load_explicit(c->abort, memory_order_relaxed))
		ucp_worker_progress(c->worker);
	ucp_request_free(pointer);
}

void xb_ucx_disconnect_all(struct xb_ucx_context *x, int clean)
{
	const uint64_t deadline_ns = now_ns() + CLOSE_TIMEOUT_NS;
	const ucp_request_param_t at_once = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
					     .flags = UCP_EP_CLOSE_FLAG_FORCE};

	for (struct xb_ucx_connection *c = x->connections; c; c = c->next) {
		for (struct xb_ucx_remote *r = c->remotes; r; r = r->next)
			ucp_rkey_destroy(r->key);
		c->remotes = NULL;
		if (clean && !c->failed) {
			close_flushed(c, deadline_ns);
		} else if (x->peer_errors) {
			/* Only then may an endpoint be closed by force; otherwise destroying the worker drops
			 * it. */
			ucs_status_ptr_t pointer = ucp_ep_close_nbx(c->ep, &at_once);
			if (UCS_PTR_IS_PTR(pointer))
				ucp_request_free(pointer);
		}
		c->ep = NULL;
	}
	x->connections = NULL;
}

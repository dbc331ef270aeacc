/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that is timed. As in UCX's own ucx_perftest: requests come from UCX's pool (its free list keeps
 * handing out the one that is still in cache), completion is a callback, and most small sends complete inside
 * the call and touch no request at all. The parameter blocks are filled in once; an operation only adds where
 * to report to.
 */
#include "ucx.h"

#define likely(x) __builtin_expect(!!(x), 1)

static void finish(void *ucx_request, struct xb_ucx_request *request, ucs_status_t status)
{
	request->status = status;
	ucp_request_free(ucx_request);
}

static void sent(void *ucx_request, ucs_status_t status, void *user_data)
{
	finish(ucx_request, user_data, status);
}

static void received(void *ucx_request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
	(void)info;
	finish(ucx_request, user_data, status);
}

static int to_status(ucs_status_t status)
{
	switch (status) {
	case UCS_ERR_CONNECTION_RESET:
	case UCS_ERR_ENDPOINT_TIMEOUT:
	case UCS_ERR_NOT_CONNECTED:
		return XB_E_PEER;
	case UCS_ERR_NO_MEMORY:
	case UCS_ERR_NO_RESOURCE:
		return XB_E_RESOURCE;
	case UCS_ERR_UNSUPPORTED:
		return XB_E_UNSUPPORTED;
	case UCS_ERR_MESSAGE_TRUNCATED:
		return XB_E_CORRUPT;
	default:
		return XB_E_TRANSPORT;
	}
}

static __attribute__((noinline, cold)) int failed(struct xb_ucx_connection *c, const char *operation,
						  ucs_status_t status)
{
	if (!c->failed || c->operation == NULL) {
		c->failed = 1;
		c->operation = operation;
		c->status = status;
	}
	return to_status(status);
}

/* What a call returned: NULL is done, an error pointer is an error, anything else will call back from
 * progress. */
static inline __attribute__((always_inline)) int started(struct xb_ucx_connection *c,
							 ucs_status_ptr_t pointer,
							 struct xb_ucx_request *request,
							 const char *operation)
{
	if (pointer == NULL) {
		request->status = UCS_OK;
		return 0;
	}
	if (likely(!UCS_PTR_IS_ERR(pointer))) {
		request->status = UCS_INPROGRESS;
		return 0;
	}
	request->status = UCS_PTR_STATUS(pointer);
	return failed(c, operation, request->status);
}

static int hot_send(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct xb_ucx_connection *c = conn;
	(void)region;
	c->send.user_data = request;
	return started(c, ucp_tag_send_nbx(c->ep, buf, bytes, c->send_tag, &c->send), request, "send");
}

static int hot_send_sync(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct xb_ucx_connection *c = conn;
	(void)region;
	c->send.user_data = request;
	return started(c, ucp_tag_send_sync_nbx(c->ep, buf, bytes, c->send_tag, &c->send), request,
		       "synchronous send");
}

static int hot_recv(void *conn, void *buf, size_t bytes, void *region, void *request)
{
	struct xb_ucx_connection *c = conn;
	(void)region;
	c->recv.user_data = request;
	return started(c, ucp_tag_recv_nbx(c->worker, buf, bytes, c->recv_tag, (ucp_tag_t)-1, &c->recv),
		       request, "receive");
}

static int hot_put(void *conn, const void *buf, size_t bytes, void *region, void *remote,
		   size_t remote_offset, void *request)
{
	struct xb_ucx_connection *c = conn;
	const struct xb_ucx_remote *r = remote;
	(void)region;
	c->rma.user_data = request;
	return started(c, ucp_put_nbx(c->ep, buf, bytes, r->base + remote_offset, r->key, &c->rma), request,
		       "put");
}

static int hot_get(void *conn, void *buf, size_t bytes, void *region, void *remote, size_t remote_offset,
		   void *request)
{
	struct xb_ucx_connection *c = conn;
	const struct xb_ucx_remote *r = remote;
	(void)region;
	c->rma.user_data = request;
	return started(c, ucp_get_nbx(c->ep, buf, bytes, r->base + remote_offset, r->key, &c->rma), request,
		       "get");
}

static int hot_wait(void *conn, void *request)
{
	struct xb_ucx_connection *c = conn;
	volatile struct xb_ucx_request *r = request; /* the callback writes it from inside progress */

	while (r->status == UCS_INPROGRESS) {
		ucp_worker_progress(c->worker);
		if (atomic_load_explicit(c->abort, memory_order_relaxed))
			return XB_E_ABORTED;
		if (c->failed)
			return to_status(c->status);
	}
	return likely(r->status == UCS_OK) ? 0 : failed(c, "transfer", r->status);
}

static int hot_wait_all(void *conn, void *requests, size_t count)
{
	struct xb_ucx_request *r = requests;

	for (size_t i = 0; i < count; i++) {
		int status = hot_wait(conn, &r[i]);
		if (status)
			return status;
	}
	return 0;
}

static int hot_test(void *conn, void *request)
{
	struct xb_ucx_connection *c = conn;
	volatile struct xb_ucx_request *r = request;

	if (r->status == UCS_INPROGRESS) {
		ucp_worker_progress(c->worker);
		if (r->status == UCS_INPROGRESS)
			return c->failed ? to_status(c->status) : 0;
	}
	return likely(r->status == UCS_OK) ? 1 : failed(c, "transfer", r->status);
}

/* UCX's flush completes when earlier puts are visible in the peer's memory and earlier gets have arrived. */
static int hot_flush(void *conn)
{
	struct xb_ucx_connection *c = conn;
	int status;

	c->flush.user_data = &c->flush_request;
	status = started(c, ucp_ep_flush_nbx(c->ep, &c->flush), &c->flush_request, "flush");
	return status ? status : hot_wait(c, &c->flush_request);
}

/* As ucx_perftest waits in its put latency test. */
static int hot_watch(void *conn, const struct xb_spot *at, uint64_t stamp)
{
	struct xb_ucx_connection *c = conn;

	while (!xb_watched(at, stamp)) {
		ucp_worker_progress(c->worker);
		if (atomic_load_explicit(c->abort, memory_order_relaxed))
			return XB_E_ABORTED;
		if (c->failed)
			return to_status(c->status);
	}
	return 0;
}

static const struct xb_hot hot_messages = {
	.send = hot_send,
	.send_sync = hot_send_sync,
	.send_ready = hot_send, /* UCX has no ready send: a standard one is always right */
	.recv = hot_recv,
	.wait = hot_wait,
	.wait_all = hot_wait_all,
	.test = hot_test,
	.put = xb_hot_unsupported_put,
	.get = xb_hot_unsupported_get,
	.flush = xb_hot_unsupported_flush,
	.watch = xb_hot_unsupported_watch,
};

static const struct xb_hot hot_messages_and_rma = {
	.send = hot_send,
	.send_sync = hot_send_sync,
	.send_ready = hot_send,
	.recv = hot_recv,
	.wait = hot_wait,
	.wait_all = hot_wait_all,
	.test = hot_test,
	.put = hot_put,
	.get = hot_get,
	.flush = hot_flush,
	.watch = hot_watch,
};

void xb_ucx_hot_setup(struct xb_ucx_connection *c)
{
	/* All buffers are ordinary memory: saying so spares UCX a look-up per message where it knows
	 * accelerators. */
	const uint32_t common =
		UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;

	c->send.op_attr_mask = c->recv.op_attr_mask = c->rma.op_attr_mask = common;
	c->send.memory_type = c->recv.memory_type = c->rma.memory_type = UCS_MEMORY_TYPE_HOST;
	c->send.cb.send = c->rma.cb.send = c->flush.cb.send = sent;
	c->recv.cb.recv = received;
	c->flush.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
}

const struct xb_hot *xb_ucx_prepare(void *conn, const struct xb_pattern *pattern, struct xb_error *error)
{
	struct xb_ucx_connection *c = conn;
	const int rma = (c->context->features & UCP_FEATURE_RMA) != 0;

	if (pattern->op != XB_OP_SEND && !rma) {
		xb_fail(error, XB_E_UNSUPPORTED,
			"ucx was opened for messages, but a block of one-sided operations was asked for; "
			"open it with the operation of the run");
		return NULL;
	}
	/* As ucx_perftest does for its bandwidth tests: many messages are in flight, optimise for throughput.
	 */
	if (pattern->window > 1)
		c->send.op_attr_mask |= UCP_OP_ATTR_FLAG_MULTI_SEND;
	else
		c->send.op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FLAG_MULTI_SEND;
	return rma ? &hot_messages_and_rma : &hot_messages;
}

void xb_ucx_explain(void *conn, struct xb_error *error)
{
	struct xb_ucx_connection *c = conn;
	char log[400];

	if (!c->failed) {
		xb_fail(error, XB_E_TRANSPORT, "ucx: no operation to endpoint %u has failed", c->peer);
		return;
	}
	xb_ucx_log_text(log, sizeof(log));
	xb_fail(error, to_status(c->status), "ucx: %s with endpoint %u failed: %s%s%s",
		c->operation ? c->operation : "connection", c->peer, ucs_status_string(c->status), log,
		to_status(c->status) == XB_E_PEER ? "; the peer has ended, or the network to it is down"
						  : "");
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timed operations on messages. Two families that an MPI program can be written in:
 *   blocking     MPI_Send, MPI_Recv. A posted receive is only noted; wait begins and ends it. This is
 * osu_latency. nonblocking  MPI_Isend, MPI_Irecv, MPI_Wait, MPI_Waitall. This is osu_bw. MPI spins inside its
 * own calls and cannot look at the abort flag there; the worker's watcher ends the process instead.
 */
#include "backend.h"

int xb_mpi_hot_failed(struct xb_mpi_connection *conn, const char *call, int code)
{
	int class = MPI_ERR_OTHER;

	conn->failed_call = call;
	conn->failed_code = code;
	MPI_Error_class(code, &class);
	conn->failed_status = class == MPI_ERR_NO_MEM ? XB_E_RESOURCE : XB_E_TRANSPORT;
	return conn->failed_status;
}

void xb_mpi_explain(void *c, struct xb_error *error)
{
	struct xb_mpi_connection *conn = c;

	if (!conn->failed_call)
		xb_fail(error, XB_E_TRANSPORT, "no MPI call has failed towards rank %d", conn->peer);
	else
		xb_mpi_fail(error, conn->failed_status, conn->failed_call, conn->failed_code);
}

static inline int done(struct xb_mpi_connection *conn, const char *call, int code)
{
	return __builtin_expect(code == MPI_SUCCESS, 1) ? 0 : xb_mpi_hot_failed(conn, call, code);
}

/* ---- non-blocking */

static int start_send(void *c, const void *buf, size_t bytes, void *region, void *request)
{
	struct xb_mpi_connection *conn = c;

	(void)region;
	return done(conn, "MPI_Isend",
		    MPI_Isend(buf, (int)bytes, MPI_BYTE, conn->peer, XB_MPI_TAG_DATA, conn->comm, request));
}

static int start_send_sync(void *c, const void *buf, size_t bytes, void *region, void *request)
{
	struct xb_mpi_connection *conn = c;

	(void)region;
	return done(conn, "MPI_Issend",
		    MPI_Issend(buf, (int)bytes, MPI_BYTE, conn->peer, XB_MPI_TAG_DATA, conn->comm, request));
}

static int start_send_ready(void *c, const void *buf, size_t bytes, void *region, void *request)
{
	struct xb_mpi_connection *conn = c;

	(void)region;
	return done(conn, "MPI_Irsend",
		    MPI_Irsend(buf, (int)bytes, MPI_BYTE, conn->peer, XB_MPI_TAG_DATA, conn->comm, request));
}

/* The engine waits at once: the call that is meant is the blocking one, and its request is complete. */
static int send_whole(void *c, const void *buf, size_t bytes, void *region, void *request)
{
	struct xb_mpi_connection *conn = c;

	(void)region;
	((union xb_mpi_request *)request)->mpi = MPI_REQUEST_NULL;
	return done(conn, "MPI_Send",
		    MPI_Send(buf, (int)bytes, MPI_BYTE, conn->peer, XB_MPI_TAG_DATA, conn->comm));
}

static int send_sync_whole(void *c, const void *buf, size_t bytes, void *region, void *request)
{
	struct xb_mpi_connection *conn = c;

	(void)region;
	((union xb_mpi_request *)request)->mpi = MPI_REQUEST_NULL;
	return done(conn, "MPI_Ssend",
		    MPI_Ssend(buf, (int)bytes, MPI_BYTE, conn->peer, XB_MPI_TAG_DATA, conn->comm));
}

static int send_ready_whole(void *c, const void *buf, size_t bytes, void *region, void *request)
{
	struct xb_mpi_connection *conn = c;

	(void)region;
	((union xb_mpi_request *)request)->mpi = MPI_REQUEST_NULL;
	return done(conn, "MPI_Rsend",
		    MPI_Rsend(buf, (int)bytes, MPI_BYTE, conn->peer, XB_MPI_TAG_DATA, conn->comm));
}

static int start_recv(void *c, void *buf, size_t bytes, void *region, void *request)
{
	struct xb_mpi_connection *conn = c;

	(void)region;
	return done(conn, "MPI_Irecv",
		    MPI_Irecv(buf, (int)bytes, MPI_BYTE, conn->peer, XB_MPI_TAG_DATA, conn->comm, request));
}

static int finish(void *c, void *request)
{
	return done(c, "MPI_Wait", MPI_Wait(request, MPI_STATUS_IGNORE));
}

static int finish_all(void *c, void *requests, size_t count)
{
	return done(c, "MPI_Waitall", MPI_Waitall((int)count, requests, MPI_STATUSES_IGNORE));
}

static int finish_test(void *c, void *request)
{
	int flag = 0;
	int rc = done(c, "MPI_Test", MPI_Test(request, &flag, MPI_STATUS_IGNORE));

	return rc ? rc : flag;
}

/* ---- blocking */

static int send_now(void *c, const void *buf, size_t bytes, void *region, void *request)
{
	struct xb_mpi_connection *conn = c;

	(void)region;
	((union xb_mpi_request *)request)->position = 0;
	return done(conn, "MPI_Send",
		    MPI_Send(buf, (int)bytes, MPI_BYTE, conn->peer, XB_MPI_TAG_DATA, conn->comm));
}

static int send_sync_now(void *c, const void *buf, size_t bytes, void *region, void *request)
{
	struct xb_mpi_connection *conn = c;

	(void)region;
	((union xb_mpi_request *)request)->position = 0;
	return done(conn, "MPI_Ssend",
		    MPI_Ssend(buf, (int)bytes, MPI_BYTE, conn->peer, XB_MPI_TAG_DATA, conn->comm));
}

static int note_recv(void *c, void *buf, size_t bytes, void *region, void *request)
{
	struct xb_mpi_connection *conn = c;
	struct xb_mpi_noted *noted = &conn->noted[(conn->tail >> 1) & conn->noted_mask];

	(void)region;
	/* the ring holds more than may be outstanding by the contract */
	noted->buf = buf;
	noted->bytes = (int)bytes;
	((union xb_mpi_request *)request)->position = conn->tail | 1u;
	conn->tail += 2;
	return 0;
}

static inline int receive_oldest(struct xb_mpi_connection *conn)
{
	const struct xb_mpi_noted *noted = &conn->noted[(conn->head >> 1) & conn->noted_mask];

	conn->head += 2;
	return done(conn, "MPI_Recv",
		    MPI_Recv(noted->buf, noted->bytes, MPI_BYTE, conn->peer, XB_MPI_TAG_DATA, conn->comm,
			     MPI_STATUS_IGNORE));
}

/* Is the noted receive still to be done? Counters wrap, so it is the distance that counts. */
static inline bool is_ahead(const struct xb_mpi_connection *conn, uint32_t position)
{
	return (int32_t)(position - conn->head) > 0;
}

static int receive(void *c, void *request)
{
	struct xb_mpi_connection *conn = c;
	const uint32_t position = ((union xb_mpi_request *)request)->position;
	int rc = 0;

	/* matching is by order: whoever is before us must be received first */
	if (position & 1u)
		while (!rc && is_ahead(conn, position))
			rc = receive_oldest(conn);
	return rc;
}

static int receive_all(void *c, void *requests, size_t count)
{
	union xb_mpi_request *request = requests;
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		rc = receive(c, &request[i]);
	return rc;
}

static int receive_test(void *c, void *request)
{
	struct xb_mpi_connection *conn = c;
	const uint32_t position = ((union xb_mpi_request *)request)->position;
	int flag = 1, rc = 0;

	while (!rc && flag && (position & 1u) && is_ahead(conn, position)) {
		rc = done(conn, "MPI_Iprobe",
			  MPI_Iprobe(conn->peer, XB_MPI_TAG_DATA, conn->comm, &flag, MPI_STATUS_IGNORE));
		if (!rc && flag)
			rc = receive_oldest(conn);
	}
	return rc ? rc : flag;
}

/* ---- put and get: a request of theirs is MPI_REQUEST_NULL, their local completion is that of the window */

static int settle_finish(void *c, void *request)
{
	int rc = xb_mpi_rma_settle(c);

	return rc ? rc : finish(c, request);
}

static int settle_finish_all(void *c, void *requests, size_t count)
{
	int rc = xb_mpi_rma_settle(c);

	return rc ? rc : finish_all(c, requests, count);
}

static int settle_test(void *c, void *request)
{
	int rc = xb_mpi_rma_settle(c);

	return rc ? rc : finish_test(c, request);
}

/* ---- the choice */

static const struct xb_hot nonblocking_messages = {
	.send = start_send,
	.send_sync = start_send_sync,
	.send_ready = start_send_ready,
	.recv = start_recv,
	.wait = finish,
	.wait_all = finish_all,
	.test = finish_test,
	.put = xb_hot_unsupported_put,
	.get = xb_hot_unsupported_get,
	.flush = xb_hot_unsupported_flush,
	.watch = xb_hot_unsupported_watch,
};

/* swaps whose sends block and whose receives are posted ahead */
static const struct xb_hot blocking_sends = {
	.send = send_whole,
	.send_sync = send_sync_whole,
	.send_ready = send_ready_whole,
	.recv = start_recv,
	.wait = finish,
	.wait_all = finish_all,
	.test = finish_test,
	.put = xb_hot_unsupported_put,
	.get = xb_hot_unsupported_get,
	.flush = xb_hot_unsupported_flush,
	.watch = xb_hot_unsupported_watch,
};

static const struct xb_hot blocking_messages = {
	.send = send_now,
	.send_sync = send_sync_now,
	/* a noted receive is not posted, so MPI_Rsend would be wrong; the standard lets MPI_Send stand in for
	   it */
	.send_ready = send_now,
	.recv = note_recv,
	.wait = receive,
	.wait_all = receive_all,
	.test = receive_test,
	.put = xb_hot_unsupported_put,
	.get = xb_hot_unsupported_get,
	.flush = xb_hot_unsupported_flush,
	.watch = xb_hot_unsupported_watch,
};

static const struct xb_hot one_sided = {
	.send = start_send,
	.send_sync = start_send_sync,
	.send_ready = start_send_ready,
	.recv = start_recv,
	.wait = settle_finish,
	.wait_all = settle_finish_all,
	.test = settle_test,
	.put = xb_mpi_put,
	.get = xb_mpi_get,
	.flush = xb_mpi_flush,
	.watch = xb_hot_unsupported_watch,
};

uint32_t xb_mpi_caps(const struct xb_mpi_context *context)
{
	uint32_t caps = XB_CAP_SEND | XB_CAP_SYNC_SEND;

	caps |= context->mode == XB_MPI_BLOCKING ? XB_CAP_BLOCKING : XB_CAP_READY_SEND | XB_CAP_BOTH_WAYS;
	if (context->setup->op != XB_OP_SEND)
		caps |= XB_CAP_PUT | XB_CAP_GET;
	return caps;
}

const struct xb_hot *xb_mpi_prepare(void *c, const struct xb_pattern *pattern, struct xb_error *error)
{
	struct xb_mpi_connection *conn = c;
	const enum xb_mpi_mode mode = conn->context->mode;

	if (pattern->op != XB_OP_SEND && !conn->context->window_count) {
		xb_fail(error, XB_E_UNSUPPORTED,
			"asked for write or read; MPI was started for messages and has no window; give --op "
			"at the "
			"start of the run");
		return NULL;
	}
	if (mode == XB_MPI_BLOCKING && pattern->both_ways) {
		xb_fail(error, XB_E_UNSUPPORTED,
			"asked for data in both directions at once with mode=blocking; two sides that are "
			"both in "
			"MPI_Send wait for each other for ever once a message is too large to be buffered; "
			"use "
			"mode=auto or mode=nonblocking");
		return NULL;
	}
	conn->head = conn->tail = 0;
	conn->last_blocking = false;
	if (pattern->op != XB_OP_SEND)
		return &one_sided;
	if (pattern->bench == XB_BENCH_SWAP && mode == XB_MPI_BLOCKING &&
	    !(pattern->blocking_sends && pattern->blocking_receives)) {
		xb_fail(error, XB_E_UNSUPPORTED,
			"asked for a swap (%s) that starts operations and waits for them later, with "
			"mode=blocking; use mode=auto or mode=nonblocking, or protocols 0, 6 and 10",
			pattern->variant);
		return NULL;
	}
	if (pattern->bench == XB_BENCH_SWAP && mode == XB_MPI_AUTO && pattern->blocking_sends &&
	    !pattern->blocking_receives)
		return &blocking_sends;
	if (mode == XB_MPI_BLOCKING ||
	    (mode == XB_MPI_AUTO &&
	     (pattern->bench == XB_BENCH_PINGPONG ||
	      (pattern->bench == XB_BENCH_SWAP && pattern->blocking_sends && pattern->blocking_receives)))) {
		conn->last_blocking = true;
		return &blocking_messages;
	}
	return &nonblocking_messages;
}

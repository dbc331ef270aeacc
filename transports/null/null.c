/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The truth transport: every operation is complete when it returns and nothing is moved. What a run over it
 * shows is the cost of the harness itself: the loop, the timer reads, the calls through the table.
 */
#include <stdio.h>
#include <string.h>

#include "transport.h"

struct null_connection {
	uint32_t peer;
};

static int null_send(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	(void)conn, (void)buf, (void)bytes, (void)region, (void)request;
	return 0;
}

static int null_recv(void *conn, void *buf, size_t bytes, void *region, void *request)
{
	(void)conn, (void)buf, (void)bytes, (void)region, (void)request;
	return 0;
}

static int null_wait(void *conn, void *request)
{
	(void)conn, (void)request;
	return 0;
}

static int null_wait_all(void *conn, void *requests, size_t count)
{
	(void)conn, (void)requests, (void)count;
	return 0;
}

static int null_test(void *conn, void *request)
{
	(void)conn, (void)request;
	return 1;
}

static int null_put(void *conn, const void *buf, size_t bytes, void *region, void *remote,
		    size_t remote_offset, void *request)
{
	(void)conn, (void)buf, (void)bytes, (void)region, (void)remote, (void)remote_offset, (void)request;
	return 0;
}

static int null_get(void *conn, void *buf, size_t bytes, void *region, void *remote, size_t remote_offset,
		    void *request)
{
	(void)conn, (void)buf, (void)bytes, (void)region, (void)remote, (void)remote_offset, (void)request;
	return 0;
}

static int null_flush(void *conn)
{
	(void)conn;
	return 0;
}

static int null_watch(void *conn, const struct xb_spot *at, uint64_t stamp)
{
	(void)conn, (void)at, (void)stamp;
	return 0;
}

static const struct xb_hot null_hot = {
	.send = null_send,
	.send_sync = null_send,
	.send_ready = null_send,
	.recv = null_recv,
	.wait = null_wait,
	.wait_all = null_wait_all,
	.test = null_test,
	.put = null_put,
	.get = null_get,
	.flush = null_flush,
	.watch = null_watch,
};

static int null_probe(const struct xb_probe_sink *sink, struct xb_error *error)
{
	(void)error;
	sink->library(sink->user, "none", XB_VERSION);
	sink->path(sink->user, "", "completes everything at once: measures the harness itself", 1, NULL,
		   NULL);
	return 0;
}

static int null_open(void *context, const struct xb_setup *setup, struct xb_error *error)
{
	(void)context;
	if (setup->path[0])
		return xb_fail(
			error, XB_E_USAGE,
			"asked for the path '%s' of transport null; it moves nothing and has no paths; write "
			"just 'null'",
			setup->path);
	return 0;
}

static int null_memory(void *context, void *base, size_t bytes, void *region, struct xb_error *error)
{
	(void)context, (void)base, (void)bytes, (void)region, (void)error;
	return 0;
}

static int null_address(void *context, uint32_t peer, void *address, size_t *bytes, struct xb_error *error)
{
	(void)context, (void)peer, (void)address, (void)error;
	*bytes = 0;
	return 0;
}

static int null_connect(void *context, uint32_t peer, const void *address, size_t bytes, void *conn,
			struct xb_error *error)
{
	struct null_connection *connection = conn;

	(void)context, (void)address, (void)bytes, (void)error;
	connection->peer = peer;
	return 0;
}

static int null_export(void *context, void *region, void *blob, size_t *bytes, struct xb_error *error)
{
	(void)context, (void)region, (void)blob, (void)error;
	*bytes = 0;
	return 0;
}

static int null_import(void *conn, const void *blob, size_t bytes, void *remote, struct xb_error *error)
{
	(void)conn, (void)blob, (void)bytes, (void)remote, (void)error;
	return 0;
}

static const struct xb_hot *null_prepare(void *conn, const struct xb_pattern *pattern, struct xb_error *error)
{
	(void)conn, (void)pattern, (void)error;
	return &null_hot;
}

static int null_describe(void *context, void *conn, struct xb_description *out, struct xb_error *error)
{
	(void)context, (void)conn, (void)error;
	memset(out, 0, sizeof *out);
	snprintf(out->library, sizeof out->library, "none");
	snprintf(out->version, sizeof out->version, "%s", XB_VERSION);
	snprintf(out->resolved, sizeof out->resolved, "nothing is moved");
	snprintf(out->note, sizeof out->note,
		 "times are the cost of the harness itself, not of any transport");
	out->caps = XB_CAP_SEND | XB_CAP_SYNC_SEND | XB_CAP_READY_SEND | XB_CAP_PUT | XB_CAP_GET |
		    XB_CAP_BOTH_WAYS | XB_CAP_NO_PAYLOAD | XB_CAP_PUT_WATCH;
	out->path_ok = 1;
	return 0;
}

static void null_explain(void *conn, struct xb_error *error)
{
	(void)conn;
	xb_fail(error, XB_E_TRANSPORT,
		"transport null was said to have failed, which it cannot; report this");
}

static void null_close(void *context, int clean)
{
	(void)context, (void)clean;
}

static const struct xb_key null_keys[] = {{NULL, NULL, NULL}};

__attribute__((visibility("default"))) const struct xb_transport xb_transport = {
	.abi = XB_TRANSPORT_ABI,
	.name = "null",
	.summary = "completes everything at once: measures the harness itself",
	.layer = XB_LAYER_TRUTH,
	.context_bytes = 64,
	.connection_bytes = sizeof(struct null_connection),
	.request_bytes = 64,
	.region_bytes = 64,
	.remote_bytes = 64,
	.keys = null_keys,
	.probe = null_probe,
	.open = null_open,
	.memory = null_memory,
	.address = null_address,
	.connect = null_connect,
	.export_region = null_export,
	.import_region = null_import,
	.prepare = null_prepare,
	.describe = null_describe,
	.explain = null_explain,
	.close = null_close,
};

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_UCX_H
#define XB_UCX_H
/*
 * Private to the UCX backend: one UCP context and one worker per process, one endpoint per connection, the
 * tag API for messages and RMA for put/get. Who does what: ucx.c        vtable, open, describe, close path.c
 * NAME:PATH -> UCX_TLS and UCX_NET_DEVICES, and back connect.c    addresses, wire-up, shutdown       memory.c
 * regions and remote keys hot.c        everything timed                   lanes.c     what UCX really uses,
 * read back inventory.c  transports and devices here        probe.c     the same, told to the user log.c
 * UCX's own messages, kept for error sentences
 */
#include <stdatomic.h>
#include <stdio.h>
#if !defined(asm)
#define asm __asm__ /* UCX's headers, from 1.18 on, take the GNU dialect for granted */
#endif
#include <ucp/api/ucp.h>

#include "names.h"
#include "transport.h"

/* ---- lanes.c */
int xb_ucx_lanes_read(ucp_ep_h ep, struct xb_ucx_lanes *lanes, struct xb_error *error);

/* ---- log.c: UCX offers no user pointer for its log handler, so what it keeps is per process */
void xb_ucx_log_start(int verbose);
void xb_ucx_log_stop(void);
void xb_ucx_log_clear(void);
/* ": text" of the first error, else of the last warning, since the last clear; "" if none. Cut to fit. */
void xb_ucx_log_text(char *out, size_t bytes);
/* The first warning since start, for a note; "" if none. */
void xb_ucx_log_warning(char *out, size_t bytes);

/* ---- state */
struct xb_ucx_connection;

struct xb_ucx_context {
	ucp_context_h ucp;
	ucp_worker_h worker;
	const atomic_int *abort;
	uint32_t endpoint;
	uint64_t features;
	int watched; /* puts into memory that the peer watches: they must come in order */
	int ucx_memory; /* memory=ucx: buffers are replaced by memory that UCX allocates */
	int peer_errors; /* errors=peer: UCX watches the peer */
	int log_started;
	struct xb_ucx_path path;
	char version[64];
	struct xb_ucx_connection *connections; /* list */
	struct xb_ucx_region *regions; /* list */
};

/* A UCX operation in flight, or its result. Written by the completion callback, polled by wait. */
struct xb_ucx_request {
	ucs_status_t status; /* UCS_INPROGRESS until done */
};

struct xb_ucx_region {
	struct xb_ucx_region *next;
	void *base;
	size_t bytes;
	ucp_mem_h handle;
};

struct xb_ucx_remote {
	ucp_rkey_h key;
	uint64_t base; /* address of the region in the peer */
	struct xb_ucx_remote *next;
};

struct xb_ucx_connection {
	/* hot */
	ucp_ep_h ep;
	ucp_worker_h worker;
	const atomic_int *abort;
	ucp_tag_t send_tag, recv_tag;
	ucp_request_param_t send, recv, rma, flush;
	/* cold */
	struct xb_ucx_context *context;
	struct xb_ucx_connection *next;
	struct xb_ucx_remote *remotes;
	struct xb_ucx_request
		flush_request; /* here, since a flush that was given up may still complete later */
	char hello_out, hello_in; /* likewise */
	uint32_t peer;
	int same_host, same_netns;
	int failed; /* the endpoint's error handler ran, or an operation failed */
	ucs_status_t status; /* of the first failure */
	const char *operation; /* what failed: "send" ... */
};

/* ---- connect.c */
int xb_ucx_address(void *context, uint32_t peer, void *address, size_t *bytes, struct xb_error *error);
int xb_ucx_connect(void *context, uint32_t peer, const void *address, size_t bytes, void *conn,
		   struct xb_error *error);
/* Closes all endpoints: flushes them if clean (bounded in time), else drops them. */
void xb_ucx_disconnect_all(struct xb_ucx_context *context, int clean);

/* ---- memory.c */
int xb_ucx_memory(void *context, void *base, size_t bytes, void *region, struct xb_error *error);
int xb_ucx_export(void *context, void *region, void *blob, size_t *bytes, struct xb_error *error);
int xb_ucx_import(void *conn, const void *blob, size_t bytes, void *remote, struct xb_error *error);
void xb_ucx_memory_release(struct xb_ucx_context *context);

/* ---- hot.c */
void xb_ucx_hot_setup(struct xb_ucx_connection *c);
const struct xb_hot *xb_ucx_prepare(void *conn, const struct xb_pattern *pattern, struct xb_error *error);
void xb_ucx_explain(void *conn, struct xb_error *error);

/* ---- probe.c */
int xb_ucx_probe(const struct xb_probe_sink *sink, struct xb_error *error);

#endif

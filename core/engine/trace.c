/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace decorator: which hot operations the engine asked for, in order. Lines are kept in memory while a
 * block runs and written when it is over, to FILE.ENDPOINT; a block begins with a line that says what it is.
 * Measured times are not those of an untraced run.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decorator.h"

#define MOST_OPERATIONS ((size_t)1 << 20)

enum trace_op {
	TRACE_SEND,
	TRACE_SEND_SYNC,
	TRACE_SEND_READY,
	TRACE_RECV,
	TRACE_WAIT,
	TRACE_WAIT_ALL,
	TRACE_TEST,
	TRACE_PUT,
	TRACE_GET,
	TRACE_FLUSH,
	TRACE_WATCH,
};

struct trace_entry {
	uint64_t amount : 56; /* bytes, or requests of wait_all */
	uint64_t op : 8;
};

struct trace {
	void *conn; /* of the inside */
	const struct xb_hot *hot;
	const struct xb_hot *(*prepare)(void *conn, const struct xb_pattern *pattern, struct xb_error *error);
	void (*explain)(void *conn, struct xb_error *error);
	struct xb_endpoint *endpoint;
	struct xb_pattern pattern;
	char variant[96]; /* that of the pattern is gone by then */
	size_t count; /* may exceed MOST_OPERATIONS: those are only counted */
	struct trace_entry *entries;
	int file;
};

static struct trace *note(void *conn, enum trace_op op, size_t amount)
{
	struct trace *t = conn;
	if (t->count < MOST_OPERATIONS)
		t->entries[t->count] =
			(struct trace_entry){.amount = amount & ((UINT64_C(1) << 56) - 1), .op = op};
	t->count++;
	return t;
}

static int trace_send(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct trace *t = note(conn, TRACE_SEND, bytes);
	return t->hot->send(t->conn, buf, bytes, region, request);
}

static int trace_send_sync(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct trace *t = note(conn, TRACE_SEND_SYNC, bytes);
	return t->hot->send_sync(t->conn, buf, bytes, region, request);
}

static int trace_send_ready(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct trace *t = note(conn, TRACE_SEND_READY, bytes);
	return t->hot->send_ready(t->conn, buf, bytes, region, request);
}

static int trace_recv(void *conn, void *buf, size_t bytes, void *region, void *request)
{
	struct trace *t = note(conn, TRACE_RECV, bytes);
	return t->hot->recv(t->conn, buf, bytes, region, request);
}

static int trace_wait(void *conn, void *request)
{
	struct trace *t = note(conn, TRACE_WAIT, 0);
	return t->hot->wait(t->conn, request);
}

static int trace_wait_all(void *conn, void *requests, size_t count)
{
	struct trace *t = note(conn, TRACE_WAIT_ALL, count);
	return t->hot->wait_all(t->conn, requests, count);
}

static int trace_test(void *conn, void *request)
{
	struct trace *t = note(conn, TRACE_TEST, 0);
	return t->hot->test(t->conn, request);
}

static int trace_put(void *conn, const void *buf, size_t bytes, void *region, void *remote,
		     size_t remote_offset, void *request)
{
	struct trace *t = note(conn, TRACE_PUT, bytes);
	return t->hot->put(t->conn, buf, bytes, region, remote, remote_offset, request);
}

static int trace_get(void *conn, void *buf, size_t bytes, void *region, void *remote, size_t remote_offset,
		     void *request)
{
	struct trace *t = note(conn, TRACE_GET, bytes);
	return t->hot->get(t->conn, buf, bytes, region, remote, remote_offset, request);
}

static int trace_flush(void *conn)
{
	struct trace *t = note(conn, TRACE_FLUSH, 0);
	return t->hot->flush(t->conn);
}

static int trace_watch(void *conn, const struct xb_spot *at, uint64_t stamp)
{
	struct trace *t = note(conn, TRACE_WATCH, 0);
	return t->hot->watch(t->conn, at, stamp);
}

static const struct xb_hot trace_hot = {
	.send = trace_send,
	.send_sync = trace_send_sync,
	.send_ready = trace_send_ready,
	.recv = trace_recv,
	.wait = trace_wait,
	.wait_all = trace_wait_all,
	.test = trace_test,
	.put = trace_put,
	.get = trace_get,
	.flush = trace_flush,
	.watch = trace_watch,
};

static const struct xb_hot *trace_prepare(void *conn, const struct xb_pattern *pattern,
					  struct xb_error *error)
{
	struct trace *t = conn;
	t->hot = t->prepare(t->conn, pattern, error);
	t->pattern = *pattern;
	snprintf(t->variant, sizeof t->variant, "%s", pattern->variant ? pattern->variant : "");
	t->count = 0;
	return t->hot ? &trace_hot : NULL;
}

static void trace_explain(void *conn, struct xb_error *error)
{
	struct trace *t = conn;
	t->explain(t->conn, error);
}

static void trace_detach(void *state)
{
	struct trace *t = state;
	if (!t)
		return;
	if (t->file >= 0)
		close(t->file);
	free(t->entries);
	free(t);
}

static int trace_attach(struct xb_endpoint *endpoint, const struct xb_setup *setup, void **state,
			struct xb_error *error)
{
	const char *given = xb_setup_value(setup, "trace", "");
	struct trace *t = calloc(1, sizeof *t);
	char name[4096];

	if (!t || !(t->entries = malloc(MOST_OPERATIONS * sizeof *t->entries))) {
		free(t);
		return xb_fail(error, XB_E_RESOURCE, "asked for trace=%s; no memory for it", given);
	}
	/* the memory is not touched in the loop for the first time */
	memset(t->entries, 0, MOST_OPERATIONS * sizeof *t->entries);
	snprintf(name, sizeof name, "%s.%" PRIu32, given, setup->endpoint);
	t->file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (t->file < 0) {
		int status = xb_fail(error, XB_E_SYSTEM, "asked for trace=%s; %s cannot be written: %s",
				     given, name, strerror(errno));
		trace_detach(t);
		return status;
	}
	t->endpoint = endpoint;
	t->conn = endpoint->conn;
	t->prepare = endpoint->prepare;
	t->explain = endpoint->explain;
	endpoint->conn = t;
	endpoint->prepare = trace_prepare;
	endpoint->explain = trace_explain;
	*state = t;
	return 0;
}

static void write_entry(FILE *out, struct trace_entry entry)
{
	static const struct {
		const char *name;
		int has_amount;
	} ops[] = {
		[TRACE_SEND] = {"send", 1},   [TRACE_SEND_SYNC] = {"send_sync", 1},
		[TRACE_RECV] = {"recv", 1},   [TRACE_SEND_READY] = {"send_ready", 1},
		[TRACE_WAIT] = {"wait", 0},   [TRACE_WAIT_ALL] = {"wait_all", 1},
		[TRACE_TEST] = {"test", 0},   [TRACE_PUT] = {"put", 1},
		[TRACE_GET] = {"get", 1},     [TRACE_FLUSH] = {"flush", 0},
		[TRACE_WATCH] = {"watch", 0},
	};
	if (ops[entry.op].has_amount)
		fprintf(out, "%s %" PRIu64 "\n", ops[entry.op].name, (uint64_t)entry.amount);
	else
		fprintf(out, "%s\n", ops[entry.op].name);
}

/* Writes the block; there is nothing for the result document, so a failure to write is said on stderr. */
static json_t *trace_report(void *state)
{
	struct trace *t = state;
	int copy = dup(t->file);
	FILE *out = copy < 0 ? NULL : fdopen(copy, "a");

	if (!out) {
		if (copy >= 0)
			close(copy);
		fprintf(stderr, "trace: cannot be written: %s\n", strerror(errno));
		return NULL;
	}
	fprintf(out, "# %s %s %zu window %" PRIu32 " %s%s%s\n", xb_bench_name(t->pattern.bench),
		xb_op_name(t->pattern.op), t->pattern.size_bytes, t->pattern.window,
		t->pattern.initiator ? "initiator" : "responder", t->variant[0] ? ": " : "", t->variant);
	for (size_t i = 0; i < t->count && i < MOST_OPERATIONS; i++)
		write_entry(out, t->entries[i]);
	if (t->count > MOST_OPERATIONS)
		fprintf(out, "# %zu more\n", t->count - MOST_OPERATIONS);
	if (fclose(out))
		fprintf(stderr, "trace: cannot be written: %s\n", strerror(errno));
	t->count = 0;
	return NULL;
}

static const struct xb_key trace_keys[] = {
	{"trace", "FILE", "append every operation of the engine to FILE.ENDPOINT, a line each"},
	{NULL, NULL, NULL},
};

const struct xb_decorator xb_trace_decorator = {
	.abi = XB_TRANSPORT_ABI,
	.name = "trace",
	.keys = trace_keys,
	.attach = trace_attach,
	.report = trace_report,
	.detach = trace_detach,
};

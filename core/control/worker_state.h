/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_WORKER_STATE_H
#define XB_WORKER_STATE_H
/* What a worker holds, and its commands; private to worker*.c. */
#include "../engine/block.h"
#include "../engine/decorator.h"
#include "../system/system.h"
#include "plugin.h"
#include "watch.h"

#define XB_WORKER_DECORATORS 2

struct xb_worker_link { /* connection to one peer */
	void *conn;
	struct xb_endpoint endpoint;
	void *remote_send, *remote_recv;
	const struct xb_decorator *decorator[XB_WORKER_DECORATORS];
	void *decorator_state[XB_WORKER_DECORATORS];
	size_t decorators;
	int connected;
	uint64_t blocks; /* run so far */
};

struct xb_worker {
	struct xb_channel channel;
	struct xb_watch watch;
	struct xb_timer timer;
	const char *plugin_dir;
	int endpoint;
	int cpu; /* -1: not pinned */
	int64_t started_s;
	/* from open */
	const struct xb_transport *transport;
	json_t *open_request; /* owns the strings of setup */
	struct xb_setup setup;
	struct xb_key_value keys[64], fault_keys[64];
	size_t fault_key_count;
	void *context;
	unsigned char *buffer;
	size_t buffer_bytes; /* of each half */
	void *send_region, *recv_region, *requests;
	uint64_t *samples, *stamps;
	unsigned char *sweep; /* NULL until a swap with cold caches */
	struct xb_worker_link *links; /* endpoints entries */
	struct xb_counters *counters;
	uint64_t default_patience_ns; /* a longer deadline is announced to the controller */
	int opened;
};

/* Each fills reply and returns 0 or a negative status with *error. */
int xb_worker_open(struct xb_worker *w, json_t *request, json_t *reply, struct xb_error *error);
int xb_worker_connect(struct xb_worker *w, json_t *request, json_t *reply, struct xb_error *error);
/* Adds "description" to reply (or "describe_error"). */
void xb_worker_describe(struct xb_worker *w, struct xb_worker_link *link, json_t *reply);
int xb_worker_block(struct xb_worker *w, json_t *request, json_t *reply, struct xb_error *error);
int xb_worker_noise(struct xb_worker *w, json_t *request, json_t *reply, struct xb_error *error);
int xb_worker_close(struct xb_worker *w, int clean);

#endif

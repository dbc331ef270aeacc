/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timed operations. prepare picks one table per pattern; nothing here looks at configuration. The
 * variants are written once as inline functions with constant arguments and instantiated below.
 */
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "ofi.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define ALWAYS static inline __attribute__((always_inline))

static int status_of(long code)
{
	switch (code < 0 ? -code : code) {
	case FI_ECONNABORTED:
	case FI_ECONNREFUSED:
	case FI_ECONNRESET:
	case FI_EHOSTUNREACH:
	case FI_ENOTCONN:
	case FI_ESHUTDOWN:
		return XB_E_PEER;
	case FI_ENOMEM:
		return XB_E_RESOURCE;
	default:
		return XB_E_TRANSPORT;
	}
}

__attribute__((cold, noinline)) int ofi_hot_failed(struct ofi_connection *k, const char *call, ssize_t code)
{
	return ofi_fail(k->context, &k->failure, status_of((long)code), call, (long)code, NULL);
}

__attribute__((cold, noinline)) int ofi_queue_failed(struct ofi_connection *k, ssize_t code)
{
	struct fi_cq_err_entry entry = {0};
	char text[160] = "", why[320];
	ssize_t n;

	if (code == -FI_EINTR)
		return XB_OK; /* a signal ended the sleep */
	if (code != -FI_EAVAIL)
		return ofi_hot_failed(k, "fi_cq_read", code);
	n = fi_cq_readerr(k->cq, &entry, 0);
	if (n < 0)
		return ofi_hot_failed(k, "fi_cq_readerr", n);
	fi_cq_strerror(k->cq, entry.prov_errno, entry.err_data, text, sizeof(text));
	snprintf(why, sizeof(why), "the %s completed with an error%s%s%s: the operation",
		 entry.flags & FI_RECV		      ? "receive"
		 : entry.flags & (FI_READ | FI_WRITE) ? "one-sided operation"
						      : "send",
		 text[0] ? " (provider: " : "", text, text[0] ? ")" : "");
	return ofi_fail(k->context, &k->failure, status_of(entry.err), why, -(long)entry.err, NULL);
}

/* One round of progress. `rma`: one-sided operations may be outstanding, so their counters are kept. */
ALWAYS int progress(struct ofi_connection *k, bool rma, bool sleeping)
{
	struct fi_cq_entry entries[OFI_BATCH];
	ssize_t n = sleeping ? fi_cq_sread(k->cq, entries, OFI_BATCH, NULL, OFI_SLEEP_MS)
			     : fi_cq_read(k->cq, entries, OFI_BATCH);

	if (n > 0) {
		for (ssize_t i = 0; i < n; i++) {
			struct ofi_request *r = entries[i].op_context;

			r->done = 1;
			if (rma && r->pending)
				--*r->pending;
		}
		return XB_OK;
	}
	if (LIKELY(n == -FI_EAGAIN || n == 0))
		return XB_OK;
	return ofi_queue_failed(k, n);
}

ALWAYS int aborted(const struct ofi_connection *k)
{
	return atomic_load_explicit(k->abort, memory_order_relaxed);
}

/* The queue is full: make room. */
static __attribute__((noinline)) int make_room(struct ofi_connection *k)
{
	int rc = progress(k, true, false);

	if (rc != XB_OK)
		return rc;
	return aborted(k) ? XB_E_ABORTED : XB_OK;
}

/* Posts until there is room; `call` is evaluated anew each time. */
#define POST(k, name, call)                                                                                  \
	for (;;) {                                                                                           \
		ssize_t posted = (call);                                                                     \
		int room;                                                                                    \
                                                                                                             \
		if (LIKELY(posted == 0))                                                                     \
			return XB_OK;                                                                        \
		if (posted != -FI_EAGAIN)                                                                    \
			return ofi_hot_failed(k, name, posted);                                              \
		room = make_room(k);                                                                         \
		if (room != XB_OK)                                                                           \
			return room;                                                                         \
	}

/* ---- messages */
ALWAYS int inject(struct ofi_connection *k, const void *buf, size_t bytes, struct ofi_request *r, bool tagged)
{
	r->done = 1; /* the provider has copied it: the buffer is free and no completion comes */
	if (tagged)
		POST(k, "fi_tinject", fi_tinject(k->ep, buf, bytes, k->peer, k->send_tag))
	POST(k, "fi_inject", fi_inject(k->ep, buf, bytes, k->peer))
}

ALWAYS int post_send(struct ofi_connection *k, const void *buf, size_t bytes, const struct ofi_region *region,
		     struct ofi_request *r, bool tagged)
{
	r->done = 0;
	r->pending = NULL;
	if (tagged)
		POST(k, "fi_tsend",
		     fi_tsend(k->ep, buf, bytes, region->desc, k->peer, k->send_tag, &r->fabric))
	POST(k, "fi_send", fi_send(k->ep, buf, bytes, region->desc, k->peer, &r->fabric))
}

ALWAYS int post_recv(struct ofi_connection *k, void *buf, size_t bytes, const struct ofi_region *region,
		     struct ofi_request *r, bool tagged)
{
	r->done = 0;
	r->pending = NULL;
	if (tagged)
		POST(k, "fi_trecv",
		     fi_trecv(k->ep, buf, bytes, region->desc, FI_ADDR_UNSPEC, k->recv_tag, 0, &r->fabric))
	POST(k, "fi_recv", fi_recv(k->ep, buf, bytes, region->desc, FI_ADDR_UNSPEC, &r->fabric))
}

#define MESSAGES(suffix, tagged)                                                                             \
	static int send_##suffix(void *c, const void *b, size_t n, void *g, void *r)                         \
	{                                                                                                    \
		return post_send(c, b, n, g, r, tagged);                                                     \
	}                                                                                                    \
	static int inject_##suffix(void *c, const void *b, size_t n, void *g, void *r)                       \
	{                                                                                                    \
		(void)g;                                                                                     \
		return inject(c, b, n, r, tagged);                                                           \
	}                                                                                                    \
	/* data fits the inject size but the control messages of a block do not */                           \
	static int either_##suffix(void *c, const void *b, size_t n, void *g, void *r)                       \
	{                                                                                                    \
		if (n <= ((struct ofi_connection *)c)->inject_bytes)                                         \
			return inject(c, b, n, r, tagged);                                                   \
		return post_send(c, b, n, g, r, tagged);                                                     \
	}                                                                                                    \
	static int recv_##suffix(void *c, void *b, size_t n, void *g, void *r)                               \
	{                                                                                                    \
		return post_recv(c, b, n, g, r, tagged);                                                     \
	}
MESSAGES(tagged, true)
MESSAGES(plain, false)

/* ---- completion */
ALWAYS int wait_for(struct ofi_connection *k, struct ofi_request *r, bool rma, bool sleeping)
{
	while (!r->done) {
		int rc = progress(k, rma, sleeping);

		if (rc != XB_OK)
			return rc;
		if (aborted(k))
			return XB_E_ABORTED;
	}
	return XB_OK;
}

#define WAITS(suffix, rma, sleeping)                                                                         \
	static int wait_##suffix(void *c, void *r)                                                           \
	{                                                                                                    \
		return wait_for(c, r, rma, sleeping);                                                        \
	}                                                                                                    \
	static int wait_all_##suffix(void *c, void *r, size_t count)                                         \
	{                                                                                                    \
		struct ofi_request *requests = r;                                                            \
                                                                                                             \
		for (size_t i = 0; i < count; i++) {                                                         \
			int rc = wait_for(c, &requests[i], rma, sleeping);                                   \
                                                                                                             \
			if (rc != XB_OK)                                                                     \
				return rc;                                                                   \
		}                                                                                            \
		return XB_OK;                                                                                \
	}
WAITS(spin, false, false)
WAITS(sread, false, true)
WAITS(rma_spin, true, false)
WAITS(rma_sread, true, true)

static int test_any(void *c, void *r)
{
	struct ofi_connection *k = c;
	struct ofi_request *request = r;
	int rc;

	if (request->done)
		return 1;
	rc = progress(k, true, false);
	return rc != XB_OK ? rc : (int)request->done;
}

/* ---- one-sided */
ALWAYS void start_one_sided(struct ofi_connection *k, struct ofi_request *r)
{
	r->done = 0;
	r->pending = &k->pending;
	k->pending++;
}

ALWAYS int post_put(struct ofi_connection *k, const void *buf, size_t bytes, const struct ofi_region *region,
		    uint64_t address, uint64_t key, struct ofi_request *r, bool delivery)
{
	if (delivery) {
		struct iovec local = {.iov_base = (void *)(uintptr_t)buf, .iov_len = bytes};
		struct fi_rma_iov target = {.addr = address, .len = bytes, .key = key};
		void *desc = region->desc;
		const struct fi_msg_rma msg = {.msg_iov = &local,
					       .desc = &desc,
					       .iov_count = 1,
					       .addr = k->peer,
					       .rma_iov = &target,
					       .rma_iov_count = 1,
					       .context = &r->fabric};

		POST(k, "fi_writemsg", fi_writemsg(k->ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION))
	}
	POST(k, "fi_write", fi_write(k->ep, buf, bytes, region->desc, k->peer, address, key, &r->fabric))
}

static int put_delivery(void *c, const void *buf, size_t bytes, void *region, void *remote, size_t offset,
			void *r)
{
	const struct ofi_remote *target = remote;

	start_one_sided(c, r);
	return post_put(c, buf, bytes, region, target->base + offset, target->key, r, true);
}

static int put_read_back(void *c, const void *buf, size_t bytes, void *region, void *remote, size_t offset,
			 void *r)
{
	struct ofi_connection *k = c;
	const struct ofi_remote *target = remote;

	start_one_sided(k, r);
	k->wrote = true;
	k->last_address = target->base + offset;
	k->last_key = target->key;
	return post_put(k, buf, bytes, region, target->base + offset, target->key, r, false);
}

ALWAYS int post_get(struct ofi_connection *k, void *buf, size_t bytes, void *desc, uint64_t address,
		    uint64_t key, struct ofi_request *r)
{
	POST(k, "fi_read", fi_read(k->ep, buf, bytes, desc, k->peer, address, key, &r->fabric))
}

static int get(void *c, void *buf, size_t bytes, void *region, void *remote, size_t offset, void *r)
{
	const struct ofi_remote *target = remote;

	start_one_sided(c, r);
	return post_get(c, buf, bytes, ((struct ofi_region *)region)->desc, target->base + offset,
			target->key, r);
}

ALWAYS int drain(struct ofi_connection *k, bool sleeping)
{
	while (k->pending) {
		int rc = progress(k, true, sleeping);

		if (rc != XB_OK)
			return rc;
		if (aborted(k))
			return XB_E_ABORTED;
	}
	return XB_OK;
}

/* Completions of puts are local only. A read that starts after them returns when the target has served it,
 * and the provider keeps it behind the writes (FI_ORDER_RAW is asked for in this mode). */
ALWAYS int read_back(struct ofi_connection *k, bool sleeping)
{
	int rc = drain(k, sleeping);

	if (rc != XB_OK || !k->wrote)
		return rc;
	start_one_sided(k, &k->read_back);
	rc = post_get(k, k->context->scratch, 1, k->context->scratch_region.desc, k->last_address,
		      k->last_key, &k->read_back);
	return rc != XB_OK ? rc : drain(k, sleeping);
}

#define FLUSHES(suffix, sleeping)                                                                            \
	/* every completion already means "delivered" (put) or "arrived" (get) */                            \
	static int flush_delivery_##suffix(void *c)                                                          \
	{                                                                                                    \
		return drain(c, sleeping);                                                                   \
	}                                                                                                    \
	static int flush_read_back_##suffix(void *c)                                                         \
	{                                                                                                    \
		return read_back(c, sleeping);                                                               \
	}
FLUSHES(spin, false)
FLUSHES(sread, true)

static int (*choose_flush(const struct ofi_context *c))(void *)
{
	if (!c->rma)
		return xb_hot_unsupported_flush;
	if (c->sleeping)
		return c->delivery ? flush_delivery_sread : flush_read_back_sread;
	return c->delivery ? flush_delivery_spin : flush_read_back_spin;
}

/* ---- choice */
static void forget_names(struct ofi_connection *k)
{
	struct ofi_context *c = k->context;

	/* The second block on a connection: the first has made both sides map each other's memory. */
	if (c->unlinked || !k->used) {
		c->used_connections += !k->used;
		k->used = true;
		return;
	}
	if (c->used_connections + 1 >= c->endpoints) {
		ofi_leftover_unlink(c, NULL, 0);
		c->unlinked = true;
	}
}

const struct xb_hot *ofi_prepare(void *conn, const struct xb_pattern *pattern, struct xb_error *error)
{
	struct ofi_connection *k = conn;
	struct ofi_context *c = k->context;
	struct xb_hot *hot = &k->hot;
	bool fits = pattern->size_bytes <= k->inject_bytes && k->inject_bytes > 0;
	bool all_fit = fits && XB_AGREE_BYTES <= k->inject_bytes;

	if (pattern->op != XB_OP_SEND && !c->rma) {
		xb_fail(error, XB_E_UNSUPPORTED,
			"asked for one-sided operations; ofi:%s was opened for --op send",
			c->info->fabric_attr->prov_name);
		return NULL;
	}
	if (pattern->op == XB_OP_READ && pattern->size_bytes == 0 &&
	    strstr(c->info->fabric_attr->prov_name, "ofi_rxd")) {
		xb_fail(error, XB_E_UNSUPPORTED,
			"asked for reads of 0 bytes on ofi:%s; this provider never completes them; leave out "
			"size 0",
			c->info->fabric_attr->prov_name);
		return NULL;
	}
	forget_names(k);
	if (pattern->sync_sends && c->sync)
		return ofi_sync_table(c->sleeping);
	if (c->tagged) {
		hot->send = all_fit ? inject_tagged : fits ? either_tagged : send_tagged;
		hot->recv = recv_tagged;
	} else {
		hot->send = all_fit ? inject_plain : fits ? either_plain : send_plain;
		hot->recv = recv_plain;
	}
	hot->send_ready =
		hot->send; /* libfabric has no cheaper send for a receive that is known to be posted */
	hot->send_sync = xb_hot_unsupported_send;
	if (c->sleeping) {
		hot->wait = c->rma ? wait_rma_sread : wait_sread;
		hot->wait_all = c->rma ? wait_all_rma_sread : wait_all_sread;
	} else {
		hot->wait = c->rma ? wait_rma_spin : wait_spin;
		hot->wait_all = c->rma ? wait_all_rma_spin : wait_all_spin;
	}
	hot->test = test_any;
	hot->put = !c->rma ? xb_hot_unsupported_put : c->delivery ? put_delivery : put_read_back;
	/* shm never completes an empty write with FI_DELIVERY_COMPLETE; there is nothing to deliver anyway */
	if (hot->put == put_delivery && pattern->size_bytes == 0 &&
	    !strcmp(c->info->fabric_attr->prov_name, "shm"))
		hot->put = put_read_back;
	hot->get = c->rma ? get : xb_hot_unsupported_get;
	hot->flush = choose_flush(c);
	hot->watch = xb_hot_unsupported_watch;
	return hot;
}

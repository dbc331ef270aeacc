/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timed operations. prepare picks one table per pattern; nothing here looks at configuration. The
 * variants are written once as inline functions with constant arguments and instantiated below.
 *
 * Completions of sends. An inline send has left its buffer when the post returns and needs no completion; one
 * in `slack` is signalled so that the queue's entries are known to be free again. Of operations whose
 * completion is waited for, the last of a window is signalled and one in `mask`+1 before it: completions come
 * in order, so it stands for all before. If a wait should ever meet an operation that no signalled one
 * follows, an empty write is posted to be its completion.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "verbs.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ALWAYS static inline __attribute__((always_inline))

/* Fruitless polls after which a spinning wait looks for asynchronous events (one system call). */
#define SPINS_PER_LOOK (UINT32_C(1) << 20)
/* Fruitless looks at memory after which a watching target polls for a completion that failed. */
#define SPINS_PER_POLL (UINT32_C(1) << 16)
#define SLEEP_MS 50
#define MOST_UNSIGNALLED 32u

ALWAYS bool reached(uint32_t counter, uint32_t number)
{
	return (int32_t)(counter - number) >= 0;
}

ALWAYS bool is_done(const struct vb_request *r)
{
	return reached(*(const volatile uint32_t *)r->done, r->number);
}

ALWAYS int aborted(const struct vb_connection *k)
{
	return atomic_load_explicit(k->abort, memory_order_relaxed);
}

/* One round of progress: how many completions came, or a negative status. */
ALWAYS int progress(struct vb_connection *k, const bool ring)
{
	struct ibv_wc wc[VB_BATCH];
	int n = ibv_poll_cq(k->cq, VB_BATCH, wc);

	if (UNLIKELY(n < 0))
		return vb_call_failed(k, "ibv_poll_cq", EIO);
	for (int i = 0; i < n; i++) {
		if (UNLIKELY(wc[i].status != IBV_WC_SUCCESS))
			return vb_completion_failed(k, &wc[i], n - i);
		if (wc[i].wr_id >> 62 != VB_RECV) {
			k->send_done = (uint32_t)wc[i].wr_id;
		} else if (ring) {
			int rc = vb_ring_arrived(k, &wc[i]);

			if (rc != XB_OK)
				return rc;
		} else {
			k->recv_done++;
		}
	}
	return n;
}

static __attribute__((noinline)) int make_room(struct vb_connection *k)
{
	for (uint32_t spins = 1; k->posted - k->send_done >= k->depth; spins++) {
		int n = progress(k, k->ring != NULL);

		if (n == 0 && spins % SPINS_PER_LOOK == 0)
			n = vb_check_events(k);
		if (n < 0)
			return n;
		if (aborted(k))
			return XB_E_ABORTED;
	}
	return XB_OK;
}

/* ---- posting on the send queue */
ALWAYS int post(struct vb_connection *k, struct ibv_send_wr *wr, enum vb_work work, const void *buf,
		size_t bytes, uint32_t lkey, unsigned flags, bool signalled)
{
	struct ibv_send_wr *bad;
	int code;

	if (UNLIKELY(k->posted - k->send_done >= k->depth)) {
		code = make_room(k);
		if (code != XB_OK)
			return code;
	}
	k->send_sge.addr = (uint64_t)(uintptr_t)buf;
	k->send_sge.length = (uint32_t)bytes;
	k->send_sge.lkey = lkey;
	/* a list entry of length 0 means 2 GiB to some devices */
	wr->num_sge = bytes != 0;
	wr->wr_id = vb_wr_id(work, bytes, k->posted + 1);
	wr->send_flags = flags | (signalled ? IBV_SEND_SIGNALED : 0);
	code = ibv_post_send(k->qp, wr, &bad);
	if (UNLIKELY(code))
		return vb_call_failed(k, "ibv_post_send", code);
	k->posted++;
	if (signalled) {
		k->signalled = k->posted;
		k->unsignalled = 0;
	} else {
		k->unsignalled++;
	}
	return XB_OK;
}

ALWAYS bool ends_batch(struct vb_connection *k)
{
	if (++k->batch == k->window) {
		k->batch = 0;
		return true;
	}
	return (k->batch & k->mask) == 0;
}

ALWAYS int post_inline(struct vb_connection *k, const void *buf, size_t bytes, struct vb_request *r)
{
	r->done = &k->send_done;
	r->number = k->send_done; /* at once */
	return post(k, &k->send_wr, VB_SEND, buf, bytes, 0, IBV_SEND_INLINE, k->unsignalled >= k->slack);
}

/* ud: there are no empty writes to stand in for a missing completion, so every send has its own */
ALWAYS int post_plain(struct vb_connection *k, const void *buf, size_t bytes, const struct vb_region *region,
		      struct vb_request *r, const bool ud)
{
	int rc = post(k, &k->send_wr, VB_SEND, buf, bytes, region->lkey, 0,
		      ud || bytes != k->data_bytes || ends_batch(k));

	r->done = &k->send_done;
	r->number = k->posted;
	return rc;
}

static int send_inline(void *c, const void *b, size_t n, void *g, void *r)
{
	(void)g;
	return post_inline(c, b, n, r);
}

#define SENDS(suffix, ud)                                                                                    \
	static int send_plain_##suffix(void *c, const void *b, size_t n, void *g, void *r)                   \
	{                                                                                                    \
		return post_plain(c, b, n, g, r, ud);                                                        \
	}                                                                                                    \
	/* data and control messages differ in what fits */                                                  \
	static int send_either_##suffix(void *c, const void *b, size_t n, void *g, void *r)                  \
	{                                                                                                    \
		if (n <= ((struct vb_connection *)c)->inline_bytes)                                          \
			return post_inline(c, b, n, r);                                                      \
		return post_plain(c, b, n, g, r, ud);                                                        \
	}
SENDS(rc, false)
SENDS(ud, true)

/* Complete when acknowledged, and that a send is only when the peer's receive has taken it: matching is by
 * order, so this was the receive that it is for. */
static int send_sync(void *c, const void *buf, size_t bytes, void *region, void *request)
{
	struct vb_connection *k = c;
	struct vb_request *r = request;
	const bool inlined = bytes <= k->inline_bytes;
	int rc = post(k, &k->send_wr, VB_SEND, buf, bytes, ((struct vb_region *)region)->lkey,
		      inlined ? IBV_SEND_INLINE : 0, true);

	r->done = &k->send_done;
	r->number = k->posted;
	return rc;
}

static int recv_rc(void *conn, void *buf, size_t bytes, void *region, void *request)
{
	struct vb_connection *k = conn;
	struct vb_request *r = request;
	struct ibv_recv_wr *bad;
	int code;

	k->recv_sge.addr = (uint64_t)(uintptr_t)buf;
	k->recv_sge.length = (uint32_t)bytes;
	k->recv_sge.lkey = ((struct vb_region *)region)->lkey;
	k->recv_wr.num_sge = bytes != 0;
	k->recv_wr.wr_id = vb_wr_id(VB_RECV, bytes, k->recv_posted + 1);
	code = ibv_post_recv(k->qp, &k->recv_wr, &bad);
	if (UNLIKELY(code))
		return vb_call_failed(k, "ibv_post_recv", code);
	r->done = &k->recv_done;
	r->number = ++k->recv_posted;
	return XB_OK;
}

/* ---- waiting */
static __attribute__((noinline, cold)) int post_mark(struct vb_connection *k)
{
	k->batch = 0; /* the next window is in step again */
	return post(k, &k->mark_wr, VB_PUT, NULL, 0, 0, 0, true);
}

/* Arms the completion channel, and the next time sleeps on it: what came in between has been polled. */
static __attribute__((noinline)) int sleep_on_channel(struct vb_connection *k)
{
	struct ibv_comp_channel *channel = k->channel;
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *unused;
	int code;

	if (!k->armed) {
		code = ibv_req_notify_cq(k->cq, 0);
		if (code)
			return vb_call_failed(k, "ibv_req_notify_cq", code);
		k->armed = true;
		return XB_OK;
	}
	if (poll(&fd, 1, SLEEP_MS) <= 0)
		return vb_check_events(k);
	if (ibv_get_cq_event(channel, &cq, &unused) == 0) {
		ibv_ack_cq_events(cq, 1);
		k->armed = false;
	}
	return XB_OK;
}

ALWAYS int wait_until(struct vb_connection *k, const uint32_t *counter, uint32_t number, const bool ring,
		      const bool events)
{
	for (uint32_t spins = 1;; spins++) {
		int n = progress(k, ring);

		if (reached(*(const volatile uint32_t *)counter, number))
			return XB_OK;
		if (UNLIKELY(n < 0))
			return n;
		if (UNLIKELY(aborted(k)))
			return XB_E_ABORTED;
		if (n == 0 && (events || UNLIKELY(spins % SPINS_PER_LOOK == 0))) {
			n = events ? sleep_on_channel(k) : vb_check_events(k);
			if (n < 0)
				return n;
		}
	}
}

ALWAYS int wait_for(struct vb_connection *k, struct vb_request *r, const bool ring, const bool events)
{
	if (is_done(r))
		return XB_OK;
	/* never of datagrams: each of their sends that is waited for is signalled */
	if (r->done == &k->send_done && UNLIKELY(!reached(k->signalled, r->number))) {
		int rc = post_mark(k);

		if (rc != XB_OK)
			return rc;
	}
	return wait_until(k, r->done, r->number, ring, events);
}

#define WAITS(suffix, ring, events)                                                                          \
	static int wait_##suffix(void *c, void *r)                                                           \
	{                                                                                                    \
		return wait_for(c, r, ring, events);                                                         \
	}                                                                                                    \
	static int wait_all_##suffix(void *c, void *r, size_t count)                                         \
	{                                                                                                    \
		struct vb_request *requests = r;                                                             \
                                                                                                             \
		for (size_t i = 0; i < count; i++) {                                                         \
			int rc = wait_for(c, &requests[i], ring, events);                                    \
                                                                                                             \
			if (UNLIKELY(rc != XB_OK))                                                           \
				return rc;                                                                   \
		}                                                                                            \
		return XB_OK;                                                                                \
	}
WAITS(rc, false, false)
WAITS(rc_events, false, true)
WAITS(ring, true, false)
WAITS(ring_events, true, true)

static int test_any(void *conn, void *request)
{
	struct vb_connection *k = conn;
	struct vb_request *r = request;
	int rc;

	if (is_done(r))
		return 1;
	if (r->done == &k->send_done && !reached(k->signalled, r->number)) {
		rc = post_mark(k);
		if (rc != XB_OK)
			return rc;
	}
	rc = progress(k, k->ring != NULL);
	if (rc < 0)
		return rc;
	if (aborted(k))
		return XB_E_ABORTED;
	return is_done(r);
}

/* ---- one-sided */
ALWAYS int post_put(struct vb_connection *k, const void *buf, size_t bytes, const struct vb_region *region,
		    const struct vb_remote *remote, size_t offset, struct vb_request *r, const bool inlined,
		    const bool answered)
{
	int rc;

	k->put_wr.wr.rdma.remote_addr = remote->base + offset;
	k->put_wr.wr.rdma.rkey = remote->rkey;
	k->wrote = k->wrote || bytes;
	k->last_address = remote->base + offset;
	k->last_rkey = remote->rkey;
	rc = post(k, &k->put_wr, VB_PUT, buf, bytes, region->lkey, inlined ? IBV_SEND_INLINE : 0,
		  answered ? k->unsignalled >= k->slack : ends_batch(k));
	r->done = &k->send_done;
	r->number = inlined ? k->send_done : k->posted;
	return rc;
}

static int put_inline(void *c, const void *buf, size_t n, void *region, void *remote, size_t at, void *r)
{
	return post_put(c, buf, n, region, remote, at, r, true, false);
}

/* The peer's own put tells that it has arrived: signalled as seldom as inline sends are. */
static int put_inline_answered(void *c, const void *buf, size_t n, void *region, void *remote, size_t at,
			       void *r)
{
	return post_put(c, buf, n, region, remote, at, r, true, true);
}

static int put_plain(void *c, const void *buf, size_t n, void *region, void *remote, size_t at, void *r)
{
	return post_put(c, buf, n, region, remote, at, r, false, false);
}

static int get(void *conn, void *buf, size_t bytes, void *region, void *remote, size_t offset, void *request)
{
	struct vb_connection *k = conn;
	const struct vb_remote *target = remote;
	struct vb_request *r = request;
	int rc;

	k->get_wr.wr.rdma.remote_addr = target->base + offset;
	k->get_wr.wr.rdma.rkey = target->rkey;
	rc = post(k, &k->get_wr, VB_GET, buf, bytes, ((struct vb_region *)region)->lkey, 0, ends_batch(k));
	r->done = &k->send_done;
	r->number = k->posted;
	return rc;
}

ALWAYS int drain(struct vb_connection *k, const bool ring, const bool events)
{
	if (!reached(k->signalled, k->posted)) {
		int rc = post_mark(k);

		if (rc != XB_OK)
			return rc;
	}
	if (reached(k->send_done, k->posted))
		return XB_OK;
	return wait_until(k, &k->send_done, k->posted, ring, events);
}

/* A read on the same queue pair executes after the writes before it, and its response pushes what the adapter
 * has written to memory in front of it. */
ALWAYS int read_back(struct vb_connection *k, const bool ring, const bool events)
{
	struct vb_context *c = k->context;
	int rc = drain(k, ring, events);

	if (rc != XB_OK || !k->wrote)
		return rc;
	k->wrote = false;
	k->get_wr.wr.rdma.remote_addr = k->last_address;
	k->get_wr.wr.rdma.rkey = k->last_rkey;
	rc = post(k, &k->get_wr, VB_GET, c->scratch, 1, c->scratch_mr->lkey, 0, true);
	return rc != XB_OK ? rc : drain(k, ring, events);
}

#define FLUSHES(suffix, ring, events)                                                                        \
	static int flush_ack_##suffix(void *c)                                                               \
	{                                                                                                    \
		return drain(c, ring, events);                                                               \
	}                                                                                                    \
	static int flush_read_##suffix(void *c)                                                              \
	{                                                                                                    \
		return read_back(c, ring, events);                                                           \
	}
FLUSHES(rc, false, false)
FLUSHES(rc_events, false, true)
FLUSHES(ring, true, false)
FLUSHES(ring_events, true, true)

/* ---- the target of a put */
/* Nobody tells a processor that an adapter has written to memory. What else may happen is looked for seldom.
 */
static int watch_memory(void *conn, const struct xb_spot *at, uint64_t stamp)
{
	struct vb_connection *k = conn;

	for (uint32_t spins = 1; !xb_watched(at, stamp); spins++) {
		int rc = XB_OK;

		if (UNLIKELY(spins % SPINS_PER_POLL == 0))
			rc = progress(k, false);
		if (UNLIKELY(spins % SPINS_PER_LOOK == 0) && rc == XB_OK)
			rc = vb_check_events(k);
		if (UNLIKELY(rc < 0))
			return rc;
		if (UNLIKELY(aborted(k)))
			return XB_E_ABORTED;
	}
	return XB_OK;
}

/* With immediate there is a completion, behind the data. */
ALWAYS int watch_completion(struct vb_connection *k, const bool events)
{
	const uint32_t number = ++k->watched;

	return reached(k->immediates, number) ? XB_OK : wait_until(k, &k->immediates, number, true, events);
}

static int watch_immediate(void *c, const struct xb_spot *at, uint64_t stamp)
{
	(void)at, (void)stamp;
	return watch_completion(c, false);
}

static int watch_immediate_events(void *c, const struct xb_spot *at, uint64_t stamp)
{
	(void)at, (void)stamp;
	return watch_completion(c, true);
}

/* ---- choice */
typedef int (*flush_fn)(void *conn);

static void choose_messages(struct vb_connection *k, const struct xb_pattern *pattern)
{
	const bool ud = k->context->set.kind == VB_UD, ring = k->ring != NULL;
	const bool events = k->context->set.events;
	const bool data_fits = pattern->size_bytes <= k->inline_bytes;
	const bool control_fits = XB_AGREE_BYTES <= k->inline_bytes;
	struct xb_hot *hot = &k->hot;

	if (data_fits && control_fits)
		hot->send = send_inline;
	else if (data_fits || control_fits)
		hot->send = ud ? send_either_ud : send_either_rc;
	else
		hot->send = ud ? send_plain_ud : send_plain_rc;
	hot->recv = ring ? vb_ring_recv : recv_rc;
	hot->send_ready = hot->send; /* verbs have no cheaper send for a receive that is known to be posted */
	hot->send_sync = vb_acknowledges_receives(k->context) ? send_sync : xb_hot_unsupported_send;
	hot->wait = ring ? (events ? wait_ring_events : wait_ring) : (events ? wait_rc_events : wait_rc);
	hot->wait_all = ring ? (events ? wait_all_ring_events : wait_all_ring)
			     : (events ? wait_all_rc_events : wait_all_rc);
	hot->test = test_any;
}

static flush_fn choose_flush(const struct vb_connection *k)
{
	static const flush_fn table[2][2][2] = {
		{{flush_ack_rc, flush_ack_rc_events}, {flush_ack_ring, flush_ack_ring_events}},
		{{flush_read_rc, flush_read_rc_events}, {flush_read_ring, flush_read_ring_events}}};
	const struct vb_settings *set = &k->context->set;

	return table[set->read_back][k->ring != NULL][set->events];
}

const struct xb_hot *vb_prepare(void *conn, const struct xb_pattern *pattern, struct xb_error *error)
{
	struct vb_connection *k = conn;
	struct xb_hot *hot = &k->hot;
	bool one_sided = k->context->op != XB_OP_SEND;
	uint32_t most = k->depth / 2 < MOST_UNSIGNALLED ? k->depth / 2 : MOST_UNSIGNALLED, step = 1;

	if (pattern->op != XB_OP_SEND && !one_sided) {
		xb_fail(error, XB_E_UNSUPPORTED,
			"asked for one-sided operations; verbs was opened for --op send");
		return NULL;
	}
	while (step * 2 <= most)
		step *= 2;
	k->mask = step - 1;
	k->batch = 0;
	k->window = pattern->window;
	k->data_bytes = pattern->size_bytes;
	choose_messages(k, pattern);
	hot->put = !one_sided				   ? xb_hot_unsupported_put
		   : pattern->size_bytes > k->inline_bytes ? put_plain
		   : pattern->op == XB_OP_WRITE_POLL	   ? put_inline_answered
							   : put_inline;
	hot->get = one_sided ? get : xb_hot_unsupported_get;
	hot->flush = one_sided ? choose_flush(k) : xb_hot_unsupported_flush;
	hot->watch = !one_sided		      ? xb_hot_unsupported_watch
		     : !k->ring		      ? watch_memory
		     : k->context->set.events ? watch_immediate_events
					      : watch_immediate;
	k->immediates = k->watched = 0; /* those of the block before came in front of its last message */
	return hot;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Synchronous sends. libfabric has FI_MATCH_COMPLETE for them, and no provider of it implements that; so this
 * is the handshake that an MPI makes. In a block with synchronous sends the receiver answers every message
 * with an empty one, under a tag of its own, when the receive completes; a synchronous send is complete when
 * both its own completion and that answer are there, a standard one does not wait for its answer. It is
 * stricter than matching: the data has arrived too.
 *
 * Messages are matched in order, so both sides number them by counting and the answer to number n has n in
 * its tag. The tags that a completion queue reports would tell synchronous messages from others, but not
 * every provider reports them rightly (shm of 1.17 does not for messages that come before their receive).
 *
 *   tag   bits 0-23 the sender · bit 25 answer · bits 26-41 number of the message that is answered
 */
#include "ofi.h"

#define TAG_ANSWER (UINT64_C(1) << 25)
#define NUMBER_SHIFT 26
#define ALWAYS static inline __attribute__((always_inline))

/* Answers that the provider did not take at once; 1 if none is left. */
static int answer(struct ofi_connection *k)
{
	struct ofi_answers *a = &k->answers;

	while (a->head != a->tail) {
		const uint64_t number = a->number[a->head % OFI_MOST_ANSWERS];
		ssize_t code = fi_tinject(k->ep, k->context->scratch, 0, k->peer,
					  k->send_tag | TAG_ANSWER | number << NUMBER_SHIFT);

		if (code == -FI_EAGAIN)
			return 0;
		if (code)
			return ofi_hot_failed(k, "fi_tinject", code);
		a->head++;
	}
	return 1;
}

ALWAYS int progress(struct ofi_connection *k, bool sleeping)
{
	struct fi_cq_entry entries[OFI_BATCH];
	ssize_t n = sleeping ? fi_cq_sread(k->cq, entries, OFI_BATCH, NULL, OFI_SLEEP_MS)
			     : fi_cq_read(k->cq, entries, OFI_BATCH);
	int rc;

	for (ssize_t i = 0; i < n; i++) {
		struct ofi_request *r = entries[i].op_context;

		if (r->owes)
			k->answers.number[k->answers.tail++ % OFI_MOST_ANSWERS] = r->number;
		r->owes = 0;
		r->done = 1;
	}
	if (n < 0 && n != -FI_EAGAIN)
		return ofi_queue_failed(k, n);
	rc = answer(k);
	return rc < 0 ? rc : XB_OK;
}

static __attribute__((noinline)) int make_room(struct ofi_connection *k)
{
	int rc = progress(k, false);

	if (rc != XB_OK)
		return rc;
	return atomic_load_explicit(k->abort, memory_order_relaxed) ? XB_E_ABORTED : XB_OK;
}

#define POST(k, name, call)                                                                                  \
	for (;;) {                                                                                           \
		ssize_t posted = (call);                                                                     \
		int room;                                                                                    \
                                                                                                             \
		if (__builtin_expect(posted == 0, 1))                                                        \
			break;                                                                               \
		if (posted != -FI_EAGAIN)                                                                    \
			return ofi_hot_failed(k, name, posted);                                              \
		room = make_room(k);                                                                         \
		if (room != XB_OK)                                                                           \
			return room;                                                                         \
	}

/* Posts the receive of the answer to the next message; its context begins as a request does. */
ALWAYS int post_answer(struct ofi_connection *k, struct fi_context2 *context)
{
	const uint64_t number = k->send_number++;

	POST(k, "fi_trecv",
	     fi_trecv(k->ep, k->context->scratch, 0, k->context->scratch_region.desc, FI_ADDR_UNSPEC,
		      k->recv_tag | TAG_ANSWER | number << NUMBER_SHIFT, 0, context))
	return XB_OK;
}

/* Its answer comes when nobody waits for it any more: it has a place of the connection's, not of the request.
 */
static int post_ignored_answer(struct ofi_connection *k)
{
	struct ofi_request *a = &k->ignored[k->ignored_at++ % OFI_IGNORED];

	while (k->ignored_at > OFI_IGNORED && !a->done) {
		int rc = make_room(k);

		if (rc != XB_OK)
			return rc;
	}
	a->done = a->owes = 0;
	a->pending = NULL;
	return post_answer(k, &a->fabric);
}

static int send_standard(void *c, const void *buf, size_t bytes, void *region, void *request)
{
	struct ofi_connection *k = c;
	struct ofi_request *r = request;
	int rc = post_ignored_answer(k);

	if (rc != XB_OK)
		return rc;
	r->answer.done = 1;
	r->owes = 0;
	r->pending = NULL;
	if (bytes <= k->inject_bytes) {
		r->done = 1;
		POST(k, "fi_tinject", fi_tinject(k->ep, buf, bytes, k->peer, k->send_tag))
		return XB_OK;
	}
	r->done = 0;
	POST(k, "fi_tsend",
	     fi_tsend(k->ep, buf, bytes, ((struct ofi_region *)region)->desc, k->peer, k->send_tag,
		      &r->fabric))
	return XB_OK;
}

static int send_sync(void *c, const void *buf, size_t bytes, void *region, void *request)
{
	struct ofi_connection *k = c;
	struct ofi_request *r = request;
	int rc;

	r->done = r->answer.done = 0;
	r->owes = r->answer.owes = 0;
	r->pending = r->answer.pending = NULL;
	rc = post_answer(k, &r->answer.fabric);
	if (rc != XB_OK)
		return rc;
	if (bytes <= k->inject_bytes) {
		r->done = 1;
		POST(k, "fi_tinject", fi_tinject(k->ep, buf, bytes, k->peer, k->send_tag))
		return XB_OK;
	}
	POST(k, "fi_tsend",
	     fi_tsend(k->ep, buf, bytes, ((struct ofi_region *)region)->desc, k->peer, k->send_tag,
		      &r->fabric))
	return XB_OK;
}

static int post_recv(void *c, void *buf, size_t bytes, void *region, void *request)
{
	struct ofi_connection *k = c;
	struct ofi_request *r = request;

	r->done = 0;
	r->answer.done = 1;
	r->pending = NULL;
	r->number = k->recv_number++;
	r->owes = 1;
	POST(k, "fi_trecv",
	     fi_trecv(k->ep, buf, bytes, ((struct ofi_region *)region)->desc, FI_ADDR_UNSPEC, k->recv_tag, 0,
		      &r->fabric))
	return XB_OK;
}

/* A receive is not over before its answer is on its way: afterwards nobody may come by to send it. */
ALWAYS bool over(const struct ofi_connection *k, const struct ofi_request *r)
{
	return r->done && r->answer.done && k->answers.head == k->answers.tail;
}

ALWAYS int wait_for(struct ofi_connection *k, const struct ofi_request *r, bool sleeping)
{
	while (!over(k, r)) {
		int rc = progress(k, sleeping);

		if (rc != XB_OK)
			return rc;
		if (atomic_load_explicit(k->abort, memory_order_relaxed))
			return XB_E_ABORTED;
	}
	return XB_OK;
}

#define WAITS(suffix, sleeping)                                                                              \
	static int wait_##suffix(void *c, void *r)                                                           \
	{                                                                                                    \
		return wait_for(c, r, sleeping);                                                             \
	}                                                                                                    \
	static int wait_all_##suffix(void *c, void *r, size_t count)                                         \
	{                                                                                                    \
		const struct ofi_request *requests = r;                                                      \
                                                                                                             \
		for (size_t i = 0; i < count; i++) {                                                         \
			int rc = wait_for(c, &requests[i], sleeping);                                        \
                                                                                                             \
			if (rc != XB_OK)                                                                     \
				return rc;                                                                   \
		}                                                                                            \
		return XB_OK;                                                                                \
	}
WAITS(spin, false)
WAITS(sread, true)

static int test(void *c, void *r)
{
	if (!over(c, r)) {
		int rc = progress(c, false);

		if (rc != XB_OK)
			return rc;
	}
	return over(c, r);
}

#define OFI_SYNC_TABLE(WAIT, WAIT_ALL)                                                                       \
	{                                                                                                    \
		.send = send_standard, .send_sync = send_sync, .send_ready = send_standard,                  \
		.recv = post_recv, .wait = WAIT, .wait_all = WAIT_ALL, .test = test,                         \
		.put = xb_hot_unsupported_put, .get = xb_hot_unsupported_get,                                \
		.flush = xb_hot_unsupported_flush, .watch = xb_hot_unsupported_watch                         \
	}
static const struct xb_hot sync_spin = OFI_SYNC_TABLE(wait_spin, wait_all_spin);
static const struct xb_hot sync_sread = OFI_SYNC_TABLE(wait_sread, wait_all_sread);

const struct xb_hot *ofi_sync_table(bool sleeping)
{
	return sleeping ? &sync_sread : &sync_spin;
}

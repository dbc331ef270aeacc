/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives into a ring that is always posted. Where the very buffer of a receive can be posted this is not
 * used: it copies. It is for datagrams: one that arrives where no receive waits is dropped without a trace,
 * and the engine promises only that the n-th send meets the n-th receive, not that the receive is first;
 *   writes with immediate: each uses up the receive that is next, whatever that was meant for.
 * What arrives is copied to the buffer of the receive that it belongs to, at once if that has been posted,
 * else when it is. Slots that are free again are posted several at a time: one call, one doorbell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

#define CONTROL_SLOT_BYTES 4096u /* beside writes with immediate only small messages are sent */
#define MOST_FREE 16u

struct wanted { /* a receive that waits for its message */
	void *buf;
	size_t bytes;
};
struct waiting { /* a message that waits for its receive */
	uint32_t slot, bytes;
};
struct vb_ring {
	unsigned char *slots;
	size_t slot_bytes, header_bytes; /* of a datagram: room for the global route header */
	uint32_t count; /* of slots, and of both rings */
	uint32_t arrived;
	struct ibv_mr *mr;
	struct ibv_recv_wr *requests; /* one for each slot, for ever */
	struct ibv_sge *places;
	struct ibv_recv_wr *free; /* list of slots to be posted */
	uint32_t free_count, most_free;
	struct wanted *wanted;
	struct waiting *waiting;
};

static int post_free(struct vb_connection *k)
{
	struct vb_ring *u = k->ring;
	struct ibv_recv_wr *bad;
	int code = ibv_post_recv(k->qp, u->free, &bad);

	u->free = NULL;
	u->free_count = 0;
	return code ? vb_call_failed(k, "ibv_post_recv", code) : XB_OK;
}

static int release(struct vb_connection *k, uint32_t slot)
{
	struct vb_ring *u = k->ring;

	u->requests[slot].next = u->free;
	u->free = &u->requests[slot];
	return ++u->free_count >= u->most_free ? post_free(k) : XB_OK;
}

size_t vb_ring_largest(const struct vb_connection *k)
{
	return k->ring->slot_bytes - k->ring->header_bytes;
}

static int allocate(struct vb_connection *k, struct xb_error *error)
{
	struct vb_context *c = k->context;
	struct vb_ring *u = k->ring;
	const bool ud = c->set.kind == VB_UD;
	size_t total;

	u->count = c->recv_depth;
	/* as many as may be outstanding are posted, however many wait to be */
	u->most_free = c->recv_depth - c->outstanding;
	u->most_free = u->most_free > MOST_FREE ? MOST_FREE : u->most_free ? u->most_free : 1;
	u->header_bytes = ud ? VB_GRH_BYTES : 0;
	u->slot_bytes = ud ? (VB_GRH_BYTES + k->mtu_bytes + 63) / 64 * 64 : CONTROL_SLOT_BYTES;
	total = (u->slot_bytes * u->count + 4095) / 4096 * 4096;
	u->slots = aligned_alloc(4096, total);
	u->requests = calloc(u->count, sizeof(*u->requests));
	u->places = calloc(u->count, sizeof(*u->places));
	u->wanted = calloc(u->count, sizeof(*u->wanted));
	u->waiting = calloc(u->count, sizeof(*u->waiting));
	if (!u->slots || !u->requests || !u->places || !u->wanted || !u->waiting)
		return xb_fail(error, XB_E_RESOURCE, "verbs: out of memory for %u messages", u->count);
	memset(u->slots, 0, total);
	u->mr = ibv_reg_mr(c->pd, u->slots, total, IBV_ACCESS_LOCAL_WRITE);
	if (!u->mr)
		return vb_fail(c, error, XB_E_RESOURCE, "ibv_reg_mr of the ring of receives", errno,
			       "raise the limit of locked memory (ulimit -l)");
	return XB_OK;
}

int vb_ring_create(struct vb_connection *k, struct vb_peer *peer, struct xb_error *error)
{
	struct vb_ring *u = calloc(1, sizeof(*u));
	int rc;

	peer->ring = k->ring = u;
	if (!u)
		return xb_fail(error, XB_E_RESOURCE, "verbs: out of memory");
	rc = allocate(k, error);
	if (rc != XB_OK)
		return rc;
	for (uint32_t slot = 0; slot < u->count; slot++) {
		u->places[slot] =
			(struct ibv_sge){.addr = (uint64_t)(uintptr_t)(u->slots + slot * u->slot_bytes),
					 .length = (uint32_t)u->slot_bytes,
					 .lkey = u->mr->lkey};
		u->requests[slot] = (struct ibv_recv_wr){.wr_id = vb_wr_id(VB_RECV, 0, slot),
							 .sg_list = &u->places[slot],
							 .num_sge = 1,
							 .next = u->free};
		u->free = &u->requests[slot];
	}
	rc = post_free(k);
	if (rc != XB_OK)
		*error = k->failure;
	return rc;
}

void vb_ring_destroy(struct vb_ring *u)
{
	if (!u)
		return;
	if (u->mr)
		ibv_dereg_mr(u->mr);
	free(u->slots);
	free(u->requests);
	free(u->places);
	free(u->wanted);
	free(u->waiting);
	free(u);
}

static int deliver(struct vb_connection *k, uint32_t slot, size_t got, void *buf, size_t bytes)
{
	struct vb_ring *u = k->ring;

	if (got != bytes)
		return xb_fail(
			&k->failure, XB_E_CORRUPT,
			"verbs: a message of %zu bytes came from endpoint %u where one of %zu was due%s", got,
			k->peer, bytes,
			u->header_bytes ? ": a datagram before it was lost; datagrams are not repeated, use "
					  "qp=rc where packets get lost"
					: "");
	memcpy(buf, u->slots + slot * u->slot_bytes + u->header_bytes, bytes);
	k->recv_done++;
	return release(k, slot);
}

int vb_ring_arrived(struct vb_connection *k, const struct ibv_wc *wc)
{
	struct vb_ring *u = k->ring;
	uint32_t slot = (uint32_t)wc->wr_id, index, got;

	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) { /* a put: its data are where they belong */
		k->immediates++;
		return release(k, slot);
	}
	index = u->arrived++;
	got = wc->byte_len - (uint32_t)u->header_bytes;
	if ((int32_t)(k->recv_posted - index) > 0) {
		const struct wanted *w = &u->wanted[index % u->count];

		return deliver(k, slot, got, w->buf, w->bytes);
	}
	u->waiting[index % u->count] = (struct waiting){slot, got};
	return XB_OK;
}

int vb_ring_recv(void *conn, void *buf, size_t bytes, void *region, void *request)
{
	struct vb_connection *k = conn;
	struct vb_ring *u = k->ring;
	struct vb_request *r = request;
	uint32_t index = k->recv_posted++;

	(void)region;
	r->done = &k->recv_done;
	r->number = k->recv_posted;
	if ((int32_t)(u->arrived - index) > 0) {
		const struct waiting *w = &u->waiting[index % u->count];

		return deliver(k, w->slot, w->bytes, buf, bytes);
	}
	u->wanted[index % u->count] = (struct wanted){buf, bytes};
	return XB_OK;
}

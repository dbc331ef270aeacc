/* SPDX-License-Identifier: BSD-3-Clause */
/* Making queue pairs, and finding out how much a device sends inline: no attribute tells it. */
#include "verbs.h"

#define MOST_TRIES 12 /* of bisecting: enough for a range of 4096 bytes */

static struct ibv_qp *create(struct vb_context *c, struct ibv_cq *cq, uint32_t inline_bytes,
			     uint32_t *granted)
{
	struct ibv_qp_init_attr attr = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = c->set.kind == VB_UD ? IBV_QPT_UD : IBV_QPT_RC,
					.cap = {.max_send_wr = c->send_depth,
						.max_recv_wr = c->recv_depth,
						.max_send_sge = 1,
						.max_recv_sge = 1,
						.max_inline_data = inline_bytes}};
	struct ibv_qp *qp = ibv_create_qp(c->pd, &attr);

	if (qp)
		*granted = attr.cap.max_inline_data;
	return qp;
}

/* Devices refuse what they cannot inline with EINVAL or ENOMEM: less until it works, then more again. */
struct ibv_qp *vb_queue_pair(struct vb_context *c, struct ibv_cq *cq, uint32_t *ask, uint32_t *granted)
{
	uint32_t low = *ask, high = low;
	struct ibv_qp *qp = create(c, cq, low, granted);

	while (!qp && low) {
		high = low;
		low /= 2;
		qp = create(c, cq, low, granted);
	}
	for (int tries = 0; qp && high - low > 1 && tries < MOST_TRIES; tries++) {
		uint32_t middle = low + (high - low) / 2, more;
		struct ibv_qp *better = create(c, cq, middle, &more);

		if (!better) {
			high = middle;
			continue;
		}
		ibv_destroy_qp(qp);
		qp = better;
		low = middle;
		*granted = more;
	}
	*ask = low;
	return qp;
}

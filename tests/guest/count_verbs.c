/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count_verbs.so, to be preloaded: counts what a program asks of its RDMA devices, and at its end appends a
 * line to the file $COUNT_VERBS:  post_send calls (doorbells) · work requests sent · post_recv calls ·
 * receives · polls that found completions · completions.
 *
 * ibv_post_send, ibv_post_recv and ibv_poll_cq are inline and call through the device's table of operations,
 * so that is where they are counted.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_ulong send_calls, sends, recv_calls, recvs, polls, completions;
static struct ibv_context_ops real; /* of all devices: they have one provider here */

static int count_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	send_calls++;
	for (const struct ibv_send_wr *w = wr; w; w = w->next)
		sends++;
	return real.post_send(qp, wr, bad);
}

static int count_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	recv_calls++;
	for (const struct ibv_recv_wr *w = wr; w; w = w->next)
		recvs++;
	return real.post_recv(qp, wr, bad);
}

static int count_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	int n = real.poll_cq(cq, entries, wc);

	if (n > 0) {
		polls++;
		completions += (unsigned long)n;
	}
	return n;
}

__attribute__((visibility("default"))) struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*open_device)(struct ibv_device *);
	void *symbol = dlvsym(RTLD_NEXT, "ibv_open_device", "IBVERBS_1.1");
	struct ibv_context *context;

	if (!symbol)
		abort();
	*(void **)&open_device = symbol;
	context = open_device(device);
	if (!context)
		return NULL;
	if (context->ops.post_send != count_post_send)
		real = context->ops;
	context->ops.post_send = count_post_send;
	context->ops.post_recv = count_post_recv;
	context->ops.poll_cq = count_poll_cq;
	return context;
}

static __attribute__((destructor)) void tell(void)
{
	const char *name = getenv("COUNT_VERBS");
	FILE *out = name && sends + recvs ? fopen(name, "ae") : NULL;

	if (!out)
		return;
	fprintf(out, "%lu %lu %lu %lu %lu %lu\n", send_calls, sends, recv_calls, recvs, polls, completions);
	fclose(out);
}

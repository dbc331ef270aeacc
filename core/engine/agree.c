/* SPDX-License-Identifier: BSD-3-Clause */
/* In-band control messages: how the two sides of a block agree on what comes next. */
#include <inttypes.h>

#include "run.h"

#define MAGIC UINT64_C(0x31676b636f6c4278) /* "xBlockg1" */

static uint64_t checksum(const struct xb_control *message)
{
	const size_t words = offsetof(struct xb_control, check) / 8;
	uint64_t sum = UINT64_C(0xcbf29ce484222325), word;

	for (size_t i = 0; i < words; i++) {
		memcpy(&word, (const unsigned char *)message + 8 * i, 8);
		sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 32;
	}
	return sum;
}

static const char *kind_name(uint32_t kind)
{
	static const char *const names[] = {"nothing", "hello", "step", "go", "sync", "verify", "done"};
	return kind < sizeof names / sizeof names[0] ? names[kind] : "an unknown message";
}

static const char *who(const struct xb_run *run)
{
	return run->block->initiator ? "initiator" : "responder";
}

int xb_control_send(struct xb_run *run, struct xb_control *message, struct xb_error *error)
{
	const struct xb_loop *l = &run->loop;
	int status;

	message->magic = MAGIC;
	message->nonce = run->block->nonce;
	message->size_bytes = run->block->size_bytes;
	message->window = run->window;
	message->bench = (uint8_t)run->block->bench;
	message->op = (uint8_t)run->block->op;
	message->check = checksum(message);
	memcpy(run->control_send, message, sizeof *message);
	status = l->hot->send(l->conn, run->control_send, XB_AGREE_BYTES, l->send_region,
			      l->reply_send_request);
	if (!status)
		status = l->hot->wait(l->conn, l->reply_send_request);
	if (status < 0)
		return xb_run_failed(run, status, error);
	xb_run_count_sent(run, 1, XB_AGREE_BYTES);
	return 0;
}

static int all_zero(const struct xb_control *message)
{
	static const struct xb_control nothing;
	return !memcmp(message, &nothing, sizeof nothing);
}

int xb_control_post(struct xb_run *run, struct xb_error *error)
{
	const struct xb_loop *l = &run->loop;
	int status;

	memset(run->control_recv, 0, XB_AGREE_BYTES);
	status = l->hot->recv(l->conn, run->control_recv, XB_AGREE_BYTES, l->recv_region,
			      run->control_recv_request);
	return status < 0 ? xb_run_failed(run, status, error) : 0;
}

int xb_control_receive(struct xb_run *run, uint32_t kind, struct xb_control *message, struct xb_error *error)
{
	int status = xb_control_post(run, error);
	return status ? status : xb_control_wait(run, kind, message, error);
}

int xb_control_wait(struct xb_run *run, uint32_t kind, struct xb_control *message, struct xb_error *error)
{
	const struct xb_loop *l = &run->loop;
	const char *wanted = kind ? kind_name(kind) : "the next control message";
	int status = l->hot->wait(l->conn, run->control_recv_request);

	if (status < 0)
		return xb_run_failed(run, status, error);
	memcpy(message, run->control_recv, sizeof *message);
	if (all_zero(message))
		return xb_fail(error, XB_E_CORRUPT,
			       "%s of a %s block waited for %s: the receive completed but nothing has been "
			       "written to "
			       "its buffer (premature completion)",
			       who(run), xb_bench_name(run->block->bench), wanted);
	if (message->magic != MAGIC || message->check != checksum(message))
		return xb_fail(
			error, XB_E_CORRUPT,
			"%s of a %s block waited for %s: what arrived is not a control message or is damaged "
			"(magic %016" PRIx64 ")",
			who(run), xb_bench_name(run->block->bench), wanted, message->magic);
	if (kind && message->kind != kind)
		return xb_fail(error, XB_E_PEER, "%s of a %s block waited for %s: the peer sent %s", who(run),
			       xb_bench_name(run->block->bench), wanted, kind_name(message->kind));
	if (kind != XB_CONTROL_HELLO && message->nonce != run->block->nonce)
		return xb_fail(error, XB_E_PEER,
			       "%s of block %016" PRIx64
			       " waited for %s: what came belongs to block %016" PRIx64,
			       who(run), run->block->nonce, wanted, message->nonce);
	return 0;
}

static int compare_hello(struct xb_run *run, const struct xb_control *theirs, struct xb_error *error)
{
	const struct xb_block *mine = run->block;

	if (theirs->who == !!mine->initiator)
		return xb_fail(error, XB_E_PEER,
			       "both sides of the block say that they are the %s; one must be", who(run));
	if (theirs->bench != mine->bench || theirs->op != mine->op)
		return xb_fail(
			error, XB_E_PEER,
			"the sides do not agree: here the block is %s with %s, the peer runs %s with %s",
			xb_bench_name(mine->bench), xb_op_name(mine->op),
			xb_bench_name((enum xb_bench)theirs->bench), xb_op_name((enum xb_op)theirs->op));
	if (theirs->size_bytes != mine->size_bytes)
		return xb_fail(error, XB_E_PEER,
			       "the sides do not agree: here messages have %zu bytes, the peer has %" PRIu64,
			       mine->size_bytes, theirs->size_bytes);
	if (theirs->window != run->window)
		return xb_fail(error, XB_E_PEER,
			       "the sides do not agree: here the window is %" PRIu32
			       ", the peer has %" PRIu32,
			       run->window, theirs->window);
	if (mine->bench == XB_BENCH_SWAP && theirs->depth != mine->swap.depth)
		return xb_fail(error, XB_E_PEER,
			       "the sides do not agree on the swap: here the depth of the overlap is %" PRIu32
			       ", the peer has %" PRIu32,
			       mine->swap.depth, theirs->depth);
	if (mine->bench == XB_BENCH_SWAP && theirs->swap != xb_swap_pack(&mine->swap))
		return xb_fail(error, XB_E_PEER,
			       "the sides do not agree on the swap: here %016" PRIx64
			       ", the peer has %016" PRIx64 " (protocol, order, mode, overlap, messages)",
			       xb_swap_pack(&mine->swap), theirs->swap);
	if (theirs->nonce != mine->nonce)
		return xb_fail(error, XB_E_PEER,
			       "the sides do not agree: here the block has nonce %016" PRIx64
			       ", the peer has %016" PRIx64,
			       mine->nonce, theirs->nonce);
	if (theirs->count != mine->iterations)
		return xb_fail(error, XB_E_PEER,
			       "the sides do not agree: here %" PRIu64
			       " iterations are asked for, the peer has %" PRIu64,
			       mine->iterations, theirs->count);
	return 0;
}

/* Both sides tell their parameters before either judges, so that both come to the same end. */
int xb_control_hello(struct xb_run *run, struct xb_error *error)
{
	const struct xb_swap *swap = run->block->bench == XB_BENCH_SWAP ? &run->block->swap : NULL;
	struct xb_control mine = {.kind = XB_CONTROL_HELLO,
				  .count = run->block->iterations,
				  .swap = swap ? xb_swap_pack(swap) : 0,
				  .depth = swap ? swap->depth : 0,
				  .who = (uint8_t) !!run->block->initiator};
	struct xb_control theirs = {0};
	int status;

	if (run->block->initiator) {
		status = xb_control_post(run, error);
		if (!status)
			status = xb_control_send(run, &mine, error);
		if (!status)
			status = xb_control_wait(run, XB_CONTROL_HELLO, &theirs, error);
	} else {
		status = xb_control_receive(run, XB_CONTROL_HELLO, &theirs, error);
		if (!status)
			status = xb_control_send(run, &mine, error);
	}
	return status ? status : compare_hello(run, &theirs, error);
}

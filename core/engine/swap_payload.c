/* SPDX-License-Identifier: BSD-3-Clause */
/* What the messages of a swap contain, and the look at them between two timed swaps. */
#include "run.h"

static size_t offset_of(const struct xb_run *run, uint32_t message)
{
	return message * run->block->size_bytes;
}

static uint32_t messages_of(const struct xb_run *run)
{
	return run->block->swap.messages;
}

/* Stamp of message 0 of a swap; its other messages follow in steps of XB_STAMP_STEP. */
static uint64_t first_stamp(const struct xb_run *run, enum xb_direction from, uint64_t sample)
{
	return xb_run_stamp(run, from, run->step) + sample * messages_of(run) * XB_STAMP_STEP;
}

static uint64_t fresh_seed(const struct xb_run *run, enum xb_direction from, uint32_t message)
{
	return xb_run_fresh_seed(run, from, message);
}

static void fill(struct xb_run *run, int fresh)
{
	const size_t size = run->block->size_bytes;

	for (uint32_t i = 0; i < messages_of(run); i++)
		xb_payload_fill(run->loop.send + offset_of(run, i), size,
				fresh ? fresh_seed(run, run->mine, i)
				      : xb_run_message_seed(run, run->mine, i));
	xb_payload_poison(run->loop.recv, offset_of(run, messages_of(run)));
}

void xb_swap_fill(struct xb_run *run)
{
	fill(run, 0);
}

/* Reads and writes every line of a buffer that is larger than the last-level cache. */
static void sweep(const struct xb_endpoint *e)
{
	volatile unsigned char *at = e->sweep;

	for (size_t i = 0; i < e->sweep_bytes; i += 64)
		at[i]++;
}

void xb_swap_before(struct xb_run *run, uint64_t sample)
{
	const struct xb_loop *l = &run->loop;
	uint64_t stamp = first_stamp(run, run->mine, sample);

	if (run->part == XB_PART_VERIFY) {
		fill(run, 1);
		return;
	}
	for (uint32_t i = 0; i < messages_of(run); i++, stamp += XB_STAMP_STEP) {
		xb_stamp_write(l->send + offset_of(run, i), l->tail, stamp);
		xb_stamp_write(l->recv + offset_of(run, i), l->tail, XB_POISON_WORD);
	}
	if (run->block->swap.mode == XB_SWAP_COLD)
		sweep(run->endpoint);
}

static void look(struct xb_run *run, int status, const struct xb_error *error, uint64_t messages)
{
	xb_run_finding(run, status, error);
	if (!status)
		run->result->checked_messages += messages;
}

static void compare_fresh(struct xb_run *run)
{
	struct xb_payload_context context = xb_run_context(run, "verification");
	struct xb_error error;

	for (uint32_t i = 0; i < messages_of(run) && !run->verdict; i++) {
		int status = xb_payload_check(&context, run->loop.recv + offset_of(run, i),
					      fresh_seed(run, run->theirs, i), 0, 0, i, &error);
		look(run, status, &error, 1);
	}
}

void xb_swap_after(struct xb_run *run, uint64_t sample)
{
	const struct xb_loop *l = &run->loop;
	struct xb_payload_context context =
		xb_run_context(run, run->part == XB_PART_TIMED ? "timed part" : "warm-up");
	struct xb_error error;

	if (run->verdict || (run->endpoint->caps & XB_CAP_NO_PAYLOAD))
		return;
	if (run->part == XB_PART_VERIFY) {
		compare_fresh(run);
		return;
	}
	for (uint32_t i = 0; i < messages_of(run); i++)
		xb_stamp_read(l->recv + offset_of(run, i), l->tail, l->stamps + 2 * (size_t)i);
	int status = xb_payload_check_stamps(&context, l->stamps, messages_of(run),
					     first_stamp(run, run->theirs, sample), XB_STAMP_STEP, &error);
	look(run, status, &error, messages_of(run));
}

void xb_swap_check_last(struct xb_run *run, uint64_t n)
{
	struct xb_payload_context context = xb_run_context(run, "timed part");
	uint64_t stamp = first_stamp(run, run->theirs, n - 1);
	struct xb_error error;

	for (uint32_t i = 0; i < messages_of(run) && !run->verdict; i++, stamp += XB_STAMP_STEP) {
		int status = xb_payload_check(&context, run->loop.recv + offset_of(run, i),
					      xb_run_message_seed(run, run->theirs, i), 1, stamp, i, &error);
		look(run, status, &error, 0);
	}
}

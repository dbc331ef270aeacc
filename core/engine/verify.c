/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outside the timed part: some messages with fresh content each, compared in full. A ping-pong verifies one
 * message at a time, a window its messages at once and side by side, as far as the buffer has room and within
 * about 1 MiB.
 *
 *   op send   from the initiator: verify, go, data · from the responder: verify, data
 *   write(-poll) from the initiator: verify, go, puts, sync · from the responder: verify, puts, sync
 *   op read   of the initiator's memory: verify, gets, sync · of the responder's: verify, go, gets
 */
#include "run.h"

#define VERIFY_BYTES ((size_t)1 << 20)
#define MOST_ROUNDS 4u

static size_t slot_bytes(const struct xb_run *run)
{
	size_t size = run->block->size_bytes;
	return size ? (size + 63) / 64 * 64 : 64;
}

static uint32_t affordable(const struct xb_run *run, uint32_t most)
{
	size_t count = VERIFY_BYTES / slot_bytes(run);
	return count < 1 ? 1 : count > most ? most : (uint32_t)count;
}

uint32_t xb_verify_messages(const struct xb_run *run)
{
	size_t room = (run->endpoint->buffer_bytes - XB_CONTROL_BYTES) / slot_bytes(run);
	return affordable(run, room < run->window ? (uint32_t)room : run->window);
}

static uint32_t rounds(const struct xb_run *run)
{
	return run->window == 1 ? affordable(run, MOST_ROUNDS) : 1;
}

/* --- one side's part of an exchange of `count` messages, numbers first ... */

static void fill(struct xb_run *run, uint32_t first, uint32_t count)
{
	for (uint32_t k = 0; k < count; k++)
		xb_payload_fill(run->loop.send + k * slot_bytes(run), run->block->size_bytes,
				xb_run_fresh_seed(run, run->mine, first + k));
}

static void poison(struct xb_run *run, uint32_t count)
{
	xb_payload_poison(run->loop.recv, (count - 1) * slot_bytes(run) + run->block->size_bytes);
}

static void compare(struct xb_run *run, uint32_t first, uint32_t count)
{
	struct xb_payload_context context = xb_run_context(run, "verification");
	struct xb_error error;

	for (uint32_t k = 0; k < count; k++) {
		uint32_t message = first + k;
		context.previous_seed = message ? xb_run_fresh_seed(run, run->theirs, message - 1)
						: xb_run_base_seed(run, run->theirs);
		context.previous_stamp = message ? 0 : run->previous_stamp;
		int status =
			xb_payload_check(&context, run->loop.recv + k * slot_bytes(run),
					 xb_run_fresh_seed(run, run->theirs, message), 0, 0, message, &error);
		xb_run_finding(run, status, &error);
		run->result->checked_messages += !status;
	}
}

static int post_receives(struct xb_run *run, uint32_t count, struct xb_error *error)
{
	const struct xb_loop *l = &run->loop;

	for (uint32_t k = 0; k < count; k++) {
		int status = l->hot->recv(l->conn, l->recv + k * slot_bytes(run), l->size, l->recv_region,
					  l->recv_requests[0] + k * l->stride);
		if (status < 0)
			return xb_run_failed(run, status, error);
	}
	return 0;
}

static int wait_received(struct xb_run *run, uint32_t count, struct xb_error *error)
{
	const struct xb_loop *l = &run->loop;
	int status = l->hot->wait_all(l->conn, l->recv_requests[0], count);
	return status < 0 ? xb_run_failed(run, status, error) : 0;
}

static int send_all(struct xb_run *run, uint32_t count, struct xb_error *error)
{
	const struct xb_loop *l = &run->loop;
	int status = 0;

	for (uint32_t k = 0; k < count && status >= 0; k++)
		status = l->hot->send(l->conn, l->send + k * slot_bytes(run), l->size, l->send_region,
				      l->send_requests + k * l->stride);
	if (status >= 0)
		status = l->hot->wait_all(l->conn, l->send_requests, count);
	if (status < 0)
		return xb_run_failed(run, status, error);
	xb_run_count_sent(run, count, l->size);
	return 0;
}

static int put_all(struct xb_run *run, uint32_t count, struct xb_error *error)
{
	const struct xb_loop *l = &run->loop;
	int status = 0;

	for (uint32_t k = 0; k < count && status >= 0; k++)
		status = l->hot->put(l->conn, l->send + k * slot_bytes(run), l->size, l->send_region,
				     l->remote_recv, k * slot_bytes(run), l->send_requests + k * l->stride);
	if (status >= 0)
		status = l->hot->flush(l->conn);
	if (status >= 0)
		status = l->hot->wait_all(l->conn, l->send_requests, count);
	if (status < 0)
		return xb_run_failed(run, status, error);
	xb_run_count_sent(run, count, l->size);
	return 0;
}

static int get_all(struct xb_run *run, uint32_t count, struct xb_error *error)
{
	const struct xb_loop *l = &run->loop;
	int status = 0;

	for (uint32_t k = 0; k < count && status >= 0; k++)
		status =
			l->hot->get(l->conn, l->recv + k * slot_bytes(run), l->size, l->recv_region,
				    l->remote_send, k * slot_bytes(run), l->recv_requests[0] + k * l->stride);
	if (status >= 0)
		status = l->hot->flush(l->conn);
	if (status >= 0)
		status = l->hot->wait_all(l->conn, l->recv_requests[0], count);
	return status < 0 ? xb_run_failed(run, status, error) : 0;
}

static int tell(struct xb_run *run, enum xb_control_kind kind, struct xb_error *error)
{
	return xb_control_send(run, &(struct xb_control){.kind = kind}, error);
}

static int expect(struct xb_run *run, enum xb_control_kind kind, struct xb_error *error)
{
	struct xb_control message;
	return xb_control_receive(run, kind, &message, error);
}

/*
 * The two sides of an exchange. The one that leads has sent verify just before (or, having receives to post,
 * posts them first); `leads` says which of us that is.
 */
static int as_source(struct xb_run *run, uint32_t first, uint32_t count, int leads, struct xb_error *error)
{
	int status = 0;

	switch (run->block->op) {
	case XB_OP_SEND:
		if (leads)
			status = expect(run, XB_CONTROL_GO, error);
		return status ? status : send_all(run, count, error);
	case XB_OP_WRITE:
	case XB_OP_WRITE_POLL:
		if (leads)
			status = expect(run, XB_CONTROL_GO, error);
		if (!status)
			status = put_all(run, count, error);
		return status ? status : tell(run, XB_CONTROL_SYNC, error);
	case XB_OP_READ:
		xb_run_count_sent(run, count, run->block->size_bytes);
		return leads ? expect(run, XB_CONTROL_SYNC, error) : tell(run, XB_CONTROL_GO, error);
	}
	(void)first;
	return 0;
}

static int as_sink(struct xb_run *run, uint32_t first, uint32_t count, int leads, struct xb_error *error)
{
	int status = 0;

	switch (run->block->op) {
	case XB_OP_SEND:
		if (!leads) {
			status = post_receives(run, count, error);
			if (!status)
				status = tell(run, XB_CONTROL_GO, error);
		}
		if (!status)
			status = wait_received(run, count, error);
		break;
	case XB_OP_WRITE:
	case XB_OP_WRITE_POLL:
		if (!leads)
			status = tell(run, XB_CONTROL_GO, error);
		if (!status)
			status = expect(run, XB_CONTROL_SYNC, error);
		break;
	case XB_OP_READ:
		if (leads)
			status = expect(run, XB_CONTROL_GO, error);
		if (!status)
			status = get_all(run, count, error);
		if (!status && !leads)
			status = tell(run, XB_CONTROL_SYNC, error);
		break;
	}
	if (!status)
		compare(run, first, count);
	return status;
}

static int lead_exchange(struct xb_run *run, enum xb_direction from, uint32_t first, uint32_t count,
			 struct xb_error *error)
{
	struct xb_control message = {
		.kind = XB_CONTROL_VERIFY, .number = first, .count = count, .who = (uint8_t)from};
	int status = 0, source = from == run->mine;

	if (source)
		fill(run, first, count);
	else
		poison(run, count);
	/* what the responder sends without further notice must find its receives */
	if (!source && run->block->op == XB_OP_SEND)
		status = post_receives(run, count, error);
	if (!status)
		status = xb_control_send(run, &message, error);
	if (status)
		return status;
	return source ? as_source(run, first, count, 1, error) : as_sink(run, first, count, 1, error);
}

int xb_verify_lead(struct xb_run *run, struct xb_error *error)
{
	const uint32_t count = xb_verify_messages(run);
	int status = 0;

	for (uint32_t round = 0; round < rounds(run) && !status; round++) {
		if (run->i_send_data)
			status = lead_exchange(run, run->mine, round * count, count, error);
		if (!status && run->i_receive_data)
			status = lead_exchange(run, run->theirs, round * count, count, error);
	}
	return status;
}

int xb_verify_serve(struct xb_run *run, const struct xb_control *message, struct xb_error *error)
{
	const uint32_t first = message->number, count = (uint32_t)message->count;

	if (message->count != xb_verify_messages(run))
		return xb_fail(error, XB_E_PEER,
			       "the initiator verifies %llu messages at once, here it would be %u",
			       (unsigned long long)message->count, xb_verify_messages(run));
	if ((int)message->who == (int)run->mine) {
		fill(run, first, count);
		return as_source(run, first, count, 0, error);
	}
	poison(run, count);
	return as_sink(run, first, count, 0, error);
}

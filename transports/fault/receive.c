/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Corruption and premature completion of what this endpoint receives.
 *
 * Corruption flips one bit-pattern in a byte of the buffer when the receive has completed: of its first 8,
 * its last 8 and its middle bytes in turn. Data that a peer put here completes without this side's knowledge;
 * it is spoiled when the next control message has arrived.
 *
 * Premature completion hands the transport a request of our own in place of the engine's. When the engine
 * waits, it is told "done" while that request is still open; it is really waited for later, at the latest
 * before the next control message. So memory stays valid, order is kept, and no more than max_outstanding
 * receives are open.
 */
#include <string.h>

#include "../../core/engine/payload.h"
#include "fault.h"

static struct fault_slot *slot_of(struct fault *f, void *request)
{
	size_t offset = (size_t)((unsigned char *)request - (unsigned char *)f->endpoint->requests);
	return &f->slots[offset / f->endpoint->request_bytes];
}

static void *shadow(const struct fault *f, uint64_t number)
{
	return f->shadows + (number % f->shadow_capacity) * f->endpoint->request_bytes;
}

/* Really waits for the stand-ins before number `until`. */
static int drain(struct fault *f, void *conn, uint64_t until)
{
	while (f->shadow_tail < until) {
		int status = f->inner->wait(conn, shadow(f, f->shadow_tail));
		if (status < 0)
			return status;
		f->shadow_tail++;
	}
	return 0;
}

static void flip(struct fault *f, unsigned char *buffer, size_t bytes)
{
	const size_t end = bytes < 8 ? bytes : 8;
	size_t at;

	if (!bytes || ++f->received % f->settings.corrupt_every)
		return;
	switch (f->corrupted % 3) {
	case 0:
		at = f->corrupted % end;
		break;
	case 1:
		at = bytes - 1 - f->corrupted % end;
		break;
	default:
		at = bytes / 2;
	}
	buffer[at] ^= 0x55;
	f->corrupted++;
}

static void received(struct fault *f, struct fault_slot *slot)
{
	unsigned char *buffer = slot->buffer;

	slot->buffer = NULL;
	if (!f->settings.corrupt_every || !f->breaks_here)
		return;
	if (buffer && (uintptr_t)buffer < f->recv_end)
		flip(f, buffer, slot->bytes);
	else if (buffer && f->pattern.op == XB_OP_WRITE)
		flip(f, f->endpoint->recv_buffer, f->pattern.size_bytes);
}

static int faulty_recv(void *conn, void *buf, size_t bytes, void *region, void *request)
{
	struct fault *f = fault_current();
	struct fault_slot *slot = slot_of(f, request);
	int status;

	*slot = (struct fault_slot){.buffer = buf, .bytes = bytes, .before = f->shadow_head};
	if ((uintptr_t)buf >= f->recv_end || bytes < f->settings.premature_bytes || !f->shadow_capacity)
		return f->inner->recv(conn, buf, bytes, region, request);
	if (f->shadow_head - f->shadow_tail == f->shadow_capacity) {
		status = drain(f, conn, f->shadow_tail + 1);
		if (status < 0)
			return status;
	}
	status = f->inner->recv(conn, buf, bytes, region, shadow(f, f->shadow_head));
	if (!status)
		slot->shadow = ++f->shadow_head;
	return status;
}

static int faulty_get(void *conn, void *buf, size_t bytes, void *region, void *remote, size_t remote_offset,
		      void *request)
{
	struct fault *f = fault_current();
	*slot_of(f, request) = (struct fault_slot){.buffer = buf, .bytes = bytes};
	return f->inner->get(conn, buf, bytes, region, remote, remote_offset, request);
}

static int faulty_wait(void *conn, void *request)
{
	struct fault *f = fault_current();
	struct fault_slot *slot = slot_of(f, request);
	int status;

	if (slot->shadow) { /* all before it, not itself */
		status = drain(f, conn, slot->shadow - 1);
		f->premature++;
		*slot = (struct fault_slot){0};
		return status;
	}
	if (slot->buffer && (status = drain(f, conn, slot->before)) < 0)
		return status;
	status = f->inner->wait(conn, request);
	if (!status)
		received(f, slot);
	return status;
}

static int faulty_wait_all(void *conn, void *requests, size_t count)
{
	struct fault *f = fault_current();
	struct fault_slot *slot = slot_of(f, requests);
	int status;

	if (count && slot->shadow) {
		status = drain(f, conn, slot->shadow - 1);
		f->premature += count;
		memset(slot, 0, count * sizeof *slot);
		return status;
	}
	status = f->inner->wait_all(conn, requests, count);
	for (size_t i = 0; i < count && !status; i++)
		received(f, &slot[i]);
	return status;
}

/*
 * The target of a put learns of it by looking. Told too early it would find what was there before, so it is
 * shown that; the wait itself is real, or the two sides would no longer be at the same message.
 */
static int faulty_watch(void *conn, const struct xb_spot *at, uint64_t stamp)
{
	struct fault *f = fault_current();
	const int premature = f->pattern.size_bytes >= f->settings.premature_bytes;
	const size_t last = (size_t)((const unsigned char *)at->tail - f->endpoint->recv_buffer);
	unsigned char *buffer = f->endpoint->recv_buffer;
	uint64_t before[2];
	int status;

	xb_stamp_read(buffer, last, before);
	status = f->inner->watch(conn, at, stamp);
	if (!status && premature) {
		memcpy(buffer, &before[0], 8);
		memcpy(buffer + last, &before[1], 8);
		f->premature++;
	}
	if (!status && f->settings.corrupt_every)
		flip(f, buffer, f->pattern.size_bytes);
	return status;
}

static int faulty_test(void *conn, void *request)
{
	struct fault *f = fault_current();
	struct fault_slot *slot = slot_of(f, request);
	int status;

	if (slot->shadow)
		return faulty_wait(conn, request) < 0 ? XB_E_TRANSPORT : 1;
	status = f->inner->test(conn, request);
	if (status == 1)
		received(f, slot);
	return status;
}

void fault_receive_prepare(struct fault *f)
{
	if (!f->breaks_here || (!f->settings.corrupt_every && !f->shadow_capacity))
		return;
	memset(f->slots, 0, XB_BLOCK_REQUESTS * sizeof *f->slots);
	f->hot.recv = faulty_recv;
	f->hot.get = faulty_get;
	f->hot.wait = faulty_wait;
	f->hot.wait_all = faulty_wait_all;
	f->hot.test = faulty_test;
	f->hot.watch = faulty_watch;
}

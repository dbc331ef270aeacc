/* SPDX-License-Identifier: BSD-3-Clause */
/* Hang and crash, at the first data operation of a given size or more. */
#include <signal.h>
#include <unistd.h>

#include "fault.h"

static int stop_here(struct fault *f, size_t bytes)
{
	if (bytes >= f->settings.crash_bytes) {
		/* also where a sanitizer or MPI handles it: the point is a process that is gone */
		signal(SIGSEGV, SIG_DFL);
		kill(getpid(), SIGSEGV);
	}
	while (!atomic_load_explicit(f->abort, memory_order_relaxed))
		;
	return XB_E_ABORTED;
}

static int stopping_send(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct fault *f = fault_current();
	if ((uintptr_t)buf < f->send_end)
		return stop_here(f, bytes);
	return f->inner->send(conn, buf, bytes, region, request);
}

static int stopping_recv(void *conn, void *buf, size_t bytes, void *region, void *request)
{
	struct fault *f = fault_current();
	if ((uintptr_t)buf < f->recv_end)
		return stop_here(f, bytes);
	return f->inner->recv(conn, buf, bytes, region, request);
}

static int stopping_put(void *conn, const void *buf, size_t bytes, void *region, void *remote,
			size_t remote_offset, void *request)
{
	(void)conn, (void)buf, (void)region, (void)remote, (void)remote_offset, (void)request;
	return stop_here(fault_current(), bytes);
}

static int stopping_get(void *conn, void *buf, size_t bytes, void *region, void *remote, size_t remote_offset,
			void *request)
{
	(void)conn, (void)buf, (void)region, (void)remote, (void)remote_offset, (void)request;
	return stop_here(fault_current(), bytes);
}

/* The target of one-sided operations does no data operation itself: it stops in its first wait. */
static int stopping_wait(void *conn, void *request)
{
	struct fault *f = fault_current();
	(void)conn, (void)request;
	return stop_here(f, f->pattern.size_bytes);
}

static int stopping_watch(void *conn, const struct xb_spot *at, uint64_t stamp)
{
	struct fault *f = fault_current();
	(void)conn, (void)at, (void)stamp;
	return stop_here(f, f->pattern.size_bytes);
}

void fault_break_prepare(struct fault *f)
{
	const size_t from = f->settings.hang_bytes < f->settings.crash_bytes ? f->settings.hang_bytes
									     : f->settings.crash_bytes;

	if (!f->breaks_here || f->pattern.size_bytes < from)
		return;
	f->hot.send = f->hot.send_sync = f->hot.send_ready = stopping_send;
	f->hot.recv = stopping_recv;
	f->hot.put = stopping_put;
	f->hot.get = stopping_get;
	f->hot.watch = stopping_watch;
	if ((f->pattern.op == XB_OP_WRITE || f->pattern.op == XB_OP_READ) && !f->pattern.initiator &&
	    !f->pattern.both_ways)
		f->hot.wait = stopping_wait;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What went wrong, in words. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "verbs.h"

/* Completions that were flushed can be there before the event that says why. */
#define EVENT_PATIENCE_MS 100

static const char *const works[] = {"send", "write", "read", "receive"};

static const char *advice_for(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_LOC_LEN_ERR:
		return "a message is longer than the receive that it met, or than the port allows";
	case IBV_WC_LOC_QP_OP_ERR:
		return "the queue pair could not carry it out; soft-RoCE says so of a message that is longer "
		       "than "
		       "the receive that it met";
	case IBV_WC_LOC_PROT_ERR:
		return "the local buffer is not registered for this";
	case IBV_WC_RETRY_EXC_ERR:
		return "the peer does not answer: its process ended, its queue pair failed, or the path "
		       "loses packets "
		       "(link, switch, PFC, wrong GID or VLAN)";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "the peer posts no receives in time (rnr=7 repeats for ever)";
	case IBV_WC_REM_ACCESS_ERR:
		return "the peer's memory is not registered for this, or the key or address is wrong";
	case IBV_WC_REM_INV_REQ_ERR:
		return "the peer's queue pair refuses the request: longer than its receive, or an operation "
		       "that it "
		       "does not allow";
	case IBV_WC_REM_OP_ERR:
		return "the peer could not complete it; its own message says why";
	case IBV_WC_WR_FLUSH_ERR:
		return "the queue pair had failed before";
	case IBV_WC_FATAL_ERR:
		return "the device has failed";
	default:
		return "see the kernel log (dmesg) of both ends";
	}
}

static int status_for(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return XB_E_PEER;
	default:
		return XB_E_TRANSPORT;
	}
}

/* Text of an event that makes waiting pointless; NULL for those that do not. */
static const char *fatal_text(const struct vb_connection *k, const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		return "the device has failed; see dmesg";
	case IBV_EVENT_PORT_ERR:
		return event->element.port_num == (int)k->context->port.number
			       ? "the port went down; check the link"
			       : NULL;
	case IBV_EVENT_QP_FATAL:
		return "a queue pair has failed here, through no fault of the peer; see dmesg";
	case IBV_EVENT_QP_REQ_ERR:
		return "a queue pair has failed: the peer sent what it does not allow";
	case IBV_EVENT_QP_ACCESS_ERR:
		return "a queue pair has failed: the peer reached for memory that is not registered for this";
	case IBV_EVENT_CQ_ERR:
		return "a completion queue overran";
	default:
		return NULL;
	}
}

/* Takes all events that there are; the first fatal one is kept in the context. */
static const char *take_events(struct vb_connection *k)
{
	struct vb_context *c = k->context;
	struct ibv_async_event event;

	while (ibv_get_async_event(c->port.device, &event) == 0) {
		const char *text = fatal_text(k, &event);

		if (text && !c->event[0])
			snprintf(c->event, sizeof(c->event), "%s/%u reports \"%s\": %s", c->port.name,
				 c->port.number, ibv_event_type_str(event.event_type), text);
		ibv_ack_async_event(&event);
	}
	return c->event;
}

int vb_check_events(struct vb_connection *k)
{
	if (!*take_events(k))
		return XB_OK;
	return xb_fail(&k->failure, XB_E_TRANSPORT, "verbs: waited for endpoint %u; %s", k->peer,
		       k->context->event);
}

static bool is_cause(const struct ibv_wc *wc)
{
	return wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR;
}

/* A flushed request says nothing of the cause, which is in a completion behind it, or in an event. */
static struct ibv_wc cause_of(struct vb_connection *k, const struct ibv_wc *taken, int count)
{
	struct pollfd events = {.fd = k->context->port.device->async_fd, .events = POLLIN};
	struct ibv_wc wc;

	for (int i = 0; i < count; i++)
		if (is_cause(&taken[i]))
			return taken[i];
	while (ibv_poll_cq(k->cq, 1, &wc) == 1)
		if (is_cause(&wc))
			return wc;
	if (!k->context->event[0])
		poll(&events, 1, EVENT_PATIENCE_MS);
	return taken[0];
}

int vb_completion_failed(struct vb_connection *k, const struct ibv_wc *taken, int count)
{
	const struct ibv_wc wc = k->failure.status ? taken[0] : cause_of(k, taken, count);
	const unsigned work = (unsigned)(wc.wr_id >> 62);
	const unsigned long long bytes = (wc.wr_id >> 32) & 0x3fffffffu;
	const char *event = take_events(k);
	char size[64] = "a message";

	if (k->failure.status)
		return k->failure.status;
	if (!k->ring || work != VB_RECV)
		snprintf(size, sizeof(size), "%llu bytes", bytes);
	return xb_fail(
		&k->failure, status_for(wc.status),
		"verbs:%s/%u: the %s of %s %s endpoint %u failed: %s (status %d, vendor code 0x%x): %s%s%s",
		k->context->port.name, k->context->port.number, works[work], size,
		work == VB_RECV || work == VB_GET ? "from" : "to", k->peer, ibv_wc_status_str(wc.status),
		(int)wc.status, wc.vendor_err, advice_for(wc.status), *event ? "; " : "", event);
}

int vb_call_failed(struct vb_connection *k, const char *call, int code)
{
	if (k->failure.status)
		return k->failure.status;
	return vb_fail(k->context, &k->failure, code == ENOMEM ? XB_E_RESOURCE : XB_E_TRANSPORT, call, code,
		       code == ENOMEM ? "the queue is full; use a smaller window (-W) or another depth="
				      : NULL);
}

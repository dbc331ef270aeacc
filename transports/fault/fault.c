/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fault decorator. It takes the backend's table of hot operations and replaces only those that a fault
 * concerns, so that all others cost what they cost without it. The operations get the backend's own
 * connection, untouched; they find their fault through a pointer of the thread, set when a block is prepared.
 * That pointer is the one piece of state outside the decorator's own, and it belongs to the thread that runs
 * the blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "fault.h"

static _Thread_local struct fault *attached, *current;

struct fault *fault_current(void)
{
	return current;
}

static const struct xb_hot *fault_prepare(void *conn, const struct xb_pattern *pattern,
					  struct xb_error *error)
{
	struct fault *f = attached;
	const struct xb_endpoint *e;

	while (f && f->conn != conn)
		f = f->next;
	if (!f) {
		xb_fail(error, XB_E_USAGE, "fault: this connection was attached in another thread");
		return NULL;
	}
	f->inner = f->prepare(conn, pattern, error);
	if (!f->inner)
		return NULL;
	e = f->endpoint;
	current = f;
	f->hot = *f->inner;
	f->pattern = *pattern;
	f->send_end = (uintptr_t)e->send_buffer + e->buffer_bytes - XB_CONTROL_BYTES;
	f->recv_end = (uintptr_t)e->recv_buffer + e->buffer_bytes - XB_CONTROL_BYTES;
	fault_delay_prepare(f);
	fault_receive_prepare(f);
	fault_break_prepare(f);
	return &f->hot;
}

static void clear_counters(struct fault *f)
{
	f->delays.count = f->delays.max = 0;
	f->delays.min = UINT64_MAX;
	f->delays.sum = 0;
	f->calls->count[0] = f->calls->count[1] = f->calls->messages = 0;
	f->received = f->corrupted = f->premature = 0;
}

static void fault_detach(void *state)
{
	struct fault *f = state, **at = &attached;

	if (!f)
		return;
	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
	if (current == f)
		current = NULL;
	free(f->delays.kept);
	free(f->calls);
	free(f->slots);
	free(f->shadows);
	free(f);
}

static int allocate(struct fault *f, const struct xb_setup *setup)
{
	f->delays.kept = malloc(FAULT_KEPT * sizeof *f->delays.kept);
	f->slots = calloc(XB_BLOCK_REQUESTS, sizeof *f->slots);
	f->calls = malloc(sizeof *f->calls);
	if (!f->delays.kept || !f->slots || !f->calls)
		return -1;
	/* no page of it is touched for the first time while something is timed */
	memset(f->delays.kept, 0, FAULT_KEPT * sizeof *f->delays.kept);
	memset(f->calls, 0, sizeof *f->calls);
	if (f->settings.premature_bytes == SIZE_MAX || !f->breaks_here)
		return 0;
	/* replies and control messages are received beside them */
	f->shadow_capacity = setup->max_outstanding > 4 ? setup->max_outstanding - 4 : 1;
	size_t bytes = (f->shadow_capacity * f->endpoint->request_bytes + 63) / 64 * 64;
	f->shadows = aligned_alloc(64, bytes);
	if (!f->shadows)
		return -1;
	memset(f->shadows, 0, bytes);
	return 0;
}

static int fault_attach(struct xb_endpoint *endpoint, const struct xb_setup *setup, void **state,
			struct xb_error *error)
{
	struct fault *f = calloc(1, sizeof *f);
	int status;

	if (!f)
		return xb_fail(error, XB_E_RESOURCE, "no memory for fault injection");
	status = fault_settings_parse(setup, &f->settings, error);
	if (status) {
		free(f);
		return status;
	}
	f->delays_here = f->settings.endpoint < 0 || (uint32_t)f->settings.endpoint == setup->endpoint;
	f->breaks_here = setup->endpoint == (f->settings.endpoint < 0 ? 1 : (uint32_t)f->settings.endpoint);
	f->endpoint = endpoint;
	f->conn = endpoint->conn;
	f->prepare = endpoint->prepare;
	f->abort = setup->abort;
	f->random = UINT64_C(0x9e3779b97f4a7c15) + setup->endpoint;
	f->next = attached;
	attached = f;
	if (allocate(f, setup)) {
		fault_detach(f);
		return xb_fail(error, XB_E_RESOURCE, "no memory for fault injection");
	}
	clear_counters(f);
	current = f;
	fault_delay_calibrate(f);
	clear_counters(f);
	endpoint->prepare = fault_prepare;
	*state = f;
	return 0;
}

static int compare_ticks(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

double fault_median(uint32_t *values, size_t count)
{
	const size_t half = count / 2;

	qsort(values, count, sizeof values[0], compare_ticks);
	return count % 2 ? values[half] : 0.5 * ((double)values[half - 1] + values[half]);
}

static json_t *fault_report(void *state)
{
	struct fault *f = state;
	const double ns = f->endpoint->timer->ns_per_tick;
	const struct fault_delays *d = &f->delays;
	json_t *report = NULL;

	if (d->count || f->received || f->corrupted || f->premature)
		report =
			json_pack("{s:I, s:{s:I, s:I}}", "messages",
				  (json_int_t)(d->count > f->received ? d->count : f->received), "injected",
				  "corrupt", (json_int_t)f->corrupted, "premature", (json_int_t)f->premature);
	if (report && d->count) {
		size_t kept = d->count < FAULT_KEPT ? (size_t)d->count : FAULT_KEPT;
		json_object_set_new(report, "imposed_delay_ns",
				    json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "count",
					      (json_int_t)d->count, "median",
					      fault_median(d->kept, kept) * ns, "mean",
					      d->sum / (double)d->count * ns, "min", (double)d->min * ns,
					      "max", (double)d->max * ns, "total", d->sum * ns, "slower",
					      fault_delay_slower(f) * ns));
	}
	clear_counters(f);
	return report;
}

static const struct xb_key fault_keys[] = {
	{"delay", "TIME", "every data message leaves later by this"},
	{"jitter", "TIME", "and by a random time up to this, uniformly"},
	{"step", "SIZE/TIME", "messages of SIZE or more leave later by TIME"},
	{"cap", "RATE", "no more than RATE bytes per second (K, M, G = 10^3 ...)"},
	{"corrupt", "N", "a byte of every N-th received message is changed"},
	{"premature", "SIZE", "receives of SIZE or more complete before the data has arrived"},
	{"hang", "SIZE", "the first message of SIZE or more never completes"},
	{"crash", "SIZE", "the first message of SIZE or more ends the process by SIGSEGV"},
	{"endpoint", "I", "only there (delays: everywhere; the others: 1)"},
	{NULL, NULL, NULL},
};

extern __attribute__((visibility("default"))) const struct xb_decorator xb_decorator;
const struct xb_decorator xb_decorator = {
	.abi = XB_TRANSPORT_ABI,
	.name = "fault",
	.keys = fault_keys,
	.attach = fault_attach,
	.report = fault_report,
	.detach = fault_detach,
};

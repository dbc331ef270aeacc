/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delay, jitter, step and cap: the sender spins before it hands a data message to the transport. What was
 * really spent is read from the timer and recorded. That is not yet all by which the message leaves later: a
 * send after a pause is slower than one that follows other work at once (caches and branch predictors have
 * cooled down). So the decorator measures that too: in the warm-up, stretches of STRETCH messages go with and
 * without a delay in turn, and the backend's call is timed in the second half of each. The timed part has all
 * delays and no such measurement.
 */
#include <math.h>
#include <string.h>

#include "fault.h"

uint64_t fault_ticks(const struct fault *f)
{
	return f->endpoint->timer->source == XB_TIMER_TSC ? xb_ticks_tsc() : xb_ticks_clock();
}

static void record(struct fault_delays *d, uint64_t ticks)
{
	d->kept[d->count % FAULT_KEPT] = ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
	d->count++;
	d->sum += (double)ticks;
	if (ticks < d->min)
		d->min = ticks;
	if (ticks > d->max)
		d->max = ticks;
}

static uint64_t next_random(struct fault *f) /* xorshift64* (Vigna 2016) */
{
	f->random ^= f->random >> 12;
	f->random ^= f->random << 25;
	f->random ^= f->random >> 27;
	return f->random * UINT64_C(0x2545f4914f6cdd1d);
}

int fault_delay(struct fault *f)
{
	const uint64_t start = fault_ticks(f);
	uint64_t wanted = f->delay_ticks, spent;

	if (f->jitter_ticks)
		wanted += (uint64_t)(((unsigned __int128)next_random(f) * f->jitter_ticks) >> 64);
	while ((spent = fault_ticks(f) - start) + f->hidden_ticks < wanted)
		if (atomic_load_explicit(f->abort, memory_order_relaxed))
			return XB_E_ABORTED;
	record(&f->delays, spent + f->hidden_ticks);
	return 0;
}

#define STRETCH 8u

static int is_data(const struct fault *f, const void *buf)
{
	return (uintptr_t)buf < f->send_end;
}

static int warming(const struct fault *f)
{
	const atomic_int *phase = f->endpoint->phase;
	return phase && atomic_load_explicit(phase, memory_order_relaxed) == XB_PHASE_WARMUP;
}

/* After a call of the warm-up that took `ticks`. Both sides count alike, so they are in the same stretch. */
static void learn(struct fault_calls *c, uint64_t ticks)
{
	const unsigned delayed = c->messages / STRETCH & 1;

	if (c->messages++ % STRETCH < STRETCH / 2)
		return;
	c->ticks[delayed][c->count[delayed]++ % FAULT_CALLS] =
		ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}

double fault_delay_slower(const struct fault *f)
{
	double median[2];

	for (int delayed = 0; delayed < 2; delayed++) {
		uint64_t count = f->calls->count[delayed];
		if (count < STRETCH / 2)
			return 0;
		median[delayed] = fault_median(f->calls->ticks[delayed],
					       count < FAULT_CALLS ? (size_t)count : FAULT_CALLS);
	}
	/* a call is not faster for the pause before it: less than nothing is the scatter of the medians */
	return median[1] > median[0] ? median[1] - median[0] : 0;
}

/* Delay, then CALL, as the last statement of a hot operation. */
#define DELAY_AND_RETURN(f, call)                                                                            \
	do {                                                                                                 \
		int status_;                                                                                 \
		uint64_t start_;                                                                             \
		if (!warming(f)) {                                                                           \
			status_ = fault_delay(f);                                                            \
			return status_ ? status_ : (call);                                                   \
		}                                                                                            \
		status_ = (f)->calls->messages / STRETCH & 1 ? fault_delay(f) : 0;                           \
		if (status_)                                                                                 \
			return status_;                                                                      \
		start_ = fault_ticks(f);                                                                     \
		status_ = (call);                                                                            \
		learn((f)->calls, fault_ticks(f) - start_);                                                  \
		return status_;                                                                              \
	} while (0)

static int delayed_send(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct fault *f = fault_current();

	if (!is_data(f, buf))
		return f->inner->send(conn, buf, bytes, region, request);
	DELAY_AND_RETURN(f, f->inner->send(conn, buf, bytes, region, request));
}

static int delayed_send_sync(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct fault *f = fault_current();

	if (!is_data(f, buf))
		return f->inner->send_sync(conn, buf, bytes, region, request);
	DELAY_AND_RETURN(f, f->inner->send_sync(conn, buf, bytes, region, request));
}

static int delayed_send_ready(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	struct fault *f = fault_current();

	if (!is_data(f, buf))
		return f->inner->send_ready(conn, buf, bytes, region, request);
	DELAY_AND_RETURN(f, f->inner->send_ready(conn, buf, bytes, region, request));
}

static int delayed_put(void *conn, const void *buf, size_t bytes, void *region, void *remote,
		       size_t remote_offset, void *request)
{
	struct fault *f = fault_current();

	if (!is_data(f, buf))
		return f->inner->put(conn, buf, bytes, region, remote, remote_offset, request);
	DELAY_AND_RETURN(f, f->inner->put(conn, buf, bytes, region, remote, remote_offset, request));
}

static int delayed_get(void *conn, void *buf, size_t bytes, void *region, void *remote, size_t remote_offset,
		       void *request)
{
	struct fault *f = fault_current();

	DELAY_AND_RETURN(f, f->inner->get(conn, buf, bytes, region, remote, remote_offset, request));
}

static uint64_t to_ticks(const struct fault *f, double ns)
{
	return (uint64_t)(ns / f->endpoint->timer->ns_per_tick + 0.5);
}

void fault_delay_prepare(struct fault *f)
{
	const struct fault_settings *s = &f->settings;
	double ns = (double)s->delay_ns;

	if (f->pattern.size_bytes >= s->step_bytes)
		ns += (double)s->step_ns;
	if (s->cap_bytes_per_s > 0)
		ns += (double)f->pattern.size_bytes / s->cap_bytes_per_s * 1e9;
	f->delay_ticks = to_ticks(f, ns);
	f->jitter_ticks = to_ticks(f, (double)s->jitter_ns);
	f->endpoint->imposed_ns = (uint64_t)ns + s->jitter_ns;
	/* an operation that is not delayed in this block is the backend's own */
	if (!f->delays_here || !(f->delay_ticks || f->jitter_ticks))
		return;
	f->hot.send = delayed_send;
	f->hot.send_sync = delayed_send_sync;
	f->hot.send_ready = delayed_send_ready;
	f->hot.put = delayed_put;
	f->hot.get = delayed_get;
}

/* --- calibration: what a delayed call costs beyond the time between its own stamps */

static int instant_send(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	(void)conn, (void)buf, (void)bytes, (void)region, (void)request;
	return 0;
}

static uint64_t fastest_call(struct fault *f,
			     int (*volatile call)(void *, const void *, size_t, void *, void *))
{
	uint64_t fastest = UINT64_MAX;

	for (int i = 0; i < 256; i++) {
		uint64_t start = fault_ticks(f);
		call(NULL, NULL, 0, NULL, NULL);
		uint64_t took = fault_ticks(f) - start;
		fastest = took < fastest ? took : fastest;
	}
	return fastest;
}

void fault_delay_calibrate(struct fault *f)
{
	static const struct xb_hot instant = {.send = instant_send};
	uint64_t delayed, direct, seen;

	f->inner = &instant;
	f->send_end = UINTPTR_MAX;
	f->delay_ticks = f->jitter_ticks = f->hidden_ticks = 0;
	delayed = fastest_call(f, delayed_send);
	direct = fastest_call(f, instant_send);
	seen = f->delays.min;
	f->hidden_ticks = delayed > direct + seen ? delayed - direct - seen : 0;
	f->inner = NULL;
}

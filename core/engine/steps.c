/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps: n iterations of the loop, announced by the initiator. Warm-up is some of them, the timed part is
 * one. */
#include <sys/resource.h>

#include "run.h"

#define MILLISECOND_NS UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

enum {
	DEFAULT_TARGET_NS = 10000000,
	ALONE_ITERATIONS = 10000,
	ALONE_WARMUP = 100,
	ENOUGH_WARMUP = 1000, /* iterations */
	FEWEST_ITERATIONS = 5,
	STEP_GROWTH = 4,
	LONGEST_TARGETS = 20, /* wall time of a timed part whose iterations were not asked for */
};

static void set_phase(enum xb_phase phase)
{
	atomic_store_explicit(&xb_block_phase, phase, memory_order_relaxed);
}

/* Messages of one iteration that go one after the other. */
static uint64_t per_iteration(const struct xb_run *run)
{
	if (run->block->bench == XB_BENCH_SWAP)
		return (uint64_t)2 * run->loop.messages * run->loop.repeats;
	return run->block->bench == XB_BENCH_PINGPONG ? 2 : run->window;
}

/* Time of an iteration with what is done between two, and with all delays. */
static uint64_t wall_ns(const struct xb_run *run)
{
	return run->wall_ns + per_iteration(run) * run->endpoint->imposed_ns;
}

static void count_step(struct xb_run *run, uint64_t n)
{
	const int both = run->block->bench == XB_BENCH_BIBW;

	if (run->block->bench == XB_BENCH_SWAP) {
		xb_run_count_sent(run, n * per_iteration(run) / 2, run->block->size_bytes);
		xb_run_count_sent(run, n, XB_AGREE_BYTES); /* ready or go */
		return;
	}
	if (run->i_send_data)
		xb_run_count_sent(run, n * run->window, run->block->size_bytes);
	if (both || (run->block->op == XB_OP_SEND && !run->i_send_data))
		xb_run_count_sent(run, n, XB_AGREE_BYTES); /* replies */
}

static void add_usage(struct xb_block_result *result, const struct rusage *before, const struct rusage *after)
{
	result->minor_faults = after->ru_minflt - before->ru_minflt;
	result->voluntary_switches = after->ru_nvcsw - before->ru_nvcsw;
	result->involuntary_switches = after->ru_nivcsw - before->ru_nivcsw;
}

static int run_loop(struct xb_run *run, uint64_t n, int timed, struct xb_error *error)
{
	struct rusage before, after;
	uint64_t begin_ns;
	int status = 0;

	if (timed)
		getrusage(RUSAGE_THREAD, &before);
	begin_ns = xb_clock_ns(CLOCK_MONOTONIC);
	if (run->loops.run)
		status = run->loops.run(&run->loop, n);
	run->step_wall_ns = xb_clock_ns(CLOCK_MONOTONIC) - begin_ns;
	if (run->step_wall_ns / n < run->wall_ns || !run->wall_ns)
		run->wall_ns = run->step_wall_ns / n + 1;
	if (status < 0)
		return xb_run_failed(run, status, error);
	if (timed) {
		getrusage(RUSAGE_THREAD, &after);
		add_usage(run->result, &before, &after);
	}
	count_step(run, n);
	return 0;
}

/* --- what was received */

static void check_last(struct xb_run *run, uint64_t n, uint64_t stamp,
		       const struct xb_payload_context *context)
{
	struct xb_error error;
	int status = xb_payload_check(context, run->loop.recv, xb_run_base_seed(run, run->theirs), 1, stamp,
				      n - 1, &error);
	xb_run_finding(run, status, &error);
	run->result->checked_messages += !status;
}

static void check_step(struct xb_run *run, uint32_t step, uint64_t n, int timed)
{
	struct xb_payload_context context = xb_run_context(run, timed ? "timed part" : "warm-up");
	const uint64_t first = xb_run_stamp(run, run->theirs, step);
	const int repeated = run->block->op == XB_OP_READ; /* always the same message */
	struct xb_error error;
	int status;

	if (run->verdict || (run->block->op == XB_OP_WRITE && !timed))
		return;
	if (run->block->bench == XB_BENCH_SWAP) { /* all but this was looked at between the swaps */
		if (timed)
			xb_swap_check_last(run, n);
		return;
	}
	if (run->block->op == XB_OP_SEND || run->block->op == XB_OP_WRITE_POLL ||
	    (run->block->op == XB_OP_READ && run->i_receive_data)) {
		if (!run->i_receive_data)
			context.size_bytes = XB_AGREE_BYTES; /* the replies */
		context.previous_stamp = run->previous_stamp;
		run->previous_stamp = first + (repeated ? 0 : (n - 1) * XB_STAMP_STEP);
		status = xb_payload_check_stamps(&context, run->loop.stamps, n, first,
						 repeated ? 0 : XB_STAMP_STEP, &error);
		xb_run_finding(run, status, &error);
		if (status)
			return;
		run->result->checked_messages += n;
	}
	if (timed && run->i_receive_data) {
		context.previous_seed = 0;
		check_last(run, n, first + (repeated ? 0 : (n - 1) * XB_STAMP_STEP), &context);
	}
}

void xb_step_sync(struct xb_run *run)
{
	check_step(run, run->step, run->step_iterations, 1);
}

/* One step needs its own stamps on what is sent, and on what the peer may read at any time. */
static void begin_step(struct xb_run *run, uint32_t step, enum xb_part part)
{
	run->part = part;
	run->step = step;
	if (run->block->bench == XB_BENCH_SWAP)
		return;
	run->loop.stamp = xb_run_stamp(run, run->mine, step);
	run->loop.expected = xb_run_stamp(run, run->theirs, step);
	xb_stamp_write(run->loop.send, run->loop.tail, run->loop.stamp);
}

/* --- initiator */

static int lead_step(struct xb_run *run, uint32_t step, uint64_t n, enum xb_part part, uint64_t budget_ns,
		     struct xb_error *error)
{
	const int timed = part == XB_PART_TIMED;
	const int passive_peer = run->block->op == XB_OP_WRITE && !run->i_receive_data;
	struct xb_control message = {.kind = XB_CONTROL_STEP,
				     .number = step,
				     .count = n,
				     .budget_ns = budget_ns,
				     .timed = (uint8_t)part};
	struct xb_control answer;
	int status;

	begin_step(run, step, part);
	xb_run_deadline(run, budget_ns);
	status = xb_control_post(run, error);
	if (!status && run->loops.post && (status = run->loops.post(&run->loop, n)) < 0)
		status = xb_run_failed(run, status, error);
	if (!status)
		status = xb_control_send(run, &message, error);
	if (!status)
		status = xb_control_wait(run, XB_CONTROL_GO, &answer, error);
	if (!status)
		status = run_loop(run, n, timed, error);
	if (!status && timed && passive_peer)
		status = xb_control_send(run, &(struct xb_control){.kind = XB_CONTROL_SYNC}, error);
	return status;
}

/* Time of one iteration of a step that has just run; spoils samples[]. */
static uint64_t iteration_ns(const struct xb_run *run, uint64_t n)
{
	double median;
	xb_samples_evaluate(run->loop.samples, n, run->endpoint->timer->ns_per_tick, 1.0, NULL, &median);
	return median > 1 ? (uint64_t)median : 1;
}

static uint64_t step_ns(const struct xb_run *run, uint64_t n)
{
	return (uint64_t)((double)(run->loop.samples[n] - run->loop.samples[0]) *
			  run->endpoint->timer->ns_per_tick);
}

static uint64_t target_of(const struct xb_run *run)
{
	return run->block->target_ns ? run->block->target_ns : DEFAULT_TARGET_NS;
}

struct step_time {
	uint64_t wall_ns, median_ns, fastest_ns; /* of all; of one iteration */
};

static int warm_step(struct xb_run *run, uint32_t step, uint64_t n, uint64_t budget_ns,
		     struct step_time *time, struct xb_error *error)
{
	const uint64_t *samples = run->loop.samples;
	uint64_t fastest = UINT64_MAX;
	int status = lead_step(run, step, n, XB_PART_WARMUP, budget_ns, error);

	if (status)
		return status;
	for (uint64_t i = 0; i < n; i++)
		fastest = samples[i + 1] - samples[i] < fastest ? samples[i + 1] - samples[i] : fastest;
	time->fastest_ns = (uint64_t)((double)fastest * run->endpoint->timer->ns_per_tick) + 1;
	time->wall_ns = run->step_wall_ns;
	time->median_ns = iteration_ns(run, n);
	if (!run->estimate_ns || time->median_ns < run->estimate_ns)
		run->estimate_ns = time->median_ns;
	run->result->warmup += n;
	check_step(run, step, n, 0);
	return 0;
}

/*
 * Steps of 1, 1, 4, 16, 64 ... iterations, until they no longer get faster, there were ENOUGH_WARMUP, or a
 * quarter of the timed part's time is spent. That is counted in iterations of the fastest time: one that the
 * operating system disturbed, or the first, in which connections, registrations and pages come into being,
 * must not leave the rest cold (wall time is limited too, far above). At least two; for a window that takes
 * seconds, one.
 */
static int warm_up(struct xb_run *run, uint32_t *steps, uint64_t target_ns, struct xb_error *error)
{
	const uint64_t patience_ns = target_ns / 4 > MILLISECOND_NS / 5 ? target_ns / 4 : MILLISECOND_NS / 5;
	const uint64_t longest_ns = 8 * patience_ns;
	uint64_t spent_ns = 0, wall_ns = 0, before_ns = UINT64_MAX, n = 1;
	uint64_t budget_ns = xb_run_allowance_ns(run, 2 * per_iteration(run));
	struct step_time time;

	for (;;) {
		int status = warm_step(run, *steps, n, budget_ns, &time, error);
		if (status)
			return status;
		wall_ns += *steps ? time.wall_ns : 0;
		spent_ns += *steps ? n * time.fastest_ns : 0;
		++*steps;
		if (run->result->warmup >= ENOUGH_WARMUP || spent_ns >= patience_ns || wall_ns >= longest_ns)
			break;
		if (run->block->bench != XB_BENCH_PINGPONG && per_iteration(run) > 1 &&
		    time.wall_ns >= SECOND_NS)
			break;
		if (*steps > 3 && time.median_ns >= before_ns - before_ns / 20)
			break;
		before_ns = time.median_ns;
		if (*steps >= 2) {
			uint64_t rest = (patience_ns - spent_ns) / time.fastest_ns + 1;
			n = n * STEP_GROWTH < rest ? n * STEP_GROWTH : rest;
		}
		budget_ns = xb_run_allowance_ns(run, n * per_iteration(run)) + 20 * n * time.wall_ns;
	}
	return 0;
}

/* COMMTEST repeats three times; ten swaps in one reading are repetitions enough. */
static uint64_t fewest_iterations(const struct xb_run *run)
{
	if (run->block->bench == XB_BENCH_SWAP)
		return run->block->swap.mode == XB_SWAP_TEN ? 1 : 3;
	return run->window > 1 ? 1 : FEWEST_ITERATIONS;
}

/* n, or fewer where what is between the iterations (caches swept) or the other side takes far longer than the
 * target. */
static uint64_t within_time(const struct xb_run *run, uint64_t n)
{
	const uint64_t fewest = fewest_iterations(run);
	const uint64_t most = LONGEST_TARGETS * target_of(run) / wall_ns(run);

	n = n < most ? n : most;
	return n < fewest ? fewest : n > XB_MAX_ITERATIONS ? XB_MAX_ITERATIONS : n;
}

static uint64_t choose_iterations(const struct xb_run *run)
{
	return run->block->iterations ? run->block->iterations
				      : within_time(run, target_of(run) / run->estimate_ns);
}

/* Time that n more iterations may take: what is in the clock varies most. */
static uint64_t budget_of(const struct xb_run *run, uint64_t n)
{
	return 5 * SECOND_NS + n * (20 * run->estimate_ns + 4 * wall_ns(run));
}

static double unit_of(const struct xb_run *run)
{
	if (run->block->bench == XB_BENCH_PINGPONG)
		return run->block->op == XB_OP_SEND || run->block->op == XB_OP_WRITE_POLL ? 2.0 : 1.0;
	return run->block->bench == XB_BENCH_SWAP ? (double)run->loop.repeats : (double)run->window;
}

static void evaluate(struct xb_run *run, uint64_t n)
{
	struct xb_block_result *r = run->result;

	r->elapsed_ns = step_ns(run, n);
	xb_samples_evaluate(run->loop.samples, n, run->endpoint->timer->ns_per_tick, unit_of(run),
			    &r->histogram, &r->median_ns);
}

/* A warm-up of n iterations: the first tells how long the others may take. */
static int warm_up_by(struct xb_run *run, uint32_t *steps, uint64_t n, struct xb_error *error)
{
	struct step_time time;
	int status =
		warm_step(run, (*steps)++, 1, xb_run_allowance_ns(run, per_iteration(run)), &time, error);

	if (status || n == 1)
		return status;
	return warm_step(run, (*steps)++, n - 1,
			 xb_run_allowance_ns(run, n * per_iteration(run)) + budget_of(run, n), &time, error);
}

int xb_steps_lead(struct xb_run *run, struct xb_error *error)
{
	uint64_t n = run->block->warmup;
	uint32_t steps = 0;
	int status;

	set_phase(XB_PHASE_WARMUP);
	status = n ? warm_up_by(run, &steps, n, error) : warm_up(run, &steps, target_of(run), error);
	if (status)
		return status;
	n = choose_iterations(run);
	set_phase(XB_PHASE_TIMED);
	status = lead_step(run, steps, n, XB_PART_TIMED, budget_of(run, n), error);
	if (status)
		return status;
	run->result->iterations = n;
	check_step(run, steps, n, 1);
	evaluate(run, n);
	return 0;
}

int xb_steps_verify_swap(struct xb_run *run, struct xb_error *error)
{
	return lead_step(run, run->step + 1, 1, XB_PART_VERIFY,
			 xb_run_allowance_ns(run, per_iteration(run)) + budget_of(run, 1), error);
}

/* --- responder */

int xb_step_serve(struct xb_run *run, const struct xb_control *message, struct xb_error *error)
{
	const uint64_t n = message->count;
	int status = 0;

	if (n == 0 || n > XB_MAX_ITERATIONS)
		return xb_fail(error, XB_E_PEER,
			       "the initiator announced %llu iterations; at most %u are possible",
			       (unsigned long long)n, XB_MAX_ITERATIONS);
	run->step_iterations = n;
	begin_step(run, message->number, (enum xb_part)message->timed);
	xb_run_deadline(run, message->budget_ns);
	if (run->loops.post && (status = run->loops.post(&run->loop, n)) < 0)
		return xb_run_failed(run, status, error);
	status = xb_control_send(run, &(struct xb_control){.kind = XB_CONTROL_GO}, error);
	if (!status)
		status = run_loop(run, n, message->timed == XB_PART_TIMED, error);
	if (status)
		return status;
	if (message->timed == XB_PART_TIMED)
		run->result->iterations = n;
	else if (message->timed == XB_PART_WARMUP)
		run->result->warmup += n;
	if (run->loops.run)
		check_step(run, message->number, n, message->timed == XB_PART_TIMED);
	return 0;
}

/* --- nothing can be agreed */

/* One part of n iterations, begun with a deadline of its own. */
static int alone_part(struct xb_run *run, uint32_t step, uint64_t n, enum xb_part part, uint64_t budget_ns,
		      struct xb_error *error)
{
	const int timed = part == XB_PART_TIMED;
	int status = 0;

	set_phase(timed ? XB_PHASE_TIMED : XB_PHASE_WARMUP);
	begin_step(run, step, part);
	xb_run_deadline(run, budget_ns);
	if (run->loops.post && (status = run->loops.post(&run->loop, n)) < 0)
		return xb_run_failed(run, status, error);
	status = run_loop(run, n, timed, error);
	if (!timed && !status)
		run->estimate_ns = run->block->initiator ? iteration_ns(run, n) : run->wall_ns;
	return status;
}

static uint64_t alone_iterations(const struct xb_run *run)
{
	const struct xb_block *b = run->block;
	uint64_t n;

	if (b->bench == XB_BENCH_SWAP && !b->initiator)
		return 1; /* the other side's time is nobody's */
	if (b->iterations)
		return b->iterations;
	n = b->bench == XB_BENCH_SWAP ? choose_iterations(run) : within_time(run, ALONE_ITERATIONS);
	return n < ALONE_ITERATIONS ? n : ALONE_ITERATIONS;
}

/* No more than fit the time: injected delays and swept caches make them long. */
static uint64_t alone_warmup(const struct xb_run *run)
{
	const uint64_t usual = run->block->bench == XB_BENCH_SWAP ? 2 : ALONE_WARMUP;
	const uint64_t fit = within_time(run, usual);

	return run->block->warmup ? run->block->warmup : fit < usual ? fit : usual;
}

int xb_steps_alone(struct xb_run *run, struct xb_error *error)
{
	const struct xb_block *b = run->block;
	uint32_t steps = 0;
	uint64_t n;
	int status = alone_part(run, steps++, 1, XB_PART_WARMUP, xb_run_allowance_ns(run, per_iteration(run)),
				error);

	if (status)
		return status;
	n = alone_warmup(run);
	if (n > 1)
		status = alone_part(run, steps++, n - 1, XB_PART_WARMUP, budget_of(run, n), error);
	if (status)
		return status;
	run->result->warmup = n;
	n = alone_iterations(run);
	status = alone_part(run, steps, n, XB_PART_TIMED, budget_of(run, n), error);
	if (status)
		return status;
	run->result->iterations = n;
	if (b->initiator)
		evaluate(run, n);
	return 0;
}

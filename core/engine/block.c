/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>

#include "run.h"

#define SMALLEST_DATA_BYTES ((size_t)256 << 10) /* room for a window of small messages side by side */
#define MOST_WINDOW_BYTES ((size_t)256 << 20)
#define UNKNOWN_CACHE_BYTES ((size_t)64 << 20)
#define PAGE_BYTES ((size_t)4096)
#define SECOND_NS UINT64_C(1000000000)

/* kinds of messages, so that no two of a block have the same seed */
#define SEED_BASE (UINT64_C(0) << 60)
#define SEED_STAMP (UINT64_C(1) << 60)
#define SEED_FRESH (UINT64_C(2) << 60)

/* layout of the control page of each buffer */
#define CONTROL_AT 0u
#define REPLY_SEND_AT 128u
#define REPLY_RECV_AT 512u
#define SIGNAL_AT 1024u

atomic_int xb_block_phase;

const char *xb_phase_name(int phase)
{
	static const char *const names[] = {"idle",	  "agreement",	  "warm-up",
					    "timed part", "verification", "drain"};
	return phase >= 0 && phase < (int)(sizeof names / sizeof names[0]) ? names[phase] : "unknown";
}

const char *xb_bench_name(enum xb_bench bench)
{
	switch (bench) {
	case XB_BENCH_PINGPONG:
		return "pingpong";
	case XB_BENCH_BW:
		return "bw";
	case XB_BENCH_BIBW:
		return "bibw";
	case XB_BENCH_SWAP:
		return "swap";
	}
	return "unknown";
}

const char *xb_op_name(enum xb_op op)
{
	switch (op) {
	case XB_OP_SEND:
		return "send";
	case XB_OP_WRITE:
		return "write";
	case XB_OP_READ:
		return "read";
	case XB_OP_WRITE_POLL:
		return "write-poll";
	}
	return "unknown";
}

size_t xb_block_buffer_bytes(size_t max_message_bytes)
{
	size_t data = max_message_bytes > SMALLEST_DATA_BYTES ? max_message_bytes : SMALLEST_DATA_BYTES;
	return (data + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES + XB_CONTROL_BYTES;
}

size_t xb_block_sweep_bytes(size_t last_level_cache_bytes)
{
	/* not a number that the caches divide: half as much again as the largest */
	return (last_level_cache_bytes ? last_level_cache_bytes : UNKNOWN_CACHE_BYTES) / 2 * 3;
}

uint32_t xb_block_outstanding(uint32_t window)
{
	return 2 * window + 4; /* two windows of receives, their replies, a control message */
}

uint32_t xb_block_window(const struct xb_block *block)
{
	size_t fit = block->size_bytes ? MOST_WINDOW_BYTES / block->size_bytes : XB_MAX_WINDOW;

	if (block->bench == XB_BENCH_PINGPONG)
		return 1;
	if (block->bench == XB_BENCH_SWAP)
		return xb_swap_batch(&block->swap);
	if (fit < 2)
		fit = 2;
	return fit < block->window ? (uint32_t)fit : block->window;
}

/* Bytes of data that the block has in each buffer. */
static size_t data_bytes(const struct xb_block *block)
{
	return block->size_bytes * (block->bench == XB_BENCH_SWAP ? block->swap.messages : 1);
}

static int check_swap(const struct xb_endpoint *endpoint, const struct xb_block *block, uint32_t missing,
		      const char *name, struct xb_error *error)
{
	const int waits = (endpoint->caps & XB_CAP_BLOCKING) && xb_swap_waits_later(&block->swap);
	int status = xb_swap_check(&block->swap, block->size_bytes, error);

	if (status)
		return status;
	if (block->op != XB_OP_SEND)
		return xb_fail(error, XB_E_USAGE,
			       "asked for a swap with --op %s; its protocols are about sends and receives: "
			       "use --op send",
			       xb_op_name(block->op));
	if (missing || waits)
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "asked for swap protocol %u (%s) over %s; it has no %s on this path; leave "
			       "the protocol out (--protocol)",
			       block->swap.protocol, xb_swap_title(block->swap.order, block->swap.protocol),
			       name,
			       missing & XB_CAP_SEND	     ? "send and receive"
			       : missing & XB_CAP_SYNC_SEND  ? "synchronous sends"
			       : missing & XB_CAP_READY_SEND ? "ready sends"
			       : missing		     ? "transfers in both directions at once"
					 : "operations that are started now and waited for later");
	if (block->swap.mode == XB_SWAP_COLD && !endpoint->sweep)
		return xb_fail(error, XB_E_USAGE,
			       "asked for a swap with cold caches; there is no buffer to sweep them with");
	return 0;
}

static int fail_missing(const struct xb_block *block, uint32_t missing, const char *name,
			struct xb_error *error)
{
	static const struct {
		uint32_t cap;
		const char *what, *remedy;
	} table[] = {
		{XB_CAP_SEND, "send and receive", "use another path"},
		{XB_CAP_PUT, "put (remote write)", "use --op send or another path"},
		{XB_CAP_GET, "get (remote read)", "use --op send or another path"},
		{XB_CAP_PUT_WATCH, "put that comes in order, so that a target could watch for it",
		 "use --op write or another path"},
		{XB_CAP_BOTH_WAYS, "transfers in both directions at once", "leave out bibw"},
	};
	size_t i = 0;

	while (!(missing & table[i].cap))
		i++;
	return xb_fail(error, XB_E_UNSUPPORTED, "asked for %s with %s over %s; it has no %s on this path; %s",
		       xb_bench_name(block->bench), xb_op_name(block->op), name, table[i].what,
		       table[i].remedy);
}

int xb_block_check(const struct xb_endpoint *endpoint, const struct xb_block *block, struct xb_error *error)
{
	const uint32_t needed = XB_CAP_SEND | (block->op == XB_OP_WRITE ? XB_CAP_PUT : 0) |
				(block->op == XB_OP_WRITE_POLL ? XB_CAP_PUT | XB_CAP_PUT_WATCH : 0) |
				(block->op == XB_OP_READ ? XB_CAP_GET : 0) |
				(block->bench == XB_BENCH_BIBW ? XB_CAP_BOTH_WAYS : 0) |
				(block->bench == XB_BENCH_SWAP ? xb_swap_caps(&block->swap) : 0);
	const uint32_t missing = needed & ~endpoint->caps;
	const char *name = endpoint->transport ? endpoint->transport->name : "the transport";

	if (block->bench == XB_BENCH_SWAP) {
		int status = check_swap(endpoint, block, missing, name, error);
		if (status)
			return status;
	}
	if (missing)
		return fail_missing(block, missing, name, error);
	if (block->op == XB_OP_WRITE_POLL && (block->bench != XB_BENCH_PINGPONG || !block->size_bytes))
		return xb_fail(
			error, XB_E_UNSUPPORTED,
			"asked for %s with write-poll and messages of %zu bytes; only a ping-pong has a "
			"target that polls, and of 0 bytes it would see nothing; use --op write",
			xb_bench_name(block->bench), block->size_bytes);
	if (endpoint->max_message_bytes && block->size_bytes > endpoint->max_message_bytes)
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "asked for messages of %zu bytes over %s; its limit on this path is %zu; use "
			       "smaller sizes",
			       block->size_bytes, name, endpoint->max_message_bytes);
	if (endpoint->buffer_bytes < XB_CONTROL_BYTES ||
	    data_bytes(block) > endpoint->buffer_bytes - XB_CONTROL_BYTES)
		return xb_fail(error, XB_E_USAGE,
			       "asked for messages of %zu bytes; the buffers have %zu bytes with a control "
			       "page of %u",
			       data_bytes(block), endpoint->buffer_bytes, XB_CONTROL_BYTES);
	if (block->bench != XB_BENCH_PINGPONG && block->bench != XB_BENCH_SWAP &&
	    (block->window == 0 || block->window > XB_MAX_WINDOW))
		return xb_fail(error, XB_E_USAGE,
			       "asked for a window of %" PRIu32 " messages; it must be 1 to %u",
			       block->window, XB_MAX_WINDOW);
	if (block->iterations > XB_MAX_ITERATIONS || block->warmup > XB_MAX_ITERATIONS)
		return xb_fail(error, XB_E_USAGE,
			       "asked for %" PRIu64 " iterations and %" PRIu64
			       " of warm-up; each can be at most %u",
			       block->iterations, block->warmup, XB_MAX_ITERATIONS);
	return 0;
}

/* --- shared by the parts of a block */

int xb_run_failed(struct xb_run *run, int status, struct xb_error *error)
{
	struct xb_error cause = {0, ""};
	const char *phase = xb_phase_name(atomic_load_explicit(&xb_block_phase, memory_order_relaxed));

	if (status == XB_E_ABORTED)
		return xb_fail(error, status, "told to stop in the %s of a %s block with %zu bytes", phase,
			       xb_bench_name(run->block->bench), run->block->size_bytes);
	run->endpoint->explain(run->endpoint->conn, &cause);
	if (cause.text[0])
		return xb_fail(error, cause.status < 0 ? cause.status : status, "%s", cause.text);
	return xb_fail(error, status,
		       "%s failed in the %s of a %s block with %zu bytes (%s) and gave no cause",
		       run->endpoint->transport ? run->endpoint->transport->name : "the transport", phase,
		       xb_bench_name(run->block->bench), run->block->size_bytes, xb_status_name(status));
}

void xb_run_deadline(struct xb_run *run, uint64_t from_now_ns)
{
	if (run->block->deadline)
		run->block->deadline(run->block->user, xb_clock_ns(CLOCK_MONOTONIC) + from_now_ns);
}

uint64_t xb_run_allowance_ns(const struct xb_run *run, uint64_t messages)
{
	/* 100 MB/s and 0.1 ms per message are slower than any fabric that is worth measuring */
	return 10 * SECOND_NS +
	       messages * (10 * (uint64_t)run->block->size_bytes + 100000 + run->endpoint->imposed_ns);
}

void xb_run_finding(struct xb_run *run, int status, const struct xb_error *error)
{
	if (!status || run->verdict)
		return;
	run->verdict = status;
	run->finding = *error;
}

void xb_run_count_sent(struct xb_run *run, uint64_t messages, size_t bytes_each)
{
	run->result->messages += messages;
	if (!(run->endpoint->caps & XB_CAP_NO_PAYLOAD))
		run->result->payload_bytes += messages * bytes_each;
}

struct xb_payload_context xb_run_context(const struct xb_run *run, const char *part)
{
	return (struct xb_payload_context){.bench = xb_bench_name(run->block->bench),
					   .op = xb_op_name(run->block->op),
					   .part = part,
					   .size_bytes = run->block->size_bytes};
}

static uint64_t seed_of(const struct xb_run *run, enum xb_direction from, uint64_t message)
{
	return xb_payload_seed(run->block->nonce, run->block->size_bytes, from, message);
}

uint64_t xb_run_base_seed(const struct xb_run *run, enum xb_direction from)
{
	return seed_of(run, from, SEED_BASE);
}

uint64_t xb_run_message_seed(const struct xb_run *run, enum xb_direction from, uint32_t message)
{
	return seed_of(run, from, SEED_BASE + message);
}

uint64_t xb_run_stamp(const struct xb_run *run, enum xb_direction from, uint32_t step)
{
	return seed_of(run, from, SEED_STAMP + step);
}

uint64_t xb_run_fresh_seed(const struct xb_run *run, enum xb_direction from, uint64_t message)
{
	return seed_of(run, from, SEED_FRESH + message);
}

/* --- the block */

static void set_phase(enum xb_phase phase)
{
	atomic_store_explicit(&xb_block_phase, phase, memory_order_relaxed);
}

static void choose_roles(struct xb_run *run)
{
	const struct xb_block *b = run->block;
	int source = b->bench == XB_BENCH_BIBW || b->bench == XB_BENCH_SWAP || b->op == XB_OP_WRITE_POLL ||
		     (b->op == XB_OP_SEND && b->bench == XB_BENCH_PINGPONG);

	run->mine = b->initiator ? XB_FROM_INITIATOR : XB_FROM_RESPONDER;
	run->theirs = b->initiator ? XB_FROM_RESPONDER : XB_FROM_INITIATOR;
	if (source) {
		run->i_send_data = run->i_receive_data = 1;
	} else {
		/* a read takes the data from the responder */
		run->i_send_data = b->op == XB_OP_READ ? !b->initiator : !!b->initiator;
		run->i_receive_data = !run->i_send_data;
	}
}

static void lay_out(struct xb_run *run, const struct xb_hot *hot)
{
	struct xb_endpoint *e = run->endpoint;
	struct xb_loop *l = &run->loop;
	unsigned char *request = e->requests;
	unsigned char *send_page = e->send_buffer + e->buffer_bytes - XB_CONTROL_BYTES;
	unsigned char *recv_page = e->recv_buffer + e->buffer_bytes - XB_CONTROL_BYTES;
	const size_t window_bytes = run->window * e->request_bytes;

	*l = (struct xb_loop){.hot = hot,
			      .conn = e->conn,
			      .send = e->send_buffer,
			      .recv = e->recv_buffer,
			      .reply_send = send_page + REPLY_SEND_AT,
			      .reply_recv = recv_page + REPLY_RECV_AT,
			      .send_region = e->send_region,
			      .recv_region = e->recv_region,
			      .remote_send = e->remote_send,
			      .remote_recv = e->remote_recv,
			      .size = run->block->size_bytes,
			      .tail = xb_stamp_tail(run->block->size_bytes),
			      .window = run->window,
			      .stride = e->request_bytes,
			      .samples = e->samples,
			      .stamps = e->stamps};
	l->watch = (struct xb_spot){.head = l->recv,
				    .tail = l->recv + l->tail,
				    .head_mask = xb_stamp_mask(l->tail),
				    .tail_mask = xb_stamp_mask(l->size)};
	l->signal_send = send_page + SIGNAL_AT;
	l->signal_recv = recv_page + SIGNAL_AT;
	l->send_requests = request;
	l->recv_requests[0] = request += window_bytes;
	l->recv_requests[1] = request += window_bytes;
	l->reply_recv_requests = request += window_bytes;
	l->reply_send_request = request += 4 * e->request_bytes;
	run->control_recv_request = request + e->request_bytes;
	run->control_send = send_page + CONTROL_AT;
	run->control_recv = recv_page + CONTROL_AT;
}

static void describe_swap(const struct xb_swap *swap, struct xb_pattern *pattern, char *variant, size_t bytes)
{
	pattern->both_ways = swap->order != XB_SWAP_ORDERED || swap->overlap;
	pattern->sync_sends = xb_swap_sync_sends(swap);
	pattern->blocking_sends = xb_swap_blocking_sends(swap);
	pattern->blocking_receives = xb_swap_blocking_receives(swap);
	xb_swap_text(swap, variant, bytes);
}

static void prepare_swap(struct xb_run *run)
{
	const struct xb_block *b = run->block;
	struct xb_loop *l = &run->loop;

	l->messages = b->swap.messages;
	l->repeats = b->swap.mode == XB_SWAP_TEN ? XB_SWAP_TEN_SWAPS : 1;
	l->train = xb_swap_train_of(b->swap.order, b->swap.protocol, !b->initiator);
	l->run = run;
	run->loops = xb_loops_swap(b->initiator, run->endpoint->timer->source);
	xb_swap_fill(run);
}

static int prepare(struct xb_run *run, struct xb_error *error)
{
	const struct xb_block *b = run->block;
	struct xb_endpoint *e = run->endpoint;
	struct xb_pattern pattern = {.bench = b->bench,
				     .op = b->op,
				     .size_bytes = b->size_bytes,
				     .window = run->window,
				     .initiator = !!b->initiator,
				     .both_ways = b->bench == XB_BENCH_BIBW};
	struct xb_error cause = {0, ""};
	const struct xb_hot *hot;
	char variant[96] = "";

	pattern.variant = variant;
	if (b->bench == XB_BENCH_SWAP)
		describe_swap(&b->swap, &pattern, variant, sizeof variant);
	hot = e->prepare(e->conn, &pattern, &cause);

	if (!hot)
		return xb_fail(error, cause.status < 0 ? cause.status : XB_E_UNSUPPORTED, "%s",
			       cause.text[0] ? cause.text
					     : "the transport refused the pattern and gave no cause");
	lay_out(run, hot);
	if (b->bench == XB_BENCH_SWAP) {
		prepare_swap(run);
		return 0;
	}
	run->loops = b->op == XB_OP_SEND ? xb_loops_send(b->bench, b->initiator, e->timer->source)
					 : xb_loops_onesided(b->bench, b->op, b->initiator, e->timer->source);
	/* the pages are touched, and what a receive does not write can be told from what it does */
	xb_payload_fill(run->loop.send, b->size_bytes, xb_run_base_seed(run, run->mine));
	xb_payload_poison(run->loop.recv, b->size_bytes > 8 ? b->size_bytes : 8);
	return 0;
}

static int serve(struct xb_run *run, struct xb_error *error)
{
	for (;;) {
		struct xb_control message;
		int status = xb_control_receive(run, 0, &message, error);
		if (status)
			return status;
		switch (message.kind) {
		case XB_CONTROL_STEP:
			set_phase(message.timed == XB_PART_TIMED    ? XB_PHASE_TIMED
				  : message.timed == XB_PART_VERIFY ? XB_PHASE_VERIFY
								    : XB_PHASE_WARMUP);
			status = xb_step_serve(run, &message, error);
			break;
		case XB_CONTROL_SYNC:
			xb_step_sync(run);
			break;
		case XB_CONTROL_VERIFY:
			set_phase(XB_PHASE_VERIFY);
			status = xb_verify_serve(run, &message, error);
			break;
		case XB_CONTROL_DONE:
			set_phase(XB_PHASE_DRAIN);
			return xb_control_send(
				run, &(struct xb_control){.kind = XB_CONTROL_DONE, .who = run->verdict != 0},
				error);
		default:
			return xb_fail(error, XB_E_PEER,
				       "responder of a %s block: the initiator sent control message %" PRIu32
				       ", which makes no sense here",
				       xb_bench_name(run->block->bench), message.kind);
		}
		if (status)
			return status;
		xb_run_deadline(run, xb_run_allowance_ns(run, 8));
	}
}

static int lead(struct xb_run *run, struct xb_error *error)
{
	struct xb_control message = {.kind = XB_CONTROL_DONE};
	int status = xb_steps_lead(run, error);

	if (status)
		return status;
	set_phase(XB_PHASE_VERIFY);
	xb_run_deadline(run,
			xb_run_allowance_ns(run, 16 + 8 * xb_verify_messages(run)) + 100 * run->estimate_ns);
	status = run->block->bench == XB_BENCH_SWAP ? xb_steps_verify_swap(run, error)
						    : xb_verify_lead(run, error);
	if (status)
		return status;
	set_phase(XB_PHASE_DRAIN);
	message.who = run->verdict != 0;
	status = xb_control_post(run, error);
	if (!status)
		status = xb_control_send(run, &message, error);
	return status ? status : xb_control_wait(run, XB_CONTROL_DONE, &message, error);
}

static int run_block(struct xb_run *run, struct xb_error *error)
{
	const struct xb_block *b = run->block;
	int status = prepare(run, error);

	if (status)
		return status;
	if (run->endpoint->caps & XB_CAP_NO_PAYLOAD)
		return xb_steps_alone(run, error);
	set_phase(XB_PHASE_AGREE);
	status = xb_control_hello(run, error);
	if (!status)
		status = b->initiator ? lead(run, error) : serve(run, error);
	if (status)
		return status;
	run->result->verified = !run->verdict;
	return run->verdict ? xb_fail(error, run->verdict, "%s", run->finding.text) : 0;
}

int xb_block_run(struct xb_endpoint *endpoint, const struct xb_block *block, struct xb_block_result *result,
		 struct xb_error *error)
{
	struct xb_run run = {
		.endpoint = endpoint, .block = block, .result = result, .window = xb_block_window(block)};
	int status = xb_block_check(endpoint, block, error);

	memset(result, 0, sizeof *result);
	if (status)
		return status;
	xb_hist_clear(&result->histogram);
	choose_roles(&run);
	/* the peer may come later: it fills its buffers first */
	xb_run_deadline(&run,
			xb_run_allowance_ns(&run, (block->warmup ? block->warmup : 2) * run.window + 16));
	status = run_block(&run, error);
	if (block->deadline)
		block->deadline(block->user, 0);
	set_phase(XB_PHASE_IDLE);
	return status;
}

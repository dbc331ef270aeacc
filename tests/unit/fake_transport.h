/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_FAKE_TRANSPORT_H
#define XB_FAKE_TRANSPORT_H
/*
 * Two connected endpoints within one process, one per thread, for tests of the engine. It moves bytes, keeps
 * a log of what the engine asked for and how much was outstanding, and can misbehave in one message in every
 * way that a transport can. For cmocka programs: include after cmocka.h.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/block.h"

enum fake_wrong {
	FAKE_RIGHT,
	FAKE_FLIP, /* one byte of the message is changed */
	FAKE_NOTHING, /* receive completes, nothing is written */
	FAKE_STALE, /* the content of the data message before is delivered */
	FAKE_HALF, /* only the first half is delivered */
	FAKE_FAIL, /* the operation fails */
};

struct fake_request {
	unsigned char *buffer;
	const unsigned char *source;
	size_t bytes;
	int done;
	struct fake_request *next;
};

struct fake_message {
	struct fake_message *next;
	size_t bytes;
	unsigned char *target; /* of a put */
	unsigned char content[];
};

struct fake_link;
struct fake_side {
	struct fake_link *link;
	struct fake_side *peer;
	struct xb_endpoint endpoint;
	unsigned char *memory; /* send buffer, then receive buffer */
	pthread_mutex_t lock; /* of the three lists */
	struct fake_message *inbox, **inbox_end;
	struct fake_message *arrivals, **arrivals_end; /* write-poll: puts into my memory */
	struct fake_request *posted, **posted_end;
	struct fake_request *started; /* puts and gets until flush */
	struct fake_message *previous;
	struct xb_pattern pattern;
	/* misbehaviour: in the wrong_message-th data message received since it was set, counted from 0 */
	enum fake_wrong wrong;
	long wrong_message, data_messages;
	size_t wrong_offset;
	/* seen */
	unsigned sends, receives, most_sends, most_receives;
	size_t log_length;
	char log[1 << 16];
	unsigned deadlines;
	uint64_t granted_ns[XB_PHASE_DRAIN + 1]; /* the last one given in each phase */
	int disarmed;
};

struct fake_link {
	struct fake_side side[2];
	atomic_int abort;
	struct xb_timer timer;
};

static inline void fake_log(struct fake_side *s, const char *op, size_t amount)
{
	size_t room = sizeof s->log - s->log_length;
	int n = snprintf(s->log + s->log_length, room, "%s%s %zu", s->log_length ? ", " : "", op, amount);
	s->log_length += n > 0 && (size_t)n < room ? (size_t)n : 0;
}

static inline int fake_is_data(const struct fake_side *s, const unsigned char *at)
{
	const struct xb_endpoint *e = &s->endpoint;
	const size_t data = e->buffer_bytes - XB_CONTROL_BYTES;
	return (at >= e->send_buffer && at < e->send_buffer + data) ||
	       (at >= e->recv_buffer && at < e->recv_buffer + data);
}

/* cmocka's assertions work in its own thread only */
static inline void fake_insist(int condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "the engine broke the contract: %s\n", what);
	abort();
}

/* Puts content into buffer as a transport would that is right, or wrong in the way that was asked for. */
static inline int fake_deliver(struct fake_side *s, unsigned char *buffer, const unsigned char *content,
			       size_t bytes, int data)
{
	enum fake_wrong wrong = data && s->data_messages++ == s->wrong_message ? s->wrong : FAKE_RIGHT;

	if (wrong == FAKE_FAIL)
		return XB_E_TRANSPORT;
	if (wrong == FAKE_STALE && s->previous && s->previous->bytes == bytes)
		memcpy(buffer, s->previous->content, bytes);
	else if (wrong == FAKE_RIGHT || wrong == FAKE_FLIP)
		memcpy(buffer, content, bytes);
	else if (wrong == FAKE_HALF)
		memcpy(buffer, content, bytes / 2);
	if (wrong == FAKE_FLIP && bytes)
		buffer[s->wrong_offset < bytes ? s->wrong_offset : bytes - 1] ^= 0x20;
	if (data) {
		free(s->previous);
		s->previous = malloc(sizeof *s->previous + bytes);
		s->previous->bytes = bytes;
		memcpy(s->previous->content, content, bytes);
	}
	return 0;
}

static inline int fake_progress(struct fake_side *s)
{
	int status = 0;

	pthread_mutex_lock(&s->lock);
	while (s->inbox && s->posted && !status) {
		struct fake_message *m = s->inbox;
		struct fake_request *r = s->posted;
		if (!(s->inbox = m->next))
			s->inbox_end = &s->inbox;
		if (!(s->posted = r->next))
			s->posted_end = &s->posted;
		fake_insist(m->bytes == r->bytes, "both sides name the same length");
		status = fake_deliver(s, r->buffer, m->content, m->bytes, fake_is_data(s, r->buffer));
		r->done = 1;
		free(m);
	}
	pthread_mutex_unlock(&s->lock);
	return status;
}

static inline int fake_send_as(const char *op, void *conn, const void *buf, size_t bytes, void *request)
{
	struct fake_side *s = conn, *peer = s->peer;
	struct fake_message *m = malloc(sizeof *m + bytes);
	struct fake_request *r = request;

	fake_log(s, op, bytes);
	*m = (struct fake_message){.bytes = bytes};
	memcpy(m->content, buf, bytes);
	*r = (struct fake_request){.bytes = bytes, .source = buf};
	s->sends++;
	s->most_sends = s->sends > s->most_sends ? s->sends : s->most_sends;
	pthread_mutex_lock(&peer->lock);
	*peer->inbox_end = m;
	peer->inbox_end = &m->next;
	pthread_mutex_unlock(&peer->lock);
	return 0;
}

static inline int fake_send(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	(void)region;
	return fake_send_as("send", conn, buf, bytes, request);
}

static inline int fake_send_sync(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	(void)region;
	return fake_send_as("send_sync", conn, buf, bytes, request);
}

static inline int fake_send_ready(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	(void)region;
	return fake_send_as("send_ready", conn, buf, bytes, request);
}

static inline int fake_recv(void *conn, void *buf, size_t bytes, void *region, void *request)
{
	struct fake_side *s = conn;
	struct fake_request *r = request;

	(void)region;
	fake_log(s, "recv", bytes);
	*r = (struct fake_request){.buffer = buf, .bytes = bytes};
	s->receives++;
	s->most_receives = s->receives > s->most_receives ? s->receives : s->most_receives;
	pthread_mutex_lock(&s->lock);
	*s->posted_end = r;
	s->posted_end = &r->next;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static inline int fake_complete(struct fake_side *s, struct fake_request *r)
{
	if (r->source) { /* a send, or a put that was flushed */
		s->sends -= s->sends > 0;
		r->source = NULL;
		return 0;
	}
	for (;;) {
		int status = fake_progress(s);
		if (status)
			return status;
		if (r->done)
			break;
		if (atomic_load(s->endpoint.abort))
			return XB_E_ABORTED;
		sched_yield();
	}
	s->receives -= s->receives > 0;
	return 0;
}

static inline int fake_wait(void *conn, void *request)
{
	fake_log(conn, "wait", 1);
	return fake_complete(conn, request);
}

static inline int fake_wait_all(void *conn, void *requests, size_t count)
{
	struct fake_side *s = conn;

	fake_log(s, "wait_all", count);
	for (size_t i = 0; i < count; i++) {
		int status = fake_complete(s, (void *)((char *)requests + i * s->endpoint.request_bytes));
		if (status)
			return status;
	}
	return 0;
}

static inline int fake_test(void *conn, void *request)
{
	struct fake_request *r = request;
	int status = fake_progress(conn);
	return status ? status : r->source || r->done;
}

static inline void fake_start(struct fake_side *s, struct fake_request *r)
{
	r->next = s->started;
	s->started = r;
}

static inline void fake_leave(struct fake_side *s, const struct fake_request *r)
{
	struct fake_side *peer = s->peer;
	struct fake_message *m = malloc(sizeof *m + r->bytes);

	*m = (struct fake_message){.bytes = r->bytes, .target = r->buffer};
	memcpy(m->content, r->source, r->bytes);
	pthread_mutex_lock(&peer->lock);
	*peer->arrivals_end = m;
	peer->arrivals_end = &m->next;
	pthread_mutex_unlock(&peer->lock);
}

/* The remote area of a side holds the base of the peer's buffer. */
static inline int fake_put(void *conn, const void *buf, size_t bytes, void *region, void *remote,
			   size_t remote_offset, void *request)
{
	struct fake_request *r = request;
	(void)region;
	fake_log(conn, "put", bytes);
	*r = (struct fake_request){
		.source = buf, .buffer = *(unsigned char **)remote + remote_offset, .bytes = bytes};
	if (((struct fake_side *)conn)->pattern.op == XB_OP_WRITE_POLL)
		fake_leave(conn, r);
	else
		fake_start(conn, r);
	return 0;
}

static inline int fake_get(void *conn, void *buf, size_t bytes, void *region, void *remote,
			   size_t remote_offset, void *request)
{
	struct fake_request *r = request;
	(void)region;
	fake_log(conn, "get", bytes);
	*r = (struct fake_request){
		.source = *(unsigned char **)remote + remote_offset, .buffer = buf, .bytes = bytes};
	fake_start(conn, r);
	return 0;
}

/* write-poll: a put is on its way until its target watches, or its origin flushes. */
static inline int fake_arrive(struct fake_side *target, int all, int *some)
{
	int status = 0;

	pthread_mutex_lock(&target->lock);
	while (target->arrivals && !status && (all || !*some)) {
		struct fake_message *m = target->arrivals;
		if (!(target->arrivals = m->next))
			target->arrivals_end = &target->arrivals;
		status = fake_deliver(target, m->target, m->content, m->bytes, 1);
		*some = 1;
		free(m);
	}
	pthread_mutex_unlock(&target->lock);
	return status;
}

static inline int fake_flush(void *conn)
{
	struct fake_side *s = conn, *at;
	int some = 0, status = fake_arrive(s->peer, 1, &some);

	fake_log(s, "flush", 0);
	for (struct fake_request *r = s->started, *next; r && !status; r = next) {
		next = r->next;
		/* what is put misbehaves where it is received */
		at = fake_is_data(s, r->buffer) ? s : s->peer;
		status = fake_deliver(at, r->buffer, r->source, r->bytes, 1);
	}
	s->started = NULL;
	atomic_thread_fence(memory_order_seq_cst);
	return status;
}

/* Returns when a put has come, whatever it is: so that a wrong one shows what a watch for the wrong place
 * would. */
static inline int fake_watch(void *conn, const struct xb_spot *at, uint64_t stamp)
{
	struct fake_side *s = conn;
	const int there = xb_watched(at, stamp);
	int some = 0;

	fake_insist(!there, "what is watched for is not there already");
	fake_log(s, "watch", 0);
	for (;;) {
		int status = fake_arrive(s, 0, &some);
		if (status || some)
			return status;
		if (atomic_load(s->endpoint.abort))
			return XB_E_ABORTED;
		sched_yield();
	}
}

static const struct xb_hot fake_hot = {fake_send, fake_send_sync, fake_send_ready, fake_recv,
				       fake_wait, fake_wait_all,  fake_test,	   fake_put,
				       fake_get,  fake_flush,	  fake_watch};

static inline const struct xb_hot *fake_prepare(void *conn, const struct xb_pattern *pattern,
						struct xb_error *error)
{
	struct fake_side *s = conn;
	(void)error;
	s->pattern = *pattern;
	return &fake_hot;
}

static inline void fake_explain(void *conn, struct xb_error *error)
{
	(void)conn;
	xb_fail(error, XB_E_TRANSPORT, "the fake was told to fail");
}

static inline void *fake_memory(size_t bytes)
{
	void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	assert_non_null(memory);
	memset(memory, 0, (bytes + 4095) / 4096 * 4096);
	return memory;
}

static inline struct fake_link *fake_open(size_t max_message_bytes)
{
	struct fake_link *link = calloc(1, sizeof *link);
	size_t bytes = xb_block_buffer_bytes(max_message_bytes);

	assert_non_null(link);
	xb_timer_adopt(&link->timer, "clock_gettime", 1.0);
	for (int i = 0; i < 2; i++) {
		struct fake_side *s = &link->side[i];
		*s = (struct fake_side){.link = link, .peer = &link->side[!i], .wrong_message = -1};
		pthread_mutex_init(&s->lock, NULL);
		s->inbox_end = &s->inbox;
		s->posted_end = &s->posted;
		s->arrivals_end = &s->arrivals;
		s->memory = fake_memory(2 * bytes);
		s->endpoint = (struct xb_endpoint){
			.conn = s,
			.prepare = fake_prepare,
			.explain = fake_explain,
			.request_bytes = sizeof(struct fake_request),
			.caps = XB_CAP_SEND | XB_CAP_PUT | XB_CAP_GET | XB_CAP_BOTH_WAYS | XB_CAP_PUT_WATCH,
			.abort = &link->abort,
			.timer = &link->timer,
			.send_buffer = s->memory,
			.recv_buffer = s->memory + bytes,
			.buffer_bytes = bytes,
			.requests = fake_memory(sizeof(struct fake_request) * XB_BLOCK_REQUESTS),
			.samples = fake_memory(8 * (XB_MAX_ITERATIONS + 1)),
			.stamps = fake_memory(16 * (XB_MAX_ITERATIONS + 1)),
			.remote_send = fake_memory(64),
			.remote_recv = fake_memory(64),
		};
	}
	for (int i = 0; i < 2; i++) {
		struct xb_endpoint *mine = &link->side[i].endpoint, *theirs = &link->side[!i].endpoint;
		*(unsigned char **)mine->remote_send = theirs->send_buffer;
		*(unsigned char **)mine->remote_recv = theirs->recv_buffer;
	}
	return link;
}

static inline void fake_close(struct fake_link *link)
{
	for (int i = 0; i < 2; i++) {
		struct fake_side *s = &link->side[i];
		for (struct fake_message *m = s->inbox, *next; m; m = next) {
			next = m->next;
			free(m);
		}
		free(s->previous);
		free(s->memory);
		free(s->endpoint.requests);
		free(s->endpoint.samples);
		free(s->endpoint.stamps);
		free(s->endpoint.remote_send);
		free(s->endpoint.remote_recv);
		pthread_mutex_destroy(&s->lock);
	}
	free(link);
}

/* --- a block on both sides */

struct fake_outcome {
	int status;
	struct xb_error error;
	struct xb_block_result result;
};

struct fake_part {
	struct fake_side *side;
	struct xb_block block;
	struct fake_outcome *outcome;
};

static inline void fake_deadline(void *user, uint64_t monotonic_ns)
{
	struct fake_side *s = user;
	fake_insist(!monotonic_ns || monotonic_ns > xb_clock_ns(CLOCK_MONOTONIC), "deadlines lie ahead");
	s->deadlines += monotonic_ns != 0;
	if (monotonic_ns)
		s->granted_ns[atomic_load(&xb_block_phase)] = monotonic_ns - xb_clock_ns(CLOCK_MONOTONIC);
	s->disarmed = monotonic_ns == 0;
}

static inline void *fake_run_side(void *argument)
{
	struct fake_part *p = argument;

	p->block.deadline = fake_deadline;
	p->block.user = p->side;
	p->outcome->error = (struct xb_error){0, ""};
	p->outcome->status =
		xb_block_run(&p->side->endpoint, &p->block, &p->outcome->result, &p->outcome->error);
	/* a side that has left in the middle would leave the other one waiting */
	if (p->outcome->status && p->outcome->status != XB_E_CORRUPT)
		atomic_store(&p->side->link->abort, 1);
	return NULL;
}

/* Side 0 initiates; responder may be given what differs there. */
static inline void fake_run(struct fake_link *link, const struct xb_block *block,
			    const struct xb_block *responder, struct fake_outcome outcome[2])
{
	struct fake_part part[2] = {{&link->side[0], *block, &outcome[0]},
				    {&link->side[1], responder ? *responder : *block, &outcome[1]}};
	pthread_t thread;

	if (!responder) {
		part[0].block.initiator = 1;
		part[1].block.initiator = 0;
	}
	for (int i = 0; i < 2; i++) {
		struct fake_side *s = &link->side[i];
		s->log_length = s->deadlines = 0;
		s->log[0] = 0;
		s->data_messages = s->disarmed = 0;
		s->sends = s->receives = s->most_sends = s->most_receives = 0;
	}
	assert_int_equal(pthread_create(&thread, NULL, fake_run_side, &part[1]), 0);
	fake_run_side(&part[0]);
	pthread_join(thread, NULL);
}

/* --- for tests: blocks of few iterations, and what must hold when all went well */

static struct fake_outcome both[2]; /* sides of the block that fake_run ran last; large */

static inline struct xb_block block(enum xb_bench bench, enum xb_op op, size_t size)
{
	static uint64_t nonce = 100;
	return (struct xb_block){.bench = bench,
				 .op = op,
				 .size_bytes = size,
				 .window = 4,
				 .iterations = 20,
				 .warmup = 3,
				 .nonce = nonce++};
}

static inline void assert_good(const char *what, size_t size)
{
	for (int i = 0; i < 2; i++)
		if (both[i].status || !both[i].result.verified)
			fail_msg("%s of %zu bytes, side %d: %s: %s", what, size, i,
				 xb_status_name(both[i].status), both[i].error.text);
}

#define FOR_ALL_KINDS(b, o)                                                                                  \
	for (enum xb_bench b = XB_BENCH_PINGPONG; b <= XB_BENCH_BIBW; b++)                                   \
		for (enum xb_op o = XB_OP_SEND; o <= XB_OP_READ; o++)

#endif

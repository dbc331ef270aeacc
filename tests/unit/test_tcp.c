/* SPDX-License-Identifier: BSD-3-Clause */
/* The tcp plugin by itself: endpoints are threads of this process, connected over the loopback interface. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport.h"

#define MAX_ENDPOINTS 4u
#define WINDOW 16u

static const struct xb_transport *tcp;

struct endpoint {
	struct xb_setup setup;
	struct xb_error error;
	void *context, *conn[MAX_ENDPOINTS];
	unsigned char address[XB_ADDRESS_MAX];
	size_t address_bytes;
	unsigned char *send, *recv, *requests; /* requests: WINDOW sends, then WINDOW receives */
	int status;
	struct team *team;
	uint32_t order[MAX_ENDPOINTS]; /* peers, in the order of connecting */
};

struct team {
	struct endpoint endpoints[MAX_ENDPOINTS];
	uint32_t count;
	atomic_int abort;
};

static void *area(size_t bytes)
{
	void *p = NULL;
	assert_int_equal(posix_memalign(&p, 64, (bytes + 63) / 64 * 64), 0);
	memset(p, 0, bytes);
	return p;
}

static void *connect_all(void *argument)
{
	struct endpoint *e = argument;
	for (uint32_t i = 0; i + 1 < e->team->count && !e->status; i++) {
		uint32_t peer = e->order[i];
		struct endpoint *other = &e->team->endpoints[peer];
		e->status = tcp->connect(e->context, peer, other->address, other->address_bytes,
					 e->conn[peer], &e->error);
	}
	return NULL;
}

static void open_team(struct team *team, uint32_t count, const char *path, const struct xb_key_value *keys,
		      size_t key_count, size_t max_bytes)
{
	memset(team, 0, sizeof *team);
	team->count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct endpoint *e = &team->endpoints[i];
		e->team = team;
		e->setup = (struct xb_setup){.abort = &team->abort,
					     .endpoint = i,
					     .endpoints = count,
					     .path = path,
					     .keys = keys,
					     .key_count = key_count,
					     .max_message_bytes = max_bytes,
					     .max_outstanding = WINDOW,
					     .op = XB_OP_SEND};
		e->context = area(tcp->context_bytes);
		e->send = area(max_bytes * WINDOW + 1);
		e->recv = area(max_bytes * WINDOW + 1);
		e->requests = area(tcp->request_bytes * 2 * WINDOW);
		for (uint32_t p = 0, n = 0; p < count; p++) {
			e->conn[p] = area(tcp->connection_bytes);
			if (p != i)
				e->order[n++] = p;
		}
		if (tcp->open(e->context, &e->setup, &e->error))
			fail_msg("open: %s", e->error.text);
		e->address_bytes = sizeof e->address;
		assert_int_equal(tcp->address(e->context, 0, e->address, &e->address_bytes, &e->error), 0);
		assert_true(e->address_bytes <= XB_ADDRESS_MAX);
	}
}

static void connect_team(struct team *team)
{
	pthread_t threads[MAX_ENDPOINTS];
	for (uint32_t i = 0; i < team->count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, connect_all, &team->endpoints[i]), 0);
	for (uint32_t i = 0; i < team->count; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < team->count; i++)
		if (team->endpoints[i].status)
			fail_msg("connect of %u: %s", i, team->endpoints[i].error.text);
}

static void close_endpoint(struct endpoint *e)
{
	if (!e->context)
		return;
	tcp->close(e->context, 1);
	tcp->close(e->context, 1); /* in any state, also closed */
	free(e->context);
	free(e->send);
	free(e->recv);
	free(e->requests);
	for (uint32_t p = 0; p < e->team->count; p++)
		free(e->conn[p]);
	e->context = NULL;
}

static void close_team(struct team *team)
{
	for (uint32_t i = 0; i < team->count; i++)
		close_endpoint(&team->endpoints[i]);
}

static void open_pair(struct team *team, const struct xb_key_value *keys, size_t key_count, size_t max_bytes)
{
	open_team(team, 2, "lo", keys, key_count, max_bytes);
	connect_team(team);
}

static const struct xb_hot *hot_of(struct endpoint *e, enum xb_bench bench, int both_ways)
{
	struct xb_pattern pattern = {.bench = bench,
				     .op = XB_OP_SEND,
				     .size_bytes = e->setup.max_message_bytes,
				     .window = WINDOW,
				     .initiator = e->setup.endpoint == 0,
				     .both_ways = both_ways,
				     .sync_sends = bench == XB_BENCH_SWAP,
				     .variant = ""};
	const struct xb_hot *hot = tcp->prepare(e->conn[!e->setup.endpoint], &pattern, &e->error);
	assert_non_null(hot);
	return hot;
}

static void *request_of(struct endpoint *e, size_t i)
{
	return e->requests + i * tcp->request_bytes;
}

/* --- every size in every mode */

struct job {
	struct endpoint *e;
	const struct xb_hot *hot;
	size_t bytes;
	int both_ways, status;
};

static unsigned char pattern_byte(size_t bytes, uint32_t from, size_t message, size_t at)
{
	return (unsigned char)(bytes * 7 + from * 101 + message * 13 + at * 31 + (at >> 8));
}

static void fill_messages(struct job *job)
{
	for (size_t m = 0; m < WINDOW; m++)
		for (size_t i = 0; i < job->bytes; i++)
			job->e->send[m * job->bytes + i] =
				pattern_byte(job->bytes, job->e->setup.endpoint, m, i);
	memset(job->e->recv, 0, job->bytes * WINDOW);
}

static void check_messages(struct job *job)
{
	for (size_t m = 0; m < WINDOW; m++)
		for (size_t i = 0; i < job->bytes; i++)
			if (job->e->recv[m * job->bytes + i] !=
			    pattern_byte(job->bytes, !job->e->setup.endpoint, m, i)) {
				job->status = XB_E_CORRUPT;
				return;
			}
}

static int window_both_ways(struct job *job)
{
	struct endpoint *e = job->e;
	void *conn = e->conn[!e->setup.endpoint];
	int status = 0;
	for (size_t m = 0; m < WINDOW && !status; m++)
		status = job->hot->recv(conn, e->recv + m * job->bytes, job->bytes, NULL,
					request_of(e, WINDOW + m));
	for (size_t m = 0; m < WINDOW && !status; m++)
		status = job->hot->send(conn, e->send + m * job->bytes, job->bytes, NULL, request_of(e, m));
	if (!status)
		status = job->hot->wait_all(conn, request_of(e, 0), WINDOW);
	return status ? status : job->hot->wait_all(conn, request_of(e, WINDOW), WINDOW);
}

static int ping_pong(struct job *job)
{
	struct endpoint *e = job->e;
	void *conn = e->conn[!e->setup.endpoint];
	int status = 0, first = e->setup.endpoint == 0;
	for (size_t m = 0; m < WINDOW && !status; m++) {
		status = job->hot->recv(conn, e->recv + m * job->bytes, job->bytes, NULL,
					request_of(e, WINDOW + m));
		if (!status && !first)
			status = job->hot->wait(conn, request_of(e, WINDOW + m));
		if (!status)
			status = job->hot->send(conn, e->send + m * job->bytes, job->bytes, NULL,
						request_of(e, m));
		if (!status)
			status = job->hot->wait(conn, request_of(e, m));
		if (!status && first)
			status = job->hot->wait(conn, request_of(e, WINDOW + m));
	}
	return status;
}

static void *run_job(void *argument)
{
	struct job *job = argument;
	fill_messages(job);
	job->status = job->both_ways ? window_both_ways(job) : ping_pong(job);
	if (!job->status)
		check_messages(job);
	return NULL;
}

static void exchange(struct team *team, enum xb_bench bench, int both_ways, size_t bytes)
{
	struct job jobs[2];
	pthread_t thread;
	for (int i = 0; i < 2; i++)
		jobs[i] = (struct job){&team->endpoints[i], hot_of(&team->endpoints[i], bench, both_ways),
				       bytes, both_ways, 0};
	assert_int_equal(pthread_create(&thread, NULL, run_job, &jobs[1]), 0);
	run_job(&jobs[0]);
	pthread_join(thread, NULL);
	assert_int_equal(jobs[0].status, 0);
	assert_int_equal(jobs[1].status, 0);
}

static void moves_every_size(const char *poll, const char *family)
{
	static const size_t sizes[] = {0, 1, 7, 8, 9, 1000, 65536, 1048576, 1048577};
	const struct xb_key_value keys[] = {{"poll", poll}, {"family", family}};
	struct team team;
	open_pair(&team, keys, 2, 1048577);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		exchange(&team, XB_BENCH_PINGPONG, 0, sizes[i]);
		exchange(&team, XB_BENCH_BIBW, 1, sizes[i]);
		exchange(&team, XB_BENCH_SWAP, 0, sizes[i]);
		exchange(&team, XB_BENCH_SWAP, 1, sizes[i]);
	}
	close_team(&team);
}

static void spinning_moves_every_size(void **state)
{
	(void)state;
	moves_every_size("spin", "4");
}

static void sleeping_moves_every_size(void **state)
{
	(void)state;
	moves_every_size("block", "4");
}

static void ipv6_moves_every_size(void **state)
{
	(void)state;
	if (access("/proc/net/if_inet6", R_OK))
		skip();
	moves_every_size("spin", "6");
}

/* --- matching and synchronous sends */

static void a_zero_byte_message_really_arrives(void **state)
{
	struct team team;
	(void)state;
	open_pair(&team, NULL, 0, 8);
	struct endpoint *a = &team.endpoints[0], *b = &team.endpoints[1];
	const struct xb_hot *hot = hot_of(a, XB_BENCH_PINGPONG, 0);
	assert_int_equal(hot->recv(b->conn[0], b->recv, 0, NULL, request_of(b, 0)), 0);
	assert_int_equal(hot->test(b->conn[0], request_of(b, 0)), 0);
	assert_int_equal(hot->send(a->conn[1], a->send, 0, NULL, request_of(a, 0)), 0);
	assert_int_equal(hot->wait(a->conn[1], request_of(a, 0)), 0);
	assert_int_equal(hot->wait(b->conn[0], request_of(b, 0)), 0);
	close_team(&team);
}

static void a_synchronous_send_completes_only_when_matched(void **state)
{
	struct team team;
	const char *poll = *state;
	const struct xb_key_value keys[] = {{"poll", poll}};
	open_pair(&team, keys, 1, 64);
	struct endpoint *a = &team.endpoints[0], *b = &team.endpoints[1];
	const struct xb_hot *hot = hot_of(a, XB_BENCH_SWAP, 0);
	memcpy(a->send, "first...second..third...", 24);
	/* a standard message, a synchronous one, a standard one: only the second waits, and only for its own
	 * match */
	assert_int_equal(hot->send(a->conn[1], a->send, 8, NULL, request_of(a, 0)), 0);
	assert_int_equal(hot->send_sync(a->conn[1], a->send + 8, 8, NULL, request_of(a, 1)), 0);
	assert_int_equal(hot->send(a->conn[1], a->send + 16, 8, NULL, request_of(a, 2)), 0);
	assert_int_equal(hot->wait(a->conn[1], request_of(a, 0)), 0);
	assert_int_equal(hot->wait(a->conn[1], request_of(a, 2)), 0);
	assert_int_equal(hot->recv(b->conn[0], b->recv, 8, NULL, request_of(b, 0)), 0);
	assert_int_equal(hot->wait(b->conn[0], request_of(b, 0)), 0);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(hot->test(a->conn[1], request_of(a, 1)), 0);
		assert_int_equal(hot->test(b->conn[0], request_of(b, 0)), 1);
	}
	assert_int_equal(hot->recv(b->conn[0], b->recv + 8, 8, NULL, request_of(b, 1)), 0);
	assert_int_equal(hot->wait(b->conn[0], request_of(b, 1)), 0);
	assert_int_equal(hot->wait(a->conn[1], request_of(a, 1)), 0);
	assert_int_equal(hot->recv(b->conn[0], b->recv + 16, 8, NULL, request_of(b, 2)), 0);
	assert_int_equal(hot->wait(b->conn[0], request_of(b, 2)), 0);
	assert_memory_equal(b->recv, "first...second..third...", 24);
	close_team(&team);
}

static void an_unexpected_message_does_not_hold_up_an_acknowledgement(void **state)
{
	struct team team;
	(void)state;
	open_pair(&team, NULL, 0, 64);
	struct endpoint *a = &team.endpoints[0], *b = &team.endpoints[1];
	const struct xb_hot *hot = hot_of(a, XB_BENCH_SWAP, 1);
	assert_int_equal(hot->send(b->conn[0], b->send, 64, NULL, request_of(b, 0)),
			 0); /* a posts no receive */
	assert_int_equal(hot->send_sync(a->conn[1], a->send, 0, NULL, request_of(a, 0)), 0);
	assert_int_equal(hot->recv(b->conn[0], b->recv, 0, NULL, request_of(b, 1)), 0);
	assert_int_equal(hot->wait(b->conn[0], request_of(b, 1)), 0);
	assert_int_equal(hot->wait(a->conn[1], request_of(a, 0)), 0);
	close_team(&team);
}

/* --- trouble */

static void a_lost_peer_is_noticed(void **state)
{
	static const enum xb_bench benches[] = {XB_BENCH_PINGPONG, XB_BENCH_SWAP};
	const struct xb_key_value keys[] = {{"poll", *state}};
	for (int i = 0; i < 2; i++) {
		struct team team;
		open_pair(&team, keys, 1, 64);
		struct endpoint *a = &team.endpoints[0];
		const struct xb_hot *hot = hot_of(a, benches[i], 0);
		close_endpoint(&team.endpoints[1]);
		assert_int_equal(hot->recv(a->conn[1], a->recv, 64, NULL, request_of(a, 0)), 0);
		assert_int_equal(hot->wait(a->conn[1], request_of(a, 0)), XB_E_PEER);
		tcp->explain(a->conn[1], &a->error);
		assert_int_equal(a->error.status, XB_E_PEER);
		assert_non_null(strstr(a->error.text, "endpoint 1 at 127.0.0.1"));
		assert_non_null(strstr(a->error.text, "closed the connection"));
		close_team(&team);
	}
}

static void *raise_abort(void *argument)
{
	usleep(20000);
	atomic_store((atomic_int *)argument, 1);
	return NULL;
}

static void the_abort_flag_ends_a_wait(void **state)
{
	static const enum xb_bench benches[] = {XB_BENCH_PINGPONG, XB_BENCH_BIBW, XB_BENCH_SWAP};
	const struct xb_key_value keys[] = {{"poll", *state}};
	for (int i = 0; i < 3; i++) {
		struct team team;
		pthread_t thread;
		open_pair(&team, keys, 1, 64);
		struct endpoint *a = &team.endpoints[0];
		const struct xb_hot *hot = hot_of(a, benches[i], benches[i] == XB_BENCH_BIBW);
		assert_int_equal(hot->recv(a->conn[1], a->recv, 64, NULL, request_of(a, 0)), 0);
		assert_int_equal(pthread_create(&thread, NULL, raise_abort, &team.abort), 0);
		assert_int_equal(hot->wait(a->conn[1], request_of(a, 0)), XB_E_ABORTED);
		pthread_join(thread, NULL);
		close_team(&team);
	}
}

static void the_abort_flag_ends_a_connect(void **state)
{
	struct team team;
	pthread_t thread;
	(void)state;
	open_team(&team, 2, "lo", NULL, 0, 64);
	for (uint32_t i = 0; i < 2; i++) {
		struct endpoint *e = &team.endpoints[i], *other = &team.endpoints[!i];
		assert_int_equal(pthread_create(&thread, NULL, raise_abort, &team.abort), 0);
		assert_int_equal(tcp->connect(e->context, !i, other->address, other->address_bytes,
					      e->conn[!i], &e->error),
				 XB_E_ABORTED);
		pthread_join(thread, NULL);
		atomic_store(&team.abort, 0);
	}
	close_team(&team);
}

static int call_port(unsigned port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
	return fd;
}

static void strangers_are_dropped(void **state)
{
	enum { STRANGERS = 60 }; /* below the backlog of the listener, which accepts only in connect */
	static const char noise[64] = "GET / HTTP/1.1\r\n\r\n";
	struct team team;
	int fds[STRANGERS];
	(void)state;
	open_team(&team, 2, "lo", NULL, 0, 64);
	/* in the blob: 62 bytes, then entries of family, prefix, port */
	const unsigned char *entry = team.endpoints[0].address + 62;
	assert_int_equal(entry[0] & 0x0f, 4);
	for (int i = 0; i < STRANGERS; i++) {
		fds[i] = call_port((unsigned)entry[2] << 8 | entry[3]);
		if (i % 3 && send(fds[i], noise, i % 3 == 1 ? sizeof noise : 5, MSG_NOSIGNAL) < 0)
			fail_msg("send");
		if (i % 7 == 0) {
			close(fds[i]);
			fds[i] = -1;
		}
	}
	connect_team(&team);
	exchange(&team, XB_BENCH_PINGPONG, 0, 64);
	for (int i = 0; i < STRANGERS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	close_team(&team);
}

static void a_broken_address_is_refused(void **state)
{
	struct team team;
	(void)state;
	open_team(&team, 2, "lo", NULL, 0, 64);
	struct endpoint *a = &team.endpoints[0], *b = &team.endpoints[1];
	for (size_t bytes = 0; bytes < a->address_bytes; bytes++)
		assert_int_equal(tcp->connect(b->context, 0, a->address, bytes, b->conn[0], &b->error),
				 XB_E_PEER);
	a->address[61] = 255; /* more entries than there are */
	assert_int_equal(tcp->connect(b->context, 0, a->address, a->address_bytes, b->conn[0], &b->error),
			 XB_E_PEER);
	close_team(&team);
}

static void any_order_of_connecting_works(void **state)
{
	static const uint32_t orders[2][4][3] = {{{3, 2, 1}, {3, 2, 0}, {3, 1, 0}, {2, 1, 0}},
						 {{1, 2, 3}, {2, 3, 0}, {3, 0, 1}, {0, 1, 2}}};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct team team;
		open_team(&team, 4, "", NULL, 0, 64);
		for (uint32_t e = 0; e < 4; e++)
			memcpy(team.endpoints[e].order, orders[i][e], sizeof orders[i][e]);
		connect_team(&team);
		exchange(&team, XB_BENCH_PINGPONG, 0, 64);
		close_team(&team);
	}
}

/* --- what open says */

static void refuses(const char *path, const char *key, const char *value, enum xb_op op, int status,
		    const char *word)
{
	const struct xb_key_value keys[] = {{key, value}};
	atomic_int no_abort = 0;
	struct xb_error error = {0};
	struct xb_setup setup = {.abort = &no_abort,
				 .endpoints = 2,
				 .path = path,
				 .keys = keys,
				 .key_count = key != NULL,
				 .max_message_bytes = 64,
				 .max_outstanding = 1,
				 .op = op};
	void *context = area(tcp->context_bytes);
	assert_int_equal(tcp->open(context, &setup, &error), status);
	assert_int_equal(error.status, status);
	if (!strstr(error.text, word))
		fail_msg("'%s' does not say '%s'", error.text, word);
	tcp->close(context, 0);
	free(context);
}

static void what_cannot_be_is_refused_with_a_reason(void **state)
{
	(void)state;
	refuses("nosuch0", NULL, NULL, XB_OP_SEND, XB_E_UNAVAILABLE, "lo");
	refuses("lo", "family", "5", XB_OP_SEND, XB_E_USAGE, "family=5");
	refuses("lo", "poll", "doze", XB_OP_SEND, XB_E_USAGE, "spin and block");
	refuses("lo", "nodelay", "yes", XB_OP_SEND, XB_E_USAGE, "nodelay=yes");
	refuses("lo", "sndbuf", "4Q", XB_OP_SEND, XB_E_USAGE, "sndbuf=4Q");
	refuses("lo", "sndbuf", "-1", XB_OP_SEND, XB_E_USAGE, "sndbuf=-1");
	refuses("lo", "rcvbuf", "0", XB_OP_SEND, XB_E_USAGE, "rcvbuf=0");
	refuses("lo", "rcvbuf", "99999999999999999999", XB_OP_SEND, XB_E_USAGE, "rcvbuf=9");
	refuses("lo", "congestion", "telepathy", XB_OP_SEND, XB_E_UNAVAILABLE, "available are");
	refuses("lo", NULL, NULL, XB_OP_WRITE, XB_E_UNSUPPORTED, "--op write");
	refuses("lo", NULL, NULL, XB_OP_READ, XB_E_UNSUPPORTED, "--op read");
	refuses("203.0.113.0/24", NULL, NULL, XB_OP_SEND, XB_E_UNAVAILABLE, "in that subnet");
	refuses("127.0.0.0/33", NULL, NULL, XB_OP_SEND, XB_E_USAGE, "neither an interface nor a subnet");
	refuses("127.0.0.0/", NULL, NULL, XB_OP_SEND, XB_E_USAGE, "neither an interface nor a subnet");
}

static void the_resolved_path_is_told(void **state)
{
	static const struct {
		const char *path;
		struct xb_key_value key;
		const char *resolved;
	} cases[] = {
		{"", {"poll", "spin"}, "tcp 127.0.0.1 -> 127.0.0.1 on lo, spinning, nodelay"},
		{"lo", {"poll", "block"}, "tcp 127.0.0.1 -> 127.0.0.1 on lo, blocking, nodelay"},
		{"127.0.0.0/8",
		 {"nodelay", "0"},
		 "tcp 127.0.0.1 -> 127.0.0.1 on lo, spinning, Nagle's algorithm"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct team team;
		struct xb_description description;
		open_team(&team, 2, cases[i].path, &cases[i].key, 1, 64);
		connect_team(&team);
		struct endpoint *a = &team.endpoints[0];
		assert_int_equal(tcp->describe(a->context, a->conn[1], &description, &a->error), 0);
		assert_string_equal(description.resolved, cases[i].resolved);
		assert_string_equal(description.device, "lo");
		assert_int_equal(description.path_ok, 1);
		close_team(&team);
	}
}

int main(void)
{
	static char spin[] = "spin", block[] = "block";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spinning_moves_every_size),
		cmocka_unit_test(sleeping_moves_every_size),
		cmocka_unit_test(ipv6_moves_every_size),
		cmocka_unit_test(a_zero_byte_message_really_arrives),
		cmocka_unit_test_prestate(a_synchronous_send_completes_only_when_matched, spin),
		cmocka_unit_test_prestate(a_synchronous_send_completes_only_when_matched, block),
		cmocka_unit_test(an_unexpected_message_does_not_hold_up_an_acknowledgement),
		cmocka_unit_test_prestate(a_lost_peer_is_noticed, spin),
		cmocka_unit_test_prestate(a_lost_peer_is_noticed, block),
		cmocka_unit_test_prestate(the_abort_flag_ends_a_wait, spin),
		cmocka_unit_test_prestate(the_abort_flag_ends_a_wait, block),
		cmocka_unit_test(the_abort_flag_ends_a_connect),
		cmocka_unit_test(strangers_are_dropped),
		cmocka_unit_test(a_broken_address_is_refused),
		cmocka_unit_test(any_order_of_connecting_works),
		cmocka_unit_test(what_cannot_be_is_refused_with_a_reason),
		cmocka_unit_test(the_resolved_path_is_told),
	};
	const char *build = getenv("XB_BUILD");
	char path[4096];
	snprintf(path, sizeof path, "%s/plugins/libxb-tcp.so", build ? build : "build");
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	tcp = plugin ? dlsym(plugin, "xb_transport") : NULL;
	if (!tcp) {
		fprintf(stderr, "cannot load %s: %s\n", path, dlerror());
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The control port with real sockets: who is let in, and what attacks on a connection lead to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/hub.h"
#include "stats/stats.h"

#define FUZZ_MS 2000

static struct xb_hub hub;

static void open_hub(void)
{
	assert_int_equal(xb_hub_open(&hub, "127.0.0.1", 0, NULL, NULL), 0);
}

static void close_hub(void)
{
	xb_hub_close(&hub);
	sigprocmask(SIG_SETMASK, &hub.old_mask, NULL);
}

static int dial(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	address.sin_port = htons((uint16_t)atoi(strrchr(hub.address, ':') + 1));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

/* Lets the hub do what it has to; every hop is on the loopback. */
static void settle(void)
{
	for (int i = 0; i < 6; i++)
		xb_hub_poll(&hub, 2);
}

static size_t authenticated(void)
{
	size_t count = 0;
	for (size_t i = 0; i < hub.peer_count; i++)
		count += hub.peers[i]->authenticated && hub.peers[i]->fd >= 0;
	return count;
}

/* Reads what the other side has for us; -1 with nothing there, 0 when it has closed. */
static ssize_t answer(int fd, unsigned char *bytes, size_t capacity)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, 200) > 0 ? recv(fd, bytes, capacity, 0) : -1;
}

struct transcript { /* of an honest worker, as a listener on the wire sees it */
	unsigned char hello[XB_HELLO_BYTES], proof[XB_PROOF_BYTES], nonce_w[XB_NONCE_BYTES],
		nonce_c[XB_NONCE_BYTES];
	struct xb_session session;
};

static int enter(struct transcript *t)
{
	unsigned char reply[XB_REPLY_BYTES];
	int fd = dial();
	xb_random_bytes(t->nonce_w, sizeof t->nonce_w);
	xb_hello_make(hub.key, t->nonce_w, t->hello);
	assert_int_equal(send(fd, t->hello, sizeof t->hello, 0), sizeof t->hello);
	settle();
	assert_int_equal(answer(fd, reply, sizeof reply), sizeof reply);
	assert_int_equal(xb_reply_check(hub.key, t->nonce_w, reply, t->nonce_c), 0);
	xb_proof_make(hub.key, t->nonce_w, t->nonce_c, t->proof);
	assert_int_equal(send(fd, t->proof, sizeof t->proof, 0), sizeof t->proof);
	xb_session_derive(hub.key, t->nonce_w, t->nonce_c, 0, &t->session);
	settle();
	return fd;
}

static void a_holder_of_the_key_is_let_in_and_heard(void **state)
{
	static const char text[] = "{\"hello\":{\"team\":1,\"endpoint\":7,\"pid\":42}}";
	struct transcript t;
	size_t bytes;
	(void)state;
	open_hub();
	int fd = enter(&t);
	assert_int_equal(authenticated(), 1);
	unsigned char *frame = xb_frame_seal(&t.session, text, sizeof text - 1, &bytes);
	assert_int_equal(send(fd, frame, bytes, 0), (ssize_t)bytes);
	free(frame);
	settle();
	assert_non_null(xb_hub_find(&hub, 1, 7));
	assert_null(xb_hub_find(&hub, 1, 8));
	assert_int_equal(hub.strangers, 0);
	close(fd);
	close_hub();
}

static void numbers_out_of_range_take_no_seat(void **state)
{
	static const char *const hellos[] = {
		"{\"hello\":{\"team\":-1,\"endpoint\":0}}", "{\"hello\":{\"team\":99999,\"endpoint\":0}}",
		"{\"hello\":{\"team\":0,\"endpoint\":1024}}", "{\"hello\":{\"team\":0,\"endpoint\":-5}}",
		"{\"hello\":{\"team\":0,\"endpoint\":99999999999}}"};
	struct transcript t;
	size_t bytes;
	(void)state;
	open_hub();
	for (size_t i = 0; i < sizeof hellos / sizeof *hellos; i++) {
		int fd = enter(&t);
		unsigned char *frame = xb_frame_seal(&t.session, hellos[i], strlen(hellos[i]), &bytes);
		assert_int_equal(send(fd, frame, bytes, 0), (ssize_t)bytes);
		free(frame);
		settle();
		close(fd);
		settle();
	}
	for (int e = 0; e < 1024; e++)
		assert_null(xb_hub_find(&hub, 0, e));
	close_hub();
}

static void a_replayed_connection_gets_not_one_byte(void **state)
{
	unsigned char bytes[XB_REPLY_BYTES + 16];
	struct transcript t, other;
	(void)state;
	open_hub();
	close(enter(&t));
	for (int i = 0; i < 20; i++)
		close(enter(&other));
	settle();
	int fd = dial();
	assert_int_equal(send(fd, t.hello, sizeof t.hello, 0), sizeof t.hello);
	settle();
	assert_true(answer(fd, bytes, sizeof bytes) <= 0);
	assert_int_equal(authenticated(), 0);
	assert_int_equal(hub.strangers, 1);
	close(fd);
	close_hub();
}

/* Hellos of workers that never came here themselves, or that are forgotten: right, and with no proof to
 * follow. */
static void recorded_hellos_do_not_keep_a_worker_out(void **state)
{
	unsigned char nonce[XB_NONCE_BYTES], hello[XB_HELLO_BYTES], bytes[XB_REPLY_BYTES];
	int fds[5 * XB_HUB_PENDING_MAX];
	struct transcript t;
	(void)state;
	open_hub();
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
		xb_random_bytes(nonce, sizeof nonce);
		xb_hello_make(hub.key, nonce, hello);
		fds[i] = dial();
		assert_int_equal(send(fds[i], hello, sizeof hello, 0), sizeof hello);
		xb_hub_poll(&hub, 2);
		assert_true(hub.pending <= 4 * XB_HUB_PENDING_MAX);
	}
	settle();
	assert_int_equal(hub.pending, 4 * XB_HUB_PENDING_MAX);
	int fd = enter(&t);
	assert_int_equal(authenticated(), 1);
	/* the oldest made room: after its reply it is closed; the youngest waits */
	assert_int_equal(answer(fds[0], bytes, sizeof bytes), XB_REPLY_BYTES);
	assert_true(answer(fds[0], bytes, sizeof bytes) == 0);
	close(fd);
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		close(fds[i]);
	close_hub();
}

/* As of one that is busy with starting hundreds of workers. */
static void a_controller_that_answers_late_is_waited_for(void **state)
{
	int status = -1, patience = 3000;
	(void)state;
	open_hub();
	pid_t pid = fork();
	if (!pid) {
		struct xb_channel channel;
		_exit(xb_channel_connect(&channel, hub.address, hub.key, 200, 60000, NULL) ? 1 : 0);
	}
	poll(NULL, 0, 600);
	while (waitpid(pid, &status, WNOHANG) == 0 && patience--)
		xb_hub_poll(&hub, 10);
	assert_int_equal(status, 0);
	close_hub();
}

static void another_key_gets_not_one_byte(void **state)
{
	unsigned char key[XB_KEY_BYTES], nonce[XB_NONCE_BYTES], hello[XB_HELLO_BYTES], byte;
	(void)state;
	open_hub();
	xb_random_bytes(key, sizeof key);
	xb_random_bytes(nonce, sizeof nonce);
	xb_hello_make(key, nonce, hello);
	int fd = dial();
	assert_int_equal(send(fd, hello, sizeof hello, 0), sizeof hello);
	settle();
	assert_true(answer(fd, &byte, 1) <= 0);
	assert_int_equal(hub.peer_count, 0); /* forgotten */
	close(fd);
	close_hub();
}

static void silent_strangers_are_bounded_and_do_not_keep_a_worker_out(void **state)
{
	int fds[400];
	struct transcript t;
	(void)state;
	open_hub();
	for (size_t i = 0; i < 400; i++) {
		fds[i] = dial();
		if (i % 16 == 0)
			settle();
		assert_true(hub.pending <= XB_HUB_PENDING_MAX);
	}
	settle();
	assert_true(hub.peer_count <= XB_HUB_PENDING_MAX);
	int fd = enter(&t);
	assert_int_equal(authenticated(), 1);
	close(fd);
	for (size_t i = 0; i < 400; i++)
		close(fds[i]);
	close_hub();
}

/* One honest stream of frames, then what an attacker on the wire can make of it. */
static size_t attack(struct xb_rng *rng, unsigned char *stream, size_t bytes, size_t capacity,
		     const size_t *frames)
{
	size_t a = frames[xb_rng_below(rng, 4)], b = frames[1 + xb_rng_below(rng, 4)], n;
	switch (xb_rng_below(rng, 6)) {
	case 0: /* a flipped bit */
		stream[xb_rng_below(rng, bytes)] ^= (unsigned char)(1u << xb_rng_below(rng, 8));
		return bytes;
	case 1: /* cut off: not wrong yet, so the rest is made up */
		n = xb_rng_below(rng, bytes);
		for (size_t i = n; i < bytes; i++)
			stream[i] = (unsigned char)xb_rng_next(rng);
		return bytes;
	case 2: /* a frame is left out */
		memmove(stream, stream + frames[1], bytes - frames[1]);
		return bytes - frames[1];
	case 3: /* a frame is said twice */
		if (b <= a || bytes + (b - a) > capacity)
			return 0;
		memmove(stream + b + (b - a), stream + b, bytes - b);
		memcpy(stream + b, stream + a, b - a);
		return bytes + (b - a);
	case 4: /* lengths of all kinds */
		n = a;
		for (size_t i = 0; i < XB_FRAME_HEADER_BYTES; i++)
			stream[n + i] = (unsigned char)xb_rng_next(rng);
		return bytes;
	default: /* noise in front */
		if (bytes + 8 > capacity)
			return 0;
		memmove(stream + 8, stream, bytes);
		for (size_t i = 0; i < 8; i++)
			stream[i] = (unsigned char)xb_rng_next(rng);
		return bytes + 8;
	}
}

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* With another seed every time, for a bounded time: altered streams never give a message that was not sent,
 * in its place; and never take more memory than a frame needs. */
static void a_fuzzed_stream_gives_nothing_but_its_honest_beginning(void **state)
{
	static const char *const texts[4] = {"{\"n\":0}", "{\"n\":1,\"a\":[1,2,3]}", "{\"n\":2}",
					     "{\"n\":3,\"b\":\"xyz\"}"};
	uint64_t end = now_ms() + FUZZ_MS, runs = 0, seed;
	unsigned char key[XB_KEY_BYTES], nonce_w[XB_NONCE_BYTES], nonce_c[XB_NONCE_BYTES];
	struct xb_rng rng;
	(void)state;
	assert_int_equal(xb_channel_library_init(NULL), 0);
	xb_random_bytes(&seed, sizeof seed);
	xb_rng_seed(&rng, seed);
	xb_random_bytes(key, sizeof key);
	xb_random_bytes(nonce_w, sizeof nonce_w);
	xb_random_bytes(nonce_c, sizeof nonce_c);
	while (now_ms() < end) {
		unsigned char stream[1024], honest[1024];
		size_t bytes = 0, frames[5] = {0}, at = 0;
		struct xb_session worker, controller;
		struct xb_parser parser = {0};
		json_t *message = NULL;
		json_int_t expected = 0;
		int status = 0;

		xb_session_derive(key, nonce_w, nonce_c, 0, &worker);
		xb_session_derive(key, nonce_w, nonce_c, 1, &controller);
		for (size_t i = 0; i < 4; i++) {
			size_t n;
			unsigned char *frame = xb_frame_seal(&worker, texts[i], strlen(texts[i]), &n);
			memcpy(stream + bytes, frame, n);
			free(frame);
			bytes += n;
			frames[i + 1] = bytes;
		}
		memcpy(honest, stream, bytes);
		size_t length = attack(&rng, stream, bytes, sizeof stream, frames);
		while (at < length && status >= 0) {
			size_t piece = 1 + xb_rng_below(&rng, length - at);
			status = xb_parser_feed(&parser, stream + at, piece);
			at += piece;
			while (status >= 0 &&
			       (status = xb_parser_next(&parser, &controller, &message)) == 1) {
				json_int_t n = json_integer_value(json_object_get(message, "n"));
				if (n != expected++)
					fail_msg("seed %llu, run %llu: message %lld instead of %lld",
						 (unsigned long long)seed, (unsigned long long)runs,
						 (long long)n, (long long)expected - 1);
				json_decref(message);
			}
		}
		if (expected == 4 && status == 0 && length == bytes && at == length &&
		    memcmp(stream, honest, bytes))
			fail_msg("seed %llu, run %llu: an altered stream passed as whole",
				 (unsigned long long)seed, (unsigned long long)runs);
		assert_true(parser.capacity <= 8192);
		xb_parser_free(&parser);
		runs++;
	}
	print_message("%llu streams, seed %llu\n", (unsigned long long)runs, (unsigned long long)seed);
	assert_true(runs > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_holder_of_the_key_is_let_in_and_heard),
		cmocka_unit_test(numbers_out_of_range_take_no_seat),
		cmocka_unit_test(a_replayed_connection_gets_not_one_byte),
		cmocka_unit_test(recorded_hellos_do_not_keep_a_worker_out),
		cmocka_unit_test(a_controller_that_answers_late_is_waited_for),
		cmocka_unit_test(another_key_gets_not_one_byte),
		cmocka_unit_test(silent_strangers_are_bounded_and_do_not_keep_a_worker_out),
		cmocka_unit_test(a_fuzzed_stream_gives_nothing_but_its_honest_beginning),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

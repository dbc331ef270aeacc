/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * provoke PLUGIN.so PATH CASE: two endpoints of the verbs backend in this process, and between them what a
 * correct run never does. Prints what each side says of it, one line a side; the exit status says whether the
 * case went as it should.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "transport.h"

#define BYTES 8192u
#define LATE_MS 300
#define MANY 10000 /* more than a queue takes */

struct end {
	struct xb_setup setup;
	void *context, *conn, *region, *remote, *requests;
	unsigned char *buffer;
	const struct xb_hot *hot;
};

static const struct xb_transport *t;
static atomic_int abort_flag;
static struct end a, b, x;

static void *area(size_t bytes)
{
	size_t total = (bytes + 127) / 64 * 64;
	void *memory = aligned_alloc(64, total);

	if (!memory)
		abort();
	return memset(memory, 0, total);
}

static void must(int status, const char *what, const struct xb_error *error)
{
	if (!status)
		return;
	printf("%s failed: %s\n", what, error->text);
	exit(2);
}

static void open_end(struct end *e, uint32_t number, const char *path, enum xb_op op,
		     const struct xb_key_value *keys, size_t count)
{
	struct xb_error error = {0, ""};

	e->setup = (struct xb_setup){.abort = &abort_flag,
				     .endpoint = number,
				     .endpoints = 2,
				     .path = path,
				     .keys = keys,
				     .key_count = count,
				     .max_message_bytes = BYTES,
				     .max_outstanding = 8,
				     .op = op};
	e->context = area(t->context_bytes);
	e->conn = area(t->connection_bytes);
	e->region = area(t->region_bytes);
	e->remote = area(t->remote_bytes);
	e->requests = area(4 * t->request_bytes);
	e->buffer = aligned_alloc(4096, 2 * BYTES);
	must(t->open(e->context, &e->setup, &error), "open", &error);
	must(t->memory(e->context, e->buffer, BYTES, e->region, &error), "memory", &error);
}

static void join(struct end *e, struct end *peer)
{
	const struct xb_pattern pattern = {
		.bench = XB_BENCH_PINGPONG, .op = e->setup.op, .size_bytes = 2000, .window = 1};
	unsigned char blob[XB_ADDRESS_MAX];
	struct xb_error error = {0, ""};
	size_t bytes = sizeof blob;

	must(t->address(peer->context, e->setup.endpoint, blob, &bytes, &error), "address", &error);
	must(t->connect(e->context, peer->setup.endpoint, blob, bytes, e->conn, &error), "connect", &error);
	if (e->setup.op != XB_OP_SEND) {
		bytes = sizeof blob;
		must(t->export_region(peer->context, peer->region, blob, &bytes, &error), "export", &error);
		must(t->import_region(e->conn, blob, bytes, e->remote, &error), "import", &error);
	}
	e->hot = t->prepare(e->conn, &pattern, &error);
	must(e->hot ? 0 : error.status, "prepare", &error);
}

static void *request(const struct end *e, size_t i)
{
	return (unsigned char *)e->requests + i * t->request_bytes;
}

/* One line: what this side says; 0 if it failed, as it should. */
static int tell(const struct end *e, int status)
{
	struct xb_error error = {0, ""};

	if (status >= 0) {
		printf("endpoint %u: nothing failed\n", e->setup.endpoint);
		return 1;
	}
	t->explain(e->conn, &error);
	printf("endpoint %u: %s: %s\n", e->setup.endpoint, xb_status_name(status), error.text);
	return 0;
}

static int send_and_wait(const struct end *e, size_t bytes)
{
	int status = e->hot->send(e->conn, e->buffer, bytes, e->region, request(e, 0));

	if (status >= 0)
		status = e->hot->wait(e->conn, request(e, 0));
	return status;
}

static int length(void)
{
	int failed;

	must(b.hot->recv(b.conn, b.buffer, 1000, b.region, request(&b, 0)), "recv", &(struct xb_error){0});
	must(a.hot->send(a.conn, a.buffer, 2000, a.region, request(&a, 0)), "send", &(struct xb_error){0});
	failed = tell(&b, b.hot->wait(b.conn, request(&b, 0)));
	failed |= tell(&a, a.hot->wait(a.conn, request(&a, 0)));
	/* once failed, always failed */
	return failed | tell(&a, send_and_wait(&a, 2000));
}

static int no_receive(void)
{
	return tell(&a, send_and_wait(&a, 2000));
}

static int gone(void)
{
	t->close(b.context, 0);
	return tell(&a, send_and_wait(&a, 2000));
}

static int put_and_wait(const struct end *e, size_t offset)
{
	int status = e->hot->put(e->conn, e->buffer, 1000, e->region, e->remote, offset, request(e, 0));

	if (status >= 0)
		status = e->hot->flush(e->conn);
	return status;
}

static int access_beyond(void)
{
	if (put_and_wait(&a, BYTES - 1000) < 0) {
		printf("a write of the last bytes failed\n");
		return 1;
	}
	return tell(&a, put_and_wait(&a, BYTES - 999));
}

static int unregistered(void)
{
	int status = a.hot->send(a.conn, a.buffer + BYTES, 2000, a.region, request(&a, 0));

	if (status >= 0)
		status = a.hot->wait(a.conn, request(&a, 0));
	return tell(&a, status);
}

static void in_guest(const char *command)
{
	/* NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): a machine of its own, and one thread */
	if (system(command)) {
		printf("%s: failed\n", command);
		exit(2);
	}
}

#define LINK_DOWN_SOON "{ sleep 1; ip link set v0 down; } &"

/* A receive whose message never comes: no completion, only the event. */
static int idle(void)
{
	must(a.hot->recv(a.conn, a.buffer, 1000, a.region, request(&a, 0)), "recv", &(struct xb_error){0});
	in_guest(LINK_DOWN_SOON);
	return tell(&a, a.hot->wait(a.conn, request(&a, 0)));
}

/* Sends that are never acknowledged, until there is no room for one more: no completion either. */
static int full(void)
{
	int status = 0;

	in_guest("tc qdisc add dev v0 root netem loss 100%");
	in_guest(LINK_DOWN_SOON);
	for (int i = 0; i < MANY && status >= 0; i++)
		status = a.hot->send(a.conn, a.buffer, 8, a.region, request(&a, 0));
	return tell(&a, status);
}

/* A synchronous send is not complete before its receive has been posted, and is soon after. */
static int synchronous(void)
{
	const struct timespec nap = {0, 1000000};

	for (size_t bytes = 8; bytes <= 4000; bytes += 3992) { /* inline, and not */
		must(a.hot->send_sync(a.conn, a.buffer, bytes, a.region, request(&a, 0)), "send_sync",
		     &(struct xb_error){0});
		for (int ms = 0; ms < LATE_MS; ms++) {
			int done = a.hot->test(a.conn, request(&a, 0));

			if (done) {
				printf("endpoint 0: %zu bytes: %s before there was a receive\n", bytes,
				       done < 0 ? "failed" : "complete");
				return 1;
			}
			nanosleep(&nap, NULL);
		}
		must(b.hot->recv(b.conn, b.buffer, bytes, b.region, request(&b, 0)), "recv",
		     &(struct xb_error){0});
		must(a.hot->wait(a.conn, request(&a, 0)), "wait for the synchronous send",
		     &(struct xb_error){0});
		must(b.hot->wait(b.conn, request(&b, 0)), "wait for its receive", &(struct xb_error){0});
	}
	return 0;
}

static void *join_a(void *unused)
{
	join(&a, &b);
	return unused;
}

/* Somebody calls in the place of endpoint 1 and does not know what endpoint 0 demands; then it calls itself.
 */
static int stranger(void)
{
	unsigned char blob[XB_ADDRESS_MAX];
	struct xb_error error = {0, ""};
	size_t bytes = sizeof blob;
	pthread_t waiting;
	int status;

	open_end(&x, 1, a.setup.path, XB_OP_SEND, a.setup.keys, a.setup.key_count);
	must(t->address(x.context, 0, blob, &bytes, &error), "address", &error);
	bytes = sizeof blob;
	must(t->address(a.context, 1, blob, &bytes, &error), "address", &error);
	blob[bytes - 2 * sizeof(uint32_t) - 1] ^= 1; /* its end, before the numbers of two queue pairs */
	if (pthread_create(&waiting, NULL, join_a, NULL))
		abort();
	status = t->connect(x.context, 0, blob, bytes, x.conn, &error);
	printf("the stranger: %s\n", status ? error.text : "was let in");
	t->close(x.context, 0);
	join(&b, &a);
	pthread_join(waiting, NULL);
	must(b.hot->recv(b.conn, b.buffer, 2000, b.region, request(&b, 0)), "recv", &(struct xb_error){0});
	must(send_and_wait(&a, 2000), "send", &(struct xb_error){0});
	must(b.hot->wait(b.conn, request(&b, 0)), "wait", &(struct xb_error){0});
	printf("endpoint 1: was let in\n");
	return status == 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum xb_op op;
		struct xb_key_value keys[2];
		size_t key_count;
		int (*run)(void);
		int closes_b;
	} cases[] = {
		{"length", XB_OP_SEND, {{0}}, 0, length, 0},
		{"no-receive", XB_OP_SEND, {{"rnr", "1"}}, 1, no_receive, 0},
		{"gone", XB_OP_SEND, {{"timeout", "10"}}, 1, gone, 1},
		{"access", XB_OP_WRITE, {{0}}, 0, access_beyond, 0},
		{"unregistered", XB_OP_SEND, {{0}}, 0, unregistered, 0},
		{"synchronous", XB_OP_SEND, {{0}}, 0, synchronous, 0},
		{"stranger", XB_OP_SEND, {{"cm", "1"}}, 1, stranger, 0},
		/* both want a path over the interface v0; an acknowledgement is waited for for hours */
		{"idle", XB_OP_SEND, {{0}}, 0, idle, 0},
		{"full", XB_OP_SEND, {{"timeout", "31"}}, 1, full, 0},
	};
	void *plugin = argc == 4 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	t = plugin ? dlsym(plugin, "xb_transport") : NULL;
	if (!t) {
		fprintf(stderr, "usage: provoke PLUGIN.so PATH CASE; %s\n",
			plugin ? "no such plugin" : dlerror());
		return 2;
	}
	alarm(40); /* a wait that does not end is the end of this process */
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (strcmp(cases[i].name, argv[3]))
			continue;
		open_end(&a, 0, argv[2], cases[i].op, cases[i].keys, cases[i].key_count);
		open_end(&b, 1, argv[2], cases[i].op, cases[i].keys, cases[i].key_count);
		if (cases[i].run != stranger) { /* which does it by itself */
			join(&a, &b);
			join(&b, &a);
		}
		failed = cases[i].run();
		if (!cases[i].closes_b)
			t->close(b.context, 0);
		t->close(a.context, 0);
		return failed;
	}
	fprintf(stderr, "provoke: no case %s\n", argv[3]);
	return 2;
}

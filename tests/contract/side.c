/* SPDX-License-Identifier: BSD-3-Clause */
/* One endpoint: brings the plugin up as a worker does, runs the blocks of every pair that it belongs to, says
 * what came out. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/decorator.h"
#include "exercise.h"

struct link {
	void *conn;
	struct xb_endpoint endpoint;
	const struct xb_decorator *decorators[2];
	void *decorator_state[2];
	size_t decorator_count;
};

struct side {
	const struct options *o;
	struct oob oob;
	const struct xb_transport *t;
	struct xb_setup setup;
	struct xb_timer timer;
	void *context, *send_region, *recv_region;
	unsigned char *buffer;
	size_t buffer_bytes;
	struct link links[OOB_MOST_ENDPOINTS];
};

/* What a block came to on one side; exchanged after each. */
struct outcome {
	int32_t status;
	int32_t verified;
	uint64_t iterations, warmup, checked;
	double median_ns, bandwidth, iteration_ns; /* the last: mean time of a whole iteration */
	char text[XB_ERROR_TEXT_BYTES];
	char report[512];
};

static atomic_int abort_flag;
static atomic_ullong deadline_ns; /* 0: none */

/* --- watchdog */

static void on_stop(int signal_number)
{
	(void)signal_number;
	atomic_store(&abort_flag, 1);
}

static void *watch(void *argument)
{
	const struct options *o = argument;
	int64_t end = oob_now_ms() + o->timeout_s * 1000;

	for (;;) {
		uint64_t at = atomic_load(&deadline_ns);
		int late = at && xb_clock_ns(CLOCK_MONOTONIC) > at;
		usleep(20000);
		if (!late && oob_now_ms() < end)
			continue;
		fprintf(stderr, "exercise: %s in the %s; raising the abort flag\n",
			late ? "the block passed its deadline" : "out of time",
			xb_phase_name(atomic_load(&xb_block_phase)));
		atomic_store(&abort_flag, 1);
		sleep(2);
		fprintf(stderr, "exercise: the abort flag was not looked at within 2 s; giving up\n");
		_exit(3);
	}
	return NULL;
}

static void arm(void *user, uint64_t monotonic_ns)
{
	(void)user;
	atomic_store(&deadline_ns, monotonic_ns);
}

/* --- bring-up */

static void *area(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
	if (memory)
		memset(memory, 0, (bytes + 127) / 64 * 64);
	else
		abort();
	return memory;
}

static void *load(const char *file, const char *symbol, struct xb_error *error)
{
	void *handle = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
	void *object = handle ? dlsym(handle, symbol) : NULL;
	if (!object)
		xb_fail(error, XB_E_UNAVAILABLE, "cannot load %s: %s", file, dlerror());
	return object;
}

static int check_keys(const char *who, const struct xb_key *known, const struct xb_key_value *keys,
		      size_t count, struct xb_error *error)
{
	for (size_t i = 0; i < count; i++) {
		const struct xb_key *k = known;
		while (k && k->key && strcmp(k->key, keys[i].key))
			k++;
		if (!k || !k->key)
			return xb_fail(error, XB_E_USAGE, "%s has no key %s", who, keys[i].key);
	}
	return 0;
}

static int open_side(struct side *s, struct xb_error *error)
{
	const struct options *o = s->o;
	size_t largest = o->sizes[o->size_count - 1];
	int status;

	s->t = load(o->plugin, "xb_transport", error);
	if (!s->t)
		return XB_E_UNAVAILABLE;
	if (s->t->abi != XB_TRANSPORT_ABI)
		return xb_fail(error, XB_E_USAGE, "%s has ABI %u, not %u", o->plugin, s->t->abi,
			       XB_TRANSPORT_ABI);
	s->setup = (struct xb_setup){.abort = &abort_flag,
				     .endpoint = s->oob.endpoint,
				     .endpoints = s->oob.endpoints,
				     .path = o->path,
				     .keys = o->keys,
				     .key_count = o->key_count,
				     .max_message_bytes = largest,
				     .max_outstanding = xb_block_outstanding(o->window),
				     .op = o->op,
				     .verbose = o->verbose};
	if ((status = check_keys(s->t->name, s->t->keys, o->keys, o->key_count, error)))
		return status;
	s->buffer_bytes = xb_block_buffer_bytes(largest);
	s->buffer =
		mmap(NULL, 2 * s->buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->buffer == MAP_FAILED)
		return xb_fail(error, XB_E_RESOURCE, "no memory for 2 x %zu bytes", s->buffer_bytes);
	s->context = area(s->t->context_bytes);
	s->send_region = area(s->t->region_bytes);
	s->recv_region = area(s->t->region_bytes);
	if ((status = s->t->open(s->context, &s->setup, error)) ||
	    (status = s->t->memory(s->context, s->buffer, s->buffer_bytes, s->send_region, error)) ||
	    (status = s->t->memory(s->context, s->buffer + s->buffer_bytes, s->buffer_bytes, s->recv_region,
				   error)))
		return status;
	return 0;
}

/* One endpoint's address for every peer and its regions, as exchanged. */
struct card {
	int32_t status;
	uint32_t address_bytes[OOB_MOST_ENDPOINTS], region_bytes[2];
	unsigned char address[OOB_MOST_ENDPOINTS][XB_ADDRESS_MAX];
	unsigned char region[2][XB_ADDRESS_MAX];
};

static int fill_card(struct side *s, struct card *card, struct xb_error *error)
{
	void *regions[] = {s->send_region, s->recv_region};

	for (uint32_t peer = 0; peer < s->oob.endpoints; peer++) {
		size_t bytes = XB_ADDRESS_MAX;
		int status = peer == s->oob.endpoint
				     ? (int)(bytes = 0)
				     : s->t->address(s->context, peer, card->address[peer], &bytes, error);
		if (status)
			return status;
		card->address_bytes[peer] = (uint32_t)bytes;
	}
	for (int i = 0; i < 2 && s->o->op != XB_OP_SEND; i++) {
		size_t bytes = XB_ADDRESS_MAX;
		int status = s->t->export_region(s->context, regions[i], card->region[i], &bytes, error);
		if (status)
			return status;
		card->region_bytes[i] = (uint32_t)bytes;
	}
	return 0;
}

static int attach(struct side *s, struct link *link, const struct xb_decorator *d,
		  const struct xb_key_value *keys, size_t count, struct xb_error *error)
{
	struct xb_setup setup = s->setup;
	int status = check_keys(d->name, d->keys, keys, count, error);

	setup.keys = keys;
	setup.key_count = count;
	if (!status)
		status = d->attach(&link->endpoint, &setup, &link->decorator_state[link->decorator_count],
				   error);
	if (!status)
		link->decorators[link->decorator_count++] = d;
	return status;
}

static int decorate(struct side *s, struct link *link, struct xb_error *error)
{
	char copy[4096], file[4200];
	int status = 0;

	if (s->o->fault_count) {
		snprintf(copy, sizeof copy, "%s", s->o->plugin);
		snprintf(file, sizeof file, "%s/libxb-fault.so", dirname(copy));
		const struct xb_decorator *fault = load(file, "xb_decorator", error);
		status = fault ? attach(s, link, fault, s->o->fault, s->o->fault_count, error)
			       : XB_E_UNAVAILABLE;
	}
	if (!status && s->o->trace) {
		struct xb_key_value key = {"trace", s->o->trace};
		status = attach(s, link, &xb_trace_decorator, &key, 1, error);
	}
	return status;
}

static int connect_peer(struct side *s, uint32_t peer, const struct card *card, struct xb_description *d,
			struct xb_error *error)
{
	struct link *link = &s->links[peer];
	void *remote[2] = {NULL, NULL};
	int status;

	link->conn = area(s->t->connection_bytes);
	status = s->t->connect(s->context, peer, card->address[s->oob.endpoint],
			       card->address_bytes[s->oob.endpoint], link->conn, error);
	for (int i = 0; i < 2 && s->o->op != XB_OP_SEND && !status; i++) {
		remote[i] = area(s->t->remote_bytes);
		status = s->t->import_region(link->conn, card->region[i], card->region_bytes[i], remote[i],
					     error);
	}
	memset(d, 0, sizeof *d);
	if (!status)
		status = s->t->describe(s->context, link->conn, d, error);
	if (status)
		return status;
	link->endpoint = (struct xb_endpoint){
		.transport = s->t,
		.context = s->context,
		.conn = link->conn,
		.prepare = s->t->prepare,
		.explain = s->t->explain,
		.request_bytes = s->t->request_bytes,
		.caps = d->caps,
		.max_message_bytes = d->max_message_bytes,
		.abort = &abort_flag,
		.timer = &s->timer,
		.phase = &xb_block_phase,
		.send_buffer = s->buffer,
		.recv_buffer = s->buffer + s->buffer_bytes,
		.buffer_bytes = s->buffer_bytes,
		.send_region = s->send_region,
		.recv_region = s->recv_region,
		.remote_send = remote[0],
		.remote_recv = remote[1],
		.samples = calloc(XB_MAX_ITERATIONS + 1, sizeof(uint64_t)),
		.stamps = calloc(2 * (XB_MAX_ITERATIONS + 1), sizeof(uint64_t)),
	};
	status = decorate(s, link, error);
	link->endpoint.requests = area(link->endpoint.request_bytes * XB_BLOCK_REQUESTS);
	return status;
}

static void print_description(const struct side *s, const char *when, const struct xb_description *d)
{
	static const char *const caps[] = {"send",	"sync_send",  "ready_send", "put",     "get",
					   "both_ways", "no_payload", "put_watch",  "blocking"};

	printf("# endpoint %" PRIu32
	       " (%s): %s; %s %s; resolved \"%s\"; device \"%s\"; path %s; max %zu; eager %zu; caps",
	       s->oob.endpoint, when, s->t->name, d->library, d->version, d->resolved, d->device,
	       d->path_ok ? "ok" : "NOT OK", d->max_message_bytes, d->eager_bytes);
	for (unsigned i = 0; i < sizeof caps / sizeof caps[0]; i++)
		if (d->caps & (1u << i))
			printf(" %s", caps[i]);
	printf("%s%s\n", d->note[0] ? "; note: " : "", d->note);
	fflush(stdout);
}

/* Everybody tells how a step went; 0 if it went well everywhere. */
static int together(struct side *s, int status, const struct xb_error *error, const char *what)
{
	int32_t mine = status, all[OOB_MOST_ENDPOINTS];

	if (status)
		fprintf(stderr, "endpoint %" PRIu32 ": %s failed (%s): %s\n", s->oob.endpoint, what,
			xb_status_name(status), error->text);
	if (oob_gather(&s->oob, &mine, sizeof mine, all))
		return -1;
	for (uint32_t e = 0; e < s->oob.endpoints; e++)
		if (all[e])
			return -1;
	return 0;
}

static int bring_up(struct side *s)
{
	static struct card mine, all[OOB_MOST_ENDPOINTS];
	struct xb_error error = {0, ""};
	struct xb_description d;
	int status;

	status = open_side(s, &error);
	if (together(s, status, &error, "open"))
		return status == XB_E_UNSUPPORTED || status == XB_E_UNAVAILABLE ? EXIT_NOT_HERE : 1;
	status = fill_card(s, &mine, &error);
	if (together(s, status, &error, "address") || oob_gather(&s->oob, &mine, sizeof mine, all))
		return 1;
	/* every pair in the same order, so that a connect that waits for the other side cannot dead-lock */
	for (uint32_t a = 0; a < s->oob.endpoints && !status; a++)
		for (uint32_t b = a + 1; b < s->oob.endpoints && !status; b++) {
			if (s->oob.endpoint != a && s->oob.endpoint != b)
				continue;
			uint32_t peer = s->oob.endpoint == a ? b : a;
			status = connect_peer(s, peer, &all[peer], &d, &error);
			if (!status)
				print_description(s, "connected", &d);
		}
	return together(s, status, &error, "connect") ? 1 : 0;
}

/* --- blocks */

static void take_report(struct link *link, struct outcome *outcome)
{
	for (size_t i = 0; i < link->decorator_count; i++) {
		json_t *report = link->decorators[i]->report(link->decorator_state[i]);
		char *text = report ? json_dumps(report, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
		if (text)
			snprintf(outcome->report, sizeof outcome->report, "%s", text);
		free(text);
		json_decref(report);
	}
}

static void run_block(struct side *s, uint32_t peer, const struct xb_block *block, struct outcome *outcome)
{
	static struct xb_block_result result;
	struct xb_error error = {0, ""};
	struct link *link = &s->links[peer];
	uint32_t ways = block->bench == XB_BENCH_BIBW ? 2 : 1;

	outcome->status = xb_block_run(&link->endpoint, block, &result, &error);
	outcome->verified = result.verified;
	outcome->iterations = result.iterations;
	outcome->warmup = result.warmup;
	outcome->checked = result.checked_messages;
	outcome->median_ns = result.median_ns;
	outcome->iteration_ns = result.iterations ? (double)result.elapsed_ns / (double)result.iterations : 0;
	outcome->bandwidth =
		result.median_ns > 0 ? (double)ways * (double)block->size_bytes / result.median_ns * 1e3 : 0;
	snprintf(outcome->text, sizeof outcome->text, "%s", error.text);
	take_report(link, outcome);
}

static void print_block(const struct xb_block *block, uint32_t a, uint32_t b, const struct outcome *x,
			const struct outcome *y, int no_payload)
{
	printf("%-8s %-5s %" PRIu32 "-%" PRIu32 " %10zu B %12.3f us %10.1f MB/s  n %-7" PRIu64 " of %.4g us"
	       " warm-up %-5" PRIu64 " checked %" PRIu64 "+%-6" PRIu64 " %s\n",
	       xb_bench_name(block->bench), xb_op_name(block->op), a, b, block->size_bytes,
	       x->median_ns / 1e3, x->bandwidth, x->iterations, x->iteration_ns / 1e3, x->warmup, x->checked,
	       y->checked,
	       x->status || y->status	    ? "FAILED"
	       : no_payload		    ? "nothing to verify"
	       : x->verified && y->verified ? "verified"
					    : "NOT VERIFIED");
	if (x->status)
		printf("  endpoint %" PRIu32 ": %s: %s\n", a, xb_status_name(x->status), x->text);
	if (y->status)
		printf("  endpoint %" PRIu32 ": %s: %s\n", b, xb_status_name(y->status), y->text);
	if (x->report[0])
		printf("  endpoint %" PRIu32 " reports %s\n", a, x->report);
	if (y->report[0])
		printf("  endpoint %" PRIu32 " reports %s\n", b, y->report);
	fflush(stdout);
}

/* Returns 1 when the connection is still usable, 0 when the run is over. */
static int exercise_pair(struct side *s, uint32_t a, uint32_t b, enum xb_bench bench, size_t size,
			 int *failed, int *skipped)
{
	static uint64_t nonce = 0x5eed;
	static struct outcome mine, all[OOB_MOST_ENDPOINTS];
	int active = s->oob.endpoint == a || s->oob.endpoint == b, no_payload;
	uint32_t peer = s->oob.endpoint == a ? b : a;
	struct xb_block block = {.bench = bench,
				 .op = s->o->op,
				 .size_bytes = size,
				 .window = s->o->window,
				 .iterations = s->o->iterations,
				 .warmup = s->o->warmup,
				 .target_ns = s->o->target_ns,
				 .nonce = nonce,
				 .initiator = s->oob.endpoint == a,
				 .deadline = arm};

	nonce++;
	memset(&mine, 0, sizeof mine);
	if (active)
		run_block(s, peer, &block, &mine);
	if (oob_gather(&s->oob, &mine, sizeof mine, all)) {
		if (mine.status)
			fprintf(stderr, "endpoint %" PRIu32 ": %s %zu B: %s: %s\n", s->oob.endpoint,
				xb_bench_name(bench), size, xb_status_name(mine.status), mine.text);
		return 0;
	}
	if (all[a].status == XB_E_UNSUPPORTED && all[b].status == XB_E_UNSUPPORTED) {
		if (active && block.initiator)
			printf("%-8s %-5s %zu B skipped: %s\n", xb_bench_name(bench), xb_op_name(block.op),
			       size, mine.text);
		++*skipped;
		return 1;
	}
	no_payload = active && (s->links[peer].endpoint.caps & XB_CAP_NO_PAYLOAD) != 0;
	if (active && block.initiator)
		print_block(&block, a, b, &all[a], &all[b], no_payload);
	if (all[a].status || all[b].status)
		*failed = 1;
	if (active && !no_payload && !(all[a].verified && all[b].verified))
		*failed = 1;
	/* after a wrong payload both sides are still in step */
	return (!all[a].status || all[a].status == XB_E_CORRUPT) &&
	       (!all[b].status || all[b].status == XB_E_CORRUPT) && !atomic_load(&abort_flag);
}

static int exercise(struct side *s)
{
	const struct options *o = s->o;
	int failed = 0, skipped = 0, alive = 1, ran = 0;

	for (size_t i = 0; i < o->bench_count && alive; i++)
		for (size_t k = 0; k < o->size_count && alive; k++)
			for (uint32_t a = 0; a < s->oob.endpoints && alive; a++)
				for (uint32_t b = a + 1; b < s->oob.endpoints && alive; b++) {
					alive = exercise_pair(s, a, b, o->benches[i], o->sizes[k], &failed,
							      &skipped);
					ran++;
				}
	if (alive && ran == skipped) {
		fprintf(stderr, "exercise: nothing could be run\n");
		failed = 1;
	}
	return failed || !alive;
}

static void pin(const struct options *o, uint32_t endpoint)
{
	cpu_set_t set;
	if (!o->cpu_count)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)o->cpus[endpoint % (uint32_t)o->cpu_count], &set);
	if (sched_setaffinity(0, sizeof set, &set))
		fprintf(stderr, "exercise: cannot pin endpoint %" PRIu32 ": %s\n", endpoint, strerror(errno));
}

int side_run(const struct options *o, uint32_t endpoint, uint32_t endpoints, int fd)
{
	static struct side s;
	struct sigaction stop = {.sa_handler = on_stop};
	struct xb_description d;
	struct xb_error error = {0, ""};
	pthread_t thread;
	int failed;

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	pthread_create(&thread, NULL, watch, (void *)(uintptr_t)o);
	s.o = o;
	s.oob = (struct oob){.endpoint = endpoint, .endpoints = endpoints, .fd = fd, .folder = o->folder};
	pin(o, endpoint);
	xb_timer_start(&s.timer);
	if (endpoint == 0)
		printf("# timer %s: a read costs %.1f ns, resolution %.1f ns\n",
		       xb_timer_source_name(s.timer.source), s.timer.cost_ns, s.timer.resolution_ns);
	failed = bring_up(&s);
	if (!failed) {
		failed = exercise(&s);
		for (uint32_t peer = 0; peer < endpoints && !failed; peer++)
			if (s.links[peer].conn) {
				memset(&d, 0, sizeof d);
				if (s.t->describe(s.context, s.links[peer].conn, &d, &error)) {
					fprintf(stderr, "describe failed: %s\n", error.text);
					failed = 1;
				} else {
					print_description(&s, "after blocks", &d);
				}
			}
	}
	for (uint32_t peer = 0; peer < endpoints; peer++)
		for (size_t i = s.links[peer].decorator_count; i-- > 0;)
			s.links[peer].decorators[i]->detach(s.links[peer].decorator_state[i]);
	oob_bye(&s.oob);
	if (s.context)
		s.t->close(s.context, !failed);
	return failed;
}

static void print_path(void *user, const char *path, const char *text, int usable, const char *reason,
		       const char *remedy)
{
	(void)user;
	printf("path \"%s\": %s%s%s%s%s\n", path, text ? text : "",
	       usable ? "" : "; not usable: ", usable || !reason ? "" : reason,
	       usable ? "" : "; remedy: ", usable || !remedy ? "" : remedy);
}

static void print_library(void *user, const char *library, const char *version)
{
	(void)user;
	printf("library %s %s\n", library, version);
}

int side_probe(const struct options *o)
{
	const struct xb_probe_sink sink = {NULL, print_path, print_library};
	struct xb_error error = {0, ""};
	const struct xb_transport *t = load(o->plugin, "xb_transport", &error);
	int status = t ? t->probe(&sink, &error) : XB_E_UNAVAILABLE;

	if (status)
		fprintf(stderr, "probe failed: %s\n", error.text);
	return status ? 1 : 0;
}

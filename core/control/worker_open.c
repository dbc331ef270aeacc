/* SPDX-License-Identifier: BSD-3-Clause */
/* Worker commands that bring an endpoint up and down. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "worker_state.h"
#include "../cli/config.h"

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static json_int_t number_of(json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static size_t keys_from(json_t *object, struct xb_key_value *keys, size_t capacity)
{
	const char *key;
	json_t *value;
	size_t count = 0;
	json_object_foreach(object, key, value)
	{
		if (count < capacity && json_is_string(value))
			keys[count++] = (struct xb_key_value){key, json_string_value(value)};
	}
	return count;
}

static int check_keys(const char *who, const struct xb_key *known, const struct xb_key_value *given,
		      size_t count, struct xb_error *error)
{
	char list[512] = "";
	for (const struct xb_key *k = known; k && k->key; k++) {
		size_t used = strlen(list);
		snprintf(list + used, sizeof list - used, "%s%s=%s", used ? ", " : "", k->key, k->values);
	}
	for (size_t i = 0; i < count; i++) {
		const struct xb_key *k = known;
		while (k && k->key && strcmp(k->key, given[i].key))
			k++;
		if (!k || !k->key)
			return xb_fail(error, XB_E_USAGE, "%s has no key \"%s\"; it takes: %s", who,
				       given[i].key, *list ? list : "none");
	}
	return 0;
}

static void *private_area(size_t count, size_t bytes)
{
	size_t total = (count * bytes + 63) / 64 * 64;
	void *area = aligned_alloc(64, total ? total : 64);
	if (area)
		memset(area, 0, total ? total : 64);
	return area;
}

static json_t *hex_string(const void *bytes, size_t count)
{
	char *hex = malloc(2 * count + 1);
	if (!hex)
		return NULL;
	sodium_bin2hex(hex, 2 * count + 1, bytes, count);
	json_t *text = json_string(hex);
	free(hex);
	return text;
}

static int from_hex(const char *hex, unsigned char *bytes, size_t capacity, size_t *count)
{
	return sodium_hex2bin(bytes, capacity, hex, strlen(hex), NULL, count, NULL);
}

static int allocate_memory(struct xb_worker *w, struct xb_error *error)
{
	const struct xb_transport *t = w->transport;
	size_t largest = (size_t)number_of(w->open_request, "largest_bytes");
	if (largest < w->setup.max_message_bytes)
		largest = w->setup.max_message_bytes;
	w->buffer_bytes = xb_block_buffer_bytes(largest);
	/* one mapping: send half, receive half; pages come into being when a block of that size fills them */
	void *map =
		mmap(NULL, 2 * w->buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	w->samples = malloc((XB_MAX_ITERATIONS + 1) * sizeof *w->samples);
	w->stamps = malloc(2 * (XB_MAX_ITERATIONS + 1) * sizeof *w->stamps);
	w->requests = private_area(XB_BLOCK_REQUESTS, t->request_bytes);
	w->send_region = private_area(1, t->region_bytes);
	w->recv_region = private_area(1, t->region_bytes);
	w->links = calloc(w->setup.endpoints, sizeof *w->links);
	if (map == MAP_FAILED || !w->samples || !w->stamps || !w->requests || !w->send_region ||
	    !w->recv_region || !w->links)
		return xb_fail(error, XB_E_RESOURCE,
			       "no memory for messages of %zu bytes (2 buffers of %zu bytes a worker); use a "
			       "smaller -s",
			       w->setup.max_message_bytes, w->buffer_bytes);
	w->buffer = map;
	return 0;
}

static int export_regions(struct xb_worker *w, json_t *reply, struct xb_error *error)
{
	unsigned char blob[XB_ADDRESS_MAX];
	const struct {
		const char *name;
		void *region;
	} both[] = {{"send_region", w->send_region}, {"recv_region", w->recv_region}};
	for (size_t i = 0; i < 2; i++) {
		size_t bytes = sizeof blob;
		int status = w->transport->export_region(w->context, both[i].region, blob, &bytes, error);
		if (status)
			return status;
		json_object_set_new(reply, both[i].name, hex_string(blob, bytes));
	}
	return 0;
}

/* The CPU that was given, or (-2) one of those that go well with the other endpoints on this host. */
static int take_cpu(struct xb_worker *w, json_t *request, json_t *reply, struct xb_error *error)
{
	int cpus[XB_MAX_ENDPOINTS];
	json_int_t cpu = number_of(request, "cpu"), seat = number_of(request, "seat"),
		   seats = number_of(request, "seats");

	if (cpu == -2 && seats > 0 && seats <= XB_MAX_ENDPOINTS && seat >= 0 && seat < seats) {
		int scarce = xb_topology_choose((size_t)seats, cpus, error);
		if (scarce < 0)
			return scarce;
		cpu = cpus[seat];
		if (scarce)
			json_object_set_new(reply, "few_cores", json_string(error->text));
		json_object_set_new(reply, "cpu", json_integer(cpu));
	}
	w->cpu = (int)cpu;
	return cpu >= 0 ? xb_topology_pin((int)cpu, error) : 0;
}

/* One address for all peers, or where they differ a list by peer. */
static int tell_addresses(struct xb_worker *w, json_t *reply, struct xb_error *error)
{
	unsigned char address[XB_ADDRESS_MAX];
	json_t *all = json_array();
	int differ = 0;

	for (uint32_t peer = 0; peer < w->setup.endpoints; peer++) {
		size_t bytes = sizeof address;
		if ((int)peer == w->endpoint) {
			json_array_append_new(all, json_null());
			continue;
		}
		int status = w->transport->address(w->context, peer, address, &bytes, error);
		if (status) {
			json_decref(all);
			return status;
		}
		json_array_append_new(all, hex_string(address, bytes));
		differ |= !json_equal(json_array_get(all, peer), json_array_get(all, w->endpoint ? 0 : 1)) &&
			  (peer > 1 || w->endpoint == 0);
	}
	if (differ)
		json_object_set(reply, "addresses", all);
	else
		json_object_set(reply, "address", json_array_get(all, w->endpoint ? 0 : 1));
	json_decref(all);
	return 0;
}

int xb_worker_open(struct xb_worker *w, json_t *request, json_t *reply, struct xb_error *error)
{
	json_t *timer = json_object_get(request, "timer");
	const char *name = text_of(request, "transport");
	int status;

	w->open_request = json_incref(request);
	if ((status = take_cpu(w, request, reply, error)))
		return status;
	/* the controller's calibration holds on its own machine; elsewhere it sends none */
	if (json_is_object(timer))
		xb_timer_adopt(&w->timer, text_of(timer, "source"),
			       json_number_value(json_object_get(timer, "ns_per_tick")));
	else if (w->timer.ns_per_tick <= 0)
		xb_timer_start(&w->timer);
	if ((status = xb_plugin_load(w->plugin_dir, name, &w->transport, error)))
		return status;
	w->setup = (struct xb_setup){.abort = &w->watch.abort,
				     .endpoint = (uint32_t)w->endpoint,
				     .endpoints = (uint32_t)number_of(request, "endpoints"),
				     .path = text_of(request, "path"),
				     .keys = w->keys,
				     .max_message_bytes = (size_t)number_of(request, "max_message_bytes"),
				     .max_outstanding = (uint32_t)number_of(request, "max_outstanding"),
				     .op = (enum xb_op)number_of(request, "op"),
				     .sync_sends = (int)number_of(request, "sync_sends"),
				     .verbose = (int)number_of(request, "verbose")};
	w->setup.key_count = keys_from(json_object_get(request, "keys"), w->keys, 64);
	w->fault_key_count = keys_from(json_object_get(request, "fault"), w->fault_keys, 64);
	w->default_patience_ns = (uint64_t)number_of(request, "patience_ms") * 1000000u;
	if ((status = check_keys(name, w->transport->keys, w->keys, w->setup.key_count, error)) ||
	    (status = allocate_memory(w, error)))
		return status;
	w->context = private_area(1, w->transport->context_bytes);
	w->opened = 1;
	if ((status = w->transport->open(w->context, &w->setup, error)) ||
	    (status = w->transport->memory(w->context, w->buffer, w->buffer_bytes, w->send_region, error)) ||
	    (status = w->transport->memory(w->context, w->buffer + w->buffer_bytes, w->buffer_bytes,
					   w->recv_region, error)))
		return status;
	if (w->setup.op != XB_OP_SEND && (status = export_regions(w, reply, error)))
		return status;
	if ((status = tell_addresses(w, reply, error)))
		return status;
	json_object_set_new(reply, "layer", json_integer(w->transport->layer));
	if (!json_is_object(timer))
		json_object_set_new(reply, "timer",
				    json_pack("{s:s, s:f, s:f}", "source",
					      xb_timer_source_name(w->timer.source), "cost_ns",
					      w->timer.cost_ns, "resolution_ns", w->timer.resolution_ns));
	w->counters = xb_counters_open("/sys");
	return 0;
}

static int attach(struct xb_worker *w, struct xb_worker_link *link, const struct xb_decorator *decorator,
		  const struct xb_key_value *keys, size_t count, struct xb_error *error)
{
	struct xb_setup setup = w->setup;
	setup.keys = keys;
	setup.key_count = count;
	int status = check_keys(decorator->name, decorator->keys, keys, count, error);
	if (status)
		return status;
	status = decorator->attach(&link->endpoint, &setup, &link->decorator_state[link->decorators], error);
	if (!status)
		link->decorator[link->decorators++] = decorator;
	return status;
}

/* fault goes next to the backend, trace outermost: it shows what the engine asked for. */
static int decorate(struct xb_worker *w, struct xb_worker_link *link, struct xb_error *error)
{
	const char *trace = text_of(w->open_request, "trace");
	int status = 0;
	if (w->fault_key_count) {
		const struct xb_decorator *fault;
		status = xb_plugin_load_decorator(w->plugin_dir, "fault", &fault, error);
		if (!status)
			status = attach(w, link, fault, w->fault_keys, w->fault_key_count, error);
	}
	if (!status && *trace) {
		const struct xb_key_value key = {xb_trace_decorator.keys[0].key, trace};
		status = attach(w, link, &xb_trace_decorator, &key, 1, error);
	}
	if (!status && link->decorators) {
		/* decorators need more room per request */
		void *requests = private_area(XB_BLOCK_REQUESTS, link->endpoint.request_bytes);
		if (!requests)
			return xb_fail(error, XB_E_RESOURCE, "out of memory for requests");
		link->endpoint.requests = requests;
	}
	return status;
}

static int import_regions(struct xb_worker *w, struct xb_worker_link *link, json_t *request,
			  struct xb_error *error)
{
	unsigned char blob[XB_ADDRESS_MAX];
	const struct {
		const char *name;
		void **remote;
	} both[] = {{"send_region", &link->remote_send}, {"recv_region", &link->remote_recv}};
	for (size_t i = 0; i < 2; i++) {
		size_t bytes;
		if (from_hex(text_of(request, both[i].name), blob, sizeof blob, &bytes))
			return xb_fail(error, XB_E_PEER, "the peer's memory region did not arrive whole");
		*both[i].remote = private_area(1, w->transport->remote_bytes);
		int status = w->transport->import_region(link->conn, blob, bytes, *both[i].remote, error);
		if (status)
			return status;
	}
	link->endpoint.remote_send = link->remote_send;
	link->endpoint.remote_recv = link->remote_recv;
	return 0;
}

/* What differs between two ends more often than it should. */
static void add_place(struct xb_worker *w, json_t *description, const struct xb_description *d)
{
	const char *device = d->device;
	int mtu = d->mtu_bytes ? (int)d->mtu_bytes : xb_link_mtu("/sys", device),
	    node = xb_link_numa("/sys", device), cpu_node = xb_topology_numa_of_cpu(w->cpu);
	if (mtu > 0)
		json_object_set_new(description, "mtu", json_integer(mtu));
	if (node >= 0)
		json_object_set_new(description, "device_numa", json_integer(node));
	if (cpu_node >= 0)
		json_object_set_new(description, "cpu_numa", json_integer(cpu_node));
}

void xb_worker_describe(struct xb_worker *w, struct xb_worker_link *link, json_t *reply)
{
	struct xb_description d;
	struct xb_error error = {0};
	memset(&d, 0, sizeof d);
	if (w->transport->describe(w->context, link->conn, &d, &error)) {
		json_object_set_new(reply, "describe_error", json_string(error.text));
		return;
	}
	link->endpoint.caps = d.caps;
	link->endpoint.max_message_bytes = d.max_message_bytes;
	json_t *description =
		json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:s}", "library", d.library, "version",
			  d.version, "resolved", d.resolved, "device", d.device, "caps", (json_int_t)d.caps,
			  "max_message_bytes", (json_int_t)d.max_message_bytes, "eager_bytes",
			  (json_int_t)d.eager_bytes, "path_ok", d.path_ok, "note", d.note);
	if (*d.device) {
		add_place(w, description, &d);
		json_object_set_new(description, "counted",
				    json_boolean(w->counters && xb_counters_know(w->counters, d.device)));
	}
	json_object_set_new(reply, "description", description);
}

int xb_worker_connect(struct xb_worker *w, json_t *request, json_t *reply, struct xb_error *error)
{
	unsigned char address[XB_ADDRESS_MAX];
	size_t bytes, peer = (size_t)number_of(request, "peer");

	if (!w->opened || peer >= w->setup.endpoints || (int)peer == w->endpoint ||
	    from_hex(text_of(request, "address"), address, sizeof address, &bytes))
		return xb_fail(error, XB_E_USAGE, "connect: no such peer, or its address is damaged");
	struct xb_worker_link *link = &w->links[peer];
	link->conn = private_area(1, w->transport->connection_bytes);
	if (!link->conn)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for a connection");
	int status = w->transport->connect(w->context, (uint32_t)peer, address, bytes, link->conn, error);
	if (status)
		return status;
	link->endpoint = (struct xb_endpoint){.transport = w->transport,
					      .context = w->context,
					      .conn = link->conn,
					      .prepare = w->transport->prepare,
					      .explain = w->transport->explain,
					      .request_bytes = w->transport->request_bytes,
					      .abort = &w->watch.abort,
					      .timer = &w->timer,
					      .phase = &xb_block_phase,
					      .send_buffer = w->buffer,
					      .recv_buffer = w->buffer + w->buffer_bytes,
					      .buffer_bytes = w->buffer_bytes,
					      .send_region = w->send_region,
					      .recv_region = w->recv_region,
					      .requests = w->requests,
					      .samples = w->samples,
					      .stamps = w->stamps};
	xb_worker_describe(w, link, reply);
	if (w->setup.op != XB_OP_SEND && (status = import_regions(w, link, request, error)))
		return status;
	if ((status = decorate(w, link, error)))
		return status;
	link->connected = 1;
	xb_watch_note_artifacts(&w->watch, w->started_s - 1);
	json_t *artifacts = json_array();
	for (size_t i = 0; i < w->watch.artifact_count; i++)
		json_array_append_new(artifacts, json_string(w->watch.artifacts[i]));
	json_object_set_new(reply, "artifacts", artifacts);
	return 0;
}

int xb_worker_close(struct xb_worker *w, int clean)
{
	if (!w->opened)
		return 0;
	w->opened = 0;
	for (uint32_t p = 0; p < w->setup.endpoints; p++)
		for (size_t i = w->links[p].decorators; i-- > 0;)
			w->links[p].decorator[i]->detach(w->links[p].decorator_state[i]);
	w->transport->close(w->context, clean);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport contract over TCP sockets; see README.md of this folder for the mapping. */
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tcp.h"

#define SETTLE_MS 3000 /* IPv6 duplicate address detection of a fresh address takes one or two seconds */

static const struct xb_key tcp_keys[] = {
	{"poll", "spin|block", "how a waiting endpoint waits: busy, or asleep in the kernel (spin)"},
	{"sndbuf", "SIZE", "SO_SNDBUF (the kernel tunes it)"},
	{"rcvbuf", "SIZE", "SO_RCVBUF (the kernel tunes it)"},
	{"nodelay", "0|1", "TCP_NODELAY (1)"},
	{"family", "4|6", "only IPv4 or only IPv6 (both, IPv4 first)"},
	{"congestion", "NAME", "TCP_CONGESTION (the system's)"},
	{NULL, NULL, NULL},
};

/* --- keys */

static int choose(const struct xb_setup *setup, const char *key, const char *const *words, int fallback,
		  struct xb_error *error)
{
	const char *value = xb_setup_value(setup, key, words[fallback]);
	for (int i = 0; words[i]; i++)
		if (!strcmp(value, words[i]))
			return i;
	return xb_fail(error, XB_E_USAGE, "asked for tcp with %s=%s; allowed are %s and %s", key, value,
		       words[0], words[1]);
}

/* 64K, 4M ...; 0 if the key is not given. */
static int size_key(const struct xb_setup *setup, const char *key, int *bytes, struct xb_error *error)
{
	const char *value = xb_setup_value(setup, key, NULL);
	char *end;
	*bytes = 0;
	if (!value)
		return 0;
	errno = 0;
	unsigned long long number = strtoull(value, &end, 10);
	unsigned shift = *end == 'K' || *end == 'k' ? 10 : *end == 'M' || *end == 'm' ? 20 : 0;
	if (shift)
		end++;
	if (value[0] < '0' || value[0] > '9' || *end || errno || number == 0 ||
	    number > (INT_MAX / 2u) >> shift)
		return xb_fail(error, XB_E_USAGE,
			       "asked for tcp with %s=%s; a size from 1 byte to 1023M is expected, such as "
			       "256K or 4M",
			       key, value);
	*bytes = (int)(number << shift);
	return 0;
}

static int read_keys(struct tcp_context *context, struct xb_error *error)
{
	static const char *const polls[] = {"spin", "block", NULL};
	static const char *const switches[] = {"0", "1", NULL};
	static const char *const families[] = {"4", "6", NULL};
	const struct xb_setup *setup = context->setup;
	int poll = choose(setup, "poll", polls, 0, error);
	int nodelay = poll < 0 ? poll : choose(setup, "nodelay", switches, 1, error);
	int family = nodelay < 0 ? nodelay : choose(setup, "family", families, 0, error);
	int status;

	if (family < 0)
		return family;
	context->block = poll == 1;
	context->nodelay = nodelay == 1;
	context->family = !xb_setup_value(setup, "family", NULL) ? 0 : family == 0 ? 4 : 6;
	context->congestion = xb_setup_value(setup, "congestion", NULL);
	status = size_key(setup, "sndbuf", &context->sndbuf, error);
	return status ? status : size_key(setup, "rcvbuf", &context->rcvbuf, error);
}

/* --- open */

static void identify_host(struct tcp_context *context)
{
	char text[64] = "";
	struct stat st;
	unsigned nibbles = 0;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f) {
		if (!fgets(text, sizeof text, f))
			text[0] = 0;
		fclose(f);
	}
	for (const char *at = text; *at && nibbles < 32; at++) {
		int digit = *at >= '0' && *at <= '9'   ? *at - '0'
			    : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10
						       : -1;
		if (digit < 0)
			continue;
		context->boot_id[nibbles / 2] |= (unsigned char)(nibbles % 2 ? digit : digit << 4);
		nibbles++;
	}
	if (!stat("/proc/self/ns/net", &st))
		context->netns = st.st_ino;
}

static bool drop_tentative(struct tcp_inventory *inventory)
{
	size_t usable = 0;
	for (size_t i = 0; i < inventory->address_count; i++)
		usable += !inventory->addresses[i].tentative;
	if (!usable)
		return false;
	usable = 0;
	for (size_t i = 0; i < inventory->address_count; i++)
		if (!inventory->addresses[i].tentative)
			inventory->addresses[usable++] = inventory->addresses[i];
	inventory->address_count = usable;
	return true;
}

/* The addresses of the path; waits for an IPv6 address that the kernel still checks for duplicates. */
static int find_addresses(struct tcp_context *context, struct xb_error *error)
{
	for (int waited_ms = 0;; waited_ms += 50) {
		int status = tcp_inventory_read(&context->inventory, error);
		if (!status)
			status = tcp_inventory_select(&context->inventory, context->setup->path,
						      context->family, error);
		if (status || drop_tentative(&context->inventory))
			return status;
		if (atomic_load(context->setup->abort))
			return xb_fail(error, XB_E_ABORTED, "gave up waiting for an IPv6 address");
		if (waited_ms >= SETTLE_MS)
			return xb_fail(error, XB_E_UNAVAILABLE,
				       "asked for tcp%s%s; its address is still tentative after %d ms (IPv6 "
				       "duplicate "
				       "address detection); wait for it, or add the address with 'nodad'",
				       context->setup->path[0] ? ":" : "", context->setup->path, waited_ms);
		tcp_inventory_free(&context->inventory);
		usleep(50 * 1000);
	}
}

static int tcp_open(void *private, const struct xb_setup *setup, struct xb_error *error)
{
	struct tcp_context *context = private;
	int status;

	context->setup = setup;
	for (size_t i = 0; i < TCP_MAX_CALLERS; i++)
		context->callers[i].fd = -1;
	context->open = true;
	if (setup->op != XB_OP_SEND)
		return xb_fail(
			error, XB_E_UNSUPPORTED,
			"asked for --op %s over tcp; sockets have no one-sided operations; use --op send",
			setup->op == XB_OP_READ		? "read"
			: setup->op == XB_OP_WRITE_POLL ? "write-poll"
							: "write");
	if ((status = read_keys(context, error)))
		return status;
	context->arrived = malloc(setup->endpoints * sizeof *context->arrived);
	if (!context->arrived)
		return xb_fail(error, XB_E_RESOURCE, "no memory for %u endpoints", setup->endpoints);
	for (uint32_t i = 0; i < setup->endpoints; i++)
		context->arrived[i][TCP_DATA] = context->arrived[i][TCP_ACKS] = -1;
	if (getrandom(context->token, sizeof context->token, 0) != (ssize_t)sizeof context->token ||
	    getrandom(context->reply, sizeof context->reply, 0) != (ssize_t)sizeof context->reply)
		return xb_fail(error, XB_E_SYSTEM, "cannot get random bytes: %s", strerror(errno));
	identify_host(context);
	status = find_addresses(context, error);
	return status ? status : tcp_listen(context, error);
}

static int tcp_memory(void *context, void *base, size_t bytes, void *region, struct xb_error *error)
{
	(void)context, (void)base, (void)bytes, (void)region, (void)error; /* sockets take any memory */
	return 0;
}

static int tcp_address(void *context, uint32_t peer, void *address, size_t *bytes, struct xb_error *error)
{
	(void)peer;
	return tcp_write_address(context, address, bytes, error);
}

static int tcp_connect_slot(void *private, uint32_t peer, const void *address, size_t bytes, void *conn,
			    struct xb_error *error)
{
	struct tcp_context *context = private;
	struct tcp_connection *c = conn;

	if (!c->context) { /* not a second try */
		c->next = context->connections;
		context->connections = c;
	}
	c->fd = c->ack_fd = -1;
	c->abort = context->setup->abort;
	c->context = context;
	return tcp_connect(context, peer, address, bytes, c, error);
}

static const struct xb_hot *tcp_prepare(void *conn, const struct xb_pattern *pattern, struct xb_error *error)
{
	struct tcp_connection *c = conn;
	if (pattern->op != XB_OP_SEND) {
		xb_fail(error, XB_E_UNSUPPORTED, "asked for a one-sided operation over tcp; use --op send");
		return NULL;
	}
	return tcp_hot_table(c->context->block, pattern);
}

/* --- describe */

static void describe_buffer(int fd, int option, const char *name, int asked, char *text, size_t bytes)
{
	int granted = 0;
	socklen_t length = sizeof granted;
	size_t used = strlen(text);
	if (!asked || getsockopt(fd, SOL_SOCKET, option, &granted, &length) || used >= bytes)
		return;
	/* the kernel doubles what is asked, for its own bookkeeping, and caps it */
	if (granted / 2 < asked)
		snprintf(text + used, bytes - used,
			 "; %s: asked %d, granted %d bytes (limit net.core.%cmem_max)", name, asked,
			 granted / 2, name[0] == 's' ? 'w' : 'r');
	else
		snprintf(text + used, bytes - used, "; %s %d bytes", name, granted / 2);
}

static bool path_has(const struct tcp_context *context, const char *interface)
{
	for (size_t i = 0; i < context->inventory.address_count; i++)
		if (!strcmp(context->inventory.addresses[i].interface, interface))
			return true;
	return false;
}

static void describe_connection(const struct tcp_context *context, const struct tcp_connection *c,
				struct xb_description *out)
{
	char local[TCP_ADDRESS_TEXT], remote[TCP_ADDRESS_TEXT], device[IF_NAMESIZE] = "",
								congestion[32] = "?";
	socklen_t bytes = sizeof congestion - 1;
	unsigned index = tcp_route_interface(c->fd, &c->local, &c->remote);

	if (index)
		if_indextoname(index, device);
	snprintf(out->device, sizeof out->device, "%s", device);
	snprintf(out->resolved, sizeof out->resolved, "tcp %s -> %s on %s, %s, %s",
		 tcp_address_text(&c->local, local), tcp_address_text(&c->remote, remote),
		 device[0] ? device : "an unknown interface", context->block ? "blocking" : "spinning",
		 context->nodelay ? "nodelay" : "Nagle's algorithm");
	if (getsockopt(c->fd, IPPROTO_TCP, TCP_CONGESTION, congestion, &bytes))
		strcpy(congestion, "?");
	out->path_ok = !context->setup->path[0] || path_has(context, device);
	if (!out->path_ok && c->same_host)
		snprintf(out->note, sizeof out->note,
			 "both ends are on this host, between whose addresses the kernel uses %s, never %s: "
			 "put the ends "
			 "on two hosts, or ask for tcp:lo",
			 device, context->setup->path);
	else if (!out->path_ok)
		snprintf(out->note, sizeof out->note,
			 "asked for %s, but the kernel routes to %s through %s: correct the routes, or allow "
			 "SO_BINDTODEVICE (CAP_NET_RAW)",
			 context->setup->path, remote,
			 device[0] ? device : "an interface that it does not tell");
	else
		snprintf(out->note, sizeof out->note, "congestion control %s", congestion);
	describe_buffer(c->fd, SO_SNDBUF, "sndbuf", context->sndbuf, out->note, sizeof out->note);
	describe_buffer(c->fd, SO_RCVBUF, "rcvbuf", context->rcvbuf, out->note, sizeof out->note);
}

static int tcp_describe(void *private, void *conn, struct xb_description *out, struct xb_error *error)
{
	const struct tcp_context *context = private;
	struct utsname system;

	(void)error;
	memset(out, 0, sizeof *out);
	uname(&system);
	snprintf(out->library, sizeof out->library, "Linux TCP");
	snprintf(out->version, sizeof out->version, "%.63s", system.release);
	out->caps = XB_CAP_SEND | XB_CAP_SYNC_SEND | XB_CAP_READY_SEND | XB_CAP_BOTH_WAYS;
	out->path_ok = 1;
	if (conn)
		describe_connection(context, conn, out);
	return 0;
}

static void tcp_explain(void *conn, struct xb_error *error)
{
	const struct tcp_connection *c = conn;
	char local[TCP_ADDRESS_TEXT], remote[TCP_ADDRESS_TEXT];
	const char *cause = c->failed_errno == EPROTO ? "the stream is out of step"
			    : c->failed_errno	      ? strerror(c->failed_errno)
						      : "the peer closed the connection";

	if (!c->failed_what) {
		xb_fail(error, XB_E_TRANSPORT, "the connection to endpoint %u has not failed", c->peer);
		return;
	}
	xb_fail(error, tcp_failure_status(c->failed_errno),
		"tcp: could not %s between %s and endpoint %u at %s: %s; see what the other end says, and "
		"whether it is "
		"still there",
		c->failed_what, tcp_address_text(&c->local, local), c->peer,
		tcp_address_text(&c->remote, remote), cause);
}

static void tcp_close(void *private, int clean)
{
	struct tcp_context *context = private;

	(void)clean; /* closing a socket never waits */
	if (!context->open)
		return;
	for (struct tcp_connection *c = context->connections; c; c = c->next) {
		if (c->fd >= 0)
			close(c->fd);
		if (c->ack_fd >= 0)
			close(c->ack_fd);
	}
	context->connections = NULL;
	tcp_listen_close(context);
	for (uint32_t i = 0; context->arrived && i < context->setup->endpoints; i++)
		for (int channel = TCP_DATA; channel <= TCP_ACKS; channel++)
			if (context->arrived[i][channel] >= 0)
				close(context->arrived[i][channel]);
	free(context->arrived);
	context->arrived = NULL;
	tcp_inventory_free(&context->inventory);
	context->open = false;
}

__attribute__((visibility("default"))) const struct xb_transport xb_transport = {
	.abi = XB_TRANSPORT_ABI,
	.name = "tcp",
	.summary = "TCP sockets of the kernel, over any network interface",
	.layer = XB_LAYER_FABRIC,
	.context_bytes = sizeof(struct tcp_context),
	.connection_bytes = sizeof(struct tcp_connection),
	.request_bytes = sizeof(struct tcp_request),
	.region_bytes = 64,
	.remote_bytes = 64,
	.keys = tcp_keys,
	.probe = tcp_probe,
	.open = tcp_open,
	.memory = tcp_memory,
	.address = tcp_address,
	.connect = tcp_connect_slot,
	.export_region = xb_unsupported_export,
	.import_region = xb_unsupported_import,
	.prepare = tcp_prepare,
	.describe = tcp_describe,
	.explain = tcp_explain,
	.close = tcp_close,
};

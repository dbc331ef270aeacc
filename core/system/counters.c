/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that the devices of this host have carried.
 *
 * Network interfaces come from /proc/net/dev, not from /sys/class/net: it shows the network namespace of the
 * reader, where sysfs shows that of whoever mounted it (wrong after `nsenter -n` or `unshare -n`), it needs
 * one open file for any number of interfaces, and it costs less (measured: 8 us for 4 interfaces either
 * way; 1.9 ms against 5 ms for 601). RDMA ports come from sysfs: the files are opened once.
 *
 * hw_counters are cached by the kernel for their "lifespan" (10 ms unless changed): blocks closer together
 * than that may see each other's traffic.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "sysfs.h"
#include "system.h"

struct port {
	char device[64];
	int tx_fd[2], rx_fd[2]; /* summed; -1: not there */
	unsigned unit_bytes; /* bytes per count; 0: it counts packets */
};

struct reading {
	char device[64];
	const char *kind;
	unsigned unit_bytes;
	uint64_t tx, rx; /* counts */
};

struct snapshot {
	struct reading *readings;
	size_t count, capacity;
};

struct xb_counters {
	int netdev_fd;
	struct port *ports;
	size_t port_count;
	char *text; /* of /proc/net/dev */
	size_t text_capacity;
	struct snapshot mark, now;
};

/* --- opening --- */

/* Pairs of files that count what a port sent and received, best first; summed where two pairs belong
 * together. */
static const struct source {
	const char *tx[2], *rx[2];
	unsigned unit_bytes;
} sources[] = {
	{{"counters/port_xmit_data"},
	 {"counters/port_rcv_data"},
	 4}, /* IBTA PortCounters: words of 4 bytes */
	{{"hw_counters/tx_bytes"}, {"hw_counters/rx_bytes"}, 1}, /* bnxt_re, efa */
	{{"hw_counters/ip4OutOctets", "hw_counters/ip6OutOctets"},
	 {"hw_counters/ip4InOctets", "hw_counters/ip6InOctets"},
	 1}, /* i40iw, irdma: iWARP and RoCE */
	{{"hw_counters/tx_bytes_cnt"}, {"hw_counters/rx_bytes_cnt"}, 1}, /* erdma */
	{{"hw_counters/hw_tx_bytes_cnt"}, {"hw_counters/hw_rx_bytes_cnt"}, 1}, /* erdma, older */
	{{"hw_counters/sent_pkts"}, {"hw_counters/rcvd_pkts"}, 0}, /* rxe: packets are all it counts */
};
#define FLIT_BYTES 8u

static int open_file(const char *folder, const char *name)
{
	char path[PATH_MAX];

	if (!name || snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void close_port(struct port *port)
{
	for (int i = 0; i < 2; i++) {
		if (port->tx_fd[i] >= 0)
			close(port->tx_fd[i]);
		if (port->rx_fd[i] >= 0)
			close(port->rx_fd[i]);
	}
}

/*
 * On Omni-Path the same files count flits of 8 bytes: hfi1 fills PortXmitData and PortRcvData of its PMA from
 * C_DC_XMIT_FLITS and C_DC_RCV_FLITS unconverted (drivers/infiniband/hw/hfi1/mad.c, pma_get_opa_port_dctrs).
 * The driver is asked, since the device may have been renamed.
 */
static int counts_flits(const char *device_folder)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *base;
	ssize_t length;

	if (snprintf(path, sizeof(path), "%s/device/driver", device_folder) >= (int)sizeof(path))
		return 0;
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return strncmp(strrchr(device_folder, '/') + 1, "hfi1_", 5) == 0;
	target[length] = '\0';
	base = strrchr(target, '/');
	return strcmp(base ? base + 1 : target, "hfi1") == 0;
}

/* A port with a pair of files that can be read; 0 if it has none. */
static int open_port(const char *device_folder, const char *number, struct port *port)
{
	char folder[PATH_MAX], probe[32];

	if (snprintf(folder, sizeof(folder), "%s/ports/%s", device_folder, number) >= (int)sizeof(folder))
		return 0;
	snprintf(port->device, sizeof(port->device), "%.55s/%.7s", strrchr(device_folder, '/') + 1, number);
	for (size_t s = 0; s < sizeof(sources) / sizeof(sources[0]); s++) {
		for (int i = 0; i < 2; i++) {
			port->tx_fd[i] = open_file(folder, sources[s].tx[i]);
			port->rx_fd[i] = open_file(folder, sources[s].rx[i]);
		}
		port->unit_bytes = sources[s].unit_bytes;
		/* some drivers have the file but refuse to read it */
		if (port->tx_fd[0] >= 0 && port->rx_fd[0] >= 0 &&
		    pread(port->tx_fd[0], probe, sizeof(probe), 0) > 0) {
			if (port->unit_bytes == 4 && counts_flits(device_folder))
				port->unit_bytes = FLIT_BYTES;
			return 1;
		}
		close_port(port);
	}
	return 0;
}

static void open_device(struct xb_counters *c, const char *folder)
{
	char ports[PATH_MAX];
	struct dirent *entry;
	DIR *list;

	if (snprintf(ports, sizeof(ports), "%s/ports", folder) >= (int)sizeof(ports))
		return;
	list = opendir(ports);
	while (list && (entry = readdir(list))) {
		struct port port, *grown;

		if (!isdigit((unsigned char)entry->d_name[0]) || !open_port(folder, entry->d_name, &port))
			continue;
		grown = realloc(c->ports, (c->port_count + 1) * sizeof(port));
		if (!grown) {
			close_port(&port);
			break;
		}
		c->ports = grown;
		c->ports[c->port_count++] = port;
	}
	if (list)
		closedir(list);
}

struct xb_counters *xb_counters_open(const char *sysfs_root)
{
	struct xb_counters *c = calloc(1, sizeof(*c));
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *devices = NULL;

	if (!c)
		return NULL;
	/* a recorded tree has its proc beside its sys, as a machine has */
	c->netdev_fd = open_file(sysfs_root, "../proc/net/dev");
	if (snprintf(path, sizeof(path), "%s/class/infiniband", sysfs_root) < (int)sizeof(path))
		devices = opendir(path);
	while (devices && (entry = readdir(devices))) {
		if (entry->d_name[0] != '.' && snprintf(path, sizeof(path), "%s/class/infiniband/%s",
							sysfs_root, entry->d_name) < (int)sizeof(path))
			open_device(c, path);
	}
	if (devices)
		closedir(devices);
	return c;
}

void xb_counters_close(struct xb_counters *c)
{
	if (!c)
		return;
	if (c->netdev_fd >= 0)
		close(c->netdev_fd);
	for (size_t i = 0; i < c->port_count; i++)
		close_port(&c->ports[i]);
	free(c->ports);
	free(c->text);
	free(c->mark.readings);
	free(c->now.readings);
	free(c);
}

/* --- reading --- */

/* Without memory the reading is left out. */
static void append(struct snapshot *snapshot, const struct reading *reading)
{
	if (snapshot->count == snapshot->capacity) {
		size_t capacity = snapshot->capacity ? 2 * snapshot->capacity : 16;
		struct reading *grown = realloc(snapshot->readings, capacity * sizeof(*grown));

		if (!grown)
			return;
		snapshot->readings = grown;
		snapshot->capacity = capacity;
	}
	snapshot->readings[snapshot->count++] = *reading;
}

/* The whole of /proc/net/dev, which the kernel hands out a page at a time. */
static const char *read_netdevs(struct xb_counters *c)
{
	size_t used = 0;

	for (;;) {
		ssize_t bytes;

		if (c->text_capacity - used < 8192) {
			size_t capacity = c->text_capacity + 32768;
			char *grown = realloc(c->text, capacity);

			if (!grown)
				break;
			c->text = grown;
			c->text_capacity = capacity;
		}
		bytes = pread(c->netdev_fd, c->text + used, c->text_capacity - used - 1, (off_t)used);
		if (bytes <= 0)
			break;
		used += (size_t)bytes;
	}
	if (!c->text)
		return NULL;
	c->text[used] = '\0';
	return c->text;
}

/* "  eth0: rx_bytes rx_packets errs drop fifo frame compressed multicast tx_bytes ..."; the two header lines
 * have no colon */
static void parse_netdev(const char *line, size_t length, struct snapshot *snapshot)
{
	const char *colon = memchr(line, ':', length), *p;
	uint64_t value[9];
	struct reading reading = {.unit_bytes = 1};

	while (colon && line < colon && *line == ' ')
		line++;
	if (!colon || colon == line || (size_t)(colon - line) >= sizeof(reading.device))
		return;
	p = colon + 1;
	for (size_t i = 0; i < 9; i++) {
		char *end;

		value[i] = strtoull(p, &end, 10);
		if (end == p)
			return;
		p = end;
	}
	memcpy(reading.device, line, (size_t)(colon - line));
	reading.kind = strcmp(reading.device, "lo") == 0 ? "loopback" : "netdev";
	reading.rx = value[0];
	reading.tx = value[8];
	append(snapshot, &reading);
}

static int read_count(const int fd[2], uint64_t *count)
{
	*count = 0;
	for (int i = 0; i < 2; i++) {
		char text[32], *end;
		ssize_t bytes;

		if (fd[i] < 0)
			continue;
		bytes = pread(fd[i], text, sizeof(text) - 1, 0);
		if (bytes <= 0)
			return 0; /* the device is gone */
		text[bytes] = '\0';
		*count += strtoull(text, &end, 10);
		if (end == text)
			return 0;
	}
	return 1;
}

static void take(struct xb_counters *c, struct snapshot *snapshot)
{
	const char *line = c->netdev_fd >= 0 ? read_netdevs(c) : NULL;

	snapshot->count = 0;
	while (line && *line) {
		size_t length = strcspn(line, "\n");

		parse_netdev(line, length, snapshot);
		line += length + (line[length] == '\n');
	}
	for (size_t i = 0; i < c->port_count; i++) {
		struct reading reading = {.kind = "rdma", .unit_bytes = c->ports[i].unit_bytes};

		if (!read_count(c->ports[i].tx_fd, &reading.tx) ||
		    !read_count(c->ports[i].rx_fd, &reading.rx))
			continue;
		memcpy(reading.device, c->ports[i].device, sizeof(reading.device));
		append(snapshot, &reading);
	}
}

/* --- differences --- */

/*
 * A count that went down has wrapped around at 32 bits or has begun anew (the interface was made again, the
 * counters were cleared). It wrapped if the way across the wrap is the shorter one.
 */
static uint64_t increase(uint64_t before, uint64_t now)
{
	uint64_t across = (UINT64_C(1) << 32) - before + now;

	if (now >= before)
		return now - before;
	return before < UINT64_C(1) << 32 && across < UINT64_C(1) << 31 ? across : now;
}

/* The reading of the same device in the other snapshot, which nearly always stands at the same place. */
static const struct reading *find(const struct snapshot *snapshot, const struct reading *like, size_t hint)
{
	for (size_t n = 0; n < snapshot->count; n++) {
		const struct reading *reading = &snapshot->readings[(hint + n) % snapshot->count];

		if (strcmp(reading->device, like->device) == 0 && strcmp(reading->kind, like->kind) == 0)
			return reading;
	}
	return NULL;
}

static int busiest_first(const void *a, const void *b)
{
	const struct xb_counter_delta *x = a, *y = b;
	uint64_t bytes_x = x->tx_bytes + x->rx_bytes, bytes_y = y->tx_bytes + y->rx_bytes;

	if (bytes_x != bytes_y)
		return bytes_x < bytes_y ? 1 : -1;
	return strcmp(x->device, y->device);
}

void xb_counters_mark(struct xb_counters *c)
{
	take(c, &c->mark);
}

size_t xb_counters_since_mark(struct xb_counters *c, struct xb_counter_delta *out, size_t capacity)
{
	struct xb_counter_delta *all;
	size_t count = 0, written;

	take(c, &c->now);
	all = calloc(c->now.count ? c->now.count : 1, sizeof(*all));
	if (!all)
		return 0;
	for (size_t i = 0; i < c->now.count; i++) {
		const struct reading *now = &c->now.readings[i], *before = find(&c->mark, now, i);
		struct xb_counter_delta *delta = &all[count];
		uint64_t tx, rx;

		if (!before) /* it appeared since; what it carried before that is not known */
			continue;
		tx = increase(before->tx, now->tx);
		rx = increase(before->rx, now->rx);
		if (tx == 0 && rx == 0)
			continue;
		*delta = (struct xb_counter_delta){
			.tx_bytes = tx * now->unit_bytes,
			.rx_bytes = rx * now->unit_bytes,
			.tx_packets = now->unit_bytes ? 0 : tx,
			.rx_packets = now->unit_bytes ? 0 : rx,
		};
		memcpy(delta->device, now->device, sizeof(delta->device));
		snprintf(delta->kind, sizeof(delta->kind), "%s", now->kind);
		count++;
	}
	qsort(all, count, sizeof(*all), busiest_first);
	written = count < capacity ? count : capacity;
	if (written)
		memcpy(out, all, written * sizeof(*all));
	free(all);
	return written;
}

int xb_counter_is_device(const char *counted, const char *device)
{
	size_t length = strcspn(device, "/:");

	/* without a port in the question, any port of the device will do */
	if (strncmp(counted, device, length) != 0)
		return 0;
	if (device[length] == '\0')
		return counted[length] == '\0' || counted[length] == '/';
	return counted[length] == '/' && strcmp(counted + length + 1, device + length + 1) == 0;
}

int xb_counters_know(struct xb_counters *c, const char *device)
{
	take(c, &c->now);
	for (size_t i = 0; i < c->now.count; i++)
		if (xb_counter_is_device(c->now.readings[i].device, device))
			return 1;
	return 0;
}

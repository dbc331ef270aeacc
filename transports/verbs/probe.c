/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "verbs.h"

/* Below this, not even the smallest buffers of a run can be registered, kB */
#define LEAST_MEMLOCK_KB 1024u
/* What `-s 1:4M` needs: two buffers, each with a page beside it, and queues. More than the 8192 kB that many
 * distributions allow. */
#define COMMON_MEMLOCK_KB (2u * (4096u + 4u) + 1024u)

void vb_rate_text(const char *device, unsigned port, char *text, size_t bytes)
{
	char file[64], line[64];

	snprintf(file, sizeof(file), "ports/%u/rate", port);
	vb_sysfs(device, file, line, sizeof(line));
	line[strcspn(line, "(")] = '\0'; /* "100 Gb/sec (4X EDR)" */
	snprintf(text, bytes, "%.*s",
		 (int)(strlen(line) ? strlen(line) - (line[strlen(line) - 1] == ' ') : 0), line);
}

static void append(char *text, size_t bytes, const char *item)
{
	size_t used = strlen(text);

	if (*item && used < bytes)
		snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", item);
}

static void port_text(const struct vb_port *p, char *text, size_t bytes)
{
	struct vb_gid gids[VB_MAX_GIDS];
	const struct vb_gid *best;
	size_t count = vb_gids(p->device, p->number, gids, VB_MAX_GIDS);
	char item[128], line[64], gid[VB_GID_TEXT_BYTES];

	text[0] = '\0';
	append(text, bytes, vb_is_ethernet(p) ? "Ethernet" : "InfiniBand");
	append(text, bytes, ibv_port_state_str(p->port.state));
	vb_rate_text(p->name, p->number, item, sizeof(item));
	append(text, bytes, item);
	snprintf(item, sizeof(item), "MTU %u", vb_mtu_bytes(p->port.active_mtu));
	append(text, bytes, item);
	if (!vb_is_ethernet(p)) {
		snprintf(item, sizeof(item), "LID %u", p->port.lid);
		append(text, bytes, item);
	}
	best = vb_is_ethernet(p) ? vb_gid_best(gids, count) : count ? &gids[0] : NULL;
	if (best) {
		snprintf(item, sizeof(item), "GID %d of %zu: %s %s", best->index, count,
			 vb_gid_type_name(best->type), vb_gid_text(&best->gid, gid));
		append(text, bytes, item);
	}
	if (p->attr.fw_ver[0]) {
		snprintf(item, sizeof(item), "firmware %.64s", p->attr.fw_ver);
		append(text, bytes, item);
	}
	vb_sysfs(p->name, "device/numa_node", line, sizeof(line));
	if (line[0] && line[0] != '-') {
		snprintf(item, sizeof(item), "NUMA node %s", line);
		append(text, bytes, item);
	}
}

/* A limit of locked memory that no run could live with, unless the process is above limits. */
static void check_memlock(struct vb_why *why)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur / 1024 >= LEAST_MEMLOCK_KB)
		return;
	snprintf(why->reason, sizeof(why->reason), "the limit of locked memory is %llu kB",
		 (unsigned long long)limit.rlim_cur / 1024);
	snprintf(why->remedy, sizeof(why->remedy),
		 "raise it: ulimit -l unlimited, /etc/security/limits.conf, or LimitMEMLOCK=infinity of the "
		 "service");
}

static bool can_register(struct ibv_context *device, unsigned kilobytes)
{
	const size_t bytes = kilobytes * (size_t)1024;
	void *memory = aligned_alloc(4096, bytes);
	struct ibv_pd *pd = ibv_alloc_pd(device);
	struct ibv_mr *mr = NULL;

	if (pd && memory)
		mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (mr)
		ibv_dereg_mr(mr);
	if (pd)
		ibv_dealloc_pd(pd);
	free(memory);
	return mr != NULL;
}

static void report_device(const struct xb_probe_sink *sink, struct ibv_device *device)
{
	const char *name = ibv_get_device_name(device);
	struct vb_why why = {"", ""};
	struct ibv_context *context = vb_device_open(device, &why);
	struct ibv_device_attr attr;
	unsigned ports = 1;

	if (!context) {
		sink->path(sink->user, name, "", 0, why.reason, why.remedy);
		return;
	}
	if (!ibv_query_device(context, &attr))
		ports = attr.phys_port_cnt;
	for (unsigned n = 1; n <= ports; n++) {
		struct vb_port port = {0};
		char path[VB_NAME_BYTES + 8], text[512];
		bool usable = vb_port_usable(context, n, &port, &why);

		if (usable && !can_register(context, LEAST_MEMLOCK_KB)) {
			snprintf(why.reason, sizeof(why.reason), "memory cannot be registered");
			snprintf(why.remedy, sizeof(why.remedy), "see dmesg");
			check_memlock(&why);
			usable = false;
		}
		snprintf(path, sizeof(path), "%s/%u", name, n);
		port_text(&port, text, sizeof(text));
		if (usable && !can_register(context, COMMON_MEMLOCK_KB))
			append(text, sizeof(text),
			       "locked memory too little for 4 MiB messages (ulimit -l unlimited)");
		sink->path(sink->user, path, text, usable, usable ? NULL : why.reason,
			   usable ? NULL : why.remedy);
	}
	ibv_close_device(context);
}

static void report_unlisted(void *user, const char *name, const struct vb_why *why)
{
	const struct xb_probe_sink *sink = user;

	sink->path(sink->user, name, "", 0, why->reason, why->remedy);
}

int vb_probe(const struct xb_probe_sink *sink, struct xb_error *error)
{
	char version[64];
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	(void)error;
	vb_library_version(version, sizeof(version));
	sink->library(sink->user, "libibverbs", version);
	for (int i = 0; i < count; i++)
		report_device(sink, list[i]);
	if (count > 0) {
		struct xb_probe_sink to = *sink;

		vb_not_listed(list, count, report_unlisted, &to);
	} else {
		struct vb_why why = {"", ""};

		vb_none(&why);
		sink->path(sink->user, "", "", 0, why.reason, why.remedy);
	}
	if (list)
		ibv_free_device_list(list);
	return XB_OK;
}

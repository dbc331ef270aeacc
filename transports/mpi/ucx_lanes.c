/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which lanes UCX uses beneath an MPI library: parsed from ucp_ep_print_info, the one call that tells
 * (ucp_ep_query does from UCX 1.14 on). The endpoint is either given, or found in UCX's own tree of its
 * objects (ucs_vfs, UCX >= 1.11), which needs nothing from the MPI library. Nothing here links UCX: it is
 * looked up among what MPI has loaded.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

void xb_mpi_used_add(struct xb_mpi_used *used, const char *part)
{
	for (size_t i = 0; i < used->part_count; i++)
		if (!strcmp(used->part[i], part))
			return;
	if (used->part_count < XB_MPI_MAX_PARTS)
		snprintf(used->part[used->part_count++], sizeof used->part[0], "%s", part);
}

/* "lane[0]:  2:tcp/lo.0 md[1]  -> ..." gives "tcp/lo" */
static void parse_lane(const char *text, struct xb_mpi_used *used)
{
	char lane[48];
	char *dot;
	int index;

	if (sscanf(text, " %d:%47[^ ]", &index, lane) != 2 || !strchr(lane, '/'))
		return; /* "cm rdmacm": how it was connected, not where bytes go */
	dot = strrchr(lane, '.');
	if (dot && dot > strchr(lane, '/'))
		*dot = '\0';
	xb_mpi_used_add(used, lane);
}

/* "tag_send: 0..<egr/short>..8185..<egr/zcopy>..8192..<rndv>..(inf)": rendezvous from 8192 bytes on */
static size_t parse_eager(const char *line)
{
	const char *rendezvous = strstr(line, "..<rndv>");
	const char *digit = rendezvous;

	if (!rendezvous)
		return 0;
	while (digit > line && digit[-1] >= '0' && digit[-1] <= '9')
		digit--;
	return digit == rendezvous ? 0 : strtoul(digit, NULL, 10) - 1;
}

void xb_mpi_ucx_lanes_parse(const char *text, bool blocking, struct xb_mpi_used *used)
{
	const char *const eager = blocking ? "tag_send_nbr:" : "tag_send:";
	const char *next, *found;
	char line[256];

	for (const char *at = text; *at; at = *next ? next + 1 : next) {
		next = at + strcspn(at, "\n");
		snprintf(line, sizeof line, "%.*s", (int)(next - at), at);
		found = strstr(line, "lane[");
		if (found && (found = strstr(found, "]:")) != NULL)
			parse_lane(found + 2, used);
		else if (strstr(line, eager))
			used->eager_bytes = parse_eager(line);
	}
}

struct ucx {
	void *ucp, *ucs;
	void (*print)(const void *endpoint, FILE *stream);
	int (*list)(const char *path, void (*each)(const char *name, void *user), void *user);
};

static void ucx_find(struct ucx *ucx)
{
	memset(ucx, 0, sizeof *ucx);
	ucx->ucp = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
	ucx->ucs = dlopen("libucs.so.0", RTLD_NOW | RTLD_NOLOAD);
	if (ucx->ucp)
		*(void **)&ucx->print = dlsym(ucx->ucp, "ucp_ep_print_info");
	if (ucx->ucs)
		*(void **)&ucx->list = dlsym(ucx->ucs, "ucs_vfs_path_list_dir");
}

static void ucx_release(struct ucx *ucx)
{
	if (ucx->ucp)
		dlclose(ucx->ucp);
	if (ucx->ucs)
		dlclose(ucx->ucs);
}

static void read_endpoint(const struct ucx *ucx, const void *endpoint, bool blocking,
			  struct xb_mpi_used *used)
{
	struct xb_mpi_used one = {0};
	char *text = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);

	if (!stream)
		return;
	ucx->print(endpoint, stream);
	fclose(stream);
	xb_mpi_ucx_lanes_parse(text, blocking, &one);
	free(text);
	/* an endpoint that leads back to this process has a lane self/memory; no other has */
	for (size_t i = 0; i < one.part_count; i++)
		if (!strncmp(one.part[i], "self/", 5))
			return;
	for (size_t i = 0; i < one.part_count; i++)
		xb_mpi_used_add(used, one.part[i]);
	if (one.eager_bytes)
		used->eager_bytes = one.eager_bytes;
}

/*
 * Walks /ucp/context/0x.../worker/0x.../ep/0x...: the names are the addresses of the objects. UCX holds a
 * lock while it lists a folder, so names are collected first and visited afterwards.
 */
#define MOST_OBJECTS 64u

struct objects {
	uint64_t address[MOST_OBJECTS];
	size_t count;
};

static void collect(const char *name, void *user)
{
	struct objects *objects = user;

	if (!strncmp(name, "0x", 2) && objects->count < MOST_OBJECTS)
		objects->address[objects->count++] = strtoull(name, NULL, 16);
}

static void walk(const struct ucx *ucx, const char *path, int level, bool blocking, struct xb_mpi_used *used)
{
	static const char *const below[] = {"worker", "ep"};
	struct objects objects = {.count = 0};
	char next[256];

	ucx->list(path, collect, &objects);
	for (size_t i = 0; i < objects.count; i++) {
		if (level == 2) {
			read_endpoint(ucx, (const void *)(uintptr_t)objects.address[i], blocking, used);
			continue;
		}
		/* listing an object is what makes UCX fill in its subfolders */
		snprintf(next, sizeof next, "%s/0x%llx", path, (unsigned long long)objects.address[i]);
		ucx->list(next, collect, &(struct objects){.count = 0});
		snprintf(next, sizeof next, "%s/0x%llx/%s", path, (unsigned long long)objects.address[i],
			 below[level]);
		walk(ucx, next, level + 1, blocking, used);
	}
}

/* The device that all lanes share, if there is one. */
static void common_device(struct xb_mpi_used *used)
{
	const char *device, *first = NULL;

	for (size_t i = 0; i < used->part_count; i++) {
		device = strchr(used->part[i], '/') + 1;
		if (first && strcmp(first, device))
			return;
		first = device;
	}
	if (first && strcmp(first, "memory"))
		snprintf(used->device, sizeof used->device, "%s", first);
}

bool xb_mpi_ucx_lanes(const void *endpoint, bool blocking, struct xb_mpi_used *used)
{
	struct ucx ucx;

	ucx_find(&ucx);
	if (ucx.print && endpoint)
		read_endpoint(&ucx, endpoint, blocking, used);
	else if (ucx.print && ucx.list)
		walk(&ucx, "/ucp/context", 0, blocking, used);
	ucx_release(&ucx);
	common_device(used);
	if (!used->part_count)
		snprintf(used->note, sizeof used->note, "which lanes UCX uses is not readable in this UCX");
	return used->part_count > 0;
}

/* ---- names */

bool xb_mpi_ucx_lane_is_shared_memory(const char *lane)
{
	return xb_mpi_ucx_lane_matches(lane, "shm");
}

bool xb_mpi_ucx_lane_matches(const char *lane, const char *tls)
{
	/* UCX's aliases (ucp_context.c) */
	static const char *const aliases[][8] = {
		{"shm", "posix", "sysv", "xpmem", "cma", "knem"},
		{"sm", "posix", "sysv", "xpmem", "cma", "knem"},
		{"mm", "posix", "sysv", "xpmem"},
		{"rc", "rc_verbs", "rc_mlx5"},
		{"rc_v", "rc_verbs"},
		{"rc_x", "rc_mlx5"},
		{"ud", "ud_verbs", "ud_mlx5"},
		{"ud_v", "ud_verbs"},
		{"ud_x", "ud_mlx5"},
		{"dc", "dc_mlx5"},
		{"dc_x", "dc_mlx5"},
		{"ib", "rc_verbs", "rc_mlx5", "ud_verbs", "ud_mlx5", "dc_mlx5"}};
	const size_t length = strcspn(lane, "/");
	size_t item;

	for (; *tls; tls += item + (tls[item] == '+')) {
		item = strcspn(tls, "+");
		if ((item == 3 && !strncmp(tls, "all", 3)) || (item == length && !strncmp(tls, lane, length)))
			return true;
		for (size_t a = 0; a < sizeof aliases / sizeof *aliases; a++) {
			if (strlen(aliases[a][0]) != item || strncmp(aliases[a][0], tls, item))
				continue;
			for (size_t i = 1; i < 8 && aliases[a][i]; i++)
				if (strlen(aliases[a][i]) == length && !strncmp(aliases[a][i], lane, length))
					return true;
		}
	}
	return false;
}

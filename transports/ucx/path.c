/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx[:TRANSPORT[+TRANSPORT...]][/DEVICE[+DEVICE...]], checked against what is here, so that a name that UCX
 * does not know is refused with the list of those it does (UCX itself only warns, and goes on with what is
 * left).
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "launch/ucx_tls.h"
#include "names.h"

/* UCX's own groups (ucp_context.c). ":aux" is a transport used only to set connections up. */
static const struct {
	const char *name;
	const char *members[8];
} aliases[] = {
	{"mm", {"posix", "sysv", "xpmem", NULL}},
	{"sm", {"posix", "sysv", "xpmem", "knem", "cma", NULL}},
	{"shm", {"posix", "sysv", "xpmem", "knem", "cma", NULL}},
	{"ib", {"rc_verbs", "ud_verbs", "rc_mlx5", "ud_mlx5", "dc_mlx5", "gga_mlx5", NULL}},
	{"ud_v", {"ud_verbs", NULL}},
	{"ud_x", {"ud_mlx5", NULL}},
	{"ud", {"ud_mlx5", "ud_verbs", NULL}},
	{"rc_v", {"rc_verbs", NULL}},
	{"rc_x", {"rc_mlx5", NULL}},
	{"rc", {"rc_mlx5", "rc_verbs", NULL}},
	{"dc", {"dc_mlx5", NULL}},
	{"dc_x", {"dc_mlx5", NULL}},
	{"cuda", {"cuda_copy", "cuda_ipc", "gdr_copy", NULL}},
	{"rocm", {"rocm_copy", "rocm_ipc", NULL}},
};

const char *const *xb_ucx_alias(const char *name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(aliases[i].name, name) == 0)
			return aliases[i].members;
	return NULL;
}

int xb_ucx_is_shared_memory(const char *tl)
{
	const char *const *member = xb_ucx_alias("shm");

	for (; *member; member++)
		if (strcmp(*member, tl) == 0)
			return 1;
	return 0;
}

int xb_ucx_is_local(const char *tl)
{
	return xb_ucx_is_shared_memory(tl) || strcmp(tl, "self") == 0 || strncmp(tl, "cuda", 4) == 0 ||
	       strncmp(tl, "rocm", 4) == 0 || strncmp(tl, "gdr", 3) == 0;
}

static int offered(const struct xb_ucx_inventory *inventory, const char *tl)
{
	for (size_t i = 0; i < inventory->count; i++)
		if (strcmp(inventory->items[i].tl, tl) == 0)
			return 1;
	return 0;
}

static int wanted(const struct xb_ucx_path *path, const char *tl)
{
	for (size_t i = 0; i < path->tl_count; i++)
		if (strcmp(path->tl[i], tl) == 0)
			return 1;
	return path->tl_count == 0;
}

static void append(char *list, size_t bytes, const char *separator, const char *item)
{
	size_t used = strlen(list);

	snprintf(list + used, bytes - used, "%s%s", used ? separator : "", item);
}

static void want(struct xb_ucx_path *path, const char *tl)
{
	if (path->tl_count > 0 && wanted(path, tl))
		return;
	if (path->tl_count < XB_UCX_MAX_NAMES)
		snprintf(path->tl[path->tl_count++], XB_UCX_NAME_BYTES, "%s", tl);
}

static int refuse_transport(const char *name, const struct xb_ucx_inventory *inventory,
			    struct xb_error *error)
{
	const char *remedy, *reason = xb_ucx_absent_reason(name, &remedy);
	char here[400];

	xb_ucx_inventory_print(inventory, here, sizeof(here));
	if (reason)
		return xb_fail(error, XB_E_UNAVAILABLE,
			       "ucx: transport \"%s\" was asked for; %s; UCX offers here %s; %s", name,
			       reason, here, remedy);
	return xb_fail(error, XB_E_UNAVAILABLE,
		       "ucx: transport \"%s\" was asked for; UCX offers here %s; use one of these (or shm, "
		       "rc, ud, dc for a group), joined by '+'",
		       name, here);
}

static int add_transport(const char *name, const struct xb_ucx_inventory *inventory, struct xb_ucx_path *path,
			 struct xb_error *error)
{
	const char *const *members = xb_ucx_alias(name);
	int found = 0;

	if (strcmp(name, "self") == 0)
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "ucx: transport \"self\" was asked for; it reaches only the process itself, "
			       "and the two ends are two processes; use posix, sysv or shm on one host");
	if (members == NULL) {
		found = offered(inventory, name);
		want(path, name);
	}
	for (; members && *members; members++) {
		found |= offered(inventory, *members);
		want(path, *members);
	}
	if (!found)
		return refuse_transport(name, inventory, error);
	append(path->asked, sizeof(path->asked), "+", name);
	append(path->tls, sizeof(path->tls), ",", name);
	if (xb_ucx_auxiliary(name))
		append(path->tls, sizeof(path->tls), ",", xb_ucx_auxiliary(name));
	return 0;
}

static int refuse_device(const char *name, const struct xb_ucx_inventory *inventory,
			 const struct xb_ucx_path *path, struct xb_error *error)
{
	char here[320] = "";

	for (size_t i = 0; i < inventory->count; i++) {
		const struct xb_ucx_resource *item = &inventory->items[i];
		int fits = item->kind == XB_UCX_NET && wanted(path, item->tl);

		for (size_t k = 0; k < i && fits; k++)
			fits = strcmp(inventory->items[k].device, item->device) != 0 ||
			       !wanted(path, inventory->items[k].tl);
		if (fits)
			append(here, sizeof(here), ", ", item->device);
	}
	if (here[0] == '\0')
		return xb_fail(error, XB_E_USAGE,
			       "ucx: device \"%s\" was asked for with transport %s, which has no network "
			       "device; leave the device out",
			       name, path->asked);
	return xb_fail(
		error, XB_E_UNAVAILABLE,
		"ucx: device \"%s\" was asked for%s%s; usable here: %s; use one of these, joined by '+'",
		name, path->asked[0] ? " with transport " : "", path->asked, here);
}

/* "eth1", "mlx5_0:1", and "mlx5_0" or "mlx5_0/1" for the RDMA device that UCX calls mlx5_0:1. */
static int add_device(const char *name, const struct xb_ucx_inventory *inventory, struct xb_ucx_path *path,
		      struct xb_error *error)
{
	char spelled[XB_UCX_NAME_BYTES];
	size_t length = strlen(name);
	int found = 0;
	char *slash;

	snprintf(spelled, sizeof(spelled), "%s", name);
	slash = strchr(spelled, '/');
	if (slash)
		*slash = ':';
	for (size_t i = 0; i < inventory->count && !found; i++) {
		const struct xb_ucx_resource *item = &inventory->items[i];

		if (item->kind != XB_UCX_NET || !wanted(path, item->tl))
			continue;
		found = strcmp(item->device, spelled) == 0;
		if (!found && strncmp(item->device, name, length) == 0 && item->device[length] == ':') {
			snprintf(spelled, sizeof(spelled), "%s", item->device); /* its first port */
			found = 1;
		}
	}
	if (!found)
		return refuse_device(name, inventory, path, error);
	if (path->device_count < XB_UCX_MAX_NAMES)
		snprintf(path->device[path->device_count++], XB_UCX_NAME_BYTES, "%s", spelled);
	append(path->devices, sizeof(path->devices), ",", spelled);
	return 0;
}

/* Calls add for each of the '+'-separated names in text[0..length). */
static int each(const char *text, size_t length, const char *allowed, const char *what,
		int (*add)(const char *, const struct xb_ucx_inventory *, struct xb_ucx_path *,
			   struct xb_error *),
		const struct xb_ucx_inventory *inventory, struct xb_ucx_path *path, struct xb_error *error)
{
	const char *end = text + length;
	size_t names = 0;

	for (;;) {
		const char *plus = memchr(text, '+', (size_t)(end - text));
		size_t part = (size_t)((plus ? plus : end) - text);
		char name[XB_UCX_NAME_BYTES];
		int status;

		for (size_t i = 0; i < part; i++)
			if (!isalnum((unsigned char)text[i]) && strchr(allowed, text[i]) == NULL)
				part = 0;
		if (part == 0 || part >= sizeof(name) || ++names > 8)
			return xb_fail(error, XB_E_USAGE,
				       "ucx: no valid %s name at \"%.60s\"; a path is "
				       "TRANSPORT[+TRANSPORT...][/DEVICE[+DEVICE...]], for example tcp, "
				       "tcp/eth1, posix+cma, rc/mlx5_0:1",
				       what, text);
		memcpy(name, text, part);
		name[part] = '\0';
		status = add(name, inventory, path, error);
		if (status)
			return status;
		if (plus == NULL)
			return 0;
		text = plus + 1;
	}
}

/* cma and knem copy large messages only: something must carry the small ones. */
static void complete(struct xb_ucx_path *path)
{
	for (size_t i = 0; i < path->tl_count; i++)
		if (strcmp(path->tl[i], "cma") != 0 && strcmp(path->tl[i], "knem") != 0)
			return;
	if (path->tl_count == 0)
		return;
	snprintf(path->note, sizeof(path->note),
		 "%.20s moves large messages only; posix added for the small ones", path->asked);
	want(path, "posix");
	append(path->tls, sizeof(path->tls), ",", "posix");
}

static int uses_soft_roce(const struct xb_ucx_inventory *inventory, const struct xb_ucx_path *path)
{
	for (size_t i = 0; i < inventory->count; i++) {
		const struct xb_ucx_resource *item = &inventory->items[i];
		int asked = path->device_count == 0;

		for (size_t k = 0; k < path->device_count; k++)
			asked |= strcmp(path->device[k], item->device) == 0;
		if (asked && item->kind == XB_UCX_NET && strchr(item->device, ':') &&
		    xb_ucx_is_soft_roce(item->device))
			return 1;
	}
	return 0;
}

int xb_ucx_path_parse(const char *text, const struct xb_ucx_inventory *inventory, struct xb_ucx_path *path,
		      struct xb_error *error)
{
	const char *device = strchr(text, '/');
	size_t length = device ? (size_t)(device - text) : strlen(text);
	int status;

	memset(path, 0, sizeof(*path));
	if (length > 0) {
		status = each(text, length, "_", "transport", add_transport, inventory, path, error);
		if (status)
			return status;
		complete(path);
	}
	if (device) {
		status = each(device + 1, strlen(device + 1), "_.:-@/", "device", add_device, inventory, path,
			      error);
		if (status)
			return status;
	}
	path->soft_roce = *text ? uses_soft_roce(inventory, path) : xb_ucx_is_soft_roce(NULL);
	snprintf(path->text, sizeof(path->text), "%s%s%s", path->asked, device ? "/" : "", path->devices);
	if (*text == '\0')
		snprintf(path->text, sizeof(path->text), "any transport");
	return 0;
}

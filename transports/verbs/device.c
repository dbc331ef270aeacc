/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs.h"

#ifndef DEVICES /* a test has its own */
#define DEVICES "/sys/class/infiniband"
#endif

static void because(struct vb_why *why, const char *reason, const char *remedy)
{
	snprintf(why->reason, sizeof(why->reason), "%s", reason);
	snprintf(why->remedy, sizeof(why->remedy), "%s", remedy);
}

void vb_sysfs(const char *device, const char *file, char *text, size_t bytes)
{
	char path[512];
	FILE *in;

	text[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s/%s", DEVICES, device, file);
	in = fopen(path, "re");
	if (!in)
		return;
	if (!fgets(text, (int)bytes, in))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(in);
}

bool vb_is_soft(const char *device)
{
	char link[64];

	vb_sysfs(device, "parent", link, sizeof(link)); /* only rxe and siw name a parent interface */
	return link[0] != '\0';
}

void vb_library_version(char *text, size_t bytes)
{
	struct ibv_device **(*symbol)(int *) = ibv_get_device_list;
	void *address;
	Dl_info info;
	char *real = NULL, *at;

	text[0] = '\0';
	memcpy(&address, &symbol, sizeof(address));
	if (dladdr(address, &info) && info.dli_fname)
		real = realpath(info.dli_fname, NULL);
	at = real ? strstr(real, ".so.") : NULL;
	if (at)
		snprintf(text, bytes, "%s", at + 4);
	free(real);
}

static bool folder_has_entries(const char *folder, char *name, size_t bytes)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	bool any = false;

	while (dir && !any && (entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			any = true;
			snprintf(name, bytes, "%.63s", entry->d_name);
		}
	if (dir)
		closedir(dir);
	return any;
}

static bool has_driver(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%.63s", DEVICES, name);
	return !access(path, F_OK);
}

static void no_provider(struct vb_why *why)
{
	because(why, "libibverbs finds no provider library for it", "install ibverbs-providers (rdma-core)");
}

static bool is_listed(struct ibv_device **list, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return true;
	return false;
}

void vb_not_listed(struct ibv_device **list, int count,
		   void (*tell)(void *user, const char *name, const struct vb_why *why), void *user)
{
	DIR *dir = opendir(DEVICES);
	struct vb_why why = {"", ""};
	struct dirent *entry;

	no_provider(&why);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !is_listed(list, count, entry->d_name))
			tell(user, entry->d_name, &why);
	if (dir)
		closedir(dir);
}

void vb_none(struct vb_why *why)
{
	char name[VB_NAME_BYTES] = "";

	if (!folder_has_entries(DEVICES, name, sizeof(name)))
		because(why,
			access("/sys/class/infiniband_verbs", F_OK)
				? "no RDMA device (/sys/class/infiniband is empty), and the module ib_uverbs "
				  "is not "
				  "loaded"
				: "no RDMA device (/sys/class/infiniband is empty)",
			"load the adapter's driver and ib_uverbs; for software RDMA: rdma link add rxe0 type "
			"rxe "
			"netdev IF");
	else if (access("/sys/class/infiniband_verbs", F_OK))
		because(why, "there is an RDMA device but the module ib_uverbs is not loaded",
			"modprobe ib_uverbs");
	else if (access("/dev/infiniband", F_OK))
		because(why, "there is an RDMA device but no /dev/infiniband",
			"start udev, or give the container its /dev/infiniband devices");
	else {
		snprintf(why->reason, sizeof(why->reason), "libibverbs finds no provider library for %s",
			 name);
		snprintf(why->remedy, sizeof(why->remedy), "install ibverbs-providers (rdma-core)");
	}
}

struct ibv_context *vb_device_open(struct ibv_device *device, struct vb_why *why)
{
	struct ibv_context *context;
	char path[32 + IBV_SYSFS_NAME_MAX];
	int code;

	errno = 0;
	context = ibv_open_device(device);
	if (context)
		return context;
	code = errno ? errno : ENODEV;
	/* the library's own code is that of its last attempt, with the device under another name */
	snprintf(path, sizeof(path), "/dev/infiniband/%s", device->dev_name);
	if (access(path, R_OK | W_OK) && errno != ENOENT)
		code = errno;
	snprintf(why->reason, sizeof(why->reason), "cannot open %s: %s", path, strerror(code));
	snprintf(why->remedy, sizeof(why->remedy), "%s",
		 code == EACCES || code == EPERM
			 ? "give this user read and write access to /dev/infiniband/uverbs* (udev rule of "
			   "rdma-core, group rdma, or the container's device list)"
			 : "give the container its /dev/infiniband devices, or start udev");
	return NULL;
}

unsigned vb_mtu_bytes(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

bool vb_is_ethernet(const struct vb_port *port)
{
	return port->port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

bool vb_is_iwarp(const struct vb_port *port)
{
	return port->device->device->transport_type == IBV_TRANSPORT_IWARP;
}

bool vb_port_usable(struct ibv_context *device, unsigned number, struct vb_port *port, struct vb_why *why)
{
	struct vb_gid gids[VB_MAX_GIDS];
	int rc;

	why->reason[0] = '\0';
	port->device = device;
	port->number = number;
	snprintf(port->name, sizeof(port->name), "%.63s", ibv_get_device_name(device->device));
	rc = ibv_query_device(device, &port->attr);
	if (rc == 0)
		rc = ibv_query_port(device, (uint8_t)number, &port->port);
	if (rc) {
		snprintf(why->reason, sizeof(why->reason), "port %u cannot be queried: %s", number,
			 strerror(rc));
		snprintf(why->remedy, sizeof(why->remedy), "%s has %d port(s)", port->name,
			 port->attr.phys_port_cnt);
	} else if (device->device->transport_type != IBV_TRANSPORT_IB &&
		   device->device->transport_type != IBV_TRANSPORT_IWARP) {
		because(why, "the device is neither InfiniBand, RoCE nor iWARP",
			"use the library of its own: ofi:usnic, ofi:efa ...");
	} else if (port->port.state != IBV_PORT_ACTIVE) {
		snprintf(why->reason, sizeof(why->reason), "the port is %s, not active",
			 ibv_port_state_str(port->port.state));
		snprintf(why->remedy, sizeof(why->remedy), "%s",
			 vb_is_ethernet(port) ? "bring its network interface up and see that there is a link"
			 : port->port.state == IBV_PORT_INIT
				 ? "start a subnet manager (opensm) on the fabric"
				 : "connect the cable and see that the subnet manager runs");
	} else if (vb_is_iwarp(port)) {
		return true; /* addresses are looked for by rdma_cm */
	} else if (vb_is_ethernet(port) && !vb_gid_best(gids, vb_gids(device, number, gids, VB_MAX_GIDS))) {
		because(why, "the port has no GID of a RoCE kind",
			"give the device's network interface an IP address (ip address add)");
	} else if (!vb_is_ethernet(port) && port->port.lid == 0 &&
		   !(port->port.flags & IBV_QPF_GRH_REQUIRED)) {
		because(why, "the port has no LID", "see that a subnet manager runs on the fabric");
	}
	return !why->reason[0];
}

static int choose_gid(struct vb_port *port, int asked, struct xb_error *error)
{
	struct vb_gid gids[VB_MAX_GIDS];
	size_t count = vb_gids(port->device, port->number, gids, VB_MAX_GIDS);
	const struct vb_gid *chosen = NULL;
	char text[400];

	if (asked < 0 && vb_is_ethernet(port))
		chosen = vb_gid_best(gids, count);
	for (size_t i = 0; i < count && !chosen; i++)
		if (gids[i].index == (asked < 0 ? 0 : asked))
			chosen = &gids[i];
	if (chosen) {
		port->gid = *chosen;
		return XB_OK;
	}
	if (asked < 0)
		return XB_OK; /* InfiniBand: the LID is enough */
	vb_gids_text(gids, count, text, sizeof(text));
	return xb_fail(error, XB_E_UNAVAILABLE, "asked for gid=%d on verbs:%s/%u; its GIDs are %s", asked,
		       port->name, port->number, text);
}

/* The first usable port of a device, or the one that is asked for; false with the last reason. */
static bool find_port(struct ibv_context *device, unsigned asked, struct vb_port *port, struct vb_why *why)
{
	struct ibv_device_attr attr;
	unsigned first = asked ? asked : 1, last = asked;

	if (!last)
		last = ibv_query_device(device, &attr) ? 1 : attr.phys_port_cnt;
	for (unsigned n = first; n <= last; n++)
		if (vb_port_usable(device, n, port, why))
			return true;
	return false;
}

static void device_names(struct ibv_device **list, int count, char *text, size_t bytes)
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < count && used < bytes; i++)
		used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "",
					 ibv_get_device_name(list[i]));
}

int vb_port_find(const struct vb_path *path, int gid, struct vb_port *port, struct xb_error *error)
{
	struct vb_why why = {"", ""};
	int count = 0, rc = XB_E_UNAVAILABLE;
	struct ibv_device **list = ibv_get_device_list(&count);
	bool seen = false, found = false;
	char names[256];

	for (int i = 0; i < count && !found; i++) {
		const char *name = ibv_get_device_name(list[i]);
		struct vb_port candidate = {0};
		struct vb_why here = {"", ""};
		struct ibv_context *device;

		if (path->device[0] && strcmp(path->device, name))
			continue;
		device = vb_device_open(list[i], &here);
		if (device && find_port(device, path->port, &candidate, &here)) {
			*port = candidate;
			found = true;
			rc = choose_gid(port, gid, error);
		} else if (device) {
			ibv_close_device(device);
		}
		if (!found && !seen) {
			snprintf(names, sizeof(names), "%s", name);
			why = here;
		}
		seen = true;
	}
	if (!found && seen)
		xb_fail(error, rc, "asked for verbs%s%s; %s: %s; %s", path->device[0] ? ":" : "",
			path->device, names, why.reason, why.remedy);
	else if (!found && count > 0 && has_driver(path->device)) {
		no_provider(&why);
		xb_fail(error, rc, "asked for verbs:%s; %s; %s", path->device, why.reason, why.remedy);
	} else if (!found && count > 0) {
		device_names(list, count, names, sizeof(names));
		xb_fail(error, rc, "asked for verbs:%s; there is no such device; use one of: %s",
			path->device, names);
	} else if (!found) {
		vb_none(&why);
		xb_fail(error, rc, "asked for verbs%s%s; %s; %s", path->device[0] ? ":" : "", path->device,
			why.reason, why.remedy);
	}
	if (list)
		ibv_free_device_list(list);
	return rc;
}

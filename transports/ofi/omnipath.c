/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Omni-Path under Linux names its adapter three times: /dev/hfi1_0 (user-space access),
 * /sys/class/infiniband/NAME (its RDMA device) and "hfi1_0" as libfabric's domain. libpsm2 looks for
 * /sys/class/infiniband/hfi1_0, but rdma-core's persistent naming (version 24 on) calls the RDMA device
 * opap1s0 or opapNs0, and PSM2 then finds no adapter on a perfectly good node. HFI_SYSFS_PATH leads it there,
 * but has to end in "_N": libpsm2 cuts the number off and appends that of the unit it wants. So a private
 * folder gets symbolic links hfi1_N to the real entries. libpsm2 reads the variable in its constructor: it
 * must be set before libfabric is loaded.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ofi.h"

#define CLASS "/sys/class/infiniband"
#define LINKS "xportbench-hfi-"

struct found {
	char device[32], bus[32]; /* bus: "0000:81:00.0", orders adapters as the driver numbers them */
};

static bool link_name(char *out, size_t bytes, const char *device, const char *entry)
{
	char path[128], target[PATH_MAX];
	const char *last;
	ssize_t n;

	snprintf(path, sizeof(path), CLASS "/%s/%s", device, entry);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	last = strrchr(target, '/');
	snprintf(out, bytes, "%.31s", last ? last + 1 : target);
	return true;
}

static int by_bus(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int order = strcmp(x->bus, y->bus);

	return order ? order : strcmp(x->device, y->device);
}

/* RDMA devices that the hfi1 driver made, whatever they are called. */
static unsigned find_devices(struct found *found)
{
	struct dirent *entry;
	unsigned count = 0;
	DIR *dir = opendir(CLASS);

	if (!dir)
		return 0;
	while (count < OFI_MAX_UNITS && (entry = readdir(dir))) {
		char driver[32];
		bool ours;

		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(found->device))
			continue;
		if (link_name(driver, sizeof(driver), entry->d_name, "device/driver"))
			ours = !strcmp(driver, "hfi1");
		else
			ours = !strncmp(entry->d_name, "hfi1_", 5) || !strncmp(entry->d_name, "opa", 3);
		if (!ours)
			continue;
		snprintf(found[count].device, sizeof(found[count].device), "%.31s", entry->d_name);
		if (!link_name(found[count].bus, sizeof(found[count].bus), entry->d_name, "device"))
			found[count].bus[0] = '\0';
		count++;
	}
	closedir(dir);
	qsort(found, count, sizeof(*found), by_bus);
	return count;
}

static void find_units(struct ofi_omnipath *opa)
{
	struct found found[OFI_MAX_UNITS];
	unsigned devices = find_devices(found), next = 0;
	char path[32];

	for (unsigned n = 0; n < OFI_MAX_UNITS; n++) {
		char kernel_name[32];

		snprintf(path, sizeof(path), "/dev/hfi1_%u", n);
		if (access(path, F_OK) != 0)
			continue;
		snprintf(kernel_name, sizeof(kernel_name), "hfi1_%u", n);
		opa->unit[opa->units].number = n;
		opa->unit[opa->units].device[0] = '\0';
		for (unsigned d = 0; d < devices; d++)
			if (!strcmp(found[d].device, kernel_name))
				snprintf(opa->unit[opa->units].device, sizeof(kernel_name), "%s",
					 kernel_name);
		if (!opa->unit[opa->units].device[0]) {
			while (next < devices && !strncmp(found[next].device, "hfi1_", 5))
				next++;
			if (next < devices)
				memcpy(opa->unit[opa->units].device, found[next++].device,
				       sizeof(found->device));
		}
		opa->units++;
	}
}

/* Folders of processes that were killed: their name ends in the process id. */
static void sweep(const char *parent)
{
	struct dirent *entry;
	DIR *dir = opendir(parent);

	while (dir && (entry = readdir(dir))) {
		struct ofi_omnipath dead = {0};
		char *end;
		long pid;

		if (strncmp(entry->d_name, LINKS, sizeof(LINKS) - 1))
			continue;
		pid = strtol(entry->d_name + sizeof(LINKS) - 1, &end, 10);
		if (pid <= 0 || *end != '-' || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
			continue;
		if (snprintf(dead.folder, sizeof(dead.folder), "%s/%s", parent, entry->d_name) <
		    (int)sizeof(dead.folder))
			ofi_omnipath_release(&dead);
	}
	if (dir)
		closedir(dir);
}

static int link_units(struct ofi_omnipath *opa, struct xb_error *error)
{
	const char *parent = getenv("TMPDIR");
	char link[192], target[64], first[192] = "";

	if (!parent || !*parent || strlen(parent) > 60)
		parent = "/tmp";
	sweep(parent);
	snprintf(opa->folder, sizeof(opa->folder), "%s/" LINKS "%ld-XXXXXX", parent, (long)getpid());
	if (!mkdtemp(opa->folder)) {
		int code = errno;

		opa->folder[0] = '\0';
		return xb_fail(
			error, XB_E_SYSTEM,
			"asked for ofi:psm2; the adapter is named %s, which PSM2 does not look for, and no "
			"folder for a link to it can be made in %s (%s); set TMPDIR to a writable folder",
			opa->unit[0].device, parent, strerror(code));
	}
	for (unsigned i = 0; i < opa->units; i++) {
		if (!opa->unit[i].device[0])
			continue;
		snprintf(link, sizeof(link), "%s/hfi1_%u", opa->folder, opa->unit[i].number);
		snprintf(target, sizeof(target), CLASS "/%s", opa->unit[i].device);
		if (symlink(target, link) != 0)
			return xb_fail(error, XB_E_SYSTEM, "asked for ofi:psm2; the link %s to %s failed: %s",
				       link, target, strerror(errno));
		if (!first[0])
			snprintf(first, sizeof(first), "%s", link);
	}
	setenv("HFI_SYSFS_PATH", first, 1);
	return XB_OK;
}

static int choose_device(struct ofi_omnipath *opa, const struct ofi_path *path, struct xb_error *error)
{
	char number[16], known[OFI_NAME_BYTES * 4] = "";

	if (!path->device[0])
		return XB_OK;
	if (!strcmp(path->device, "shm") || !strcmp(path->device, "hfi")) {
		setenv("PSM2_DEVICES", path->device[0] == 's' ? "self,shm" : "self,hfi", 1);
		return XB_OK;
	}
	for (unsigned i = 0; i < opa->units; i++) {
		char kernel_name[32];

		snprintf(kernel_name, sizeof(kernel_name), "hfi1_%u", opa->unit[i].number);
		if (!strcmp(path->device, kernel_name) || !strcmp(path->device, opa->unit[i].device)) {
			snprintf(number, sizeof(number), "%u", opa->unit[i].number);
			setenv("HFI_UNIT", number, 1);
			return XB_OK;
		}
		ofi_append(known, sizeof(known), opa->unit[i].device[0] ? opa->unit[i].device : kernel_name);
	}
	return xb_fail(
		error, XB_E_UNAVAILABLE,
		"asked for ofi:psm2/%s; Omni-Path adapters here: %s; name one of them, or give psm2/shm or "
		"psm2/hfi to choose the way PSM2 takes",
		path->device, known[0] ? known : "none");
}

int ofi_omnipath_prepare(struct ofi_omnipath *opa, const struct ofi_path *path, struct xb_error *error)
{
	char kernel_path[64];

	opa->devices_by_user = getenv("PSM2_DEVICES") != NULL;
	/* A path of another provider leaves the environment alone: PSM2 will not be asked. */
	if (path->provider[0] && strcmp(path->provider, "psm2"))
		return XB_OK;
	find_units(opa);
	/* Addresses are exchanged out of band; PSM2's name server would only open a port on every interface.
	 */
	setenv("FI_PSM2_NAME_SERVER", "0", 0);
	if (path->provider[0]) {
		int rc = choose_device(opa, path, error);

		if (rc != XB_OK)
			return rc;
	}
	if (!opa->units || getenv("HFI_SYSFS_PATH") || !opa->unit[0].device[0])
		return XB_OK;
	for (unsigned i = 0; i < opa->units; i++) {
		snprintf(kernel_path, sizeof(kernel_path), "hfi1_%u", opa->unit[i].number);
		if (opa->unit[i].device[0] && strcmp(opa->unit[i].device, kernel_path))
			return link_units(opa, error);
	}
	return XB_OK;
}

void ofi_omnipath_release(struct ofi_omnipath *opa)
{
	char link[192];

	if (!opa->folder[0])
		return;
	for (unsigned n = 0; n < OFI_MAX_UNITS; n++) {
		snprintf(link, sizeof(link), "%s/hfi1_%u", opa->folder, n);
		unlink(link);
	}
	rmdir(opa->folder);
	opa->folder[0] = '\0';
}

const char *ofi_omnipath_device(const struct ofi_omnipath *opa, const char *domain)
{
	unsigned number;

	if (sscanf(domain, "hfi1_%u", &number) == 1)
		for (unsigned i = 0; i < opa->units; i++)
			if (opa->unit[i].number == number && opa->unit[i].device[0])
				return opa->unit[i].device;
	return domain;
}

/* ---- libpsm2's own view. Its few types are spelled out so that a build needs no psm2 header. */
enum { PSM2_QUERY_NUM_UNITS = 0, PSM2_QUERY_CONFIG = 6 };
enum { PSM2_CONFIG_IPS = 1, PSM2_CONFIG_AMSH = 2, PSM2_CONFIG_SELF = 4 };
union psm2_argument {
	uint32_t number;
	size_t length;
	void *object; /* psm2_mq_t, psm2_epaddr_t */
};
struct psm2_epconn {
	void *addr, *ep, *mq;
};
typedef int psm2_info_query_fn(int query, void *out, size_t count, union psm2_argument *arguments);
typedef int psm2_lookup_fn(uint64_t epid, struct psm2_epconn *conn);

static void *psm2_symbol(const char *name)
{
	/* Not linked and never loaded by us: only asked if libfabric has brought it along. */
	void *handle = dlopen("libpsm2.so.2", RTLD_LAZY | RTLD_NOLOAD);
	void *symbol = dlsym(RTLD_DEFAULT, name);

	if (handle) {
		if (!symbol)
			symbol = dlsym(handle, name);
		dlclose(handle);
	}
	return symbol;
}

enum ofi_lane ofi_omnipath_lane(const void *peer_address)
{
	psm2_info_query_fn *query;
	psm2_lookup_fn *lookup;
	struct psm2_epconn conn = {0};
	union psm2_argument arguments[2];
	uint32_t config = 0;
	uint64_t epid;

	*(void **)&query = psm2_symbol("psm2_info_query");
	*(void **)&lookup = psm2_symbol("psm2_ep_epid_lookup");
	if (!query || !lookup)
		return OFI_LANE_UNKNOWN;
	memcpy(&epid, peer_address, sizeof(epid)); /* first member of the provider's address */
	if (lookup(epid, &conn) != 0 || !conn.mq || !conn.addr)
		return OFI_LANE_UNKNOWN; /* not connected yet: PSM2 connects with the first message */
	arguments[0].object = conn.mq;
	arguments[1].object = conn.addr;
	if (query(PSM2_QUERY_CONFIG, &config, 2, arguments) != 0)
		return OFI_LANE_UNKNOWN;
	if (config & PSM2_CONFIG_IPS)
		return OFI_LANE_FABRIC;
	if (config & PSM2_CONFIG_AMSH)
		return OFI_LANE_SHM;
	return config & PSM2_CONFIG_SELF ? OFI_LANE_SELF : OFI_LANE_UNKNOWN;
}

static bool sysfs_says(const char *device, const char *file, const char *expected)
{
	char path[128], text[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), CLASS "/%s/%s", device, file);
	f = fopen(path, "re");
	if (!f)
		return true; /* unknown is no reason */
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return strstr(text, expected) != NULL;
}

void ofi_omnipath_absent(const struct ofi_omnipath *opa, char *reason, size_t reason_bytes, char *remedy,
			 size_t remedy_bytes)
{
	const char *devices = getenv("PSM2_DEVICES");
	const char *device = opa->units ? opa->unit[0].device : "";
	psm2_info_query_fn *query;
	uint32_t units = 1;

	if (!opa->units) {
		snprintf(reason, reason_bytes, "no Omni-Path adapter (no /dev/hfi1_*)");
		snprintf(remedy, remedy_bytes, "run it on a node with an adapter and its hfi1 driver loaded");
		return;
	}
	*(void **)&query = psm2_symbol("psm2_info_query");
	if (query && query(PSM2_QUERY_NUM_UNITS, &units, 0, NULL) == 0 && units == 0 && devices &&
	    !strstr(devices, "hfi")) {
		snprintf(reason, reason_bytes,
			 "PSM2_DEVICES=%.32s makes this libpsm2 (11.2.229 or newer) report no adapter, and "
			 "libfabric's psm2 provider then refuses to start",
			 devices);
		snprintf(remedy, remedy_bytes,
			 "let PSM2_DEVICES contain hfi, or use ofi:shm for shared memory");
		return;
	}
	if (!device[0]) {
		snprintf(reason, reason_bytes,
			 "/dev/hfi1_%u is there, but no RDMA device of the hfi1 driver in " CLASS,
			 opa->unit[0].number);
		snprintf(remedy, remedy_bytes, "load hfi1 and ib_uverbs, or set HFI_SYSFS_PATH=DIR/hfi1_%u",
			 opa->unit[0].number);
	} else if (!sysfs_says(device, "ports/1/phys_state", "LinkUp") ||
		   !sysfs_says(device, "ports/1/state", "ACTIVE")) {
		snprintf(reason, reason_bytes, "the port of %s is not active", device);
		snprintf(remedy, remedy_bytes, "check cable and fabric manager (opainfo)");
	} else if (access("/dev/hfi1_0", R_OK | W_OK) != 0) {
		snprintf(reason, reason_bytes, "no permission to open /dev/hfi1_%u", opa->unit[0].number);
		snprintf(remedy, remedy_bytes, "add a udev rule that gives users access");
	} else {
		snprintf(reason, reason_bytes,
			 "libpsm2 finds no usable unit although %s (/dev/hfi1_%u) is there", device,
			 opa->unit[0].number);
		snprintf(remedy, remedy_bytes,
			 "see why with FI_LOG_LEVEL=info FI_LOG_PROV=psm2 fi_info -p psm2; free HFI contexts "
			 "(nfreectxts) may be used up");
	}
}

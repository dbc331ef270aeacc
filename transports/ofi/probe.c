/* SPDX-License-Identifier: BSD-3-Clause */
/* What `xportbench list` says of libfabric: every provider and device with reliable datagram endpoints, and
 * for the well-known ones that are missing the reason and the remedy. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ofi.h"

#define MAX_PATHS 64u

struct seen {
	char path[MAX_PATHS][OFI_NAME_BYTES * 2];
	size_t count;
};

static bool is_new(struct seen *seen, const char *path)
{
	for (size_t i = 0; i < seen->count; i++)
		if (!strcmp(seen->path[i], path))
			return false;
	if (seen->count == MAX_PATHS)
		return false;
	snprintf(seen->path[seen->count++], sizeof(seen->path[0]), "%s", path);
	return true;
}

static bool has_provider(const struct fi_info *list, const char *core)
{
	size_t n = strlen(core);

	for (; list; list = list->next) {
		const char *name = list->fabric_attr->prov_name;

		if (!strncmp(name, core, n) && (name[n] == '\0' || name[n] == ';'))
			return true;
	}
	return false;
}

/* The shortest name that resolves to this provider: "tcp" also stands for tcp;ofi_rxm where there is no other
 * tcp, as before libfabric 1.18. */
static void shortest_name(const struct fi_info *usable, const char *provider, char *name, size_t bytes)
{
	size_t core = strcspn(provider, ";");

	ofi_path_spell(provider, name, bytes);
	for (; usable; usable = usable->next)
		if (!strncmp(usable->fabric_attr->prov_name, provider, core) &&
		    strcmp(usable->fabric_attr->prov_name, provider) &&
		    (usable->fabric_attr->prov_name[core] == '\0' ||
		     usable->fabric_attr->prov_name[core] == ';'))
			return;
	snprintf(name, bytes, "%.*s", (int)core, provider);
}

static void report_path(const struct xb_probe_sink *sink, struct seen *seen, const struct ofi_omnipath *opa,
			const struct fi_info *usable, const struct fi_info *info, bool rma)
{
	char name[OFI_NAME_BYTES], device[OFI_NAME_BYTES], address[64], path[OFI_NAME_BYTES * 2], text[256];
	const char *provider = info->fabric_attr->prov_name;
	bool memory = !strncmp(provider, "shm", 3);

	shortest_name(usable, provider, name, sizeof(name));
	ofi_interface_of(info, device, sizeof(device));
	if (!device[0] || !strncmp(provider, "verbs", 5))
		ofi_domain_device(info, device, sizeof(device));
	if (!strcmp(provider, "psm2"))
		snprintf(device, sizeof(device), "%s", ofi_omnipath_device(opa, info->domain_attr->name));
	ofi_source_text(info, address, sizeof(address));
	snprintf(path, sizeof(path), "%s%s%s", name, memory ? "" : "/", memory ? "" : device);
	if (!is_new(seen, path))
		return;
	snprintf(text, sizeof(text), "%s%s%s, inject %zu B%s", provider, address[0] ? " at " : "", address,
		 info->tx_attr->inject_size, rma ? ", put and get" : "");
	sink->path(sink->user, path, text, 1, NULL, NULL);
}

static bool rdma_device_here(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *entry;
	bool any = false;

	while (dir && !any && (entry = readdir(dir)))
		any = entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return any;
}

static void report_absent(const struct xb_probe_sink *sink, const struct fi_info *usable,
			  const struct fi_info *built, const struct ofi_omnipath *opa)
{
	static const char *const known[] = {"psm2", "verbs", "shm", "opx", "efa"};
	char reason[256], remedy[256];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const char *name = known[i];
		bool in_library = has_provider(built, name);

		if (has_provider(usable, name))
			continue;
		snprintf(reason, sizeof(reason), "this libfabric does not contain the %s provider", name);
		snprintf(remedy, sizeof(remedy),
			 "install a libfabric built with it (fi_info -l lists what there is)");
		if (!strcmp(name, "psm2") && in_library) {
			ofi_omnipath_absent(opa, reason, sizeof(reason), remedy, sizeof(remedy));
		} else if (!strcmp(name, "verbs") && !rdma_device_here()) {
			snprintf(reason, sizeof(reason), "no RDMA device (/sys/class/infiniband is empty)");
			snprintf(remedy, sizeof(remedy),
				 "load the adapter's driver; for software RDMA: rdma link add rxe0 type rxe "
				 "netdev IF");
		} else if (!strcmp(name, "verbs")) {
			snprintf(reason, sizeof(reason),
				 "there is an RDMA device, but the verbs provider offers no reliable "
				 "datagram endpoint");
			snprintf(remedy, sizeof(remedy),
				 "give the device's interface an IP address (ip address add); load ib_uverbs "
				 "and rdma_ucm");
		} else if (!strcmp(name, "shm") && access("/dev/shm", W_OK) != 0) {
			snprintf(reason, sizeof(reason), "/dev/shm is not writable");
			snprintf(remedy, sizeof(remedy), "mount a tmpfs there");
		} else if (in_library) {
			snprintf(reason, sizeof(reason), "the %s provider finds no device of its kind", name);
			snprintf(remedy, sizeof(remedy), "see why with FI_LOG_LEVEL=info fi_info -p %s",
				 name);
		}
		sink->path(sink->user, name, "", 0, reason, remedy);
	}
}

int ofi_probe(const struct xb_probe_sink *sink, struct xb_error *error)
{
	const struct ofi_path any = {.provider = ""};
	const struct ofi_need messages = {0}, one_sided = {.rma = true};
	struct ofi_library lib = {0};
	struct ofi_omnipath opa = {0};
	struct fi_info *usable = NULL, *with_rma = NULL, *built = NULL, *hints;
	struct seen *seen = calloc(1, sizeof(*seen));
	int rc;

	if (!seen)
		return xb_fail(error, XB_E_RESOURCE, "out of memory");
	rc = ofi_omnipath_prepare(&opa, &any, error);
	/* fewer peers than libfabric's default, or small adapters have no room for verbs' queues */
	setenv("FI_UNIVERSE_SIZE", "16", 0);
	if (rc == XB_OK)
		rc = ofi_library_load(&lib, error);
	if (rc == XB_OK) {
		sink->library(sink->user, "libfabric", lib.version);
		hints = ofi_hints(&lib, "", &messages);
		if (hints)
			lib.getinfo(lib.api, NULL, NULL, 0, hints, &usable);
		lib.freeinfo(hints);
		hints = ofi_hints(&lib, "", &one_sided);
		if (hints)
			lib.getinfo(lib.api, NULL, NULL, 0, hints, &with_rma);
		lib.freeinfo(hints);
		lib.getinfo(lib.api, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &built);
		for (const struct fi_info *i = usable; i; i = i->next)
			report_path(sink, seen, &opa, usable, i,
				    has_provider(with_rma, i->fabric_attr->prov_name));
		report_absent(sink, usable, built, &opa);
		lib.freeinfo(usable);
		lib.freeinfo(with_rma);
		lib.freeinfo(built);
	}
	ofi_omnipath_release(&opa);
	free(seen);
	return rc;
}

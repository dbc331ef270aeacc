/* SPDX-License-Identifier: BSD-3-Clause */
/* What UCX could use on this machine: its transports and their devices, asked of UCT as UCP itself does. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "ucx.h"
#include <uct/api/uct.h>

static int kind_of(uct_device_type_t type)
{
	switch (type) {
	case UCT_DEVICE_TYPE_NET:
		return XB_UCX_NET;
	case UCT_DEVICE_TYPE_SHM:
		return XB_UCX_SHM;
	case UCT_DEVICE_TYPE_SELF:
		return XB_UCX_SELF;
	default:
		return XB_UCX_ACCELERATOR;
	}
}

static void read_domain(uct_component_h component, const char *name, struct xb_ucx_inventory *inventory)
{
	uct_tl_resource_desc_t *resources;
	uct_md_config_t *config;
	unsigned count;
	uct_md_h domain;

	if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK)
		return;
	if (uct_md_open(component, name, config, &domain) != UCS_OK)
		goto out_config;
	if (uct_md_query_tl_resources(domain, &resources, &count) != UCS_OK)
		goto out_domain;
	for (unsigned i = 0; i < count; i++) {
		struct xb_ucx_resource *item = &inventory->items[inventory->count];

		if (inventory->count == sizeof(inventory->items) / sizeof(inventory->items[0])) {
			inventory->truncated = 1;
			break;
		}
		snprintf(item->tl, sizeof(item->tl), "%s", resources[i].tl_name);
		snprintf(item->device, sizeof(item->device), "%s", resources[i].dev_name);
		item->kind = kind_of(resources[i].dev_type);
		inventory->count++;
	}
	uct_release_tl_resource_list(resources);
out_domain:
	uct_md_close(domain);
out_config:
	uct_config_release(config);
}

static void read_component(uct_component_h component, struct xb_ucx_inventory *inventory)
{
	uct_component_attr_t attributes = {.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};

	if (uct_component_query(component, &attributes) != UCS_OK || attributes.md_resource_count == 0)
		return;
	attributes.md_resources = calloc(attributes.md_resource_count, sizeof(*attributes.md_resources));
	if (attributes.md_resources == NULL)
		return;
	attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
	if (uct_component_query(component, &attributes) == UCS_OK)
		for (unsigned i = 0; i < attributes.md_resource_count; i++)
			read_domain(component, attributes.md_resources[i].md_name, inventory);
	free(attributes.md_resources);
}

int xb_ucx_inventory_read(struct xb_ucx_inventory *inventory, struct xb_error *error)
{
	uct_component_h *components;
	unsigned count;
	ucs_status_t status;

	memset(inventory, 0, sizeof(*inventory));
	status = uct_query_components(&components, &count);
	if (status != UCS_OK)
		return xb_fail(error, XB_E_TRANSPORT, "ucx: cannot list the components of this UCX: %s",
			       ucs_status_string(status));
	for (unsigned i = 0; i < count; i++)
		read_component(components[i], inventory);
	uct_release_component_list(components);
	return 0;
}

void xb_ucx_inventory_print(const struct xb_ucx_inventory *inventory, char *out, size_t bytes)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < inventory->count && used < bytes; i++) {
		const struct xb_ucx_resource *item = &inventory->items[i];
		int seen = 0, listed = 0;

		if (item->kind == XB_UCX_SELF)
			continue; /* reaches only the process itself */
		for (size_t k = 0; k < i; k++)
			seen |= strcmp(inventory->items[k].tl, item->tl) == 0;
		if (seen)
			continue;
		used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? ", " : "", item->tl);
		for (size_t k = i; k < inventory->count && used < bytes && item->kind == XB_UCX_NET; k++)
			if (strcmp(inventory->items[k].tl, item->tl) == 0)
				used += (size_t)snprintf(out + used, bytes - used, "%s%s",
							 listed++ ? ", " : " (", inventory->items[k].device);
		if (listed && used < bytes)
			used += (size_t)snprintf(out + used, bytes - used, ")");
	}
	if (used == 0)
		snprintf(out, bytes, "nothing");
}

/* rxe is the only driver whose devices have a "parent" (the interface below); siw is iWARP and has none. */
int xb_ucx_is_soft_roce(const char *device)
{
	char pattern[128];
	glob_t found;
	int any;

	snprintf(pattern, sizeof(pattern), "/sys/class/infiniband/%.*s/parent",
		 device ? (int)strcspn(device, ":") : 1, device ? device : "*");
	any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
	if (any)
		globfree(&found);
	return any;
}

const char *xb_ucx_tl_purpose(const char *tl)
{
	static const struct {
		const char *tl, *text;
	} known[] = {
		{"tcp", "TCP sockets"},
		{"posix", "shared memory, POSIX segments"},
		{"sysv", "shared memory, System V segments"},
		{"cma", "copy out of the peer's memory (process_vm_readv) for large messages"},
		{"knem", "copy through the knem kernel module for large messages"},
		{"xpmem", "peer memory mapped by the xpmem kernel module"},
		{"rc_verbs", "RDMA, reliable connection, libibverbs"},
		{"rc_mlx5", "RDMA, reliable connection, accelerated for Mellanox/NVIDIA adapters"},
		{"ud_verbs", "RDMA, unreliable datagrams made reliable, libibverbs"},
		{"ud_mlx5",
		 "RDMA, unreliable datagrams made reliable, accelerated for Mellanox/NVIDIA adapters"},
		{"dc_mlx5", "RDMA, dynamically connected, Mellanox/NVIDIA adapters"},
		{"gga_mlx5", "RDMA through the adapter's copy engine, NVIDIA DPUs"},
		{"rc", "RDMA, reliable connection"},
		{"ud", "RDMA, unreliable datagrams made reliable"},
		{"dc", "RDMA, dynamically connected"},
		{"cuda", "NVIDIA GPU memory"},
		{"srd", "Scalable Reliable Datagram, AWS EFA"},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].tl, tl) == 0)
			return known[i].text;
	return "";
}

static int have_rdma_device(void)
{
	glob_t found;
	int any = glob("/sys/class/infiniband/*", GLOB_NOSORT, NULL, &found) == 0;

	if (any)
		globfree(&found);
	return any;
}

const char *xb_ucx_absent_reason(const char *tl, const char **remedy)
{
	if (strncmp(tl, "rc", 2) == 0 || strncmp(tl, "ud", 2) == 0 || strncmp(tl, "dc", 2) == 0 ||
	    strcmp(tl, "ib") == 0) {
		if (!have_rdma_device()) {
			*remedy = "needs an InfiniBand or RoCE adapter and its driver, or soft-RoCE: rdma "
				  "link add rxe0 type rxe netdev IFACE";
			return "no RDMA device (/sys/class/infiniband is empty or absent)";
		}
		if (strncmp(tl, "dc", 2) == 0 || strstr(tl, "mlx5") || strstr(tl, "_x")) {
			*remedy = "needs a Mellanox/NVIDIA adapter and a UCX built with mlx5 support; "
				  "elsewhere use rc or ud";
			return "not offered by UCX for the RDMA devices here";
		}
		*remedy = "check that a port is ACTIVE (ibv_devinfo), that /dev/infiniband/uverbs* may be "
			  "opened, and that UCX was built with verbs (ucx_info -d)";
		return "there is an RDMA device, but UCX cannot use it";
	}
	if (strcmp(tl, "knem") == 0 || strcmp(tl, "xpmem") == 0) {
		*remedy =
			"load the kernel module and use a UCX built with it; cma does much the same without";
		return "no such kernel module, or UCX was built without it";
	}
	if (strncmp(tl, "cuda", 4) == 0 || strncmp(tl, "rocm", 4) == 0 || strncmp(tl, "gdr", 3) == 0 ||
	    strncmp(tl, "ze", 2) == 0) {
		*remedy = "needs a GPU, its driver and a UCX built for it; xportbench's buffers are host "
			  "memory";
		return "no GPU support in UCX here";
	}
	if (strcmp(tl, "cma") == 0) {
		*remedy = "needs a kernel with process_vm_readv and the permission to use it (ptrace scope, "
			  "seccomp)";
		return "copying between processes is not allowed here, or UCX was built without it";
	}
	if (strncmp(tl, "ugni", 4) == 0) {
		*remedy = "needs a Cray Gemini or Aries network";
		return "no such network";
	}
	*remedy = NULL;
	return NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi.h"

static void describe_psm2(const struct ofi_context *c, const struct ofi_connection *k,
			  struct xb_description *out)
{
	const char *domain = c->info->domain_attr->name;
	const char *device = ofi_omnipath_device(&c->opa, domain);
	const char *devices = getenv("PSM2_DEVICES");
	bool shm_by_path = !strcmp(c->path.device, "shm"), hfi_by_path = !strcmp(c->path.device, "hfi");
	enum ofi_lane lane = k ? ofi_omnipath_lane(k->peer_name) : OFI_LANE_UNKNOWN;
	bool no_fabric =
		devices && !strstr(devices, "hfi") && !strstr(devices, "ips") && !strstr(devices, "ipath");

	/* What libpsm2 says of this very peer counts; before the first message there is only the
	 * configuration. */
	if (no_fabric && lane != OFI_LANE_FABRIC) {
		snprintf(out->resolved, sizeof(out->resolved), "psm2 (self,shm) %s", device);
		out->path_ok = shm_by_path || (c->opa.devices_by_user && !hfi_by_path);
		snprintf(out->note, sizeof(out->note),
			 out->path_ok ? "PSM2_DEVICES=%s: PSM2's shared memory, not Omni-Path"
				      : "asked for Omni-Path; PSM2_DEVICES=%s leaves only shared memory",
			 devices);
	} else if (lane == OFI_LANE_SHM) {
		snprintf(out->resolved, sizeof(out->resolved), "psm2 (shm) %s", device);
		out->path_ok = shm_by_path;
		snprintf(out->note, sizeof(out->note),
			 "asked for Omni-Path; PSM2 reaches a peer on the same host through shared memory; "
			 "use two "
			 "hosts, or ofi:psm2/hfi");
	} else if (lane == OFI_LANE_FABRIC) {
		snprintf(out->resolved, sizeof(out->resolved), "psm2 (hfi) %s", device);
		snprintf(out->device, sizeof(out->device), "%s", device);
		out->path_ok = !shm_by_path;
	} else {
		snprintf(out->resolved, sizeof(out->resolved), "psm2 (%s, not connected yet) %s",
			 devices ? devices : "self,shm,hfi", device);
		snprintf(out->device, sizeof(out->device), "%s", device);
		out->path_ok = 1;
	}
}

static void describe_address(const struct ofi_context *c, struct xb_description *out)
{
	char address[64], interface[64], device[64];
	const char *provider = c->info->fabric_attr->prov_name;

	ofi_source_text(c->info, address, sizeof(address));
	ofi_interface_of(c->info, interface, sizeof(interface));
	ofi_domain_device(c->info, device, sizeof(device));
	out->path_ok = ofi_path_matches(c->path.provider, provider);
	if (!out->path_ok)
		snprintf(out->note, sizeof(out->note), "asked for %s; libfabric resolved it to %s",
			 c->path.provider, provider);
	if (!strncmp(provider, "shm", 3)) {
		snprintf(out->resolved, sizeof(out->resolved), "%s (shared memory)", provider);
		return;
	}
	/* verbs and its like carry the bytes on an RDMA device although they are addressed by an IP address
	 */
	if (!interface[0] || !strncmp(provider, "verbs", 5) || !strncmp(provider, "efa", 3))
		snprintf(out->device, sizeof(out->device), "%s", device);
	else
		snprintf(out->device, sizeof(out->device), "%s", interface);
	snprintf(out->resolved, sizeof(out->resolved), "%s on %s%s%s", provider, out->device,
		 address[0] ? " " : "", address);
}

static void add_note(struct xb_description *out, const char *text)
{
	size_t used = strlen(out->note);

	if (used < sizeof(out->note) - 3)
		snprintf(out->note + used, sizeof(out->note) - used, "%s%s", used ? "; " : "", text);
}

int ofi_describe(void *context, void *conn, struct xb_description *out, struct xb_error *error)
{
	const struct ofi_context *c = context;
	const struct ofi_connection *k = conn;
	char text[96];

	(void)error;
	memset(out, 0, sizeof(*out));
	snprintf(out->library, sizeof(out->library), "libfabric");
	snprintf(out->version, sizeof(out->version), "%s", c->lib.version);
	if (!strcmp(c->info->fabric_attr->prov_name, "psm2"))
		describe_psm2(c, k && k->context ? k : NULL, out);
	else
		describe_address(c, out);
	out->caps = XB_CAP_SEND | XB_CAP_READY_SEND | XB_CAP_BOTH_WAYS;
	if (c->rma)
		out->caps |= XB_CAP_PUT | XB_CAP_GET;
	if (c->sync)
		out->caps |= XB_CAP_SYNC_SEND;
	out->max_message_bytes = c->info->ep_attr->max_msg_size;
	snprintf(text, sizeof(text), "%s messages, inject up to %zu B", c->tagged ? "tagged" : "untagged",
		 k && k->context ? k->inject_bytes : c->info->tx_attr->inject_size);
	add_note(out, text);
	if (c->rma && !c->delivery)
		add_note(out, "put visible by read-back");
	if (c->sleeping)
		add_note(out, "waits asleep in fi_cq_sread");
	return XB_OK;
}

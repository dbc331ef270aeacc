/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "verbs.h"

static void add_note(struct xb_description *out, const char *text)
{
	size_t used = strlen(out->note);

	if (used < sizeof(out->note) - 3)
		snprintf(out->note + used, sizeof(out->note) - used, "%s%s", used ? "; " : "", text);
}

static void route_text(const struct vb_context *c, const struct vb_connection *k, char *text, size_t bytes)
{
	char gid[VB_GID_TEXT_BYTES], lid[16];

	snprintf(lid, sizeof(lid), "%u", c->port.port.lid + (k ? k->route.path_bits : 0u));
	if (vb_is_iwarp(&c->port))
		snprintf(text, bytes, "iWARP");
	else if (vb_is_ethernet(&c->port))
		snprintf(text, bytes, "%s gid %d (%s)", vb_gid_type_name(c->port.gid.type), c->port.gid.index,
			 vb_gid_text(&c->port.gid.gid, gid));
	else if (k && k->route.global)
		snprintf(text, bytes, "InfiniBand lid %s, gid %d (%s)", lid, c->port.gid.index,
			 vb_gid_text(&c->port.gid.gid, gid));
	else
		snprintf(text, bytes, "InfiniBand lid %s", lid);
	if (c->set.cm) {
		size_t used = strlen(text);

		snprintf(text + used, bytes - used, ", rdma_cm from ");
		used = strlen(text);
		vb_cm_text(c, text + used, bytes - used);
	}
}

int vb_describe(void *context, void *conn, struct xb_description *out, struct xb_error *error)
{
	const struct vb_context *c = context;
	const struct vb_connection *k = conn;
	const bool ud = c->set.kind == VB_UD;
	unsigned mtu_bytes;
	char route[192];

	(void)error;
	if (k && !k->context)
		k = NULL;
	mtu_bytes = k ? k->mtu_bytes : c->mtu_bytes;
	memset(out, 0, sizeof(*out));
	snprintf(out->library, sizeof(out->library), "libibverbs");
	vb_library_version(out->version, sizeof(out->version));
	route_text(c, k, route, sizeof(route));
	snprintf(out->resolved, sizeof(out->resolved), "%s on %s port %u, %s, mtu %u, inline %u",
		 ud ? "UD" : "RC", c->port.name, c->port.number, route, mtu_bytes, c->inline_bytes);
	snprintf(out->device, sizeof(out->device), "%.55s/%u", c->port.name, c->port.number);
	out->caps = XB_CAP_SEND | XB_CAP_READY_SEND | XB_CAP_BOTH_WAYS;
	if (vb_acknowledges_receives(c))
		out->caps |= XB_CAP_SYNC_SEND;
	if (c->op != XB_OP_SEND)
		out->caps |= XB_CAP_PUT | XB_CAP_GET | XB_CAP_PUT_WATCH;
	out->max_message_bytes = ud ? mtu_bytes : c->port.port.max_msg_sz;
	out->eager_bytes = c->inline_bytes;
	out->mtu_bytes = c->mtu_bytes;
	out->path_ok = 1; /* what was asked for is what was opened */
	if (vb_is_soft(c->port.name))
		add_note(out, "software RDMA: says nothing about the speed of an adapter");
	if (ud)
		add_note(out, "unreliable: a lost message ends the block at its deadline");
	if (c->set.events)
		add_note(out, "waits asleep on a completion channel");
	if (c->set.relaxed)
		add_note(out, "relaxed PCIe ordering");
	if (c->set.immediate)
		add_note(out, "writes with immediate");
	if (c->op == XB_OP_WRITE_POLL)
		add_note(out, c->set.immediate ? "the target waits for a completion"
					       : "the target polls its memory");
	else if (c->op != XB_OP_SEND)
		add_note(out,
			 c->set.read_back ? "put visible by read-back" : "put visible when acknowledged");
	return XB_OK;
}

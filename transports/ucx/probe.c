/* SPDX-License-Identifier: BSD-3-Clause */
/* `xportbench list`: which ucx paths work here, and for the well-known ones that do not, why and what to do.
 */
#include <string.h>

#include "ucx.h"

/* What a user would write for a transport of UCT: its group where there is one. */
static const char *path_of(const char *tl)
{
	static const struct {
		const char *tl, *path;
	} groups[] = {{"rc_verbs", "rc"},
		      {"rc_mlx5", "rc"},
		      {"ud_verbs", "ud"},
		      {"ud_mlx5", "ud"},
		      {"dc_mlx5", "dc"}};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (strcmp(groups[i].tl, tl) == 0)
			return groups[i].path;
	return tl;
}

static int listed_before(const struct xb_ucx_inventory *inventory, size_t index)
{
	const struct xb_ucx_resource *item = &inventory->items[index];

	for (size_t i = 0; i < index; i++)
		if (strcmp(path_of(inventory->items[i].tl), path_of(item->tl)) == 0 &&
		    strcmp(inventory->items[i].device, item->device) == 0)
			return 1;
	return 0;
}

static void list_usable(const struct xb_probe_sink *sink, const struct xb_ucx_inventory *inventory)
{
	char path[2 * XB_UCX_NAME_BYTES + 2], text[256];

	sink->path(sink->user, "", "whatever UCX picks (shared memory between processes of one host)", 1,
		   NULL, NULL);
	for (size_t i = 0; i < inventory->count; i++) {
		const struct xb_ucx_resource *item = &inventory->items[i];
		const int net = item->kind == XB_UCX_NET;
		const char *name = path_of(item->tl);

		if (item->kind == XB_UCX_SELF || item->kind == XB_UCX_ACCELERATOR ||
		    listed_before(inventory, i))
			continue;
		snprintf(path, sizeof(path), "%s%s%s", name, net ? "/" : "", net ? item->device : "");
		snprintf(text, sizeof(text), "%s%s%s", xb_ucx_tl_purpose(item->tl), net ? ", " : "",
			 !net				     ? ""
			 : xb_ucx_is_soft_roce(item->device) ? "software RoCE"
							     : item->device);
		sink->path(sink->user, path, text, 1, NULL, NULL);
	}
}

static void list_absent(const struct xb_probe_sink *sink, const struct xb_ucx_inventory *inventory)
{
	static const char *const well_known[] = {"rc", "ud", "dc", "cma", "xpmem", "knem", "cuda"};

	for (size_t i = 0; i < sizeof(well_known) / sizeof(well_known[0]); i++) {
		const char *const *members = xb_ucx_alias(well_known[i]);
		const char *reason, *remedy = NULL;
		int present = 0;

		for (size_t k = 0; k < inventory->count; k++) {
			present |= strcmp(inventory->items[k].tl, well_known[i]) == 0;
			for (size_t m = 0; members && members[m]; m++)
				present |= strcmp(inventory->items[k].tl, members[m]) == 0;
		}
		reason = xb_ucx_absent_reason(well_known[i], &remedy);
		if (!present && reason)
			sink->path(sink->user, well_known[i], xb_ucx_tl_purpose(well_known[i]), 0, reason,
				   remedy);
	}
}

int xb_ucx_probe(const struct xb_probe_sink *sink, struct xb_error *error)
{
	struct xb_ucx_inventory inventory;
	int status;

	xb_ucx_log_start(0);
	sink->library(sink->user, "UCX", ucp_get_version_string());
	status = xb_ucx_inventory_read(&inventory, error);
	if (status == 0) {
		list_usable(sink, &inventory);
		list_absent(sink, &inventory);
	}
	xb_ucx_log_stop();
	return status;
}

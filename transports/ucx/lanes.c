/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lanes of an endpoint: what UCX really sends over. Before 1.14 there is no call that tells them, only
 * ucp_ep_print_info; its text is also the only source of the protocol thresholds.
 */
#include <stdlib.h>
#include <string.h>

#include "ucx.h"

#define HAVE_TRANSPORT_QUERY (UCP_API_VERSION >= UCP_VERSION(1, 14))

#if HAVE_TRANSPORT_QUERY
static void query_lanes(ucp_ep_h ep, struct xb_ucx_lanes *lanes)
{
	ucp_transport_entry_t entries[16];
	ucp_ep_attr_t attributes = {
		.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS,
		.transports = {.entries = entries, .num_entries = 16, .entry_size = sizeof(entries[0])},
	};

	if (ucp_ep_query(ep, &attributes) != UCS_OK || attributes.transports.num_entries == 0)
		return;
	lanes->count = 0; /* more exact than the text */
	for (unsigned i = 0; i < attributes.transports.num_entries; i++)
		xb_ucx_lanes_add(lanes, entries[i].transport_name, entries[i].device_name);
}
#endif

int xb_ucx_lanes_read(ucp_ep_h ep, struct xb_ucx_lanes *lanes, struct xb_error *error)
{
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	memset(lanes, 0, sizeof(*lanes));
	if (stream == NULL)
		return xb_fail(error, XB_E_RESOURCE, "ucx: no memory to read back the lanes of an endpoint");
	ucp_ep_print_info(ep, stream);
	fclose(stream);
	if (text)
		xb_ucx_lanes_parse(text, lanes);
	free(text);
#if HAVE_TRANSPORT_QUERY
	query_lanes(ep, lanes);
#endif
	return 0;
}

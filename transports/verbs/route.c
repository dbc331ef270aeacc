/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "route.h"

#define PREFIX_BYTES 8

static bool subnets_differ(const struct vb_route_end *a, const struct vb_route_end *b)
{
	static const uint8_t unknown[PREFIX_BYTES];

	return memcmp(a->gid, unknown, PREFIX_BYTES) != 0 && memcmp(b->gid, unknown, PREFIX_BYTES) != 0 &&
	       memcmp(a->gid, b->gid, PREFIX_BYTES) != 0;
}

enum vb_route_fault vb_route_choose(const struct vb_route_end *mine, const struct vb_route_end *theirs,
				    bool gid_asked, int offset, struct vb_route *route)
{
	const unsigned bits = offset < 0 ? 0 : (unsigned)offset;

	*route = (struct vb_route){0};
	if (mine->ethernet) {
		route->global = true;
		return VB_ROUTE_OK;
	}
	if (subnets_differ(mine, theirs))
		return VB_ROUTE_OTHER_SUBNET;
	route->global = gid_asked || mine->needs_grh || theirs->needs_grh;
	if (bits >> mine->lmc)
		return VB_ROUTE_FEW_LIDS_HERE;
	if (bits >> theirs->lmc)
		return VB_ROUTE_FEW_LIDS_THERE;
	if (!theirs->lid && !route->global)
		return VB_ROUTE_NO_LID;
	/* the low lmc bits of a base LID are 0 */
	route->path_bits = (uint8_t)bits;
	route->dlid = theirs->lid ? (uint16_t)(theirs->lid + bits) : 0;
	return VB_ROUTE_OK;
}

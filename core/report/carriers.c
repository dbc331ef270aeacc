/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "carriers.h"
#include "results.h"
#include "text.h"

void xb_link_take_slower(struct xb_link *link, const struct xb_link *other)
{
	if (other->bits_per_s > 0 && (link->bits_per_s == 0 || other->bits_per_s < link->bits_per_s))
		*link = *other;
}

void xb_carriers_add(struct xb_carriers *carriers, const char *device, double share, double bits_per_s)
{
	struct xb_link alone = {"", bits_per_s > 0 ? bits_per_s : 0}, *rails = &carriers->rails;

	if (!(share >= XB_RAIL_SHARE))
		return;
	snprintf(alone.names, sizeof(alone.names), "%.64s", device);
	if (share >= XB_WHOLE_SHARE) {
		xb_link_take_slower(&carriers->slowest, &alone);
		return;
	}
	carriers->unknown_rail |= alone.bits_per_s == 0;
	carriers->rails_share += share;
	rails->bits_per_s += alone.bits_per_s;
	xb_append(rails->names, sizeof(rails->names), "%s%s", *rails->names ? " and " : "", alone.names);
}

struct xb_link xb_carriers_slowest(const struct xb_carriers *carriers)
{
	struct xb_link slowest = carriers->slowest;

	if (carriers->rails_share >= XB_CARRIER_SHARE && !carriers->unknown_rail)
		xb_link_take_slower(&slowest, &carriers->rails);
	return slowest;
}

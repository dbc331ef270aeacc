/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_REPORT_CARRIERS_H
#define XB_REPORT_CARRIERS_H
/*
 * Which devices of a host carried the payload, and what they can carry at most. A device that all of the
 * payload passed is a limit by itself (a bond, and the adapter below a bridge); those that have parts of it
 * are rails, and a limit together.
 */
struct xb_link { /* "hfi1_0/1", or "mlx5_0/1 and mlx5_1/1", and the rate in one direction; 0: not known */
	char names[160];
	double bits_per_s;
};

struct xb_carriers { /* zeroed before the first device of a host */
	struct xb_link slowest, rails;
	double rails_share;
	int unknown_rail;
};

/* share: of the host's payload that the device has seen, 0 ... 1 or a little more; NAN: not known. */
void xb_carriers_add(struct xb_carriers *carriers, const char *device, double share, double bits_per_s);
/* What can carry the least. */
struct xb_link xb_carriers_slowest(const struct xb_carriers *carriers);
/* Puts `other` in the place of *link if it is slower; a rate that is not known is no limit. */
void xb_link_take_slower(struct xb_link *link, const struct xb_link *other);

#endif

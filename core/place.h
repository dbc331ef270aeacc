/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_PLACE_H
#define XB_PLACE_H
/* Which kernel, and which network namespace of it, a process runs in: whether two ends share a machine, or
 * even a loopback interface. Linked into every plugin. */
#include <stdint.h>

struct xb_place { /* plain bytes: may be sent to a peer */
	char boot_id[40]; /* "": not known */
	uint64_t netns; /* 0: not known */
};

struct xb_place xb_place_here(void);
int xb_place_same_host(const struct xb_place *a, const struct xb_place *b);
int xb_place_same_netns(const struct xb_place *a, const struct xb_place *b);

#endif

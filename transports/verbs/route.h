/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_VERBS_ROUTE_H
#define XB_VERBS_ROUTE_H
/* How one port reaches another: pure decisions, without a device. */
#include <stdbool.h>
#include <stdint.h>

/* What matters of a port, mine or the peer's. */
struct vb_route_end {
	bool ethernet; /* RoCE: there are no LIDs */
	bool needs_grh; /* the port insists on it (IBV_QPF_GRH_REQUIRED) */
	uint16_t lid; /* the first one; 0: none */
	uint8_t lmc; /* it has 2^lmc of them */
	uint8_t gid[16]; /* subnet prefix, and identifier in it */
};
struct vb_route {
	uint16_t dlid; /* 0: routed by GID alone */
	uint8_t path_bits; /* of my own LID */
	bool global; /* with a global route header */
};
enum vb_route_fault {
	VB_ROUTE_OK,
	VB_ROUTE_NO_LID, /* the peer has no LID and none of the reasons for a global header holds */
	VB_ROUTE_FEW_LIDS_HERE, /* offset is beyond my 2^lmc LIDs */
	VB_ROUTE_FEW_LIDS_THERE, /* ... beyond the peer's */
	VB_ROUTE_OTHER_SUBNET, /* packets would have to go to a router, whose LID only a path record tells */
};

/*
 * The route from `mine` to `theirs`. gid_asked: the user named a GID. offset: which of the LIDs of both
 * ports, -1: the first.
 *
 * Global route header: always on Ethernet; on InfiniBand where either port needs it, and where a GID was
 * named (ibv_rc_pingpong -g). Between subnets it is not enough: the LID in front of it must be the router's,
 * which rdma_cm asks the subnet manager for. A prefix of 0 is one that is not known. LIDs: the peer's base
 * LID and path bits 0, as libibverbs' examples take them; with an offset both ends' base LID plus it, as a
 * path record of the subnet manager would say, which goes another way through a fat tree.
 */
enum vb_route_fault vb_route_choose(const struct vb_route_end *mine, const struct vb_route_end *theirs,
				    bool gid_asked, int offset, struct vb_route *route);

#endif

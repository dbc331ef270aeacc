/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_UCX_NAMES_H
#define XB_UCX_NAMES_H
/*
 * Transports, devices, paths and lanes by their names: the part of the backend that needs nothing of UCX and
 * is tested without it.
 */
#include <stddef.h>

#include "error.h"

#define XB_UCX_MAX_NAMES 32u
#define XB_UCX_NAME_BYTES 32u

/* ---- inventory.c */
struct xb_ucx_resource {
	char tl[XB_UCX_NAME_BYTES], device[XB_UCX_NAME_BYTES]; /* "tcp" "eth0"; "rc_verbs" "mlx5_0:1" */
	enum { XB_UCX_NET, XB_UCX_SHM, XB_UCX_ACCELERATOR, XB_UCX_SELF } kind;
};
struct xb_ucx_inventory {
	struct xb_ucx_resource items[128];
	size_t count;
	int truncated; /* there were more */
};
int xb_ucx_inventory_read(struct xb_ucx_inventory *inventory, struct xb_error *error);
/* "tcp (eth0, lo), posix, sysv, cma" */
void xb_ucx_inventory_print(const struct xb_ucx_inventory *inventory, char *out, size_t bytes);
/* Is "rxe0:1" the kernel's software RoCE? NULL: is there any here? */
int xb_ucx_is_soft_roce(const char *device);
const char *xb_ucx_tl_purpose(const char *tl);
/* Why a transport that is not offered here is absent, and what to do; NULL if nothing is known about it. */
const char *xb_ucx_absent_reason(const char *tl, const char **remedy);

/* ---- path.c */
struct xb_ucx_path {
	char tls[256]; /* for UCX_TLS; "" leaves the choice to UCX and its environment */
	char devices[256]; /* for UCX_NET_DEVICES; "" likewise */
	char asked[128]; /* the transports as the user wrote them */
	char text[400]; /* "tcp/eth1", for messages; "any transport" */
	/* Asked ones, aliases expanded: lanes must be among them. */
	char tl[XB_UCX_MAX_NAMES][XB_UCX_NAME_BYTES];
	char device[XB_UCX_MAX_NAMES][XB_UCX_NAME_BYTES];
	size_t tl_count, device_count;
	int soft_roce; /* some RDMA device asked for, or used by default, is soft-RoCE */
	char note[96]; /* what was added to the request, for the reader of the result */
};
/* Splits and checks the path against the inventory. */
int xb_ucx_path_parse(const char *text, const struct xb_ucx_inventory *inventory, struct xb_ucx_path *path,
		      struct xb_error *error);
/* Transports behind a name that UCX understands as a group ("rc", "shm"), or NULL. Ends with NULL. */
const char *const *xb_ucx_alias(const char *name);

/* ---- lanes_text.c */
struct xb_ucx_lane {
	char tl[XB_UCX_NAME_BYTES], device[XB_UCX_NAME_BYTES];
};
struct xb_ucx_lanes {
	struct xb_ucx_lane items[16]; /* without repetitions, in UCX's order */
	size_t count;
	size_t eager_bytes; /* largest message sent eagerly; 0 unknown */
};
void xb_ucx_lanes_add(struct xb_ucx_lanes *lanes, const char *tl, const char *device);
/* Adds what the text of ucp_ep_print_info says. */
void xb_ucx_lanes_parse(const char *text, struct xb_ucx_lanes *lanes);
/* 1 if the lanes are what the path asked for; else 0 and a sentence in why. */
int xb_ucx_lanes_check(const struct xb_ucx_lanes *lanes, const struct xb_ucx_path *path, char *why,
		       size_t bytes);
int xb_ucx_is_shared_memory(const char *tl);
int xb_ucx_is_local(const char *tl); /* shared memory, self or a copy inside an accelerator: not a network */

#endif

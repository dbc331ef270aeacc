/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_OFI_H
#define XB_OFI_H
/*
 * libfabric backend, inside view. One context is one endpoint: fabric, domain, completion queue, address
 * vector and one FI_EP_RDM endpoint. A connection is a peer's address in the vector and a pair of tags.
 *
 * library.c  loads libfabric           path.c     NAME[/DEVICE]           select.c   the fi_info to use
 * endpoint.c open ... close            hot.c      the timed operations    describe.c what was resolved
 * sync.c     synchronous sends
 * probe.c    what is usable here       omnipath.c device naming, PSM2     leftover.c files in /dev/shm
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>

#include "transport.h"

#define OFI_NAME_BYTES 64u
#define OFI_MAX_REGIONS 16u
#define OFI_MAX_UNITS 8u
#define OFI_RAW_KEY_BYTES 64u
/* Completions taken from the queue in one call. */
#define OFI_BATCH 16u
/* How long one sleeping wait may last before the abort flag is looked at, ms. */
#define OFI_SLEEP_MS 50
/* Synchronous messages that wait for their answer: more than receives can be outstanding. */
#define OFI_MOST_ANSWERS 4096u
/* Standard messages in blocks with synchronous ones whose answers may be outstanding. */
#define OFI_IGNORED 64u

/* ---- library.c: libfabric is loaded at run time, after the environment that its dependencies read in their
 * constructors (HFI_SYSFS_PATH of libpsm2) has been set. Data operations are inline calls through the
 * endpoint's own tables, so this costs the timed loop nothing. */
struct ofi_library {
	void *handle;
	__typeof__(fi_getinfo) *getinfo;
	__typeof__(fi_freeinfo) *freeinfo;
	__typeof__(fi_dupinfo) *dupinfo;
	__typeof__(fi_fabric) *fabric;
	__typeof__(fi_strerror) *strerror;
	uint32_t api; /* the API version asked for: no newer than header and library */
	char version[32]; /* "1.17.0" */
};
int ofi_library_load(struct ofi_library *lib, struct xb_error *error);

/* ---- path.c */
struct ofi_path {
	char provider[OFI_NAME_BYTES]; /* as libfabric spells it, "tcp;ofi_rxm"; "" = its first choice */
	char device[OFI_NAME_BYTES]; /* interface, address, domain or "shm"/"hfi" for psm2; "" = choose */
};
int ofi_path_parse(const char *text, struct ofi_path *path, struct xb_error *error);
/* True if `found` (a prov_name) is what was asked for: the same, or the core provider below a utility
 * provider. */
bool ofi_path_matches(const char *asked, const char *found);
/* The provider name as a user would type it unquoted: "tcp;ofi_rxm" -> "tcp+rxm". */
void ofi_path_spell(const char *provider, char *out, size_t bytes);

/* ---- omnipath.c */
struct ofi_omnipath {
	char folder[128]; /* private folder of symbolic links, "" if none was needed */
	unsigned units;
	struct {
		unsigned number; /* N of /dev/hfi1_N */
		char device[32]; /* its name under /sys/class/infiniband, "hfi1_0" or "opap1s0" */
	} unit[OFI_MAX_UNITS];
	bool devices_by_user; /* PSM2_DEVICES was in the environment */
};
enum ofi_lane { OFI_LANE_UNKNOWN, OFI_LANE_FABRIC, OFI_LANE_SHM, OFI_LANE_SELF };
/* Sets the environment that PSM2 needs for this path. Must run before ofi_library_load. */
int ofi_omnipath_prepare(struct ofi_omnipath *opa, const struct ofi_path *path, struct xb_error *error);
void ofi_omnipath_release(struct ofi_omnipath *opa);
/* Why fi_getinfo has no psm2 (reason) and what to do (remedy). Call after fi_getinfo. */
void ofi_omnipath_absent(const struct ofi_omnipath *opa, char *reason, size_t reason_bytes, char *remedy,
			 size_t remedy_bytes);
/* Which way PSM2 takes to the peer with this address (of format FI_ADDR_PSMX2), asked from libpsm2 itself. */
enum ofi_lane ofi_omnipath_lane(const void *peer_address);
/* Name under /sys/class/infiniband of PSM2's "hfi1_N". */
const char *ofi_omnipath_device(const struct ofi_omnipath *opa, const char *domain);

/* ---- select.c */
struct ofi_need {
	bool rma; /* put and get are wanted */
	bool read_back; /* reads must stay behind writes (FI_ORDER_RAW) */
	bool same_host; /* loopback is right where no device is named */
	uint32_t outstanding; /* sends, and receives, outstanding at once */
};
/* Fills *info (free with lib->freeinfo). Sets need->read_back if puts are wanted and FI_DELIVERY_COMPLETE is
 * not to be had, so that visibility has to be established by reading back. */
int ofi_select(const struct ofi_library *lib, const struct ofi_path *path, struct ofi_need *need,
	       const struct ofi_omnipath *opa, struct fi_info **info, struct xb_error *error);
/* What is asked of fi_getinfo; provider "" = any. NULL if out of memory. */
struct fi_info *ofi_hints(const struct ofi_library *lib, const char *provider, const struct ofi_need *need);
/* The interface that has this address (of a socket address format), "" if none. */
void ofi_interface_of(const struct fi_info *info, char *name, size_t bytes);
/* "127.0.0.1", "[fd00::2]" or "" for addresses of other formats. */
void ofi_source_text(const struct fi_info *info, char *text, size_t bytes);
/* Comma-separated, distinct names of the providers that offer FI_EP_RDM here. */
void ofi_providers_text(const struct ofi_library *lib, char *text, size_t bytes);
/* Appends with ", " between items; drops what does not fit. */
void ofi_append(char *text, size_t bytes, const char *item);
/* RDMA device of a domain: "mlx5_0-dgram" -> "mlx5_0". */
void ofi_domain_device(const struct fi_info *info, char *name, size_t bytes);

/* ---- endpoint.c */
struct ofi_region {
	struct fid_mr *mr; /* NULL where the provider needs no registration */
	void *desc;
	void *base;
	size_t bytes;
};
struct ofi_remote {
	uint64_t base; /* added to the offset: address of the region, or 0 with offset addressing */
	uint64_t key;
	uint32_t raw; /* key was mapped and must be unmapped */
};
struct ofi_context {
	struct ofi_library lib;
	struct ofi_path path;
	struct ofi_omnipath opa;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_mr *regions[OFI_MAX_REGIONS];
	unsigned region_count;
	const atomic_int *abort;
	uint32_t endpoint, endpoints;
	bool rma, tagged, sleeping, delivery, same_host;
	bool sync; /* opened for synchronous sends: there is room for their answers */
	unsigned connections, used_connections;
	bool unlinked; /* names in /dev/shm are gone already */
	unsigned char name[256]; /* own fi_getname */
	size_t name_bytes;
	/* where a read-back lands when the provider cannot acknowledge delivery */
	_Alignas(64) unsigned char scratch[64];
	struct ofi_region scratch_region;
};
struct ofi_request {
	struct fi_context2 fabric; /* first: providers with FI_CONTEXT(2) keep their state here */
	uint64_t *pending; /* one-sided: counter of its connection, counted down on completion */
	uint32_t done;
	/* sync.c: a receive whose message has this number and is to be answered */
	uint16_t number, owes;
	/* sync.c: the receive of the answer; lies as the members above, since a completion only knows those
	 */
	struct {
		struct fi_context2 fabric;
		uint64_t *pending;
		uint32_t done;
		uint16_t number, owes;
	} answer;
};
struct ofi_answers { /* numbers of messages that came and are not answered yet: head ... tail-1 */
	uint16_t number[OFI_MOST_ANSWERS];
	uint32_t head, tail;
};
struct ofi_connection {
	/* what the timed operations touch comes first */
	struct fid_ep *ep;
	struct fid_cq *cq;
	const atomic_int *abort;
	fi_addr_t peer;
	uint64_t send_tag, recv_tag;
	size_t inject_bytes;
	uint64_t pending; /* one-sided operations outstanding */
	bool wrote; /* a put has been made: its target is what a read-back reads */
	uint64_t last_address, last_key;
	struct ofi_context *context;
	struct xb_hot hot;
	/* sync.c: of the next message in blocks with synchronous sends; answers to standard messages */
	uint16_t send_number, recv_number;
	struct ofi_answers answers;
	struct ofi_request ignored[OFI_IGNORED];
	uint64_t ignored_at;
	struct ofi_request read_back;
	uint32_t peer_endpoint;
	bool used;
	unsigned char peer_name[256];
	size_t peer_name_bytes;
	struct xb_error failure;
};

/* Sentence of a libfabric return code: "fi_tsend: Connection refused (-111)". */
int ofi_fail(const struct ofi_context *context, struct xb_error *error, int status, const char *call,
	     long code, const char *advice);

/* ---- hot.c */
const struct xb_hot *ofi_prepare(void *conn, const struct xb_pattern *pattern, struct xb_error *error);

int ofi_hot_failed(struct ofi_connection *k, const char *call, ssize_t code);
/* The completion queue reports an error: the entry says which operation, the provider why. */
int ofi_queue_failed(struct ofi_connection *k, ssize_t code);

/* ---- sync.c */
const struct xb_hot *ofi_sync_table(bool sleeping);

/* ---- describe.c, probe.c */
int ofi_describe(void *context, void *conn, struct xb_description *out, struct xb_error *error);
int ofi_probe(const struct xb_probe_sink *sink, struct xb_error *error);

/* ---- leftover.c: files that shared memory providers leave in /dev/shm when a process is killed */
/* Removes the names of this endpoint's shared memory (and of dead peers' with `peers`); mappings stay valid.
 */
void ofi_leftover_unlink(const struct ofi_context *context, const struct ofi_connection *const *conns,
			 size_t count);

#endif

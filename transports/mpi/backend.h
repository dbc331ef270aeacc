/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_MPI_BACKEND_H
#define XB_MPI_BACKEND_H
/*
 * Private to the MPI backend. Who does what:
 *   mpi.c          vtable, open, connect, close       hot.c        everything timed with messages
 *   rma.c          windows, put and get               describe.c   what was resolved, against what was asked
 *   openmpi.c      which components Open MPI selected openmpi_internals.c  the same by its internal headers
 *   ucx_lanes.c    which lanes UCX uses, whichever MPI is on top of it
 *   preflight.c    what is missing for a path         probe.c      what is installed here
 *   steer.c        what UCX and libfabric below MPI have to be told
 *   leftover.c     libpsm2's files in /dev/shm
 * Written against the MPI-3 standard; all that is particular to a library sits in openmpi*.c and ucx_lanes.c
 * and is looked up at run time.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/mpi_path.h"
#include "place.h"
#include "transport.h"

#if defined(__GNUC__) && !defined(__clang__)
/* MPICH's MPI_STATUSES_IGNORE is (MPI_Status *)1, which gcc takes for an array of no size */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

#define XB_MPI_TAG_DATA 1
#define XB_MPI_TAG_HELLO 2
#define XB_MPI_MAX_WINDOWS 16u

enum xb_mpi_mode { XB_MPI_AUTO, XB_MPI_BLOCKING, XB_MPI_NONBLOCKING };
enum xb_mpi_library { XB_MPI_LIBRARY_OPEN_MPI, XB_MPI_LIBRARY_MPICH, XB_MPI_LIBRARY_OTHER };

struct xb_mpi_window {
	MPI_Win win;
	size_t bytes;
};

struct xb_mpi_context {
	const struct xb_setup *setup;
	struct xb_mpi_path path;
	enum xb_mpi_mode mode;
	int threads; /* MPI_THREAD_* */
	enum xb_mpi_library library;
	char library_name[64], library_version[64];
	char device[32]; /* MPICH: "ch4:ucx" */
	bool initialized; /* MPI_Init_thread has succeeded, so MPI_Finalize is owed */
	MPI_Comm comm; /* a duplicate of MPI_COMM_WORLD with MPI_ERRORS_RETURN */
	/* One window for each call of memory(), same index on every endpoint; none unless the run does put or
	 * get. */
	struct xb_mpi_window windows[XB_MPI_MAX_WINDOWS];
	uint32_t window_count;
	struct xb_mpi_ring *rings; /* of all connections, freed by close */
};

/* A receive that blocking mode has been told of and has not begun. */
struct xb_mpi_noted {
	void *buf;
	int bytes;
};

struct xb_mpi_ring {
	struct xb_mpi_ring *next;
	struct xb_mpi_noted noted[]; /* a power of two */
};

struct xb_mpi_connection {
	/* read by every hot operation */
	MPI_Comm comm;
	int peer;
	MPI_Win pending; /* window with puts or gets that no flush has completed yet, or MPI_WIN_NULL */
	bool unsettled; /* ... of which some may still be using the local buffer */
	/* blocking mode: noted receives, `tail` of them ever, `head` of them done; both count in steps of two
	 */
	struct xb_mpi_noted *noted;
	uint32_t noted_mask, head, tail;
	/* the rest is cold */
	struct xb_mpi_context *context;
	const char *failed_call;
	int failed_code, failed_status;
	bool last_blocking; /* the table chosen last is the blocking one */
	bool same_netns; /* the peer is on this host, in this network namespace */
};

struct xb_mpi_region {
	uint32_t window; /* index, where there are windows */
};

struct xb_mpi_remote {
	MPI_Win win;
};

/* An MPI request, or in blocking mode the position of a noted receive. sizeof == sizeof(MPI_Request), for
 * MPI_Waitall. */
union xb_mpi_request {
	MPI_Request mpi;
	uint32_t position; /* odd; 0 = nothing to wait for */
};
_Static_assert(sizeof(union xb_mpi_request) == sizeof(MPI_Request),
	       "requests must lie as MPI_Waitall expects them");

/* ---- mpi.c */
/* Fills library, library_name, library_version, device. Legal before MPI_Init. */
void xb_mpi_identify(struct xb_mpi_context *context);
/* Fills *error with what MPI says about the code that `call` returned; returns status. */
int xb_mpi_fail(struct xb_error *error, int status, const char *call, int code);

/* ---- hot.c */
const struct xb_hot *xb_mpi_prepare(void *conn, const struct xb_pattern *pattern, struct xb_error *error);
void xb_mpi_explain(void *conn, struct xb_error *error);
int xb_mpi_hot_failed(struct xb_mpi_connection *conn, const char *call, int code);
uint32_t xb_mpi_caps(const struct xb_mpi_context *context);

/* ---- rma.c */
int xb_mpi_window_create(struct xb_mpi_context *context, void *base, size_t bytes, uint32_t *index,
			 struct xb_error *error);
/* At open: can this path do put and get at all? Collective. */
int xb_mpi_window_try(struct xb_mpi_context *context, struct xb_error *error);
void xb_mpi_windows_free(struct xb_mpi_context *context);
int xb_mpi_export_region(void *context, void *region, void *blob, size_t *bytes, struct xb_error *error);
int xb_mpi_import_region(void *conn, const void *blob, size_t bytes, void *remote, struct xb_error *error);
int xb_mpi_put(void *conn, const void *buf, size_t bytes, void *region, void *remote, size_t remote_offset,
	       void *request);
int xb_mpi_get(void *conn, void *buf, size_t bytes, void *region, void *remote, size_t remote_offset,
	       void *request);
int xb_mpi_flush(void *conn);
int xb_mpi_rma_settle(struct xb_mpi_connection *conn); /* local completion of what is pending */

/* ---- what is really used */
#define XB_MPI_MAX_PARTS 8u
struct xb_mpi_used {
	char layer[16]; /* "ob1", "cm", "ucx" ...; "" not readable */
	char under[32]; /* "ofi", "psm2" below cm; else "" */
	char part[XB_MPI_MAX_PARTS]
		 [48]; /* btl names, UCX lanes "tcp/lo", or one libfabric provider; none repeated */
	size_t part_count;
	char device[64]; /* interfaces of part, if there is just one */
	char psm2_devices[32]; /* beneath it: "hfi", "shm", or what was allowed: "self,shm" */
	char interfaces[128]; /* of TCP, comma-separated, as MPI sees them */
	bool local; /* TCP towards a peer on this host: the kernel carries that over lo */
	size_t eager_bytes; /* 0 unknown */
	char note[128]; /* what could not be read */
};
void xb_mpi_used_add(struct xb_mpi_used *used, const char *part);

/* ---- openmpi.c: false if this is not an Open MPI whose components can be read */
bool xb_mpi_openmpi_used(const struct xb_mpi_connection *conn, struct xb_mpi_used *used);
/* Which osc component serves the window, and the btl or the lanes it uses; layer "" if not readable. */
bool xb_mpi_openmpi_osc(const struct xb_mpi_connection *conn, MPI_Win win, struct xb_mpi_used *used);
/* Folder of the mca_*.so files; "" if unknown. */
const char *xb_mpi_openmpi_component_dir(char *out, size_t bytes);
/* 1 installed, 0 not, -1 unknown (components may be linked into the library). */
int xb_mpi_openmpi_has_component(const char *framework, const char *name);
bool xb_mpi_peek(const void *address, void *out, size_t bytes);

/* ---- openmpi_internals.c: all fail where the headers were not there or the library is not the one they
 * belong to */
struct xb_mpi_btl {
	const void *module;
	char name[64], interface[32]; /* interface: of btl/tcp, "" unknown */
	size_t eager_bytes;
};
bool xb_mpi_internals_usable(void);
int xb_mpi_internals_btls(MPI_Comm comm, int peer, struct xb_mpi_btl *btls, size_t capacity, size_t *count,
			  bool *local);
int xb_mpi_internals_all_btls(struct xb_mpi_btl *btls, size_t capacity, size_t *count);
const void *xb_mpi_internals_ucx_endpoint(MPI_Comm comm, int peer, bool one_sided);
const void *xb_mpi_internals_osc_module(MPI_Win win);
/* The psm2_mq_t of mtl/psm2, given its module (symbol ompi_mtl_psm2), and its psm2_epaddr_t of the peer. */
bool xb_mpi_internals_psm2(MPI_Comm comm, int peer, const void *module, void **queue, void **peer_address);

/* ---- ucx_lanes.c: of one ucp_ep_h, or (NULL) of all endpoints in this process that do not lead back to it
 */
bool xb_mpi_ucx_lanes(const void *endpoint, bool blocking, struct xb_mpi_used *used);
void xb_mpi_ucx_lanes_parse(const char *text, bool blocking, struct xb_mpi_used *used);
/* Is the lane "tcp/lo" one of the transports "tcp" or "rc+sm", aliases expanded? */
bool xb_mpi_ucx_lane_matches(const char *lane, const char *tls);
bool xb_mpi_ucx_lane_is_shared_memory(const char *lane);

/* ---- leftover.c: after this a killed rank leaves no file of libpsm2. Call once the pair has exchanged
 * messages. */
void xb_mpi_unlink_shared_files(const struct xb_mpi_context *context);

/* ---- steer.c, before MPI_Init */
void xb_mpi_steer_below(const struct xb_mpi_path *path);
/* Has a port that UCX runs on (InfiniBand, RoCE) a link? sysfs: "/sys", or a recorded tree. */
bool xb_mpi_rdma_is_active(const char *sysfs);

/* ---- preflight.c: what is missing here for the path, before MPI_Init ends the process over it */
int xb_mpi_preflight(const struct xb_mpi_context *context, struct xb_error *error);
bool xb_mpi_psm2_adapter(const char **reason, const char **remedy);
bool xb_mpi_any_file(const char *pattern);

/* ---- describe.c, probe.c */
int xb_mpi_describe(void *context, void *conn, struct xb_description *out, struct xb_error *error);
int xb_mpi_probe(const struct xb_probe_sink *sink, struct xb_error *error);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_TRANSPORT_H
#define XB_TRANSPORT_H
/*
 * The transport contract. A backend is a shared object libxb-NAME.so that exports one object,
 * `const struct xb_transport xb_transport`, and is loaded by exactly one worker process per endpoint.
 *
 * Threads: all slots are called from one thread. Between blocks the worker sleeps and calls nothing, so a
 * backend must be quiet (no spinning, no progress needed) whenever no block runs.
 *
 * Order: probe alone; or open, memory, address, connect*, export/import*, (prepare, hot ops, ...)*,
 * describe, close. All endpoints of a team call open and memory in the same order, so these may be
 * collective. After any failed cold call only close is called; close must be safe after a failed open
 * (context is zeroed before open). After a failed hot op the connection is dead: only explain and close
 * follow.
 *
 * Errors: cold slots fill *error with one sentence (asked, found, what to do) and return its negative status
 * (core/error.h). Hot ops return 0 or a negative status and keep the cause for explain().
 *
 * Ownership: the core owns every buffer, all strings in xb_setup, and the private areas (context, connection,
 * request, region: zeroed, 64-byte aligned, of the sizes stated in the vtable). The backend owns what it
 * allocates behind them and releases it in close.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define XB_TRANSPORT_ABI 3u
#define XB_ADDRESS_MAX 4096u /* largest out-of-band address or exported region, bytes */

enum xb_layer { XB_LAYER_TRUTH, XB_LAYER_FABRIC, XB_LAYER_MIDDLEWARE, XB_LAYER_MPI };
enum xb_bench { XB_BENCH_PINGPONG, XB_BENCH_BW, XB_BENCH_BIBW, XB_BENCH_SWAP };
/* write: the target takes no part. write-poll (ping-pong): both sides write, and each watches its own memory.
 */
enum xb_op { XB_OP_SEND, XB_OP_WRITE, XB_OP_READ, XB_OP_WRITE_POLL };

/* Capabilities: what the opened transport can do on its resolved path. Absent ones are refused before
 * anything runs. */
#define XB_CAP_SEND (1u << 0) /* send/recv/wait */
#define XB_CAP_SYNC_SEND (1u << 1) /* send_sync completes only after the peer has matched it */
#define XB_CAP_READY_SEND (1u << 2) /* send_ready: the peer's receive is known to be posted */
#define XB_CAP_PUT (1u << 3) /* put + flush */
#define XB_CAP_GET (1u << 4) /* get + flush */
#define XB_CAP_BOTH_WAYS (1u << 5) /* many sends may be outstanding in both directions at once (bibw) */
#define XB_CAP_NO_PAYLOAD                                                                                    \
	(1u << 6) /* truth transport: nothing is moved, so nothing can be verified or agreed */
#define XB_CAP_PUT_WATCH (1u << 7) /* watch: a put whose ends have appeared is there as a whole */
#define XB_CAP_BLOCKING                                                                                      \
	(1u << 8) /* a limit: nothing moves between start and wait; no swap that starts now and waits later  \
		   */

/* One key that the backend accepts in `-t NAME,key=value`; the list ends with .key == NULL. */
struct xb_key {
	const char *key, *values, *help; /* "poll", "spin|block", "how a waiting endpoint waits" */
};
struct xb_key_value {
	const char *key, *value;
};

/* What the core gives to open; valid until close has returned. */
struct xb_setup {
	const atomic_int *abort; /* non-zero: give up; every spin loop must look at it */
	uint32_t endpoint, endpoints; /* who am I: 0 ... endpoints-1 */
	const char *path; /* after the colon in NAME:PATH; "" if none */
	const struct xb_key_value *keys; /* only keys listed in the vtable (the core refuses others) */
	size_t key_count;
	size_t max_message_bytes; /* largest message of the run */
	uint32_t max_outstanding; /* most sends, and most receives, outstanding on one connection */
	enum xb_op op; /* the data operation of the run */
	int sync_sends; /* 1: some of its blocks have pattern.sync_sends */
	int verbose; /* 0 ... : may explain itself on stderr in cold slots */
};

/* What a block is going to do; given to prepare so that everything is decided before the timed loop. */
struct xb_pattern {
	enum xb_bench bench;
	enum xb_op op;
	size_t size_bytes; /* of every data message; control messages of XB_AGREE_BYTES use the same ops */
	uint32_t window; /* data messages outstanding per direction (1 for ping-pong) */
	int initiator; /* 1 on the side that starts and keeps time */
	int both_ways; /* 1 if data flows in both directions at once */
	/* swap: send_sync will be called; every send, and every receive, is waited for as soon as it has been
	 * started (MPI_Send, MPI_Recv); and what it is, for logs. Otherwise 0 and "". */
	int sync_sends, blocking_sends, blocking_receives;
	const char *variant;
};
#define XB_AGREE_BYTES 64u /* size of the in-band control messages between the two sides of a block */

/* Where a target looks: 8 bytes at both ends of a message (any alignment; they may overlap), and which bits
 * of them are to be those of a stamp. */
struct xb_spot {
	const void *head, *tail;
	uint64_t head_mask, tail_mask;
};

/*
 * Hot operations. Matching is by order: on a connection the n-th send meets the peer's n-th recv, and both
 * name the same length. Zero bytes is legal. A request is reusable after wait/wait_all/test has completed it.
 * Requests of one call sequence lie `request_bytes` apart. No allocation, no logging, no branch on
 * configuration, no system call that the fabric does not need. buf lies within region. Unsupported slots
 * point at the xb_hot_unsupported_* stubs.
 */
struct xb_hot {
	int (*send)(void *conn, const void *buf, size_t bytes, void *region, void *request);
	int (*send_sync)(void *conn, const void *buf, size_t bytes, void *region, void *request);
	int (*send_ready)(void *conn, const void *buf, size_t bytes, void *region, void *request);
	int (*recv)(void *conn, void *buf, size_t bytes, void *region,
		    void *request); /* post; may be posted ahead */
	/* Spin (or sleep, if so configured) until done, progressing everything on the connection.
	 * XB_E_ABORTED if the abort flag rises, XB_E_PEER if the peer is known to be gone. */
	int (*wait)(void *conn, void *request);
	int (*wait_all)(void *conn, void *requests,
			size_t count); /* requests[0..count), request_bytes apart */
	int (*test)(void *conn, void *request); /* one round of progress; 1 done, 0 not yet */
	/* One-sided. put/get start; the request completes locally through wait. flush returns when all puts
	 * on the connection are visible in the peer's memory and all gets have arrived. */
	int (*put)(void *conn, const void *buf, size_t bytes, void *region, void *remote,
		   size_t remote_offset, void *request);
	int (*get)(void *conn, void *buf, size_t bytes, void *region, void *remote, size_t remote_offset,
		   void *request);
	int (*flush)(void *conn);
	/* The target's side of a put that nothing else announces: spin until what it should have written is
	 * there (xb_watched). Progresses what needs progress. */
	int (*watch)(void *conn, const struct xb_spot *at, uint64_t stamp);
};

struct xb_description {
	char library[64], version[64]; /* "libfabric" "1.17.0" */
	char resolved[256]; /* what the bytes really use: "tcp;ofi_rxm on lo 127.0.0.1", "ob1/vader" */
	char device[64]; /* network interface or RDMA device that should carry the payload; "" = none */
	uint32_t caps; /* XB_CAP_* */
	size_t max_message_bytes; /* 0 = no limit known */
	size_t eager_bytes; /* largest message sent eagerly or inline; 0 = unknown */
	unsigned mtu_bytes; /* of this end alone, before the peer has its say; 0: that of the device counts */
	int path_ok; /* 1: resolved is what the path asked for (or no path was given) */
	char note[256]; /* why path_ok is 0, or something the reader of the result must know */
};

/* Receives what probe finds; called once for each usable or unusable path. reason/remedy are NULL if usable.
 */
struct xb_probe_sink {
	void *user;
	void (*path)(void *user, const char *path, const char *text, int usable, const char *reason,
		     const char *remedy);
	void (*library)(void *user, const char *library, const char *version);
};

struct xb_transport {
	uint32_t abi; /* XB_TRANSPORT_ABI */
	const char *name, *summary;
	enum xb_layer layer;
	size_t context_bytes, connection_bytes, request_bytes, region_bytes, remote_bytes;
	const struct xb_key *keys;

	/* What is usable on this machine. Runs in a process of its own; may take seconds. Called without
	 * open. */
	int (*probe)(const struct xb_probe_sink *sink, struct xb_error *error);
	/* Bring the endpoint up on setup->path. XB_E_USAGE for a malformed path or key value,
	 * XB_E_UNAVAILABLE if the device or provider is not here, XB_E_UNSUPPORTED if the op is not offered
	 * on it. */
	int (*open)(void *context, const struct xb_setup *setup, struct xb_error *error);
	/* Make [base, base+bytes) usable by hot ops of this context, and by the peer's put/get. */
	int (*memory)(void *context, void *base, size_t bytes, void *region, struct xb_error *error);
	/* Opaque bytes that peer `peer` needs to connect to me. *bytes: in capacity (>= XB_ADDRESS_MAX), out
	 * length. */
	int (*address)(void *context, uint32_t peer, void *address, size_t *bytes, struct xb_error *error);
	/* Both ends of a pair call this with each other's address, at about the same time and in any order.
	 * Must not wait longer than it takes the peer to come here too; must look at the abort flag while
	 * waiting. */
	int (*connect)(void *context, uint32_t peer, const void *address, size_t bytes, void *conn,
		       struct xb_error *error);
	/* For put/get: opaque bytes by which the peer can reach region; and the peer's side of it. */
	int (*export_region)(void *context, void *region, void *blob, size_t *bytes, struct xb_error *error);
	int (*import_region)(void *conn, const void *blob, size_t bytes, void *remote,
			     struct xb_error *error);
	/* Choose the hot ops for a pattern (inject or not, blocking or not ...). NULL + *error if it cannot
	 * be done. The table is static or lives in the connection until close. Called before every block, on
	 * both sides. */
	const struct xb_hot *(*prepare)(void *conn, const struct xb_pattern *pattern, struct xb_error *error);
	/* What was resolved. Called after connect and again after the first block; caps are needed after
	 * connect. */
	int (*describe)(void *context, void *conn, struct xb_description *out, struct xb_error *error);
	/* The cause of the last failed hot op on conn, in one sentence. */
	void (*explain)(void *conn, struct xb_error *error);
	/* Release everything, in any state. After a failure (clean == 0) do not wait for peers. */
	void (*close)(void *context, int clean);
};

/* Exported by every backend under exactly this name. */
extern __attribute__((visibility("default"))) const struct xb_transport xb_transport;

/* Stubs for slots that a backend does not have; in core/engine/unsupported.c, linked into every plugin. */
int xb_hot_unsupported_send(void *, const void *, size_t, void *, void *);
int xb_hot_unsupported_put(void *, const void *, size_t, void *, void *, size_t, void *);
int xb_hot_unsupported_get(void *, void *, size_t, void *, void *, size_t, void *);
int xb_hot_unsupported_flush(void *);
int xb_hot_unsupported_watch(void *, const struct xb_spot *, uint64_t);
int xb_unsupported_export(void *, void *, void *, size_t *, struct xb_error *);
int xb_unsupported_import(void *, const void *, size_t, void *, struct xb_error *);

/*
 * What watch looks for. Adapters write a message from its first byte to its last; soft-RoCE copies it, and
 * may begin a packet at its end. Either way both ends are there when all packets are.
 */
static inline int xb_watched(const struct xb_spot *at, uint64_t stamp)
{
	typedef uint64_t __attribute__((aligned(1), may_alias)) word;

	if (((*(const volatile word *)at->tail ^ stamp) & at->tail_mask) != 0 ||
	    ((*(const volatile word *)at->head ^ stamp) & at->head_mask) != 0)
		return 0;
	atomic_thread_fence(memory_order_acquire); /* what is looked at afterwards is not older */
	return 1;
}

/* Value of a key, or fallback. Linked into every plugin as well. */
const char *xb_setup_value(const struct xb_setup *setup, const char *key, const char *fallback);

#endif

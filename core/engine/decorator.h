/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_DECORATOR_H
#define XB_DECORATOR_H
/*
 * A decorator wraps the hot operations of an opened endpoint. `fault` is a plugin libxb-fault.so exporting
 * `const struct xb_decorator xb_decorator`; `trace` is built into the worker. Without a decorator the engine
 * calls the backend directly: an undecorated run has no trace of this in its path.
 */
#include "block.h"
#include <jansson.h>

struct xb_decorator {
	uint32_t abi; /* XB_TRANSPORT_ABI */
	const char *name; /* "fault": takes the keys fault.* */
	const struct xb_key *keys; /* without the prefix */
	/* Replaces endpoint->conn, prepare, explain and request_bytes by wrapping ones. keys come without the
	 * prefix. *state is the decorator's own, freed by detach. */
	int (*attach)(struct xb_endpoint *endpoint, const struct xb_setup *setup, void **state,
		      struct xb_error *error);
	/* After a block: what was really done, as a new JSON object (for fault: messages, imposed_delay_ns
	 * {median, mean, min, max, total, count, slower: what the backend's call took longer after it},
	 * injected {corrupt, premature ...}); NULL if nothing to say. Resets the counters. */
	json_t *(*report)(void *state);
	void (*detach)(void *state);
};

/* The trace decorator: key trace=FILE appends one line per operation (see docs/adding-a-transport.md). */
extern const struct xb_decorator xb_trace_decorator;

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions (ucp_mem_map) and remote keys. */
#include <string.h>
#include <unistd.h>

#include "ucx.h"

/*
 * memory=ucx: puts memory that UCX allocates (a shared segment on shared-memory paths, huge pages elsewhere)
 * in the place of the core's buffer. Both are whole pages, so the core may unmap the range later as if it
 * were its own.
 */
static int allocate_in_place(void *base, size_t bytes, ucp_mem_map_params_t *parameters,
			     struct xb_error *error)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if ((uintptr_t)base % page != 0 || bytes % page != 0)
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "ucx: memory=ucx was asked for; the buffer of %zu bytes at %p is not made of "
			       "whole pages; leave the key out",
			       bytes, base);
	parameters->flags |= UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_FIXED;
	return 0;
}

int xb_ucx_memory(void *context, void *base, size_t bytes, void *region, struct xb_error *error)
{
	struct xb_ucx_context *x = context;
	struct xb_ucx_region *r = region;
	ucp_mem_map_params_t parameters = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			      UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE,
		.address = base,
		.length = bytes,
		.memory_type = UCS_MEMORY_TYPE_HOST,
	};
	ucs_status_t status;
	char log[400];

	if (x->ucx_memory) {
		int refused = allocate_in_place(base, bytes, &parameters, error);
		if (refused)
			return refused;
	}
	r->base = base;
	r->bytes = bytes;
	/*
	 * Messages alone need no handle: UCX registers what it sends from on first use and remembers it, as
	 * it does for any application, and memory that is never used is neither touched nor locked.
	 */
	if (bytes == 0 || (!(x->features & UCP_FEATURE_RMA) && !x->ucx_memory))
		return 0;
	xb_ucx_log_clear();
	status = ucp_mem_map(x->ucp, &parameters, &r->handle);
	if (status != UCS_OK) {
		r->handle = NULL;
		xb_ucx_log_text(log, sizeof(log));
		return xb_fail(error, XB_E_RESOURCE,
			       "ucx: %s %zu bytes of memory failed: %s%s; raise the limit of locked memory "
			       "(ulimit -l) or measure smaller messages",
			       x->ucx_memory ? "allocating" : "registering", bytes, ucs_status_string(status),
			       log);
	}
	r->next = x->regions;
	x->regions = r;
	return 0;
}

/* What the peer needs: where the region is, then UCX's packed key. */
struct exported {
	uint64_t base, bytes;
};

int xb_ucx_export(void *context, void *region, void *blob, size_t *bytes, struct xb_error *error)
{
	struct xb_ucx_context *x = context;
	const struct xb_ucx_region *r = region;
	struct exported head = {.base = (uint64_t)(uintptr_t)r->base, .bytes = r->bytes};
	ucs_status_t status;
	size_t key_bytes;
	void *key;

	if (!(x->features & UCP_FEATURE_RMA) || r->handle == NULL)
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "ucx: a region was to be exported, but ucx was opened for messages only; use "
			       "--op write or read");
	status = ucp_rkey_pack(x->ucp, r->handle, &key, &key_bytes);
	if (status != UCS_OK)
		return xb_fail(error, XB_E_TRANSPORT, "ucx: packing a remote key failed: %s",
			       ucs_status_string(status));
	if (sizeof(head) + key_bytes > *bytes) {
		ucp_rkey_buffer_release(key);
		return xb_fail(error, XB_E_RESOURCE,
			       "ucx: a remote key takes %zu bytes, %zu are available; restrict the path to "
			       "fewer transports",
			       key_bytes, *bytes - sizeof(head));
	}
	memcpy(blob, &head, sizeof(head));
	memcpy((char *)blob + sizeof(head), key, key_bytes);
	*bytes = sizeof(head) + key_bytes;
	ucp_rkey_buffer_release(key);
	return 0;
}

int xb_ucx_import(void *conn, const void *blob, size_t bytes, void *remote, struct xb_error *error)
{
	struct xb_ucx_connection *c = conn;
	struct xb_ucx_remote *r = remote;
	struct exported head;
	ucs_status_t status;
	char log[400];

	if (bytes <= sizeof(head))
		return xb_fail(error, XB_E_PEER,
			       "ucx: endpoint %u exported a region in %zu bytes, too few to be one", c->peer,
			       bytes);
	memcpy(&head, blob, sizeof(head));
	xb_ucx_log_clear();
	status = ucp_ep_rkey_unpack(c->ep, (const char *)blob + sizeof(head), &r->key);
	if (status != UCS_OK) {
		xb_ucx_log_text(log, sizeof(log));
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "ucx: the memory of endpoint %u cannot be reached on this path: %s%s", c->peer,
			       ucs_status_string(status), log);
	}
	r->base = head.base;
	r->next = c->remotes;
	c->remotes = r;
	return 0;
}

void xb_ucx_memory_release(struct xb_ucx_context *x)
{
	for (struct xb_ucx_region *r = x->regions; r; r = r->next)
		ucp_mem_unmap(x->ucp, r->handle);
	x->regions = NULL;
}

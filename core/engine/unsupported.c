/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a backend points its missing slots at, so that a slot is never NULL. The engine looks at the
 * capability flags first, so these are reached only when a backend claims what it does not have. Linked into
 * every plugin.
 */
#include <string.h>

#include "../transport.h"

int xb_hot_unsupported_send(void *conn, const void *buf, size_t bytes, void *region, void *request)
{
	(void)conn, (void)buf, (void)bytes, (void)region, (void)request;
	return XB_E_UNSUPPORTED;
}

int xb_hot_unsupported_put(void *conn, const void *buf, size_t bytes, void *region, void *remote,
			   size_t remote_offset, void *request)
{
	(void)conn, (void)buf, (void)bytes, (void)region, (void)remote, (void)remote_offset, (void)request;
	return XB_E_UNSUPPORTED;
}

int xb_hot_unsupported_get(void *conn, void *buf, size_t bytes, void *region, void *remote,
			   size_t remote_offset, void *request)
{
	(void)conn, (void)buf, (void)bytes, (void)region, (void)remote, (void)remote_offset, (void)request;
	return XB_E_UNSUPPORTED;
}

int xb_hot_unsupported_flush(void *conn)
{
	(void)conn;
	return XB_E_UNSUPPORTED;
}

int xb_hot_unsupported_watch(void *conn, const struct xb_spot *at, uint64_t stamp)
{
	(void)conn, (void)at, (void)stamp;
	return XB_E_UNSUPPORTED;
}

int xb_unsupported_export(void *context, void *region, void *blob, size_t *bytes, struct xb_error *error)
{
	(void)context, (void)region, (void)blob, (void)bytes;
	return xb_fail(
		error, XB_E_UNSUPPORTED,
		"asked to give the peer direct access to a buffer; this transport has no write or read "
		"operations; use --op send");
}

int xb_unsupported_import(void *conn, const void *blob, size_t bytes, void *remote, struct xb_error *error)
{
	(void)conn, (void)blob, (void)bytes, (void)remote;
	return xb_fail(error, XB_E_UNSUPPORTED,
		       "asked to reach a buffer of the peer directly; this transport has no write or read "
		       "operations; use --op send");
}

const char *xb_setup_value(const struct xb_setup *setup, const char *key, const char *fallback)
{
	/* the last one wins, as on a command line */
	for (size_t i = setup->key_count; i-- > 0;)
		if (!strcmp(setup->keys[i].key, key))
			return setup->keys[i].value;
	return fallback;
}

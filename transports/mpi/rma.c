/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * put and get: MPI_Put and MPI_Get on a window over each registered buffer, in one passive epoch from
 * registration to close (MPI_Win_lock_all), completed by MPI_Win_flush. MPI_Rput would give a request, but
 * costs an acknowledgement of its own on some components; local completion is MPI_Win_flush_local instead,
 * and costs nothing after a flush.
 */
#include <string.h>

#include "backend.h"

#define REGION_MAGIC 0x58424d50u /* "XBMP" */

struct exported_region {
	uint32_t magic, window;
	uint64_t bytes;
};

static void release(MPI_Win *win, bool locked)
{
	if (locked)
		MPI_Win_unlock_all(*win);
	MPI_Win_free(win);
}

static int create(struct xb_mpi_context *context, void *base, size_t bytes, MPI_Win *win,
		  struct xb_error *error)
{
	int *model = NULL, flag = 0;
	int rc = MPI_Win_create(base, (MPI_Aint)bytes, 1, MPI_INFO_NULL, context->comm, win);

	if (rc != MPI_SUCCESS) {
		char text[MPI_MAX_ERROR_STRING] = "";
		int length = 0;

		MPI_Error_string(rc, text, &length);
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "asked for write or read over mpi%s%s; MPI_Win_create says \"%s\": none of "
			       "the one-sided "
			       "components that are switched on can use this path; use --op send%s",
			       *context->setup->path ? ":" : "", context->setup->path, text,
			       *context->setup->path
				       ? ""
				       : ", or name a path that switches one on: mpi:tcp, mpi:ucx, mpi:ofi");
	}
	MPI_Win_set_errhandler(*win, MPI_ERRORS_RETURN);
	rc = MPI_Win_get_attr(*win, MPI_WIN_MODEL, &model, &flag);
	if (rc != MPI_SUCCESS || !flag || *model != MPI_WIN_UNIFIED) {
		release(win, false);
		return xb_fail(
			error, XB_E_UNSUPPORTED,
			"asked for write or read; this MPI keeps a private copy of a window (memory model "
			"separate), so a flush does not make data visible at the target; use --op send");
	}
	/* No other lock is ever taken, so none has to be acquired; the epoch lasts until close. */
	rc = MPI_Win_lock_all(MPI_MODE_NOCHECK, *win);
	if (rc != MPI_SUCCESS) {
		release(win, false);
		return xb_mpi_fail(error, XB_E_TRANSPORT, "MPI_Win_lock_all", rc);
	}
	return XB_OK;
}

int xb_mpi_window_create(struct xb_mpi_context *context, void *base, size_t bytes, uint32_t *index,
			 struct xb_error *error)
{
	MPI_Win win;
	int rc;

	if (context->window_count == XB_MPI_MAX_WINDOWS)
		return xb_fail(error, XB_E_RESOURCE, "asked for more than %u registered buffers",
			       XB_MPI_MAX_WINDOWS);
	rc = create(context, base, bytes, &win, error);
	if (rc)
		return rc;
	context->windows[context->window_count] = (struct xb_mpi_window){win, bytes};
	*index = context->window_count++;
	return XB_OK;
}

int xb_mpi_window_try(struct xb_mpi_context *context, struct xb_error *error)
{
	static unsigned char page[4096] __attribute__((aligned(4096)));
	MPI_Win win;
	int rc = create(context, page, sizeof page, &win, error);

	if (!rc)
		release(&win, true);
	return rc;
}

void xb_mpi_windows_free(struct xb_mpi_context *context)
{
	while (context->window_count)
		release(&context->windows[--context->window_count].win, true);
}

int xb_mpi_export_region(void *context, void *region, void *blob, size_t *bytes, struct xb_error *error)
{
	const struct xb_mpi_context *ctx = context;
	const struct xb_mpi_region *mine = region;
	struct exported_region out = {.magic = REGION_MAGIC, .window = mine->window};

	if (!ctx->window_count)
		return xb_fail(
			error, XB_E_UNSUPPORTED,
			"asked to give the peer access to a buffer; MPI was started for messages and has no "
			"window; give --op write or read");
	out.bytes = ctx->windows[mine->window].bytes;
	memcpy(blob, &out, sizeof out);
	*bytes = sizeof out;
	return XB_OK;
}

int xb_mpi_import_region(void *conn, const void *blob, size_t bytes, void *remote, struct xb_error *error)
{
	const struct xb_mpi_context *ctx = ((struct xb_mpi_connection *)conn)->context;
	struct exported_region in = {0};

	if (bytes == sizeof in)
		memcpy(&in, blob, sizeof in);
	if (in.magic != REGION_MAGIC || in.window >= ctx->window_count)
		return xb_fail(
			error, XB_E_PEER,
			"the peer's description of its buffer is not one (%zu bytes, window %u of %u); are "
			"both ends the same version of xportbench?",
			bytes, in.window, ctx->window_count);
	/* windows are collective: the peer's n-th is our n-th */
	((struct xb_mpi_remote *)remote)->win = ctx->windows[in.window].win;
	return XB_OK;
}

/* ---- hot */

int xb_mpi_flush(void *c)
{
	struct xb_mpi_connection *conn = c;
	int rc;

	if (conn->pending == MPI_WIN_NULL)
		return 0;
	rc = MPI_Win_flush(conn->peer, conn->pending);
	conn->pending = MPI_WIN_NULL;
	conn->unsettled = false;
	return __builtin_expect(rc == MPI_SUCCESS, 1) ? 0 : xb_mpi_hot_failed(conn, "MPI_Win_flush", rc);
}

int xb_mpi_rma_settle(struct xb_mpi_connection *conn)
{
	int rc;

	if (!conn->unsettled)
		return 0;
	rc = MPI_Win_flush_local(conn->peer, conn->pending);
	conn->unsettled = false;
	return __builtin_expect(rc == MPI_SUCCESS, 1) ? 0
						      : xb_mpi_hot_failed(conn, "MPI_Win_flush_local", rc);
}

/* Operations of one window at a time are under way; a change of window completes those of the other. */
static inline int begin(struct xb_mpi_connection *conn, MPI_Win win, union xb_mpi_request *request)
{
	int rc = 0;

	request->mpi = MPI_REQUEST_NULL;
	if (conn->pending != win)
		rc = xb_mpi_flush(conn);
	conn->pending = win;
	conn->unsettled = true;
	return rc;
}

int xb_mpi_put(void *c, const void *buf, size_t bytes, void *region, void *remote, size_t remote_offset,
	       void *request)
{
	struct xb_mpi_connection *conn = c;
	MPI_Win win = ((struct xb_mpi_remote *)remote)->win;
	int rc = begin(conn, win, request);

	(void)region;
	if (rc)
		return rc;
	rc = MPI_Put(buf, (int)bytes, MPI_BYTE, conn->peer, (MPI_Aint)remote_offset, (int)bytes, MPI_BYTE,
		     win);
	return __builtin_expect(rc == MPI_SUCCESS, 1) ? 0 : xb_mpi_hot_failed(conn, "MPI_Put", rc);
}

int xb_mpi_get(void *c, void *buf, size_t bytes, void *region, void *remote, size_t remote_offset,
	       void *request)
{
	struct xb_mpi_connection *conn = c;
	MPI_Win win = ((struct xb_mpi_remote *)remote)->win;
	int rc = begin(conn, win, request);

	(void)region;
	if (rc)
		return rc;
	rc = MPI_Get(buf, (int)bytes, MPI_BYTE, conn->peer, (MPI_Aint)remote_offset, (int)bytes, MPI_BYTE,
		     win);
	return __builtin_expect(rc == MPI_SUCCESS, 1) ? 0 : xb_mpi_hot_failed(conn, "MPI_Get", rc);
}

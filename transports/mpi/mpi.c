/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI backend: one rank of a job that a launcher has started is one endpoint. Everything cold but
 * describe and probe.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "launch/ucx_tls.h"

#define ADDRESS_MAGIC 0x58424d41u /* "XBMA" */

struct address {
	uint32_t magic, rank, size;
	struct xb_place place;
};

int xb_mpi_fail(struct xb_error *error, int status, const char *call, int code)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length = 0;

	if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
		text[0] = '\0';
	return xb_fail(error, status, "%s failed: %s (code %d)", call, *text ? text : "no description", code);
}

/* "Open MPI" "4.1.4"; "MPICH" "4.0.2 ch4:ucx"; else the first words of what the library says. Legal before
 * MPI_Init. */
void xb_mpi_identify(struct xb_mpi_context *context)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	const char *device;
	int length = 0;

	MPI_Get_library_version(text, &length);
	context->library = XB_MPI_LIBRARY_OTHER;
	if (sscanf(text, "Open MPI v%48[^, ]", context->library_version) == 1) {
		context->library = XB_MPI_LIBRARY_OPEN_MPI;
		snprintf(context->library_name, sizeof context->library_name, "Open MPI");
	} else if (sscanf(text, "MPICH Version:%*[ \t]%32s", context->library_version) == 1) {
		context->library = XB_MPI_LIBRARY_MPICH;
		snprintf(context->library_name, sizeof context->library_name, "MPICH");
		device = strstr(text, "MPICH Device:");
		if (device && sscanf(device, "MPICH Device:%*[ \t]%24s", context->device) != 1)
			context->device[0] = '\0';
	} else {
		snprintf(context->library_name, sizeof context->library_name, "%.*s",
			 (int)strcspn(text, "\n,"), text);
	}
}

/* ---- before MPI_Init: afterwards a missing component can only end the process */

static int require_component(const struct xb_mpi_context *context, const char *framework, const char *name,
			     struct xb_error *error)
{
	char folder[PATH_MAX];

	if (context->library != XB_MPI_LIBRARY_OPEN_MPI || xb_mpi_openmpi_has_component(framework, name) != 0)
		return XB_OK;
	return xb_fail(error, XB_E_UNAVAILABLE,
		       "asked for mpi:%s; this Open MPI %s was built without its %s component %s (no "
		       "mca_%s_%s.so in "
		       "%s); install an Open MPI that has it, or choose another path: `xportbench list`",
		       context->setup->path, context->library_version, framework, name, framework, name,
		       xb_mpi_openmpi_component_dir(folder, sizeof folder));
}

static int require_components(const struct xb_mpi_context *context, struct xb_error *error)
{
	int rc = XB_OK;

	switch (context->path.route) {
	case XB_MPI_ANY:
		break;
	case XB_MPI_TCP:
		rc = require_component(context, "btl", "tcp", error);
		break;
	case XB_MPI_SHM:
		/* called sm from Open MPI 5 on */
		if (xb_mpi_openmpi_has_component("btl", "sm") != 1)
			rc = require_component(context, "btl", "vader", error);
		break;
	case XB_MPI_UCX:
		rc = require_component(context, "pml", "ucx", error);
		break;
	case XB_MPI_OFI:
		rc = require_component(context, "mtl", "ofi", error);
		break;
	case XB_MPI_PSM2:
		rc = require_component(context, "mtl", "psm2", error);
		break;
	}
	return rc;
}

/*
 * MPICH takes no flags: its UCX and its libfabric read the environment, and that still can be set here. What
 * the user has set stays; if that contradicts the path, the check of the path says so.
 */
static int steer_mpich(const struct xb_mpi_context *context, struct xb_error *error)
{
	const struct xb_mpi_path *path = &context->path;
	const bool over_ucx = strstr(context->device, "ucx") != NULL,
		   over_ofi = strstr(context->device, "ofi") != NULL;
	char tls[XB_UCX_TLS_BYTES];

	if (over_ucx &&
	    (path->route == XB_MPI_UCX || path->route == XB_MPI_TCP || path->route == XB_MPI_SHM)) {
		const char *device = path->route == XB_MPI_UCX ? path->second : path->first;

		if (path->route == XB_MPI_TCP && *path->second)
			return xb_fail(error, XB_E_UNSUPPORTED,
				       "asked for mpi:%s; MPICH over UCX takes the name of an interface, not "
				       "a subnet",
				       context->setup->path);
		xb_ucx_tls(path->route == XB_MPI_TCP   ? "tcp"
			   : path->route == XB_MPI_SHM ? "shm"
						       : path->first,
			   tls);
		if (path->route != XB_MPI_UCX || *path->first)
			setenv("UCX_TLS", tls, 0);
		if (*device)
			setenv("UCX_NET_DEVICES", device, 0);
		return XB_OK;
	}
	if (over_ofi && (path->route == XB_MPI_OFI || path->route == XB_MPI_PSM2)) {
		const char *provider = path->route == XB_MPI_PSM2 ? "psm2" : path->first;

		if (*provider)
			setenv("FI_PROVIDER", provider, 0);
		return XB_OK;
	}
	if (path->route == XB_MPI_ANY)
		return XB_OK;
	return xb_fail(error, XB_E_UNAVAILABLE,
		       "asked for mpi:%s; this is MPICH %s with the device %s; it has tcp, shm and ucx over "
		       "UCX, or ofi and "
		       "psm2 over libfabric, as it was built; use another MPI for this path",
		       context->setup->path, context->library_version, context->device);
}

/*
 * single is what MPI_Init gives, and so what osu_latency, IMB and NetPIPE measure. Only one thread of a
 * worker calls MPI; that there is another one at all would strictly need funneled, but Open MPI 4.1 then
 * takes locks: a third more at 8 bytes over shared memory.
 */
static int choose_threads(struct xb_mpi_context *context, struct xb_error *error)
{
	static const struct {
		const char *name;
		int level;
	} levels[] = {{"single", MPI_THREAD_SINGLE},
		      {"funneled", MPI_THREAD_FUNNELED},
		      {"multiple", MPI_THREAD_MULTIPLE}};
	const char *threads = xb_setup_value(context->setup, "threads", "single");

	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		context->threads = levels[i].level;
		if (!strcmp(threads, levels[i].name))
			return XB_OK;
	}
	return xb_fail(error, XB_E_USAGE, "asked for threads=%s; threads is single, funneled or multiple",
		       threads);
}

static int choose(struct xb_mpi_context *context, struct xb_error *error)
{
	const char *mode = xb_setup_value(context->setup, "mode", "auto");
	int rc = xb_mpi_path_parse(context->setup->path, &context->path, error);

	if (!rc)
		rc = choose_threads(context, error);
	if (rc)
		return rc;
	if (!strcmp(mode, "auto"))
		context->mode = XB_MPI_AUTO;
	else if (!strcmp(mode, "blocking"))
		context->mode = XB_MPI_BLOCKING;
	else if (!strcmp(mode, "nonblocking"))
		context->mode = XB_MPI_NONBLOCKING;
	else
		return xb_fail(error, XB_E_USAGE, "asked for mode=%s; mode is auto, blocking or nonblocking",
			       mode);
	rc = context->library == XB_MPI_LIBRARY_MPICH ? steer_mpich(context, error)
						      : require_components(context, error);
	if (!rc)
		rc = xb_mpi_preflight(context, error);
	if (!rc)
		xb_mpi_steer_below(&context->path);
	return rc;
}

/* ---- slots */

static int open_endpoint(void *ctx, const struct xb_setup *setup, struct xb_error *error)
{
	struct xb_mpi_context *context = ctx;
	int rc, rank = -1, size = 0, provided, flag = 0;

	context->setup = setup;
	context->comm = MPI_COMM_NULL;
	xb_mpi_identify(context);
	rc = choose(context, error);
	if (rc)
		return rc;
	MPI_Initialized(&flag);
	if (flag)
		return xb_fail(error, XB_E_TRANSPORT,
			       "asked to start MPI; it has been started in this process already, and cannot "
			       "be twice");
	rc = MPI_Init_thread(NULL, NULL, context->threads, &provided);
	if (rc != MPI_SUCCESS)
		return xb_mpi_fail(error, XB_E_TRANSPORT, "MPI_Init_thread", rc);
	context->initialized = true;
	if (provided < context->threads)
		return xb_fail(error, XB_E_UNSUPPORTED, "asked for threads=%s; this MPI does not provide it",
			       xb_setup_value(setup, "threads", "single"));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if ((uint32_t)size != setup->endpoints)
		return xb_fail(error, XB_E_TRANSPORT,
			       "asked for %u ranks; MPI sees %d: the launcher and this MPI library (%s %s) "
			       "do not belong "
			       "together%s; use the mpirun or srun plugin of this MPI",
			       setup->endpoints, size, context->library_name, context->library_version,
			       size == 1 ? " (each rank is a job of its own)" : "");
	if ((uint32_t)rank != setup->endpoint)
		return xb_fail(error, XB_E_TRANSPORT,
			       "this process is endpoint %u of the team and rank %d of MPI; the launcher "
			       "must number them "
			       "alike",
			       setup->endpoint, rank);
	rc = MPI_Comm_dup(MPI_COMM_WORLD, &context->comm); /* inherits the error handler */
	if (rc != MPI_SUCCESS)
		return xb_mpi_fail(error, XB_E_TRANSPORT, "MPI_Comm_dup", rc);
	return setup->op == XB_OP_SEND ? XB_OK : xb_mpi_window_try(context, error);
}

static int memory(void *ctx, void *base, size_t bytes, void *region, struct xb_error *error)
{
	struct xb_mpi_context *context = ctx;

	/* messages need no registration of ours: MPI registers what its fabric wants registered */
	if (context->setup->op == XB_OP_SEND)
		return XB_OK;
	return xb_mpi_window_create(context, base, bytes, &((struct xb_mpi_region *)region)->window, error);
}

static int address(void *ctx, uint32_t peer, void *out, size_t *bytes, struct xb_error *error)
{
	const struct xb_mpi_context *context = ctx;
	const struct address mine = {ADDRESS_MAGIC, context->setup->endpoint, context->setup->endpoints,
				     xb_place_here()};

	(void)peer, (void)error;
	memcpy(out, &mine, sizeof mine);
	*bytes = sizeof mine;
	return XB_OK;
}

/* MPI connects at the first message, so one goes each way; a loop of MPI_Testall, since this may be waiting
 * for a peer. */
static int greet(struct xb_mpi_context *context, int peer, struct xb_error *error)
{
	MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	int rc, flag = 0;

	rc = MPI_Irecv(NULL, 0, MPI_BYTE, peer, XB_MPI_TAG_HELLO, context->comm, &requests[0]);
	if (rc == MPI_SUCCESS)
		rc = MPI_Isend(NULL, 0, MPI_BYTE, peer, XB_MPI_TAG_HELLO, context->comm, &requests[1]);
	while (rc == MPI_SUCCESS && !flag) {
		if (atomic_load_explicit(context->setup->abort, memory_order_relaxed))
			return xb_fail(error, XB_E_ABORTED, "gave up waiting for rank %d", peer);
		rc = MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
	}
	if (rc == MPI_SUCCESS)
		return XB_OK;
	return xb_mpi_fail(error, XB_E_TRANSPORT, "the first message", rc);
}

static int connect_peer(void *ctx, uint32_t peer, const void *blob, size_t bytes, void *c,
			struct xb_error *error)
{
	struct xb_mpi_context *context = ctx;
	struct xb_mpi_connection *conn = c;
	const struct xb_place here = xb_place_here();
	struct address theirs = {0};
	struct xb_mpi_ring *ring;
	uint32_t capacity = 16;
	int rc;

	if (bytes == sizeof theirs)
		memcpy(&theirs, blob, sizeof theirs);
	if (theirs.magic != ADDRESS_MAGIC || theirs.rank != peer || theirs.size != context->setup->endpoints)
		return xb_fail(error, XB_E_PEER,
			       "the address of endpoint %u is that of rank %u of %u; expected rank %u of %u",
			       peer, theirs.rank, theirs.size, peer, context->setup->endpoints);
	while (capacity < context->setup->max_outstanding + 8)
		capacity *= 2;
	ring = calloc(1, sizeof *ring + capacity * sizeof *ring->noted);
	if (!ring)
		return xb_fail(error, XB_E_RESOURCE, "no memory for %u noted receives", capacity);
	ring->next = context->rings;
	context->rings = ring;
	conn->noted = ring->noted;
	conn->noted_mask = capacity - 1;
	conn->context = context;
	conn->comm = context->comm;
	conn->peer = (int)peer;
	conn->same_netns = xb_place_same_netns(&here, &theirs.place);
	conn->pending = MPI_WIN_NULL;
	rc = greet(context, conn->peer, error);
	if (!rc)
		xb_mpi_unlink_shared_files(context);
	return rc;
}

static void close_endpoint(void *ctx, int clean)
{
	struct xb_mpi_context *context = ctx;

	/* MPI_Win_free and MPI_Finalize wait for every other rank; after a failure they may never return. */
	if (clean && context->initialized) {
		xb_mpi_windows_free(context);
		if (context->comm != MPI_COMM_NULL)
			MPI_Comm_free(&context->comm);
		MPI_Finalize();
	}
	while (context->rings) {
		struct xb_mpi_ring *next = context->rings->next;

		free(context->rings);
		context->rings = next;
	}
}

static const struct xb_key keys[] = {
	{"mode", "auto|blocking|nonblocking",
	 "which calls carry messages: MPI_Send/MPI_Recv, MPI_Isend/MPI_Irecv, or (auto) the first for "
	 "pingpong and the "
	 "second for everything else"},
	{"threads", "single|funneled|multiple",
	 "level of thread support that MPI is started with (default single)"},
	{0},
};

__attribute__((visibility("default"))) const struct xb_transport xb_transport = {
	.abi = XB_TRANSPORT_ABI,
	.name = "mpi",
	.summary = "MPI point-to-point and one-sided operations, over whatever MPI runs on",
	.layer = XB_LAYER_MPI,
	.context_bytes = sizeof(struct xb_mpi_context),
	.connection_bytes = sizeof(struct xb_mpi_connection),
	.request_bytes = sizeof(MPI_Request),
	.region_bytes = sizeof(struct xb_mpi_region),
	.remote_bytes = sizeof(struct xb_mpi_remote),
	.keys = keys,
	.probe = xb_mpi_probe,
	.open = open_endpoint,
	.memory = memory,
	.address = address,
	.connect = connect_peer,
	.export_region = xb_mpi_export_region,
	.import_region = xb_mpi_import_region,
	.prepare = xb_mpi_prepare,
	.describe = xb_mpi_describe,
	.explain = xb_mpi_explain,
	.close = close_endpoint,
};

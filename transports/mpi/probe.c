/* SPDX-License-Identifier: BSD-3-Clause */
/* What of MPI is usable on this machine, found without MPI_Init: that would need a launcher, and may end the
 * process. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"

static bool in_search_path(const char *program)
{
	const char *path = getenv("PATH"), *end;
	char file[PATH_MAX];

	for (; path && *path; path = *end ? end + 1 : end) {
		end = path + strcspn(path, ":");
		snprintf(file, sizeof file, "%.*s/%s", (int)(end - path), path, program);
		if (!access(file, X_OK))
			return true;
	}
	return false;
}

static void usable(const struct xb_probe_sink *sink, const char *path, const char *text)
{
	sink->path(sink->user, path, text, 1, NULL, NULL);
}

static void list_default(const struct xb_probe_sink *sink)
{
	static const char text[] = "whatever MPI picks (shared memory between processes of one host)";

	if (in_search_path("mpirun") || in_search_path("mpiexec") || in_search_path("srun"))
		usable(sink, "", text);
	else
		sink->path(sink->user, "", text, 0,
			   "no launcher for MPI jobs (mpirun, mpiexec, srun) in PATH",
			   "install openmpi-bin, or load the MPI module of this site");
}

/* ---- Open MPI */

static void list_component(const struct xb_probe_sink *sink, const char *path, const char *framework,
			   const char *name, const char *text)
{
	char folder[PATH_MAX], reason[PATH_MAX + 128], remedy[160];

	if (xb_mpi_openmpi_has_component(framework, name)) { /* also if that cannot be told */
		usable(sink, path, text);
		return;
	}
	snprintf(reason, sizeof reason, "this Open MPI has no %s/%s: there is no mca_%s_%s.so in %s",
		 framework, name, framework, name, xb_mpi_openmpi_component_dir(folder, sizeof folder));
	snprintf(remedy, sizeof remedy, "use an Open MPI built with %s", path);
	sink->path(sink->user, path, text, 0, reason, remedy);
}

static void list_psm2(const struct xb_probe_sink *sink)
{
	static const char text[] = "cm over mtl/psm2: Omni-Path without libfabric in between";
	const char *reason, *remedy;

	if (!xb_mpi_openmpi_has_component("mtl", "psm2") || xb_mpi_psm2_adapter(&reason, &remedy))
		list_component(sink, "psm2", "mtl", "psm2", text);
	else
		sink->path(sink->user, "psm2", text, 0, reason, remedy);
}

static void list_openmpi(const struct xb_probe_sink *sink)
{
	const char *shm = xb_mpi_openmpi_has_component("btl", "vader") == 1 ? "vader" : "sm";

	list_component(sink, "tcp", "btl", "tcp", "ob1 over btl/tcp: Open MPI's own TCP");
	list_component(sink, "shm", "btl", shm,
		       "ob1 over shared memory (btl/vader, called sm from Open MPI 5 on)");
	list_component(sink, "ucx", "pml", "ucx",
		       "pml/ucx; ucx/TLS chooses UCX's transports, as in mpi:ucx/rc");
	list_component(sink, "ofi", "mtl", "ofi",
		       "cm over mtl/ofi; ofi/PROVIDER chooses libfabric's provider");
	list_psm2(sink);
}

/* ---- MPICH: one device, chosen when it was built */

static void list_mpich(const struct xb_probe_sink *sink, const char *device)
{
	const bool ucx = strstr(device, "ucx"), ofi = strstr(device, "ofi");
	char reason[160];

	snprintf(reason, sizeof reason, "this MPICH was built with the device %s", device);
	for (int i = 0; i < 3; i++) {
		static const char *const paths[] = {"tcp", "shm", "ucx"};

		sink->path(sink->user, paths[i], "MPICH over UCX", ucx, ucx ? NULL : reason,
			   ucx ? NULL : "use an MPICH built with ch4:ucx, or Open MPI");
	}
	for (int i = 0; i < 2; i++) {
		static const char *const paths[] = {"ofi", "psm2"};

		sink->path(sink->user, paths[i], "MPICH over libfabric", ofi, ofi ? NULL : reason,
			   ofi ? NULL : "use an MPICH built with ch4:ofi, or Open MPI");
	}
}

int xb_mpi_probe(const struct xb_probe_sink *sink, struct xb_error *error)
{
	struct xb_mpi_context context = {0};

	(void)error;
	xb_mpi_identify(&context);
	sink->library(sink->user, context.library_name, context.library_version);
	list_default(sink);
	if (context.library == XB_MPI_LIBRARY_OPEN_MPI)
		list_openmpi(sink);
	else if (context.library == XB_MPI_LIBRARY_MPICH)
		list_mpich(sink, context.device);
	return XB_OK;
}

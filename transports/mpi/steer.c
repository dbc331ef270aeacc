/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What UCX and libfabric below MPI have to be told before MPI_Init so that a path works without further
 * settings. They read the environment of this process, on this host; what the user has set stays.
 */
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

static bool begins_with(const char *file, const char *text)
{
	char line[64] = "";
	FILE *in = fopen(file, "re");
	const bool read = in && fgets(line, sizeof line, in);

	if (in)
		fclose(in);
	return read && !strncmp(line, text, strlen(text));
}

/* UCX runs on InfiniBand and RoCE; not on iWARP, and on Omni-Path only in software, which is not what anybody
 * means by it. */
static bool suits_ucx(const char *device)
{
	char path[PATH_MAX], real[PATH_MAX];

	snprintf(path, sizeof path, "%s/node_type", device);
	if (!begins_with(path, "1:"))
		return false;
	snprintf(path, sizeof path, "%s/device/driver", device);
	return !realpath(path, real) || !strstr(real, "/hfi1");
}

bool xb_mpi_rdma_is_active(const char *sysfs)
{
	char pattern[PATH_MAX];
	glob_t found = {0};
	bool active = false;

	snprintf(pattern, sizeof pattern, "%s/class/infiniband/*/ports/*/state", sysfs);
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc && !active; i++) {
			char *file = found.gl_pathv[i];

			if (!begins_with(file, "4:"))
				continue;
			*strstr(file, "/ports/") = '\0';
			active = suits_ucx(file);
		}
	globfree(&found);
	return active;
}

static bool is_soft_roce_here(void)
{
	return xb_mpi_any_file("/sys/class/infiniband/*/parent");
}

void xb_mpi_steer_below(const struct xb_mpi_path *path)
{
	/* On one host UCX would take shared memory, which is not what is compared with verbs and ucx:rc. */
	if (path->route == XB_MPI_UCX && !*path->first && xb_mpi_rdma_is_active("/sys"))
		setenv("UCX_TLS", "rc,self", 0);
	/* as in transports/ucx/ucx.c and transports/ofi/endpoint.c, where it says why */
	if (path->route == XB_MPI_UCX && is_soft_roce_here())
		setenv("UCX_UD_VERBS_ETH_DGID_CHECK", "n", 0);
	if (path->route == XB_MPI_OFI && !strncmp(path->first, "verbs", 5))
		setenv("FI_UNIVERSE_SIZE", "16", 0);
}

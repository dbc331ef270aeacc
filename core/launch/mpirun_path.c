/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi:PATH as arguments of Open MPI's mpirun. Each line was found by measuring; transports/mpi/README.md says
 * why it is as it is. Components of `osc` (put, get) are excluded rather than chosen: asking for one that a
 * release no longer has ends MPI_Init, excluding it does not. Without that a window goes over shared memory
 * while messages take the path.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher.h"
#include "mpi_path.h"
#include "ucx_tls.h"

struct arguments {
	char **argv;
	size_t capacity, *count;
	int full;
};

static void add(struct arguments *to, const char *text)
{
	char *copy;

	if (to->full)
		return;
	copy = *to->count < to->capacity ? strdup(text) : NULL;
	if (copy)
		to->argv[(*to->count)++] = copy;
	else
		to->full = 1;
}

static void mca(struct arguments *to, const char *name, const char *value)
{
	add(to, "--mca");
	add(to, name);
	add(to, value);
}

static void environment(struct arguments *to, const char *format, const char *value)
{
	char text[XB_UCX_TLS_BYTES + 32];

	snprintf(text, sizeof text, format, value);
	add(to, "-x");
	add(to, text);
}

static void tcp(struct arguments *to, const struct xb_mpi_path *path)
{
	char include[2 * XB_MPI_ITEM_BYTES];

	mca(to, "pml", "ob1");
	mca(to, "btl", "self,tcp");
	snprintf(include, sizeof include, "%s%s%s", path->first, *path->second ? "/" : "", path->second);
	if (*include)
		mca(to, "btl_tcp_if_include", include);
	mca(to, "osc", "^ucx");
}

static void shm(struct arguments *to)
{
	mca(to, "pml", "ob1");
	mca(to, "btl", "self,vader");
	mca(to, "osc", "^ucx,pt2pt");
}

static void ucx(struct arguments *to, const struct xb_mpi_path *path)
{
	char tls[XB_UCX_TLS_BYTES];

	/* pml/ucx bows out unless one of these lists matches; by default they name InfiniBand only */
	mca(to, "pml", "ucx");
	mca(to, "pml_ucx_tls", "any");
	mca(to, "pml_ucx_devices", "any");
	mca(to, "osc", "^rdma,pt2pt,sm");
	if (*path->first) {
		xb_ucx_tls(path->first, tls);
		environment(to, "UCX_TLS=%s", tls);
	}
	if (*path->second)
		environment(to, "UCX_NET_DEVICES=%s", path->second);
}

static void ofi(struct arguments *to, const struct xb_mpi_path *path)
{
	char provider[XB_MPI_ITEM_BYTES];

	mca(to, "pml", "cm");
	mca(to, "mtl", "ofi");
	if (*path->first) {
		/* Open MPI compares the beginning of "tcp;ofi_rxm"; a ';' would have to survive a remote
		 * shell */
		snprintf(provider, sizeof provider, "%.*s", (int)strcspn(path->first, ";"), path->first);
		mca(to, "mtl_ofi_provider_include", provider);
	} else {
		/* its own list leaves out whatever runs over IP */
		mca(to, "mtl_ofi_provider_exclude", "none");
	}
	mca(to, "osc", "^ucx,rdma");
}

static void psm2(struct arguments *to)
{
	mca(to, "pml", "cm");
	mca(to, "mtl", "psm2");
	mca(to, "osc", "^ucx,rdma");
}

int xb_mpirun_path_flags(const char *path, char **argv, size_t capacity, size_t *count,
			 struct xb_error *error)
{
	const size_t before = *count;
	struct arguments to = {argv, capacity, count, 0};
	struct xb_mpi_path parsed;
	int rc = xb_mpi_path_parse(path, &parsed, error);

	if (rc)
		return rc;
	switch (parsed.route) {
	case XB_MPI_ANY:
		break;
	case XB_MPI_TCP:
		tcp(&to, &parsed);
		break;
	case XB_MPI_SHM:
		shm(&to);
		break;
	case XB_MPI_UCX:
		ucx(&to, &parsed);
		break;
	case XB_MPI_OFI:
		ofi(&to, &parsed);
		break;
	case XB_MPI_PSM2:
		psm2(&to);
		break;
	}
	if (!to.full)
		return XB_OK;
	while (*count > before) {
		free(argv[--*count]);
		argv[*count] = NULL;
	}
	return xb_fail(error, XB_E_RESOURCE,
		       "asked for mpi:%s; its flags for mpirun do not fit in %zu arguments or in memory",
		       path, capacity);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is missing for a path, found before MPI_Init: MPI_Init does not return an error for it, it ends the
 * process after a page of text. Cheap looks at /sys and /dev only; a question to libfabric itself would take
 * a second.
 */
#include <dirent.h>
#include <glob.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

bool xb_mpi_any_file(const char *pattern)
{
	glob_t found = {0};
	const bool any = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;

	globfree(&found);
	return any;
}

static void list_interfaces(char *out, size_t bytes)
{
	struct if_nameindex *all = if_nameindex();
	size_t length = 0;

	out[0] = '\0';
	for (struct if_nameindex *i = all; i && i->if_index && length < bytes; i++)
		length += (size_t)snprintf(out + length, bytes - length, "%s%s", length ? ", " : "",
					   i->if_name);
	if (all)
		if_freenameindex(all);
}

static bool only_loopback_is_up(void)
{
	struct ifaddrs *all, *i;
	bool other = false;

	if (getifaddrs(&all))
		return false;
	for (i = all; i; i = i->ifa_next)
		if (i->ifa_addr &&
		    (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6) &&
		    (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK))
			other = true;
	freeifaddrs(all);
	return !other;
}

static int check_interface(const struct xb_mpi_context *context, const char *name, struct xb_error *error)
{
	char names[256];

	if (if_nametoindex(name))
		return XB_OK;
	list_interfaces(names, sizeof names);
	return xb_fail(error, XB_E_UNAVAILABLE, "asked for mpi:%s; this host has no interface %s; it has %s",
		       context->setup->path, name, names);
}

static int check_tcp(const struct xb_mpi_context *context, struct xb_error *error)
{
	const struct xb_mpi_path *path = &context->path;

	if (*path->first)
		return *path->second ? XB_OK : check_interface(context, path->first, error);
	/* a choice of the user reaches us in the environment, also from a --mca of mpirun */
	if (context->library == XB_MPI_LIBRARY_OPEN_MPI && !getenv("OMPI_MCA_btl_tcp_if_include") &&
	    !getenv("OMPI_MCA_btl_tcp_if_exclude") && only_loopback_is_up())
		return xb_fail(error, XB_E_UNAVAILABLE,
			       "asked for mpi:tcp; no interface but lo is up here, and Open MPI leaves lo "
			       "out unless it is "
			       "named; ask for mpi:tcp/lo");
	return XB_OK;
}

/* ---- UCX and libfabric: names that exist, and what must be there for them; needs is a pattern of files,
 * NULL none */

struct known {
	const char *name, *needs, *missing;
};

#define RDMA_DEVICE "/sys/class/infiniband/*", "an RDMA device (/sys/class/infiniband is empty)"
#define OMNIPATH_DEVICE "/dev/hfi[0-9]_[0-9]", "an Omni-Path adapter (there is no /dev/hfi1_0)"

static const struct known ucx_transports[] = {
	{"all", NULL, NULL},	  {"self", NULL, NULL},
	{"tcp", NULL, NULL},	  {"shm", NULL, NULL},
	{"sm", NULL, NULL},	  {"mm", NULL, NULL},
	{"posix", NULL, NULL},	  {"sysv", NULL, NULL},
	{"cma", NULL, NULL},	  {"xpmem", "/dev/xpmem", "the xpmem kernel module (there is no /dev/xpmem)"},
	{"rc", RDMA_DEVICE},	  {"knem", "/dev/knem", "the knem kernel module (there is no /dev/knem)"},
	{"rc_v", RDMA_DEVICE},	  {"rc_verbs", RDMA_DEVICE},
	{"rc_x", RDMA_DEVICE},	  {"rc_mlx5", RDMA_DEVICE},
	{"ud", RDMA_DEVICE},	  {"ud_v", RDMA_DEVICE},
	{"ud_x", RDMA_DEVICE},	  {"ud_verbs", RDMA_DEVICE},
	{"dc", RDMA_DEVICE},	  {"ud_mlx5", RDMA_DEVICE},
	{"dc_x", RDMA_DEVICE},	  {"dc_mlx5", RDMA_DEVICE},
	{"ib", RDMA_DEVICE},	  {"srd", RDMA_DEVICE},
	{"cuda", NULL, NULL},	  {"cuda_copy", NULL, NULL},
	{"cuda_ipc", NULL, NULL}, {"gdr_copy", NULL, NULL},
	{"rocm", NULL, NULL},	  {"ugni", NULL, NULL},
};

static const struct known ofi_providers[] = {
	{"tcp", NULL, NULL},	   {"net", NULL, NULL},
	{"sockets", NULL, NULL},   {"udp", NULL, NULL},
	{"verbs", RDMA_DEVICE},	   {"efa", RDMA_DEVICE},
	{"psm2", OMNIPATH_DEVICE}, {"opx", OMNIPATH_DEVICE},
	{"psm3", NULL, NULL},	   {"cxi", "/dev/cxi*", "a Slingshot adapter (there is no /dev/cxi0)"},
	{"gni", NULL, NULL},	   {"usnic", RDMA_DEVICE},
	{"psm", NULL, NULL},	   {"lnx", NULL, NULL},
};

static int check_name(const struct xb_mpi_context *context, const char *what, const struct known *known,
		      size_t count, const char *name, size_t length, struct xb_error *error)
{
	char list[320] = "";
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		if (strlen(known[i].name) == length && !strncmp(known[i].name, name, length)) {
			if (!known[i].needs || xb_mpi_any_file(known[i].needs))
				return XB_OK;
			return xb_fail(error, XB_E_UNAVAILABLE,
				       "asked for mpi:%s; %.*s needs %s; run on a host that has it, or "
				       "choose another path: "
				       "`xportbench list`",
				       context->setup->path, (int)length, name, known[i].missing);
		}
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? " " : "",
					 known[i].name);
	}
	return xb_fail(error, XB_E_UNAVAILABLE, "asked for mpi:%s; %s \"%.*s\" is not known; known are %s",
		       context->setup->path, what, (int)length, name, list);
}

static int check_ucx(const struct xb_mpi_context *context, struct xb_error *error)
{
	const struct xb_mpi_path *path = &context->path;
	char pattern[128];
	size_t length;
	int rc = XB_OK;

	for (const char *tl = path->first; *tl && !rc; tl += length + (tl[length] == '+')) {
		length = strcspn(tl, "+");
		rc = check_name(context, "a UCX transport", ucx_transports,
				sizeof ucx_transports / sizeof *ucx_transports, tl, length, error);
	}
	if (rc || !*path->second)
		return rc;
	snprintf(pattern, sizeof pattern, "/sys/class/infiniband/%.*s", (int)strcspn(path->second, ":"),
		 path->second);
	return xb_mpi_any_file(pattern) ? XB_OK : check_interface(context, path->second, error);
}

static int check_ofi(const struct xb_mpi_context *context, struct xb_error *error)
{
	const char *provider = context->path.first;

	if (!*provider)
		return XB_OK;
	if (!strncmp(provider, "shm", 3) || !strncmp(provider, "sm2", 3))
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "asked for mpi:%s; MPI takes only providers that reach other hosts, and %s "
			       "does not; use "
			       "mpi:shm, or ofi:shm for the provider alone",
			       context->setup->path, provider);
	if (context->setup->op == XB_OP_WRITE && context->library == XB_MPI_LIBRARY_OPEN_MPI &&
	    !strcmp(provider, "net"))
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "asked for write over mpi:%s; MPI_Put of 16 KiB and more never ends there "
			       "(osc/pt2pt of Open "
			       "MPI 4.1 over the net provider of libfabric 1.17); use --op read or send, or "
			       "mpi:ofi/tcp",
			       context->setup->path);
	return check_name(context, "a libfabric provider", ofi_providers,
			  sizeof ofi_providers / sizeof *ofi_providers, provider, strcspn(provider, ";"),
			  error);
}

static int check_psm2(const struct xb_mpi_context *context, struct xb_error *error)
{
	const char *reason, *remedy;

	if (xb_mpi_psm2_adapter(&reason, &remedy))
		return XB_OK;
	return xb_fail(error, XB_E_UNAVAILABLE, "asked for mpi:%s; %s; %s", context->setup->path, reason,
		       remedy);
}

bool xb_mpi_psm2_adapter(const char **reason, const char **remedy)
{
	/* the look that mtl/psm2 itself takes */
	if (xb_mpi_any_file("/sys/class/infiniband/hfi1_*/ports/*/state"))
		return true;
	if (xb_mpi_any_file("/sys/class/infiniband/opap*")) {
		*reason = "the Omni-Path adapter is not called hfi1_N, as mtl/psm2 expects: rdma-core has "
			  "renamed it";
		*remedy = "set NAME_KERNEL in /etc/udev/rules.d/60-rdma-persistent-naming.rules and reboot, "
			  "or use ofi:psm2";
	} else {
		*reason = "there is no Omni-Path adapter on this host (no /sys/class/infiniband/hfi1_*)";
		*remedy = "run on a host that has one, with the hfi1 driver loaded";
	}
	return false;
}

int xb_mpi_preflight(const struct xb_mpi_context *context, struct xb_error *error)
{
	switch (context->path.route) {
	case XB_MPI_TCP:
		return check_tcp(context, error);
	case XB_MPI_UCX:
		return check_ucx(context, error);
	case XB_MPI_OFI:
		return check_ofi(context, error);
	case XB_MPI_PSM2:
		return check_psm2(context, error);
	case XB_MPI_ANY:
	case XB_MPI_SHM:
		break;
	}
	return XB_OK;
}

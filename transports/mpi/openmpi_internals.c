/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What only Open MPI's internal structures tell: which btl, or which UCX endpoint, leads to one given peer.
 * Compiled in where the internal headers are there; used only while the library at run time is of the same
 * series as the headers. References are weak, so that the plugin loads with an Open MPI that no longer has
 * the symbols.
 */
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION == 4 && defined(__has_include)
#if __has_include("ompi/mca/bml/bml.h") && __has_include("ompi/win/win.h") && __has_include("opal_config.h")
#define HAVE_INTERNALS 1
#endif
#endif

#ifdef HAVE_INTERNALS
#include "openmpi_internals.h"

#pragma weak opal_uses_threads
#pragma weak ompi_proc_for_name
#pragma weak ompi_group_get_proc_ptr_raw
#pragma weak mca_btl_base_modules_initialized

/* Since 4.0: the kernel's interface index follows the common part of btl/tcp's module (btl_tcp.h is not
 * installed). */
struct tcp_module {
	mca_btl_base_module_t super;
	uint16_t interface_index;
};

/* mtl/psm2's module and its endpoint of a peer, likewise; psm2_epid_t is 64 bits, the other types are
 * pointers. */
struct psm2_module {
	mca_mtl_base_module_t super;
	int32_t connect_timeout;
	void *endpoint, *queue;
};
struct psm2_endpoint {
	opal_list_item_t super;
	void *unused; /* meant for the module, never set */
	uint64_t peer_id;
	void *peer_address;
};

bool xb_mpi_internals_usable(void)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length, major, minor;

	MPI_Get_library_version(text, &length);
	return sscanf(text, "Open MPI v%d.%d", &major, &minor) == 2 && major == OMPI_MAJOR_VERSION &&
	       minor == OMPI_MINOR_VERSION;
}

static void read_btl(const mca_btl_base_module_t *module, struct xb_mpi_btl *out)
{
	char interface[IF_NAMESIZE];

	memset(out, 0, sizeof *out);
	out->module = module;
	out->eager_bytes = module->btl_eager_limit;
	snprintf(out->name, sizeof out->name, "%s", module->btl_component->btl_version.mca_component_name);
	if (!strcmp(out->name, "tcp") &&
	    if_indextoname(((const struct tcp_module *)module)->interface_index, interface))
		snprintf(out->interface, sizeof out->interface, "%s", interface);
}

static void read_array(const mca_bml_base_btl_array_t *array, struct xb_mpi_btl *btls, size_t capacity,
		       size_t *count)
{
	for (size_t i = 0; i < array->arr_size && *count < capacity; i++)
		read_btl(array->bml_btls[i].btl, &btls[(*count)++]);
}

static ompi_proc_t *proc_of(MPI_Comm comm, int peer)
{
	return ompi_comm_peer_lookup((ompi_communicator_t *)comm, peer);
}

int xb_mpi_internals_btls(MPI_Comm comm, int peer, struct xb_mpi_btl *btls, size_t capacity, size_t *count,
			  bool *local)
{
	const ompi_proc_t *proc = xb_mpi_internals_usable() ? proc_of(comm, peer) : NULL;
	const mca_bml_base_endpoint_t *endpoint =
		proc ? proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] : NULL;

	*count = 0;
	if (!endpoint)
		return -1;
	*local = OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags);
	/* first fragments, all others, and those that go by put or get: a message may use any of them */
	read_array(&endpoint->btl_eager, btls, capacity, count);
	read_array(&endpoint->btl_send, btls, capacity, count);
	read_array(&endpoint->btl_rdma, btls, capacity, count);
	return 0;
}

int xb_mpi_internals_all_btls(struct xb_mpi_btl *btls, size_t capacity, size_t *count)
{
	const mca_btl_base_selected_module_t *item;

	*count = 0;
	if (!xb_mpi_internals_usable() || !&mca_btl_base_modules_initialized)
		return -1;
	OPAL_LIST_FOREACH(item, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
	{
		if (*count < capacity)
			read_btl(item->btl_module, &btls[(*count)++]);
	}
	return 0;
}

const void *xb_mpi_internals_ucx_endpoint(MPI_Comm comm, int peer, bool one_sided)
{
	const ompi_proc_t *proc = xb_mpi_internals_usable() ? proc_of(comm, peer) : NULL;

	if (!proc)
		return NULL;
	return proc->proc_endpoints[one_sided ? OMPI_PROC_ENDPOINT_TAG_UCX : OMPI_PROC_ENDPOINT_TAG_PML];
}

const void *xb_mpi_internals_osc_module(MPI_Win win)
{
	return xb_mpi_internals_usable() ? ((const ompi_win_t *)win)->w_osc_module : NULL;
}

bool xb_mpi_internals_psm2(MPI_Comm comm, int peer, const void *module, void **queue, void **peer_address)
{
	const ompi_proc_t *proc = xb_mpi_internals_usable() ? proc_of(comm, peer) : NULL;
	const struct psm2_endpoint *endpoint = proc ? proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] : NULL;

	if (!endpoint || !module)
		return false;
	*queue = ((const struct psm2_module *)module)->queue;
	*peer_address = endpoint->peer_address;
	return true;
}

#else

bool xb_mpi_internals_usable(void)
{
	return false;
}

int xb_mpi_internals_btls(MPI_Comm comm, int peer, struct xb_mpi_btl *btls, size_t capacity, size_t *count,
			  bool *local)
{
	(void)comm, (void)peer, (void)btls, (void)capacity, (void)local;
	*count = 0;
	return -1;
}

int xb_mpi_internals_all_btls(struct xb_mpi_btl *btls, size_t capacity, size_t *count)
{
	(void)btls, (void)capacity;
	*count = 0;
	return -1;
}

const void *xb_mpi_internals_ucx_endpoint(MPI_Comm comm, int peer, bool one_sided)
{
	(void)comm, (void)peer, (void)one_sided;
	return NULL;
}

const void *xb_mpi_internals_osc_module(MPI_Win win)
{
	(void)win;
	return NULL;
}

bool xb_mpi_internals_psm2(MPI_Comm comm, int peer, const void *module, void **queue, void **peer_address)
{
	(void)comm, (void)peer, (void)module, (void)queue, (void)peer_address;
	return false;
}

#endif

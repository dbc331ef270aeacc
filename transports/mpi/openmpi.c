/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which components Open MPI selected, read in the running process: its control variables (MPI_T) echo only
 * the request. Names come from exported symbols whose layout has not changed since 1.7 (the MCA component
 * header); what lies deeper comes from openmpi_internals.c, or else from the list of components that are
 * loaded at all. Every pointer that is followed here on an assumption is read through /proc/self/mem, so that
 * a wrong assumption gives "not readable".
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"

/* mca_base_component_2_1_0_t: 3 ints, char[16], 3 ints, char[32] type, 3 ints, char[64] name */
#define MCA_NAME_OFFSET 84u
#define MTL_OFI_WORDS 60u /* of ompi_mtl_ofi to search; the provider's name is word 28 in 4.1.4 */
#define OSC_RDMA_WORDS 256u

bool xb_mpi_peek(const void *where, void *out, size_t bytes)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : pread(fd, out, bytes, (off_t)(uintptr_t)where);

	if (fd >= 0)
		close(fd);
	return got == (ssize_t)bytes;
}

/* A short lower-case word at `where`, else false. The page after it may be unmapped, hence byte by byte on
 * failure. */
static bool peek_word(const void *where, char *out, size_t capacity)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_;-";
	size_t length;

	memset(out, 0, capacity);
	if (!xb_mpi_peek(where, out, capacity - 1)) {
		memset(out, 0, capacity);
		for (size_t i = 0; i < capacity - 1; i++)
			if (!xb_mpi_peek((const char *)where + i, &out[i], 1) || !out[i])
				break;
	}
	length = strspn(out, allowed);
	if (length < 2 || out[length])
		return false;
	return true;
}

static bool component_name(const void *component, char *out, size_t capacity)
{
	return component && peek_word((const char *)component + MCA_NAME_OFFSET, out, capacity);
}

/* ---- where the components are */

const char *xb_mpi_openmpi_component_dir(char *out, size_t bytes)
{
	/* relative to the folder of libmpi: upstream, Debian, Fedora's module trees */
	static const char *const places[] = {"openmpi", "openmpi/lib/openmpi3", "openmpi3",
					     "openmpi/lib/openmpi", "../lib/openmpi"};
	const char *forced = getenv("OPAL_PKGLIBDIR");
	char library[PATH_MAX], probe[PATH_MAX + 64];
	Dl_info info;

	out[0] = '\0';
	if (forced) {
		snprintf(out, bytes, "%s", forced);
		return out;
	}
	if (!dladdr((void *)(uintptr_t)MPI_Get_library_version, &info) || !info.dli_fname ||
	    !realpath(info.dli_fname, library))
		return out;
	*strrchr(library, '/') = '\0';
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(probe, sizeof probe, "%s/%s/mca_pml_ob1.so", library, places[i]);
		if (access(probe, F_OK))
			continue;
		*strrchr(probe, '/') = '\0';
		snprintf(out, bytes, "%s", probe);
		break;
	}
	return out;
}

int xb_mpi_openmpi_has_component(const char *framework, const char *name)
{
	char folder[PATH_MAX], file[PATH_MAX + 128];

	if (!*xb_mpi_openmpi_component_dir(folder, sizeof folder))
		return -1;
	snprintf(file, sizeof file, "%s/mca_%s_%s.so", folder, framework, name);
	return access(file, F_OK) == 0;
}

/* A symbol of a component, which may be a shared object loaded privately or a part of the library. */
static void *component_symbol(const char *framework, const char *name, const char *symbol)
{
	char folder[PATH_MAX], file[PATH_MAX + 128];
	void *handle, *found = NULL;

	xb_mpi_openmpi_component_dir(folder, sizeof folder);
	snprintf(file, sizeof file, "%s/mca_%s_%s.so", folder, framework, name);
	handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
	if (handle) {
		found = dlsym(handle, symbol);
		dlclose(handle);
	}
	return found ? found : dlsym(RTLD_DEFAULT, symbol);
}

/* ---- btl */

static void use_btl(struct xb_mpi_used *used, const struct xb_mpi_btl *btl)
{
	size_t length = strlen(used->interfaces);

	xb_mpi_used_add(used, btl->name);
	if (!*btl->interface || strstr(used->interfaces, btl->interface))
		return;
	snprintf(used->interfaces + length, sizeof used->interfaces - length, "%s%s", length ? "," : "",
		 btl->interface);
}

/* The one btl besides self in a list of what is allowed, as mpirun --mca btl self,NAME hands it to the ranks.
 */
static bool only_allowed_btl(const char *list, char *name, size_t bytes)
{
	size_t others = 0;

	for (const char *at = list; at && *at && *list != '^'; at += *at == ',') {
		const size_t length = strcspn(at, ",");

		if (length && (length != 4 || strncmp(at, "self", 4))) {
			snprintf(name, bytes, "%.*s", (int)length, at);
			others++;
		}
		at += length;
	}
	return others == 1;
}

/* Without the headers: if only one btl besides self is loaded, or allowed (since Open MPI 5 they are linked
 * into the library), that is the one: self reaches no peer. */
static void only_loaded_btl(struct xb_mpi_used *used)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128], name[48];
	const char *found;

	while (maps && fgets(line, sizeof line, maps)) {
		found = strstr(line, "/mca_btl_");
		if (found && sscanf(found, "/mca_btl_%47[a-z0-9_].so", name) == 1 && strcmp(name, "self"))
			xb_mpi_used_add(used, name);
	}
	if (maps)
		fclose(maps);
	if (used->part_count == 1)
		return;
	used->part_count = 0;
	if (only_allowed_btl(getenv("OMPI_MCA_btl"), name, sizeof name)) {
		xb_mpi_used_add(used, name);
		return;
	}
	snprintf(used->note, sizeof used->note,
		 "which btl ob1 uses is not readable: this Open MPI has no internal headers for its version");
}

static void read_ob1(const struct xb_mpi_connection *conn, struct xb_mpi_used *used)
{
	struct xb_mpi_btl btls[32];
	size_t count, eager = 0;

	if (xb_mpi_internals_btls(conn->comm, conn->peer, btls, 32, &count, &used->local)) {
		only_loaded_btl(used);
		return;
	}
	for (size_t i = 0; i < count; i++)
		use_btl(used, &btls[i]);
	if (!strchr(used->interfaces, ','))
		snprintf(used->device, sizeof used->device, "%.63s", used->interfaces);
	/* the header that ob1 sends before an eager message: sizeof(mca_pml_ob1_hdr_t) of 4.1 on 64 bits */
	if (count)
		eager = btls[0].eager_bytes;
	used->eager_bytes = eager > 56 && sizeof(void *) == 8 ? eager - 56 : 0;
}

/* ---- mtl */

/*
 * libpsm2 tells which of its devices leads to a peer: the fabric, or shared memory. It needs handles that
 * only mtl/psm2 gives away; beneath libfabric what is left is PSM2_DEVICES, which says what libpsm2 was
 * allowed to use.
 */
static void read_psm2(const struct xb_mpi_connection *conn, struct xb_mpi_used *used)
{
	enum { QUERY_CONFIG = 6, CONFIG_IPS = 1, CONFIG_AMSH = 2, CONFIG_SELF = 4 }; /* psm2.h */
	const char *devices = getenv("PSM2_DEVICES");
	void *handle = dlopen("libpsm2.so.2", RTLD_NOW | RTLD_NOLOAD), *arguments[2];
	int (*query)(int, void *, size_t, void *) = NULL;
	uint32_t config = 0;

	if (handle) {
		*(void **)&query = dlsym(handle, "psm2_info_query");
		if (query && !strcmp(used->under, "psm2") &&
		    xb_mpi_internals_psm2(conn->comm, conn->peer,
					  component_symbol("mtl", "psm2", "ompi_mtl_psm2"), &arguments[0],
					  &arguments[1]) &&
		    query(QUERY_CONFIG, &config, 2, arguments))
			config = 0;
		dlclose(handle);
	}
	if (config)
		snprintf(used->psm2_devices, sizeof used->psm2_devices, "%s",
			 config & CONFIG_IPS	? "hfi"
			 : config & CONFIG_AMSH ? "shm"
						: "self");
	else if (devices)
		snprintf(used->psm2_devices, sizeof used->psm2_devices, "%s", devices);
	else
		snprintf(used->note, sizeof used->note,
			 "whether libpsm2 uses the fabric or shared memory is not readable");
}

/* The provider's name is a string that the mtl's module points to; where depends on the version, so search
 * for it. */
static void read_ofi(const struct xb_mpi_connection *conn, struct xb_mpi_used *used)
{
	static const char *const providers[] = {"tcp",	 "net", "sockets", "udp",   "psm", "opx",
						"verbs", "efa", "gni",	   "usnic", "cxi", "shm",
						"sm2",	 "bgq", "lnx",	   "ucx",   "mlx", "ofi"};
	const void *const *module = component_symbol("mtl", "ofi", "ompi_mtl_ofi");
	const void *words[MTL_OFI_WORDS];
	char word[48];

	for (size_t n = MTL_OFI_WORDS; module && n > 0; n /= 2) {
		if (!xb_mpi_peek(module, words, n * sizeof *words))
			continue;
		for (size_t i = 0; i < n; i++)
			for (size_t p = 0; p < sizeof providers / sizeof *providers; p++)
				if (peek_word(words[i], word, sizeof word) &&
				    !strncmp(word, providers[p], strlen(providers[p]))) {
					xb_mpi_used_add(used, word);
					if (!strncmp(word, "psm2", 4))
						read_psm2(conn, used);
					return;
				}
		break;
	}
	snprintf(used->note, sizeof used->note,
		 "which provider mtl/ofi uses is not readable in this Open MPI");
}

static void read_cm(const struct xb_mpi_connection *conn, struct xb_mpi_used *used)
{
	const void *const *selected = dlsym(RTLD_DEFAULT, "ompi_mtl_base_selected_component");

	if (!selected || !component_name(*selected, used->under, sizeof used->under)) {
		used->under[0] = '\0';
		snprintf(used->note, sizeof used->note, "which mtl cm uses is not readable in this Open MPI");
		return;
	}
	if (!strcmp(used->under, "ofi"))
		read_ofi(conn, used);
	else if (!strcmp(used->under, "psm2"))
		read_psm2(conn, used);
}

bool xb_mpi_openmpi_used(const struct xb_mpi_connection *conn, struct xb_mpi_used *used)
{
	memset(used, 0, sizeof *used);
	if (!component_name(dlsym(RTLD_DEFAULT, "mca_pml_base_selected_component"), used->layer,
			    sizeof used->layer)) {
		used->layer[0] = '\0';
		snprintf(used->note, sizeof used->note,
			 "which pml is selected is not readable in this Open MPI");
		return false;
	}
	if (!strcmp(used->layer, "ob1"))
		read_ob1(conn, used);
	else if (!strcmp(used->layer, "cm"))
		read_cm(conn, used);
	else if (!strcmp(used->layer, "ucx"))
		xb_mpi_ucx_lanes(xb_mpi_internals_ucx_endpoint(conn->comm, conn->peer, false),
				 conn->last_blocking, used);
	return true;
}

/* ---- osc */

/* osc/rdma drives one btl; its module holds a pointer to it, at a place that depends on the version. */
static void read_osc_btl(const void *osc, struct xb_mpi_used *used)
{
	struct xb_mpi_btl btls[32];
	const void *words[OSC_RDMA_WORDS];
	size_t count, n = OSC_RDMA_WORDS;

	if (xb_mpi_internals_all_btls(btls, 32, &count))
		return;
	while (n && !xb_mpi_peek(osc, words, n * sizeof *words))
		n /= 2;
	for (size_t i = 0; i < n; i++)
		for (size_t b = 0; b < count; b++)
			if (words[i] == btls[b].module) {
				use_btl(used, &btls[b]);
				return;
			}
}

bool xb_mpi_openmpi_osc(const struct xb_mpi_connection *conn, MPI_Win win, struct xb_mpi_used *used)
{
	const void *const *osc = xb_mpi_internals_osc_module(win);
	const char *name;
	Dl_info info;

	memset(used, 0, sizeof *used);
	/* the module is a table of functions of the component's shared object; the first ones may be shared
	 * by all */
	for (size_t i = 0; osc && i < 8 && !*used->layer; i++)
		if (osc[i] && dladdr(osc[i], &info) && info.dli_fname &&
		    (name = strstr(info.dli_fname, "/mca_osc_")) != NULL &&
		    sscanf(name, "/mca_osc_%15[a-z0-9]", used->layer) != 1)
			used->layer[0] = '\0';
	if (!strcmp(used->layer, "rdma"))
		read_osc_btl(osc, used);
	else if (!strcmp(used->layer, "ucx"))
		xb_mpi_ucx_lanes(xb_mpi_internals_ucx_endpoint(conn->comm, conn->peer, true), false, used);
	return *used->layer != '\0';
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_MPI_PATH_H
#define XB_MPI_PATH_H
/*
 * The grammar of mpi:PATH. In a header of its own because two sides need the same answer and share no object
 * file: the launcher, which turns a path into flags of mpirun, and the backend, which checks inside MPI that
 * it was taken.
 */
#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "../error.h"

enum xb_mpi_route {
	XB_MPI_ANY, /* ""                 whatever MPI picks */
	XB_MPI_TCP, /* tcp[/INTERFACE]    MPI's own TCP; or tcp/10.1.0.0/16, where the interfaces have
		       different names */
	XB_MPI_SHM, /* shm                MPI's own shared memory */
	XB_MPI_UCX, /* ucx[/TLS[/DEVICE]] over UCX; TLS is one UCX transport or several joined by '+' */
	XB_MPI_OFI, /* ofi[/PROVIDER]     over libfabric */
	XB_MPI_PSM2, /* psm2               over libpsm2, without libfabric in between */
};

#define XB_MPI_PATH_LIST "tcp[/INTERFACE or /SUBNET/BITS], shm, ucx[/TLS[/DEVICE]], ofi[/PROVIDER], psm2"
#define XB_MPI_ITEM_BYTES 64u

struct xb_mpi_path {
	enum xb_mpi_route route;
	char first[XB_MPI_ITEM_BYTES]; /* interface or subnet, TLS with '+', or provider; "" if not given */
	char second[XB_MPI_ITEM_BYTES]; /* device of UCX, bits of the subnet; "" if not given */
};

/* Copies the next item up to '/' or the end. These end in an argument or an environment variable, hence few
 * characters. */
static inline int xb_mpi_path_item(const char **cursor, char *out)
{
	size_t length = strcspn(*cursor, "/");

	if (!length || length >= XB_MPI_ITEM_BYTES || (*cursor)[0] == '-')
		return -1;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)(*cursor)[i]) && !strchr("_.:;+-", (*cursor)[i]))
			return -1;
	memcpy(out, *cursor, length);
	out[length] = '\0';
	*cursor += length;
	return 0;
}

/* Fills *out, or returns XB_E_USAGE with the list of what there is. */
static inline int xb_mpi_path_parse(const char *path, struct xb_mpi_path *out, struct xb_error *error)
{
	static const struct {
		const char *name;
		enum xb_mpi_route route;
		int items; /* how many may follow */
	} routes[] = {{"tcp", XB_MPI_TCP, 2},
		      {"shm", XB_MPI_SHM, 0},
		      {"ucx", XB_MPI_UCX, 2},
		      {"ofi", XB_MPI_OFI, 1},
		      {"psm2", XB_MPI_PSM2, 0}};
	const char *cursor = path;
	char name[XB_MPI_ITEM_BYTES];

	memset(out, 0, sizeof *out);
	if (!*path)
		return XB_OK;
	if (xb_mpi_path_item(&cursor, name))
		goto malformed;
	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
		if (strcmp(name, routes[i].name))
			continue;
		out->route = routes[i].route;
		for (int item = 0; *cursor == '/'; item++) {
			cursor++;
			if (item == routes[i].items ||
			    xb_mpi_path_item(&cursor, item ? out->second : out->first))
				goto malformed;
		}
		if (out->route == XB_MPI_TCP && *out->second &&
		    (!isdigit((unsigned char)*out->first) ||
		     strspn(out->second, "0123456789") != strlen(out->second)))
			goto malformed;
		return XB_OK;
	}
malformed:
	return xb_fail(error, XB_E_USAGE,
		       "asked for mpi:%s; the paths of mpi are " XB_MPI_PATH_LIST
		       "; choose one of them, or give none to measure what MPI picks by itself",
		       path);
}

#endif

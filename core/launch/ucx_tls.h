/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_UCX_TLS_H
#define XB_UCX_TLS_H
/*
 * What UCX_TLS has to say for the transports of a path. A header without an object file, as mpi_path.h is:
 * the launcher and the backends of UCX and MPI give the same answer.
 */
#include <stdio.h>
#include <string.h>

/* What this transport's connections are set up through, or NULL. UCX's groups (rc, rc_x, dc ...) bring it
 * along, the plain names do not, and then no peer can be reached. */
static inline const char *xb_ucx_auxiliary(const char *tl)
{
	if (strcmp(tl, "rc_verbs") == 0)
		return "ud_verbs:aux";
	return strcmp(tl, "rc_mlx5") == 0 || strcmp(tl, "dc_mlx5") == 0 ? "ud_mlx5:aux" : NULL;
}

#define XB_UCX_TLS_BYTES 256u /* enough for what 63 characters of names become */

/* "rc_verbs+tcp" -> "rc_verbs,ud_verbs:aux,tcp,self" */
static inline void xb_ucx_tls(const char *joined, char out[XB_UCX_TLS_BYTES])
{
	char names[XB_UCX_TLS_BYTES], *save = NULL;
	size_t used = 0;

	snprintf(names, sizeof names, "%s", joined);
	for (char *tl = strtok_r(names, "+", &save); tl; tl = strtok_r(NULL, "+", &save)) {
		const char *auxiliary = xb_ucx_auxiliary(tl);

		if (used < XB_UCX_TLS_BYTES)
			used += (size_t)snprintf(out + used, XB_UCX_TLS_BYTES - used, "%s%s%s,", tl,
						 auxiliary ? "," : "", auxiliary ? auxiliary : "");
	}
	if (used < XB_UCX_TLS_BYTES)
		snprintf(out + used, XB_UCX_TLS_BYTES - used, "self");
}

#endif

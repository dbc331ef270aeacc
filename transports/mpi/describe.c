/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What MPI really uses towards a peer, in words, and whether that is what the path asked for. A path that
 * cannot be read back counts as not taken: an unproven path is the mistake that this program exists to
 * prevent.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

static void append(char *out, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void append(char *out, size_t bytes, const char *format, ...)
{
	const size_t length = strlen(out);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(out + length, bytes - length, format, arguments);
	va_end(arguments);
}

/* "ob1/tcp", "ob1/vader+tcp", "cm/ofi/tcp;ofi_rxm", "cm/psm2 (shm)", "ucx (tcp/lo, tcp/eth0)" */
static void print_used(const struct xb_mpi_used *used, char *out, size_t bytes)
{
	const bool lanes = !strcmp(used->layer, "ucx");

	append(out, bytes, "%s", *used->layer ? used->layer : "unknown");
	if (*used->under)
		append(out, bytes, "/%s", used->under);
	for (size_t i = 0; i < used->part_count; i++)
		append(out, bytes, "%s%s", lanes ? (i ? ", " : " (") : (i ? "+" : "/"), used->part[i]);
	if (lanes && used->part_count)
		append(out, bytes, ")");
	if (*used->psm2_devices)
		append(out, bytes, " (%s)", used->psm2_devices);
}

/* ---- is it what was asked? */

static bool all_parts_are(const struct xb_mpi_used *used, const char *const *names)
{
	for (size_t i = 0; i < used->part_count; i++) {
		bool found = false;

		for (const char *const *name = names; *name; name++)
			found = found || !strcmp(used->part[i], *name);
		if (!found)
			return false;
	}
	return used->part_count > 0;
}

static bool all_lanes_match(const struct xb_mpi_used *used, const char *tls, const char *device)
{
	for (size_t i = 0; i < used->part_count; i++)
		if ((*tls && !xb_mpi_ucx_lane_matches(used->part[i], tls)) ||
		    (*device && !xb_mpi_ucx_lane_is_shared_memory(used->part[i]) &&
		     strcmp(strchr(used->part[i], '/') + 1, device)))
			return false;
	return used->part_count > 0;
}

static bool tcp_ok(const struct xb_mpi_context *context, const struct xb_mpi_used *used)
{
	static const char *const tcp[] = {"tcp", NULL};
	const struct xb_mpi_path *path = &context->path;

	if (!strcmp(used->layer, "ucx")) /* MPICH's TCP is that of UCX */
		return context->library == XB_MPI_LIBRARY_MPICH && all_lanes_match(used, "tcp", path->first);
	/* an interface is checked by name; for a subnet btl/tcp's own choice must do */
	return all_parts_are(used, tcp) && (!*path->first || *path->second || !*used->interfaces ||
					    !strcmp(used->interfaces, path->first));
}

static bool shm_ok(const struct xb_mpi_context *context, const struct xb_mpi_used *used)
{
	static const char *const shm[] = {"vader", "sm", NULL};

	if (!strcmp(used->layer, "ucx"))
		return context->library == XB_MPI_LIBRARY_MPICH && all_lanes_match(used, "shm", "");
	return all_parts_are(used, shm);
}

static bool is_asked(const struct xb_mpi_context *context, const struct xb_mpi_used *used)
{
	const struct xb_mpi_path *path = &context->path;
	const bool cm = !strcmp(used->layer, "cm");

	switch (path->route) {
	case XB_MPI_ANY:
		return true;
	case XB_MPI_TCP:
		return tcp_ok(context, used);
	case XB_MPI_SHM:
		return shm_ok(context, used);
	case XB_MPI_UCX:
		return !strcmp(used->layer, "ucx") && all_lanes_match(used, path->first, path->second);
	case XB_MPI_OFI:
		return cm && !strcmp(used->under, "ofi") &&
		       (!*path->first ||
			(used->part_count == 1 && !strncmp(used->part[0], path->first, strlen(path->first))));
	case XB_MPI_PSM2:
		/* over shared memory only where that is what libpsm2 was allowed to use */
		return cm && !strcmp(used->under, "psm2") &&
		       (strcmp(used->psm2_devices, "shm") || getenv("PSM2_DEVICES"));
	}
	return false;
}

/* One-sided: osc/pt2pt sends messages, osc/rdma drives a btl of its own choice, osc/ucx has UCX endpoints of
 * its own. */
static bool osc_is_asked(const struct xb_mpi_context *context, const struct xb_mpi_used *osc,
			 const struct xb_mpi_used *messages)
{
	struct xb_mpi_used as = *osc;

	if (context->path.route == XB_MPI_ANY || !strcmp(osc->layer, "pt2pt"))
		return is_asked(context, messages);
	if (!strcmp(osc->layer, "rdma"))
		snprintf(as.layer, sizeof as.layer, "ob1");
	return is_asked(context, &as);
}

/* ---- the slot */

/* UCX's TCP within one host, as far as that is all that it uses. */
static void note_loopback(const struct xb_mpi_connection *conn, struct xb_mpi_used *used)
{
	if (!conn->same_netns || strcmp(used->layer, "ucx") || !all_lanes_match(used, "tcp", ""))
		return;
	used->local = true;
	*used->interfaces = '\0';
	for (size_t i = 0; i < used->part_count; i++)
		append(used->interfaces, sizeof used->interfaces, "%s%s", i ? "," : "",
		       strchr(used->part[i], '/') + 1);
}

static void read_used(const struct xb_mpi_connection *conn, struct xb_mpi_used *used)
{
	memset(used, 0, sizeof *used);
	if (conn->context->library == XB_MPI_LIBRARY_OPEN_MPI) {
		xb_mpi_openmpi_used(conn, used);
	} else if (xb_mpi_ucx_lanes(NULL, false, used)) {
		snprintf(used->layer, sizeof used->layer, "ucx");
		used->note[0] = '\0';
	} else {
		snprintf(used->note, sizeof used->note, "what %s uses underneath is not readable",
			 conn->context->library_name);
	}
}

static void set_device(struct xb_description *out, const struct xb_mpi_used *used)
{
	/* between two processes of one host the kernel carries any local address over lo */
	snprintf(out->device, sizeof out->device, "%s",
		 used->local && *used->interfaces ? "lo" : used->device);
}

static void set_notes(struct xb_description *out, const struct xb_mpi_context *context,
		      const struct xb_mpi_used *used)
{
	out->note[0] = '\0';
	if (!out->path_ok)
		append(out->note, sizeof out->note, "asked for mpi:%s; %s uses %s", context->setup->path,
		       context->library_name, out->resolved);
	if (*used->note)
		append(out->note, sizeof out->note, "%s%s", *out->note ? "; " : "", used->note);
	if (*used->interfaces && used->local && strcmp(used->interfaces, "lo"))
		append(out->note, sizeof out->note,
		       "%sboth ranks are on one host, so the kernel carries the addresses of %s over lo",
		       *out->note ? "; " : "", used->interfaces);
}

int xb_mpi_describe(void *ctx, void *c, struct xb_description *out, struct xb_error *error)
{
	const struct xb_mpi_context *context = ctx;
	const struct xb_mpi_connection *conn = c;
	struct xb_mpi_used used, osc;

	(void)error;
	memset(out, 0, sizeof *out);
	snprintf(out->library, sizeof out->library, "%s", context->library_name);
	snprintf(out->version, sizeof out->version, "%s", context->library_version);
	out->caps = xb_mpi_caps(context);
	out->max_message_bytes = INT_MAX; /* the count of an MPI call */
	read_used(conn, &used);
	note_loopback(conn, &used);
	out->eager_bytes = used.eager_bytes;
	out->path_ok = is_asked(context, &used);
	if (context->setup->op == XB_OP_SEND) {
		print_used(&used, out->resolved, sizeof out->resolved);
		set_device(out, &used);
		set_notes(out, context, &used);
		return XB_OK;
	}
	if (context->library != XB_MPI_LIBRARY_OPEN_MPI || !context->window_count ||
	    !xb_mpi_openmpi_osc(conn, context->windows[0].win, &osc)) {
		print_used(&used, out->resolved, sizeof out->resolved);
		set_device(out, &used);
		set_notes(out, context, &used);
		append(out->note, sizeof out->note,
		       "%show one-sided operations go is not readable, taken to be as messages",
		       *out->note ? "; " : "");
		return XB_OK;
	}
	note_loopback(conn, &osc);
	append(out->resolved, sizeof out->resolved, "osc ");
	print_used(&osc, out->resolved, sizeof out->resolved);
	append(out->resolved, sizeof out->resolved, ", messages ");
	print_used(&used, out->resolved, sizeof out->resolved);
	out->eager_bytes = 0;
	out->path_ok = out->path_ok && osc_is_asked(context, &osc, &used);
	set_device(out, strcmp(osc.layer, "pt2pt") ? &osc : &used);
	set_notes(out, context, &used);
	return XB_OK;
}

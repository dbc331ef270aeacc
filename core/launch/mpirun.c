/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers as ranks of one MPI job, started by Open MPI's mpirun or by Hydra, the mpiexec of MPICH. Their
 * stdin reaches rank 0 only (`--stdin all` never ends in Open MPI 4.1), so the key comes from a memory file
 * of the controller that only the same user can open; on other hosts from a holder (hold.c).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi_kind.h"
#include "spawn.h"

#define VERSION_MS 10000

/* `mpi@mpich` is started by mpirun.mpich or mpiexec.mpich, as Debian and others install several MPIs. */
static void command_of(const struct xb_launch_request *request, char *out, size_t capacity)
{
	static const char *const programs[] = {"mpirun", "mpiexec"};
	const struct xb_transport_spec *spec = request->spec;
	const char *which = strchr(spec->name, '@'), *path = getenv("PATH");
	char file[4096];

	if (spec->mpirun || request->config->mpirun_command || !xb_is_mpi(spec->name) || !which) {
		const char *general = request->config->mpirun_command;
		snprintf(out, capacity, "%s", spec->mpirun ? spec->mpirun : general ? general : "mpirun");
		return;
	}
	snprintf(out, capacity, "mpirun.%s", which + 1);
	for (size_t i = 0; i < 2; i++)
		for (const char *p = path; p && *p;) {
			size_t n = strcspn(p, ":");
			snprintf(file, sizeof file, "%.*s/%s.%s", (int)n, p, programs[i], which + 1);
			if (access(file, X_OK) == 0) {
				snprintf(out, capacity, "%s", file);
				return;
			}
			p += n + (p[n] == ':');
		}
}

/* The answer for the command asked last is kept: one process, few commands. */
static int kind_of(const char *command, enum xb_mpi_kind *kind, struct xb_error *error)
{
	static struct {
		char command[1024];
		enum xb_mpi_kind kind;
	} known[4];
	static size_t next;
	struct xb_argv argv = {.count = 0};
	char text[4096] = "";

	for (size_t i = 0; i < 4; i++)
		if (*known[i].command && !strcmp(known[i].command, command)) {
			*kind = known[i].kind;
			return 0;
		}
	int status = xb_argv_add_words(&argv, command, error);
	while (argv.count > 1) /* options behind the program may need what is not there yet */
		free(argv.items[--argv.count]);
	xb_argv_add(&argv, "--version");
	if (!status)
		status = xb_spawn_output(&argv, text, sizeof text, VERSION_MS, error);
	xb_argv_free(&argv);
	if (status)
		return status;
	if (strstr(text, "Open MPI") || strstr(text, "OpenRTE") || strstr(text, "PRTE"))
		*kind = XB_MPI_KIND_OPENMPI;
	else if (strcasestr(text, "hydra") || strcasestr(text, "mpich"))
		*kind = XB_MPI_KIND_HYDRA;
	else
		return xb_fail(error, XB_E_UNAVAILABLE,
			       "\"%s\" is neither the mpirun of Open MPI nor Hydra, the mpiexec of MPICH: "
			       "name one of "
			       "these with --mpirun-command",
			       command);
	*kind = strstr(text, "Open MPI") ? XB_MPI_KIND_OPENMPI : *kind;
	if (strlen(command) < sizeof known[0].command) {
		strcpy(known[next].command, command);
		known[next].kind = *kind;
		next = (next + 1) % 4;
	}
	return 0;
}

/* "a:2,b:1": rank r goes to hosts[r % n] by mapping round the nodes. Hydra: "a,b" with -ppn. */
static void add_hosts(struct xb_argv *argv, const struct xb_launch_request *request, enum xb_mpi_kind kind)
{
	const struct xb_config *config = request->config;
	size_t bytes = 1, used = 0;
	for (size_t h = 0; h < config->host_count; h++)
		bytes += strlen(config->hosts[h]) + 16;
	char *list = malloc(bytes);
	if (!list)
		return;
	for (size_t h = 0; h < config->host_count; h++) {
		unsigned slots = (unsigned)((request->endpoints - h - 1) / config->host_count + 1);
		used += (size_t)snprintf(list + used, bytes - used, "%s%s", h ? "," : "", config->hosts[h]);
		if (kind == XB_MPI_KIND_OPENMPI)
			used += (size_t)snprintf(list + used, bytes - used, ":%u", slots);
	}
	if (kind == XB_MPI_KIND_OPENMPI) {
		xb_argv_add(argv, "--host");
		xb_argv_add(argv, "%s", list);
		xb_argv_add(argv, "--map-by");
		xb_argv_add(argv, "node");
	} else {
		xb_argv_add(argv, "-hosts");
		xb_argv_add(argv, "%s", list);
		xb_argv_add(argv, "-ppn");
		xb_argv_add(argv, "1"); /* round the hosts */
	}
	free(list);
}

/* Hydra's -launcher-exec takes a program without arguments: a script in a memory file of this process. */
static int ssh_script(const char *command)
{
	static int fd = -1; /* one command a process */
	if (fd >= 0)
		return fd;
	fd = memfd_create("xportbench-ssh", 0);
	if (fd >= 0 && dprintf(fd, "#!/bin/sh\nexec %s \"$@\"\n", command) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void add_remote_shell(struct xb_argv *argv, const struct xb_config *config, enum xb_mpi_kind kind)
{
	if (!config->ssh_command)
		return;
	if (kind == XB_MPI_KIND_OPENMPI) {
		xb_argv_add(argv, "--mca");
		xb_argv_add(argv, "plm_rsh_agent");
		xb_argv_add(argv, "%s", config->ssh_command);
		return;
	}
	int fd = ssh_script(config->ssh_command);
	xb_argv_add(argv, "-launcher");
	xb_argv_add(argv, "ssh");
	if (fd >= 0) {
		xb_argv_add(argv, "-launcher-exec");
		xb_argv_add(argv, "/proc/%d/fd/%d", (int)getpid(), fd);
	}
}

static int add_open_mpi(struct xb_argv *argv, const struct xb_launch_request *request, struct xb_error *error)
{
	const struct xb_transport_spec *spec = request->spec;
	int status = 0;
	if (geteuid() == 0)
		xb_argv_add(argv, "--allow-run-as-root");
	xb_argv_add(argv, "-np");
	xb_argv_add(argv, "%u", request->endpoints);
	/* workers pin themselves, the same way in every team */
	xb_argv_add(argv, "--bind-to");
	xb_argv_add(argv, "none");
	if (request->hosts)
		add_hosts(argv, request, XB_MPI_KIND_OPENMPI);
	else if (sysconf(_SC_NPROCESSORS_ONLN) < (long)request->endpoints)
		xb_argv_add(argv, "--oversubscribe");
	if (request->hosts)
		add_remote_shell(argv, request->config, XB_MPI_KIND_OPENMPI);
	if (xb_is_mpi(spec->name)) {
		size_t flags = 0;
		status = xb_mpirun_path_flags(spec->path, argv->items + argv->count,
					      XB_SPAWN_ARGS - argv->count, &flags, error);
		argv->count += flags;
	}
	for (size_t i = 0; i < spec->env_count; i++) {
		xb_argv_add(argv, "-x");
		xb_argv_add(argv, "%s=%s", spec->env[i].key, spec->env[i].value);
	}
	return status;
}

/* MPICH knows no flags for its paths: the backend sets them before MPI_Init. */
static void add_hydra(struct xb_argv *argv, const struct xb_launch_request *request)
{
	const struct xb_transport_spec *spec = request->spec;
	xb_argv_add(argv, "-np");
	xb_argv_add(argv, "%u", request->endpoints);
	if (request->hosts) {
		add_hosts(argv, request, XB_MPI_KIND_HYDRA);
		add_remote_shell(argv, request->config, XB_MPI_KIND_HYDRA);
	}
	for (size_t i = 0; i < spec->env_count; i++) {
		xb_argv_add(argv, "-genv");
		xb_argv_add(argv, "%s", spec->env[i].key);
		xb_argv_add(argv, "%s", spec->env[i].value);
	}
}

static int start(const struct xb_launch_request *request, struct xb_launched *out, size_t capacity,
		 size_t *count, struct xb_error *error)
{
	const struct xb_transport_spec *spec = request->spec;
	const char *remote = request->config->remote_path;
	struct xb_argv argv = {.count = 0};
	enum xb_mpi_kind kind = XB_MPI_KIND_OPENMPI;
	char command[4096], key[64];

	*count = 0;
	command_of(request, command, sizeof command);
	int status = kind_of(command, &kind, error);
	if (!status)
		status = xb_argv_add_words(&argv, command, error);
	if (!status && kind == XB_MPI_KIND_OPENMPI)
		status = add_open_mpi(&argv, request, error);
	else if (!status)
		add_hydra(&argv, request);
	if (!status && request->hosts) {
		snprintf(key, sizeof key, "held:%s-%u", request->run_id, request->team);
		status = xb_spawn_holders(request, out, capacity, count, error);
	} else {
		snprintf(key, sizeof key, "/proc/%d/fd/%d", (int)getpid(), request->key_fd);
	}
	xb_argv_add_worker(&argv, request, request->hosts && remote ? remote : request->self, key,
			   kind == XB_MPI_KIND_OPENMPI ? "env:OMPI_COMM_WORLD_RANK/PMIX_RANK"
						       : "env:PMI_RANK");
	/* the variables are in mpirun's own environment as well: MCA parameters may be among them */
	const struct xb_spawn_options options = {
		.env = spec->env, .env_count = spec->env_count, .death_signal = SIGTERM};
	if (!status && *count == capacity)
		status = xb_fail(error, XB_E_RESOURCE, "no room for mpirun");
	if (!status)
		status = xb_spawn(&argv, &options, &out[*count], error);
	if (!status)
		(*count)++;
	else
		xb_spawn_undo(out, count);
	xb_argv_free(&argv);
	return status;
}

static int explain(const struct xb_launch_request *request, const struct xb_launched *process,
		   int wait_status, const char *output, struct xb_error *error)
{
	const char *remote = request->config->remote_path;
	/* only the holders have a host */
	return process->host ? xb_ssh_explain(process->host, remote ? remote : request->self, wait_status,
					      output, error)
			     : 0;
}

/* mpirun takes about 2 s to end its ranks after SIGTERM */
const struct xb_launcher xb_launcher_mpirun = {.name = "mpirun",
					       .start = start,
					       .explain = explain,
					       .end_signal = SIGTERM,
					       .grace_ms = 4000,
					       .hello_ms = 60000};

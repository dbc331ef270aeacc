/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers as tasks of one job step of Slurm, inside an allocation. srun gives its stdin to every task, so the
 * key goes there.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi_kind.h"
#include "slurm.h"
#include "spawn.h"
#include "../control/channel.h"
#include "../control/plugin.h"

#define ENV_MAX (XB_MAX_KEYS + 32u)

/* Which library the plugin was linked with decides what it can be started by: found in the file, since to
 * load it would start MPI's own machinery in this process. */
static enum xb_mpi_kind library_of(const struct xb_launch_request *request)
{
	/* as Debian names it, and as MPICH itself does (Open MPI's libmpi has other numbers) */
	static const char *const mpich[] = {"libmpich.so", "libmpi.so.12"};
	char path[4096], *bytes = NULL;
	enum xb_mpi_kind kind = XB_MPI_KIND_OPENMPI;
	long size = 0;
	FILE *f = NULL;

	if (!xb_plugin_find(request->config->plugin_path, request->spec->name, path, sizeof path, NULL))
		f = fopen(path, "re");
	if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) > 0 && (bytes = malloc((size_t)size))) {
		rewind(f);
		int whole = fread(bytes, 1, (size_t)size, f) == (size_t)size;
		for (size_t i = 0; whole && i < sizeof mpich / sizeof *mpich; i++)
			if (memmem(bytes, (size_t)size, mpich[i], strlen(mpich[i])))
				kind = XB_MPI_KIND_HYDRA;
	}
	free(bytes);
	if (f)
		fclose(f);
	return kind;
}

struct variables {
	struct xb_key_value items[ENV_MAX];
	char *texts[ENV_MAX];
	size_t count;
};

static int set_variable(struct variables *v, const char *name, const char *value, struct xb_error *error)
{
	char *text = NULL;
	if (v->count == ENV_MAX)
		return xb_fail(error, XB_E_USAGE, "env.%s is one variable too many for srun: at most %u",
			       name, ENV_MAX);
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for the environment of srun");
	size_t n = strlen(name);
	text[n] = 0;
	v->items[v->count] = (struct xb_key_value){text, text + n + 1};
	v->texts[v->count++] = text;
	return 0;
}

static void free_variables(struct variables *v)
{
	while (v->count)
		free(v->texts[--v->count]);
}

/* What mpirun is told by flags, Open MPI's ranks under srun are told by their environment. */
static int path_variables(const struct xb_launch_request *request, struct variables *v,
			  struct xb_error *error)
{
	char *flags[64], name[256];
	size_t count = 0;
	int status = xb_mpirun_path_flags(request->spec->path, flags, 64, &count, error);

	for (size_t i = 0; !status && i + 1 < count;) {
		if (!strcmp(flags[i], "--mca") && i + 2 < count) {
			snprintf(name, sizeof name, "OMPI_MCA_%s", flags[i + 1]);
			status = set_variable(v, name, flags[i + 2], error);
			i += 3;
		} else { /* -x NAME=VALUE */
			char *equals = strchr(flags[i + 1], '=');
			if (equals) {
				*equals = 0;
				status = set_variable(v, flags[i + 1], equals + 1, error);
			}
			i += 2;
		}
	}
	for (size_t i = 0; i < count; i++)
		free(flags[i]);
	return status;
}

/* Rank r on hosts[r % n]: srun takes an order only from a file. */
static int host_list(const struct xb_launch_request *request)
{
	int fd = memfd_create("xportbench-hosts", 0); /* inherited by srun */
	for (uint32_t e = 0; fd >= 0 && request->hosts && e < request->endpoints; e++)
		if (dprintf(fd, "%s\n", request->hosts[e]) < 0)
			break;
	return fd;
}

static int given(const struct xb_argv *argv, const char *option)
{
	for (size_t i = 0; i < argv->count; i++)
		if (!strncmp(argv->items[i], option, strlen(option)))
			return 1;
	return 0;
}

static int start(const struct xb_launch_request *request, struct xb_launched *out, size_t capacity,
		 size_t *count, struct xb_error *error)
{
	const struct xb_transport_spec *spec = request->spec;
	const struct xb_config *config = request->config;
	const char *command = config->srun_command ? config->srun_command : "srun", *type = "none";
	const char *endpoint = "env:SLURM_PROCID";
	struct variables v = {.count = 0};
	struct xb_argv argv = {.count = 0};
	char hex[2 * XB_KEY_BYTES + 1], file[64];

	*count = 0;
	if (capacity < 1)
		return xb_fail(error, XB_E_RESOURCE, "no room for srun");
	int status = xb_argv_add_words(&argv, command, error), hosts_fd = -1;
	for (size_t i = 0; !status && i < spec->env_count; i++)
		status = set_variable(&v, spec->env[i].key, spec->env[i].value, error);
	if (!status && xb_is_mpi(spec->name)) {
		type = library_of(request) == XB_MPI_KIND_HYDRA ? "pmi2" : "pmix";
		endpoint = !strcmp(type, "pmi2") ? "env:PMI_RANK/SLURM_PROCID" : "env:PMIX_RANK/SLURM_PROCID";
		if (!strcmp(type, "pmix"))
			status = path_variables(request, &v, error);
	}
	if (!given(&argv, "--mpi"))
		xb_argv_add(&argv, "--mpi=%s", type);
	xb_argv_add(&argv, "--ntasks=%u", request->endpoints);
	xb_argv_add(&argv, "--nodes=%zu", config->host_count ? config->host_count : 1);
	xb_argv_add(&argv, "--overlap"); /* one step for each team, all on the same cores */
	xb_argv_add(&argv, "--kill-on-bad-exit=1");
	xb_argv_add(&argv, "--cpu-bind=none"); /* workers pin themselves, the same way in every team */
	xb_argv_add(&argv, "--export=ALL");
	if (!status && request->hosts && (hosts_fd = host_list(request)) >= 0) {
		xb_argv_add(&argv, "--distribution=arbitrary");
		snprintf(file, sizeof file, "/proc/self/fd/%d", hosts_fd);
		status = set_variable(&v, "SLURM_HOSTFILE", file, error);
	}
	xb_argv_add_worker(&argv, request, config->remote_path ? config->remote_path : request->self, "stdin",
			   endpoint);
	xb_key_to_hex(request->key, hex);
	const struct xb_spawn_options options = {
		.env = v.items, .env_count = v.count, .stdin_text = hex, .death_signal = SIGTERM};
	if (!status)
		status = xb_spawn(&argv, &options, out, error);
	if (!status)
		*count = 1;
	if (hosts_fd >= 0)
		close(hosts_fd);
	explicit_bzero(hex, sizeof hex);
	xb_argv_free(&argv);
	free_variables(&v);
	return status;
}

int xb_slurm_hosts(struct xb_config *config, struct xb_error *error)
{
	const char *nodes = getenv("SLURM_JOB_NODELIST");
	struct xb_argv argv = {.count = 0};
	static char text[65536]; /* large */

	if (!nodes || !*nodes)
		return xb_fail(error, XB_E_UNAVAILABLE,
			       "this is inside a job of Slurm, but SLURM_JOB_NODELIST is not set; name the "
			       "hosts with -H");
	xb_argv_add(&argv, "scontrol");
	xb_argv_add(&argv, "show");
	xb_argv_add(&argv, "hostnames");
	xb_argv_add(&argv, "%s", nodes);
	int status = xb_spawn_output(&argv, text, sizeof text, 10000, error);
	xb_argv_free(&argv);
	for (char *save, *name = strtok_r(text, "\n", &save); !status && name;
	     name = strtok_r(NULL, "\n", &save))
		status = xb_parse_hosts(name, config, error);
	if (!status && config->host_count == 0)
		status = xb_fail(error, XB_E_UNAVAILABLE, "scontrol names no host for the job's %s", nodes);
	return status;
}

const struct xb_launcher xb_launcher_srun = {
	.name = "srun", .start = start, .end_signal = SIGTERM, .grace_ms = 4000, .hello_ms = 60000};

/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers as children of the controller, on this machine. The key goes through their stdin. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "spawn.h"
#include "../control/channel.h"

static int start(const struct xb_launch_request *request, struct xb_launched *out, size_t capacity,
		 size_t *count, struct xb_error *error)
{
	char hex[2 * XB_KEY_BYTES + 1], endpoint[16];
	int status = 0;

	*count = 0;
	if (request->endpoints > capacity)
		return xb_fail(error, XB_E_RESOURCE, "%u endpoints asked for, at most %zu can be started",
			       request->endpoints, capacity);
	xb_key_to_hex(request->key, hex);
	const struct xb_spawn_options options = {.env = request->spec->env,
						 .env_count = request->spec->env_count,
						 .stdin_text = hex,
						 .death_signal = SIGCONT};
	for (uint32_t e = 0; !status && e < request->endpoints; e++) {
		struct xb_argv argv = {.count = 0};
		snprintf(endpoint, sizeof endpoint, "%u", e);
		xb_argv_add_worker(&argv, request, request->self, "stdin", endpoint);
		status = xb_spawn(&argv, &options, &out[*count], error);
		xb_argv_free(&argv);
		if (!status)
			out[(*count)++].endpoint = (int)e;
	}
	if (status)
		xb_spawn_undo(out, count);
	explicit_bzero(hex, sizeof hex);
	return status;
}

const struct xb_launcher xb_launcher_local = {.name = "local",
					      .start = start,
					      .end_signal = SIGTERM,
					      .grace_ms = 200,
					      .hello_ms = 15000,
					      .children = 1};

const struct xb_launcher *xb_launcher_choose(const struct xb_config *config, const char *transport)
{
	int mpi = xb_is_mpi(transport);

	if (config->listener)
		return &xb_launcher_listen;
	switch (config->launcher) {
	case XB_LAUNCHER_MPIRUN:
		return &xb_launcher_mpirun;
	case XB_LAUNCHER_SRUN:
		return &xb_launcher_srun;
	case XB_LAUNCHER_AUTO:
		if (config->host_count && xb_in_slurm_job())
			return &xb_launcher_srun;
		break;
	case XB_LAUNCHER_LOCAL:
	case XB_LAUNCHER_SSH:
		break;
	}
	if (mpi)
		return &xb_launcher_mpirun;
	return config->host_count ? &xb_launcher_ssh : &xb_launcher_local;
}

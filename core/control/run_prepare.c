/* SPDX-License-Identifier: BSD-3-Clause */
/* What is settled before a run starts anything. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plugin.h"
#include "run_internal.h"
#include "../engine/block.h"
#include "../report/text.h"
#include "../launch/reach.h"
#include "../launch/slurm.h"
#include "../system/system.h"

#define ROUNDS_OF_A_PAIR 3
#define ROUNDS_OF_MANY 1
#define TARGET_DEFAULT_NS 3000000 /* timed part of a block */

static int make_items(struct xb_run *run)
{
	const struct xb_config *c = run->config;
	run->items = calloc(xb_run_count_items(c), sizeof *run->items);
	for (size_t b = 0; run->items && b < c->bench_count; b++) {
		if (c->benches[b] == XB_BENCH_SWAP) {
			run->item_count += xb_run_swap_items(c, run->items + run->item_count);
			continue;
		}
		for (size_t s = 0; s < c->size_count; s++)
			run->items[run->item_count++] =
				(struct xb_item){.bench = c->benches[b], .size_bytes = c->sizes[s]};
	}
	return run->items ? 0 : -1;
}

static uint32_t endpoints_here(const struct xb_run *run)
{
	uint32_t count = 0;
	for (uint32_t e = 0; e < run->control.endpoints; e++)
		count += !run->control.hosts || run->control.here[e];
	return count;
}

/* What each worker needs to sweep the caches with. */
static size_t sweep_bytes(const struct xb_config *config)
{
	for (size_t v = 0; v < config->swap.variant_count; v++)
		if (config->swap.variants[v].mode == XB_SWAP_COLD)
			return xb_block_sweep_bytes(xb_topology_last_level_cache_bytes());
	return 0;
}

static int check_memory(const struct xb_run *run, struct xb_error *error)
{
	const struct xb_config *config = run->config;
	size_t largest = xb_config_largest_bytes(config);
	double each = 2.0 * (double)xb_block_buffer_bytes(largest) + (double)sweep_bytes(config);
	double need = each * endpoints_here(run) * (double)config->transport_count;
	char line[128];
	double available = -1;
	FILE *f = fopen("/proc/meminfo", "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "MemAvailable: %lf", &available) == 1)
			available *= 1024;
	if (f)
		fclose(f);
	if (available < 0 || need < 0.9 * available)
		return 0;
	return xb_fail(error, XB_E_USAGE,
		       "messages of %zu bytes over %zu transports need %.1f GB of buffers; %.1f GB are "
		       "available here: use fewer "
		       "transports or a smaller -s",
		       largest, config->transport_count, need / 1e9, available / 1e9);
}

/* The name in "HOST:PORT" or "[V6]:PORT"; kept to the end of the run. */
static const char *listener_host(const char *listener)
{
	const char *colon = strrchr(listener, ':');
	size_t length = strlen(listener);
	if (*listener == '[')
		return strndup(listener + 1, strcspn(listener + 1, "]"));
	if (colon && strchr(listener, ':') == colon)
		length = (size_t)(colon - listener);
	return strndup(listener, length);
}

int xb_run_find_hosts(struct xb_config *c, struct xb_error *error)
{
	if (c->host_count || c->listener || c->launcher == XB_LAUNCHER_LOCAL ||
	    c->launcher == XB_LAUNCHER_SSH || !xb_in_slurm_job())
		return 0;
	int status = xb_slurm_hosts(c, error);
	if (status)
		return status;
	if (c->host_count == 1 && c->launcher != XB_LAUNCHER_SRUN)
		xb_hosts_free(c); /* a job on one host: as without one */
	if (c->host_count > 1 && c->endpoints < c->host_count)
		c->endpoints = (uint32_t)c->host_count;
	return 0;
}

/* Who runs where; inside a job of Slurm on its hosts, unless others are named. */
static int find_places(struct xb_run *run, struct xb_error *error)
{
	struct xb_config *c = run->config;
	struct xb_control *control = &run->control;
	int srun = c->launcher == XB_LAUNCHER_SRUN;

	if (c->listener) {
		static const char here[] = "localhost";
		control->endpoints = 2;
		control->hosts = run->hosts;
		control->here[0] = 1;
		run->hosts[0] = here;
		run->hosts[1] = listener_host(c->listener);
		return run->hosts[1] ? xb_schedule_all_pairs(2, &run->schedule, error)
				     : xb_fail(error, XB_E_RESOURCE, "out of memory");
	}
	if (srun && !xb_in_slurm_job())
		return xb_fail(error, XB_E_USAGE,
			       "--launcher srun works inside a job of Slurm; get one first, for example with "
			       "`salloc "
			       "-N 2`");
	int found = xb_run_find_hosts(c, error);
	if (found)
		return found;
	if (c->launcher == XB_LAUNCHER_SSH && !c->host_count)
		return xb_fail(error, XB_E_USAGE, "--launcher ssh needs hosts; name them with -H");
	control->endpoints = c->endpoints ? c->endpoints : 2;
	control->hosts = c->host_count ? run->hosts : NULL;
	for (uint32_t e = 0; c->host_count && e < control->endpoints; e++) {
		run->hosts[e] = c->hosts[e % c->host_count];
		control->here[e] = e < c->host_count ? (unsigned char)xb_host_is_here(run->hosts[e])
						     : control->here[e - c->host_count];
	}
	return xb_schedule_of(c, control->endpoints, &run->schedule, error);
}

static int few_cores(struct xb_run *run, const char *text)
{
	int repeated = run->control.endpoints > 1 && run->cpus[0] == run->cpus[1];
	xb_results_finding(run->control.results, repeated ? "invalid" : "warning", "few-cores", NULL, NULL,
			   SIZE_MAX, text);
	return 0;
}

static int choose_cpus(struct xb_run *run, struct xb_error *error)
{
	const struct xb_config *c = run->config;
	const struct xb_control *control = &run->control;
	uint32_t endpoints = control->endpoints;

	if (c->bind_count == 0 && control->hosts) {
		for (uint32_t e = 0; e < endpoints; e++)
			run->cpus[e] = -2; /* each host chooses its own */
		return 0;
	}
	if (c->bind_count == 0) {
		int scarce = xb_topology_choose(endpoints, run->cpus, error);
		return scarce <= 0 ? scarce : few_cores(run, error->text);
	}
	for (uint32_t e = 0; e < endpoints; e++)
		run->cpus[e] = c->bind[e % c->bind_count];
	for (uint32_t e = 0; e < endpoints && run->cpus[e] >= 0; e++) {
		int status =
			control->hosts && !control->here[e] ? 0 : xb_topology_allows(run->cpus[e], error);
		if (status)
			return status;
		for (uint32_t other = 0; other < e && endpoints <= 64; other++)
			if (run->cpus[e] == run->cpus[other] &&
			    (!control->hosts || !strcmp(run->hosts[e], run->hosts[other])))
				xb_results_finding(
					control->results, "invalid", "same-cpu", NULL, NULL, SIZE_MAX,
					"both ends were bound to one CPU (--bind): the times are those of "
					"the scheduler");
	}
	return 0;
}

static void start_timer(struct xb_run *run)
{
	xb_timer_start(&run->timer);
	run->control.timer_source = xb_timer_source_name(run->timer.source);
	run->control.ns_per_tick = run->timer.ns_per_tick;
	if (run->timer.source == XB_TIMER_CLOCK)
		xb_results_finding(run->control.results, "info", "clock-fallback", NULL, NULL, SIZE_MAX,
				   "the TSC cannot be trusted on this machine; clock_gettime is used, which "
				   "costs more per reading");
}

static int check_plugins(const struct xb_run *run, struct xb_error *error)
{
	const struct xb_config *c = run->config;
	char path[4096];
	int status = 0;
	/* a host that measures nothing itself needs none */
	for (size_t t = 0; !status && endpoints_here(run) && t < c->transport_count; t++)
		status = xb_plugin_find(c->plugin_path, c->transports[t].name, path, sizeof path, error);
	return status;
}

static void seed(struct xb_run *run)
{
	char when[32];
	unsigned char id[8];

	run->seed = run->config->seed;
	while (run->seed == 0)
		xb_random_bytes(&run->seed, sizeof(uint32_t));
	xb_rng_seed(&run->rng, run->seed);
	xb_now_text(when);
	xb_results_started(run->control.results, when, run->seed);
	xb_random_bytes(id, sizeof id);
	for (size_t i = 0; i < sizeof id; i++)
		snprintf(run->control.run_id + 2 * i, 3, "%02x", id[i]);
}

int xb_run_prepare(struct xb_run *run, struct xb_error *error)
{
	struct xb_config *c = run->config;
	int status = find_places(run, error);

	run->rounds = run->control.endpoints > 2 ? ROUNDS_OF_MANY : ROUNDS_OF_A_PAIR;
	run->target_ns = TARGET_DEFAULT_NS;
	if (!status)
		status = check_plugins(run, error);
	if (status || (status = check_memory(run, error)))
		return status;
	if (make_items(run))
		return xb_fail(error, XB_E_RESOURCE, "out of memory");
	seed(run);
	if (c->output) { /* an unwritable place is found out before anything is measured */
		json_t *document = xb_results_document(run->control.results);
		status = xb_document_try(document, c->output, error);
		json_decref(document);
	}
	if (!status)
		status = choose_cpus(run, error);
	if (status)
		return status;
	run->control.cpus = run->cpus;
	start_timer(run);
	return 0;
}

static int share_key(struct xb_run *run, struct xb_error *error)
{
	char hex[2 * XB_KEY_BYTES + 1];
	xb_key_to_hex(run->control.hub.key, hex);
	/* inherited by nobody; readable through /proc by the same user only, and gone with this process */
	run->control.key_fd = memfd_create("xportbench-key", MFD_CLOEXEC);
	if (run->control.key_fd < 0 ||
	    write(run->control.key_fd, hex, sizeof hex - 1) != (ssize_t)sizeof hex - 1)
		return xb_fail(error, XB_E_SYSTEM, "cannot make a memory file for the key: %s",
			       strerror(errno));
	explicit_bzero(hex, sizeof hex);
	return 0;
}

/* The address that workers call. A host without one is for its launcher to name; the next may do. If none
 * does, the first is *lost. */
static int find_address(struct xb_run *run, char *address, size_t capacity, uint32_t *lost,
			struct xb_error *error)
{
	const struct xb_control *control = &run->control;
	const char *interface = run->config->control_interface;
	int status = 0;

	if (interface)
		return xb_control_address(interface, NULL, address, capacity, error);
	for (uint32_t e = 0; control->hosts && e < control->endpoints; e++) {
		if (control->here[e])
			continue;
		struct xb_error found = {0};
		if (!xb_control_address(NULL, run->hosts[e], address, capacity, &found))
			return 0;
		if (!status) {
			*error = found;
			*lost = e;
		}
		status = error->status;
	}
	return status;
}

int xb_run_open_hub(struct xb_run *run, struct xb_error *error)
{
	const struct xb_config *c = run->config;
	char address[80] = "127.0.0.1";
	struct xb_lost lost = {.endpoint = 1, .of_host = 1, .why = error->text};
	int status = find_address(run, address, sizeof address, &lost.endpoint, error);
	run->host_lost = status == XB_E_UNAVAILABLE;
	if (!status)
		status = xb_hub_open(&run->control.hub, address, 0, NULL, error);
	if (!status)
		status = share_key(run, error);
	if (!status && c->listener) {
		status = xb_reach_open(c, run->control.self, run->control.run_id, &run->session, error);
		run->host_lost = status != 0;
	}
	if (run->host_lost && run->hooks && run->hooks->lost)
		run->hooks->lost(run->hooks->user, &lost);
	return status;
}

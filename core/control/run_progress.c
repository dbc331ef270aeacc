/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hub.h"
#include "run_progress.h"

static struct {
	int on, shown;
	unsigned launch, launches_min, launches_max;
	double budget_s, used_s, launch_s;
	int64_t last_ms, launch_begin_ms;
} progress; /* of the terminal: one per process by nature */

void xb_progress_start(const struct xb_config *config)
{
	memset(&progress, 0, sizeof progress);
	progress.on = isatty(2) && !config->quiet;
}

static void show(const char *text)
{
	if (!progress.on)
		return;
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
	progress.shown = 1;
	progress.last_ms = xb_now_ms();
}

void xb_progress_clear(void)
{
	if (progress.on && progress.shown)
		fputs("\r\033[K", stderr);
	progress.shown = 0;
}

void xb_progress_launch(unsigned launch, const struct xb_config *config, double used_s, double launch_s)
{
	progress.launch = launch;
	progress.launches_min = config->launches_min;
	progress.launches_max = config->launches_max;
	progress.budget_s = config->time_s;
	progress.used_s = used_s;
	progress.launch_s = launch_s;
	progress.launch_begin_ms = xb_now_ms();
}

void xb_progress_starting(const char *label)
{
	char text[200];
	snprintf(text, sizeof text, "launch %u of %u..%u: starting %s", progress.launch + 1,
		 progress.launches_min, progress.launches_max, label);
	show(text);
}

void xb_progress_step(unsigned launch, size_t done, size_t total)
{
	char text[200];
	if (!progress.on || xb_now_ms() - progress.last_ms < 500)
		return;
	double now_s = progress.used_s + (double)(xb_now_ms() - progress.launch_begin_ms) / 1e3;
	snprintf(text, sizeof text, "launch %u of %u..%u: %zu %%, %.0f s used, at most %.0f s left",
		 launch + 1, progress.launches_min, progress.launches_max, total ? 100 * done / total : 100,
		 now_s, progress.budget_s > now_s ? progress.budget_s - now_s : progress.launch_s);
	show(text);
}

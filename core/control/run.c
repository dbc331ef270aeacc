/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "run.h"
#include "../launch/reach.h"
#include "run_internal.h"
#include "run_progress.h"
#include "../report/text.h"
#include "../engine/block.h"
#include "../system/system.h"

#define TARGET_LEAST_NS 300000

static void say(const struct xb_run *run, const char *label, const char *text)
{
	(void)run;
	xb_progress_clear();
	fprintf(stderr, "xportbench: %s%s%s\n", label ? label : "", label ? ": " : "", text);
}

static void keep_document(struct xb_run *run)
{
	struct xb_error error = {0};
	if (!run->config->output)
		return;
	json_t *document = xb_results_document(run->control.results);
	int failed = xb_document_write(document, run->config->output, &error);
	if (failed && !run->document_failed)
		say(run, NULL, error.text);
	run->document_failed = failed != 0; /* the last one counts: it has everything */
	json_decref(document);
}

static int alive(const struct xb_run *run)
{
	int count = 0;
	for (size_t t = 0; t < run->config->transport_count; t++)
		count += !run->failed[t];
	return count;
}

/* Who wants to know which node was lost is told, and may want to go on without it. */
static void note_lost(struct xb_run *run, size_t t, const char *why)
{
	const struct xb_team *team = &run->teams[t];
	struct xb_lost lost = {(uint32_t)team->lost, t, team->host_lost, why};
	if (run->hooks && run->hooks->lost && team->lost >= 0)
		run->lost |= run->hooks->lost(run->hooks->user, &lost);
}

static void fail_transport(struct xb_run *run, size_t t, const char *where, const struct xb_error *error)
{
	char text[XB_ERROR_TEXT_BYTES + 200];
	const char *status = error->status == XB_E_UNAVAILABLE ? "unavailable" : "failed";
	snprintf(text, sizeof text, "%s%s%s", where ? where : "", where ? ": " : "", error->text);
	xb_results_transport_status(run->control.results, t, status, text);
	run->failed[t] = 1;
	say(run, run->config->transports[t].label, text);
	note_lost(run, t, text);
}

/* Requests that can never work are refused before anything is measured. */
static int refused(const struct xb_run *run, const struct xb_error *error)
{
	return run->launch == 0 && (error->status == XB_E_USAGE || error->status == XB_E_UNSUPPORTED);
}

static int check_limits(struct xb_run *run, struct xb_team *team, struct xb_error *error)
{
	struct xb_endpoint endpoint = {.transport = NULL};
	json_t *d = team->description;
	endpoint.caps = (uint32_t)json_integer_value(json_object_get(d, "caps"));
	endpoint.max_message_bytes = (size_t)json_integer_value(json_object_get(d, "max_message_bytes"));
	endpoint.buffer_bytes = xb_block_buffer_bytes(xb_config_largest_bytes(run->config));
	endpoint.sweep = (unsigned char *)&endpoint; /* workers make one */
	for (size_t i = 0; i < run->item_count; i++) {
		struct xb_block block = {.bench = run->items[i].bench,
					 .op = run->config->op,
					 .size_bytes = run->items[i].size_bytes,
					 .window = run->config->window,
					 .swap = run->items[i].swap};
		int status = xb_block_check(&endpoint, &block, error);
		if (status)
			return status;
	}
	return 0;
}

static void end_teams(struct xb_run *run, int clean)
{
	for (size_t t = 0; t < run->config->transport_count; t++)
		if (run->up[t]) {
			xb_team_end(&run->teams[t], clean);
			run->up[t] = 0;
		}
}

/* 0: go on (a transport that failed is left out); XB_E_ABORTED; or a refusal that ends the run. */
static int start_teams(struct xb_run *run, struct xb_error *error)
{
	size_t order[XB_MAX_TRANSPORTS], n = run->config->transport_count;
	int probed = 0;
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	xb_rng_shuffle(&run->rng, order, n);
	for (size_t i = 0; i < n; i++) {
		size_t t = order[i];
		if (run->failed[t] || run->lost)
			continue;
		xb_progress_starting(run->config->transports[t].label);
		int status = xb_team_start(&run->control, t, &run->teams[t], error);
		if (!status) {
			run->up[t] = 1;
			if (run->launch == 0)
				status = check_limits(run, &run->teams[t], error);
		}
		if (status == XB_E_ABORTED)
			return status;
		if (status && run->launch == 0 && run->teams[t].host_lost) {
			run->host_lost = 1; /* no transport can be measured without that host */
			note_lost(run, t, error->text);
			return status;
		}
		if (status && refused(run, error)) {
			struct xb_error named = {0};
			status = xb_fail(&named, error->status, "%s: %s", run->config->transports[t].label,
					 error->text);
			*error = named;
			return status;
		}
		if (status) {
			if (run->up[t])
				xb_team_end(&run->teams[t], 0);
			run->up[t] = 0;
			fail_transport(run, t, run->launch ? "could not be started again" : NULL, error);
			continue;
		}
		xb_run_take_team(run, &run->teams[t]);
		if ((run->launch == 0 || (run->hooks && run->hooks->noise_every_launch)) && !probed++)
			xb_run_probe_noise(run, &run->teams[t]);
	}
	return 0;
}

/* One visit: a block on each of the disjoint pairs of one round of the schedule. */
static int run_block(struct xb_run *run, size_t t, const struct xb_item *item, size_t visit, size_t round,
		     struct xb_error *error)
{
	static json_t *replies[XB_TEAM_ENDPOINTS_MAX]; /* large */
	const struct xb_config *config = run->config;
	const struct xb_schedule *schedule = &run->schedule;
	struct xb_block_request request = {.bench = item->bench,
					   .op = config->op,
					   .size_bytes = item->size_bytes,
					   .window = config->window,
					   .swap = item->swap,
					   .iterations = config->iterations,
					   .warmup = config->warmup,
					   .target_ns = run->target_ns};
	size_t first = schedule->round_start[round], count = schedule->round_start[round + 1] - first;
	char where[200];

	int status = xb_team_block(&run->teams[t], schedule->pairs + first, count, &request, replies, error);
	if (!status)
		xb_run_take_round(run, &run->teams[t], item, visit, first, count, replies);
	for (size_t i = 0; i < 2 * count; i++)
		json_decref(replies[i]);
	if (!status || status == XB_E_ABORTED)
		return status;
	xb_team_end(&run->teams[t], 0);
	run->up[t] = 0;
	xb_run_item_text(item, where, sizeof where);
	if (status == XB_E_CORRUPT)
		xb_results_finding(run->control.results, "invalid", "payload-corrupted",
				   config->transports[t].label, xb_bench_name(item->bench), item->size_bytes,
				   error->text);
	fail_transport(run, t, where, error);
	return 0;
}

/* All teams at one benchmark and size, `rounds` times over the whole schedule. */
static int visit_item(struct xb_run *run, size_t done, const struct xb_item *item, size_t *teams,
		      size_t *order, struct xb_error *error)
{
	size_t n = run->schedule.rounds, steps = xb_run_rounds(run, item) * n;
	int status = 0;

	for (size_t step = 0; !status && !run->lost && step < steps; step++) {
		if (step % n == 0)
			xb_rng_shuffle(&run->rng, order, n);
		xb_progress_step(run->launch, done * steps + step, run->item_count * steps);
		xb_rng_shuffle(&run->rng, teams, run->config->transport_count);
		for (size_t k = 0; !status && k < run->config->transport_count; k++)
			if (run->up[teams[k]])
				status = run_block(run, teams[k], item, step, order[step % n], error);
	}
	return status;
}

int xb_run_launch(struct xb_run *run, struct xb_error *error)
{
	size_t *order = malloc(run->item_count * sizeof *order), teams[XB_MAX_TRANSPORTS];
	size_t *rounds = malloc(run->schedule.rounds * sizeof *rounds);
	int status =
		order && rounds ? start_teams(run, error) : xb_fail(error, XB_E_RESOURCE, "out of memory");

	if (!status && run->launch == 0) /* before that nothing is measured, and a file that is there stays */
		keep_document(run);
	for (size_t i = 0; order && i < run->item_count; i++)
		order[i] = i;
	for (size_t i = 0; rounds && i < run->schedule.rounds; i++)
		rounds[i] = i;
	for (size_t t = 0; t < run->config->transport_count; t++)
		teams[t] = t;
	if (!status)
		xb_rng_shuffle(&run->rng, order, run->item_count);
	for (size_t i = 0; !status && i < run->item_count; i++)
		status = visit_item(run, i, &run->items[order[i]], teams, rounds, error);
	end_teams(run, status == 0);
	free(order);
	free(rounds);
	return status;
}

/* Makes the launches that must be there fit the time: fewer rounds first, then shorter blocks. */
static void fit_budget(struct xb_run *run, double first_launch_s)
{
	double wanted = first_launch_s * run->config->launches_min, allowed = 0.85 * run->config->time_s;
	if (wanted <= allowed)
		return;
	double scale = allowed / wanted;
	unsigned rounds = (unsigned)(run->rounds * scale);
	scale *= (double)run->rounds / (rounds ? rounds : 1);
	run->rounds = rounds ? rounds : 1;
	if (scale < 1)
		run->target_ns = (uint64_t)fmax(TARGET_LEAST_NS, (double)run->target_ns * scale);
}

/* Is what was measured enough? */
static int enough(const struct xb_run *run)
{
	if (!run->hooks || !run->hooks->settled)
		return xb_results_converged(run->control.results);
	json_t *document = xb_results_document(run->control.results);
	int settled = run->hooks->settled(run->hooks->user, document);
	json_decref(document);
	return settled;
}

/* All launches. 0, XB_E_ABORTED, or a refusal before anything was measured. */
static int launches(struct xb_run *run, const char **stopped_by, struct xb_error *error)
{
	const struct xb_config *c = run->config;
	double longest_s = 0;
	for (run->launch = 0; run->launch < c->launches_max; run->launch++) {
		double used_s = (double)(xb_now_ms() - run->begin_ms) / 1e3;
		if (run->launch >= c->launches_min) {
			if (enough(run)) {
				*stopped_by = run->hooks && run->hooks->settled ? "verdict" : "ci";
				return 0;
			}
			if (used_s + longest_s > c->time_s) {
				*stopped_by = "time";
				return 0;
			}
		}
		xb_progress_launch(run->launch, c, used_s, longest_s);
		int64_t begin = xb_now_ms();
		int status = xb_run_launch(run, error);
		if (status)
			return status;
		xb_results_launch_done(run->control.results, run->launch);
		keep_document(run);
		double took_s = (double)(xb_now_ms() - begin) / 1e3;
		longest_s = took_s > longest_s || run->launch < 2 ? took_s : longest_s;
		if (run->launch == 0)
			fit_budget(run, took_s);
		if (!alive(run) || run->lost) {
			*stopped_by = "failed";
			return 0;
		}
	}
	*stopped_by = "fixed";
	return 0;
}

static int report(json_t *document, const struct xb_config *config)
{
	struct xb_error error = {0};
	const char *no_colour = getenv("NO_COLOR");
	int colour = isatty(1) && !(no_colour && *no_colour);
	int status = xb_print_document(document, config->format, stdout, colour, &error);
	if (!status && (fflush(stdout) || ferror(stdout)))
		status = xb_fail(&error, XB_E_SYSTEM, "cannot write the report to standard output: %s",
				 strerror(errno));
	if (status)
		fprintf(stderr, "xportbench: %s\n", error.text);
	return status ? XB_EXIT_OUTPUT : 0;
}

static void add_controller(struct xb_run *run)
{
	struct xb_control *c = &run->control;
	struct rusage usage = {0};
	getrusage(RUSAGE_SELF, &usage);
	xb_results_cost(c->results, (double)usage.ru_maxrss * 1024 / 1e6, c->blocks);
	xb_results_controller(c->results, (double)c->cpu_ns_while_timed / 1e9, (double)c->timed_ns / 1e9,
			      c->hub.strangers);
}

/* Of the machine on which endpoint 0 keeps time. */
static void add_timer(struct xb_run *run)
{
	json_t *told = run->control.timer_told;
	if (told)
		xb_results_timer(run->control.results, json_string_value(json_object_get(told, "source")),
				 json_number_value(json_object_get(told, "cost_ns")),
				 json_number_value(json_object_get(told, "resolution_ns")), NAN);
	else
		xb_results_timer(run->control.results, run->control.timer_source, run->timer.cost_ns,
				 run->timer.resolution_ns, run->timer.drift_ppm);
}

static void release(struct xb_run *run)
{
	xb_results_free(run->control.results);
	json_decref(run->control.timer_told);
	free(run->items);
	xb_schedule_free(&run->schedule);
	if (run->control.key_fd >= 0)
		close(run->control.key_fd);
}

int xb_run_measure(struct xb_config *config, const struct xb_run_hooks *hooks, json_t **document)
{
	static struct xb_run run; /* large; one at a time */
	struct xb_error error = {0};
	const char *stopped_by = "fixed";
	static char self[4096]; /* as long-lived as run, which points to it */

	memset(&run, 0, sizeof run);
	*document = NULL;
	run.config = config;
	run.hooks = hooks;
	run.begin_ms = xb_now_ms();
	run.control.config = config;
	run.control.key_fd = -1;
	run.control.results = xb_results_new(config);
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = 0;
	run.control.self = self;
	int status = run.control.results ? xb_run_prepare(&run, &error)
					 : xb_fail(&error, XB_E_RESOURCE, "out of memory");
	if (status) {
		say(&run, NULL, error.text);
		release(&run);
		return XB_EXIT_USAGE;
	}
	long per_second;
	xb_noise_steal(&run.steal_begin, &per_second);
	xb_progress_start(config);
	status = xb_run_open_hub(&run, &error);
	if (!status)
		status = launches(&run, &stopped_by, &error);
	xb_progress_clear();
	int interrupted = status == XB_E_ABORTED ? run.control.hub.interrupted : 0;
	end_teams(&run, 0);
	xb_reach_close(&run.session);
	xb_hub_close(&run.control.hub);
	if (status && !interrupted) {
		say(&run, NULL, error.text);
		release(&run);
		return run.host_lost ? XB_EXIT_UNAVAILABLE : XB_EXIT_USAGE;
	}
	xb_timer_finish(&run.timer);
	add_timer(&run);
	xb_run_check_steal(&run);
	xb_run_tell_noise(&run);
	add_controller(&run);
	xb_results_stopped_by(run.control.results, interrupted ? "interrupted" : stopped_by);
	if (interrupted)
		say(&run, NULL, "interrupted: what was measured so far follows");
	xb_results_conclude(run.control.results);
	keep_document(&run);
	*document = xb_results_document(run.control.results);
	xb_progress_clear();
	int document_failed = run.document_failed;
	release(&run);
	return interrupted ? 128 + interrupted : document_failed ? XB_EXIT_OUTPUT : 0;
}

int xb_run(struct xb_config *config)
{
	json_t *document;
	int status = xb_run_measure(config, NULL, &document);
	if (!document)
		return status;
	int reported = report(document, config), implied = xb_results_exit_status(document);
	json_decref(document);
	return status ? status : reported ? reported : implied;
}

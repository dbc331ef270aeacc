/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing a team up: processes, then who they are, then the transport everywhere, then all connections. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "team.h"
#include "team_process.h"
#include "../engine/block.h"

#define OPEN_MS 60000
#define EACH_MS 20 /* of the time for all workers to report, for each of them */
#define MOST_COMPARED 64 /* endpoints whose CPUs are compared: more share them anyway */

static unsigned hello_ms(const struct xb_team *team)
{
	return team->launcher->hello_ms + EACH_MS * team->endpoints;
}

/* Who has not reported: "1 of 2 workers reported within 15 s ...". */
static int too_late(struct xb_team *team, uint32_t have, struct xb_error *error)
{
	char missing[300] = "";
	size_t used = 0;
	uint32_t count = 0;
	xb_team_drain(team);
	for (uint32_t e = 0; e < team->endpoints; e++) {
		if (xb_team_peer(team, e))
			continue;
		team->lost = count++ ? team->lost : (int)e;
		if (used < sizeof missing - 64)
			used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%u%s%.40s",
						 used ? ", " : "; missing: ", e,
						 team->control->hosts ? " on " : "",
						 team->control->hosts ? team->control->hosts[e] : "");
	}
	if (count > 1 && !team->launcher->children)
		team->lost = -1; /* a job waits for its slowest: any of them may hold up the others */
	const char *output = xb_team_tail_line(team);
	unsigned twice = team->control->hub.duplicates[team->index];
	if (twice)
		return xb_fail(
			error, XB_E_PEER,
			"%u worker%s came with the number of another: %s has started jobs of one rank each "
			"instead of one job of %u, so it does not belong to this MPI",
			twice, twice == 1 ? "" : "s", team->launcher->name, team->endpoints);
	return xb_fail(error, XB_E_TIMEOUT, "%u of %u workers reported within %u s (started by %s)%s%s%s",
		       have, team->endpoints, hello_ms(team) / 1000, team->launcher->name, missing,
		       *output ? "; last output: " : "", output);
}

static int check_version(const struct xb_team *team, uint32_t e, json_t *hello, struct xb_error *error)
{
	const char *version = json_string_value(json_object_get(hello, "version"));
	const char *host = json_string_value(json_object_get(json_object_get(hello, "host"), "name"));
	(void)team;
	if (version && !strcmp(version, XB_VERSION))
		return 0;
	return xb_fail(error, XB_E_UNAVAILABLE,
		       "worker %u on %s is of xportbench %s, this is %s: install the same version "
		       "everywhere, or say "
		       "with --remote-path where it is",
		       e, host ? host : "its host", version ? version : "unknown", XB_VERSION);
}

static int await_hellos(struct xb_team *team, struct xb_error *error)
{
	struct xb_hub *hub = &team->control->hub;
	int64_t deadline = xb_now_ms() + hello_ms(team);
	uint32_t have = 0;
	for (;;) {
		while (have < team->endpoints && xb_team_peer(team, have))
			have++;
		if (have == team->endpoints)
			break;
		if (team->died[0])
			return xb_team_lost(team, have, error);
		if (hub->interrupted)
			return xb_fail(error, XB_E_ABORTED, "interrupted");
		if (hub->duplicates[team->index] || xb_now_ms() >= deadline)
			return too_late(team, have, error);
		xb_hub_poll(hub, (int)(deadline - xb_now_ms()));
		if (hub->child_exited)
			xb_team_reap(team);
	}
	for (uint32_t e = 0; e < team->endpoints; e++) {
		int status = check_version(team, e, xb_team_peer(team, e)->hello, error);
		if (status) {
			team->host_lost = 1;
			team->lost = (int)e;
			return status;
		}
	}
	return 0;
}

static json_t *pairs_json(const struct xb_key_value *pairs, size_t count)
{
	json_t *object = json_object();
	for (size_t i = 0; i < count; i++)
		json_object_set_new(object, pairs[i].key, json_string(pairs[i].value ? pairs[i].value : ""));
	return object;
}

static json_t *open_request(struct xb_team *team, uint32_t endpoint)
{
	const struct xb_control *c = team->control;
	const struct xb_config *config = c->config;
	const struct xb_transport_spec *spec = team->spec;
	json_t *request = json_pack(
		"{s:s, s:s, s:s, s:o, s:o, s:s, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i}", "cmd", "open",
		"transport", spec->name, "path", spec->path, "keys", pairs_json(spec->keys, spec->key_count),
		"fault", pairs_json(spec->fault, spec->fault_count), "trace", spec->trace ? spec->trace : "",
		"endpoints", (json_int_t)team->endpoints, "max_message_bytes",
		(json_int_t)xb_config_largest_message(config), "largest_bytes",
		(json_int_t)xb_config_largest_bytes(config), "max_outstanding",
		(json_int_t)xb_block_outstanding(xb_config_most_window(config)), "op", (int)config->op,
		"sync_sends", xb_run_sync_sends(config), "cpu", c->cpus ? c->cpus[endpoint] : -1, "verbose",
		config->verbose, "patience_ms", XB_BLOCK_PATIENCE_MS - 5000);
	uint32_t seat = 0, seats = 0;
	for (uint32_t e = 0; e < team->endpoints; e++) {
		seat += e < endpoint && team->host_of[e] == team->host_of[endpoint];
		seats += team->host_of[e] == team->host_of[endpoint];
	}
	json_object_set_new(request, "seat", json_integer(seat));
	json_object_set_new(request, "seats", json_integer(seats));
	/* the calibration of this machine's clock means nothing on another */
	if (!c->hosts || c->here[endpoint])
		json_object_set_new(
			request, "timer",
			json_pack("{s:s, s:f}", "source", c->timer_source, "ns_per_tick", c->ns_per_tick));
	return request;
}

/* Sends to all endpoints first, then waits for all: opening may be collective. */
static int open_all(struct xb_team *team, json_t **replies, struct xb_error *error)
{
	uint32_t endpoints[XB_TEAM_ENDPOINTS_MAX];
	for (uint32_t e = 0; e < team->endpoints; e++) {
		endpoints[e] = e;
		int status =
			xb_hub_send(&team->control->hub, xb_team_peer(team, e), open_request(team, e), error);
		if (status)
			return xb_team_lost(team, e, error);
	}
	int status = xb_team_await(team, endpoints, team->endpoints, OPEN_MS, replies, error);
	return status ? status : xb_team_judge_opened(team, replies, error);
}

static void copy_text(json_t *to, json_t *from, const char *key)
{
	json_t *value = json_object_get(from, key);
	if (value)
		json_object_set(to, key, value);
}

/* What endpoint `from` told for `to` to connect by: one address for all, or one for each peer. */
static json_t *connect_request(json_t **opened, uint32_t from, uint32_t to)
{
	json_t *theirs = opened[from], *many = json_object_get(theirs, "addresses");
	json_t *request = json_pack("{s:s, s:I}", "cmd", "connect", "peer", (json_int_t)from);
	if (many)
		json_object_set(request, "address", json_array_get(many, to));
	else
		copy_text(request, theirs, "address");
	copy_text(request, theirs, "send_region");
	copy_text(request, theirs, "recv_region");
	return request;
}

/* Files to remove if the workers are killed; from every reply that came, also where another failed. */
static void take_artifacts(struct xb_team *team, uint32_t endpoint, json_t *reply)
{
	json_t *artifacts = json_object_get(reply, "artifacts");
	if (artifacts && (!team->control->hosts || team->control->here[endpoint]))
		json_array_extend(team->artifacts, artifacts);
}

static int take_connected(struct xb_team *team, uint32_t endpoint, json_t *reply, struct xb_error *error)
{
	json_t *description = json_object_get(reply, "description");
	char name[128];
	if (!description) {
		const char *why = json_string_value(json_object_get(reply, "describe_error"));
		return xb_fail(error, XB_E_TRANSPORT, "the resolved path cannot be told by %s: %s",
			       xb_team_worker(team, endpoint, name, sizeof name), why ? why : "no answer");
	}
	if (!team->descriptions[endpoint])
		team->descriptions[endpoint] = json_incref(description);
	if (endpoint == 0) {
		json_decref(team->description);
		team->description = json_incref(description);
	}
	return 0;
}

/* Connects disjoint pairs, all at the same time. */
static int connect_pairs(struct xb_team *team, const struct xb_pair *pairs, size_t count, json_t **opened,
			 struct xb_error *error)
{
	uint32_t ends[XB_TEAM_ENDPOINTS_MAX] = {0};
	json_t *replies[XB_TEAM_ENDPOINTS_MAX] = {NULL};
	int status = 0;
	for (size_t i = 0; !status && i < 2 * count; i++) {
		const struct xb_pair *pair = &pairs[i / 2];
		uint32_t me = i % 2 ? pair->second : pair->first, other = i % 2 ? pair->first : pair->second;
		struct xb_peer *peer = xb_team_peer(team, me);
		ends[i] = me;
		if (!peer ||
		    xb_hub_send(&team->control->hub, peer, connect_request(opened, other, me), error))
			status = xb_team_lost(team, me, error);
	}
	if (!status)
		status = xb_team_await(team, ends, 2 * count, OPEN_MS, replies, error);
	if (!status)
		status = xb_team_judge(team, ends, replies, 2 * count, error);
	for (size_t i = 0; i < 2 * count; i++) {
		take_artifacts(team, ends[i], replies[i]);
		if (!status)
			status = take_connected(team, ends[i], replies[i], error);
		json_decref(replies[i]);
	}
	return status;
}

/* Endpoints on one host, as the workers themselves have described it. */
static void find_hosts(struct xb_team *team)
{
	uint32_t firsts[XB_TEAM_ENDPOINTS_MAX], count = 0;
	for (uint32_t e = 0; e < team->endpoints; e++) {
		uint32_t k = 0;
		while (k < count && !xb_same_host(xb_team_host(team, firsts[k]), xb_team_host(team, e)))
			k++;
		if (k == count)
			firsts[count++] = e;
		team->host_of[e] = firsts[k];
	}
}

/* Two endpoints of one host, whatever it was called, on one CPU of it. */
static void check_cpus(const struct xb_team *team)
{
	const struct xb_control *c = team->control;
	char text[300];
	for (uint32_t e = 1; c->hosts && e < team->endpoints && team->endpoints <= MOST_COMPARED; e++)
		for (uint32_t other = 0; other < e; other++) {
			if (c->cpus[e] < 0 || c->cpus[e] != c->cpus[other] ||
			    team->host_of[e] != team->host_of[other])
				continue;
			const char *name = json_string_value(json_object_get(xb_team_host(team, e), "name"));
			snprintf(text, sizeof text,
				 "endpoints %u and %u both run on CPU %d of %.100s: the times between them "
				 "are "
				 "those of the scheduler",
				 other, e, c->cpus[e], name ? name : "one host");
			xb_results_finding(c->results, "invalid", "same-cpu", NULL, NULL, SIZE_MAX, text);
			return;
		}
}

/* CPUs that workers have chosen on hosts of their own. */
static void take_opened(struct xb_team *team, json_t **opened)
{
	for (uint32_t e = 0; e < team->endpoints; e++) {
		json_t *cpu = json_object_get(opened[e], "cpu");
		if (cpu)
			team->control->cpus[e] = (int)json_integer_value(cpu);
		const char *scarce = json_string_value(json_object_get(opened[e], "few_cores"));
		if (scarce)
			xb_results_finding(team->control->results, "warning", "few-cores", NULL, NULL,
					   SIZE_MAX, scarce);
	}
	check_cpus(team);
	team->layer = (enum xb_layer)json_integer_value(json_object_get(opened[0], "layer"));
	json_t *timer = json_object_get(opened[0], "timer");
	if (timer && !team->control->timer_told) /* endpoint 0 keeps time, with the clock of its own host */
		team->control->timer_told = json_incref(timer);
}

static int bring_up(struct xb_team *team, struct xb_error *error)
{
	json_t **opened = calloc(team->endpoints, sizeof *opened);
	struct xb_schedule schedule = {0};
	int status = opened ? await_hellos(team, error) : xb_fail(error, XB_E_RESOURCE, "out of memory");
	if (!status) {
		find_hosts(team);
		status = open_all(team, opened, error);
	}
	if (!status) {
		take_opened(team, opened);
		status = xb_schedule_all_pairs(team->endpoints, &schedule, error);
	}
	for (size_t r = 0; !status && r < schedule.rounds; r++)
		status = connect_pairs(team, schedule.pairs + schedule.round_start[r],
				       schedule.round_start[r + 1] - schedule.round_start[r], opened, error);
	xb_schedule_free(&schedule);
	for (uint32_t e = 0; opened && e < team->endpoints; e++)
		json_decref(opened[e]);
	free(opened);
	return status;
}

struct xb_launch_request xb_team_request(const struct xb_team *team)
{
	const struct xb_control *control = team->control;
	return (struct xb_launch_request){.config = control->config,
					  .spec = team->spec,
					  .team = (uint32_t)team->index,
					  .endpoints = team->endpoints,
					  .hosts = control->hosts,
					  .here = control->here,
					  .control_address = control->hub.address,
					  .key = control->hub.key,
					  .key_fd = control->key_fd,
					  .run_id = control->run_id,
					  .self = control->self};
}

int xb_team_start(struct xb_control *control, size_t index, struct xb_team *team, struct xb_error *error)
{
	const struct xb_transport_spec *spec = &control->config->transports[index];
	uint64_t begin = xb_clock_ns(CLOCK_MONOTONIC);

	memset(team, 0, sizeof *team);
	team->control = control;
	team->lost = team->hung = -1;
	team->index = index;
	team->spec = spec;
	team->endpoints = control->endpoints;
	team->artifacts = json_array();
	team->started_s = (int64_t)time(NULL);
	team->launcher = xb_launcher_choose(control->config, spec->name);
	size_t capacity =
		2 * (size_t)team->endpoints + 1; /* a worker and a holder each, and a job launcher */
	team->processes = calloc(capacity, sizeof *team->processes);
	team->tails = calloc(capacity, sizeof *team->tails);
	team->descriptions = calloc(team->endpoints, sizeof *team->descriptions);
	team->host_of = calloc(team->endpoints, sizeof *team->host_of);
	control->hub.expected = team->endpoints;
	struct xb_launch_request request = xb_team_request(team);
	int status = team->processes && team->tails && team->descriptions && team->host_of
			     ? team->launcher->start(&request, team->processes, capacity,
						     &team->process_count, error)
			     : xb_fail(error, XB_E_RESOURCE, "out of memory");
	if (!status)
		status = bring_up(team, error);
	control->hub.expected = 0;
	team->start_ms = (double)(xb_clock_ns(CLOCK_MONOTONIC) - begin) / 1e6;
	if (status)
		xb_team_end(team, 0);
	return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "team.h"
#include "team_process.h"
#include "../engine/block.h"
#include "../report/text.h"

#define CLOSE_MS 3000
#define SILENCE_MS 3000

struct xb_peer *xb_team_peer(const struct xb_team *team, uint32_t endpoint)
{
	return xb_hub_find(&team->control->hub, (int)team->index, (int)endpoint);
}

json_t *xb_team_host(const struct xb_team *team, uint32_t endpoint)
{
	struct xb_peer *peer = xb_team_peer(team, endpoint);
	return peer ? json_object_get(peer->hello, "host") : NULL;
}

static int same_text(json_t *a, json_t *b, const char *key)
{
	json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
	return json_is_string(x) && json_is_string(y) ? !strcmp(json_string_value(x), json_string_value(y))
						      : json_is_string(x) == json_is_string(y);
}

int xb_same_host(json_t *a, json_t *b)
{
	return same_text(a, b, "boot_id") && same_text(a, b, "netns") && same_text(a, b, "name");
}

static void await_death(struct xb_team *team, int milliseconds)
{
	int64_t end = xb_now_ms() + milliseconds;
	while (!team->died[0] && xb_now_ms() < end) {
		xb_hub_poll(&team->control->hub, 20);
		xb_team_reap(team);
	}
	xb_team_drain(team);
}

static int dead_is_launcher(const struct xb_team *team)
{
	const struct xb_launched *dead = &team->processes[team->dead];
	return team->died[0] && dead->endpoint < 0 && !dead->host;
}

/* A job launcher ends because of a host without saying which; what leads to that host ends as well. */
static void await_telling_death(struct xb_team *team)
{
	char said[sizeof team->died];
	size_t dead = team->dead;
	memcpy(said, team->died, sizeof said);
	team->died[0] = 0;
	await_death(team, 1000);
	if (team->died[0])
		return;
	memcpy(team->died, said, sizeof said);
	team->dead = dead;
}

/* Is this the only worker whose connection has ended? */
static int alone_gone(const struct xb_team *team, uint32_t endpoint)
{
	const struct xb_peer *own = xb_team_peer(team, endpoint);
	for (uint32_t e = 0; own && e < team->endpoints; e++) {
		const struct xb_peer *peer = xb_team_peer(team, e);
		if (e != endpoint && (!peer || peer->fd < 0))
			return 0;
	}
	return own != NULL;
}

/* Who was waited for need not be who has gone: -1 if that is not known. */
static int find_lost(const struct xb_team *team, uint32_t waited_for, int alone)
{
	const struct xb_launched *dead = &team->processes[team->dead];
	if (!team->died[0] || (dead_is_launcher(team) && alone))
		return (int)waited_for;
	if (dead->endpoint >= 0)
		return dead->endpoint;
	for (uint32_t e = 0; dead->host && e < team->endpoints; e++)
		if (!strcmp(team->control->hosts[e], dead->host))
			return (int)e;
	return -1;
}

/* Something of the team ended while it was needed: a sentence for it. */
int xb_team_lost(struct xb_team *team, uint32_t endpoint, struct xb_error *error)
{
	int alone = alone_gone(team, endpoint);
	/* the exit status says more than the closed connection: give it a moment to arrive */
	await_death(team, team->launcher->children ? 300 : 1000);
	if (dead_is_launcher(team) && team->process_count > 1)
		await_telling_death(team);
	team->lost = find_lost(team, endpoint, alone);
	if (team->host_lost)
		return xb_fail(error, XB_E_UNAVAILABLE, "%s", team->died);
	if (team->lost < 0) {
		const char *said = xb_team_tail_line(team);
		return xb_fail(error, XB_E_PEER, "the job ended: %s%s%s", team->died,
			       *said ? "; its last output: " : "", said);
	}
	endpoint = (uint32_t)team->lost;
	const char *host = team->control->hosts ? team->control->hosts[endpoint] : NULL;
	const char *output = xb_team_tail_line(team);
	struct xb_peer *peer = xb_team_peer(team, endpoint);
	const char *closed =
		peer && peer->broken == XB_E_CORRUPT ? "its control connection carried a forged frame"
		: host ? "its control connection is lost: the host, its network or the worker has gone"
		       : "its control connection closed";
	return xb_fail(error, XB_E_PEER, "worker %u%s%s ended: %s%s%s", endpoint, host ? " on " : "",
		       host ? host : "", team->died[0] ? team->died : closed,
		       *output ? "; its last output: " : "", output);
}

static int hung(const struct xb_team *team, const json_t *event, struct xb_error *error, uint32_t endpoint)
{
	char name[128];
	const char *phase = json_string_value(json_object_get(event, "phase"));
	return xb_fail(error, XB_E_TIMEOUT,
		       "hung: no progress before the deadline in phase \"%s\" (reported by %s); ended",
		       phase ? phase : "?", xb_team_worker(team, endpoint, name, sizeof name));
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* One step of waiting for a worker's reply: 1 taken, 0 not yet, negative failed. */
static int step(struct xb_team *team, uint32_t endpoint, int64_t *deadline, json_t **reply,
		struct xb_error *error)
{
	struct xb_peer *peer = xb_team_peer(team, endpoint);
	json_t *message;

	if (!peer)
		return xb_team_lost(team, endpoint, error);
	while ((message = xb_peer_take(peer))) {
		const char *event = json_string_value(json_object_get(message, "event"));
		if (!event) {
			*reply = message;
			return 1;
		}
		int status = 0;
		if (!strcmp(event, "hung")) {
			status = hung(team, message, error, endpoint);
			team->hung = (int)endpoint;
		} else if (!strcmp(event, "deadline"))
			*deadline =
				later(*deadline,
				      xb_now_ms() + 5000 +
					      json_integer_value(json_object_get(message, "milliseconds")));
		json_decref(message);
		if (status)
			return status;
	}
	if (peer->fd < 0)
		return xb_team_lost(team, endpoint, error);
	return 0;
}

/* How long to wait for the other replies after a failure: what one cannot do at all, the others may not be
 * able to do either, and that makes a difference. */
static int grace_ms(json_t *reply)
{
	int status = xb_team_reply_status(reply);
	int alike = status == XB_E_USAGE || status == XB_E_UNSUPPORTED || status == XB_E_UNAVAILABLE;
	return alike ? 2000 : 500;
}

/* Sleeps until every listed endpoint has replied. replies[] must be NULL before. A reply with a negative
 * status ends the wait, after a moment for the others' replies. */
int xb_team_await(struct xb_team *team, const uint32_t *endpoints, size_t count, int timeout_ms,
		  json_t **replies, struct xb_error *error)
{
	struct xb_hub *hub = &team->control->hub;
	int64_t deadline = xb_now_ms() + timeout_ms;
	size_t have = 0;
	int failed = 0;

	while (have < count) {
		for (size_t i = 0; i < count; i++) {
			if (replies[i])
				continue;
			int64_t before = deadline;
			int status = step(team, endpoints[i], &deadline, &replies[i], error);
			if (failed)
				deadline = before;
			if (status < 0) /* a death says more than the failure of its peer, a wait less */
				return failed && status == XB_E_TIMEOUT ? 0 : status;
			have += (size_t)status;
			if (status == 1 && xb_team_reply_status(replies[i]) < 0 && !failed) {
				failed = 1;
				deadline = xb_now_ms() + grace_ms(replies[i]);
			}
		}
		if (have == count)
			break;
		if (hub->interrupted)
			return xb_fail(error, XB_E_ABORTED, "interrupted");
		int64_t left = deadline - xb_now_ms();
		if (left <= 0)
			return failed ? 0
				      : xb_team_no_answer(team, endpoints, count, timeout_ms, replies, error);
		xb_hub_poll(hub, (int)left);
		if (hub->child_exited)
			xb_team_reap(team);
	}
	return 0;
}

int xb_team_ask(struct xb_team *team, uint32_t endpoint, json_t *request, int timeout_ms, json_t **reply,
		struct xb_error *error)
{
	struct xb_peer *peer = xb_team_peer(team, endpoint);
	*reply = NULL;
	if (!peer) {
		json_decref(request);
		return xb_team_lost(team, endpoint, error);
	}
	int status = xb_hub_send(&team->control->hub, peer, request, error);
	if (status)
		return xb_team_lost(team, endpoint, error);
	status = xb_team_await(team, &endpoint, 1, timeout_ms, reply, error);
	if (!status)
		status = xb_team_judge(team, &endpoint, reply, 1, error);
	if (status) {
		json_decref(*reply);
		*reply = NULL;
	}
	return status;
}

static uint64_t own_cpu_ns(void)
{
	return xb_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* A worker waits for its peer in vain. If that one says nothing at all, not even that it waits too, it is the
 * one that has stopped. */
static void find_silent(struct xb_team *team, const uint32_t *ends, size_t count, struct xb_error *error)
{
	char name[160];
	size_t i = 0;
	while (i < count && (int)ends[i] != team->hung)
		i++;
	if (i == count)
		return;
	uint32_t other = ends[i ^ 1u];
	int64_t end = xb_now_ms() + SILENCE_MS;
	while (xb_now_ms() < end && !team->control->hub.interrupted) {
		struct xb_peer *peer = xb_team_peer(team, other);
		if (peer && json_array_size(peer->inbox) > 0) {
			xb_append(error->text, sizeof error->text, "; its peer is %s",
				  xb_team_worker(team, other, name, sizeof name));
			return;
		}
		xb_hub_poll(&team->control->hub, 50);
	}
	team->lost = (int)other;
	xb_team_silent_worker(team, other, name, sizeof name);
	xb_append(error->text, sizeof error->text, "; %s gave no answer at all", name);
}

int xb_team_block(struct xb_team *team, const struct xb_pair *pairs, size_t pair_count,
		  const struct xb_block_request *r, json_t **replies, struct xb_error *error)
{
	struct xb_control *c = team->control;
	uint32_t ends[XB_TEAM_ENDPOINTS_MAX] = {0};
	int status = 0;

	memset(replies, 0, 2 * pair_count * sizeof *replies);
	c->blocks++;
	/* the side that waits first, then the one that starts */
	for (int side = 1; side >= 0; side--)
		for (size_t i = 0; !status && i < pair_count; i++) {
			uint32_t me = side ? pairs[i].second : pairs[i].first;
			uint32_t other = side ? pairs[i].first : pairs[i].second;
			struct xb_peer *peer = xb_team_peer(team, me);
			ends[2 * i + (size_t)side] = me;
			json_t *request = json_pack(
				"{s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "cmd",
				"block", "bench", (int)r->bench, "op", (int)r->op, "size",
				(json_int_t)r->size_bytes, "window", (json_int_t)r->window, "iterations",
				(json_int_t)r->iterations, "warmup", (json_int_t)r->warmup, "target_ns",
				(json_int_t)r->target_ns, "nonce", (json_int_t)c->blocks, "peer",
				(json_int_t)other, "block", (json_int_t)c->blocks, "initiator", side == 0);
			if (r->bench == XB_BENCH_SWAP)
				json_object_set_new(request, "swap",
						    json_pack("[i,i,i,i,I,I]", r->swap.protocol,
							      r->swap.order, r->swap.mode, r->swap.overlap,
							      (json_int_t)r->swap.messages,
							      (json_int_t)r->swap.depth));
			if (!peer || xb_hub_send(&c->hub, peer, request, error))
				status = xb_team_lost(team, me, error);
		}
	uint64_t begin = xb_clock_ns(CLOCK_MONOTONIC), cpu = own_cpu_ns();
	if (!status)
		status = xb_team_await(team, ends, 2 * pair_count, XB_BLOCK_PATIENCE_MS, replies, error);
	if (status == XB_E_TIMEOUT && team->hung >= 0)
		find_silent(team, ends, 2 * pair_count, error);
	c->cpu_ns_while_timed += own_cpu_ns() - cpu;
	c->timed_ns += xb_clock_ns(CLOCK_MONOTONIC) - begin;
	if (!status)
		status = xb_team_judge(team, ends, replies, 2 * pair_count, error);
	xb_team_drain(team);
	return status;
}

void xb_team_end(struct xb_team *team, int clean)
{
	if (clean) {
		uint32_t endpoints[XB_TEAM_ENDPOINTS_MAX];
		json_t *replies[XB_TEAM_ENDPOINTS_MAX] = {NULL};
		struct xb_error ignored = {0};
		uint32_t asked = 0;
		for (uint32_t e = 0; e < team->endpoints; e++) {
			struct xb_peer *peer = xb_team_peer(team, e);
			if (peer && !xb_hub_send(&team->control->hub, peer,
						 json_pack("{s:s}", "cmd", "close"), &ignored))
				endpoints[asked++] = e;
		}
		clean = asked == team->endpoints &&
			!xb_team_await(team, endpoints, asked, CLOSE_MS, replies, &ignored);
		for (uint32_t e = 0; e < asked; e++)
			json_decref(replies[e]);
	}
	xb_team_stop_processes(team, clean);
	xb_hub_drop_team(&team->control->hub, (int)team->index);
	json_decref(team->artifacts);
	json_decref(team->description);
	for (uint32_t e = 0; team->descriptions && e < team->endpoints; e++)
		json_decref(team->descriptions[e]);
	free(team->descriptions);
	free(team->host_of);
	free(team->processes);
	free(team->tails);
	team->descriptions = NULL;
	team->host_of = NULL;
	team->tails = NULL;
	team->artifacts = team->description = NULL;
	team->processes = NULL;
	team->process_count = 0;
}

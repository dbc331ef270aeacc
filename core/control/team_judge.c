/* SPDX-License-Identifier: BSD-3-Clause */
/* What the replies of a team mean together, and at which worker a failure is. */
#include <stdio.h>
#include <string.h>

#include "team.h"
#include "team_process.h"
#include "../report/text.h"

#define NAME_BYTES 128
#define MOST_NAMED 4

const char *xb_team_worker(const struct xb_team *team, uint32_t endpoint, char *text, size_t bytes)
{
	const char *const *hosts = team->control->hosts;
	snprintf(text, bytes, "worker %u%s%.80s", endpoint, hosts ? " on " : "",
		 hosts ? hosts[endpoint] : "");
	return text;
}

/* Is this process of this machine stopped, by SIGSTOP or a debugger? */
static int is_stopped(int pid)
{
	char path[64], state = 0;
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");
	while (f && fscanf(f, "State: %c", &state) != 1 && fscanf(f, "%*[^\n]\n") != EOF)
		;
	if (f)
		fclose(f);
	return state == 'T' || state == 't';
}

int xb_team_silent_worker(const struct xb_team *team, uint32_t endpoint, char *text, size_t bytes)
{
	const struct xb_peer *peer = xb_team_peer(team, endpoint);
	const struct xb_control *c = team->control;
	int stopped = peer && (!c->hosts || c->here[endpoint]) && is_stopped(peer->pid);
	xb_team_worker(team, endpoint, text, bytes);
	xb_append(text, bytes, " (process %d%s)", peer ? peer->pid : 0, stopped ? ", which is stopped" : "");
	return stopped;
}

int xb_team_no_answer(struct xb_team *team, const uint32_t *endpoints, size_t count, int timeout_ms,
		      json_t **replies, struct xb_error *error)
{
	char names[MOST_NAMED * (NAME_BYTES + 32)] = "", name[NAME_BYTES + 32];
	size_t silent = 0;
	int stopped = 0;
	for (size_t i = 0; !stopped && i < count; i++) {
		if (replies[i])
			continue;
		stopped = xb_team_silent_worker(team, endpoints[i], name, sizeof name);
		team->lost = stopped || !silent ? (int)endpoints[i] : -1;
		if (stopped)
			snprintf(names, sizeof names, "%s", name);
		else if (silent++ < MOST_NAMED)
			xb_append(names, sizeof names, "%s%s", silent > 1 ? " and " : "", name);
	}
	if (!stopped && silent > MOST_NAMED)
		xb_append(names, sizeof names, " and %zu others", silent - MOST_NAMED);
	return xb_fail(error, XB_E_TIMEOUT, "hung: no answer from %s within %d s; ended", names,
		       timeout_ms / 1000);
}

int xb_team_reply_status(const json_t *reply)
{
	return (int)json_integer_value(json_object_get(reply, "status"));
}

static const char *text_of(json_t *reply)
{
	const char *text = json_string_value(json_object_get(reply, "error"));
	return text ? text : xb_status_name(xb_team_reply_status(reply));
}

static int is_refusal(int status)
{
	return status == XB_E_USAGE || status == XB_E_UNSUPPORTED;
}

/* Of what is missing or has run out at one end, whoever its peer is. */
static int is_own(int status)
{
	return status == XB_E_UNAVAILABLE || status == XB_E_RESOURCE || status == XB_E_SYSTEM ||
	       is_refusal(status);
}

/* How much a failure tells: an aborted or peer-gone side only follows from the other's. */
static int weight(int status, int opening)
{
	if (status >= 0)
		return 0;
	if (status == XB_E_ABORTED || status == XB_E_PEER)
		return 1;
	return opening && is_own(status) ? 3 : 2;
}

/* Index of the most telling failure; count if there is none. */
static size_t find_worst(json_t **replies, size_t count, int opening)
{
	size_t worst = count;
	int most = 0;
	for (size_t i = 0; i < count; i++) {
		int w = weight(xb_team_reply_status(replies[i]), opening);
		if (w > most) {
			worst = i;
			most = w;
		}
	}
	return worst;
}

/* A worker that waited in vain blames the way to its peer; a peer that has said nothing at all is the
 * likelier cause. */
static void add_silent_peer(const struct xb_team *team, const uint32_t *ends, json_t **replies, size_t count,
			    struct xb_error *error)
{
	char name[NAME_BYTES + 32];
	for (size_t i = 0; i < count; i++) {
		if (replies[i] || !replies[i ^ 1u])
			continue;
		xb_team_silent_worker(team, ends[i], name, sizeof name);
		xb_append(error->text, sizeof error->text, "; %s gave no answer at all", name);
		break;
	}
}

int xb_team_judge(const struct xb_team *team, const uint32_t *ends, json_t **replies, size_t count,
		  struct xb_error *error)
{
	char one[NAME_BYTES], other[NAME_BYTES];
	size_t worst = find_worst(replies, count, 0);
	if (worst == count)
		return 0;
	int status = xb_team_reply_status(replies[worst]);
	const char *text = text_of(replies[worst]);
	if (!team->control->hosts)
		xb_fail(error, status, "%s", text);
	else if (is_own(status) || count == 1)
		xb_fail(error, status, "%s: %s", xb_team_worker(team, ends[worst], one, sizeof one), text);
	else
		xb_fail(error, status, "between %s and %s: %s",
			xb_team_worker(team, ends[worst & ~(size_t)1], one, sizeof one),
			xb_team_worker(team, ends[worst | 1u], other, sizeof other), text);
	if (status == XB_E_TIMEOUT && count > 1)
		add_silent_peer(team, ends, replies, count, error);
	return status;
}

struct opened {
	size_t well, failed;
	int alike; /* all failures are the same sentence */
};

static struct opened count_opened(json_t **replies, size_t count, const char *text)
{
	struct opened o = {.alike = 1};
	for (size_t i = 0; i < count; i++) {
		int failed = xb_team_reply_status(replies[i]) < 0;
		o.well += replies[i] && !failed;
		o.failed += (size_t)failed;
		o.alike &= !failed || !strcmp(text_of(replies[i]), text);
	}
	return o;
}

int xb_team_judge_opened(struct xb_team *team, json_t **replies, struct xb_error *error)
{
	char name[NAME_BYTES];
	size_t count = team->endpoints, worst = find_worst(replies, count, 1);
	if (worst == count)
		return 0;
	int status = xb_team_reply_status(replies[worst]);
	const char *text = text_of(replies[worst]);
	struct opened o = count_opened(replies, count, text);
	if (is_refusal(status) && o.well && team->control->hosts)
		status = XB_E_UNAVAILABLE; /* others can: it is the host's fault, not that of the request */
	/* what none of them can is the fault of no host, and a refusal is one of the whole run */
	if (o.failed < count && is_own(status) && !is_refusal(status))
		team->lost = (int)worst;
	if (!team->control->hosts || (o.failed == count && o.alike))
		return xb_fail(error, status, "%s", text);
	return xb_fail(error, status, "%s: %s", xb_team_worker(team, (uint32_t)worst, name, sizeof name),
		       text);
}

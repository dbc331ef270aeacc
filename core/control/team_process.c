/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leftovers.h"
#include "team_process.h"
#include "../system/system.h"

#define CLOSE_GRACE_MS 3000

static char *one_line(struct xb_tail *tail)
{
	size_t n = tail->used;
	while (n && (unsigned char)tail->text[n - 1] <= ' ')
		n--;
	tail->text[n] = 0;
	for (char *p = tail->text; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
	return tail->text + (n > 300 ? n - 300 : 0);
}

static void drain(struct xb_team *team, size_t i)
{
	struct xb_tail *tail = &team->tails[i];
	char chunk[sizeof tail->text];
	ssize_t n;
	while (team->processes[i].output_fd >= 0 &&
	       (n = read(team->processes[i].output_fd, chunk, sizeof chunk - 1)) > 0) {
		size_t count = (size_t)n, room = sizeof tail->text - 1;
		if (team->control->config->verbose)
			fwrite(chunk, 1, count, stderr);
		if (tail->used + count > room) {
			size_t cut = tail->used + count - room;
			cut = cut < tail->used ? cut : tail->used;
			memmove(tail->text, tail->text + cut, tail->used - cut);
			tail->used -= cut;
		}
		memcpy(tail->text + tail->used, chunk, count);
		tail->used += count;
		tail->text[tail->used] = 0;
	}
}

/* Has a worker on this host reported? */
static int reached(const struct xb_team *team, const char *host)
{
	for (uint32_t e = 0; team->control->hosts && e < team->endpoints; e++)
		if (!strcmp(team->control->hosts[e], host) && xb_team_peer(team, e))
			return 1;
	return 0;
}

static void note_death(struct xb_team *team, size_t i, int status)
{
	const struct xb_launched *process = &team->processes[i];
	const char *host = process->host;
	struct xb_error explained = {0};
	char who[96];
	if (team->died[0])
		return;
	team->dead = i;
	drain(team, i);
	struct xb_peer *peer =
		process->endpoint < 0 ? NULL
				      : xb_hub_find(&team->control->hub, (int)team->index, process->endpoint);
	struct xb_launch_request request = xb_team_request(team);
	if (!peer && team->launcher->explain &&
	    team->launcher->explain(&request, process, status, one_line(&team->tails[i]), &explained)) {
		team->host_lost = 1;
		if (host && reached(team, host)) /* it was there; what was started on it says nothing */
			snprintf(team->died, sizeof team->died,
				 "the connection to %s has ended (process %d): the host, its network or what "
				 "was started there has gone",
				 host, (int)process->pid);
		else
			snprintf(team->died, sizeof team->died, "%s", explained.text);
		return;
	}
	if (process->endpoint >= 0 && !host)
		snprintf(who, sizeof who, "process %d", (int)process->pid);
	else
		snprintf(who, sizeof who, "%s (process %d)", team->launcher->name, (int)process->pid);
	if (WIFSIGNALED(status))
		snprintf(team->died, sizeof team->died, "%s%s%s was ended by signal %d (%s)", who,
			 host ? " on " : "", host ? host : "", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(team->died, sizeof team->died, "%s%s%s exited with status %d", who,
			 host ? " on " : "", host ? host : "", WEXITSTATUS(status));
}

void xb_team_reap(struct xb_team *team)
{
	for (size_t i = 0; i < team->process_count; i++) {
		struct xb_launched *process = &team->processes[i];
		int status;
		if (process->pid <= 0 || waitpid(process->pid, &status, WNOHANG) != process->pid)
			continue;
		note_death(team, i, status);
		process->pid = -1;
	}
	team->control->hub.child_exited = 0;
}

void xb_team_drain(struct xb_team *team)
{
	for (size_t i = 0; i < team->process_count; i++)
		drain(team, i);
}

const char *xb_team_tail_line(struct xb_team *team)
{
	size_t i = team->dead;
	for (size_t k = 0; !team->died[0] && k < team->process_count; k++)
		if (team->tails[k].used)
			i = k;
	return i < team->process_count ? one_line(&team->tails[i]) : "";
}

static size_t alive(const struct xb_team *team)
{
	size_t count = 0;
	for (size_t i = 0; i < team->process_count; i++)
		count += team->processes[i].pid > 0;
	return count;
}

static void wait_until_gone(struct xb_team *team, int milliseconds)
{
	int64_t end = xb_now_ms() + milliseconds, left;
	xb_team_reap(team);
	while (alive(team) && (left = end - xb_now_ms()) > 0) {
		xb_hub_poll(&team->control->hub, (int)left);
		xb_team_reap(team);
		xb_team_drain(team);
		if (team->control->hub.interrupts > 1)
			return; /* a second Ctrl-C: no more patience */
	}
}

static void signal_all(const struct xb_team *team, int signal_number)
{
	for (size_t i = 0; i < team->process_count; i++)
		if (team->processes[i].pid > 0)
			kill(team->processes[i].pid, signal_number);
}

/* The processes on this machine that may have made shared memory for this team: those that were started here,
 * then its workers, known from their hello. To be asked while their connections are still known. */
static int *own_pids(const struct xb_team *team, size_t *count)
{
	int *pids = calloc(team->endpoints + team->process_count, sizeof *pids);
	json_t *own = xb_host_describe();

	*count = 0;
	for (size_t i = 0; pids && i < team->process_count; i++)
		pids[(*count)++] = team->processes[i].started_pid;
	for (uint32_t e = 0; pids && e < team->endpoints; e++) {
		struct xb_peer *peer = xb_team_peer(team, e);
		if (peer && xb_same_host(xb_team_host(team, e), own))
			pids[(*count)++] = peer->pid;
	}
	json_decref(own);
	return pids;
}

/* What workers left that were ended before they could clean up: files that they told us of, and what can be
 * known to be theirs. */
static void remove_leftovers(const struct xb_team *team, const int *pids, size_t count)
{
	for (size_t i = 0; i < json_array_size(team->artifacts); i++)
		unlink(json_string_value(json_array_get(team->artifacts, i)));
	if (pids) {
		xb_leftovers_remove_sysv(pids, count);
		xb_leftovers_remove_named("/dev/shm", pids, count, team->started_s);
	}
	xb_leftovers_remove_files("/dev/shm", team->started_s, 0);
}

/* Ranks of a job on this machine are no children of ours. Those on other hosts end when their control
 * connection does. */
static void kill_ranks(const struct xb_team *team, const int *pids, size_t count)
{
	for (size_t i = team->process_count; !team->launcher->children && i < count; i++)
		if (pids[i] > 1)
			kill(pids[i], SIGKILL);
}

/* What waits on its standard input for the end of the run now sees it. */
static void close_inputs(struct xb_team *team)
{
	for (size_t i = 0; i < team->process_count; i++) {
		if (team->processes[i].input_fd >= 0)
			close(team->processes[i].input_fd);
		team->processes[i].input_fd = -1;
	}
}

/* Not those that lead to another host: what they started there is told by their input. */
static void signal_workers(const struct xb_team *team, int signal_number)
{
	for (size_t i = 0; i < team->process_count; i++)
		if (team->processes[i].pid > 0 && !team->processes[i].host)
			kill(team->processes[i].pid, signal_number);
}

void xb_team_stop_processes(struct xb_team *team, int asked_to_close)
{
	size_t pid_count;
	int *pids = own_pids(team, &pid_count);

	if (asked_to_close) {
		close_inputs(team);
		wait_until_gone(team, CLOSE_GRACE_MS);
	}
	int orderly = alive(team) == 0;
	if (!orderly) {
		/* workers may hang in a library or be stopped: their ranks first, the job launcher then
		 * cleans up; on other hosts the ends of control connection and input do it */
		kill_ranks(team, pids, pid_count);
		if (team->launcher->children)
			signal_workers(team, SIGKILL);
		else
			signal_workers(team, team->launcher->end_signal);
		xb_hub_drop_team(&team->control->hub, (int)team->index);
		close_inputs(team);
		wait_until_gone(team, (int)team->launcher->grace_ms);
		signal_all(team, SIGKILL);
		wait_until_gone(team, 2000);
	}
	xb_team_drain(team);
	for (size_t i = 0; i < team->process_count; i++)
		close(team->processes[i].output_fd);
	if (!orderly || !asked_to_close || team->died[0])
		remove_leftovers(team, pids, pid_count);
	free(pids);
}

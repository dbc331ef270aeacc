/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_TEAM_PROCESS_H
#define XB_TEAM_PROCESS_H
/* The processes of a team: reaping, output, ending. Private to team*.c. */
#include "team.h"

/* Reaps what has ended; the first end that was not asked for is described in team->died. */
void xb_team_reap(struct xb_team *team);
/* Takes over what the processes have printed; keeps the last KB of each (and shows it with -v). */
void xb_team_drain(struct xb_team *team);
/* The last output of the process that died, or else of one that has said anything, as one line of at most 300
 * characters. */
const char *xb_team_tail_line(struct xb_team *team);
/* Ends every process: waits for those that were asked to close, then end_signal, then SIGKILL; removes shared
 * memory files they left. */
void xb_team_stop_processes(struct xb_team *team, int asked_to_close);
/* The connection of an endpoint; NULL if it is not (or no longer) there. */
struct xb_peer *xb_team_peer(const struct xb_team *team, uint32_t endpoint);
/* Something of the team ended while it was needed: a sentence for it. */
int xb_team_lost(struct xb_team *team, uint32_t endpoint, struct xb_error *error);
/* Sleeps until every listed endpoint has replied. replies[] must be NULL before. A reply with a negative
 * status ends the wait, after a moment for the others' replies. */
int xb_team_await(struct xb_team *team, const uint32_t *endpoints, size_t count, int timeout_ms,
		  json_t **replies, struct xb_error *error);
/* "worker 1", with " on HOST" where hosts were given. Returns text. */
const char *xb_team_worker(const struct xb_team *team, uint32_t endpoint, char *text, size_t bytes);
/* The same of one that gave no answer, with its process and whether that is stopped, where it can be seen
 * from here. Returns the latter. */
int xb_team_silent_worker(const struct xb_team *team, uint32_t endpoint, char *text, size_t bytes);
/* Nobody has failed, and not all have answered: the stopped one if there is one, else all those that have
 * not; a single one is lost. */
int xb_team_no_answer(struct xb_team *team, const uint32_t *endpoints, size_t count, int timeout_ms,
		      json_t **replies, struct xb_error *error);
int xb_team_reply_status(const json_t *reply);
/* The most telling of the failures in the replies of pairs (ends and replies 2i and 2i + 1 belong together)
 * or of one worker (count 1), with who it is about where hosts were given: an aborted or peer-gone side only
 * follows from the other's. 0 if there is none. */
int xb_team_judge(const struct xb_team *team, const uint32_t *ends, json_t **replies, size_t count,
		  struct xb_error *error);
/* The same for the replies of all endpoints to "open". Whoever cannot alone is lost; what only some hosts
 * refuse is unavailable there. */
int xb_team_judge_opened(struct xb_team *team, json_t **replies, struct xb_error *error);
/* The request that this team was started with. */
struct xb_launch_request xb_team_request(const struct xb_team *team);

#endif

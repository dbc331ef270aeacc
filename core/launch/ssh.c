/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers on other hosts, each started by an ssh of its own; those of this machine are children. The key goes
 * through ssh's stdin, which then stays open: `worker --guard` ends the worker when it closes, because a
 * command that ssh has started outlives ssh.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "spawn.h"
#include "../control/channel.h"

int xb_ssh_words(const struct xb_config *config, const char *host, struct xb_argv *argv,
		 struct xb_error *error)
{
	/* no question can be answered: a password or an unknown host key is an error at once */
	static const char standard[] = "ssh -x -T -o BatchMode=yes -o ConnectTimeout=10";
	int status = xb_argv_add_words(argv, config->ssh_command ? config->ssh_command : standard, error);
	if (!status)
		xb_argv_add(argv, "%s", host);
	return status;
}

/* Does any of the words, '|' between two, stand in the text? */
static int says(const char *text, const char *words)
{
	char copy[256], *save = NULL;
	snprintf(copy, sizeof copy, "%s", words);
	for (char *word = strtok_r(copy, "|", &save); word; word = strtok_r(NULL, "|", &save))
		if (strcasestr(text, word))
			return 1;
	return 0;
}

int xb_ssh_explain(const char *host, const char *program, int wait_status, const char *output,
		   struct xb_error *error)
{
	if (!WIFEXITED(wait_status))
		return 0;
	int code = WEXITSTATUS(wait_status);
	if (code == 127 || (code == 1 && says(output, "no such file")))
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"there is no %s on %s; install the same version of xportbench there, or say with "
			"--remote-path where it is (ssh said: %s)",
			program, host, output);
	if (code == 126)
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"%s on %s cannot be executed; make it executable, or say with --remote-path where "
			"the right one is (ssh said: %s)",
			program, host, output);
	if (code != 255)
		return 0;
	if (says(output, "permission denied|too many authentication|no more authentication"))
		return xb_fail(error, XB_E_UNAVAILABLE,
			       "%s does not let us in: ssh says \"%s\"; `ssh %s true` must work without a "
			       "password (a key, an agent)",
			       host, output, host);
	if (says(output, "host key|identification has changed"))
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"ssh does not trust %s: it says \"%s\"; log in there once by hand, or put its key "
			"into known_hosts",
			host, output);
	return xb_fail(
		error, XB_E_UNAVAILABLE,
		"%s cannot be reached by ssh: it says \"%s\"; is the name right, and does `ssh %s true` "
		"work?",
		host, *output ? output : "nothing", host);
}

static const char *remote_program(const struct xb_launch_request *request)
{
	return request->config->remote_path ? request->config->remote_path : request->self;
}

static int explain(const struct xb_launch_request *request, const struct xb_launched *process,
		   int wait_status, const char *output, struct xb_error *error)
{
	return process->host
		       ? xb_ssh_explain(process->host, remote_program(request), wait_status, output, error)
		       : 0;
}

/* Appends "exec env NAME='VALUE' ... 'PROGRAM' 'worker' ..." as the one argument that ssh gives to the login
 * shell. */
static int add_command(struct xb_argv *argv, const struct xb_launch_request *request,
		       const struct xb_argv *remote, struct xb_error *error)
{
	const struct xb_transport_spec *spec = request->spec;
	struct xb_argv words = {.count = 0};
	if (spec->env_count)
		xb_argv_add(&words, "env");
	for (size_t i = 0; i < spec->env_count; i++)
		xb_argv_add(&words, "%s=%s", spec->env[i].key, spec->env[i].value);
	for (size_t i = 0; i < remote->count; i++)
		xb_argv_add(&words, "%s", remote->items[i]);
	int whole = xb_argv_whole(&words, error);
	char *command = whole ? NULL : xb_argv_shell(&words, 0);
	xb_argv_free(&words);
	if (whole)
		return whole;
	if (!command)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for a remote command");
	xb_argv_add(argv, "exec %s", command);
	free(command);
	return 0;
}

static int start_one(const struct xb_launch_request *request, uint32_t e, const char *hex,
		     struct xb_launched *out, struct xb_error *error)
{
	struct xb_argv argv = {.count = 0}, remote = {.count = 0};
	struct xb_spawn_options options = {.stdin_text = hex, .keep_stdin = 1, .death_signal = SIGTERM};
	char endpoint[16];
	int status = 0, here = request->here[e];

	snprintf(endpoint, sizeof endpoint, "%u", e);
	if (here) {
		options = (struct xb_spawn_options){.env = request->spec->env,
						    .env_count = request->spec->env_count,
						    .stdin_text = hex,
						    .death_signal = SIGCONT};
		xb_argv_add_worker(&argv, request, request->self, "stdin", endpoint);
	} else {
		xb_argv_add_worker(&remote, request, remote_program(request), "stdin", endpoint);
		xb_argv_add(&remote, "--guard");
		xb_argv_add(&remote, "yes");
		status = xb_ssh_words(request->config, request->hosts[e], &argv, error);
		if (!status)
			status = add_command(&argv, request, &remote, error);
	}
	if (!status)
		status = xb_spawn(&argv, &options, out, error);
	if (!status) {
		out->endpoint = (int)e;
		out->host = here ? NULL : request->hosts[e];
	}
	xb_argv_free(&argv);
	xb_argv_free(&remote);
	return status;
}

static int start(const struct xb_launch_request *request, struct xb_launched *out, size_t capacity,
		 size_t *count, struct xb_error *error)
{
	char hex[2 * XB_KEY_BYTES + 1];
	int status = 0;

	*count = 0;
	if (request->endpoints > capacity)
		return xb_fail(error, XB_E_RESOURCE, "%u endpoints asked for, at most %zu can be started",
			       request->endpoints, capacity);
	xb_key_to_hex(request->key, hex);
	for (uint32_t e = 0; !status && e < request->endpoints; e++) {
		status = start_one(request, e, hex, &out[*count], error);
		*count += !status;
	}
	if (status)
		xb_spawn_undo(out, count);
	explicit_bzero(hex, sizeof hex);
	return status;
}

const struct xb_launcher xb_launcher_ssh = {.name = "ssh",
					    .start = start,
					    .explain = explain,
					    .end_signal = SIGTERM,
					    .grace_ms = 500,
					    .hello_ms = 30000,
					    .children = 1};

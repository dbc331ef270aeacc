/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include "spawn.h"

void xb_argv_add(struct xb_argv *argv, const char *format, ...)
{
	va_list list;
	char *text = NULL;
	if (argv->count == XB_SPAWN_ARGS) {
		argv->full = 1;
		return;
	}
	va_start(list, format);
	if (vasprintf(&text, format, list) < 0)
		text = NULL;
	va_end(list);
	if (text)
		argv->items[argv->count++] = text;
	else
		argv->full = 1;
}

int xb_argv_whole(const struct xb_argv *argv, struct xb_error *error)
{
	if (!argv->full)
		return 0;
	return xb_fail(
		error, XB_E_USAGE,
		"the command \"%s ...\" has more than %d words, so it is not run; use fewer env.NAME keys "
		"or words in a command option",
		argv->count ? argv->items[0] : "", XB_SPAWN_ARGS);
}

int xb_argv_add_words(struct xb_argv *argv, const char *command, struct xb_error *error)
{
	wordexp_t words;
	if (wordexp(command, &words, WRDE_NOCMD | WRDE_UNDEF) || words.we_wordc == 0)
		return xb_fail(error, XB_E_USAGE, "cannot make words of the command \"%s\"", command);
	for (size_t i = 0; i < words.we_wordc; i++)
		xb_argv_add(argv, "%s", words.we_wordv[i]);
	wordfree(&words);
	return 0;
}

void xb_argv_add_worker(struct xb_argv *argv, const struct xb_launch_request *request, const char *program,
			const char *key_source, const char *endpoint)
{
	xb_argv_add(argv, "%s", program);
	xb_argv_add(argv, "worker");
	xb_argv_add(argv, "--connect");
	xb_argv_add(argv, "%s", request->control_address);
	xb_argv_add(argv, "--key");
	xb_argv_add(argv, "%s", key_source);
	xb_argv_add(argv, "--team");
	xb_argv_add(argv, "%u", request->team);
	xb_argv_add(argv, "--endpoint");
	xb_argv_add(argv, "%s", endpoint);
	if (request->config->plugin_path) {
		xb_argv_add(argv, "--plugin-dir");
		xb_argv_add(argv, "%s", request->config->plugin_path);
	}
}

/* 'it'\''s': the same for every shell that a remote login may have */
static size_t quote(const char *word, char *out)
{
	size_t n = 0;
	out[n++] = '\'';
	for (; *word; word++) {
		if (*word == '\'') {
			memcpy(out + n, "'\\''", 4);
			n += 4;
		} else {
			out[n++] = *word;
		}
	}
	out[n++] = '\'';
	return n;
}

char *xb_argv_shell(const struct xb_argv *argv, size_t first)
{
	size_t bytes = 1, n = 0;
	for (size_t i = first; i < argv->count; i++)
		bytes += 4 * strlen(argv->items[i]) + 3;
	char *text = malloc(bytes);
	for (size_t i = first; text && i < argv->count; i++) {
		n += quote(argv->items[i], text + n);
		text[n++] = ' ';
	}
	if (text)
		text[n ? n - 1 : 0] = 0;
	return text;
}

void xb_argv_free(struct xb_argv *argv)
{
	for (size_t i = 0; i < argv->count; i++)
		free(argv->items[i]);
	argv->count = 0;
	argv->full = 0;
}

/* In the child, between fork and exec. failure_fd tells the parent why exec failed. */
static void become(const struct xb_argv *argv, const struct xb_spawn_options *options, int in, int out,
		   int failure_fd, pid_t parent)
{
	sigset_t none;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, options->death_signal);
	if (getppid() != parent)
		_exit(127); /* the controller died meanwhile */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	dup2(in, 0);
	dup2(out, 1);
	dup2(out, 2);
	for (size_t i = 0; i < options->env_count; i++)
		setenv(options->env[i].key, options->env[i].value, 1);
	execvp(argv->items[0], argv->items);
	int cause = errno;
	if (write(failure_fd, &cause, sizeof cause) < 0)
		_exit(126);
	_exit(127);
}

int xb_spawn(const struct xb_argv *argv, const struct xb_spawn_options *options, struct xb_launched *out,
	     struct xb_error *error)
{
	const char *text = options->stdin_text;
	int input[2] = {-1, -1}, output[2] = {-1, -1}, failure[2] = {-1, -1}, cause = 0;
	pid_t parent = getpid(), pid = -1;
	int whole = xb_argv_whole(argv, error);

	if (whole)
		return whole;
	if (text ? pipe2(input, O_CLOEXEC) : (input[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
		cause = errno;
	if (!cause && (pipe2(output, O_CLOEXEC) || pipe2(failure, O_CLOEXEC)))
		cause = errno;
	if (!cause) {
		fcntl(output[1], F_SETPIPE_SZ, 1 << 20); /* the controller reads it only between blocks */
		fflush(NULL);
		pid = fork();
		if (pid < 0)
			cause = errno;
	}
	if (pid == 0)
		become(argv, options, input[0], output[1], failure[1], parent);
	close(input[0]);
	close(output[1]);
	close(failure[1]);
	if (!cause && read(failure[0], &cause, sizeof cause) != (ssize_t)sizeof cause)
		cause = 0; /* closed by exec: it runs */
	close(failure[0]);
	if (!cause && text && write(input[1], text, strlen(text)) < 0 && errno != EPIPE)
		cause = errno; /* if it has ended already, its status and output say more */
	if (input[1] >= 0 && (cause || !options->keep_stdin)) {
		close(input[1]);
		input[1] = -1;
	}
	if (cause) {
		close(output[0]);
		return xb_fail(error, cause == ENOENT ? XB_E_UNAVAILABLE : XB_E_SYSTEM,
			       "cannot start \"%s\": %s%s", argv->items[0], strerror(cause),
			       cause == ENOENT ? "; install it, or say where it is" : "");
	}
	fcntl(output[0], F_SETFL, O_NONBLOCK);
	*out = (struct xb_launched){
		.pid = pid, .started_pid = pid, .endpoint = -1, .input_fd = input[1], .output_fd = output[0]};
	return 0;
}

void xb_spawn_undo(struct xb_launched *out, size_t *count)
{
	for (size_t i = 0; i < *count; i++) {
		kill(out[i].pid, SIGKILL);
		waitpid(out[i].pid, NULL, 0);
		if (out[i].input_fd >= 0)
			close(out[i].input_fd);
		close(out[i].output_fd);
	}
	*count = 0;
}

int xb_spawn_output(const struct xb_argv *argv, char *text, size_t capacity, int timeout_ms,
		    struct xb_error *error)
{
	struct xb_launched process;
	struct xb_spawn_options options = {.death_signal = SIGKILL};
	size_t used = 0;
	int status = xb_spawn(argv, &options, &process, error);

	if (status)
		return status;
	for (;;) {
		struct pollfd p = {.fd = process.output_fd, .events = POLLIN};
		if (used == capacity - 1 || poll(&p, 1, timeout_ms) <= 0)
			break;
		ssize_t n = read(process.output_fd, text + used, capacity - 1 - used);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	text[used] = 0;
	size_t count = 1;
	xb_spawn_undo(&process, &count);
	return 0;
}

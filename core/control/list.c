/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `list` and `probe`. Every transport is probed in a process of its own, with a time limit: a library that
 * crashes or hangs while looking for devices is reported as that and does not disturb the others.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hub.h"
#include "plugin.h"
#include "run.h"
#include "worker.h"
#include "../launch/spawn.h"

#define PROBE_MS 30000
#define PROBE_OUTPUT_MAX (1u << 20)

static void take_path(void *user, const char *path, const char *text, int usable, const char *reason,
		      const char *remedy)
{
	json_t *paths = json_object_get(user, "paths");
	json_array_append_new(paths, json_pack("{s:s, s:s, s:b, s:s, s:s}", "path", path ? path : "", "text",
					       text ? text : "", "usable", usable, "reason",
					       reason ? reason : "", "remedy", remedy ? remedy : ""));
}

static void take_library(void *user, const char *library, const char *version)
{
	json_object_set_new(user, "library", json_string(library));
	json_object_set_new(user, "version", json_string(version));
}

int xb_probe_main(char **arguments, size_t count)
{
	const char *name = NULL, *folder = NULL;
	const struct xb_transport *transport;
	struct xb_error error = {0};

	for (size_t i = 0; i < count; i++) {
		if (!strcmp(arguments[i], "--plugin-dir") && i + 1 < count)
			folder = arguments[++i];
		else
			name = arguments[i];
	}
	if (!name) {
		fprintf(stderr, "xportbench probe: give the name of one transport\n");
		return XB_EXIT_USAGE;
	}
	/* libraries print what they like: the answer goes to the real stdout, their chatter to stderr */
	int answer_fd = dup(1);
	dup2(2, 1);
	json_t *answer = json_pack("{s:s, s:[]}", "name", name, "paths");
	struct xb_probe_sink sink = {.user = answer, .path = take_path, .library = take_library};
	int status = xb_plugin_load(folder, name, &transport, &error);
	if (!status) {
		json_object_set_new(answer, "summary", json_string(transport->summary));
		json_t *keys = json_array();
		for (const struct xb_key *k = transport->keys; k && k->key; k++)
			json_array_append_new(keys, json_pack("{s:s, s:s, s:s}", "key", k->key, "values",
							      k->values, "help", k->help));
		json_object_set_new(answer, "keys", keys);
		status = transport->probe(&sink, &error);
	}
	if (status)
		json_object_set_new(answer, "error", json_string(error.text));
	char *text = json_dumps(answer, JSON_COMPACT);
	int failed = !text || xb_write_all(answer_fd, text, strlen(text), 5000);
	_exit(failed ? XB_EXIT_OUTPUT : 0); /* no exit handlers of libraries */
}

/* Runs `probe NAME` and returns its answer, or an object with "error". */
static json_t *probe(const char *self, const char *folder, const char *name, int verbose)
{
	int out[2];
	char *text = malloc(PROBE_OUTPUT_MAX);
	size_t used = 0;
	int status = 0;
	pid_t pid = text && !pipe(out) ? fork() : -1;

	if (pid < 0) {
		free(text);
		return json_pack("{s:s, s:s}", "name", name, "error", "cannot start a process to probe it");
	}
	if (pid == 0) {
		setpgid(0, 0);
		dup2(out[1], 1);
		if (!verbose && !freopen("/dev/null", "w", stderr))
			_exit(127);
		close(out[0]);
		close(out[1]);
		execl(self, self, "probe", name, folder ? "--plugin-dir" : NULL, folder, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	int64_t end = xb_now_ms() + PROBE_MS;
	for (;;) {
		struct pollfd p = {.fd = out[0], .events = POLLIN};
		int64_t left = end - xb_now_ms();
		if (left <= 0 || used == PROBE_OUTPUT_MAX || poll(&p, 1, (int)left) == 0) {
			kill(-pid, SIGKILL);
			break;
		}
		ssize_t n = read(out[0], text + used, PROBE_OUTPUT_MAX - used);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	close(out[0]);
	waitpid(pid, &status, 0);
	json_t *answer = json_loadb(text, used, 0, NULL);
	free(text);
	if (answer)
		return answer;
	char why[160];
	if (xb_now_ms() >= end)
		snprintf(why, sizeof why, "its library did not answer within %d s", PROBE_MS / 1000);
	else if (WIFSIGNALED(status))
		snprintf(why, sizeof why, "its library crashed while it looked for devices: signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(why, sizeof why, "its probe exited with status %d and no answer (see -v)",
			 WEXITSTATUS(status));
	return json_pack("{s:s, s:s}", "name", name, "error", why);
}

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static void print_answer(json_t *answer)
{
	const char *name = text_of(answer, "name");
	json_t *entry;
	size_t i;

	printf("%s", name);
	if (*text_of(answer, "summary"))
		printf("  %s", text_of(answer, "summary"));
	if (*text_of(answer, "library"))
		printf("  (%s %s)", text_of(answer, "library"), text_of(answer, "version"));
	printf("\n");
	json_array_foreach(json_object_get(answer, "paths"), i, entry)
	{
		const char *path = text_of(entry, "path");
		int usable = json_is_true(json_object_get(entry, "usable"));
		printf("  %-3s %s%s%s  %s\n", usable ? "ok" : "--", name, *path ? ":" : "", path,
		       text_of(entry, "text"));
		if (*text_of(entry, "reason"))
			printf("        why:  %s\n", text_of(entry, "reason"));
		if (*text_of(entry, "remedy"))
			printf("        do:   %s\n", text_of(entry, "remedy"));
	}
	json_array_foreach(json_object_get(answer, "keys"), i, entry)
		printf("      key %s=%s  %s\n", text_of(entry, "key"), text_of(entry, "values"),
		       text_of(entry, "help"));
	if (*text_of(answer, "error"))
		printf("  --  cannot be used: %s\n", text_of(answer, "error"));
}

int xb_list(const struct xb_config *config)
{
	static const char *const known[] = {"tcp", "verbs", "ofi", "ucx", "mpi", "null"};
	char names[512], self[4096];
	json_t *all = json_array();
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	self[n > 0 ? n : 0] = 0;
	xb_plugin_names(config->plugin_path, names, sizeof names);
	for (char *save, *name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save))
		json_array_append_new(all, probe(self, config->plugin_path, name, config->verbose));
	for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
		json_t *entry;
		size_t i;
		int there = 0;
		json_array_foreach(all, i, entry) there |= !strcmp(text_of(entry, "name"), known[k]);
		if (!there)
			json_array_append_new(all, json_pack("{s:s, s:s}", "name", known[k], "error",
							     "not built: its library's headers were not "
							     "found when xportbench was built (`make` says "
							     "which); install them and run make again"));
	}
	if (config->format == XB_FORMAT_JSON) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		printf("\n");
	} else {
		json_t *entry;
		size_t i;
		json_array_foreach(all, i, entry) print_answer(entry);
	}
	json_decref(all);
	return fflush(stdout) || ferror(stdout) ? XB_EXIT_OUTPUT : 0;
}

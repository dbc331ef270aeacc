/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"
#include "worker_state.h"
#include "../launch/hold.h"
#include "../system/system.h"

#define HELD_KEY_MS 30000
#define REACH_MS 10000
#define REPLY_MS 60000 /* the controller may be starting hundreds of others */

struct arguments {
	const char *connect, *key, *endpoint, *plugin_dir;
	int team, guard;
};

static int parse(char **arguments, size_t count, struct arguments *a)
{
	memset(a, 0, sizeof *a);
	a->team = -1;
	for (size_t i = 0; i + 1 < count; i += 2) {
		const char *name = arguments[i], *value = arguments[i + 1];
		if (!strcmp(name, "--connect"))
			a->connect = value;
		else if (!strcmp(name, "--key"))
			a->key = value;
		else if (!strcmp(name, "--endpoint"))
			a->endpoint = value;
		else if (!strcmp(name, "--team"))
			a->team = atoi(value);
		else if (!strcmp(name, "--plugin-dir"))
			a->plugin_dir = value;
		else if (!strcmp(name, "--guard"))
			a->guard = 1;
		else
			return -1;
	}
	return a->connect && a->key && a->endpoint && a->team >= 0 && count % 2 == 0 ? 0 : -1;
}

/* "1", or "env:NAME/NAME": the rank that the job launcher has put into the first of these variables that is
 * there. It says which, for others may have come from a job around this one. -1 if there is none. */
static int endpoint_of(const char *given)
{
	char names[128], *save = NULL;
	if (strncmp(given, "env:", 4) != 0)
		return atoi(given);
	snprintf(names, sizeof names, "%s", given + 4);
	for (char *name = strtok_r(names, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		const char *value = getenv(name);
		if (value && *value)
			return atoi(value);
	}
	return -1;
}

static int read_key(const char *source, unsigned char key[XB_KEY_BYTES], struct xb_error *error)
{
	char hex[2 * XB_KEY_BYTES + 2] = "";
	if (!strncmp(source, "held:", 5)) {
		int held = xb_held_key(source + 5, hex, HELD_KEY_MS, error);
		if (!held)
			held = xb_key_from_hex(hex, key);
		explicit_bzero(hex, sizeof hex);
		return held;
	}
	int from_stdin = !strcmp(source, "stdin");
	int fd = from_stdin ? 0 : open(source, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n;
	/* a memfd is shared with the other workers: pread, so that its offset does not matter */
	while (fd >= 0 && used < 2 * XB_KEY_BYTES &&
	       (n = from_stdin ? read(fd, hex + used, 2 * XB_KEY_BYTES - used)
			       : pread(fd, hex + used, 2 * XB_KEY_BYTES - used, (off_t)used)) > 0)
		used += (size_t)n;
	if (fd > 0)
		close(fd);
	int status = xb_key_from_hex(hex, key);
	explicit_bzero(hex, sizeof hex);
	return status ? xb_fail(error, XB_E_USAGE, "no usable key of the run in %s", source) : 0;
}

static int say_hello(struct xb_worker *w, int team, struct xb_error *error)
{
	json_t *hello =
		json_pack("{s:{s:i, s:i, s:i, s:s, s:o}}", "hello", "team", team, "endpoint", w->endpoint,
			  "pid", (int)getpid(), "version", XB_VERSION, "host", xb_host_describe());
	int status = xb_channel_send(&w->channel, hello, error);
	json_decref(hello);
	return status;
}

static int serve(struct xb_worker *w)
{
	for (;;) {
		struct xb_error error = {0};
		json_t *request = NULL;
		if (xb_channel_receive(&w->channel, &request, &error))
			return XB_WORKER_LOST_EXIT;
		const char *command = json_string_value(json_object_get(request, "cmd"));
		json_t *reply = json_object();
		int status;
		if (!command)
			status = xb_fail(&error, XB_E_USAGE, "control message without a command");
		else if (!strcmp(command, "open"))
			status = xb_worker_open(w, request, reply, &error);
		else if (!strcmp(command, "connect"))
			status = xb_worker_connect(w, request, reply, &error);
		else if (!strcmp(command, "block"))
			status = xb_worker_block(w, request, reply, &error);
		else if (!strcmp(command, "noise"))
			status = xb_worker_noise(w, request, reply, &error);
		else if (!strcmp(command, "close"))
			status = xb_worker_close(w, 1);
		else
			status = xb_fail(&error, XB_E_USAGE, "unknown command \"%s\"", command);
		if (status < 0)
			json_object_set_new(reply, "error", json_string(error.text));
		json_object_set_new(reply, "status", json_integer(status));
		json_object_set_new(reply, "re", json_string(command ? command : ""));
		int lost = xb_channel_send(&w->channel, reply, &error);
		int closed = command && !strcmp(command, "close");
		json_decref(reply);
		json_decref(request);
		if (closed)
			return 0;
		if (lost)
			return XB_WORKER_LOST_EXIT;
	}
}

int xb_worker_main(char **arguments, size_t count)
{
	static struct xb_worker worker; /* large; zeroed */
	struct xb_error error = {0};
	unsigned char key[XB_KEY_BYTES];
	struct arguments a;

	if (parse(arguments, count, &a)) {
		fprintf(stderr,
			"xportbench worker: internal command; see core/control/worker.h for its arguments\n");
		return 2;
	}
	/* without its parent it must run, even if stopped: the watcher then sees the lost channel and ends it
	 * in order */
	prctl(PR_SET_PDEATHSIG, SIGCONT);
	signal(SIGPIPE, SIG_IGN);
	worker.plugin_dir = a.plugin_dir;
	worker.started_s = (int64_t)time(NULL);
	worker.endpoint = endpoint_of(a.endpoint);
	if (worker.endpoint < 0) {
		fprintf(stderr, "xportbench worker: the launcher gave no rank in the environment (%s)\n",
			a.endpoint);
		return 2;
	}
	int status = xb_channel_library_init(&error);
	if (!status)
		status = read_key(a.key, key, &error);
	if (!status && a.guard)
		status = xb_worker_guard(&error);
	if (!status)
		status = xb_channel_connect(&worker.channel, a.connect, key, REACH_MS, REPLY_MS, &error);
	explicit_bzero(key, sizeof key);
	if (!status)
		status = xb_watch_start(&worker.watch, &worker.channel, &error);
	if (!status)
		status = say_hello(&worker, a.team, &error);
	if (status) {
		fprintf(stderr, "xportbench worker: %s\n", error.text);
		return 2;
	}
	int result = serve(&worker);
	if (result) { /* not closed in order */
		atomic_store(&worker.watch.abort, 1);
		xb_worker_close(&worker, 0);
		xb_watch_remove_artifacts(&worker.watch);
	}
	/* libraries register exit handlers that may hang without their peers; everything of ours is closed */
	fflush(NULL);
	_exit(result);
}

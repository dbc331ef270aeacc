/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reach.h"
#include "../control/channel.h"
#include "../control/listen.h"
#include "../control/user_key.h"

#define CONNECT_MS 10000
#define ANSWER_MS 15000
#define EXIT_UNREACHED 255

struct reach {
	const char *to, *session, *key_file;
	json_t *start; /* what is to be started; empty for the session itself */
	struct xb_channel channel;
};

static int fail(const char *text)
{
	fprintf(stderr, "%s\n", text);
	return EXIT_UNREACHED;
}

static void parse(struct reach *r, char **arguments, size_t count)
{
	r->start = json_object();
	for (size_t i = 0; i + 1 < count; i += 2) {
		const char *name = arguments[i], *value = arguments[i + 1];
		if (!strcmp(name, "--to"))
			r->to = value;
		else if (!strcmp(name, "--session"))
			r->session = value;
		else if (!strcmp(name, "--key-file"))
			r->key_file = value;
		else if (!strcmp(name, "--connect"))
			json_object_set_new(r->start, "connect", json_string(value));
		else if (!strcmp(name, "--plugin-dir"))
			json_object_set_new(r->start, "plugin_dir", json_string(value));
		else if (!strcmp(name, "--team") || !strcmp(name, "--endpoint"))
			json_object_set_new(r->start, name + 2, json_integer(atoi(value)));
	}
}

/* "host", "host:port", "[v6]:port", or an IPv6 address alone */
static void with_port(const char *to, char *address, size_t capacity)
{
	const char *colon = strchr(to, ':');
	int port = to[0] == '[' ? strstr(to, "]:") != NULL : colon && !strchr(colon + 1, ':');
	int bare_v6 = to[0] != '[' && colon && !port;
	if (port)
		snprintf(address, capacity, "%s", to);
	else
		snprintf(address, capacity, bare_v6 ? "[%s]:%d" : "%s:%d", to, XB_LISTEN_PORT);
}

static int connect_to(struct reach *r, char *why, size_t capacity)
{
	unsigned char key[XB_KEY_BYTES];
	char path[4096], address[300];
	struct xb_error error = {0};

	with_port(r->to, address, sizeof address);
	int status = xb_channel_library_init(&error);
	if (!status)
		status = xb_user_key(r->key_file, key, path, sizeof path, &error);
	if (status) {
		snprintf(why, capacity, "%s", error.text);
		return status;
	}
	status = xb_channel_connect(&r->channel, address, key, CONNECT_MS, CONNECT_MS, &error);
	explicit_bzero(key, sizeof key);
	if (status && strstr(error.text, "did not prove"))
		snprintf(why, capacity,
			 "%.200s does not know our key (%.500s): give both sides the same --key-file, and "
			 "see that it is "
			 "`xportbench listen` that listens there",
			 address, path);
	else if (status)
		snprintf(why, capacity,
			 "%.200s cannot be reached (%.300s): does `xportbench listen` run there?", address,
			 strrchr(error.text, ':') ? strrchr(error.text, ':') + 2 : error.text);
	return status;
}

static int open_session(struct reach *r, char *why, size_t capacity)
{
	const struct passwd *user = getpwuid(geteuid());
	char host[128] = "", who[256];
	struct xb_error error = {0};
	json_t *reply = NULL;

	gethostname(host, sizeof host - 1);
	snprintf(who, sizeof who, "%s@%s", user ? user->pw_name : "?", host);
	json_t *request =
		json_pack("{s:s, s:s, s:s}", "session", r->session, "who", who, "version", XB_VERSION);
	int status = xb_channel_send(&r->channel, request, &error);
	json_decref(request);
	struct pollfd p = {.fd = r->channel.fd, .events = POLLIN};
	if (!status && poll(&p, 1, ANSWER_MS) <= 0)
		status = xb_fail(&error, XB_E_TIMEOUT, "no answer within %d s", ANSWER_MS / 1000);
	if (!status)
		status = xb_channel_receive(&r->channel, &reply, &error);
	if (status) {
		snprintf(why, capacity, "%s closed the connection: %s", r->to, error.text);
		return status;
	}
	status = (int)json_integer_value(json_object_get(reply, "status"));
	const char *text = json_string_value(json_object_get(reply, "error"));
	if (status)
		snprintf(why, capacity, "%s does not take the run: %s", r->to,
			 text ? text : "no reason is given");
	json_decref(reply);
	return status;
}

static int send_start(struct reach *r)
{
	char hex[2 * XB_KEY_BYTES + 1] = "";
	struct xb_error error = {0};
	json_t *env = json_object();
	size_t used = 0;
	ssize_t n;

	while (used < 2 * XB_KEY_BYTES && (n = read(0, hex + used, 2 * XB_KEY_BYTES - used)) > 0)
		used += (size_t)n;
	/* the team's variables: what the launcher has put into our environment on purpose */
	const char *names = getenv("XB_REACH_ENV");
	char *copy = strdup(names ? names : ""), *save = NULL;
	for (char *name = strtok_r(copy, ",", &save); name; name = strtok_r(NULL, ",", &save))
		if (getenv(name))
			json_object_set_new(env, name, json_string(getenv(name)));
	free(copy);
	json_object_set_new(r->start, "env", env);
	json_object_set_new(r->start, "key", json_string(hex));
	explicit_bzero(hex, sizeof hex);
	json_t *message = json_pack("{s:O}", "start", r->start);
	int status = xb_channel_send(&r->channel, message, &error);
	json_decref(message);
	return status;
}

/* Until the worker has ended there, or our input here. */
static int wait_for_end(struct reach *r)
{
	for (;;) {
		struct pollfd fds[2] = {{.fd = 0, .events = POLLIN}, {.fd = r->channel.fd, .events = POLLIN}};
		struct xb_error error = {0};
		json_t *message = NULL;
		char byte;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return EXIT_UNREACHED;
		if (fds[0].revents && read(0, &byte, 1) <= 0)
			return 0;
		if (!fds[1].revents)
			continue;
		if (xb_channel_receive(&r->channel, &message, &error)) {
			fprintf(stderr, "the listener on %s has gone\n", r->to);
			return EXIT_UNREACHED;
		}
		json_t *exited = json_object_get(message, "exited");
		const char *output = json_string_value(json_object_get(message, "output"));
		const char *refused = json_string_value(json_object_get(message, "error"));
		if (refused || (output && *output))
			fprintf(stderr, "%s\n", refused ? refused : output);
		int status = exited ? (int)json_integer_value(exited) : EXIT_UNREACHED;
		json_decref(message);
		if (exited || refused)
			return status;
	}
}

int xb_reach_main(char **arguments, size_t count)
{
	struct reach r = {.to = NULL};
	char why[1024] = "";

	signal(SIGPIPE, SIG_IGN);
	parse(&r, arguments, count);
	if (!r.to || !r.session)
		return fail("xportbench reach: internal command; see core/launch/reach.h");
	if (connect_to(&r, why, sizeof why) || open_session(&r, why, sizeof why))
		return fail(why);
	if (json_object_size(r.start) == 0) {
		printf("ready\n");
		fflush(stdout);
	} else if (send_start(&r)) {
		return fail("the listener has gone");
	}
	int status = wait_for_end(&r);
	xb_channel_close(&r.channel);
	json_decref(r.start);
	return status;
}

/* --- the launcher */

static void add_reach(struct xb_argv *argv, const struct xb_config *config, const char *self,
		      const char *run_id)
{
	xb_argv_add(argv, "%s", self);
	xb_argv_add(argv, "reach");
	xb_argv_add(argv, "--to");
	xb_argv_add(argv, "%s", config->listener);
	xb_argv_add(argv, "--session");
	xb_argv_add(argv, "%s", run_id);
	if (config->key_file) {
		xb_argv_add(argv, "--key-file");
		xb_argv_add(argv, "%s", config->key_file);
	}
}

int xb_reach_open(const struct xb_config *config, const char *self, const char *run_id,
		  struct xb_launched *out, struct xb_error *error)
{
	const struct xb_spawn_options options = {.stdin_text = "", .keep_stdin = 1, .death_signal = SIGTERM};
	struct xb_argv argv = {.count = 0};
	char text[1024] = "";
	size_t used = 0, one = 1;

	add_reach(&argv, config, self, run_id);
	int status = xb_spawn(&argv, &options, out, error);
	xb_argv_free(&argv);
	if (status)
		return status;
	struct pollfd p = {.fd = out->output_fd, .events = POLLIN};
	while (!strstr(text, "ready\n") && used < sizeof text - 1 &&
	       poll(&p, 1, CONNECT_MS + ANSWER_MS) > 0) {
		ssize_t n = read(out->output_fd, text + used, sizeof text - 1 - used);
		if (n <= 0)
			break;
		used += (size_t)n;
		text[used] = 0;
	}
	if (strstr(text, "ready\n"))
		return 0;
	text[strcspn(text, "\n")] = 0;
	xb_spawn_undo(out, &one);
	return xb_fail(error, XB_E_UNAVAILABLE, "%s", *text ? text : "the listener does not answer");
}

void xb_reach_close(struct xb_launched *session)
{
	if (session->pid <= 0)
		return;
	close(session->input_fd);
	session->input_fd = -1;
	for (int i = 0; i < 100 && waitpid(session->pid, NULL, WNOHANG) == 0; i++) {
		if (i == 99) {
			kill(session->pid, SIGKILL);
			waitpid(session->pid, NULL, 0);
		}
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	close(session->output_fd);
	session->pid = 0;
}

static int explain(const struct xb_launch_request *request, const struct xb_launched *process,
		   int wait_status, const char *output, struct xb_error *error)
{
	(void)request;
	if (process->host && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == EXIT_UNREACHED)
		return xb_fail(error, XB_E_UNAVAILABLE, "%s", *output ? output : "the listener has gone");
	return 0;
}

/* "NAME,NAME": what `reach` is to take out of its environment. */
static int env_names(const struct xb_transport_spec *spec, char *names, size_t capacity,
		     struct xb_error *error)
{
	size_t used = 0;
	names[0] = 0;
	for (size_t i = 0; i < spec->env_count && used < capacity; i++)
		used += (size_t)snprintf(names + used, capacity - used, "%s%s", used ? "," : "",
					 spec->env[i].key);
	if (used < capacity)
		return 0;
	return xb_fail(
		error, XB_E_USAGE,
		"the names of the env.NAME keys take more than %zu characters in all, which is too many for "
		"a listener; use fewer",
		capacity - 1);
}

/* Endpoint 0 here, the others there. */
static int start(const struct xb_launch_request *request, struct xb_launched *out, size_t capacity,
		 size_t *count, struct xb_error *error)
{
	const struct xb_transport_spec *spec = request->spec;
	char hex[2 * XB_KEY_BYTES + 1], endpoint[16], names[2048] = "";
	struct xb_key_value env[XB_MAX_KEYS + 1];
	int status = 0;

	*count = 0;
	xb_key_to_hex(request->key, hex);
	memcpy(env, spec->env, spec->env_count * sizeof *env);
	status = env_names(spec, names, sizeof names, error);
	env[spec->env_count] = (struct xb_key_value){"XB_REACH_ENV", names};
	for (uint32_t e = 0; !status && e < request->endpoints && *count < capacity; e++) {
		struct xb_argv argv = {.count = 0}, worker = {.count = 0};
		int here = request->here[e];
		const struct xb_spawn_options options = {.env = env,
							 .env_count = spec->env_count + !here,
							 .stdin_text = hex,
							 .keep_stdin = !here,
							 .death_signal = here ? SIGCONT : SIGTERM};
		snprintf(endpoint, sizeof endpoint, "%u", e);
		xb_argv_add_worker(here ? &argv : &worker, request, request->self, "stdin", endpoint);
		if (!here)
			add_reach(&argv, request->config, request->self, request->run_id);
		for (size_t i = 2; i < worker.count; i++) /* without program and "worker" */
			xb_argv_add(&argv, "%s", worker.items[i]);
		status = xb_spawn(&argv, &options, &out[*count], error);
		xb_argv_free(&argv);
		xb_argv_free(&worker);
		if (status)
			break;
		out[*count].endpoint = (int)e;
		out[(*count)++].host = here ? NULL : request->hosts[e];
	}
	if (status)
		xb_spawn_undo(out, count);
	explicit_bzero(hex, sizeof hex);
	return status;
}

const struct xb_launcher xb_launcher_listen = {.name = "listen",
					       .start = start,
					       .explain = explain,
					       .end_signal = SIGTERM,
					       .grace_ms = 500,
					       .hello_ms = 30000,
					       .children = 1};

/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hub.h"
#include "listen.h"
#include "run.h"
#include "user_key.h"
#include "../launch/spawn.h"

#define TAIL_BYTES 2048
#define GRACE_MS 1500 /* for a worker whose client has gone */
#define OUTPUT_MS 500 /* how often the output of workers is taken */
#define ENV_MAX 64

struct guest { /* a worker that was started for a client */
	struct xb_launched process;
	struct xb_peer *peer; /* NULL: it has gone */
	int64_t kill_ms; /* 0: not to be ended */
	char said[TAIL_BYTES]; /* the last piece of its output */
};

struct listener {
	const struct xb_config *config;
	struct xb_hub hub;
	char self[4096];
	struct xb_peer *owner; /* first connection of the session; NULL: nobody is connected */
	char session[64], who[128];
	struct guest guests[XB_MAX_ENDPOINTS];
	size_t count;
};

static void say(const struct listener *l, const char *format, const char *what)
{
	char when[16];
	time_t now = time(NULL);
	struct tm local;
	if (l->config->quiet)
		return;
	localtime_r(&now, &local);
	strftime(when, sizeof when, "%H:%M:%S", &local);
	fprintf(stderr, "%s ", when);
	fprintf(stderr, format, what);
	fputc('\n', stderr);
}

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static int known(const struct listener *l, const struct xb_peer *peer)
{
	for (size_t i = 0; i < l->hub.peer_count; i++)
		if (l->hub.peers[i] == peer)
			return peer->fd >= 0;
	return 0;
}

static void refuse(struct listener *l, struct xb_peer *peer, const char *why)
{
	struct xb_error ignored = {0};
	xb_hub_send(&l->hub, peer, json_pack("{s:i, s:s}", "status", XB_E_RESOURCE, "error", why), &ignored);
	xb_hub_drop(&l->hub, peer);
}

/* What may be shown on a terminal. */
static void plain(const char *from, char *to, size_t capacity)
{
	size_t n = 0;
	for (; *from && n < capacity - 1; from++)
		to[n++] = *from >= ' ' && *from < 127 ? *from : '?';
	to[n] = 0;
}

static void take_session(struct listener *l, struct xb_peer *peer, json_t *message)
{
	const char *id = text_of(message, "session");
	struct xb_error ignored = {0};
	char why[300];

	if (strcmp(text_of(message, "version"), XB_VERSION)) {
		snprintf(why, sizeof why,
			 "this is xportbench %s, you are %.20s: install the same version on both sides",
			 XB_VERSION, text_of(message, "version"));
		refuse(l, peer, why);
		return;
	}
	if (l->owner && strcmp(id, l->session)) {
		snprintf(why, sizeof why, "busy with a run of %s; one at a time", l->who);
		refuse(l, peer, why);
		return;
	}
	if (!l->owner) {
		l->owner = peer;
		snprintf(l->session, sizeof l->session, "%s", id);
		plain(text_of(message, "who"), l->who, sizeof l->who);
		say(l, "%s is connected", l->who);
	}
	peer->team = -2; /* belongs to the session */
	xb_hub_send(&l->hub, peer, json_pack("{s:i, s:s}", "status", 0, "version", XB_VERSION), &ignored);
}

static int spawn_guest(struct listener *l, struct guest *guest, json_t *start, struct xb_error *error)
{
	struct xb_key_value env[ENV_MAX];
	struct xb_argv argv = {.count = 0};
	const char *name,
		*folder = l->config->plugin_path ? l->config->plugin_path : text_of(start, "plugin_dir");
	size_t env_count = 0;
	json_t *value;

	json_object_foreach(json_object_get(start, "env"), name, value)
	{
		if (env_count < ENV_MAX && json_is_string(value))
			env[env_count++] = (struct xb_key_value){name, json_string_value(value)};
	}
	xb_argv_add(&argv, "%s", l->self);
	xb_argv_add(&argv, "worker");
	xb_argv_add(&argv, "--connect");
	xb_argv_add(&argv, "%s", text_of(start, "connect"));
	xb_argv_add(&argv, "--key");
	xb_argv_add(&argv, "stdin");
	xb_argv_add(&argv, "--team");
	xb_argv_add(&argv, "%d", (int)json_integer_value(json_object_get(start, "team")));
	xb_argv_add(&argv, "--endpoint");
	xb_argv_add(&argv, "%d", (int)json_integer_value(json_object_get(start, "endpoint")));
	if (*folder) {
		xb_argv_add(&argv, "--plugin-dir");
		xb_argv_add(&argv, "%s", folder);
	}
	const struct xb_spawn_options options = {.env = env,
						 .env_count = env_count,
						 .stdin_text = text_of(start, "key"),
						 .death_signal = SIGKILL};
	int status = xb_spawn(&argv, &options, &guest->process, error);
	xb_argv_free(&argv);
	return status;
}

static void take_start(struct listener *l, struct xb_peer *peer, json_t *start)
{
	struct xb_error error = {0};
	if (peer->team != -2 || !l->owner || l->count == XB_MAX_ENDPOINTS) {
		refuse(l, peer, "no session");
		return;
	}
	struct guest *guest = &l->guests[l->count];
	*guest = (struct guest){.peer = peer};
	if (spawn_guest(l, guest, start, &error)) {
		refuse(l, peer, error.text);
		return;
	}
	l->count++;
}

static void take_messages(struct listener *l)
{
	/* a message may lead to the end of its connection, which changes the list */
	for (size_t i = 0; i < l->hub.peer_count; i++) {
		struct xb_peer *peer = l->hub.peers[i];
		json_t *message, *start;
		while (peer->authenticated && known(l, peer) && (message = xb_peer_take(peer))) {
			start = json_object_get(message, "start");
			if (start)
				take_start(l, peer, start);
			else if (json_object_get(message, "session"))
				take_session(l, peer, message);
			json_decref(message);
			if (i >= l->hub.peer_count || l->hub.peers[i] != peer)
				break;
		}
	}
}

/* What a worker says is taken before its pipe is full: it would wait in write for ever. */
static void listen_to(struct guest *guest)
{
	char piece[TAIL_BYTES];
	ssize_t n;

	while ((n = read(guest->process.output_fd, piece, sizeof piece - 1)) > 0) {
		memcpy(guest->said, piece, (size_t)n);
		guest->said[n] = 0;
	}
}

/* Tells the client how its worker ended. */
static void report(struct listener *l, struct guest *guest, int status)
{
	char plain_text[TAIL_BYTES];
	struct xb_error ignored = {0};

	listen_to(guest);
	plain(guest->said, plain_text, sizeof plain_text);
	if (!known(l, guest->peer))
		return;
	xb_hub_send(&l->hub, guest->peer,
		    json_pack("{s:i, s:s}", "exited",
			      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), "output",
			      plain_text),
		    &ignored);
	xb_hub_drop(&l->hub, guest->peer);
}

static void reap(struct listener *l)
{
	size_t kept = 0;
	l->hub.child_exited = 0;
	for (size_t i = 0; i < l->count; i++) {
		struct guest *guest = &l->guests[i];
		int status;
		if (waitpid(guest->process.pid, &status, WNOHANG) != guest->process.pid) {
			l->guests[kept++] = *guest;
			continue;
		}
		report(l, guest, status);
		close(guest->process.output_fd);
	}
	l->count = kept;
}

/* Clients that have gone: their workers have a moment, then they are ended. Returns when to look again, ms.
 */
static int end_orphans(struct listener *l)
{
	int64_t now = xb_now_ms();
	int next = -1;

	if (l->owner && !known(l, l->owner)) {
		say(l, "%s has gone", l->who);
		l->owner = NULL;
		for (size_t i = 0; i < l->hub.peer_count;) {
			if (l->hub.peers[i]->team == -2)
				xb_hub_drop(&l->hub, l->hub.peers[i]);
			else
				i++;
		}
	}
	for (size_t i = 0; i < l->count; i++) {
		struct guest *guest = &l->guests[i];
		if (guest->peer && known(l, guest->peer))
			continue;
		guest->peer = NULL;
		if (!guest->kill_ms) {
			guest->kill_ms = now + GRACE_MS;
			kill(guest->process.pid, SIGCONT);
		}
		if (guest->kill_ms <= now)
			kill(guest->process.pid, SIGKILL);
		next = 100;
	}
	return next;
}

static int open_port(struct listener *l, struct xb_error *error)
{
	const struct xb_config *config = l->config;
	unsigned char key[XB_KEY_BYTES];
	char path[4096], address[80];
	ssize_t n = readlink("/proc/self/exe", l->self, sizeof l->self - 1);

	l->self[n > 0 ? n : 0] = 0;
	int status = xb_channel_library_init(error);
	if (!status)
		status = xb_user_key(config->key_file, key, path, sizeof path, error);
	if (!status && config->control_interface)
		status = xb_control_address(config->control_interface, NULL, address, sizeof address, error);
	if (!status)
		status = xb_hub_open(&l->hub, config->control_interface ? address : NULL,
				     config->port ? config->port : XB_LISTEN_PORT, key, error);
	explicit_bzero(key, sizeof key);
	if (!status && !config->quiet)
		fprintf(stderr,
			"xportbench %s listens on %s for runs that hold the key of %s; Ctrl-C ends it\n",
			XB_VERSION, l->hub.address, path);
	return status;
}

int xb_listen(const struct xb_config *config)
{
	static struct listener listener; /* large; one per process */
	struct listener *l = &listener;
	struct xb_error error = {0};

	l->config = config;
	if (open_port(l, &error)) {
		fprintf(stderr, "xportbench: %s\n", error.text);
		xb_hub_close(&l->hub);
		return XB_EXIT_USAGE;
	}
	for (int next = -1; !l->hub.interrupted;) {
		xb_hub_poll(&l->hub, next);
		if (l->hub.child_exited || l->count)
			reap(l);
		take_messages(l);
		for (size_t i = 0; i < l->count; i++)
			listen_to(&l->guests[i]);
		next = end_orphans(l);
		if (l->count && (next < 0 || next > OUTPUT_MS))
			next = OUTPUT_MS;
	}
	for (size_t i = 0; i < l->count; i++)
		kill(l->guests[i].process.pid, SIGKILL);
	for (size_t i = 0; i < l->count; i++)
		waitpid(l->guests[i].process.pid, NULL, 0);
	say(l, "%s", "ended");
	xb_hub_close(&l->hub);
	return 0;
}

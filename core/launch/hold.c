/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "hold.h"
#include "spawn.h"

#define HEX_BYTES (2u * XB_KEY_BYTES)
#define SERVE_MS 1000

static socklen_t address_of(const char *name, struct sockaddr_un *address)
{
	memset(address, 0, sizeof *address);
	address->sun_family = AF_UNIX;
	/* a leading zero byte: no file */
	int n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "xportbench-%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int same_user(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof peer;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

static int read_stdin_key(char hex[HEX_BYTES + 1])
{
	size_t used = 0;
	ssize_t n;
	memset(hex, 0, HEX_BYTES + 1);
	while (used < HEX_BYTES && (n = read(0, hex + used, HEX_BYTES - used)) > 0)
		used += (size_t)n;
	return used == HEX_BYTES ? 0 : -1;
}

int xb_hold_main(const char *name)
{
	char hex[HEX_BYTES + 1];
	struct sockaddr_un address;
	socklen_t length = address_of(name, &address);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	signal(SIGPIPE, SIG_IGN);
	if (read_stdin_key(hex)) {
		fprintf(stderr, "xportbench hold: no key on the standard input\n");
		return 2;
	}
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) || listen(listener, 128)) {
		fprintf(stderr, "xportbench hold: cannot listen: %s\n", strerror(errno));
		return 2;
	}
	for (;;) {
		struct pollfd fds[2] = {{.fd = 0, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
		char byte;
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents && read(0, &byte, 1) <= 0)
			break; /* the controller has gone, or is done */
		if (!(fds[1].revents & POLLIN))
			continue;
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0 && same_user(fd))
			xb_write_all(fd, hex, HEX_BYTES, SERVE_MS);
		if (fd >= 0)
			close(fd);
	}
	explicit_bzero(hex, sizeof hex);
	return 0;
}

int xb_held_key(const char *name, char hex[HEX_BYTES + 1], int timeout_ms, struct xb_error *error)
{
	struct sockaddr_un address;
	socklen_t length = address_of(name, &address);
	int waited_ms = 0;

	memset(hex, 0, HEX_BYTES + 1);
	for (;; waited_ms += 20) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), used = 0;
		ssize_t n;
		if (fd >= 0 && connect(fd, (struct sockaddr *)&address, length) == 0) {
			int ours = same_user(fd);
			while (ours && used < (int)HEX_BYTES &&
			       (n = read(fd, hex + used, HEX_BYTES - (size_t)used)) > 0)
				used += (int)n;
			close(fd);
			if (!ours)
				return xb_fail(
					error, XB_E_PEER,
					"another user's process poses as the holder of this run's key");
			return used == (int)HEX_BYTES
				       ? 0
				       : xb_fail(error, XB_E_PEER, "the holder of this run's key went away");
		}
		if (fd >= 0)
			close(fd);
		if (waited_ms >= timeout_ms)
			return xb_fail(
				error, XB_E_TIMEOUT,
				"nothing on this host holds this run's key within %d s (started over ssh by "
				"the controller)",
				timeout_ms / 1000);
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
}

/* The remote shell: ssh, or within a job of Slurm srun, since nodes of a cluster need not allow ssh. */
static int remote_words(const struct xb_launch_request *request, uint32_t e, struct xb_argv *argv,
			struct xb_error *error)
{
	if (request->config->ssh_command || !xb_in_slurm_job())
		return xb_ssh_words(request->config, request->hosts[e], argv, error);
	int status = xb_argv_add_words(
		argv, request->config->srun_command ? request->config->srun_command : "srun", error);
	xb_argv_add(argv, "--nodes=1");
	xb_argv_add(argv, "--ntasks=1");
	xb_argv_add(argv, "--overlap");
	xb_argv_add(argv, "--mpi=none");
	xb_argv_add(argv, "--nodelist=%s", request->hosts[e]);
	xb_argv_add(argv, "sh");
	xb_argv_add(argv, "-c");
	return status;
}

static int spawn_holder(const struct xb_launch_request *request, uint32_t e, const char *hex,
			struct xb_launched *out, struct xb_error *error)
{
	const struct xb_spawn_options options = {.stdin_text = hex, .keep_stdin = 1, .death_signal = SIGTERM};
	const char *remote = request->config->remote_path, *program = remote ? remote : request->self;
	struct xb_argv argv = {.count = 0}, command = {.count = 0};
	int here = request->here[e], status = 0;

	xb_argv_add(&command, "%s", here ? request->self : program);
	xb_argv_add(&command, "hold");
	xb_argv_add(&command, "%s-%u", request->run_id, request->team);
	if (!here) {
		char *text = xb_argv_shell(&command, 0);
		status = text ? remote_words(request, e, &argv, error)
			      : xb_fail(error, XB_E_RESOURCE, "out of memory for a remote command");
		xb_argv_add(&argv, "exec %s", text ? text : "");
		free(text);
	}
	if (!status)
		status = xb_spawn(here ? &command : &argv, &options, out, error);
	if (!status)
		out->host = here ? NULL : request->hosts[e];
	xb_argv_free(&argv);
	xb_argv_free(&command);
	return status;
}

int xb_spawn_holders(const struct xb_launch_request *request, struct xb_launched *out, size_t capacity,
		     size_t *count, struct xb_error *error)
{
	char hex[HEX_BYTES + 1];
	int status = 0, one_here = 0;

	xb_key_to_hex(request->key, hex);
	for (uint32_t e = 0; !status && e < request->endpoints && e < request->config->host_count; e++) {
		int known = request->here[e] && one_here;
		for (uint32_t before = 0; before < e && !known; before++)
			known = !strcmp(request->hosts[before], request->hosts[e]);
		if (known)
			continue;
		one_here |= request->here[e];
		status = *count < capacity ? spawn_holder(request, e, hex, &out[*count], error)
					   : xb_fail(error, XB_E_RESOURCE, "no room for holders of the key");
		*count += !status;
	}
	explicit_bzero(hex, sizeof hex);
	return status;
}

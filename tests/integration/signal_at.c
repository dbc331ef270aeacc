/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LD_PRELOAD: a worker stops or dies at an exact place inside a library. SIGNAL_AT is "FUNCTION SIGNAL
 * ENDPOINT": the worker of that endpoint raises that signal at its first call of that function, one of those
 * below.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

/* The endpoint of this process; -1: it is no worker. */
static int own_endpoint(void)
{
	char line[4096] = "";
	const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *word, *before = "";
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC), worker = 0;
	ssize_t length = fd < 0 ? 0 : read(fd, line, sizeof line - 1);

	close(fd);
	for (word = line; word < line + length; before = word, word += strlen(word) + 1) {
		worker |= !strcmp(word, "worker");
		if (worker && !strcmp(before, "--endpoint") && strncmp(word, "env:", 4) != 0)
			return atoi(word);
	}
	return worker && rank ? atoi(rank) : -1;
}

static void at(const char *function)
{
	static int over;
	const char *wanted = getenv("SIGNAL_AT");
	char name[32];
	int number, endpoint;

	if (over || !wanted || sscanf(wanted, "%31s %d %d", name, &number, &endpoint) != 3 ||
	    strcmp(name, function) != 0 || own_endpoint() != endpoint)
		return;
	over = 1;
	raise(number);
}

/* Open MPI and UCX try whether there are System V segments: make one, mark it as to be removed. */
int shmctl(int id, int command, struct shmid_ds *segment)
{
	int (*real)(int, int, struct shmid_ds *);
	*(void **)&real = dlsym(RTLD_NEXT, "shmctl");
	if (command == IPC_RMID)
		at("shmctl");
	return real(id, command, segment);
}

/* libfabric gives its named file a size after it has made it. */
int ftruncate(int fd, off_t bytes)
{
	int (*real)(int, off_t);
	*(void **)&real = dlsym(RTLD_NEXT, "ftruncate");
	at("ftruncate");
	return real(fd, bytes);
}

int accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
	int (*real)(int, struct sockaddr *, socklen_t *, int);
	*(void **)&real = dlsym(RTLD_NEXT, "accept4");
	at("accept4");
	return real(fd, address, bytes, flags);
}

/* The library comes with the plugin, so it is not behind this one in the order of lookup. */
int ucp_ep_create(void *worker, const void *parameters, void *ep)
{
	int (*real)(void *, const void *, void *);
	*(void **)&real = dlsym(dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD), "ucp_ep_create");
	at("ucp_ep_create");
	return real(worker, parameters, ep);
}

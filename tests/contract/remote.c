/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints on other hosts: they join the one that serves the exchange, over TCP. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exercise.h"

static void no_delay(int fd)
{
	const int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static int one_joins(int listener, int64_t deadline_ms, int *fds, uint32_t endpoints)
{
	struct pollfd ready = {.fd = listener, .events = POLLIN};
	int64_t left = deadline_ms - oob_now_ms();
	uint32_t endpoint = 0;
	int fd;

	if (left <= 0 || poll(&ready, 1, (int)left) <= 0)
		return -1;
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return -1;
	no_delay(fd);
	if (recv(fd, &endpoint, sizeof endpoint, MSG_WAITALL) != sizeof endpoint || endpoint < 1 ||
	    endpoint >= endpoints || fds[endpoint] >= 0) {
		close(fd);
		return -1;
	}
	fds[endpoint] = fd;
	return 0;
}

int remote_serve(uint16_t port, uint32_t endpoints, int64_t deadline_ms, int *fds)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	const int one = 1;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), failed;

	if (listener < 0)
		return -1;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	failed = bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 16);
	for (uint32_t e = 1; e < endpoints; e++)
		fds[e] = -1;
	for (uint32_t e = 1; e < endpoints && !failed; e++)
		failed = one_joins(listener, deadline_ms, fds, endpoints);
	if (failed)
		fprintf(stderr, "exercise: not all endpoints joined on port %u\n", port);
	close(listener);
	return failed ? -1 : 0;
}

int remote_join(const char *where, uint32_t endpoint, int64_t deadline_ms)
{
	const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	char host[256];
	const char *colon = strrchr(where, ':');
	int fd = -1;

	if (!colon || colon - where >= (int)sizeof host)
		return -1;
	snprintf(host, sizeof host, "%.*s", (int)(colon - where), where);
	if (getaddrinfo(host, colon + 1, &hints, &found))
		return -1;
	/* the other host may still be starting */
	while (fd < 0 && oob_now_ms() < deadline_ms) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && !connect(fd, found->ai_addr, found->ai_addrlen))
			break;
		if (fd >= 0)
			close(fd);
		fd = -1;
		usleep(100000);
	}
	freeaddrinfo(found);
	if (fd >= 0)
		no_delay(fd);
	if (fd >= 0 && send(fd, &endpoint, sizeof endpoint, MSG_NOSIGNAL) != sizeof endpoint) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		fprintf(stderr, "exercise: cannot join %s: %s\n", where, strerror(errno));
	return fd;
}

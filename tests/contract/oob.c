/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "oob.h"

#define BYE UINT64_MAX

int64_t oob_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;
	while (bytes) {
		ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int read_all(int fd, void *data, size_t bytes)
{
	char *at = data;
	while (bytes) {
		ssize_t n = read(fd, at, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int gather_socket(struct oob *oob, const void *mine, size_t bytes, void *all)
{
	uint64_t length = bytes;
	if (write_all(oob->fd, &length, sizeof length) || write_all(oob->fd, mine, bytes))
		return -1;
	return read_all(oob->fd, all, bytes * oob->endpoints);
}

static int gather_files(struct oob *oob, const void *mine, size_t bytes, void *all)
{
	char name[4200], hidden[4200];

	snprintf(name, sizeof name, "%s/%u.%u", oob->folder, oob->step, oob->endpoint);
	snprintf(hidden, sizeof hidden, "%s/.%u.%u", oob->folder, oob->step, oob->endpoint);
	FILE *out = fopen(hidden, "we");
	int failed = !out || fwrite(mine, 1, bytes, out) != bytes;
	if ((out && fclose(out)) || failed || rename(hidden, name)) {
		fprintf(stderr, "exercise: cannot write %s: %s\n", name, strerror(errno));
		return -1;
	}
	for (uint32_t e = 0; e < oob->endpoints; e++) {
		FILE *in;
		snprintf(name, sizeof name, "%s/%u.%u", oob->folder, oob->step, e);
		while (!(in = fopen(name, "re")))
			usleep(2000); /* the launcher or --timeout ends us if the other never comes */
		size_t got = fread((char *)all + e * bytes, 1, bytes, in);
		fclose(in);
		if (got != bytes)
			return -1;
	}
	oob->step++;
	return 0;
}

int oob_gather(struct oob *oob, const void *mine, size_t bytes, void *all)
{
	return oob->fd >= 0 ? gather_socket(oob, mine, bytes, all) : gather_files(oob, mine, bytes, all);
}

static int serve_one(int *fds, uint32_t endpoints, uint64_t length)
{
	char *all = malloc(length * endpoints + 1);
	int failed = !all;

	for (uint32_t e = 0; e < endpoints && !failed; e++) {
		uint64_t own = length;
		/* the length of endpoint 0 has been read already */
		failed = (e && read_all(fds[e], &own, sizeof own)) || own != length ||
			 read_all(fds[e], all + e * length, length);
	}
	for (uint32_t e = 0; e < endpoints && !failed; e++)
		failed = write_all(fds[e], all, length * endpoints);
	free(all);
	return failed ? -1 : 0;
}

void oob_bye(struct oob *oob)
{
	const uint64_t bye = BYE;
	if (oob->fd >= 0)
		write_all(oob->fd, &bye, sizeof bye);
}

/* All must be ready, or have said good-bye, before anything is taken, so that a dead one is noticed. */
int oob_serve(int *fds, uint32_t endpoints, int64_t deadline_ms)
{
	for (;;) {
		uint32_t ready = 0, bye = 0;
		uint64_t length = 0;
		if (oob_now_ms() > deadline_ms)
			return -2;
		for (uint32_t e = 0; e < endpoints; e++) {
			uint64_t word = 0;
			ssize_t n = recv(fds[e], &word, sizeof word, MSG_PEEK | MSG_DONTWAIT);
			if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
				return -1;
			ready += n == (ssize_t)sizeof word;
			bye += n == (ssize_t)sizeof word && word == BYE;
		}
		if (bye == endpoints)
			return 0;
		if (ready < endpoints) {
			struct pollfd any[OOB_MOST_ENDPOINTS];
			for (uint32_t e = 0; e < endpoints; e++)
				any[e] = (struct pollfd){.fd = fds[e], .events = POLLRDHUP};
			poll(any, endpoints, 1);
			continue;
		}
		if (bye || read_all(fds[0], &length, sizeof length) || length > 1 << 22 ||
		    serve_one(fds, endpoints, length))
			return -1;
	}
}

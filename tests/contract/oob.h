/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_TEST_OOB_H
#define XB_TEST_OOB_H
/*
 * Out-of-band exchange between the endpoints of a conformance run: an all-gather, over a socket to the parent
 * that forked them, or through files where a job launcher started them. Never used while transport operations
 * are outstanding.
 */
#include <stddef.h>
#include <stdint.h>

#define OOB_MOST_ENDPOINTS 16u

struct oob {
	uint32_t endpoint, endpoints;
	int fd; /* to the parent; -1: files */
	const char *folder;
	unsigned step;
};

/* Everybody gives `bytes` bytes; all[] receives endpoints * bytes in endpoint order. 0, or -1 if another one
 * is gone. */
int oob_gather(struct oob *oob, const void *mine, size_t bytes, void *all);

/* No more gathers follow: the parent will not take the closed socket for a crash. */
void oob_bye(struct oob *oob);

/* The parent's part: serves gathers until all have said good-bye. -1: one broke off; -2: out of time. */
int oob_serve(int *fds, uint32_t endpoints, int64_t deadline_ms);

int64_t oob_now_ms(void);

#endif

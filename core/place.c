/* SPDX-License-Identifier: BSD-3-Clause */
#include "place.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct xb_place xb_place_here(void)
{
	struct xb_place place = {"", 0};
	struct stat ns;
	int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (file >= 0) {
		if (read(file, place.boot_id, sizeof(place.boot_id) - 1) < 0)
			place.boot_id[0] = '\0';
		close(file);
	}
	if (stat("/proc/self/ns/net", &ns) == 0)
		place.netns = ns.st_ino;
	return place;
}

int xb_place_same_host(const struct xb_place *a, const struct xb_place *b)
{
	return a->boot_id[0] && !strncmp(a->boot_id, b->boot_id, sizeof(a->boot_id));
}

int xb_place_same_netns(const struct xb_place *a, const struct xb_place *b)
{
	return xb_place_same_host(a, b) && a->netns && a->netns == b->netns;
}

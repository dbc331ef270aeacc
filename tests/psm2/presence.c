/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LD_PRELOAD: answers the questions by which libpsm2 and libfabric's psm2 provider find out whether there is
 * an Omni-Path adapter, and no others. All of them are stat(), access() or glob() of these names:
 *
 *     /dev/hfi1_0                               the device of unit 0: present (never opened with
 * PSM2_DEVICES=self,shm) /sys/class/infiniband/hfi1_* (glob)       taken from $XB_FAKE_SYS/hfi1_*, if set
 * (Open MPI's mtl/psm2 asks)
 *
 * Every byte of a message then takes the real way through the provider and libpsm2's shared memory. It is a
 * test of function; nothing measured this way says anything about Omni-Path. See README.md.
 */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE "/dev/hfi1_0"
#define PRESENT "/dev/null"

typedef int stat_fn(const char *, struct stat *);
typedef int access_fn(const char *, int);
typedef int glob_fn(const char *, int, int (*)(const char *, int), glob_t *);

static const char *seen(const char *path)
{
	return path && !strcmp(path, DEVICE) ? PRESENT : path;
}

int stat(const char *restrict path, struct stat *restrict out)
{
	stat_fn *next;

	*(void **)&next = dlsym(RTLD_NEXT, "stat");
	return next(seen(path), out);
}

int access(const char *path, int mode)
{
	access_fn *next;

	*(void **)&next = dlsym(RTLD_NEXT, "access");
	return next(seen(path), mode);
}

int glob(const char *restrict pattern, int flags, int (*failed)(const char *, int), glob_t *restrict out)
{
	static const char class[] = "/sys/class/infiniband/";
	const char *tree = getenv("XB_FAKE_SYS");
	char moved[512];
	glob_fn *next;

	*(void **)&next = dlsym(RTLD_NEXT, "glob");
	if (!strcmp(pattern, "/dev/hfi[0-9]_[0-9]") || !strcmp(pattern, "/dev/hfi1_[0-9]"))
		pattern = PRESENT;
	else if (tree && !strncmp(pattern, class, sizeof(class) - 1)) {
		snprintf(moved, sizeof(moved), "%s/%s", tree, pattern + sizeof(class) - 1);
		pattern = moved;
	}
	return next(pattern, flags, failed, out);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "leftovers.h"

#define MOST_FILES 64

struct candidates {
	struct {
		char path[512];
		dev_t device;
		ino_t inode;
		int in_use;
	} files[MOST_FILES];
	size_t count;
};

static int known_name(const char *name)
{
	static const char *const starts[] = {"ucx_shm_posix_", "psm2_shm.", "vader_segment.", "sm_segment."};
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		if (!strncmp(name, starts[i], strlen(starts[i])))
			return 1;
	return 0;
}

static double age_ms(const struct timespec *then)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (double)(now.tv_sec - then->tv_sec) * 1e3 + (double)(now.tv_nsec - then->tv_nsec) / 1e6;
}

static void find_candidates(struct candidates *c, const char *folder, int64_t since_s, int least_age_ms)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct stat st;

	while (dir && c->count < MOST_FILES && (entry = readdir(dir))) {
		char *path = c->files[c->count].path;
		int length = snprintf(path, sizeof c->files[0].path, "%s/%s", folder, entry->d_name);
		if (!known_name(entry->d_name) || length < 0 || (size_t)length >= sizeof c->files[0].path ||
		    lstat(path, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		    st.st_ctim.tv_sec < since_s || age_ms(&st.st_ctim) < least_age_ms)
			continue;
		c->files[c->count].device = st.st_dev;
		c->files[c->count].inode = st.st_ino;
		c->files[c->count].in_use = 0;
		c->count++;
	}
	if (dir)
		closedir(dir);
}

static void used(struct candidates *c, const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return;
	for (size_t i = 0; i < c->count; i++)
		if (c->files[i].device == st.st_dev && c->files[i].inode == st.st_ino)
			c->files[i].in_use = 1;
}

/* What the links in /proc/PID/fd and /proc/PID/map_files point at; without the right to read the latter, the
 * names in /proc/PID/maps. */
static void mark_used_by(struct candidates *c, const char *pid)
{
	char path[PATH_MAX], line[1024];
	struct dirent *entry;
	DIR *dir;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	for (dir = opendir(path); dir && (entry = readdir(dir));) {
		snprintf(path, sizeof path, "/proc/%s/fd/%s", pid, entry->d_name);
		used(c, path);
	}
	if (dir)
		closedir(dir);
	snprintf(path, sizeof path, "/proc/%s/maps", pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof line, maps)) {
		char *slash = strchr(line, '/');
		if (!slash)
			continue;
		slash[strcspn(slash, "\n")] = 0;
		for (size_t i = 0; i < c->count; i++)
			if (!strcmp(c->files[i].path, slash))
				c->files[i].in_use = 1;
	}
	if (maps)
		fclose(maps);
}

size_t xb_leftovers_remove_files(const char *folder, int64_t since_s, int least_age_ms)
{
	struct candidates *c = calloc(1, sizeof *c);
	struct dirent *entry;
	size_t removed = 0;
	DIR *proc;

	if (!c)
		return 0;
	find_candidates(c, folder, since_s, least_age_ms);
	proc = c->count ? opendir("/proc") : NULL;
	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			mark_used_by(c, entry->d_name);
	for (size_t i = 0; proc && i < c->count; i++)
		if (!c->files[i].in_use && !unlink(c->files[i].path))
			removed++;
	if (proc)
		closedir(proc);
	free(c);
	return removed;
}

/* Is this "PID:..." of one of them? */
static int named_by(const char *name, const int *pids, size_t count)
{
	char *end;
	long pid = strtol(name, &end, 10);
	if (!isdigit((unsigned char)*name) || *end != ':')
		return 0;
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return 1;
	return 0;
}

size_t xb_leftovers_remove_named(const char *folder, const int *pids, size_t count, int64_t since_s)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct stat st;
	size_t removed = 0;

	while (dir && (entry = readdir(dir)))
		if (named_by(entry->d_name, pids, count) &&
		    !fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
		    st.st_uid == geteuid() && st.st_ctim.tv_sec >= since_s)
			removed += !unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	return removed;
}

size_t xb_leftovers_remove_sysv(const int *pids, size_t count)
{
	struct shm_info info;
	struct shmid_ds segment;
	size_t removed = 0;
	int highest = shmctl(0, SHM_INFO, (struct shmid_ds *)&info);

	for (int index = 0; index <= highest; index++) {
		int id = shmctl(index, SHM_STAT, &segment);
		if (id < 0 || segment.shm_nattch)
			continue;
		for (size_t i = 0; i < count; i++)
			if (segment.shm_cpid == pids[i] && !shmctl(id, IPC_RMID, NULL)) {
				removed++;
				break;
			}
	}
	return removed;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_FIXTURE_H
#define XB_FIXTURE_H
/* Machines of tests/fixtures, unpacked into a temporary folder, where a test may change them. For cmocka
 * programs. */
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
	char root[512], sys[600]; /* the unpacked machine, and its /sys */
};

static inline void fixture_path(const struct fixture *fixture, const char *file, char path[PATH_MAX])
{
	int length = snprintf(path, PATH_MAX, "%s/%s", fixture->root, file);

	assert_in_range(length, 1, PATH_MAX - 1);
}

static inline void fixture_write(const struct fixture *fixture, const char *file, const char *text)
{
	char path[PATH_MAX];
	FILE *out;

	fixture_path(fixture, file, path);
	for (char *slash = path + strlen(fixture->root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(path, 0700);
	}
	out = fopen(path, "w"); /* in place: descriptors that are open see the new text */
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static inline void fixture_link(const struct fixture *fixture, const char *file, const char *target)
{
	char path[PATH_MAX];

	fixture_write(fixture, file, ""); /* makes the folders */
	fixture_path(fixture, file, path);
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

static inline int fixture_remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status;
	(void)type;
	(void)where;
	return remove(path);
}

static inline void fixture_remove(const struct fixture *fixture, const char *file)
{
	char path[PATH_MAX];

	fixture_path(fixture, file, path);
	assert_int_equal(nftw(path, fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void fixture_empty(struct fixture *fixture)
{
	const char *folder = getenv("TMPDIR");

	snprintf(fixture->root, sizeof(fixture->root), "%.400s/xb-machine-XXXXXX", folder ? folder : "/tmp");
	assert_non_null(mkdtemp(fixture->root));
	snprintf(fixture->sys, sizeof(fixture->sys), "%s/sys", fixture->root);
	mkdir(fixture->sys, 0700);
}

/* name as in tests/fixtures/NAME.machine */
static inline void fixture_open(struct fixture *fixture, const char *name)
{
	char path[PATH_MAX], line[4096], file[1024] = "", lines[16384] = "";
	FILE *in;

	fixture_empty(fixture);
	snprintf(path, sizeof(path), "tests/fixtures/%s.machine", name);
	in = fopen(path, "r");
	assert_non_null(in); /* run from the top folder */
	while (fgets(line, sizeof(line), in)) {
		char *arrow = strstr(line, " -> "), *equals = strstr(line, " = ");

		if (line[0] == '\t') {
			strncat(lines, line + 1, sizeof(lines) - strlen(lines) - 1);
			continue;
		}
		if (*file)
			fixture_write(fixture, file, lines);
		*file = *lines = '\0';
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#')
			continue;
		if (equals) {
			*equals = '\0';
			strcat(equals + 3, "\n"); /* where the newline was */
			fixture_write(fixture, line, equals + 3);
		} else if (arrow) {
			*arrow = '\0';
			fixture_link(fixture, line, arrow + 4);
		} else {
			line[strcspn(line, ":") == strlen(line) ? strlen(line) : strlen(line) - 1] = '\0';
			snprintf(file, sizeof(file), "%.1000s", line);
		}
	}
	if (*file)
		fixture_write(fixture, file, lines);
	fclose(in);
}

static inline void fixture_close(struct fixture *fixture)
{
	fixture_remove(fixture, "");
}

#endif

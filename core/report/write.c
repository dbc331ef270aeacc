/* SPDX-License-Identifier: BSD-3-Clause */
/* The document as text, and its file: read with limits, written so that a reader never sees half of it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"
#include "view.h"

#define MOST_FILE_BYTES (256u << 20)
#define MOST_DEPTH 64

/* --- writing JSON: readable, yet a list of 300 histogram buckets is one line */

static int plain(json_t *value)
{
	if (json_is_object(value))
		return 0;
	size_t i;
	json_t *item;
	json_array_foreach(value, i, item) if (!plain(item)) return 0;
	return 1;
}

static void indent(FILE *file, int depth)
{
	fprintf(file, "\n%*s", depth, "");
}

static int write_value(FILE *file, json_t *value, int depth);

static int write_scalar(FILE *file, json_t *value)
{
	if (json_is_real(value))
		return fprintf(file, XB_REAL_FORMAT, json_real_value(value)) < 0 ? -1 : 0;
	char *text = json_dumps(value, JSON_ENCODE_ANY);
	if (text == NULL)
		return -1;
	int failed = fputs(text, file) < 0;
	free(text);
	return failed ? -1 : 0;
}

static int write_array(FILE *file, json_t *array, int depth)
{
	size_t i;
	json_t *item;
	int short_line = plain(array);
	fputc('[', file);
	json_array_foreach(array, i, item)
	{
		if (i > 0)
			fputs(short_line ? ", " : ",", file);
		if (!short_line)
			indent(file, depth + 1);
		if (write_value(file, item, depth + 1) < 0)
			return -1;
	}
	if (!short_line && json_array_size(array) > 0)
		indent(file, depth);
	fputc(']', file);
	return 0;
}

static int write_value(FILE *file, json_t *value, int depth)
{
	if (depth > MOST_DEPTH)
		return -1;
	if (json_is_array(value))
		return write_array(file, value, depth);
	if (!json_is_object(value))
		return write_scalar(file, value);
	const char *key;
	json_t *member;
	int first = 1;
	fputc('{', file);
	json_object_foreach(value, key, member)
	{
		json_t *name = json_string(key);
		if (!first)
			fputc(',', file);
		first = 0;
		indent(file, depth + 1);
		int failed = name == NULL || write_scalar(file, name) < 0;
		json_decref(name);
		fputs(": ", file);
		if (failed || write_value(file, member, depth + 1) < 0)
			return -1;
	}
	if (!first)
		indent(file, depth);
	fputc('}', file);
	return 0;
}

int xb_json_write(json_t *document, void *stdio_file)
{
	FILE *file = stdio_file;
	if (write_value(file, document, 0) < 0)
		return -1;
	fputc('\n', file);
	return ferror(file) ? -1 : 0;
}

/* --- writing the file */

static int cannot_write(struct xb_error *error, const char *path, int cause)
{
	if (cause == ENOSPC || cause == EDQUOT)
		return xb_fail(error, XB_E_SYSTEM,
			       "cannot write the results to %.300s: %s; free some space or choose another "
			       "file with -o",
			       path, strerror(cause));
	return xb_fail(error, XB_E_SYSTEM,
		       "cannot write the results to %.300s: %s; choose another file with -o", path,
		       strerror(cause));
}

/* Writes everything through to fd and closes it; 0 or errno. */
static int write_through(json_t *document, int fd, int regular)
{
	FILE *file = fdopen(fd, "w");
	if (file == NULL) {
		int cause = errno;
		close(fd);
		return cause;
	}
	errno = 0;
	int cause = 0;
	if (xb_json_write(document, file) < 0 || fflush(file) != 0 || ferror(file))
		cause = errno ? errno : EIO;
	if (cause == 0 && regular && fsync(fileno(file)) != 0 && errno != EINVAL)
		cause = errno;
	if (fclose(file) != 0 && cause == 0)
		cause = errno;
	return cause;
}

/* The folder entry itself must be on disk before a power cut too. Not every file system can; that is no
 * failure. */
static void sync_folder(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
}

static int write_beside(json_t *document, const char *path, int keep, struct xb_error *error)
{
	struct stat found;
	char target[PATH_MAX], temporary[PATH_MAX + 16];
	if (document == NULL)
		return xb_fail(error, XB_E_RESOURCE, "cannot write the results to %.300s: out of memory",
			       path);
	int exists = stat(path, &found) == 0;
	if (exists && !S_ISREG(found.st_mode)) { /* a device or a pipe: it must not be replaced by a file */
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		int cause = fd < 0 ? errno : write_through(document, fd, 0);
		return cause ? cannot_write(error, path, cause) : 0;
	}
	/* what a symbolic link points to is replaced, not the link */
	if (!exists || realpath(path, target) == NULL) {
		if (strlen(path) >= sizeof(target))
			return cannot_write(error, path, ENAMETOOLONG);
		strcpy(target, path);
	}
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX.tmp", target);
	int fd = mkostemps(temporary, 4, O_CLOEXEC);
	if (fd < 0)
		return cannot_write(error, path, errno);
	mode_t mask = umask(0);
	umask(mask);
	(void)fchmod(fd, exists ? found.st_mode & 0777u : 0666u & ~mask);
	int cause = write_through(document, fd, 1);
	if (cause == 0 && keep && rename(temporary, target) != 0)
		cause = errno;
	if (cause != 0 || !keep)
		unlink(temporary);
	if (cause != 0)
		return cannot_write(error, path, cause);
	if (keep)
		sync_folder(target);
	return 0;
}

int xb_document_write(json_t *document, const char *path, struct xb_error *error)
{
	return write_beside(document, path, 1, error);
}

int xb_document_try(json_t *document, const char *path, struct xb_error *error)
{
	return write_beside(document, path, 0, error);
}

/* --- reading */

struct source {
	FILE *file;
	size_t taken;
	int too_large;
};

static size_t take(void *buffer, size_t bytes, void *user)
{
	struct source *source = user;
	size_t n = fread(buffer, 1, bytes, source->file);
	source->taken += n;
	if (source->taken > MOST_FILE_BYTES) {
		source->too_large = 1;
		return (size_t)-1;
	}
	return n;
}

int xb_document_read(const char *path, json_t **document, struct xb_error *error)
{
	struct source source = {fopen(path, "re"), 0, 0};
	struct stat found;
	json_error_t where;
	if (source.file == NULL)
		return xb_fail(error, XB_E_SYSTEM, "cannot read %.300s: %s", path, strerror(errno));
	if (fstat(fileno(source.file), &found) == 0 && S_ISDIR(found.st_mode)) {
		fclose(source.file);
		return xb_fail(error, XB_E_USAGE,
			       "cannot read %.300s: it is a folder; name a file written with -o", path);
	}
	json_t *read = json_load_callback(take, &source, JSON_REJECT_DUPLICATES, &where);
	int failed = ferror(source.file), cause = errno;
	fclose(source.file);
	if (failed) {
		json_decref(read);
		return xb_fail(error, XB_E_SYSTEM, "cannot read %.300s: %s", path, strerror(cause));
	}
	if (source.too_large) {
		json_decref(read);
		return xb_fail(error, XB_E_USAGE,
			       "%.300s is not a result of xportbench: it has more than %u bytes", path,
			       MOST_FILE_BYTES);
	}
	if (read == NULL && source.taken == 0)
		return xb_fail(error, XB_E_USAGE, "%.300s is not a result of xportbench: it is empty", path);
	if (read == NULL) {
		for (char *p = where.text; *p != '\0'; p++) /* it may quote the file */
			if ((unsigned char)*p < 0x20u || (unsigned char)*p >= 0x7fu)
				*p = '?';
		return xb_fail(error, XB_E_USAGE,
			       "%.300s is not a result of xportbench: line %d, column %d: %.150s", path,
			       where.line, where.column, where.text);
	}
	int status = xb_document_check(read, path, error);
	if (status < 0)
		json_decref(read);
	else
		*document = read;
	return status;
}

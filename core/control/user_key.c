/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user_key.h"

#define HEX_BYTES (2u * XB_KEY_BYTES)
#define MAKE_ONE                                                                                             \
	"make one for both sides with: (umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n' "    \
	">%s)"

static int home_file(char *path, size_t capacity, struct xb_error *error)
{
	const char *home = getenv("HOME");
	const struct passwd *user = home && *home ? NULL : getpwuid(geteuid());
	if (user)
		home = user->pw_dir;
	if (!home || *home != '/')
		return xb_fail(error, XB_E_USAGE,
			       "this user has no home folder for a key; name one with --key-file");
	snprintf(path, capacity, "%s/.xportbench.key", home);
	return 0;
}

/* A new key under a name of its own first, then in one step under the real one: nobody sees half of it, and
 * of two that make one at the same time both take the same. */
static int make(const char *path, struct xb_error *error)
{
	unsigned char key[XB_KEY_BYTES];
	char hex[HEX_BYTES + 1], temporary[4200];
	int status = 0;

	snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return xb_fail(error, XB_E_USAGE, "cannot make the key file %s: %s", path, strerror(errno));
	xb_random_bytes(key, sizeof key);
	xb_key_to_hex(key, hex);
	hex[HEX_BYTES] = '\n';
	if (write(fd, hex, sizeof hex) != (ssize_t)sizeof hex || fsync(fd) ||
	    (link(temporary, path) && errno != EEXIST))
		status = xb_fail(error, XB_E_USAGE, "cannot make the key file %s: %s", path, strerror(errno));
	close(fd);
	unlink(temporary);
	explicit_bzero(hex, sizeof hex);
	explicit_bzero(key, sizeof key);
	return status;
}

static int read_key(int fd, const char *path, unsigned char key[XB_KEY_BYTES], struct xb_error *error)
{
	char text[HEX_BYTES + 16] = "";
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return xb_fail(error, XB_E_USAGE, "the key file %s is no ordinary file", path);
	if (st.st_uid != geteuid())
		return xb_fail(error, XB_E_USAGE, "the key file %s belongs to another user", path);
	if (st.st_mode & 077)
		return xb_fail(error, XB_E_USAGE,
			       "the key file %s can be used by others (mode %04o), so it may be known to "
			       "them; make a "
			       "new key, with mode 0600",
			       path, (unsigned)(st.st_mode & 07777));
	ssize_t n = read(fd, text, sizeof text - 1);
	int bad = n < (ssize_t)HEX_BYTES || xb_key_from_hex(text, key);
	explicit_bzero(text, sizeof text);
	return bad ? xb_fail(error, XB_E_USAGE, "%s does not hold a key (64 hex digits); " MAKE_ONE, path,
			     path)
		   : 0;
}

int xb_user_key(const char *file, unsigned char key[XB_KEY_BYTES], char *path, size_t capacity,
		struct xb_error *error)
{
	int status = 0;
	if (file)
		snprintf(path, capacity, "%s", file);
	else
		status = home_file(path, capacity, error);
	if (status)
		return status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT && !file) {
		status = make(path, error);
		fd = status ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	}
	if (status)
		return status;
	if (fd < 0)
		return xb_fail(error, XB_E_USAGE, "cannot read the key file %s: %s; " MAKE_ONE, path,
			       errno == ELOOP ? "it is a symbolic link" : strerror(errno), path);
	status = read_key(fd, path, key, error);
	close(fd);
	return status;
}

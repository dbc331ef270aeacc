/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"

#define PREFIX "libxb-"
#define SUFFIX ".so"

/* The i-th folder to look in; 0 when there are no more. */
static int search_folder(const char *given, int i, char *folder, size_t capacity)
{
	char self[PATH_MAX];
	if (given && *given) { /* explicit: nothing else is searched */
		snprintf(folder, capacity, "%s", given);
		return i == 0;
	}
	if (i == 0) {
		ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
		self[n > 0 ? n : 0] = 0;
		snprintf(folder, capacity, "%s/plugins", dirname(self));
		return 1;
	}
	if (i == 1) { /* installed and then moved as a whole: PREFIX/bin/../lib/xportbench */
		ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
		self[n > 0 ? n : 0] = 0;
		snprintf(folder, capacity, "%s/../lib/xportbench", dirname(self));
		return 1;
	}
	snprintf(folder, capacity, "%s", XB_PLUGIN_DIR);
	return i == 2;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void xb_plugin_names(const char *given, char *text, size_t capacity)
{
	char folder[PATH_MAX], *names[64];
	size_t count = 0;
	for (int i = 0; count == 0 && search_folder(given, i, folder, sizeof folder); i++) {
		DIR *dir = opendir(folder);
		for (struct dirent *e = dir ? readdir(dir) : NULL; e && count < 64; e = readdir(dir)) {
			size_t n = strlen(e->d_name);
			if (n <= strlen(PREFIX SUFFIX) || strncmp(e->d_name, PREFIX, strlen(PREFIX)) ||
			    strcmp(e->d_name + n - strlen(SUFFIX), SUFFIX) || strstr(e->d_name, "-fault.so"))
				continue;
			names[count++] = strndup(e->d_name + strlen(PREFIX), n - strlen(PREFIX SUFFIX));
		}
		if (dir)
			closedir(dir);
	}
	qsort(names, count, sizeof *names, compare_names);
	size_t used = 0;
	text[0] = 0;
	for (size_t i = 0; i < count; i++) {
		if (used < capacity)
			used += (size_t)snprintf(text + used, capacity - used, "%s%s", i ? "," : "",
						 names[i]);
		free(names[i]);
	}
}

int xb_plugin_find(const char *given, const char *name, char *path, size_t capacity, struct xb_error *error)
{
	char folder[PATH_MAX], names[512];
	if (!strchr(name, '/'))
		for (int i = 0; search_folder(given, i, folder, sizeof folder); i++)
			if ((size_t)snprintf(path, capacity, "%s/%s%s%s", folder, PREFIX, name, SUFFIX) <
				    capacity &&
			    access(path, R_OK) == 0)
				return 0;
	xb_plugin_names(given, names, sizeof names);
	return xb_fail(
		error, XB_E_USAGE,
		"no transport \"%s\" here; there are: %s (a backend is built when its library's headers are "
		"found; see `xportbench list`)",
		name, *names ? names : "none, the plugins were not found");
}

static void *load(const char *folder, const char *name, const char *symbol, struct xb_error *error)
{
	char path[PATH_MAX];
	if (xb_plugin_find(folder, name, path, sizeof path, error))
		return NULL;
	/* global: components that MPI and UCX load themselves look for symbols of their library */
	void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!handle) {
		xb_fail(error, XB_E_UNAVAILABLE, "transport \"%s\" cannot be loaded: %s", name, dlerror());
		return NULL;
	}
	void *object = dlsym(handle, symbol);
	if (!object)
		xb_fail(error, XB_E_USAGE, "%s is no %s plugin: it has no symbol %s", path, name, symbol);
	return object;
}

int xb_plugin_load(const char *folder, const char *name, const struct xb_transport **transport,
		   struct xb_error *error)
{
	const struct xb_transport *t = load(folder, name, "xb_transport", error);
	if (!t)
		return error->status;
	if (t->abi != XB_TRANSPORT_ABI)
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"transport \"%s\" was built for contract version %u, this is version %u: rebuild it",
			name, t->abi, XB_TRANSPORT_ABI);
	*transport = t;
	return 0;
}

int xb_plugin_load_decorator(const char *folder, const char *name, const struct xb_decorator **decorator,
			     struct xb_error *error)
{
	const struct xb_decorator *d = load(folder, name, "xb_decorator", error);
	if (!d)
		return error->status;
	if (d->abi != XB_TRANSPORT_ABI)
		return xb_fail(error, XB_E_UNAVAILABLE,
			       "decorator \"%s\" is of another contract version: rebuild it", name);
	*decorator = d;
	return 0;
}

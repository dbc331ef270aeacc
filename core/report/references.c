/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the published tables. The form of the files is told in share/references/README.md. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "references.h"

#define MOST_LINE 1024u
#define MOST_COLUMNS 32u
#define MOST_POINTS 4096u

/* --- where they are */

static const char *const places[] = {"../share/references", "../../share/references",
				     "../share/xportbench/references"};

static int is_folder(const char *path)
{
	DIR *folder = opendir(path);
	if (folder != NULL)
		closedir(folder);
	return folder != NULL;
}

static int find_folder(char *path, size_t bytes)
{
	char self[PATH_MAX] = "";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1u);
	char *slash = n > 0 ? strrchr(self, '/') : NULL;
	if (slash != NULL)
		*slash = '\0';
	for (size_t i = 0; slash != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, bytes, "%s/%s", self, places[i]);
		if (is_folder(path))
			return 0;
	}
	snprintf(path, bytes, "%s/../../share/xportbench/references", XB_PLUGIN_DIR);
	return is_folder(path) ? 0 : -1;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_table(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);
	return n > 4 && n < 200 && entry->d_name[0] != '.' && strcmp(entry->d_name + n - 4, ".csv") == 0;
}

/* --- one file */

struct table {
	const char *path;
	FILE *file;
	char line[MOST_LINE];
	unsigned number;
	char *column[MOST_COLUMNS];
	size_t columns;
	char *heads; /* owned: what column[] points into */
	double link, least_us;
	char bench[16];
	json_t *json, *points;
};

static int refuse(struct xb_error *error, const struct table *t, const char *what)
{
	return xb_fail(error, XB_E_USAGE,
		       "%.300s is not a table that can stand beside a run: line %u: %s; "
		       "share/references/README.md tells the form",
		       t->path, t->number, what);
}

static int next_line(struct table *t)
{
	if (fgets(t->line, sizeof(t->line), t->file) == NULL)
		return 0;
	t->number++;
	t->line[strcspn(t->line, "\r\n")] = '\0';
	return 1;
}

/* "# key: value" */
static void take_remark(struct table *t)
{
	char *key = t->line + 1 + strspn(t->line + 1, " "), *colon = strstr(key, ": ");
	if (colon == NULL)
		return;
	*colon = '\0';
	const char *value = colon + 2;
	if (strcmp(key, "link-bits-per-s") == 0) {
		t->link = strtod(value, NULL);
		json_object_set_new(t->json, "link_bits_per_s", xb_json_number(t->link));
	} else if (strcmp(key, "least-latency-us") == 0) {
		t->least_us = strtod(value, NULL);
	} else if (strcmp(key, "title") == 0 || strcmp(key, "provenance") == 0 ||
		   strcmp(key, "remark") == 0) {
		json_object_set_new(t->json, key, xb_json_text(value));
	} else if (strcmp(key, "bench") == 0) {
		snprintf(t->bench, sizeof(t->bench), "%.15s", value);
	}
}

static size_t split(char *line, char **parts)
{
	size_t n = 0;
	for (char *at = line; n < MOST_COLUMNS; at++) {
		parts[n++] = at;
		at = strchr(at, ',');
		if (at == NULL)
			break;
		*at = '\0';
	}
	return n;
}

static const char *cell(const struct table *t, char *const *parts, size_t n, const char *name,
			const char *other)
{
	for (size_t c = 0; c < t->columns && c < n; c++)
		if (strcmp(t->column[c], name) == 0 || (other != NULL && strcmp(t->column[c], other) == 0))
			return parts[c];
	return NULL;
}

static double number(const char *text)
{
	char *end;
	double value;
	if (text == NULL || *text == '\0')
		return NAN;
	value = strtod(text, &end);
	return *end == '\0' && isfinite(value) && value >= 0.0 && value < 1e15 ? value : NAN;
}

static int beyond(const struct table *t, double size, double us, double MBps)
{
	const double ways = strcmp(t->bench, "bibw") == 0 ? 2.0 : 1.0;
	if (t->least_us > 0.0 && us < t->least_us)
		return 1;
	return t->link > 0.0 && (MBps * 8e6 > ways * t->link || size * 8e6 / us > ways * t->link);
}

/* Of a benchmark that a run can have. */
static int has_place(const struct table *t)
{
	return strcmp(t->bench, "pingpong") == 0 || strcmp(t->bench, "bw") == 0 ||
	       strcmp(t->bench, "bibw") == 0 || strcmp(t->bench, "swap") == 0;
}

static int take_row(struct table *t, struct xb_error *error)
{
	char *parts[MOST_COLUMNS];
	size_t n = split(t->line, parts);
	double size = number(cell(t, parts, n, "bytes", "msg_bytes"));
	double us = number(cell(t, parts, n, "latency_us", "min_us"));
	double MBps = number(cell(t, parts, n, "MBps", "max_MBps"));
	double pair_s = number(cell(t, parts, n, "min_s_per_msg", NULL));
	const char *mode = cell(t, parts, n, "mode", NULL), *overlap = cell(t, parts, n, "overlap", NULL);
	const char *protocol = cell(t, parts, n, "protocol", NULL);
	if (isfinite(pair_s))
		us = pair_s * 1e6 / 2.0;
	if (!isfinite(MBps) && size > 0.0 && us > 0.0)
		MBps = size / us;
	if (!isfinite(us) && !isfinite(MBps))
		return refuse(error, t, "neither a latency nor a bandwidth");
	if (!isfinite(size) && has_place(t) &&
	    !(strcmp(t->bench, "swap") == 0 && isfinite(number(protocol)) && mode != NULL))
		return refuse(error, t, "no size; swaps alone can do with a protocol and a mode");
	if (json_array_size(t->points) == MOST_POINTS)
		return refuse(error, t, "too many rows");
	json_t *point = json_pack("{s:o, s:o, s:o, s:b}", "size",
				  isfinite(size) ? xb_json_count((uint64_t)size) : json_null(), "latency_us",
				  xb_json_number(us), "MBps", xb_json_number(MBps), "beyond",
				  beyond(t, size, us, MBps));
	if (isfinite(number(protocol)))
		json_object_set_new(point, "protocol", json_integer((json_int_t)number(protocol)));
	if (mode != NULL) { /* "cache inv" there, "cache inv." here */
		char name[32];
		snprintf(name, sizeof(name), "%.20s%s", mode, strchr(mode, '.') ? "" : ".");
		json_object_set_new(point, "mode", xb_json_text(name));
	}
	if (overlap != NULL)
		json_object_set_new(point, "overlap", json_boolean(strcmp(overlap, "yes") == 0));
	json_array_append_new(t->points, point);
	return 0;
}

static int read_table(struct table *t, struct xb_error *error)
{
	while (next_line(t)) {
		if (t->line[0] == '#') {
			take_remark(t);
		} else if (t->columns == 0) {
			t->heads = strdup(t->line);
			if (t->heads == NULL)
				return xb_fail(error, XB_E_RESOURCE, "out of memory");
			t->columns = split(t->heads, t->column);
		} else if (t->line[0] != '\0') {
			int status = take_row(t, error);
			if (status < 0)
				return status;
		}
	}
	if (json_array_size(t->points) == 0)
		return refuse(error, t, "there are no rows");
	if (json_object_get(t->json, "title") == NULL || json_object_get(t->json, "provenance") == NULL)
		return refuse(error, t, "it does not say what it is (# title:, # provenance:)");
	if (!has_place(t))
		strcpy(t->bench, "other");
	json_object_set_new(t->json, "bench", json_string(t->bench));
	if (json_object_get(t->json, "remark") == NULL)
		json_object_set_new(t->json, "remark", json_null());
	if (json_object_get(t->json, "link_bits_per_s") == NULL)
		json_object_set_new(t->json, "link_bits_per_s", json_null());
	json_object_set(t->json, "points", t->points);
	return 0;
}

int xb_reference_load(const char *name, json_t **reference, struct xb_error *error)
{
	char folder[PATH_MAX + 64], path[PATH_MAX + 300];
	struct table t = {.path = path};
	if (strchr(name, '/') != NULL || strstr(name, ".csv") != NULL)
		snprintf(path, sizeof(path), "%s", name);
	else if (find_folder(folder, sizeof(folder)))
		return xb_fail(error, XB_E_USAGE,
			       "asked for the published table '%.100s'; the folder of the tables was not "
			       "installed",
			       name);
	else
		snprintf(path, sizeof(path), "%s/%.200s.csv", folder, name);
	t.file = fopen(path, "re");
	if (t.file == NULL)
		return xb_fail(
			error, XB_E_USAGE,
			"asked for the published table '%.100s': %s; 'xportbench references' lists those "
			"that there are",
			name, strerror(errno));
	t.json = json_pack("{s:o}", "name", xb_json_text(name));
	t.points = json_array();
	int status =
		t.json && t.points ? read_table(&t, error) : xb_fail(error, XB_E_RESOURCE, "out of memory");
	fclose(t.file);
	free(t.heads);
	json_decref(t.points);
	if (status < 0)
		json_decref(t.json);
	else
		*reference = t.json;
	return status;
}

/* --- lists of names */

static int check_op(const char *name, json_t *reference, const char *op, struct xb_error *error)
{
	if (!xb_whole_operation(op) || strcmp(xb_text_of(reference, "bench"), "pingpong") != 0)
		return 0;
	return xb_fail(
		error, XB_E_USAGE,
		"the latencies of %.100s are of one way, half a round trip; with --op %s the time is that "
		"of the whole operation and cannot stand beside them; leave out one of the two",
		name, op);
}

/* Each table of the list: appended to `into` unless that is NULL. */
static int load_list(const char *list, const char *op, json_t *into, struct xb_error *error)
{
	char *copy = strdup(list), *save = NULL;
	int status = copy != NULL ? 0 : xb_fail(error, XB_E_RESOURCE, "out of memory");
	for (char *name = copy ? strtok_r(copy, ",", &save) : NULL; name != NULL && status == 0;
	     name = strtok_r(NULL, ",", &save)) {
		json_t *reference = NULL;
		status = xb_reference_load(name, &reference, error);
		if (status == 0)
			status = check_op(name, reference, op, error);
		if (status == 0 && into != NULL)
			json_array_append(into, reference);
		json_decref(reference);
	}
	free(copy);
	return status;
}

int xb_references_check(const char *list, const char *op, struct xb_error *error)
{
	return list != NULL ? load_list(list, op, NULL, error) : 0;
}

void xb_references_add(const char *list, json_t *document)
{
	struct xb_error ignored = {0}; /* the list was checked before */
	if (list == NULL)
		return;
	json_t *references = json_array();
	(void)load_list(list, NULL, references, &ignored);
	json_object_set_new(document, "references", references);
}

int xb_references_list(void *stdio_file)
{
	char folder[PATH_MAX + 64];
	struct dirent **found = NULL;
	struct xb_out out = {.file = stdio_file};
	int bad = 0,
	    n = find_folder(folder, sizeof(folder)) ? -1 : scandir(folder, &found, is_table, by_name);
	if (n < 0) {
		fprintf(stderr, "xportbench: the folder of the published tables was not found; install "
				"share/references\n");
		return -1;
	}
	for (int i = 0; i < n; i++) {
		struct xb_error error = {0};
		json_t *reference = NULL;
		found[i]->d_name[strlen(found[i]->d_name) - 4u] = '\0';
		if (xb_reference_load(found[i]->d_name, &reference, &error)) {
			fprintf(stderr, "xportbench: %s\n", error.text);
			bad = 1;
		} else {
			xb_put(&out, XB_BOLD, 0, found[i]->d_name);
			xb_newline(&out);
			xb_put(&out, XB_PLAIN, 4, "");
			xb_put_wrapped(&out, XB_PLAIN, 4, xb_text_of(reference, "title"));
			xb_put(&out, XB_PLAIN, 4, "");
			xb_put_wrapped(&out, XB_PLAIN, 4, xb_text_of(reference, "provenance"));
			if (*xb_text_of(reference, "remark")) {
				xb_put(&out, XB_PLAIN, 4, "");
				xb_put_wrapped(&out, XB_PLAIN, 4, xb_text_of(reference, "remark"));
			}
		}
		json_decref(reference);
		free(found[i]);
	}
	free(found);
	return bad ? -1 : 0;
}

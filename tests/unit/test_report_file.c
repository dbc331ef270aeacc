/* SPDX-License-Identifier: BSD-3-Clause */
/* The document's file: written whole or not at all, read with suspicion. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cmocka.h>
#include "report_samples.h"

static char folder[256];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "%s/xb-test-file-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return mkdtemp(folder) == NULL;
}

static size_t files_in_folder(int remove_them)
{
	size_t n = 0;
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		char path[600];
		if (entry->d_name[0] == '.' && (entry->d_name[1] == '\0' || entry->d_name[1] == '.'))
			continue;
		n++;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (remove_them)
			unlink(path);
	}
	closedir(dir);
	return n;
}

static int remove_folder(void **state)
{
	(void)state;
	files_in_folder(1);
	return rmdir(folder);
}

static const char *in_folder(const char *name)
{
	static char path[512];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void put(const char *path, const char *bytes, size_t n)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, n, file), n);
	fclose(file);
}

static void writing_replaces_the_old_file_whole(void **state)
{
	(void)state;
	struct xb_error error = {0};
	json_t *first = sample_complete(), *second = sample_nothing_yet(), *read = NULL;
	const char *path = in_folder("run.json");
	assert_int_equal(xb_document_write(first, path, &error), 0);
	int before = open(path, O_RDONLY); /* a reader that has it open keeps the old one */
	assert_int_equal(xb_document_write(second, path, &error), 0);
	struct stat old, now;
	assert_int_equal(fstat(before, &old), 0);
	assert_int_equal(stat(path, &now), 0);
	assert_true(old.st_ino != now.st_ino && old.st_size > now.st_size);
	assert_int_equal(xb_document_read(path, &read, &error), 0);
	assert_int_equal(files_in_folder(0), 1); /* no temporary file is left */
	close(before);
	json_decref(first);
	json_decref(second);
	json_decref(read);
}

static void a_new_file_has_the_usual_mode_and_an_old_one_keeps_its_own(void **state)
{
	(void)state;
	struct xb_error error = {0};
	struct stat found;
	json_t *d = sample_nothing_yet();
	mode_t mask = umask(027);
	assert_int_equal(xb_document_write(d, in_folder("run.json"), &error), 0);
	assert_int_equal(stat(in_folder("run.json"), &found), 0);
	assert_int_equal(found.st_mode & 0777, 0640);
	chmod(in_folder("run.json"), 0600);
	assert_int_equal(xb_document_write(d, in_folder("run.json"), &error), 0);
	assert_int_equal(stat(in_folder("run.json"), &found), 0);
	assert_int_equal(found.st_mode & 0777, 0600);
	umask(mask);
	json_decref(d);
}

static void a_symbolic_link_stays_one(void **state)
{
	(void)state;
	struct xb_error error = {0};
	struct stat found;
	char target[512];
	json_t *d = sample_nothing_yet();
	snprintf(target, sizeof(target), "%s", in_folder("target.json"));
	put(target, "old", 3);
	assert_int_equal(symlink("target.json", in_folder("run.json")), 0);
	assert_int_equal(xb_document_write(d, in_folder("run.json"), &error), 0);
	assert_int_equal(lstat(in_folder("run.json"), &found), 0);
	assert_true(S_ISLNK(found.st_mode));
	assert_int_equal(stat(target, &found), 0);
	assert_true(found.st_size > 100);
	json_decref(d);
}

/*
 * A device of our own, so that a defect here cannot replace one of the system's. NULL where none can be made:
 * there /dev/full itself will do, as long as nobody but root can replace it.
 */
static const char *device(const char *name, unsigned minor_number)
{
	const char *path = in_folder(name);
	if (mknod(path, S_IFCHR | 0600, makedev(1, minor_number)) == 0) {
		int fd = open(path, O_WRONLY);
		if (fd >= 0) {
			close(fd);
			return path;
		}
		unlink(path); /* a file system without devices */
	}
	return access("/dev", W_OK) != 0 ? strcpy((char *)path, minor_number == 7 ? "/dev/full" : "/dev/null")
					 : NULL;
}

static void a_full_disk_is_reported_and_a_device_is_not_replaced(void **state)
{
	(void)state;
	struct xb_error error = {0};
	struct stat found;
	json_t *d = sample_complete();
	const char *path = device("full", 7);
	if (path == NULL) {
		json_decref(d);
		skip();
	}
	assert_int_equal(xb_document_write(d, path, &error), XB_E_SYSTEM);
	assert_non_null(strstr(error.text, path));
	assert_non_null(strstr(error.text, "No space left on device"));
	assert_int_equal(stat(path, &found), 0);
	assert_true(S_ISCHR(found.st_mode));
	path = device("null", 3);
	assert_non_null(path);
	assert_int_equal(xb_document_write(d, path, &error), 0);
	assert_int_equal(stat(path, &found), 0);
	assert_true(S_ISCHR(found.st_mode));
	json_decref(d);
}

static void a_write_that_fails_leaves_the_old_file_and_no_other(void **state)
{
	(void)state;
	struct xb_error error = {0};
	struct rlimit before, small;
	json_t *d = sample_complete(), *read = NULL, *old = sample_nothing_yet();
	assert_int_equal(xb_document_write(old, in_folder("run.json"), &error), 0);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 10000; /* less than the document: as a disk that fills up half-way */
	setrlimit(RLIMIT_FSIZE, &small);
	int status = xb_document_write(d, in_folder("run.json"), &error);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(status, XB_E_SYSTEM);
	assert_non_null(strstr(error.text, "File too large"));
	assert_int_equal(files_in_folder(0), 1);
	assert_int_equal(xb_document_read(in_folder("run.json"), &read, &error), 0);
	json_decref(d);
	json_decref(old);
	json_decref(read);
}

static void impossible_places_are_reported(void **state)
{
	(void)state;
	char long_path[5000];
	json_t *d = sample_nothing_yet();
	memset(long_path, 'a', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = '\0';
	const char *const places[] = {in_folder(""), "/no/such/folder/run.json", "/proc/run.json", long_path,
				      ""};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct xb_error error = {0};
		assert_int_equal(xb_document_write(d, places[i], &error), XB_E_SYSTEM);
		assert_non_null(strstr(error.text, "cannot write the results to "));
	}
	struct xb_error error = {0};
	assert_int_equal(xb_document_write(NULL, in_folder("run.json"), &error), XB_E_RESOURCE);
	assert_int_equal(files_in_folder(0), 0);
	json_decref(d);
}

/* Reads these bytes as a document; returns the sentence, or NULL when it was accepted. */
static const char *refusal(const char *bytes, size_t n)
{
	static struct xb_error error;
	json_t *read = NULL;
	memset(&error, 0, sizeof(error));
	put(in_folder("bad.json"), bytes, n);
	int status = xb_document_read(in_folder("bad.json"), &read, &error);
	json_decref(read);
	if (status == 0)
		return NULL;
	assert_int_equal(status, XB_E_USAGE);
	assert_null(read);
	assert_non_null(strstr(error.text, "bad.json is not a result of xportbench"));
	for (const char *p = error.text; *p != '\0'; p++)
		assert_true((unsigned char)*p >= 0x20); /* one line, nothing for the terminal */
	return error.text;
}

static void no_part_of_a_file_is_a_file(void **state)
{
	(void)state;
	json_t *d = sample_failures();
	char *text = printed(d, XB_FORMAT_JSON, 0);
	size_t n = strlen(text);
	assert_null(refusal(text, n));
	for (size_t cut = 0; cut < n - 2; cut += cut < 2000 ? 7 : 997)
		assert_non_null(refusal(text, cut));
	assert_non_null(strstr(refusal(text, 0), "it is empty"));
	free(text);
	json_decref(d);
}

static void garbage_is_refused(void **state)
{
	(void)state;
	struct xb_rng rng;
	char bytes[4096];
	xb_rng_seed(&rng, 12);
	for (int i = 0; i < 200; i++) {
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (char)xb_rng_next(&rng);
		assert_non_null(refusal(bytes, sizeof(bytes)));
	}
	assert_non_null(refusal("{\"\x1b[31m\xff", 8));
	assert_non_null(refusal("{\"schema\": 1, \"schema\": 1}", 26));
}

static void deep_nesting_is_refused(void **state)
{
	(void)state;
	static char deep[200001];
	memset(deep, '[', sizeof(deep) - 1);
	assert_non_null(refusal(deep, sizeof(deep) - 1));
	/* within the limit of the parser, but in a place that is not looked into otherwise */
	json_t *d = sample_nothing_yet(), *nested = json_object();
	for (int i = 0; i < 500; i++)
		nested = json_pack("{s:o}", "a", nested);
	json_object_set_new(json_object_get(d, "config"), "deep", nested);
	char *text = json_dumps(d, 0);
	const char *why = refusal(text, strlen(text));
	assert_non_null(why);
	assert_non_null(strstr(why, "config"));
	free(text);
	json_decref(d);
}

/* Flips bits of a good document. Whatever is accepted must print. */
static void damaged_documents_are_refused_or_printable(void **state)
{
	(void)state;
	struct xb_rng rng;
	json_t *d = sample_interrupted();
	json_array_clear(json_object_get(d, "results")); /* mostly numbers; keep a few */
	json_array_clear(json_object_get(d, "comparisons"));
	json_t *whole = sample_all_benches();
	for (size_t i = 0; i < 12; i++) {
		json_array_append(json_object_get(d, "results"),
				  json_array_get(json_object_get(whole, "results"), i));
		if (i < 4)
			json_array_append(json_object_get(d, "comparisons"),
					  json_array_get(json_object_get(whole, "comparisons"), i));
	}
	char *text = json_dumps(d, JSON_COMPACT);
	size_t n = strlen(text), accepted = 0;
	xb_rng_seed(&rng, 13);
	for (int i = 0; i < 1500; i++) {
		char *damaged = strdup(text);
		for (size_t flips = 1 + xb_rng_below(&rng, 3); flips > 0; flips--)
			damaged[xb_rng_below(&rng, n)] =
				" \",:0123456789-.eE[]{}ntf\\x"[xb_rng_below(&rng, 27)];
		struct xb_error error = {0};
		json_t *read = NULL;
		put(in_folder("bad.json"), damaged, n);
		if (xb_document_read(in_folder("bad.json"), &read, &error) == 0) {
			accepted++;
			for (int format = XB_FORMAT_TABLE; format <= XB_FORMAT_JSON; format++)
				free(printed(read, (enum xb_format)format, 0));
		}
		json_decref(read);
		free(damaged);
	}
	assert_true(accepted > 0 && accepted < 1500);
	free(text);
	json_decref(d);
	json_decref(whole);
}

struct edit {
	const char *path; /* members and indices from the top: "results 3 latency_us median" */
	const char *value; /* JSON, or NULL to remove */
	const char *says; /* of the refusal; NULL: must be accepted */
};

static const struct edit edits[] = {
	{"schema", NULL, "schema: is missing"},
	{"schema", "2", "schema: this program reads schema 1, the file has schema 2"},
	{"schema", "\"1\"", "schema: expected 1, found text"},
	{"schema", "1.0", "schema: expected 1, found a number"},
	{"xportbench", NULL, "xportbench: is missing"},
	{"seed", "-1", "seed: expected a whole number"},
	{"seed", "\"12x\"", "seed: expected a whole number"},
	{"seed", "\"18446744073709551615\"", NULL},
	{"hosts", "{}", "hosts: expected a list, found an object"},
	{"hosts 0 name", "7", "hosts[0].name: expected text, found a whole number"},
	{"hosts 0 cpus_used", "[\"a\"]", "hosts[0].cpus_used[0]: expected a number, found text"},
	{"timer", NULL, "timer: is missing"},
	{"timer cost_ns", "\"NaN\"", "timer.cost_ns: expected a number, found text"},
	{"transports", "null", "transports: expected a list, found null"},
	{"transports 1", "[]", "transports[1]: expected an object, found a list"},
	{"transports 1 label", NULL, "transports[1].label: is missing"},
	{"transports 1 label", "\"tcp\"", "transports[1]: this label appears twice"},
	{"transports 1 status", "\"fine\"", "transports[1].status: expected one of ok|unavailable|failed"},
	{"transports 1 status", "\"\"", "transports[1].status: expected one of ok|unavailable|failed"},
	{"transports 1 layer", "\"mp\"", "transports[1].layer: expected one of truth|fabric|middleware|mpi"},
	{"transports 0 evidence 0 tx_bytes", "-5",
	 "transports[0].evidence[0].tx_bytes: -5 is not a possible value"},
	{"transports 0 evidence 0 tx_bytes", "1.5",
	 "transports[0].evidence[0].tx_bytes: expected a whole number"},
	{"results", "7", "results: expected a list, found a whole number"},
	{"results 3 label", "\"nobody\"", "results[3]: its label is none of the transports'"},
	{"results 3 bench", "\"nothing\"", "results[3].bench: expected one of pingpong|bw|bibw|swap"},
	{"results 3 size", "\"8\"", "results[3].size: expected a number, found text"},
	{"results 3 size", "8.0", "results[3].size: expected a whole number, found a number"},
	{"results 3 latency_us", NULL, "results[3].latency_us: is missing"},
	{"results 3 latency_us median", "\"NaN\"",
	 "results[3].latency_us.median: expected a number, found text"},
	{"results 3 latency_us median", "null",
	 "results[3].latency_us.median: expected a number, found null"},
	{"results 3 latency_us median", "1e300",
	 "results[3].latency_us.median: 1e+300 is not a possible value"},
	{"results 3 latency_us median", "-1", "results[3].latency_us.median: -1 is not a possible value"},
	{"results 3 latency_us p999", "null", NULL},
	{"results 3 bandwidth_MBps", "null", NULL},
	{"results 3 launch_medians", "[1, null]",
	 "results[3].launch_medians[1]: expected a number, found null"},
	{"results 3 verified", "1", "results[3].verified: expected true or false, found a whole number"},
	{"results 3 spread_us", NULL, NULL},
	{"comparisons 0 lower", "\"ofi:tcp\"",
	 "comparisons[0]: lower and upper are not two of the transports"},
	{"comparisons 0 size", "123456", "comparisons[0]: there are no results that it compares"},
	{"comparisons 0 overhead_us ci_low", "true",
	 "comparisons[0].overhead_us.ci_low: expected a number, found true"},
	{"comparisons 0 distinguishable", "null",
	 "comparisons[0].distinguishable: expected true or false, found null"},
	{"comparisons 0 launches", NULL, "comparisons[0].launches: is missing"},
	{"findings 0", "\"x\"", "findings[0]: expected an object, found text"},
	{"findings 0 severity", "\"fatal\"", "findings[0].severity: expected one of info|warning|invalid"},
	{"findings 0 size", "\"x\"", "findings[0].size: expected a number, found text"},
	{"config", NULL, "config: is missing"},
	{"partial", "\"yes\"", "partial: expected true or false, found text"},
	{"something_new", "{\"of\": [\"a later version\"]}", NULL},
};

/* Changes the member at the path; words that are numbers are indices. */
static void apply(json_t *d, const struct edit *edit)
{
	char words[128], *save = NULL;
	snprintf(words, sizeof(words), "%s", edit->path);
	json_t *value = edit->value ? json_loads(edit->value, JSON_DECODE_ANY, NULL) : NULL;
	assert_true(edit->value == NULL || value != NULL);
	for (char *word = strtok_r(words, " ", &save); word != NULL;) {
		char *next = strtok_r(NULL, " ", &save);
		size_t index = (size_t)atoi(word);
		if (next == NULL && json_is_array(d))
			json_array_set_new(d, index, value);
		else if (next == NULL && value != NULL)
			json_object_set_new(d, word, value);
		else if (next == NULL)
			json_object_del(d, word);
		d = json_is_array(d) ? json_array_get(d, index) : json_object_get(d, word);
		word = next;
	}
}

static void a_refusal_names_the_place_and_what_was_expected(void **state)
{
	(void)state;
	struct fixture f;
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		fixture_begin(&f, "-t tcp,ofi:tcp -s 8,64");
		sample_surroundings(&f);
		sample_launches(&f, 0, 3, SIZE_MAX);
		json_t *d = sample_end(&f, "fixed");
		apply(d, &edits[i]);
		char *text = json_dumps(d, 0);
		const char *why = refusal(text, strlen(text));
		if ((why == NULL) != (edits[i].says == NULL) ||
		    (why != NULL && strstr(why, edits[i].says) == NULL))
			fail_msg("%s = %s: expected '%s', found '%s'", edits[i].path,
				 edits[i].value ? edits[i].value : "removed",
				 edits[i].says ? edits[i].says : "accepted", why ? why : "accepted");
		free(text);
		json_decref(d);
	}
}

static void absurd_lengths_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *list;
		size_t n;
	} lists[] = {{"transports", 65}, {"results", 65537}, {"findings", 100001}, {"hosts", 4097}};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		json_t *d = sample_nothing_yet(), *list = json_array(), *item = json_object();
		for (size_t k = 0; k < lists[i].n; k++)
			json_array_append(list, item);
		json_object_set_new(d, lists[i].list, list);
		char *text = json_dumps(d, JSON_COMPACT);
		const char *why = refusal(text, strlen(text));
		assert_non_null(why);
		assert_non_null(strstr(why, lists[i].list));
		assert_non_null(strstr(why, "entries, more than"));
		free(text);
		json_decref(item);
		json_decref(d);
	}
	json_t *d = sample_nothing_yet();
	char *long_text = malloc(10000);
	memset(long_text, 'x', 9999);
	long_text[9999] = '\0';
	json_object_set_new(d, "xportbench", json_string(long_text));
	char *text = json_dumps(d, 0);
	assert_non_null(strstr(refusal(text, strlen(text)), "xportbench: text of 9999 bytes"));
	free(text);
	free(long_text);
	json_decref(d);
}

static void the_same_result_twice_is_refused(void **state)
{
	(void)state;
	json_t *d = sample_complete(), *results = json_object_get(d, "results");
	json_array_append(results, json_array_get(results, 5));
	char *text = json_dumps(d, 0);
	assert_non_null(strstr(refusal(text, strlen(text)), "appear twice"));
	free(text);
	json_decref(d);
}

static void what_cannot_be_read_is_said_so(void **state)
{
	(void)state;
	struct xb_error error = {0};
	json_t *read = NULL;
	assert_int_equal(xb_document_read("/no/such/file", &read, &error), XB_E_SYSTEM);
	assert_non_null(strstr(error.text, "cannot read /no/such/file: No such file"));
	assert_int_equal(xb_document_read("/tmp", &read, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "it is a folder"));
	assert_int_equal(xb_document_read("/dev/zero", &read, &error), XB_E_USAGE);
	assert_null(read);
}

int main(void)
{
#define with_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		with_folder(writing_replaces_the_old_file_whole),
		with_folder(a_new_file_has_the_usual_mode_and_an_old_one_keeps_its_own),
		with_folder(a_symbolic_link_stays_one),
		with_folder(a_full_disk_is_reported_and_a_device_is_not_replaced),
		with_folder(a_write_that_fails_leaves_the_old_file_and_no_other),
		with_folder(impossible_places_are_reported),
		with_folder(no_part_of_a_file_is_a_file),
		with_folder(garbage_is_refused),
		with_folder(deep_nesting_is_refused),
		with_folder(damaged_documents_are_refused_or_printable),
		with_folder(a_refusal_names_the_place_and_what_was_expected),
		with_folder(absurd_lengths_are_refused),
		with_folder(the_same_result_twice_is_refused),
		with_folder(what_cannot_be_read_is_said_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

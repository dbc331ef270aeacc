/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every kind of document can be written, read back and printed in every form. With a folder as argument it
 * leaves the documents there instead, for tests/integration/test_schema.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include "report_samples.h"

static const char *folder;

static void path_of(const char *name, char *path, size_t bytes)
{
	const char *place = folder ? folder : getenv("TMPDIR");
	snprintf(path, bytes, "%s/%s%s.json", place ? place : "/tmp", folder ? "" : "xb-test-report-", name);
}

static void every_document_survives_writing_and_reading(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLE_COUNT; i++) {
		char path[512];
		struct xb_error error = {0};
		json_t *made = samples[i].make(), *read = NULL;
		path_of(samples[i].name, path, sizeof(path));
		if (xb_document_write(made, path, &error) != 0 || xb_document_read(path, &read, &error) != 0)
			fail_msg("%s: %s", samples[i].name, error.text);
		for (int format = XB_FORMAT_TABLE; format <= XB_FORMAT_JSON; format++) {
			char *before = printed(made, (enum xb_format)format, 0),
			     *after = printed(read, (enum xb_format)format, 0);
			assert_string_equal(before, after); /* `report FILE` prints what the run printed */
			free(before);
			free(after);
		}
		json_decref(made);
		json_decref(read);
		if (folder == NULL)
			unlink(path);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_document_survives_writing_and_reading),
	};
	folder = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer that each built backend says it is, and the one that the report assumes for its name while it has
 * not come up: with two opinions, what a layer is compared with depends on whether it ran. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <libgen.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>
#include "control/plugin.h"
#include "report/internal.h"
#include "report_fixture.h"

/* Of the build that this program belongs to: BUILD/tests/PROGRAM, BUILD/plugins. */
static void plugin_folder(char *folder, size_t capacity)
{
	char self[PATH_MAX] = "";

	assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	assert_true((size_t)snprintf(folder, capacity, "%s/plugins", dirname(dirname(self))) < capacity);
}

/* In a process of its own: several MPIs in one would not get on. */
static int declared_layer(const char *folder, const char *name)
{
	pid_t child = fork();
	int status = -1;

	assert_true(child >= 0);
	if (child == 0) {
		const struct xb_transport *transport;
		struct xb_error error = {0};

		_exit(xb_plugin_load(folder, name, &transport, &error) ? 100 : (int)transport->layer);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void every_plugin_is_of_the_layer_that_the_report_assumes(void **state)
{
	char folder[PATH_MAX], names[400], arguments[420];
	struct fixture f;
	struct xb_results *r;

	(void)state;
	plugin_folder(folder, sizeof folder);
	xb_plugin_names(folder, names, sizeof names);
	if (!*names)
		skip(); /* only the unit tests were built */
	snprintf(arguments, sizeof arguments, "-t %s -s 8", names);
	r = fixture_begin(&f, arguments);
	for (size_t t = 0; t < f.line.config.transport_count; t++) {
		const char *name = f.line.config.transports[t].name;

		if (declared_layer(folder, name) != (int)r->transports[t].layer)
			fail_msg("%s: the plugin says layer %d, the report assumes %d", name,
				 declared_layer(folder, name), (int)r->transports[t].layer);
	}
	fixture_end(&f);
}

/* For each transport of the list, the place of the one below it. */
static void the_layer_below(void **state)
{
	static const struct {
		const char *transports;
		size_t below[4];
	} cases[] = {
		{"tcp,ofi:tcp,ucx:tcp,mpi:tcp", {XB_NO_SIZE, 0, 0, 0}},
		{"tcp,ucx:tcp,ofi:tcp", {XB_NO_SIZE, 0, 0}},
		{"verbs,ofi:verbs,ucx:rc,mpi:ucx", {XB_NO_SIZE, 0, 0, 2}},
		{"verbs,ofi:verbs,mpi:ofi", {XB_NO_SIZE, 0, 1}},
		{"ofi:psm2,mpi:psm2,mpi:ofi/psm2", {XB_NO_SIZE, 0, 0}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char arguments[100];
		struct fixture f;
		struct xb_results *r;

		snprintf(arguments, sizeof arguments, "-t %s -s 8", cases[i].transports);
		r = fixture_begin(&f, arguments);
		for (size_t t = 0; t < f.line.config.transport_count; t++)
			if (xb_results_below(r, t) != cases[i].below[t])
				fail_msg("%s: below %s is number %zu, not %zu", cases[i].transports,
					 f.line.config.transports[t].label, xb_results_below(r, t),
					 cases[i].below[t]);
		fixture_end(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_plugin_is_of_the_layer_that_the_report_assumes),
		cmocka_unit_test(the_layer_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

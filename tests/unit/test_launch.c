/* SPDX-License-Identifier: BSD-3-Clause */
/* What launchers make of names, commands and ssh's words; no host but this one is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/spawn.h"

static void words_survive_a_remote_shell(void **state)
{
	static const char *const words[] = {"plain", "two words",   "it's",	 "'",		"\"$HOME\"",
					    "`id`",  "$(touch /x)", "a;b|c&d",	 "back\\slash", "",
					    "*?[a]", "-n",	    "tab\there", "new\nline"};
	struct xb_argv argv = {.count = 0};
	char expected[512] = "", found[512] = "", command[2048];
	(void)state;
	xb_argv_add(&argv, "left out");
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		xb_argv_add(&argv, "%s", words[i]);
		strcat(strcat(expected, words[i]), "|");
	}
	char *text = xb_argv_shell(&argv, 1);
	snprintf(command, sizeof command, "printf '%%s|' %s", text);
	FILE *shell = popen(command, "re"); /* NOLINT(cert-env33-c): a shell is what is tested */
	size_t n = fread(found, 1, sizeof found - 1, shell);
	found[n] = 0;
	assert_int_equal(pclose(shell), 0);
	assert_string_equal(found, expected);
	free(text);
	xb_argv_free(&argv);
}

static int exited(int code)
{
	return code << 8;
}

static void the_end_of_ssh_is_explained(void **state)
{
	static const struct {
		int code;
		const char *output, *says;
	} cases[] = {
		{255, "ssh: connect to host n1 port 22: Connection refused", "cannot be reached"},
		{255, "ssh: connect to host n1 port 22: Connection timed out", "cannot be reached"},
		{255, "ssh: Could not resolve hostname n1: Name or service not known", "is the name right"},
		{255, "", "nothing"},
		{255, "me@n1: Permission denied (publickey).", "does not let us in"},
		{255, "Received disconnect: Too many authentication failures", "does not let us in"},
		{255, "Host key verification failed.", "does not trust"},
		{127, "sh: 1: exec: /opt/xb: not found", "--remote-path"},
		{126, "sh: 1: exec: /opt/xb: Permission denied", "cannot be executed"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xb_error error = {0};
		assert_int_equal(
			xb_ssh_explain("n1", "/opt/xb", exited(cases[i].code), cases[i].output, &error),
			XB_E_UNAVAILABLE);
		if (!strstr(error.text, cases[i].says) || !strstr(error.text, "n1"))
			fail_msg("\"%s\" does not say \"%s\"", error.text, cases[i].says);
	}
	/* a worker that ended by itself, or was killed: not ssh's affair */
	assert_int_equal(xb_ssh_explain("n1", "/opt/xb", exited(2), "whatever", NULL), 0);
	assert_int_equal(xb_ssh_explain("n1", "/opt/xb", exited(0), "", NULL), 0);
	assert_int_equal(xb_ssh_explain("n1", "/opt/xb", SIGKILL, "", NULL), 0);
}

static void host_names_are_taken_or_refused(void **state)
{
	static const char *const good[] = {"a", "n1,n2", "u@n1.example.org", "10.0.0.1,fd00::1", "a,a"};
	static const char *const bad[] = {"",	 ",",  "a,",  "-oProxyCommand=x", "a b", "a;b",
					  "a$b", "@a", "a\nb"};
	struct xb_config config = {0};
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(xb_parse_hosts(good[i], &config, NULL), 0);
	assert_int_equal(config.host_count, 8);
	xb_hosts_free(&config);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(xb_parse_hosts(bad[i], &config, NULL), XB_E_USAGE);
		xb_hosts_free(&config);
	}
}

static void a_host_file_is_read_and_its_faults_have_lines(void **state)
{
	char path[] = "/tmp/xb-hosts-XXXXXX";
	struct xb_config config = {0};
	struct xb_error error = {0};
	int fd = mkstemp(path);
	(void)state;
	assert_true(fd >= 0 && dprintf(fd, "# all\n\n n1 slots=2\nn2\t# far\r\nn3\n") > 0);
	assert_int_equal(xb_read_host_file(path, &config, NULL), 0);
	assert_int_equal(config.host_count, 3);
	assert_string_equal(config.hosts[0], "n1");
	assert_string_equal(config.hosts[1], "n2");
	xb_hosts_free(&config);
	assert_true(dprintf(fd, "n4;rm\n") > 0);
	assert_int_equal(xb_read_host_file(path, &config, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "line 6"));
	xb_hosts_free(&config);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(xb_read_host_file(path, &config, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "names no host"));
	close(fd);
	unlink(path);
}

static void this_machine_is_known_by_its_names(void **state)
{
	char name[256], address[80];
	(void)state;
	gethostname(name, sizeof name);
	assert_true(xb_host_is_here("localhost"));
	assert_true(xb_host_is_here("me@localhost"));
	assert_true(xb_host_is_here(name));
	assert_true(xb_host_is_here("127.0.0.1"));
	assert_false(xb_host_is_here("192.0.2.1")); /* for documentation: nobody's */
	assert_int_equal(xb_control_address("lo", NULL, address, sizeof address, NULL), 0);
	assert_string_equal(address, "127.0.0.1");
	assert_int_equal(xb_control_address(NULL, "127.0.0.1", address, sizeof address, NULL), 0);
	assert_string_equal(address, "127.0.0.1");
	assert_int_equal(xb_control_address("10.1.2.3", NULL, address, sizeof address, NULL), 0);
	assert_string_equal(address, "10.1.2.3");
	assert_int_equal(xb_control_address("nosuch0", NULL, address, sizeof address, NULL), XB_E_USAGE);
}

static void the_launcher_follows_from_what_is_asked(void **state)
{
	static char host[] = "a";
	char *hosts[] = {host};
	struct xb_config config = {0};
	(void)state;
	unsetenv("SLURM_JOB_ID");
	assert_ptr_equal(xb_launcher_choose(&config, "tcp"), &xb_launcher_local);
	assert_ptr_equal(xb_launcher_choose(&config, "mpi"), &xb_launcher_mpirun);
	assert_ptr_equal(xb_launcher_choose(&config, "mpi@mpich"), &xb_launcher_mpirun);
	assert_ptr_equal(xb_launcher_choose(&config, "mpifast"), &xb_launcher_local);
	config.hosts = hosts;
	config.host_count = 1;
	assert_ptr_equal(xb_launcher_choose(&config, "tcp"), &xb_launcher_ssh);
	assert_ptr_equal(xb_launcher_choose(&config, "mpi"), &xb_launcher_mpirun);
	config.launcher = XB_LAUNCHER_MPIRUN;
	assert_ptr_equal(xb_launcher_choose(&config, "tcp"), &xb_launcher_mpirun);
	config.launcher = XB_LAUNCHER_SRUN;
	assert_ptr_equal(xb_launcher_choose(&config, "mpi"), &xb_launcher_srun);
	config.listener = host;
	assert_ptr_equal(xb_launcher_choose(&config, "tcp"), &xb_launcher_listen);
}

static void a_command_that_lacks_words_is_not_run(void **state)
{
	struct xb_spawn_options options = {.death_signal = SIGKILL};
	struct xb_argv argv = {.count = 0};
	struct xb_launched process;
	struct xb_error error = {0};
	(void)state;
	xb_argv_add(&argv, "true");
	while (argv.count < XB_SPAWN_ARGS)
		xb_argv_add(&argv, "word");
	assert_int_equal(xb_argv_whole(&argv, &error), 0);
	xb_argv_add(&argv, "one too many");
	assert_int_equal(xb_spawn(&argv, &options, &process, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "more than 512 words"));
	xb_argv_free(&argv);
	assert_int_equal(xb_argv_whole(&argv, &error), 0);
}

static void names_too_long_for_a_listener_are_refused(void **state)
{
	static char listener[] = "127.0.0.1", name[100], value[] = "1";
	struct xb_config config = {.listener = listener};
	struct xb_transport_spec spec = {.name = "tcp"};
	const unsigned char key[32] = {0}, here[2] = {0};
	const char *hosts[2] = {"a", "b"};
	struct xb_launch_request request = {.config = &config,
					    .spec = &spec,
					    .endpoints = 2,
					    .hosts = hosts,
					    .here = here,
					    .control_address = "127.0.0.1:1",
					    .key = key,
					    .run_id = "0",
					    .self = "/bin/true"};
	struct xb_launched processes[4];
	struct xb_error error = {0};
	size_t count = 0;
	(void)state;
	memset(name, 'X', sizeof name - 1);
	for (spec.env_count = 0; spec.env_count < 30; spec.env_count++)
		spec.env[spec.env_count] = (struct xb_key_value){name, value};
	assert_int_equal(xb_launcher_listen.start(&request, processes, 4, &count, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "env.NAME"));
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_survive_a_remote_shell),
		cmocka_unit_test(the_end_of_ssh_is_explained),
		cmocka_unit_test(host_names_are_taken_or_refused),
		cmocka_unit_test(a_host_file_is_read_and_its_faults_have_lines),
		cmocka_unit_test(this_machine_is_known_by_its_names),
		cmocka_unit_test(the_launcher_follows_from_what_is_asked),
		cmocka_unit_test(a_command_that_lacks_words_is_not_run),
		cmocka_unit_test(names_too_long_for_a_listener_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

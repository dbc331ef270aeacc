/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/options.h"
#include "engine/block.h"

#define MAX_WORDS 64

static struct xb_command_line line; /* large */

/* Parses "xportbench WORD WORD ..."; a word may not hold a blank. */
static int parse(const char *words, struct xb_error *error)
{
	char *argv[MAX_WORDS + 1] = {"xportbench"}, *copy = strdup(words), *rest = copy;
	int argc = 1, rc;

	for (char *word; argc < MAX_WORDS && (word = strtok_r(rest, " ", &rest));)
		argv[argc++] = word;
	rc = xb_parse_command_line(argc, argv, &line, error);
	free(copy); /* nothing may point into argv */
	return rc;
}

static void accept(const char *words)
{
	struct xb_error error = {0};

	if (parse(words, &error))
		fail_msg("'%s': %s", words, error.text);
}

static void defaults_are_those_of_the_design(void **state)
{
	const struct xb_config *c = &line.config;

	(void)state;
	accept("-t tcp");
	assert_int_equal(line.command, XB_COMMAND_RUN);
	assert_int_equal(c->bench_count, 1);
	assert_int_equal(c->benches[0], XB_BENCH_PINGPONG);
	assert_int_equal(c->op, XB_OP_SEND);
	assert_int_equal(c->size_count, 23);
	assert_int_equal(c->sizes[22], 4194304);
	assert_int_equal(c->iterations + c->warmup + c->seed, 0);
	assert_int_equal(c->window, 64);
	assert_int_equal(c->launches_min, 7);
	assert_int_equal(c->launches_max, 25);
	assert_true(c->time_s == 60.0 && c->ci_percent == 2.0);
	assert_null(c->baseline);
	assert_null(c->output);
	assert_null(c->plugin_path);
	assert_int_equal(c->launcher, XB_LAUNCHER_AUTO);
	assert_null(c->mpirun_command);
	assert_null(c->ssh_command);
	assert_int_equal(c->host_count, 0);
	assert_int_equal(c->endpoints, 2);
	assert_int_equal(c->bind_count, 0);
	assert_int_equal(c->format, XB_FORMAT_TABLE);
	assert_int_equal(c->quiet + c->verbose, 0);
	xb_command_line_free(&line);
}

static void every_option_reaches_the_configuration(void **state)
{
	const struct xb_config *c = &line.config;

	(void)state;
	accept("--transports tcp,ofi:tcp,label=o --benchmarks bw,pingpong,bw,bibw --op write --sizes 0,8 "
	       "--iterations 1000000 "
	       "--warmup 5 --window 1024 --launches 3:9 --time 86400 --ci 0.01 --baseline o --seed 42 --bind "
	       "3,2 "
	       "--launcher mpirun --mpirun-command mpiexec --hosts n1,u@n2 --remote-path /q "
	       "--control-interface eth1 "
	       "--ssh-command ssh --srun-command srun --link-rate 2.5G --plugin-dir /p --output r.json "
	       "--format csv -vv");
	assert_int_equal(c->transport_count, 2);
	assert_int_equal(c->bench_count, 3);
	assert_int_equal(c->benches[0], XB_BENCH_BW);
	assert_int_equal(c->benches[1], XB_BENCH_PINGPONG);
	assert_int_equal(c->benches[2], XB_BENCH_BIBW);
	assert_int_equal(c->op, XB_OP_WRITE);
	assert_int_equal(c->size_count, 2);
	assert_int_equal(c->iterations, 1000000);
	assert_int_equal(c->warmup, 5);
	assert_int_equal(c->window, 1024);
	assert_int_equal(c->launches_min, 3);
	assert_int_equal(c->launches_max, 9);
	assert_true(c->time_s == 86400 && c->ci_percent == 0.01);
	assert_string_equal(c->baseline, "o");
	assert_int_equal(c->seed, 42);
	assert_int_equal(c->bind_count, 2);
	assert_int_equal(c->bind[0], 3);
	assert_int_equal(c->bind[1], 2);
	assert_int_equal(c->launcher, XB_LAUNCHER_MPIRUN);
	assert_string_equal(c->mpirun_command, "mpiexec");
	assert_int_equal(c->host_count, 2);
	assert_string_equal(c->hosts[1], "u@n2");
	assert_int_equal(c->endpoints, 2);
	assert_string_equal(c->remote_path, "/q");
	assert_string_equal(c->control_interface, "eth1");
	assert_string_equal(c->ssh_command, "ssh");
	assert_string_equal(c->srun_command, "srun");
	assert_true(c->link_bits_per_s == UINT64_C(2500000000));
	assert_string_equal(c->plugin_path, "/p");
	assert_string_equal(c->output, "r.json");
	assert_int_equal(c->format, XB_FORMAT_CSV);
	assert_int_equal(c->verbose, 2);
	xb_command_line_free(&line);
}

static void endpoints_hosts_and_cpus_fit_together(void **state)
{
	(void)state;
	accept("-t tcp -H a,b,c,d");
	assert_int_equal(line.config.endpoints, 4);
	xb_command_line_free(&line);
	accept("-t tcp -H a --endpoints 2");
	assert_int_equal(line.config.endpoints, 2);
	xb_command_line_free(&line);
	accept("-t tcp -H a,b --bind 3"); /* one for all: each has a host of its own */
	assert_int_equal(line.config.bind_count, 1);
	xb_command_line_free(&line);
	accept("-t tcp --endpoints 3 --bind 3,4,5");
	assert_int_equal(line.config.bind_count, 3);
	xb_command_line_free(&line);
}

static void options_may_be_written_in_every_usual_way(void **state)
{
	(void)state;
	accept("-ttcp -s1:4 --launches=2 -W8 --format=json -o/x/y");
	assert_int_equal(line.config.size_count, 3);
	assert_int_equal(line.config.launches_min, 2);
	assert_int_equal(line.config.launches_max, 2); /* one number: exactly so many */
	assert_int_equal(line.config.window, 8);
	assert_string_equal(line.config.output, "/x/y");
	xb_command_line_free(&line);
	accept("-vt tcp -n auto -x auto --seed random --bind none");
	assert_int_equal(line.config.verbose, 1);
	assert_int_equal(line.config.bind_count, 1);
	assert_int_equal(line.config.bind[0], -1);
	xb_command_line_free(&line);
	accept("-t tcp -W 1 -W 2 --bind none --bind auto"); /* the last one counts */
	assert_int_equal(line.config.window, 2);
	assert_int_equal(line.config.bind_count, 0);
	xb_command_line_free(&line);
	accept("-t tcp --time 1.5 --ci 0.3");
	assert_true(line.config.time_s == 1.5 && line.config.ci_percent == 0.3);
	xb_command_line_free(&line);
}

static void commands_and_their_operands(void **state)
{
	(void)state;
	accept("list --plugin-dir /p -v");
	assert_int_equal(line.command, XB_COMMAND_LIST);
	assert_int_equal(line.argument_count, 0);
	xb_command_line_free(&line);
	accept("report run.json --format csv");
	assert_int_equal(line.command, XB_COMMAND_REPORT);
	assert_int_equal(line.argument_count, 1);
	assert_string_equal(line.arguments[0], "run.json");
	assert_int_equal(line.config.format, XB_FORMAT_CSV);
	xb_command_line_free(&line);
	accept("--format json report -- -odd.json");
	assert_string_equal(line.arguments[0], "-odd.json");
	xb_command_line_free(&line);
	accept("worker 127.0.0.1:5 --team 3 -t list -- --help");
	assert_int_equal(line.command, XB_COMMAND_WORKER);
	assert_int_equal(line.argument_count, 7);
	assert_string_equal(line.arguments[6], "--help");
	xb_command_line_free(&line);
	accept("probe ucx --plugin-dir /p");
	assert_int_equal(line.command, XB_COMMAND_PROBE);
	assert_string_equal(line.arguments[0], "ucx");
	xb_command_line_free(&line);
	accept("man");
	assert_int_equal(line.command, XB_COMMAND_MAN);
	xb_command_line_free(&line);
}

static void help_and_version_come_before_everything(void **state)
{
	static const struct {
		const char *words;
		enum xb_command command;
	} cases[] = {
		{"--help", XB_COMMAND_HELP},
		{"-h", XB_COMMAND_HELP},
		{"help", XB_COMMAND_HELP},
		{"list --help", XB_COMMAND_HELP},
		{"-t tcp -h --nonsense", XB_COMMAND_HELP},
		{"--version", XB_COMMAND_VERSION},
		{"-V", XB_COMMAND_VERSION},
		{"-vh", XB_COMMAND_HELP},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		accept(cases[i].words);
		assert_int_equal(line.command, cases[i].command);
		xb_command_line_free(&line);
	}
}

static void bad_command_lines_are_refused_with_a_reason(void **state)
{
	static const struct {
		const char *words, *says;
	} cases[] = {
		{"", "no transport is given"},
		{"-s 1:4", "'xportbench list'"},
		{"-t", "needs a value (LIST)"},
		{"-t -s 1", "the option '-s' follows"},
		{"--sizes --time 4 -t tcp", "the option '--time' follows"},
		{"-t tcp -t mpi", "given twice"},
		{"-t tcp tcp", "unknown command 'tcp'"},
		{"lst", "did you mean 'list'"},
		{"reprot x", "did you mean 'report'"},
		{"-t tcp --launchs 7", "did you mean --launches?"},
		{"-t tcp --launch 7", "did you mean --launches?"},
		{"-t tcp --lanuches 7", "did you mean --launches?"},
		{"-t tcp --tme 7", "did you mean --time?"},
		{"-t tcp -time 7", "did you mean --time?"},
		{"-t tcp --size 7", "did you mean --sizes?"},
		{"-t tcp --size=7", "did you mean --sizes?"},
		{"-t tcp --complete-nonsense", "'xportbench --help' shows them all"},
		{"-t tcp -z", "unknown option '-z'"},
		{"-t tcp -qz", "unknown option '-qz'"},
		{"-t tcp --quiet=1", "takes no value"},
		{"-t tcp -q -v", "contradict"},
		{"-t tcp --hosts a", "name two hosts"},
		{"-t tcp --hosts a,", "cannot be the name of a host"},
		{"-t tcp --hosts a,-oProxyCommand=x", "cannot be the name of a host"},
		{"-t tcp --hosts a,b;c", "cannot be the name of a host"},
		{"-t tcp --hosts a,b,c --endpoints 2", "give at least 3"},
		{"-t tcp --hosts a,b --launcher local", "choose ssh, mpirun or srun"},
		{"-t tcp --host-file /nonexistent/hosts", "cannot read"},
		{"-t tcp --endpoints 1", "from 2 to 1024"},
		{"-t tcp --endpoints 1025", "from 2 to 1024"},
		{"-t tcp --link-rate 0", "bits per second"},
		{"-t tcp --link-rate 10Q", "bits per second"},
		{"-t tcp --link-rate 10GG", "bits per second"},
		{"-t tcp -b pingpong,", "'' is not allowed"},
		{"-t tcp -b ping", "choose from pingpong, bw, bibw, swap"},
		{"-t tcp -b swap --op write", "sends and receives"},
		{"-t tcp -b swap --protocol 11", "--protocol: '11' is not allowed"},
		{"-t tcp -b swap --protocol 1,", "numbers from 0 to 10"},
		{"-t tcp -b swap --protocol 3-1", "numbers from 0 to 10"},
		{"-t tcp -b swap --protocol 0 --order unordered",
		 "protocol 0 is not offered with --order unordered"},
		{"-t tcp -b swap --protocol 6 --order delayed",
		 "protocol 6 is not offered with --order delayed"},
		{"-t tcp -b swap --protocol 10 --overlap on", "protocol 10 has no stages that could overlap"},
		{"-t tcp -b swap --order both", "choose from ordered, unordered, delayed"},
		{"-t tcp -b swap --overlap yes", "choose from off, on, both, or auto"},
		{"-t tcp -b swap --cache cold", "choose from inv, 1, 10, or all"},
		{"-t tcp -b swap --cache 1,", "'' is not allowed"},
		{"-t tcp -b swap --overlap-depth 1025", "1 to 1024, or all"},
		{"-t tcp -b swap --overlap-depth 2x", "'2x' is not allowed"},
		{"-t tcp -b swap --total 4", "at least 8 bytes"},
		{"-t tcp -b swap -s 3K", "3072 bytes do not divide the 2097152 bytes"},
		{"-t tcp -b pingpong,swap -s 1,3K", "none of the sizes divides"},
		{"-t tcp -b swap --format imb", "no place for swaps"},
		{"-t tcp -b bw,bibw,pingpong,lat", "'lat' is not allowed"},
		{"-t tcp --op put", "choose from send, write, read, write-poll"},
		{"-t null --op write-poll -b pingpong,bw", "leave out the other benchmarks"},
		{"-t null --op write-poll -s 0:8", "0 bytes"},
		{"-t tcp --format commtest", "add -b swap"},
		{"-t tcp --format xml", "choose from table, csv, json, imb, osu, now, commtest"},
		{"-t tcp --reference=", "name of a published table"},
		{"-t tcp --launcher prrte", "choose from auto, local, ssh, mpirun, srun"},
		{"-t tcp -s 2G", "-s, --sizes: message size '2G' is too large"},
		{"-t tcp -n 0", "1 to 1000000, or auto"},
		{"-t tcp -n 1000001", "1 to 1000000, or auto"},
		{"-t tcp -n -5", "'-5'"},
		{"-t tcp -n 5x", "'5x'"},
		{"-t tcp -n 18446744073709551617", "1 to 1000000"},
		{"-t tcp -x 0", "1 to 1000000, or auto"},
		{"-t tcp -W 0", "1 to 1024"},
		{"-t tcp -W 1025", "1 to 1024"},
		{"-t tcp -W 1e2", "1 to 1024"},
		{"-t tcp --launches 0", "from 1 to 1000"},
		{"-t tcp --launches 1001", "from 1 to 1000"},
		{"-t tcp --launches 7:", "MIN:MAX"},
		{"-t tcp --launches :7", "MIN:MAX"},
		{"-t tcp --launches 7:8:9", "MIN:MAX"},
		{"-t tcp --launches 9:7", "larger than the maximum"},
		{"-t tcp --launches 7-9", "MIN:MAX"},
		{"-t tcp --time 0", "1 to 86400"},
		{"-t tcp --time 0.99", "1 to 86400"},
		{"-t tcp --time 86401", "1 to 86400"},
		{"-t tcp --time nan", "1 to 86400"},
		{"-t tcp --time inf", "1 to 86400"},
		{"-t tcp --time -1", "1 to 86400"},
		{"-t tcp --time 60s", "1 to 86400"},
		{"-t tcp --time 1e2", "1 to 86400"},
		{"-t tcp --time 0x10", "1 to 86400"},
		{"-t tcp --time 60.", "1 to 86400"},
		{"-t tcp --time .5", "1 to 86400"},
		{"-t tcp --time 1,5", "1 to 86400"},
		{"-t tcp --time=", "1 to 86400"},
		{"-t tcp --ci 0", "0.01 to 100"},
		{"-t tcp --ci 100.1", "0.01 to 100"},
		{"-t tcp --ci 2%", "0.01 to 100"},
		{"-t tcp --ci NaN", "0.01 to 100"},
		{"-t tcp --seed 0", "or random"},
		{"-t tcp --seed 9007199254740992", "1 to 9007199254740991"},
		{"-t tcp --seed -1", "or random"},
		{"-t tcp --seed 18446744073709551617", "1 to 9007199254740991"},
		{"-t tcp --bind 1", "2 endpoints"},
		{"-t tcp --bind 1,2,3", "2 endpoints"},
		{"-t tcp --bind 1,", "2 endpoints"},
		{"-t tcp --bind ,1", "2 endpoints"},
		{"-t tcp --bind 1,-1", "2 endpoints"},
		{"-t tcp --bind 0-1", "2 endpoints"},
		{"-t tcp --bind 0,8192", "0 to 8191"},
		{"-t tcp --bind 0,99999999999999999999", "0 to 8191"},
		{"-t tcp --baseline mpi", "'mpi' is the label of no transport of this run; they are tcp"},
		{"-t tcp,label=x --baseline tcp", "they are x"},
		{"-t tcp --output=", "the value is empty"},
		{"-t tcp -o -", "--format json"},
		{"-t tcp --mpirun-command=", "the value is empty"},
		{"-t tcp --plugin-dir=", "the value is empty"},
		{"report", "report needs FILE"},
		{"report a b", "'b' is given as well"},
		{"report a -t tcp", "means nothing to the command 'report'"},
		{"list x", "list takes no operand, but 'x'"},
		{"list -s 1", "-s, --sizes means nothing to the command 'list'"},
		{"probe", "probe needs NAME"},
		{"help me", "help takes no operand"},
		{"-t tcp --\x1b[31m", "'--?[31m'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xb_error error = {0};

		if (parse(cases[i].words, &error) != XB_E_USAGE || error.status != XB_E_USAGE)
			fail_msg("'%s' is not refused", cases[i].words);
		if (!strstr(error.text, cases[i].says))
			fail_msg("'%s': \"%s\" does not say \"%s\"", cases[i].words, error.text,
				 cases[i].says);
		assert_null(line.arguments); /* nothing to free */
	}
}

static void errors_need_no_place(void **state)
{
	(void)state;
	assert_int_equal(parse("-t tcp --nonsense", NULL), XB_E_USAGE);
	assert_int_equal(parse("-t tcp -W 0", NULL), XB_E_USAGE);
	assert_int_equal(parse("", NULL), XB_E_USAGE);
}

/* --- swap: what the options come to together */

static void options_of_the_swap_make_variants_and_sizes(void **state)
{
	const struct xb_swap_config *c = &line.config.swap;
	struct xb_swap swap;

	(void)state;
	accept("-t tcp -b swap");
	assert_int_equal(c->variant_count, 11);
	assert_int_equal(c->size_count, 11);
	assert_int_equal(c->sizes[0], 2048);
	assert_int_equal(c->sizes[10], 2097152);
	assert_int_equal(xb_config_largest_bytes(&line.config), 2097152);
	assert_int_equal(xb_config_most_window(&line.config), 64);
	xb_command_line_free(&line);
	accept("-t tcp -b swap --order unordered --cache all --overlap both --total 1M -s 64K,8");
	assert_int_equal(c->variant_count, 3 * (9 + 8));
	assert_int_equal(c->size_count, 2);
	swap = xb_swap_of(&line.config, &c->variants[c->variant_count - 1], 8);
	assert_int_equal(swap.messages, 131072);
	assert_int_equal(swap.order, XB_SWAP_UNORDERED);
	assert_int_equal(swap.overlap, 1);
	assert_int_equal(xb_swap_batch(&swap), XB_MAX_WINDOW); /* no more than the window of any benchmark */
	assert_int_equal(xb_config_most_window(&line.config), XB_MAX_WINDOW);
	xb_command_line_free(&line);
	accept("-t tcp -b swap --protocol 0,2-4,9:10 --overlap-depth 8");
	assert_int_equal(c->variant_count, 6 + 4);
	swap = xb_swap_of(&line.config, &c->variants[9], 2048);
	assert_int_equal(xb_swap_batch(&swap), 8);
	xb_command_line_free(&line);
	accept("-t tcp -b swap --overlap-depth all");
	assert_int_equal(c->variant_count, 11 + 8);
	xb_command_line_free(&line);
	accept("-t tcp -b pingpong,swap -s 1:4M --order delayed");
	assert_int_equal(c->size_count, 19); /* 8 bytes to 2M */
	assert_int_equal(c->variant_count, 8);
	assert_int_equal(xb_config_largest_message(&line.config), 4194304);
	xb_command_line_free(&line);
	accept("-t tcp --protocol 0 --order unordered"); /* nothing is swapped, nothing is wrong */
	assert_int_equal(c->variant_count, 0);
	xb_command_line_free(&line);
	accept("-t tcp -s now,3");
	assert_int_equal(line.config.size_count, 25);
	assert_int_equal(line.config.sizes[24], 1048576);
	xb_command_line_free(&line);
}

static void the_echo_says_what_was_configured(void **state)
{
	json_t *echo, *again;
	char *text;

	(void)state;
	accept("-t tcp,ucx:tcp,label=u,env.A=b\\,c -s 0,64K -b bw --launches 2:3 --bind 1,0 --time 1.5");
	echo = xb_config_json(&line.config);
	text = json_dumps(echo, JSON_COMPACT | JSON_REAL_PRECISION(6));
	assert_string_equal(text,
			    "{\"transports\":[\"tcp\",\"ucx:tcp,label=u,env.A=b\\\\,c\"],\"benchmarks\":["
			    "\"bw\"],\"op\":\"send\","
			    "\"sizes\":[0,65536],\"iterations\":\"auto\",\"warmup\":\"auto\",\"window\":64,"
			    "\"protocol\":\"all\",\"order\":\"ordered\",\"total\":2097152,\"cache\":[\"1\"],"
			    "\"overlap\":\"auto\",\"overlap_depth\":\"all\","
			    "\"launches\":[2,3],"
			    "\"time\":1.5,\"ci\":2.0,\"baseline\":null,\"seed\":\"random\",\"hosts\":[],"
			    "\"endpoints\":2,\"bind\":[1,0],\"launcher\":\"auto\",\"ssh_command\":null,"
			    "\"mpirun_command\":null,\"srun_command\":null,\"remote_path\":null,"
			    "\"control_interface\":null,\"link_rate\":\"auto\",\"plugin_dir\":null,\"pairs\":"
			    "\"all\",\"serial\":false}");
	free(text);
	xb_command_line_free(&line);
	/* what it says of the transports can be given again */
	accept("-t tcp,ucx:tcp,label=u,env.A=b\\,c -s 0,65536 -b bw --launches 2:3 --bind 1,0 --time 1.5");
	again = xb_config_json(&line.config);
	assert_true(json_equal(echo, again));
	json_decref(echo);
	json_decref(again);
	xb_command_line_free(&line);
	accept("-t tcp --plugin-dir /\xff\xfe --bind none -n 5 --seed 9007199254740991");
	echo = xb_config_json(&line.config);
	assert_string_equal(json_string_value(json_object_get(echo, "plugin_dir")), "/\?\?");
	assert_string_equal(json_string_value(json_object_get(echo, "bind")), "none");
	assert_int_equal(json_integer_value(json_object_get(echo, "iterations")), 5);
	assert_true(json_integer_value(json_object_get(echo, "seed")) == 9007199254740991);
	json_decref(echo);
	xb_command_line_free(&line);
}

/* --- the table --- */

static char *printed(void (*print)(void *))
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	print(out);
	fclose(out);
	return text;
}

static void every_option_is_complete_and_unique(void **state)
{
	(void)state;
	for (size_t i = 0; i < xb_option_count; i++) {
		const struct xb_option *option = &xb_options[i];

		assert_true(option->help && option->help[strlen(option->help) - 1] == '.');
		assert_true(option->group < XB_GROUP_COUNT);
		assert_true(option->commands);
		assert_true(!option->fallback || option->set || option->text_wanted);
		assert_true(!option->text_wanted || (!option->set && !option->echo));
		assert_true(strlen(option->name) < 24); /* WORD_MAX of the near misses */
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(option->name, xb_options[j].name);
			assert_true(!option->letter || option->letter != xb_options[j].letter);
		}
	}
	assert_true(xb_option_count <= 64); /* a bit each in the parser */
}

static void help_and_manual_name_every_option(void **state)
{
	char *help = printed(xb_print_help), *man = printed(xb_print_man);

	(void)state;
	for (size_t i = 0; i < xb_option_count; i++) {
		char in_help[64], in_man[128], *escaped = in_man;

		snprintf(in_help, sizeof(in_help), "--%s", xb_options[i].name);
		escaped += sprintf(in_man, "Fl \"\\-");
		for (const char *p = xb_options[i].name; *p; p++)
			escaped += sprintf(escaped, *p == '-' ? "\\-" : "%c", *p);
		sprintf(escaped, "\"");
		assert_int_equal(!strstr(help, in_help), xb_options[i].hidden);
		assert_int_equal(!strstr(man, in_man), xb_options[i].hidden);
		if (xb_options[i].fallback) {
			snprintf(in_help, sizeof(in_help), " %s)", xb_options[i].fallback);
			assert_non_null(strstr(help, in_help));
		}
	}
	free(help);
	free(man);
}

static void help_fits_eighty_columns(void **state)
{
	char *help = printed(xb_print_help), *rest = help;

	(void)state;
	for (char *row; (row = strsep(&rest, "\n"));) {
		if (strlen(row) > 80)
			fail_msg("%zu columns: %s", strlen(row), row);
	}
	free(help);
}

/* A program that reads the page has nothing to say about it; skipped where it is not installed. */
static void page_passes(char *const command[])
{
	char page[] = "/tmp/xb-man-XXXXXX", said[] = "/tmp/xb-said-XXXXXX", output[512] = "";
	char *man = printed(xb_print_man);
	int page_fd = mkstemp(page), said_fd = mkstemp(said), status;
	pid_t child;

	assert_int_equal(write(page_fd, man, strlen(man)), strlen(man));
	free(man);
	child = fork();
	if (child == 0) {
		lseek(page_fd, 0, SEEK_SET);
		dup2(page_fd, 0);
		dup2(said_fd, 1);
		dup2(said_fd, 2);
		execvp(command[0], command);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(pread(said_fd, output, sizeof(output) - 1, 0) >= 0);
	close(page_fd);
	close(said_fd);
	remove(page);
	remove(said);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		skip();
	if (status || *output)
		fail_msg("%s: status %d, %s", command[0], status, output);
}

static void mandoc_finds_no_fault_in_the_manual(void **state)
{
	char *const command[] = {"mandoc", "-T", "lint", "-W", "all", NULL};

	(void)state;
	page_passes(command);
}

static void groff_finds_no_fault_in_the_manual(void **state)
{
	char *const command[] = {"groff", "-mandoc", "-ww", "-z", NULL};

	(void)state;
	page_passes(command);
}

static void man_finds_no_fault_in_the_manual(void **state)
{
	char *const command[] = {"sh", "-c", "man --warnings -l - >/dev/null", NULL};

	(void)state;
	page_passes(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_those_of_the_design),
		cmocka_unit_test(every_option_reaches_the_configuration),
		cmocka_unit_test(endpoints_hosts_and_cpus_fit_together),
		cmocka_unit_test(options_may_be_written_in_every_usual_way),
		cmocka_unit_test(commands_and_their_operands),
		cmocka_unit_test(help_and_version_come_before_everything),
		cmocka_unit_test(bad_command_lines_are_refused_with_a_reason),
		cmocka_unit_test(errors_need_no_place),
		cmocka_unit_test(options_of_the_swap_make_variants_and_sizes),
		cmocka_unit_test(the_echo_says_what_was_configured),
		cmocka_unit_test(every_option_is_complete_and_unique),
		cmocka_unit_test(help_and_manual_name_every_option),
		cmocka_unit_test(help_fits_eighty_columns),
		cmocka_unit_test(mandoc_finds_no_fault_in_the_manual),
		cmocka_unit_test(groff_finds_no_fault_in_the_manual),
		cmocka_unit_test(man_finds_no_fault_in_the_manual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

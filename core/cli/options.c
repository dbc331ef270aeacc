/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table: for every option its setter, its echo and its texts. */
#include <stddef.h>
#include <stdlib.h>
#include "../engine/block.h"
#include "options.h"
#include "options_hosts.h"
#include "show.h"
#include "swap_options.h"

#define LAUNCHES_MAX 1000u
#define CPU_MAX 8191u

/* --- values --- */

int xb_option_whole(const char *text, uint64_t low, uint64_t high, uint64_t *out, struct xb_error *error)
{
	uint64_t value = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (digit > high || value > (high - digit) / 10) {
			value = high; /* too large: stop counting, report below */
			break;
		}
		value = value * 10 + digit;
	}
	if (p == text || *p || value < low)
		return xb_fail(error, XB_E_USAGE,
			       "'%s' is not allowed; give a whole number from %llu to %llu", XB_SHOW(text),
			       (unsigned long long)low, (unsigned long long)high);
	*out = value;
	return 0;
}

/* Digits with an optional fraction; read by hand, for strtod takes nan, inf, hex and the locale's decimal
 * point. */
int xb_option_decimal(const char *text, double low, double high, double *out, struct xb_error *error)
{
	double digits = 0, scale = 1, value;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++)
		digits = digits * 10 + (*p - '0');
	if (p > text && p[0] == '.' && p[1]) {
		for (p++; *p >= '0' && *p <= '9'; p++) {
			digits = digits * 10 + (*p - '0');
			scale *= 10;
		}
	}
	value = digits / scale; /* rounded once; not a number if both overflowed */
	if (p == text || *p || !(value >= low && value <= high))
		return xb_fail(error, XB_E_USAGE, "'%s' is not allowed; give a number from %g to %g",
			       XB_SHOW(text), low, high);
	*out = value;
	return 0;
}

struct choice {
	const char *word;
	int value;
	const char *missing; /* a sentence saying why it cannot be chosen; NULL: it can */
};

static int parse_choice(const char *text, size_t length, const struct choice *choices, size_t count, int *out,
			struct xb_error *error)
{
	char words[256] = "";

	for (size_t i = 0; i < count; i++) {
		if (strlen(choices[i].word) == length && memcmp(choices[i].word, text, length) == 0) {
			if (choices[i].missing)
				return xb_fail(error, XB_E_USAGE, "'%s': %s", choices[i].word,
					       choices[i].missing);
			*out = choices[i].value;
			return 0;
		}
		if (choices[i].missing)
			continue;
		if (*words)
			strcat(words, ", ");
		strcat(words, choices[i].word);
	}
	return xb_fail(error, XB_E_USAGE, "'%s' is not allowed; choose from %s", XB_SHOW_SPAN(text, length),
		       words);
}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int xb_option_text(char **slot, const char *value, const char *what, struct xb_error *error)
{
	char *copy;

	if (*value == '\0')
		return xb_fail(error, XB_E_USAGE, "the value is empty; give %s", what);
	copy = strdup(value);
	if (!copy)
		return xb_fail(error, XB_E_RESOURCE, "out of memory");
	free(*slot);
	*slot = copy;
	return 0;
}

/* JSON knows no bytes that are not UTF-8, file names do. */
json_t *xb_option_json(const char *text)
{
	json_t *value;
	char *copy;

	if (!text)
		return json_null();
	value = json_string(text);
	if (value)
		return value;
	copy = strdup(text);
	for (char *p = copy; p && *p; p++) {
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	}
	value = copy ? json_string(copy) : NULL;
	free(copy);
	return value;
}

int xb_is_utf8(const char *text)
{
	json_t *value = json_string(text);
	int valid = value != NULL;

	json_decref(value);
	return valid;
}

/* --- what to measure --- */

static int set_transports(struct xb_config *config, const char *value, struct xb_error *error)
{
	if (config->transport_count)
		return xb_fail(
			error, XB_E_USAGE,
			"given twice; write one list with commas, lowest layer first, for example -t %s,%s",
			XB_SHOW(config->transports[0].text), XB_SHOW(value));
	return xb_parse_transports(value, config, error);
}

static json_t *echo_transports(const struct xb_config *config)
{
	json_t *list = json_array();

	for (size_t i = 0; i < config->transport_count; i++)
		json_array_append_new(list, xb_option_json(config->transports[i].text));
	return list;
}

static const struct choice bench_choices[] = {
	{"pingpong", XB_BENCH_PINGPONG, NULL},
	{"bw", XB_BENCH_BW, NULL},
	{"bibw", XB_BENCH_BIBW, NULL},
	{"swap", XB_BENCH_SWAP, NULL},
};

static int set_benches(struct xb_config *config, const char *value, struct xb_error *error)
{
	enum xb_bench benches[COUNT(config->benches)];
	size_t count = 0;

	for (const char *item = value;; item++) {
		size_t length = strcspn(item, ","), i = 0;
		int bench;
		int rc = parse_choice(item, length, bench_choices, COUNT(bench_choices), &bench, error);

		if (rc)
			return rc;
		while (i < count && benches[i] != (enum xb_bench)bench)
			i++;
		if (i == count)
			benches[count++] = (enum xb_bench)bench;
		item += length;
		if (*item == '\0')
			break;
	}
	memcpy(config->benches, benches, count * sizeof(benches[0]));
	config->bench_count = count;
	return 0;
}

static json_t *echo_benches(const struct xb_config *config)
{
	json_t *list = json_array();

	for (size_t i = 0; i < config->bench_count; i++)
		json_array_append_new(list, json_string(bench_choices[config->benches[i]].word));
	return list;
}

static const struct choice op_choices[] = {
	{"send", XB_OP_SEND, NULL},
	{"write", XB_OP_WRITE, NULL},
	{"read", XB_OP_READ, NULL},
	{"write-poll", XB_OP_WRITE_POLL, NULL},
};

static int set_op(struct xb_config *config, const char *value, struct xb_error *error)
{
	int op, rc = parse_choice(value, strlen(value), op_choices, COUNT(op_choices), &op, error);

	if (!rc)
		config->op = (enum xb_op)op;
	return rc;
}

static json_t *echo_op(const struct xb_config *config)
{
	return json_string(op_choices[config->op].word);
}

static int set_sizes(struct xb_config *config, const char *value, struct xb_error *error)
{
	config->sizes_given = 1; /* reset after the fallbacks have been set */
	return xb_parse_sizes(value, config->sizes, XB_MAX_SIZES, &config->size_count, error);
}

static json_t *echo_sizes(const struct xb_config *config)
{
	json_t *list = json_array();

	for (size_t i = 0; i < config->size_count; i++)
		json_array_append_new(list, json_integer((json_int_t)config->sizes[i]));
	return list;
}

/* A count, or "auto" for 0. */
static int set_count(uint64_t *slot, const char *value, struct xb_error *error)
{
	int rc;

	if (strcmp(value, "auto") == 0) {
		*slot = 0;
		return 0;
	}
	rc = xb_option_whole(value, 1, XB_MAX_ITERATIONS, slot, NULL);
	return rc ? xb_fail(error, XB_E_USAGE,
			    "'%s' is not allowed; give a whole number from 1 to %u, or auto", XB_SHOW(value),
			    XB_MAX_ITERATIONS)
		  : 0;
}

static json_t *echo_count(uint64_t count)
{
	return count ? json_integer((json_int_t)count) : json_string("auto");
}

static int set_iterations(struct xb_config *config, const char *value, struct xb_error *error)
{
	return set_count(&config->iterations, value, error);
}

static json_t *echo_iterations(const struct xb_config *config)
{
	return echo_count(config->iterations);
}

static int set_warmup(struct xb_config *config, const char *value, struct xb_error *error)
{
	return set_count(&config->warmup, value, error);
}

static json_t *echo_warmup(const struct xb_config *config)
{
	return echo_count(config->warmup);
}

static int set_window(struct xb_config *config, const char *value, struct xb_error *error)
{
	uint64_t window;
	int rc = xb_option_whole(value, 1, XB_MAX_WINDOW, &window, error);

	if (!rc)
		config->window = (uint32_t)window;
	return rc;
}

static json_t *echo_window(const struct xb_config *config)
{
	return json_integer(config->window);
}

/* --- how long, how exactly --- */

static int set_launches(struct xb_config *config, const char *value, struct xb_error *error)
{
	size_t length = strcspn(value, ":");
	char *low_text = strndup(value, length);
	uint64_t low = 0, high = 0;
	int rc = low_text ? xb_option_whole(low_text, 1, LAUNCHES_MAX, &low, NULL) : XB_E_RESOURCE;

	free(low_text);
	high = low;
	if (!rc && value[length])
		rc = xb_option_whole(value + length + 1, 1, LAUNCHES_MAX, &high, NULL);
	if (rc)
		return xb_fail(error, XB_E_USAGE,
			       "'%s' is not allowed; give MIN or MIN:MAX, whole numbers from 1 to %u, for "
			       "example 7:25",
			       XB_SHOW(value), LAUNCHES_MAX);
	if (low > high)
		return xb_fail(error, XB_E_USAGE,
			       "'%s' is not allowed; the minimum is larger than the maximum", XB_SHOW(value));
	config->launches_min = (unsigned)low;
	config->launches_max = (unsigned)high;
	return 0;
}

static json_t *echo_launches(const struct xb_config *config)
{
	return json_pack("[i,i]", (int)config->launches_min, (int)config->launches_max);
}

static int set_time(struct xb_config *config, const char *value, struct xb_error *error)
{
	return xb_option_decimal(value, 1, 86400, &config->time_s, error);
}

static json_t *echo_time(const struct xb_config *config)
{
	return json_real(config->time_s);
}

static int set_ci(struct xb_config *config, const char *value, struct xb_error *error)
{
	return xb_option_decimal(value, 0.01, 100, &config->ci_percent, error);
}

static json_t *echo_ci(const struct xb_config *config)
{
	return json_real(config->ci_percent);
}

static int set_seed(struct xb_config *config, const char *value, struct xb_error *error)
{
	int rc;

	if (strcmp(value, "random") == 0) {
		config->seed = 0;
		return 0;
	}
	rc = xb_option_whole(value, 1, XB_SEED_MAX, &config->seed, NULL);
	return rc ? xb_fail(error, XB_E_USAGE,
			    "'%s' is not allowed; give a whole number from 1 to %llu, or random",
			    XB_SHOW(value), (unsigned long long)XB_SEED_MAX)
		  : 0;
}

static json_t *echo_seed(const struct xb_config *config)
{
	return config->seed ? json_integer((json_int_t)config->seed) : json_string("random");
}

/* --- where --- */

static int set_bind(struct xb_config *config, const char *value, struct xb_error *error)
{
	int cpus[COUNT(config->bind)];
	size_t count = 0;

	if (strcmp(value, "auto") == 0) {
		config->bind_count = 0;
		return 0;
	}
	if (strcmp(value, "none") == 0) {
		config->bind[0] = -1;
		config->bind_count = 1;
		return 0;
	}
	for (const char *item = value;; item++) {
		size_t length = strcspn(item, ",");
		char digits[8] = "";
		uint64_t cpu = 0;

		if (length < sizeof(digits))
			memcpy(digits, item, length);
		if (count == COUNT(cpus) || xb_option_whole(digits, 0, CPU_MAX, &cpu, NULL) != 0)
			break;
		cpus[count++] = (int)cpu;
		item += length;
		if (*item)
			continue;
		memcpy(config->bind, cpus, count * sizeof(cpus[0]));
		config->bind_count = count;
		return 0;
	}
	return xb_fail(
		error, XB_E_USAGE,
		"'%s' is not allowed; give the CPU numbers of the endpoints (2 endpoints unless more are "
		"asked for) with a comma between them (0 to %u), for example 2,3, or none, or auto",
		XB_SHOW(value), CPU_MAX);
}

static json_t *echo_bind(const struct xb_config *config)
{
	json_t *list;

	if (config->bind_count == 0)
		return json_string("auto");
	if (config->bind[0] < 0)
		return json_string("none");
	list = json_array();
	for (size_t i = 0; i < config->bind_count; i++)
		json_array_append_new(list, json_integer(config->bind[i]));
	return list;
}

static const struct choice launcher_choices[] = {
	{"auto", XB_LAUNCHER_AUTO, NULL}, {"local", XB_LAUNCHER_LOCAL, NULL},
	{"ssh", XB_LAUNCHER_SSH, NULL},	  {"mpirun", XB_LAUNCHER_MPIRUN, NULL},
	{"srun", XB_LAUNCHER_SRUN, NULL},
};

static int set_launcher(struct xb_config *config, const char *value, struct xb_error *error)
{
	int kind, rc = parse_choice(value, strlen(value), launcher_choices, COUNT(launcher_choices), &kind,
				    error);

	if (!rc)
		config->launcher = (enum xb_launcher_kind)kind;
	return rc;
}

static json_t *echo_launcher(const struct xb_config *config)
{
	return json_string(launcher_choices[config->launcher].word);
}

/* --- output --- */

static int set_output(struct xb_config *config, const char *value, struct xb_error *error)
{
	if (strcmp(value, "-") == 0)
		return xb_fail(error, XB_E_USAGE,
			       "'-' is not a file; --format json writes the document to the standard output");
	return xb_option_text(&config->output, value, "the name of a file to write", error);
}

static const struct choice format_choices[] = {
	{"table", XB_FORMAT_TABLE, NULL},	{"csv", XB_FORMAT_CSV, NULL},
	{"json", XB_FORMAT_JSON, NULL},		{"imb", XB_FORMAT_IMB, NULL},
	{"osu", XB_FORMAT_OSU, NULL},		{"now", XB_FORMAT_NOW, NULL},
	{"commtest", XB_FORMAT_COMMTEST, NULL}, {"nodes", XB_FORMAT_NODES, NULL},
};

static int set_format(struct xb_config *config, const char *value, struct xb_error *error)
{
	int format, rc = parse_choice(value, strlen(value), format_choices, COUNT(format_choices), &format,
				      error);

	if (!rc)
		config->format = (enum xb_format)format;
	return rc;
}

static int set_serial(struct xb_config *config, const char *value, struct xb_error *error)
{
	(void)value;
	(void)error;
	config->serial = 1;
	return 0;
}

static json_t *echo_serial(const struct xb_config *config)
{
	return json_boolean(config->serial);
}

static int set_self_test(struct xb_config *config, const char *value, struct xb_error *error)
{
	(void)value;
	(void)error;
	config->self_test = 1;
	return 0;
}

static int set_quiet(struct xb_config *config, const char *value, struct xb_error *error)
{
	(void)value;
	(void)error;
	config->quiet = 1;
	return 0;
}

static int set_verbose(struct xb_config *config, const char *value, struct xb_error *error)
{
	(void)value;
	(void)error;
	config->verbose++;
	return 0;
}

/* --- the table --- */

/* A text that is kept as it is given. */
#define TEXT(member, wanted) .text_offset = offsetof(struct xb_config, member), .text_wanted = (wanted)
#define TEXT_ECHOED(member, wanted) TEXT(member, wanted), .text_echoed = 1

#define RUN (XB_FOR(XB_COMMAND_RUN) | ACCEPT)
#define ACCEPT XB_FOR(XB_COMMAND_ACCEPT)
#define LIST XB_FOR(XB_COMMAND_LIST)
#define REPORT XB_FOR(XB_COMMAND_REPORT)
#define PROBE XB_FOR(XB_COMMAND_PROBE)
#define LISTEN XB_FOR(XB_COMMAND_LISTEN)

const struct xb_option xb_options[] = {
	{"transports", 't', "LIST", NULL, XB_GROUP_WHAT, RUN, 0,
	 "What to measure: transports with a comma between two, lowest layer first. The first is the one "
	 "that the others are "
	 "compared with.",
	 .set = set_transports, .echo = echo_transports},
	{"benchmarks", 'b', "LIST", "pingpong", XB_GROUP_WHAT, RUN, 0,
	 "Benchmarks: pingpong (latency), bw (one way), bibw (both ways at once), swap (COMMTEST: both sides "
	 "exchange --total bytes, by eleven protocols).",
	 .set = set_benches, .echo = echo_benches},
	{"op", 0, "OP", "send", XB_GROUP_WHAT, RUN, 0,
	 "How data moves: send (matched by a receive), write (put into the memory of the peer, until it is "
	 "there), read (get from it), or write-poll (pingpong only: both sides write, and each watches its "
	 "own "
	 "memory for the other's, as ib_write_lat does).",
	 .set = set_op, .echo = echo_op},
	{"sizes", 's', "SIZES", "1:4M", XB_GROUP_WHAT, RUN, 0,
	 "Message sizes in bytes: MIN:MAX for the powers of two between them, or a list such as "
	 "0,1,1000,64K. "
	 "K, M and G are 2^10, 2^20 and 2^30. The limit is 1G. now stands for the 24 sizes of the NOW "
	 "reports. A "
	 "swap uses those that divide --total; without this option it is cut into 1, 2, 4 ... 1024 messages.",
	 .set = set_sizes, .echo = echo_sizes},
	{"iterations", 'n', "N", "auto", XB_GROUP_WHAT, RUN, 0,
	 "Timed iterations of a block, 1 to 1000000. With auto they fit the time that a block should take.",
	 .set = set_iterations, .echo = echo_iterations},
	{"warmup", 'x', "N", "auto", XB_GROUP_WHAT, RUN, 0,
	 "Untimed iterations before them, 1 to 1000000. With auto, until the times are steady.",
	 .set = set_warmup, .echo = echo_warmup},
	{"window", 'W', "N", "64", XB_GROUP_WHAT, RUN, 0,
	 "Messages under way at once in bw and bibw, 1 to 1024.", .set = set_window, .echo = echo_window},
	{"protocol", 0, "LIST", "all", XB_GROUP_WHAT, RUN, 0,
	 "Protocols of the swap: numbers from 0 to 10 and ranges of them, such as 0,1,7-10, or all that the "
	 "order "
	 "has.",
	 .set = xb_set_protocols, .echo = xb_echo_protocols},
	{"order", 0, "ORDER", "ordered", XB_GROUP_WHAT, RUN, 0,
	 "Order of the swap: ordered (one side sends first, the other answers), unordered (both send, then "
	 "receive) or delayed (unordered, receives are completed last).",
	 .set = xb_set_order, .echo = xb_echo_order},
	{"total", 0, "SIZE", "2M", XB_GROUP_WHAT, RUN, 0,
	 "Bytes that a swap moves in each direction, at most 1G.", .set = xb_set_total,
	 .echo = xb_echo_total},
	{"cache", 0, "LIST", "1", XB_GROUP_WHAT, RUN, 0,
	 "How a swap is timed: inv (alone, after the caches have been swept), 1 (alone, caches warm), 10 "
	 "(ten in a "
	 "row, the time divided by ten), or all.",
	 .set = xb_set_cache, .echo = xb_echo_cache},
	{"overlap", 0, "WHICH", "auto", XB_GROUP_WHAT, RUN, 0,
	 "Whether messages of a swap overlap: off (each is complete before the next), on (receives are "
	 "posted and "
	 "sends waited for in batches) or both. With auto, both if --overlap-depth is given, else off.",
	 .set = xb_set_overlap, .echo = xb_echo_overlap},
	{"overlap-depth", 0, "N", "all", XB_GROUP_WHAT, RUN, 0,
	 "Messages in a batch when they overlap, 1 to 1024, or all (at most 1024).",
	 .set = xb_set_overlap_depth, .echo = xb_echo_overlap_depth},

	{"launches", 0, "MIN[:MAX]", "7:25", XB_GROUP_HOW, RUN, 0,
	 "How often all processes are started afresh, 1 to 1000. Launches are the unit of every interval: "
	 "fewer than 6 give "
	 "none. One number stands for exactly so many.",
	 .set = set_launches, .echo = echo_launches},
	{"time", 0, "SECONDS", "60", XB_GROUP_HOW, RUN, 0,
	 "Time budget of the whole run, 1 to 86400. No launch is begun that would exceed it, but for the "
	 "least number of them.",
	 .set = set_time, .echo = echo_time},
	{"ci", 0, "PERCENT", "2", XB_GROUP_HOW, RUN, 0,
	 "Stop when every interval is this narrow: its half-width in percent of the latency of the lower "
	 "layer, 0.01 to 100.",
	 .set = set_ci, .echo = echo_ci},
	{"baseline", 0, "LABEL", NULL, XB_GROUP_HOW, RUN, 0,
	 "Compare with the transport of this label instead of the first.",
	 TEXT_ECHOED(baseline, "the label of one of the transports")},
	{"seed", 0, "N", "random", XB_GROUP_HOW, RUN, 0,
	 "Seed of the random orders. A run with the seed of an earlier one visits everything in the same "
	 "order.",
	 .set = set_seed, .echo = echo_seed},

	{"hosts", 'H', "HOST,HOST", NULL, XB_GROUP_WHERE, RUN, 0,
	 "Hosts of the endpoints, one each; with more than two every pair is measured. Without it all run "
	 "here, or "
	 "on the hosts of the Slurm job that this is in.",
	 .set = xb_set_hosts, .echo = xb_echo_hosts},
	{"host-file", 0, "FILE", NULL, XB_GROUP_WHERE, RUN, 0,
	 "The same from a file, one host a line; what follows a blank or a # is ignored.",
	 .set = xb_set_host_file},
	{"endpoints", 0, "N", "auto", XB_GROUP_WHERE, RUN, 0,
	 "Number of endpoints, 2 to 1024; they go round the hosts. With auto one a host, and 2 without "
	 "hosts. With "
	 "more than 2 every pair is measured, as many at a time as can be.",
	 .set = xb_set_endpoints, .echo = xb_echo_endpoints},
	{"bind", 0, "CPU,CPU", "auto", XB_GROUP_WHERE, RUN, 0,
	 "CPUs of the endpoints in their order, or one for all if each has a host of its own. With auto "
	 "cores of "
	 "one NUMA node are chosen on each host; with none the kernel decides.",
	 .set = set_bind, .echo = echo_bind},
	{"launcher", 0, "NAME", "auto", XB_GROUP_WHERE, RUN, 0,
	 "What starts the processes: local, ssh, mpirun or srun. With auto srun inside a Slurm job; else "
	 "mpirun for "
	 "MPI, and for the others ssh if hosts are given and local if not.",
	 .set = set_launcher, .echo = echo_launcher},
	{"ssh-command", 0, "COMMAND", NULL, XB_GROUP_WHERE, RUN, 0,
	 "The ssh to use, with its options; mpirun is told to use it too. Without it ssh, never asking for a "
	 "password.",
	 TEXT_ECHOED(ssh_command, "ssh, or what takes its place, with its options")},
	{"mpirun-command", 0, "COMMAND", NULL, XB_GROUP_WHERE, RUN, 0,
	 "The mpirun to use, with its options. Without it mpirun.",
	 TEXT_ECHOED(mpirun_command, "the name or path of an mpirun program")},
	{"srun-command", 0, "COMMAND", NULL, XB_GROUP_WHERE, RUN, 0,
	 "The srun to use, with its options (such as --mpi=TYPE). Without it srun.",
	 TEXT_ECHOED(srun_command, "srun, with options of it if need be")},
	{"remote-path", 0, "PATH", NULL, XB_GROUP_WHERE, RUN, 0,
	 "Where xportbench is on the other hosts. Without it the path that it has here.",
	 TEXT_ECHOED(remote_path, "the path of xportbench on the other hosts")},
	{"control-interface", 0, "NAME", NULL, XB_GROUP_WHERE, RUN | LISTEN, 0,
	 "Interface, or numeric address, of this host that the other hosts call for control; it can be one "
	 "that is "
	 "not measured. Without it the one that leads to the first of them.",
	 TEXT_ECHOED(control_interface, "an interface or an address of this host")},
	{"key-file", 0, "FILE", NULL, XB_GROUP_WHERE, RUN | LISTEN, 0,
	 "The key that listen and its clients share, readable by its owner only. Without it "
	 "~/.xportbench.key, "
	 "which is made when it is first needed.",
	 TEXT(key_file, "the name of a file")},
	{"port", 0, "PORT", NULL, XB_GROUP_WHERE, LISTEN, 0,
	 "TCP port to listen on, 1 to 65535. Without it 18599.", .set = xb_set_port},
	{"link-rate", 0, "RATE", "auto", XB_GROUP_WHERE, RUN, 0,
	 "Bits per second that the measured link can carry in one direction, such as 25G; more than that is "
	 "a "
	 "finding. With auto it is read from the devices.",
	 .set = xb_set_link_rate, .echo = xb_echo_link_rate},
	{"plugin-dir", 0, "FOLDER", NULL, XB_GROUP_WHERE, RUN | LIST | PROBE | LISTEN, 0,
	 "Where the transports (libxb-NAME.so) are, instead of beside the program or where they were "
	 "installed.",
	 TEXT_ECHOED(plugin_path, "the folder that holds libxb-NAME.so")},

	{"pairs", 0, "WHICH", "all", XB_GROUP_WHERE, RUN, 0,
	 "Which pairs of more than two endpoints: all, ring (each with the next), quick (each with one "
	 "other), or a "
	 "file with two hosts or endpoint numbers a line.",
	 TEXT_ECHOED(pairs, "all, ring, quick or the name of a file of pairs")},
	{"serial", 0, NULL, NULL, XB_GROUP_WHERE, RUN, 0,
	 "One pair at a time, instead of as many disjoint ones as there are.", .set = set_serial,
	 .echo = echo_serial},

	{"against", 0, "FILE", NULL, XB_GROUP_ACCEPT, ACCEPT, 0,
	 "The recorded run that limits 'of baseline' compare with.",
	 TEXT(against, "the name of a recorded run")},
	{"record", 0, "FILE", NULL, XB_GROUP_ACCEPT, ACCEPT, 0,
	 "Keep this run as a baseline, if it is complete, valid and within the limits. Works without limits "
	 "too.",
	 TEXT(record, "the name of a file to write")},
	{"junit", 0, "FILE", NULL, XB_GROUP_ACCEPT, ACCEPT, 0,
	 "Write the verdicts as JUnit XML, for continuous integration.",
	 TEXT(junit, "the name of a file to write")},
	{"self-test", 0, NULL, NULL, XB_GROUP_ACCEPT, ACCEPT, 0,
	 "Measure nothing; show how often these limits would be wrong, by the same code over synthetic "
	 "truth.",
	 .set = set_self_test},

	{"output", 'o', "FILE", NULL, XB_GROUP_OUTPUT, RUN, 0,
	 "Write the result document (JSON) to FILE. It is kept whole while the run goes on, so that an "
	 "interrupted run leaves "
	 "what it had.",
	 .set = set_output},
	{"format", 0, "FORMAT", "table", XB_GROUP_OUTPUT, RUN | REPORT, 0,
	 "What is printed on the standard output: table, csv, json, or a report in the shape of another "
	 "tool: "
	 "imb (IMB-MPI1), osu (OSU micro-benchmarks), now (comm.shar), commtest (COMMTEST; needs swap); or "
	 "nodes, one line a node, of accept. imb, osu and now print half a round trip: not with pingpong and "
	 "--op write or read.",
	 .set = set_format},
	{"reference", 0, "LIST", NULL, XB_GROUP_OUTPUT, RUN | REPORT, 0,
	 "Show published tables beside the run, at matching sizes: names that 'xportbench references' lists, "
	 "or files of that form. Latencies of one way do not stand beside --op write or read.",
	 TEXT(reference, "the name of a published table")},
	{"quiet", 'q', NULL, NULL, XB_GROUP_OUTPUT, XB_FOR_ALL, 0, "No progress on the standard error.",
	 .set = set_quiet},
	{"verbose", 'v', NULL, NULL, XB_GROUP_OUTPUT, XB_FOR_ALL, 0,
	 "Say what is being done on the standard error. Given twice, the transports explain themselves too.",
	 .set = set_verbose},

	{"help", 'h', NULL, NULL, XB_GROUP_GENERAL, XB_FOR_ALL, 0, "Print this help.", .set = NULL},
	{"version", 'V', NULL, NULL, XB_GROUP_GENERAL, XB_FOR_ALL, 0, "Print the version.", .set = NULL},
};
const size_t xb_option_count = COUNT(xb_options);

const char *xb_option_group_title(enum xb_option_group group)
{
	static const char *const titles[XB_GROUP_COUNT] = {
		[XB_GROUP_WHAT] = "What to measure", [XB_GROUP_HOW] = "How long, and how exactly",
		[XB_GROUP_WHERE] = "Where it runs",  [XB_GROUP_ACCEPT] = "Acceptance (accept)",
		[XB_GROUP_OUTPUT] = "Output",	     [XB_GROUP_GENERAL] = "General",
	};

	return titles[group];
}

static char **text_of(const struct xb_option *option, struct xb_config *config)
{
	return (char **)((char *)config + option->text_offset);
}

static json_t *echo(const struct xb_option *option, const struct xb_config *config)
{
	return option->echo ? option->echo(config)
			    : xb_option_json(*(char *const *)((const char *)config + option->text_offset));
}

int xb_option_set(const struct xb_option *option, struct xb_config *config, const char *value,
		  struct xb_error *error)
{
	return option->set ? option->set(config, value, error)
			   : xb_option_text(text_of(option, config), value, option->text_wanted, error);
}

int xb_option_is_echoed(const struct xb_option *option)
{
	return option->echo || option->text_echoed;
}

json_t *xb_config_json(const struct xb_config *config)
{
	json_t *object = json_object();

	for (size_t i = 0; i < xb_option_count; i++) {
		char member[32] = "";

		if (!xb_option_is_echoed(&xb_options[i]))
			continue;
		strncpy(member, xb_options[i].name, sizeof(member) - 1);
		for (char *p = member; *p; p++) {
			if (*p == '-')
				*p = '_';
		}
		json_object_set_new(object, member, echo(&xb_options[i], config));
	}
	return object;
}

void xb_config_free(struct xb_config *config)
{
	for (size_t i = 0; i < xb_option_count; i++) {
		if (xb_options[i].text_wanted)
			free(*text_of(&xb_options[i], config));
	}
	xb_transports_free(config, 0);
	free(config->listener);
	xb_hosts_free(config);
	free(config->output);
	*config = (struct xb_config){0};
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: options in any order, short ones combined, and the checks that need all of them. */
#include <stdlib.h>
#include "options.h"
#include "../engine/block.h"
#include "../report/text.h"
#include "show.h"

const struct xb_command_entry xb_commands[] = {
	{"", XB_COMMAND_RUN, "-t TRANSPORT[,TRANSPORT...] [-s SIZES] [OPTION...] [@HOST]", 0, 0, 0,
	 "Measure; with @HOST[:PORT] between here and a host where 'xportbench listen' runs."},
	{"listen", XB_COMMAND_LISTEN, "", 0, 0, 0,
	 "Start the far end of runs on other hosts that hold the same key, one run at a time."},
	{"list", XB_COMMAND_LIST, "", 0, 0, 0,
	 "Show the transports, devices and paths of this machine, and for each unusable one the reason and "
	 "the remedy."},
	{"report", XB_COMMAND_REPORT, "FILE", 1, 1, 0, "Print a saved run again, in any format."},
	{"accept", XB_COMMAND_ACCEPT, "[LIMITS.ini]", 0, 1, 0,
	 "Measure and judge: every limit of the file gets PASS, FAIL or INCONCLUSIVE, and a violation is "
	 "measured "
	 "again before it counts."},
	{"references", XB_COMMAND_REFERENCES, "", 0, 0, 0,
	 "List the published tables that --reference can show beside a run, with where they are from."},
	{"help", XB_COMMAND_HELP, "", 0, 0, 0, "Print this help."},
	{"man", XB_COMMAND_MAN, "", 0, 0, 0, "Print the manual page in mdoc, to be read with man -l -."},
	{"worker", XB_COMMAND_WORKER, "", 0, (size_t)-1, 1, NULL},
	{"probe", XB_COMMAND_PROBE, "NAME", 1, 1, 1, NULL},
	{"hold", XB_COMMAND_HOLD, "NAME", 1, 1, 1, NULL},
	{"reach", XB_COMMAND_REACH, "", 0, (size_t)-1, 1, NULL},
};
const size_t xb_command_count = sizeof(xb_commands) / sizeof(xb_commands[0]);

struct parser {
	struct xb_command_line *line;
	const struct xb_command_entry *entry;
	uint64_t given; /* bit i: xb_options[i] was on the command line */
	struct xb_error *error;
};

/* --- near misses --- */

#define WORD_MAX 24u

/* Edit distance where exchanged neighbours count once (restricted Damerau-Levenshtein); words longer than
 * WORD_MAX never match. */
static size_t distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	size_t d[WORD_MAX + 1][WORD_MAX + 1];

	if (n > WORD_MAX || m > WORD_MAX)
		return WORD_MAX;
	for (size_t i = 0; i <= n; i++) {
		for (size_t j = 0; j <= m; j++) {
			size_t best;

			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			if (d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[n][m];
}

const char *xb_nearest(const char *typed, const char *(*word)(size_t index), size_t count)
{
	const char *nearest = NULL;
	size_t length = strlen(typed), least = length < 3   ? 1
					       : length < 6 ? 2
							    : 3; /* that many are too far */

	for (size_t i = 0; i < count; i++) {
		const char *candidate = word(i);
		size_t d;

		if (!candidate || !*candidate)
			continue;
		/* an abbreviation is the clearest of hints */
		d = length >= 3 && strncmp(candidate, typed, length) == 0 ? 0 : distance(typed, candidate);
		if (d < least) {
			least = d;
			nearest = candidate;
		}
	}
	return nearest;
}

static const char *option_word(size_t index)
{
	return xb_options[index].hidden ? NULL : xb_options[index].name;
}

static const char *command_word(size_t index)
{
	return xb_commands[index].hidden ? NULL : xb_commands[index].name;
}

/* --- options --- */

static const struct xb_option *find_long(const char *name, size_t length)
{
	for (size_t i = 0; i < xb_option_count; i++) {
		if (strlen(xb_options[i].name) == length && memcmp(xb_options[i].name, name, length) == 0)
			return &xb_options[i];
	}
	return NULL;
}

static const struct xb_option *find_letter(char letter)
{
	for (size_t i = 0; i < xb_option_count; i++) {
		if (letter && xb_options[i].letter == letter)
			return &xb_options[i];
	}
	return NULL;
}

/* "-s, --sizes" or "--time" */
static const char *spelling(const struct xb_option *option, char text[48])
{
	char letter[5] = {'-', option->letter, ',', ' ', '\0'};

	strcpy(text, option->letter ? letter : "");
	strcat(strcat(text, "--"), option->name);
	return text;
}
#define SPELLING(option) spelling((option), (char[48]){0})

static int apply(struct parser *parser, const struct xb_option *option, const char *value)
{
	struct xb_error cause = {0};
	int rc;

	parser->given |= UINT64_C(1) << (option - xb_options);
	if (!option->set && !option->text_wanted) {
		parser->line->command = option->letter == 'V' ? XB_COMMAND_VERSION : XB_COMMAND_HELP;
		return 0;
	}
	rc = xb_option_set(option, &parser->line->config, value, &cause);
	return rc ? xb_fail(parser->error, rc, "%s: %s", SPELLING(option), cause.text) : 0;
}

static int unknown_option(struct parser *parser, const char *argument)
{
	const char *name = argument + strspn(argument, "-");
	char typed[WORD_MAX + 1] = "";
	size_t length = strcspn(name, "=");
	const char *near;

	if (length <= WORD_MAX)
		memcpy(typed, name, length);
	near = xb_nearest(typed, option_word, xb_option_count);
	if (near)
		return xb_fail(parser->error, XB_E_USAGE, "unknown option '%s': did you mean --%s?",
			       XB_SHOW(argument), near);
	return xb_fail(parser->error, XB_E_USAGE, "unknown option '%s': 'xportbench --help' shows them all",
		       XB_SHOW(argument));
}

/* Does an argument look like one of our options, so that it cannot be meant as the value of the one before
 * it? */
static int is_option(const char *argument)
{
	if (argument[0] != '-')
		return 0;
	if (argument[1] == '-')
		return argument[2] == '\0' || find_long(argument + 2, strcspn(argument + 2, "=")) != NULL;
	return find_letter(argument[1]) != NULL;
}

static int missing_value(struct parser *parser, const struct xb_option *option, const char *found)
{
	return xb_fail(parser->error, XB_E_USAGE, "%s needs a value (%s), but %s%s%s", SPELLING(option),
		       option->argument, found ? "the option '" : "the command line ends",
		       found ? XB_SHOW(found) : "", found ? "' follows" : " after it");
}

/* Reads argv[at], an option; returns how many arguments it took, 0 on error. */
static int read_option(struct parser *parser, char **argv, int at, int argc)
{
	const char *argument = argv[at], *next = at + 1 < argc ? argv[at + 1] : NULL;
	const struct xb_option *option;

	if (argument[1] == '-') {
		size_t length = strcspn(argument + 2, "=");
		const char *value = argument[2 + length] ? argument + 2 + length + 1 : NULL;
		int taken = 1;

		option = find_long(argument + 2, length);
		if (!option) {
			unknown_option(parser, argument);
			return 0;
		}
		if (value && !option->argument) {
			xb_fail(parser->error, XB_E_USAGE, "%s takes no value, but '%s' is given",
				SPELLING(option), XB_SHOW(value));
			return 0;
		}
		if (!value && option->argument) {
			value = next;
			taken = 2;
			if (!next || is_option(next)) {
				missing_value(parser, option, next);
				return 0;
			}
		}
		return apply(parser, option, value) ? 0 : taken;
	}
	/* "-time 5" would be read as "-t ime": nobody means that */
	if (argument[2] && find_long(argument + 1, strlen(argument + 1))) {
		xb_fail(parser->error, XB_E_USAGE, "unknown option '%s': did you mean -%s?",
			XB_SHOW(argument), argument);
		return 0;
	}
	for (const char *letter = argument + 1; *letter; letter++) {
		option = find_letter(*letter);
		if (!option) {
			unknown_option(parser, argument);
			return 0;
		}
		if (!option->argument) {
			if (apply(parser, option, NULL))
				return 0;
			continue;
		}
		if (letter[1])
			return apply(parser, option, letter + 1) ? 0 : 1;
		if (!next || is_option(next)) {
			missing_value(parser, option, next);
			return 0;
		}
		return apply(parser, option, next) ? 0 : 2;
	}
	return 1;
}

static int set_fallbacks(struct parser *parser)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < xb_option_count; i++) {
		if (xb_options[i].fallback)
			rc = xb_option_set(&xb_options[i], &parser->line->config, xb_options[i].fallback,
					   parser->error);
	}
	parser->line->config.sizes_given = 0;
	parser->line->config.swap.depth_given = 0;
	return rc;
}

/* --- operands and the whole --- */

static int add_operand(struct parser *parser, const char *operand)
{
	struct xb_command_line *line = parser->line;

	line->arguments[line->argument_count] = strdup(operand);
	if (!line->arguments[line->argument_count])
		return xb_fail(parser->error, XB_E_RESOURCE, "out of memory");
	line->argument_count++;
	return 0;
}

static int set_command(struct parser *parser, const char *word)
{
	const char *near;

	for (size_t i = 0; i < xb_command_count; i++) {
		if (*word && strcmp(xb_commands[i].name, word) == 0) {
			parser->entry = &xb_commands[i];
			parser->line->command = parser->entry->command;
			return 0;
		}
	}
	near = xb_nearest(word, command_word, xb_command_count);
	if (near)
		return xb_fail(parser->error, XB_E_USAGE, "unknown command '%s': did you mean '%s'?",
			       XB_SHOW(word), near);
	return xb_fail(parser->error, XB_E_USAGE,
		       "unknown command '%s': the commands are list, report, accept, references, listen, "
		       "help and man; "
		       "a run "
		       "needs none, "
		       "and its "
		       "transports follow -t",
		       XB_SHOW(word));
}

/* @HOST[:PORT]: the other end is at a listener. */
static int set_listener(struct parser *parser, const char *where)
{
	struct xb_config *config = &parser->line->config;

	if (config->listener)
		return xb_fail(parser->error, XB_E_USAGE, "@%s and @%s: only one listener can be the far end",
			       XB_SHOW(config->listener), XB_SHOW(where));
	if (*where == '\0' || *where == '-' || strlen(where) > 255)
		return xb_fail(
			parser->error, XB_E_USAGE,
			"'@%s' names no host; write @HOST or @HOST:PORT, where 'xportbench listen' runs",
			XB_SHOW(where));
	config->listener = strdup(where);
	return config->listener ? 0 : xb_fail(parser->error, XB_E_RESOURCE, "out of memory");
}

static int check_operands(struct parser *parser)
{
	const struct xb_command_entry *entry = parser->entry;
	size_t count = parser->line->argument_count;
	const char *extra = count > entry->operands_max ? parser->line->arguments[entry->operands_max] : NULL;

	if (count < entry->operands_min)
		return xb_fail(parser->error, XB_E_USAGE, "%s needs %s: write 'xportbench %s %s'",
			       entry->name, entry->operands, entry->name, entry->operands);
	if (extra)
		return xb_fail(parser->error, XB_E_USAGE, "%s takes %s%s, but '%s' is given as well",
			       entry->name, entry->operands_max ? "one " : "no operand",
			       entry->operands_max ? entry->operands : "", XB_SHOW(extra));
	for (size_t i = 0; i < xb_option_count; i++) {
		if ((parser->given >> i & 1) && !(xb_options[i].commands & XB_FOR(entry->command)))
			return xb_fail(parser->error, XB_E_USAGE,
				       "%s means nothing to the command '%s'; leave it out",
				       SPELLING(&xb_options[i]), entry->name);
	}
	return 0;
}

/* Endpoints, hosts and CPUs fit together. */
static int check_places(struct xb_config *config, struct xb_error *error)
{
	size_t hosts = config->host_count;
	int own_hosts;

	for (size_t t = 0; config->listener && t < config->transport_count; t++)
		if (xb_is_mpi(config->transports[t].name))
			return xb_fail(error, XB_E_USAGE,
				       "'%s' cannot be started through a listener, since MPI has its own way "
				       "to start "
				       "processes; name the hosts with -H instead of @%s",
				       XB_SHOW(config->transports[t].label), XB_SHOW(config->listener));
	if (config->listener && (hosts || config->endpoints > 2 || config->launcher != XB_LAUNCHER_AUTO))
		return xb_fail(
			error, XB_E_USAGE,
			"@%s is the whole of the other side: leave out -H, --host-file, --endpoints and "
			"--launcher",
			XB_SHOW(config->listener));
	if (hosts == 1 && !config->endpoints)
		return xb_fail(
			error, XB_E_USAGE,
			"-H, --hosts: only '%s' is given; name two hosts (one of them may be localhost), or "
			"add --endpoints 2 to measure within that one",
			XB_SHOW(config->hosts[0]));
	if (!config->endpoints)
		config->endpoints = hosts ? (uint32_t)hosts : 2;
	if (hosts > config->endpoints)
		return xb_fail(error, XB_E_USAGE,
			       "--endpoints: %u endpoints cannot be on %zu hosts; give at least %zu",
			       config->endpoints, hosts, hosts);
	if (hosts && config->launcher == XB_LAUNCHER_LOCAL)
		return xb_fail(
			error, XB_E_USAGE,
			"--launcher local starts nothing on other hosts, but hosts are given; choose ssh, "
			"mpirun or srun, or leave the hosts out");
	own_hosts = hosts == config->endpoints;
	if (config->bind_count == 0 || config->bind[0] < 0 || config->bind_count == config->endpoints ||
	    (config->bind_count == 1 && own_hosts))
		return 0;
	return xb_fail(error, XB_E_USAGE, "--bind: %zu CPU%s given for %u endpoints; give one for each%s",
		       config->bind_count, config->bind_count == 1 ? " is" : "s are", config->endpoints,
		       own_hosts ? ", or one for all" : "");
}

static int check_op(const struct xb_config *config, struct xb_error *error)
{
	if (config->op != XB_OP_WRITE_POLL)
		return 0;
	if (config->bench_count != 1 || config->benches[0] != XB_BENCH_PINGPONG)
		return xb_fail(error, XB_E_USAGE,
			       "--op write-poll is for pingpong: only there does a target watch its memory; "
			       "leave out the other benchmarks, or use --op write");
	if (config->sizes[0] == 0)
		return xb_fail(error, XB_E_USAGE,
			       "--op write-poll: nothing of a message of 0 bytes can be seen in memory; use "
			       "sizes from 1 on");
	return 0;
}

static int check_op_format(const struct xb_config *config, struct xb_error *error)
{
	const int classic = config->format == XB_FORMAT_IMB || config->format == XB_FORMAT_OSU ||
			    config->format == XB_FORMAT_NOW;

	if (!classic || !xb_whole_operation(xb_op_name(config->op)) ||
	    !xb_config_has(config, XB_BENCH_PINGPONG))
		return 0;
	return xb_fail(
		error, XB_E_USAGE,
		"--op %s: that --format prints half a round trip, and the latency would be the time of "
		"the whole operation; use table, csv or json, or -b bw",
		xb_op_name(config->op));
}

int xb_check_run(struct xb_config *config, struct xb_error *error)
{
	char labels[256] = "";
	int rc;

	if (config->transport_count == 0)
		return xb_fail(error, XB_E_USAGE,
			       "no transport is given: name one or more with -t, for example 'xportbench -t "
			       "tcp -s 1:4M'; "
			       "'xportbench list' shows those of this machine");
	if (config->quiet && config->verbose)
		return xb_fail(error, XB_E_USAGE,
			       "-q, --quiet and -v, --verbose contradict each other; keep one");
	rc = check_places(config, error);
	if (!rc)
		rc = check_op(config, error);
	if (!rc)
		rc = check_op_format(config, error);
	if (!rc)
		rc = xb_swap_resolve(config, error);
	if (rc || !config->baseline)
		return rc;
	for (size_t i = 0; i < config->transport_count; i++) {
		const char *label = config->transports[i].label;

		if (strcmp(label, config->baseline) == 0)
			return 0;
		if (strlen(labels) + strlen(label) + 3 < sizeof(labels))
			strcat(strcat(labels, i ? ", " : ""), label);
	}
	return xb_fail(error, XB_E_USAGE,
		       "--baseline: '%s' is the label of no transport of this run; they are %s",
		       XB_SHOW(config->baseline), labels);
}

static int parse(struct parser *parser, int argc, char **argv)
{
	struct xb_command_line *line = parser->line;
	int options_end = 0, rc;

	line->arguments = calloc((size_t)argc + 1, sizeof(line->arguments[0]));
	if (!line->arguments)
		return xb_fail(parser->error, XB_E_RESOURCE, "out of memory");
	rc = set_fallbacks(parser);
	for (int at = 1; !rc && at < argc; at++) {
		const char *argument = argv[at];

		if (parser->entry->command == XB_COMMAND_WORKER ||
		    parser->entry->command == XB_COMMAND_REACH) {
			rc = add_operand(parser, argument);
		} else if (!options_end && strcmp(argument, "--") == 0) {
			options_end = 1;
		} else if (!options_end && argument[0] == '-' && argument[1]) {
			int taken = read_option(parser, argv, at, argc);

			if (taken == 0)
				return parser->error->status;
			if (line->command == XB_COMMAND_HELP || line->command == XB_COMMAND_VERSION)
				return 0; /* whatever else there is, help is what was asked for */
			at += taken - 1;
		} else if (parser->entry->command == XB_COMMAND_RUN && argument[0] == '@') {
			rc = set_listener(parser, argument + 1);
		} else if (parser->entry->command == XB_COMMAND_RUN) {
			rc = set_command(parser, argument);
		} else {
			rc = add_operand(parser, argument);
		}
	}
	if (!rc)
		rc = check_operands(parser);
	if (!rc && line->command == XB_COMMAND_RUN)
		rc = xb_check_run(&line->config, parser->error);
	return rc;
}

int xb_parse_command_line(int argc, char **argv, struct xb_command_line *line, struct xb_error *error)
{
	struct xb_error own = {0};
	struct parser parser = {.line = line, .entry = &xb_commands[0], .error = error ? error : &own};
	int rc;

	*line = (struct xb_command_line){.command = XB_COMMAND_RUN};
	rc = parse(&parser, argc, argv);
	line->given = parser.given;
	if (rc)
		xb_command_line_free(line);
	return rc;
}

void xb_command_line_free(struct xb_command_line *line)
{
	xb_config_free(&line->config);
	for (size_t i = 0; i < line->argument_count; i++)
		free(line->arguments[i]);
	free(line->arguments);
	*line = (struct xb_command_line){.command = XB_COMMAND_RUN};
}

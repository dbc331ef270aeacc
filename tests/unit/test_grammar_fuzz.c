/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random bytes and mutated valid texts through the grammars of the command line: no crash, no outcome outside
 * the contract. Bounded in time. Each text has a seed of its own, printed if it fails: XB_FUZZ_SEED begins
 * with it; XB_FUZZ_MS (500 for each of the four) makes the run longer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/options.h"
#include "stats/stats.h"

#define TEXT_MAX 2000u
#define ROUNDS_AT_LEAST 200 /* even on a machine that is very slow */

static struct xb_rng rng;
static unsigned long long first_seed = 1, seed;
static struct xb_config config;
static struct xb_command_line line;

static const char *const samples[] = {
	"1:4M",
	"0,1,1000,64K",
	"0:1G",
	"4,4,4096,4K",
	"1K:3K,7",
	"2us",
	"1.5ms",
	"300ns",
	"1s",
	"0.25us",
	"86400s",
	"tcp",
	"tcp,ofi:tcp,ucx:rc,mpi",
	"verbs:mlx5_0/1,ucx:rc/mlx5_0:1",
	"ofi:verbs;ofi_rxm,label=a b",
	"tcp,label=slow,fault.delay=2us,fault.premature",
	"ucx:tcp,env.UCX_TLS=tcp\\,self,trace=/x",
	"mpi:tcp,env.A=b=c,k=v",
};
/* What is significant in some grammar, or to a careless program. */
static const char *const pieces[] = {
	",",	      ":",
	"=",	      ".",
	"-",	      "\\",
	"\\,",	      "\\\\",
	"K",	      "M",
	"G",	      "0",
	"1",	      "18446744073709551616",
	"1073741824", "fault.",
	"env.",	      "label=",
	"trace=",     "us",
	"ns",	      "%s%n",
	"\x1b[2J",    "\xff",
	"\xc3\xa9",   "\xed\xa0\x80",
	" ",	      "\n",
	"../",	      "-t",
	"--",	      "\"",
	"'",
};
static const char *const words[] = {
	"-t",	      "--transports", "tcp",	  "tcp,mpi", "-s",     "1:4M", "--sizes=1",  "-b",
	"bw",	      "-n",	      "auto",	  "-x",	     "5",      "-W",   "--launches", "7:25",
	"--time",     "--ci",	      "2",	  "--seed",  "--bind", "0,1",  "none",	     "--baseline",
	"-o",	      "r.json",	      "--format", "csv",     "-q",     "-v",   "list",	     "report",
	"worker",     "probe",	      "help",	  "man",     "--",     "-",    "--op",	     "write",
	"--launcher", "local",	      "-h",	  "-H",
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static size_t below(size_t n)
{
	return xb_rng_below(&rng, n);
}

static void make_text(char text[TEXT_MAX + 64])
{
	size_t length;

	if (below(4) == 0) { /* bytes of any kind, but for the one that ends a string */
		length = below(below(4) ? 24 : TEXT_MAX);
		for (size_t i = 0; i < length; i++)
			text[i] = (char)(1 + below(255));
		text[length] = '\0';
		return;
	}
	strcpy(text, samples[below(COUNT(samples))]);
	for (size_t n = below(5); n > 0; n--) {
		const char *piece = pieces[below(COUNT(pieces))];
		size_t at, cut;

		length = strlen(text);
		if (length > TEXT_MAX / 2)
			break;
		at = below(length + 1);
		cut = below(3) ? 0 : below(length - at + 1);
		switch (below(4)) {
		case 0: /* insert */
			memmove(text + at + strlen(piece), text + at, length - at + 1);
			memcpy(text + at, piece, strlen(piece));
			break;
		case 1: /* cut out */
			memmove(text + at, text + at + cut, length - at - cut + 1);
			break;
		case 2: /* change a byte */
			if (at < length)
				text[at] = (char)(1 + below(255));
			break;
		default: /* repeat from here */
			memmove(text + length, text + at, length - at + 1);
			text[2 * length - at] = '\0';
		}
	}
}

/* A refusal is a usage error with a sentence that is safe to print. */
static void check_refusal(int rc, const struct xb_error *error, const char *text)
{
	if (rc != XB_E_USAGE || error->status != XB_E_USAGE || !*error->text)
		fail_msg("'%s': status %d, \"%s\"", text, rc, error->text);
	for (const char *p = error->text; *p; p++) {
		if (*p < 0x20 || *p > 0x7e)
			fail_msg("'%s': byte %d in \"%s\"", text, *p, error->text);
	}
}

static int tell_seed(void **state)
{
	(void)state;
	if (seed)
		print_message("failed with XB_FUZZ_SEED=%llu\n", seed);
	return 0;
}

static void fuzz(void (*once)(void))
{
	const char *limit = getenv("XB_FUZZ_MS");
	long ms = limit ? atol(limit) : 500;
	struct timespec begin, now;
	long rounds = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		for (int i = 0; i < ROUNDS_AT_LEAST; i++, rounds++) {
			seed = first_seed + (unsigned long long)rounds;
			xb_rng_seed(&rng, seed);
			once();
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
	print_message("%ld texts\n", rounds);
	seed = 0;
}

static void one_size_list(void)
{
	char text[TEXT_MAX + 64];
	size_t sizes[XB_MAX_SIZES], capacity = 1 + below(XB_MAX_SIZES), count = 4711;
	struct xb_error error = {0};
	int rc;

	make_text(text);
	rc = xb_parse_sizes(text, sizes, capacity, &count, &error);
	if (rc) {
		check_refusal(rc, &error, text);
		assert_int_equal(count, 4711);
		return;
	}
	assert_in_range(count, 1, capacity);
	for (size_t i = 0; i < count; i++) {
		assert_true(sizes[i] <= (size_t)1 << 30);
		assert_true(i == 0 || sizes[i] > sizes[i - 1]);
	}
}

static void one_time(void)
{
	char text[TEXT_MAX + 64];
	uint64_t ns = 4711;
	struct xb_error error = {0};
	int rc;

	make_text(text);
	rc = xb_parse_time_ns(text, &ns, &error);
	if (rc) {
		check_refusal(rc, &error, text);
		assert_int_equal(ns, 4711);
	} else {
		assert_true(ns <= UINT64_C(86400000000000));
	}
}

static void one_transport_list(void)
{
	char text[TEXT_MAX + 64];
	struct xb_error error = {0};
	char *again;
	int rc;

	make_text(text);
	rc = xb_parse_transports(text, &config, &error);
	if (rc) {
		check_refusal(rc, &error, text);
		assert_int_equal(config.transport_count, 0);
		return;
	}
	assert_in_range(config.transport_count, 1, XB_MAX_TRANSPORTS);
	again = calloc(1, strlen(text) + 1);
	for (size_t i = 0; i < config.transport_count; i++) {
		const struct xb_transport_spec *spec = &config.transports[i];

		assert_true(*spec->name && !strpbrk(spec->name, "/.:=, "));
		assert_in_range(strlen(spec->label), 1, 48);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(spec->label, config.transports[j].label);
		strcat(strcat(again, i ? "," : ""), spec->text);
	}
	assert_string_equal(again, text); /* the pieces are the whole */
	free(again);
	xb_config_free(&config);
}

static void one_command_line(void)
{
	char texts[12][TEXT_MAX + 64], *argv[14] = {"xportbench"};
	int argc = 1, rc;
	struct xb_error error = {0};

	for (size_t n = below(12); n > 0; n--, argc++) {
		if (below(5) == 0)
			make_text(texts[argc - 1]);
		else
			strcpy(texts[argc - 1], words[below(COUNT(words))]);
		argv[argc] = texts[argc - 1];
	}
	rc = xb_parse_command_line(argc, argv, &line, &error);
	if (rc) {
		check_refusal(rc, &error, argc > 1 ? argv[1] : "");
		assert_null(line.arguments);
		return;
	}
	if (line.command == XB_COMMAND_RUN) {
		json_t *echo = xb_config_json(&line.config), *value;
		const char *key;
		size_t echoed = 0;

		for (size_t i = 0; i < xb_option_count; i++)
			echoed += (size_t)xb_option_is_echoed(&xb_options[i]);
		assert_int_equal(json_object_size(echo), echoed);
		json_object_foreach(echo, key, value) assert_non_null(value);
		json_decref(echo);
	}
	xb_command_line_free(&line);
}

static void size_lists(void **state)
{
	(void)state;
	fuzz(one_size_list);
}

static void times(void **state)
{
	(void)state;
	fuzz(one_time);
}

static void transport_lists(void **state)
{
	(void)state;
	fuzz(one_transport_list);
}

static void command_lines(void **state)
{
	(void)state;
	fuzz(one_command_line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(size_lists, tell_seed),
		cmocka_unit_test_teardown(times, tell_seed),
		cmocka_unit_test_teardown(transport_lists, tell_seed),
		cmocka_unit_test_teardown(command_lines, tell_seed),
	};
	const char *given = getenv("XB_FUZZ_SEED");

	if (given)
		first_seed = strtoull(given, NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

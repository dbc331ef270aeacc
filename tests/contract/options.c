/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exercise.h"

static const char usage[] =
	"usage: exercise [options] PLUGIN.so [PATH] [key=value ...] [fault.key=value ...]\n"
	"  -b LIST        pingpong,bw,bibw (all)\n"
	"  -o OP          send (default), write, read, write-poll (pingpong)\n"
	"  -s SIZES       as xportbench -s (0,1,7,8,9,64,1K,4095,64K,1M)\n"
	"  -n N  -x N     iterations and warm-up of a block (automatic)\n"
	"  -m MS          time of the timed part when automatic (10)\n"
	"  -W N           window (64)\n"
	"  -N N           endpoints; all pairs are run (2)\n"
	"  --cpus LIST    one per endpoint in turn (0,1); none: do not pin\n"
	"  --mpi          every rank of mpirun is an endpoint; --dir DIR: where they exchange addresses\n"
	"  --listen PORT  be endpoint 0 and wait for the others; --join HOST:PORT --endpoint N: be one of "
	"those\n"
	"  --trace FILE   operations of the engine to FILE.ENDPOINT\n"
	"  --probe        only list what the plugin finds usable\n"
	"  -T SECONDS     timeout (60)   -v verbose\n"
	"Exit status 0 only if every block ran and every payload was verified; 4 if it is not offered "
	"here.\n";

static int fail_usage(const char *text)
{
	fprintf(stderr, "exercise: %s\n%s", text, usage);
	return -1;
}

static int parse_list(const char *text, struct options *o)
{
	static const enum xb_bench known[] = {XB_BENCH_PINGPONG, XB_BENCH_BW, XB_BENCH_BIBW, XB_BENCH_SWAP};
	char copy[128], *save;

	o->bench_count = 0;
	snprintf(copy, sizeof copy, "%s", text);
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		size_t i = 0;
		while (i < 4 && strcmp(word, xb_bench_name(known[i])))
			i++;
		if (i == 4 || o->bench_count == 4)
			return -1;
		o->benches[o->bench_count++] = known[i];
	}
	return 0;
}

static void parse_cpus(const char *text, struct options *o)
{
	o->cpu_count = 0;
	while (*text && strcmp(text, "none") && o->cpu_count < (int)OOB_MOST_ENDPOINTS) {
		char *end;
		o->cpus[o->cpu_count++] = (int)strtol(text, &end, 10);
		if (end == text)
			break;
		text = *end == ',' ? end + 1 : end;
	}
}

static int parse_operands(int argc, char **argv, struct options *o)
{
	o->path = "";
	for (int i = 0; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		if (i == 0) {
			o->plugin = argv[i];
		} else if (!equals) {
			o->path = argv[i];
		} else if (o->key_count < MOST_KEYS && o->fault_count < MOST_KEYS) {
			*equals = 0;
			if (!strncmp(argv[i], "fault.", 6))
				o->fault[o->fault_count++] = (struct xb_key_value){argv[i] + 6, equals + 1};
			else
				o->keys[o->key_count++] = (struct xb_key_value){argv[i], equals + 1};
		}
	}
	return o->plugin ? 0 : -1;
}

int options_parse(int argc, char **argv, struct options *o)
{
	enum { OPT_CPUS = 256, OPT_MPI, OPT_DIR, OPT_TRACE, OPT_PROBE, OPT_LISTEN, OPT_JOIN, OPT_ENDPOINT };
	static const struct option longs[] = {
		{"cpus", required_argument, NULL, OPT_CPUS},
		{"mpi", no_argument, NULL, OPT_MPI},
		{"dir", required_argument, NULL, OPT_DIR},
		{"trace", required_argument, NULL, OPT_TRACE},
		{"probe", no_argument, NULL, OPT_PROBE},
		{"listen", required_argument, NULL, OPT_LISTEN},
		{"join", required_argument, NULL, OPT_JOIN},
		{"endpoint", required_argument, NULL, OPT_ENDPOINT},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	*o = (struct options){
		.window = 64, .endpoints = 2, .timeout_s = 60, .op = XB_OP_SEND, .target_ns = 10000000};
	const char *sizes = "0,1,7,8,9,64,1K,4095,64K,1M";
	struct xb_error error = {0, ""};
	int c;

	parse_list("pingpong,bw,bibw", o);
	parse_cpus("0,1", o);
	while ((c = getopt_long(argc, argv, "b:o:s:n:x:m:W:N:T:vh", longs, NULL)) != -1) {
		switch (c) {
		case 'b':
			if (parse_list(optarg, o))
				return fail_usage("unknown benchmark");
			break;
		case 'o':
			o->op = !strcmp(optarg, "write")	? XB_OP_WRITE
				: !strcmp(optarg, "read")	? XB_OP_READ
				: !strcmp(optarg, "write-poll") ? XB_OP_WRITE_POLL
								: XB_OP_SEND;
			if (strcmp(optarg, xb_op_name(o->op)))
				return fail_usage("unknown operation");
			break;
		case 's':
			sizes = optarg;
			break;
		case 'n':
			o->iterations = strtoull(optarg, NULL, 10);
			break;
		case 'x':
			o->warmup = strtoull(optarg, NULL, 10);
			break;
		case 'm':
			o->target_ns = (uint64_t)(strtod(optarg, NULL) * 1e6);
			break;
		case 'W':
			o->window = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'N':
			o->endpoints = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'T':
			o->timeout_s = strtol(optarg, NULL, 10);
			break;
		case 'v':
			o->verbose++;
			break;
		case OPT_CPUS:
			parse_cpus(optarg, o);
			break;
		case OPT_MPI:
			o->mpi = 1;
			break;
		case OPT_DIR:
			o->folder = optarg;
			break;
		case OPT_TRACE:
			o->trace = optarg;
			break;
		case OPT_LISTEN:
			o->listen = (uint16_t)strtoul(optarg, NULL, 10);
			break;
		case OPT_JOIN:
			o->join = optarg;
			break;
		case OPT_ENDPOINT:
			o->endpoint = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case OPT_PROBE:
			o->only_probe = 1;
			break;
		case 'h':
			fputs(usage, stdout);
			return 1;
		default:
			return fail_usage("unknown option");
		}
	}
	if (parse_operands(argc - optind, argv + optind, o) || o->endpoints < 2 ||
	    o->endpoints > OOB_MOST_ENDPOINTS || o->timeout_s < 1)
		return fail_usage("a plugin, 2 to 16 endpoints and a timeout of at least 1 s are needed");
	if (o->join && (o->endpoint < 1 || o->endpoint >= o->endpoints))
		return fail_usage("--join needs --endpoint 1 ... the number of endpoints - 1");
	if (xb_parse_sizes(sizes, o->sizes, XB_MAX_SIZES, &o->size_count, &error))
		return fail_usage(error.text);
	return 0;
}

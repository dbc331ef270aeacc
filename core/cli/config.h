/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_CONFIG_H
#define XB_CONFIG_H
/*
 * The configuration of a run, as parsed from the command line by one option table (options.c), which also
 * writes --help, the man page and the JSON echo.
 */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include "../engine/swap.h"
#include "../transport.h"

#define XB_MAX_TRANSPORTS 16u
#define XB_MAX_SIZES 256u
#define XB_MAX_KEYS 64u
#define XB_MAX_ENDPOINTS 1024u

/* One item of -t: NAME[:PATH][,key=value...]. */
struct xb_transport_spec {
	char *name, *path; /* path "" if none */
	char *label; /* unique in the run: label= or NAME[:PATH] */
	char *text; /* as given */
	struct xb_key_value keys[XB_MAX_KEYS]; /* all but label=, env.*, fault.*, trace= */
	size_t key_count;
	struct xb_key_value env[XB_MAX_KEYS]; /* env.NAME=VALUE without "env." */
	size_t env_count;
	struct xb_key_value fault[XB_MAX_KEYS]; /* fault.x=y without "fault."; value "" for fault.x */
	size_t fault_count;
	char *trace; /* trace=FILE or NULL */
	char *mpirun; /* mpirun=COMMAND or NULL: what starts this MPI */
};

enum xb_format {
	XB_FORMAT_TABLE,
	XB_FORMAT_CSV,
	XB_FORMAT_JSON,
	XB_FORMAT_IMB,
	XB_FORMAT_OSU,
	XB_FORMAT_NOW,
	XB_FORMAT_COMMTEST,
	XB_FORMAT_NODES
};
enum xb_launcher_kind {
	XB_LAUNCHER_AUTO,
	XB_LAUNCHER_LOCAL,
	XB_LAUNCHER_SSH,
	XB_LAUNCHER_MPIRUN,
	XB_LAUNCHER_SRUN
};

/* One way to swap: what is measured for every message size. */
struct xb_swap_variant {
	uint8_t protocol, mode, overlap;
};
#define XB_MAX_VARIANTS (XB_SWAP_PROTOCOLS * XB_SWAP_MODES * 2u)
enum xb_overlap { XB_OVERLAP_AUTO, XB_OVERLAP_OFF, XB_OVERLAP_ON, XB_OVERLAP_BOTH };

struct xb_swap_config {
	/* as asked for */
	unsigned char protocols[XB_SWAP_PROTOCOLS]; /* flags */
	int all_protocols; /* those that exist in the order */
	unsigned char modes[XB_SWAP_MODES]; /* flags */
	enum xb_swap_order order;
	enum xb_overlap overlap;
	uint32_t depth; /* --overlap-depth; 0: all messages */
	int depth_given;
	size_t total_bytes; /* in each direction */
	/* what follows from it; nothing unless swap is among the benchmarks */
	struct xb_swap_variant variants[XB_MAX_VARIANTS]; /* by mode, overlap, protocol */
	size_t variant_count;
	size_t sizes[XB_MAX_SIZES]; /* of messages, ascending; each divides the total */
	size_t size_count;
};

struct xb_pair;
struct xb_config {
	struct xb_transport_spec transports[XB_MAX_TRANSPORTS];
	size_t transport_count;
	enum xb_bench benches[4];
	size_t bench_count;
	enum xb_op op;
	size_t sizes[XB_MAX_SIZES]; /* ascending, unique, bytes */
	size_t size_count;
	int sizes_given; /* by -s */
	struct xb_swap_config swap;
	char *reference; /* --reference NAME,... or NULL */
	uint64_t iterations, warmup; /* 0 = automatic */
	uint32_t window; /* 64 */
	unsigned launches_min, launches_max; /* 7, 25 */
	double time_s; /* 60 */
	double ci_percent; /* 2 */
	uint64_t seed; /* 0 = choose one and record it */
	char *baseline; /* label or NULL */
	enum xb_launcher_kind launcher;
	char *mpirun_command, *srun_command, *ssh_command; /* NULL: as each launcher sees fit */
	char *remote_path; /* of the program on the other hosts, or NULL: as here */
	char *control_interface; /* interface or numeric address that workers call, or NULL */
	char *key_file; /* of `listen` and @HOST, or NULL: in the user's home */
	char *listener; /* HOST[:PORT] of @HOST, or NULL */
	uint16_t port; /* of `listen` */
	char **hosts; /* of -H, --host-file or the batch job; endpoint e runs on hosts[e % host_count] */
	size_t host_count; /* 0: all endpoints here */
	uint32_t endpoints; /* of every team; at least 2 */
	uint64_t link_bits_per_s; /* --link-rate; 0: as the devices say */
	int bind[XB_MAX_ENDPOINTS]; /* --bind CPU,CPU,...; bind_count 0 = automatic; -1 as the only entry =
				       none */
	size_t bind_count;
	char *output; /* -o FILE or NULL */
	enum xb_format format;
	int quiet, verbose;
	char *plugin_path; /* --plugin-dir or NULL */
	char *pairs; /* "all", "ring", "quick", or a file */
	const struct xb_pair *listed; /* what the file came to, where it must not be read again; borrowed */
	size_t listed_count;
	int serial; /* one pair at a time */
	char *record, *against, *junit; /* files of `accept`, or NULL */
	int self_test;
};

enum xb_command {
	XB_COMMAND_RUN,
	XB_COMMAND_LIST,
	XB_COMMAND_REPORT,
	XB_COMMAND_ACCEPT,
	XB_COMMAND_REFERENCES,
	XB_COMMAND_LISTEN,
	XB_COMMAND_WORKER,
	XB_COMMAND_PROBE,
	XB_COMMAND_HOLD,
	XB_COMMAND_REACH,
	XB_COMMAND_HELP,
	XB_COMMAND_MAN,
	XB_COMMAND_VERSION
};

struct xb_command_line {
	enum xb_command command;
	struct xb_config config;
	char **arguments; /* operands of the command: file of `report`, name of `probe`, ... */
	size_t argument_count;
	uint64_t given; /* bit i: xb_options[i] was on the command line */
};

/* Fills *line from argv. On error returns XB_E_USAGE with one sentence naming the option, what was given and
 * what is allowed. */
int xb_parse_command_line(int argc, char **argv, struct xb_command_line *line, struct xb_error *error);
/* The checks that need all options of a run; xb_parse_command_line makes them for a run itself. */
int xb_check_run(struct xb_config *config, struct xb_error *error);
void xb_command_line_free(struct xb_command_line *line);
/* Frees what the parsers allocated in it; xb_command_line_free does so too. */
void xb_config_free(struct xb_config *config);
void xb_print_help(void *stdio_file);
void xb_print_man(void *stdio_file); /* man page in mdoc, from the same table */
json_t *xb_config_json(const struct xb_config *config); /* echo for the result document; new reference */

/* Grammar pieces, also used by unit tests (sizes.c, transports.c). */
/* "4M", "1K", "0"; K, M, G are 2^10, 2^20, 2^30; at most 1G. */
int xb_parse_size(const char *text, size_t *bytes, struct xb_error *error);
/* "1:4M", "0,1,1000,64K"; ascending, each once. */
int xb_parse_sizes(const char *text, size_t *sizes, size_t capacity, size_t *count, struct xb_error *error);
/* "2us", "1.5ms", "300ns", "1s"; rounded to the nearest ns, at most a day. */
int xb_parse_time_ns(const char *text, uint64_t *ns, struct xb_error *error);
/* What the options about the swap come to, once all are known; XB_E_USAGE in a sentence naming the option. */
int xb_swap_resolve(struct xb_config *config, struct xb_error *error);
/* The swap of a variant with messages of this size. */
struct xb_swap xb_swap_of(const struct xb_config *config, const struct xb_swap_variant *variant,
			  size_t size_bytes);
int xb_config_has(const struct xb_config *config, enum xb_bench bench);
size_t xb_config_largest_message(const struct xb_config *config);
/* Bytes that each buffer must hold: the largest message, or all of a swap. */
size_t xb_config_largest_bytes(const struct xb_config *config);
/* Most messages of one block that are outstanding in a direction. */
uint32_t xb_config_most_window(const struct xb_config *config);

/* hosts.c. Appends the names of "a,b,user@c", or of the lines of a file, to config->hosts. XB_E_USAGE for
 * what cannot be a host. */
int xb_parse_hosts(const char *text, struct xb_config *config, struct xb_error *error);
int xb_read_host_file(const char *path, struct xb_config *config, struct xb_error *error);
void xb_hosts_free(struct xb_config *config);
/* Is this the name of an MPI transport: "mpi", or "mpi@WHICH" of a second MPI? */
int xb_is_mpi(const char *transport);
/* Appends to config->transports; on failure they are what they were. */
int xb_parse_transports(const char *text, struct xb_config *config, struct xb_error *error);

#endif

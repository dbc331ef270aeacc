/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_OPTIONS_H
#define XB_OPTIONS_H
/*
 * The one table of options (options.c) and of commands (command_line.c), shared by the parser, --help, the
 * man page and the JSON echo. Private to core/cli and its tests. Every text is plain: sentences end in a full
 * stop; no markup.
 */
#include "config.h"

#define XB_LABEL_MAX 48u /* characters of a transport's label */
#define XB_SEED_MAX                                                                                          \
	((UINT64_C(1) << 53) - 1) /* survives every JSON reader, also those that keep numbers as double */

enum xb_option_group {
	XB_GROUP_WHAT,
	XB_GROUP_HOW,
	XB_GROUP_WHERE,
	XB_GROUP_ACCEPT,
	XB_GROUP_OUTPUT,
	XB_GROUP_GENERAL,
	XB_GROUP_COUNT
};
const char *xb_option_group_title(enum xb_option_group group);

#define XB_FOR(command) (1u << (command))
#define XB_FOR_ALL (~0u)

struct xb_option {
	const char *name; /* long name, without the dashes */
	char letter; /* 0: no short form */
	const char *argument; /* what its value is called; NULL: a flag */
	const char *fallback; /* value before the command line is read, set by the same setter; NULL: none */
	enum xb_option_group group;
	unsigned commands; /* XB_FOR(...): given to another command it is refused */
	int hidden; /* known, so that it can be refused with a reason; not in --help and the man page */
	const char *help;
	/* value is NULL for a flag. On failure XB_E_USAGE and a sentence that need not name the option. */
	int (*set)(struct xb_config *config, const char *value, struct xb_error *error);
	/* Its member in the "config" object of a result document, called as the option but with '_' for '-';
	 * NULL: presentation only, changes no number. */
	json_t *(*echo)(const struct xb_config *config);
	/* For a text that is kept as it is, instead of both: offset of its char * in the configuration, what
	 * an empty one is told to give, and whether it is a member of "config". */
	size_t text_offset;
	const char *text_wanted;
	int text_echoed;
};
int xb_option_set(const struct xb_option *option, struct xb_config *config, const char *value,
		  struct xb_error *error);
int xb_option_is_echoed(const struct xb_option *option);
extern const struct xb_option xb_options[];
extern const size_t xb_option_count;

struct xb_command_entry {
	const char *name; /* "" for the run itself, which has no word */
	enum xb_command command;
	const char *operands;
	size_t operands_min, operands_max;
	int hidden; /* used between our own processes */
	const char *help;
};
extern const struct xb_command_entry xb_commands[];
extern const size_t xb_command_count;

int xb_is_utf8(const char *text);
/* Frees transports[keep ...]. */
void xb_transports_free(struct xb_config *config, size_t keep);

/* Nearest of the words to what was typed, if one is near enough to be meant; else NULL. */
const char *xb_nearest(const char *typed, const char *(*word)(size_t index), size_t count);

#endif

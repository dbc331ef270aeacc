/* SPDX-License-Identifier: BSD-3-Clause */
/* --help, from the tables. */
#include <stdio.h>
#include <string.h>
#include "options.h"

#define WIDTH 80
#define INDENT 30 /* where the texts of the options begin */

/* Prints words, the first at column `column`, broken before WIDTH and continued at `indent`. */
static void print_wrapped(FILE *out, const char *text, int column, int indent)
{
	for (const char *word = text; *word;) {
		int length = (int)strcspn(word, " ");

		if (word > text && column + 1 + length <= WIDTH) {
			column += fprintf(out, " ");
		} else if (word > text || column + length > WIDTH) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		}
		column += fprintf(out, "%.*s", length, word);
		word += length;
		word += strspn(word, " ");
	}
	putc('\n', out);
}

static void print_option(FILE *out, const struct xb_option *option)
{
	char text[1024];
	int column = fprintf(out, "  %c%c%s --%s", option->letter ? '-' : ' ',
			     option->letter ? option->letter : ' ', option->letter ? "," : " ", option->name);

	if (option->argument)
		column += fprintf(out, " %s", option->argument);
	if (column + 2 > INDENT) {
		putc('\n', out);
		column = 0;
	}
	fprintf(out, "%*s", INDENT - column, "");
	snprintf(text, sizeof(text), "%s", option->help);
	if (option->fallback)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " (default %s)", option->fallback);
	print_wrapped(out, text, INDENT, INDENT);
}

void xb_print_help(void *stdio_file)
{
	FILE *out = stdio_file;

	fputs("xportbench measures what each layer between an application and the wire costs:\n"
	      "the same loop over raw fabrics, OFI, UCX, sockets and MPI, side by side.\n\n",
	      out);
	for (size_t i = 0; i < xb_command_count; i++) {
		const struct xb_command_entry *entry = &xb_commands[i];

		if (!entry->hidden)
			fprintf(out, "%s xportbench%s%s%s%s\n",
				i ? "      " : "Usage:", *entry->name ? " " : "", entry->name,
				*entry->operands ? " " : "", entry->operands);
	}
	for (int group = 0; group < XB_GROUP_COUNT; group++) {
		fprintf(out, "\n%s:\n", xb_option_group_title((enum xb_option_group)group));
		for (size_t i = 0; i < xb_option_count; i++) {
			if ((int)xb_options[i].group == group && !xb_options[i].hidden)
				print_option(out, &xb_options[i]);
		}
	}
	fputs("\nTransports: NAME[:PATH][,KEY=VALUE...]; an item with '=' belongs to the\n"
	      "transport before it. All know label=TEXT, env.NAME=VALUE, fault.KEY=VALUE and\n"
	      "trace=FILE; 'xportbench list' shows the paths and keys of each.\n"
	      "\nExamples:\n"
	      "  xportbench -t tcp -s 1:4M\n"
	      "  xportbench -t tcp,ucx:tcp,mpi:tcp -s 1:4M -o run.json\n"
	      "  xportbench -t tcp,tcp,label=small,sndbuf=64K -b bw -s 64K:4M\n"
	      "  xportbench -H node1,node2 -t tcp,ucx:tcp,mpi:tcp\n"
	      "  xportbench report run.json --format csv\n"
	      "\nExit status: 0 complete, 1 a limit of accept is violated, 2 usage, 3 measured\n"
	      "but not valid or not conclusive, 4 a transport could not be measured or a host\n"
	      "not be used, 5 the result could not be written, 128 + n ended by signal n.\n"
	      "The manual page: xportbench man | man -l -\n",
	      out);
}

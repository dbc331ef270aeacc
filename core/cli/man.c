/* SPDX-License-Identifier: BSD-3-Clause */
/* The manual page in mdoc(7): the options and commands from the tables, the rest written here. */
#include <stdio.h>
#include <string.h>
#include "options.h"

static void escape(FILE *out, char c)
{
	switch (c) {
	case '\\':
		fputs("\\e", out);
		break;
	case '-':
		fputs("\\-", out);
		break;
	case '^':
		fputs("\\(ha", out);
		break;
	case '~':
		fputs("\\(ti", out);
		break;
	case '\'':
		fputs("\\(aq", out);
		break;
	case '"':
		fputs("\\(dq", out);
		break;
	default:
		putc(c, out);
	}
}

/* Plain text: each sentence begins a line, as mdoc wants it, and none is longer than 78 columns. */
static void print_text(FILE *out, const char *text)
{
	size_t column = 0;

	for (const char *word = text; *word;) {
		size_t length = strcspn(word, " ");

		if (word > text) {
			int new_line = word[-2] == '.' || column + 1 + length > 78;

			putc(new_line ? '\n' : ' ', out);
			column = new_line ? 0 : column + 1;
		}
		for (size_t i = 0; i < length; i++)
			escape(out, word[i]);
		column += length;
		word += length + (word[length] == ' ');
	}
	putc('\n', out);
}

/* An argument of a macro: quoted, so that no word of it is taken for a macro. */
static void print_word(FILE *out, const char *macro, const char *word)
{
	fprintf(out, " %s \"", macro);
	for (const char *p = word; *p; p++)
		escape(out, *p);
	putc('"', out);
}

static void print_option(FILE *out, const struct xb_option *option)
{
	fputs(".It", out);
	if (option->letter)
		fprintf(out, " Fl %c ,", option->letter);
	fputs(" Fl", out);
	fputs(" \"\\-", out);
	for (const char *p = option->name; *p; p++)
		escape(out, *p);
	putc('"', out);
	if (option->argument)
		print_word(out, "Ar", option->argument);
	putc('\n', out);
	print_text(out, option->help);
	if (option->fallback) {
		fputs("The default is", out);
		fputs("\n.Cm \"", out);
		for (const char *p = option->fallback; *p; p++)
			escape(out, *p);
		fputs("\" .\n", out);
	}
}

static const char head[] = ".Dd November 30, 2026\n"
			   ".Dt XPORTBENCH 1\n"
			   ".Os\n"
			   ".Sh NAME\n"
			   ".Nm xportbench\n"
			   ".Nd measure what each layer between an application and the wire costs\n"
			   ".Sh SYNOPSIS\n"
			   ".Nm\n"
			   ".Fl t Ar TRANSPORT Ns Op , Ns Ar TRANSPORT ...\n"
			   ".Op Fl s Ar SIZES\n"
			   ".Op Ar @HOST Ns Op : Ns Ar PORT\n"
			   ".Op Ar OPTION ...\n"
			   ".Nm\n"
			   ".Cm list\n"
			   ".Nm\n"
			   ".Cm report Ar FILE\n"
			   ".Op Fl \\-format Ar FORMAT\n"
			   ".Nm\n"
			   ".Cm accept\n"
			   ".Op Ar LIMITS.ini\n"
			   ".Op Ar OPTION ...\n"
			   ".Nm\n"
			   ".Cm listen\n"
			   ".Op Fl \\-port Ar PORT\n"
			   ".Op Fl \\-key\\-file Ar FILE\n"
			   ".Op Fl \\-control\\-interface Ar NAME\n"
			   ".Nm\n"
			   ".Cm references | help | man\n"
			   ".Sh DESCRIPTION\n"
			   ".Nm\n"
			   "runs the same communication loop, with the same timer, buffers, cores and\n"
			   "units, over raw verbs (InfiniBand, RoCE), sockets, OFI (libfabric, with PSM2 on\n"
			   "Omni\\-Path), UCX and MPI.\n"
			   "For every message size it reports what each layer costs and what it adds to\n"
			   "the layer below, with a confidence interval, and shows by the byte counters of\n"
			   "the devices which path the data really took.\n"
			   ".Pp\n"
			   "The endpoints run on this machine, or on the hosts named with\n"
			   ".Fl H ,\n"
			   "each in a process of its own on a core of its own.\n"
			   "A\n"
			   ".Em launch\n"
			   "starts all of them afresh and measures every benchmark and size over every\n"
			   "transport, interleaved and in random order.\n"
			   "Medians are taken over the launches, since two pairs of identical processes\n"
			   "differ from launch to launch by more than they vary within one.\n"
			   ".Pp\n"
			   "The commands are:\n"
			   ".Bl -tag -width report\n";

static const char middle[] = ".El\n"
			     ".Pp\n"
			     "Without a command the transports named with\n"
			     ".Fl t\n"
			     "are measured.\n";

static const char tail[] =
	".Sh TRANSPORTS\n"
	"The list of\n"
	".Fl t\n"
	"has the form\n"
	".Pp\n"
	".Dl NAME[:PATH][,KEY=VALUE ...][,NAME ...]\n"
	".Pp\n"
	"An item with an equals sign is a key of the transport before it.\n"
	"A comma within a path or a value is written\n"
	".Ql \\e, .\n"
	"The names are\n"
	".Cm tcp , ofi , ucx , verbs , mpi\n"
	"and\n"
	".Cm null ;\n"
	".Nm\n"
	".Cm list\n"
	"shows those that are usable, with the paths and keys of each.\n"
	"All of them know these keys:\n"
	".Bl -tag -width Ds\n"
	".It Cm label Ns = Ns Ar TEXT\n"
	"The name of the transport in the report, at most 48 printable characters.\n"
	"It is needed when the same transport is listed twice.\n"
	".It Cm env.\\& Ns Ar NAME Ns = Ns Ar VALUE\n"
	"An environment variable of the processes of this transport alone.\n"
	".It Cm fault.\\& Ns Ar KEY Ns Op = Ns Ar VALUE\n"
	"Distort the transport on purpose, to see whether the measurement notices:\n"
	".Cm fault.delay Ns = Ns Ar 2us ,\n"
	".Cm fault.step Ns = Ns Ar 8K/5us\n"
	"and others.\n"
	"Times have the units ns, us, ms and s.\n"
	".It Cm trace Ns = Ns Ar FILE\n"
	"Append every operation of the engine to FILE.ENDPOINT (FILE.0, FILE.1), on the\n"
	"host of the endpoint.\n"
	".It Cm mpirun Ns = Ns Ar COMMAND\n"
	"Of an MPI transport: the mpirun that starts it.\n"
	".El\n"
	".Sh ENVIRONMENT\n"
	".Bl -tag -width NO_COLOR\n"
	".It Ev NO_COLOR\n"
	"If set and not empty, the table has no colour on a terminal either.\n"
	".It Ev XB_TIMER\n"
	"With the value\n"
	".Cm clock ,\n"
	"time is read with\n"
	".Fn clock_gettime\n"
	"even where the time stamp counter is usable.\n"
	".El\n"
	".Sh EXIT STATUS\n"
	".Bl -tag -width Ds\n"
	".It 0\n"
	"Everything asked for was measured.\n"
	".It 1\n"
	"A limit of\n"
	".Cm accept\n"
	"is violated, and fresh launches say so too.\n"
	".It 2\n"
	"The command line is wrong, or a file that it names is or cannot be read, or the\n"
	"run was refused before anything was measured.\n"
	".It 3\n"
	"Measured, but not valid: a finding is marked invalid (another path than the one\n"
	"asked for, a rate above that of the link, both ends on one CPU ...); or\n"
	".Cm accept\n"
	"came to no conclusion, for which too much noise is a reason.\n"
	"Noise alone does not change the exit status of a run.\n"
	".It 4\n"
	"A transport could not be measured; the others were, and are in the output.\n"
	"Or a host could not be used when the run began: then nothing was measured, and\n"
	"nothing is written.\n"
	".It 5\n"
	"Measured, but the result or the report could not be written.\n"
	".It 128 + n\n"
	"Ended by signal n (130: Ctrl\\-C); what was measured until then is in the output.\n"
	".El\n"
	".Sh EXAMPLES\n"
	"Latency of TCP between two processes of this machine:\n"
	".Pp\n"
	".Dl xportbench \\-t tcp \\-s 1:4M\n"
	".Pp\n"
	"What UCX and MPI add to it, kept in a file:\n"
	".Pp\n"
	".Dl xportbench \\-t tcp,ucx:tcp,mpi:tcp \\-s 1:4M \\-o run.json\n"
	".Pp\n"
	"Between two machines, over ssh:\n"
	".Pp\n"
	".Dl xportbench \\-H node1,node2 \\-t tcp,ucx:tcp,mpi:tcp\n"
	".Pp\n"
	"Is a smaller send buffer slower?\n"
	"The same transport twice, told apart by a label:\n"
	".Pp\n"
	".Dl xportbench \\-t tcp,tcp,label=small,sndbuf=64K \\-b bw \\-s 64K:4M\n"
	".Pp\n"
	"Does this network keep the limits of a file?\n"
	".Pp\n"
	".Dl xportbench accept limits.ini \\-\\-junit result.xml\n"
	".Pp\n"
	"A saved run as comma\\-separated values:\n"
	".Pp\n"
	".Dl xportbench report run.json \\-\\-format csv\n";

void xb_print_man(void *stdio_file)
{
	FILE *out = stdio_file;

	fputs(head, out);
	for (size_t i = 0; i < xb_command_count; i++) {
		const struct xb_command_entry *entry = &xb_commands[i];

		if (entry->hidden || entry->command == XB_COMMAND_RUN)
			continue;
		fprintf(out, ".It Cm %s%s%s\n", entry->name, *entry->operands ? " Ar " : "", entry->operands);
		print_text(out, entry->help);
	}
	fputs(middle, out);
	fputs(".Sh OPTIONS\n", out);
	for (int group = 0; group < XB_GROUP_COUNT; group++) {
		fprintf(out, ".Ss %s\n.Bl -tag -width Ds\n",
			xb_option_group_title((enum xb_option_group)group));
		for (size_t i = 0; i < xb_option_count; i++) {
			if ((int)xb_options[i].group == group && !xb_options[i].hidden)
				print_option(out, &xb_options[i]);
		}
		fputs(".El\n", out);
	}
	fputs(tail, out);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "config.h"
#include "../accept/accept.h"
#include "../control/listen.h"
#include "../control/run.h"
#include "../control/worker.h"
#include "../launch/hold.h"
#include "../launch/reach.h"
#include "../engine/block.h"
#include "../report/references.h"
#include "../report/results.h"
#include "../report/view.h"
#include <stdlib.h>
#include <unistd.h>

static int print_file(const struct xb_command_line *line)
{
	struct xb_error error = {0};
	json_t *document = NULL;
	const char *no_colour = getenv("NO_COLOR");
	int status = xb_document_read(line->arguments[0], &document, &error);
	if (!status)
		status = xb_references_check(line->config.reference,
					     xb_text_of(json_object_get(document, "config"), "op"), &error);
	if (status) {
		json_decref(document);
		fprintf(stderr, "xportbench: %s\n", error.text);
		return XB_EXIT_USAGE;
	}
	xb_references_add(line->config.reference, document);
	status = xb_print_document(document, line->config.format, stdout,
				   isatty(1) && !(no_colour && *no_colour), &error);
	int exit_status = xb_results_exit_status(document);
	json_decref(document);
	if (!status && (fflush(stdout) || ferror(stdout)))
		status = xb_fail(&error, XB_E_SYSTEM, "cannot write the report to standard output");
	if (status) {
		fprintf(stderr, "xportbench: %s\n", error.text);
		return status == XB_E_UNSUPPORTED ? XB_EXIT_USAGE : XB_EXIT_OUTPUT;
	}
	return exit_status;
}

static int finish_stdout(void)
{
	return fflush(stdout) || ferror(stdout) ? XB_EXIT_OUTPUT : 0;
}

int main(int argc, char **argv)
{
	static struct xb_command_line line; /* large */
	struct xb_error error = {0};
	int status = 0;

	if (xb_parse_command_line(argc, argv, &line, &error)) {
		fprintf(stderr, "xportbench: %s\n", error.text);
		return XB_EXIT_USAGE;
	}
	switch (line.command) {
	case XB_COMMAND_RUN:
		if (xb_references_check(line.config.reference, xb_op_name(line.config.op), &error)) {
			fprintf(stderr, "xportbench: --reference: %s\n", error.text);
			status = XB_EXIT_USAGE;
		} else {
			status = xb_run(&line.config);
		}
		break;
	case XB_COMMAND_REFERENCES:
		status = xb_references_list(stdout) ? XB_EXIT_USAGE : finish_stdout();
		break;
	case XB_COMMAND_LIST:
		status = xb_list(&line.config);
		break;
	case XB_COMMAND_REPORT:
		status = print_file(&line);
		break;
	case XB_COMMAND_ACCEPT:
		status = xb_accept(line.argument_count ? line.arguments[0] : NULL, line.given, &line.config);
		break;
	case XB_COMMAND_WORKER:
		status = xb_worker_main(line.arguments, line.argument_count);
		break;
	case XB_COMMAND_PROBE:
		status = xb_probe_main(line.arguments, line.argument_count);
		break;
	case XB_COMMAND_HOLD:
		status = xb_hold_main(line.arguments[0]);
		break;
	case XB_COMMAND_LISTEN:
		status = xb_listen(&line.config);
		break;
	case XB_COMMAND_REACH:
		status = xb_reach_main(line.arguments, line.argument_count);
		break;
	case XB_COMMAND_HELP:
		xb_print_help(stdout);
		status = finish_stdout();
		break;
	case XB_COMMAND_MAN:
		xb_print_man(stdout);
		status = finish_stdout();
		break;
	case XB_COMMAND_VERSION:
		printf("xportbench %s\n", XB_VERSION);
		status = finish_stdout();
		break;
	}
	xb_command_line_free(&line);
	return status;
}

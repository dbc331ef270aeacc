/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "classic.h"
#include "internal.h"
#include "references.h"
#include "swaps.h"
#include "text.h"
#include "view.h"

static int print_table(struct xb_out *out, const struct xb_view *view, struct xb_error *error)
{
	xb_print_heading(out, view);
	int status = xb_print_tables(out, view, error);
	if (status == 0)
		status = xb_print_swaps(out, view, error);
	if (status == 0) {
		xb_print_references(out, view);
		xb_print_findings(out, view);
		/* a run of swaps alone has nothing that those sentences are about */
		if (json_array_size(json_object_get(view->document, "swaps")) == 0 ||
		    json_array_size(json_object_get(view->document, "results")) > 0)
			status = xb_print_sentences(out, view, error);
		xb_print_swap_sentences(out, view);
	}
	if (status == 0)
		xb_print_acceptance(out, view->document);
	return status;
}

/* IMB, OMB and comm.shar print half a round trip. */
static int check_classic(const struct xb_view *view, struct xb_error *error)
{
	const char *op = xb_text_of(json_object_get(view->document, "config"), "op");
	if (!xb_whole_operation(op) || !view->has_bench[XB_BENCH_PINGPONG])
		return 0;
	return xb_fail(
		error, XB_E_UNSUPPORTED,
		"that --format prints half a round trip, and with --op %s this run's latency is the time "
		"of the whole operation; use table, csv or json",
		op);
}

static int print_as(struct xb_out *out, const struct xb_view *view, enum xb_format format,
		    struct xb_error *error)
{
	switch (format) {
	case XB_FORMAT_TABLE:
		return print_table(out, view, error);
	case XB_FORMAT_CSV:
		xb_print_csv(out, view);
		return 0;
	case XB_FORMAT_JSON:
		(void)xb_json_write(view->document, out->file);
		return 0;
	case XB_FORMAT_IMB:
		return check_classic(view, error) ? XB_E_UNSUPPORTED : xb_print_imb(out, view, error);
	case XB_FORMAT_OSU:
		return check_classic(view, error) ? XB_E_UNSUPPORTED : xb_print_osu(out, view, error);
	case XB_FORMAT_NOW:
		return check_classic(view, error) ? XB_E_UNSUPPORTED : xb_print_now(out, view, error);
	case XB_FORMAT_COMMTEST:
		return xb_print_commtest(out, view, error);
	case XB_FORMAT_NODES:
		return xb_print_node_lines(out, view->document)
			       ? 0
			       : xb_fail(error, XB_E_UNSUPPORTED,
					 "--format nodes prints the verdicts of 'xportbench accept', and "
					 "this run has "
					 "none; use table, csv or json");
	}
	return xb_fail(error, XB_E_UNSUPPORTED, "there is no format %d", (int)format);
}

int xb_print_document(json_t *document, enum xb_format format, void *stdio_file, int colour,
		      struct xb_error *error)
{
	struct xb_out out = {.file = stdio_file, .colour = colour};
	struct xb_view view;
	int status = xb_document_check(document, "this document", error);
	if (status == 0)
		status = xb_view_open(document, "this document", &view, error);
	if (status)
		return status;
	errno = 0;
	status = print_as(&out, &view, format, error);
	xb_view_close(&view);
	if (status == 0 && (fflush(out.file) != 0 || ferror(out.file)))
		status = xb_fail(error, XB_E_SYSTEM, "cannot print the results: %s",
				 errno ? strerror(errno) : "the output is closed");
	return status;
}

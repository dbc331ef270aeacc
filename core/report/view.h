/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_REPORT_VIEW_H
#define XB_REPORT_VIEW_H
/* A document put in order for the printers: by benchmark, size and transport. Borrows from the document. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include "../error.h"

#define XB_VIEW_TRANSPORTS 64u
#define XB_VIEW_BENCHES 4u
#define XB_VIEW_SIZES 4096u

struct xb_view_transport {
	json_t *json;
	const char *label;
	int ok; /* status is "ok" */
	int measured; /* has results */
	size_t below; /* the transport directly below it, or SIZE_MAX */
};

struct xb_view {
	json_t *document;
	struct xb_view_transport transports[XB_VIEW_TRANSPORTS];
	size_t transport_count, baseline; /* baseline is an index, SIZE_MAX when there is none */
	int has_bench[XB_VIEW_BENCHES];
	uint64_t *sizes; /* ascending */
	size_t size_count;
	json_t **cells; /* three tables of [bench][size][transport] */
	size_t launches; /* whole ones */
};

/* XB_E_USAGE when entries name unknown labels or appear twice. The document has passed the type check. */
int xb_view_open(json_t *document, const char *name, struct xb_view *view, struct xb_error *error);
void xb_view_close(struct xb_view *view);
/* NULL where there is none. */
json_t *xb_view_result(const struct xb_view *view, size_t bench, size_t size, size_t transport);
json_t *xb_view_overhead(const struct xb_view *view, size_t bench, size_t size,
			 size_t transport); /* on the baseline */
json_t *xb_view_above(const struct xb_view *view, size_t bench, size_t size,
		      size_t transport); /* on the one below */

/* The printed forms; each returns 0 or a negative status. Write errors are found by the caller (ferror). */
struct xb_out;
void xb_print_acceptance(struct xb_out *out, json_t *document); /* nothing if it was no acceptance run */
/* One line a node; 0 if it was no acceptance run. */
int xb_print_node_lines(struct xb_out *out, json_t *document);
void xb_print_heading(struct xb_out *out, const struct xb_view *view);
int xb_print_tables(struct xb_out *out, const struct xb_view *view, struct xb_error *error);
void xb_print_findings(struct xb_out *out, const struct xb_view *view);
int xb_print_sentences(struct xb_out *out, const struct xb_view *view, struct xb_error *error);
void xb_print_csv(struct xb_out *out, const struct xb_view *view);

/* write.c: the document as text: one member a line, lists of plain values on one line. Negative when writing
 * fails. */
int xb_json_write(json_t *document, void *stdio_file);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_REPORT_SWAPS_H
#define XB_REPORT_SWAPS_H
/* Swap records: into the document, and out of it again for the printed forms. */
#include <jansson.h>
#include "commtest.h"
#include "internal.h"
#include "view.h"

/* document_swap.c: adds "swaps", "swap_estimates" and "swap_comparisons" to the document. */
void xb_swaps_document(const struct xb_results *r, json_t *document);
/* conclude_swap.c: findings */
void xb_swaps_conclude(struct xb_results *r);

/* All that a document says about the swaps of one transport, one mode, with or without overlap. */
struct xb_sweep {
	const char *label;
	enum xb_swap_order order;
	enum xb_swap_mode mode;
	int overlap;
	double total_bytes;
	size_t size_count;
	uint64_t sizes[XB_MAX_SIZES]; /* ascending */
	double messages[XB_MAX_SIZES];
	json_t *record[XB_SWAP_PROTOCOLS][XB_MAX_SIZES]; /* NULL: not measured */
	double min_s[XB_SWAP_PROTOCOLS][XB_MAX_SIZES]; /* NAN: not measured */
	int any;
};
/* Fills *sweep (large) from the document; sweep->any is 0 if there is nothing. XB_E_USAGE when records do not
 * belong together. */
int xb_sweep_read(json_t *document, const char *label, enum xb_swap_mode mode, int overlap,
		  struct xb_sweep *sweep, struct xb_error *error);
/* Checks the records of a document that was read: known labels, none twice. */
int xb_swaps_check(json_t *document, const char *name, struct xb_error *error);

int xb_print_swaps(struct xb_out *out, const struct xb_view *view, struct xb_error *error); /* swap_table.c */
void xb_print_swap_sentences(struct xb_out *out, const struct xb_view *view);
int xb_print_commtest(struct xb_out *out, const struct xb_view *view, struct xb_error *error);

#endif

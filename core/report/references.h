/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_REFERENCES_H
#define XB_REFERENCES_H
/* Published tables (share/references) beside a run. */
#include "text.h"
#include "view.h"

/* One table by name, or a file by path: name, bench, title, provenance, remark, link_bits_per_s, points.
 * XB_E_USAGE with what there is when it is not found or not understood. */
int xb_reference_load(const char *name, json_t **reference, struct xb_error *error);
/* Checks a list of names with commas between them; NULL is no list. op: of the run ("send"; NULL: not known):
 * the time of a whole operation does not stand beside latencies of one way. */
int xb_references_check(const char *list, const char *op, struct xb_error *error);
/* Adds the tables of the list (checked before) to the document, as "references". */
void xb_references_add(const char *list, json_t *document);
/* `xportbench references`: all tables and where they are from. 0, or -1 when something was said on stderr. */
int xb_references_list(void *stdio_file);
/* Those of the document beside its results, at matching sizes. */
void xb_print_references(struct xb_out *out, const struct xb_view *view);

#endif

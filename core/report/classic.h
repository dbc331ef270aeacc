/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_CLASSIC_H
#define XB_CLASSIC_H
/*
 * Reports in the shapes of other tools. Each writes one part per transport and benchmark, headed by a comment
 * that names the transport in a form that the parsers of that tool skip. XB_E_UNSUPPORTED when the run has
 * nothing that has such a shape.
 */
#include "text.h"
#include "view.h"

int xb_print_imb(struct xb_out *out, const struct xb_view *view, struct xb_error *error);
int xb_print_osu(struct xb_out *out, const struct xb_view *view, struct xb_error *error);
int xb_print_now(struct xb_out *out, const struct xb_view *view, struct xb_error *error);

/* The sums of comm.shar (now.c), of n sizes in bytes and one-way times in us: asymptotic bandwidth in MB/s
 * and half-performance length in bytes. */
struct xb_asymptote {
	double seen_MBps,
		seen_half_bytes; /* largest bandwidth; size with half of it, by linear interpolation */
	double fitted_MBps, fitted_half_bytes; /* least squares of t = (size + half) / r (Hockney) */
};
struct xb_asymptote xb_asymptote_of(const double *bytes, const double *us, size_t n);

#endif

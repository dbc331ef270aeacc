/* SPDX-License-Identifier: BSD-3-Clause */
/* Findings about swaps. There are many cells, so each finding counts them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "swaps.h"

#define INTERVAL_LAUNCHES 6u /* as in conclude.c, also the next two */
#define NOISY_SPREAD 0.20
#define NOISY_HALF_WIDTH 0.25
#define DISTURBED_SHARE 0.25

struct tally {
	size_t cells, noisy, unverified, too_wide, blocks, disturbed, most_launches;
	long involuntary;
	double worst_spread;
};

static void count(const struct xb_results *r, size_t t, size_t v, size_t s, struct tally *tally)
{
	const struct xb_cell *cell = xb_results_swap_cell(r, t, v, s);
	const struct xb_cell *base = t == r->baseline ? NULL : xb_results_swap_cell(r, r->baseline, v, s);
	struct xb_headline h;
	if (!xb_headline_of(r, cell, &h))
		return;
	double spread = h.between_ns / h.ns.median;
	double half_width = (h.ns.high - h.ns.low) / 2.0 / h.ns.median;
	tally->cells++;
	tally->noisy += spread > NOISY_SPREAD || half_width > NOISY_HALF_WIDTH;
	tally->unverified += !xb_cell_comparable(r, t, cell, r->config->swap.sizes[s]);
	tally->too_wide += xb_pair_too_wide(r, cell, base) != 0;
	tally->blocks += h.rounds;
	tally->disturbed += h.disturbed_blocks;
	tally->involuntary += h.involuntary;
	if (spread > tally->worst_spread)
		tally->worst_spread = spread;
	if (h.launches > tally->most_launches)
		tally->most_launches = h.launches;
	xb_headline_free(&h);
}

static void tell(struct xb_results *r, size_t t, const struct tally *tally)
{
	const char *label = r->config->transports[t].label, *why = r->stopped_by ? r->stopped_by : "";
	char text[400];
	if (tally->noisy > 0) {
		snprintf(text, sizeof(text),
			 "%.100s swap is noisy in %zu of %zu cases: the middle half of the launches spreads "
			 "over "
			 "up to %.0f %% of the median",
			 label, tally->noisy, tally->cells, 100.0 * tally->worst_spread);
		xb_results_finding(r, "warning", "noisy", label, "swap", XB_NO_SIZE, text);
	}
	if (tally->unverified > 0) {
		snprintf(text, sizeof(text),
			 "the payload of %.100s swap was not verified in %zu of %zu cases: not compared",
			 label, tally->unverified, tally->cells);
		xb_results_finding(r, "warning", "not-verified", label, "swap", XB_NO_SIZE, text);
	}
	if ((strcmp(why, "time") == 0 || strcmp(why, "fixed") == 0) && tally->too_wide > 0 &&
	    tally->most_launches >= INTERVAL_LAUNCHES) {
		snprintf(text, sizeof(text),
			 "%.100s swap did not reach +-%g %% (--ci) within the %s in %zu of %zu cases", label,
			 r->config->ci_percent,
			 strcmp(why, "time") == 0 ? "time budget (--time)" : "launches (--launches)",
			 tally->too_wide, tally->cells);
		xb_results_finding(r, "info", "not-converged", label, "swap", XB_NO_SIZE, text);
	}
	if ((double)tally->disturbed > DISTURBED_SHARE * (double)tally->blocks) {
		snprintf(text, sizeof(text),
			 "%zu of %zu blocks of %.100s swap were preempted while timed (%ld involuntary "
			 "context "
			 "switches): other work runs on the measuring cores",
			 tally->disturbed, tally->blocks, label, tally->involuntary);
		xb_results_finding(r, "warning", "context-switches", label, "swap", XB_NO_SIZE, text);
	}
	if (tally->cells > 0 && tally->most_launches < INTERVAL_LAUNCHES) {
		snprintf(text, sizeof(text),
			 "%zu whole launch%s: fewer than %u give no 95 %% interval, so no overhead can be "
			 "told "
			 "from chance",
			 tally->most_launches, tally->most_launches == 1 ? "" : "es", INTERVAL_LAUNCHES);
		xb_results_finding(r, "info", "too-few-launches", NULL, NULL, XB_NO_SIZE, text);
	}
}

void xb_swaps_conclude(struct xb_results *r)
{
	for (size_t t = 0; t < r->config->transport_count; t++) {
		struct tally tally = {.cells = 0};
		for (size_t v = 0; v < r->config->swap.variant_count; v++)
			for (size_t s = 0; s < r->config->swap.size_count; s++)
				count(r, t, v, s, &tally);
		tell(r, t, &tally);
	}
}

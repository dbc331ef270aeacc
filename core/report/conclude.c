/* SPDX-License-Identifier: BSD-3-Clause */
/* Findings that follow from the numbers alone. docs/findings.md says what each means and what to do. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "internal.h"
#include "swaps.h"
#include "text.h"

#define INTERVAL_LAUNCHES 6u /* fewest launches with a 95 % interval of a median */
#define NOISY_SPREAD 0.20 /* interquartile range of the launch medians, of the median */
#define NOISY_HALF_WIDTH 0.25 /* of the interval, of the median */
#define DRIFT_PPM 100.0 /* a sound TSC stays within a few ppm of its calibration */
#define DISTURBED_SHARE 0.25 /* of the blocks, with a preemption in the timed part */

enum trouble { TOO_WIDE, NOISY, UNVERIFIED, TROUBLES };

struct row {
	char flagged[TROUBLES][XB_MAX_SIZES];
	double worst_spread, worst_half_width;
	size_t blocks, disturbed, most_launches;
	long involuntary;
	int measured;
};

static void look_at(const struct xb_results *r, size_t t, enum xb_bench bench, size_t s, struct row *row)
{
	const struct xb_cell *cell = xb_results_cell(r, t, bench, s);
	struct xb_headline h;
	if (!xb_headline_of(r, cell, &h))
		return;
	double unit = h.ns.median > 0.0 ? h.ns.median : NAN; /* null may take no time at all */
	double spread = h.between_ns / unit, half_width = (h.ns.high - h.ns.low) / 2.0 / unit;
	row->measured = 1;
	row->blocks += h.rounds;
	row->disturbed += h.disturbed_blocks;
	row->involuntary += h.involuntary;
	if (h.launches > row->most_launches)
		row->most_launches = h.launches;
	/* comparisons with NAN are false: no spread of one launch, no interval of five */
	row->flagged[NOISY][s] = spread > NOISY_SPREAD || half_width > NOISY_HALF_WIDTH;
	if (spread > row->worst_spread)
		row->worst_spread = spread;
	if (half_width > row->worst_half_width)
		row->worst_half_width = half_width;
	row->flagged[TOO_WIDE][s] = (char)xb_cell_too_wide(r, t, bench, s);
	row->flagged[UNVERIFIED][s] = !xb_cell_comparable(r, t, cell, r->config->sizes[s]);
	xb_headline_free(&h);
}

/* The flagged sizes as text; 0 if there is none. When exactly one is flagged, *only is that size. */
static size_t flagged(const struct xb_config *config, const char *flags, char *text, size_t bytes,
		      size_t *only)
{
	size_t n = 0;
	*only = XB_NO_SIZE;
	for (size_t s = 0; s < config->size_count; s++) {
		if (!flags[s])
			continue;
		*only = n == 0 ? config->sizes[s] : XB_NO_SIZE;
		n++;
	}
	xb_size_ranges(config->sizes, flags, config->size_count, text, bytes);
	return n;
}

static void report_row(struct xb_results *r, size_t t, enum xb_bench bench, const struct row *row)
{
	const char *label = r->config->transports[t].label, *name = xb_bench_names[bench];
	const char *why = r->stopped_by != NULL ? r->stopped_by : "";
	char sizes[256], text[640];
	size_t only;
	if (flagged(r->config, row->flagged[NOISY], sizes, sizeof(sizes), &only) > 0) {
		char interval[48] = "";
		if (row->worst_half_width > 0.0)
			snprintf(interval, sizeof(interval), ", and the interval is up to +-%.0f %%",
				 100.0 * row->worst_half_width);
		snprintf(text, sizeof(text),
			 "%.100s %s is noisy at %s: the middle half of its launches spreads over up to %.0f "
			 "%% of "
			 "the median%s",
			 label, name, sizes, 100.0 * row->worst_spread, interval);
		xb_results_finding(r, "warning", "noisy", label, name, only, text);
	}
	if (flagged(r->config, row->flagged[UNVERIFIED], sizes, sizeof(sizes), &only) > 0) {
		snprintf(text, sizeof(text), "the payload of %.100s %s was not verified at %s: not compared",
			 label, name, sizes);
		xb_results_finding(r, "warning", "not-verified", label, name, only, text);
	}
	int ended = strcmp(why, "time") == 0 || strcmp(why, "fixed") == 0;
	if (ended && row->most_launches >= INTERVAL_LAUNCHES &&
	    flagged(r->config, row->flagged[TOO_WIDE], sizes, sizeof(sizes), &only) > 0) {
		snprintf(text, sizeof(text), "%.100s %s did not reach +-%g %% (--ci) within the %s at %s",
			 label, name, r->config->ci_percent,
			 strcmp(why, "time") == 0 ? "time budget (--time)" : "launches (--launches)", sizes);
		xb_results_finding(r, "info", "not-converged", label, name, only, text);
	}
	if (row->disturbed > 0 && (double)row->disturbed > DISTURBED_SHARE * (double)row->blocks) {
		snprintf(text, sizeof(text),
			 "%zu of %zu blocks of %.100s %s were preempted while timed (%ld involuntary context "
			 "switches): other "
			 "work runs on the measuring cores",
			 row->disturbed, row->blocks, label, name, row->involuntary);
		xb_results_finding(r, "warning", "context-switches", label, name, XB_NO_SIZE, text);
	}
}

static void report_launches(struct xb_results *r, size_t t, size_t launches)
{
	char text[320];
	if (launches >= INTERVAL_LAUNCHES)
		return;
	int all = r->whole_count < INTERVAL_LAUNCHES;
	const char *label = all ? NULL : r->config->transports[t].label;
	if (all)
		launches = r->whole_count;
	snprintf(text, sizeof(text),
		 "%zu whole launch%s%s%.100s: fewer than %u give no 95 %% interval, so no overhead can be "
		 "told "
		 "from chance",
		 launches, launches == 1 ? "" : "es", all ? "" : " of ", all ? "" : label, INTERVAL_LAUNCHES);
	xb_results_finding(r, "info", "too-few-launches", label, NULL, XB_NO_SIZE, text);
}

void xb_results_conclude(struct xb_results *r)
{
	if (r == NULL)
		return;
	xb_evidence_findings(r);
	for (size_t t = 0; t < r->config->transport_count; t++) {
		size_t most_launches = 0;
		int measured = 0;
		for (size_t b = 0; b < r->config->bench_count; b++) {
			if (r->config->benches[b] == XB_BENCH_SWAP)
				continue;
			struct row row = {.measured = 0};
			for (size_t s = 0; s < r->config->size_count; s++)
				look_at(r, t, r->config->benches[b], s, &row);
			report_row(r, t, r->config->benches[b], &row);
			measured |= row.measured;
			if (row.most_launches > most_launches)
				most_launches = row.most_launches;
		}
		if (measured)
			report_launches(r, t, most_launches);
	}
	xb_swaps_conclude(r);
	if (fabs(r->drift_ppm) > DRIFT_PPM) { /* NAN is not */
		char text[200];
		snprintf(text, sizeof(text),
			 "the timer ran %.0f ppm off CLOCK_MONOTONIC_RAW during the run: times may be wrong "
			 "by that much",
			 r->drift_ppm);
		xb_results_finding(r, "warning", "timer-drift", NULL, NULL, XB_NO_SIZE, text);
	}
	if (r->lost_records > 0) {
		char text[160];
		snprintf(text, sizeof(text), "memory ran out: %zu records of the run were lost",
			 r->lost_records);
		xb_results_finding(r, "warning", "out-of-memory", NULL, NULL, XB_NO_SIZE, text);
	}
}

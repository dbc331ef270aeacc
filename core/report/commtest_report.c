/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --format commtest: the report of COMMTEST. For every protocol its rows (cache inv., 1 iter., 10 iter., and
 * the same with overlap), then how much the choice of the protocol matters. Spelling and digits are those of
 * the published reports, so that what reads those reads this.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "swaps.h"
#include "text.h"

#define WIDTH 100

static const char *const row_names[XB_SWAP_MODES] = {"cache inv.", "1 iter.", "10 iter."};
static const char *const table_names[XB_SWAP_MODES] = {"cache inv.", "1 iterations", "10 iterations"};

static void number(FILE *file, int width, const char *format, double value)
{
	char text[40] = "-";
	if (isfinite(value))
		snprintf(text, sizeof(text), format, value);
	fprintf(file, "%*s", width, text);
}

static void rule(FILE *file)
{
	for (int i = 0; i < WIDTH; i++)
		fputc('-', file);
	fputc('\n', file);
}

/* --- one protocol */

static void statistics_row(FILE *file, const struct xb_sweep *sweep, unsigned protocol)
{
	struct xb_commtest_fit fit = xb_commtest_fit(sweep->messages, sweep->min_s[protocol],
						     sweep->size_count, sweep->total_bytes);
	char name[40];
	if (!isfinite(fit.peak_MBps) || (sweep->overlap && !xb_swap_overlaps(protocol)))
		return;
	snprintf(name, sizeof(name), "%s%s", row_names[sweep->mode], sweep->overlap ? " w/overlap" : "");
	fprintf(file, "  %-22s", name);
	number(file, 24, "%.2f", fit.peak_MBps);
	number(file, 22, "%.2f", fit.latency_us);
	number(file, 22, "%.1f%%", 100.0 * fit.error);
	fputc('\n', file);
}

static int has_protocol(const struct xb_sweep *sweep, unsigned protocol)
{
	for (size_t s = 0; s < sweep->size_count; s++)
		if (sweep->record[protocol][s] != NULL)
			return 1;
	return 0;
}

static void protocol_section(FILE *file, struct xb_sweep sweeps[2][XB_SWAP_MODES], unsigned protocol)
{
	const struct xb_sweep *first = NULL;
	for (int overlap = 0; overlap < 2; overlap++)
		for (unsigned mode = 0; mode < XB_SWAP_MODES; mode++)
			if (first == NULL && has_protocol(&sweeps[overlap][mode], protocol))
				first = &sweeps[overlap][mode];
	if (first == NULL)
		return;
	fprintf(file, "\nProtocol %u: %s\n\nData Statistics\n", protocol,
		xb_swap_title(first->order, protocol));
	fprintf(file, "  %-22s%24s%22s%22s\n", "", "unidirectional bandwidth", "estimated latency",
		"model error");
	fprintf(file, "  %-22s%24s%22s%22s\n", "", "(peak MByte/sec)", "(usec/msg)", "(max. rel. error)");
	for (int overlap = 0; overlap < 2; overlap++)
		for (unsigned mode = 0; mode < XB_SWAP_MODES; mode++)
			if (sweeps[overlap][mode].any)
				statistics_row(file, &sweeps[overlap][mode], protocol);
	fprintf(file, "  Model Error Range: [%.0f,%.0f]\n", first->messages[first->size_count - 1u],
		first->messages[0]);
}

/* --- all protocols at one size */

/* Protocols without stages have their ordinary time in the table with overlap too. */
static double time_of(const struct xb_sweep *sweep, const struct xb_sweep *ordinary, unsigned protocol,
		      size_t s)
{
	if (!sweep->overlap || xb_swap_overlaps(protocol) || isfinite(sweep->min_s[protocol][s]))
		return sweep->min_s[protocol][s];
	for (size_t i = 0; i < ordinary->size_count; i++)
		if (ordinary->sizes[i] == sweep->sizes[s])
			return ordinary->min_s[protocol][i];
	return NAN;
}

static void sensitivity_row(FILE *file, uint64_t size, const struct xb_commtest_row *row)
{
	fprintf(file, "%9llu", (unsigned long long)size);
	number(file, 12, "%.4e", row->min_s);
	number(file, 12, "%.4e", row->min_s_per_message);
	number(file, 12, "%.2f", row->max_MBps);
	number(file, 8, "%.2f", row->mean);
	number(file, 9, "%.2f", row->median);
	number(file, 8, "%.2f", row->max);
	fputs("  ", file);
	for (size_t i = 0; i < XB_FASTEST_SHOWN; i++)
		if (i < row->count)
			fprintf(file, "%3u", row->order[i]);
		else
			fprintf(file, "%3s", "-");
	fprintf(file, " %4u%4u%4u\n", row->within[0], row->within[1], row->within[2]);
}

static void sensitivity(FILE *file, const struct xb_sweep *sweep, const struct xb_sweep *ordinary)
{
	static const char *const heads[3][9] = {
		{"", "", "", "", "(mean-", "(median-", "(max-", "", "Number of Proctocols"},
		{"Msg Size", "min", "min", "max", "min)", "min)", "min)", "   Five Fastest",
		 "With Runtimes Within"},
		{"(bytes)", "Sec", "Sec/Msg", "MBytes/Sec", "/min", "/min", "/min", "      Protocols",
		 "1% 5% 25% of Min"}};
	fprintf(file, "\nProtocol Sensitivity: %s%s\n\n", table_names[sweep->mode],
		sweep->overlap ? " with overlap" : "/no overlap");
	for (size_t i = 0; i < 3; i++)
		fprintf(file, "%9s%12s%12s%12s%8s%9s%8s  %15s  %s\n", heads[i][0], heads[i][1], heads[i][2],
			heads[i][3], heads[i][4], heads[i][5], heads[i][6], heads[i][7], heads[i][8]);
	for (size_t s = 0; s < sweep->size_count; s++) {
		double seconds[XB_SWAP_PROTOCOLS];
		struct xb_commtest_row row;
		for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++)
			seconds[p] = time_of(sweep, ordinary, p, s);
		if (xb_commtest_row(seconds, sweep->messages[s], sweep->total_bytes, &row))
			sensitivity_row(file, sweep->sizes[s], &row);
	}
}

static int report(FILE *file, json_t *document, const struct xb_view_transport *transport,
		  struct xb_sweep sweeps[2][XB_SWAP_MODES], struct xb_error *error)
{
	const struct xb_sweep *first = NULL;
	for (int overlap = 0; overlap < 2; overlap++)
		for (unsigned mode = 0; mode < XB_SWAP_MODES; mode++) {
			struct xb_sweep *sweep = &sweeps[overlap][mode];
			int status = xb_sweep_read(document, transport->label, (enum xb_swap_mode)mode,
						   overlap, sweep, error);
			if (status < 0)
				return status;
			if (first == NULL && sweep->any)
				first = sweep;
		}
	if (first == NULL)
		return 0;
	rule(file);
	fprintf(file, "COMMTEST SWAP: %s\n", transport->label);
	fprintf(file, "path %s; %s swap of %.0f bytes in each direction; minimum of all repetitions\n",
		xb_text_of(transport->json, "resolved_path"), xb_swap_order_name(first->order),
		first->total_bytes);
	rule(file);
	for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++)
		protocol_section(file, sweeps, p);
	for (int overlap = 0; overlap < 2; overlap++)
		for (unsigned mode = 0; mode < XB_SWAP_MODES; mode++)
			if (sweeps[overlap][mode].any)
				sensitivity(file, &sweeps[overlap][mode], &sweeps[0][mode]);
	fputc('\n', file);
	return 0;
}

int xb_print_commtest(struct xb_out *out, const struct xb_view *view, struct xb_error *error)
{
	struct xb_sweep(*sweeps)[XB_SWAP_MODES] = malloc(2 * sizeof(*sweeps));
	int status = 0;
	if (sweeps == NULL)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for the swaps");
	if (json_array_size(json_object_get(view->document, "swaps")) == 0)
		status = xb_fail(
			error, XB_E_UNSUPPORTED,
			"--format commtest shows swaps, and there are none in this run; measure with -b "
			"swap");
	for (size_t t = 0; status == 0 && t < view->transport_count; t++)
		status = report(out->file, view->document, &view->transports[t], sweeps, error);
	free(sweeps);
	return status;
}

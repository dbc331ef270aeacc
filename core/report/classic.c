/* SPDX-License-Identifier: BSD-3-Clause */
/* --format imb and osu. */
#include <math.h>
#include <string.h>
#include "classic.h"
#include "internal.h"

static double median_us(json_t *result)
{
	return xb_number_of(json_object_get(result, "latency_us"), "median");
}

static double median_MBps(json_t *result)
{
	double value = xb_number_of(json_object_get(result, "bandwidth_MBps"), "median");
	return isfinite(value) ? value : 0.0;
}

static int has_any(const struct xb_view *v, size_t bench, size_t transport)
{
	for (size_t s = 0; v->has_bench[bench] && s < v->size_count; s++)
		if (xb_view_result(v, bench, s, transport) != NULL)
			return 1;
	return 0;
}

/* In a comment line: only what cannot end it. */
static void put_plain(FILE *file, const char *text)
{
	for (; *text != '\0'; text++)
		fputc((unsigned char)*text >= 0x20u && (unsigned char)*text < 0x7fu ? *text : '?', file);
}

static void put_origin(FILE *file, const struct xb_view *v, size_t transport)
{
	fputs("# xportbench ", file);
	put_plain(file, xb_text_of(v->document, "xportbench"));
	fputs(": transport ", file);
	put_plain(file, v->transports[transport].label);
	fputs(", path ", file);
	put_plain(file, xb_text_of(v->transports[transport].json, "resolved_path"));
	fputs(" (medians)\n", file);
}

static int nothing(struct xb_error *error, const char *format)
{
	return xb_fail(
		error, XB_E_UNSUPPORTED,
		"--format %s shows pingpong, bw and bibw, and none of them is in this run; use table, csv, "
		"json or commtest",
		format);
}

/* --- OSU */

static void osu_part(FILE *file, const struct xb_view *v, size_t bench, size_t transport)
{
	static const struct {
		const char *title, *column;
	} shapes[] = {[XB_BENCH_PINGPONG] = {"OSU MPI Latency Test", "Latency (us)"},
		      [XB_BENCH_BW] = {"OSU MPI Bandwidth Test", "Bandwidth (MB/s)"},
		      [XB_BENCH_BIBW] = {"OSU MPI Bi-Directional Bandwidth Test", "Bandwidth (MB/s)"}};
	/* the title line is what parsers know the test by; the version is of the shape, OMB's of 2021 */
	fprintf(file, "# %s v5.8\n", shapes[bench].title);
	put_origin(file, v, transport);
	fprintf(file, "%-10s%20s\n", "# Size", shapes[bench].column);
	for (size_t s = 0; s < v->size_count; s++) {
		json_t *result = xb_view_result(v, bench, s, transport);
		if (result == NULL || (v->sizes[s] == 0 && bench != XB_BENCH_PINGPONG))
			continue;
		fprintf(file, "%-10llu%20.2f\n", (unsigned long long)v->sizes[s],
			bench == XB_BENCH_PINGPONG ? median_us(result) : median_MBps(result));
	}
}

int xb_print_osu(struct xb_out *out, const struct xb_view *v, struct xb_error *error)
{
	size_t parts = 0;
	for (size_t t = 0; t < v->transport_count; t++)
		for (size_t b = XB_BENCH_PINGPONG; b <= XB_BENCH_BIBW; b++)
			if (has_any(v, b, t)) {
				if (parts++ > 0)
					fputc('\n', out->file);
				osu_part(out->file, v, b, t);
			}
	return parts > 0 ? 0 : nothing(error, "osu");
}

/* --- IMB */

#define IMB_RULE "#---------------------------------------------------\n"

static void imb_preamble(FILE *file, const struct xb_view *v)
{
	static const char *const names[] = {
		[XB_BENCH_PINGPONG] = "PingPong", [XB_BENCH_BW] = "Uniband", [XB_BENCH_BIBW] = "Biband"};
	uint64_t least = v->size_count ? v->sizes[0] : 0,
		 most = v->size_count ? v->sizes[v->size_count - 1u] : 0;
	fputs("#------------------------------------------------------------\n"
	      "#    Intel(R) MPI Benchmarks 2018, MPI-1 part (the shape of it: written by xportbench)\n"
	      "#------------------------------------------------------------\n",
	      file);
	fputs("# Date                  : ", file);
	put_plain(file, xb_text_of(v->document, "started"));
	fprintf(file,
		"\n\n# Minimum message length in bytes:   %llu\n# Maximum message length in bytes:   %llu\n"
		"#\n# MPI_Datatype                   :   MPI_BYTE\n#\n\n# List of Benchmarks to run:\n\n",
		(unsigned long long)least, (unsigned long long)most);
	for (size_t b = XB_BENCH_PINGPONG; b <= XB_BENCH_BIBW; b++)
		if (v->has_bench[b])
			fprintf(file, "# %s\n", names[b]);
}

static void imb_part(FILE *file, const struct xb_view *v, size_t bench, size_t transport)
{
	static const char *const names[] = {
		[XB_BENCH_PINGPONG] = "PingPong", [XB_BENCH_BW] = "Uniband", [XB_BENCH_BIBW] = "Biband"};
	fputc('\n', file);
	put_origin(file, v, transport);
	fprintf(file, IMB_RULE "# Benchmarking %s\n# #processes = 2\n" IMB_RULE, names[bench]);
	if (bench == XB_BENCH_PINGPONG)
		fprintf(file, "%13s%13s%13s%13s\n", "#bytes", "#repetitions", "t[usec]", "Mbytes/sec");
	else
		fprintf(file, "%13s%13s%13s%13s\n", "#bytes", "#repetitions", "Mbytes/sec", "Msg/sec");
	for (size_t s = 0; s < v->size_count; s++) {
		json_t *result = xb_view_result(v, bench, s, transport);
		double us = result != NULL ? median_us(result) : NAN;
		if (result == NULL)
			continue;
		fprintf(file, "%13llu%13llu", (unsigned long long)v->sizes[s],
			(unsigned long long)xb_count_of(result, "iterations"));
		if (bench == XB_BENCH_PINGPONG)
			fprintf(file, "%13.2f%13.2f\n", us, us > 0.0 ? (double)v->sizes[s] / us : 0.0);
		else
			fprintf(file, "%13.2f%13.0f\n", median_MBps(result),
				us > 0.0 ? (bench == XB_BENCH_BIBW ? 2e6 : 1e6) / us : 0.0);
	}
}

int xb_print_imb(struct xb_out *out, const struct xb_view *v, struct xb_error *error)
{
	size_t parts = 0;
	for (size_t t = 0; t < v->transport_count; t++)
		for (size_t b = XB_BENCH_PINGPONG; b <= XB_BENCH_BIBW; b++)
			if (has_any(v, b, t)) {
				if (parts++ == 0)
					imb_preamble(out->file, v);
				imb_part(out->file, v, b, t);
			}
	if (parts == 0)
		return nothing(error, "imb");
	fputs("\n\n# All processes entering MPI_Finalize\n\n", out->file);
	return 0;
}

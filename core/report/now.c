/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --format now: the tables of comm.shar (Dongarra and Dunigan, "Message-Passing Performance of Various
 * Computers", 1995): one-way times, minimum, average and maximum of all iterations, and the bandwidth that
 * follows from the minimum.
 */
#include <math.h>
#include <stdlib.h>
#include "classic.h"
#include "internal.h"

struct xb_asymptote xb_asymptote_of(const double *bytes, const double *us, size_t n)
{
	struct xb_asymptote a = {NAN, NAN, NAN, NAN};
	double sum_x = 0.0, sum_y = 0.0, sum_xx = 0.0, sum_xy = 0.0, previous_x = 0.0, previous_rate = 0.0;
	for (size_t i = 0; i < n; i++) {
		double rate = us[i] > 0.0 ? bytes[i] / us[i] : NAN;
		if (isfinite(rate) && !(a.seen_MBps >= rate))
			a.seen_MBps = rate;
		sum_x += bytes[i];
		sum_y += us[i];
		sum_xx += bytes[i] * bytes[i];
		sum_xy += bytes[i] * us[i];
	}
	for (size_t i = 0; i < n; i++) {
		double rate = us[i] > 0.0 ? bytes[i] / us[i] : NAN, half = a.seen_MBps / 2.0;
		if (rate >= half) {
			a.seen_half_bytes = rate > previous_rate
						    ? previous_x + (bytes[i] - previous_x) *
									   (half - previous_rate) /
									   (rate - previous_rate)
						    : bytes[i];
			break;
		}
		if (isfinite(rate)) {
			previous_x = bytes[i];
			previous_rate = rate;
		}
	}
	double count = (double)n, spread = count * sum_xx - sum_x * sum_x;
	if (n < 2 || !(spread > 0.0))
		return a;
	double slope = (count * sum_xy - sum_x * sum_y) / spread; /* us per byte */
	double start = (sum_y - slope * sum_x) / count;
	a.fitted_MBps = 1.0 / slope;
	a.fitted_half_bytes = start / slope;
	return a;
}

static double of(json_t *result, const char *key)
{
	return xb_number_of(json_object_get(result, "latency_us"), key);
}

static void put_label(FILE *file, const char *text)
{
	for (; *text != '\0'; text++)
		fputc((unsigned char)*text >= 0x20u && (unsigned char)*text < 0x7fu ? *text : '?', file);
}

static void rows(FILE *file, const struct xb_view *v, size_t t, double *bytes, double *us, size_t *n)
{
	for (size_t s = 0; s < v->size_count; s++) {
		json_t *result = xb_view_result(v, XB_BENCH_PINGPONG, s, t);
		if (result == NULL)
			continue;
		double least = of(result, "min");
		fprintf(file, "%12llu %14.6f %14.6f %14.6f ", (unsigned long long)v->sizes[s], least,
			of(result, "mean"), of(result, "max"));
		if (v->sizes[s] == 0)
			fprintf(file, "%14s\n", "------");
		else
			fprintf(file, "%14.6f\n", (double)v->sizes[s] / least);
		bytes[*n] = (double)v->sizes[s];
		us[(*n)++] = least;
	}
}

static int part(FILE *file, const struct xb_view *v, size_t t, struct xb_error *error)
{
	double *bytes = calloc(v->size_count + 1u, sizeof(*bytes)),
	       *us = calloc(v->size_count + 1u, sizeof(*us));
	size_t n = 0;
	if (bytes == NULL || us == NULL) {
		free(bytes);
		free(us);
		return xb_fail(error, XB_E_RESOURCE, "out of memory for %zu sizes", v->size_count);
	}
	put_label(file, v->transports[t].label);
	fputs(": ", file);
	put_label(file, xb_text_of(v->transports[t].json, "resolved_path"));
	fprintf(file, "\n\n%12s %44s %14s\n", "Message Size", "Latency (usec)", "Bandwidth");
	fprintf(file, "%12s %14s %14s %14s %14s\n", "(bytes)", "Minimum", "Average", "Maximum",
		"MBytes per sec");
	rows(file, v, t, bytes, us, &n);
	struct xb_asymptote a = xb_asymptote_of(bytes, us, n);
	fputc('\n', file);
	if (isfinite(a.seen_MBps))
		fprintf(file,
			"r_inf  %.3f MB/s, n_1/2 %.0f bytes (largest bandwidth seen, and the size with half "
			"of it)\n",
			a.seen_MBps, a.seen_half_bytes);
	if (isfinite(a.fitted_MBps))
		fprintf(file,
			"r_inf  %.3f MB/s, n_1/2 %.0f bytes (least squares of t = (n + n_1/2) / r_inf)\n",
			a.fitted_MBps, a.fitted_half_bytes);
	fputc('\n', file);
	free(bytes);
	free(us);
	return 0;
}

int xb_print_now(struct xb_out *out, const struct xb_view *v, struct xb_error *error)
{
	size_t parts = 0;
	int status = 0;
	for (size_t t = 0; status == 0 && t < v->transport_count; t++) {
		int any = 0;
		for (size_t s = 0; v->has_bench[XB_BENCH_PINGPONG] && s < v->size_count; s++)
			any |= xb_view_result(v, XB_BENCH_PINGPONG, s, t) != NULL;
		if (any && ++parts)
			status = part(out->file, v, t, error);
	}
	if (status == 0 && parts == 0)
		status = xb_fail(
			error, XB_E_UNSUPPORTED,
			"--format now shows pingpong, and it is not in this run; measure with -b pingpong "
			"-s now");
	return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>
#include "commtest.h"

double xb_commtest_error(double latency_us, double peak_MBps, double messages, double total_bytes,
			 double seconds)
{
	double measured = seconds / 2.0;
	double model = messages * latency_us * 1e-6 + total_bytes / (peak_MBps * 1e6);
	return fabs(model - measured) / measured;
}

struct xb_commtest_fit xb_commtest_fit(const double *messages, const double *seconds, size_t count,
				       double total_bytes)
{
	struct xb_commtest_fit fit = {NAN, NAN, NAN};
	size_t first = count, second = count; /* the largest n, and the next */
	for (size_t i = 0; i < count; i++) {
		if (!(seconds[i] > 0.0))
			continue;
		double MBps = 2.0 * total_bytes / seconds[i] / 1e6;
		if (!(fit.peak_MBps >= MBps))
			fit.peak_MBps = MBps;
		if (first == count || messages[i] > messages[first]) {
			second = first;
			first = i;
		} else if (second == count || messages[i] > messages[second]) {
			second = i;
		}
	}
	if (first == count || second == count)
		return fit;
	fit.latency_us =
		(seconds[first] - seconds[second]) / 2.0 / (messages[first] - messages[second]) * 1e6;
	for (size_t i = 0; i < count; i++) {
		double error = xb_commtest_error(fit.latency_us, fit.peak_MBps, messages[i], total_bytes,
						 seconds[i]);
		if (isfinite(error) && !(fit.error >= error))
			fit.error = error;
	}
	return fit;
}

int xb_commtest_row(const double seconds[XB_SWAP_PROTOCOLS], double messages, double total_bytes,
		    struct xb_commtest_row *row)
{
	static const double limits[] = {0.01, 0.05, 0.25};
	double sum = 0.0;
	memset(row, 0, sizeof(*row));
	for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++) {
		if (!(seconds[p] > 0.0))
			continue;
		size_t at = row->count++;
		for (; at > 0 && seconds[row->order[at - 1u]] > seconds[p]; at--)
			row->order[at] = row->order[at - 1u];
		row->order[at] = p;
		sum += seconds[p];
	}
	if (row->count == 0)
		return 0;
	size_t n = row->count;
	double least = seconds[row->order[0]];
	double median = (seconds[row->order[(n - 1u) / 2u]] + seconds[row->order[n / 2u]]) / 2.0;
	row->min_s = least;
	row->min_s_per_message = least / messages;
	row->max_MBps = 2.0 * total_bytes / least / 1e6;
	row->mean = (sum / (double)n - least) / least;
	row->median = (median - least) / least;
	row->max = (seconds[row->order[n - 1u]] - least) / least;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < 3; k++)
			row->within[k] += seconds[row->order[i]] <= least * (1.0 + limits[k]);
	return 1;
}

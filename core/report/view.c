/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "internal.h"
#include "text.h"
#include "view.h"

enum { RESULT, OVERHEAD, ABOVE, TABLES };

static json_t **slot(const struct xb_view *v, size_t table, size_t bench, size_t size, size_t transport)
{
	return &v->cells[((table * XB_VIEW_BENCHES + bench) * v->size_count + size) * v->transport_count +
			 transport];
}

json_t *xb_view_result(const struct xb_view *view, size_t bench, size_t size, size_t transport)
{
	return *slot(view, RESULT, bench, size, transport);
}

json_t *xb_view_overhead(const struct xb_view *view, size_t bench, size_t size, size_t transport)
{
	return *slot(view, OVERHEAD, bench, size, transport);
}

json_t *xb_view_above(const struct xb_view *view, size_t bench, size_t size, size_t transport)
{
	return *slot(view, ABOVE, bench, size, transport);
}

static size_t transport_of(const struct xb_view *v, const char *label)
{
	for (size_t t = 0; t < v->transport_count; t++)
		if (strcmp(v->transports[t].label, label) == 0)
			return t;
	return SIZE_MAX;
}

static size_t bench_of(const char *name)
{
	for (size_t b = 0; b < XB_BENCH_COUNT; b++)
		if (strcmp(xb_bench_names[b], name) == 0)
			return b;
	return SIZE_MAX;
}

static int compare_sizes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static size_t size_of(const struct xb_view *v, uint64_t size)
{
	const uint64_t *found =
		v->size_count ? bsearch(&size, v->sizes, v->size_count, sizeof(size), compare_sizes) : NULL;
	return found != NULL ? (size_t)(found - v->sizes) : SIZE_MAX;
}

static int refuse(struct xb_error *error, const char *name, const char *list, size_t index, const char *what)
{
	return xb_fail(error, XB_E_USAGE, "%.300s is not a result of xportbench: %s[%zu]: %s", name, list,
		       index, what);
}

static int take_transports(struct xb_view *v, const char *name, struct xb_error *error)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(v->document, "transports"), i, item)
	{
		if (i >= XB_VIEW_TRANSPORTS)
			return refuse(error, name, "transports", i, "too many transports");
		const char *label = xb_text_of(item, "label");
		if (transport_of(v, label) != SIZE_MAX)
			return refuse(error, name, "transports", i, "this label appears twice");
		v->transports[i] =
			(struct xb_view_transport){.json = item,
						   .label = label,
						   .ok = strcmp(xb_text_of(item, "status"), "ok") == 0,
						   .below = SIZE_MAX};
		v->transport_count++;
	}
	v->baseline = v->transport_count > 0 ? 0 : SIZE_MAX;
	size_t named = transport_of(v, xb_text_of(v->document, "baseline"));
	if (named != SIZE_MAX)
		v->baseline = named;
	return 0;
}

static int take_sizes(struct xb_view *v, const char *name, struct xb_error *error)
{
	json_t *results = json_object_get(v->document, "results"), *item;
	size_t i, n = json_array_size(results), kept = 0;
	v->sizes = calloc(n + 1u, sizeof(*v->sizes));
	if (v->sizes == NULL)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for %zu results of %.300s", n, name);
	json_array_foreach(results, i, item) v->sizes[i] = xb_count_of(item, "size");
	qsort(v->sizes, n, sizeof(*v->sizes), compare_sizes);
	for (i = 0; i < n; i++)
		if (kept == 0 || v->sizes[kept - 1u] != v->sizes[i])
			v->sizes[kept++] = v->sizes[i];
	v->size_count = kept;
	if (kept > XB_VIEW_SIZES)
		return refuse(error, name, "results", n - 1u, "too many different sizes");
	return 0;
}

static int take_results(struct xb_view *v, const char *name, struct xb_error *error)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(v->document, "results"), i, item)
	{
		size_t t = transport_of(v, xb_text_of(item, "label")),
		       b = bench_of(xb_text_of(item, "bench"));
		size_t s = size_of(v, xb_count_of(item, "size"));
		if (t == SIZE_MAX)
			return refuse(error, name, "results", i, "its label is none of the transports'");
		if (b == SIZE_MAX || s == SIZE_MAX)
			return refuse(error, name, "results", i, "its benchmark is not known");
		json_t **place = slot(v, RESULT, b, s, t);
		if (*place != NULL)
			return refuse(error, name, "results", i,
				      "this label, benchmark and size appear twice");
		*place = item;
		v->has_bench[b] = 1;
		v->transports[t].measured = 1;
		size_t launches = (size_t)xb_count_of(item, "launches");
		if (launches > v->launches)
			v->launches = launches;
	}
	return 0;
}

static int take_comparisons(struct xb_view *v, const char *name, struct xb_error *error)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(v->document, "comparisons"), i, item)
	{
		size_t lower = transport_of(v, xb_text_of(item, "lower"));
		size_t upper = transport_of(v, xb_text_of(item, "upper"));
		size_t b = bench_of(xb_text_of(item, "bench")), s = size_of(v, xb_count_of(item, "size"));
		if (lower == SIZE_MAX || upper == SIZE_MAX || lower == upper)
			return refuse(error, name, "comparisons", i,
				      "lower and upper are not two of the transports");
		if (b == SIZE_MAX || s == SIZE_MAX || *slot(v, RESULT, b, s, lower) == NULL ||
		    *slot(v, RESULT, b, s, upper) == NULL)
			return refuse(error, name, "comparisons", i, "there are no results that it compares");
		if (lower == v->baseline)
			*slot(v, OVERHEAD, b, s, upper) = item;
		if (json_is_true(json_object_get(item, "adjacent"))) {
			*slot(v, ABOVE, b, s, upper) = item;
			v->transports[upper].below = lower;
		}
	}
	return 0;
}

/* Swaps have no place in the tables here; that there are some makes their transport one that was measured. */
static void take_swaps(struct xb_view *v)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(v->document, "swaps"), i, item)
	{
		size_t t = transport_of(v, xb_text_of(item, "label"));
		size_t launches = (size_t)xb_count_of(item, "launches");
		if (t != SIZE_MAX)
			v->transports[t].measured = 1;
		if (launches > v->launches)
			v->launches = launches;
	}
}

int xb_view_open(json_t *document, const char *name, struct xb_view *view, struct xb_error *error)
{
	memset(view, 0, sizeof(*view));
	view->document = document;
	int status = take_transports(view, name, error);
	if (status == 0)
		status = take_sizes(view, name, error);
	if (status == 0) {
		view->cells = calloc(TABLES * XB_VIEW_BENCHES * view->size_count * view->transport_count + 1u,
				     sizeof(*view->cells));
		if (view->cells == NULL)
			status = xb_fail(error, XB_E_RESOURCE, "out of memory for the results of %.300s",
					 name);
	}
	if (status == 0)
		status = take_results(view, name, error);
	if (status == 0)
		status = take_comparisons(view, name, error);
	if (status == 0)
		take_swaps(view);
	if (status < 0)
		xb_view_close(view);
	return status;
}

void xb_view_close(struct xb_view *view)
{
	free(view->sizes);
	free(view->cells);
	view->sizes = NULL;
	view->cells = NULL;
}

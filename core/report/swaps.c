/* SPDX-License-Identifier: BSD-3-Clause */
/* Swap records read back from a document. */
#include <math.h>
#include <string.h>
#include "swaps.h"
#include "text.h"

static int find(const char *text, const char *(*name)(unsigned), unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(text, name(i)) == 0)
			return (int)i;
	return -1;
}

/* Place of the size in the ascending list, made if need be; SIZE_MAX when it is full. */
static size_t place_of(struct xb_sweep *sweep, uint64_t size, double messages)
{
	size_t at = 0;
	while (at < sweep->size_count && sweep->sizes[at] < size)
		at++;
	if (at < sweep->size_count && sweep->sizes[at] == size)
		return at;
	if (sweep->size_count == XB_MAX_SIZES)
		return SIZE_MAX;
	for (size_t i = sweep->size_count++; i > at; i--) {
		sweep->sizes[i] = sweep->sizes[i - 1u];
		sweep->messages[i] = sweep->messages[i - 1u];
		for (size_t p = 0; p < XB_SWAP_PROTOCOLS; p++) {
			sweep->record[p][i] = sweep->record[p][i - 1u];
			sweep->min_s[p][i] = sweep->min_s[p][i - 1u];
		}
	}
	sweep->sizes[at] = size;
	sweep->messages[at] = messages;
	for (size_t p = 0; p < XB_SWAP_PROTOCOLS; p++) {
		sweep->record[p][at] = NULL;
		sweep->min_s[p][at] = NAN;
	}
	return at;
}

static int refuse(struct xb_error *error, size_t index, const char *what)
{
	return xb_fail(error, XB_E_USAGE, "not a result of xportbench: swaps[%zu]: %s", index, what);
}

int xb_sweep_read(json_t *document, const char *label, enum xb_swap_mode mode, int overlap,
		  struct xb_sweep *sweep, struct xb_error *error)
{
	size_t i;
	json_t *item;
	memset(sweep, 0, sizeof(*sweep));
	sweep->label = label;
	sweep->mode = mode;
	sweep->overlap = overlap;
	json_array_foreach(json_object_get(document, "swaps"), i, item)
	{
		if (strcmp(xb_text_of(item, "label"), label) != 0 ||
		    strcmp(xb_text_of(item, "mode"), xb_swap_mode_name(mode)) != 0 ||
		    json_is_true(json_object_get(item, "overlap")) != overlap)
			continue;
		int order = find(xb_text_of(item, "order"), xb_swap_order_name, XB_SWAP_ORDERS);
		uint64_t protocol = xb_count_of(item, "protocol"), messages = xb_count_of(item, "messages");
		double total = (double)xb_count_of(item, "total");
		if (order < 0 || protocol >= XB_SWAP_PROTOCOLS || messages == 0 || !(total > 0.0))
			return refuse(error, i, "no such protocol, order or number of messages");
		if (sweep->any && (order != (int)sweep->order || total != sweep->total_bytes))
			return refuse(error, i, "its order or total is not that of the others");
		sweep->order = (enum xb_swap_order)order;
		sweep->total_bytes = total;
		sweep->any = 1;
		size_t at = place_of(sweep, xb_count_of(item, "size"), (double)messages);
		if (at == SIZE_MAX)
			return refuse(error, i, "too many different sizes");
		if (sweep->record[protocol][at] != NULL)
			return refuse(error, i, "this label, protocol, mode and size appear twice");
		sweep->record[protocol][at] = item;
		sweep->min_s[protocol][at] = xb_number_of(json_object_get(item, "seconds"), "min");
	}
	return 0;
}

int xb_swaps_check(json_t *document, const char *name, struct xb_error *error)
{
	static struct xb_sweep sweep; /* large */
	size_t t, i;
	json_t *transport, *item;
	struct xb_error cause = {0};
	json_array_foreach(json_object_get(document, "transports"), t, transport)
	{
		for (unsigned mode = 0; mode < XB_SWAP_MODES; mode++)
			for (int overlap = 0; overlap < 2; overlap++)
				if (xb_sweep_read(document, xb_text_of(transport, "label"),
						  (enum xb_swap_mode)mode, overlap, &sweep, &cause) < 0)
					return xb_fail(error, XB_E_USAGE, "%.300s is %s", name, cause.text);
	}
	json_array_foreach(json_object_get(document, "swaps"), i, item)
	{
		int known = 0;
		json_array_foreach(json_object_get(document, "transports"), t, transport) known |=
			strcmp(xb_text_of(transport, "label"), xb_text_of(item, "label")) == 0;
		if (!known)
			return xb_fail(
				error, XB_E_USAGE,
				"%.300s is not a result of xportbench: swaps[%zu]: its label is none of "
				"the transports'",
				name, i);
	}
	return 0;
}

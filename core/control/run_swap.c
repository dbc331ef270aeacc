/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run visits when swap is among its benchmarks. */
#include <stdio.h>
#include <string.h>

#include "run_internal.h"
#include "../engine/block.h"
#include "../report/text.h"

size_t xb_run_count_items(const struct xb_config *c)
{
	size_t count = 0;

	for (size_t b = 0; b < c->bench_count; b++)
		count += c->benches[b] == XB_BENCH_SWAP ? c->swap.variant_count * c->swap.size_count
							: c->size_count;
	return count;
}

size_t xb_run_swap_items(const struct xb_config *c, struct xb_item *items)
{
	size_t count = 0;

	for (size_t v = 0; v < c->swap.variant_count; v++)
		for (size_t s = 0; s < c->swap.size_count; s++)
			items[count++] = (struct xb_item){
				.bench = XB_BENCH_SWAP,
				.size_bytes = c->swap.sizes[s],
				.swap = xb_swap_of(c, &c->swap.variants[v], c->swap.sizes[s]),
				.variant = v};
	return count;
}

unsigned xb_run_rounds(const struct xb_run *run, const struct xb_item *item)
{
	/* a swap block holds repetitions of its own, and there are many of them */
	return item->bench == XB_BENCH_SWAP ? 1 : run->rounds;
}

void xb_run_item_text(const struct xb_item *item, char *text, size_t bytes)
{
	char size[32], swap[96] = "";

	xb_size_text(item->size_bytes, size, sizeof size);
	if (item->bench == XB_BENCH_SWAP)
		xb_swap_text(&item->swap, swap, sizeof swap);
	snprintf(text, bytes, "%s at %s%s%s%s", xb_bench_name(item->bench), size, swap[0] ? " (" : "", swap,
		 swap[0] ? ")" : "");
}

int xb_run_sync_sends(const struct xb_config *c)
{
	for (size_t v = 0; v < c->swap.variant_count; v++) {
		const struct xb_swap swap = xb_swap_of(c, &c->swap.variants[v], c->swap.sizes[0]);
		if (xb_swap_sync_sends(&swap))
			return 1;
	}
	return 0;
}

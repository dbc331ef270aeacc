/* SPDX-License-Identifier: BSD-3-Clause */
/* What the protocols of the swap are: names, needs, stages. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "block.h"
#include "swap.h"

static const struct {
	uint8_t order, hi, both, protocol;
	const char *stage[4];
} trains[] = {
#define SIDE_lo 0, 0
#define SIDE_hi 1, 0
#define SIDE_both 0, 1
#define ORDER_ordered XB_SWAP_ORDERED
#define ORDER_unordered XB_SWAP_UNORDERED
#define ORDER_delayed XB_SWAP_DELAYED
#define SWAP_TRAIN(order, side, protocol, stage0, stage1, stage2, stage3)                                    \
	{ORDER_##order, SIDE_##side, protocol, {#stage0, #stage1, #stage2, #stage3}},
#include "swap_protocols.inc"
#undef SWAP_TRAIN
};

const char *xb_swap_stage(unsigned order, unsigned protocol, int hi, unsigned stage)
{
	for (size_t i = 0; i < sizeof trains / sizeof trains[0] && stage < 4; i++)
		if (trains[i].order == order && trains[i].protocol == protocol &&
		    (trains[i].both || trains[i].hi == hi))
			return trains[i].stage[stage];
	return NULL;
}

const char *xb_swap_order_name(unsigned order)
{
	static const char *const names[] = {"ordered", "unordered", "delayed"};
	return order < XB_SWAP_ORDERS ? names[order] : "unknown";
}

const char *xb_swap_mode_name(unsigned mode)
{
	static const char *const names[] = {"cache inv.", "1 iter.", "10 iter."};
	return mode < XB_SWAP_MODES ? names[mode] : "unknown";
}

const char *xb_swap_title(unsigned order, unsigned protocol)
{
	static const char *const titles[XB_SWAP_PROTOCOLS] = {
		"ordered simple swap",
		"ordered swap using nonblocking send",
		"ordered swap using nonblocking receive",
		"ordered swap using nonblocking send and receive",
		"ordered swap using ready send",
		"ordered swap using nonblocking ready send",
		"synchronous ordered swap",
		"ordered swap using nonblocking sync. send",
		"ordered swap using nonblocking receive with sync. send",
		"ordered swap using nonblocking sync. send and receive",
		"ordered simple swap using sync. send"};
	if (protocol >= XB_SWAP_PROTOCOLS)
		return "unknown";
	if (order == XB_SWAP_ORDERED)
		return titles[protocol];
	return protocol == 6 ? "swap using sendrecv" : titles[protocol] + strlen("ordered ");
}

int xb_swap_exists(unsigned order, unsigned protocol, const char **why)
{
	static const char number[] = "there are protocols 0 to 10", orders[] = "there is no such order";
	static const char deadlock[] = "both sides would wait in a send for each other as soon as messages "
				       "are too large to be buffered";
	static const char split[] = "its send and receive are one operation, so the receive cannot be "
				    "completed later";

	*why = protocol >= XB_SWAP_PROTOCOLS ? number
	       : order >= XB_SWAP_ORDERS     ? orders
	       : protocol == 6		     ? split
					     : deadlock;
	return xb_swap_stage(order, protocol, 0, 0) != NULL;
}

int xb_swap_overlaps(unsigned protocol)
{
	return protocol < 10 && protocol != 0 && protocol != 6;
}

/* Does a stage of one of the sides have this operation, as a word? */
static int has(const struct xb_swap *swap, const char *operation)
{
	const size_t length = strlen(operation);

	for (int hi = 0; hi < 2; hi++)
		for (unsigned stage = 0; stage < 4; stage++) {
			const char *text = xb_swap_stage(swap->order, swap->protocol, hi, stage);
			for (const char *at = text; at && (at = strstr(at, operation)); at += length)
				if ((at == text || at[-1] == ' ') && (!at[length] || at[length] == ' '))
					return 1;
		}
	return 0;
}

int xb_swap_sync_sends(const struct xb_swap *swap)
{
	return has(swap, "SSEND") || has(swap, "ISSEND");
}

int xb_swap_blocking_sends(const struct xb_swap *swap)
{
	return has(swap, "SEND") || has(swap, "SSEND") || has(swap, "RSEND");
}

int xb_swap_blocking_receives(const struct xb_swap *swap)
{
	return has(swap, "RECV");
}

int xb_swap_waits_later(const struct xb_swap *swap)
{
	return !xb_swap_blocking_sends(swap) || !xb_swap_blocking_receives(swap);
}

uint32_t xb_swap_caps(const struct xb_swap *swap)
{
	uint32_t caps = XB_CAP_SEND;

	if (xb_swap_sync_sends(swap))
		caps |= XB_CAP_SYNC_SEND;
	if (has(swap, "RSEND") || has(swap, "IRSEND"))
		caps |= XB_CAP_READY_SEND;
	if (swap->order != XB_SWAP_ORDERED || swap->overlap)
		caps |= XB_CAP_BOTH_WAYS;
	return caps;
}

uint32_t xb_swap_batch(const struct xb_swap *swap)
{
	uint32_t batch = swap->messages;

	if (!swap->overlap || !batch)
		return 1;
	if (swap->depth && swap->depth < batch)
		batch = swap->depth;
	return batch < XB_MAX_WINDOW ? batch : XB_MAX_WINDOW;
}

void xb_swap_text(const struct xb_swap *swap, char *text, size_t bytes)
{
	int n = snprintf(text, bytes, "protocol %u %s, %s, %" PRIu32 " messages", swap->protocol,
			 xb_swap_order_name(swap->order), xb_swap_mode_name(swap->mode), swap->messages);
	if (swap->overlap && n > 0 && (size_t)n < bytes)
		snprintf(text + n, bytes - (size_t)n, ", batches of %" PRIu32, xb_swap_batch(swap));
}

uint64_t xb_swap_pack(const struct xb_swap *swap)
{
	return (uint64_t)swap->protocol | (uint64_t)swap->order << 8 | (uint64_t)swap->mode << 16 |
	       (uint64_t) !!swap->overlap << 24 | (uint64_t)swap->messages << 32;
}

int xb_swap_check(const struct xb_swap *swap, size_t size_bytes, struct xb_error *error)
{
	const char *why;

	if (!xb_swap_exists(swap->order, swap->protocol, &why))
		return xb_fail(error, XB_E_USAGE, "asked for swap protocol %u with --order %s: %s",
			       swap->protocol, xb_swap_order_name(swap->order), why);
	if (swap->overlap && !xb_swap_overlaps(swap->protocol))
		return xb_fail(error, XB_E_USAGE,
			       "asked for swap protocol %u with overlap: it has no stage that could overlap",
			       swap->protocol);
	if (swap->mode >= XB_SWAP_MODES)
		return xb_fail(error, XB_E_USAGE, "there is no swap mode %u", swap->mode);
	if (size_bytes < XB_SWAP_SMALLEST_BYTES)
		return xb_fail(error, XB_E_USAGE,
			       "asked for swap messages of %zu bytes; they have at least %u", size_bytes,
			       XB_SWAP_SMALLEST_BYTES);
	if (swap->messages == 0 || swap->messages > XB_MAX_ITERATIONS)
		return xb_fail(error, XB_E_USAGE,
			       "asked for a swap in %" PRIu32 " messages of %zu bytes; 1 to %u are possible",
			       swap->messages, size_bytes, XB_MAX_ITERATIONS);
	return 0;
}

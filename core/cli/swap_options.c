/* SPDX-License-Identifier: BSD-3-Clause */
/* The options about the swap, and what they come to together. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/block.h"
#include "show.h"
#include "swap_options.h"

#define DEFAULT_SPLITS 11u /* 1, 2, 4 ... 1024 messages */

/* --- --protocol */

static int read_number(const char **at, unsigned *number)
{
	char *end;
	unsigned long value;

	if (**at < '0' || **at > '9')
		return -1;
	value = strtoul(*at, &end, 10);
	if (value >= XB_SWAP_PROTOCOLS)
		return -1;
	*number = (unsigned)value;
	*at = end;
	return 0;
}

int xb_set_protocols(struct xb_config *config, const char *value, struct xb_error *error)
{
	unsigned char flags[XB_SWAP_PROTOCOLS] = {0};

	config->swap.all_protocols = !strcmp(value, "all");
	if (config->swap.all_protocols)
		return 0;
	for (const char *at = value;; at++) {
		unsigned first, last;

		if (read_number(&at, &first))
			break;
		last = first;
		if (*at == '-' || *at == ':') {
			at++;
			if (read_number(&at, &last) || last < first)
				break;
		}
		memset(flags + first, 1, last - first + 1);
		if (*at == '\0') {
			memcpy(config->swap.protocols, flags, sizeof flags);
			return 0;
		}
		if (*at != ',')
			break;
	}
	return xb_fail(
		error, XB_E_USAGE,
		"'%s' is not allowed; give all, or numbers from 0 to 10 and ranges of them, for example "
		"0,1,7-10",
		XB_SHOW(value));
}

json_t *xb_echo_protocols(const struct xb_config *config)
{
	json_t *list;

	if (config->swap.all_protocols)
		return json_string("all");
	list = json_array();
	for (unsigned p = 0; p < XB_SWAP_PROTOCOLS; p++)
		if (config->swap.protocols[p])
			json_array_append_new(list, json_integer(p));
	return list;
}

/* --- words */

static const char *const orders[] = {"ordered", "unordered", "delayed"};
static const char *const modes[] = {"inv", "1", "10"};
static const char *const overlaps[] = {"auto", "off", "on", "both"};

static int find_word(const char *text, size_t length, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == length && !memcmp(words[i], text, length))
			return (int)i;
	return -1;
}

int xb_set_order(struct xb_config *config, const char *value, struct xb_error *error)
{
	int order = find_word(value, strlen(value), orders, 3);

	if (order < 0)
		return xb_fail(error, XB_E_USAGE,
			       "'%s' is not allowed; choose from ordered, unordered, delayed",
			       XB_SHOW(value));
	config->swap.order = (enum xb_swap_order)order;
	return 0;
}

json_t *xb_echo_order(const struct xb_config *config)
{
	return json_string(orders[config->swap.order]);
}

int xb_set_cache(struct xb_config *config, const char *value, struct xb_error *error)
{
	unsigned char flags[XB_SWAP_MODES] = {0};

	if (!strcmp(value, "all")) {
		memset(config->swap.modes, 1, sizeof flags);
		return 0;
	}
	for (const char *item = value;; item++) {
		size_t length = strcspn(item, ",");
		int mode = find_word(item, length, modes, 3);

		if (mode < 0)
			return xb_fail(error, XB_E_USAGE,
				       "'%s' is not allowed; choose from inv, 1, 10, or all",
				       XB_SHOW_SPAN(item, length));
		flags[mode] = 1;
		item += length;
		if (*item == '\0')
			break;
	}
	memcpy(config->swap.modes, flags, sizeof flags);
	return 0;
}

json_t *xb_echo_cache(const struct xb_config *config)
{
	json_t *list = json_array();

	for (unsigned m = 0; m < XB_SWAP_MODES; m++)
		if (config->swap.modes[m])
			json_array_append_new(list, json_string(modes[m]));
	return list;
}

int xb_set_overlap(struct xb_config *config, const char *value, struct xb_error *error)
{
	int overlap = find_word(value, strlen(value), overlaps, 4);

	if (overlap < 0)
		return xb_fail(error, XB_E_USAGE, "'%s' is not allowed; choose from off, on, both, or auto",
			       XB_SHOW(value));
	config->swap.overlap = (enum xb_overlap)overlap;
	return 0;
}

json_t *xb_echo_overlap(const struct xb_config *config)
{
	return json_string(overlaps[config->swap.overlap]);
}

/* --- numbers */

int xb_set_overlap_depth(struct xb_config *config, const char *value, struct xb_error *error)
{
	char *end;
	unsigned long depth;

	config->swap.depth_given = 1; /* reset after the fallbacks have been set */
	if (!strcmp(value, "all")) {
		config->swap.depth = 0;
		return 0;
	}
	depth = *value >= '0' && *value <= '9' ? strtoul(value, &end, 10) : 0;
	if (depth < 1 || depth > XB_MAX_WINDOW || *end)
		return xb_fail(error, XB_E_USAGE,
			       "'%s' is not allowed; give a whole number from 1 to %u, or all",
			       XB_SHOW(value), XB_MAX_WINDOW);
	config->swap.depth = (uint32_t)depth;
	return 0;
}

json_t *xb_echo_overlap_depth(const struct xb_config *config)
{
	return config->swap.depth ? json_integer(config->swap.depth) : json_string("all");
}

int xb_set_total(struct xb_config *config, const char *value, struct xb_error *error)
{
	size_t bytes;
	int rc = xb_parse_size(value, &bytes, error);

	if (rc)
		return rc;
	if (bytes < XB_SWAP_SMALLEST_BYTES)
		return xb_fail(error, XB_E_USAGE, "'%s' is not allowed; give at least %u bytes",
			       XB_SHOW(value), XB_SWAP_SMALLEST_BYTES);
	config->swap.total_bytes = bytes;
	return 0;
}

json_t *xb_echo_total(const struct xb_config *config)
{
	return json_integer((json_int_t)config->swap.total_bytes);
}

/* --- all together */

int xb_config_has(const struct xb_config *config, enum xb_bench bench)
{
	for (size_t b = 0; b < config->bench_count; b++)
		if (config->benches[b] == bench)
			return 1;
	return 0;
}

static int check_protocols(const struct xb_swap_config *swap, struct xb_error *error)
{
	const char *why;

	for (unsigned p = 0; p < XB_SWAP_PROTOCOLS && !swap->all_protocols; p++) {
		if (!swap->protocols[p])
			continue;
		if (!xb_swap_exists(swap->order, p, &why))
			return xb_fail(error, XB_E_USAGE,
				       "--protocol: protocol %u is not offered with --order %s: %s", p,
				       orders[swap->order], why);
		if (swap->overlap == XB_OVERLAP_ON && !xb_swap_overlaps(p))
			return xb_fail(error, XB_E_USAGE,
				       "--protocol: protocol %u has no stages that could overlap (--overlap "
				       "on); the others but 0, 6 and 10 have",
				       p);
	}
	return 0;
}

static void make_variants(struct xb_swap_config *swap)
{
	const char *why;

	swap->variant_count = 0;
	for (unsigned overlap = 0; overlap < 2; overlap++) {
		if (swap->overlap == (overlap ? XB_OVERLAP_OFF : XB_OVERLAP_ON))
			continue;
		for (unsigned mode = 0; mode < XB_SWAP_MODES; mode++)
			for (unsigned p = 0; swap->modes[mode] && p < XB_SWAP_PROTOCOLS; p++)
				if ((swap->all_protocols || swap->protocols[p]) &&
				    xb_swap_exists(swap->order, p, &why) && (!overlap || xb_swap_overlaps(p)))
					swap->variants[swap->variant_count++] = (struct xb_swap_variant){
						(uint8_t)p, (uint8_t)mode, (uint8_t)overlap};
	}
}

static int divides(size_t size, size_t total)
{
	return size >= XB_SWAP_SMALLEST_BYTES && size <= total && total % size == 0 &&
	       total / size <= XB_MAX_ITERATIONS;
}

static int choose_sizes(struct xb_config *config, struct xb_error *error)
{
	struct xb_swap_config *swap = &config->swap;
	const size_t total = swap->total_bytes;

	swap->size_count = 0;
	if (!config->sizes_given) {
		for (unsigned k = DEFAULT_SPLITS; k-- > 0;)
			if (total % ((size_t)1 << k) == 0 && divides(total >> k, total))
				swap->sizes[swap->size_count++] = total >> k;
		return 0;
	}
	for (size_t s = 0; s < config->size_count; s++) {
		if (divides(config->sizes[s], total))
			swap->sizes[swap->size_count++] = config->sizes[s];
		else if (config->bench_count == 1)
			return xb_fail(
				error, XB_E_USAGE,
				"-s, --sizes: %zu bytes do not divide the %zu bytes of the swap (--total) "
				"into messages of at least %u bytes, at most %u of them; choose sizes that "
				"do, for example 2K:2M with --total 2M",
				config->sizes[s], total, XB_SWAP_SMALLEST_BYTES, XB_MAX_ITERATIONS);
	}
	if (!swap->size_count)
		return xb_fail(
			error, XB_E_USAGE,
			"-s, --sizes: none of the sizes divides the %zu bytes of the swap (--total) into "
			"messages of at least %u bytes; add one that does, for example 64K",
			total, XB_SWAP_SMALLEST_BYTES);
	return 0;
}

int xb_swap_resolve(struct xb_config *config, struct xb_error *error)
{
	struct xb_swap_config *swap = &config->swap;
	int rc;

	if (!xb_config_has(config, XB_BENCH_SWAP))
		return config->format == XB_FORMAT_COMMTEST
			       ? xb_fail(error, XB_E_USAGE,
					 "--format commtest is the report of the swap benchmark; add -b swap")
			       : 0;
	if (config->bench_count == 1 && (config->format == XB_FORMAT_IMB || config->format == XB_FORMAT_OSU ||
					 config->format == XB_FORMAT_NOW))
		return xb_fail(
			error, XB_E_USAGE,
			"that --format has no place for swaps; use table, csv, json or commtest, or add "
			"pingpong");
	if (config->op != XB_OP_SEND)
		return xb_fail(
			error, XB_E_USAGE,
			"--op %s cannot be swapped: the protocols of swap are about sends and receives; "
			"leave out --op or swap",
			xb_op_name(config->op));
	if (swap->overlap == XB_OVERLAP_AUTO)
		swap->overlap = swap->depth_given ? XB_OVERLAP_BOTH : XB_OVERLAP_OFF;
	rc = check_protocols(swap, error);
	if (rc)
		return rc;
	make_variants(swap);
	if (!swap->variant_count)
		return xb_fail(error, XB_E_USAGE,
			       "--protocol: none of the protocols can be measured with --overlap on");
	return choose_sizes(config, error);
}

struct xb_swap xb_swap_of(const struct xb_config *config, const struct xb_swap_variant *variant,
			  size_t size_bytes)
{
	return (struct xb_swap){.protocol = variant->protocol,
				.order = (uint8_t)config->swap.order,
				.mode = variant->mode,
				.overlap = variant->overlap,
				.messages = (uint32_t)(config->swap.total_bytes / size_bytes),
				.depth = config->swap.depth};
}

size_t xb_config_largest_message(const struct xb_config *config)
{
	const struct xb_swap_config *swap = &config->swap;
	const int only_swap = config->bench_count == 1 && swap->size_count;
	size_t largest = only_swap ? 0 : config->sizes[config->size_count - 1];

	if (swap->size_count && swap->sizes[swap->size_count - 1] > largest)
		largest = swap->sizes[swap->size_count - 1];
	return largest;
}

size_t xb_config_largest_bytes(const struct xb_config *config)
{
	size_t largest = xb_config_largest_message(config);

	if (config->swap.size_count && config->swap.total_bytes > largest)
		largest = config->swap.total_bytes;
	return largest;
}

uint32_t xb_config_most_window(const struct xb_config *config)
{
	uint32_t most = config->window > 64 ? config->window : 64;

	for (size_t v = 0; v < config->swap.variant_count; v++) {
		/* the smallest messages are the most */
		const struct xb_swap swap =
			xb_swap_of(config, &config->swap.variants[v], config->swap.sizes[0]);
		most = xb_swap_batch(&swap) > most ? xb_swap_batch(&swap) : most;
	}
	return most;
}

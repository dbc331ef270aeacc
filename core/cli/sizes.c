/* SPDX-License-Identifier: BSD-3-Clause */
/* Message sizes: "4M", "now", and lists of sizes and ranges: "1:4M", "0,1,1000,64K", "0:1K,1000000". */
#include "config.h"
#include "show.h"

#define LARGEST ((size_t)1 << 30)

/* Bytes per unit of a suffix; 0 if it is none. */
static size_t suffix_unit(char c)
{
	switch (c) {
	case 'K':
	case 'k':
		return (size_t)1 << 10;
	case 'M':
	case 'm':
		return (size_t)1 << 20;
	case 'G':
	case 'g':
		return (size_t)1 << 30;
	default:
		return 0;
	}
}

static int not_a_size(const char *text, size_t length, struct xb_error *error)
{
	const char *why = "write a whole number of bytes, with K, M or G for 2^10, 2^20, 2^30";

	if (text[0] == '-')
		why = "a size cannot be negative";
	else if (memchr(text, '.', length))
		why = "only whole numbers are sizes; 1.5K is written 1536";
	else if (text[length - 1] == 'B' || text[length - 1] == 'b' || text[length - 1] == 'i')
		why = "K, M and G stand alone: 4K is 4096 bytes, 4M is 4194304 bytes";
	return xb_fail(error, XB_E_USAGE, "'%s' is not a message size: %s", XB_SHOW_SPAN(text, length), why);
}

static int parse_span(const char *text, size_t length, size_t *bytes, struct xb_error *error)
{
	size_t value = 0, digits = 0, unit = 1;

	if (length == 0)
		return xb_fail(
			error, XB_E_USAGE,
			"a message size is missing: write a number of bytes, for example 1000, 64K or 4M");
	for (; digits < length && text[digits] >= '0' && text[digits] <= '9'; digits++) {
		/* Beyond the limit the exact value no longer matters; it must only stay beyond. */
		if (value <= LARGEST)
			value = value * 10 + (size_t)(text[digits] - '0');
	}
	if (digits == length - 1)
		unit = suffix_unit(text[digits]);
	if (digits == 0 || digits + 1 < length || unit == 0)
		return not_a_size(text, length, error);
	if (value > LARGEST / unit)
		return xb_fail(error, XB_E_USAGE,
			       "message size '%s' is too large: the limit is 1G (1073741824 bytes)",
			       XB_SHOW_SPAN(text, length));
	*bytes = value * unit;
	return 0;
}

int xb_parse_size(const char *text, size_t *bytes, struct xb_error *error)
{
	return parse_span(text, strlen(text), bytes, error);
}

struct size_set {
	size_t sizes[XB_MAX_SIZES];
	size_t count, capacity;
};

/* Keeps the set ascending and unique. */
static int add(struct size_set *set, size_t bytes, struct xb_error *error)
{
	size_t at = set->count;

	while (at > 0 && set->sizes[at - 1] > bytes)
		at--;
	if (at > 0 && set->sizes[at - 1] == bytes)
		return 0;
	if (set->count == set->capacity)
		return xb_fail(error, XB_E_USAGE,
			       "more than %zu different message sizes are asked for; leave some out",
			       set->capacity);
	memmove(set->sizes + at + 1, set->sizes + at, (set->count - at) * sizeof(set->sizes[0]));
	set->sizes[at] = bytes;
	set->count++;
	return 0;
}

/* Both ends, and every power of two between them. */
static int add_range(struct size_set *set, const char *text, const char *colon, const char *end,
		     struct xb_error *error)
{
	size_t low, high;
	int rc;

	if (memchr(colon + 1, ':', (size_t)(end - colon - 1)))
		return xb_fail(error, XB_E_USAGE,
			       "size range '%s' has more than one ':'; write MIN:MAX, for example 1:4M",
			       XB_SHOW_SPAN(text, (size_t)(end - text)));
	rc = parse_span(text, (size_t)(colon - text), &low, error);
	if (rc)
		return rc;
	rc = parse_span(colon + 1, (size_t)(end - colon - 1), &high, error);
	if (rc)
		return rc;
	if (low > high)
		return xb_fail(error, XB_E_USAGE,
			       "size range '%s' runs downwards (%zu is more than %zu bytes); write the "
			       "smaller size first",
			       XB_SHOW_SPAN(text, (size_t)(end - text)), low, high);
	rc = add(set, low, error);
	for (size_t power = 1; !rc && power < high; power *= 2) {
		if (power > low)
			rc = add(set, power, error);
	}
	return rc ? rc : add(set, high, error);
}

/* The sizes of comm.shar (Dongarra and Dunigan 1995), as the NOW reports have them. */
static int add_now(struct size_set *set, struct xb_error *error)
{
	static const size_t sizes[] = {0,     4,     8,	     16,     32,     64,     128,     256,
				       512,   1000,  1024,   2048,   4096,   8192,   10000,   16384,
				       32768, 65536, 100000, 131072, 262144, 524288, 1000000, 1048576};
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(sizes) / sizeof(sizes[0]); i++)
		rc = add(set, sizes[i], error);
	return rc;
}

int xb_parse_sizes(const char *text, size_t *sizes, size_t capacity, size_t *count, struct xb_error *error)
{
	struct size_set set = {.capacity = capacity < XB_MAX_SIZES ? capacity : XB_MAX_SIZES};
	const char *item = text;

	for (;;) {
		size_t length = strcspn(item, ","), bytes;
		const char *colon = memchr(item, ':', length);
		int rc;

		if (length == 0)
			return xb_fail(
				error, XB_E_USAGE,
				"size list '%s' has an empty item; write sizes with a comma between two, "
				"for example 0,1,1000,64K, or a range such as 1:4M",
				XB_SHOW(text));
		if (length == 3 && !memcmp(item, "now", 3)) {
			rc = add_now(&set, error);
		} else if (colon) {
			rc = add_range(&set, item, colon, item + length, error);
		} else {
			rc = parse_span(item, length, &bytes, error);
			if (!rc)
				rc = add(&set, bytes, error);
		}
		if (rc)
			return rc;
		if (item[length] == '\0')
			break;
		item += length + 1;
	}
	memcpy(sizes, set.sizes, set.count * sizeof(sizes[0]));
	*count = set.count;
	return 0;
}

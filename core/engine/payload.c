/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdint.h>

#include "payload.h"

/*
 * Word i of a pattern is w ^ (w >> 31) of w = seed + i * WORD_STEP: one addition, one shift and one
 * exclusive-or per word, done for four words at a time, so that 1 GiB messages are filled and compared at the
 * speed of memory.
 */
#define WORD_STEP UINT64_C(0xd1342543de82ef95)
#define LANES 4

typedef uint64_t lanes __attribute__((vector_size(8 * LANES)));

static uint64_t mix(uint64_t x) /* finaliser of splitmix64 */
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t xb_payload_seed(uint64_t nonce, size_t size_bytes, enum xb_direction direction, uint64_t message)
{
	uint64_t seed = mix(nonce + XB_STAMP_STEP);
	seed = mix(seed ^ (uint64_t)size_bytes) + (uint64_t)direction;
	seed = mix(seed) + message * WORD_STEP;
	return mix(seed) | 1; /* never 0, which means "no pattern" */
}

static uint64_t word_at(uint64_t seed, size_t word)
{
	uint64_t w = seed + (uint64_t)word * WORD_STEP;
	return w ^ (w >> 31);
}

unsigned char xb_payload_byte(uint64_t seed, size_t offset)
{
	uint64_t word = word_at(seed, offset / 8);
	unsigned char bytes[8];
	memcpy(bytes, &word, 8);
	return bytes[offset % 8];
}

static void first_lanes(uint64_t seed, size_t word, lanes *x)
{
	for (unsigned i = 0; i < LANES; i++)
		(*x)[i] = seed + (uint64_t)(word + i) * WORD_STEP;
}

void xb_payload_fill(unsigned char *buffer, size_t bytes, uint64_t seed)
{
	const size_t whole = bytes / (8 * LANES) * (8 * LANES);
	const lanes step = {LANES * WORD_STEP, LANES * WORD_STEP, LANES * WORD_STEP, LANES * WORD_STEP};
	lanes x;

	first_lanes(seed, 0, &x);
	for (size_t at = 0; at < whole; at += 8 * LANES) {
		lanes w = x ^ (x >> 31);
		memcpy(buffer + at, &w, sizeof w);
		x += step;
	}
	for (size_t at = whole; at < bytes; at++)
		buffer[at] = xb_payload_byte(seed, at);
}

void xb_payload_poison(unsigned char *buffer, size_t bytes)
{
	memset(buffer, XB_POISON, bytes);
}

size_t xb_payload_compare(const unsigned char *buffer, size_t offset, size_t bytes, uint64_t seed)
{
	const lanes step = {LANES * WORD_STEP, LANES * WORD_STEP, LANES * WORD_STEP, LANES * WORD_STEP};
	size_t at = offset;

	for (; at < bytes && at % (8 * LANES); at++)
		if (buffer[at] != xb_payload_byte(seed, at))
			return at;
	lanes x;
	first_lanes(seed, at / 8, &x);
	for (; at < bytes && bytes - at >= 8 * LANES; at += 8 * LANES) {
		lanes found;
		memcpy(&found, buffer + at, sizeof found);
		lanes different = found ^ x ^ (x >> 31);
		if (different[0] | different[1] | different[2] | different[3])
			break;
		x += step;
	}
	for (; at < bytes; at++)
		if (buffer[at] != xb_payload_byte(seed, at))
			return at;
	return bytes;
}

static unsigned char stamp_byte(uint64_t stamp, size_t index)
{
	unsigned char bytes[8];
	memcpy(bytes, &stamp, 8);
	return bytes[index];
}

/* The byte that a whole message must have; the tail is written after the head, so it wins where they overlap.
 */
static unsigned char expected_byte(size_t size, uint64_t seed, int stamped, uint64_t stamp, size_t offset)
{
	size_t tail = xb_stamp_tail(size);
	if (stamped && offset >= tail && offset < tail + 8)
		return stamp_byte(stamp, offset - tail);
	if (stamped && offset < 8)
		return stamp_byte(stamp, offset);
	return xb_payload_byte(seed, offset);
}

/* --- sentences */

static int fail_with(const struct xb_payload_context *c, uint64_t message, size_t offset, unsigned expected,
		     unsigned found, const char *verdict, struct xb_error *error)
{
	return xb_fail(error, XB_E_CORRUPT,
		       "%s %s of %zu bytes, message %" PRIu64
		       " of the %s: at offset %zu expected 0x%02x, found 0x%02x: "
		       "%s",
		       c->bench, c->op, c->size_bytes, message, c->part, offset, expected, found, verdict);
}

static const char premature_nothing[] = "nothing has been written there since the buffer was prepared, so "
					"the transport said complete before the data "
					"had arrived (premature completion)";
static const char premature_stale[] = "it is the content of an earlier message, so the transport said "
				      "complete before the data had arrived (premature "
				      "completion) or delivered a stale buffer";
static const char premature_part[] = "the beginning of the message is there and this part is not, so the "
				     "transport said complete before all of the "
				     "data had arrived (premature completion)";
static const char later[] = "it is the content of a later message, so the receive buffer was overwritten too "
			    "early or messages were reordered";
static const char corrupted[] = "it is neither of this nor of a neighbouring message nor an untouched "
				"buffer, so bytes were corrupted on the way";

/* --- stamps */

/* The bytes of the head and the tail word that a message with this stamp shows; others are masked to zero. */
static void expected_words(size_t size, uint64_t stamp, uint64_t *words, uint64_t *mask)
{
	unsigned char message[24] = {0}, valid[24] = {0};
	size_t shown = size < 16 ? size : 16, tail = xb_stamp_tail(shown);

	xb_stamp_write(message, tail, stamp);
	xb_stamp_read(message, tail, words);
	memset(valid, 0xff, shown);
	xb_stamp_read(valid, tail, mask);
	words[0] &= mask[0];
	words[1] &= mask[1];
}

static int same_words(size_t size, const uint64_t *words, uint64_t stamp)
{
	uint64_t expected[2], mask[2];
	expected_words(size, stamp, expected, mask);
	return (words[0] & mask[0]) == expected[0] && (words[1] & mask[1]) == expected[1];
}

/* Is it the content of an older message, wholly or from some place on? NULL if not. */
static const char *judge_against(const struct xb_payload_context *c, const uint64_t *words,
				 uint64_t old_stamp, int head_right)
{
	uint64_t old[2], mask[2];

	expected_words(c->size_bytes, old_stamp, old, mask);
	if (same_words(c->size_bytes, words, old_stamp))
		return premature_stale;
	return head_right && c->size_bytes > 8 && (words[1] & mask[1]) == old[1] ? premature_part : NULL;
}

static const char *judge_words(const struct xb_payload_context *c, const uint64_t *words,
			       const uint64_t *expected, const uint64_t *mask, uint64_t message,
			       uint64_t first, uint64_t step)
{
	/* how far back or forward a stamp is looked for: a stale buffer is that of a recent message, and the
	 * fewer bytes there are, the more stamps look alike */
	const uint64_t reach = c->size_bytes >= 8 ? 4096 : c->size_bytes >= 4 ? 64 : 1;
	int head_right = (words[0] & mask[0]) == expected[0];
	const char *verdict = NULL;

	if ((words[1] & mask[1]) == (XB_POISON_WORD & mask[1]))
		return head_right && c->size_bytes > 8 ? premature_part : premature_nothing;
	if (c->previous_stamp && message == 0)
		verdict = judge_against(c, words, c->previous_stamp, head_right);
	for (uint64_t i = 1; step && !verdict && i <= reach; i++) {
		if (message >= i)
			verdict = judge_against(c, words, first + (message - i) * step, head_right);
		if (!verdict && same_words(c->size_bytes, words, first + (message + i) * step))
			verdict = later;
	}
	return verdict ? verdict : corrupted;
}

static int fail_words(const struct xb_payload_context *c, const uint64_t *words, uint64_t message,
		      uint64_t first, uint64_t step, struct xb_error *error)
{
	uint64_t expected[2], mask[2];
	unsigned char want[16], got[16];
	size_t at = 0, shown = c->size_bytes < 8 ? c->size_bytes : 8;

	expected_words(c->size_bytes, first + message * step, expected, mask);
	memcpy(want, expected, 16);
	memcpy(got, words, 16);
	while (at < 16 && (at % 8 >= shown || want[at] == got[at]))
		at++;
	at = at < 16 ? at : 15; /* never: a word differs */
	return fail_with(c, message, at < 8 ? at : xb_stamp_tail(c->size_bytes) + at - 8, want[at], got[at],
			 judge_words(c, words, expected, mask, message, first, step), error);
}

int xb_payload_check_stamps(const struct xb_payload_context *context, const uint64_t *words, uint64_t count,
			    uint64_t first, uint64_t step, struct xb_error *error)
{
	if (context->size_bytes == 0)
		return 0;
	for (uint64_t i = 0; i < count; i++)
		if (!same_words(context->size_bytes, &words[2 * i], first + i * step))
			return fail_words(context, &words[2 * i], i, first, step, error);
	return 0;
}

/* --- whole messages */

static int is_poison(const unsigned char *buffer, size_t from, size_t bytes)
{
	for (size_t i = from; i < bytes; i++)
		if (buffer[i] != XB_POISON)
			return 0;
	return 1;
}

/*
 * What the rest of the message from the first wrong byte on is. Only a short stretch is looked at: a message
 * cut at any place shows old content from there on, while corruption is confined to some bytes.
 */
static const char *judge_message(const struct xb_payload_context *c, const unsigned char *buffer,
				 size_t wrong)
{
	const size_t size = c->size_bytes, until = size - wrong > 64 ? wrong + 64 : size;
	size_t at = wrong;

	if (is_poison(buffer, wrong, until))
		return wrong ? premature_part : premature_nothing;
	while (c->previous_seed && at < until &&
	       buffer[at] ==
		       expected_byte(size, c->previous_seed, c->previous_stamp != 0, c->previous_stamp, at))
		at++;
	if (at == until)
		return wrong ? premature_part : premature_stale;
	return corrupted;
}

int xb_payload_check(const struct xb_payload_context *context, const unsigned char *buffer, uint64_t seed,
		     int stamped, uint64_t stamp, uint64_t message, struct xb_error *error)
{
	size_t size = context->size_bytes, tail = xb_stamp_tail(size), wrong = 0;

	if (stamped) {
		while (wrong < 8 && wrong < size &&
		       buffer[wrong] == expected_byte(size, seed, 1, stamp, wrong))
			wrong++;
		if (wrong == 8 && wrong < tail)
			wrong = xb_payload_compare(buffer, wrong, tail, seed);
		if (wrong >= tail)
			while (wrong < size && buffer[wrong] == expected_byte(size, seed, 1, stamp, wrong))
				wrong++;
	} else {
		wrong = xb_payload_compare(buffer, 0, size, seed);
	}
	if (wrong >= size)
		return 0;
	return fail_with(context, message, wrong, expected_byte(size, seed, stamped, stamp, wrong),
			 buffer[wrong], judge_message(context, buffer, wrong), error);
}

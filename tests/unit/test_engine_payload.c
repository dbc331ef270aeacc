/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/payload.h"

#define ROOM 9000u

static const size_t sizes[] = {0,  1,  2,  3,  4,  7,  8,  9,	12,   15,   16,
			       17, 31, 32, 33, 63, 64, 65, 100, 4095, 4096, 8192};
#define SIZE_COUNT (sizeof sizes / sizeof sizes[0])

static struct xb_payload_context context(size_t size)
{
	return (struct xb_payload_context){"pingpong", "send", "timed part", size, 0, 0};
}

/* --- the pattern */

static void a_filled_buffer_compares_equal_at_any_size_and_alignment(void **state)
{
	static unsigned char buffer[ROOM];
	(void)state;

	for (size_t i = 0; i < SIZE_COUNT; i++)
		for (size_t shift = 0; shift < 9; shift++) {
			memset(buffer, 0, sizeof buffer);
			xb_payload_fill(buffer + shift, sizes[i], 42);
			assert_int_equal(xb_payload_compare(buffer + shift, 0, sizes[i], 42), sizes[i]);
			assert_int_equal(buffer[shift + sizes[i]], 0);
			for (size_t at = 0; at < sizes[i]; at++)
				assert_int_equal(buffer[shift + at], xb_payload_byte(42, at));
		}
}

static void comparing_may_begin_anywhere(void **state)
{
	static unsigned char buffer[ROOM];
	(void)state;

	xb_payload_fill(buffer, 200, 7);
	for (size_t from = 0; from <= 200; from++)
		assert_int_equal(xb_payload_compare(buffer, from, 200, 7), 200);
	buffer[10] ^= 1;
	assert_int_equal(xb_payload_compare(buffer, 11, 200, 7), 200);
	assert_int_equal(xb_payload_compare(buffer, 10, 200, 7), 10);
}

static void every_changed_byte_is_found(void **state)
{
	static unsigned char buffer[ROOM];
	(void)state;

	for (size_t i = 0; i < SIZE_COUNT; i++) {
		xb_payload_fill(buffer, sizes[i], 99);
		for (size_t at = 0; at < sizes[i]; at++) {
			buffer[at] ^= 0x10;
			assert_int_equal(xb_payload_compare(buffer, 0, sizes[i], 99), at);
			buffer[at] ^= 0x10;
		}
	}
}

static void the_pattern_depends_on_nonce_size_direction_and_message(void **state)
{
	const uint64_t seeds[] = {
		xb_payload_seed(1, 64, XB_FROM_INITIATOR, 0), xb_payload_seed(2, 64, XB_FROM_INITIATOR, 0),
		xb_payload_seed(1, 65, XB_FROM_INITIATOR, 0), xb_payload_seed(1, 64, XB_FROM_RESPONDER, 0),
		xb_payload_seed(1, 64, XB_FROM_INITIATOR, 1), xb_payload_seed(0, 0, XB_FROM_INITIATOR, 0),
	};
	const size_t count = sizeof seeds / sizeof seeds[0];
	unsigned char a[64], b[64];
	(void)state;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++) {
			size_t same = 0;
			xb_payload_fill(a, sizeof a, seeds[i]);
			xb_payload_fill(b, sizeof b, seeds[k]);
			for (size_t at = 0; at < sizeof a; at++)
				same += a[at] == b[at];
			assert_true(same < 8); /* chance: 64 / 256 */
		}
}

static void content_that_is_displaced_is_noticed(void **state)
{
	static unsigned char buffer[ROOM];
	(void)state;

	for (size_t shift = 1; shift < 300; shift++) {
		xb_payload_fill(buffer, 8192, 5);
		assert_true(xb_payload_compare(buffer + shift, 0, 4096, 5) < 8);
	}
}

/* --- stamps of timed messages */

/* What the receiver keeps of `count` messages that arrived as they should. */
static void receive(size_t size, uint64_t first, uint64_t count, uint64_t *words)
{
	static unsigned char in[ROOM], out[ROOM];

	xb_payload_poison(in, sizeof in);
	for (uint64_t i = 0; i < count; i++) {
		xb_stamp_write(out, xb_stamp_tail(size), first + i * XB_STAMP_STEP);
		memcpy(in, out, size);
		xb_stamp_read(in, xb_stamp_tail(size), &words[2 * i]);
	}
}

static int check(size_t size, const uint64_t *words, uint64_t count, struct xb_error *error)
{
	const struct xb_payload_context c = context(size);
	return xb_payload_check_stamps(&c, words, count, 1000, XB_STAMP_STEP, error);
}

static void stamps_of_messages_that_arrived_are_right_at_any_size(void **state)
{
	uint64_t words[20];
	struct xb_error error;
	(void)state;

	for (size_t i = 0; i < SIZE_COUNT; i++) {
		receive(sizes[i], 1000, 10, words);
		assert_int_equal(check(sizes[i], words, 10, &error), 0);
	}
}

static void a_message_that_did_not_arrive_is_premature(void **state)
{
	uint64_t words[20];
	struct xb_error error;
	(void)state;

	for (size_t i = 1; i < SIZE_COUNT; i++) { /* size 0 has no content */
		receive(sizes[i], 1000, 10, words);
		words[0] = words[1] = XB_POISON_WORD;
		assert_int_equal(check(sizes[i], words, 10, &error), XB_E_CORRUPT);
		assert_non_null(strstr(error.text, "message 0 of the timed part"));
		assert_non_null(strstr(error.text, "premature"));
		assert_non_null(strstr(error.text, "nothing has been written"));
	}
}

static void the_content_of_the_message_before_is_stale(void **state)
{
	uint64_t words[20];
	struct xb_error error;
	(void)state;

	for (size_t i = 1; i < SIZE_COUNT; i++) {
		receive(sizes[i], 1000, 10, words);
		words[2 * 7] = words[2 * 6];
		words[2 * 7 + 1] = words[2 * 6 + 1];
		assert_int_equal(check(sizes[i], words, 10, &error), XB_E_CORRUPT);
		assert_non_null(strstr(error.text, "message 7 of the timed part"));
		assert_non_null(strstr(error.text, "stale"));
	}
}

static void a_message_whose_end_is_missing_is_premature(void **state)
{
	uint64_t words[20];
	struct xb_error error;
	(void)state;

	receive(4096, 1000, 10, words);
	words[2 * 3 + 1] = words[2 * 2 + 1];
	assert_int_equal(check(4096, words, 10, &error), XB_E_CORRUPT);
	assert_non_null(strstr(error.text, "message 3"));
	assert_non_null(strstr(error.text, "offset 4088"));
	assert_non_null(strstr(error.text, "the beginning of the message is there"));
}

static void the_content_of_a_later_message_is_an_overwritten_buffer(void **state)
{
	uint64_t words[20];
	struct xb_error error;
	(void)state;

	receive(64, 1000, 10, words);
	words[2 * 3] = words[2 * 5];
	words[2 * 3 + 1] = words[2 * 5 + 1];
	assert_int_equal(check(64, words, 10, &error), XB_E_CORRUPT);
	assert_non_null(strstr(error.text, "later message"));
}

static void a_changed_byte_is_corruption_and_named_with_its_offset(void **state)
{
	uint64_t words[20];
	struct xb_error error;
	char wanted[32];
	(void)state;

	for (size_t size = 8; size < 40; size += 3)
		for (size_t byte = 0; byte < 16; byte++) {
			size_t offset = byte < 8 ? byte : xb_stamp_tail(size) + byte - 8;
			if (byte < 8 && offset >= xb_stamp_tail(size))
				continue; /* the same byte is looked at in the tail */
			receive(size, 1000, 10, words);
			((unsigned char *)&words[2 * 9])[byte] ^= 0x40;
			assert_int_equal(check(size, words, 10, &error), XB_E_CORRUPT);
			assert_non_null(strstr(error.text, "corrupted on the way"));
			snprintf(wanted, sizeof wanted, "offset %zu ", offset);
			assert_non_null(strstr(error.text, wanted));
		}
}

static void bytes_beyond_a_short_message_are_not_looked_at(void **state)
{
	uint64_t words[20];
	struct xb_error error;
	(void)state;

	for (size_t size = 0; size < 8; size++) {
		receive(size, 1000, 10, words);
		for (size_t byte = size; byte < 8; byte++) {
			((unsigned char *)&words[4])[byte] ^= 0xff;
			((unsigned char *)&words[5])[byte] ^= 0xff;
		}
		assert_int_equal(check(size, words, 10, &error), 0);
	}
}

static void what_is_read_again_and_again_has_one_stamp(void **state)
{
	const struct xb_payload_context c = context(64);
	uint64_t words[20];
	struct xb_error error;
	(void)state;

	for (int i = 0; i < 20; i++)
		words[i] = 1000;
	assert_int_equal(xb_payload_check_stamps(&c, words, 10, 1000, 0, &error), 0);
	words[8] = words[9] = XB_POISON_WORD;
	assert_int_equal(xb_payload_check_stamps(&c, words, 10, 1000, 0, &error), XB_E_CORRUPT);
	assert_non_null(strstr(error.text, "message 4"));
	assert_non_null(strstr(error.text, "premature"));
}

/* --- whole messages */

static void a_whole_message_is_right_with_and_without_stamps(void **state)
{
	static unsigned char buffer[ROOM];
	struct xb_error error;
	(void)state;

	for (size_t i = 0; i < SIZE_COUNT; i++) {
		const struct xb_payload_context c = context(sizes[i]);
		xb_payload_fill(buffer, sizes[i], 3);
		assert_int_equal(xb_payload_check(&c, buffer, 3, 0, 0, 0, &error), 0);
		xb_stamp_write(buffer, xb_stamp_tail(sizes[i]), 77);
		assert_int_equal(xb_payload_check(&c, buffer, 3, 1, 77, 0, &error), 0);
	}
}

static void every_changed_byte_of_a_whole_message_is_corruption(void **state)
{
	static unsigned char buffer[ROOM];
	struct xb_error error;
	char wanted[32];
	(void)state;

	for (size_t i = 0; i < SIZE_COUNT; i++)
		for (size_t at = 0; at<sizes[i]; at += sizes[i]> 100 ? 97 : 1)
			for (int stamped = 0; stamped < 2; stamped++) {
				const struct xb_payload_context c = context(sizes[i]);
				xb_payload_fill(buffer, sizes[i], 3);
				if (stamped)
					xb_stamp_write(buffer, xb_stamp_tail(sizes[i]), 77);
				buffer[at] ^= 0x81;
				assert_int_equal(xb_payload_check(&c, buffer, 3, stamped, 77, 5, &error),
						 XB_E_CORRUPT);
				snprintf(wanted, sizeof wanted, "offset %zu ", at);
				assert_non_null(strstr(error.text, wanted));
				assert_non_null(strstr(error.text, "corrupted on the way"));
			}
}

static void a_whole_message_that_is_not_there_is_told_from_a_changed_one(void **state)
{
	static unsigned char buffer[ROOM];
	struct xb_payload_context c = context(4096);
	struct xb_error error;
	(void)state;

	xb_payload_poison(buffer, 4096);
	assert_int_equal(xb_payload_check(&c, buffer, 3, 0, 0, 0, &error), XB_E_CORRUPT);
	assert_non_null(strstr(error.text, "nothing has been written"));
	xb_payload_fill(buffer, 1234, 3);
	assert_int_equal(xb_payload_check(&c, buffer, 3, 0, 0, 0, &error), XB_E_CORRUPT);
	assert_non_null(strstr(error.text, "offset 1234 "));
	assert_non_null(strstr(error.text, "the beginning of the message is there"));
	c.previous_seed = 8;
	xb_payload_fill(buffer, 4096, 8);
	assert_int_equal(xb_payload_check(&c, buffer, 3, 0, 0, 0, &error), XB_E_CORRUPT);
	assert_non_null(strstr(error.text, "stale"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_filled_buffer_compares_equal_at_any_size_and_alignment),
		cmocka_unit_test(comparing_may_begin_anywhere),
		cmocka_unit_test(every_changed_byte_is_found),
		cmocka_unit_test(the_pattern_depends_on_nonce_size_direction_and_message),
		cmocka_unit_test(content_that_is_displaced_is_noticed),
		cmocka_unit_test(stamps_of_messages_that_arrived_are_right_at_any_size),
		cmocka_unit_test(a_message_that_did_not_arrive_is_premature),
		cmocka_unit_test(the_content_of_the_message_before_is_stale),
		cmocka_unit_test(a_message_whose_end_is_missing_is_premature),
		cmocka_unit_test(the_content_of_a_later_message_is_an_overwritten_buffer),
		cmocka_unit_test(a_changed_byte_is_corruption_and_named_with_its_offset),
		cmocka_unit_test(bytes_beyond_a_short_message_are_not_looked_at),
		cmocka_unit_test(what_is_read_again_and_again_has_one_stamp),
		cmocka_unit_test(a_whole_message_is_right_with_and_without_stamps),
		cmocka_unit_test(every_changed_byte_of_a_whole_message_is_corruption),
		cmocka_unit_test(a_whole_message_that_is_not_there_is_told_from_a_changed_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

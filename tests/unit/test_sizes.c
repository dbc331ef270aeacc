/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/config.h"

static void a_size_is_a_number_with_a_binary_suffix(void **state)
{
	static const struct {
		const char *text;
		size_t bytes;
	} cases[] = {
		{"0", 0},
		{"1", 1},
		{"1000", 1000},
		{"64K", 65536},
		{"64k", 65536},
		{"4M", 4194304},
		{"1G", 1073741824},
		{"1073741824", 1073741824},
		{"1024M", 1073741824},
		{"0G", 0},
		{"007", 7},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t bytes = 12345;

		assert_int_equal(xb_parse_size(cases[i].text, &bytes, NULL), 0);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

static void what_is_no_size_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "missing"},
		{"-1", "negative"},
		{"+1", "'+1' is not a message size"},
		{" 1", "not a message size"},
		{"1 ", "not a message size"},
		{"1.5K", "whole numbers"},
		{"4KB", "K, M and G stand alone"},
		{"4KiB", "K, M and G stand alone"},
		{"10B", "stand alone"},
		{"K", "not a message size"},
		{"4KK", "not a message size"},
		{"4T", "not a message size"},
		{"0x10", "not a message size"},
		{"1e3", "not a message size"},
		{"four", "not a message size"},
		{"1073741825", "1G (1073741824 bytes)"},
		{"2G", "1G (1073741824 bytes)"},
		{"1025M", "too large"},
		{"18446744073709551616", "too large"},
		{"18446744073709551617K", "too large"}, /* 2^64 + 1: wraps to 1 if counted carelessly */
		{"17179869185G", "too large"}, /* 2^34 + 1, times 2^30: likewise */
		{"99999999999999999999999999999999999999999999999999999999999999999999999999", "too large"},
		{"\x1b[31m", "'?[31m'"}, /* nothing of it reaches the terminal */
		{"1\xc2\xa0", "'1\?\?'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xb_error error = {0};
		size_t bytes = 12345;

		assert_int_equal(xb_parse_size(cases[i].text, &bytes, &error), XB_E_USAGE);
		assert_int_equal(error.status, XB_E_USAGE);
		assert_non_null(strstr(error.text, cases[i].says));
		assert_int_equal(bytes, 12345);
	}
}

#define assert_sizes(text, ...)                                                                              \
	do {                                                                                                 \
		const size_t wanted[] = {__VA_ARGS__};                                                       \
		size_t got[XB_MAX_SIZES], count = 0;                                                         \
                                                                                                             \
		assert_int_equal(xb_parse_sizes(text, got, XB_MAX_SIZES, &count, NULL), 0);                  \
		assert_int_equal(count, sizeof(wanted) / sizeof(wanted[0]));                                 \
		assert_memory_equal(got, wanted, sizeof(wanted));                                            \
	} while (0)

static void a_range_holds_the_powers_of_two_and_both_ends(void **state)
{
	(void)state;
	assert_sizes("1:16", 1, 2, 4, 8, 16);
	assert_sizes("0:8", 0, 1, 2, 4, 8);
	assert_sizes("3:20", 3, 4, 8, 16, 20);
	assert_sizes("5:7", 5, 7);
	assert_sizes("64:64", 64);
	assert_sizes("0:0", 0);
	assert_sizes("0:1", 0, 1);
	assert_sizes("512M:1G", 536870912, 1073741824);
}

static void the_whole_range_has_every_power_up_to_the_limit(void **state)
{
	size_t sizes[XB_MAX_SIZES], count;

	(void)state;
	assert_int_equal(xb_parse_sizes("0:1G", sizes, XB_MAX_SIZES, &count, NULL), 0);
	assert_int_equal(count, 32);
	assert_int_equal(sizes[0], 0);
	for (size_t i = 1; i < count; i++)
		assert_int_equal(sizes[i], (size_t)1 << (i - 1));
	assert_int_equal(xb_parse_sizes("1:4M", sizes, XB_MAX_SIZES, &count, NULL), 0);
	assert_int_equal(count, 23);
}

static void a_list_is_sorted_and_holds_each_size_once(void **state)
{
	(void)state;
	assert_sizes("0,1,1000,64K", 0, 1, 1000, 65536);
	assert_sizes("64K,1,1000,0", 0, 1, 1000, 65536);
	assert_sizes("4,4,4096,4K,4", 4, 4096);
	assert_sizes("7", 7);
	assert_sizes("0,1:4,3,2:8", 0, 1, 2, 3, 4, 8);
}

static void bad_lists_are_refused_and_leave_the_output_alone(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "empty item"},
		{",", "empty item"},
		{"1,", "empty item"},
		{",1", "empty item"},
		{"1,,2", "empty item"},
		{":", "missing"},
		{"1:", "missing"},
		{":4", "missing"},
		{"4:1", "downwards"},
		{"1:2:4", "more than one"},
		{"1:2G", "too large"},
		{"-4:8", "negative"},
		{"1;2", "not a message size"},
		{"1 2", "not a message size"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xb_error error = {0};
		size_t sizes[4] = {77, 77, 77, 77}, count = 88;

		assert_int_equal(xb_parse_sizes(cases[i].text, sizes, 4, &count, &error), XB_E_USAGE);
		assert_non_null(strstr(error.text, cases[i].says));
		assert_int_equal(count, 88);
		assert_int_equal(sizes[0], 77);
	}
}

static void no_more_sizes_than_there_is_room_for(void **state)
{
	struct xb_error error = {0};
	size_t sizes[3], count;
	char *many = malloc(4000);

	(void)state;
	assert_int_equal(xb_parse_sizes("1,2,3,1,2,3", sizes, 3, &count, NULL), 0);
	assert_int_equal(count, 3);
	assert_int_equal(xb_parse_sizes("1,2,3,4", sizes, 3, &count, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "more than 3"));
	many[0] = '\0';
	for (int i = 1; i <= 300; i++)
		sprintf(many + strlen(many), "%s%d", i > 1 ? "," : "", i);
	assert_int_equal(xb_parse_sizes(many, sizes, SIZE_MAX, &count, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "more than 256"));
	free(many);
}

static void times_are_exact_to_the_nanosecond(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {
		{"0ns", 0},
		{"300ns", 300},
		{"2us", 2000},
		{"1.5ms", 1500000},
		{"1s", 1000000000},
		{"0.000001s", 1000},
		{"1.2345us", 1235},
		{"1.2344us", 1234},
		{"0.5ns", 1},
		{"0.4ns", 0},
		{"2\xc2\xb5s", 2000},
		{"2\xce\xbcs", 2000},
		{"86400s", 86400000000000},
		{"0.1s", 100000000},
		{"16777217ns", 16777217},
		{"9.9999999999999999999999999999s", 10000000000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = 5;

		assert_int_equal(xb_parse_time_ns(cases[i].text, &ns, NULL), 0);
		assert_int_equal(ns, cases[i].ns);
	}
}

static void what_is_no_time_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "not a time"},
		{"us", "not a time"},
		{"-1us", "not a time"},
		{"nan", "not a time"},
		{"inf", "not a time"},
		{".5us", "not a time"},
		{"2", "no unit"},
		{"2.us", "no unit"},
		{"2 us", "no unit"},
		{"2sec", "no unit"},
		{"2US", "no unit"},
		{"2us ", "no unit"},
		{"1e3ns", "no unit"},
		{"1.2.3us", "no unit"},
		{"86401s", "86400s (a day)"},
		{"86400.1s", "too long"},
		{"18446744073709551616ns", "too long"},
		{"18446744073709552s", "too long"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xb_error error = {0};
		uint64_t ns = 5;

		assert_int_equal(xb_parse_time_ns(cases[i].text, &ns, &error), XB_E_USAGE);
		assert_non_null(strstr(error.text, cases[i].says));
		assert_int_equal(ns, 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_size_is_a_number_with_a_binary_suffix),
		cmocka_unit_test(what_is_no_size_is_refused_with_a_reason),
		cmocka_unit_test(a_range_holds_the_powers_of_two_and_both_ends),
		cmocka_unit_test(the_whole_range_has_every_power_up_to_the_limit),
		cmocka_unit_test(a_list_is_sorted_and_holds_each_size_once),
		cmocka_unit_test(bad_lists_are_refused_and_leave_the_output_alone),
		cmocka_unit_test(no_more_sizes_than_there_is_room_for),
		cmocka_unit_test(times_are_exact_to_the_nanosecond),
		cmocka_unit_test(what_is_no_time_is_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "stats/stats.h"

/* Published first outputs of splitmix64 from seed 1234567: they are the state that seeding gives. */
static void seeding_is_splitmix64(void **state)
{
	(void)state;
	struct xb_rng rng;
	xb_rng_seed(&rng, 1234567);
	assert_true(rng.s[0] == 6457827717110365317ULL);
	assert_true(rng.s[1] == 3203168211198807973ULL);
	assert_true(rng.s[2] == 9817491932198370423ULL);
	assert_true(rng.s[3] == 4593380528125082431ULL);
}

/* Published first outputs of xoshiro256** from the state 1, 2, 3, 4. */
static void the_sequence_is_xoshiro256_starstar(void **state)
{
	(void)state;
	static const unsigned long long expected[] = {11520ULL,
						      0ULL,
						      1509978240ULL,
						      1215971899390074240ULL,
						      1216172134540287360ULL,
						      607988272756665600ULL};
	struct xb_rng rng = {{1, 2, 3, 4}};
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_true(xb_rng_next(&rng) == expected[i]);
}

static void below_stays_below_and_reaches_everything_evenly(void **state)
{
	(void)state;
	struct xb_rng rng;
	size_t count[6] = {0};
	xb_rng_seed(&rng, 3);
	for (int i = 0; i < 60000; i++) {
		size_t v = xb_rng_below(&rng, 6);
		assert_true(v < 6);
		count[v]++;
	}
	for (int v = 0; v < 6; v++)
		assert_in_range(count[v], 9600, 10400); /* 4 sigma are 365 */
	assert_int_equal(xb_rng_below(&rng, 1), 0);
	assert_int_equal(xb_rng_below(&rng, 0), 0);
}

/* 3/4 of 2^64 as the limit: with a plain modulo the lower third would come twice as often. */
static void below_has_no_modulo_bias(void **state)
{
	(void)state;
	struct xb_rng rng;
	size_t limit = (size_t)3 << 62, low = 0;
	xb_rng_seed(&rng, 4);
	for (int i = 0; i < 30000; i++)
		low += xb_rng_below(&rng, limit) < limit / 3;
	assert_in_range(low, 9600, 10400);
}

static void a_shuffle_keeps_every_item_and_repeats_with_its_seed(void **state)
{
	(void)state;
	size_t a[20], b[20], seen[20] = {0};
	struct xb_rng rng;
	for (size_t i = 0; i < 20; i++)
		a[i] = b[i] = i;
	xb_rng_seed(&rng, 5);
	xb_rng_shuffle(&rng, a, 20);
	xb_rng_seed(&rng, 5);
	xb_rng_shuffle(&rng, b, 20);
	assert_memory_equal(a, b, sizeof(a));
	for (size_t i = 0; i < 20; i++)
		seen[a[i]]++;
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(seen[i], 1);
	xb_rng_shuffle(&rng, a, 0);
	xb_rng_shuffle(&rng, a, 1);
}

static void every_order_of_three_is_equally_likely(void **state)
{
	(void)state;
	struct xb_rng rng;
	size_t count[27] = {0}, orders = 0;
	xb_rng_seed(&rng, 6);
	for (int i = 0; i < 60000; i++) {
		size_t items[3] = {0, 1, 2};
		xb_rng_shuffle(&rng, items, 3);
		count[items[0] * 9 + items[1] * 3 + items[2]]++;
	}
	for (size_t i = 0; i < 27; i++) {
		if (count[i] == 0)
			continue;
		orders++;
		assert_in_range(count[i], 9600, 10400);
	}
	assert_int_equal(orders, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeding_is_splitmix64),
		cmocka_unit_test(the_sequence_is_xoshiro256_starstar),
		cmocka_unit_test(below_stays_below_and_reaches_everything_evenly),
		cmocka_unit_test(below_has_no_modulo_bias),
		cmocka_unit_test(a_shuffle_keeps_every_item_and_repeats_with_its_seed),
		cmocka_unit_test(every_order_of_three_is_equally_likely),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

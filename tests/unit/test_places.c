/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "accept/places.h"

/* Binds of the configuration of a retest of endpoints 1 and 2 of four. */
static void retest_of_1_and_2(struct xb_config *config)
{
	struct xb_places places;
	json_t *document = json_object();

	config->endpoints = 4;
	xb_places_of_pair(config, document, 1, 2, &places);
	assert_int_equal(config->endpoints, 2);
	json_decref(document);
}

static void a_retest_keeps_to_the_cores_of_the_run(void **state)
{
	(void)state;
	static struct xb_config config; /* large */

	config.bind[0] = 2; /* --bind 2,3: again and again, 2,3,2,3 */
	config.bind[1] = 3;
	config.bind_count = 2;
	retest_of_1_and_2(&config);
	assert_int_equal(config.bind_count, 2);
	assert_int_equal(config.bind[0], 3);
	assert_int_equal(config.bind[1], 2);

	for (int i = 0; i < 4; i++)
		config.bind[i] = 10 + i;
	config.bind_count = 4;
	retest_of_1_and_2(&config);
	assert_int_equal(config.bind_count, 2);
	assert_int_equal(config.bind[0], 11);
	assert_int_equal(config.bind[1], 12);

	config.bind[0] = -1; /* --bind none */
	config.bind_count = 1;
	retest_of_1_and_2(&config);
	assert_int_equal(config.bind_count, 1);
	assert_int_equal(config.bind[0], -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_retest_keeps_to_the_cores_of_the_run)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

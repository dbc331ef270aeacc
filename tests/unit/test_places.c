/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "accept/places.h"
#include "control/schedule.h"

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

static void what_is_left_must_be_a_network(void **state)
{
	(void)state;
	static struct xb_whole whole; /* large */
	static struct xb_config config;
	struct xb_pair star[] = {{0, 1}, {0, 2}, {3, 0}}, listed[4];
	char *names[] = {"a", "b", "c"}, *kept[3];
	static unsigned char out[XB_MAX_ENDPOINTS];
	static uint32_t original[XB_MAX_ENDPOINTS];

	whole = (struct xb_whole){.endpoints = 4, .pairs = star, .listed = listed, .pair_count = 3};
	out[2] = 1;
	assert_true(xb_whole_can_do_without(&whole, out)); /* a leaf of the star */
	out[0] = 1; /* and its hub */
	assert_false(xb_whole_can_do_without(&whole, out));
	original[0] = 77;
	assert_int_equal(xb_whole_without(&whole, out, &config, original), -1);
	assert_int_equal(original[0], 77);
	assert_int_equal(config.endpoints, 0);

	/* two endpoints on each of two hosts: without one of them there is one host */
	memcpy(kept, names, sizeof(kept));
	whole = (struct xb_whole){.endpoints = 4, .hosts = kept, .host_count = 2};
	memset(out, 0, sizeof(out));
	out[3] = 1;
	assert_false(xb_whole_can_do_without(&whole, out));
	whole.endpoints = 6;
	whole.host_count = 3;
	config.hosts = names;
	config.host_count = 3;
	assert_true(xb_whole_can_do_without(&whole, out)); /* endpoint 3 is on the first */
	assert_int_equal(xb_whole_without(&whole, out, &config, original), 0);
	assert_int_equal(config.endpoints, 4);
	assert_int_equal(config.host_count, 2);
	assert_string_equal(config.hosts[0], "b");
	assert_int_equal(original[0], 1);
	/* the endpoints of four on three hosts would move */
	whole.endpoints = 4;
	assert_false(xb_whole_can_do_without(&whole, out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_retest_keeps_to_the_cores_of_the_run),
		cmocka_unit_test(what_is_left_must_be_a_network),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

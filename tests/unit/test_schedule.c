/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/config.h"
#include "control/schedule.h"

static void two_endpoints_have_one_round_of_one_pair(void **state)
{
	struct xb_schedule s;
	(void)state;
	assert_int_equal(xb_schedule_all_pairs(2, &s, NULL), 0);
	assert_int_equal(s.rounds, 1);
	assert_int_equal(s.round_start[1], 1);
	assert_int_equal(s.pairs[0].first, 0);
	assert_int_equal(s.pairs[0].second, 1);
	xb_schedule_free(&s);
}

static void every_pair_meets_once_and_rounds_are_disjoint(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 33; n++) {
		struct xb_schedule s;
		unsigned char met[33][33] = {{0}};
		assert_int_equal(xb_schedule_all_pairs(n, &s, NULL), 0);
		assert_int_equal(s.rounds, n % 2 ? n : n - 1);
		assert_int_equal(s.round_start[s.rounds], n * (n - 1) / 2);
		for (size_t r = 0; r < s.rounds; r++) {
			unsigned char busy[33] = {0};
			for (size_t i = s.round_start[r]; i < s.round_start[r + 1]; i++) {
				struct xb_pair p = s.pairs[i];
				assert_true(p.first < p.second && p.second < n);
				assert_int_equal(busy[p.first] + busy[p.second] + met[p.first][p.second], 0);
				busy[p.first] = busy[p.second] = met[p.first][p.second] = 1;
			}
		}
		xb_schedule_free(&s);
	}
}

static void one_endpoint_is_refused(void **state)
{
	struct xb_schedule s;
	struct xb_error error;
	(void)state;
	assert_int_equal(xb_schedule_all_pairs(1, &s, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "2 endpoints"));
}

/* The schedule of a configuration: disjoint within each round; returns how many pairs there are. */
static size_t checked(const struct xb_config *config, uint32_t endpoints, size_t *rounds)
{
	struct xb_schedule s;
	assert_int_equal(xb_schedule_of(config, endpoints, &s, NULL), 0);
	for (size_t r = 0; r < s.rounds; r++) {
		unsigned char busy[64] = {0};
		assert_true(s.round_start[r] < s.round_start[r + 1]);
		for (size_t i = s.round_start[r]; i < s.round_start[r + 1]; i++) {
			assert_true(s.pairs[i].first < s.pairs[i].second && s.pairs[i].second < endpoints);
			assert_int_equal(busy[s.pairs[i].first]++ + busy[s.pairs[i].second]++, 0);
		}
	}
	size_t pairs = s.round_start[s.rounds];
	*rounds = s.rounds;
	xb_schedule_free(&s);
	return pairs;
}

static void ring_quick_and_serial(void **state)
{
	(void)state;
	static struct xb_config config;
	size_t rounds;
	for (uint32_t n = 2; n <= 17; n++) {
		config.serial = 0;
		config.pairs = "ring";
		assert_int_equal(checked(&config, n, &rounds), n == 2 ? 1 : n);
		assert_true(rounds <= 3);
		config.pairs = "quick";
		assert_int_equal(checked(&config, n, &rounds), (n + 1) / 2);
		assert_int_equal(rounds, 1 + n % 2);
		config.pairs = "all";
		config.serial = 1;
		assert_int_equal(checked(&config, n, &rounds), n * (n - 1) / 2);
		assert_int_equal(rounds, n * (n - 1) / 2);
	}
}

/* Writes the text to a file of pairs and asks for its schedule; error.text is "" if it was accepted. */
static struct xb_error of_file(const char *text, char **hosts, size_t host_count, size_t *pairs)
{
	struct xb_config *config = calloc(1, sizeof *config);
	char path[] = "/tmp/xb-pairs-XXXXXX";
	struct xb_error error = {0};
	struct xb_schedule s;
	int fd = mkstemp(path);
	assert_non_null(config);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	config->pairs = path;
	config->hosts = hosts;
	config->host_count = host_count;
	if (xb_schedule_of(config, 4, &s, &error) == 0) {
		*pairs = s.round_start[s.rounds];
		xb_schedule_free(&s);
	}
	unlink(path);
	free(config);
	return error;
}

static void a_file_of_pairs_names_hosts_or_numbers(void **state)
{
	(void)state;
	char *hosts[] = {"a", "b", "c", "d"};
	size_t pairs = 0;
	struct xb_error error = of_file("# comment\n\na b\n3 1 # again by number\nb d\n", hosts, 4, &pairs);
	assert_string_equal(error.text, "");
	assert_int_equal(pairs, 2);
	static const struct {
		const char *text, *word;
	} bad[] = {{"a\n", ":1: write two"},	 {"\na b c\n", ":2: write two"}, {"a e\n", "'e' is neither"},
		   {"0 4\n", "'4' is neither"},	 {"a 0\n", "with itself"},	 {"# nothing\n", "no pair"},
		   {"-1 2\n", "'-1' is neither"}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		error = of_file(bad[i].text, hosts, 4, &pairs);
		assert_non_null(strstr(error.text, bad[i].word));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_endpoints_have_one_round_of_one_pair),
		cmocka_unit_test(every_pair_meets_once_and_rounds_are_disjoint),
		cmocka_unit_test(one_endpoint_is_refused),
		cmocka_unit_test(ring_quick_and_serial),
		cmocka_unit_test(a_file_of_pairs_names_hosts_or_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is named when a worker fails or says nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <string.h>

#include <cmocka.h>

#include "control/team.h"
#include "control/team_process.h"

static const char *hosts[] = {"n0", "n1", "n2", "n3"};
static struct xb_control control;
static struct xb_team team;

static void reset(int with_hosts)
{
	memset(&control, 0, sizeof control);
	memset(&team, 0, sizeof team);
	control.hosts = with_hosts ? hosts : NULL;
	team.control = &control;
	team.endpoints = 4;
	team.lost = team.hung = -1;
}

static json_t *reply(int status, const char *text)
{
	return json_pack("{s:i, s:s}", "status", status, "error", text);
}

/* The replies to "open" of four workers; a status of 1: none has come. */
static int opened(const int *statuses, struct xb_error *error)
{
	json_t *replies[4] = {NULL};
	for (size_t i = 0; i < 4; i++)
		replies[i] = statuses[i] == 1 ? NULL : reply(statuses[i], "no such thing");
	int status = xb_team_judge_opened(&team, replies, error);
	for (size_t i = 0; i < 4; i++)
		json_decref(replies[i]);
	return status;
}

static void test_one_host_that_cannot_open_is_lost(void **state)
{
	struct xb_error error = {0};
	reset(1);
	assert_int_equal(opened((int[]){0, 0, XB_E_UNAVAILABLE, 0}, &error), XB_E_UNAVAILABLE);
	assert_string_equal(error.text, "worker 2 on n2: no such thing");
	assert_int_equal(team.lost, 2);
	reset(1); /* the others wait in a collective call, or fail for want of it */
	assert_int_equal(opened((int[]){XB_E_PEER, XB_E_RESOURCE, 1, XB_E_TRANSPORT}, &error), XB_E_RESOURCE);
	assert_int_equal(team.lost, 1);
	(void)state;
}

static void test_what_none_can_is_the_fault_of_no_host(void **state)
{
	struct xb_error error = {0};
	for (int status = XB_E_USAGE; status >= XB_E_UNAVAILABLE; status--) {
		reset(1);
		assert_int_equal(opened((int[]){status, status, status, status}, &error), status);
		assert_string_equal(error.text, "no such thing");
		assert_int_equal(team.lost, -1);
	}
	(void)state;
}

static void test_a_refusal_of_one_host_does_not_end_the_run(void **state)
{
	struct xb_error error = {0};
	reset(1);
	assert_int_equal(opened((int[]){0, XB_E_UNSUPPORTED, 0, 0}, &error), XB_E_UNAVAILABLE);
	assert_int_equal(team.lost, 1);
	reset(0); /* here all are one host */
	assert_int_equal(opened((int[]){0, XB_E_USAGE, 0, 0}, &error), XB_E_USAGE);
	assert_string_equal(error.text, "no such thing");
	(void)state;
}

static void test_a_failure_of_a_pair_names_both_and_loses_none(void **state)
{
	struct xb_error error = {0};
	const uint32_t ends[] = {0, 1, 3, 2};
	json_t *replies[] = {reply(0, ""), reply(0, ""), reply(XB_E_ABORTED, "ended"),
			     reply(XB_E_CORRUPT, "differs")};
	reset(1);
	assert_int_equal(xb_team_judge(&team, ends, replies, 4, &error), XB_E_CORRUPT);
	assert_string_equal(error.text, "between worker 3 on n3 and worker 2 on n2: differs");
	assert_int_equal(team.lost, -1);
	reset(0);
	assert_int_equal(xb_team_judge(&team, ends, replies, 4, &error), XB_E_CORRUPT);
	assert_string_equal(error.text, "differs");
	for (size_t i = 0; i < 4; i++)
		json_decref(replies[i]);
	(void)state;
}

static void test_silence_is_blamed_on_one_only_if_it_is_one(void **state)
{
	struct xb_error error = {0};
	const uint32_t ends[] = {0, 1, 2, 3};
	json_t *answer = reply(0, ""), *replies[] = {answer, answer, NULL, answer};
	reset(1);
	assert_int_equal(xb_team_no_answer(&team, ends, 4, 20000, replies, &error), XB_E_TIMEOUT);
	assert_non_null(strstr(error.text, "no answer from worker 2 on n2 (process 0) within 20 s"));
	assert_int_equal(team.lost, 2);
	replies[3] = NULL;
	reset(1);
	assert_int_equal(xb_team_no_answer(&team, ends, 4, 20000, replies, &error), XB_E_TIMEOUT);
	assert_non_null(
		strstr(error.text, "worker 2 on n2 (process 0) and worker 3 on n3 (process 0) within"));
	assert_int_equal(team.lost, -1);
	json_decref(answer);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_host_that_cannot_open_is_lost),
		cmocka_unit_test(test_what_none_can_is_the_fault_of_no_host),
		cmocka_unit_test(test_a_refusal_of_one_host_does_not_end_the_run),
		cmocka_unit_test(test_a_failure_of_a_pair_names_both_and_loses_none),
		cmocka_unit_test(test_silence_is_blamed_on_one_only_if_it_is_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

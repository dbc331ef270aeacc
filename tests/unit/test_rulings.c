/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "accept/rulings.h"

/* A run of raw TCP (8 us) and of MPI above it (10 us), 8 bytes, one pair, with these findings. */
static json_t *document_with(const char *findings)
{
	static const char text[] =
		"{'baseline': 'tcp', 'findings': [%s],"
		" 'hosts': [{'name': 'a', 'endpoints': [0]}, {'name': 'b', 'endpoints': [1]}],"
		" 'transports': [{'label': 'tcp', 'status': 'ok', 'device': 'eth0', 'evidence': ["
		"  {'host': 'a', 'device': 'eth0', 'share_of_payload': 0.1},"
		"  {'host': 'b', 'device': 'eth0', 'share_of_payload': 0.1}]},"
		"  {'label': 'mpi', 'status': 'ok'}],"
		" 'results': [{'label': 'tcp', 'bench': 'pingpong', 'size': 8, 'verified': true,"
		"   'launch_medians': [8, 8, 8, 8, 8, 8]},"
		"  {'label': 'mpi', 'bench': 'pingpong', 'size': 8, 'verified': true,"
		"   'launch_medians': [10, 10, 10, 10, 10, 10]}],"
		" 'comparisons': [{'lower': 'tcp', 'upper': 'mpi', 'bench': 'pingpong', 'size': 8,"
		"   'launch_overheads': [2, 2, 2, 2, 2, 2]}]}";
	char whole[4000];
	snprintf(whole, sizeof(whole), text, findings);
	for (char *p = whole; *p; p++)
		if (*p == '\'')
			*p = '"';
	json_t *document = json_loads(whole, 0, NULL);
	assert_non_null(document);
	return document;
}

#define INVALID(label)                                                                                       \
	"{'severity': 'invalid', 'code': 'wrong-path', 'label': " label ", 'text': 'another way'}"

static const char limits_text[] =
	"[limit tcp-good]\ntransport = tcp\nmetric = latency_us\nsizes = 8\nmax = 9 us\n"
	"[limit tcp-bad]\ntransport = tcp\nmetric = latency_us\nsizes = 8\nmax = 7 us\n"
	"[limit mpi]\ntransport = mpi\nmetric = latency_us\nsizes = 8\nmax = 11 us\n"
	"[limit added]\ntransport = mpi\nmetric = overhead_us\nsizes = 8\nmax = 3 us\n"
	"[limit path]\ntransport = tcp\nmetric = share_of_payload\nmin = 95 %\n";
enum { TCP_GOOD, TCP_BAD, MPI, ADDED, PATH, LIMITS };

/* The verdicts of these limits on the document, as letters: p, f, i, u. */
static const char *verdicts_of(const char *findings, char *reason)
{
	static char letters[LIMITS + 1];
	static struct xb_known known;
	static struct xb_config config; /* large */
	struct xb_error error = {0};
	struct xb_limits limits;
	struct xb_rulings rulings;
	json_t *document = document_with(findings);

	config.sizes[0] = 8;
	config.size_count = 1;
	assert_int_equal(xb_limits_parse(limits_text, sizeof(limits_text) - 1, "test", &limits, &error), 0);
	assert_int_equal(xb_rule(document, &limits, &config, &known, NULL, &rulings, &error), 0);
	assert_int_equal(rulings.count, LIMITS);
	for (size_t i = 0; i < LIMITS; i++)
		letters[i] = xb_verdict_name(rulings.list[i].verdict)[0];
	if (reason)
		strcpy(reason, rulings.list[TCP_BAD].first.reason);
	/* none of this is decided by more launches */
	assert_true(xb_rulings_settled(&rulings));
	xb_rulings_free(&rulings);
	xb_limits_free(&limits);
	json_decref(document);
	return letters;
}

static void numbers_of_an_invalid_run_give_no_verdict(void **state)
{
	(void)state;
	char reason[240];
	assert_string_equal(verdicts_of("", NULL), "pfppf");
	assert_string_equal(verdicts_of(INVALID("null"), reason), "iiiif");
	assert_string_equal(reason, "the run is not valid: wrong-path: another way");
}

static void only_limits_that_rest_on_the_transport_are_in_doubt(void **state)
{
	(void)state;
	assert_string_equal(verdicts_of(INVALID("'mpi'"), NULL), "pfiif");
	assert_string_equal(verdicts_of(INVALID("'tcp'"), NULL), "iipif"); /* what MPI adds to TCP, too */
	assert_string_equal(verdicts_of(INVALID("'ucx'"), NULL), "pfppf");
	assert_string_equal(
		verdicts_of("{'severity': 'warning', 'code': 'c', 'label': null, 'text': 't'}", NULL),
		"pfppf");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_an_invalid_run_give_no_verdict),
		cmocka_unit_test(only_limits_that_rest_on_the_transport_are_in_doubt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

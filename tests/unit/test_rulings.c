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
#include "accept/series.h"

/* Of a device on the second host: whether the endpoints there said that they use it, and what it carried. */
static const char *own = "true", *carried = "0.1", *counted = "true";

/* A run of raw TCP (8 us) and of MPI above it (10 us), 8 bytes, one pair, with these findings. */
static json_t *document_with(const char *findings)
{
	static const char text[] =
		"{'baseline': 'tcp', 'findings': [%s],"
		" 'hosts': [{'name': 'a', 'endpoints': [0]}, {'name': 'b', 'endpoints': [1]}],"
		" 'transports': [{'label': 'tcp', 'status': 'ok', 'device': 'eth0',"
		" 'ends': [{'host': 'b', 'counted': %s}], 'evidence': ["
		"  {'host': 'a', 'device': 'eth0', 'own': true, 'share_of_payload': 1.02},"
		"  {'host': 'a', 'device': 'eth1', 'own': false, 'share_of_payload': 0.01},"
		"  {'host': 'b', 'device': 'enp1', 'own': %s, 'share_of_payload': %s}]},"
		"  {'label': 'mpi', 'status': 'ok'}],"
		" 'results': [{'label': 'tcp', 'bench': 'pingpong', 'size': 8, 'verified': true,"
		"   'launch_medians': [8, 8, 8, 8, 8, 8]},"
		"  {'label': 'mpi', 'bench': 'pingpong', 'size': 8, 'verified': true,"
		"   'launch_medians': [10, 10, 10, 10, 10, 10]}],"
		" 'comparisons': [{'lower': 'tcp', 'upper': 'mpi', 'bench': 'pingpong', 'size': 8,"
		"   'launch_overheads': [2, 2, 2, 2, 2, 2]}]}";
	char whole[4000];
	snprintf(whole, sizeof(whole), text, findings, counted, own, carried);
	for (char *p = whole; *p; p++)
		if (*p == '\'')
			*p = '"';
	json_t *document = json_loads(whole, 0, NULL);
	assert_non_null(document);
	return document;
}

#define INVALID_AT(ends)                                                                                     \
	"{'severity': 'invalid', 'code': 'wrong-path', 'label': 'tcp', 'text': 'another way', 'ends': " ends \
	"}"
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

static void a_wrong_path_of_another_pair_is_no_doubt_in_this_one(void **state)
{
	(void)state;
	assert_string_equal(verdicts_of(INVALID_AT("[[0, 2], [3, 1]]"), NULL), "pfppf");
	assert_string_equal(verdicts_of(INVALID_AT("[[3, 1], [1, 0]]"), NULL), "iipif");
}

static void each_host_is_judged_by_its_own_device(void **state)
{
	static const struct {
		const char *own, *carried;
		char verdict;
	} cases[] = {
		{"true", "1.02", 'p'}, /* of another name than on the first host */
		{"false", "1.02", 'f'}, {"true", "0.1", 'f'},
		{"null", "0.01", 'f'}, /* no device has seen it */
		{"null", "1.02", 'u'}, /* one has, and which it should be is not known */
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		own = cases[i].own;
		carried = cases[i].carried;
		if (verdicts_of("", NULL)[PATH] != cases[i].verdict)
			fail_msg("case %zu", i);
	}
	/* what nothing counts is no violation */
	counted = "false";
	own = "false";
	carried = "0.01";
	assert_int_equal(verdicts_of("", NULL)[PATH], 'u');
	counted = own = "true";
	carried = "0.1";
}

/* Three hosts, of which the last has a slower adapter; the pairs reach these bandwidths. */
static void each_pair_is_judged_by_the_link_of_its_own_hosts(void **state)
{
	(void)state;
	static const char limits_of_link[] =
		"[limit one]\ntransport = t\nmetric = bandwidth_MBps\nsizes = 1000\nwithin = 20 % of link\n"
		"[limit two]\ntransport = t\nbenchmark = bibw\nmetric = bandwidth_MBps\nsizes = 1000\n"
		"within = 20 % of link\n";
	static struct xb_known known;
	static struct xb_config config; /* large */
	struct xb_error error = {0};
	struct xb_limits limits;
	struct xb_rulings rulings;
	/* 1000 bytes in 0.09 us are 11111 MB/s, in 0.12 us 8333 MB/s; 100 and 10 Gb/s are 12500 and 1250 MB/s
	 */
	json_t *document = json_pack(
		"{s:[{s:s, s:[i]}, {s:s, s:[i]}, {s:s, s:[i]}], s:[{s:s, s:s, s:o}], s:[]}", "hosts", "name",
		"a", "endpoints", 0, "name", "b", "endpoints", 1, "name", "c", "endpoints", 2, "transports",
		"label", "t", "status", "ok", "evidence", json_array(), "pairs");
	json_t *evidence =
		json_object_get(json_array_get(json_object_get(document, "transports"), 0), "evidence");
	static const char *const benches[] = {"bw", "bibw"};
	static const double us[3] = {0.09, 0.9, 0.12};

	for (int i = 0; i < 3; i++)
		json_array_append_new(evidence, json_pack("{s:s, s:s, s:f, s:f}", "host",
							  (const char *[]){"a", "b", "c"}[i], "device", "d",
							  "share_of_payload", 1.0, "link_bits_per_s",
							  i == 2 ? 10e9 : 100e9));
	for (int bench = 0; bench < 2; bench++)
		for (int i = 0; i < 3; i++) {
			json_t *values = json_array();
			for (int l = 0; l < 6; l++)
				json_array_append_new(values, json_real(us[i]));
			json_array_append_new(json_object_get(document, "pairs"),
					      json_pack("{s:s, s:s, s:i, s:b, s:[i,i], s:o}", "label", "t",
							"bench", benches[bench], "size", 1000, "verified", 1,
							"pair", i == 2 ? 1 : 0, i == 0 ? 1 : 2,
							"launch_medians", values));
		}
	config.sizes[0] = 1000;
	config.size_count = 1;
	assert_int_equal(xb_limits_parse(limits_of_link, sizeof(limits_of_link) - 1, "test", &limits, &error),
			 0);
	assert_int_equal(xb_rule(document, &limits, &config, &known, NULL, &rulings, &error), 0);
	assert_int_equal(rulings.count, 6);
	for (size_t i = 0; i < 6; i++) {
		double nominal = i % 3 == 0 ? 12500 : 1250;
		assert_true(fabs(rulings.list[i].first.bound - nominal * 0.8 * (i < 3 ? 1 : 2)) < 1e-6);
	}
	/* 11 GB/s in one direction are enough, and 22 in both; 1.1 of 1.25 are, and so is more than that */
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(rulings.list[i].verdict, XB_VERDICT_PASS);
	assert_true(isnan(xb_link_MBps(document, "other", 0, 1)));
	xb_rulings_free(&rulings);
	xb_limits_free(&limits);
	json_decref(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_an_invalid_run_give_no_verdict),
		cmocka_unit_test(only_limits_that_rest_on_the_transport_are_in_doubt),
		cmocka_unit_test(a_wrong_path_of_another_pair_is_no_doubt_in_this_one),
		cmocka_unit_test(each_host_is_judged_by_its_own_device),
		cmocka_unit_test(each_pair_is_judged_by_the_link_of_its_own_hosts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

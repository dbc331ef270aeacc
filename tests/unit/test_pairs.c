/* SPDX-License-Identifier: BSD-3-Clause */
/* Results by pair of endpoints, and evidence that is judged round by round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "report/internal.h"
#include "report_fixture.h"

static int near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static void add(struct xb_results *r, size_t transport, unsigned launch, unsigned round, uint32_t first,
		uint32_t second, double median_ns)
{
	struct xb_block_record record = {.transport = transport,
					 .bench = XB_BENCH_PINGPONG,
					 .size_bytes = 8,
					 .launch = launch,
					 .round = round,
					 .first = first,
					 .second = second,
					 .iterations = 10,
					 .messages_per_iteration = 1,
					 .median_ns = median_ns,
					 .verified = 1,
					 .imposed_delay_ns = NAN};
	xb_results_add_block(r, &record);
}

static json_t *pair_of(json_t *document, const char *label, int first, int second)
{
	json_t *item, *wanted = json_pack("[i, i]", first, second), *found = NULL;
	size_t i;
	json_array_foreach(json_object_get(document, "pairs"), i, item)
	{
		if (!strcmp(member_text(item, "label"), label) &&
		    json_equal(json_object_get(item, "pair"), wanted))
			found = item;
	}
	json_decref(wanted);
	return found;
}

static double median_of(json_t *item)
{
	return json_number_value(json_object_get(json_object_get(item, "latency_us"), "median"));
}

static void each_pair_has_its_own_result_and_the_whole_is_over_all(void **state)
{
	struct fixture f;
	struct xb_results *r = fixture_begin(&f, "-t tcp,null -s 8 -H a,b,c");
	static const uint32_t pairs[3][2] = {{0, 1}, {0, 2}, {1, 2}};
	(void)state;
	for (unsigned launch = 0; launch < 6; launch++) {
		/* another order in every launch, as a run has it */
		for (unsigned k = 0; k < 3; k++) {
			unsigned p = (k + launch) % 3;
			add(r, 0, launch, k, pairs[p][0], pairs[p][1], 1000.0 * (p + 1) + launch);
			add(r, 1, launch, k, pairs[p][0], pairs[p][1], 1000.0 * (p + 1) + launch + 500.0);
		}
		xb_results_launch_done(r, launch);
	}
	json_t *document = xb_results_document(r);
	assert_int_equal(json_array_size(json_object_get(document, "pairs")), 6);
	for (unsigned p = 0; p < 3; p++) {
		json_t *item = pair_of(document, "tcp", (int)pairs[p][0], (int)pairs[p][1]);
		assert_non_null(item);
		assert_true(near(median_of(item), (1000.0 * (p + 1) + 2.5) / 1e3));
		assert_int_equal(json_integer_value(json_object_get(item, "launches")), 6);
	}
	json_t *hosts = json_object_get(pair_of(document, "null", 1, 2), "hosts");
	assert_string_equal(json_string_value(json_array_get(hosts, 0)), "b");
	assert_string_equal(json_string_value(json_array_get(hosts, 1)), "c");
	/* the median over launches of the median over pairs */
	assert_true(near(median_of(find_result(document, "tcp", "pingpong", 8)), 2.0025));
	/* and the overhead is that of the same pair, whatever pairs differ by */
	json_t *overhead = json_object_get(find_comparison(document, "tcp", "null", 8), "overhead_us");
	assert_true(near(json_number_value(json_object_get(overhead, "median")), 0.5));
	assert_true(near(json_number_value(json_object_get(overhead, "ci_low")), 0.5));

	struct xb_headline h;
	const struct xb_cell *cell = xb_results_cell(r, 0, XB_BENCH_PINGPONG, 0);
	assert_int_equal(xb_pair_headline_of(r, cell, 0, 2, &h), 1);
	assert_true(near(h.ns.median, 2002.5));
	xb_headline_free(&h);
	assert_int_equal(xb_pair_headline_of(r, cell, 2, 3, &h), 0);
	json_decref(document);
	fixture_end(&f);
}

static void one_pair_needs_no_list(void **state)
{
	struct fixture f;
	struct xb_results *r = fixture_begin(&f, "-t tcp -s 8");
	(void)state;
	add(r, 0, 0, 0, 0, 1, 1000.0);
	json_t *document = xb_results_document(r);
	assert_int_equal(json_array_size(json_object_get(document, "pairs")), 0);
	json_decref(document);
	fixture_end(&f);
}

/* `carried` of ten rounds of 1 MB go over eth1, with its bytes; eth0 has one burst of a gigabyte from
 * elsewhere. */
static json_t *judged(struct fixture *f, int carried)
{
	struct xb_results *r = fixture_begin(f, "-t tcp:eth1 -s 8");
	xb_results_transport_description(r, 0, "tcp on eth1", "L", "1", "eth1", XB_LAYER_FABRIC);
	for (int round = 0; round < 10; round++) {
		uint64_t wire = round < carried ? 1010000 : 0, foreign = round == 3 ? 1000000000 : 0;
		xb_results_evidence(r, 0, "h", "eth1", "netdev", wire, wire, 0);
		xb_results_round_evidence(r, 0, "h", "eth1", wire, 1000000);
		xb_results_evidence(r, 0, "h", "eth0", "netdev", foreign, foreign, 0);
		xb_results_round_evidence(r, 0, "h", "eth0", foreign, 1000000);
		xb_results_evidence(r, 0, "h", NULL, "payload", 0, 0, 1000000);
		xb_results_round_evidence(r, 0, "h", NULL, wire + foreign, 1000000);
	}
	add(r, 0, 0, 0, 0, 1, 1000.0);
	xb_results_conclude(r);
	return xb_results_document(r);
}

static void a_burst_of_other_traffic_decides_nothing(void **state)
{
	struct fixture f;
	(void)state;
	json_t *document = judged(&f, 10);
	assert_null(find_finding(document, "wrong-device", NULL));
	assert_null(find_finding(document, "path-unproven", NULL));
	assert_null(find_finding(document, "shared-memory", NULL));
	json_decref(document);
	fixture_end(&f);
	/* by its bytes eth0 carried it a hundred times over; but in one round of ten */
	document = judged(&f, 0);
	json_t *finding = find_finding(document, "wrong-device", "tcp:eth1");
	assert_non_null(finding);
	assert_string_equal(member_text(finding, "severity"), "invalid");
	json_decref(document);
	fixture_end(&f);
}

static void the_second_rail_of_a_transport_is_no_wrong_device(void **state)
{
	static const char *const resolved[] = {"tcp/eth1 tcp/eth0", "tcp/eth1"};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct fixture f;
		struct xb_results *r = fixture_begin(&f, "-t ucx:tcp -s 8");
		xb_results_transport_description(r, 0, resolved[i], "UCX", "1", "eth1", XB_LAYER_MIDDLEWARE);
		xb_results_evidence(r, 0, "h", "eth0", "netdev", 5100000, 0, 0);
		xb_results_evidence(r, 0, "h", "eth1", "netdev", 4900000, 0, 0);
		xb_results_evidence(r, 0, "h", NULL, "payload", 0, 0, 10000000);
		add(r, 0, 0, 0, 0, 1, 1000.0);
		xb_results_conclude(r);
		json_t *document = xb_results_document(r);
		assert_int_equal(find_finding(document, "wrong-device", NULL) != NULL, i == 1);
		json_decref(document);
		fixture_end(&f);
	}
}

/* 2000 packets of a device that counts no bytes have room for 8 MB: for all of 5 MB, for less than half
 * of 20. */
static void packets_are_evidence_as_far_as_they_have_room(void **state)
{
	static const struct {
		uint64_t payload;
		const char *text, *code;
	} cases[] = {{5000000, "rxe0/1 carried it: 2000 packets", NULL},
		     {20000000, "no device carried half of it; rxe0/1 carried 41 %", "path-unproven"}};

	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct xb_results *r = fixture_begin(&f, "-t verbs:rxe0 -s 8");

		xb_results_transport_description(r, 0, "RC on rxe0", "libibverbs", "1", "rxe0/1",
						 XB_LAYER_FABRIC);
		xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, cases[i].payload);
		xb_results_evidence(r, 0, "node1", "rxe0/1", "rdma", 0, 0, 0);
		xb_results_packets(r, 0, "node1", "rxe0/1", 2000, 1990);
		xb_results_conclude(r);
		json_t *d = xb_results_document(r);
		json_t *transport = json_array_get(json_object_get(d, "transports"), 0);
		json_t *entry = json_array_get(json_object_get(transport, "evidence"), 0);
		json_t *finding = json_array_get(json_object_get(d, "findings"), 0);
		assert_string_equal(member_text(json_object_get(transport, "carried"), "text"),
				    cases[i].text);
		assert_int_equal(json_integer_value(json_object_get(entry, "tx_packets")), 2000);
		assert_int_equal(json_integer_value(json_object_get(entry, "rx_packets")), 1990);
		assert_true(json_is_null(json_object_get(entry, "share_of_payload")));
		if (cases[i].code)
			assert_string_equal(member_text(finding, "code"), cases[i].code);
		else
			assert_null(finding);
		json_decref(d);
		fixture_end(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pair_has_its_own_result_and_the_whole_is_over_all),
		cmocka_unit_test(one_pair_needs_no_list),
		cmocka_unit_test(packets_are_evidence_as_far_as_they_have_room),
		cmocka_unit_test(a_burst_of_other_traffic_decides_nothing),
		cmocka_unit_test(the_second_rail_of_a_transport_is_no_wrong_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

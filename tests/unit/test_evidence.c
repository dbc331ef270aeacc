/* SPDX-License-Identifier: BSD-3-Clause */
/* Which device carried the payload, whether that is the path that was asked for, and what its link allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "report_fixture.h"

#define close_to(a, b) assert_true(fabs((a) - (b)) < 1e-8) /* ten digits */

static struct fixture f;

static json_t *carried(json_t *document, size_t transport)
{
	return json_object_get(json_array_get(json_object_get(document, "transports"), transport), "carried");
}

static void evidence_accumulates_and_names_the_carrier(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp,tcp:eth1,label=eth -s 8");
	for (int i = 0; i < 10; i++) {
		xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 200000);
		xb_results_evidence(r, 0, "node1", "lo", "loopback", 208000, 208000, 0);
		xb_results_evidence(r, 0, "node1", "eth0", "netdev", 100, 90, 0);
	}
	/* two hosts: each sends its own half */
	xb_results_evidence(r, 1, "node1", NULL, NULL, 0, 0, 1000000);
	xb_results_evidence(r, 1, "node2", NULL, NULL, 0, 0, 1000000);
	xb_results_evidence(r, 1, "node1", "eth1", "netdev", 1050000, 1040000, 0);
	xb_results_evidence(r, 1, "node2", "eth1", "netdev", 1040000, 1050000, 0);
	xb_results_transport_description(r, 1, "tcp on eth1", "Linux TCP", "6", "eth1", XB_LAYER_FABRIC);
	xb_results_conclude(r);
	json_t *d = xb_results_document(r);
	json_t *evidence = json_object_get(json_array_get(json_object_get(d, "transports"), 0), "evidence");
	assert_int_equal(json_array_size(evidence), 2);
	close_to(number_at(json_array_get(evidence, 0), "tx_bytes", NULL), 2080000);
	close_to(number_at(json_array_get(evidence, 0), "share_of_payload", NULL), 1.04);
	assert_string_equal(json_string_value(json_array_get(json_object_get(carried(d, 0), "devices"), 0)),
			    "lo");
	assert_string_equal(member_text(carried(d, 0), "text"), "lo carried 104 % of the payload");
	assert_int_equal(json_array_size(json_object_get(carried(d, 1), "devices")), 1);
	assert_string_equal(member_text(carried(d, 1), "text"), "eth1 carried 105 % of the payload");
	assert_int_equal(json_array_size(json_object_get(d, "findings")), 0);
	json_decref(d);
	fixture_end(&f);
}

struct path_case {
	const char *arguments, *resolved, *device;
	enum xb_layer layer;
	const char *counted; /* device with all the payload, or NULL: no device saw it */
	const char *code, *severity;
};

static void the_path_taken_is_held_against_the_path_asked_for(void **state)
{
	(void)state;
	static const struct path_case cases[] = {
		/* asked for shared memory, or for nothing in particular: worth knowing */
		{"-t mpi:shm -s 8", "ob1/vader", "", XB_LAYER_MPI, NULL, "shared-memory", "info"},
		{"-t ucx:posix -s 8", "posix", "", XB_LAYER_MIDDLEWARE, NULL, "shared-memory", "info"},
		{"-t mpi -s 8", "ob1/vader", "", XB_LAYER_MPI, NULL, "shared-memory", "info"},
		/* a fabric whose library uses shared memory within a host, and says so */
		{"-t ofi:psm2 -s 8", "psm2 self,shm", "", XB_LAYER_MIDDLEWARE, NULL, "shared-memory",
		 "warning"},
		{"-t ofi:psm2 -s 8", "psm2 self,shm", "hfi1_0", XB_LAYER_MIDDLEWARE, NULL, "shared-memory",
		 "warning"},
		/* a network that saw nothing */
		{"-t mpi:tcp -s 8", "ob1/tcp", "", XB_LAYER_MPI, NULL, "wrong-device", "invalid"},
		{"-t ucx:tcp -s 8", "tcp/lo self/memory", "", XB_LAYER_MIDDLEWARE, NULL, "wrong-device",
		 "invalid"},
		{"-t tcp -s 8", "tcp on lo", "lo", XB_LAYER_FABRIC, NULL, "wrong-device", "invalid"},
		/* another device than the one that should have */
		{"-t tcp:eth1 -s 8", "tcp on eth1", "eth1", XB_LAYER_FABRIC, "lo", "wrong-device", "invalid"},
		{"-t mpi:shm -s 8", "ob1/vader", "", XB_LAYER_MPI, "lo", "wrong-device", "invalid"},
		/* as it should be */
		{"-t tcp:eth1 -s 8", "tcp on eth1", "eth1", XB_LAYER_FABRIC, "eth1", NULL, NULL},
		{"-t verbs:mlx5_0/1 -s 8", "mlx5_0", "mlx5_0", XB_LAYER_FABRIC, "mlx5_0/1", NULL, NULL},
		{"-t mpi:tcp -s 8", "ob1/tcp", "", XB_LAYER_MPI, "lo", NULL, NULL},
		/* a truth transport moves nothing */
		{"-t null -s 8", "nothing", "", XB_LAYER_TRUTH, NULL, NULL, NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct path_case *c = &cases[i];
		struct xb_results *r = fixture_begin(&f, c->arguments);
		xb_results_transport_description(r, 0, c->resolved, "library", "1", c->device, c->layer);
		xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 5000000);
		xb_results_evidence(r, 0, "node1", "eth9", "netdev", 1000, 1000, 0);
		if (c->counted != NULL)
			xb_results_evidence(r, 0, "node1", c->counted, "netdev", 5100000, 5100000, 0);
		xb_results_conclude(r);
		json_t *d = xb_results_document(r),
		       *finding = json_array_get(json_object_get(d, "findings"), 0);
		if (json_array_size(json_object_get(d, "findings")) != (c->code != NULL) ||
		    (c->code != NULL && (strcmp(member_text(finding, "code"), c->code) != 0 ||
					 strcmp(member_text(finding, "severity"), c->severity) != 0)))
			fail_msg("%s, resolved %s, device '%s', counted on %s: found %s %s", c->arguments,
				 c->resolved, c->device, c->counted ? c->counted : "none",
				 member_text(finding, "severity"), member_text(finding, "code"));
		json_decref(d);
		fixture_end(&f);
	}
}

static void little_payload_proves_nothing(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t mpi:tcp -s 8");
	xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 999999);
	xb_results_conclude(r);
	json_t *d = xb_results_document(r);
	assert_string_equal(member_text(carried(d, 0), "text"), "too little payload to tell");
	assert_int_equal(json_array_size(json_object_get(d, "findings")), 0);
	json_decref(d);
	xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 1);
	d = xb_results_document(r);
	assert_string_equal(member_text(carried(d, 0), "text"), "no device carried it: shared memory");
	json_decref(d);
	fixture_end(&f);
}

static void a_device_with_part_of_the_payload_proves_no_path(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t mpi:tcp -s 8");
	xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 10000000);
	xb_results_evidence(r, 0, "node1", "eth0", "netdev", 2000000, 1, 0);
	xb_results_conclude(r);
	json_t *d = xb_results_document(r);
	assert_string_equal(member_text(carried(d, 0), "text"),
			    "no device carried half of it; eth0 carried 20 %");
	assert_non_null(find_finding(d, "path-unproven", "mpi:tcp"));
	json_decref(d);
	fixture_end(&f);
}

/* The document's word on a device of the second host, and whether the run is said to be on the wrong one. */
static int own_and_wrong(const char *here, const char *there, const char *counted, int *wrong)
{
	struct xb_results *r = fixture_begin(&f, "-t verbs -s 8");
	json_t *entry, *own = NULL;
	size_t i;

	xb_results_transport_description(r, 0, "RC", "libibverbs", "1", here, XB_LAYER_FABRIC);
	xb_results_end(r, 0, "node1", here, "RC", 1);
	xb_results_end(r, 0, "node2", there, "RC", 1);
	xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 10000000);
	xb_results_evidence(r, 0, "node1", "eth0", "netdev", 11000000, 0, 0);
	xb_results_evidence(r, 0, "node2", NULL, NULL, 0, 0, 10000000);
	xb_results_evidence(r, 0, "node2", counted, "rdma", 11000000, 0, 0);
	xb_results_conclude(r);
	json_t *d = xb_results_document(r);
	json_array_foreach(json_object_get(json_array_get(json_object_get(d, "transports"), 0), "evidence"),
			   i, entry) if (!strcmp(member_text(entry, "host"), "node2")) own =
		json_object_get(entry, "own");
	int found = json_is_null(own) ? -1 : json_is_true(own);
	*wrong = find_finding(d, "wrong-device", NULL) != NULL;
	json_decref(d);
	fixture_end(&f);
	return found;
}

static void the_device_of_each_host_is_what_it_says_itself(void **state)
{
	static const struct {
		const char *there, *counted;
		int own, wrong;
	} cases[] = {
		{"eth0", "eth0", 1, 0},		 {"enp94s0", "enp94s0", 1, 0},
		{"enp94s0", "eth0", 0, 1}, /* right on the first host only */
		{"hfi1_0", "hfi1_0/1", 1, 0},	 {"mlx5_0/1", "mlx5_0/1", 1, 0},
		{"mlx5_0:1", "mlx5_0/1", 1, 0},	 {"mlx5_0:1", "mlx5_0/2", 0, 1},
		{"mlx5_1:1", "mlx5_10/1", 0, 1}, {"", "eth1", -1, 0},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int wrong, own = own_and_wrong("eth0", cases[i].there, cases[i].counted, &wrong);
		if (own != cases[i].own || wrong != cases[i].wrong)
			fail_msg("case %zu: own %d, wrong %d", i, own, wrong);
	}
}

/* cxgb4 counts no bytes of RDMA; a software adapter's go by the interface below it. */
static void a_device_that_nothing_counts_proves_no_path(void **state)
{
	(void)state;
	for (int below = 0; below < 2; below++) {
		struct xb_results *r = fixture_begin(&f, "-t verbs:iwp175s0 -s 8");
		xb_results_transport_description(r, 0, "RC on iwp175s0/1", "libibverbs", "1", "iwp175s0/1",
						 XB_LAYER_FABRIC);
		xb_results_end(r, 0, "node1", "iwp175s0/1", "RC", 0);
		xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 5000000);
		if (below)
			xb_results_evidence(r, 0, "node1", "eth0", "netdev", 5100000, 0, 0);
		xb_results_conclude(r);
		json_t *d = xb_results_document(r);
		assert_null(find_finding(d, "wrong-device", NULL));
		assert_int_equal(find_finding(d, "path-unproven", NULL) != NULL, !below);
		assert_string_equal(member_text(carried(d, 0), "text"),
				    below ? "eth0 carried 102 % of the payload"
					  : "not known: iwp175s0/1 keeps no counters of its bytes");
		json_decref(d);
		fixture_end(&f);
	}
}

static void a_bandwidth_above_the_link_rate_cannot_be(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t tcp:eth1 -s 1M -b bw");
	xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 50000000);
	xb_results_evidence(r, 0, "node1", "eth1", "netdev", 51000000, 0, 0);
	xb_results_evidence(r, 0, "node1", "eth2", "netdev", 1000, 0, 0);
	xb_results_link_rate(r, 0, "node1", "eth1", 10000000000u);
	xb_results_link_rate(r, 0, "node1", "eth2", 1000000u); /* carried nothing of it */
	add_block(r, 0, XB_BENCH_BW, 1048576, 0, 0, 840000.0); /* 9.99 Gb/s */
	launches_done(r, 1);
	xb_results_conclude(r);
	json_t *d = xb_results_document(r);
	assert_null(find_finding(d, "exceeds-link-rate", NULL));
	json_decref(d);
	for (unsigned l = 1; l < 4; l++)
		add_block(r, 0, XB_BENCH_BW, 1048576, l, 0, 400000.0);
	launches_done(r, 4);
	xb_results_conclude(r);
	d = xb_results_document(r);
	json_t *finding = find_finding(d, "exceeds-link-rate", "tcp:eth1");
	assert_non_null(finding);
	assert_string_equal(member_text(finding, "severity"), "invalid");
	assert_string_equal(member_text(finding, "text"),
			    "tcp:eth1 bw moved 21.0 Gb/s, but eth1 can carry 10.0 Gb/s at most");
	assert_int_equal(xb_results_exit_status(d), 3);
	json_decref(d);
	fixture_end(&f);
}

static void rails_are_a_limit_together(void **state)
{
	(void)state;
	/* headers make both look like carriers; together they take 20 Gb/s */
	for (int too_fast = 0; too_fast < 2; too_fast++) {
		struct xb_results *r = fixture_begin(&f, "-t ucx -s 1M -b bw");
		xb_results_evidence(r, 0, "node1", NULL, NULL, 0, 0, 50000000);
		xb_results_evidence(r, 0, "node1", "mlx5_0/1", "rdma", 28000000, 0, 0);
		xb_results_evidence(r, 0, "node1", "mlx5_1/1", "rdma", 26000000, 0, 0);
		xb_results_link_rate(r, 0, "node1", "mlx5_0/1", 10000000000u);
		xb_results_link_rate(r, 0, "node1", "mlx5_1/1", 10000000000u);
		add_block(r, 0, XB_BENCH_BW, 1048576, 0, 0, too_fast ? 400000.0 : 441506.0); /* 21, 19 Gb/s */
		launches_done(r, 1);
		xb_results_conclude(r);
		json_t *d = xb_results_document(r), *finding = find_finding(d, "exceeds-link-rate", "ucx");
		assert_int_equal(finding != NULL, too_fast);
		if (finding)
			assert_string_equal(member_text(finding, "text"),
					    "ucx bw moved 21.0 Gb/s, but mlx5_0/1 and mlx5_1/1 can carry "
					    "20.0 Gb/s at most");
		json_decref(d);
		fixture_end(&f);
	}
}

static void ends_with_one_finding_are_gathered_in_it(void **state)
{
	(void)state;
	struct xb_results *r = fixture_begin(&f, "-t mpi:tcp -s 8");
	xb_results_end_finding(r, "invalid", "wrong-path", "mpi:tcp", "first", 5, 3);
	xb_results_end_finding(r, "invalid", "wrong-path", "mpi:tcp", "second", 5, 4);
	xb_results_end_finding(r, "invalid", "wrong-path", "mpi:tcp", "again", 5, 3);
	json_t *d = xb_results_document(r), *findings = json_object_get(d, "findings"),
	       *expected = json_pack("[[i,i],[i,i]]", 5, 3, 5, 4);
	assert_int_equal(json_array_size(findings), 1);
	assert_string_equal(member_text(json_array_get(findings, 0), "text"), "first");
	assert_true(json_equal(json_object_get(json_array_get(findings, 0), "ends"), expected));
	json_decref(expected);
	json_decref(d);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evidence_accumulates_and_names_the_carrier),
		cmocka_unit_test(the_path_taken_is_held_against_the_path_asked_for),
		cmocka_unit_test(little_payload_proves_nothing),
		cmocka_unit_test(a_device_with_part_of_the_payload_proves_no_path),
		cmocka_unit_test(the_device_of_each_host_is_what_it_says_itself),
		cmocka_unit_test(a_device_that_nothing_counts_proves_no_path),
		cmocka_unit_test(a_bandwidth_above_the_link_rate_cannot_be),
		cmocka_unit_test(rails_are_a_limit_together),
		cmocka_unit_test(ends_with_one_finding_are_gathered_in_it),
	};
	return cmocka_run_group_tests_name("evidence", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The verbs backend's decisions, without a device: inline, routes, GIDs, paths and keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#if __has_include(<infiniband/verbs.h>)
#include "../../transports/verbs/gid.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../transports/verbs/queue_pair.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../transports/verbs/route.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../transports/verbs/settings.c" /* NOLINT(bugprone-suspicious-include) */

/* what the device would say; libibverbs is not linked */
static struct ibv_gid_entry table[256];
static ssize_t table_entries;

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
			     uint32_t flags, size_t entry_size)
{
	(void)context;
	(void)flags;
	assert_true((size_t)table_entries <= max_entries);
	assert_int_equal(entry_size, sizeof(*entries));
	memcpy(entries, table, (size_t)table_entries * entry_size);
	return table_entries;
}

static struct {
	int64_t limit; /* most that a queue pair may have inline; below 0: none can be made */
	uint32_t rounded_to; /* what is granted is a multiple of it */
	int asked, alive;
	struct ibv_qp pairs[64];
} device;

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const uint32_t step = device.rounded_to;

	(void)pd;
	device.asked++;
	assert_true((size_t)device.asked <= sizeof device.pairs / sizeof *device.pairs);
	if (attr->cap.max_inline_data > device.limit) {
		errno = EINVAL;
		return NULL;
	}
	attr->cap.max_inline_data = (attr->cap.max_inline_data + step - 1) / step * step;
	device.alive++;
	return &device.pairs[device.asked - 1];
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	assert_true(qp >= device.pairs && qp < device.pairs + device.asked);
	device.alive--;
	return 0;
}

/* ---- queue pairs */

static struct ibv_qp *pair_of_device(int64_t limit, uint32_t rounded_to, uint32_t *ask, uint32_t *granted)
{
	static struct vb_context context;

	device.limit = limit;
	device.rounded_to = rounded_to;
	device.asked = device.alive = 0;
	*granted = 0;
	return vb_queue_pair(&context, NULL, ask, granted);
}

static void as_much_is_sent_inline_as_the_device_grants(void **state)
{
	(void)state;
	for (uint32_t limit = 0; limit <= 300; limit++) {
		const uint32_t most = limit < 236 ? limit : 236;
		uint32_t ask = 236, granted;

		assert_non_null(pair_of_device(limit, 1, &ask, &granted));
		assert_int_equal(granted, most);
		assert_int_equal(ask, most);
		assert_int_equal(device.alive, 1); /* those on the way are gone */
		assert_true(device.asked <= 20);
		/* the next one asks once */
		assert_non_null(pair_of_device(limit, 1, &ask, &granted));
		assert_int_equal(granted, most);
		assert_int_equal(device.asked, 1);
	}
}

static void what_is_granted_beyond_what_was_asked_for_is_used(void **state)
{
	uint32_t ask = 236, granted;

	(void)state;
	assert_non_null(pair_of_device(236, 64, &ask, &granted));
	assert_int_equal(granted, 256);
	assert_int_equal(ask, 236);
	assert_non_null(pair_of_device(100, 16, &ask, &granted));
	assert_int_equal(granted, 112);
	assert_int_equal(device.alive, 1);
}

static void a_device_without_queue_pairs_is_not_asked_for_ever(void **state)
{
	uint32_t ask = 65536, granted;

	(void)state;
	assert_null(pair_of_device(-1, 1, &ask, &granted));
	assert_int_equal(errno, EINVAL);
	assert_true(device.asked <= 18);
	assert_int_equal(device.alive, 0);
	/* a huge wish: near what there is, in a bounded number of tries */
	ask = 65536;
	assert_non_null(pair_of_device(20000, 1, &ask, &granted));
	assert_in_range(granted, 19990, 20000);
	assert_true(device.asked <= 16);
}

/* ---- routes */

static const uint8_t subnet_a[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1},
		     subnet_b[16] = {0xfe, 0xc0, 0, 0, 0, 0, 0, 1, 2};

static struct vb_route_end infiniband(uint16_t lid, uint8_t lmc, const uint8_t gid[16])
{
	struct vb_route_end end = {.lid = lid, .lmc = lmc};

	memcpy(end.gid, gid, 16);
	return end;
}

static void expect_route(struct vb_route_end mine, struct vb_route_end theirs, bool gid_asked, int offset,
			 struct vb_route expected)
{
	struct vb_route route;

	assert_int_equal(vb_route_choose(&mine, &theirs, gid_asked, offset, &route), VB_ROUTE_OK);
	assert_int_equal(route.dlid, expected.dlid);
	assert_int_equal(route.path_bits, expected.path_bits);
	assert_int_equal(route.global, expected.global);
}

static void within_a_subnet_the_lid_is_enough(void **state)
{
	(void)state;
	expect_route(infiniband(4, 0, subnet_a), infiniband(12, 0, subnet_a), false, -1,
		     (struct vb_route){12, 0, false});
	/* a base LID, whatever the LMC */
	expect_route(infiniband(4, 2, subnet_a), infiniband(16, 3, subnet_a), false, -1,
		     (struct vb_route){16, 0, false});
}

static void a_global_header_is_added_for_each_of_its_reasons(void **state)
{
	struct vb_route_end mine = infiniband(4, 0, subnet_a), theirs = infiniband(12, 0, subnet_a);

	(void)state;
	expect_route(mine, theirs, true, -1, (struct vb_route){12, 0, true});
	mine.needs_grh = true;
	expect_route(mine, theirs, false, -1, (struct vb_route){12, 0, true});
	mine.needs_grh = false;
	theirs.needs_grh = true;
	expect_route(mine, theirs, false, -1, (struct vb_route){12, 0, true});
}

static void expect_other_subnet(struct vb_route_end mine, struct vb_route_end theirs, bool gid_asked)
{
	struct vb_route route;

	assert_int_equal(vb_route_choose(&mine, &theirs, gid_asked, -1, &route), VB_ROUTE_OTHER_SUBNET);
}

/* the LID would have to be the router's: no global header makes up for that */
static void another_subnet_is_refused(void **state)
{
	struct vb_route_end mine = infiniband(4, 0, subnet_a), theirs = infiniband(12, 0, subnet_b);
	static const uint8_t unknown[16] = {0};

	(void)state;
	expect_other_subnet(mine, theirs, false);
	expect_other_subnet(theirs, mine, false);
	expect_other_subnet(mine, theirs, true);
	theirs.needs_grh = true;
	expect_other_subnet(mine, theirs, false);
	/* a port that tells no GID is taken to be in this one */
	expect_route(infiniband(4, 0, unknown), infiniband(12, 0, subnet_b), false, -1,
		     (struct vb_route){12, 0, false});
	expect_route(infiniband(4, 0, subnet_a), infiniband(12, 0, unknown), false, -1,
		     (struct vb_route){12, 0, false});
}

static void only_the_prefix_is_the_subnet(void **state)
{
	uint8_t other[16];

	(void)state;
	memcpy(other, subnet_a, 16);
	memset(other + 8, 0x5a, 8);
	expect_route(infiniband(4, 0, subnet_a), infiniband(12, 0, other), false, -1,
		     (struct vb_route){12, 0, false});
	other[7] ^= 1;
	expect_other_subnet(infiniband(4, 0, subnet_a), infiniband(12, 0, other), false);
}

static void a_lid_offset_moves_both_ends_within_their_lmc(void **state)
{
	struct vb_route_end mine = infiniband(8, 2, subnet_a), theirs = infiniband(16, 3, subnet_a);
	struct vb_route route;

	(void)state;
	expect_route(mine, theirs, false, 0, (struct vb_route){16, 0, false});
	expect_route(mine, theirs, false, 3, (struct vb_route){19, 3, false});
	assert_int_equal(vb_route_choose(&mine, &theirs, false, 4, &route), VB_ROUTE_FEW_LIDS_HERE);
	assert_int_equal(vb_route_choose(&theirs, &mine, false, 4, &route), VB_ROUTE_FEW_LIDS_THERE);
	mine.lmc = theirs.lmc = 0;
	assert_int_equal(vb_route_choose(&mine, &theirs, false, 1, &route), VB_ROUTE_FEW_LIDS_HERE);
}

static void without_a_lid_only_a_global_route_goes(void **state)
{
	struct vb_route_end mine = infiniband(4, 0, subnet_a), theirs = infiniband(0, 0, subnet_a);
	struct vb_route route;

	(void)state;
	assert_int_equal(vb_route_choose(&mine, &theirs, false, -1, &route), VB_ROUTE_NO_LID);
	expect_route(mine, theirs, true, -1, (struct vb_route){0, 0, true});
}

static void ethernet_is_routed_by_gid_alone(void **state)
{
	struct vb_route_end mine = {.ethernet = true}, theirs = {.ethernet = true, .lid = 7};

	(void)state;
	expect_route(mine, theirs, false, -1, (struct vb_route){0, 0, true});
}

/* ---- GIDs */

static void add_gid(uint32_t index, uint32_t port, uint32_t type, const char *text)
{
	struct ibv_gid_entry *entry = &table[table_entries++];

	memset(entry, 0, sizeof(*entry));
	entry->gid_index = index;
	entry->port_num = port;
	entry->gid_type = type;
	assert_int_equal(inet_pton(AF_INET6, text, entry->gid.raw), 1);
}

static int best_of_port(unsigned port)
{
	struct vb_gid list[VB_MAX_GIDS];
	const struct vb_gid *best = vb_gid_best(list, vb_gids(NULL, port, list, VB_MAX_GIDS));

	return best ? best->index : -1;
}

static void the_best_gid_is_v2_routable_and_ipv4(void **state)
{
	(void)state;
	table_entries = 0;
	assert_int_equal(best_of_port(1), -1);
	add_gid(0, 1, IBV_GID_TYPE_ROCE_V1, "fe80::1");
	assert_int_equal(best_of_port(1), 0);
	add_gid(1, 1, IBV_GID_TYPE_ROCE_V1, "::ffff:10.0.0.1");
	assert_int_equal(best_of_port(1), 1);
	add_gid(2, 1, IBV_GID_TYPE_ROCE_V2, "fe80::1");
	assert_int_equal(best_of_port(1), 2);
	add_gid(3, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:169.254.3.4");
	assert_int_equal(best_of_port(1), 3);
	add_gid(4, 1, IBV_GID_TYPE_ROCE_V2, "2001:db8::1");
	assert_int_equal(best_of_port(1), 4);
	add_gid(5, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1");
	assert_int_equal(best_of_port(1), 5);
	/* equally good: the first; another port's: not at all */
	add_gid(6, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.2");
	assert_int_equal(best_of_port(1), 5);
	assert_int_equal(best_of_port(2), -1);
}

/* as many as there are addresses, VLANs and versions: 256 on some adapters */
static void the_last_of_a_large_table_is_found(void **state)
{
	(void)state;
	table_entries = 0;
	for (uint32_t i = 0; i < 255; i++)
		add_gid(i, 1, IBV_GID_TYPE_ROCE_V1, "fe80::1");
	add_gid(255, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1");
	assert_int_equal(best_of_port(1), 255);
}

static void a_gid_of_infiniband_is_never_taken_for_roce(void **state)
{
	(void)state;
	table_entries = 0;
	add_gid(0, 1, IBV_GID_TYPE_IB, "fe80::2:c903:0:1");
	assert_int_equal(best_of_port(1), -1);
	add_gid(1, 1, IBV_GID_TYPE_ROCE_V1, "fe80::2");
	assert_int_equal(best_of_port(1), 1);
}

/* ---- paths and keys */

static void a_path_is_taken_in_turn(void **state)
{
	static const char *const bad[] = {"/",		"mlx5_0/", "mlx5_0/x", "mlx5_0/0", "mlx5_0/256",
					  "mlx5_0/1/2", "+mlx5_0", "mlx5_0+",  "mlx5_0/1 "};
	struct vb_path path;
	struct xb_error error;

	(void)state;
	assert_int_equal(vb_path_parse("", 0, &path, &error), XB_OK);
	assert_string_equal(path.device, "");
	assert_int_equal(vb_path_parse("mlx5_0/2+mlx5_1", 2, &path, &error), XB_OK);
	assert_string_equal(path.device, "mlx5_0");
	assert_int_equal(path.port, 2);
	assert_int_equal(vb_path_parse("mlx5_0/2+mlx5_1", 1, &path, &error), XB_OK);
	assert_string_equal(path.device, "mlx5_1");
	assert_int_equal(path.port, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		int endpoint = bad[i][strlen(bad[i]) - 1] == '+'; /* the empty part is the second one's */

		if (vb_path_parse(bad[i], (uint32_t)endpoint, &path, &error) != XB_E_USAGE)
			fail_msg("\"%s\" was taken", bad[i]);
	}
}

static int parse(enum xb_op op, const char *key, const char *value, const char *key2, const char *value2,
		 struct vb_settings *settings)
{
	const struct xb_key_value keys[] = {{key, value}, {key2, value2}};
	const struct xb_setup setup = {.op = op, .keys = keys, .key_count = key2 ? 2 : key ? 1 : 0};
	struct xb_error error;

	memset(settings, 0, sizeof(*settings));
	return vb_settings_parse(&setup, settings, &error);
}

static void keys_have_their_defaults_and_limits(void **state)
{
	struct vb_settings s;

	(void)state;
	assert_int_equal(parse(XB_OP_SEND, NULL, NULL, NULL, NULL, &s), XB_OK);
	assert_int_equal(s.kind, VB_RC);
	assert_int_equal(s.gid, -1);
	assert_int_equal(s.lid, -1);
	assert_int_equal(s.rnr, 7);
	assert_int_equal(s.timeout, 16);
	assert_false(s.cm || s.immediate || s.events || s.read_back);
	assert_int_equal(parse(XB_OP_SEND, "lid", "3", "rnr", "0", &s), XB_OK);
	assert_int_equal(s.lid, 3);
	assert_int_equal(s.rnr, 0);
	/* as perftest has it */
	assert_true(s.relaxed);
	assert_int_equal(parse(XB_OP_WRITE, NULL, NULL, NULL, NULL, &s), XB_OK);
	assert_false(s.relaxed);
	assert_int_equal(parse(XB_OP_WRITE, "relaxed", "1", NULL, NULL, &s), XB_OK);
	assert_true(s.relaxed);
	assert_int_equal(parse(XB_OP_READ, "relaxed", "0", NULL, NULL, &s), XB_OK);
	assert_false(s.relaxed);
	assert_int_equal(parse(XB_OP_SEND, "relaxed", "2", NULL, NULL, &s), XB_E_USAGE);
	assert_int_equal(parse(XB_OP_SEND, "lid", "128", NULL, NULL, &s), XB_E_USAGE);
	assert_int_equal(parse(XB_OP_SEND, "rnr", "8", NULL, NULL, &s), XB_E_USAGE);
	assert_int_equal(parse(XB_OP_SEND, "mtu", "1500", NULL, NULL, &s), XB_E_USAGE);
	assert_int_equal(parse(XB_OP_SEND, "cm", "yes", NULL, NULL, &s), XB_E_USAGE);
}

static void what_does_not_go_together_is_refused(void **state)
{
	struct vb_settings s;

	(void)state;
	assert_int_equal(parse(XB_OP_WRITE, "write", "imm", NULL, NULL, &s), XB_OK);
	assert_true(s.immediate);
	assert_int_equal(parse(XB_OP_READ, "write", "imm", NULL, NULL, &s), XB_E_USAGE);
	assert_int_equal(parse(XB_OP_SEND, "write", "imm", NULL, NULL, &s), XB_E_USAGE);
	assert_int_equal(parse(XB_OP_SEND, "qp", "ud", NULL, NULL, &s), XB_OK);
	assert_int_equal(parse(XB_OP_WRITE, "qp", "ud", NULL, NULL, &s), XB_E_UNSUPPORTED);
	/* a target that polls memory neither sleeps nor lets the last byte overtake; with a completion it may
	 */
	assert_int_equal(parse(XB_OP_WRITE_POLL, NULL, NULL, NULL, NULL, &s), XB_OK);
	assert_false(s.relaxed);
	assert_int_equal(parse(XB_OP_WRITE_POLL, "events", "1", NULL, NULL, &s), XB_E_USAGE);
	assert_int_equal(parse(XB_OP_WRITE_POLL, "relaxed", "1", NULL, NULL, &s), XB_E_USAGE);
	assert_int_equal(parse(XB_OP_WRITE_POLL, "events", "1", "write", "imm", &s), XB_OK);
	assert_int_equal(parse(XB_OP_WRITE_POLL, "qp", "ud", NULL, NULL, &s), XB_E_UNSUPPORTED);
	assert_int_equal(parse(XB_OP_SEND, "qp", "ud", "cm", "1", &s), XB_E_UNSUPPORTED);
	/* rdma_cm finds the route: what would be ignored is refused, be it the default's value */
	assert_int_equal(parse(XB_OP_SEND, "cm", "1", "gid", "1", &s), XB_E_USAGE);
	assert_int_equal(parse(XB_OP_SEND, "cm", "1", "lid", "0", &s), XB_E_USAGE);
	assert_int_equal(parse(XB_OP_SEND, "cm", "1", "sl", "0", &s), XB_E_USAGE);
	assert_int_equal(parse(XB_OP_SEND, "cm", "0", "sl", "0", &s), XB_OK);
	assert_int_equal(parse(XB_OP_SEND, "cm", "1", "tc", "106", &s), XB_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_much_is_sent_inline_as_the_device_grants),
		cmocka_unit_test(what_is_granted_beyond_what_was_asked_for_is_used),
		cmocka_unit_test(a_device_without_queue_pairs_is_not_asked_for_ever),
		cmocka_unit_test(within_a_subnet_the_lid_is_enough),
		cmocka_unit_test(a_global_header_is_added_for_each_of_its_reasons),
		cmocka_unit_test(another_subnet_is_refused),
		cmocka_unit_test(only_the_prefix_is_the_subnet),
		cmocka_unit_test(a_lid_offset_moves_both_ends_within_their_lmc),
		cmocka_unit_test(without_a_lid_only_a_global_route_goes),
		cmocka_unit_test(ethernet_is_routed_by_gid_alone),
		cmocka_unit_test(the_best_gid_is_v2_routable_and_ipv4),
		cmocka_unit_test(the_last_of_a_large_table_is_found),
		cmocka_unit_test(a_gid_of_infiniband_is_never_taken_for_roce),
		cmocka_unit_test(a_path_is_taken_in_turn),
		cmocka_unit_test(keys_have_their_defaults_and_limits),
		cmocka_unit_test(what_does_not_go_together_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
#include "no_libibverbs.h"
#endif

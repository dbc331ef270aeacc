/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ucx backend's reading of names, without UCX: paths against an inventory, and the lanes that UCX prints,
 * recorded from UCX 1.13 with its older and its newer protocol selection.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "../../transports/ucx/path.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../transports/ucx/lanes_text.c" /* NOLINT(bugprone-suspicious-include) */

int xb_ucx_is_soft_roce(const char *device)
{
	return device == NULL || strncmp(device, "rxe", 3) == 0;
}

const char *xb_ucx_absent_reason(const char *tl, const char **remedy)
{
	*remedy = "buy one";
	return strcmp(tl, "dc") == 0 ? "none here" : NULL;
}

void xb_ucx_inventory_print(const struct xb_ucx_inventory *inventory, char *out, size_t bytes)
{
	(void)inventory;
	snprintf(out, bytes, "ALL OF THESE");
}

static const struct xb_ucx_inventory here = {
	.items = {{"self", "memory0", XB_UCX_SELF},
		  {"tcp", "eth0", XB_UCX_NET},
		  {"tcp", "eth0.100", XB_UCX_NET},
		  {"tcp", "lo", XB_UCX_NET},
		  {"posix", "memory", XB_UCX_SHM},
		  {"sysv", "memory", XB_UCX_SHM},
		  {"cma", "memory", XB_UCX_SHM},
		  {"rc_verbs", "mlx5_0:1", XB_UCX_NET},
		  {"rc_mlx5", "mlx5_0:1", XB_UCX_NET},
		  {"ud_verbs", "mlx5_0:1", XB_UCX_NET},
		  {"rc_verbs", "rxe0:1", XB_UCX_NET},
		  {"ud_verbs", "rxe0:1", XB_UCX_NET}},
	.count = 12,
};

static void gives(const char *text, const char *tls, const char *devices)
{
	struct xb_ucx_path path;
	struct xb_error error = {0};

	if (xb_ucx_path_parse(text, &here, &path, &error))
		fail_msg("%s refused: %s", text, error.text);
	assert_string_equal(path.tls, tls);
	assert_string_equal(path.devices, devices);
}

static void paths_become_ucx_settings(void **state)
{
	(void)state;
	gives("", "", "");
	gives("tcp", "tcp", "");
	gives("tcp/eth0", "tcp", "eth0");
	gives("tcp/eth0.100", "tcp", "eth0.100");
	gives("tcp/eth0+lo", "tcp", "eth0,lo");
	gives("posix+cma", "posix,cma", "");
	gives("shm", "shm", "");
	gives("/eth0", "", "eth0");
	gives("rc/mlx5_0:1", "rc", "mlx5_0:1");
	gives("tcp+posix/lo", "tcp,posix", "lo");
}

static void rdma_devices_may_be_named_without_their_port(void **state)
{
	(void)state;
	gives("rc/mlx5_0", "rc", "mlx5_0:1");
	gives("rc/mlx5_0/1", "rc", "mlx5_0:1");
}

static void plain_rc_names_bring_their_wire_up_transport(void **state)
{
	(void)state;
	gives("rc_verbs", "rc_verbs,ud_verbs:aux", "");
	gives("rc_mlx5", "rc_mlx5,ud_mlx5:aux", "");
}

static void cma_alone_gets_a_transport_for_small_messages(void **state)
{
	struct xb_ucx_path path;

	(void)state;
	gives("cma", "cma,posix", "");
	assert_int_equal(xb_ucx_path_parse("cma", &here, &path, NULL), 0);
	assert_non_null(strstr(path.note, "posix added"));
}

static void soft_roce_is_noticed_only_where_it_is_used(void **state)
{
	struct xb_ucx_path path;

	(void)state;
	assert_int_equal(xb_ucx_path_parse("rc/rxe0", &here, &path, NULL), 0);
	assert_true(path.soft_roce);
	assert_int_equal(xb_ucx_path_parse("rc/mlx5_0", &here, &path, NULL), 0);
	assert_false(path.soft_roce);
	assert_int_equal(xb_ucx_path_parse("rc", &here, &path, NULL), 0);
	assert_true(path.soft_roce);
}

static void refused(const char *text, int status, const char *word)
{
	struct xb_ucx_path path;
	struct xb_error error = {0};

	assert_int_equal(xb_ucx_path_parse(text, &here, &path, &error), status);
	if (strstr(error.text, word) == NULL)
		fail_msg("%s: \"%s\" does not say \"%s\"", text, error.text, word);
}

static void impossible_paths_are_refused_with_what_there_is(void **state)
{
	(void)state;
	refused("warp", XB_E_UNAVAILABLE, "ALL OF THESE");
	refused("tcp+warp", XB_E_UNAVAILABLE, "\"warp\"");
	refused("dc", XB_E_UNAVAILABLE, "none here");
	refused("self", XB_E_UNSUPPORTED, "two processes");
	refused("tcp/eth7", XB_E_UNAVAILABLE, "eth0, eth0.100, lo");
	refused("tcp/mlx5_0:1", XB_E_UNAVAILABLE, "\"mlx5_0:1\"");
	refused("rc/mlx5_0:2", XB_E_UNAVAILABLE, "mlx5_0:1, rxe0:1");
	refused("posix/lo", XB_E_USAGE, "no network device");
	refused("tcp,", XB_E_USAGE, "no valid transport name");
	refused("tcp+", XB_E_USAGE, "no valid transport name");
	refused("+tcp", XB_E_USAGE, "no valid transport name");
	refused("tcp/", XB_E_USAGE, "no valid device name");
	refused("/", XB_E_USAGE, "no valid device name");
	refused("^tcp", XB_E_USAGE, "no valid transport name");
	refused("tcp/a name", XB_E_USAGE, "no valid device name");
	refused("a_name_that_is_much_too_long_to_be_one_of_ucx", XB_E_USAGE, "no valid transport name");
}

static const char printed_tcp[] =
	"#\n# UCP endpoint \n#\n#               peer: <no debug data>\n"
	"#                 lane[0]:  1:tcp/lo.0 md[0]                -> md[0]/tcp/sysdev[255] rma_bw#0 am "
	"am_bw#0\n"
	"#                 lane[1]:  0:tcp/eth0.100.0 md[0]          -> md[0]/tcp/sysdev[255] rma_bw#1 "
	"wireup\n"
	"#\n"
	"#                tag_send: 0..<egr/short>..8185..<egr/zcopy>..8192..<rndv>..(inf)\n"
	"#            tag_send_nbr: 0..<egr/short>..8185..<egr/bcopy>..262144..<rndv>..(inf)\n"
	"#           tag_send_sync: 0..<egr/short>..8185..<egr/zcopy>..8191..<rndv>..(inf)\n"
	"#\n#                  rma_bw: mds [0] rndv_rkey_size 10\n#\n";

static const char printed_newer[] =
	"#                 lane[0]:  1:tcp/lo.0 md[0]                -> md[0]/tcp/sysdev[255] rma_bw#0 am "
	"am_bw#0\n"
	"#                tag_send: 0..<egr/short>..8185..<egr/zcopy>..8192..<rndv>..(inf)\n"
	"# +--------------------------+-----------------------------------------------------------------+\n"
	"# | 0x557e63d71e30 ep_cfg[0] | tagged message by ucp_tag_send*() from host memory              |\n"
	"# +--------------------------+-------------------------------------------------+---------------+\n"
	"# |                   0..788 | eager short                                     | tcp/lo        |\n"
	"# |                789..8515 | eager zero-copy copy-out                        | tcp/lo        |\n"
	"# |                8516..inf | (?) rendezvous zero-copy fenced write to remote | 52% on tcp/lo |\n"
	"# +--------------------------+-------------------------------------------------+---------------+\n";

static const char printed_rdma[] =
	"#                 lane[0]: cm rdmacm\n"
	"#                 lane[1]:  7:rc_verbs/mlx5_0:1.0 md[4]     -> md[4]/ib/sysdev[0] rma_bw#0 am "
	"am_bw#0 "
	"wireup{ud_verbs/mlx5_0:1}\n"
	"#                 lane[2]:  7:rc_verbs/mlx5_0:1.1 md[4]     -> md[4]/ib/sysdev[0] rma_bw#1\n"
	"#                tag_send: 0..<egr/short>..(inf)\n";

static struct xb_ucx_lanes lanes_of(const char *text)
{
	struct xb_ucx_lanes lanes = {.count = 0};

	xb_ucx_lanes_parse(text, &lanes);
	return lanes;
}

static void lanes_are_read_back(void **state)
{
	struct xb_ucx_lanes lanes = lanes_of(printed_tcp);

	(void)state;
	assert_int_equal(lanes.count, 2);
	assert_string_equal(lanes.items[0].tl, "tcp");
	assert_string_equal(lanes.items[0].device, "lo");
	assert_string_equal(lanes.items[1].device, "eth0.100");
	assert_int_equal(lanes.eager_bytes, 8191);

	lanes = lanes_of(printed_rdma); /* a connection manager is no lane, two rails of a port are one */
	assert_int_equal(lanes.count, 1);
	assert_string_equal(lanes.items[0].tl, "rc_verbs");
	assert_string_equal(lanes.items[0].device, "mlx5_0:1");
	assert_int_equal(lanes.eager_bytes, 0);
}

static void the_newer_protocol_table_has_the_last_word(void **state)
{
	(void)state;
	assert_int_equal(lanes_of(printed_newer).eager_bytes, 8515);
}

static void odd_text_does_no_harm(void **state)
{
	(void)state;
	assert_int_equal(lanes_of("").count, 0);
	assert_int_equal(lanes_of("lane[").count, 0);
	assert_int_equal(lanes_of("lane[0]:").count, 0);
	assert_int_equal(lanes_of("lane[0]: /x").count, 0);
	assert_int_equal(lanes_of("lane[0]: 1:tcp").count, 0);
	assert_int_equal(lanes_of("lane[0]: tcp/.").count, 1);
	assert_int_equal(lanes_of("tag_send:..<rndv>\n|ep_cfg[\n|").eager_bytes, 0);
}

static int accepted(const char *path_text, const char *printed, char *why, size_t bytes)
{
	struct xb_ucx_lanes lanes = lanes_of(printed);
	struct xb_ucx_path path;

	assert_int_equal(xb_ucx_path_parse(path_text, &here, &path, NULL), 0);
	return xb_ucx_lanes_check(&lanes, &path, why, bytes);
}

static void lanes_are_checked_against_the_path(void **state)
{
	static const char shared[] = "lane[0]: 4:posix/memory.0 md\nlane[1]: 6:cma/memory.0 md\n";
	static const char mixed[] = "lane[0]: 4:posix/memory.0 md\nlane[1]: 1:tcp/lo.0 md\n";
	char why[256];

	(void)state;
	assert_true(accepted("", shared, why, sizeof(why)));
	assert_string_equal(why, "");
	assert_true(accepted("shm", shared, why, sizeof(why)));
	assert_true(accepted("cma", shared, why, sizeof(why)));
	assert_false(accepted("posix", shared, why, sizeof(why)));
	assert_false(accepted("tcp", shared, why, sizeof(why)));
	assert_non_null(strstr(why, "tcp was asked for"));
	assert_non_null(strstr(why, "posix/memory"));
	assert_false(accepted("/lo", shared, why, sizeof(why)));
	assert_false(accepted("tcp", mixed, why, sizeof(why)));
	assert_true(accepted("tcp+posix/lo", mixed, why, sizeof(why)));
	assert_false(accepted("tcp+posix/eth0", mixed, why, sizeof(why)));
	assert_false(accepted("tcp/lo", printed_tcp, why, sizeof(why)));
	assert_non_null(strstr(why, "tcp/eth0.100"));
	assert_true(accepted("tcp", printed_tcp, why, sizeof(why)));
	assert_true(accepted("rc", printed_rdma, why, sizeof(why)));
	assert_true(accepted("rc/mlx5_0", printed_rdma, why, sizeof(why)));
	assert_false(accepted("rc/rxe0", printed_rdma, why, sizeof(why)));
	assert_false(accepted("rc_mlx5", printed_rdma, why, sizeof(why)));
	assert_false(accepted("tcp", "", why, sizeof(why)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_become_ucx_settings),
		cmocka_unit_test(rdma_devices_may_be_named_without_their_port),
		cmocka_unit_test(plain_rc_names_bring_their_wire_up_transport),
		cmocka_unit_test(cma_alone_gets_a_transport_for_small_messages),
		cmocka_unit_test(soft_roce_is_noticed_only_where_it_is_used),
		cmocka_unit_test(impossible_paths_are_refused_with_what_there_is),
		cmocka_unit_test(lanes_are_read_back),
		cmocka_unit_test(the_newer_protocol_table_has_the_last_word),
		cmocka_unit_test(odd_text_does_no_harm),
		cmocka_unit_test(lanes_are_checked_against_the_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

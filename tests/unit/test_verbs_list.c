/* SPDX-License-Identifier: BSD-3-Clause */
/* What `xportbench list` says of RDMA ports: machines of tests/fixtures, and what their libibverbs would
 * tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include "fixture.h"
#include "system/sysfs.h"

/* libibverbs is not linked: what it has as macros is replaced here, what it has as functions below */
static char devices_of_machine[440];
static int port_of(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr);
static struct ibv_mr *registered(struct ibv_pd *pd, void *memory, size_t bytes, int access);
static struct ibv_device **all_devices(int *count);
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_get_device_list
#define ibv_query_port port_of
#define ibv_reg_mr registered
#define ibv_get_device_list all_devices
#define DEVICES devices_of_machine
#include "../../transports/verbs/device.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../transports/verbs/gid.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../transports/verbs/probe.c" /* NOLINT(bugprone-suspicious-include) */

struct fake_gid {
	uint32_t type;
	const char *text;
};
/* One device; its ports are those with a state. */
static struct {
	struct ibv_device device;
	struct ibv_context context;
	const char *firmware;
	struct ibv_port_attr port[2];
	struct fake_gid gid[3]; /* of port 1 */
	size_t lockable; /* memory that can be registered, bytes */
	int cannot_open, cannot_query; /* error codes */
} here;

static struct ibv_device **all_devices(int *count)
{
	static struct ibv_device *list[2];

	list[0] = &here.device;
	*count = here.device.name[0] != '\0';
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	(void)list;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	here.context.device = device;
	errno = here.cannot_open;
	return here.cannot_open ? NULL : &here.context;
}

int ibv_close_device(struct ibv_context *context)
{
	(void)context;
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	memset(attr, 0, sizeof(*attr));
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", here.firmware);
	attr->phys_port_cnt = here.port[1].state ? 2 : 1;
	return 0;
}

static int port_of(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr)
{
	(void)context;
	if (here.cannot_query)
		return here.cannot_query;
	*attr = here.port[number - 1];
	return 0;
}

/* as libibverbs has them */
const char *ibv_port_state_str(enum ibv_port_state state)
{
	static const char *const names[] = {[IBV_PORT_DOWN] = "PORT_DOWN",
					    [IBV_PORT_INIT] = "PORT_INIT",
					    [IBV_PORT_ARMED] = "PORT_ARMED",
					    [IBV_PORT_ACTIVE] = "PORT_ACTIVE"};

	return names[state];
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
			     uint32_t flags, size_t entry_size)
{
	ssize_t count = 0;

	(void)context;
	(void)flags;
	(void)max_entries;
	assert_int_equal(entry_size, sizeof(*entries));
	for (; count < 3 && here.gid[count].text; count++) {
		memset(&entries[count], 0, sizeof(*entries));
		entries[count].gid_index = (uint32_t)count;
		entries[count].port_num = 1;
		entries[count].gid_type = here.gid[count].type;
		assert_int_equal(inet_pton(AF_INET6, here.gid[count].text, entries[count].gid.raw), 1);
	}
	return count;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	static struct ibv_pd pd;

	(void)context;
	return &pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	return 0;
}

static struct ibv_mr *registered(struct ibv_pd *pd, void *memory, size_t bytes, int access)
{
	static struct ibv_mr mr;

	(void)pd;
	(void)memory;
	(void)access;
	return bytes <= here.lockable ? &mr : NULL;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	(void)mr;
	return 0;
}

/* ---- what the list says, "PATH: TEXT" or "PATH: TEXT; REASON; REMEDY", one path a line */

static char told[2048];

static void take_path(void *user, const char *path, const char *text, int usable, const char *reason,
		      const char *remedy)
{
	size_t used = strlen(told);

	(void)user;
	assert_true(usable == !reason && usable == !remedy);
	snprintf(told + used, sizeof(told) - used, "%s: %s%s%s%s%s\n", path, text, usable ? "" : "; ",
		 usable ? "" : reason, usable ? "" : "; ", usable ? "" : remedy);
}

static void take_library(void *user, const char *library, const char *version)
{
	(void)user;
	(void)version;
	assert_string_equal(library, "libibverbs");
}

/* On a machine of tests/fixtures, whose other devices are taken away. */
static void lists(const char *machine, const char *device, const char *expected)
{
	static const char *const all[] = {"mlx5_0", "mlx4_0", "iwp175s0", "iwp59s0f0", "rxe0", "rxe1"};
	const struct xb_probe_sink sink = {NULL, take_path, take_library};
	struct xb_error error;
	struct fixture tree;

	snprintf(here.device.name, sizeof(here.device.name), "%s", device);
	snprintf(here.device.dev_name, sizeof(here.device.dev_name), "uverbs77");
	told[0] = '\0';
	fixture_open(&tree, machine);
	snprintf(devices_of_machine, sizeof(devices_of_machine), "%.400s/class/infiniband", tree.sys);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		char file[64];

		snprintf(file, sizeof(file), "sys/class/infiniband/%s", all[i]);
		if (strcmp(all[i], device) && xb_sysfs_exists("%s/%s", tree.root, file))
			fixture_remove(&tree, file);
	}
	if (strcmp(device, "mlx4_0") == 0)
		fixture_write(&tree, "sys/devices/pci0000:00/0000:c1:00.0/numa_node", "1\n");
	assert_int_equal(vb_probe(&sink, &error), XB_OK);
	fixture_close(&tree);
	assert_string_equal(told, expected);
}

static struct ibv_port_attr port(enum ibv_port_state state, uint8_t link_layer, uint16_t lid)
{
	return (struct ibv_port_attr){
		.state = state, .active_mtu = IBV_MTU_4096, .link_layer = link_layer, .lid = lid};
}

static int fresh(void **state)
{
	(void)state;
	memset(&here, 0, sizeof(here));
	here.device.transport_type = IBV_TRANSPORT_IB;
	here.firmware = "20.31.1014";
	here.lockable = SIZE_MAX;
	return 0;
}

static void an_active_port_of_infiniband(void **state)
{
	(void)state;
	here.port[0] = port(IBV_PORT_ACTIVE, IBV_LINK_LAYER_INFINIBAND, 17);
	here.gid[0] = (struct fake_gid){IBV_GID_TYPE_IB, "fe80::ec0d:9a03:1"};
	lists("connectx", "mlx5_0",
	      "mlx5_0/1: InfiniBand, PORT_ACTIVE, 200 Gb/sec, MTU 4096, LID 17, GID 0 of 1: InfiniBand "
	      "fe80::ec0d:9a03:1, firmware 20.31.1014, NUMA node 0\n");
}

static void a_port_of_infiniband_that_is_not_active(void **state)
{
	(void)state;
	here.firmware = "";
	here.port[0] = port(IBV_PORT_INIT, IBV_LINK_LAYER_INFINIBAND, 0);
	here.port[1] = port(IBV_PORT_DOWN, IBV_LINK_LAYER_ETHERNET, 0);
	lists("connectx", "mlx4_0",
	      "mlx4_0/1: InfiniBand, PORT_INIT, 56 Gb/sec, MTU 4096, LID 0, NUMA node 1; the port is "
	      "PORT_INIT, not active; start a subnet manager (opensm) on the fabric\n"
	      "mlx4_0/2: Ethernet, PORT_DOWN, 10 Gb/sec, MTU 4096, NUMA node 1; the port is PORT_DOWN, not "
	      "active; bring its network interface up and see that there is a link\n");
	here.port[0] = port(IBV_PORT_DOWN, IBV_LINK_LAYER_INFINIBAND, 0);
	here.port[1].state = 0;
	lists("connectx", "mlx4_0",
	      "mlx4_0/1: InfiniBand, PORT_DOWN, 56 Gb/sec, MTU 4096, LID 0, NUMA node 1; the port is "
	      "PORT_DOWN, not active; connect the cable and see that the subnet manager runs\n");
}

static void an_active_port_without_a_lid(void **state)
{
	(void)state;
	here.firmware = "";
	here.port[0] = port(IBV_PORT_ACTIVE, IBV_LINK_LAYER_INFINIBAND, 0);
	lists("connectx", "mlx4_0",
	      "mlx4_0/1: InfiniBand, PORT_ACTIVE, 56 Gb/sec, MTU 4096, LID 0, NUMA node 1; the port has no "
	      "LID; see that a subnet manager runs on the fabric\n");
	/* one that is routed by its GID alone needs none */
	here.port[0].flags = IBV_QPF_GRH_REQUIRED;
	lists("connectx", "mlx4_0",
	      "mlx4_0/1: InfiniBand, PORT_ACTIVE, 56 Gb/sec, MTU 4096, LID 0, NUMA node 1\n");
}

static void roce_without_and_with_an_address(void **state)
{
	(void)state;
	here.firmware = "";
	here.port[0] = port(IBV_PORT_ACTIVE, IBV_LINK_LAYER_ETHERNET, 0);
	here.port[0].active_mtu = IBV_MTU_1024;
	lists("soft-roce", "rxe0",
	      "rxe0/1: Ethernet, PORT_ACTIVE, 2.5 Gb/sec, MTU 1024; the port has no GID of a RoCE kind; give "
	      "the device's network interface an IP address (ip address add)\n");
	here.gid[0] = (struct fake_gid){IBV_GID_TYPE_ROCE_V1, "fe80::1"};
	here.gid[1] = (struct fake_gid){IBV_GID_TYPE_ROCE_V2, "::ffff:10.8.0.1"};
	lists("soft-roce", "rxe0",
	      "rxe0/1: Ethernet, PORT_ACTIVE, 2.5 Gb/sec, MTU 1024, GID 1 of 2: RoCE v2 ::ffff:10.8.0.1\n");
}

static void iwarp_needs_no_gid(void **state)
{
	(void)state;
	here.firmware = "1.60";
	here.device.transport_type = IBV_TRANSPORT_IWARP;
	here.port[0] = port(IBV_PORT_ACTIVE, IBV_LINK_LAYER_ETHERNET, 1);
	lists("iwarp", "iwp59s0f0",
	      "iwp59s0f0/1: Ethernet, PORT_ACTIVE, 100 Gb/sec, MTU 4096, firmware 1.60, NUMA node 0\n");
}

static void what_cannot_be_used_at_all(void **state)
{
	(void)state;
	here.firmware = "";
	here.port[0] = port(IBV_PORT_ACTIVE, IBV_LINK_LAYER_INFINIBAND, 17);
	here.device.transport_type = IBV_TRANSPORT_USNIC;
	lists("connectx", "mlx4_0",
	      "mlx4_0/1: InfiniBand, PORT_ACTIVE, 56 Gb/sec, MTU 4096, LID 17, NUMA node 1; the device is "
	      "neither InfiniBand, RoCE nor iWARP; use the library of its own: ofi:usnic, ofi:efa ...\n");
	here.device.transport_type = IBV_TRANSPORT_IB;
	here.cannot_open = EACCES;
	lists("connectx", "mlx4_0",
	      "mlx4_0: ; cannot open /dev/infiniband/uverbs77: Permission denied; give this user read and "
	      "write access to /dev/infiniband/uverbs* (udev rule of rdma-core, group rdma, or the "
	      "container's device list)\n");
}

static void a_device_that_libibverbs_does_not_list(void **state)
{
	struct fixture tree;
	const struct xb_probe_sink sink = {NULL, take_path, take_library};
	struct xb_error error;

	(void)state;
	here.port[0] = port(IBV_PORT_ACTIVE, IBV_LINK_LAYER_INFINIBAND, 17);
	snprintf(here.device.name, sizeof(here.device.name), "mlx5_0");
	told[0] = '\0';
	fixture_open(&tree, "connectx");
	snprintf(devices_of_machine, sizeof(devices_of_machine), "%.400s/class/infiniband", tree.sys);
	assert_int_equal(vb_probe(&sink, &error), XB_OK);
	fixture_close(&tree);
	assert_non_null(strstr(told, "mlx5_0/1: InfiniBand, PORT_ACTIVE"));
	assert_non_null(strstr(told, "mlx4_0: ; libibverbs finds no provider library for it; install "
				     "ibverbs-providers (rdma-core)\n"));
}

static void too_little_locked_memory_for_large_messages(void **state)
{
	(void)state;
	here.firmware = "";
	here.lockable = 8u << 20;
	here.port[0] = port(IBV_PORT_ACTIVE, IBV_LINK_LAYER_INFINIBAND, 17);
	lists("connectx", "mlx4_0",
	      "mlx4_0/1: InfiniBand, PORT_ACTIVE, 56 Gb/sec, MTU 4096, LID 17, NUMA node 1, locked memory "
	      "too "
	      "little for 4 MiB messages (ulimit -l unlimited)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_active_port_of_infiniband, fresh),
		cmocka_unit_test_setup(a_port_of_infiniband_that_is_not_active, fresh),
		cmocka_unit_test_setup(an_active_port_without_a_lid, fresh),
		cmocka_unit_test_setup(roce_without_and_with_an_address, fresh),
		cmocka_unit_test_setup(iwarp_needs_no_gid, fresh),
		cmocka_unit_test_setup(what_cannot_be_used_at_all, fresh),
		cmocka_unit_test_setup(a_device_that_libibverbs_does_not_list, fresh),
		cmocka_unit_test_setup(too_little_locked_memory_for_large_messages, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
#include "no_libibverbs.h"
#endif

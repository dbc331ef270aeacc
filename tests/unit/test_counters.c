/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "fixture.h"
#include "system/sysfs.h"
#include "system/system.h"

#define IB "sys/devices/pci0000:00/0000:81:00.0/infiniband/mlx5_0/ports/1/counters/"
#define IB_OLD "sys/devices/pci0000:00/0000:c1:00.0/infiniband/mlx4_0/ports/1/counters/"
#define OPA "sys/devices/pci0000:00/0000:5e:00.0/infiniband/opap94s0/ports/1/counters/"
#define RXE "sys/devices/virtual/infiniband/rxe0/ports/1/hw_counters/"
#define IWARP "sys/devices/pci0000:00/0000:3b:00.0/infiniband/iwp59s0f0/ports/1/hw_counters/"

static const char header[] =
	"Inter-|   Receive                                                |  Transmit\n"
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
	"fifo colls carrier compressed\n";

/* One line of /proc/net/dev. */
static void add_netdev(char *text, size_t capacity, const char *name, uint64_t rx, uint64_t tx)
{
	size_t used = strlen(text);

	snprintf(text + used, capacity - used,
		 "%6s: %7llu       9    0    0    0     0          0         0 %8llu       7    "
		 "0    0    0     0       0          0\n",
		 name, (unsigned long long)rx, (unsigned long long)tx);
}

static void write_netdevs(const struct fixture *fixture, const char *lines)
{
	char text[4096];

	snprintf(text, sizeof(text), "%s%s", header, lines);
	fixture_write(fixture, "proc/net/dev", text);
}

static const struct xb_counter_delta *of_device(const struct xb_counter_delta *delta, size_t count,
						const char *device)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(delta[i].device, device) == 0)
			return &delta[i];
	}
	return NULL;
}

static void nothing_happened_nothing_is_reported(void **state)
{
	static const char *const machines[] = {"connectx", "omnipath", "soft-roce", "iwarp", "ethernet"};

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct fixture machine;
		struct xb_counter_delta delta[8];
		struct xb_counters *c;

		fixture_open(&machine, machines[i]);
		c = xb_counters_open(machine.sys);
		assert_non_null(c);
		assert_int_equal(xb_counters_since_mark(c, delta, 8), 0); /* no mark yet: nothing is known */
		xb_counters_mark(c);
		assert_int_equal(xb_counters_since_mark(c, delta, 8), 0);
		xb_counters_close(c);
		fixture_close(&machine);
	}
}

static void infiniband_words_are_four_bytes(void **state)
{
	struct fixture machine;
	struct xb_counter_delta delta[8];
	struct xb_counters *c;

	(void)state;
	fixture_open(&machine, "connectx");
	c = xb_counters_open(machine.sys);
	xb_counters_mark(c);
	fixture_write(&machine, IB "port_xmit_data", "913456790012\n");
	fixture_write(&machine, IB "port_rcv_data", "897654321598\n");
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 1);
	assert_string_equal(delta[0].device, "mlx5_0/1");
	assert_string_equal(delta[0].kind, "rdma");
	assert_int_equal(delta[0].tx_bytes, 4000);
	assert_int_equal(delta[0].rx_bytes, 2000);
	assert_int_equal(delta[0].tx_packets + delta[0].rx_packets, 0);
	xb_counters_close(c);
	fixture_close(&machine);
}

static void omnipath_counts_flits_of_eight_bytes_under_any_name(void **state)
{
	struct fixture machine;
	struct xb_counter_delta delta[8];
	struct xb_counters *c;

	(void)state;
	fixture_open(&machine, "omnipath");
	c = xb_counters_open(machine.sys);
	xb_counters_mark(c);
	fixture_write(&machine, OPA "port_xmit_data", "700000125\n");
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 1);
	assert_string_equal(delta[0].device, "opap94s0/1");
	assert_int_equal(delta[0].tx_bytes, 1000);
	xb_counters_close(c);
	fixture_close(&machine);
}

static void soft_roce_has_packets_and_no_bytes(void **state)
{
	struct fixture machine;
	struct xb_counter_delta delta[8];
	struct xb_counters *c;

	(void)state;
	fixture_open(&machine, "soft-roce");
	c = xb_counters_open(machine.sys);
	xb_counters_mark(c);
	fixture_write(&machine, RXE "sent_pkts", "2200\n");
	fixture_write(&machine, RXE "rcvd_pkts", "2201\n");
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 1);
	assert_string_equal(delta[0].device, "rxe0/1");
	assert_int_equal(delta[0].tx_bytes + delta[0].rx_bytes, 0);
	assert_int_equal(delta[0].tx_packets, 200);
	assert_int_equal(delta[0].rx_packets, 201);
	xb_counters_close(c);
	fixture_close(&machine);
}

static void iwarp_sums_both_versions_of_ip(void **state)
{
	struct fixture machine;
	struct xb_counter_delta delta[8];
	struct xb_counters *c;

	(void)state;
	fixture_open(&machine, "iwarp");
	c = xb_counters_open(machine.sys);
	xb_counters_mark(c);
	fixture_write(&machine, IWARP "ip4OutOctets", "2000100\n");
	fixture_write(&machine, IWARP "ip6OutOctets", "40050\n");
	fixture_write(&machine, IWARP "ip6InOctets", "30007\n");
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 1);
	assert_string_equal(delta[0].device, "iwp59s0f0/1");
	assert_int_equal(delta[0].tx_bytes, 150);
	assert_int_equal(delta[0].rx_bytes, 7);
	assert_true(xb_counters_know(c, "iwp59s0f0:1"));
	assert_false(xb_counters_know(c, "iwp175s0/1")); /* cxgb4 */
	xb_counters_close(c);
	fixture_close(&machine);
}

static void interfaces_are_told_from_the_loopback_and_the_busiest_is_first(void **state)
{
	struct fixture machine;
	struct xb_counter_delta delta[8];
	struct xb_counters *c;
	char lines[2048] = "";

	(void)state;
	fixture_open(&machine, "soft-roce");
	c = xb_counters_open(machine.sys);
	xb_counters_mark(c);
	add_netdev(lines, sizeof(lines), "lo", 5220, 5220);
	add_netdev(lines, sizeof(lines), "eth0", 10485760, 524288);
	add_netdev(lines, sizeof(lines), "v0", 900001, 910003);
	add_netdev(lines, sizeof(lines), "v1", 1910000, 900000);
	write_netdevs(&machine, lines);
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 3);
	assert_string_equal(delta[0].device, "v1");
	assert_string_equal(delta[0].kind, "netdev");
	assert_int_equal(delta[0].rx_bytes, 1000000);
	assert_string_equal(delta[1].device, "lo");
	assert_string_equal(delta[1].kind, "loopback");
	assert_string_equal(delta[2].device, "v0");
	assert_int_equal(delta[2].rx_bytes, 1);
	assert_int_equal(delta[2].tx_bytes, 3);
	assert_int_equal(xb_counters_since_mark(c, delta, 1), 1); /* room for one: the busiest */
	assert_string_equal(delta[0].device, "v1");
	assert_int_equal(xb_counters_since_mark(c, delta, 0), 0);
	xb_counters_close(c);
	fixture_close(&machine);
}

static void a_32_bit_count_wraps_around(void **state)
{
	struct fixture machine;
	struct xb_counter_delta delta[8];
	struct xb_counters *c;

	(void)state;
	fixture_open(&machine, "connectx");
	c = xb_counters_open(machine.sys);
	xb_counters_mark(c); /* 4294960000 words, 7296 below the wrap */
	fixture_write(&machine, IB_OLD "port_xmit_data", "4\n");
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 1);
	assert_string_equal(delta[0].device, "mlx4_0/1");
	assert_int_equal(delta[0].tx_bytes, 4 * 7300);
	xb_counters_close(c);
	fixture_close(&machine);
}

static void a_count_that_begins_anew_is_not_a_wrap(void **state)
{
	struct fixture machine;
	struct xb_counter_delta delta[8];
	struct xb_counters *c;
	char lines[2048] = "";

	(void)state;
	fixture_open(&machine, "ethernet");
	c = xb_counters_open(machine.sys);
	xb_counters_mark(c);
	add_netdev(lines, sizeof(lines), "eth0", 500, 300); /* was 2^40 and 2^39: 64 bits do not wrap */
	add_netdev(lines, sizeof(lines), "veth1a2b3c4", 40,
		   2000); /* was 3000: across the wrap it would be 4 GB */
	add_netdev(lines, sizeof(lines), "enp129s0f0np0v1", 10,
		   1000); /* was just below 2^32: that one wrapped */
	write_netdevs(&machine, lines);
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 3);
	assert_int_equal(of_device(delta, 3, "eth0")->rx_bytes, 500);
	assert_int_equal(of_device(delta, 3, "eth0")->tx_bytes, 300);
	assert_int_equal(of_device(delta, 3, "veth1a2b3c4")->rx_bytes, 40);
	assert_int_equal(of_device(delta, 3, "veth1a2b3c4")->tx_bytes, 2000);
	assert_int_equal(of_device(delta, 3, "enp129s0f0np0v1")->rx_bytes, 16);
	assert_int_equal(of_device(delta, 3, "enp129s0f0np0v1")->tx_bytes, 1296);
	xb_counters_close(c);
	fixture_close(&machine);
}

static void interfaces_come_and_go(void **state)
{
	struct fixture machine;
	struct xb_counter_delta delta[8];
	struct xb_counters *c;
	char first[2048] = "", second[2048] = "", third[2048] = "";

	(void)state;
	fixture_empty(&machine);
	add_netdev(first, sizeof(first), "lo", 1, 1);
	add_netdev(first, sizeof(first), "gone0", 1000, 1000);
	add_netdev(first, sizeof(first), "eth0", 10, 10);
	write_netdevs(&machine, first);
	c = xb_counters_open(machine.sys);
	xb_counters_mark(c);
	add_netdev(second, sizeof(second), "lo", 1, 1);
	add_netdev(second, sizeof(second), "eth0", 20, 40);
	add_netdev(second, sizeof(second), "new0", 999999, 999999);
	write_netdevs(&machine, second);
	/* what new0 carried before it came here is not known, and gone0 says nothing any more */
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 1);
	assert_string_equal(delta[0].device, "eth0");
	assert_int_equal(delta[0].tx_bytes, 30);
	xb_counters_mark(c);
	add_netdev(third, sizeof(third), "new0", 1000000, 999999);
	write_netdevs(&machine, third);
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 1);
	assert_string_equal(delta[0].device, "new0");
	assert_int_equal(delta[0].rx_bytes, 1);
	xb_counters_close(c);
	fixture_close(&machine);
}

static void a_port_that_vanishes_is_left_out(void **state)
{
	struct fixture machine;
	struct xb_counter_delta delta[8];
	struct xb_counters *c;

	(void)state;
	fixture_open(&machine, "connectx");
	c = xb_counters_open(machine.sys);
	xb_counters_mark(c);
	fixture_write(&machine, IB "port_xmit_data", ""); /* as a read of a removed sysfs file: no data */
	fixture_write(&machine, IB_OLD "port_xmit_data", "4294960010\n");
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 1);
	assert_string_equal(delta[0].device, "mlx4_0/1");
	xb_counters_close(c);
	fixture_close(&machine);
}

static void hundreds_of_interfaces_take_one_descriptor(void **state)
{
	static struct xb_counter_delta delta[1000];
	struct fixture machine;
	struct xb_counters *c = NULL;
	struct rlimit before, few;
	char *text = calloc(1, 1 << 20), name[16];

	(void)state;
	fixture_empty(&machine);
	for (int round = 0; round < 2; round++) {
		strcpy(text, header);
		for (int i = 0; i < 900; i++) {
			snprintf(name, sizeof(name), "veth%x", 0x1000 + i * 37);
			add_netdev(text, 1 << 20, name, 1000 + (uint64_t)round * (uint64_t)i, 5);
		}
		fixture_write(&machine, "proc/net/dev", text);
		if (round == 0) {
			assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
			few = before;
			few.rlim_cur = 32;
			assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
			c = xb_counters_open(machine.sys);
			xb_counters_mark(c);
			assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		}
	}
	assert_int_equal(xb_counters_since_mark(c, delta, 1000), 899);
	assert_int_equal(delta[0].rx_bytes, 899);
	assert_int_equal(delta[898].rx_bytes, 1);
	xb_counters_close(c);
	free(text);
	fixture_close(&machine);
}

static void hostile_text_is_passed_over(void **state)
{
	struct fixture machine;
	struct xb_counter_delta delta[8];
	struct xb_counters *c;

	(void)state;
	fixture_open(&machine, "connectx");
	c = xb_counters_open(machine.sys);
	write_netdevs(&machine,
		      ":::::\n eth0: 12\n    : 1 2 3 4 5 6 7 8 9\nnocolon\n"
		      "eth1: a b c d e f g h "
		      "i\nthisnameislongerthananyinterfacecouldpossiblybeinthiskernelorthenext: 1 2 3 "
		      "4 5 6 7 8 9 0\n eth2: 99999999999999999999999999 1 1 1 1 1 1 1 5 1");
	fixture_write(&machine, IB "port_xmit_data", "N/A (no PMA)\n");
	xb_counters_mark(c);
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 0);
	xb_counters_close(c);
	fixture_close(&machine);
}

static void a_machine_without_anything_has_no_counters(void **state)
{
	struct fixture machine;
	struct xb_counter_delta delta[8];
	struct xb_counters *c;

	(void)state;
	fixture_empty(&machine);
	c = xb_counters_open(machine.sys);
	assert_non_null(c);
	xb_counters_mark(c);
	assert_int_equal(xb_counters_since_mark(c, delta, 8), 0);
	xb_counters_close(c);
	xb_counters_close(NULL);
	fixture_close(&machine);
}

/* Sends itself `bytes` in one datagram over the loopback. */
static int send_over_loopback(size_t bytes)
{
	static char payload[60000];
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int s = socket(AF_INET, SOCK_DGRAM, 0), ok;

	ok = s >= 0 && bind(s, (struct sockaddr *)&address, length) == 0 &&
	     getsockname(s, (struct sockaddr *)&address, &length) == 0 &&
	     sendto(s, payload, bytes, 0, (struct sockaddr *)&address, length) == (ssize_t)bytes &&
	     recv(s, payload, bytes, 0) == (ssize_t)bytes;
	close(s);
	return ok;
}

static void the_loopback_of_this_machine_counts(void **state)
{
	struct xb_counter_delta delta[64];
	const struct xb_counter_delta *lo;
	struct xb_counters *c = xb_counters_open("/sys");

	(void)state;
	xb_counters_mark(c);
	if (!send_over_loopback(50000))
		skip();
	lo = of_device(delta, xb_counters_since_mark(c, delta, 64), "lo");
	assert_non_null(lo);
	assert_string_equal(lo->kind, "loopback");
	assert_true(lo->tx_bytes >= 50000 && lo->rx_bytes >= 50000);
	xb_counters_close(c);
}

/* /sys is still that of the namespace before: only a namespace of its own has a silent loopback. */
static void counters_are_those_of_the_own_network_namespace(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		struct xb_counter_delta delta[8];
		struct xb_counters *c;
		size_t others;

		if (unshare(CLONE_NEWNET))
			_exit(77);
		c = xb_counters_open("/sys");
		xb_counters_mark(c);
		others = xb_counters_since_mark(c, delta, 8);
		xb_counters_close(c);
		_exit(others == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void devices_are_recognised_by_what_transports_call_them(void **state)
{
	(void)state;
	assert_true(xb_counter_is_device("eth0", "eth0"));
	assert_true(xb_counter_is_device("mlx5_0/1", "mlx5_0"));
	assert_true(xb_counter_is_device("mlx5_0/1", "mlx5_0/1"));
	assert_true(xb_counter_is_device("mlx5_0/1", "mlx5_0:1"));
	assert_false(xb_counter_is_device("mlx5_0/1", "mlx5_0:2"));
	assert_false(xb_counter_is_device("mlx5_10/1", "mlx5_1"));
	assert_false(xb_counter_is_device("eth0", "eth"));
	assert_false(xb_counter_is_device("eth0", "eth0:1"));
	assert_false(xb_counter_is_device("eth0.7", "eth0"));
}

static void link_rates_of_interfaces(void **state)
{
	struct fixture machine;

	(void)state;
	fixture_open(&machine, "ethernet");
	assert_int_equal(xb_link_rate_bits(machine.sys, "eth0"), 10000000000);
	assert_int_equal(xb_link_rate_bits(machine.sys, "bond0"), 20000000000);
	assert_int_equal(xb_link_rate_bits(machine.sys, "bond0.7"), 20000000000);
	assert_int_equal(xb_link_rate_bits(machine.sys, "eth1"), 0); /* down: -1 */
	assert_int_equal(xb_link_rate_bits(machine.sys, "enp129s0f0np0v1"), 0); /* unknown: 2^32-1 */
	assert_int_equal(xb_link_rate_bits(machine.sys, "veth1a2b3c4"), 0); /* made up */
	assert_int_equal(xb_link_rate_bits(machine.sys, "docker0"), 0);
	assert_int_equal(xb_link_rate_bits(machine.sys, "tun0"), 0);
	assert_int_equal(xb_link_rate_bits(machine.sys, "lo"), 0);
	assert_int_equal(xb_link_rate_bits(machine.sys, "nowhere"), 0);
	assert_int_equal(xb_link_rate_bits(machine.sys, ""), 0);
	assert_int_equal(xb_link_rate_bits(machine.sys, "../net/eth0"), 0);
	assert_int_equal(xb_link_rate_bits(machine.sys, "bonding_masters"), 0);
	fixture_close(&machine);
}

static void link_rates_of_rdma_ports(void **state)
{
	struct fixture machine;

	(void)state;
	fixture_open(&machine, "connectx");
	assert_int_equal(xb_link_rate_bits(machine.sys, "mlx5_0"), 200000000000);
	assert_int_equal(xb_link_rate_bits(machine.sys, "mlx5_0/1"), 200000000000);
	assert_int_equal(xb_link_rate_bits(machine.sys, "mlx4_0:1"), 56000000000);
	assert_int_equal(xb_link_rate_bits(machine.sys, "mlx4_0/2"), 10000000000);
	assert_int_equal(xb_link_rate_bits(machine.sys, "mlx4_0/3"), 0);
	assert_int_equal(xb_link_rate_bits(machine.sys, "mlx4_0/"), 0);
	assert_int_equal(xb_link_rate_bits(machine.sys, "mlx4_0/x"), 0);
	fixture_close(&machine);
	fixture_open(&machine, "omnipath");
	assert_int_equal(xb_link_rate_bits(machine.sys, "opap94s0"), 100000000000);
	fixture_close(&machine);
	fixture_open(&machine, "soft-roce");
	assert_int_equal(xb_link_rate_bits(machine.sys, "rxe0"), 0); /* over veth: no rate to compare with */
	fixture_write(&machine, "sys/devices/virtual/infiniband/rxe1/parent", "eth0\n");
	fixture_write(&machine, "sys/devices/pci0000:00/0000:00:03.0/net/eth0/speed", "25000\n");
	assert_int_equal(xb_link_rate_bits(machine.sys, "rxe1/1"), 25000000000);
	fixture_close(&machine);
}

/* an RDMA MTU is a power of two that leaves room for the headers */
static void the_mtu_of_roce_follows_from_that_of_its_interface(void **state)
{
	static const int expected[][2] = {{0, 0},	{351, 0},     {352, 256},   {1119, 512},
					  {1120, 1024}, {1500, 1024}, {2200, 2048}, {4191, 2048},
					  {4192, 4096}, {9000, 4096}, {65536, 4096}};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(xb_link_roce_mtu(expected[i][0]), expected[i][1]);
}

#define NDEVS "sys/devices/virtual/infiniband/rxe0/ports/1/gid_attrs/ndevs/"

static void set_mtu(const char *interface, int mtu)
{
	struct ifreq request = {.ifr_mtu = mtu};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	strcpy(request.ifr_name, interface);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCSIFMTU, &request), 0);
	close(fd);
}

static void the_mtu_of_a_port_is_that_of_its_interface(void **state)
{
	struct fixture machine;
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	(void)state;
	if (home < 0 || unshare(CLONE_NEWNET))
		skip(); /* elsewhere the loopback interface must keep its MTU */
	fixture_open(&machine, "soft-roce");
	set_mtu("lo", 1500);
	assert_int_equal(xb_link_mtu(machine.sys, "lo"), 1500);
	assert_int_equal(xb_link_mtu(machine.sys, "nowhere"), 0);
	assert_int_equal(xb_link_mtu(machine.sys, "../net/lo"), 0);
	assert_int_equal(xb_link_mtu(machine.sys, "rxe0/1"), 0); /* no interface is told */
	/* a free entry of the table: reading it fails, as reading a folder does */
	fixture_write(&machine, NDEVS "0/x", "");
	fixture_write(&machine, NDEVS "1", "lo\n");
	assert_int_equal(xb_link_mtu(machine.sys, "rxe0/1"), 1024);
	set_mtu("lo", 4200);
	assert_int_equal(xb_link_mtu(machine.sys, "rxe0:1"), 4096);
	assert_int_equal(xb_link_mtu(machine.sys, "rxe0"), 4096);
	assert_int_equal(xb_link_mtu(machine.sys, "rxe0/2"), 0);
	fixture_write(&machine, NDEVS "1", "elsewhere\n"); /* an interface of another namespace */
	assert_int_equal(xb_link_mtu(machine.sys, "rxe0"), 0);
	fixture_close(&machine);
	assert_int_equal(setns(home, CLONE_NEWNET), 0);
	close(home);
}

static void numa_node_and_cache_of_a_cpu(void **state)
{
	struct fixture machine;

	(void)state;
	fixture_open(&machine, "connectx");
	assert_int_equal(xb_sysfs_numa_of_cpu(machine.root, 2), 0);
	assert_int_equal(xb_sysfs_numa_of_cpu(machine.root, 3), 1);
	assert_int_equal(xb_sysfs_numa_of_cpu(machine.root, 4), -1);
	assert_int_equal(xb_sysfs_cache_of_cpu(machine.root, 0), 49152 * 1024);
	assert_int_equal(xb_sysfs_cache_of_cpu(machine.root, 4), 0);
	fixture_close(&machine);
	assert_int_equal(xb_topology_numa_of_cpu(-1), -1);
}

static void this_host_describes_itself(void **state)
{
	json_t *host = xb_host_describe();
	static const char *const texts[] = {"name", "kernel", "cpu", "boot_id"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_true(json_string_length(json_object_get(host, texts[i])) > 0);
	assert_true(json_integer_value(json_object_get(host, "cpus")) >= 1);
	assert_true(json_integer_value(json_object_get(host, "numa_nodes")) >= 1);
	assert_true(json_integer_value(json_object_get(host, "memory_MB")) > 100);
	assert_true(json_is_string(json_object_get(host, "governor")) ||
		    json_is_null(json_object_get(host, "governor")));
	assert_true(strspn(json_string_value(json_object_get(host, "netns")), "0123456789") ==
		    json_string_length(json_object_get(host, "netns")));
	json_decref(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_happened_nothing_is_reported),
		cmocka_unit_test(infiniband_words_are_four_bytes),
		cmocka_unit_test(omnipath_counts_flits_of_eight_bytes_under_any_name),
		cmocka_unit_test(soft_roce_has_packets_and_no_bytes),
		cmocka_unit_test(iwarp_sums_both_versions_of_ip),
		cmocka_unit_test(interfaces_are_told_from_the_loopback_and_the_busiest_is_first),
		cmocka_unit_test(a_32_bit_count_wraps_around),
		cmocka_unit_test(a_count_that_begins_anew_is_not_a_wrap),
		cmocka_unit_test(interfaces_come_and_go),
		cmocka_unit_test(a_port_that_vanishes_is_left_out),
		cmocka_unit_test(hundreds_of_interfaces_take_one_descriptor),
		cmocka_unit_test(hostile_text_is_passed_over),
		cmocka_unit_test(a_machine_without_anything_has_no_counters),
		cmocka_unit_test(the_loopback_of_this_machine_counts),
		cmocka_unit_test(counters_are_those_of_the_own_network_namespace),
		cmocka_unit_test(devices_are_recognised_by_what_transports_call_them),
		cmocka_unit_test(link_rates_of_interfaces),
		cmocka_unit_test(link_rates_of_rdma_ports),
		cmocka_unit_test(the_mtu_of_roce_follows_from_that_of_its_interface),
		cmocka_unit_test(the_mtu_of_a_port_is_that_of_its_interface),
		cmocka_unit_test(numa_node_and_cache_of_a_cpu),
		cmocka_unit_test(this_host_describes_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi:PATH as flags of mpirun: each path exactly, and every way to write one wrongly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "launch/launcher.h"
#include "launch/mpi_path.h"

#define CAPACITY 32u

static void release(char **argv, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(argv[i]);
}

/* The flags of a path, joined by spaces. */
static void assert_flags(const char *path, const char *expected)
{
	struct xb_error error = {0};
	char *argv[CAPACITY] = {0}, joined[512] = "";
	size_t count = 0;

	assert_int_equal(xb_mpirun_path_flags(path, argv, CAPACITY, &count, &error), XB_OK);
	for (size_t i = 0; i < count; i++) {
		strcat(joined, i ? " " : "");
		strcat(joined, argv[i]);
	}
	assert_string_equal(joined, expected);
	release(argv, count);
}

static void each_path_becomes_its_flags(void **state)
{
	(void)state;
	assert_flags("", "");
	assert_flags("tcp", "--mca pml ob1 --mca btl self,tcp --mca osc ^ucx");
	assert_flags("tcp/eth0",
		     "--mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include eth0 --mca osc ^ucx");
	assert_flags("tcp/10.1.0.0/16",
		     "--mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include 10.1.0.0/16 --mca osc ^ucx");
	assert_flags("shm", "--mca pml ob1 --mca btl self,vader --mca osc ^ucx,pt2pt");
	assert_flags(
		"ucx",
		"--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca osc ^rdma,pt2pt,sm");
	assert_flags("ucx/rc", "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca osc "
			       "^rdma,pt2pt,sm -x UCX_TLS=rc,self");
	assert_flags("ucx/posix+cma",
		     "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca osc "
		     "^rdma,pt2pt,sm -x UCX_TLS=posix,cma,self");
	assert_flags("ucx/rc/mlx5_0:1",
		     "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca osc "
		     "^rdma,pt2pt,sm -x UCX_TLS=rc,self -x UCX_NET_DEVICES=mlx5_0:1");
	assert_flags("ucx/rc_verbs+posix+rc_mlx5",
		     "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca osc "
		     "^rdma,pt2pt,sm -x UCX_TLS=rc_verbs,ud_verbs:aux,posix,rc_mlx5,ud_mlx5:aux,self");
	assert_flags("ucx/dc_mlx5", "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca osc "
				    "^rdma,pt2pt,sm -x UCX_TLS=dc_mlx5,ud_mlx5:aux,self");
	/* as long as it may be */
	assert_flags("ucx/rc_mlx5+rc_mlx5+rc_mlx5+rc_mlx5+rc_mlx5+rc_mlx5+rc_mlx5+rc_mlx5",
		     "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca osc "
		     "^rdma,pt2pt,sm -x UCX_TLS=rc_mlx5,ud_mlx5:aux,rc_mlx5,ud_mlx5:aux,rc_mlx5,ud_mlx5:aux,"
		     "rc_mlx5,ud_mlx5:aux,rc_mlx5,ud_mlx5:aux,rc_mlx5,ud_mlx5:aux,rc_mlx5,ud_mlx5:aux,"
		     "rc_mlx5,ud_mlx5:aux,self");
	assert_flags("ofi",
		     "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_exclude none --mca osc ^ucx,rdma");
	assert_flags("ofi/psm2",
		     "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include psm2 --mca osc ^ucx,rdma");
	assert_flags("psm2", "--mca pml cm --mca mtl psm2 --mca osc ^ucx,rdma");
}

static void a_layered_provider_is_asked_for_by_its_first_part(void **state)
{
	(void)state;
	assert_flags("ofi/tcp;ofi_rxm",
		     "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include tcp --mca osc ^ucx,rdma");
}

static void flags_are_appended(void **state)
{
	char *argv[CAPACITY] = {"mpirun", "-np"};
	struct xb_error error = {0};
	size_t count = 2;

	(void)state;
	assert_int_equal(xb_mpirun_path_flags("psm2", argv, CAPACITY, &count, &error), XB_OK);
	assert_string_equal(argv[1], "-np");
	assert_string_equal(argv[2], "--mca");
	assert_int_equal(count, 2 + 9);
	release(argv + 2, count - 2);
}

static void what_is_not_a_path_is_refused_with_the_list(void **state)
{
	static const char *const bad[] = {
		"verbs",     "tcp/",	    "/tcp",	      "tcp//eth0",	 "tcpx",
		"TCP",	     "shm/eth0",    "psm2/hfi1_0",    "ucx/rc/mlx5_0/1", "ofi/tcp/eth0",
		"ucx//eth0", "tcp/eth0/16", "tcp/10.0.0.0/x", "tcp/-x",		 "tcp/a b",
		"tcp/$(id)", "ucx/a,b",	    "ofi/'x'",	      "tcp/\n",		 "ucx/rc=1",
		" tcp",	     "-x"};
	char long_name[200] = "tcp/";

	(void)state;
	memset(long_name + 4, 'e', sizeof long_name - 5);
	long_name[sizeof long_name - 1] = '\0';
	for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
		const char *path = i < sizeof bad / sizeof *bad ? bad[i] : long_name;
		struct xb_error error = {0};
		char *argv[CAPACITY] = {0};
		size_t count = 0;

		if (xb_mpirun_path_flags(path, argv, CAPACITY, &count, &error) != XB_E_USAGE)
			fail_msg("\"%s\" was taken", path);
		assert_int_equal(count, 0);
		assert_non_null(strstr(error.text, path));
		assert_non_null(strstr(error.text, "ucx[/TLS[/DEVICE]]"));
	}
}

static void too_little_room_leaves_nothing_behind(void **state)
{
	(void)state;
	for (size_t capacity = 0; capacity < 9; capacity++) {
		struct xb_error error = {0};
		char *argv[CAPACITY] = {0};
		size_t count = 0;

		assert_int_equal(xb_mpirun_path_flags("psm2", argv, capacity, &count, &error), XB_E_RESOURCE);
		assert_int_equal(count, 0);
		for (size_t i = 0; i < CAPACITY; i++)
			assert_null(argv[i]);
	}
}

static void the_parts_of_a_path_are_told_apart(void **state)
{
	struct xb_mpi_path path;
	struct xb_error error = {0};

	(void)state;
	assert_int_equal(xb_mpi_path_parse("ucx/rc+ud/mlx5_0:1", &path, &error), XB_OK);
	assert_int_equal(path.route, XB_MPI_UCX);
	assert_string_equal(path.first, "rc+ud");
	assert_string_equal(path.second, "mlx5_0:1");
	assert_int_equal(xb_mpi_path_parse("", &path, &error), XB_OK);
	assert_int_equal(path.route, XB_MPI_ANY);
	assert_string_equal(path.first, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_path_becomes_its_flags),
		cmocka_unit_test(a_layered_provider_is_asked_for_by_its_first_part),
		cmocka_unit_test(flags_are_appended),
		cmocka_unit_test(what_is_not_a_path_is_refused_with_the_list),
		cmocka_unit_test(too_little_room_leaves_nothing_behind),
		cmocka_unit_test(the_parts_of_a_path_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

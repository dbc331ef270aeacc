/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory of killed workers: what is removed, and what is not touched. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/leftovers.h"

static char folder[64];

static int make(const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	int fd = open(path, O_CREAT | O_RDWR, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	return fd;
}

static int there(const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return !access(path, F_OK);
}

static void drop(const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	unlink(path);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/dev/shm/xb-test-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(folder);
}

static void test_orphans_go(void **state)
{
	(void)state;
	close(make("ucx_shm_posix_1"));
	close(make("psm2_shm.2"));
	assert_int_equal(xb_leftovers_remove_files(folder, (int64_t)time(NULL) - 1, 0), 2);
	assert_false(there("ucx_shm_posix_1") || there("psm2_shm.2"));
}

static void test_others_stay(void **state)
{
	(void)state;
	int open_fd = make("ucx_shm_posix_open"), mapped_fd = make("ucx_shm_posix_mapped");
	void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mapped_fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	close(mapped_fd);
	close(make("somebody_elses"));
	assert_int_equal(xb_leftovers_remove_files(folder, (int64_t)time(NULL) - 1, 0), 0);
	assert_true(there("ucx_shm_posix_open") && there("ucx_shm_posix_mapped") && there("somebody_elses"));
	close(open_fd);
	munmap(map, 4096);
	/* older than the team, or too young to be sure */
	assert_int_equal(xb_leftovers_remove_files(folder, (int64_t)time(NULL) + 10, 0), 0);
	assert_int_equal(xb_leftovers_remove_files(folder, (int64_t)time(NULL) - 10, 3600000), 0);
	assert_int_equal(xb_leftovers_remove_files(folder, (int64_t)time(NULL) - 10, 0), 2);
	drop("somebody_elses");
}

static void test_no_folder(void **state)
{
	(void)state;
	assert_int_equal(xb_leftovers_remove_files("/nonexistent", 0, 0), 0);
}

static void test_files_named_by_their_maker(void **state)
{
	const int pids[] = {4711, 4712};
	(void)state;
	close(make("4711:0:0"));
	close(make("4712:0:1_x"));
	close(make("47112:0:0"));
	close(make("4713:0:0"));
	close(make("4711_0"));
	close(make("x4711:0:0"));
	assert_int_equal(xb_leftovers_remove_named(folder, pids, 2, (int64_t)time(NULL) + 10), 0);
	assert_int_equal(xb_leftovers_remove_named(folder, pids, 2, (int64_t)time(NULL) - 1), 2);
	assert_false(there("4711:0:0") || there("4712:0:1_x"));
	assert_true(there("47112:0:0") && there("4713:0:0") && there("4711_0") && there("x4711:0:0"));
	drop("47112:0:0");
	drop("4713:0:0");
	drop("4711_0");
	drop("x4711:0:0");
	assert_int_equal(xb_leftovers_remove_named("/nonexistent", pids, 2, 0), 0);
}

static int segments_of(int pid)
{
	struct shm_info info;
	struct shmid_ds segment;
	int found = 0, highest = shmctl(0, SHM_INFO, (struct shmid_ds *)&info);

	for (int i = 0; i <= highest; i++)
		found += shmctl(i, SHM_STAT, &segment) >= 0 && segment.shm_cpid == pid;
	return found;
}

static void test_sysv(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (!pid)
		_exit(shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) < 0);
	int status = -1, nobody = 1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(segments_of(pid), 1);
	assert_int_equal(xb_leftovers_remove_sysv(&nobody, 1), 0);
	assert_int_equal(segments_of(pid), 1);
	assert_int_equal(xb_leftovers_remove_sysv(&pid, 1), 1);
	assert_int_equal(segments_of(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_orphans_go, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_others_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_files_named_by_their_maker, set_up, tear_down),
		cmocka_unit_test(test_no_folder),
		cmocka_unit_test(test_sysv),
	};
	return cmocka_run_group_tests_name("leftovers", tests, NULL, NULL);
}

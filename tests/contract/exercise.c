/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conformance driver of the transport contract: brings up endpoints of one plugin in processes of their own,
 * runs blocks of the real engine over every pair and says what came out. What a backend's author runs all
 * day, and CI at the end.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exercise.h"

static int fork_all(const struct options *o)
{
	const uint32_t mine = o->listen ? 1 : o->endpoints; /* on this host */
	int64_t deadline_ms = oob_now_ms() + (o->timeout_s + 4) * 1000;
	int fds[OOB_MOST_ENDPOINTS], failed = 0, served;
	pid_t pids[OOB_MOST_ENDPOINTS];

	fflush(NULL);
	if (o->listen && remote_serve(o->listen, o->endpoints, deadline_ms, fds))
		return 1;
	for (uint32_t e = 0; e < mine; e++) {
		int pair[2];
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) || (pids[e] = fork()) < 0) {
			perror("exercise");
			return 2;
		}
		if (pids[e] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(pair[0]);
			for (uint32_t i = 0; i < e; i++)
				close(fds[i]);
			exit(side_run(o, e, o->endpoints, pair[1]));
		}
		close(pair[1]);
		fds[e] = pair[0];
	}
	served = oob_serve(fds, o->endpoints, deadline_ms);
	if (served) {
		failed = 1;
		fprintf(stderr, "exercise: %s; ending the endpoints\n",
			served == -2 ? "out of time" : "an endpoint has left while others go on");
		for (uint32_t e = 0; e < mine; e++)
			kill(pids[e], SIGTERM);
	}
	for (uint32_t e = 0; e < o->endpoints; e++)
		close(fds[e]);
	int64_t end = oob_now_ms() + 5000;
	for (uint32_t e = 0; e < mine; e++) {
		int status = 0;
		while (waitpid(pids[e], &status, WNOHANG) == 0) {
			if (oob_now_ms() > end) {
				fprintf(stderr, "exercise: endpoint %" PRIu32 " does not end; killed\n", e);
				kill(pids[e], SIGKILL);
				waitpid(pids[e], &status, 0);
				break;
			}
			usleep(2000);
		}
		if (WIFSIGNALED(status))
			fprintf(stderr, "exercise: endpoint %" PRIu32 " ended by signal %d (%s)\n", e,
				WTERMSIG(status), strsignal(WTERMSIG(status)));
		if (status)
			failed = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_HERE && failed != 1
					 ? EXIT_NOT_HERE
					 : 1;
	}
	return failed;
}

static long from_environment(const char *const *names)
{
	for (; *names; names++) {
		const char *value = getenv(*names);
		if (value)
			return strtol(value, NULL, 10);
	}
	return -1;
}

/* The last rank to leave removes the files: the others may still have to read those of the last exchange. */
static void clean_folder(const char *folder, long rank, long count)
{
	char name[512];

	snprintf(name, sizeof name, "%s/left.%ld", folder, rank);
	FILE *left = fopen(name, "we");
	if (left)
		fclose(left);
	for (long r = 0; r < count; r++) {
		snprintf(name, sizeof name, "%s/left.%ld", folder, r);
		if (access(name, F_OK))
			return;
	}
	for (long r = 0; r < count; r++) {
		int missing = 0;
		for (unsigned step = 0; !missing; step++) {
			snprintf(name, sizeof name, "%s/%u.%ld", folder, step, r);
			missing = unlink(name);
		}
		snprintf(name, sizeof name, "%s/left.%ld", folder, r);
		unlink(name);
	}
	rmdir(folder);
}

static int run_rank(struct options *o)
{
	static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
	static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL};
	static char folder[256];
	long rank = from_environment(ranks), count = from_environment(counts);

	if (rank < 0 || count < 2 || count > OOB_MOST_ENDPOINTS) {
		fprintf(stderr, "exercise: --mpi must be started by mpirun -np 2 ... %u\n",
			OOB_MOST_ENDPOINTS);
		return 2;
	}
	if (!o->folder) {
		/* ranks of one host are children of one launcher process */
		snprintf(folder, sizeof folder, "/tmp/xb-exercise-%ld", (long)getppid());
		o->folder = folder;
	}
	mkdir(o->folder, 0700);
	int status = side_run(o, (uint32_t)rank, (uint32_t)count, -1);
	clean_folder(o->folder, rank, count);
	/* MPI leaks by design and unloads its parts, so that no suppression can name them: no leak check at
	 * exit */
	fflush(NULL);
	_exit(status);
}

int main(int argc, char **argv)
{
	static struct options o;
	int parsed = options_parse(argc, argv, &o);

	if (parsed)
		return parsed < 0 ? 2 : 0;
	if (o.only_probe)
		return side_probe(&o);
	if (o.join) {
		int fd = remote_join(o.join, o.endpoint, oob_now_ms() + o.timeout_s * 1000);

		return fd < 0 ? 1 : side_run(&o, o.endpoint, o.endpoints, fd);
	}
	return o.mpi ? run_rank(&o) : fork_all(&o);
}

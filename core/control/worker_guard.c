/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ssh starts outlives ssh. So between them stands a guard, asleep: when its standard input ends, the one
 * who started us has gone or wants no more, and the worker must go too, even if it is stopped or hangs.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "worker.h"
#include "../engine/timer.h"

#define GRACE_MS 2000 /* for a worker that sees the end of its control connection by itself */

static int64_t now_ms(void)
{
	return (int64_t)(xb_clock_ns(CLOCK_MONOTONIC) / 1000000u);
}

static void leave(pid_t worker, int status)
{
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "xportbench worker: process %d was ended by signal %d (%s)\n", (int)worker,
			WTERMSIG(status), strsignal(WTERMSIG(status)));
		_exit(128 + WTERMSIG(status));
	}
	_exit(WEXITSTATUS(status));
}

static void guard(pid_t worker, int signals)
{
	struct pollfd fds[2] = {{.fd = 0, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	struct signalfd_siginfo info;
	int64_t end = 0; /* when the worker has had time enough; 0: nobody has asked it to go */
	char byte[64];
	int status;

	for (;;) {
		int64_t left = end ? end - now_ms() : -1;
		if (end && left <= 0)
			kill(worker, SIGKILL);
		if (poll(fds, 2, end && left <= 0 ? -1 : (int)left) < 0 && errno != EINTR)
			kill(worker, SIGKILL);
		if (fds[1].revents & POLLIN && read(signals, &info, sizeof info) == (ssize_t)sizeof info &&
		    info.ssi_signo != SIGCHLD && !end)
			end = now_ms() + GRACE_MS;
		if (waitpid(worker, &status, WNOHANG) == worker)
			leave(worker, status);
		if (fds[0].fd >= 0 && fds[0].revents && read(0, byte, sizeof byte) <= 0) {
			fds[0].fd = -1;
			end = end ? end : now_ms() + GRACE_MS;
			kill(worker, SIGCONT);
		}
	}
}

int xb_worker_guard(struct xb_error *error)
{
	sigset_t mask, old;
	pid_t parent = getpid();

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigprocmask(SIG_BLOCK, &mask, &old);
	int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	pid_t worker = signals < 0 ? -1 : fork();
	if (worker < 0)
		return xb_fail(error, XB_E_SYSTEM, "cannot start a guard for this worker: %s",
			       strerror(errno));
	if (worker > 0)
		guard(worker, signals); /* does not come back */
	close(signals);
	sigprocmask(SIG_SETMASK, &old, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (getppid() != parent)
		_exit(1);
	if (null >= 0) {
		dup2(null, 0);
		close(null);
	}
	return 0;
}

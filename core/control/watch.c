/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "watch.h"
#include "../engine/block.h"

/* Time that the main thread has been runnable without running, ns; 0 where the kernel does not say. */
static uint64_t waited_for_cpu_ns(void)
{
	unsigned long long ran, waited = 0;
	FILE *f = fopen("/proc/self/schedstat", "re"); /* of the thread group's leader */
	if (f && fscanf(f, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	if (f)
		fclose(f);
	return waited;
}

static void arm(const struct xb_watch *watch, uint64_t monotonic_ns)
{
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(monotonic_ns / 1000000000u),
					     .tv_nsec = (long)(monotonic_ns % 1000000000u)}};
	timerfd_settime(watch->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* 1 if the deadline has been put off: the main thread, and so most likely its peer too, had to wait for a
 * CPU. */
static int put_off(struct xb_watch *watch)
{
	uint64_t now = xb_clock_ns(CLOCK_MONOTONIC), total = waited_for_cpu_ns();
	uint64_t waited = total - atomic_load(&watch->armed_waited_ns),
		 elapsed = now - atomic_load(&watch->armed_ns);
	if (waited < elapsed / 10 || watch->extensions++ >= XB_WATCH_EXTENSIONS_MAX)
		return 0;
	atomic_store(&watch->armed_ns, now);
	atomic_store(&watch->armed_waited_ns, total);
	uint64_t more = atomic_load(&watch->granted_ns);
	json_t *message =
		json_pack("{s:s, s:I}", "event", "deadline", "milliseconds", (json_int_t)(more / 1000000u));
	xb_channel_send(watch->channel, message, NULL);
	json_decref(message);
	arm(watch, now + more);
	return 1;
}

static void report_hang(struct xb_watch *watch)
{
	json_t *message =
		json_pack("{s:s, s:s, s:I}", "event", "hung", "phase",
			  xb_phase_name(atomic_load(&xb_block_phase)), "block", (json_int_t)watch->block);
	xb_channel_send(watch->channel, message, NULL);
	json_decref(message);
}

void xb_watch_remove_artifacts(struct xb_watch *watch)
{
	pthread_mutex_lock(&watch->lock);
	for (size_t i = 0; i < watch->artifact_count; i++)
		unlink(watch->artifacts[i]);
	pthread_mutex_unlock(&watch->lock);
}

static void end_process(struct xb_watch *watch)
{
	atomic_store(&watch->abort, 1);
	/* the main thread leaves its spin loop, finds the channel closed and exits; if it cannot, this does
	 */
	usleep(XB_WATCH_GRACE_MS * 1000);
	xb_watch_remove_artifacts(watch);
	_exit(XB_WORKER_LOST_EXIT);
}

static void *watch_thread(void *argument)
{
	struct xb_watch *watch = argument;
	struct pollfd fds[2] = {{.fd = watch->channel->fd, .events = POLLRDHUP},
				{.fd = watch->timer_fd, .events = POLLIN}};
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL))
			end_process(watch);
		if (fds[1].revents & POLLIN) {
			uint64_t expirations;
			if (read(watch->timer_fd, &expirations, sizeof expirations) ==
				    (ssize_t)sizeof expirations &&
			    atomic_load(&xb_block_phase) != XB_PHASE_IDLE && !put_off(watch))
				report_hang(watch);
		}
	}
	return NULL;
}

int xb_watch_start(struct xb_watch *watch, struct xb_channel *channel, struct xb_error *error)
{
	sigset_t all, old;
	watch->channel = channel;
	pthread_mutex_init(&watch->lock, NULL);
	watch->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	/* libraries' signal handlers must not run on this small thread */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	int failed = watch->timer_fd < 0 ? errno : pthread_create(&watch->thread, NULL, watch_thread, watch);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return xb_fail(error, XB_E_SYSTEM, "cannot start the watcher thread: %s", strerror(failed));
	return 0;
}

void xb_watch_deadline(struct xb_watch *watch, uint64_t monotonic_ns)
{
	if (monotonic_ns) {
		atomic_store(&watch->armed_ns, xb_clock_ns(CLOCK_MONOTONIC));
		atomic_store(&watch->armed_waited_ns, waited_for_cpu_ns());
		atomic_store(&watch->granted_ns, monotonic_ns - atomic_load(&watch->armed_ns));
		watch->extensions = 0;
	}
	arm(watch, monotonic_ns);
}

static void note(struct xb_watch *watch, const char *path, int64_t since_s)
{
	struct stat st;
	if (watch->artifact_count == XB_WATCH_ARTIFACTS || strlen(path) >= sizeof watch->artifacts[0] ||
	    stat(path, &st) || st.st_ctime < since_s)
		return;
	for (size_t i = 0; i < watch->artifact_count; i++)
		if (!strcmp(watch->artifacts[i], path))
			return;
	strcpy(watch->artifacts[watch->artifact_count++], path);
}

void xb_watch_note_artifacts(struct xb_watch *watch, int64_t since_s)
{
	char line[1024];
	FILE *maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return;
	pthread_mutex_lock(&watch->lock);
	while (fgets(line, sizeof line, maps)) {
		char *path = strstr(line, "/dev/shm/");
		if (!path || strstr(path, " (deleted)"))
			continue;
		path[strcspn(path, "\n")] = 0;
		note(watch, path, since_s);
	}
	pthread_mutex_unlock(&watch->lock);
	fclose(maps);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX reports causes to its log only; the calls return a bare code. Its handler has no user pointer, so what
 * is kept here is per process, as UCX's log itself is. UCX also logs from a thread of its own, hence the
 * lock.
 *
 * UCX stays quiet unless xportbench is verbose or the user set UCX_LOG_LEVEL; then everything is printed as
 * UCX would.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ucx.h"
#if defined(__has_include)
#if __has_include(<ucs/debug/log_def.h>)
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>
#define HAVE_UCX_LOG 1
#endif
#endif

#ifdef HAVE_UCX_LOG

static struct {
	pthread_mutex_t lock;
	int print, signals_returned;
	char first_error[400], last_warning[400], first_warning[160];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* UCX names a peer only if it was told to carry debug information along. */
static void tidy(char *text)
{
	static const char noise[] = " to <no debug data>";
	char *found = strstr(text, noise);

	text[strcspn(text, "\n")] = '\0';
	if (found)
		memmove(found, found + sizeof(noise) - 1, strlen(found + sizeof(noise) - 1) + 1);
}

static ucs_log_func_rc_t keep(const char *file, unsigned line, const char *function, ucs_log_level_t level,
			      const ucs_log_component_config_t *component, const char *format,
			      va_list arguments)
{
	char text[400];
	va_list copy;

	(void)file, (void)line, (void)function, (void)component;
	if (level <= UCS_LOG_LEVEL_WARN) {
		va_copy(copy, arguments);
		vsnprintf(text, sizeof(text), format, copy);
		va_end(copy);
		tidy(text);
		pthread_mutex_lock(&kept.lock);
		if (level <= UCS_LOG_LEVEL_ERROR) {
			if (kept.first_error[0] == '\0')
				strcpy(kept.first_error, text);
		} else {
			strcpy(kept.last_warning, text);
			if (kept.first_warning[0] == '\0')
				snprintf(kept.first_warning, sizeof(kept.first_warning), "%.150s", text);
		}
		pthread_mutex_unlock(&kept.lock);
	}
	return kept.print ? UCS_LOG_FUNC_RC_CONTINUE : UCS_LOG_FUNC_RC_STOP;
}

/*
 * When loaded, UCX takes over SIGSEGV and its like to print a backtrace, and SIGHUP to become talkative. Here
 * a crash is reported by the controller, by the name of its signal, and a hang-up ends a worker as it ends
 * any program.
 */
static void return_signals(void)
{
	static const int taken[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGHUP};

	if (kept.signals_returned || kept.print || getenv("UCX_HANDLE_ERRORS") ||
	    getenv("UCX_ERROR_SIGNALS") || getenv("UCX_DEBUG_SIGNO"))
		return;
	kept.signals_returned = 1;
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		ucs_debug_disable_signal(taken[i]);
	ucs_global_opts_set_value("HANDLE_ERRORS", "none"); /* nor a backtrace where UCX itself gives up */
}

void xb_ucx_log_start(int verbose)
{
	kept.print = verbose > 0 || getenv("UCX_LOG_LEVEL") != NULL;
	ucs_log_push_handler(keep);
	return_signals();
	kept.first_error[0] = kept.last_warning[0] = kept.first_warning[0] = '\0';
}

void xb_ucx_log_stop(void)
{
	ucs_log_pop_handler();
}

void xb_ucx_log_clear(void)
{
	pthread_mutex_lock(&kept.lock);
	kept.first_error[0] = kept.last_warning[0] = '\0';
	pthread_mutex_unlock(&kept.lock);
}

void xb_ucx_log_text(char *out, size_t bytes)
{
	const char *text;

	pthread_mutex_lock(&kept.lock);
	text = kept.first_error[0] ? kept.first_error : kept.last_warning;
	snprintf(out, bytes, "%s%s", text[0] ? ": " : "", text);
	pthread_mutex_unlock(&kept.lock);
}

void xb_ucx_log_warning(char *out, size_t bytes)
{
	pthread_mutex_lock(&kept.lock);
	snprintf(out, bytes, "%s", kept.first_warning);
	pthread_mutex_unlock(&kept.lock);
}

#else /* UCX without its development headers of ucs/debug: the messages go to the terminal, as UCX prints    \
	 them */

void xb_ucx_log_start(int verbose)
{
	(void)verbose;
}
void xb_ucx_log_stop(void)
{
}
void xb_ucx_log_clear(void)
{
}
void xb_ucx_log_text(char *out, size_t bytes)
{
	snprintf(out, bytes, "%s", "");
}
void xb_ucx_log_warning(char *out, size_t bytes)
{
	snprintf(out, bytes, "%s", "");
}
#endif

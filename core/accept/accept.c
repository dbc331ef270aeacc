/* SPDX-License-Identifier: BSD-3-Clause */
/* The acceptance run: measure, judge, measure again what was violated, and say what came of it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "accept.h"
#include "places.h"
#include "selftest.h"
#include "series.h"
#include "../cli/options.h"
#include "../control/hub.h"
#include "../control/run.h"
#include "../report/results.h"
#include "../report/text.h"

#define SELFTEST_TRIALS 1000u
#define SELFTEST_SEED 1u
#define LEFT_OUT_MAX 16u
#define RETESTS_MAX 16u /* each takes up to --time */
#define TRUSTED_SHARE 4u /* a transport that fails on more than one node in so many is itself at fault */
#define INTERRUPTED "the run was interrupted"

struct work {
	struct xb_config *config;
	struct xb_whole *whole; /* before nodes were left out */
	struct xb_limits limits;
	struct xb_known known;
	struct xb_acceptance acceptance;
	const struct xb_rulings *earlier; /* of the run that is being retested */
	const struct xb_config *running; /* configuration of the launches under way */
	json_t *document; /* of the run that is judged */
	int has_reference; /* a pair was measured alone, or there is none that could be */
	struct xb_left_out unreachable; /* a host without which there is no run; "": none */
	int again; /* the run under way ends to be begun again with other nodes */
	unsigned char distrusted[XB_MAX_TRANSPORTS]; /* fails on one node after the other */
};

static int complain(const struct xb_error *error, int exit_status)
{
	fprintf(stderr, "xportbench: %s\n", error->text);
	return exit_status;
}

static int exit_of(const struct xb_error *error)
{
	return error->status == XB_E_USAGE || error->status == XB_E_UNSUPPORTED ||
			       error->status == XB_E_SYSTEM
		       ? XB_EXIT_USAGE
		       : XB_EXIT_UNAVAILABLE;
}

/* Is there a verdict on everything, as far as launches can bring one? */
static int settled(void *user, json_t *document)
{
	struct work *w = user;
	struct xb_error ignored = {0};
	struct xb_rulings rulings;

	if (xb_rule(document, &w->limits, w->running, &w->known, w->earlier, &rulings, &ignored))
		return 0;
	int done = xb_rulings_settled(&rulings);
	xb_rulings_free(&rulings);
	return done;
}

/* With one node more that is lost for it, does it seem to be the transport? */
static int fails_on_many(const struct work *w, size_t transport)
{
	const struct xb_acceptance *a = &w->acceptance;
	size_t nodes = w->whole->host_count ? w->whole->host_count : w->whole->endpoints, lost = 1;

	for (size_t i = 0; i < a->left_out_count; i++)
		lost += !a->left_out[i].of_host && a->left_out[i].transport == transport;
	return lost >= 2 && TRUSTED_SHARE * lost > nodes;
}

static void flag_left_out(const struct xb_acceptance *a, unsigned char *out)
{
	for (size_t i = 0; i < a->left_out_count; i++)
		out[a->left_out[i].endpoint] = 1;
}

static void describe(const struct work *w, const struct xb_lost *lost, struct xb_left_out *out)
{
	const char *host = xb_places_host(w->running, lost->endpoint);

	out->endpoint = w->acceptance.original[lost->endpoint];
	out->transport = lost->transport;
	out->of_host = lost->of_host;
	if (host)
		snprintf(out->host, sizeof(out->host), "%s", host);
	else
		snprintf(out->host, sizeof(out->host), "endpoint-%u", out->endpoint);
	snprintf(out->reason, sizeof(out->reason), "%s", lost->why);
}

/* A node is lost. Where there are others, the run ends and is begun again without it; or with those that were
 * left out before, if it seems to be the transport. */
static int take_lost(void *user, const struct xb_lost *lost)
{
	struct work *w = user;
	struct xb_acceptance *a = &w->acceptance;
	unsigned char gone[XB_MAX_ENDPOINTS] = {0};

	if (w->running != w->config || w->again || (!lost->of_host && w->distrusted[lost->transport]))
		return 0;
	if (!lost->of_host && fails_on_many(w, lost->transport)) {
		w->distrusted[lost->transport] = 1;
		return w->again = 1;
	}
	flag_left_out(a, gone);
	gone[a->original[lost->endpoint]] = 1;
	/* so many at once are the network's fault rather than the nodes' */
	if (a->left_out_count >= LEFT_OUT_MAX || !xb_whole_can_do_without(w->whole, gone)) {
		if (lost->of_host)
			describe(w, lost, &w->unreachable);
		return 0;
	}
	describe(w, lost, &a->left_out[a->left_out_count++]);
	return w->again = 1;
}

/* One run with the configuration; *launch_s: what a launch took. */
static int measure(struct work *w, struct xb_config *config, const struct xb_rulings *earlier,
		   json_t **document, double *launch_s)
{
	struct xb_run_hooks hooks = {.settled = w->limits.count ? settled : NULL,
				     .lost = take_lost,
				     .user = w,
				     /* the noise budget is about all launches, not about the first */
				     .noise_every_launch = w->limits.count > 0};
	int64_t begin = xb_now_ms();

	w->earlier = earlier;
	w->running = config;
	w->again = 0;
	int status = xb_run_measure(config, &hooks, document);
	json_int_t launches = json_integer_value(json_object_get(*document, "launches"));
	*launch_s = launches > 0 ? (double)(xb_now_ms() - begin) / 1e3 / (double)launches : NAN;
	return status;
}

/* --- a first violation is no verdict --- */

typedef int needs_fn(const struct xb_retest *retest, const struct xb_ruling *ruling);

/* Sizes that this retest is about: for what is of the run and not of a size, all of them. */
static void narrow(struct xb_config *config, const struct xb_rulings *rulings, const struct xb_retest *retest,
		   needs_fn *needs)
{
	size_t sizes = 0;

	for (size_t s = 0; s < config->size_count; s++) {
		int needed = 0;
		for (size_t i = 0; i < rulings->count; i++)
			needed |= needs(retest, &rulings->list[i]) &&
				  (rulings->list[i].size_bytes == config->sizes[s] ||
				   rulings->list[i].size_bytes == SIZE_MAX);
		if (needed)
			config->sizes[sizes++] = config->sizes[s];
	}
	if (sizes)
		config->size_count = sizes;
}

/* The pair alone, in fresh launches, within the time of a run of its own. fresh: rulings on it. */
static int measure_alone(struct work *w, const struct xb_retest *retest, needs_fn *needs, const char *why,
			 struct xb_rulings *fresh, double *launch_s)
{
	struct xb_error error = {0};
	struct xb_places places;
	struct xb_config *config = malloc(sizeof(*config));
	json_t *document = NULL;

	*fresh = (struct xb_rulings){0};
	if (!config)
		return XB_EXIT_UNAVAILABLE;
	*config = *w->config; /* shares what is allocated; only freed there */
	xb_places_of_pair(config, w->document, retest->a, retest->b, &places);
	config->output = NULL;
	narrow(config, &w->acceptance.rulings, retest, needs);
	if (!config->quiet)
		fprintf(stderr, "xportbench: %s; measuring %s alone, in fresh launches\n", why, places.text);
	w->known.stands_for = 1; /* the pair's own endpoints are 0 and 1 now */
	w->known.stands_for_a = retest->a;
	w->known.stands_for_b = retest->b;
	int status = measure(w, config, &w->acceptance.rulings, &document, launch_s);
	if (document &&
	    xb_rule(document, &w->limits, config, &w->known, &w->acceptance.rulings, fresh, &error))
		complain(&error, 0);
	w->known.stands_for = 0;
	json_decref(document);
	free(config);
	return status;
}

static int needs_reference(const struct xb_retest *unused, const struct xb_ruling *r)
{
	(void)unused;
	return r->first.verdict == XB_VERDICT_FAIL && xb_limit_is_among_pairs(r->limit);
}

/* Where pairs ran at the same time, what is typical of them is not what a pair has alone, as the retest has
 * it: once, one that passed is measured alone as well. */
static int measure_reference(struct work *w, const struct xb_retest *retest)
{
	struct xb_rulings *rulings = &w->acceptance.rulings, alone = {0};
	struct xb_retest reference = {0};
	int wanted = 0, status = 0;
	double launch_s;

	for (size_t i = 0; i < rulings->count; i++)
		wanted |= needs_reference(retest, &rulings->list[i]) &&
			  xb_retest_covers(retest, &rulings->list[i]);
	if (w->has_reference || !wanted ||
	    xb_places_take_turns(w->acceptance.serial, w->acceptance.endpoints))
		return 0;
	w->has_reference = 1;
	if (xb_reference_choose(rulings, retest, &reference.a, &reference.b))
		status = measure_alone(w, &reference, needs_reference,
				       "a limit is relative to pairs that ran at the same time", &alone,
				       &launch_s);
	if (status < 128)
		xb_reference_take(rulings, reference.a, reference.b, &alone);
	xb_rulings_free(&alone);
	return status < 128 ? 0 : status;
}

static int retest_pair(struct work *w, const struct xb_retest *retest)
{
	struct xb_rulings fresh;
	double launch_s = NAN;
	int status = measure_reference(w, retest);

	if (status)
		return status;
	status = measure_alone(w, retest, xb_retest_covers, "a limit is violated", &fresh, &launch_s);
	w->acceptance.retests++;
	if (status < 128)
		xb_retest_take(&w->acceptance.rulings, retest, &fresh, launch_s);
	xb_rulings_free(&fresh);
	return status;
}

/* The violations that were not measured again stay without a verdict. */
static void leave_open(struct xb_rulings *rulings, const char *why)
{
	for (size_t i = 0; i < rulings->count; i++) {
		struct xb_ruling *r = &rulings->list[i];
		if (r->first.verdict != XB_VERDICT_FAIL || r->retested)
			continue;
		r->verdict = XB_VERDICT_INCONCLUSIVE;
		snprintf(r->first.reason, sizeof(r->first.reason), "violated; not measured again: %s", why);
	}
}

static int confirm(struct work *w)
{
	struct xb_rulings *rulings = &w->acceptance.rulings;
	struct xb_error error = {0};
	struct xb_retest retest;
	char enough[40];
	int status = 0;

	if (xb_rulings_blame(rulings, w->acceptance.endpoints, &error))
		return complain(&error, XB_EXIT_UNAVAILABLE);
	while (status < 128 && w->acceptance.retests < RETESTS_MAX &&
	       xb_retest_next(rulings, w->acceptance.endpoints, &retest)) {
		status = retest_pair(w, &retest);
		if (status < 128)
			xb_retest_conclude(rulings, &retest);
	}
	snprintf(enough, sizeof(enough), "%u others have been", w->acceptance.retests);
	leave_open(rulings, status < 128 ? enough : INTERRUPTED);
	return status < 128 ? 0 : status;
}

/* --- the whole --- */

static int report(struct work *w, json_t *document)
{
	struct xb_error error = {0};
	const char *no_colour = getenv("NO_COLOR");
	struct xb_config *c = w->config;
	int status = 0, written = 0;

	if (c->output)
		written = xb_document_write(document, c->output, &error);
	if (!written && c->junit)
		written = xb_junit_write(document, c->junit, &error);
	if (written)
		status = complain(&error, XB_EXIT_OUTPUT);
	if (xb_print_document(document, c->format, stdout, isatty(1) && !(no_colour && *no_colour), &error) ||
	    fflush(stdout) || ferror(stdout))
		status = complain(&error, XB_EXIT_OUTPUT);
	return status;
}

static const char *flaw_of(int judged)
{
	return judged >= 128		       ? "it was interrupted"
	       : judged == XB_EXIT_FAILED      ? "a limit is violated"
	       : judged == XB_EXIT_UNAVAILABLE ? "something could not be measured"
					       : "it is not valid, or not conclusive";
}

/* Keeps the run as a baseline, unless it is none that one would want to come back to. judged: what the run
 * itself says, whatever became of its output. */
static int record(struct work *w, json_t *document, int judged)
{
	struct xb_error error = {0};
	const char *path = w->config->record;

	if (!path)
		return 0;
	if (judged) {
		fprintf(stderr,
			"xportbench: %s is not written: a baseline must be complete, valid and within the "
			"limits, and this run was not: %s\n",
			path, flaw_of(judged));
		return 0;
	}
	if (xb_document_write(document, path, &error))
		return complain(&error, XB_EXIT_OUTPUT);
	if (!w->config->quiet)
		fprintf(stderr, "xportbench: recorded as baseline in %s; compare with it by --against\n",
			path);
	return 0;
}

/* Prints and keeps the run; the exit status. A violated limit is not hidden by output that failed. */
static int conclude(struct work *w, json_t *document, int status)
{
	int judged = status >= 128 ? status : xb_results_exit_status(document);
	int reported = report(w, document), recorded = record(w, document, judged);

	if (judged >= 128 || judged == XB_EXIT_FAILED)
		return judged;
	return reported ? reported : recorded ? recorded : judged;
}

/* Nodes that were left out for a transport which then failed on others as well were not at fault. */
static int take_back(struct work *w)
{
	struct xb_acceptance *a = &w->acceptance;
	size_t kept = 0;

	for (size_t i = 0; i < a->left_out_count; i++) {
		const struct xb_left_out *out = &a->left_out[i];
		if (out->of_host || !w->distrusted[out->transport])
			a->left_out[kept++] = *out;
		else
			fprintf(stderr,
				"xportbench: %s is taken back: %s fails on other nodes as well, so it is the "
				"transport\n",
				out->host, w->config->transports[out->transport].label);
	}
	int fewer = kept < a->left_out_count;
	a->left_out_count = kept;
	return fewer;
}

/* Without the nodes that are lost on the way, each of which costs a run from its beginning. */
static int measure_all(struct work *w, json_t **document)
{
	struct xb_acceptance *a = &w->acceptance;

	for (;;) {
		unsigned char out[XB_MAX_ENDPOINTS] = {0};
		int status = measure(w, w->config, NULL, document, &a->launch_s);
		if (!w->again || status >= 128)
			return status;
		int fewer = take_back(w);
		flag_left_out(a, out);
		if (xb_whole_without(w->whole, out, w->config, a->original))
			return status; /* was asked before the run was ended */
		json_decref(*document);
		*document = NULL;
		if (!fewer)
			fprintf(stderr, "xportbench: %s is left out; the others are measured without it\n",
				a->left_out[a->left_out_count - 1].host);
	}
}

/* For a run that could not begin for want of a host: a document that says so, lest that of another day be
 * taken for it. NULL without memory. */
static json_t *nothing_measured(struct work *w)
{
	struct xb_acceptance *a = &w->acceptance;
	struct xb_results *results = xb_results_new(w->config);
	const char *why = *w->unreachable.host ? w->unreachable.reason : "a host could not be used";
	char when[32];

	if (!results)
		return NULL;
	xb_now_text(when);
	xb_results_started(results, when, w->config->seed);
	for (size_t t = 0; t < w->config->transport_count; t++)
		xb_results_transport_status(results, t, "unavailable", why);
	xb_results_stopped_by(results, "failed");
	xb_results_conclude(results);
	json_t *document = xb_results_document(results);
	xb_results_free(results);
	if (*w->unreachable.host)
		a->left_out[a->left_out_count++] = w->unreachable;
	return document;
}

static int run_all(struct work *w)
{
	struct xb_acceptance *a = &w->acceptance;
	struct xb_left_out left_out[LEFT_OUT_MAX + 1];
	struct xb_error error = {0};
	json_t *document = NULL;

	a->left_out = left_out;
	for (uint32_t e = 0; e < XB_MAX_ENDPOINTS; e++)
		a->original[e] = e;
	int status = measure_all(w, &document);
	if (!document && status == XB_EXIT_UNAVAILABLE)
		document = nothing_measured(w);
	if (!document)
		return status;
	w->document = document;
	a->limits = &w->limits;
	a->known = &w->known;
	a->endpoints = xb_places_endpoints(w->config);
	a->config = w->config;
	a->serial = w->config->serial;
	if (w->limits.count &&
	    xb_rule(document, &w->limits, w->config, &w->known, NULL, &a->rulings, &error)) {
		json_decref(document);
		return complain(&error, XB_EXIT_UNAVAILABLE);
	}
	if (status < 128) {
		int confirmed = confirm(w);
		status = confirmed ? confirmed : status;
	} else
		leave_open(&a->rulings, INTERRUPTED);
	if (w->limits.count)
		json_object_set_new(document, "acceptance", xb_acceptance_json(a, document));
	status = conclude(w, document, status);
	json_decref(document);
	xb_rulings_free(&a->rulings);
	return status;
}

static int run_whole(struct work *w)
{
	static struct xb_whole whole; /* large */
	struct xb_error error = {0};

	if (xb_whole_keep(&whole, w->config, &error))
		return complain(&error, XB_EXIT_UNAVAILABLE);
	w->whole = &whole;
	int status = run_all(w);
	xb_whole_end(&whole, w->config);
	return status;
}

static int self_test(struct work *w)
{
	struct xb_error error = {0};
	const struct xb_config *c = w->config;
	struct xb_selftest settings = {.seed = c->seed ? c->seed : SELFTEST_SEED,
				       .launches_min = c->launches_min,
				       .launches_max = c->launches_max,
				       .trials = SELFTEST_TRIALS};
	int status = xb_selftest(&w->limits, &settings, stdout, &error);

	if (status < 0)
		return complain(&error, exit_of(&error));
	if (fflush(stdout) || ferror(stdout))
		return XB_EXIT_OUTPUT;
	return status ? XB_EXIT_FAILED : 0;
}

/* Can a file be made there? What is there is not touched. */
static int check_writable(const char *path, const char *option, struct xb_error *error)
{
	struct stat found;
	char target[PATH_MAX], temporary[PATH_MAX + 16];
	int fd, cause = 0;

	if (!path)
		return 0;
	int exists = stat(path, &found) == 0;
	if (exists && !S_ISREG(found.st_mode))
		return xb_fail(error, XB_E_SYSTEM,
			       "cannot write %.300s: it is not an ordinary file; choose another file with %s",
			       path, option);
	/* both are written beside what they replace */
	snprintf(temporary, sizeof(temporary), "%.4095s.XXXXXX.tmp",
		 exists && realpath(path, target) ? target : path);
	fd = mkostemps(temporary, 4, O_CLOEXEC);
	if (fd < 0)
		cause = errno;
	else {
		close(fd);
		unlink(temporary);
	}
	return cause ? xb_fail(error, XB_E_SYSTEM, "cannot write %.300s: %s; choose another file with %s",
			       path, strerror(cause), option)
		     : 0;
}

/* Everything that can be wrong with the request, before anything runs. */
static int prepare(struct work *w, const char *path, uint64_t given, struct xb_error *error)
{
	struct xb_config *c = w->config;
	size_t pairs = 0;
	int status = 0;

	if (!path && !c->record)
		return xb_fail(error, XB_E_USAGE,
			       "accept needs the file of limits: write 'xportbench accept LIMITS.ini'; to "
			       "keep a run as a "
			       "baseline without limits, add --record FILE");
	if (path)
		status = xb_limits_read(path, &w->limits, error);
	if (!status && path)
		status = xb_limits_apply(&w->limits, given, c, error);
	if (!status && c->self_test)
		return path ? 0 : xb_fail(error, XB_E_USAGE, "--self-test tests limits; name a file of them");
	if (!status)
		status = xb_run_find_hosts(c, error);
	if (!status)
		status = xb_check_run(c, error);
	if (!status)
		status = xb_places_pairs(c, &pairs, error);
	if (!status && path)
		status = xb_limits_match(&w->limits, c, pairs, error);
	if (!status)
		status = xb_known_read(&w->limits, c, c->against, &w->known, error);
	if (!status)
		status = check_writable(c->junit, "--junit", error);
	if (!status)
		status = check_writable(c->record, "--record", error);
	return status;
}

int xb_accept(const char *limits_path, uint64_t given, struct xb_config *config)
{
	static struct work work; /* large */
	struct xb_error error = {0};
	int status;

	work.config = config;
	if (prepare(&work, limits_path, given, &error))
		status = complain(&error, exit_of(&error));
	else
		status = config->self_test ? self_test(&work) : run_whole(&work);
	xb_known_free(&work.known);
	xb_limits_free(&work.limits);
	return status;
}

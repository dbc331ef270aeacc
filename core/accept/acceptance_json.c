/* SPDX-License-Identifier: BSD-3-Clause */
/* The "acceptance" member of a result document. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "accept.h"
#include "places.h"
#include "../report/internal.h"
#include "../report/text.h"

#define NAME_BYTES 232u

static const char *name_of(const struct xb_acceptance *a, json_t *document, uint32_t endpoint,
			   char text[NAME_BYTES])
{
	const char *host = xb_places_host(a->config, endpoint);

	(void)document;
	if (host && a->config->host_count == a->endpoints)
		return host;
	if (host) { /* more than one endpoint on it */
		snprintf(text, NAME_BYTES, "%.200s:%u", host, endpoint);
		return text;
	}
	snprintf(text, NAME_BYTES, "endpoint-%u", a->original[endpoint]);
	return text;
}

static json_t *judgement_json(const struct xb_judgement *j)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "verdict", xb_verdict_name(j->verdict),
			 "value", xb_json_number(j->value), "ci_low", xb_json_number(j->ci_low), "ci_high",
			 xb_json_number(j->ci_high), "launches", xb_json_count(j->launches), "bound",
			 xb_json_number(j->bound), "reason", xb_json_text(j->reason));
}

static json_t *cause_json(const struct xb_ruling *r)
{
	if (r->verdict != XB_VERDICT_FAIL)
		return json_null();
	return json_string(r->cause == XB_CAUSE_NODE || r->cause == XB_CAUSE_BOTH ? "node"
			   : r->cause == XB_CAUSE_LINK				  ? "link"
										  : "unknown");
}

/* Seconds; null where more launches would not decide it. */
static json_t *more_json(const struct xb_acceptance *a, const struct xb_ruling *r)
{
	const struct xb_judgement *j = r->retested ? &r->fresh : &r->first;
	double launch_s = r->retested ? r->retest_launch_s : a->launch_s;
	double more = (j->launches_needed - (double)j->launches) * launch_s;

	return r->verdict == XB_VERDICT_INCONCLUSIVE && more > 0 ? xb_json_number(more) : json_null();
}

static json_t *ruling_json(const struct xb_acceptance *a, json_t *document, const struct xb_ruling *r)
{
	const struct xb_limit *l = r->limit;
	int sized = xb_metric_has_size(l->metric);
	int node = r->verdict == XB_VERDICT_FAIL && (r->cause == XB_CAUSE_NODE || r->cause == XB_CAUSE_BOTH);
	char here[NAME_BYTES], there[NAME_BYTES];

	return json_pack(
		"{s:s, s:i, s:o, s:o, s:o, s:s, s:s, s:[i,i], s:[o,o], s:s, s:o, s:o, s:o, s:o, s:o, s:o}",
		"limit", l->name, "line", (int)l->line, "transport", xb_json_text(l->transport), "bench",
		sized ? json_string(xb_bench_names[l->bench]) : json_null(), "size",
		sized ? xb_json_count(r->size_bytes) : json_null(), "metric", xb_metric_name(l->metric),
		"unit", xb_metric_unit(l->metric), "pair", (int)r->a, (int)r->b, "hosts",
		xb_json_text(name_of(a, document, r->a, here)),
		xb_json_text(name_of(a, document, r->b, there)), "verdict", xb_verdict_name(r->verdict),
		"first", judgement_json(&r->first), "fresh",
		r->retested ? judgement_json(&r->fresh) : json_null(), "retest_pair",
		r->retested ? json_pack("[i,i]", (int)r->retest_a, (int)r->retest_b) : json_null(), "more_s",
		more_json(a, r), "cause", cause_json(r), "culprit",
		node ? xb_json_count(r->culprit) : json_null());
}

/* A violation that is another's doing, whatever became of it when it was measured again; or noise on the
 * other end. */
static int spares(const struct xb_ruling *r, uint32_t node)
{
	int violated = r->first.verdict == XB_VERDICT_FAIL,
	    own_doubt = r->a == node ? r->doubt_a : r->doubt_b;

	if (violated && r->cause == XB_CAUSE_LINK)
		return 1;
	if (violated && (r->cause == XB_CAUSE_NODE || r->cause == XB_CAUSE_BOTH))
		return r->culprit != node;
	return (r->doubt_a || r->doubt_b) && !own_doubt;
}

/* The rulings that speak of a node: those of its pairs, but for what is another's doing. */
static enum xb_verdict verdict_of_node(const struct xb_acceptance *a, uint32_t node, char *reason,
				       size_t bytes)
{
	enum xb_verdict worst = XB_VERDICT_PASS;

	*reason = '\0';
	for (size_t i = 0; i < a->rulings.count; i++) {
		const struct xb_ruling *r = &a->rulings.list[i];
		if ((r->a != node && r->b != node) || spares(r, node))
			continue;
		if (xb_verdict_worse(worst, r->verdict) == worst)
			continue;
		worst = r->verdict;
		const struct xb_judgement *j = r->retested ? &r->fresh : &r->first;
		if (*j->reason && r->verdict != XB_VERDICT_FAIL) {
			snprintf(reason, bytes, "%s: %.200s", r->limit->name, j->reason);
			continue;
		}
		snprintf(reason, bytes, "%s: %s %.4g %s, limit %.4g", r->limit->name,
			 xb_metric_name(r->limit->metric), j->value, xb_metric_unit(r->limit->metric),
			 j->bound);
		if (*j->reason)
			xb_append(reason, bytes, "; %.120s", j->reason);
	}
	return worst;
}

/* Only where there was no run without it; else it has no number in the run. */
static int is_left_out(const struct xb_acceptance *a, uint32_t endpoint)
{
	for (size_t i = 0; i < a->left_out_count; i++)
		if (a->left_out[i].endpoint == a->original[endpoint])
			return 1;
	return 0;
}

static json_t *nodes_json(const struct xb_acceptance *a, json_t *document)
{
	json_t *list = json_array();
	char text[NAME_BYTES], reason[300];

	for (uint32_t e = 0; e < a->endpoints; e++) {
		if (is_left_out(a, e))
			continue;
		enum xb_verdict verdict = verdict_of_node(a, e, reason, sizeof(reason));
		json_array_append_new(list,
				      json_pack("{s:I, s:o, s:s, s:o}", "endpoint", (json_int_t)e, "host",
						xb_json_text(name_of(a, document, e, text)), "verdict",
						xb_verdict_name(verdict), "reason", xb_json_text(reason)));
	}
	return list;
}

static json_t *matrix_json(const struct xb_acceptance *a, const struct xb_ruling *first, size_t count)
{
	uint32_t n = a->endpoints;
	json_t *rows = json_array();

	for (uint32_t i = 0; i < n; i++) {
		json_t *row = json_array();
		for (uint32_t k = 0; k < n; k++)
			json_array_append_new(row, json_null());
		json_array_append_new(rows, row);
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t x = first[i].a, y = first[i].b;
		json_array_set_new(json_array_get(rows, x), y, xb_json_number(first[i].first.value));
		json_array_set_new(json_array_get(rows, y), x, xb_json_number(first[i].first.value));
	}
	return json_pack("{s:s, s:o, s:s, s:o}", "limit", first->limit->name, "size",
			 xb_metric_has_size(first->limit->metric) ? xb_json_count(first->size_bytes)
								  : json_null(),
			 "metric", xb_metric_name(first->limit->metric), "values", rows);
}

static json_t *matrices_json(const struct xb_acceptance *a)
{
	json_t *list = json_array();

	if (a->endpoints <= 2)
		return list;
	for (size_t i = 0, next; i < a->rulings.count; i = next) {
		const struct xb_ruling *r = &a->rulings.list[i];
		for (next = i; next < a->rulings.count && a->rulings.list[next].limit == r->limit &&
			       a->rulings.list[next].size_bytes == r->size_bytes;)
			next++;
		json_array_append_new(list, matrix_json(a, r, next - i));
	}
	return list;
}

static json_t *left_out_json(const struct xb_acceptance *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->left_out_count; i++)
		json_array_append_new(list, json_pack("{s:I, s:o, s:o}", "endpoint",
						      (json_int_t)a->left_out[i].endpoint, "host",
						      xb_json_text(a->left_out[i].host), "reason",
						      xb_json_text(a->left_out[i].reason)));
	return list;
}

enum xb_verdict xb_acceptance_verdict(const struct xb_acceptance *a)
{
	enum xb_verdict verdict = a->left_out_count ? XB_VERDICT_UNMEASURED : XB_VERDICT_PASS;

	for (size_t i = 0; i < a->rulings.count; i++)
		verdict = xb_verdict_worse(verdict, a->rulings.list[i].verdict);
	return verdict;
}

json_t *xb_acceptance_json(const struct xb_acceptance *a, json_t *document)
{
	json_t *rulings = json_array(), *baseline = json_null();

	for (size_t i = 0; i < a->rulings.count; i++)
		json_array_append_new(rulings, ruling_json(a, document, &a->rulings.list[i]));
	if (a->known->baseline)
		baseline = json_pack("{s:o, s:o, s:o}", "file", xb_json_text(a->known->baseline_path),
				     "started", json_incref(json_object_get(a->known->baseline, "started")),
				     "differences", xb_baseline_differences(document, a->known->baseline));
	return json_pack("{s:o, s:s, s:f, s:i, s:s, s:o, s:o, s:o, s:o, s:o}", "limits",
			 xb_json_text(a->limits->path), "verdict", xb_verdict_name(xb_acceptance_verdict(a)),
			 "noise_budget_pct", a->limits->noise_budget_pct, "retests", (int)a->retests,
			 "pairs_at_a_time", xb_places_take_turns(a->serial, a->endpoints) ? "one" : "many",
			 "left_out", left_out_json(a), "nodes", nodes_json(a, document), "rulings", rulings,
			 "matrices", matrices_json(a), "baseline", baseline);
}

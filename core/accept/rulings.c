/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rulings.h"
#include "series.h"
#include "../report/results.h"
#include "../report/text.h"

struct context {
	json_t *document;
	const struct xb_limits *limits;
	const struct xb_known *known;
	const struct xb_rulings *earlier;
	struct xb_rulings *out;
};

static struct xb_ruling *add(struct xb_rulings *rulings)
{
	struct xb_ruling *grown = realloc(rulings->list, (rulings->count + 1) * sizeof(*grown));

	if (!grown)
		return NULL;
	rulings->list = grown;
	grown[rulings->count] = (struct xb_ruling){.typical = NAN, .typical_alone = NAN};
	return &grown[rulings->count++];
}

struct xb_ruling *xb_ruling_find(const struct xb_rulings *rulings, const struct xb_limit *limit,
				 size_t size_bytes, uint32_t a, uint32_t b)
{
	for (size_t i = 0; rulings && i < rulings->count; i++) {
		struct xb_ruling *r = &rulings->list[i];
		if (r->limit == limit && r->size_bytes == size_bytes && r->a == a && r->b == b)
			return r;
	}
	return NULL;
}

/* The median or best of all pairs, as the run found it that is being retested. */
static double earlier_typical(const struct xb_rulings *earlier, const struct xb_limit *limit,
			      size_t size_bytes)
{
	for (size_t i = 0; earlier && i < earlier->count; i++)
		if (earlier->list[i].limit == limit && earlier->list[i].size_bytes == size_bytes)
			return isfinite(earlier->list[i].typical_alone) ? earlier->list[i].typical_alone
									: earlier->list[i].typical;
	return NAN;
}

double xb_typical_alone(double typical, double among_others, double alone)
{
	double scaled = typical * alone / among_others;
	return among_others > 0 && alone > 0 && isfinite(scaled) ? scaled : NAN;
}

static const char *transport_error(json_t *document, const char *label)
{
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(document, "transports"), i, entry)
	{
		if (label && !strcmp(xb_text_of(entry, "label"), label) &&
		    strcmp(xb_text_of(entry, "status"), "ok") != 0)
			return xb_text_of(entry, "error");
	}
	return NULL;
}

static void find_against(const struct context *c, const struct xb_limit *limit, size_t size_bytes,
			 const struct xb_series_set *set, const struct xb_series *s,
			 struct xb_against *against)
{
	*against = (struct xb_against){.low = NAN, .high = NAN};
	switch (limit->relation) {
	case XB_RELATION_MEDIAN:
	case XB_RELATION_BEST:
		if (c->earlier)
			against->low = against->high = earlier_typical(c->earlier, limit, size_bytes);
		else if (set->typical && set->count > 1)
			against->by_launch = set->typical;
		else if (set->count > 1)
			against->low = against->high = set->point;
		else
			against->missing = "there is one pair only";
		break;
	case XB_RELATION_LINK:
		against->low = against->high = xb_link_MBps(c->document, limit->transport, s->a, s->b) *
					       (limit->bench == XB_BENCH_BIBW ? 2 : 1);
		against->missing = "no device that carried the payload tells it";
		break;
	case XB_RELATION_BASELINE:
		if (*c->out->incomparable)
			against->missing = c->out->incomparable;
		else
			xb_known_value(c->known, c->limits, limit, size_bytes, c->document, s->a, s->b,
				       against);
		break;
	case XB_RELATION_REFERENCE:
		xb_known_value(c->known, c->limits, limit, size_bytes, c->document, s->a, s->b, against);
		break;
	case XB_RELATION_NONE:
	case XB_RELATION_COUNT:
		break;
	}
}

static void no_verdict(struct xb_ruling *r, enum xb_verdict verdict, const char *reason)
{
	r->first.verdict = verdict;
	r->first.launches_needed = NAN;
	snprintf(r->first.reason, sizeof(r->first.reason), "%s", reason);
}

enum { END_A = 1, END_B = 2 };

/* Which ends of this pair a finding is about; both where it is of the whole run. */
static int ends_of(json_t *finding, uint32_t a, uint32_t b)
{
	json_t *list = json_object_get(finding, "ends"), *end;
	int found = 0;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) >= XB_FINDING_ENDS)
		return END_A | END_B;
	json_array_foreach(list, i, end)
	{
		json_int_t own = json_integer_value(json_array_get(end, 0)),
			   peer = json_integer_value(json_array_get(end, 1));
		if (own == (json_int_t)a && peer == (json_int_t)b)
			found |= END_A;
		if (own == (json_int_t)b && peer == (json_int_t)a)
			found |= END_B;
	}
	return found;
}

/* A finding that makes the numbers of this limit and pair something else than they seem to be; NULL if there
 * is none. For the share of the payload, the finding is what the limit is about. */
static json_t *invalid_by(json_t *document, const struct xb_limit *limit, const struct xb_series *s)
{
	int overhead = limit->metric == XB_METRIC_OVERHEAD_US || limit->metric == XB_METRIC_OVERHEAD_PCT;
	const char *lower = limit->over ? limit->over : xb_text_of(document, "baseline");
	json_t *finding;
	size_t i;

	if (limit->metric == XB_METRIC_SHARE)
		return NULL;
	json_array_foreach(json_object_get(document, "findings"), i, finding)
	{
		const char *label = xb_text_of(finding, "label");
		if (!strcmp(xb_text_of(finding, "severity"), "invalid") && ends_of(finding, s->a, s->b) &&
		    (!*label || (limit->transport && !strcmp(label, limit->transport)) ||
		     (overhead && !strcmp(label, lower))))
			return finding;
	}
	return NULL;
}

/* Reasons why what was measured is no ground for a verdict, whatever the numbers. */
static void doubt(const struct context *c, const struct xb_series *s, struct xb_ruling *r)
{
	const char *failed = transport_error(c->document, r->limit->transport);
	json_t *invalid = invalid_by(c->document, r->limit, s);
	double noise = xb_noise_of_pair(c->document, s->a, s->b);
	char text[240];

	if (s->unverified && r->first.verdict == XB_VERDICT_PASS)
		no_verdict(r, XB_VERDICT_INCONCLUSIVE, "the payload was not verified");
	if (invalid && r->first.verdict != XB_VERDICT_UNMEASURED) {
		snprintf(text, sizeof(text), "the run is not valid: %.40s: %.160s",
			 xb_text_of(invalid, "code"), xb_text_of(invalid, "text"));
		no_verdict(r, XB_VERDICT_INCONCLUSIVE, text);
		int ends = ends_of(invalid, s->a, s->b);
		r->doubt_a = ends == END_A;
		r->doubt_b = ends == END_B;
	} else if (xb_metric_has_size(r->limit->metric) && noise > c->limits->noise_budget_pct &&
		   r->first.verdict != XB_VERDICT_UNMEASURED) {
		snprintf(text, sizeof(text),
			 "other work took %.0f %% of the time of the measuring cores, over the noise budget "
			 "of %g %%",
			 noise, c->limits->noise_budget_pct);
		no_verdict(r, XB_VERDICT_INCONCLUSIVE, text);
		r->doubt_a = xb_noise_of_endpoint(c->document, s->a) > c->limits->noise_budget_pct;
		r->doubt_b = xb_noise_of_endpoint(c->document, s->b) > c->limits->noise_budget_pct;
	}
	if (failed && r->first.verdict != XB_VERDICT_FAIL) {
		snprintf(text, sizeof(text), "%.190s", failed);
		no_verdict(r, XB_VERDICT_UNMEASURED, text);
	}
}

/* A limit that can only be absolute where there is one pair: its other part has nothing to say. */
static struct xb_limit without_relation(const struct xb_limit *limit)
{
	struct xb_limit plain = *limit;
	plain.relation = XB_RELATION_NONE;
	return plain;
}

static int rule_on(const struct context *c, const struct xb_limit *limit, size_t size_bytes,
		   struct xb_error *error)
{
	struct xb_series_set set;
	const char *failed = transport_error(c->document, limit->transport);
	int among = limit->relation == XB_RELATION_MEDIAN || limit->relation == XB_RELATION_BEST;
	int status = xb_series_of(c->document, limit, size_bytes, &set, error);

	if (status)
		return status;
	if (set.count == 0) {
		struct xb_ruling *r = add(c->out);
		if (!r)
			return xb_fail(error, XB_E_RESOURCE, "out of memory");
		r->limit = limit;
		r->size_bytes = size_bytes;
		r->b = 1;
		r->first = (struct xb_judgement){XB_VERDICT_UNMEASURED, NAN, NAN, NAN, NAN, 0, NAN, ""};
		snprintf(r->first.reason, sizeof(r->first.reason), "%.200s",
			 failed ? failed : "nothing was measured");
		r->verdict = r->first.verdict;
	}
	for (size_t i = 0; i < set.count; i++) {
		const struct xb_series *s = &set.pairs[i];
		struct xb_limit plain = without_relation(limit);
		struct xb_against against;
		struct xb_ruling *r = add(c->out);
		if (!r) {
			xb_series_free(&set);
			return xb_fail(error, XB_E_RESOURCE, "out of memory");
		}
		r->limit = limit;
		r->size_bytes = size_bytes;
		r->a = s->a;
		r->b = s->b;
		r->typical = c->earlier ? earlier_typical(c->earlier, limit, size_bytes) : set.point;
		find_against(c, limit, size_bytes, &set, s, &against);
		int alone = among && set.count == 1 && !c->earlier && (limit->has_max || limit->has_min);
		xb_judge(alone ? &plain : limit, &against, s->values, s->count, s->exact, &r->first);
		doubt(c, s, r);
		r->verdict = r->first.verdict;
		r->beyond_help = r->verdict == XB_VERDICT_INCONCLUSIVE && isnan(r->first.launches_needed);
	}
	xb_series_free(&set);
	return 0;
}

/* Why numbers of this run and of the baseline cannot be compared. */
static void find_incomparable(json_t *document, const struct xb_known *known, char *text, size_t bytes)
{
	json_t *differences, *entry;
	size_t i;

	if (!known->baseline)
		return;
	differences = xb_baseline_differences(document, known->baseline);
	json_array_foreach(differences, i, entry)
	{
		if (*text || json_is_true(json_object_get(entry, "comparable")))
			continue;
		snprintf(text, bytes, "it is of another %s (%.150s)", xb_text_of(entry, "kind"),
			 xb_text_of(entry, "text"));
	}
	json_decref(differences);
}

int xb_rule(json_t *document, const struct xb_limits *limits, const struct xb_config *config,
	    const struct xb_known *known, const struct xb_rulings *earlier, struct xb_rulings *out,
	    struct xb_error *error)
{
	struct context c = {document, limits, known, earlier, out};
	int status = 0;

	*out = (struct xb_rulings){0};
	if (earlier) /* a retest has two of the hosts only, and says nothing of the network */
		memcpy(out->incomparable, earlier->incomparable, sizeof(out->incomparable));
	else
		find_incomparable(document, known, out->incomparable, sizeof(out->incomparable));
	for (size_t i = 0; !status && i < limits->count; i++) {
		const struct xb_limit *l = &limits->limits[i];
		if (!xb_metric_has_size(l->metric)) {
			status = rule_on(&c, l, SIZE_MAX, error);
			continue;
		}
		for (size_t s = 0; !status && s < config->size_count; s++)
			if (xb_limit_covers(l, config->sizes[s]))
				status = rule_on(&c, l, config->sizes[s], error);
	}
	if (status)
		xb_rulings_free(out);
	return status;
}

void xb_rulings_free(struct xb_rulings *rulings)
{
	free(rulings->list);
	*rulings = (struct xb_rulings){0};
}

int xb_rulings_settled(const struct xb_rulings *rulings)
{
	for (size_t i = 0; i < rulings->count; i++)
		if (rulings->list[i].verdict == XB_VERDICT_INCONCLUSIVE && !rulings->list[i].beyond_help)
			return 0;
	return 1;
}

int xb_rulings_blame(struct xb_rulings *rulings, uint32_t endpoints, struct xb_error *error)
{
	struct xb_blame_pair *pairs = calloc(rulings->count + 1, sizeof(*pairs));
	double *effects = calloc(endpoints + 1u, sizeof(*effects));
	int status = pairs && effects ? 0 : xb_fail(error, XB_E_RESOURCE, "out of memory");

	/* rulings of one limit and size follow each other */
	for (size_t first = 0, next; !status && first < rulings->count; first = next) {
		struct xb_ruling *r = &rulings->list[first];
		int better_high = xb_metric_higher_is_better(r->limit->metric), any = 0;
		size_t count = 0;
		for (next = first; next < rulings->count && rulings->list[next].limit == r->limit &&
				   rulings->list[next].size_bytes == r->size_bytes;
		     next++) {
			const struct xb_ruling *one = &rulings->list[next];
			double value = one->first.value;
			any |= one->first.verdict == XB_VERDICT_FAIL;
			if (one->a >= endpoints || one->b >= endpoints)
				continue;
			pairs[count++] =
				(struct xb_blame_pair){.a = one->a,
						       .b = one->b,
						       .value = better_high ? 1 / value : value,
						       .failed = one->first.verdict == XB_VERDICT_FAIL};
		}
		/* there is nobody to blame, or not only nodes are judged */
		if (!any || count != next - first)
			continue;
		status = xb_blame(pairs, count, endpoints, effects, error);
		for (size_t i = 0; !status && i < count; i++) {
			rulings->list[first + i].cause = pairs[i].cause;
			rulings->list[first + i].culprit = pairs[i].culprit;
		}
	}
	free(pairs);
	free(effects);
	return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits and the run that is to answer them: what it must measure, and whether every limit finds something.
 */
#include <stdio.h>
#include <string.h>
#include "limits.h"
#include "../cli/options.h"
#include "../cli/show.h"
#include "../engine/block.h"

int xb_limit_covers(const struct xb_limit *limit, size_t size_bytes)
{
	for (size_t i = 0; i < limit->range_count; i++)
		if (size_bytes >= limit->ranges[i].low && size_bytes <= limit->ranges[i].high)
			return 1;
	return limit->range_count == 0;
}

static int set_option(struct xb_config *config, uint64_t given, const char *name, const char *value,
		      struct xb_error *error)
{
	for (size_t i = 0; i < xb_option_count; i++)
		if (!strcmp(xb_options[i].name, name))
			return given >> i & 1 ? 0 : xb_option_set(&xb_options[i], config, value, error);
	return 0;
}

static int was_given(const struct xb_limits *limits, uint64_t given, const char *name)
{
	for (size_t i = 0; i < xb_option_count; i++)
		if (!strcmp(xb_options[i].name, name) && (given >> i & 1))
			return 1;
	for (size_t i = 0; i < limits->run_count; i++)
		if (!strcmp(limits->run[i].name, name))
			return 1;
	return 0;
}

static void benches_of_limits(const struct xb_limits *limits, struct xb_config *config)
{
	config->bench_count = 0;
	for (size_t i = 0; i < limits->count; i++) {
		size_t at = 0;
		if (!xb_metric_has_size(limits->limits[i].metric))
			continue;
		while (at < config->bench_count && config->benches[at] != limits->limits[i].bench)
			at++;
		if (at == config->bench_count)
			config->benches[config->bench_count++] = limits->limits[i].bench;
	}
	if (config->bench_count == 0)
		config->benches[config->bench_count++] = XB_BENCH_PINGPONG;
}

/* The sizes of all limits in one list, given to the option's own parser. Limits without sizes take what the
 * others ask for; if none has any, one small size. */
static int sizes_of_limits(const struct xb_limits *limits, struct xb_config *config, struct xb_error *error)
{
	size_t merged[XB_MAX_SIZES], count = 0;

	for (size_t i = 0; i < limits->count; i++) {
		const struct xb_limit *l = &limits->limits[i];
		for (size_t k = 0; k < l->range_count; k++) {
			size_t own[XB_MAX_SIZES], own_count;
			char text[64];
			snprintf(text, sizeof(text), "%zu:%zu", l->ranges[k].low, l->ranges[k].high);
			if (xb_parse_sizes(text, own, XB_MAX_SIZES, &own_count, error))
				return error->status;
			for (size_t s = 0; s < own_count; s++) {
				size_t at = 0;
				while (at < count && merged[at] < own[s])
					at++;
				if (at < count && merged[at] == own[s])
					continue;
				if (count == XB_MAX_SIZES)
					return xb_fail(error, XB_E_USAGE,
						       "%.200s: the limits speak of more than %u sizes; "
						       "choose some with -s",
						       limits->path, XB_MAX_SIZES);
				memmove(merged + at + 1, merged + at, (count - at) * sizeof(merged[0]));
				merged[at] = own[s];
				count++;
			}
		}
	}
	if (count == 0)
		merged[count++] = 8;
	memcpy(config->sizes, merged, count * sizeof(merged[0]));
	config->size_count = count;
	return 0;
}

int xb_limits_apply(const struct xb_limits *limits, uint64_t given, struct xb_config *config,
		    struct xb_error *error)
{
	for (size_t i = 0; i < limits->run_count; i++) {
		struct xb_error cause = {0};
		int rc = set_option(config, given, limits->run[i].name, limits->run[i].value, &cause);
		if (rc)
			return xb_fail(error, rc, "%.150s:%u: %s: %s", limits->path, limits->run[i].line,
				       limits->run[i].name, cause.text);
	}
	if (!was_given(limits, given, "benchmarks"))
		benches_of_limits(limits, config);
	return was_given(limits, given, "sizes") ? 0 : sizes_of_limits(limits, config, error);
}

/* --- does every limit apply? --- */

static int find_label(const struct xb_config *config, const char *label)
{
	for (size_t t = 0; t < config->transport_count; t++)
		if (!strcmp(config->transports[t].label, label))
			return (int)t;
	return -1;
}

static const char *labels(const struct xb_config *config, char text[256])
{
	*text = '\0';
	for (size_t t = 0; t < config->transport_count; t++)
		snprintf(text + strlen(text), 256 - strlen(text), "%s%s", t ? ", " : "",
			 config->transports[t].label);
	return text;
}

static const char *sizes_text(const struct xb_config *config, char text[256])
{
	*text = '\0';
	for (size_t s = 0; s < config->size_count && strlen(text) < 200; s++)
		snprintf(text + strlen(text), 256 - strlen(text), "%s%zu", s ? ", " : "", config->sizes[s]);
	return text;
}

static const char *lower_label(const struct xb_limit *l, const struct xb_config *config)
{
	return l->over ? l->over : config->baseline ? config->baseline : config->transports[0].label;
}

static int match_limit(const struct xb_limits *all, const struct xb_limit *l, const struct xb_config *config,
		       size_t pairs, struct xb_error *error)
{
	static const char *const benches[] = {"pingpong", "bw", "bibw", "swap"};
	char list[256];
	size_t i = 0;
	int overhead = l->metric == XB_METRIC_OVERHEAD_US || l->metric == XB_METRIC_OVERHEAD_PCT;

#define NOTHING(...) xb_fail(error, XB_E_USAGE, "%.150s:%u: the limit '%s' matches nothing: " __VA_ARGS__)
	if (l->transport && find_label(config, l->transport) < 0)
		return NOTHING("no transport of this run is called '%s'; there are %s", all->path, l->line,
			       l->name, XB_SHOW(l->transport), labels(config, list));
	if (overhead && find_label(config, lower_label(l, config)) < 0)
		return NOTHING("no transport of this run is called '%s' (over); there are %s", all->path,
			       l->line, l->name, XB_SHOW(lower_label(l, config)), labels(config, list));
	if (overhead && l->transport && !strcmp(lower_label(l, config), l->transport))
		return NOTHING("'%s' is the transport that the others are compared with; name another one, "
			       "or add 'over = "
			       "LABEL'",
			       all->path, l->line, l->name, XB_SHOW(l->transport));
	if (l->has_op && l->op != config->op)
		return NOTHING("it is for op %s, and this run measures %s (--op)", all->path, l->line,
			       l->name, xb_op_name(l->op), xb_op_name(config->op));
	if (pairs < 2 && (l->relation == XB_RELATION_MEDIAN || l->relation == XB_RELATION_BEST) &&
	    !l->has_max && !l->has_min)
		return NOTHING("it compares pairs with the %s of all pairs, and this run has one pair",
			       all->path, l->line, l->name, xb_relation_name(l->relation));
	if (!xb_metric_has_size(l->metric))
		return 0;
	while (i < config->bench_count && config->benches[i] != l->bench)
		i++;
	if (i == config->bench_count)
		return NOTHING("it is for benchmark %s, which this run does not measure (-b)", all->path,
			       l->line, l->name, benches[l->bench]);
	for (i = 0; i < config->size_count; i++)
		if (xb_limit_covers(l, config->sizes[i]))
			return 0;
	return NOTHING("its sizes %s are none of those measured: %s (-s)", all->path, l->line, l->name,
		       XB_SHOW(l->sizes_text), sizes_text(config, list));
#undef NOTHING
}

int xb_limits_match(const struct xb_limits *limits, const struct xb_config *config, size_t pairs,
		    struct xb_error *error)
{
	int status = 0;

	for (size_t i = 0; !status && i < limits->count; i++)
		status = match_limit(limits, &limits->limits[i], config, pairs, error);
	return status;
}

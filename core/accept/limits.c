/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits file. inih splits lines into keys and values; headings and line numbers are kept here, because
 * it tells neither. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <ini.h>
#include "limits.h"
#include "../cli/options.h"
#include "../cli/show.h"

#define NOISE_BUDGET_PCT 30.0

struct reader {
	const char *text, *end; /* what is left */
	const char *name;
	unsigned line;
	int in_run; /* the section that lines belong to: [run], or the last limit, or none yet */
	struct xb_limits *limits;
	struct xb_error *error;
	int status;
};

/* The first error wins: everything after it may only follow from it. */
static int wrong(struct reader *r, unsigned line, int status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static int wrong(struct reader *r, unsigned line, int status, const char *format, ...)
{
	char what[XB_ERROR_TEXT_BYTES - 200];
	va_list arguments;

	if (r->status)
		return r->status;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	r->status = status;
	return xb_fail(r->error, status, "%.150s:%u: %s", r->name, line, what);
}

static struct xb_limit *current(struct reader *r)
{
	return r->in_run || r->limits->count == 0 ? NULL : &r->limits->limits[r->limits->count - 1];
}

/* --- headings --- */

static int new_limit(struct reader *r, const char *name)
{
	struct xb_limits *all = r->limits;
	struct xb_limit *grown;

	if (!*name || strlen(name) > XB_LIMIT_NAME_MAX ||
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")])
		return wrong(r, r->line, XB_E_USAGE,
			     "'%s' is not a name for a limit; write 1 to %u letters, digits, '.', '_' or '-'",
			     XB_SHOW(name), XB_LIMIT_NAME_MAX);
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->limits[i].name, name))
			return wrong(
				r, r->line, XB_E_USAGE,
				"the limit '%s' is there twice, first in line %u; give each its own name",
				name, all->limits[i].line);
	if (all->count == XB_LIMITS_MAX)
		return wrong(r, r->line, XB_E_USAGE, "more than %u limits; leave some out", XB_LIMITS_MAX);
	grown = realloc(all->limits, (all->count + 1) * sizeof(*grown));
	if (!grown)
		return wrong(r, r->line, XB_E_RESOURCE, "out of memory");
	all->limits = grown;
	grown[all->count] = (struct xb_limit){.line = r->line};
	strcpy(grown[all->count].name, name);
	all->count++;
	r->in_run = 0;
	return 0;
}

/* text: one line without its end, beginning with '['. */
static int read_heading(struct reader *r, const char *text)
{
	char name[XB_LIMITS_LINE_MAX + 1] = "";
	const char *close = strchr(text, ']'), *rest = close ? close + 1 + strspn(close + 1, " \t") : NULL;

	if (!close || (*rest && *rest != ';' && *rest != '#'))
		return wrong(r, r->line, XB_E_USAGE, "'%s' is not a heading; write [run] or [limit NAME]",
			     XB_SHOW(text));
	if (close - text == 4 && !memcmp(text, "[run", 4)) {
		r->in_run = 1;
		return 0;
	}
	if (strncmp(text, "[limit", 6) != 0 || (text[6] != ' ' && text[6] != ']'))
		return wrong(r, r->line, XB_E_USAGE,
			     "'%s' is not a known section; write [run] or [limit NAME]",
			     XB_SHOW_SPAN(text, (size_t)(close + 1 - text)));
	text += 6;
	text += strspn(text, " ");
	if (close > text)
		memcpy(name, text, (size_t)(close - text));
	return new_limit(r, name);
}

/* --- keys of a limit --- */

static int set_word(struct reader *r, char **slot, const char *key, const char *value)
{
	if (*slot)
		return wrong(r, r->line, XB_E_USAGE, "%s is given twice for this limit; keep one", key);
	if (!*value)
		return wrong(r, r->line, XB_E_USAGE, "%s has no value", key);
	*slot = strdup(value);
	return *slot ? 0 : wrong(r, r->line, XB_E_RESOURCE, "out of memory");
}

/* The index of value among words; -1 with an error if it is none of them, or if it was set before. */
static int choose(struct reader *r, int *seen, const char *key, const char *value, const char *const *words,
		  size_t count)
{
	char all[256] = "";

	if ((*seen)++) {
		wrong(r, r->line, XB_E_USAGE, "%s is given twice for this limit; keep one", key);
		return -1;
	}
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(words[i], value))
			return (int)i;
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "", words[i]);
	}
	wrong(r, r->line, XB_E_USAGE, "'%s' is not allowed for %s; choose from %s", XB_SHOW(value), key, all);
	return -1;
}

static int set_metric(struct reader *r, struct xb_limit *limit, const char *value)
{
	const char *words[XB_METRIC_COUNT];
	int chosen;

	for (size_t i = 0; i < XB_METRIC_COUNT; i++)
		words[i] = xb_metric_name((enum xb_metric)i);
	chosen = choose(r, &limit->has_metric, "metric", value, words, XB_METRIC_COUNT);
	if (chosen >= 0)
		limit->metric = (enum xb_metric)chosen;
	return chosen < 0 ? r->status : 0;
}

static int set_sizes(struct reader *r, struct xb_limit *limit, const char *value)
{
	struct xb_error cause = {0};

	if (set_word(r, &limit->sizes_text, "sizes", value))
		return r->status;
	for (const char *item = value;; item++) {
		size_t length = strcspn(item, ",");
		char text[64] = "";
		size_t sizes[XB_MAX_SIZES], count;

		if (length >= sizeof(text) || limit->range_count == XB_LIMIT_RANGES_MAX)
			return wrong(r, r->line, XB_E_USAGE,
				     "sizes: at most %u sizes or ranges, with a comma between two",
				     XB_LIMIT_RANGES_MAX);
		memcpy(text, item, length);
		for (size_t end = length; end > 0 && text[end - 1] == ' '; end--)
			text[end - 1] = '\0';
		if (xb_parse_sizes(text + strspn(text, " "), sizes, XB_MAX_SIZES, &count, &cause))
			return wrong(r, r->line, XB_E_USAGE, "sizes: %s", cause.text);
		limit->ranges[limit->range_count++] = (struct xb_size_range){sizes[0], sizes[count - 1]};
		item += length;
		if (!*item)
			return 0;
	}
}

static int set_bound(struct reader *r, struct xb_limit *limit, int is_max, const char *value)
{
	struct xb_error cause = {0};
	const char *key = is_max ? "max" : "min";

	if (!limit->has_metric)
		return wrong(r, r->line, XB_E_USAGE,
			     "%s comes before the metric that gives it its unit; write metric first", key);
	if ((is_max ? limit->has_max++ : limit->has_min++))
		return wrong(r, r->line, XB_E_USAGE, "%s is given twice for this limit; keep one", key);
	if (xb_parse_quantity(value, limit->metric, is_max ? &limit->max : &limit->min, &cause))
		return wrong(r, r->line, XB_E_USAGE, "%s: %s", key, cause.text);
	if (!is_max && limit->metric == XB_METRIC_SHARE && limit->min > 1)
		return wrong(r, r->line, XB_E_USAGE,
			     "min: '%s' is more than all of the payload; allowed are 0 to 100 %%",
			     XB_SHOW(value));
	return 0;
}

static int set_within(struct reader *r, struct xb_limit *limit, const char *value)
{
	struct xb_error cause = {0};

	if (limit->relation)
		return wrong(r, r->line, XB_E_USAGE,
			     "within is given twice for this limit; write two limits");
	limit->relation_line = r->line;
	if (xb_parse_within(value, &limit->within, &limit->relation, &limit->reference, &cause))
		return wrong(r, r->line, XB_E_USAGE, "within: %s", cause.text);
	return 0;
}

static int set_of_limit(struct reader *r, struct xb_limit *limit, const char *key, const char *value)
{
	static const char *const benches[] = {"pingpong", "bw", "bibw"}; /* order of enum xb_bench */
	static const char *const ops[] = {"send", "write", "read", "write-poll"}; /* of enum xb_op */
	static const char *const ways[] = {"either", "both"};
	int chosen;

	if (!strcmp(key, "transport"))
		return set_word(r, &limit->transport, key, value);
	if (!strcmp(key, "over"))
		return set_word(r, &limit->over, key, value);
	if (!strcmp(key, "metric"))
		return set_metric(r, limit, value);
	if (!strcmp(key, "sizes"))
		return set_sizes(r, limit, value);
	if (!strcmp(key, "max") || !strcmp(key, "min"))
		return set_bound(r, limit, key[1] == 'a', value);
	if (!strcmp(key, "within"))
		return set_within(r, limit, value);
	if (!strcmp(key, "benchmark")) {
		chosen = choose(r, &limit->has_bench, key, value, benches, 3);
		limit->bench = chosen > 0 ? (enum xb_bench)chosen : XB_BENCH_PINGPONG;
		return r->status;
	}
	if (!strcmp(key, "op")) {
		chosen = choose(r, &limit->has_op, key, value, ops, 4);
		limit->op = chosen > 0 ? (enum xb_op)chosen : XB_OP_SEND;
		return r->status;
	}
	if (!strcmp(key, "violated_when")) {
		chosen = choose(r, &limit->has_combination, key, value, ways, 2);
		limit->both = chosen == 1;
		return r->status;
	}
	return wrong(r, r->line, XB_E_USAGE,
		     "unknown key '%s'; a limit has transport, over, benchmark, op, sizes, metric, max, min, "
		     "within and "
		     "violated_when",
		     XB_SHOW(key));
}

/* --- keys of [run] --- */

static const char *const run_keys[] = {"transports", "benchmarks", "op",	  "sizes",
				       "iterations", "warmup",	   "window",	  "launches",
				       "time",	     "baseline",   "noise_budget"};
#define RUN_KEYS (sizeof(run_keys) / sizeof(run_keys[0]))

static int set_of_run(struct reader *r, const char *key, const char *value)
{
	struct xb_limits *all = r->limits;
	char words[256] = "";
	struct xb_error cause = {0};
	size_t known = 0;

	while (known < RUN_KEYS && strcmp(run_keys[known], key) != 0)
		known++;
	for (size_t i = 0; i < RUN_KEYS; i++)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s", i ? ", " : "",
			 run_keys[i]);
	if (known == RUN_KEYS)
		return wrong(r, r->line, XB_E_USAGE, "unknown key '%s'; [run] has %s", XB_SHOW(key), words);
	for (size_t i = 0; i < all->run_count; i++)
		if (!strcmp(all->run[i].name, key))
			return wrong(r, r->line, XB_E_USAGE, "%s is given twice, first in line %u; keep one",
				     key, all->run[i].line);
	if (!strcmp(key, "noise_budget")) {
		if (xb_parse_quantity(value, XB_METRIC_NOISE, &all->noise_budget_pct, &cause))
			return wrong(r, r->line, XB_E_USAGE, "noise_budget: %s", cause.text);
		if (all->noise_budget_pct > 100)
			return wrong(r, r->line, XB_E_USAGE,
				     "noise_budget: '%s' is out of range; allowed are 0 to 100 %%",
				     XB_SHOW(value));
	}
	all->run[all->run_count].name = strdup(key);
	all->run[all->run_count].value = strdup(value);
	all->run[all->run_count].line = r->line;
	all->run_count++;
	return all->run[all->run_count - 1].name && all->run[all->run_count - 1].value
		       ? 0
		       : wrong(r, r->line, XB_E_RESOURCE, "out of memory");
}

static int on_key(void *user, const char *section, const char *key, const char *value)
{
	struct reader *r = user;
	struct xb_limit *limit = current(r);

	(void)section; /* headings are read by ourselves */
	if (r->status)
		return 0;
	if (!limit && !r->in_run)
		return wrong(r, r->line, XB_E_USAGE,
			     "'%s' belongs to no section; begin with [run] or [limit NAME]",
			     XB_SHOW(key)) == 0;
	return (limit ? set_of_limit(r, limit, key, value) : set_of_run(r, key, value)) == 0;
}

/* --- lines --- */

/* Hands inih the next line, without what leads it (which would make it the continuation of the line before),
 * and stops at the first that is wrong. Called like fgets. */
static char *next_line(char *buffer, int capacity, void *user)
{
	struct reader *r = user;
	const char *begin = r->text,
		   *end = begin < r->end ? memchr(begin, '\n', (size_t)(r->end - begin)) : NULL;
	size_t length;

	if (r->status || begin == r->end)
		return NULL;
	if (!end)
		end = r->end;
	r->text = end < r->end ? end + 1 : end;
	r->line++;
	while (begin < end && (*begin == ' ' || *begin == '\t'))
		begin++;
	while (end > begin && strchr(" \t\r", end[-1]) && end[-1])
		end--;
	length = (size_t)(end - begin);
	if (length > XB_LIMITS_LINE_MAX || length + 2 > (size_t)capacity) {
		wrong(r, r->line, XB_E_USAGE, "the line has more than %u characters", XB_LIMITS_LINE_MAX);
		return NULL;
	}
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)begin[i];
		if ((c >= 0x20 && c != 0x7f) || c == '\t')
			continue;
		wrong(r, r->line, XB_E_USAGE, "the line has a control character (byte %u); write plain text",
		      c);
		return NULL;
	}
	if (length)
		memcpy(buffer, begin, length);
	buffer[length] = '\0';
	if (buffer[0] == '[' && read_heading(r, buffer))
		return NULL;
	if (buffer[0] && !strchr("[;#", buffer[0]) && !strpbrk(buffer, "=:")) {
		wrong(r, r->line, XB_E_USAGE, "'%s' has no value; write KEY = VALUE", XB_SHOW(buffer));
		return NULL;
	}
	buffer[length] = '\n';
	buffer[length + 1] = '\0';
	return buffer;
}

/* --- a limit as a whole --- */

static int is_time_or_rate(enum xb_metric m)
{
	return m <= XB_METRIC_RATE;
}

static int check_relation(struct reader *r, const struct xb_limit *l)
{
	unsigned line = l->relation_line;

	if (!is_time_or_rate(l->metric))
		return wrong(r, line, XB_E_USAGE,
			     "within is for latency_us, p99_us, bandwidth_MBps and message_rate_Mps; give %s "
			     "a max or min",
			     xb_metric_name(l->metric));
	if (l->relation == XB_RELATION_LINK && l->metric != XB_METRIC_BANDWIDTH)
		return wrong(r, line, XB_E_USAGE,
			     "the link rate says nothing about %s; it is for bandwidth_MBps",
			     xb_metric_name(l->metric));
	if (l->relation == XB_RELATION_REFERENCE && l->metric != XB_METRIC_BANDWIDTH &&
	    l->metric != XB_METRIC_LATENCY)
		return wrong(r, line, XB_E_USAGE, "references hold latency_us and bandwidth_MBps, not %s",
			     xb_metric_name(l->metric));
	if (xb_metric_higher_is_better(l->metric) && l->within >= 1)
		return wrong(r, line, XB_E_USAGE,
			     "%g %% below is less than nothing: no measurement could violate it; give less "
			     "than 100 %%",
			     100 * l->within);
	return 0;
}

static int check_limit(struct reader *r, struct xb_limit *l)
{
	int absolute = l->has_max || l->has_min, overhead;

	if (!l->has_metric)
		return wrong(r, l->line, XB_E_USAGE,
			     "the limit '%s' has no metric; add for example 'metric = latency_us'", l->name);
	overhead = l->metric == XB_METRIC_OVERHEAD_US || l->metric == XB_METRIC_OVERHEAD_PCT;
	if (!l->transport && l->metric != XB_METRIC_NOISE)
		return wrong(r, l->line, XB_E_USAGE, "the limit '%s' has no transport; add the label of one",
			     l->name);
	if (!absolute && !l->relation)
		return wrong(r, l->line, XB_E_USAGE, "the limit '%s' limits nothing; add max, min or within",
			     l->name);
	if (l->has_max && l->has_min && l->min > l->max)
		return wrong(r, l->line, XB_E_USAGE,
			     "the limit '%s' contradicts itself: its min (%g %s) is above its max (%g %s)",
			     l->name, l->min, xb_metric_unit(l->metric), l->max, xb_metric_unit(l->metric));
	if (absolute && l->relation && !l->has_combination)
		return wrong(
			r, l->line, XB_E_USAGE,
			"the limit '%s' has an absolute and a relative part; say 'violated_when = both' or "
			"'violated_when = either'",
			l->name);
	if (l->has_combination && !(absolute && l->relation))
		return wrong(r, l->line, XB_E_USAGE,
			     "the limit '%s' has violated_when, which needs an absolute (max, min) and a "
			     "relative part "
			     "(within)",
			     l->name);
	if (l->over && !overhead)
		return wrong(r, l->line, XB_E_USAGE,
			     "the limit '%s': over is for overhead_us and overhead_pct", l->name);
	if (!xb_metric_has_size(l->metric) && (l->has_bench || l->range_count))
		return wrong(r, l->line, XB_E_USAGE,
			     "the limit '%s': %s is of the whole run; leave benchmark and sizes out", l->name,
			     xb_metric_name(l->metric));
	if (l->relation && check_relation(r, l))
		return r->status;
	if (!l->has_bench)
		l->bench = l->metric == XB_METRIC_BANDWIDTH || l->metric == XB_METRIC_RATE
				   ? XB_BENCH_BW
				   : XB_BENCH_PINGPONG;
	if (l->metric == XB_METRIC_RATE && l->bench == XB_BENCH_PINGPONG)
		return wrong(r, l->line, XB_E_USAGE,
			     "the limit '%s': pingpong has no message rate; use bw or bibw", l->name);
	return 0;
}

int xb_limits_parse(const char *text, size_t bytes, const char *name, struct xb_limits *limits,
		    struct xb_error *error)
{
	struct reader r = {.text = text, .end = text + bytes, .name = name, .limits = limits, .error = error};
	int unread;

	*limits = (struct xb_limits){.noise_budget_pct = NOISE_BUDGET_PCT, .path = strdup(name)};
	unread = ini_parse_stream(next_line, &r, on_key, &r);
	if (!r.status && !limits->path)
		xb_fail(error, r.status = XB_E_RESOURCE, "out of memory");
	if (!r.status && unread)
		wrong(&r, unread > 0 ? (unsigned)unread : 1, XB_E_USAGE,
		      "this is not KEY = VALUE or a heading");
	for (size_t i = 0; !r.status && i < limits->count; i++)
		check_limit(&r, &limits->limits[i]);
	if (!r.status && limits->count == 0)
		wrong(&r, r.line ? r.line : 1, XB_E_USAGE,
		      "the file ends without a limit; add a section [limit NAME]");
	if (r.status)
		xb_limits_free(limits);
	return r.status;
}

int xb_limits_read(const char *path, struct xb_limits *limits, struct xb_error *error)
{
	FILE *file = fopen(path, "re");
	struct stat found;
	char *text = NULL;
	size_t used = 0;
	int status;

	*limits = (struct xb_limits){0};
	if (!file)
		return xb_fail(error, XB_E_SYSTEM, "cannot read the limits %.300s: %s", path,
			       strerror(errno));
	if (fstat(fileno(file), &found) == 0 && S_ISDIR(found.st_mode)) {
		fclose(file);
		return xb_fail(error, XB_E_USAGE, "cannot read the limits %.300s: it is a folder", path);
	}
	text = malloc(XB_LIMITS_FILE_MAX + 1);
	if (text)
		used = fread(text, 1, XB_LIMITS_FILE_MAX + 1, file);
	if (!text)
		status = xb_fail(error, XB_E_RESOURCE, "out of memory");
	else if (ferror(file))
		status = xb_fail(error, XB_E_SYSTEM, "cannot read the limits %.300s: %s", path,
				 strerror(errno));
	else if (used > XB_LIMITS_FILE_MAX)
		status = xb_fail(error, XB_E_USAGE, "%.300s has more than %u bytes: it is no file of limits",
				 path, XB_LIMITS_FILE_MAX);
	else
		status = xb_limits_parse(text, used, path, limits, error);
	fclose(file);
	free(text);
	return status;
}

void xb_limits_free(struct xb_limits *limits)
{
	for (size_t i = 0; i < limits->count; i++) {
		free(limits->limits[i].transport);
		free(limits->limits[i].over);
		free(limits->limits[i].reference);
		free(limits->limits[i].sizes_text);
	}
	for (size_t i = 0; i < limits->run_count; i++) {
		free(limits->run[i].name);
		free(limits->run[i].value);
	}
	free(limits->limits);
	free(limits->path);
	*limits = (struct xb_limits){0};
}

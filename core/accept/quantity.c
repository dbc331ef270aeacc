/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of limits: numbers with units, and "20 % of median". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "limits.h"
#include "../cli/show.h"

#define LARGEST 1e12
#define WITHIN_LARGEST 10.0 /* 1000 % */

enum kind { TIME, BYTES_PER_S, MESSAGES_PER_S, PERCENT, SHARE };

static const struct {
	const char *name, *unit;
	enum kind kind;
	int higher_is_better, has_size, signed_value;
} metrics[XB_METRIC_COUNT] = {
	[XB_METRIC_LATENCY] = {"latency_us", "us", TIME, 0, 1, 0},
	[XB_METRIC_P99] = {"p99_us", "us", TIME, 0, 1, 0},
	[XB_METRIC_BANDWIDTH] = {"bandwidth_MBps", "MB/s", BYTES_PER_S, 1, 1, 0},
	[XB_METRIC_RATE] = {"message_rate_Mps", "Mmsg/s", MESSAGES_PER_S, 1, 1, 0},
	[XB_METRIC_OVERHEAD_US] = {"overhead_us", "us", TIME, 0, 1, 1},
	[XB_METRIC_OVERHEAD_PCT] = {"overhead_pct", "%", PERCENT, 0, 1, 1},
	[XB_METRIC_NOISE] = {"noise_pct", "%", PERCENT, 0, 0, 0},
	[XB_METRIC_SHARE] = {"share_of_payload", "", SHARE, 1, 0, 0},
};

static const struct {
	enum kind kind;
	const char *word;
	double factor;
} units[] = {
	{TIME, "us", 1},
	{TIME, "ns", 1e-3},
	{TIME, "ms", 1e3},
	{TIME, "s", 1e6},
	{BYTES_PER_S, "MB/s", 1},
	{BYTES_PER_S, "GB/s", 1e3},
	{BYTES_PER_S, "Gb/s", 125},
	{BYTES_PER_S, "Mb/s", 0.125},
	{BYTES_PER_S, "MiB/s", 1.048576},
	{BYTES_PER_S, "GiB/s", 1073.741824},
	{MESSAGES_PER_S, "Mmsg/s", 1},
	{PERCENT, "%", 1},
	{SHARE, "%", 0.01},
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const relations[XB_RELATION_COUNT] = {
	[XB_RELATION_NONE] = "none",	     [XB_RELATION_MEDIAN] = "median",
	[XB_RELATION_BEST] = "best",	     [XB_RELATION_LINK] = "link",
	[XB_RELATION_BASELINE] = "baseline", [XB_RELATION_REFERENCE] = "reference",
};

const char *xb_metric_name(enum xb_metric metric)
{
	return metrics[metric].name;
}

const char *xb_metric_unit(enum xb_metric metric)
{
	return metrics[metric].unit;
}

int xb_metric_higher_is_better(enum xb_metric metric)
{
	return metrics[metric].higher_is_better;
}

int xb_metric_has_size(enum xb_metric metric)
{
	return metrics[metric].has_size;
}

const char *xb_relation_name(enum xb_relation relation)
{
	return relations[relation];
}

/* Digits with an optional sign and fraction; returns what follows them, NULL if there are none. */
static const char *read_number(const char *text, int may_be_negative, double *value)
{
	const char *p = text;
	double digits = 0, scale = 1, sign = 1;

	if (may_be_negative && *p == '-') {
		sign = -1;
		p++;
	}
	if (*p < '0' || *p > '9')
		return NULL;
	for (; *p >= '0' && *p <= '9'; p++)
		digits = digits * 10 + (*p - '0');
	if (p[0] == '.' && p[1] >= '0' && p[1] <= '9') {
		for (p++; *p >= '0' && *p <= '9'; p++) {
			digits = digits * 10 + (*p - '0');
			scale *= 10;
		}
	}
	*value = sign * digits / scale; /* not a number if both overflowed */
	return p;
}

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

static void list_units(enum kind kind, char *text, size_t bytes)
{
	*text = '\0';
	for (size_t i = 0; i < COUNT(units); i++) {
		size_t used = strlen(text);
		if (units[i].kind == kind)
			snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", units[i].word);
	}
}

int xb_parse_quantity(const char *text, enum xb_metric metric, double *value, struct xb_error *error)
{
	enum kind kind = metrics[metric].kind;
	double number = 0, factor = 1;
	const char *unit = read_number(text, metrics[metric].signed_value, &number);
	char words[96];

	list_units(kind, words, sizeof(words));
	if (!unit)
		return xb_fail(error, XB_E_USAGE,
			       "'%s' is not a value of %s; write a number%s and, if you like, %s",
			       XB_SHOW(text), metrics[metric].name,
			       metrics[metric].signed_value ? "" : " that is not negative", words);
	unit = skip_blanks(unit);
	if (*unit) {
		size_t i = 0;
		while (i < COUNT(units) && (units[i].kind != kind || strcmp(units[i].word, unit) != 0))
			i++;
		if (i == COUNT(units))
			return xb_fail(error, XB_E_USAGE, "'%s' is not a unit of %s; choose from %s",
				       XB_SHOW(unit), metrics[metric].name, words);
		factor = units[i].factor;
	} else if (kind == SHARE && number > 1)
		return xb_fail(error, XB_E_USAGE, "'%s' is more than all of the payload; write '%s %%'",
			       XB_SHOW(text), XB_SHOW(text));
	number *= factor;
	if (!(fabs(number) <= LARGEST))
		return xb_fail(error, XB_E_USAGE, "'%s' is out of range; %s is at most %g %s", XB_SHOW(text),
			       metrics[metric].name, LARGEST, metrics[metric].unit);
	*value = number;
	return 0;
}

#define WITHIN_FORM                                                                                          \
	"write 'N % of WHAT' with WHAT one of median, best, link, baseline, reference FILE, for example "    \
	"'20 % of "                                                                                          \
	"median'"

static int not_within(const char *text, struct xb_error *error)
{
	return xb_fail(error, XB_E_USAGE, "'%s' is not a relative limit; %s", XB_SHOW(text), WITHIN_FORM);
}

int xb_parse_within(const char *text, double *share, enum xb_relation *relation, char **file,
		    struct xb_error *error)
{
	double percent = 0;
	const char *p = read_number(text, 0, &percent);
	size_t length, i = 1;

	*file = NULL;
	if (!p || *(p = skip_blanks(p)) != '%')
		return not_within(text, error);
	p = skip_blanks(p + 1);
	if (strncmp(p, "of", 2) != 0 || (p[2] != ' ' && p[2] != '\t'))
		return not_within(text, error);
	p = skip_blanks(p + 2);
	length = strcspn(p, " \t");
	while (i < XB_RELATION_COUNT &&
	       (strlen(relations[i]) != length || memcmp(relations[i], p, length) != 0))
		i++;
	if (i == XB_RELATION_COUNT)
		return not_within(text, error);
	p = skip_blanks(p + length);
	if ((i == XB_RELATION_REFERENCE) != (*p != '\0'))
		return xb_fail(error, XB_E_USAGE,
			       i == XB_RELATION_REFERENCE
				       ? "'%s' names no file; write 'N %% of reference FILE'"
				       : "'%s' has something after its end; only 'reference' is "
					 "followed by a file",
			       XB_SHOW(text));
	percent /= 100;
	if (!(percent > 0 && percent <= WITHIN_LARGEST))
		return xb_fail(error, XB_E_USAGE,
			       "'%s' is out of range; allowed are more than 0 %% and at most %g %%",
			       XB_SHOW(text), 100 * WITHIN_LARGEST);
	if (*p && !(*file = strdup(p)))
		return xb_fail(error, XB_E_RESOURCE, "out of memory");
	*share = percent;
	*relation = (enum xb_relation)i;
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"

/* A number and its unit out of a list; NAN if it is neither. The number must be finite and not negative. */
static double number_with(const char *text, const char *const *units, const double *factors, char stop,
			  const char **end)
{
	char *after;
	double value;

	if (!((text[0] >= '0' && text[0] <= '9') || text[0] == '.'))
		return NAN;
	value = strtod(text, &after);
	if (!isfinite(value) || value < 0)
		return NAN;
	for (size_t i = 0; units[i]; i++) {
		size_t length = strlen(units[i]);
		if (!strncmp(after, units[i], length) && (after[length] == 0 || after[length] == stop)) {
			*end = after + length;
			return value * factors[i];
		}
	}
	return NAN;
}

static int parse_time(const char *key, const char *given, const char *text, uint64_t *ns,
		      struct xb_error *error)
{
	static const char *const units[] = {"ns", "us", "ms", "s", NULL};
	static const double factors[] = {1, 1e3, 1e6, 1e9};
	const char *end = text;
	double value = number_with(text, units, factors, 0, &end);

	if (isnan(value) || value > 60e9)
		return xb_fail(error, XB_E_USAGE,
			       "fault.%s=%s: not a time up to 60s; write for example 500ns, 2us or 1.5ms",
			       key, given);
	*ns = (uint64_t)(value + 0.5);
	return 0;
}

static int parse_bytes(const char *key, const char *text, char stop, size_t *bytes, const char **end,
		       struct xb_error *error)
{
	static const char *const units[] = {"", "K", "M", "G", NULL};
	static const double factors[] = {1, 1024, 1048576, 1073741824};
	const char *after = text;
	double value = number_with(text, units, factors, stop, &after);

	if (isnan(value) || value > 1e15 || value != floor(value))
		return xb_fail(error, XB_E_USAGE,
			       "fault.%s=%s: not a message size; write for example 1000, 8K or 1M", key,
			       text);
	*bytes = (size_t)value;
	if (end)
		*end = after;
	return 0;
}

static int parse_step(const char *text, struct fault_settings *s, struct xb_error *error)
{
	const char *slash = text;
	int status = strchr(text, '/') ? parse_bytes("step", text, '/', &s->step_bytes, &slash, error)
				       : xb_fail(error, XB_E_USAGE,
						 "fault.step=%s: write SIZE/TIME, for example 8K/5us", text);
	return status ? status : parse_time("step", text, slash + 1, &s->step_ns, error);
}

static int parse_rate(const char *text, double *rate, struct xb_error *error)
{
	static const char *const units[] = {"", "K", "M", "G", NULL};
	static const double factors[] = {1, 1e3, 1e6, 1e9};
	const char *end = text;

	*rate = number_with(text, units, factors, 0, &end);
	if (isnan(*rate) || *rate < 1)
		return xb_fail(
			error, XB_E_USAGE,
			"fault.cap=%s: not a rate; write bytes per second, for example 500M or 1G (10^9)",
			text);
	return 0;
}

static int parse_count(const char *key, const char *text, unsigned long most, unsigned long *count,
		       struct xb_error *error)
{
	char *end;

	errno = 0;
	*count = strtoul(text, &end, 10);
	if (!(text[0] >= '0' && text[0] <= '9') || *end || errno || *count > most)
		return xb_fail(error, XB_E_USAGE, "fault.%s=%s: not a whole number from 0 to %lu", key, text,
			       most);
	return 0;
}

static int parse_key(const char *key, const char *value, struct fault_settings *s, struct xb_error *error)
{
	unsigned long count = 1;
	int status = 0;

	if (!strcmp(key, "delay"))
		return parse_time(key, value, value, &s->delay_ns, error);
	if (!strcmp(key, "jitter"))
		return parse_time(key, value, value, &s->jitter_ns, error);
	if (!strcmp(key, "step"))
		return parse_step(value, s, error);
	if (!strcmp(key, "cap"))
		return parse_rate(value, &s->cap_bytes_per_s, error);
	if (!strcmp(key, "corrupt")) {
		if (*value)
			status = parse_count(key, value, 1000000000, &count, error);
		if (!status && !count)
			status = xb_fail(error, XB_E_USAGE,
					 "fault.corrupt=0: every how many messages? 1 corrupts all");
		s->corrupt_every = count;
		return status;
	}
	if (!strcmp(key, "premature")) {
		s->premature_bytes = 0;
		return *value ? parse_bytes(key, value, 0, &s->premature_bytes, NULL, error) : 0;
	}
	if (!strcmp(key, "hang"))
		return parse_bytes(key, value, 0, &s->hang_bytes, NULL, error);
	if (!strcmp(key, "crash"))
		return parse_bytes(key, value, 0, &s->crash_bytes, NULL, error);
	if (!strcmp(key, "endpoint")) {
		status = parse_count(key, value, 1000000, &count, error);
		s->endpoint = (long)count;
		return status;
	}
	return xb_fail(error, XB_E_USAGE, "there is no key fault.%s", key);
}

int fault_settings_parse(const struct xb_setup *setup, struct fault_settings *s, struct xb_error *error)
{
	*s = (struct fault_settings){
		.premature_bytes = SIZE_MAX, .hang_bytes = SIZE_MAX, .crash_bytes = SIZE_MAX, .endpoint = -1};
	for (size_t i = 0; i < setup->key_count; i++) {
		int status = parse_key(setup->keys[i].key, setup->keys[i].value, s, error);
		if (status)
			return status;
	}
	if (s->endpoint >= (long)setup->endpoints)
		return xb_fail(error, XB_E_USAGE, "fault.endpoint=%ld: the endpoints are 0 to %u",
			       s->endpoint, setup->endpoints - 1);
	return 0;
}

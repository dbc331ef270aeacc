/* SPDX-License-Identifier: BSD-3-Clause */
/* Durations: "300ns", "2us", "1.5ms", "1s"; exact to the nanosecond, so no floating point. */
#include "config.h"
#include "show.h"

#define NS_PER_S 1000000000u
#define LONGEST_S 86400u

static uint64_t unit_ns(const char *unit)
{
	if (strcmp(unit, "ns") == 0)
		return 1;
	if (strcmp(unit, "us") == 0 || strcmp(unit, "\xc2\xb5s") == 0 || strcmp(unit, "\xce\xbcs") == 0)
		return 1000; /* also the micro sign and the Greek letter in UTF-8 */
	if (strcmp(unit, "ms") == 0)
		return 1000000;
	if (strcmp(unit, "s") == 0)
		return NS_PER_S;
	return 0;
}

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int xb_parse_time_ns(const char *text, uint64_t *ns, struct xb_error *error)
{
	const uint64_t limit_ns = (uint64_t)LONGEST_S * NS_PER_S;
	uint64_t whole = 0, unit, value, scale;
	const char *p = text, *fraction = NULL, *fraction_end = NULL;

	for (; is_digit(*p); p++) {
		if (whole <= limit_ns)
			whole = whole * 10 + (uint64_t)(*p - '0');
	}
	if (p == text)
		return xb_fail(error, XB_E_USAGE,
			       "'%s' is not a time: write a number and its unit, for example 300ns, "
			       "2us, 1.5ms or 1s",
			       XB_SHOW(text));
	if (*p == '.') {
		for (fraction = ++p; is_digit(*p); p++)
			;
		fraction_end = p;
	}
	unit = fraction == fraction_end && fraction ? 0 : unit_ns(p);
	if (unit == 0)
		return xb_fail(
			error, XB_E_USAGE,
			"time '%s' %s: the units are ns, us, ms and s, for example 300ns, 2us, 1.5ms or 1s",
			XB_SHOW(text), *p ? "has something after the number that is no unit" : "has no unit");
	if (whole > limit_ns / unit)
		goto too_long;
	value = whole * unit;
	/* digits worth less than a nanosecond round it to the nearest */
	for (scale = unit; fraction && fraction < fraction_end && scale; fraction++) {
		uint64_t digit = (uint64_t)(*fraction - '0');

		if (scale == 1) {
			value += digit >= 5;
			break;
		}
		scale /= 10;
		value += digit * scale;
	}
	if (value > limit_ns)
		goto too_long;
	*ns = value;
	return 0;
too_long:
	return xb_fail(error, XB_E_USAGE, "time '%s' is too long: the limit is %us (a day)", XB_SHOW(text),
		       LONGEST_S);
}

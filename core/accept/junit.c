/* SPDX-License-Identifier: BSD-3-Clause */
/* JUnit XML, from the document alone: a test suite for each limit, a test case for each size and pair. PASS
 * is a plain case, FAIL a failure; INCONCLUSIVE and unmeasured are errors, so that no CI system takes them
 * for a success. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "accept.h"
#include "../report/text.h"

/* Text of an attribute; what XML cannot hold becomes '?'. */
static void put(FILE *out, const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '&')
			fputs("&amp;", out);
		else if (*p == '<')
			fputs("&lt;", out);
		else if (*p == '>')
			fputs("&gt;", out);
		else if (*p == '"')
			fputs("&quot;", out);
		else
			putc(*p >= 0x20 && *p != 0x7f ? *p : '?', out);
	}
}

static void attribute(FILE *out, const char *name, const char *value)
{
	fprintf(out, " %s=\"", name);
	put(out, value);
	putc('"', out);
}

/* What counts: the retest where there is one. */
static json_t *judged(json_t *ruling)
{
	json_t *fresh = json_object_get(ruling, "fresh");
	return json_is_object(fresh) ? fresh : json_object_get(ruling, "first");
}

static void sentence(json_t *ruling, char *text, size_t bytes)
{
	json_t *j = judged(ruling), *hosts = json_object_get(ruling, "hosts");
	const char *unit = xb_text_of(ruling, "unit"), *cause = xb_text_of(ruling, "cause");

	snprintf(text, bytes, "%s was not measured", xb_text_of(ruling, "metric"));
	if (isfinite(xb_number_of(j, "value")))
		snprintf(text, bytes, "%s %.5g %s [%.5g, %.5g], bound %.5g %s", xb_text_of(ruling, "metric"),
			 xb_number_of(j, "value"), unit, xb_number_of(j, "ci_low"),
			 xb_number_of(j, "ci_high"), xb_number_of(j, "bound"), unit);
	if (*xb_text_of(j, "reason"))
		xb_append(text, bytes, "; %.200s", xb_text_of(j, "reason"));
	if (json_is_object(json_object_get(ruling, "fresh")))
		xb_append(text, bytes, "; measured again in fresh launches");
	if (!strcmp(cause, "node")) {
		json_int_t culprit = json_integer_value(json_object_get(ruling, "culprit"));
		int second =
			json_integer_value(json_array_get(json_object_get(ruling, "pair"), 1)) == culprit;
		const char *host = json_string_value(json_array_get(hosts, second ? 1 : 0));
		xb_append(text, bytes, "; the node %.100s is to blame", host ? host : "?");
	} else if (!strcmp(cause, "link"))
		xb_append(text, bytes, "; the link is to blame, not a node");
}

static void put_case(FILE *out, json_t *ruling)
{
	const char *verdict = xb_text_of(ruling, "verdict"), *first, *second;
	json_t *hosts = json_object_get(ruling, "hosts"), *size = json_object_get(ruling, "size");
	char name[400] = "", text[700];

	first = json_string_value(json_array_get(hosts, 0));
	second = json_string_value(json_array_get(hosts, 1));
	if (json_is_integer(size))
		snprintf(name, sizeof(name), "%lld bytes, ", (long long)json_integer_value(size));
	xb_append(name, sizeof(name), "%.150s - %.150s", first ? first : "?", second ? second : "?");
	fputs("    <testcase", out);
	attribute(out, "classname", xb_text_of(ruling, "limit"));
	attribute(out, "name", name);
	if (!strcmp(verdict, "pass")) {
		fputs("/>\n", out);
		return;
	}
	sentence(ruling, text, sizeof(text));
	fprintf(out, ">\n      <%s", !strcmp(verdict, "fail") ? "failure" : "error");
	attribute(out, "type", verdict);
	attribute(out, "message", text);
	fputs("/>\n    </testcase>\n", out);
}

/* Cases with the verdict ("" for all) of one limit. */
static size_t count(json_t *rulings, const char *limit, const char *a, const char *b)
{
	json_t *ruling;
	size_t i, n = 0;

	json_array_foreach(rulings, i, ruling)
	{
		const char *verdict = xb_text_of(ruling, "verdict");
		if (!strcmp(xb_text_of(ruling, "limit"), limit))
			n += !*a || !strcmp(verdict, a) || !strcmp(verdict, b);
	}
	return n;
}

static void put_suite(FILE *out, json_t *document, json_t *rulings, size_t first)
{
	const char *limit = xb_text_of(json_array_get(rulings, first), "limit");
	char when[32];
	json_t *ruling;
	size_t i;

	fputs("  <testsuite", out);
	attribute(out, "name", limit);
	snprintf(when, sizeof(when), "%.19s", xb_text_of(document, "started"));
	if (*when)
		attribute(out, "timestamp", when);
	fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n", count(rulings, limit, "", ""),
		count(rulings, limit, "fail", "fail"), count(rulings, limit, "inconclusive", "unmeasured"));
	json_array_foreach(rulings, i, ruling)
	{
		if (!strcmp(xb_text_of(ruling, "limit"), limit))
			put_case(out, ruling);
	}
	fputs("  </testsuite>\n", out);
}

static void put_left_out(FILE *out, json_t *list)
{
	json_t *entry;
	size_t i, n = json_array_size(list);

	if (!n)
		return;
	fprintf(out, "  <testsuite name=\"reachable\" tests=\"%zu\" failures=\"0\" errors=\"%zu\">\n", n, n);
	json_array_foreach(list, i, entry)
	{
		fputs("    <testcase classname=\"reachable\"", out);
		attribute(out, "name", xb_text_of(entry, "host"));
		fputs(">\n      <error type=\"unmeasured\"", out);
		attribute(out, "message", xb_text_of(entry, "reason"));
		fputs("/>\n    </testcase>\n", out);
	}
	fputs("  </testsuite>\n", out);
}

int xb_junit_write(json_t *document, const char *path, struct xb_error *error)
{
	json_t *acceptance = json_object_get(document, "acceptance"),
	       *rulings = json_object_get(acceptance, "rulings"), *r;
	char temporary[4200];
	const char *last = "";
	FILE *out;
	size_t i;
	int failed;

	snprintf(temporary, sizeof(temporary), "%.4096s.tmp", path);
	out = fopen(temporary, "we");
	if (!out)
		return xb_fail(error, XB_E_SYSTEM,
			       "cannot write %.300s: %s; choose another file with --junit", path,
			       strerror(errno));
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"xportbench accept\">\n", out);
	json_array_foreach(rulings, i, r)
	{
		if (strcmp(xb_text_of(r, "limit"), last) != 0) /* those of a limit follow each other */
			put_suite(out, document, rulings, i);
		last = xb_text_of(r, "limit");
	}
	put_left_out(out, json_object_get(acceptance, "left_out"));
	fputs("</testsuites>\n", out);
	errno = 0;
	failed = fflush(out) != 0 || ferror(out) || fsync(fileno(out)) != 0;
	if (fclose(out) != 0 || failed || rename(temporary, path) != 0) {
		int cause = errno;
		unlink(temporary);
		return xb_fail(error, XB_E_SYSTEM,
			       "cannot write %.300s: %s; choose another file with --junit", path,
			       strerror(cause ? cause : EIO));
	}
	return 0;
}

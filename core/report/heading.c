/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands above the tables (who, where, with what, over which path) and the findings below them. */
#include <math.h>
#include <string.h>
#include "text.h"
#include "view.h"

#define NAME_COLUMNS 10u
#define LABEL_MOST 24u
#define OTHER_ENDS_MOST 4u

static void line_of(struct xb_out *out, enum xb_style style, const char *name, const char *text)
{
	xb_put(out, XB_BOLD, (int)NAME_COLUMNS, name);
	xb_put_wrapped(out, style, NAME_COLUMNS, text);
}

static void run_line(struct xb_out *out, const struct xb_view *v)
{
	char text[512], seed[32] = "";
	json_t *d = v->document;
	const char *why = xb_text_of(d, "stopped_by");
	const char *said = strcmp(why, "ci") == 0	     ? "stopped when every interval had reached --ci"
			   : strcmp(why, "verdict") == 0     ? "stopped when every limit had its verdict"
			   : strcmp(why, "time") == 0	     ? "stopped by the time budget"
			   : strcmp(why, "fixed") == 0	     ? "as many as were asked for"
			   : strcmp(why, "failed") == 0	     ? "stopped because nothing was left to measure"
			   : strcmp(why, "interrupted") == 0 ? "interrupted"
							     : "not finished";
	json_t *number = json_object_get(d, "seed");
	if (json_is_string(number))
		snprintf(seed, sizeof(seed), "%.24s", json_string_value(number));
	else
		snprintf(seed, sizeof(seed), "%llu", (unsigned long long)xb_count_of(d, "seed"));
	size_t launches = json_is_integer(json_object_get(d, "launches")) ? (size_t)xb_count_of(d, "launches")
									  : v->launches;
	snprintf(text, sizeof(text), "xportbench %.24s, started %.40s, %zu launch%s (%s), seed %s",
		 xb_text_of(d, "xportbench"), xb_text_of(d, "started"), launches, launches == 1 ? "" : "es",
		 said, seed);
	line_of(out, XB_PLAIN, "run", text);
	if (json_is_true(json_object_get(d, "partial")))
		line_of(out, XB_YELLOW, "PARTIAL",
			"the run did not end by itself: what follows is what was measured until then");
}

static void host_lines(struct xb_out *out, const struct xb_view *v)
{
	size_t i;
	json_t *host;
	json_array_foreach(json_object_get(v->document, "hosts"), i, host)
	{
		char text[1024];
		json_t *cpus = json_object_get(host, "cpus_used");
		const char *cpu = xb_text_of(host, "cpu"), *kernel = xb_text_of(host, "kernel");
		snprintf(text, sizeof(text), "%.200s", xb_text_of(host, "name"));
		for (size_t k = 0; k < json_array_size(cpus); k++)
			xb_append(text, sizeof(text), "%s%.0f",
				  k > 0			      ? ", "
				  : json_array_size(cpus) > 1 ? "; cores "
							      : "; core ",
				  json_number_value(json_array_get(cpus, k)));
		if (cpu[0] != '\0')
			xb_append(text, sizeof(text), "; %.100s", cpu);
		if (kernel[0] != '\0')
			xb_append(text, sizeof(text), "; %s%.100s",
				  strncmp(kernel, "Linux", 5) == 0 ? "" : "Linux ", kernel);
		line_of(out, XB_PLAIN, i == 0 ? "host" : "", text);
	}
}

static void timer_line(struct xb_out *out, const struct xb_view *v)
{
	char text[256];
	json_t *timer = json_object_get(v->document, "timer");
	double cost = xb_number_of(timer, "cost_ns"), resolution = xb_number_of(timer, "resolution_ns");
	double drift = xb_number_of(timer, "drift_ppm");
	if (!isfinite(cost))
		return;
	snprintf(text, sizeof(text), "%.40s, %.1f ns a reading, resolution %.1f ns",
		 xb_text_of(timer, "source"), cost, resolution);
	if (isfinite(drift))
		xb_append(text, sizeof(text), ", drift %.2f ppm", drift);
	line_of(out, XB_PLAIN, "timer", text);
}

static void transport_line(struct xb_out *out, const struct xb_view *v, size_t t, size_t label_columns)
{
	char text[2048] = "";
	const struct xb_view_transport *transport = &v->transports[t];
	json_t *j = transport->json;
	const char *error = xb_text_of(j, "error"), *library = xb_text_of(j, "library");
	const char *resolved = xb_text_of(j, "resolved_path"), *version = xb_text_of(j, "version");
	double start_ms = xb_number_of(json_object_get(j, "start_ms"), "median");
	if (!transport->ok)
		xb_append(text, sizeof(text), "%s%s: %.900s",
			  strcmp(xb_text_of(j, "status"), "failed") == 0 ? "FAILED" : "UNAVAILABLE",
			  transport->measured ? " (what it measured before is kept)" : "",
			  error[0] ? error : "no reason was recorded");
	if (transport->ok || transport->measured) {
		if (resolved[0] != '\0')
			xb_append(text, sizeof(text), "%s%.256s", text[0] ? "; " : "", resolved);
		if (library[0] != '\0')
			xb_append(text, sizeof(text), "%s%.64s%s%.64s", text[0] ? "; " : "", library,
				  version[0] ? " " : "", version);
		if (transport->measured)
			xb_append(text, sizeof(text), "%s%.200s", text[0] ? "; " : "",
				  xb_text_of(json_object_get(j, "carried"), "text"));
		const char *launcher = xb_text_of(j, "launcher");
		int remote = launcher[0] != '\0' && strcmp(launcher, "local") != 0;
		if (isfinite(start_ms))
			xb_append(text, sizeof(text), "; started%s%.20s in ", remote ? " by " : "",
				  remote ? launcher : "");
		if (start_ms >= 100.0)
			xb_append(text, sizeof(text), "%.1f s", start_ms / 1e3);
		else if (isfinite(start_ms))
			xb_append(text, sizeof(text), "%.0f ms", start_ms);
	}
	xb_put(out, XB_PLAIN, 2, "");
	xb_put(out, XB_BOLD, (int)label_columns, transport->label);
	xb_put(out, XB_PLAIN, 2, "");
	xb_put_wrapped(out, transport->ok ? XB_PLAIN : XB_RED, 2u + label_columns + 2u, text);
}

/* The paths of ends that use another device than the one in the transport's own line. */
static void other_ends(struct xb_out *out, const struct xb_view *v, size_t t, size_t label_columns)
{
	char text[512];
	json_t *j = v->transports[t].json, *end;
	size_t i, count = 0;
	json_array_foreach(json_object_get(j, "ends"), i, end)
	{
		const char *device = xb_text_of(end, "device");
		if (device[0] == '\0' || strcmp(device, xb_text_of(j, "device")) == 0)
			continue;
		if (count++ >= OTHER_ENDS_MOST)
			continue;
		snprintf(text, sizeof(text), "on %.100s: %.256s", xb_text_of(end, "host"),
			 xb_text_of(end, "resolved_path"));
		xb_put(out, XB_PLAIN, (int)(2u + label_columns + 2u), "");
		xb_put_wrapped(out, XB_PLAIN, 2u + label_columns + 2u, text);
	}
	if (count > OTHER_ENDS_MOST) {
		snprintf(text, sizeof(text),
			 "and %zu more with a device of another name: \"ends\" in the JSON",
			 count - OTHER_ENDS_MOST);
		xb_put(out, XB_PLAIN, (int)(2u + label_columns + 2u), "");
		xb_put_wrapped(out, XB_PLAIN, 2u + label_columns + 2u, text);
	}
}

void xb_print_heading(struct xb_out *out, const struct xb_view *v)
{
	size_t columns = 0;
	run_line(out, v);
	host_lines(out, v);
	timer_line(out, v);
	for (size_t t = 0; t < v->transport_count; t++)
		if (xb_columns(v->transports[t].label) > columns)
			columns = xb_columns(v->transports[t].label);
	if (columns > LABEL_MOST)
		columns = LABEL_MOST;
	xb_put(out, XB_BOLD, 0, "transports and the path each took");
	xb_newline(out);
	for (size_t t = 0; t < v->transport_count; t++) {
		transport_line(out, v, t, columns);
		other_ends(out, v, t, columns);
	}
}

static int has_word(const char *text, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
		if ((p == text || p[-1] == ' ') && (p[n] == '\0' || strchr(" ,:;.", p[n]) != NULL))
			return 1;
	return 0;
}

void xb_print_findings(struct xb_out *out, const struct xb_view *v)
{
	static const char *const order[] = {"invalid", "warning", "info"};
	json_t *findings = json_object_get(v->document, "findings"), *finding;
	if (json_array_size(findings) == 0)
		return;
	xb_newline(out);
	xb_put(out, XB_BOLD, 0, "findings");
	xb_newline(out);
	for (size_t s = 0; s < sizeof(order) / sizeof(order[0]); s++) {
		size_t i;
		json_array_foreach(findings, i, finding)
		{
			if (strcmp(xb_text_of(finding, "severity"), order[s]) != 0)
				continue;
			char text[2400];
			enum xb_style style = s == 0 ? XB_RED : s == 1 ? XB_YELLOW : XB_PLAIN;
			const char *label = xb_text_of(finding, "label"), *what = xb_text_of(finding, "text");
			int named = label[0] == '\0' || has_word(what, label);
			snprintf(text, sizeof(text), "%.64s: %.64s%s%.2200s", xb_text_of(finding, "code"),
				 named ? "" : label, named ? "" : ": ", what);
			xb_put(out, XB_PLAIN, 2, "");
			xb_put(out, style, 9, order[s]);
			xb_put_wrapped(out, XB_PLAIN, 11, text);
		}
	}
}

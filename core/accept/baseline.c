/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run and its baseline do not have in common. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "known.h"
#include "places.h"
#include "../report/text.h"

static void add(json_t *list, const char *kind, int comparable, const char *what, const char *then,
		const char *now)
{
	char text[600];

	snprintf(text, sizeof(text), "%.100s: %.200s when the baseline was recorded, %.200s now", what,
		 *then ? then : "unknown", *now ? now : "unknown");
	json_array_append_new(
		list, json_pack("{s:s, s:s, s:b}", "kind", kind, "text", text, "comparable", comparable));
}

static void compare_text(json_t *list, const char *kind, int comparable, const char *what, json_t *then,
			 json_t *now, const char *key)
{
	const char *a = xb_text_of(then, key), *b = xb_text_of(now, key);
	if (strcmp(a, b) != 0)
		add(list, kind, comparable, what, a, b);
}

static void list_text(json_t *list, char *text, size_t bytes)
{
	json_t *item;
	size_t i;

	*text = '\0';
	json_array_foreach(list, i, item)
	{
		if (json_is_string(item))
			xb_append(text, bytes, "%s%.60s", *text ? "," : "", json_string_value(item));
		else if (json_is_integer(item))
			xb_append(text, bytes, "%s%lld", *text ? "," : "",
				  (long long)json_integer_value(item));
	}
}

static json_t *host_named(json_t *hosts, const char *name)
{
	json_t *host;
	size_t i;

	json_array_foreach(hosts, i, host)
	{
		if (*name && !strcmp(xb_text_of(host, "name"), name))
			return host;
	}
	return NULL;
}

/* What a host is, and which of its cores were used. */
static void compare_host(json_t *list, const char *name, json_t *then, json_t *now)
{
	char a[200], b[200], what[160];

	snprintf(what, sizeof(what), "the CPU of %.100s", name);
	compare_text(list, "hardware", 0, what, then, now, "cpu");
	snprintf(what, sizeof(what), "the kernel of %.100s", name);
	compare_text(list, "version", 1, what, then, now, "kernel");
	list_text(json_object_get(then, "cpus_used"), a, sizeof(a));
	list_text(json_object_get(now, "cpus_used"), b, sizeof(b));
	snprintf(what, sizeof(what), "the measuring cores of %.80s", name);
	if (strcmp(a, b) != 0)
		add(list, "placement", 0, what, a, b);
}

/* By name: a node that was left out or stands elsewhere in the list is still the same. Where no name is known
 * from the baseline, by order. */
static void compare_hosts(json_t *list, json_t *then, json_t *now)
{
	size_t n = json_array_size(then), m = json_array_size(now), known = 0, i;
	char a[32], b[32], name[120];
	json_t *host;

	if (n != m) {
		snprintf(a, sizeof(a), "%zu", n);
		snprintf(b, sizeof(b), "%zu", m);
		add(list, "hosts", 1, "the number of hosts", a, b);
	}
	json_array_foreach(now, i, host) known += host_named(then, xb_text_of(host, "name")) != NULL;
	json_array_foreach(now, i, host)
	{
		json_t *same = known ? host_named(then, xb_text_of(host, "name")) : json_array_get(then, i);
		if (known)
			snprintf(name, sizeof(name), "%.100s", xb_text_of(host, "name"));
		else
			snprintf(name, sizeof(name), "host %zu", i);
		if (!same) {
			add(list, "hosts", 1, name, "not there", "measured");
			continue;
		}
		compare_host(list, name, same, host);
		if (!known) {
			snprintf(name, sizeof(name), "the name of host %zu", i);
			compare_text(list, "hosts", 1, name, same, host, "name");
		}
	}
}

/* An IPv4 or IPv6 address or a GID, with or without port. */
static int is_address(const char *word, size_t length)
{
	size_t dots = 0, colons = 0;

	for (size_t i = 0; i < length; i++) {
		dots += word[i] == '.';
		colons += word[i] == ':';
		if (!isxdigit((unsigned char)word[i]) && !strchr(".:[]%", word[i]))
			return 0;
	}
	return dots >= 3 || colons >= 2;
}

/* A resolved path with a '*' for what belongs to one pair of hosts: addresses, LIDs and numbers of GIDs. */
static void without_addresses(const char *path, char *text, size_t bytes)
{
	int numbered = 0; /* the word before was "lid" or "gid" */

	*text = '\0';
	while (*path) {
		size_t word = strcspn(path, " ,()"), between = strspn(path + word, " ,()");
		int number = word > 0 && strspn(path, "0123456789") == word;
		if (is_address(path, word) || (numbered && number))
			xb_append(text, bytes, "*");
		else
			xb_append(text, bytes, "%.*s", (int)word, path);
		xb_append(text, bytes, "%.*s", (int)between, path + word);
		numbered = word == 3 && (!strncmp(path, "lid", 3) || !strncmp(path, "gid", 3));
		path += word + between;
	}
}

/* Of which pair a document tells the path is chance. */
static void compare_paths(json_t *list, const char *what, json_t *then, json_t *now)
{
	char a[400], b[400];

	without_addresses(xb_text_of(then, "resolved_path"), a, sizeof(a));
	without_addresses(xb_text_of(now, "resolved_path"), b, sizeof(b));
	if (strcmp(a, b) != 0)
		add(list, "configuration", 0, what, a, b);
}

static void compare_transports(json_t *list, json_t *document, json_t *baseline)
{
	json_t *entry;
	size_t i;
	char what[160];

	json_array_foreach(json_object_get(document, "transports"), i, entry)
	{
		const char *label = xb_text_of(entry, "label");
		json_t *then = xb_transport_of(baseline, label);
		if (!then) {
			add(list, "configuration", 0, label, "not measured", "measured");
			continue;
		}
		snprintf(what, sizeof(what), "the device of %.60s", label);
		compare_text(list, "hardware", 0, what, then, entry, "device");
		snprintf(what, sizeof(what), "the path of %.60s", label);
		compare_paths(list, what, then, entry);
		snprintf(what, sizeof(what), "the path asked for of %.60s", label);
		compare_text(list, "configuration", 0, what, then, entry, "requested_path");
		snprintf(what, sizeof(what), "the library of %.60s", label);
		compare_text(list, "version", 1, what, then, entry, "library");
		snprintf(what, sizeof(what), "the library version of %.60s", label);
		compare_text(list, "version", 1, what, then, entry, "version");
	}
}

/* "" where a document does not tell. */
static const char *pairs_at_a_time(json_t *config)
{
	json_t *serial = json_object_get(config, "serial"), *endpoints = json_object_get(config, "endpoints");

	if (!json_is_boolean(serial) || !json_is_integer(endpoints))
		return "";
	return xb_places_take_turns(json_is_true(serial), (uint32_t)json_integer_value(endpoints)) ? "one"
												   : "many";
}

json_t *xb_baseline_differences(json_t *document, json_t *baseline)
{
	json_t *list = json_array(), *then = json_object_get(baseline, "config"),
	       *now = json_object_get(document, "config");
	char a[64], b[64];

	compare_hosts(list, json_object_get(baseline, "hosts"), json_object_get(document, "hosts"));
	compare_transports(list, document, baseline);
	compare_text(list, "version", 1, "xportbench", baseline, document, "xportbench");
	compare_text(list, "configuration", 0, "the operation (--op)", then, now, "op");
	snprintf(a, sizeof(a), "%llu", (unsigned long long)xb_count_of(then, "window"));
	snprintf(b, sizeof(b), "%llu", (unsigned long long)xb_count_of(now, "window"));
	if (strcmp(a, b) != 0)
		add(list, "configuration", 0, "the window (-W)", a, b);
	const char *pairs_then = pairs_at_a_time(then), *pairs_now = pairs_at_a_time(now);
	if (*pairs_then && *pairs_now && strcmp(pairs_then, pairs_now) != 0)
		add(list, "configuration", 0, "pairs at a time (--serial)", pairs_then, pairs_now);
	return list;
}

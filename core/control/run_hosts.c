/* SPDX-License-Identifier: BSD-3-Clause */
/* Are the places that a team runs on what was asked for, and alike enough for its numbers to mean something?
 */
#include <stdio.h>
#include <string.h>

#include "run_internal.h"

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static void finding(struct xb_run *run, const char *severity, const char *code, const char *label,
		    const char *text)
{
	xb_results_finding(run->control.results, severity, code, label, NULL, SIZE_MAX, text);
}

/* Two names that were given for two hosts, and one machine behind them. */
static void check_same_host(struct xb_run *run, const struct xb_team *team)
{
	char text[400];
	for (uint32_t e = 1; run->control.hosts && e < team->endpoints; e++) {
		uint32_t first = team->host_of[e];
		if (first == e || !strcmp(run->hosts[e], run->hosts[first]))
			continue;
		snprintf(text, sizeof text,
			 "%.100s and %.100s were given as two hosts, but are one (%.100s, by boot id and "
			 "network): what is "
			 "between them is no network",
			 run->hosts[first], run->hosts[e], text_of(xb_team_host(team, e), "name"));
		finding(run, "invalid", "same-host", NULL, text);
	}
}

/* Network namespaces and containers of one machine: no wire in between. */
static void check_same_machine(struct xb_run *run, const struct xb_team *team)
{
	json_t *first = xb_team_host(team, 0);
	char text[400];
	for (uint32_t e = 1; e < team->endpoints; e++) {
		json_t *host = xb_team_host(team, e);
		if (team->host_of[e] == 0 || !*text_of(host, "boot_id") ||
		    strcmp(text_of(host, "boot_id"), text_of(first, "boot_id")))
			continue;
		snprintf(text, sizeof text,
			 "%.100s and %.100s have one boot id: they are containers or network namespaces of "
			 "one machine, "
			 "and nothing between them is a wire",
			 text_of(first, "name"), text_of(host, "name"));
		finding(run, "warning", "same-machine", NULL, text);
		return;
	}
}

/* Appends "WHAT is A on X and B on Y" for the first endpoint whose value differs from that of endpoint 0. */
static void difference(const struct xb_team *team, json_t *(*facts)(const struct xb_team *, uint32_t),
		       const char *key, const char *what, char *text, size_t capacity)
{
	char here[120] = "", there[120] = "";
	size_t used = strlen(text);
	for (uint32_t e = 0; e < team->endpoints; e++) {
		json_t *value = json_object_get(facts(team, e), key);
		char *to = e ? there : here;
		if (json_is_string(value))
			snprintf(to, sizeof here, "%.100s", json_string_value(value));
		else if (json_is_integer(value))
			snprintf(to, sizeof here, "%lld", (long long)json_integer_value(value));
		else
			return; /* not known everywhere */
		if (e == 0 || !strcmp(here, there))
			continue;
		snprintf(text + used, capacity - used, "%s%s is %s on %.60s and %s on %.60s",
			 used ? "; " : "", what, here, text_of(xb_team_host(team, 0), "name"), there,
			 text_of(xb_team_host(team, e), "name"));
		return;
	}
}

static json_t *description_of(const struct xb_team *team, uint32_t e)
{
	return team->descriptions[e];
}

static void check_alike(struct xb_run *run, const struct xb_team *team)
{
	const char *label = team->spec->label;
	char hosts[700] = "", library[400] = "", mtu[400] = "";

	difference(team, xb_team_host, "kernel", "the kernel", hosts, sizeof hosts);
	difference(team, xb_team_host, "cpu", "the CPU", hosts, sizeof hosts);
	difference(team, xb_team_host, "governor", "the CPU frequency governor", hosts, sizeof hosts);
	if (*hosts)
		finding(run, "warning", "hosts-differ", NULL, hosts);
	difference(team, description_of, "version", "the library's version", library, sizeof library);
	if (*library)
		finding(run, "warning", "library-differs", label, library);
	difference(team, description_of, "mtu", "the MTU of the device", mtu, sizeof mtu);
	if (*mtu)
		finding(run, "warning", "mtu-differs", label, mtu);
}

/* A core far from the adapter at one end only: the two directions are not alike. */
static void check_numa(struct xb_run *run, const struct xb_team *team)
{
	char text[400];
	for (uint32_t e = 0; e < team->endpoints; e++) {
		json_t *d = team->descriptions[e], *device = json_object_get(d, "device_numa"),
		       *cpu = json_object_get(d, "cpu_numa");
		if (!json_is_integer(device) || !json_is_integer(cpu) ||
		    json_integer_value(device) == json_integer_value(cpu))
			continue;
		snprintf(text, sizeof text,
			 "endpoint %u on %.60s runs on NUMA node %lld, its device %.60s is at node %lld: "
			 "every access "
			 "crosses between them; choose a CPU there with --bind",
			 e, text_of(xb_team_host(team, e), "name"), (long long)json_integer_value(cpu),
			 text_of(d, "device"), (long long)json_integer_value(device));
		finding(run, "warning", "numa-mismatch", team->spec->label, text);
		return;
	}
}

void xb_run_check_hosts(struct xb_run *run, struct xb_team *team)
{
	check_same_host(run, team);
	check_same_machine(run, team);
	check_alike(run, team);
	check_numa(run, team);
}

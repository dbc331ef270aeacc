/* SPDX-License-Identifier: BSD-3-Clause */
/* What ucp_ep_print_info prints, and whether it is what was asked for. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

void xb_ucx_lanes_add(struct xb_ucx_lanes *lanes, const char *tl, const char *device)
{
	struct xb_ucx_lane *lane = &lanes->items[lanes->count];

	for (size_t i = 0; i < lanes->count; i++)
		if (strcmp(lanes->items[i].tl, tl) == 0 && strcmp(lanes->items[i].device, device) == 0)
			return;
	if (lanes->count == sizeof(lanes->items) / sizeof(lanes->items[0]))
		return;
	snprintf(lane->tl, sizeof(lane->tl), "%s", tl);
	snprintf(lane->device, sizeof(lane->device), "%s", device);
	lanes->count++;
}

/* "lane[0]:  1:tcp/lo.0 md[0] -> ...": resource number, transport, device, index of the path through the
 * device. */
static void parse_lane(const char *line, struct xb_ucx_lanes *lanes)
{
	const char *text = strstr(line, "lane[");
	char name[2 * XB_UCX_NAME_BYTES], *slash, *path;

	if (text == NULL || (text = strstr(text, "]:")) == NULL)
		return;
	text += 2;
	while (isspace((unsigned char)*text))
		text++;
	if (strncmp(text, "cm ", 3) == 0)
		return; /* the connection manager carries no messages */
	while (isdigit((unsigned char)*text))
		text++;
	if (*text == ':')
		text++;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, " \t"), text);
	slash = strchr(name, '/');
	if (slash == NULL || slash == name)
		return;
	*slash = '\0';
	path = strrchr(slash + 1, '.'); /* a device may have dots of its own: "eth0.100.0" */
	if (path && path[1] && path[1 + strspn(path + 1, "0123456789")] == '\0')
		*path = '\0';
	xb_ucx_lanes_add(lanes, name, slash + 1);
}

/* "8256", "8K", "2M" */
static size_t number(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*end == 'K')
		value <<= 10;
	else if (*end == 'M')
		value <<= 20;
	return (size_t)value;
}

/* "tag_send: 0..<egr/short>..93..<egr/bcopy>..8256..<rndv>..(inf)": rendezvous from 8256 bytes on. */
static void parse_thresholds(const char *line, struct xb_ucx_lanes *lanes)
{
	const char *text = strstr(line, "tag_send:"), *rendezvous;

	if (text == NULL || (rendezvous = strstr(text, "..<rndv>")) == NULL)
		return;
	while (rendezvous > text && isalnum((unsigned char)rendezvous[-1]))
		rendezvous--;
	if (isdigit((unsigned char)*rendezvous) && number(rendezvous) > 0)
		lanes->eager_bytes = number(rendezvous) - 1;
}

/* UCX's newer protocol selection prints a table instead: "|   8516..inf | (?) rendezvous zero-copy ... |
 * tcp/lo |" */
static void parse_protocol(const char *line, int *in_table, int *known, struct xb_ucx_lanes *lanes)
{
	const char *text;

	if (strstr(line, "tagged message by ucp_tag_send"))
		*in_table = strstr(line, "from host memory") != NULL;
	else if (strstr(line, "ep_cfg["))
		*in_table = 0;
	text = strchr(line, '|');
	if (!*in_table || *known || text == NULL)
		return;
	text += 1 + strspn(text + 1, " ");
	if (!isdigit((unsigned char)*text) || strstr(text, "..") == NULL)
		return;
	lanes->eager_bytes = 0; /* the table has the last word */
	if (strstr(text, "rendezvous")) {
		*known = 1;
		if (number(text) > 0)
			lanes->eager_bytes = number(text) - 1;
	}
}

void xb_ucx_lanes_parse(const char *text, struct xb_ucx_lanes *lanes)
{
	int in_table = 0, known = 0;

	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[512];

		snprintf(line, sizeof(line), "%.*s", (int)(length < 511 ? length : 511), text);
		parse_lane(line, lanes);
		parse_thresholds(line, lanes);
		parse_protocol(line, &in_table, &known, lanes);
		text += length + (text[length] == '\n');
	}
}

static int is_asked(const struct xb_ucx_lane *lane, const struct xb_ucx_path *path)
{
	int tl = path->tl_count == 0, device = path->device_count == 0;

	if (path->tl_count > 0 && xb_ucx_is_local(lane->tl))
		device = 1; /* posix+tcp/eth1: the device is about tcp */

	for (size_t i = 0; i < path->tl_count; i++)
		tl |= strcmp(path->tl[i], lane->tl) == 0;
	for (size_t i = 0; i < path->device_count; i++)
		device |= strcmp(path->device[i], lane->device) == 0;
	return tl && device;
}

int xb_ucx_lanes_check(const struct xb_ucx_lanes *lanes, const struct xb_ucx_path *path, char *why,
		       size_t bytes)
{
	why[0] = '\0';
	if (path->tl_count == 0 && path->device_count == 0)
		return 1;
	if (lanes->count == 0) {
		snprintf(why, bytes, "UCX did not say which lanes it uses, so the path could not be checked");
		return 0;
	}
	for (size_t i = 0; i < lanes->count; i++)
		if (!is_asked(&lanes->items[i], path)) {
			snprintf(why, bytes, "%s was asked for, but UCX also or only uses %s/%s", path->text,
				 lanes->items[i].tl, lanes->items[i].device);
			return 0;
		}
	return 1;
}

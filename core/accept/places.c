/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "places.h"
#include "../control/schedule.h"

uint32_t xb_places_endpoints(const struct xb_config *config)
{
	return config->endpoints > 2 ? config->endpoints : 2;
}

int xb_places_take_turns(int serial, uint32_t endpoints)
{
	return serial || endpoints <= 3;
}

int xb_places_pairs(const struct xb_config *config, size_t *pairs, struct xb_error *error)
{
	struct xb_schedule schedule;
	int status = xb_schedule_of(config, xb_places_endpoints(config), &schedule, error);

	if (status)
		return status;
	*pairs = schedule.round_start[schedule.rounds];
	xb_schedule_free(&schedule);
	return 0;
}

const char *xb_places_host(const struct xb_config *config, uint32_t endpoint)
{
	return config->host_count ? config->hosts[endpoint % config->host_count] : NULL;
}

/* The core that an endpoint was measured on; -1 if it is not known. */
static int cpu_of(json_t *document, uint32_t endpoint)
{
	json_t *host, *number;
	size_t i, k;

	json_array_foreach(json_object_get(document, "hosts"), i, host)
	{
		json_t *ends = json_object_get(host, "endpoints"), *cpus = json_object_get(host, "cpus_used");
		json_array_foreach(ends, k, number)
		{
			if (json_integer_value(number) == (json_int_t)endpoint &&
			    json_array_size(cpus) == json_array_size(ends))
				return (int)json_integer_value(json_array_get(cpus, k));
		}
	}
	return -1;
}

void xb_places_of_pair(struct xb_config *config, json_t *document, uint32_t a, uint32_t b,
		       struct xb_places *places)
{
	uint32_t n = xb_places_endpoints(config), ends[2] = {a, b};
	int chosen[2] = {cpu_of(document, a), cpu_of(document, b)};
	const char *here = xb_places_host(config, a), *there = xb_places_host(config, b);

	*places = (struct xb_places){0};
	if (here)
		snprintf(places->text, sizeof(places->text), "%.250s and %.250s", here, there);
	else
		snprintf(places->text, sizeof(places->text), "endpoints %u and %u", a, b);
	config->pairs = NULL;
	config->serial = 0;
	if (n == 2)
		return;
	config->endpoints = 2;
	if (here) {
		places->hosts[0] = config->hosts[a % config->host_count];
		places->hosts[1] = config->hosts[b % config->host_count];
		config->host_count = strcmp(here, there) != 0 ? 2 : 1;
		config->hosts = places->hosts;
	}
	/* the same cores as before: numbers of other ones mean something else */
	for (int i = 0; config->bind_count && i < 2; i++)
		chosen[i] = config->bind[ends[i] % config->bind_count];
	if (chosen[0] < 0 || chosen[1] < 0)
		return;
	config->bind[0] = chosen[0];
	config->bind[1] = chosen[1];
	config->bind_count = 2;
}

int xb_whole_keep(struct xb_whole *whole, const struct xb_config *config, struct xb_error *error)
{
	*whole = (struct xb_whole){.host_count = config->host_count,
				   .bind_count = config->bind_count,
				   .endpoints = xb_places_endpoints(config)};
	memcpy(whole->bind, config->bind, sizeof(whole->bind));
	int status = xb_schedule_listed(config, whole->endpoints, &whole->pairs, &whole->pair_count, error);
	if (status)
		return status;
	whole->listed = calloc(whole->pair_count + 1, sizeof(whole->listed[0]));
	whole->hosts = calloc(config->host_count + 1, sizeof(whole->hosts[0]));
	if (!whole->hosts || !whole->listed) {
		free(whole->pairs);
		free(whole->listed);
		free(whole->hosts);
		return xb_fail(error, XB_E_RESOURCE, "out of memory for the places of the run");
	}
	if (config->host_count)
		memcpy(whole->hosts, config->hosts, config->host_count * sizeof(whole->hosts[0]));
	return 0;
}

static uint32_t nodes_of(const struct xb_whole *whole)
{
	return whole->host_count ? (uint32_t)whole->host_count : whole->endpoints;
}

/* A node goes as a whole; returns how many are left. */
static uint32_t flag_nodes(const struct xb_whole *whole, const unsigned char *out, unsigned char *gone)
{
	uint32_t nodes = nodes_of(whole), left = 0;

	for (uint32_t e = 0; e < whole->endpoints; e++)
		gone[e % nodes] |= out[e];
	for (uint32_t i = 0; i < nodes; i++)
		left += !gone[i];
	return left;
}

int xb_whole_can_do_without(const struct xb_whole *whole, const unsigned char *out)
{
	unsigned char gone[XB_MAX_ENDPOINTS] = {0};
	uint32_t nodes = nodes_of(whole), left = flag_nodes(whole, out, gone);
	size_t pairs = 0;

	/* where nodes do not have equally many endpoints, their numbers would move to other nodes */
	if (left < 2 || (whole->endpoints % nodes != 0 && left < nodes))
		return 0;
	for (size_t i = 0; i < whole->pair_count; i++)
		pairs += !gone[whole->pairs[i].first % nodes] && !gone[whole->pairs[i].second % nodes];
	return whole->pair_count == 0 || pairs > 0;
}

/* The pairs of the file with the numbers that their ends have now, without those that have lost one. */
static size_t list_pairs(struct xb_whole *whole, const unsigned char *gone, uint32_t nodes)
{
	uint32_t now[XB_MAX_ENDPOINTS], next = 0;
	size_t count = 0;

	for (uint32_t e = 0; e < whole->endpoints; e++) {
		now[e] = next;
		next += !gone[e % nodes];
	}
	for (size_t i = 0; i < whole->pair_count; i++) {
		struct xb_pair pair = whole->pairs[i];
		if (!gone[pair.first % nodes] && !gone[pair.second % nodes])
			whole->listed[count++] = (struct xb_pair){now[pair.first], now[pair.second]};
	}
	return count;
}

int xb_whole_without(struct xb_whole *whole, const unsigned char *out, struct xb_config *config,
		     uint32_t *original)
{
	uint32_t n = whole->endpoints, nodes = nodes_of(whole), count = 0;
	unsigned char gone[XB_MAX_ENDPOINTS] = {0};

	if (!xb_whole_can_do_without(whole, out))
		return -1;
	size_t hosts = flag_nodes(whole, out, gone), listed = list_pairs(whole, gone, nodes);
	config->listed = whole->pair_count ? whole->listed : NULL;
	config->listed_count = listed;
	for (uint32_t e = 0; e < n; e++)
		if (!gone[e % nodes])
			original[count++] = e;
	config->endpoints = count;
	for (uint32_t k = 0; whole->bind_count > 1 && k < count; k++)
		config->bind[k] = whole->bind[original[k] % whole->bind_count];
	if (whole->bind_count > 1)
		config->bind_count = count;
	if (whole->host_count)
		config->host_count = hosts;
	for (size_t h = 0; h < config->host_count; h++)
		config->hosts[h] = whole->hosts[original[h]];
	return 0;
}

void xb_whole_end(struct xb_whole *whole, struct xb_config *config)
{
	if (whole->host_count)
		memcpy(config->hosts, whole->hosts, whole->host_count * sizeof(whole->hosts[0]));
	config->host_count = whole->host_count;
	config->listed = NULL;
	free(whole->hosts);
	free(whole->pairs);
	free(whole->listed);
}

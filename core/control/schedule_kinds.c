/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules other than all pairs (--pairs, --serial). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"
#include "../cli/config.h"
#include "../cli/show.h"

#define LINE_BYTES 600

struct list {
	struct xb_pair *pairs;
	size_t count;
};

static int add(struct list *list, uint32_t a, uint32_t b, struct xb_error *error)
{
	struct xb_pair pair = {a < b ? a : b, a < b ? b : a};
	for (size_t i = 0; i < list->count; i++)
		if (list->pairs[i].first == pair.first && list->pairs[i].second == pair.second)
			return 0;
	struct xb_pair *grown = realloc(list->pairs, (list->count + 1) * sizeof *grown);
	if (!grown)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for a schedule");
	list->pairs = grown;
	grown[list->count++] = pair;
	return 0;
}

/* Rounds of disjoint pairs: every pair goes into the first round where both are free. */
static int in_rounds(const struct list *list, uint32_t endpoints, int serial, struct xb_schedule *schedule,
		     struct xb_error *error)
{
	size_t n = list->count, used = 0, rounds = 0;
	unsigned char *busy = malloc((size_t)endpoints + 1), *done = calloc(n + 1, 1);

	schedule->pairs = calloc(n + 1, sizeof *schedule->pairs);
	schedule->round_start = calloc(n + 2, sizeof *schedule->round_start);
	if (!busy || !done || !schedule->pairs || !schedule->round_start) {
		free(busy);
		free(done);
		xb_schedule_free(schedule);
		return xb_fail(error, XB_E_RESOURCE, "out of memory for a schedule");
	}
	while (used < n) {
		memset(busy, 0, endpoints);
		schedule->round_start[rounds++] = used;
		for (size_t i = 0; i < n; i++) {
			struct xb_pair p = list->pairs[i];
			if (done[i] || busy[p.first] || busy[p.second])
				continue;
			schedule->pairs[used++] = p;
			done[i] = busy[p.first] = busy[p.second] = 1;
			if (serial)
				break;
		}
	}
	schedule->round_start[rounds] = used;
	schedule->rounds = rounds;
	free(busy);
	free(done);
	return 0;
}

/* An endpoint by its number, or by its host. */
static int find_endpoint(const struct xb_config *config, uint32_t endpoints, const char *word,
			 uint32_t *found)
{
	char *end;
	for (size_t h = 0; h < config->host_count && h < endpoints; h++)
		if (!strcmp(config->hosts[h], word)) {
			*found = (uint32_t)h;
			return 0;
		}
	if (*word < '0' || *word > '9' || strlen(word) > 6)
		return -1;
	unsigned long number = strtoul(word, &end, 10);
	*found = (uint32_t)number;
	return *end || number >= endpoints ? -1 : 0;
}

static int read_pair(const struct xb_config *config, uint32_t endpoints, const char *line, unsigned number,
		     struct list *list, struct xb_error *error)
{
	char words[3][256] = {"", "", ""};
	uint32_t ends[2];
	int count = sscanf(line, "%255s %255s %255s", words[0], words[1], words[2]);

	if (count < 1 || words[0][0] == '#')
		return 0;
	if (count == 1 || (count == 3 && words[2][0] != '#'))
		return xb_fail(error, XB_E_USAGE,
			       "%.200s:%u: write two hosts, or two endpoint numbers, with a blank between",
			       config->pairs, number);
	for (int i = 0; i < 2; i++)
		if (find_endpoint(config, endpoints, words[i], &ends[i]))
			return xb_fail(error, XB_E_USAGE,
				       "%.200s:%u: '%s' is neither a host of this run (-H) nor the number of "
				       "an endpoint, 0 to "
				       "%u",
				       config->pairs, number, XB_SHOW(words[i]), endpoints - 1);
	if (ends[0] == ends[1])
		return xb_fail(error, XB_E_USAGE, "%.200s:%u: '%s' is paired with itself", config->pairs,
			       number, XB_SHOW(words[0]));
	return add(list, ends[0], ends[1], error);
}

static int read_pairs(const struct xb_config *config, uint32_t endpoints, struct list *list,
		      struct xb_error *error)
{
	char line[LINE_BYTES];
	FILE *file = fopen(config->pairs, "re");
	unsigned number = 0;
	int status = 0;

	if (!file)
		return xb_fail(error, XB_E_USAGE,
			       "--pairs: '%s' is none of all, ring and quick, and no file of pairs that can "
			       "be read: %s",
			       XB_SHOW(config->pairs), strerror(errno));
	while (!status && fgets(line, sizeof line, file)) {
		number++;
		if (!strchr(line, '\n') && !feof(file))
			status = xb_fail(error, XB_E_USAGE, "%.200s:%u: the line is too long", config->pairs,
					 number);
		else
			status = read_pair(config, endpoints, line, number, list, error);
	}
	if (!status && ferror(file))
		status = xb_fail(error, XB_E_USAGE, "--pairs: cannot read %.200s: %s", config->pairs,
				 strerror(errno));
	fclose(file);
	if (!status && list->count == 0)
		status = xb_fail(error, XB_E_USAGE, "%.200s: no pair in it", config->pairs);
	return status;
}

int xb_schedule_listed(const struct xb_config *config, uint32_t endpoints, struct xb_pair **pairs,
		       size_t *count, struct xb_error *error)
{
	static const char *const kinds[] = {"all", "ring", "quick"};
	struct list list = {NULL, 0};
	int status = 0, file = config->pairs != NULL;

	for (size_t i = 0; file && i < sizeof kinds / sizeof kinds[0]; i++)
		file = strcmp(config->pairs, kinds[i]) != 0;
	if (file)
		status = read_pairs(config, endpoints, &list, error);
	if (status) {
		free(list.pairs);
		list = (struct list){NULL, 0};
	}
	*pairs = list.pairs;
	*count = list.count;
	return status;
}

int xb_schedule_of(const struct xb_config *config, uint32_t endpoints, struct xb_schedule *schedule,
		   struct xb_error *error)
{
	const char *kind = config->pairs ? config->pairs : "all";
	struct list list = {NULL, 0};
	int status = 0;

	if (!strcmp(kind, "all") && !config->serial)
		return xb_schedule_all_pairs(endpoints, schedule, error);
	if (!strcmp(kind, "all")) {
		for (uint32_t a = 0; !status && a < endpoints; a++)
			for (uint32_t b = a + 1; !status && b < endpoints; b++)
				status = add(&list, a, b, error);
	} else if (!strcmp(kind, "ring")) {
		for (uint32_t a = 0; !status && a < endpoints; a++)
			status = add(&list, a, (a + 1) % endpoints, error);
	} else if (!strcmp(kind, "quick")) {
		for (uint32_t a = 0; !status && a < endpoints; a += 2)
			status = add(&list, a, a + 1 < endpoints ? a + 1 : 0, error);
	} else if (config->listed) {
		for (size_t i = 0; !status && i < config->listed_count; i++)
			status = add(&list, config->listed[i].first, config->listed[i].second, error);
	} else
		status = read_pairs(config, endpoints, &list, error);
	if (!status)
		status = in_rounds(&list, endpoints, config->serial, schedule, error);
	free(list.pairs);
	return status;
}

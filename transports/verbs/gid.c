/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "verbs.h"

size_t vb_gids(struct ibv_context *device, unsigned port, struct vb_gid *list, size_t capacity)
{
	struct ibv_gid_entry entries[VB_MAX_GIDS * 4];
	ssize_t n = ibv_query_gid_table(device, entries, sizeof(entries) / sizeof(entries[0]), 0);
	size_t count = 0;

	for (ssize_t i = 0; i < n && count < capacity; i++) {
		if (entries[i].port_num != port)
			continue;
		list[count].index = (int)entries[i].gid_index;
		list[count].type = (enum ibv_gid_type)entries[i].gid_type;
		list[count].gid = entries[i].gid;
		count++;
	}
	return count;
}

bool vb_gid_is_ipv4(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)gid->raw);
}

static bool is_link_local(const union ibv_gid *gid)
{
	if (vb_gid_is_ipv4(gid))
		return gid->raw[12] == 169 && gid->raw[13] == 254;
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static int rank_of(const struct vb_gid *g)
{
	return (g->type == IBV_GID_TYPE_ROCE_V2 ? 4 : 0) + (is_link_local(&g->gid) ? 0 : 2) +
	       (vb_gid_is_ipv4(&g->gid) ? 1 : 0);
}

const struct vb_gid *vb_gid_best(const struct vb_gid *list, size_t count)
{
	const struct vb_gid *best = NULL;

	for (size_t i = 0; i < count; i++)
		if (list[i].type != IBV_GID_TYPE_IB && (!best || rank_of(&list[i]) > rank_of(best)))
			best = &list[i];
	return best;
}

const char *vb_gid_text(const union ibv_gid *gid, char text[VB_GID_TEXT_BYTES])
{
	if (!inet_ntop(AF_INET6, gid->raw, text, VB_GID_TEXT_BYTES))
		text[0] = '\0';
	return text;
}

const char *vb_gid_type_name(uint32_t type)
{
	switch ((enum ibv_gid_type)type) {
	case IBV_GID_TYPE_IB:
		return "InfiniBand";
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	}
	return "unknown type";
}

void vb_gids_text(const struct vb_gid *list, size_t count, char *text, size_t bytes)
{
	char gid[VB_GID_TEXT_BYTES];
	size_t used = 0;

	snprintf(text, bytes, "%s", count ? "" : "none");
	for (size_t i = 0; i < count && used < bytes; i++)
		used += (size_t)snprintf(text + used, bytes - used, "%s%d (%s %s)", i ? ", " : "",
					 list[i].index, vb_gid_type_name(list[i].type),
					 vb_gid_text(&list[i].gid, gid));
}

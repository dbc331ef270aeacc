/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shm provider and PSM2 keep their queues in named files in /dev/shm (the name is how a peer finds them),
 * and a killed process leaves them there for ever: 4 MB each. The names are not needed once every peer has
 * mapped them, so they are removed as soon as each connection has carried a block; the mappings live on. What
 * is killed after that leaves nothing. The providers themselves unlink again at close and do not mind that
 * there is nothing left.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ofi.h"

static bool named_after(const char *file, const struct fi_info *info, const unsigned char *address,
			size_t bytes)
{
	char key[256];

	if (info->addr_format == FI_ADDR_STR) {
		/* "fi_shm://PID:UID:N": the file is called after what follows the slashes, or after all of it
		 */
		const char *name;
		size_t length;

		snprintf(key, sizeof(key), "%.*s", (int)bytes, (const char *)address);
		name = strstr(key, "://");
		name = name ? name + 3 : key;
		length = strlen(name);
		return length > 0 && !strncmp(file, name, length);
	}
	if (info->addr_format == FI_ADDR_PSMX2 && bytes >= sizeof(uint64_t)) {
		uint64_t epid; /* first member of the provider's address */

		memcpy(&epid, address, sizeof(epid));
		snprintf(key, sizeof(key), "%016" PRIx64, epid);
		return !strncmp(file, "psm2_shm.", 9) && strstr(file, key);
	}
	return false;
}

void ofi_leftover_unlink(const struct ofi_context *context, const struct ofi_connection *const *conns,
			 size_t count)
{
	static const char folder[] = "/dev/shm/";
	char line[512];
	FILE *maps;

	if (!context->info ||
	    (context->info->addr_format != FI_ADDR_STR && context->info->addr_format != FI_ADDR_PSMX2))
		return;
	maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return;
	while (fgets(line, sizeof(line), maps)) {
		char *file = strstr(line, folder);
		bool ours;

		if (!file)
			continue;
		file[strcspn(file, "\n")] = '\0';
		if (strstr(file, " (deleted)"))
			continue;
		ours = named_after(file + sizeof(folder) - 1, context->info, context->name,
				   context->name_bytes);
		for (size_t i = 0; i < count && !ours; i++)
			ours = named_after(file + sizeof(folder) - 1, context->info, conns[i]->peer_name,
					   conns[i]->peer_name_bytes);
		if (ours)
			unlink(file);
	}
	fclose(maps);
}

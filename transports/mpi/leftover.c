/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpsm2 keeps its queues in a named file in /dev/shm, since the name is how a peer finds them: 4 MB a rank,
 * left there for ever by a rank that is killed. Once the ranks of a pair have had a message of each other,
 * both have mapped both files and the names are of no more use; libpsm2 does not mind at the end that they
 * are gone. (Open MPI's own vader_segment files are removed by mpirun, whatever happens to the ranks.)
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"

void xb_mpi_unlink_shared_files(const struct xb_mpi_context *context)
{
	static const char name[] = "/dev/shm/psm2_shm.";
	char line[512], *file;
	FILE *maps;

	/* with more ranks there may be one that has yet to look for the file */
	if (context->setup->endpoints != 2)
		return;
	maps = fopen("/proc/self/maps", "re");
	while (maps && fgets(line, sizeof line, maps)) {
		file = strstr(line, name);
		line[strcspn(line, "\n")] = '\0';
		if (file && !strstr(file, " (deleted)"))
			unlink(file);
	}
	if (maps)
		fclose(maps);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "sysfs.h"

int xb_sysfs_line(char *line, size_t capacity, const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;
	ssize_t bytes;
	int fd, length;

	line[0] = '\0';
	va_start(arguments, format);
	length = vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	if (length < 0 || length >= (int)sizeof(path))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	bytes = read(fd, line, capacity - 1);
	close(fd);
	if (bytes < 0) { /* "speed" of an interface that is down, for one */
		line[0] = '\0';
		return -1;
	}
	line[bytes] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return (int)strlen(line);
}

int xb_sysfs_exists(const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	return length >= 0 && length < (int)sizeof(path) && access(path, F_OK) == 0;
}

int xb_sysfs_numa_of_cpu(const char *root, int cpu)
{
	char path[PATH_MAX];
	struct dirent *entry;
	int node = -1;
	DIR *folder;

	if (snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%d", root, cpu) >= (int)sizeof(path))
		return -1;
	folder = opendir(path);
	while (folder && node < 0 && (entry = readdir(folder))) {
		int length = 0;

		if (sscanf(entry->d_name, "node%d%n", &node, &length) != 1 || entry->d_name[length])
			node = -1;
	}
	if (folder)
		closedir(folder);
	return node;
}

size_t xb_sysfs_cache_of_cpu(const char *root, int cpu)
{
	size_t bytes = 0;
	int highest = 0;

	for (int index = 0;; index++) {
		char level[16], type[32], size[32], *unit;
		unsigned long long value;

		if (xb_sysfs_line(level, sizeof(level), "%s/sys/devices/system/cpu/cpu%d/cache/index%d/level",
				  root, cpu, index) < 0)
			return bytes;
		xb_sysfs_line(type, sizeof(type), "%s/sys/devices/system/cpu/cpu%d/cache/index%d/type", root,
			      cpu, index);
		xb_sysfs_line(size, sizeof(size), "%s/sys/devices/system/cpu/cpu%d/cache/index%d/size", root,
			      cpu, index);
		value = strtoull(size, &unit, 10);
		value <<= *unit == 'K' ? 10 : *unit == 'M' ? 20 : 0;
		if (strcmp(type, "Instruction") == 0 || value == 0 || value > SIZE_MAX ||
		    atoi(level) <= highest)
			continue;
		highest = atoi(level);
		bytes = (size_t)value;
	}
}

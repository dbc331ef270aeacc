/* SPDX-License-Identifier: BSD-3-Clause */
/* What this host is: the facts that a reader needs in order to compare two results. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "sysfs.h"
#include "system.h"

/* Value of "key : value" in a file such as /proc/cpuinfo; the first one. */
static int keyed_value(const char *path, const char *key, char *value, size_t capacity)
{
	char line[512];
	size_t length = strlen(key);
	int found = 0;
	FILE *file = fopen(path, "re");

	value[0] = '\0';
	while (file && !found && fgets(line, sizeof(line), file)) {
		char *p = line + length;

		if (strncmp(line, key, length) != 0)
			continue;
		p += strspn(p, " \t");
		if (*p != ':')
			continue;
		p += 1 + strspn(p + 1, " \t");
		p[strcspn(p, "\n")] = '\0';
		snprintf(value, capacity, "%s", p);
		found = 1;
	}
	if (file)
		fclose(file);
	return found;
}

static void cpu_model(char *model, size_t capacity, const char *machine)
{
	char implementer[32], part[32];

	if (keyed_value("/proc/cpuinfo", "model name", model, capacity) || /* x86 */
	    keyed_value("/proc/cpuinfo", "cpu", model, capacity) || /* POWER */
	    keyed_value("/proc/cpuinfo", "uarch", model, capacity)) /* RISC-V */
		return;
	if (keyed_value("/proc/cpuinfo", "CPU implementer", implementer, sizeof(implementer)) &&
	    keyed_value("/proc/cpuinfo", "CPU part", part, sizeof(part)))
		snprintf(model, capacity, "%s implementer %s part %s", machine, implementer, part);
	else
		snprintf(model, capacity, "%s", machine);
}

/* How many numbers a list such as "0-3,8" holds. */
static int count_listed(const char *list)
{
	int count = 0, low, high, length;

	while (*list) {
		if (sscanf(list, "%d-%d%n", &low, &high, &length) == 2)
			count += high >= low ? high - low + 1 : 0;
		else if (sscanf(list, "%d%n", &low, &length) == 1)
			count++;
		else
			return count;
		list += length;
		list += *list == ',';
	}
	return count;
}

/* Inode of the network namespace: two processes with one boot id and one inode share their interfaces. */
static json_t *network_namespace(void)
{
	char target[64];
	unsigned long long inode;
	ssize_t length = readlink("/proc/self/ns/net", target, sizeof(target) - 1);

	if (length <= 0)
		return json_null();
	target[length] = '\0';
	if (sscanf(target, "net:[%llu]", &inode) != 1)
		return json_null();
	return json_sprintf("%llu", inode);
}

/* Which container this is in, if it is in one; NULL if not. */
static const char *container(char *name, size_t capacity)
{
	const char *variable = getenv("container"); /* systemd-nspawn, podman, LXC set it */

	if (xb_sysfs_exists("/.dockerenv"))
		return "docker";
	if (xb_sysfs_exists("/run/.containerenv"))
		return "podman";
	if (getenv("SINGULARITY_NAME") || getenv("APPTAINER_NAME"))
		return "apptainer";
	if (variable && *variable) {
		snprintf(name, capacity, "%s", variable);
		return name;
	}
	return NULL;
}

static json_t *text_or_null(const char *text)
{
	json_t *value = text && *text ? json_string(text) : NULL; /* NULL too if not UTF-8 */

	return value ? value : json_null();
}

json_t *xb_host_describe(void)
{
	char boot_id[64], model[256], nodes[256], governor[64], memory[64], runtime[64];
	struct utsname uts = {0};
	json_t *host = json_object();
	const char *in;
	int cpu = sched_getcpu();

	uname(&uts);
	xb_sysfs_line(boot_id, sizeof(boot_id), "/proc/sys/kernel/random/boot_id");
	cpu_model(model, sizeof(model), uts.machine);
	xb_sysfs_line(nodes, sizeof(nodes), "/sys/devices/system/node/online");
	xb_sysfs_line(governor, sizeof(governor), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor",
		      cpu < 0 ? 0 : cpu);
	keyed_value("/proc/meminfo", "MemTotal", memory, sizeof(memory)); /* in kB, which are KiB */

	json_object_set_new(host, "name", text_or_null(uts.nodename));
	json_object_set_new(host, "boot_id", text_or_null(boot_id));
	json_object_set_new(host, "kernel", text_or_null(uts.release));
	json_object_set_new(host, "cpu", text_or_null(model));
	json_object_set_new(host, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	json_object_set_new(host, "numa_nodes", json_integer(*nodes ? count_listed(nodes) : 1));
	json_object_set_new(host, "governor", text_or_null(governor));
	json_object_set_new(host, "netns", network_namespace());
	json_object_set_new(host, "memory_MB",
			    json_integer((json_int_t)(strtoull(memory, NULL, 10) * 1024 / 1000000)));
	in = container(runtime, sizeof(runtime));
	if (in)
		json_object_set_new(host, "container", text_or_null(in));
	return host;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast a link can be: no payload bandwidth above it is possible. */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "sysfs.h"
#include "system.h"

/*
 * "speed" is in Mb/s, or -1. Only devices with hardware behind them count: the kernel gives veth 10 Gb/s and
 * tun 10 Mb/s, which they exceed. Bonds and VLANs pass on the speed of what is below them.
 */
static uint64_t netdev_rate(const char *sysfs_root, const char *device)
{
	char speed[32];
	long long megabits;
	int physical = xb_sysfs_exists("%s/class/net/%s/device", sysfs_root, device) ||
		       xb_sysfs_exists("%s/class/net/%s/bonding", sysfs_root, device);

	if (!physical) {
		char line[64];

		xb_sysfs_line(line, sizeof(line), "%s/class/net/%s/uevent", sysfs_root, device);
		physical = strcmp(line, "DEVTYPE=vlan") == 0;
	}
	if (!physical ||
	    xb_sysfs_line(speed, sizeof(speed), "%s/class/net/%s/speed", sysfs_root, device) <= 0)
		return 0;
	megabits = strtoll(speed, NULL, 10);
	/* 2^32-1 is an unknown speed of older kernels */
	return megabits > 0 && megabits < 100000000 ? (uint64_t)megabits * 1000000 : 0;
}

/* "100 Gb/sec (4X EDR)": the signalling rate of all lanes, an upper bound of what data gets. */
static uint64_t rdma_rate(const char *sysfs_root, const char *device, unsigned port)
{
	char line[64], parent[64];
	double gigabits;

	if (!xb_sysfs_exists("%s/class/infiniband/%s/device", sysfs_root, device)) {
		/* soft-RoCE: its own figure is made up, the interface below it counts */
		if (xb_sysfs_line(parent, sizeof(parent), "%s/class/infiniband/%s/parent", sysfs_root,
				  device) <= 0)
			return 0;
		return netdev_rate(sysfs_root, parent);
	}
	if (xb_sysfs_line(line, sizeof(line), "%s/class/infiniband/%s/ports/%u/rate", sysfs_root, device,
			  port) <= 0)
		return 0;
	if (sscanf(line, "%lf Gb/sec", &gigabits) != 1 || !(gigabits > 0 && gigabits < 1e5))
		return 0;
	return (uint64_t)(gigabits * 1e9 + 0.5);
}

uint64_t xb_link_rate_bits(const char *sysfs_root, const char *device)
{
	char name[64];
	size_t length = strcspn(device, "/:");
	unsigned port = 1;

	/* a path out of /sys/class is no device */
	if (length == 0 || length >= sizeof(name) || device[0] == '.')
		return 0;
	memcpy(name, device, length);
	name[length] = '\0';
	if (device[length] && (sscanf(device + length + 1, "%u", &port) != 1 || port == 0))
		return 0;
	if (xb_sysfs_exists("%s/class/infiniband/%s", sysfs_root, name))
		return rdma_rate(sysfs_root, name, port);
	return device[length] ? 0 : netdev_rate(sysfs_root, name);
}

int xb_link_mtu(const char *device)
{
	struct ifreq request = {0};
	int fd, mtu = 0;

	if (strlen(device) >= sizeof(request.ifr_name))
		return 0;
	strcpy(request.ifr_name, device);
	/* not from sysfs, which shows the namespace of whoever mounted it */
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0)
		mtu = request.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return mtu;
}

int xb_link_numa(const char *sysfs_root, const char *device)
{
	static const char *const classes[] = {"net", "infiniband"};
	char line[32];
	int length = (int)strcspn(device, "/:");

	for (size_t i = 0; device[0] != '.' && length && i < 2; i++)
		if (xb_sysfs_line(line, sizeof(line), "%s/class/%s/%.*s/device/numa_node", sysfs_root,
				  classes[i], length, device) > 0)
			return atoi(line);
	return -1;
}

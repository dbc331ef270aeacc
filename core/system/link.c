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

/* What RDMA over Ethernet puts before and behind the payload at most, as the kernel reckons. */
#define ROCE_HEADERS 96

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

/* The name and the port of "eth0", "mlx5_0", "mlx5_0/1" or "mlx5_0:1"; 0 if it is no name of a device. */
static int split_device(const char *device, char name[64], unsigned *port)
{
	size_t length = strcspn(device, "/:");

	*port = 1;
	/* a path out of /sys/class is no device */
	if (length == 0 || length >= 64 || device[0] == '.')
		return 0;
	memcpy(name, device, length);
	name[length] = '\0';
	return !device[length] || (sscanf(device + length + 1, "%u", port) == 1 && *port > 0);
}

uint64_t xb_link_rate_bits(const char *sysfs_root, const char *device)
{
	char name[64];
	unsigned port;

	if (!split_device(device, name, &port))
		return 0;
	if (xb_sysfs_exists("%s/class/infiniband/%s", sysfs_root, name))
		return rdma_rate(sysfs_root, name, port);
	return strcmp(device, name) == 0 ? netdev_rate(sysfs_root, name) : 0;
}

static int interface_mtu(const char *interface)
{
	struct ifreq request = {0};
	int fd, mtu = 0;

	if (strlen(interface) >= sizeof(request.ifr_name))
		return 0;
	strcpy(request.ifr_name, interface);
	/* not from sysfs, which shows the namespace of whoever mounted it */
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0)
		mtu = request.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return mtu;
}

int xb_link_roce_mtu(int interface_mtu_bytes)
{
	int mtu = 4096;

	while (mtu > 128 && mtu > interface_mtu_bytes - ROCE_HEADERS)
		mtu /= 2;
	return mtu > 128 ? mtu : 0;
}

int xb_link_mtu(const char *sysfs_root, const char *device)
{
	char name[64], interface[64];
	unsigned port;

	if (!split_device(device, name, &port))
		return 0;
	if (!xb_sysfs_exists("%s/class/infiniband/%s", sysfs_root, name))
		return interface_mtu(device);
	/* one for each GID; those that are free cannot be read */
	for (int i = 0;
	     xb_sysfs_exists("%s/class/infiniband/%s/ports/%u/gid_attrs/ndevs/%d", sysfs_root, name, port, i);
	     i++)
		if (xb_sysfs_line(interface, sizeof(interface),
				  "%s/class/infiniband/%s/ports/%u/gid_attrs/ndevs/%d", sysfs_root, name,
				  port, i) > 0)
			return xb_link_roce_mtu(interface_mtu(interface));
	return 0;
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

/* SPDX-License-Identifier: BSD-3-Clause */
/* Which machine is meant by a name, and by which address of ours it reaches us. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher.h"

static const char *without_user(const char *host)
{
	const char *at = strrchr(host, '@');
	return at ? at + 1 : host;
}

int xb_in_slurm_job(void)
{
	const char *job = getenv("SLURM_JOB_ID"), *path = getenv("PATH");
	char file[4096];
	if (!job || !*job)
		return 0;
	for (const char *p = path; p && *p;) {
		size_t n = strcspn(p, ":");
		snprintf(file, sizeof file, "%.*s/srun", (int)n, p);
		if (access(file, X_OK) == 0)
			return 1;
		p += n + (p[n] == ':');
	}
	return 0;
}

static int resolve(const char *host, struct addrinfo **list)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
	return getaddrinfo(without_user(host), "9", &hints, list);
}

int xb_host_is_here(const char *host)
{
	const char *name = without_user(host);
	char own[256] = "";
	struct addrinfo *list = NULL;
	int here = 0;

	gethostname(own, sizeof own - 1);
	if (!strcmp(name, "localhost") || !strcmp(name, own))
		return 1;
	if (resolve(host, &list))
		return 0;
	/* an address that a socket can be bound to is ours */
	for (struct addrinfo *a = list; a && !here; a = a->ai_next) {
		int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (a->ai_family == AF_INET)
			((struct sockaddr_in *)(void *)a->ai_addr)->sin_port = 0;
		else if (a->ai_family == AF_INET6)
			((struct sockaddr_in6 *)(void *)a->ai_addr)->sin6_port = 0;
		here = fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0;
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(list);
	return here;
}

static int numeric(const struct sockaddr *address, socklen_t length, char *out, size_t capacity)
{
	return getnameinfo(address, length, out, (socklen_t)capacity, NULL, 0, NI_NUMERICHOST);
}

/* IPv4 before IPv6, for a controller that has both; link-local addresses mean nothing on another host. */
static int of_interface(const char *name, char *address, size_t capacity, char *known, size_t known_bytes)
{
	static const int families[] = {AF_INET, AF_INET6};
	struct ifaddrs *list = NULL;
	size_t used = 0;
	int found = 0;

	known[0] = 0;
	if (getifaddrs(&list))
		return 0;
	for (size_t f = 0; f < 2 && !found; f++)
		for (struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
			if (!i->ifa_addr || i->ifa_addr->sa_family != families[f] || !(i->ifa_flags & IFF_UP))
				continue;
			const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;
			if (families[f] == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
				continue;
			if (!strstr(known, i->ifa_name) && used < known_bytes)
				used += (size_t)snprintf(known + used, known_bytes - used, "%s%s",
							 used ? ", " : "", i->ifa_name);
			found = !strcmp(i->ifa_name, name) &&
				!numeric(i->ifa_addr,
					 families[f] == AF_INET ? sizeof(struct sockaddr_in) : sizeof *v6,
					 address, capacity);
		}
	freeifaddrs(list);
	return found;
}

/* The source address that the kernel would use: connecting a datagram socket sends nothing. */
static int towards(const char *host, char *address, size_t capacity)
{
	struct addrinfo *list = NULL;
	int found = 0;

	if (resolve(host, &list))
		return 0;
	for (struct addrinfo *a = list; a && !found; a = a->ai_next) {
		struct sockaddr_storage own;
		socklen_t length = sizeof own;
		int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		found = fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0 &&
			getsockname(fd, (struct sockaddr *)&own, &length) == 0 &&
			numeric((struct sockaddr *)&own, length, address, capacity) == 0;
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(list);
	return found;
}

int xb_control_address(const char *interface, const char *host, char *address, size_t capacity,
		       struct xb_error *error)
{
	unsigned char binary[16];
	char known[512];

	if (!interface) {
		if (towards(host, address, capacity))
			return 0;
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"which address of this host %s could call is not known, since its name does not "
			"resolve here or there is no route to it; name an interface with "
			"--control-interface",
			host);
	}
	if (inet_pton(AF_INET, interface, binary) == 1 || inet_pton(AF_INET6, interface, binary) == 1) {
		snprintf(address, capacity, "%s", interface);
		return 0;
	}
	if (of_interface(interface, address, capacity, known, sizeof known))
		return 0;
	return xb_fail(
		error, XB_E_USAGE,
		"--control-interface: there is no interface %s with an address here that is up; those with "
		"one are %s",
		interface, *known ? known : "none");
}

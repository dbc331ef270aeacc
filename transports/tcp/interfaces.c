/* SPDX-License-Identifier: BSD-3-Clause */
/* The network interfaces of this network namespace and their addresses: for choosing a path, and for `list`.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "tcp.h"

/* from the kernel's if_addr.h, which does not go together with the C library's headers */
enum { ADDRESS_DADFAILED = 0x08, ADDRESS_TENTATIVE = 0x40 };

static long read_number(const char *interface, const char *file)
{
	char path[96];
	long value = 0;
	snprintf(path, sizeof path, "/sys/class/net/%s/%s", interface, file);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%ld", &value) != 1 || value < 0)
		value = 0;
	fclose(f);
	return value;
}

static unsigned prefix_length(const unsigned char *mask, size_t bytes)
{
	unsigned bits = 0;
	for (size_t i = 0; i < bytes; i++)
		bits += (unsigned)__builtin_popcount(mask[i]);
	return bits;
}

/* Duplicate address detection is known only to /proc/net/if_inet6: address index prefix scope flags name. */
static void read_inet6_flags(struct tcp_inventory *inventory)
{
	FILE *f = fopen("/proc/net/if_inet6", "re");
	char hex[33];
	unsigned index, flags;
	if (!f)
		return;
	while (fscanf(f, "%32s %x %*x %*x %x %*s", hex, &index, &flags) == 3) {
		for (size_t i = 0; i < inventory->address_count; i++) {
			struct tcp_address *a = &inventory->addresses[i];
			char own[33];
			for (size_t b = 0; b < 16; b++)
				snprintf(own + 2 * b, 3, "%02x", a->bytes[b]);
			if (a->family == AF_INET6 && a->index == index && !strcmp(own, hex)) {
				a->duplicate = flags & ADDRESS_DADFAILED;
				a->tentative = (flags & ADDRESS_TENTATIVE) && !a->duplicate;
			}
		}
	}
	fclose(f);
}

static struct tcp_interface *find_interface(struct tcp_inventory *inventory, const char *name)
{
	for (size_t i = 0; i < inventory->interface_count; i++)
		if (!strcmp(inventory->interfaces[i].name, name))
			return &inventory->interfaces[i];
	return NULL;
}

static void add_interface(struct tcp_inventory *inventory, const struct ifaddrs *item)
{
	char name[IF_NAMESIZE];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(item->ifa_name, ":"), item->ifa_name);
	if (find_interface(inventory, name))
		return;
	struct tcp_interface *i = &inventory->interfaces[inventory->interface_count++];
	memcpy(i->name, name, sizeof name);
	i->index = if_nametoindex(name);
	i->flags = item->ifa_flags;
	i->mtu = read_number(name, "mtu");
	i->speed_Mbps = read_number(name, "speed");
}

static void add_address(struct tcp_inventory *inventory, const struct ifaddrs *item)
{
	struct tcp_address *a = &inventory->addresses[inventory->address_count++];
	const void *mask = NULL;
	/* the name of an IPv4 address may be a label such as eth0:1 */
	snprintf(a->interface, sizeof a->interface, "%.*s", (int)strcspn(item->ifa_name, ":"),
		 item->ifa_name);
	a->index = if_nametoindex(a->interface);
	a->family = item->ifa_addr->sa_family;
	a->up = item->ifa_flags & IFF_UP;
	a->loopback = item->ifa_flags & IFF_LOOPBACK;
	size_t length = a->family == AF_INET ? 4 : 16;
	if (a->family == AF_INET) {
		memcpy(a->bytes, &((const struct sockaddr_in *)(const void *)item->ifa_addr)->sin_addr, 4);
		if (item->ifa_netmask)
			mask = &((const struct sockaddr_in *)(const void *)item->ifa_netmask)->sin_addr;
	} else {
		const struct in6_addr *in6 =
			&((const struct sockaddr_in6 *)(const void *)item->ifa_addr)->sin6_addr;
		memcpy(a->bytes, in6, 16);
		a->link_local = IN6_IS_ADDR_LINKLOCAL(in6);
		if (item->ifa_netmask)
			mask = &((const struct sockaddr_in6 *)(const void *)item->ifa_netmask)->sin6_addr;
	}
	a->prefix = mask ? prefix_length(mask, length) : (unsigned)length * 8;
}

int tcp_inventory_read(struct tcp_inventory *inventory, struct xb_error *error)
{
	struct ifaddrs *list, *item;
	size_t count = 0;

	memset(inventory, 0, sizeof *inventory);
	if (getifaddrs(&list))
		return xb_fail(error, XB_E_SYSTEM, "cannot read the network interfaces: %s", strerror(errno));
	for (item = list; item; item = item->ifa_next)
		count++;
	inventory->interfaces = calloc(count + 1, sizeof *inventory->interfaces);
	inventory->addresses = calloc(count + 1, sizeof *inventory->addresses);
	if (!inventory->interfaces || !inventory->addresses) {
		freeifaddrs(list);
		tcp_inventory_free(inventory);
		return xb_fail(error, XB_E_RESOURCE, "no memory for a list of %zu network addresses", count);
	}
	for (item = list; item; item = item->ifa_next)
		add_interface(inventory, item);
	for (item = list; item; item = item->ifa_next)
		if (item->ifa_addr && item->ifa_addr->sa_family == AF_INET)
			add_address(inventory, item);
	for (item = list; item; item = item->ifa_next)
		if (item->ifa_addr && item->ifa_addr->sa_family == AF_INET6)
			add_address(inventory, item);
	freeifaddrs(list);
	read_inet6_flags(inventory);
	return 0;
}

void tcp_inventory_free(struct tcp_inventory *inventory)
{
	free(inventory->interfaces);
	free(inventory->addresses);
	memset(inventory, 0, sizeof *inventory);
}

static bool same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
	if (memcmp(a, b, bits / 8))
		return false;
	return bits % 8 == 0 || !((a[bits / 8] ^ b[bits / 8]) >> (8 - bits % 8));
}

bool tcp_same_subnet(const struct tcp_address *a, const unsigned char bytes[16], int family)
{
	return a->family == family && same_bits(a->bytes, bytes, a->prefix);
}

char *tcp_address_text(const struct sockaddr_storage *address, char *text)
{
	char scope[IF_NAMESIZE];
	text[0] = 0;
	if (address->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)address;
		inet_ntop(AF_INET, &in->sin_addr, text, TCP_ADDRESS_TEXT);
	} else {
		const struct sockaddr_in6 *in6 = (const void *)address;
		inet_ntop(AF_INET6, &in6->sin6_addr, text, TCP_ADDRESS_TEXT);
		if (in6->sin6_scope_id && if_indextoname(in6->sin6_scope_id, scope)) {
			size_t used = strlen(text);
			snprintf(text + used, TCP_ADDRESS_TEXT - used, "%%%s", scope);
		}
	}
	return text;
}

/* --- choosing */

/* "eth0, lo (down)" of all interfaces, cut to fit. */
static void name_all(const struct tcp_inventory *inventory, char *text, size_t bytes)
{
	size_t used = 0;
	text[0] = 0;
	for (size_t i = 0; i < inventory->interface_count && used < bytes; i++) {
		const struct tcp_interface *at = &inventory->interfaces[i];
		used += (size_t)snprintf(text + used, bytes - used, "%s%s%s", i ? ", " : "", at->name,
					 at->flags & IFF_UP ? "" : " (down)");
	}
}

/* Parses ADDRESS/PREFIX or a bare address. */
static bool parse_subnet(const char *path, struct tcp_address *subnet)
{
	char address[INET6_ADDRSTRLEN];
	const char *slash = strchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : strlen(path);
	memset(subnet, 0, sizeof *subnet);
	if (length >= sizeof address)
		return false;
	memcpy(address, path, length);
	address[length] = 0;
	if (inet_pton(AF_INET, address, subnet->bytes) == 1)
		subnet->family = AF_INET;
	else if (inet_pton(AF_INET6, address, subnet->bytes) == 1)
		subnet->family = AF_INET6;
	else
		return false;
	unsigned long most = subnet->family == AF_INET ? 32 : 128, prefix = most;
	if (slash) {
		char *end;
		errno = 0;
		prefix = strtoul(slash + 1, &end, 10);
		if (slash[1] < '0' || slash[1] > '9' || *end || errno || prefix > most)
			return false;
	}
	subnet->prefix = (unsigned)prefix;
	return true;
}

static const char *family_name(int family)
{
	return family == 4 ? "IPv4" : family == 6 ? "IPv6" : "IPv4 or IPv6";
}

static int check_interface(struct tcp_inventory *inventory, const char *path, struct xb_error *error)
{
	char names[384];
	name_all(inventory, names, sizeof names);
	const struct tcp_interface *interface = find_interface(inventory, path);
	if (!interface && strchr(path, '/'))
		return xb_fail(error, XB_E_USAGE,
			       "asked for tcp:%s; that is neither an interface nor a subnet; write an "
			       "interface (%s) "
			       "or a subnet such as 192.0.2.0/24",
			       path, names);
	if (!interface)
		return xb_fail(error, XB_E_UNAVAILABLE,
			       "asked for tcp:%s; this host has no such interface; choose one of: %s", path,
			       names);
	if (!(interface->flags & IFF_UP))
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"asked for tcp:%s; the interface is down; 'ip link set %s up', or choose another "
			"of: %s",
			path, path, names);
	if (!(interface->flags & IFF_RUNNING))
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"asked for tcp:%s; the interface is up but has no carrier; check cable, switch port "
			"or the other end of a virtual link, or choose another of: %s",
			path, names);
	return 0;
}

int tcp_inventory_select(struct tcp_inventory *inventory, const char *path, int family,
			 struct xb_error *error)
{
	struct tcp_address subnet;
	bool by_subnet = parse_subnet(path, &subnet), any_family = false;
	size_t kept = 0, duplicates = 0;
	int status;

	if (path[0] && !by_subnet && (status = check_interface(inventory, path, error)))
		return status;
	for (size_t i = 0; i < inventory->address_count; i++) {
		struct tcp_address *a = &inventory->addresses[i];
		if (!a->up || (by_subnet && !tcp_same_subnet(&subnet, a->bytes, a->family)) ||
		    (path[0] && !by_subnet && strcmp(a->interface, path)))
			continue;
		any_family = true;
		if ((family == 4 && a->family != AF_INET) || (family == 6 && a->family != AF_INET6))
			continue;
		if (a->duplicate)
			duplicates++;
		else
			inventory->addresses[kept++] = *a;
	}
	inventory->address_count = kept;
	if (kept)
		return 0;
	char names[384];
	name_all(inventory, names, sizeof names);
	if (duplicates)
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"asked for tcp%s%s; its address is a duplicate of another host's (IPv6 duplicate "
			"address detection failed); give it another address",
			path[0] ? ":" : "", path);
	if (by_subnet)
		return xb_fail(error, XB_E_UNAVAILABLE,
			       "asked for tcp:%s; no interface that is up has an address in that subnet%s; "
			       "there are: %s",
			       path, any_family ? " and of the family asked for" : "", names);
	if (path[0])
		return xb_fail(error, XB_E_UNAVAILABLE,
			       "asked for tcp:%s; the interface has no %s address; 'ip address add "
			       "ADDRESS/PREFIX dev %s'%s, "
			       "or choose another of: %s",
			       path, family_name(family), path, any_family ? ", or leave out family=" : "",
			       names);
	return xb_fail(error, XB_E_UNAVAILABLE,
		       "asked for tcp; no interface that is up has an %s address; bring one up (ip link, ip "
		       "address); there are: %s",
		       family_name(family), names);
}

/* --- list */

static void describe_interface(const struct tcp_inventory *inventory, const struct tcp_interface *interface,
			       char *text, size_t bytes, bool *has_address)
{
	size_t used = 0;
	text[0] = 0;
	*has_address = false;
	for (size_t i = 0; i < inventory->address_count && used < bytes; i++) {
		const struct tcp_address *a = &inventory->addresses[i];
		char address[INET6_ADDRSTRLEN];
		if (strcmp(a->interface, interface->name))
			continue;
		inet_ntop(a->family, a->bytes, address, sizeof address);
		used += (size_t)snprintf(text + used, bytes - used, "%s%s/%u%s", *has_address ? ", " : "",
					 address, a->prefix,
					 a->duplicate	? " (duplicate)"
					 : a->tentative ? " (tentative)"
							: "");
		*has_address = true;
	}
	if (used < bytes && interface->mtu)
		used += (size_t)snprintf(text + used, bytes - used, "%sMTU %ld", used ? ", " : "",
					 interface->mtu);
	if (used < bytes && interface->speed_Mbps)
		snprintf(text + used, bytes - used, ", %g Gb/s", (double)interface->speed_Mbps / 1000);
}

int tcp_probe(const struct xb_probe_sink *sink, struct xb_error *error)
{
	struct tcp_inventory inventory;
	struct utsname system;
	int status = tcp_inventory_read(&inventory, error);
	if (status)
		return status;
	uname(&system);
	sink->library(sink->user, "Linux TCP", system.release);
	for (size_t i = 0; i < inventory.interface_count; i++) {
		const struct tcp_interface *interface = &inventory.interfaces[i];
		char text[512], remedy[128];
		const char *reason = NULL;
		bool has_address;
		describe_interface(&inventory, interface, text, sizeof text, &has_address);
		if (!(interface->flags & IFF_UP)) {
			reason = "the interface is down";
			snprintf(remedy, sizeof remedy, "ip link set %s up", interface->name);
		} else if (!(interface->flags & IFF_RUNNING)) {
			reason = "no carrier";
			snprintf(remedy, sizeof remedy,
				 "check cable, switch port or the other end of a virtual link");
		} else if (!has_address) {
			reason = "no IPv4 or IPv6 address";
			snprintf(remedy, sizeof remedy, "ip address add ADDRESS/PREFIX dev %s",
				 interface->name);
		}
		sink->path(sink->user, interface->name, text, !reason, reason, reason ? remedy : NULL);
	}
	tcp_inventory_free(&inventory);
	return 0;
}

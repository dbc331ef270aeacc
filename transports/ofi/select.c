/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ofi.h"

/* ---- addresses */
static const struct sockaddr *source(const struct fi_info *info)
{
	if (!info->src_addr || info->src_addrlen < sizeof(struct sockaddr))
		return NULL;
	if (info->addr_format != FI_SOCKADDR && info->addr_format != FI_SOCKADDR_IN &&
	    info->addr_format != FI_SOCKADDR_IN6)
		return NULL;
	return info->src_addr;
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return !memcmp(&((const struct sockaddr_in *)(const void *)a)->sin_addr,
			       &((const struct sockaddr_in *)(const void *)b)->sin_addr,
			       sizeof(struct in_addr));
	if (a->sa_family == AF_INET6)
		return !memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
			       &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
			       sizeof(struct in6_addr));
	return false;
}

void ofi_interface_of(const struct fi_info *info, char *name, size_t bytes)
{
	const struct sockaddr *address = source(info);
	struct ifaddrs *list = NULL;

	name[0] = '\0';
	if (!address || getifaddrs(&list) != 0)
		return;
	for (struct ifaddrs *i = list; i; i = i->ifa_next)
		if (i->ifa_addr && same_address(i->ifa_addr, address)) {
			snprintf(name, bytes, "%s", i->ifa_name);
			break;
		}
	freeifaddrs(list);
}

static void address_text(const struct sockaddr *address, char *text, size_t bytes)
{
	char number[INET6_ADDRSTRLEN] = "";

	if (address->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, number,
			  sizeof(number));
	else if (address->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, number,
			  sizeof(number));
	snprintf(text, bytes, "%s", number);
}

void ofi_source_text(const struct fi_info *info, char *text, size_t bytes)
{
	text[0] = '\0';
	if (source(info))
		address_text(source(info), text, bytes);
}

void ofi_domain_device(const struct fi_info *info, char *name, size_t bytes)
{
	const char *domain = info->domain_attr && info->domain_attr->name ? info->domain_attr->name : "";

	snprintf(name, bytes, "%.*s", (int)strcspn(domain, "-"), domain);
}

#define GID_RANK 12 /* behind every IP address */

/* Lower is better. Without a device: loopback first on one host (as the fabric's own tools are run there),
 * last on several; IPv4 before IPv6, as an interface's first IPv6 address is a link-local one that needs a
 * scope. */
static int address_rank(const struct sockaddr *address, bool same_host)
{
	bool loopback = false, local = false, six = address->sa_family == AF_INET6;

	if (six) {
		const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

		loopback = IN6_IS_ADDR_LOOPBACK(a);
		local = IN6_IS_ADDR_LINKLOCAL(a);
	} else if (address->sa_family == AF_INET) {
		const struct sockaddr_in *a = (const struct sockaddr_in *)(const void *)address;

		loopback = (ntohl(a->sin_addr.s_addr) >> 24) == 127;
	}
	return (loopback == same_host ? 0 : 4) + (local ? 2 : 0) + (six ? 1 : 0);
}

static bool device_matches(const struct fi_info *info, const char *device)
{
	char name[OFI_NAME_BYTES], number[INET6_ADDRSTRLEN];
	const char *domain = info->domain_attr->name;

	if (domain && !strcmp(domain, device))
		return true;
	ofi_domain_device(info, name, sizeof(name));
	if (!strcmp(name, device))
		return true;
	ofi_interface_of(info, name, sizeof(name));
	if (name[0] && !strcmp(name, device))
		return true;
	ofi_source_text(info, number, sizeof(number));
	return number[0] && !strcmp(number, device);
}

/* ---- what is asked for */
void ofi_append(char *text, size_t bytes, const char *item)
{
	size_t used = strlen(text);

	if (used + strlen(item) + 3 < bytes)
		snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", item);
}

struct fi_info *ofi_hints(const struct ofi_library *lib, const char *provider, const struct ofi_need *need)
{
	struct fi_info *hints = lib->dupinfo(NULL);

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | FI_TAGGED | (need->rma ? FI_RMA : 0);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	/* All that a provider may ask of registration is honoured; see memory and export_region. */
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	/* One thread, which progresses by itself: no locks, no progress thread that competes for the core. */
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	/* The n-th send meets the n-th receive. */
	hints->tx_attr->msg_order = FI_ORDER_SAS | (need->read_back ? FI_ORDER_RAW : 0);
	hints->rx_attr->msg_order = hints->tx_attr->msg_order;
	if (*provider) {
		hints->fabric_attr->prov_name = strdup(provider);
		if (!hints->fabric_attr->prov_name) {
			lib->freeinfo(hints);
			return NULL;
		}
	}
	return hints;
}

static int ask(const struct ofi_library *lib, struct fi_info *hints, struct fi_info **list)
{
	int rc;

	*list = NULL;
	if (!hints)
		return -FI_ENOMEM;
	rc = lib->getinfo(lib->api, NULL, NULL, 0, hints, list);
	lib->freeinfo(hints);
	return rc;
}

void ofi_providers_text(const struct ofi_library *lib, char *text, size_t bytes)
{
	const struct ofi_need anything = {0};
	struct fi_info *list;
	char name[OFI_NAME_BYTES];

	text[0] = '\0';
	if (ask(lib, ofi_hints(lib, "", &anything), &list) != 0)
		return;
	for (struct fi_info *i = list; i; i = i->next) {
		bool seen = false;

		for (struct fi_info *j = list; j != i && !seen; j = j->next)
			seen = !strcmp(i->fabric_attr->prov_name, j->fabric_attr->prov_name);
		ofi_path_spell(i->fabric_attr->prov_name, name, sizeof(name));
		if (!seen)
			ofi_append(text, bytes, name);
	}
	lib->freeinfo(list);
}

static int absent(const struct ofi_library *lib, const struct ofi_path *path, const struct ofi_omnipath *opa,
		  struct xb_error *error)
{
	char here[256], reason[256], remedy[256];

	ofi_providers_text(lib, here, sizeof(here));
	if (!strcmp(path->provider, "psm2")) {
		ofi_omnipath_absent(opa, reason, sizeof(reason), remedy, sizeof(remedy));
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"asked for ofi:psm2; libfabric %s does not offer it: %s; %s (providers here: %s)",
			lib->version, reason, remedy, here);
	}
	return xb_fail(error, XB_E_UNAVAILABLE,
		       "asked for ofi:%s; libfabric %s offers no such provider with reliable datagram "
		       "endpoints here; "
		       "use one of: %s (`xportbench list` says why others are missing)",
		       path->provider[0] ? path->provider : "(any)", lib->version, here[0] ? here : "none");
}

static int no_device(const struct ofi_library *lib, const struct ofi_path *path, struct fi_info *list,
		     struct xb_error *error)
{
	char devices[256] = "", name[OFI_NAME_BYTES];

	for (struct fi_info *i = list; i; i = i->next) {
		if (!ofi_path_matches(path->provider, i->fabric_attr->prov_name))
			continue;
		ofi_domain_device(i, name, sizeof(name));
		if (!strstr(devices, name))
			ofi_append(devices, sizeof(devices), name);
	}
	return xb_fail(
		error, XB_E_UNAVAILABLE,
		"asked for ofi:%s/%s; libfabric %s has that provider on %s only; name one of those, or an "
		"address of this host",
		path->provider, path->device, lib->version, devices[0] ? devices : "no device");
}

/* The best entry of the list: right provider (exact name first), right device, best source address, earliest.
 */
static struct fi_info *best_of(struct fi_info *list, const struct ofi_path *path, bool same_host,
			       bool *provider)
{
	const char *first = NULL;
	struct fi_info *best = NULL;
	int best_rank = INT_MAX;

	*provider = false;
	for (struct fi_info *i = list; i; i = i->next) {
		const char *name = i->fabric_attr->prov_name;
		int rank;

		if (!ofi_path_matches(path->provider, name))
			continue;
		*provider = true;
		if (!first)
			first = name;
		/* no provider named: stay with libfabric's first choice */
		if (!path->provider[0] && strcmp(name, first))
			continue;
		if (path->device[0] && strcmp(path->provider, "psm2") && !device_matches(i, path->device))
			continue;
		rank = path->provider[0] && strcasecmp(path->provider, name) ? 100 : 0;
		if (source(i))
			rank += address_rank(source(i), path->device[0] ? false : same_host);
		/* verbs: the first cannot be resolved on RoCE, the second is of datagrams made reliable in
		 * software */
		else if (i->addr_format == FI_SOCKADDR_IB || i->addr_format == FI_ADDR_IB_UD)
			rank += GID_RANK;
		if (rank < best_rank) {
			best_rank = rank;
			best = i;
		}
	}
	return best;
}

/* Queue depths: a receive that cannot be posted because the queue is full of receives waits for ever. */
static void deepen(const struct ofi_library *lib, const struct ofi_need *need, struct fi_info **info)
{
	size_t wanted = (size_t)need->outstanding + 4;
	struct fi_info *hints, *list;

	if ((*info)->rx_attr->size >= wanted && (*info)->tx_attr->size >= wanted)
		return;
	hints = lib->dupinfo(*info);
	if (!hints)
		return;
	hints->rx_attr->size = hints->rx_attr->size > wanted ? hints->rx_attr->size : wanted;
	hints->tx_attr->size = hints->tx_attr->size > wanted ? hints->tx_attr->size : wanted;
	if (ask(lib, hints, &list) != 0)
		return;
	for (struct fi_info *i = list; i; i = i->next)
		if (!strcmp(i->fabric_attr->prov_name, (*info)->fabric_attr->prov_name) &&
		    i->rx_attr->size >= wanted) {
			struct fi_info *deeper = lib->dupinfo(i);

			if (deeper) {
				lib->freeinfo(*info);
				*info = deeper;
			}
			break;
		}
	lib->freeinfo(list);
}

/* Does this very provider and domain take FI_DELIVERY_COMPLETE? */
static bool delivery_offered(const struct ofi_library *lib, const struct fi_info *info)
{
	struct fi_info *hints = lib->dupinfo(info), *list;
	int rc;

	if (!hints)
		return false;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	rc = ask(lib, hints, &list);
	if (list)
		lib->freeinfo(list);
	return rc == 0;
}

/* The provider's offers for this need, in libfabric's order of preference. */
static int offers(const struct ofi_library *lib, const struct ofi_path *path, const struct ofi_need *need,
		  struct fi_info **list)
{
	int rc = ask(lib, ofi_hints(lib, path->provider, need), list);
	struct fi_info *hints;

	if (rc == 0 || need->rma)
		return rc;
	/* a provider without tagged messages: ordered untagged ones do for two endpoints */
	hints = ofi_hints(lib, path->provider, need);
	if (hints)
		hints->caps = FI_MSG;
	return ask(lib, hints, list);
}

static int refuse(const struct ofi_library *lib, const struct ofi_path *path, const struct ofi_need *need,
		  const struct ofi_omnipath *opa, struct xb_error *error)
{
	const struct ofi_need less = {.same_host = need->same_host, .outstanding = need->outstanding};
	struct fi_info *list;

	if (need->rma && offers(lib, path, &less, &list) == 0) {
		lib->freeinfo(list);
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "asked for one-sided operations on ofi:%s; libfabric %s offers no FI_RMA%s "
			       "there; use "
			       "--op send",
			       path->provider, lib->version,
			       need->read_back ? " with reads ordered after writes" : "");
	}
	return absent(lib, path, opa, error);
}

int ofi_select(const struct ofi_library *lib, const struct ofi_path *path, struct ofi_need *need,
	       const struct ofi_omnipath *opa, struct fi_info **info, struct xb_error *error)
{
	struct fi_info *list, *best;
	bool provider = false;
	int rc;

	if (offers(lib, path, need, &list) != 0)
		return refuse(lib, path, need, opa, error);
	best = best_of(list, path, need->same_host, &provider);
	if (!best) {
		rc = provider ? no_device(lib, path, list, error) : absent(lib, path, opa, error);
		lib->freeinfo(list);
		return rc;
	}
	best = lib->dupinfo(best);
	lib->freeinfo(list);
	if (!best)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for libfabric's endpoint description");
	if (need->rma && !need->read_back && !delivery_offered(lib, best)) {
		lib->freeinfo(best);
		need->read_back = true;
		return ofi_select(lib, path, need, opa, info, error);
	}
	deepen(lib, need, &best);
	if (best->rx_attr->size < need->outstanding) {
		rc = xb_fail(
			error, XB_E_UNSUPPORTED,
			"asked for %u messages outstanding on ofi:%s; its receive queue takes %zu; use a "
			"smaller window (-W)",
			need->outstanding, best->fabric_attr->prov_name, best->rx_attr->size);
		lib->freeinfo(best);
		return rc;
	}
	*info = best;
	return XB_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which interface does the kernel send through? Asked of its routing table (rtnetlink, as `ip route get`
 * does), because the address that a socket is bound to does not tell: between two addresses of one host
 * everything goes through lo.
 */
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tcp.h"

struct route_request {
	struct nlmsghdr header;
	struct rtmsg route;
	unsigned char attributes[128];
};

static void add_attribute(struct route_request *request, unsigned short type, const void *data, size_t bytes)
{
	struct rtattr *attribute =
		(void *)((unsigned char *)request + NLMSG_ALIGN(request->header.nlmsg_len));
	attribute->rta_type = type;
	attribute->rta_len = (unsigned short)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(attribute), data, bytes);
	request->header.nlmsg_len =
		NLMSG_ALIGN(request->header.nlmsg_len) + (unsigned)RTA_ALIGN(attribute->rta_len);
}

static unsigned output_interface(const void *answer, size_t bytes)
{
	const struct nlmsghdr *header = answer;
	if (!NLMSG_OK(header, bytes) || header->nlmsg_type != RTM_NEWROUTE)
		return 0;
	const struct rtmsg *route = NLMSG_DATA(header);
	const struct rtattr *attribute = RTM_RTA(route);
	int left = (int)RTM_PAYLOAD(header);
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		unsigned index;
		if (attribute->rta_type != RTA_OIF || RTA_PAYLOAD(attribute) < sizeof index)
			continue;
		memcpy(&index, RTA_DATA(attribute), sizeof index);
		return index;
	}
	return 0;
}

/* SO_BINDTODEVICE, if that was set. */
static unsigned bound_interface(int fd)
{
	char name[IF_NAMESIZE] = "";
	socklen_t bytes = sizeof name;
	if (getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &bytes) || !name[0])
		return 0;
	return if_nametoindex(name);
}

unsigned tcp_route_interface(int fd, const struct sockaddr_storage *local,
			     const struct sockaddr_storage *remote)
{
	struct route_request request = {
		.header = {.nlmsg_len = NLMSG_LENGTH(sizeof request.route),
			   .nlmsg_type = RTM_GETROUTE,
			   .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = (unsigned char)remote->ss_family},
	};
	_Alignas(struct nlmsghdr) unsigned char answer[4096];
	unsigned index = 0, bound = bound_interface(fd);

	if (remote->ss_family == AF_INET) {
		request.route.rtm_dst_len = request.route.rtm_src_len = 32;
		add_attribute(&request, RTA_DST,
			      &((const struct sockaddr_in *)(const void *)remote)->sin_addr, 4);
		add_attribute(&request, RTA_SRC, &((const struct sockaddr_in *)(const void *)local)->sin_addr,
			      4);
	} else {
		const struct sockaddr_in6 *to = (const void *)remote, *from = (const void *)local;
		request.route.rtm_dst_len = request.route.rtm_src_len = 128;
		add_attribute(&request, RTA_DST, &to->sin6_addr, 16);
		add_attribute(&request, RTA_SRC, &from->sin6_addr, 16);
		if (to->sin6_scope_id)
			bound = to->sin6_scope_id;
	}
	if (bound)
		add_attribute(&request, RTA_OIF, &bound, sizeof bound);
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (netlink < 0)
		return 0;
	struct timeval limit = {.tv_sec = 1};
	setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (send(netlink, &request, request.header.nlmsg_len, 0) > 0) {
		ssize_t bytes = recv(netlink, answer, sizeof answer, 0);
		if (bytes > 0)
			index = output_interface(answer, (size_t)bytes);
	}
	close(netlink);
	return index;
}

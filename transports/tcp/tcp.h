/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_TCP_H
#define XB_TCP_H
/*
 * The TCP backend. interfaces.c knows what network interfaces there are; connect.c brings a pair together;
 * hot.c moves raw bytes as NetPIPE does; framed.c moves messages with a one-byte header, for patterns with
 * synchronous sends; route.c asks the kernel which way the bytes go; tcp.c is the contract around them.
 */
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "transport.h"

#define TCP_TOKEN_BYTES 16u
#define TCP_WAKE_MS 100 /* a sleeping endpoint looks at the abort flag this often */

/* --- interfaces.c */

struct tcp_address {
	char interface[IF_NAMESIZE];
	unsigned index; /* of the interface: the scope of a link-local address */
	int family; /* AF_INET, AF_INET6 */
	unsigned char bytes[16];
	unsigned prefix; /* length of the subnet's prefix, bits */
	bool link_local; /* IPv6 fe80::/10 */
	bool tentative; /* IPv6 duplicate detection has not ended: cannot be bound yet */
	bool duplicate; /* IPv6 duplicate detection has failed */
	bool up, loopback; /* of its interface */
};

struct tcp_interface {
	char name[IF_NAMESIZE];
	unsigned index, flags; /* IFF_* */
	long mtu, speed_Mbps; /* 0 unknown */
};

struct tcp_inventory {
	struct tcp_interface *interfaces;
	struct tcp_address *addresses; /* in the order of the kernel, IPv4 before IPv6 */
	size_t interface_count, address_count;
};

int tcp_inventory_read(struct tcp_inventory *inventory, struct xb_error *error);
void tcp_inventory_free(struct tcp_inventory *inventory);
/*
 * Keeps only the addresses that `path` (an interface, or a subnet ADDRESS/PREFIX) and `family` (0 both, 4, 6)
 * allow; "" keeps those of all interfaces that are up. XB_E_UNAVAILABLE, naming what there is, if none is
 * left.
 */
int tcp_inventory_select(struct tcp_inventory *inventory, const char *path, int family,
			 struct xb_error *error);
bool tcp_same_subnet(const struct tcp_address *a, const unsigned char bytes[16], int family);
int tcp_probe(const struct xb_probe_sink *sink, struct xb_error *error);
/* "10.0.0.1", "fe80::1%eth0"; text holds at least TCP_ADDRESS_TEXT bytes; returns text. */
#define TCP_ADDRESS_TEXT 64u
char *tcp_address_text(const struct sockaddr_storage *address, char *text);

/* --- the context and its connections */

struct tcp_request {
	struct tcp_request *next; /* in the connection's queue */
	unsigned char *at; /* next byte to move */
	size_t left; /* still to move, header included; 0 = done */
	/* framed patterns only */
	size_t payload; /* bytes of the message beyond the header */
	uint64_t ack_number; /* acknowledgements that must have come in; 0 = none needed */
	unsigned char header;
};

struct tcp_queue {
	struct tcp_request *head, *tail;
};

struct tcp_connection {
	/* hot */
	int fd;
	const atomic_int *abort;
	struct tcp_queue sends, receives;
	unsigned char pad; /* the byte that a zero-byte message puts on the wire */
	/* framed patterns */
	int ack_fd;
	unsigned acks_owed; /* for messages of the peer */
	uint64_t acks_wanted, acks_received;
	/* cause of a failure */
	int failed_errno; /* 0: the peer closed the connection */
	const char *failed_what;
	/* cold */
	struct tcp_context *context;
	struct tcp_connection *next;
	uint32_t peer;
	bool same_host; /* both ends in one network namespace */
	struct sockaddr_storage local, remote;
};

struct tcp_listener {
	int fd;
	struct tcp_address address; /* what it offers; all zero bytes: every address of the family */
	uint16_t port;
	unsigned char audience; /* TCP_FOR_* */
};
#define TCP_MAX_LISTENERS 32u
enum { TCP_FOR_THIS_HOST = 0x40, TCP_FOR_OTHER_HOSTS = 0x80 };

/* A connection that has come in and has not said everything yet. */
struct tcp_caller {
	int fd;
	unsigned state; /* 0 hello expected, 1 confirmation expected */
	unsigned got; /* bytes of the current state */
	unsigned char bytes[64];
	uint64_t since_ns;
};
#define TCP_MAX_CALLERS 64u

struct tcp_context {
	const struct xb_setup *setup;
	bool open;
	bool block, nodelay;
	int family; /* 0, 4, 6 */
	int sndbuf, rcvbuf; /* bytes asked for; 0 = the kernel's autotuning */
	const char *congestion; /* NULL = the system's */
	struct tcp_inventory inventory; /* what the path selects */
	unsigned char boot_id[16];
	uint64_t netns; /* inode of the network namespace */
	unsigned char token[TCP_TOKEN_BYTES],
		reply[TCP_TOKEN_BYTES]; /* what a caller, and what we, must say */
	struct tcp_listener listeners[TCP_MAX_LISTENERS];
	size_t listener_count;
	struct tcp_caller callers[TCP_MAX_CALLERS];
	int (*arrived)[2]; /* of every endpoint: accepted descriptors of channel 0 and 1, or -1 */
	struct tcp_connection *connections;
};

/* --- connect.c, listen.c */

enum tcp_channel { TCP_DATA, TCP_ACKS };
int tcp_listen(struct tcp_context *context, struct xb_error *error);
/*
 * Waits until `events` happen on fd (-1: none) or wait_ms have passed, and meanwhile serves whoever calls:
 * connections of other peers are kept in `arrived`. 1: fd is ready, 0: not yet, XB_E_ABORTED.
 */
int tcp_wait_serving(struct tcp_context *context, int fd, short events, int wait_ms);
/* The handshake, from the side of the caller, begins with these bytes. */
#define TCP_HELLO_BYTES 32u
#define TCP_CONFIRM 'c'
void tcp_write_hello(unsigned char *bytes, const unsigned char *token, uint32_t endpoint,
		     enum tcp_channel channel);
void tcp_listen_close(struct tcp_context *context);
int tcp_write_address(struct tcp_context *context, unsigned char *blob, size_t *bytes,
		      struct xb_error *error);
int tcp_connect(struct tcp_context *context, uint32_t peer, const unsigned char *blob, size_t bytes,
		struct tcp_connection *connection, struct xb_error *error);
/* Options that must be set before a connection is made: buffers, congestion control. */
int tcp_set_options(const struct tcp_context *context, int fd, struct xb_error *error);
uint64_t tcp_now_ns(void);
void tcp_make_sockaddr(struct sockaddr_storage *out, const struct tcp_address *address, uint16_t port);
socklen_t tcp_sockaddr_bytes(const struct sockaddr_storage *address);

/* --- route.c */

/* Index of the interface through which the kernel sends from `local` to `remote` on socket fd; 0 if it cannot
 * tell. */
unsigned tcp_route_interface(int fd, const struct sockaddr_storage *local,
			     const struct sockaddr_storage *remote);

/* --- hot.c, framed.c */

const struct xb_hot *tcp_hot_table(bool block, const struct xb_pattern *pattern);
extern const struct xb_hot tcp_framed_spin, tcp_framed_block;

static inline void tcp_enqueue(struct tcp_queue *queue, struct tcp_request *request)
{
	request->next = NULL;
	if (queue->head)
		queue->tail->next = request;
	else
		queue->head = request;
	queue->tail = request;
}

/* Keeps the cause for explain. error_number 0: the peer closed the connection. */
int tcp_broken(struct tcp_connection *connection, const char *what, int error_number);
int tcp_failure_status(int error_number);

#endif

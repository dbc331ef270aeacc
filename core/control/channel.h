/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_CHANNEL_H
#define XB_CHANNEL_H
/*
 * The control channel: one TCP connection from each worker to the controller, authenticated both ways with
 * the run's key, then carrying sealed frames of JSON.
 *
 *   worker -> controller   hello: magic[8] nonce_w[32] HMAC(K, "hello" magic nonce_w)
 *   controller -> worker   reply: nonce_c[32] HMAC(K, "reply" nonce_w nonce_c)
 *   worker -> controller   proof: HMAC(K, "proof" nonce_w nonce_c)
 *
 * The controller sends its first byte only after a valid hello, so a stranger gets nothing. A replayed hello
 * gets a reply, but no proof can be made for its fresh nonce. Keys of the two directions are derived from K
 * and both nonces; a frame is length[4, little-endian] followed by ChaCha20-Poly1305(JSON), its nonce the
 * frame number and its associated data the length: replayed, reordered, truncated or altered frames fail to
 * open. All cryptography is libsodium's.
 */
#include <jansson.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include "../error.h"

#define XB_KEY_BYTES 32u
#define XB_NONCE_BYTES 32u
#define XB_MAC_BYTES 32u
#define XB_HELLO_BYTES (8u + XB_NONCE_BYTES + XB_MAC_BYTES)
#define XB_REPLY_BYTES (XB_NONCE_BYTES + XB_MAC_BYTES)
#define XB_PROOF_BYTES XB_MAC_BYTES
#define XB_FRAME_HEADER_BYTES 4u
#define XB_FRAME_TAG_BYTES 16u
#define XB_FRAME_MAX_BYTES (4u << 20) /* largest JSON text in a frame */

/* Must be called once per process before anything else here. */
int xb_channel_library_init(struct xb_error *error);
void xb_random_bytes(void *bytes, size_t count);
void xb_key_to_hex(const unsigned char key[XB_KEY_BYTES], char hex[2 * XB_KEY_BYTES + 1]);
int xb_key_from_hex(const char *hex, unsigned char key[XB_KEY_BYTES]); /* 0, or XB_E_USAGE */

/* Handshake messages; the check functions return 0 or XB_E_CORRUPT. Pure: no I/O. */
void xb_hello_make(const unsigned char *key, const unsigned char *nonce_w,
		   unsigned char hello[XB_HELLO_BYTES]);
int xb_hello_check(const unsigned char *key, const unsigned char hello[XB_HELLO_BYTES],
		   unsigned char *nonce_w);
void xb_reply_make(const unsigned char *key, const unsigned char *nonce_w, const unsigned char *nonce_c,
		   unsigned char reply[XB_REPLY_BYTES]);
int xb_reply_check(const unsigned char *key, const unsigned char *nonce_w,
		   const unsigned char reply[XB_REPLY_BYTES], unsigned char *nonce_c);
void xb_proof_make(const unsigned char *key, const unsigned char *nonce_w, const unsigned char *nonce_c,
		   unsigned char proof[XB_PROOF_BYTES]);
int xb_proof_check(const unsigned char *key, const unsigned char *nonce_w, const unsigned char *nonce_c,
		   const unsigned char proof[XB_PROOF_BYTES]);

/* Keys and frame numbers of an authenticated connection, seen from one end. */
struct xb_session {
	unsigned char send_key[XB_KEY_BYTES], receive_key[XB_KEY_BYTES];
	uint64_t sent, received;
};
void xb_session_derive(const unsigned char *key, const unsigned char *nonce_w, const unsigned char *nonce_c,
		       int controller, struct xb_session *session);
/* Seals text into a malloc'ed frame; NULL if it is too long or memory ran out. */
unsigned char *xb_frame_seal(struct xb_session *session, const char *text, size_t bytes, size_t *frame_bytes);

/* Incremental parser of what arrived. Memory is bounded by one frame. */
struct xb_parser {
	unsigned char *bytes;
	size_t used, capacity;
};
void xb_parser_free(struct xb_parser *parser);
/* Appends raw bytes; XB_E_CORRUPT when an announced length is out of range, XB_E_RESOURCE without memory. */
int xb_parser_feed(struct xb_parser *parser, const unsigned char *bytes, size_t count);
/* Takes the next whole frame: 1 and *message (new reference), 0 when more bytes are needed, XB_E_CORRUPT if
 * it does not authenticate or is no JSON object. */
int xb_parser_next(struct xb_parser *parser, struct xb_session *session, json_t **message);

/* The worker's end. Sending is serialised, so the watcher may send while the main thread is in a block. */
struct xb_channel {
	int fd;
	struct xb_session session;
	struct xb_parser parser;
	pthread_mutex_t send_lock;
};
/* Connects to "HOST:PORT" or "[V6]:PORT" within reach_ms, then authenticates within reply_ms: a controller
 * that is still starting others answers late. */
int xb_channel_connect(struct xb_channel *channel, const char *address, const unsigned char *key,
		       int reach_ms, int reply_ms, struct xb_error *error);
/* Sends one message; steals no reference. */
int xb_channel_send(struct xb_channel *channel, json_t *message, struct xb_error *error);
/* Sleeps until a message comes (XB_E_PEER when the controller is gone). */
int xb_channel_receive(struct xb_channel *channel, json_t **message, struct xb_error *error);
void xb_channel_close(struct xb_channel *channel);

/*
 * For a connection to another host: with `quiet_s` seconds without a sign of the other side, and then a few
 * more without an answer, it counts as lost. Nothing is sent while it is younger than that, so that no packet
 * of it disturbs a block.
 */
#define XB_CHANNEL_QUIET_S 5
void xb_channel_keep_alive(int fd);
/* What has been received is acknowledged now, instead of some 40 ms later in the middle of a block. */
void xb_channel_acknowledge(int fd);

/* write() everything to a socket or pipe that may be non-blocking, within timeout_ms; 0 or a negative status.
 */
int xb_write_all(int fd, const void *bytes, size_t count, int timeout_ms);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_PAYLOAD_H
#define XB_PAYLOAD_H
/*
 * What messages contain, and how a receiver tells that it got exactly that.
 *
 * The content of a message is a pattern of its seed, different in every 8-byte word; the seed is made of the
 * block's nonce, the size, the direction and the number of the message. A timed loop cannot afford to write a
 * pattern per message, so there each message carries a stamp, its sequence number made unique, in its first
 * and its last 8 bytes; the receiver keeps the two words of every message and they are checked afterwards.
 * Verification outside the timed part uses a fresh pattern for every message and compares all bytes.
 *
 * Receive buffers are filled with XB_POISON beforehand: bytes that never arrived are told from bytes that
 * changed.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../error.h"

#define XB_POISON 0xdbu
#define XB_POISON_WORD UINT64_C(0xdbdbdbdbdbdbdbdb)
#define XB_STAMP_STEP                                                                                        \
	UINT64_C(0x9e3779b97f4a7c15) /* odd: stamps of a sequence repeat after 2^64 messages                 \
				      */

/* Who sends a message: part of its content, so that a loopback of one's own message is noticed. */
enum xb_direction { XB_FROM_INITIATOR = 1, XB_FROM_RESPONDER = 2 };

uint64_t xb_payload_seed(uint64_t nonce, size_t size_bytes, enum xb_direction direction, uint64_t message);

/* Writes the pattern; several GB/s. */
void xb_payload_fill(unsigned char *buffer, size_t bytes, uint64_t seed);
void xb_payload_poison(unsigned char *buffer, size_t bytes);

/* Offset of the first byte that differs from the pattern from `offset` on; `bytes` if none does. */
size_t xb_payload_compare(const unsigned char *buffer, size_t offset, size_t bytes, uint64_t seed);
unsigned char xb_payload_byte(uint64_t seed, size_t offset);

/* --- stamps; hot, so inline. Buffers are longer than 8 bytes whatever the size: no branch on it. */
static inline size_t xb_stamp_tail(size_t size_bytes)
{
	return size_bytes > 8 ? size_bytes - 8 : 0;
}

/* The bits of a stamp's first `bytes` in memory order; all of them from 8 on. */
static inline uint64_t xb_stamp_mask(size_t bytes)
{
	uint64_t mask = 0;

	memset(&mask, 0xff, bytes < 8 ? bytes : 8);
	return mask;
}

static inline void xb_stamp_write(unsigned char *buffer, size_t tail, uint64_t stamp)
{
	memcpy(buffer, &stamp, 8);
	memcpy(buffer + tail, &stamp, 8);
}

static inline void xb_stamp_read(const unsigned char *buffer, size_t tail, uint64_t *words)
{
	memcpy(&words[0], buffer, 8);
	memcpy(&words[1], buffer + tail, 8);
}

/*
 * What a check knows about the message, for the sentence. What a stale buffer shows: the message before has
 * the pattern of `previous_seed` (0: not known), with `previous_stamp` in both ends (0: none).
 */
struct xb_payload_context {
	const char *bench, *op; /* "pingpong", "send" */
	const char *part; /* "timed part", "verification" ... */
	size_t size_bytes;
	uint64_t previous_seed, previous_stamp;
};

/*
 * The words of messages 0 ... count-1 against stamps first, first + step, ... (step: XB_STAMP_STEP, or 0
 * where one message is read again and again). Only the bytes of each word that a message of size_bytes has
 * are looked at. 0 or XB_E_CORRUPT with *error.
 */
int xb_payload_check_stamps(const struct xb_payload_context *context, const uint64_t *words, uint64_t count,
			    uint64_t first, uint64_t step, struct xb_error *error);

/* A whole message: the pattern of seed, but for a stamp in both ends if `stamped`. 0 or XB_E_CORRUPT with
 * *error. */
int xb_payload_check(const struct xb_payload_context *context, const unsigned char *buffer, uint64_t seed,
		     int stamped, uint64_t stamp, uint64_t message, struct xb_error *error);

#endif

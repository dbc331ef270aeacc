/* SPDX-License-Identifier: BSD-3-Clause */
/* Handshake and frames of the control channel, without I/O; see channel.h for the protocol. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"

static const unsigned char magic[8] = "XBCTRL\0\1";

int xb_channel_library_init(struct xb_error *error)
{
	if (sodium_init() < 0)
		return xb_fail(
			error, XB_E_SYSTEM,
			"libsodium could not start (no source of random numbers?): no authenticated control "
			"channel, so nothing can be run");
	return 0;
}

void xb_random_bytes(void *bytes, size_t count)
{
	randombytes_buf(bytes, count);
}

void xb_key_to_hex(const unsigned char key[XB_KEY_BYTES], char hex[2 * XB_KEY_BYTES + 1])
{
	sodium_bin2hex(hex, 2 * XB_KEY_BYTES + 1, key, XB_KEY_BYTES);
}

int xb_key_from_hex(const char *hex, unsigned char key[XB_KEY_BYTES])
{
	size_t length;
	if (sodium_hex2bin(key, XB_KEY_BYTES, hex, strlen(hex), " \r\n", &length, NULL) ||
	    length != XB_KEY_BYTES)
		return XB_E_USAGE;
	return 0;
}

/* HMAC-SHA-256 over label, a and b: the label keeps the three messages and the two keys apart. */
static void keyed_hash(const unsigned char *key, const char *label, const unsigned char *a, size_t a_bytes,
		       const unsigned char *b, size_t b_bytes, unsigned char out[XB_MAC_BYTES])
{
	crypto_auth_hmacsha256_state state;
	crypto_auth_hmacsha256_init(&state, key, XB_KEY_BYTES);
	crypto_auth_hmacsha256_update(&state, (const unsigned char *)label, strlen(label) + 1);
	crypto_auth_hmacsha256_update(&state, a, a_bytes);
	if (b_bytes)
		crypto_auth_hmacsha256_update(&state, b, b_bytes);
	crypto_auth_hmacsha256_final(&state, out);
}

void xb_hello_make(const unsigned char *key, const unsigned char *nonce_w,
		   unsigned char hello[XB_HELLO_BYTES])
{
	memcpy(hello, magic, sizeof magic);
	memcpy(hello + sizeof magic, nonce_w, XB_NONCE_BYTES);
	keyed_hash(key, "hello", hello, sizeof magic + XB_NONCE_BYTES, NULL, 0,
		   hello + sizeof magic + XB_NONCE_BYTES);
}

int xb_hello_check(const unsigned char *key, const unsigned char hello[XB_HELLO_BYTES],
		   unsigned char *nonce_w)
{
	unsigned char expected[XB_HELLO_BYTES];
	xb_hello_make(key, hello + sizeof magic, expected);
	if (sodium_memcmp(expected, hello, sizeof expected))
		return XB_E_CORRUPT;
	memcpy(nonce_w, hello + sizeof magic, XB_NONCE_BYTES);
	return 0;
}

void xb_reply_make(const unsigned char *key, const unsigned char *nonce_w, const unsigned char *nonce_c,
		   unsigned char reply[XB_REPLY_BYTES])
{
	memcpy(reply, nonce_c, XB_NONCE_BYTES);
	keyed_hash(key, "reply", nonce_w, XB_NONCE_BYTES, nonce_c, XB_NONCE_BYTES, reply + XB_NONCE_BYTES);
}

int xb_reply_check(const unsigned char *key, const unsigned char *nonce_w,
		   const unsigned char reply[XB_REPLY_BYTES], unsigned char *nonce_c)
{
	unsigned char expected[XB_REPLY_BYTES];
	xb_reply_make(key, nonce_w, reply, expected);
	if (sodium_memcmp(expected, reply, sizeof expected))
		return XB_E_CORRUPT;
	memcpy(nonce_c, reply, XB_NONCE_BYTES);
	return 0;
}

void xb_proof_make(const unsigned char *key, const unsigned char *nonce_w, const unsigned char *nonce_c,
		   unsigned char proof[XB_PROOF_BYTES])
{
	keyed_hash(key, "proof", nonce_w, XB_NONCE_BYTES, nonce_c, XB_NONCE_BYTES, proof);
}

int xb_proof_check(const unsigned char *key, const unsigned char *nonce_w, const unsigned char *nonce_c,
		   const unsigned char proof[XB_PROOF_BYTES])
{
	unsigned char expected[XB_PROOF_BYTES];
	xb_proof_make(key, nonce_w, nonce_c, expected);
	return sodium_memcmp(expected, proof, sizeof expected) ? XB_E_CORRUPT : 0;
}

void xb_session_derive(const unsigned char *key, const unsigned char *nonce_w, const unsigned char *nonce_c,
		       int controller, struct xb_session *session)
{
	unsigned char *from_worker = controller ? session->receive_key : session->send_key;
	unsigned char *from_controller = controller ? session->send_key : session->receive_key;
	keyed_hash(key, "frames from worker", nonce_w, XB_NONCE_BYTES, nonce_c, XB_NONCE_BYTES, from_worker);
	keyed_hash(key, "frames from controller", nonce_w, XB_NONCE_BYTES, nonce_c, XB_NONCE_BYTES,
		   from_controller);
	session->sent = session->received = 0;
}

static void put_length(unsigned char *out, uint32_t length)
{
	for (unsigned i = 0; i < XB_FRAME_HEADER_BYTES; i++)
		out[i] = (unsigned char)(length >> (8 * i));
}

static uint32_t get_length(const unsigned char *in)
{
	return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

/* The frame number is the nonce: never repeated under one key, and a frame out of its place does not open. */
static void frame_nonce(uint64_t number, unsigned char nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES])
{
	memset(nonce, 0, crypto_aead_chacha20poly1305_IETF_NPUBBYTES);
	for (unsigned i = 0; i < 8; i++)
		nonce[i] = (unsigned char)(number >> (8 * i));
}

unsigned char *xb_frame_seal(struct xb_session *session, const char *text, size_t bytes, size_t *frame_bytes)
{
	unsigned char nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES];
	unsigned char *frame;

	if (bytes > XB_FRAME_MAX_BYTES ||
	    !(frame = malloc(XB_FRAME_HEADER_BYTES + bytes + XB_FRAME_TAG_BYTES)))
		return NULL;
	put_length(frame, (uint32_t)(bytes + XB_FRAME_TAG_BYTES));
	frame_nonce(session->sent++, nonce);
	crypto_aead_chacha20poly1305_ietf_encrypt(frame + XB_FRAME_HEADER_BYTES, NULL,
						  (const unsigned char *)text, bytes, frame,
						  XB_FRAME_HEADER_BYTES, NULL, nonce, session->send_key);
	*frame_bytes = XB_FRAME_HEADER_BYTES + bytes + XB_FRAME_TAG_BYTES;
	return frame;
}

void xb_parser_free(struct xb_parser *parser)
{
	free(parser->bytes);
	memset(parser, 0, sizeof *parser);
}

/* Length of the frame at the start of the buffer, header included; 0 if not known yet, SIZE_MAX if it cannot
 * be one. */
static size_t announced(const struct xb_parser *parser)
{
	if (parser->used < XB_FRAME_HEADER_BYTES)
		return 0;
	uint32_t length = get_length(parser->bytes);
	if (length < XB_FRAME_TAG_BYTES || length > XB_FRAME_MAX_BYTES + XB_FRAME_TAG_BYTES)
		return SIZE_MAX;
	return XB_FRAME_HEADER_BYTES + length;
}

int xb_parser_feed(struct xb_parser *parser, const unsigned char *bytes, size_t count)
{
	size_t limit = 2 * (XB_FRAME_HEADER_BYTES + XB_FRAME_MAX_BYTES + XB_FRAME_TAG_BYTES);
	if (count > limit - parser->used)
		return XB_E_CORRUPT;
	if (parser->used + count > parser->capacity) {
		size_t capacity = parser->capacity ? parser->capacity : 4096;
		while (capacity < parser->used + count)
			capacity *= 2;
		unsigned char *grown = realloc(parser->bytes, capacity);
		if (!grown)
			return XB_E_RESOURCE;
		parser->bytes = grown;
		parser->capacity = capacity;
	}
	if (count)
		memcpy(parser->bytes + parser->used, bytes, count);
	parser->used += count;
	return announced(parser) == SIZE_MAX ? XB_E_CORRUPT : 0;
}

int xb_parser_next(struct xb_parser *parser, struct xb_session *session, json_t **message)
{
	unsigned char nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES];
	size_t frame_bytes = announced(parser);

	if (frame_bytes == SIZE_MAX)
		return XB_E_CORRUPT;
	if (frame_bytes == 0 || parser->used < frame_bytes)
		return 0;
	size_t sealed = frame_bytes - XB_FRAME_HEADER_BYTES, bytes = sealed - XB_FRAME_TAG_BYTES;
	unsigned char *text = malloc(bytes + 1);
	if (!text)
		return XB_E_RESOURCE;
	frame_nonce(session->received, nonce);
	if (crypto_aead_chacha20poly1305_ietf_decrypt(text, NULL, NULL, parser->bytes + XB_FRAME_HEADER_BYTES,
						      sealed, parser->bytes, XB_FRAME_HEADER_BYTES, nonce,
						      session->receive_key)) {
		free(text);
		return XB_E_CORRUPT;
	}
	session->received++;
	parser->used -= frame_bytes;
	memmove(parser->bytes, parser->bytes + frame_bytes, parser->used);
	*message = json_loadb((const char *)text, bytes, JSON_REJECT_DUPLICATES, NULL);
	free(text);
	if (!json_is_object(*message)) {
		json_decref(*message);
		*message = NULL;
		return XB_E_CORRUPT;
	}
	return 1;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The control channel's handshake and frames, and what they do with attacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/channel.h"
#include "stats/stats.h"

struct ends {
	unsigned char key[XB_KEY_BYTES], nonce_w[XB_NONCE_BYTES], nonce_c[XB_NONCE_BYTES];
	struct xb_session worker, controller;
};

static void make_ends(struct ends *e)
{
	assert_int_equal(xb_channel_library_init(NULL), 0);
	xb_random_bytes(e->key, sizeof e->key);
	xb_random_bytes(e->nonce_w, sizeof e->nonce_w);
	xb_random_bytes(e->nonce_c, sizeof e->nonce_c);
	xb_session_derive(e->key, e->nonce_w, e->nonce_c, 0, &e->worker);
	xb_session_derive(e->key, e->nonce_w, e->nonce_c, 1, &e->controller);
}

static void handshake_of_two_holders_of_the_key_succeeds(void **state)
{
	struct ends e;
	unsigned char hello[XB_HELLO_BYTES], reply[XB_REPLY_BYTES], proof[XB_PROOF_BYTES];
	unsigned char nonce_w[XB_NONCE_BYTES], nonce_c[XB_NONCE_BYTES];
	(void)state;
	make_ends(&e);
	xb_hello_make(e.key, e.nonce_w, hello);
	assert_int_equal(xb_hello_check(e.key, hello, nonce_w), 0);
	assert_memory_equal(nonce_w, e.nonce_w, sizeof nonce_w);
	xb_reply_make(e.key, nonce_w, e.nonce_c, reply);
	assert_int_equal(xb_reply_check(e.key, e.nonce_w, reply, nonce_c), 0);
	assert_memory_equal(nonce_c, e.nonce_c, sizeof nonce_c);
	xb_proof_make(e.key, e.nonce_w, nonce_c, proof);
	assert_int_equal(xb_proof_check(e.key, nonce_w, e.nonce_c, proof), 0);
}

static void every_flipped_bit_of_the_handshake_is_noticed(void **state)
{
	struct ends e;
	unsigned char hello[XB_HELLO_BYTES], reply[XB_REPLY_BYTES], proof[XB_PROOF_BYTES],
		nonce[XB_NONCE_BYTES];
	(void)state;
	make_ends(&e);
	xb_hello_make(e.key, e.nonce_w, hello);
	xb_reply_make(e.key, e.nonce_w, e.nonce_c, reply);
	xb_proof_make(e.key, e.nonce_w, e.nonce_c, proof);
	for (size_t bit = 0; bit < 8 * sizeof hello; bit++) {
		hello[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_equal(xb_hello_check(e.key, hello, nonce), XB_E_CORRUPT);
		hello[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	for (size_t bit = 0; bit < 8 * sizeof reply; bit++) {
		reply[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_equal(xb_reply_check(e.key, e.nonce_w, reply, nonce), XB_E_CORRUPT);
		reply[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	for (size_t bit = 0; bit < 8 * sizeof proof; bit++) {
		proof[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_equal(xb_proof_check(e.key, e.nonce_w, e.nonce_c, proof), XB_E_CORRUPT);
		proof[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

static void another_key_opens_nothing(void **state)
{
	struct ends e, other;
	unsigned char hello[XB_HELLO_BYTES], proof[XB_PROOF_BYTES], nonce[XB_NONCE_BYTES];
	(void)state;
	make_ends(&e);
	make_ends(&other);
	xb_hello_make(other.key, e.nonce_w, hello);
	assert_int_equal(xb_hello_check(e.key, hello, nonce), XB_E_CORRUPT);
	xb_proof_make(other.key, e.nonce_w, e.nonce_c, proof);
	assert_int_equal(xb_proof_check(e.key, e.nonce_w, e.nonce_c, proof), XB_E_CORRUPT);
}

static void a_replayed_proof_does_not_fit_a_fresh_nonce(void **state)
{
	struct ends e;
	unsigned char proof[XB_PROOF_BYTES], fresh[XB_NONCE_BYTES];
	(void)state;
	make_ends(&e);
	xb_proof_make(e.key, e.nonce_w, e.nonce_c, proof);
	xb_random_bytes(fresh, sizeof fresh);
	assert_int_equal(xb_proof_check(e.key, e.nonce_w, fresh, proof), XB_E_CORRUPT);
}

static unsigned char *seal(struct xb_session *s, const char *text, size_t *bytes)
{
	unsigned char *frame = xb_frame_seal(s, text, strlen(text), bytes);
	assert_non_null(frame);
	return frame;
}

static void frames_arrive_in_any_pieces(void **state)
{
	struct ends e;
	struct xb_parser parser = {0};
	size_t a_bytes, b_bytes;
	json_t *message;
	int messages = 0;
	(void)state;
	make_ends(&e);
	unsigned char *a = seal(&e.worker, "{\"n\":1}", &a_bytes),
		      *b = seal(&e.worker, "{\"n\":2}", &b_bytes);
	unsigned char all[512];
	memcpy(all, a, a_bytes);
	memcpy(all + a_bytes, b, b_bytes);
	for (size_t i = 0; i < a_bytes + b_bytes; i++) {
		assert_int_equal(xb_parser_feed(&parser, all + i, 1), 0);
		int status = xb_parser_next(&parser, &e.controller, &message);
		assert_true(status >= 0);
		if (status == 1) {
			assert_int_equal(json_integer_value(json_object_get(message, "n")), ++messages);
			json_decref(message);
		}
	}
	assert_int_equal(messages, 2);
	xb_parser_free(&parser);
	free(a);
	free(b);
}

static int offer(struct xb_session *session, const unsigned char *bytes, size_t count)
{
	struct xb_parser parser = {0};
	json_t *message = NULL;
	int status = xb_parser_feed(&parser, bytes, count);
	if (!status)
		status = xb_parser_next(&parser, session, &message);
	json_decref(message);
	xb_parser_free(&parser);
	return status;
}

static void altered_replayed_reordered_and_reflected_frames_are_refused(void **state)
{
	struct ends e;
	size_t a_bytes, b_bytes;
	(void)state;
	make_ends(&e);
	unsigned char *a = seal(&e.worker, "{\"n\":1}", &a_bytes),
		      *b = seal(&e.worker, "{\"n\":2}", &b_bytes);
	assert_int_equal(offer(&e.controller, b, b_bytes), XB_E_CORRUPT); /* before its turn */
	for (size_t bit = 8 * XB_FRAME_HEADER_BYTES; bit < 8 * a_bytes; bit++) {
		a[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_equal(offer(&e.controller, a, a_bytes), XB_E_CORRUPT);
		a[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	assert_int_equal(offer(&e.worker, a, a_bytes), XB_E_CORRUPT); /* sent back to its maker */
	assert_int_equal(offer(&e.controller, a, a_bytes - 1), 0); /* truncated: never complete */
	assert_int_equal(offer(&e.controller, a, a_bytes), 1);
	assert_int_equal(offer(&e.controller, a, a_bytes), XB_E_CORRUPT); /* once more */
	assert_int_equal(offer(&e.controller, b, b_bytes), 1);
	free(a);
	free(b);
}

static void a_shorter_or_longer_announced_length_is_refused(void **state)
{
	struct ends e;
	size_t bytes;
	(void)state;
	make_ends(&e);
	unsigned char *a = seal(&e.worker, "{\"n\":1}", &bytes);
	a[0]--;
	assert_int_equal(offer(&e.controller, a, bytes), XB_E_CORRUPT);
	a[3] = 0xff; /* 4 GB: refused at once, no memory is taken for it */
	assert_int_equal(offer(&e.controller, a, bytes), XB_E_CORRUPT);
	memset(a, 0, 4);
	assert_int_equal(offer(&e.controller, a, bytes), XB_E_CORRUPT);
	free(a);
}

static void sealed_text_that_is_no_object_is_refused(void **state)
{
	static const char *const texts[] = {"",		"[]",	    "1",    "{", "{\"a\":1,\"a\":2}",
					    "nonsense", "\"text\"", "{} {}"};
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct ends e;
		size_t bytes;
		make_ends(&e);
		unsigned char *a = seal(&e.worker, texts[i], &bytes);
		assert_int_equal(offer(&e.controller, a, bytes), XB_E_CORRUPT);
		free(a);
	}
}

static void a_message_that_is_too_long_is_not_sealed(void **state)
{
	struct ends e;
	size_t bytes;
	(void)state;
	make_ends(&e);
	char *text = malloc(XB_FRAME_MAX_BYTES + 2);
	memset(text, ' ', XB_FRAME_MAX_BYTES + 2);
	assert_null(xb_frame_seal(&e.worker, text, XB_FRAME_MAX_BYTES + 1, &bytes));
	free(text);
}

/* Seeded random and mutated bytes: the parser must never accept, crash, or take unbounded memory. */
static void hostile_bytes_never_get_through(void **state)
{
	struct ends e;
	struct xb_rng rng;
	size_t bytes;
	(void)state;
	make_ends(&e);
	xb_rng_seed(&rng, 20261130);
	unsigned char *good = seal(&e.worker, "{\"event\":\"hung\",\"phase\":\"timed\"}", &bytes);
	for (int run = 0; run < 100000; run++) {
		unsigned char mutated[256];
		struct xb_parser parser = {0};
		json_t *message = NULL;
		size_t length = run % 2 ? bytes : 1 + xb_rng_below(&rng, sizeof mutated - 1);
		for (size_t i = 0; i < length; i++)
			mutated[i] = run % 2 ? good[i] : (unsigned char)xb_rng_next(&rng);
		if (run % 2)
			mutated[xb_rng_below(&rng, length)] ^= (unsigned char)(1 + xb_rng_below(&rng, 255));
		size_t at = 0;
		int status = 0;
		while (at < length && status == 0) {
			size_t piece = 1 + xb_rng_below(&rng, length - at);
			status = xb_parser_feed(&parser, mutated + at, piece);
			if (status == 0)
				status = xb_parser_next(&parser, &e.controller, &message);
			at += piece;
		}
		assert_int_not_equal(status, 1);
		assert_true(parser.capacity <= 4096);
		xb_parser_free(&parser);
	}
	free(good);
}

static void keys_survive_their_hex_form_and_bad_hex_is_refused(void **state)
{
	unsigned char key[XB_KEY_BYTES], back[XB_KEY_BYTES];
	char hex[2 * XB_KEY_BYTES + 1];
	(void)state;
	assert_int_equal(xb_channel_library_init(NULL), 0);
	xb_random_bytes(key, sizeof key);
	xb_key_to_hex(key, hex);
	assert_int_equal(xb_key_from_hex(hex, back), 0);
	assert_memory_equal(key, back, sizeof key);
	hex[10] = 'x';
	assert_int_equal(xb_key_from_hex(hex, back), XB_E_USAGE);
	assert_int_equal(xb_key_from_hex("", back), XB_E_USAGE);
	assert_int_equal(xb_key_from_hex("00ff", back), XB_E_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handshake_of_two_holders_of_the_key_succeeds),
		cmocka_unit_test(every_flipped_bit_of_the_handshake_is_noticed),
		cmocka_unit_test(another_key_opens_nothing),
		cmocka_unit_test(a_replayed_proof_does_not_fit_a_fresh_nonce),
		cmocka_unit_test(frames_arrive_in_any_pieces),
		cmocka_unit_test(altered_replayed_reordered_and_reflected_frames_are_refused),
		cmocka_unit_test(a_shorter_or_longer_announced_length_is_refused),
		cmocka_unit_test(sealed_text_that_is_no_object_is_refused),
		cmocka_unit_test(a_message_that_is_too_long_is_not_sealed),
		cmocka_unit_test(hostile_bytes_never_get_through),
		cmocka_unit_test(keys_survive_their_hex_form_and_bad_hex_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

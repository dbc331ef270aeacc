/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

/* A whole number of key within [least, most]; `fallback` if the key is not given. */
static int number(const struct xb_setup *setup, const char *key, long least, long most, long fallback,
		  long *out, struct xb_error *error)
{
	const char *text = xb_setup_value(setup, key, NULL);
	char *end;

	*out = fallback;
	if (!text)
		return XB_OK;
	errno = 0;
	*out = strtol(text, &end, 0);
	if (errno || end == text || *end || *out < least || *out > most)
		return xb_fail(error, XB_E_USAGE,
			       "asked for %s=%s on verbs; it must be a number from %ld to %ld", key, text,
			       least, most);
	return XB_OK;
}

static int word(const struct xb_setup *setup, const char *key, const char *off, const char *on, bool *is_on,
		struct xb_error *error)
{
	const char *text = xb_setup_value(setup, key, off);

	*is_on = !strcmp(text, on);
	if (!*is_on && strcmp(text, off))
		return xb_fail(error, XB_E_USAGE, "asked for %s=%s on verbs; it knows %s=%s and %s=%s", key,
			       text, key, off, key, on);
	return XB_OK;
}

/* rdma_cm finds route, GID and service level: a key that it would not look at is refused, not ignored. */
int vb_settings_routed(const struct xb_setup *setup, struct xb_error *error)
{
	static const char *const keys[] = {"gid", "lid", "sl"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (xb_setup_value(setup, keys[i], NULL))
			return xb_fail(
				error, XB_E_USAGE,
				"asked for gid=, lid= or sl= on verbs with cm=1; rdma_cm finds the route; "
				"leave out one of them (cm=1 is always so on iWARP)");
	return XB_OK;
}

int vb_settings_parse(const struct xb_setup *setup, struct vb_settings *s, struct xb_error *error)
{
	long gid, mtu, inline_bytes, sl, tc, depth, timeout, rnr, lid, relaxed;
	bool ud;
	int rc;

	rc = word(setup, "qp", "rc", "ud", &ud, error);
	if (rc == XB_OK)
		rc = word(setup, "events", "0", "1", &s->events, error);
	if (rc == XB_OK)
		rc = word(setup, "flush", "ack", "read", &s->read_back, error);
	if (rc == XB_OK)
		rc = word(setup, "write", "poll", "imm", &s->immediate, error);
	if (rc == XB_OK)
		rc = word(setup, "cm", "0", "1", &s->cm, error);
	if (rc == XB_OK)
		rc = number(setup, "relaxed", 0, 1, setup->op == XB_OP_SEND || setup->op == XB_OP_READ,
			    &relaxed, error);
	if (rc == XB_OK)
		rc = number(setup, "rnr", 0, 7, 7, &rnr, error);
	if (rc == XB_OK)
		rc = number(setup, "lid", 0, 127, -1, &lid, error);
	if (rc == XB_OK)
		rc = number(setup, "gid", 0, 255, -1, &gid, error);
	if (rc == XB_OK)
		rc = number(setup, "mtu", 256, 4096, 0, &mtu, error);
	if (rc == XB_OK)
		rc = number(setup, "inline", 0, 65536, -1, &inline_bytes, error);
	if (rc == XB_OK)
		rc = number(setup, "sl", 0, 15, 0, &sl, error);
	if (rc == XB_OK)
		rc = number(setup, "tc", 0, 255, 0, &tc, error);
	if (rc == XB_OK)
		rc = number(setup, "depth", 16, 1 << 20, 0, &depth, error);
	if (rc == XB_OK)
		/* 16: 0.27 s a try, so that 7 repetitions forgive 2 s of a stalled peer */
		rc = number(setup, "timeout", 1, 31, 16, &timeout, error);
	if (rc != XB_OK)
		return rc;
	if (mtu & (mtu - 1))
		return xb_fail(error, XB_E_USAGE,
			       "asked for mtu=%ld on verbs; a path MTU is 256, 512, 1024, 2048 or 4096", mtu);
	s->kind = ud ? VB_UD : VB_RC;
	s->relaxed = relaxed;
	s->gid = (int)gid;
	s->mtu_bytes = (unsigned)mtu;
	s->inline_bytes = (int)inline_bytes;
	s->sl = (uint8_t)sl;
	s->tc = (uint8_t)tc;
	s->timeout = (uint8_t)timeout;
	s->rnr = (uint8_t)rnr;
	s->lid = (int)lid;
	s->depth = (uint32_t)depth;
	if (ud && setup->op != XB_OP_SEND)
		return xb_fail(error, XB_E_UNSUPPORTED,
			       "asked for --op %s on verbs with qp=ud; datagrams have no write and no read; "
			       "use qp=rc",
			       setup->op == XB_OP_READ	       ? "read"
			       : setup->op == XB_OP_WRITE_POLL ? "write-poll"
							       : "write");
	if (ud && s->cm)
		return xb_fail(
			error, XB_E_UNSUPPORTED,
			"asked for cm=1 on verbs with qp=ud; rdma_cm connects queue pairs, and datagrams "
			"are not connected; leave out one of them");
	if (s->cm && vb_settings_routed(setup, error) != XB_OK)
		return XB_E_USAGE;
	if (setup->op == XB_OP_WRITE_POLL && !s->immediate && (s->events || s->relaxed))
		return xb_fail(
			error, XB_E_USAGE,
			"asked for %s on verbs with --op write-poll; a target that polls its memory %s; "
			"leave it out, or use write=imm, where it waits for a completion",
			s->events ? "events=1" : "relaxed=1",
			s->events ? "cannot sleep" : "must see the last byte last");
	if (s->immediate && (setup->op == XB_OP_SEND || setup->op == XB_OP_READ))
		return xb_fail(
			error, XB_E_USAGE,
			"asked for write=imm on verbs with --op %s; it is a way to write; use --op write",
			setup->op == XB_OP_SEND ? "send" : "read");
	return XB_OK;
}

static int bad_path(const char *text, struct xb_error *error)
{
	return xb_fail(
		error, XB_E_USAGE,
		"asked for verbs:%s; a path is DEVICE or DEVICE/PORT (verbs:mlx5_0/1), or several joined by "
		"'+', which the endpoints take in turn",
		text);
}

int vb_path_parse(const char *text, uint32_t endpoint, struct vb_path *path, struct xb_error *error)
{
	uint32_t parts = 1, mine;
	const char *at = text;
	size_t length, name;

	memset(path, 0, sizeof(*path));
	if (!*text)
		return XB_OK;
	for (const char *p = text; *p; p++)
		parts += *p == '+';
	for (mine = endpoint % parts; mine; mine--)
		at = strchr(at, '+') + 1;
	length = strcspn(at, "+");
	name = strcspn(at, "+/:"); /* ':' as UCX writes it */
	if (!name || name >= sizeof(path->device))
		return bad_path(text, error);
	memcpy(path->device, at, name);
	if (name < length) {
		char *end;
		unsigned long port = strtoul(at + name + 1, &end, 10);

		if (at[name + 1] < '0' || at[name + 1] > '9' || end != at + length || port < 1 || port > 255)
			return bad_path(text, error);
		path->port = (unsigned)port;
	}
	return XB_OK;
}

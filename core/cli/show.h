/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_SHOW_H
#define XB_SHOW_H
/*
 * What a user typed, made fit to be quoted in an error: control and non-ASCII bytes become '?', so that a
 * hostile argument cannot talk to the terminal, and a long text is cut with "...".
 */
#include <stddef.h>
#include <string.h>

#define XB_SHOWN_BYTES 64u

static inline const char *xb_show_span(const char *text, size_t length, char shown[XB_SHOWN_BYTES])
{
	size_t n = length < XB_SHOWN_BYTES ? length : XB_SHOWN_BYTES - 4;

	for (size_t i = 0; i < n; i++)
		shown[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
	memcpy(shown + n, n < length ? "..." : "", n < length ? 4 : 1);
	return shown;
}

/* As an argument of printf; valid until the end of the enclosing block. */
#define XB_SHOW_SPAN(text, length) xb_show_span((text), (length), (char[XB_SHOWN_BYTES]){0})
#define XB_SHOW(text) XB_SHOW_SPAN((text), strlen(text))

#endif

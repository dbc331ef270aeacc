/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_REPORT_TEXT_H
#define XB_REPORT_TEXT_H
/* Numbers and sizes as text, and output that a terminal can be given: shared by the printed forms. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define XB_PAGE_COLUMNS 100u

/* "1", "64", "1K", "4M", "1G": K, M, G = 2^10 ... where it is a whole number of them. */
void xb_size_text(uint64_t size_bytes, char *text, size_t bytes);
/* "64 B", "8 KiB", "1 MiB": for sentences. */
void xb_size_words(uint64_t size_bytes, char *text, size_t bytes);
/* The flagged ones of n sizes, runs shortened: "1-64, 1K, 8K-4M"; "..." at the end when it does not fit. */
void xb_size_ranges(const size_t *sizes, const char *flags, size_t n, char *text, size_t bytes);

/* A time in us with four significant digits in at most five columns: "0.352", "52.13", "5213", "521ms",
 * "1.23s"; "-" for NAN. */
void xb_time_text(double us, char *text, size_t bytes);
/* A rate with four significant digits. */
void xb_rate_text(double value, char *text, size_t bytes);
/* A difference in us and its interval with common digits and unit: "+1.12" and "[1.05,1.20]", "+12.3" and
 * "[11.9,12.8]ms". reduced: one digit less. low is NAN when there is no interval: then the unit follows the
 * value. */
void xb_difference_text(double us, double low_us, double high_us, int reduced, char *value, char *interval,
			size_t bytes_each);
/* "+3.4%", "+27%", "x12.7" (times) from 1000 % on. */
void xb_percent_text(double percent, int reduced, char *text, size_t bytes);
/* "1.7 us", "12 us": two or three significant digits, for sentences. signs: 1 to write "+" too. */
void xb_us_words(double us, char *text, size_t bytes);

/* Appends to the text; what does not fit is cut off. */
void xb_append(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Output of a document made elsewhere: control characters never reach the terminal. */
struct xb_out {
	FILE *file;
	int colour;
	size_t column; /* where the line stands, in characters */
	size_t blanks; /* of them, blanks not yet written: none are at the end of a line */
};
enum xb_style { XB_PLAIN, XB_BOLD, XB_DIM, XB_RED, XB_YELLOW };

size_t xb_columns(const char *text); /* characters of UTF-8 text */
/* text, padded to width (0: as it is; negative: padded on the left) and cut to it. */
void xb_put(struct xb_out *out, enum xb_style style, int width, const char *text);
void xb_newline(struct xb_out *out);
/* Text broken at blanks before XB_PAGE_COLUMNS; further lines are indented. Ends the line. */
void xb_put_wrapped(struct xb_out *out, enum xb_style style, size_t indent, const char *text);

/* Members of a checked document: "" or NAN or 0 when missing or null. */
const char *xb_text_of(json_t *object, const char *key);
double xb_number_of(json_t *object, const char *key);
uint64_t xb_count_of(json_t *object, const char *key);
/* The transport of that label in a checked document, borrowed; NULL if there is none. */
json_t *xb_transport_of(json_t *document, const char *label);

/* Now, as documents have it: "2026-05-01T12:00:00Z". */
void xb_now_text(char text[32]);
/* Is the time of a ping-pong with this op ("write") that of the whole operation, not half a round trip? */
int xb_whole_operation(const char *op);

#endif

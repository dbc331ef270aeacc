/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include "text.h"

static unsigned binary_unit(uint64_t size, uint64_t *count)
{
	unsigned unit = 0;
	for (*count = size; unit < 3 && *count >= 1024u && *count % 1024u == 0; unit++)
		*count /= 1024u;
	return unit;
}

void xb_size_text(uint64_t size_bytes, char *text, size_t bytes)
{
	uint64_t count;
	unsigned unit = binary_unit(size_bytes, &count);
	snprintf(text, bytes, "%llu%.*s", (unsigned long long)count, unit > 0, &" KMG"[unit]);
}

void xb_size_words(uint64_t size_bytes, char *text, size_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
	uint64_t count;
	unsigned unit = binary_unit(size_bytes, &count);
	snprintf(text, bytes, "%llu %s", (unsigned long long)count, units[unit]);
}

void xb_size_ranges(const size_t *sizes, const char *flags, size_t n, char *text, size_t bytes)
{
	size_t used = 0;
	text[0] = '\0';
	for (size_t first = 0, next; first < n; first = next) {
		char from[24], to[24], item[64];
		next = first + 1u;
		if (!flags[first])
			continue;
		while (next < n && flags[next])
			next++;
		xb_size_text(sizes[first], from, sizeof(from));
		xb_size_text(sizes[next - 1u], to, sizeof(to));
		int length = next - first > 1u ? snprintf(item, sizeof(item), "%s%s%s%s", used ? ", " : "",
							  from, next - first > 2u ? "-" : ", ", to)
					       : snprintf(item, sizeof(item), "%s%s", used ? ", " : "", from);
		if (used + (size_t)length + sizeof(", ...") > bytes) {
			snprintf(text + used, bytes - used, ", ...");
			return;
		}
		memcpy(text + used, item, (size_t)length + 1u);
		used += (size_t)length;
	}
}

/* Decimals that give `digits` significant ones; looks at the rounded value, so that 9.9996 becomes 10.00. */
static int decimals_for(double value, int digits)
{
	double magnitude = fabs(value);
	int decimals = digits - 1;
	for (double limit = 10.0; decimals > 0; limit *= 10.0, decimals--)
		if (magnitude < limit - 0.5 * pow(10.0, -decimals))
			break;
	return decimals;
}

void xb_time_text(double us, char *text, size_t bytes)
{
	if (!isfinite(us))
		snprintf(text, bytes, "-");
	else if (us < 99999.5)
		snprintf(text, bytes, "%.*f", decimals_for(us, 4), us);
	else if (us < 999500.0)
		snprintf(text, bytes, "%.0fms", us / 1e3);
	else
		snprintf(text, bytes, "%.*fs", decimals_for(us / 1e6, 3), us / 1e6);
}

void xb_rate_text(double value, char *text, size_t bytes)
{
	if (!isfinite(value))
		snprintf(text, bytes, "-");
	else
		snprintf(text, bytes, "%.*f", decimals_for(value, 4), value);
}

/* A value that rounds to nothing has no sign: "-0.00" would say that something is less. */
static double without_negative_zero(double value, int decimals)
{
	return fabs(value) < 0.5 * pow(10.0, -decimals) ? 0.0 : value;
}

void xb_difference_text(double us, double low_us, double high_us, int reduced, char *value, char *interval,
			size_t bytes_each)
{
	int have = isfinite(low_us) && isfinite(high_us);
	double most = fabs(us), scale = 1.0;
	const char *unit = "";
	if (have)
		most = fmax(most, fmax(fabs(low_us), fabs(high_us)));
	if (most >= 999500.0) {
		scale = 1e6;
		unit = "s";
	} else if (most >= 9999.5) {
		scale = 1e3;
		unit = "ms";
	}
	most /= scale;
	int decimals = decimals_for(most, 3);
	if (most < 1.0 && (most < 0.1 || (have && (high_us - low_us) / 2.0 < 0.02 * scale)))
		decimals = 3;
	if (reduced && decimals > 0)
		decimals--;
	us = without_negative_zero(us / scale, decimals);
	snprintf(value, bytes_each, "%+.*f%s", decimals, us, have ? "" : unit);
	interval[0] = '\0';
	if (have)
		snprintf(interval, bytes_each, "[%.*f,%.*f]%s", decimals,
			 without_negative_zero(low_us / scale, decimals), decimals,
			 without_negative_zero(high_us / scale, decimals), unit);
}

void xb_percent_text(double percent, int reduced, char *text, size_t bytes)
{
	if (!isfinite(percent))
		text[0] = '\0';
	else if (fabs(percent) < 9.95 && !reduced)
		snprintf(text, bytes, "%+.1f%%", without_negative_zero(percent, 1));
	else if (percent < 999.5)
		snprintf(text, bytes, "%+.0f%%", without_negative_zero(percent, 0));
	else
		snprintf(text, bytes, "x%.*f", percent < 9895.0 ? 1 : 0, 1.0 + percent / 100.0);
}

void xb_us_words(double us, char *text, size_t bytes)
{
	double magnitude = fabs(us);
	int decimals = magnitude < 0.0995 ? 3 : magnitude < 0.995 ? 2 : magnitude < 9.95 ? 1 : 0;
	if (magnitude < 9999.5)
		snprintf(text, bytes, "%.*f", decimals, without_negative_zero(us, decimals));
	else
		snprintf(text, bytes, "%.0f", us);
}

void xb_append(char *text, size_t bytes, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + used, bytes - used, format, arguments);
	va_end(arguments);
}

size_t xb_columns(const char *text)
{
	size_t n = 0;
	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0u) != 0x80u;
	return n;
}

/* One character, made harmless: C0, DEL and the C1 range (U+0080 ... U+009F, bytes c2 80 ... c2 9f) become
 * '?'. Returns the bytes taken. */
static size_t put_character(FILE *file, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t n = 1;
	while ((p[n] & 0xc0u) == 0x80u)
		n++;
	if (p[0] < 0x20u || p[0] == 0x7fu || (p[0] == 0xc2u && p[1] < 0xa0u))
		fputc('?', file);
	else
		fwrite(p, 1, n, file);
	return n;
}

static void put_characters(struct xb_out *out, enum xb_style style, const char *text, size_t bytes)
{
	static const char *const start[] = {
		[XB_BOLD] = "\033[1m", [XB_DIM] = "\033[2m", [XB_RED] = "\033[31m", [XB_YELLOW] = "\033[33m"};
	int styled = out->colour && style != XB_PLAIN && bytes > 0;
	if (bytes > 0 && out->blanks > 0) {
		fprintf(out->file, "%*s", (int)out->blanks, "");
		out->blanks = 0;
	}
	if (styled)
		fputs(start[style], out->file);
	for (size_t at = 0; at < bytes && text[at] != '\0'; out->column++)
		at += put_character(out->file, text + at);
	if (styled)
		fputs("\033[0m", out->file);
}

static void blanks(struct xb_out *out, size_t n)
{
	out->column += n;
	out->blanks += n;
}

/* Bytes of the first n characters. */
static size_t bytes_of(const char *text, size_t n)
{
	size_t at = 0;
	for (; text[at] != '\0'; at++)
		if (((unsigned char)text[at] & 0xc0u) != 0x80u && n-- == 0)
			break;
	return at;
}

void xb_put(struct xb_out *out, enum xb_style style, int width, const char *text)
{
	size_t columns = xb_columns(text), room = (size_t)(width < 0 ? -width : width);
	if (width == 0)
		room = columns;
	if (width < 0 && columns < room)
		blanks(out, room - columns);
	put_characters(out, style, text, bytes_of(text, room));
	if (width > 0 && columns < room)
		blanks(out, room - columns);
}

void xb_newline(struct xb_out *out)
{
	fputc('\n', out->file);
	out->column = out->blanks = 0;
}

void xb_put_wrapped(struct xb_out *out, enum xb_style style, size_t indent, const char *text)
{
	int first = 1;
	while (*text != '\0') {
		size_t gap = strspn(text, " \t\r\n"), word = strcspn(text + gap, " \t\r\n");
		text += gap;
		if (word == 0)
			break;
		size_t columns = 0;
		for (size_t i = 0; i < word; i++)
			columns += ((unsigned char)text[i] & 0xc0u) != 0x80u;
		if (!first && out->column + 1u + columns > XB_PAGE_COLUMNS) {
			xb_newline(out);
			blanks(out, indent);
		} else if (!first) {
			blanks(out, 1);
		}
		/* a word longer than a line is cut into pieces: hostile or not, lines keep their length */
		while (out->column + columns > XB_PAGE_COLUMNS) {
			size_t room = XB_PAGE_COLUMNS - out->column, piece = bytes_of(text, room);
			put_characters(out, style, text, piece);
			text += piece;
			word -= piece;
			columns -= room;
			xb_newline(out);
			blanks(out, indent);
		}
		put_characters(out, style, text, word);
		text += word;
		first = 0;
	}
	xb_newline(out);
}

const char *xb_text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text != NULL ? text : "";
}

double xb_number_of(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : NAN;
}

uint64_t xb_count_of(json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));
	return value > 0 ? (uint64_t)value : 0;
}

json_t *xb_transport_of(json_t *document, const char *label)
{
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(document, "transports"), i, entry)
	{
		if (!strcmp(xb_text_of(entry, "label"), label))
			return entry;
	}
	return NULL;
}

void xb_now_text(char text[32])
{
	time_t now = time(NULL);
	struct tm utc;
	gmtime_r(&now, &utc);
	strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

int xb_whole_operation(const char *op)
{
	return op != NULL && (strcmp(op, "write") == 0 || strcmp(op, "read") == 0);
}

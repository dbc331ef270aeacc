/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks a document before anything is printed from it: types, ranges and array lengths that the printers
 * rely on. The full description for people and other tools is docs/schema/result-1.json.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "internal.h"
#include "swaps.h"
#include "view.h"

#define MOST_TEXT 8192u
#define MOST_DEPTH 32 /* levels of lists and objects */
#define MOST_NUMBER 1e15 /* us: 31 years. Bounds the width of printed numbers. */

enum kind { TEXT, NUMBER, POSITIVE, COUNT, TRUTH, WORD, OBJECT, LIST, NUMBERS, ANYTHING };
enum { OPTIONAL = 1, OR_NULL = 2 };

struct field {
	const char *key;
	enum kind kind;
	int flags;
	const struct field *fields; /* of an OBJECT or of the items of a LIST; ends with key NULL */
	const char *words; /* of a WORD: "a|b" */
	size_t most; /* items of a LIST */
};

struct check {
	const char *name;
	struct xb_error *error;
	char path[192];
};

static const struct field interval_fields[] = {{"median", POSITIVE, OR_NULL, NULL, NULL, 0},
					       {"ci_low", POSITIVE, OR_NULL, NULL, NULL, 0},
					       {"ci_high", POSITIVE, OR_NULL, NULL, NULL, 0},
					       {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field latency_fields[] = {
	{"median", POSITIVE, 0, NULL, NULL, 0},	       {"ci_low", POSITIVE, OR_NULL, NULL, NULL, 0},
	{"ci_high", POSITIVE, OR_NULL, NULL, NULL, 0}, {"min", POSITIVE, OR_NULL, NULL, NULL, 0},
	{"mean", POSITIVE, OR_NULL, NULL, NULL, 0},    {"p50", POSITIVE, OPTIONAL | OR_NULL, NULL, NULL, 0},
	{"p90", POSITIVE, OR_NULL, NULL, NULL, 0},     {"p99", POSITIVE, OR_NULL, NULL, NULL, 0},
	{"p999", POSITIVE, OR_NULL, NULL, NULL, 0},    {"max", POSITIVE, OR_NULL, NULL, NULL, 0},
	{"stddev", POSITIVE, OR_NULL, NULL, NULL, 0},  {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field overhead_fields[] = {{"median", NUMBER, 0, NULL, NULL, 0},
					       {"ci_low", NUMBER, OR_NULL, NULL, NULL, 0},
					       {"ci_high", NUMBER, OR_NULL, NULL, NULL, 0},
					       {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field spread_fields[] = {{"within_launch", POSITIVE, OR_NULL, NULL, NULL, 0},
					     {"between_launches", POSITIVE, OR_NULL, NULL, NULL, 0},
					     {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field delay_fields[] = {{"median", NUMBER, 0, NULL, NULL, 0},
					    {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field fault_fields[] = {{"imposed_delay_us", OBJECT, 0, delay_fields, NULL, 0},
					    {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field switches_fields[] = {{"voluntary", COUNT, 0, NULL, NULL, 0},
					       {"involuntary", COUNT, 0, NULL, NULL, 0},
					       {"disturbed_blocks", COUNT, 0, NULL, NULL, 0},
					       {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field host_fields[] = {{"name", TEXT, 0, NULL, NULL, 0},
					   {"boot_id", TEXT, OPTIONAL | OR_NULL, NULL, NULL, 0},
					   {"kernel", TEXT, OPTIONAL | OR_NULL, NULL, NULL, 0},
					   {"cpu", TEXT, OPTIONAL | OR_NULL, NULL, NULL, 0},
					   {"cpus_used", NUMBERS, OPTIONAL | OR_NULL, NULL, NULL, 4096},
					   {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field timer_fields[] = {{"source", TEXT, OR_NULL, NULL, NULL, 0},
					    {"cost_ns", POSITIVE, OR_NULL, NULL, NULL, 0},
					    {"resolution_ns", POSITIVE, OR_NULL, NULL, NULL, 0},
					    {"drift_ppm", NUMBER, OR_NULL, NULL, NULL, 0},
					    {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field evidence_fields[] = {{"host", TEXT, OR_NULL, NULL, NULL, 0},
					       {"device", TEXT, OR_NULL, NULL, NULL, 0},
					       {"kind", TEXT, OR_NULL, NULL, NULL, 0},
					       {"own", TRUTH, OPTIONAL | OR_NULL, NULL, NULL, 0},
					       {"tx_bytes", COUNT, 0, NULL, NULL, 0},
					       {"rx_bytes", COUNT, 0, NULL, NULL, 0},
					       {"tx_packets", COUNT, OPTIONAL, NULL, NULL, 0},
					       {"rx_packets", COUNT, OPTIONAL, NULL, NULL, 0},
					       {"link_bits_per_s", COUNT, OPTIONAL | OR_NULL, NULL, NULL, 0},
					       {"share_of_payload", POSITIVE, OR_NULL, NULL, NULL, 0},
					       {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field start_fields[] = {{"min", POSITIVE, 0, NULL, NULL, 0},
					    {"median", POSITIVE, 0, NULL, NULL, 0},
					    {"max", POSITIVE, 0, NULL, NULL, 0},
					    {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field carried_fields[] = {{"text", TEXT, 0, NULL, NULL, 0},
					      {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field end_fields[] = {{"host", TEXT, 0, NULL, NULL, 0},
					  {"device", TEXT, 0, NULL, NULL, 0},
					  {"resolved_path", TEXT, 0, NULL, NULL, 0},
					  {"counted", TRUTH, 0, NULL, NULL, 0},
					  {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field transport_fields[] = {
	{"label", TEXT, 0, NULL, NULL, 0},
	{"name", TEXT, 0, NULL, NULL, 0},
	{"requested_path", TEXT, OR_NULL, NULL, NULL, 0},
	{"resolved_path", TEXT, OR_NULL, NULL, NULL, 0},
	{"library", TEXT, OR_NULL, NULL, NULL, 0},
	{"version", TEXT, OR_NULL, NULL, NULL, 0},
	{"layer", WORD, 0, NULL, "truth|fabric|middleware|mpi", 0},
	{"status", WORD, 0, NULL, "ok|unavailable|failed", 0},
	{"error", TEXT, OR_NULL, NULL, NULL, 0},
	{"launcher", TEXT, OPTIONAL | OR_NULL, NULL, NULL, 0},
	{"start_ms", OBJECT, OPTIONAL | OR_NULL, start_fields, NULL, 0},
	{"ends", LIST, OPTIONAL, end_fields, NULL, 4096},
	{"evidence", LIST, 0, evidence_fields, NULL, 4096},
	{"carried", OBJECT, OPTIONAL | OR_NULL, carried_fields, NULL, 0},
	{NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field result_fields[] = {
	{"label", TEXT, 0, NULL, NULL, 0},
	{"bench", WORD, 0, NULL, "pingpong|bw|bibw|swap", 0},
	{"size", COUNT, 0, NULL, NULL, 0},
	{"launches", COUNT, 0, NULL, NULL, 0},
	{"rounds", COUNT, 0, NULL, NULL, 0},
	{"iterations", COUNT, 0, NULL, NULL, 0},
	{"stopped_by", TEXT, OR_NULL, NULL, NULL, 0},
	{"verified", TRUTH, OR_NULL, NULL, NULL, 0},
	{"latency_us", OBJECT, 0, latency_fields, NULL, 0},
	{"bandwidth_MBps", OBJECT, OR_NULL, interval_fields, NULL, 0},
	{"message_rate_Mps", POSITIVE, OR_NULL, NULL, NULL, 0},
	{"spread_us", OBJECT, OPTIONAL | OR_NULL, spread_fields, NULL, 0},
	{"fault", OBJECT, OPTIONAL | OR_NULL, fault_fields, NULL, 0},
	{"context_switches", OBJECT, OPTIONAL | OR_NULL, switches_fields, NULL, 0},
	{"launch_medians", NUMBERS, 0, NULL, NULL, 100000},
	{NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field pair_fields[] = {{"label", TEXT, 0, NULL, NULL, 0},
					   {"bench", WORD, 0, NULL, "pingpong|bw|bibw|swap", 0},
					   {"size", COUNT, 0, NULL, NULL, 0},
					   {"pair", NUMBERS, 0, NULL, NULL, 2},
					   {"launches", COUNT, 0, NULL, NULL, 0},
					   {"latency_us", OBJECT, 0, interval_fields, NULL, 0},
					   {"bandwidth_MBps", OBJECT, OR_NULL, interval_fields, NULL, 0},
					   {"launch_medians", NUMBERS, 0, NULL, NULL, 100000},
					   {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field comparison_fields[] = {{"lower", TEXT, 0, NULL, NULL, 0},
						 {"upper", TEXT, 0, NULL, NULL, 0},
						 {"bench", WORD, 0, NULL, "pingpong|bw|bibw|swap", 0},
						 {"size", COUNT, 0, NULL, NULL, 0},
						 {"launches", COUNT, 0, NULL, NULL, 0},
						 {"overhead_us", OBJECT, 0, overhead_fields, NULL, 0},
						 {"overhead_pct", NUMBER, OR_NULL, NULL, NULL, 0},
						 {"distinguishable", TRUTH, 0, NULL, NULL, 0},
						 {"baseline", TRUTH, OPTIONAL, NULL, NULL, 0},
						 {"adjacent", TRUTH, OPTIONAL, NULL, NULL, 0},
						 {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field seconds_fields[] = {{"min", POSITIVE, OR_NULL, NULL, NULL, 0},
					      {"median", POSITIVE, OR_NULL, NULL, NULL, 0},
					      {"ci_low", POSITIVE, OR_NULL, NULL, NULL, 0},
					      {"ci_high", POSITIVE, OR_NULL, NULL, NULL, 0},
					      {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field rate_fields[] = {{"max", POSITIVE, OR_NULL, NULL, NULL, 0},
					   {"median", POSITIVE, OR_NULL, NULL, NULL, 0},
					   {"ci_low", POSITIVE, OR_NULL, NULL, NULL, 0},
					   {"ci_high", POSITIVE, OR_NULL, NULL, NULL, 0},
					   {NULL, TEXT, 0, NULL, NULL, 0}};
#define SWAP_ORDERS "ordered|unordered|delayed"
#define SWAP_MODES "cache inv.|1 iter.|10 iter."
static const struct field swap_fields[] = {{"label", TEXT, 0, NULL, NULL, 0},
					   {"protocol", COUNT, 0, NULL, NULL, 0},
					   {"order", WORD, 0, NULL, SWAP_ORDERS, 0},
					   {"mode", WORD, 0, NULL, SWAP_MODES, 0},
					   {"overlap", TRUTH, 0, NULL, NULL, 0},
					   {"size", COUNT, 0, NULL, NULL, 0},
					   {"messages", COUNT, 0, NULL, NULL, 0},
					   {"total", COUNT, 0, NULL, NULL, 0},
					   {"launches", COUNT, 0, NULL, NULL, 0},
					   {"seconds", OBJECT, 0, seconds_fields, NULL, 0},
					   {"seconds_per_message", OBJECT, 0, seconds_fields, NULL, 0},
					   {"MBps", OBJECT, 0, rate_fields, NULL, 0},
					   {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field swap_latency_fields[] = {{"from_minima", NUMBER, OR_NULL, NULL, NULL, 0},
						   {"median", NUMBER, OR_NULL, NULL, NULL, 0},
						   {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field estimate_fields[] = {{"label", TEXT, 0, NULL, NULL, 0},
					       {"protocol", COUNT, 0, NULL, NULL, 0},
					       {"mode", WORD, 0, NULL, SWAP_MODES, 0},
					       {"overlap", TRUTH, 0, NULL, NULL, 0},
					       {"peak_MBps", POSITIVE, 0, NULL, NULL, 0},
					       {"latency_us", OBJECT, 0, swap_latency_fields, NULL, 0},
					       {"model_error_pct", POSITIVE, OR_NULL, NULL, NULL, 0},
					       {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field swap_comparison_fields[] = {
	{"lower", TEXT, 0, NULL, NULL, 0},
	{"upper", TEXT, 0, NULL, NULL, 0},
	{"protocol", COUNT, 0, NULL, NULL, 0},
	{"mode", WORD, 0, NULL, SWAP_MODES, 0},
	{"overlap", TRUTH, 0, NULL, NULL, 0},
	{"size", COUNT, 0, NULL, NULL, 0},
	{"overhead_us_per_message", OBJECT, 0, overhead_fields, NULL, 0},
	{"distinguishable", TRUTH, 0, NULL, NULL, 0},
	{NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field reference_point_fields[] = {{"size", COUNT, OR_NULL, NULL, NULL, 0},
						      {"latency_us", POSITIVE, OR_NULL, NULL, NULL, 0},
						      {"MBps", POSITIVE, OR_NULL, NULL, NULL, 0},
						      {"beyond", TRUTH, 0, NULL, NULL, 0},
						      {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field reference_fields[] = {{"name", TEXT, 0, NULL, NULL, 0},
						{"bench", WORD, 0, NULL, "pingpong|bw|bibw|swap|other", 0},
						{"title", TEXT, 0, NULL, NULL, 0},
						{"provenance", TEXT, 0, NULL, NULL, 0},
						{"remark", TEXT, OR_NULL, NULL, NULL, 0},
						{"points", LIST, 0, reference_point_fields, NULL, 4096},
						{NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field finding_fields[] = {{"severity", WORD, 0, NULL, "info|warning|invalid", 0},
					      {"code", TEXT, 0, NULL, NULL, 0},
					      {"label", TEXT, OR_NULL, NULL, NULL, 0},
					      {"bench", TEXT, OR_NULL, NULL, NULL, 0},
					      {"size", COUNT, OR_NULL, NULL, NULL, 0},
					      {"text", TEXT, 0, NULL, NULL, 0},
					      {"ends", ANYTHING, OPTIONAL, NULL, NULL, 0},
					      {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field judged_fields[] = {{"verdict", TEXT, 0, NULL, NULL, 0},
					     {"value", NUMBER, OR_NULL, NULL, NULL, 0},
					     {"ci_low", NUMBER, OR_NULL, NULL, NULL, 0},
					     {"ci_high", NUMBER, OR_NULL, NULL, NULL, 0},
					     {"bound", NUMBER, OR_NULL, NULL, NULL, 0},
					     {"reason", TEXT, 0, NULL, NULL, 0},
					     {NULL, TEXT, 0, NULL, NULL, 0}};
#define VERDICTS "pass|fail|inconclusive|unmeasured"
static const struct field ruling_fields[] = {{"limit", TEXT, 0, NULL, NULL, 0},
					     {"verdict", WORD, 0, NULL, VERDICTS, 0},
					     {"unit", TEXT, 0, NULL, NULL, 0},
					     {"size", COUNT, OR_NULL, NULL, NULL, 0},
					     {"pair", NUMBERS, 0, NULL, NULL, 2},
					     {"first", OBJECT, 0, judged_fields, NULL, 0},
					     {"fresh", OBJECT, OR_NULL, judged_fields, NULL, 0},
					     {"more_s", POSITIVE, OR_NULL, NULL, NULL, 0},
					     {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field node_fields[] = {{"host", TEXT, 0, NULL, NULL, 0},
					   {"verdict", WORD, 0, NULL, VERDICTS, 0},
					   {"reason", TEXT, 0, NULL, NULL, 0},
					   {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field left_out_fields[] = {
	{"host", TEXT, 0, NULL, NULL, 0}, {"reason", TEXT, 0, NULL, NULL, 0}, {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field acceptance_fields[] = {{"limits", TEXT, OR_NULL, NULL, NULL, 0},
						 {"verdict", WORD, 0, NULL, VERDICTS, 0},
						 {"left_out", LIST, 0, left_out_fields, NULL, 1024},
						 {"nodes", LIST, 0, node_fields, NULL, 1024},
						 {"rulings", LIST, 0, ruling_fields, NULL, 10000000},
						 {NULL, TEXT, 0, NULL, NULL, 0}};
static const struct field document_fields[] = {
	{"xportbench", TEXT, 0, NULL, NULL, 0},
	{"started", TEXT, OR_NULL, NULL, NULL, 0},
	{"seed", ANYTHING, 0, NULL, NULL, 0},
	{"launches", COUNT, OPTIONAL, NULL, NULL, 0},
	{"stopped_by", TEXT, OPTIONAL | OR_NULL, NULL, NULL, 0},
	{"partial", TRUTH, OPTIONAL, NULL, NULL, 0},
	{"baseline", TEXT, OPTIONAL | OR_NULL, NULL, NULL, 0},
	{"config", OBJECT, 0, NULL, NULL, 0},
	{"hosts", LIST, 0, host_fields, NULL, 4096},
	{"timer", OBJECT, 0, timer_fields, NULL, 0},
	{"transports", LIST, 0, transport_fields, NULL, XB_VIEW_TRANSPORTS},
	{"results", LIST, 0, result_fields, NULL, 65536},
	{"pairs", LIST, OPTIONAL, pair_fields, NULL, 16777216},
	{"comparisons", LIST, 0, comparison_fields, NULL, 262144},
	{"findings", LIST, 0, finding_fields, NULL, 100000},
	{"acceptance", OBJECT, OPTIONAL | OR_NULL, acceptance_fields, NULL, 0},
	{"swaps", LIST, OPTIONAL, swap_fields, NULL, 65536},
	{"swap_estimates", LIST, OPTIONAL, estimate_fields, NULL, 65536},
	{"swap_comparisons", LIST, OPTIONAL, swap_comparison_fields, NULL, 262144},
	{"references", LIST, OPTIONAL, reference_fields, NULL, 64},
	{NULL, TEXT, 0, NULL, NULL, 0}};

static const char *type_name(json_t *value)
{
	static const char *const names[] = {[JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",
					    [JSON_STRING] = "text",	 [JSON_INTEGER] = "a whole number",
					    [JSON_REAL] = "a number",	 [JSON_TRUE] = "true",
					    [JSON_FALSE] = "false",	 [JSON_NULL] = "null"};
	return value != NULL ? names[json_typeof(value)] : "nothing";
}

static int refuse(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int refuse(struct check *c, const char *format, ...)
{
	char what[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	return xb_fail(c->error, XB_E_USAGE, "%.300s is not a result of xportbench: %s: %s", c->name,
		       c->path[0] ? c->path : "the document", what);
}

/* Appends ".key" or "[index]" to the path; returns the length to go back to. */
static size_t enter(struct check *c, const char *key, size_t index)
{
	size_t n = strlen(c->path);
	if (key != NULL)
		snprintf(c->path + n, sizeof(c->path) - n, "%s%s", n ? "." : "", key);
	else
		snprintf(c->path + n, sizeof(c->path) - n, "[%zu]", index);
	return n;
}

static int is_word(const char *text, const char *words)
{
	size_t n = strlen(text);
	for (const char *p = words; p != NULL; p = strchr(p, '|'), p = p ? p + 1 : NULL)
		if (strncmp(p, text, n) == 0 && (p[n] == '|' || p[n] == '\0') && n > 0)
			return 1;
	return 0;
}

static int check_fields(struct check *c, json_t *object, const struct field *fields);

static int check_number(struct check *c, json_t *value, enum kind kind)
{
	if (!json_is_number(value))
		return refuse(c, "expected a number, found %s", type_name(value));
	double number = json_number_value(value);
	if (!(fabs(number) <= (kind == COUNT ? 9.3e18 : MOST_NUMBER)) || (kind != NUMBER && number < 0.0))
		return refuse(c, "%g is not a possible value", number);
	if (kind == COUNT && !json_is_integer(value))
		return refuse(c, "expected a whole number, found %s", type_name(value));
	return 0;
}

static int check_list(struct check *c, json_t *list, const struct field *field)
{
	if (!json_is_array(list))
		return refuse(c, "expected a list, found %s", type_name(list));
	if (json_array_size(list) > field->most)
		return refuse(c, "%zu entries, more than the %zu allowed", json_array_size(list),
			      field->most);
	size_t i;
	json_t *item;
	json_array_foreach(list, i, item)
	{
		size_t back = enter(c, NULL, i);
		int status = field->kind == NUMBERS ? check_number(c, item, NUMBER)
						    : check_fields(c, item, field->fields);
		if (status < 0)
			return status;
		c->path[back] = '\0';
	}
	return 0;
}

static int check_value(struct check *c, json_t *value, const struct field *field)
{
	switch (field->kind) {
	case TEXT:
	case WORD:
		if (!json_is_string(value))
			return refuse(c, "expected text, found %s", type_name(value));
		if (json_string_length(value) > MOST_TEXT)
			return refuse(c, "text of %zu bytes, more than the %u allowed",
				      json_string_length(value), MOST_TEXT);
		if (field->kind == WORD && !is_word(json_string_value(value), field->words))
			return refuse(c, "expected one of %s", field->words);
		return 0;
	case NUMBER:
	case POSITIVE:
	case COUNT:
		return check_number(c, value, field->kind);
	case TRUTH:
		return json_is_boolean(value)
			       ? 0
			       : refuse(c, "expected true or false, found %s", type_name(value));
	case OBJECT:
		return check_fields(c, value, field->fields);
	case LIST:
	case NUMBERS:
		return check_list(c, value, field);
	case ANYTHING:
		break;
	}
	return 0;
}

static int check_fields(struct check *c, json_t *object, const struct field *fields)
{
	if (!json_is_object(object))
		return refuse(c, "expected an object, found %s", type_name(object));
	for (const struct field *field = fields; field != NULL && field->key != NULL; field++) {
		json_t *value = json_object_get(object, field->key);
		size_t back = enter(c, field->key, 0);
		if (value == NULL && !(field->flags & OPTIONAL))
			return refuse(c, "is missing");
		if (value != NULL && !(json_is_null(value) && (field->flags & OR_NULL))) {
			int status = check_value(c, value, field);
			if (status < 0)
				return status;
		}
		c->path[back] = '\0';
	}
	return 0;
}

static int check_seed(struct check *c, json_t *seed)
{
	const char *text = json_string_value(seed);
	enter(c, "seed", 0);
	if (!(json_is_integer(seed) && json_integer_value(seed) >= 0) &&
	    !(text != NULL && text[0] != '\0' && strlen(text) <= 20 &&
	      strspn(text, "0123456789") == strlen(text)))
		return refuse(c, "expected a whole number, found %s", type_name(seed));
	c->path[0] = '\0';
	return 0;
}

static int printable(const char *text)
{
	while ((unsigned char)*text >= 0x20u && (unsigned char)*text < 0x7fu)
		text++;
	return *text == '\0';
}

/* Also where nobody looks, such as in "config": writing a document out again must not recurse without limit.
 */
static int check_depth(struct check *c, json_t *value, int depth)
{
	const char *key;
	json_t *item;
	size_t i;
	if (depth > MOST_DEPTH)
		return refuse(c, "lists and objects are nested more than %d deep", MOST_DEPTH);
	json_array_foreach(value, i, item)
	{
		int status = check_depth(c, item, depth + 1);
		if (status < 0)
			return status;
	}
	json_object_foreach(value, key, item)
	{
		int status;
		if (depth == 0)
			snprintf(c->path, sizeof(c->path), "%.60s", printable(key) ? key : "?");
		status = check_depth(c, item, depth + 1);
		if (status < 0)
			return status;
	}
	return 0;
}

int xb_document_check(json_t *document, const char *name, struct xb_error *error)
{
	struct check c = {.name = name, .error = error};
	if (!json_is_object(document))
		return refuse(&c, "expected an object, found %s", type_name(document));
	json_t *schema = json_object_get(document, "schema");
	if (!json_is_integer(schema) || json_integer_value(schema) != 1) {
		enter(&c, "schema", 0);
		if (json_is_integer(schema))
			return refuse(&c, "this program reads schema 1, the file has schema %lld",
				      (long long)json_integer_value(schema));
		return refuse(&c, schema ? "expected 1, found %s" : "is missing%.0s", type_name(schema));
	}
	int status = check_fields(&c, document, document_fields);
	if (status == 0)
		status = check_depth(&c, document, 0);
	c.path[0] = '\0';
	if (status == 0)
		status = check_seed(&c, json_object_get(document, "seed"));
	if (status < 0)
		return status;
	/* labels that name nothing, entries twice, too many sizes: found where the entries are put in order
	 */
	struct xb_view view;
	status = xb_view_open(document, name, &view, error);
	if (status == 0)
		xb_view_close(&view);
	return status == 0 ? xb_swaps_check(document, name, error) : status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The grammar of -t:
 *
 *	LIST  = ITEM { "," ITEM }
 *	ITEM  = NAME [ ":" PATH ]      a transport, if it has no "=" and does not begin with "fault."
 *	      | KEY "=" VALUE          a key of the transport before it
 *	      | "fault." KEY           a fault without a value, likewise
 *
 * Only the first ":" of a transport separates, so that paths such as mlx5_0:1 stay whole, and only the first
 *"=" of a key. "\," puts a comma into a path or a value (env.UCX_TLS=rc\,self) and "\\" a backslash.
 */
#include <stdlib.h>
#include "options.h"
#include "show.h"

#define NAME_MAX_BYTES 32u
#define VALUE_MAX_BYTES 1024u

static const char lower_digits[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
static const char name_characters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-@"; /* mpi@mpich */
static const char variable_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
static const char example[] = "for example -t tcp,ofi:tcp,mpi:tcp";

static int no_memory(struct xb_error *error)
{
	return xb_fail(error, XB_E_RESOURCE, "out of memory while reading the transport list");
}

/* One item with its escapes undone; *next is where the raw text goes on (at a comma or the end). */
static int cut_item(const char *raw, char *item, const char **next, struct xb_error *error)
{
	size_t n = 0;
	const char *p = raw;

	for (; *p && *p != ','; p++) {
		unsigned char c = (unsigned char)*p;

		if (c == '\\') {
			if (p[1] != ',' && p[1] != '\\')
				return xb_fail(
					error, XB_E_USAGE,
					"transport list: the backslash at '%s' stands before neither a comma "
					"nor a "
					"backslash; write '\\,' for a comma and '\\\\' for a backslash",
					XB_SHOW(p));
			c = (unsigned char)*++p;
		}
		if (c < 0x20 || c == 0x7f)
			return xb_fail(
				error, XB_E_USAGE,
				"transport list: a control character (code %u) stands in '%s'; take it out",
				c, XB_SHOW(raw));
		if (n == VALUE_MAX_BYTES + NAME_MAX_BYTES)
			return xb_fail(error, XB_E_USAGE,
				       "transport list: the item '%s' is longer than %u bytes", XB_SHOW(raw),
				       VALUE_MAX_BYTES + NAME_MAX_BYTES);
		item[n++] = (char)c;
	}
	item[n] = '\0';
	*next = p;
	if (!xb_is_utf8(item))
		return xb_fail(error, XB_E_USAGE, "transport list: '%s' is not valid UTF-8", XB_SHOW(item));
	return 0;
}

static int begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "NAME" or "NAME:PATH" */
static int begin_transport(struct xb_transport_spec *spec, const char *item, struct xb_error *error)
{
	size_t length = strcspn(item, ":");
	const char *colon = item[length] ? item + length : NULL;

	if (begins_with(item, "env.") || strcmp(item, "label") == 0 || strcmp(item, "trace") == 0)
		return xb_fail(error, XB_E_USAGE,
			       "'%s' is a key of a transport and needs a value: write %s=%s", XB_SHOW(item),
			       XB_SHOW(item), begins_with(item, "trace") ? "FILE" : "VALUE");
	if (length == 0 || length > NAME_MAX_BYTES || strspn(item, name_characters) != length ||
	    strchr("0123456789_-@", item[0]))
		return xb_fail(error, XB_E_USAGE,
			       "'%s' is not a transport: write NAME or NAME:PATH with a name in lower-case "
			       "letters and "
			       "digits, %s; 'xportbench list' shows those of this machine",
			       XB_SHOW(item), example);
	if (length == strlen("fault") && begins_with(item, "fault"))
		return xb_fail(error, XB_E_USAGE,
			       "'%s' is no transport of its own: it distorts another one; write it behind "
			       "that one, for "
			       "example -t tcp,fault.delay=2us",
			       XB_SHOW(item));
	if (colon && colon[1] == '\0')
		return xb_fail(error, XB_E_USAGE,
			       "'%s' has nothing after the ':'; write %.*s alone or %.*s:PATH", XB_SHOW(item),
			       (int)length, item, (int)length, item);
	if (colon && strlen(colon + 1) > 255)
		return xb_fail(error, XB_E_USAGE, "the path of '%s' is longer than 255 bytes", XB_SHOW(item));
	spec->name = strndup(item, length);
	spec->path = strdup(colon ? colon + 1 : "");
	return spec->name && spec->path ? 0 : no_memory(error);
}

static int check_label(const char *label, struct xb_error *error)
{
	size_t length = strlen(label);

	if (length == 0 || length > XB_LABEL_MAX)
		return xb_fail(error, XB_E_USAGE, "label '%s' has %zu characters; allowed are 1 to %u",
			       XB_SHOW(label), length, XB_LABEL_MAX);
	for (const char *p = label; *p; p++) {
		if (*p < 0x20 || *p > 0x7e)
			return xb_fail(error, XB_E_USAGE,
				       "label '%s' has a character outside printable ASCII; labels head the "
				       "columns of "
				       "the report: use letters, digits and punctuation",
				       XB_SHOW(label));
	}
	if (label[0] == ' ' || label[length - 1] == ' ')
		return xb_fail(error, XB_E_USAGE, "label '%s' begins or ends with a blank; take it out",
			       XB_SHOW(label));
	return 0;
}

/* Appends to one of the three lists; `what` names the list in errors. */
static int append(struct xb_key_value *list, size_t *count, const char *key, const char *value,
		  const char *what, struct xb_error *error)
{
	char *k, *v;

	for (size_t i = 0; i < *count; i++) {
		if (strcmp(list[i].key, key) == 0)
			return xb_fail(
				error, XB_E_USAGE,
				"key '%s%s' is given twice for one transport, as '%s' and as '%s'; keep one",
				what, XB_SHOW(key), XB_SHOW(list[i].value), XB_SHOW(value));
	}
	if (*count == XB_MAX_KEYS)
		return xb_fail(error, XB_E_USAGE, "one transport has more than %u keys '%s...'", XB_MAX_KEYS,
			       what);
	k = strdup(key);
	v = strdup(value);
	if (!k || !v) {
		free(k);
		free(v);
		return no_memory(error);
	}
	list[(*count)++] = (struct xb_key_value){k, v};
	return 0;
}

/* label= and trace= : once each, never empty. */
static int set_once(char **slot, const char *key, const char *value, struct xb_error *error)
{
	if (*slot)
		return xb_fail(error, XB_E_USAGE,
			       "%s= is given twice for one transport, as '%s' and as '%s'; keep one", key,
			       XB_SHOW(*slot), XB_SHOW(value));
	if (*value == '\0')
		return xb_fail(error, XB_E_USAGE, "%s= has no value; write %s=%s", key, key,
			       strcmp(key, "trace") == 0    ? "FILE"
			       : strcmp(key, "mpirun") == 0 ? "COMMAND"
							    : "TEXT");
	*slot = strdup(value);
	return *slot ? 0 : no_memory(error);
}

static int is_variable_name(const char *name)
{
	static const char digits[] = "0123456789";

	return *name && !strchr(digits, *name) && strspn(name, variable_characters) == strlen(name);
}

/* "KEY=VALUE" or "fault.KEY"; cuts item in place */
static int add_key(struct xb_transport_spec *spec, char *item, struct xb_error *error)
{
	char *equals = strchr(item, '='), *value = item + strlen(item);
	size_t length;

	if (equals) {
		*equals = '\0';
		value = equals + 1;
	}
	length = strlen(item);
	if (strlen(value) > VALUE_MAX_BYTES)
		return xb_fail(error, XB_E_USAGE, "the value of key '%s' is longer than %u bytes",
			       XB_SHOW(item), VALUE_MAX_BYTES);
	if (begins_with(item, "env.")) {
		const char *name = item + strlen("env.");

		if (!is_variable_name(name))
			return xb_fail(error, XB_E_USAGE,
				       "'%s=' does not name an environment variable; write env.NAME=VALUE "
				       "with letters, "
				       "digits and '_', not beginning with a digit",
				       XB_SHOW(item));
		return append(spec->env, &spec->env_count, name, value, "env.", error);
	}
	if (strcmp(item, "label") == 0) {
		int rc = check_label(value, error);

		return rc ? rc : set_once(&spec->label, "label", value, error);
	}
	if (strcmp(item, "trace") == 0)
		return set_once(&spec->trace, "trace", value, error);
	if (strcmp(item, "mpirun") == 0 && xb_is_mpi(spec->name))
		return set_once(&spec->mpirun, "mpirun", value, error);
	if (length == 0 || length > NAME_MAX_BYTES + strlen("fault.") || strchr("0123456789_-", item[0]) ||
	    strspn(item + (begins_with(item, "fault.") ? strlen("fault.") : 0), lower_digits) !=
		    length - (begins_with(item, "fault.") ? strlen("fault.") : 0))
		return xb_fail(error, XB_E_USAGE,
			       "'%s=%s' is not a key of transport '%s': an item with '=' belongs to the "
			       "transport before "
			       "it, and its key has only lower-case letters, digits, '_' and '-'",
			       XB_SHOW(item), XB_SHOW(value), XB_SHOW(spec->name));
	if (begins_with(item, "fault.")) {
		const char *name = item + strlen("fault.");

		if (*name == '\0')
			return xb_fail(error, XB_E_USAGE,
				       "'fault.' names no fault; write for example fault.delay=2us");
		return append(spec->fault, &spec->fault_count, name, value, "fault.", error);
	}
	return append(spec->keys, &spec->key_count, item, value, "", error);
}

/* The raw text of the transport is complete: keep it, and find the label. */
static int finish_transport(struct xb_config *config, size_t index, const char *raw, size_t raw_bytes,
			    struct xb_error *error)
{
	struct xb_transport_spec *spec = &config->transports[index];
	int given = spec->label != NULL;

	spec->text = strndup(raw, raw_bytes);
	if (!spec->text)
		return no_memory(error);
	if (!given) {
		size_t bytes = strlen(spec->name) + strlen(spec->path) + 2;
		char *label = malloc(bytes);

		if (!label)
			return no_memory(error);
		strcpy(label, spec->name);
		if (*spec->path)
			strcat(strcat(label, ":"), spec->path);
		spec->label = label;
		if (strlen(label) > XB_LABEL_MAX)
			return xb_fail(error, XB_E_USAGE,
				       "'%s' is too long to head a column of the report; add label=TEXT with "
				       "at most %u "
				       "characters behind it",
				       XB_SHOW(label), XB_LABEL_MAX);
		for (const char *p = label; *p; p++) {
			if (*p > 0x7e || *p < 0x20)
				return xb_fail(error, XB_E_USAGE,
					       "'%s' is not printable ASCII; add label=TEXT behind it to "
					       "head the columns of "
					       "the report",
					       XB_SHOW(label));
		}
	}
	for (size_t i = 0; i < index; i++) {
		if (strcmp(config->transports[i].label, spec->label) == 0)
			return xb_fail(error, XB_E_USAGE,
				       "two transports are both called '%s'; tell them apart with "
				       "label=TEXT, for example "
				       "%s,label=other",
				       XB_SHOW(spec->label), XB_SHOW(spec->text));
	}
	return 0;
}

static int parse(const char *text, struct xb_config *config, struct xb_error *error)
{
	char item[VALUE_MAX_BYTES + NAME_MAX_BYTES + 1] = "";
	const char *raw = text, *next = text, *first = NULL, *end = NULL;
	size_t index = config->transport_count; /* of the transport being read, once first is set */
	int rc;

	for (;; raw = next + 1) {
		rc = cut_item(raw, item, &next, error);
		if (rc)
			return rc;
		if (item[0] == '\0')
			return xb_fail(error, XB_E_USAGE,
				       "transport list '%s' has an empty item; write one comma between two, "
				       "%s",
				       XB_SHOW(text), example);
		if (strchr(item, '=') || begins_with(item, "fault.")) {
			if (!first)
				return xb_fail(error, XB_E_USAGE,
					       "transport list begins with the key '%s'; a key belongs to "
					       "the transport before "
					       "it, for example -t tcp,%s",
					       XB_SHOW(item), XB_SHOW(item));
			rc = add_key(&config->transports[index], item, error);
		} else {
			if (first) {
				rc = finish_transport(config, index++, first, (size_t)(end - first), error);
				if (rc)
					return rc;
			}
			if (index == XB_MAX_TRANSPORTS)
				return xb_fail(error, XB_E_USAGE,
					       "more than %u transports are listed; leave some out",
					       XB_MAX_TRANSPORTS);
			first = raw;
			config->transport_count = index + 1;
			rc = begin_transport(&config->transports[index], item, error);
		}
		if (rc)
			return rc;
		end = next;
		if (*next == '\0')
			return finish_transport(config, index, first, (size_t)(end - first), error);
	}
}

static void free_list(struct xb_key_value *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free((char *)list[i].key);
		free((char *)list[i].value);
	}
}

void xb_transports_free(struct xb_config *config, size_t keep)
{
	while (config->transport_count > keep) {
		struct xb_transport_spec *spec = &config->transports[--config->transport_count];

		free_list(spec->keys, spec->key_count);
		free_list(spec->env, spec->env_count);
		free_list(spec->fault, spec->fault_count);
		free(spec->name);
		free(spec->path);
		free(spec->label);
		free(spec->text);
		free(spec->trace);
		free(spec->mpirun);
		*spec = (struct xb_transport_spec){0};
	}
}

int xb_parse_transports(const char *text, struct xb_config *config, struct xb_error *error)
{
	size_t before = config->transport_count;
	int rc = parse(text, config, error);

	if (rc)
		xb_transports_free(config, before);
	return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ofi.h"

/*
 * libfabric stacks a utility provider on a core one and calls that "tcp;ofi_rxm". A semicolon has to be
 * quoted in a shell, so '+' is taken as well, and the utility may be called rxm or ofi_rxm and stand on
 * either side.
 */
static const char *utility_name(const char *name)
{
	static const char *const known[] = {"rxm", "rxd", "mrail"};
	static const char *const full[] = {"ofi_rxm", "ofi_rxd", "ofi_mrail"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcasecmp(name, known[i]) || !strcasecmp(name, full[i]))
			return full[i];
	return NULL;
}

static int parse_provider(const char *text, const char *whole, char *out, struct xb_error *error)
{
	char copy[OFI_NAME_BYTES], *second;
	const char *core, *utility;

	snprintf(copy, sizeof(copy), "%s", text);
	second = strpbrk(copy, ";+");
	if (second)
		*second++ = '\0';
	for (const char *c = copy; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
			return xb_fail(error, XB_E_USAGE,
				       "asked for ofi:%s; '%c' is in no provider's name; give "
				       "ofi:PROVIDER[/DEVICE], such as ofi:tcp or ofi:psm2",
				       whole, *c);
	core = copy;
	utility = second ? utility_name(second) : NULL;
	if (second && !utility && utility_name(copy)) {
		core = second;
		utility = utility_name(copy);
	}
	if (second && (!utility || !*core || utility_name(core)))
		return xb_fail(
			error, XB_E_USAGE,
			"asked for ofi:%s; a stacked provider is CORE+rxm or CORE+rxd; give for example "
			"ofi:tcp+rxm (or 'ofi:tcp;ofi_rxm')",
			whole);
	if (!second && utility_name(copy))
		return xb_fail(
			error, XB_E_USAGE,
			"asked for ofi:%s; %s runs on top of a core provider; give for example ofi:tcp+%s",
			whole, utility_name(copy), utility_name(copy) + 4);
	snprintf(out, OFI_NAME_BYTES, "%.40s%s%.16s", core, utility ? ";" : "", utility ? utility : "");
	for (char *c = out; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return XB_OK;
}

int ofi_path_parse(const char *text, struct ofi_path *path, struct xb_error *error)
{
	const char *slash = strchr(text, '/');
	size_t name = slash ? (size_t)(slash - text) : strlen(text);
	char provider[OFI_NAME_BYTES];

	memset(path, 0, sizeof(*path));
	if (!*text)
		return XB_OK;
	if (name == 0 || (slash && !slash[1]))
		return xb_fail(
			error, XB_E_USAGE,
			"asked for ofi:%s; %s is missing; give ofi:PROVIDER[/DEVICE], such as ofi:tcp/eth0",
			text, name == 0 ? "the provider" : "the device after the slash");
	if (name >= sizeof(provider) - 16 || (slash && strlen(slash + 1) >= sizeof(path->device)))
		return xb_fail(error, XB_E_USAGE,
			       "asked for ofi:%.80s...; no provider or device has so long a name", text);
	snprintf(provider, sizeof(provider), "%.*s", (int)name, text);
	if (slash)
		snprintf(path->device, sizeof(path->device), "%s", slash + 1);
	return parse_provider(provider, text, path->provider, error);
}

bool ofi_path_matches(const char *asked, const char *found)
{
	size_t core = strlen(asked);

	if (!core || !strcasecmp(asked, found))
		return true;
	return !strchr(asked, ';') && !strncasecmp(asked, found, core) && found[core] == ';' &&
	       utility_name(found + core + 1);
}

void ofi_path_spell(const char *provider, char *out, size_t bytes)
{
	const char *second = strchr(provider, ';');

	if (second && !strncmp(second + 1, "ofi_", 4))
		snprintf(out, bytes, "%.*s+%s", (int)(second - provider), provider, second + 5);
	else
		snprintf(out, bytes, "%s", provider);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of hosts: -H, --host-file. They become arguments of ssh, mpirun and srun, hence few characters. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "options.h"
#include "show.h"

#define HOST_NAME_MAX_BYTES 255u

static int is_name(const char *text, size_t length)
{
	if (length == 0 || length > HOST_NAME_MAX_BYTES || text[0] == '-' || text[0] == '@')
		return 0;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._:@%-", text[i]))
			return 0;
	return 1;
}

static int add(const char *text, size_t length, struct xb_config *config, struct xb_error *error)
{
	char **grown;

	if (!is_name(text, length))
		return xb_fail(
			error, XB_E_USAGE,
			"'%s' cannot be the name of a host; write names as ssh takes them, for example "
			"node01 or user@node01",
			XB_SHOW_SPAN(text, length));
	if (config->host_count == XB_MAX_ENDPOINTS)
		return xb_fail(error, XB_E_USAGE, "more than %u hosts", XB_MAX_ENDPOINTS);
	grown = realloc(config->hosts, (config->host_count + 1) * sizeof(*grown));
	if (!grown)
		return xb_fail(error, XB_E_RESOURCE, "out of memory for the list of hosts");
	config->hosts = grown;
	grown[config->host_count] = strndup(text, length);
	if (!grown[config->host_count])
		return xb_fail(error, XB_E_RESOURCE, "out of memory for the list of hosts");
	config->host_count++;
	return 0;
}

int xb_parse_hosts(const char *text, struct xb_config *config, struct xb_error *error)
{
	for (const char *item = text;; item++) {
		size_t length = strcspn(item, ",");
		int rc = add(item, length, config, error);

		if (rc)
			return rc;
		item += length;
		if (*item == '\0')
			return 0;
	}
}

int xb_read_host_file(const char *path, struct xb_config *config, struct xb_error *error)
{
	char line[1024];
	unsigned number = 0;
	int rc = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		return xb_fail(error, XB_E_USAGE, "cannot read %s: %s", XB_SHOW(path), strerror(errno));
	while (!rc && fgets(line, sizeof(line), file)) {
		struct xb_error cause = {0};
		char *name = line + strspn(line, " \t");

		number++;
		/* what other launchers write behind the name (slots=4) does not matter here */
		name[strcspn(name, " \t\r\n#")] = '\0';
		if (*name && (rc = add(name, strlen(name), config, &cause)))
			rc = xb_fail(error, rc, "%s, line %u: %s", XB_SHOW(path), number, cause.text);
	}
	if (!rc && ferror(file))
		rc = xb_fail(error, XB_E_USAGE, "cannot read %s", XB_SHOW(path));
	fclose(file);
	if (!rc && config->host_count == 0)
		rc = xb_fail(error, XB_E_USAGE, "%s names no host", XB_SHOW(path));
	return rc;
}

void xb_hosts_free(struct xb_config *config)
{
	for (size_t i = 0; i < config->host_count; i++)
		free(config->hosts[i]);
	free(config->hosts);
	config->hosts = NULL;
	config->host_count = 0;
}

int xb_is_mpi(const char *transport)
{
	return strncmp(transport, "mpi", 3) == 0 && (transport[3] == '\0' || transport[3] == '@');
}

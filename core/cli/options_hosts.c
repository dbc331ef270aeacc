/* SPDX-License-Identifier: BSD-3-Clause */
/* Setters and echoes of the options about other hosts; the table is in options.c. */
#include <stdlib.h>
#include "options_hosts.h"
#include "show.h"

int xb_set_port(struct xb_config *config, const char *value, struct xb_error *error)
{
	uint64_t port;
	int rc = xb_option_whole(value, 1, 65535, &port, error);

	if (!rc)
		config->port = (uint16_t)port;
	return rc;
}

int xb_set_hosts(struct xb_config *config, const char *value, struct xb_error *error)
{
	xb_hosts_free(config);
	return xb_parse_hosts(value, config, error);
}

int xb_set_host_file(struct xb_config *config, const char *value, struct xb_error *error)
{
	xb_hosts_free(config);
	return xb_read_host_file(value, config, error);
}

json_t *xb_echo_hosts(const struct xb_config *config)
{
	json_t *list = json_array();

	for (size_t i = 0; i < config->host_count; i++)
		json_array_append_new(list, xb_option_json(config->hosts[i]));
	return list;
}

int xb_set_endpoints(struct xb_config *config, const char *value, struct xb_error *error)
{
	uint64_t endpoints = 0;
	int rc = 0;

	if (strcmp(value, "auto") != 0)
		rc = xb_option_whole(value, 2, XB_MAX_ENDPOINTS, &endpoints, error);
	if (!rc)
		config->endpoints = (uint32_t)endpoints;
	return rc;
}

json_t *xb_echo_endpoints(const struct xb_config *config)
{
	return json_integer(config->endpoints ? config->endpoints : 2);
}

/* "25G", "1.5G", "200M", in bits per second and powers of ten, as links are sold; or auto. */
int xb_set_link_rate(struct xb_config *config, const char *value, struct xb_error *error)
{
	char number[32] = "";
	size_t length = strlen(value);
	double scale = 1, rate;

	if (strcmp(value, "auto") == 0) {
		config->link_bits_per_s = 0;
		return 0;
	}
	if (length && strchr("KMGT", value[length - 1])) {
		scale = value[length - 1] == 'K'   ? 1e3
			: value[length - 1] == 'M' ? 1e6
			: value[length - 1] == 'G' ? 1e9
						   : 1e12;
		length--;
	}
	if (length < sizeof(number))
		memcpy(number, value, length);
	if (xb_option_decimal(number, 1e-6, 1e15, &rate, NULL) || rate * scale < 1e3 || rate * scale > 1e15)
		return xb_fail(
			error, XB_E_USAGE,
			"'%s' is not allowed; give bits per second, with K, M, G or T for powers of ten, for "
			"example 25G, or auto",
			XB_SHOW(value));
	config->link_bits_per_s = (uint64_t)(rate * scale + 0.5);
	return 0;
}

json_t *xb_echo_link_rate(const struct xb_config *config)
{
	return config->link_bits_per_s ? json_integer((json_int_t)config->link_bits_per_s)
				       : json_string("auto");
}

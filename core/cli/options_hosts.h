/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_OPTIONS_HOSTS_H
#define XB_OPTIONS_HOSTS_H
/* The part of the option table that is about other hosts, and what its setters share with the rest. */
#include "options.h"

/* Values: a whole number or a decimal within limits; a text that is not empty (`what` is to be given); JSON
 * of a text that need not be UTF-8. */
int xb_option_whole(const char *text, uint64_t low, uint64_t high, uint64_t *out, struct xb_error *error);
int xb_option_decimal(const char *text, double low, double high, double *out, struct xb_error *error);
int xb_option_text(char **slot, const char *value, const char *what, struct xb_error *error);
json_t *xb_option_json(const char *text);

int xb_set_port(struct xb_config *config, const char *value, struct xb_error *error);
int xb_set_hosts(struct xb_config *config, const char *value, struct xb_error *error);
int xb_set_host_file(struct xb_config *config, const char *value, struct xb_error *error);
json_t *xb_echo_hosts(const struct xb_config *config);
int xb_set_endpoints(struct xb_config *config, const char *value, struct xb_error *error);
json_t *xb_echo_endpoints(const struct xb_config *config);
int xb_set_link_rate(struct xb_config *config, const char *value, struct xb_error *error);
json_t *xb_echo_link_rate(const struct xb_config *config);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_SWAP_OPTIONS_H
#define XB_SWAP_OPTIONS_H
/* Setters and echoes of the options about the swap; private to core/cli. */
#include "options.h"

int xb_set_protocols(struct xb_config *config, const char *value, struct xb_error *error);
json_t *xb_echo_protocols(const struct xb_config *config);
int xb_set_order(struct xb_config *config, const char *value, struct xb_error *error);
json_t *xb_echo_order(const struct xb_config *config);
int xb_set_total(struct xb_config *config, const char *value, struct xb_error *error);
json_t *xb_echo_total(const struct xb_config *config);
int xb_set_cache(struct xb_config *config, const char *value, struct xb_error *error);
json_t *xb_echo_cache(const struct xb_config *config);
int xb_set_overlap(struct xb_config *config, const char *value, struct xb_error *error);
json_t *xb_echo_overlap(const struct xb_config *config);
int xb_set_overlap_depth(struct xb_config *config, const char *value, struct xb_error *error);
json_t *xb_echo_overlap_depth(const struct xb_config *config);

#endif

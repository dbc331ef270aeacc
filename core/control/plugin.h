/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_PLUGIN_H
#define XB_PLUGIN_H
/* Finds and loads backends (libxb-NAME.so): in the given folder, beside the running binary (build tree), in
 * the installed place. */
#include "../engine/decorator.h"
#include "../transport.h"

/* Where libxb-NAME.so is; 0, or XB_E_USAGE naming the transports that are there. folder may be NULL. */
int xb_plugin_find(const char *folder, const char *name, char *path, size_t capacity, struct xb_error *error);
/* Names of all plugins that hold a transport (not decorators), sorted, comma separated, into text. */
void xb_plugin_names(const char *folder, char *text, size_t capacity);
/* Loads a transport into this process for good. */
int xb_plugin_load(const char *folder, const char *name, const struct xb_transport **transport,
		   struct xb_error *error);
int xb_plugin_load_decorator(const char *folder, const char *name, const struct xb_decorator **decorator,
			     struct xb_error *error);

#endif

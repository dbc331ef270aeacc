/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_USER_KEY_H
#define XB_USER_KEY_H
#include "channel.h"
/*
 * The key that `xportbench listen` and its clients share: 64 hex digits in a file that only its owner can
 * read. With file NULL it is ~/.xportbench.key, made on first use; on a cluster whose hosts share the home
 * folder that is all there is to do. Writes the name of the file to path. XB_E_USAGE with what to do if the
 * file is not there (given by name), is not ours, can be read by others, or holds no key.
 */
int xb_user_key(const char *file, unsigned char key[XB_KEY_BYTES], char *path, size_t capacity,
		struct xb_error *error);
#endif

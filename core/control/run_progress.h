/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_RUN_PROGRESS_H
#define XB_RUN_PROGRESS_H
#include "../cli/config.h"
/* One line on stderr when that is a terminal (and not -q): what runs, how far, time left. Never printed while
 * a block is timed. */
void xb_progress_start(const struct xb_config *config);
void xb_progress_launch(unsigned launch, const struct xb_config *config, double used_s, double launch_s);
void xb_progress_starting(const char *label);
void xb_progress_step(unsigned launch, size_t done, size_t total);
void xb_progress_clear(void);
#endif

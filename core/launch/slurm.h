/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_SLURM_H
#define XB_SLURM_H
#include "../cli/config.h"
/* Adds the hosts of the job that this process is in to config->hosts, in Slurm's order. XB_E_UNAVAILABLE if
 * Slurm does not tell them. */
int xb_slurm_hosts(struct xb_config *config, struct xb_error *error);
#endif

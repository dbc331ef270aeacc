/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI's internal headers, which Debian ships; marked as system headers, since they are not clean of our
 * warnings. */
#pragma GCC system_header
#include "opal_config.h"
#include "ompi_config.h"
#include "ompi/mca/bml/bml.h"
#include "ompi/mca/mtl/mtl.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/proc/proc.h"
#include "ompi/communicator/communicator.h"
#include "ompi/win/win.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_MPI_KIND_H
#define XB_MPI_KIND_H
/* Whose mpirun, or whose library, an MPI is: they take different options. */
enum xb_mpi_kind { XB_MPI_KIND_OPENMPI, XB_MPI_KIND_HYDRA };
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "ofi.h"

/* Newest API version whose semantics this backend was written for. */
#define OFI_API FI_VERSION(1, 17)

static uint32_t oldest(uint32_t a, uint32_t b)
{
	return FI_VERSION_LT(a, b) ? a : b;
}

int ofi_library_load(struct ofi_library *lib, struct xb_error *error)
{
	__typeof__(fi_version) *version;
	__typeof__(fi_tostr) *tostr;
	const char *why;

	/* RTLD_GLOBAL is not wanted: two libfabrics (an MPI's own) may live in one process. */
	lib->handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib->handle) {
		why = dlerror();
		return xb_fail(error, XB_E_UNAVAILABLE,
			       "asked for libfabric; libfabric.so.1 cannot be loaded (%s); install libfabric",
			       why ? why : "no reason given");
	}
	/* The structures are only ever allocated by the library (fi_dupinfo(NULL)) and newer ones only grow
	 * at their end, so a library newer than the header is fine. */
	*(void **)&lib->getinfo = dlsym(lib->handle, "fi_getinfo");
	*(void **)&lib->freeinfo = dlsym(lib->handle, "fi_freeinfo");
	*(void **)&lib->dupinfo = dlsym(lib->handle, "fi_dupinfo");
	*(void **)&lib->fabric = dlsym(lib->handle, "fi_fabric");
	*(void **)&lib->strerror = dlsym(lib->handle, "fi_strerror");
	*(void **)&version = dlsym(lib->handle, "fi_version");
	*(void **)&tostr = dlsym(lib->handle, "fi_tostr");
	if (!lib->getinfo || !lib->freeinfo || !lib->dupinfo || !lib->fabric || !lib->strerror || !version ||
	    !tostr)
		return xb_fail(
			error, XB_E_UNAVAILABLE,
			"asked for libfabric; the libfabric.so.1 found lacks its entry points; install "
			"libfabric 1.9 or newer");
	lib->api = oldest(oldest(OFI_API, FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)), version());
	snprintf(lib->version, sizeof(lib->version), "%s", tostr("", FI_TYPE_VERSION));
	if (!lib->version[0])
		snprintf(lib->version, sizeof(lib->version), "%u.%u", (unsigned)FI_MAJOR(version()),
			 (unsigned)FI_MINOR(version()));
	return XB_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "error.h"

int(xb_fail)(struct xb_error *error, int status, const char *format, ...)
{
	/* The text is formed first: an argument may point into error->text (a cause that is being extended).
	 */
	char text[XB_ERROR_TEXT_BYTES];
	va_list arguments;

	if (!error)
		return status;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	error->status = status;
	snprintf(error->text, sizeof error->text, "%s", text);
	return status;
}

const char *xb_status_name(int status)
{
	switch (status) {
	case XB_OK:
		return "ok";
	case XB_E_ABORTED:
		return "aborted";
	case XB_E_USAGE:
		return "usage";
	case XB_E_UNSUPPORTED:
		return "unsupported";
	case XB_E_UNAVAILABLE:
		return "unavailable";
	case XB_E_RESOURCE:
		return "resource";
	case XB_E_PEER:
		return "peer";
	case XB_E_TRANSPORT:
		return "transport";
	case XB_E_PATH:
		return "path";
	case XB_E_CORRUPT:
		return "corrupt";
	case XB_E_TIMEOUT:
		return "timeout";
	case XB_E_SYSTEM:
		return "system";
	}
	return "unknown";
}

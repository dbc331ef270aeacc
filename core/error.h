/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_ERROR_H
#define XB_ERROR_H
/*
 * Errors are values: a status, and one sentence that says what was asked, what was found and what to do.
 * The first place that detects an error fills it in; callers pass it on unchanged and print it once.
 */
#define XB_ERROR_TEXT_BYTES 768

enum xb_status {
	XB_OK = 0,
	XB_E_ABORTED = -1, /* the abort flag was set while waiting; not a fault of the transport */
	XB_E_USAGE = -2, /* the request itself is wrong: unknown key, impossible value */
	XB_E_UNSUPPORTED = -3, /* the transport cannot do this at all (or not on this path) */
	XB_E_UNAVAILABLE = -4, /* the device, provider, library or permission is missing on this machine */
	XB_E_RESOURCE = -5, /* memory, descriptors, queue entries, locked memory ... ran out */
	XB_E_PEER = -6, /* the peer closed the connection, died or broke the protocol */
	XB_E_TRANSPORT = -7, /* the fabric library reported a failure */
	XB_E_PATH = -8, /* works, but not over the path that was asked for */
	XB_E_CORRUPT = -9, /* payload or frame is not what was sent */
	XB_E_TIMEOUT = -10, /* a deadline passed */
	XB_E_SYSTEM = -11, /* an operating system call failed */
};

struct xb_error {
	int status; /* enum xb_status */
	char text[XB_ERROR_TEXT_BYTES];
};

/* Fills *error (which may be NULL) from a printf format and returns status, so that `return xb_fail(...)`
 * reads well. */
int xb_fail(struct xb_error *error, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* it looks at one file at a time and could not see that status is returned */
#define xb_fail(error, status, ...) (xb_fail(error, status, __VA_ARGS__), (status))
#endif

/* Short fixed word of a status, for JSON and logs: "ok", "aborted", "usage", "unsupported", ... "unknown". */
const char *xb_status_name(int status);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_SERIES_H
#define XB_SERIES_H
/* The launch values of every pair for one limit and size, taken from a result document. */
#include <jansson.h>
#include "limits.h"

struct xb_series {
	uint32_t a, b; /* endpoints */
	double *values; /* one a launch, in the unit of the metric; NAN where a launch has none */
	size_t count;
	int exact; /* counters, not a sample */
	int unverified; /* the payload was not what it should be, or was not looked at */
};

struct xb_series_set {
	struct xb_series *pairs;
	size_t count;
	double *typical; /* of each launch: median or best over the pairs, as the limit wants; NULL if they
			    differ in number of launches */
	size_t typical_count;
	double point; /* median or best of the pairs' medians; NAN when there is no pair */
};

/* Empty when the document has nothing of the kind. XB_E_RESOURCE. */
int xb_series_of(json_t *document, const struct xb_limit *limit, size_t size_bytes, struct xb_series_set *set,
		 struct xb_error *error);
void xb_series_free(struct xb_series_set *set);

/* Slowest device that carried the payload of a transport on the hosts of these two endpoints, in MB/s of one
 * direction; NAN when not known. */
double xb_link_MBps(json_t *document, const char *label, uint32_t a, uint32_t b);
/* Share of their time, in percent, that the cores of these two endpoints lost in the probe; NAN if unknown.
 */
double xb_noise_of_pair(json_t *document, uint32_t a, uint32_t b);
/* The same of one endpoint. */
double xb_noise_of_endpoint(json_t *document, uint32_t endpoint);
/* Name of the host of an endpoint as it calls itself; NULL if unknown. */
const char *xb_host_of_endpoint(json_t *document, uint32_t endpoint);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_PLACES_H
#define XB_PLACES_H
/* Who is measured: endpoints and their hosts, and which pair is measured again after a violation. */
#include "rulings.h"

struct xb_places {
	char text[600]; /* the pair in words */
	char *hosts[2];
};

uint32_t xb_places_endpoints(const struct xb_config *config);
/* How many pairs the run will have. */
int xb_places_pairs(const struct xb_config *config, size_t *pairs, struct xb_error *error);
/* Name of the host of an endpoint, as it was given; NULL where all are here. Borrowed. */
const char *xb_places_host(const struct xb_config *config, uint32_t endpoint);
/* Makes the configuration that of two of its endpoints, on the cores of the run of the document. places must
 * outlive it. */
void xb_places_of_pair(struct xb_config *config, json_t *document, uint32_t a, uint32_t b,
		       struct xb_places *places);

/* The places as they were asked for, before nodes were left out. */
struct xb_whole {
	char **hosts; /* the names are the configuration's */
	size_t host_count, bind_count;
	uint32_t endpoints;
	int bind[XB_MAX_ENDPOINTS];
	struct xb_pair *pairs, *listed; /* of the file in --pairs: all, and those that are left */
	size_t pair_count;
};

int xb_whole_keep(struct xb_whole *whole, const struct xb_config *config, struct xb_error *error);
/* Did the pairs of such a run take turns? With three endpoints or fewer they always do. */
int xb_places_take_turns(int serial, uint32_t endpoints);
/* Would what is left without those flagged in out (below) be a network, with pairs of --pairs if those were
 * given? */
int xb_whole_can_do_without(const struct xb_whole *whole, const unsigned char *out);
/* Makes the configuration that of the whole without the hosts (without hosts: the endpoints) that are flagged
 * in out, by endpoint. original: for each endpoint that is left, its number in the whole. 0; or -1 when what
 * is left is no network or has none of the pairs of --pairs, and nothing is changed. */
int xb_whole_without(struct xb_whole *whole, const unsigned char *out, struct xb_config *config,
		     uint32_t *original);
/* Gives the configuration back as it was. */
void xb_whole_end(struct xb_whole *whole, struct xb_config *config);

/* One retest: a pair to run, and whose violations it judges. */
struct xb_retest {
	uint32_t a, b; /* endpoints */
	int of_node; /* judges every violation that is blamed on `node`; else those of the pair itself */
	uint32_t node;
};

/* The next violation that has not been measured again, and with whom: a node that is blamed against a partner
 * without violations, a link with its own ends. 0 when there is none. */
int xb_retest_next(const struct xb_rulings *rulings, uint32_t endpoints, struct xb_retest *retest);
/* Is this violation among those that the retest judges? */
int xb_retest_covers(const struct xb_retest *retest, const struct xb_ruling *ruling);
/* Is the limit one on what is typical of all pairs, which with one pair at a time may be something else? */
int xb_limit_is_among_pairs(const struct xb_limit *limit);
/* For the first such limit that the retest judges, the pair that passed nearest to what is typical: what it
 * has alone tells what pairs have alone. 0 when there is none. */
int xb_reference_choose(const struct xb_rulings *rulings, const struct xb_retest *retest, uint32_t *a,
			uint32_t *b);
/* Takes what the pair a, b had alone (rulings on its document, whose endpoints are 0 and 1) as the measure of
 * all retests. */
void xb_reference_take(struct xb_rulings *rulings, uint32_t a, uint32_t b, const struct xb_rulings *alone);
/* Its verdicts on the violations that it judges. fresh: the rulings on its document, whose endpoints are 0
 * and 1; launch_s: what a launch of it took. */
void xb_retest_take(struct xb_rulings *rulings, const struct xb_retest *retest,
		    const struct xb_rulings *fresh, double launch_s);
/* What a retest says of causes: a node that passes with another partner leaves its violations to its links,
 * and those are measured in turn. */
void xb_retest_conclude(struct xb_rulings *rulings, const struct xb_retest *retest);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_REPORT_SAMPLES_H
#define XB_REPORT_SAMPLES_H
/* Whole documents made by hand, as a run would leave them: complete, interrupted, with failures. */
#include "report_fixture.h"

#define FOUR "-t tcp,ofi:tcp,ucx:tcp,mpi:tcp -s 1:4M"

/* Time of one message over the t-th of FOUR, ns: a fabric of 5 us and 4 GB/s, and what layers do to it. */
static inline double sample_ns(size_t t, size_t size)
{
	double bytes = (double)size, base = 5000.0 + bytes / 4.0;
	switch (t) {
	case 0:
		return base;
	case 1: /* a constant, and a copy from 64 KiB on */
		return base + 1120.0 + (size >= 65536 ? bytes / 20.0 : 0.0);
	case 2: /* the same but for large messages, which it moves better */
		return base + (size >= 1048576 ? -bytes / 40.0 : 0.0);
	default: /* a constant, then a rendezvous */
		return base + 1700.0 + (size > 8192 ? 12000.0 : 0.0);
	}
}

/* Launches first ... first+n-1 of all transports of the configuration but the skipped one (SIZE_MAX: none).
 */
static inline void sample_launches(struct fixture *f, unsigned first, unsigned n, size_t skipped)
{
	static const double noise[] = {-0.010, 0.004, -0.002, 0.0, 0.003, 0.008, -0.006, 0.001, -0.003};
	const struct xb_config *c = &f->line.config;
	static struct xb_histogram h; /* large */
	for (unsigned l = first; l < first + n; l++) {
		for (size_t b = 0; b < c->bench_count; b++)
			for (size_t s = 0; s < c->size_count; s++)
				for (size_t t = 0; t < c->transport_count; t++)
					for (unsigned round = 0; t != skipped && round < 3; round++) {
						double share = noise[(l * 3 + round + t * 5 + s * 7) % 9];
						double ns = sample_ns(t, c->sizes[s]) * (1.0 + share);
						if (c->benches[b] != XB_BENCH_PINGPONG)
							ns = ns / 10.0 + (double)c->sizes[s] / 8.0;
						xb_hist_clear(&h);
						for (int i = 0; i < 100; i++)
							xb_hist_add(&h, (uint64_t)(ns * (0.99 + 0.0002 * i)));
						struct xb_block_record record = {.transport = t,
										 .bench = c->benches[b],
										 .size_bytes = c->sizes[s],
										 .launch = l,
										 .round = round,
										 .iterations = 100,
										 .messages_per_iteration = 1,
										 .median_ns = ns,
										 .histogram = &h,
										 .verified = 1,
										 .imposed_delay_ns = NAN};
						xb_results_add_block(f->results, &record);
					}
		xb_results_launch_done(f->results, l);
	}
}

static inline void sample_surroundings(struct fixture *f)
{
	struct xb_results *r = f->results;
	static const char *const resolved[] = {"tcp 127.0.0.1 -> 127.0.0.1 on lo",
					       "tcp;ofi_rxm on lo 127.0.0.1", "tcp/lo",
					       "pml ob1, btl tcp on lo"};
	static const char *const library[] = {"Linux TCP", "libfabric", "UCX", "Open MPI"};
	static const char *const version[] = {"6.1.0-18-amd64", "1.17.0", "1.13.1", "4.1.4"};
	static const enum xb_layer layer[] = {XB_LAYER_FABRIC, XB_LAYER_MIDDLEWARE, XB_LAYER_MIDDLEWARE,
					      XB_LAYER_MPI};
	json_t *host = json_pack("{s:s, s:s, s:s, s:s, s:[i,i]}", "name", "node1", "boot_id",
				 "0f2f0c5e-0000-4000-8000-000000000000", "kernel", "6.1.0-18-amd64", "cpu",
				 "AMD EPYC 7763 64-Core Processor", "cpus_used", 2, 3);
	xb_results_host(r, host);
	json_decref(host);
	xb_results_timer(r, "tsc", 16.0, 1.0, 0.02);
	for (size_t t = 0; t < f->line.config.transport_count && t < 4; t++) {
		xb_results_transport_description(r, t, resolved[t], library[t], version[t],
						 t == 0 ? "lo" : "", layer[t]);
		for (int l = 0; l < 9; l++)
			xb_results_transport_start_ms(r, t, t == 3 ? 480.0 + l : 12.0 + l);
		xb_results_evidence(r, t, "node1", NULL, NULL, 0, 0, 1000000000);
		xb_results_evidence(r, t, "node1", "lo", "loopback", 1040000000, 1040000000, 0);
		xb_results_evidence(r, t, "node1", "eth0", "netdev", 5000, 9000, 0);
	}
}

static inline json_t *sample_end(struct fixture *f, const char *stopped_by)
{
	xb_results_controller(f->results, 0.004, 21.5, 0);
	if (stopped_by != NULL) {
		xb_results_stopped_by(f->results, stopped_by);
		xb_results_conclude(f->results);
	}
	json_t *document = xb_results_document(f->results);
	assert_non_null(document);
	fixture_end(f);
	return document;
}

static inline json_t *sample_complete(void)
{
	struct fixture f;
	fixture_begin(&f, FOUR);
	sample_surroundings(&f);
	sample_launches(&f, 0, 9, SIZE_MAX);
	return sample_end(&f, "ci");
}

static inline json_t *sample_all_benches(void)
{
	struct fixture f;
	fixture_begin(&f, "-t tcp,ofi:tcp,ucx:tcp,mpi:tcp -s 0,1,1000,64K,1M -b pingpong,bw,bibw");
	sample_surroundings(&f);
	sample_launches(&f, 0, 9, SIZE_MAX);
	return sample_end(&f, "time");
}

/* As found on disk while the second launch runs. */
static inline json_t *sample_running(void)
{
	struct fixture f;
	fixture_begin(&f, FOUR);
	sample_surroundings(&f);
	sample_launches(&f, 0, 1, SIZE_MAX);
	add_block(f.results, 0, XB_BENCH_PINGPONG, 1, 1, 0, 5000.0);
	return sample_end(&f, NULL);
}

static inline json_t *sample_nothing_yet(void)
{
	struct fixture f;
	fixture_begin(&f, FOUR);
	return sample_end(&f, NULL);
}

static inline json_t *sample_interrupted(void)
{
	struct fixture f;
	fixture_begin(&f, FOUR);
	sample_surroundings(&f);
	sample_launches(&f, 0, 3, SIZE_MAX);
	return sample_end(&f, "interrupted");
}

/* One never came up, one died after four launches; one finding of every severity. */
static inline json_t *sample_failures(void)
{
	struct fixture f;
	struct xb_results *r = fixture_begin(&f, FOUR);
	sample_surroundings(&f);
	sample_launches(&f, 0, 4, 1);
	xb_results_transport_status(
		r, 1, "unavailable",
		"asked for ofi:tcp; libfabric offers no provider tcp here; install libfabric1 or choose "
		"another path (xportbench list)");
	xb_results_transport_status(
		r, 3, "failed",
		"worker 1 was killed by signal 9 (Killed) in pingpong at 64 bytes, round 2 of launch 5");
	f.line.config.transport_count = 3; /* the fourth takes no part in the rest */
	sample_launches(&f, 4, 3, 1);
	f.line.config.transport_count = 4;
	xb_results_finding(r, "invalid", "same-cpu", NULL, NULL, SIZE_MAX, "both endpoints run on CPU 2");
	xb_results_finding(r, "warning", "steal", NULL, NULL, SIZE_MAX,
			   "the hypervisor took 4.0 % of the CPU time");
	return sample_end(&f, "fixed");
}

static inline json_t *sample_baseline_failed(void)
{
	struct fixture f;
	struct xb_results *r = fixture_begin(&f, FOUR);
	sample_surroundings(&f);
	sample_launches(&f, 0, 7, 0);
	xb_results_transport_status(r, 0, "failed", "the port is taken");
	return sample_end(&f, "fixed");
}

static inline json_t *sample_alone(void)
{
	struct fixture f;
	fixture_begin(&f, "-t tcp -s 1:4M -b pingpong,bw");
	sample_surroundings(&f);
	sample_launches(&f, 0, 7, SIZE_MAX);
	return sample_end(&f, "ci");
}

static const struct {
	const char *name;
	json_t *(*make)(void);
} samples[] = {{"complete", sample_complete},
	       {"all-benches", sample_all_benches},
	       {"running", sample_running},
	       {"nothing-yet", sample_nothing_yet},
	       {"interrupted", sample_interrupted},
	       {"failures", sample_failures},
	       {"baseline-failed", sample_baseline_failed},
	       {"alone", sample_alone}};
#define SAMPLE_COUNT (sizeof(samples) / sizeof(samples[0]))

#endif

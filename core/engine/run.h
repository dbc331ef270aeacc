/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XB_RUN_H
#define XB_RUN_H
/*
 * State of one block on one side, and the parts that it is made of; private to core/engine.
 *
 * The initiator leads: it sends a control message for everything that follows, over the same operations as
 * the data, and the responder serves them in a loop until the last one. In this order:
 *
 *   hello     both ways: the parameters of the block, which must be the same
 *   step      n iterations are next; answered by go as soon as the responder's receives are posted. Warm-up
 * is some steps, the timed part is one. (After one-sided operations the initiator sends sync: look at the
 * memory.) verify    fresh payload, from either side (answered by go where the other has to be ready first)
 *   done      both ways, with the verdict: both sides are idle now
 */
#include "block.h"
#include "loop.h"
#include "payload.h"

enum xb_control_kind {
	XB_CONTROL_HELLO = 1,
	XB_CONTROL_STEP,
	XB_CONTROL_GO,
	XB_CONTROL_SYNC,
	XB_CONTROL_VERIFY,
	XB_CONTROL_DONE,
};

/* XB_AGREE_BYTES in memory order of the machine: both ends of a fabric have the same, or the magic differs.
 */
struct xb_control {
	uint64_t magic;
	uint32_t kind;
	union {
		uint32_t number; /* step: its number; verify: number of the first message */
		uint32_t depth; /* hello of a swap: messages in a batch, as asked for */
	};
	uint64_t nonce;
	uint64_t size_bytes;
	uint64_t count; /* step: iterations; verify: messages */
	union {
		uint64_t budget_ns; /* time that the responder may take for what was announced */
		uint64_t swap; /* hello of a swap: all of it but the depth, packed */
	};
	uint32_t window;
	uint8_t bench, op;
	uint8_t who; /* hello: 1 initiator, 0 responder; verify: enum xb_direction of the data; done: verdict
		      */
	uint8_t timed; /* step: enum xb_part */
	uint64_t check; /* over all before */
};
_Static_assert(sizeof(struct xb_control) == XB_AGREE_BYTES, "control messages have one fixed size");

enum xb_part { XB_PART_WARMUP, XB_PART_TIMED, XB_PART_VERIFY /* swap only */ };

struct xb_run {
	struct xb_endpoint *endpoint;
	const struct xb_block *block;
	struct xb_block_result *result;
	struct xb_loop loop;
	struct xb_loop_pair loops;
	uint32_t window; /* messages per iteration and direction; swap: messages in a batch */
	enum xb_part part; /* of the step that runs */
	enum xb_direction mine, theirs;
	int i_send_data, i_receive_data;
	unsigned char *control_send, *control_recv;
	void *control_recv_request;
	uint32_t step; /* number and iterations of the last step, for sync */
	uint64_t step_iterations;
	uint64_t previous_stamp; /* of the last message received in the step before; 0: none */
	uint64_t estimate_ns; /* of one iteration, initiator; 0 = not known yet */
	uint64_t step_wall_ns; /* of the last step, with what is done between its iterations */
	uint64_t wall_ns; /* the least of an iteration so far; 0 = not known yet */
	/* A wrong payload does not end the protocol: the first finding is kept and the rest goes on, so that
	 * both sides end the block idle. */
	int verdict;
	struct xb_error finding;
};

/* --- agree.c: control messages. Each returns 0 or a negative status with *error. */
int xb_control_send(struct xb_run *run, struct xb_control *message, struct xb_error *error);
/* Posts the receive of the next control message; other receives may be posted behind it before it is waited
 * for. */
int xb_control_post(struct xb_run *run, struct xb_error *error);
/* Waits for the posted control message, which must be of `kind` (0: any) and of this block. */
int xb_control_wait(struct xb_run *run, uint32_t kind, struct xb_control *message, struct xb_error *error);
int xb_control_receive(struct xb_run *run, uint32_t kind, struct xb_control *message, struct xb_error *error);
int xb_control_hello(struct xb_run *run, struct xb_error *error);

/* --- steps.c: warm-up and timed part */
int xb_steps_lead(struct xb_run *run, struct xb_error *error); /* initiator: all steps; fills the result */
int xb_steps_verify_swap(struct xb_run *run, struct xb_error *error); /* initiator: one more, fresh payload */
int xb_step_serve(struct xb_run *run, const struct xb_control *message, struct xb_error *error);
void xb_step_sync(struct xb_run *run); /* one-sided: the last step has ended, its data must be in my memory */
int xb_steps_alone(struct xb_run *run, struct xb_error *error); /* nothing can be agreed (null) */

/* --- verify.c: fresh payload */
int xb_verify_lead(struct xb_run *run, struct xb_error *error);
int xb_verify_serve(struct xb_run *run, const struct xb_control *message, struct xb_error *error);
uint32_t xb_verify_messages(const struct xb_run *run); /* of one exchange */

/* --- block.c: shared by the parts */
/* The error of a failed hot operation: asks the transport, or says that the abort flag was seen. Returns the
 * status. */
int xb_run_failed(struct xb_run *run, int status, struct xb_error *error);
void xb_run_deadline(struct xb_run *run, uint64_t from_now_ns);
/* A generous time for `messages` of this block's size when nothing has been measured yet. */
uint64_t xb_run_allowance_ns(const struct xb_run *run, uint64_t messages);
void xb_run_finding(struct xb_run *run, int status, const struct xb_error *error);
void xb_run_count_sent(struct xb_run *run, uint64_t messages, size_t bytes_each);
struct xb_payload_context xb_run_context(const struct xb_run *run, const char *part);
/* Seeds of the block: what the send buffer holds during steps, stamps of a step, fresh messages. */
uint64_t xb_run_base_seed(const struct xb_run *run, enum xb_direction from);
uint64_t xb_run_message_seed(const struct xb_run *run, enum xb_direction from, uint32_t message); /* swap */
uint64_t xb_run_stamp(const struct xb_run *run, enum xb_direction from, uint32_t step);
uint64_t xb_run_fresh_seed(const struct xb_run *run, enum xb_direction from, uint64_t message);

/* For the result: ticks between count+1 consecutive reads in samples[] become the histogram and the median.
 */
void xb_samples_evaluate(uint64_t *samples, uint64_t count, double ns_per_tick, double divisor,
			 struct xb_histogram *histogram, double *median_ns);

#endif

/* worker.h - what the workloads of a worker share: the device they run on, and how they tell what
 * came of an iteration. */
#ifndef GRETA_CAMPAIGN_WORKER_H
#define GRETA_CAMPAIGN_WORKER_H

#include "campaign/job.h"
#include "campaign/pulse.h"
#include "campaign/stress.h"
#include "engine/engine.h"
#include "event/fan.h"
#include "ops/ops.h"

/* Slots of staging memory every worker has; the streams workload holds most of them at a time. */
#define WORKER_SLOT_COUNT 16u

/* What the device was asked to do, counted as events arrive. */
struct worker_counts {
    uint64_t launches, copies_out, copy_out_bytes; /* atomic */
};

struct worker {
    const struct job *job;
    int results; /* descriptor lines are appended to */
    int log;     /* the same for people; -1: none */
    struct device *device;
    struct ops ops;
    uint64_t run_number; /* iterations begun, of all workloads */
    uint64_t beat_ns;    /* atomic: when progress was last reported to the auditor */
    bool silent;         /* atomic: a line could not be written */
    struct pulse *pulse; /* NULL: none */
    struct worker_counts counts;
    struct event_fan fan; /* the flight file and the counts */
};

/* Appends a line; takes it. What cannot be written is lost and remembered. From any thread. */
void worker_tell(struct worker *worker, json_t *line);
/* Appends a line for people to the row's log. */
void worker_log(struct worker *worker, const char *format, ...) PRINTF_LIKE(2, 3);
/* Progress that leaves no crumb, at most twice a second. */
void worker_beat(struct worker *worker);
/* The workload is set up: from here on the device works, and crumbs show its progress. */
void worker_ready(struct worker *worker);

/* What came of an iteration. */
struct worker_run {
    const char *work; /* "infer" */
    uint64_t key;     /* equal for iterations that must give equal results */
    uint64_t begin_ns;
    uint64_t tokens, prompt_tokens; /* of infer */
    uint64_t prompt_ns, decode_ns;
    uint64_t result; /* hash of the generated tokens: equal for equal results */
};
/* Reports the beginning of an iteration to the device. */
MUST_CHECK enum status worker_run_begin(struct worker *worker, struct worker_run *run,
                                        struct error *err);
/* Tells the auditor how it ended; err is of a failed one. */
void worker_run_end(struct worker *worker, const struct worker_run *run, enum status status,
                    const struct error *err);

/* work_infer.c: a model, loaded once. */
struct work_infer;
MUST_CHECK enum status work_infer_open(struct worker *worker, struct work_infer **ret_work,
                                       struct error *err);
void work_infer_close(struct work_infer *work); /* NULL is fine */
/* Every weight's bytes on the device against the file. */
MUST_CHECK enum status work_infer_check_weights(struct work_infer *work, struct error *err);
/* One iteration; a failure is written as a line and returned, STATUS_LOST ends the row. */
MUST_CHECK enum status work_infer_run(struct work_infer *work, uint32_t iteration,
                                      struct error *err);
/* work_compare.c: a model once, every op once more on the host. */
MUST_CHECK enum status work_compare_run(struct worker *worker, struct error *err);
struct shadow;
/* The shadow takes the model's weights from its file. */
MUST_CHECK enum status work_infer_mirror(struct work_infer *work, struct shadow *shadow,
                                         struct error *err);
/* work_tensors.c: every tensor's bytes on the device against the file. */
MUST_CHECK enum status work_tensors_check(struct worker *worker, const struct engine *engine,
                                          const struct gguf_file *file, struct error *err);

/* work_streams.c: several streams, marks, copies, graphs, staging, odd sizes; its results are
 * checked on the host. */
struct work_streams;
extern const char *const work_streams_labels[];
extern const size_t work_streams_label_count;
extern const uint64_t work_streams_step_count; /* steps of a round */
MUST_CHECK enum status work_streams_open(struct worker *worker, struct work_streams **ret_work,
                                         struct error *err);
void work_streams_close(struct work_streams *work); /* NULL is fine */
MUST_CHECK enum status work_streams_run(struct work_streams *work, uint32_t iteration,
                                        struct error *err);

/* work_busy.c: job->busy_streams streams that are given work and wait for nothing. */
#define WORK_BUSY_STREAM_LIMIT 8u
struct work_busy;
MUST_CHECK enum status work_busy_open(struct worker *worker, struct work_busy **ret_work,
                                      struct error *err);
void work_busy_close(struct work_busy *work); /* NULL is fine */
MUST_CHECK enum status work_busy_run(struct work_busy *work, uint32_t iteration, struct error *err);

/* work_transfers.c: every copy path. */
/* Bytes of a staging slot where large copies are timed; a much larger copy goes in parts. */
#define WORK_TRANSFERS_SLOT_BYTES ((uint64_t)16 << 20)
MUST_CHECK enum status work_transfers_run(struct worker *worker, struct error *err);

#endif

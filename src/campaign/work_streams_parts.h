/* work_streams_parts.h - what the streams workload owns: streams, marks, buffers, and the graph
 * that has their size baked in; for work_streams.c. */
#ifndef GRETA_CAMPAIGN_WORK_STREAMS_PARTS_H
#define GRETA_CAMPAIGN_WORK_STREAMS_PARTS_H

#include "campaign/worker.h"

#define STREAMS_TABLE_ROWS 13u
#define STREAMS_PICKED_ROWS 7u
#define STREAMS_WIDTH_LEAST 33u
#define STREAMS_WIDTH_STEPS 5u /* widths cycle through so many odd numbers, one per resize */

struct work_streams {
    struct worker *worker;
    struct device *device;
    struct device_stream compute, second, copy;
    struct device_mark arrived, picked_done, totalled, chosen;
    struct device_graph graph;
    bool has_graph;
    uint32_t width;
    struct device_view table, rows, picked, total, echo, shadow, best;
    float *host_table;    /* [width, STREAMS_TABLE_ROWS] */
    float *host_expected; /* [width, STREAMS_PICKED_ROWS] */
    int32_t host_rows[STREAMS_PICKED_ROWS];
    int32_t round;
    uint64_t random; /* where values come from */
    uint64_t pauses; /* where pauses come from: values must not depend on them */
    struct stress_draw draw;
};

/* Steps of a round, as calls are labelled with. */
enum { STEP_IN, STEP_COMPUTE, STEP_TOTAL, STEP_OUT, STEP_GUEST, STEP_COUNT };

/* The stream's next calls are of that step and tensor. */
void streams_label(struct work_streams *work, struct device_stream stream, int32_t step,
                   const char *tensor);
struct ops_target streams_target(struct work_streams *work, struct device_stream stream,
                                 struct device_site site);
/* Gives its buffer back. */
void streams_drop_view(struct work_streams *work, struct device_view *view);

/* With worker and device set. Close it whatever the outcome. */
MUST_CHECK enum status streams_parts_open(struct work_streams *work, struct error *err);
/* Makes everything whose size changes again, and the graph that has it baked in. No work is
 * queued. */
MUST_CHECK enum status streams_parts_resize(struct work_streams *work, uint32_t width,
                                            struct error *err);
void streams_parts_close(struct work_streams *work);

#endif

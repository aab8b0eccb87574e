/* work_streams.c - a small workload of what an engine with one stream never does: three streams
 * ordered by marks, a graph that is replayed and, after a resize, recorded again, many tickets held
 * at a time, copies on two streams, buffers that come and go, rows of odd length.
 *
 * A round, on the streams compute, second and copy:
 *
 *     copy:    table, rows in --arrived--> compute: picked = table[rows]; best = argmax(picked)
 *     compute: --picked--> second: total = 0; total += picked; replay { echo = 0; echo += picked;
 *                                  total += echo; shadow = total }
 *     second:  --totalled--> copy: shadow out in parts (half of them on second), best out
 *
 * Every value is a small whole number, so results are exact on any device and are compared with
 * what the host computes. Everything is ordered by marks alone: leaving one out is a race. */
#include "campaign/worker.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_ROWS 13u
#define PICKED_ROWS 7u
#define WIDTH_LEAST 33u
#define WIDTH_STEPS 5u     /* widths cycle through so many odd numbers, one per resize */
#define RESIZE_INTERVAL 4u /* rounds between resizes */
#define PARTS (WORKER_SLOT_COUNT - 2)

struct work_streams {
    struct worker *worker;
    struct device *device;
    struct device_stream compute, second, copy;
    struct device_mark arrived, picked_done, totalled, chosen;
    struct device_graph graph;
    bool has_graph;
    uint32_t width;
    struct device_view table, rows, picked, total, echo, shadow, best;
    float *host_table;    /* [width, TABLE_ROWS] */
    float *host_expected; /* [width, PICKED_ROWS] */
    int32_t host_rows[PICKED_ROWS];
    int32_t round;
    uint64_t random; /* where values come from */
    uint64_t pauses; /* where pauses come from: values must not depend on them */
    struct stress_draw draw;
};

/* ---- Parts ---------------------------------------------------------------------------------- */

/* Steps of a round, as calls are labelled with. */
enum { STEP_IN, STEP_COMPUTE, STEP_TOTAL, STEP_OUT, STEP_GUEST, STEP_COUNT };
const uint64_t work_streams_step_count = STEP_COUNT;

const char *const work_streams_labels[] = {
    "streams.table", "streams.rows", "streams.picked", "streams.best",  "streams.total",
    "streams.graph", "streams.echo", "streams.shadow", "streams.guest",
};
const size_t work_streams_label_count = COUNT_OF(work_streams_labels);

static void label(struct work_streams *work, struct device_stream stream, int32_t step,
                  const char *tensor)
{
    struct event_scope scope = { .step = step, .layer = -1 };
    event_set_text(scope.tensor, sizeof(scope.tensor), tensor);
    device_scope_set(work->device, stream, &scope);
    stress_pause(&work->draw, &work->pauses);
}

static struct ops_target target_on(struct work_streams *work, struct device_stream stream,
                                   struct device_site site)
{
    return (struct ops_target){ &work->worker->ops, stream, site };
}

static enum status make_view(struct work_streams *work, const char *name, enum dtype dtype,
                             uint64_t width, uint64_t rows, struct device_view *ret_view,
                             struct error *err)
{
    uint64_t dims[] = { width, rows };
    struct device_view view = { .dtype = dtype,
                                .shape = dtype == DTYPE_I32 ? shape_make(1, &rows)
                                                            : shape_make(2, dims) };
    TRY(device_buffer_create(work->device, (dtype == DTYPE_I32 ? 1 : width) * rows * sizeof(float),
                             name, DEVICE_HERE, &view.buffer, err));
    *ret_view = view;
    return STATUS_OK;
}

static void drop_view(struct work_streams *work, struct device_view *view)
{
    struct device_buffer buffer = view->buffer;
    *view = (struct device_view){ 0 };
    if (buffer.index)
        device_buffer_destroy(work->device, buffer, DEVICE_HERE);
}

static enum status record_graph(struct work_streams *work, struct error *err)
{
    struct ops_target target = target_on(work, work->second, DEVICE_HERE);
    label(work, work->second, STEP_TOTAL, "streams.graph");
    TRY(device_graph_begin(work->device, work->second, DEVICE_HERE, err));
    enum status status = device_fill(work->device, work->second, &work->echo, 0, DEVICE_HERE, err);
    if (!status)
        status = ops_add(&target, &work->echo, &work->picked, err);
    if (!status)
        status = ops_add(&target, &work->total, &work->echo, err);
    if (!status)
        status = device_copy_within(work->device, work->second, &work->shadow, &work->total,
                                    DEVICE_HERE, err);
    struct error second;
    enum status ended = device_graph_end(work->device, work->second, DEVICE_HERE, &work->graph,
                                         status ? &second : err);
    work->has_graph = !ended;
    return status ? status : ended;
}

static void drop_sized(struct work_streams *work)
{
    struct device_view *views[] = { &work->table, &work->picked, &work->total, &work->echo,
                                    &work->shadow };
    if (work->has_graph) {
        work->has_graph = false;
        device_graph_destroy(work->device, work->graph, DEVICE_HERE);
    }
    for (size_t i = 0; i < COUNT_OF(views); i++)
        drop_view(work, views[i]);
}

/* Everything whose size changes, and the graph that has it baked in. No work is queued. */
static enum status resize(struct work_streams *work, uint32_t width, struct error *err)
{
    drop_sized(work);
    work->width = width;
    TRY(make_view(work, "streams.table", DTYPE_F32, width, TABLE_ROWS, &work->table, err));
    TRY(make_view(work, "streams.picked", DTYPE_F32, width, PICKED_ROWS, &work->picked, err));
    TRY(make_view(work, "streams.total", DTYPE_F32, width, PICKED_ROWS, &work->total, err));
    TRY(make_view(work, "streams.echo", DTYPE_F32, width, PICKED_ROWS, &work->echo, err));
    TRY(make_view(work, "streams.shadow", DTYPE_F32, width, PICKED_ROWS, &work->shadow, err));
    return record_graph(work, err);
}

/* ---- A round -------------------------------------------------------------------------------- */

static uint32_t width_of(uint32_t round)
{
    return WIDTH_LEAST + 2 * (round / RESIZE_INTERVAL % WIDTH_STEPS);
}

static void make_values(struct work_streams *work)
{
    uint32_t width = work->width;
    for (uint32_t i = 0; i < width * TABLE_ROWS; i++)
        work->host_table[i] = (float)(stress_random(&work->random) % 1000);
    for (uint32_t r = 0; r < PICKED_ROWS; r++) {
        work->host_rows[r] = (int32_t)(stress_random(&work->random) % TABLE_ROWS);
        for (uint32_t c = 0; c < width; c++)
            work->host_expected[r * width + c] =
                2 * work->host_table[(uint32_t)work->host_rows[r] * width + c];
    }
}

static enum status copy_values_in(struct work_streams *work, struct error *err)
{
    struct device *device = work->device;
    label(work, work->copy, STEP_IN, "streams.table");
    TRY(device_copy_in(device, work->copy, &work->table, work->host_table,
                       (uint64_t)work->width * TABLE_ROWS * sizeof(float), DEVICE_HERE, err));
    label(work, work->copy, STEP_IN, "streams.rows");
    TRY(device_copy_in(device, work->copy, &work->rows, work->host_rows, sizeof(work->host_rows),
                       DEVICE_HERE, err));
    return device_mark_record(device, work->copy, work->arrived, DEVICE_HERE, err);
}

static enum status compute(struct work_streams *work, struct error *err)
{
    struct device *device = work->device;
    struct ops_target target = target_on(work, work->compute, DEVICE_HERE);
    label(work, work->compute, STEP_COMPUTE, "streams.picked");
    TRY(device_mark_wait(device, work->compute, work->arrived, DEVICE_HERE, err));
    TRY(ops_gather_rows(&target, &work->table, &work->rows, &work->picked, err));
    TRY(device_mark_record(device, work->compute, work->picked_done, DEVICE_HERE, err));
    label(work, work->compute, STEP_COMPUTE, "streams.best");
    TRY(ops_argmax(&target, &work->picked, &work->best, NULL, err));
    TRY(device_mark_record(device, work->compute, work->chosen, DEVICE_HERE, err));

    target = target_on(work, work->second, DEVICE_HERE);
    label(work, work->second, STEP_TOTAL, "streams.total");
    TRY(device_mark_wait(device, work->second, work->picked_done, DEVICE_HERE, err));
    TRY(device_fill(device, work->second, &work->total, 0, DEVICE_HERE, err));
    TRY(ops_add(&target, &work->total, &work->picked, err));
    label(work, work->second, STEP_TOTAL, "streams.graph");
    TRY(device_graph_replay(device, work->second, work->graph, DEVICE_HERE, err));
    return device_mark_record(device, work->second, work->totalled, DEVICE_HERE, err);
}

static enum status compare(const char *what, const void *expected, const void *found, size_t bytes,
                           struct error *err)
{
    const uint8_t *a = expected, *b = found;
    for (size_t i = 0; i < bytes; i++)
        if (a[i] != b[i])
            return error_set(err, STATUS_REFUSED,
                             "%s: expected byte %zu of %zu to be 0x%02x, found 0x%02x", what, i,
                             bytes, a[i], b[i]);
    return STATUS_OK;
}

static enum status redeem(struct work_streams *work, struct device_ticket ticket, const char *what,
                          const void *expected, uint64_t bytes, struct error *err)
{
    const void *landed;
    uint64_t count;
    TRY(device_ticket_redeem(work->device, ticket, DEVICE_HERE, &landed, &count, err));
    if (count != bytes)
        return error_set(err, STATUS_REFUSED, "%s: expected %" PRIu64 " bytes, found %" PRIu64,
                         what, bytes, count);
    return compare(what, expected, landed, (size_t)bytes, err);
}

/* Part i of the shadow: all but the last have equal, odd lengths. */
static struct device_view part_of(const struct work_streams *work, uint32_t i, uint64_t *ret_at)
{
    uint64_t values = (uint64_t)work->width * PICKED_ROWS, each = values / PARTS;
    uint64_t count = i + 1 == PARTS ? values - each * (PARTS - 1) : each;
    struct device_view part = work->shadow;
    part.shape = shape_make(1, &count);
    part.offset_bytes = i * each * sizeof(float);
    *ret_at = i * each;
    return part;
}

static enum status copy_results_out(struct work_streams *work, struct error *err)
{
    struct device *device = work->device;
    struct device_ticket tickets[PARTS + 1];
    uint32_t held = 0;
    enum status status;
    label(work, work->copy, STEP_OUT, "streams.shadow");
    label(work, work->second, STEP_OUT, "streams.shadow");
    status = device_mark_wait(device, work->copy, work->totalled, DEVICE_HERE, err);
    for (uint32_t i = 0; i < PARTS && !status; i++) {
        uint64_t at;
        struct device_view part = part_of(work, i, &at);
        status = device_copy_out(device, i % 2 ? work->second : work->copy, &part, DEVICE_HERE,
                                 &tickets[held], err);
        held += !status;
    }
    if (!status) {
        label(work, work->copy, STEP_OUT, "streams.best");
        status = device_mark_wait(device, work->copy, work->chosen, DEVICE_HERE, err);
    }
    if (!status) {
        status = device_copy_out(device, work->copy, &work->best, DEVICE_HERE, &tickets[held], err);
        held += !status;
    }
    for (uint32_t i = 0; i < held && !status; i++) {
        uint64_t at, bytes;
        if (i == PARTS) {
            int32_t best[PICKED_ROWS];
            for (uint32_t r = 0; r < PICKED_ROWS; r++) {
                const float *row = work->host_expected + r * work->width;
                best[r] = 0;
                for (uint32_t c = 1; c < work->width; c++)
                    if (row[c] > row[best[r]])
                        best[r] = (int32_t)c;
            }
            status = redeem(work, tickets[i], "streams.best", best, sizeof(best), err);
            continue;
        }
        struct device_view part = part_of(work, i, &at);
        bytes = part.shape.dims[0] * sizeof(float);
        status = redeem(work, tickets[i], "streams.shadow", work->host_expected + at, bytes, err);
    }
    for (uint32_t i = 0; i < held; i++)
        device_ticket_release(device, tickets[i], DEVICE_HERE);
    return status;
}

/* A buffer that lives for a moment: made, written, waited for, given back. */
static enum status pass_by(struct work_streams *work, struct error *err)
{
    struct device *device = work->device;
    struct device_view guest = { 0 };
    uint64_t bytes = 1 + stress_random(&work->random) % 10007;
    TRY(device_buffer_create(device, bytes, "streams.guest", DEVICE_HERE, &guest.buffer, err));
    guest.dtype = DTYPE_I8;
    guest.shape = shape_make(1, &bytes);
    label(work, work->copy, STEP_GUEST, "streams.guest");
    enum status status = device_fill(device, work->copy, &guest, 1, DEVICE_HERE, err);
    if (!status)
        status = device_stream_sync(device, work->copy, DEVICE_HERE, err);
    drop_view(work, &guest);
    return status;
}

static enum status run_round(struct work_streams *work, struct error *err)
{
    if (work->round > 0 && work->round % RESIZE_INTERVAL == 0) {
        TRY(device_stream_sync(work->device, work->compute, DEVICE_HERE, err));
        TRY(device_stream_sync(work->device, work->second, DEVICE_HERE, err));
        TRY(device_stream_sync(work->device, work->copy, DEVICE_HERE, err));
        TRY(resize(work, width_of((uint32_t)work->round), err));
    }
    make_values(work);
    TRY(copy_values_in(work, err));
    TRY(compute(work, err));
    TRY(copy_results_out(work, err));
    return pass_by(work, err);
}

/* ---- Life ----------------------------------------------------------------------------------- */

static enum status open_parts(struct work_streams *work, struct error *err)
{
    struct device *device = work->device;
    uint32_t widest = WIDTH_LEAST + 2 * WIDTH_STEPS;
    work->host_table = calloc((size_t)widest * TABLE_ROWS, sizeof(float));
    work->host_expected = calloc((size_t)widest * PICKED_ROWS, sizeof(float));
    if (!work->host_table || !work->host_expected)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the streams workload");
    TRY(device_stream_create(device, DEVICE_HERE, &work->compute, err));
    work->second = work->copy = work->compute;
    if (!work->worker->job->single_stream) {
        TRY(device_stream_create(device, DEVICE_HERE, &work->second, err));
        TRY(device_stream_create(device, DEVICE_HERE, &work->copy, err));
    }
    TRY(device_mark_create(device, &work->arrived, err));
    TRY(device_mark_create(device, &work->picked_done, err));
    TRY(device_mark_create(device, &work->totalled, err));
    TRY(device_mark_create(device, &work->chosen, err));
    TRY(make_view(work, "streams.rows", DTYPE_I32, 0, PICKED_ROWS, &work->rows, err));
    TRY(make_view(work, "streams.best", DTYPE_I32, 0, PICKED_ROWS, &work->best, err));
    return resize(work, WIDTH_LEAST, err);
}

enum status work_streams_open(struct worker *worker, struct work_streams **ret_work,
                              struct error *err)
{
    struct work_streams *work = calloc(1, sizeof(*work));
    if (!work)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the streams workload");
    work->worker = worker;
    work->device = worker->device;
    enum status status = open_parts(work, err);
    if (status)
        work_streams_close(work);
    else
        *ret_work = work;
    return status;
}

void work_streams_close(struct work_streams *work)
{
    if (!work)
        return;
    const struct device_stream streams[] = { work->compute, work->second, work->copy };
    /* Waits for their work. */
    for (size_t i = 0; i < COUNT_OF(streams); i++)
        if (streams[i].index && (i == 0 || streams[i].index != work->compute.index))
            device_stream_destroy(work->device, streams[i], DEVICE_HERE);
    drop_sized(work);
    drop_view(work, &work->rows);
    drop_view(work, &work->best);
    const struct device_mark marks[] = { work->arrived, work->picked_done, work->totalled,
                                         work->chosen };
    for (size_t i = 0; i < COUNT_OF(marks); i++)
        if (marks[i].index)
            device_mark_destroy(work->device, marks[i]);
    free(work->host_table);
    free(work->host_expected);
    free(work);
}

enum status work_streams_run(struct work_streams *work, uint32_t iteration, struct error *err)
{
    work->draw = stress_of(work->worker->job, iteration);
    work->pauses = work->worker->job->seed + iteration;
    /* Few sets of values, so that equal rounds come again and can be compared. */
    work->random = work->worker->job->seed + iteration % 2;
    uint64_t key = work->random;
    struct worker_run run = { .work = "streams",
                              .key = stress_random(&key) + width_of((uint32_t)work->round) };
    enum status status = worker_run_begin(work->worker, &run, err);
    if (!status)
        status = run_round(work, err);
    work->round++;
    worker_run_end(work->worker, &run, status, err);
    return status;
}

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
#include "campaign/work_streams_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RESIZE_INTERVAL 4u /* rounds between resizes */
#define PARTS (WORKER_SLOT_COUNT - 2)

/* ---- Labels --------------------------------------------------------------------------------- */

const uint64_t work_streams_step_count = STEP_COUNT;

const char *const work_streams_labels[] = {
    "streams.table", "streams.rows", "streams.picked", "streams.best",  "streams.total",
    "streams.graph", "streams.echo", "streams.shadow", "streams.guest",
};
const size_t work_streams_label_count = COUNT_OF(work_streams_labels);

/* ---- A round -------------------------------------------------------------------------------- */

static uint32_t width_of(uint32_t round)
{
    return STREAMS_WIDTH_LEAST + 2 * (round / RESIZE_INTERVAL % STREAMS_WIDTH_STEPS);
}

static void make_values(struct work_streams *work)
{
    uint32_t width = work->width;
    for (uint32_t i = 0; i < width * STREAMS_TABLE_ROWS; i++)
        work->host_table[i] = (float)(stress_random(&work->random) % 1000);
    for (uint32_t r = 0; r < STREAMS_PICKED_ROWS; r++) {
        work->host_rows[r] = (int32_t)(stress_random(&work->random) % STREAMS_TABLE_ROWS);
        for (uint32_t c = 0; c < width; c++)
            work->host_expected[r * width + c] =
                2 * work->host_table[(uint32_t)work->host_rows[r] * width + c];
    }
}

static enum status copy_values_in(struct work_streams *work, struct error *err)
{
    struct device *device = work->device;
    streams_label(work, work->copy, STEP_IN, "streams.table");
    TRY(device_copy_in(device, work->copy, &work->table, work->host_table,
                       (uint64_t)work->width * STREAMS_TABLE_ROWS * sizeof(float), DEVICE_HERE,
                       err));
    streams_label(work, work->copy, STEP_IN, "streams.rows");
    TRY(device_copy_in(device, work->copy, &work->rows, work->host_rows, sizeof(work->host_rows),
                       DEVICE_HERE, err));
    return device_mark_record(device, work->copy, work->arrived, DEVICE_HERE, err);
}

static enum status compute(struct work_streams *work, struct error *err)
{
    struct device *device = work->device;
    struct ops_target target = streams_target(work, work->compute, DEVICE_HERE);
    streams_label(work, work->compute, STEP_COMPUTE, "streams.picked");
    TRY(device_mark_wait(device, work->compute, work->arrived, DEVICE_HERE, err));
    TRY(ops_gather_rows(&target, &work->table, &work->rows, &work->picked, err));
    TRY(device_mark_record(device, work->compute, work->picked_done, DEVICE_HERE, err));
    streams_label(work, work->compute, STEP_COMPUTE, "streams.best");
    TRY(ops_argmax(&target, &work->picked, &work->best, NULL, err));
    TRY(device_mark_record(device, work->compute, work->chosen, DEVICE_HERE, err));

    target = streams_target(work, work->second, DEVICE_HERE);
    streams_label(work, work->second, STEP_TOTAL, "streams.total");
    TRY(device_mark_wait(device, work->second, work->picked_done, DEVICE_HERE, err));
    TRY(device_fill(device, work->second, &work->total, 0, DEVICE_HERE, err));
    TRY(ops_add(&target, &work->total, &work->picked, err));
    streams_label(work, work->second, STEP_TOTAL, "streams.graph");
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
    uint64_t values = (uint64_t)work->width * STREAMS_PICKED_ROWS, each = values / PARTS;
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
    streams_label(work, work->copy, STEP_OUT, "streams.shadow");
    streams_label(work, work->second, STEP_OUT, "streams.shadow");
    status = device_mark_wait(device, work->copy, work->totalled, DEVICE_HERE, err);
    for (uint32_t i = 0; i < PARTS && !status; i++) {
        uint64_t at;
        struct device_view part = part_of(work, i, &at);
        status = device_copy_out(device, i % 2 ? work->second : work->copy, &part, DEVICE_HERE,
                                 &tickets[held], err);
        held += !status;
    }
    if (!status) {
        streams_label(work, work->copy, STEP_OUT, "streams.best");
        status = device_mark_wait(device, work->copy, work->chosen, DEVICE_HERE, err);
    }
    if (!status) {
        status = device_copy_out(device, work->copy, &work->best, DEVICE_HERE, &tickets[held], err);
        held += !status;
    }
    for (uint32_t i = 0; i < held && !status; i++) {
        uint64_t at, bytes;
        if (i == PARTS) {
            int32_t best[STREAMS_PICKED_ROWS];
            for (uint32_t r = 0; r < STREAMS_PICKED_ROWS; r++) {
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
    streams_label(work, work->copy, STEP_GUEST, "streams.guest");
    enum status status = device_fill(device, work->copy, &guest, 1, DEVICE_HERE, err);
    if (!status)
        status = device_stream_sync(device, work->copy, DEVICE_HERE, err);
    streams_drop_view(work, &guest);
    return status;
}

static enum status run_round(struct work_streams *work, struct error *err)
{
    if (work->round > 0 && work->round % RESIZE_INTERVAL == 0) {
        TRY(device_stream_sync(work->device, work->compute, DEVICE_HERE, err));
        TRY(device_stream_sync(work->device, work->second, DEVICE_HERE, err));
        TRY(device_stream_sync(work->device, work->copy, DEVICE_HERE, err));
        TRY(streams_parts_resize(work, width_of((uint32_t)work->round), err));
    }
    make_values(work);
    TRY(copy_values_in(work, err));
    TRY(compute(work, err));
    TRY(copy_results_out(work, err));
    return pass_by(work, err);
}

/* ---- Life ----------------------------------------------------------------------------------- */

enum status work_streams_open(struct worker *worker, struct work_streams **ret_work,
                              struct error *err)
{
    struct work_streams *work = calloc(1, sizeof(*work));
    if (!work)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the streams workload");
    work->worker = worker;
    work->device = worker->device;
    enum status status = streams_parts_open(work, err);
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
    streams_parts_close(work);
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

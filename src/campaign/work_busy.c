/* work_busy.c - several streams that are all given work and order nothing among each other: when
 * one of them faults, the others have launches that nothing has waited for.
 *
 * A round, on each stream: total += one (layer 0), gated = silu(total) * one (layer 1),
 * total += gated (layer 2); the last two as a graph, where the job says so. Only then is each
 * stream waited for. Buffers are a stream's own. */
#include "campaign/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WIDTH 64u
#define ROWS 4u

struct busy_stream {
    struct device_stream stream;
    struct device_view total, one, gated;
    struct device_graph graph;
    char label[24]; /* "busy.3" */
};

struct work_busy {
    struct worker *worker;
    struct device *device;
    struct busy_stream streams[WORK_BUSY_STREAM_LIMIT];
    uint32_t count;
};

enum { LAYER_ADD, LAYER_GATE, LAYER_TOTAL };

static void label(struct work_busy *work, const struct busy_stream *busy, int32_t step,
                  int32_t layer)
{
    struct event_scope scope = { .step = step, .layer = layer };
    event_set_text(scope.tensor, sizeof(scope.tensor), busy->label);
    device_scope_set(work->device, busy->stream, &scope);
}

static struct ops_target target_of(struct work_busy *work, const struct busy_stream *busy,
                                   struct device_site site)
{
    return (struct ops_target){ &work->worker->ops, busy->stream, site };
}

static enum status give_add(struct work_busy *work, struct busy_stream *busy, int32_t step,
                            struct error *err)
{
    struct ops_target target = target_of(work, busy, DEVICE_HERE);
    label(work, busy, step, LAYER_ADD);
    return ops_add(&target, &busy->total, &busy->one, err);
}

static enum status give_rest(struct work_busy *work, struct busy_stream *busy, int32_t step,
                             struct error *err)
{
    struct ops_target target = target_of(work, busy, DEVICE_HERE);
    label(work, busy, step, LAYER_GATE);
    TRY(ops_swiglu(&target, &busy->total, &busy->one, &busy->gated, NULL, err));
    label(work, busy, step, LAYER_TOTAL);
    return ops_add(&target, &busy->total, &busy->gated, err);
}

static enum status record(struct work_busy *work, struct busy_stream *busy, struct error *err)
{
    TRY(device_graph_begin(work->device, busy->stream, DEVICE_HERE, err));
    enum status status = give_rest(work, busy, 0, err);
    struct error second;
    enum status ended = device_graph_end(work->device, busy->stream, DEVICE_HERE, &busy->graph,
                                         status ? &second : err);
    return status ? status : ended;
}

/* ---- Life ----------------------------------------------------------------------------------- */

static enum status make_view(struct work_busy *work, const struct busy_stream *busy,
                             const char *part, struct device_view *ret_view, struct error *err)
{
    uint64_t dims[] = { WIDTH, ROWS };
    struct device_view view = { .dtype = DTYPE_F32, .shape = shape_make(2, dims) };
    char name[48];
    snprintf(name, sizeof(name), "%s.%s", busy->label, part);
    TRY(device_buffer_create(work->device, WIDTH * ROWS * sizeof(float), name, DEVICE_HERE,
                             &view.buffer, err));
    *ret_view = view;
    return device_fill(work->device, busy->stream, &view, 0, DEVICE_HERE, err);
}

static enum status open_stream(struct work_busy *work, uint32_t place, struct error *err)
{
    struct busy_stream *busy = &work->streams[place];
    snprintf(busy->label, sizeof(busy->label), "busy.%" PRIu32, place);
    TRY(device_stream_create(work->device, DEVICE_HERE, &busy->stream, err));
    work->count++;
    TRY(make_view(work, busy, "total", &busy->total, err));
    TRY(make_view(work, busy, "one", &busy->one, err));
    TRY(make_view(work, busy, "gated", &busy->gated, err));
    if (work->worker->job->busy_replays)
        TRY(record(work, busy, err));
    return device_stream_sync(work->device, busy->stream, DEVICE_HERE, err);
}

enum status work_busy_open(struct worker *worker, struct work_busy **ret_work, struct error *err)
{
    uint32_t wanted = worker->job->busy_streams;
    if (wanted < 1 || wanted > WORK_BUSY_STREAM_LIMIT)
        return error_set(err, STATUS_USAGE, "busy streams: expected 1 to %u, found %" PRIu32,
                         WORK_BUSY_STREAM_LIMIT, wanted);
    struct work_busy *work = calloc(1, sizeof(*work));
    if (!work)
        return error_set(err, STATUS_NO_MEMORY, "no memory for busy streams");
    work->worker = worker;
    work->device = worker->device;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < wanted && !status; i++)
        status = open_stream(work, i, err);
    if (status)
        work_busy_close(work);
    else
        *ret_work = work;
    return status;
}

void work_busy_close(struct work_busy *work)
{
    if (!work)
        return;
    for (uint32_t i = 0; i < work->count; i++) {
        struct busy_stream *busy = &work->streams[i];
        const struct device_view *views[] = { &busy->total, &busy->one, &busy->gated };
        if (busy->stream.index)
            device_stream_destroy(work->device, busy->stream, DEVICE_HERE);
        if (busy->graph.index)
            device_graph_destroy(work->device, busy->graph, DEVICE_HERE);
        for (size_t v = 0; v < COUNT_OF(views); v++)
            if (views[v]->buffer.index)
                device_buffer_destroy(work->device, views[v]->buffer, DEVICE_HERE);
    }
    free(work);
}

/* ---- A round -------------------------------------------------------------------------------- */

static enum status run_round(struct work_busy *work, int32_t step, struct error *err)
{
    for (uint32_t i = 0; i < work->count; i++)
        TRY(give_add(work, &work->streams[i], step, err));
    for (uint32_t i = 0; i < work->count; i++) {
        struct busy_stream *busy = &work->streams[i];
        if (busy->graph.index)
            TRY(device_graph_replay(work->device, busy->stream, busy->graph, DEVICE_HERE, err));
        else
            TRY(give_rest(work, busy, step, err));
    }
    for (uint32_t i = 0; i < work->count; i++)
        TRY(device_stream_sync(work->device, work->streams[i].stream, DEVICE_HERE, err));
    return STATUS_OK;
}

enum status work_busy_run(struct work_busy *work, uint32_t iteration, struct error *err)
{
    struct worker_run run = { .work = "busy", .key = iteration };
    enum status status = worker_run_begin(work->worker, &run, err);
    if (!status)
        status = run_round(work, (int32_t)iteration, err);
    worker_run_end(work->worker, &run, status, err);
    return status;
}

/* work_streams_parts.c - see work_streams_parts.h. */
#include "campaign/work_streams_parts.h"

#include <stdlib.h>

void streams_label(struct work_streams *work, struct device_stream stream, int32_t step,
                   const char *tensor)
{
    struct event_scope scope = { .step = step, .layer = -1 };
    event_set_text(scope.tensor, sizeof(scope.tensor), tensor);
    device_scope_set(work->device, stream, &scope);
    stress_pause(&work->draw, &work->pauses);
}

struct ops_target streams_target(struct work_streams *work, struct device_stream stream,
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

void streams_drop_view(struct work_streams *work, struct device_view *view)
{
    struct device_buffer buffer = view->buffer;
    *view = (struct device_view){ 0 };
    if (buffer.index)
        device_buffer_destroy(work->device, buffer, DEVICE_HERE);
}

static enum status record_graph(struct work_streams *work, struct error *err)
{
    struct ops_target target = streams_target(work, work->second, DEVICE_HERE);
    streams_label(work, work->second, STEP_TOTAL, "streams.graph");
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
        streams_drop_view(work, views[i]);
}

enum status streams_parts_resize(struct work_streams *work, uint32_t width, struct error *err)
{
    drop_sized(work);
    work->width = width;
    TRY(make_view(work, "streams.table", DTYPE_F32, width, STREAMS_TABLE_ROWS, &work->table, err));
    TRY(make_view(work, "streams.picked", DTYPE_F32, width, STREAMS_PICKED_ROWS, &work->picked,
                  err));
    TRY(make_view(work, "streams.total", DTYPE_F32, width, STREAMS_PICKED_ROWS, &work->total, err));
    TRY(make_view(work, "streams.echo", DTYPE_F32, width, STREAMS_PICKED_ROWS, &work->echo, err));
    TRY(make_view(work, "streams.shadow", DTYPE_F32, width, STREAMS_PICKED_ROWS, &work->shadow,
                  err));
    return record_graph(work, err);
}

enum status streams_parts_open(struct work_streams *work, struct error *err)
{
    struct device *device = work->device;
    uint32_t widest = STREAMS_WIDTH_LEAST + 2 * STREAMS_WIDTH_STEPS;
    work->host_table = calloc((size_t)widest * STREAMS_TABLE_ROWS, sizeof(float));
    work->host_expected = calloc((size_t)widest * STREAMS_PICKED_ROWS, sizeof(float));
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
    TRY(make_view(work, "streams.rows", DTYPE_I32, 0, STREAMS_PICKED_ROWS, &work->rows, err));
    TRY(make_view(work, "streams.best", DTYPE_I32, 0, STREAMS_PICKED_ROWS, &work->best, err));
    return streams_parts_resize(work, STREAMS_WIDTH_LEAST, err);
}

void streams_parts_close(struct work_streams *work)
{
    const struct device_stream streams[] = { work->compute, work->second, work->copy };
    /* Waits for their work. */
    for (size_t i = 0; i < COUNT_OF(streams); i++)
        if (streams[i].index && (i == 0 || streams[i].index != work->compute.index))
            device_stream_destroy(work->device, streams[i], DEVICE_HERE);
    drop_sized(work);
    streams_drop_view(work, &work->rows);
    streams_drop_view(work, &work->best);
    const struct device_mark marks[] = { work->arrived, work->picked_done, work->totalled,
                                         work->chosen };
    for (size_t i = 0; i < COUNT_OF(marks); i++)
        if (marks[i].index)
            device_mark_destroy(work->device, marks[i]);
    free(work->host_table);
    free(work->host_expected);
}

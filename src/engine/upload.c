/* upload.c - weights to a device that has memory of its own, on a stream of their own.
 *
 * Copies in follow each other on a stream of their own. A tensor that the device likes laid out
 * anew goes to one of two raw buffers, a run of rows at a time, and is laid out from there by the
 * engine's stream while the other one fills; marks keep the streams in order. Nothing is waited for
 * but room in staging, until all is queued. Beside the weights themselves two raw buffers are all
 * the device must hold. */
#include "engine/engine_impl.h"

#include <stdlib.h>

/* A raw buffer: long enough on its way that the layout of the other one is hidden. */
#define RAW_BYTES ((uint64_t)8 << 20)
#define RAW_COUNT 2u

struct raw {
    struct device_buffer buffer;
    struct device_mark filled, read;
    bool used; /* `read` stands behind its last use */
};

struct engine_upload {
    struct engine *engine;
    struct device_stream stream;
    struct raw raws[RAW_COUNT];
    uint64_t raw_bytes; /* of each */
    uint64_t next;      /* raw, counted on */
};

/* ---- Life ----------------------------------------------------------------------------------- */

uint64_t engine_upload_raw_bytes(enum dtype dtype, const struct shape *shape)
{
    uint64_t row_bytes = 0, bytes = 0;
    ASSERT(dtype_row_bytes(dtype, shape->dims[0], &row_bytes)); /* the guard rail has seen to it */
    ASSERT(shape_bytes(shape, dtype, &bytes));
    uint64_t room = row_bytes > RAW_BYTES ? row_bytes : RAW_BYTES;
    return bytes < room ? bytes : room;
}

static enum status make_raws(struct engine_upload *upload, struct error *err)
{
    struct device *device = upload->engine->device;
    for (uint32_t i = 0; upload->raw_bytes && i < RAW_COUNT; i++) {
        struct raw *raw = &upload->raws[i];
        TRY(device_mark_create(device, &raw->filled, err));
        TRY(device_mark_create(device, &raw->read, err));
        TRY(device_buffer_create(device, upload->raw_bytes, "weights.raw", DEVICE_HERE,
                                 &raw->buffer, err));
    }
    return STATUS_OK;
}

enum status engine_upload_create(struct engine *engine, uint64_t raw_bytes,
                                 struct engine_upload **ret_upload, struct error *err)
{
    struct engine_upload *upload = calloc(1, sizeof(*upload));
    if (!upload)
        return error_set(err, STATUS_NO_MEMORY, "no memory to upload weights");
    upload->engine = engine;
    upload->raw_bytes = raw_bytes;
    enum status status = device_stream_create(engine->device, DEVICE_HERE, &upload->stream, err);
    if (!status)
        status = make_raws(upload, err);
    if (status)
        engine_upload_destroy(upload);
    else
        *ret_upload = upload;
    return status;
}

void engine_upload_destroy(struct engine_upload *upload)
{
    struct error unused;
    if (!upload)
        return;
    struct device *device = upload->engine->device;
    /* A stream's destruction waits; of the engine's, only the raw buffers must be left alone. */
    if (upload->stream.index && device_stream_destroy(device, upload->stream, DEVICE_HERE, &unused))
        upload->stream.index = 0;
    if (upload->next && device_stream_sync(device, upload->engine->stream, DEVICE_HERE, &unused))
        upload->next = 0; /* lost: nothing runs any more */
    for (uint32_t i = 0; i < RAW_COUNT; i++) {
        struct raw *raw = &upload->raws[i];
        if (raw->buffer.index && device_buffer_destroy(device, raw->buffer, DEVICE_HERE, &unused))
            raw->buffer.index = 0; /* cannot be given back: it goes with the device */
        device_mark_destroy(device, raw->filled);
        device_mark_destroy(device, raw->read);
    }
    free(upload);
}

/* ---- Tensors -------------------------------------------------------------------------------- */

static enum status copy(struct engine_upload *upload, struct device_buffer target,
                        const void *source, uint64_t bytes, struct error *err)
{
    struct device_view view = { .buffer = target,
                                .dtype = DTYPE_I8,
                                .shape = shape_make(1, &bytes) };
    return device_copy_in(upload->engine->device, upload->stream, &view, source, bytes, DEVICE_HERE,
                          err);
}

/* Rows [first, first + rows) of a tensor by way of a raw buffer. */
static enum status relay_rows(struct engine_upload *upload, const struct gguf_tensor *tensor,
                              const struct device_view *target, uint64_t first, uint64_t rows,
                              struct error *err)
{
    struct engine *engine = upload->engine;
    struct ops_target on = { engine->ops, engine->stream, DEVICE_HERE };
    struct raw *raw = &upload->raws[upload->next++ % RAW_COUNT];
    uint64_t row_bytes = 0, dims[] = { target->shape.dims[0], rows };
    ASSERT(dtype_row_bytes(tensor->dtype, dims[0], &row_bytes));
    struct device_view source = { .buffer = raw->buffer,
                                  .dtype = tensor->dtype,
                                  .shape = shape_make(2, dims) };
    struct device_view part = *target;
    part.shape = source.shape;
    part.offset_bytes = first * row_bytes;
    if (raw->used)
        TRY(device_mark_wait(engine->device, upload->stream, raw->read, DEVICE_HERE, err));
    TRY(copy(upload, raw->buffer, tensor->data + first * row_bytes, rows * row_bytes, err));
    TRY(device_mark_record(engine->device, upload->stream, raw->filled, DEVICE_HERE, err));
    TRY(device_mark_wait(engine->device, engine->stream, raw->filled, DEVICE_HERE, err));
    TRY(ops_relay(&on, &source, &part, err));
    raw->used = true;
    return device_mark_record(engine->device, engine->stream, raw->read, DEVICE_HERE, err);
}

static enum status relay(struct engine_upload *upload, const struct gguf_tensor *tensor,
                         const struct device_view *target, struct error *err)
{
    uint64_t row_bytes = 0, rows = target->shape.dims[1];
    ASSERT(dtype_row_bytes(tensor->dtype, target->shape.dims[0], &row_bytes));
    uint64_t at_once = upload->raw_bytes / row_bytes;
    ASSERT(at_once > 0);
    for (uint64_t first = 0; first < rows; first += at_once)
        TRY(relay_rows(upload, tensor, target, first,
                       rows - first < at_once ? rows - first : at_once, err));
    return STATUS_OK;
}

enum status engine_upload_add(struct engine_upload *upload, const struct gguf_tensor *tensor,
                              const struct event_scope *scope, struct device_view *view,
                              struct error *err)
{
    struct device *device = upload->engine->device;
    struct device_buffer buffer;
    device_scope_set(device, upload->stream, scope);
    device_scope_set(device, upload->engine->stream, scope);
    TRY(device_buffer_create(device, tensor->bytes, scope->tensor, DEVICE_HERE, &buffer, err));
    view->buffer = buffer; /* closed with the engine, whatever comes */
    enum status status = view->dtype == tensor->dtype
                             ? copy(upload, buffer, tensor->data, tensor->bytes, err)
                             : relay(upload, tensor, view, err);
    return status ? error_wrap(err, "%s", scope->tensor) : device_buffer_seal(device, buffer, err);
}

enum status engine_upload_finish(struct engine_upload *upload, struct error *err)
{
    struct engine *engine = upload->engine;
    TRY(device_stream_sync(engine->device, upload->stream, DEVICE_HERE, err));
    device_scope_set(engine->device, engine->stream, NULL);
    return upload->next ? device_stream_sync(engine->device, engine->stream, DEVICE_HERE, err)
                        : STATUS_OK;
}

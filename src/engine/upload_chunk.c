/* upload_chunk.c - brings one chunk of a tensor from the file to the device, repacked where the
 * device wants that. */
#include "engine/upload.h"

struct reading {
    const struct gguf_file *file;
    const struct chunk *chunk;
};

static enum status read_chunk(void *context, uint64_t at, void *target, uint64_t bytes,
                              struct error *err)
{
    const struct reading *reading = context;
    const struct chunk *chunk = reading->chunk;
    ASSERT(at <= chunk->bytes &&
           bytes <= chunk->bytes - at); /* the device checks before it reads */
    return gguf_tensor_read(reading->file, chunk->load.tensor, chunk->at + at, target, bytes, err);
}

static enum status copy(const struct lane *lane, const struct chunk *chunk,
                        struct device_buffer target, uint64_t target_at, struct error *err)
{
    struct reading reading = { lane->upload->file, chunk };
    struct device_reader reader = { read_chunk, &reading };
    struct device_view view = { .buffer = target,
                                .dtype = DTYPE_I8,
                                .shape = shape_make(1, &chunk->bytes),
                                .offset_bytes = target_at };
    return device_copy_in_read(lane->upload->engine->device, lane->stream, &view, &reader,
                               chunk->bytes, DEVICE_HERE, err);
}

/* Repacks the rows in the raw buffer on the engine's stream. Called with repack_lock held. */
static enum status repack_rows(const struct lane *lane, const struct chunk *chunk,
                               struct error *err)
{
    struct engine *engine = lane->upload->engine;
    const struct load *load = &chunk->load;
    struct ops_target on = { engine->ops, engine->stream, DEVICE_HERE };
    uint64_t dims[] = { load->view.shape.dims[0], chunk->bytes / load->row_bytes };
    struct device_view source = { .buffer = lane->raw,
                                  .dtype = load->tensor->dtype,
                                  .shape = shape_make(2, dims) };
    struct device_view part = load->view;
    part.shape = source.shape;
    part.offset_bytes = chunk->at;
    device_scope_set(engine->device, engine->stream, &load->scope);
    TRY(device_mark_wait(engine->device, engine->stream, lane->filled, DEVICE_HERE, err));
    TRY(ops_repack(&on, &source, &part, err));
    return device_mark_record(engine->device, engine->stream, lane->read, DEVICE_HERE, err);
}

static enum status repack(struct lane *lane, const struct chunk *chunk, struct error *err)
{
    struct engine_upload *upload = lane->upload;
    struct device *device = upload->engine->device;
    if (lane->raw_used)
        TRY(device_mark_wait(device, lane->stream, lane->read, DEVICE_HERE, err));
    TRY(copy(lane, chunk, lane->raw, 0, err));
    TRY(device_mark_record(device, lane->stream, lane->filled, DEVICE_HERE, err));
    pthread_mutex_lock(&upload->repack_lock);
    enum status status = repack_rows(lane, chunk, err);
    pthread_mutex_unlock(&upload->repack_lock);
    lane->raw_used = true;
    return status;
}

enum status engine_upload_chunk(struct lane *lane, const struct chunk *chunk, struct error *err)
{
    device_scope_set(lane->upload->engine->device, lane->stream, &chunk->load.scope);
    if (chunk->at == 0) /* not earlier: a file may be larger than memory */
        gguf_tensor_ahead(lane->upload->file, chunk->load.tensor);
    enum status status = load_is_repacked(&chunk->load)
                             ? repack(lane, chunk, err)
                             : copy(lane, chunk, chunk->load.view.buffer, chunk->at, err);
    return status ? error_wrap(err, "%s", chunk->load.scope.tensor) : STATUS_OK;
}

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

static enum status copy(const struct uploader *uploader, const struct chunk *chunk,
                        struct device_buffer target, uint64_t target_at, struct error *err)
{
    struct reading reading = { uploader->upload->file, chunk };
    struct device_reader reader = { read_chunk, &reading };
    struct device_view view = { .buffer = target,
                                .dtype = DTYPE_I8,
                                .shape = shape_make(1, &chunk->bytes),
                                .offset_bytes = target_at };
    return device_copy_in_read(uploader->upload->engine->device, uploader->stream, &view, &reader,
                               chunk->bytes, DEVICE_HERE, err);
}

/* Repacks the rows in the raw buffer on the engine's stream. Called with repack_lock held. */
static enum status repack_rows(const struct uploader *uploader, const struct chunk *chunk,
                               struct error *err)
{
    struct engine *engine = uploader->upload->engine;
    const struct load *load = &chunk->load;
    struct ops_target on = { engine->ops, engine->stream, DEVICE_HERE };
    uint64_t dims[] = { load->view.shape.dims[0], chunk->bytes / load->row_bytes };
    struct device_view source = { .buffer = uploader->raw,
                                  .dtype = load->tensor->dtype,
                                  .shape = shape_make(2, dims) };
    struct device_view part = load->view;
    part.shape = source.shape;
    part.offset_bytes = chunk->at;
    device_scope_set(engine->device, engine->stream, &load->scope);
    TRY(device_mark_wait(engine->device, engine->stream, uploader->filled, DEVICE_HERE, err));
    TRY(ops_repack(&on, &source, &part, err));
    return device_mark_record(engine->device, engine->stream, uploader->read, DEVICE_HERE, err);
}

static enum status repack(struct uploader *uploader, const struct chunk *chunk, struct error *err)
{
    struct engine_upload *upload = uploader->upload;
    struct device *device = upload->engine->device;
    if (uploader->raw_used)
        TRY(device_mark_wait(device, uploader->stream, uploader->read, DEVICE_HERE, err));
    TRY(copy(uploader, chunk, uploader->raw, 0, err));
    TRY(device_mark_record(device, uploader->stream, uploader->filled, DEVICE_HERE, err));
    pthread_mutex_lock(&upload->repack_lock);
    enum status status = repack_rows(uploader, chunk, err);
    pthread_mutex_unlock(&upload->repack_lock);
    uploader->raw_used = true;
    return status;
}

enum status engine_upload_chunk(struct uploader *uploader, const struct chunk *chunk,
                                struct error *err)
{
    device_scope_set(uploader->upload->engine->device, uploader->stream, &chunk->load.scope);
    if (chunk->at == 0) /* not earlier: a file may be larger than memory */
        gguf_tensor_ahead(uploader->upload->file, chunk->load.tensor);
    enum status status = load_is_repacked(&chunk->load)
                             ? repack(uploader, chunk, err)
                             : copy(uploader, chunk, chunk->load.view.buffer, chunk->at, err);
    return status ? error_wrap(err, "%s", chunk->load.scope.tensor) : STATUS_OK;
}

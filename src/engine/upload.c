/* upload.c - uploads weights to a device that has memory of its own, with several threads.
 *
 * Each uploader is a thread with a stream: it takes the next chunk of a tensor, reads it from the
 * file into staging and queues the copy to the device. One thread reads a file at a sixth of the
 * link's speed, so several uploaders read at once, each into its own slots, while copies of other
 * uploaders are in flight; no uploader waits for another. The caller's thread creates the buffers,
 * then becomes a uploader.
 *
 * A tensor that the device wants repacked goes to the uploader's raw buffer, some rows at a time,
 * and is repacked from there on the engine's stream; marks order the two. The device needs memory
 * for the weights and for one raw buffer for each uploader.
 *
 * The first failure ends all uploaders and is returned to the caller. */
#include "engine/upload.h"

#include "base/parallel.h"
#include "base/size.h"

#include <stdlib.h>

/* Minimum weight bytes per uploader. */
#define LANE_BYTES ((uint64_t)4 << 20)
/* What a uploader takes at a time: one copy. */
#define CHUNK_BYTES ((uint64_t)2 << 20)

/* ---- Life ----------------------------------------------------------------------------------- */

uint64_t engine_upload_raw_bytes(enum dtype dtype, const struct shape *shape)
{
    uint64_t row_bytes = 0, bytes = 0;
    ASSERT(dtype_row_bytes(dtype, shape->dims[0], &row_bytes)); /* checked by the guard rail */
    ASSERT(shape_bytes(shape, dtype, &bytes));
    uint64_t room = max_u64(row_bytes, CHUNK_BYTES);
    return min_u64(bytes, room);
}

static uint32_t choose_uploader_count(uint64_t bytes)
{
    uint64_t worth = bytes / LANE_BYTES + 1;
    uint32_t processors = parallel_processor_count();
    uint32_t most = min_u64(processors, LANE_LIMIT);
    return worth < most ? (uint32_t)worth : most;
}

static enum status open_uploader(struct uploader *uploader, struct error *err)
{
    const struct engine_upload *upload = uploader->upload;
    struct device *device = upload->engine->device;
    TRY(device_stream_create(device, DEVICE_HERE, &uploader->stream, err));
    if (upload->raw_bytes == 0)
        return STATUS_OK;
    TRY(device_mark_create(device, &uploader->filled, err));
    TRY(device_mark_create(device, &uploader->read, err));
    return device_buffer_create(device, upload->raw_bytes, "weights.raw", DEVICE_HERE,
                                &uploader->raw, err);
}

enum status engine_upload_create(struct engine *engine, const struct gguf_file *file,
                                 size_t tensor_limit, uint64_t raw_bytes,
                                 struct engine_upload **ret_upload, struct error *err)
{
    struct engine_upload *upload = calloc(1, sizeof(*upload));
    struct load *loads = calloc(tensor_limit + 1, sizeof(*loads));
    if (!upload || !loads) {
        free(upload);
        free(loads);
        return error_set(err, STATUS_NO_MEMORY, "no memory to upload weights");
    }
    upload->engine = engine;
    upload->file = file;
    upload->loads = loads;
    upload->limit = tensor_limit;
    upload->raw_bytes = raw_bytes;
    upload->uploader_count = choose_uploader_count(engine->budget.weight_bytes);
    pthread_mutex_init(&upload->repack_lock, NULL);
    pthread_mutex_init(&upload->lock, NULL);
    pthread_cond_init(&upload->changed, NULL);
    device_reserve(engine->device,
                   upload->uploader_count * engine_reserved_bytes(engine, upload->raw_bytes));
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < upload->uploader_count && !status; i++) {
        upload->uploaders[i].upload = upload;
        status = open_uploader(&upload->uploaders[i], err);
    }
    if (status)
        engine_upload_destroy(upload);
    else
        *ret_upload = upload;
    return status;
}

static void close_uploader(struct device *device, struct uploader *uploader)
{
    if (uploader->raw.index)
        device_buffer_destroy(device, uploader->raw, DEVICE_HERE);
    device_mark_destroy(device, uploader->filled);
    device_mark_destroy(device, uploader->read);
}

/* Ends the adding of tensors; returns when all threads have ended. */
static void join_uploaders(struct engine_upload *upload)
{
    pthread_mutex_lock(&upload->lock);
    upload->complete = true;
    pthread_cond_broadcast(&upload->changed);
    pthread_mutex_unlock(&upload->lock);
    for (uint32_t i = 0; i < upload->uploader_count; i++) {
        if (upload->uploaders[i].started)
            pthread_join(upload->uploaders[i].thread, NULL);
        upload->uploaders[i].started = false;
    }
}

static void fail(struct engine_upload *upload, const struct error *err)
{
    pthread_mutex_lock(&upload->lock);
    if (!upload->failure.status)
        upload->failure = *err;
    pthread_cond_broadcast(&upload->changed);
    pthread_mutex_unlock(&upload->lock);
}

void engine_upload_destroy(struct engine_upload *upload)
{
    struct error unused, given_up = { .status = STATUS_INTERRUPTED };
    if (!upload)
        return;
    struct device *device = upload->engine->device;
    fail(upload, &given_up); /* uploaders that still work end now */
    join_uploaders(upload);
    bool repacked = false;
    for (uint32_t i = 0; i < upload->uploader_count; i++) {
        struct uploader *uploader = &upload->uploaders[i];
        repacked = repacked || uploader->raw_used;
        /* Waits for the stream's copies. */
        if (uploader->stream.index)
            device_stream_destroy(device, uploader->stream, DEVICE_HERE);
    }
    /* The engine's stream may still read the raw buffers. */
    if (repacked) { /* fails on a lost device, where nothing runs any more */
        enum status status = device_stream_sync(device, upload->engine->stream, DEVICE_HERE,
                                                &unused);
        (void)status;
    }
    for (uint32_t i = 0; i < upload->uploader_count; i++)
        close_uploader(device, &upload->uploaders[i]);
    pthread_mutex_destroy(&upload->repack_lock);
    pthread_mutex_destroy(&upload->lock);
    pthread_cond_destroy(&upload->changed);
    free(upload->loads);
    free(upload);
}

/* ---- Chunks --------------------------------------------------------------------------------- */

/* Takes the next chunk in order, waiting until there is one. False: all are taken. */
static bool take_chunk(struct engine_upload *upload, struct chunk *ret_chunk)
{
    bool taken = false;
    pthread_mutex_lock(&upload->lock);
    while (!upload->failure.status && upload->next == upload->count && !upload->complete)
        pthread_cond_wait(&upload->changed, &upload->lock);
    if (!upload->failure.status && upload->next < upload->count) {
        const struct load *load = &upload->loads[upload->next];
        uint64_t left = load->tensor->bytes - upload->next_at, most = CHUNK_BYTES;
        if (load_is_repacked(load)) /* whole rows */
            most = upload->raw_bytes / load->row_bytes * load->row_bytes;
        *ret_chunk = (struct chunk){ *load, upload->next_at, left < most ? left : most };
        upload->next_at += ret_chunk->bytes;
        if (upload->next_at == load->tensor->bytes) {
            upload->next++;
            upload->next_at = 0;
        }
        taken = true;
    }
    pthread_mutex_unlock(&upload->lock);
    return taken;
}

/* ---- Lanes ---------------------------------------------------------------------------------- */

static enum status load_chunk(struct uploader *uploader, const struct chunk *chunk,
                              struct error *err)
{
    struct engine_upload *upload = uploader->upload;
    TRY(engine_upload_chunk(uploader, chunk, err));
    pthread_mutex_lock(&upload->lock);
    upload->done_bytes += chunk->bytes;
    pthread_mutex_unlock(&upload->lock);
    return STATUS_OK;
}

static enum status tell(struct engine_upload *upload, struct error *err)
{
    const struct engine_budget *budget = &upload->engine->budget;
    pthread_mutex_lock(&upload->lock);
    uint64_t done = upload->done_bytes;
    pthread_mutex_unlock(&upload->lock);
    return progress_step(budget->options.progress, done, budget->weight_bytes, err);
}

/* The caller's uploader reports the progress of all. */
static void run_uploader(struct uploader *uploader, bool tells)
{
    struct chunk chunk;
    struct error err;
    enum status status = STATUS_OK;
    while (!status && take_chunk(uploader->upload, &chunk)) {
        status = load_chunk(uploader, &chunk, &err);
        if (!status && tells)
            status = tell(uploader->upload, &err);
    }
    if (status)
        fail(uploader->upload, &err);
}

static void *run_thread(void *argument)
{
    run_uploader(argument, false);
    return NULL;
}

/* Called with the first tensor. If a thread cannot be started, the other uploaders do its work. */
static void start_uploaders(struct engine_upload *upload)
{
    for (uint32_t i = 1; i < upload->uploader_count; i++) {
        struct uploader *uploader = &upload->uploaders[i];
        uploader->started = pthread_create(&uploader->thread, NULL, run_thread, uploader) == 0;
    }
}

/* ---- Tensors -------------------------------------------------------------------------------- */

static enum status find_failure(struct engine_upload *upload, struct error *err)
{
    pthread_mutex_lock(&upload->lock);
    if (upload->failure.status)
        *err = upload->failure;
    enum status status = upload->failure.status;
    pthread_mutex_unlock(&upload->lock);
    return status;
}

enum status engine_upload_add(struct engine_upload *upload, const struct gguf_tensor *tensor,
                              const struct event_scope *scope, struct device_view *view,
                              struct error *err)
{
    struct load load = { .tensor = tensor, .scope = *scope };
    ASSERT(upload->count < upload->limit);
    ASSERT(dtype_row_bytes(tensor->dtype, view->shape.dims[0], &load.row_bytes));
    TRY(find_failure(upload, err));
    TRY(device_buffer_create(upload->engine->device, tensor->bytes, scope->tensor, DEVICE_HERE,
                             &view->buffer,
                             err)); /* closed with the engine, also after a failure */
    load.view = *view;
    pthread_mutex_lock(&upload->lock);
    upload->loads[upload->count++] = load;
    pthread_cond_broadcast(&upload->changed);
    pthread_mutex_unlock(&upload->lock);
    if (upload->count == 1)
        start_uploaders(upload);
    return tell(upload, err);
}

enum status engine_upload_finish(struct engine_upload *upload, struct error *err)
{
    struct engine *engine = upload->engine;
    struct device *device = engine->device;
    pthread_mutex_lock(&upload->lock);
    upload->complete = true;
    pthread_cond_broadcast(&upload->changed);
    pthread_mutex_unlock(&upload->lock);
    run_uploader(&upload->uploaders[0], true);
    join_uploaders(upload);
    TRY(find_failure(upload, err));
    TRY(tell(upload, err));
    for (uint32_t i = 0; i < upload->uploader_count; i++)
        TRY(device_stream_sync(device, upload->uploaders[i].stream, DEVICE_HERE, err));
    device_scope_set(device, engine->stream, NULL);
    if (upload->raw_bytes)
        TRY(device_stream_sync(device, engine->stream, DEVICE_HERE, err));
    for (size_t i = 0; i < upload->count; i++)
        TRY(device_buffer_seal(device, upload->loads[i].view.buffer, err));
    return STATUS_OK;
}

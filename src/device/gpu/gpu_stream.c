/* gpu_stream.c - streams of the runtime, and the marks that order them. */
#include "device/gpu/gpu_impl.h"

#include <stdlib.h>

/* ---- Submitting ----------------------------------------------------------------------------- */

void gpu_stream_note(struct gpu_stream *stream, const struct gpu_history *given)
{
    stream->history[stream->given % GPU_HISTORY] = *given;
    stream->given++;
    stream->last_id = given->event_id;
}

void gpu_note_command(struct gpu_stream *stream, const struct device_command *command)
{
    struct gpu_history given = { .event_id = command->event_id,
                                 .op = device_command_name(command),
                                 .scope = command->scope,
                                 .is_launch = command->contract != NULL };
    gpu_stream_note(stream, &given);
}

enum status gpu_stream_submit(struct device *device, void *argument,
                              const struct device_command *command, struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_stream *stream = argument;
    if (command->kind == DEVICE_COMMAND_INSPECT)
        return gpu_inspect_submit(gpu, stream, command, err);
    gpu_enter(gpu);
    TRY(gpu_inspect_flush(gpu, stream, err));
    if (command->kind == DEVICE_COMMAND_LAUNCH) {
        TRY(gpu_launch(gpu, stream, command, err));
    } else {
        GPU_TRY(gpu, gpu_transfer(gpu, stream, command), device_command_name(command), err);
        gpu_note_command(stream, command);
    }
    if (device_wants_completion(device, command))
        gpu_completions_add(gpu, stream, command->event_id);
    if (command->kind != DEVICE_COMMAND_COPY_IN) /* the device would wait for the next command */
        gpu_inspect_tell(gpu);
    return STATUS_OK;
}

enum status gpu_stream_sync(struct device *device, void *argument, struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_stream *stream = argument;
    gpu_enter(gpu);
    TRY(gpu_inspect_flush(gpu, stream, err));
    uint64_t last_id = __atomic_load_n(&stream->last_id, __ATOMIC_RELAXED);
    GPU_TRY(gpu, gpu->runtime.stream_sync(gpu->runtime.self, stream->handle), "stream sync", err);
    gpu_stream_finished(gpu, stream, last_id);
    gpu_show_crumbs(gpu);
    gpu_inspect_collect(gpu);
    gpu_inspect_tell(gpu);
    if (gpu->completions)
        gpu_completions_drain(gpu);
    return STATUS_OK;
}

enum status gpu_stream_query(struct device *device, void *argument, struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_stream *stream = argument;
    gpu_enter(gpu);
    GPU_TRY(gpu, gpu->runtime.stream_query(gpu->runtime.self, stream->handle), "stream query", err);
    return device_is_lost(device) ? device_set_lost(device, "stream query", err) : STATUS_OK;
}

/* ---- Life ----------------------------------------------------------------------------------- */

static void release(struct gpu_device *gpu, struct gpu_stream *stream)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    gpu_inspect_stream_release(gpu, stream);
    if (stream->handle)
        runtime->stream_destroy(runtime->self, stream->handle);
    if (stream->workspace)
        runtime->memory_destroy(runtime->self, stream->workspace);
    free(stream->history);
    free(stream);
}

enum status gpu_stream_create(struct device *device, uint32_t stream_index, void **ret_stream,
                              struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_stream *stream = calloc(1, sizeof(*stream));
    if (stream)
        stream->history = calloc(GPU_HISTORY, sizeof(*stream->history));
    if (!stream || !stream->history) {
        free(stream);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a stream");
    }
    stream->index = stream_index;
    stream->crumbs = gpu->page_address + stream_index * sizeof(struct crumb_stream);
    gpu_enter(gpu);
    int code = gpu->runtime.stream_create(gpu->runtime.self, &stream->handle);
    if (code) {
        release(gpu, stream);
        return gpu_failed(gpu, code, "stream creation", err);
    }
    pthread_mutex_lock(&gpu->lock);
    gpu->streams[stream_index] = stream;
    pthread_mutex_unlock(&gpu->lock);
    *ret_stream = stream;
    return STATUS_OK;
}

void gpu_stream_destroy(struct device *device, void *argument)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_stream *stream = argument;
    struct error unused;
    /* Also so that a fault in its work is reported before its history is gone. */
    (void)gpu_stream_sync(device, stream, &unused);
    pthread_mutex_lock(&gpu->lock);
    gpu->streams[stream->index] = NULL;
    pthread_mutex_unlock(&gpu->lock);
    release(gpu, stream);
}

/* ---- Marks ---------------------------------------------------------------------------------- */

/* An event of the runtime. It is passed until it is recorded for the first time. */
struct gpu_mark {
    void *event;
    /* Atomic. Where it was last recorded: the stream's index in the uppermost byte, and the
     * stream's last command before it. */
    uint64_t place;
};

#define PLACE_ID_BITS 56
_Static_assert(CRUMB_STREAM_LIMIT <= UINT64_C(1) << (64 - PLACE_ID_BITS), "an index fits a byte");

/* The host has waited for the mark when it was at this place. */
static void note_waited(struct gpu_device *gpu, uint64_t place)
{
    uint64_t *waited = &gpu->waited[place >> PLACE_ID_BITS];
    uint64_t id = place & ((UINT64_C(1) << PLACE_ID_BITS) - 1);
    uint64_t known = __atomic_load_n(waited, __ATOMIC_RELAXED);
    while (known < id && !__atomic_compare_exchange_n(waited, &known, id, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED))
        ;
}

enum status gpu_mark_create(struct device *device, void **ret_mark, struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_mark *mark = calloc(1, sizeof(*mark));
    if (!mark)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a mark");
    gpu_enter(gpu);
    int code = gpu->runtime.event_create(gpu->runtime.self, false, &mark->event);
    if (code) {
        free(mark);
        return gpu_failed(gpu, code, "mark creation", err);
    }
    *ret_mark = mark;
    return STATUS_OK;
}

void gpu_mark_destroy(struct device *device, void *argument)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_mark *mark = argument;
    gpu_enter(gpu);
    gpu->runtime.event_destroy(gpu->runtime.self, mark->event);
    free(mark);
}

enum status gpu_mark_record(struct device *device, void *stream, void *mark, struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_mark *recorded = mark;
    const struct gpu_stream *on = stream;
    gpu_enter(gpu);
    TRY(gpu_inspect_flush(gpu, stream, err));
    GPU_TRY(gpu, gpu->runtime.event_record(gpu->runtime.self, recorded->event, on->handle),
            "mark record", err);
    __atomic_store_n(&recorded->place, (uint64_t)on->index << PLACE_ID_BITS | on->last_id,
                     __ATOMIC_RELAXED);
    return STATUS_OK;
}

enum status gpu_mark_wait(struct device *device, void *stream, void *mark, struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    gpu_enter(gpu);
    GPU_TRY(gpu,
            gpu->runtime.event_wait(gpu->runtime.self, ((struct gpu_mark *)mark)->event,
                                    ((struct gpu_stream *)stream)->handle),
            "mark wait", err);
    return STATUS_OK;
}

enum status gpu_mark_sync(struct device *device, void *mark, struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_mark *waited = mark;
    gpu_enter(gpu);
    uint64_t place = __atomic_load_n(&waited->place, __ATOMIC_RELAXED);
    GPU_TRY(gpu, gpu->runtime.event_sync(gpu->runtime.self, waited->event), "mark sync", err);
    note_waited(gpu, place);
    gpu_show_crumbs(gpu);
    gpu_inspect_collect(gpu);
    return STATUS_OK;
}

bool gpu_mark_passed(struct device *device, void *mark)
{
    struct gpu_device *gpu = gpu_of(device);
    struct error unused;
    bool passed = true;
    gpu_enter(gpu);
    int code = gpu->runtime.event_query(gpu->runtime.self, ((struct gpu_mark *)mark)->event,
                                        &passed);
    if (!code && passed)
        gpu_inspect_collect(gpu);
    if (!code)
        return passed;
    /* On a lost device all marks are passed, so that no caller waits forever. */
    (void)gpu_failed(gpu, code, "mark query", &unused);
    return true;
}

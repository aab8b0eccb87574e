/* gpu_completions.c - reports to the observer when queued work is done. A thread waits for the
 * runtime's events, one after the other in the order in which they were recorded. */
#include "device/gpu/gpu_impl.h"

#include <stdlib.h>

#define QUEUE_LIMIT 1024u

struct entry {
    void *event;
    uint32_t stream_index;
    uint64_t event_id;
};

struct gpu_completions {
    struct gpu_device *gpu;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct entry entries[QUEUE_LIMIT]; /* each with an event of its own, used again and again */
    uint64_t given, reported;
    bool stopping;
};

static void *tell_all(void *argument)
{
    struct gpu_completions *completions = argument;
    struct gpu_device *gpu = completions->gpu;
    struct error unused;
    gpu_enter(gpu);
    pthread_mutex_lock(&completions->lock);
    for (;;) {
        while (completions->reported == completions->given && !completions->stopping)
            pthread_cond_wait(&completions->changed, &completions->lock);
        if (completions->reported == completions->given)
            break;
        struct entry entry = completions->entries[completions->reported % QUEUE_LIMIT];
        pthread_mutex_unlock(&completions->lock);
        int code = gpu->runtime.event_sync(gpu->runtime.self, entry.event);
        if (code)
            (void)gpu_failed(gpu, code, "completion", &unused);
        else
            device_report_completion(&gpu->device, entry.stream_index, entry.event_id);
        pthread_mutex_lock(&completions->lock);
        completions->reported++;
        pthread_cond_broadcast(&completions->changed);
    }
    pthread_mutex_unlock(&completions->lock);
    return NULL;
}

enum status gpu_completions_create(struct gpu_device *gpu, struct error *err)
{
    struct gpu_completions *completions = calloc(1, sizeof(*completions));
    if (!completions)
        return error_set(err, STATUS_NO_MEMORY, "no memory for completions");
    completions->gpu = gpu;
    pthread_mutex_init(&completions->lock, NULL);
    pthread_cond_init(&completions->changed, NULL);
    int code = pthread_create(&completions->thread, NULL, tell_all, completions);
    if (code != 0) {
        free(completions);
        return error_set_os(err, code, "cannot start the thread of completions");
    }
    gpu->completions = completions;
    return STATUS_OK;
}

void gpu_completions_destroy(struct gpu_device *gpu)
{
    struct gpu_completions *completions = gpu->completions;
    if (!completions)
        return;
    pthread_mutex_lock(&completions->lock);
    completions->stopping = true;
    pthread_cond_broadcast(&completions->changed);
    pthread_mutex_unlock(&completions->lock);
    pthread_join(completions->thread, NULL);
    for (uint32_t i = 0; i < QUEUE_LIMIT; i++)
        if (completions->entries[i].event)
            gpu->runtime.event_destroy(gpu->runtime.self, completions->entries[i].event);
    pthread_cond_destroy(&completions->changed);
    pthread_mutex_destroy(&completions->lock);
    free(completions);
    gpu->completions = NULL;
}

void gpu_completions_add(struct gpu_device *gpu, struct gpu_stream *stream, uint64_t event_id)
{
    struct gpu_completions *completions = gpu->completions;
    const struct gpu_runtime *runtime = &gpu->runtime;
    pthread_mutex_lock(&completions->lock);
    while (completions->given - completions->reported == QUEUE_LIMIT)
        pthread_cond_wait(&completions->changed, &completions->lock);
    struct entry *entry = &completions->entries[completions->given % QUEUE_LIMIT];
    int code = entry->event ? 0 : runtime->event_create(runtime->self, true, &entry->event);
    if (!code)
        code = runtime->event_record(runtime->self, entry->event, stream->handle);
    /* Without its event the work cannot be waited for here; a lost device says so elsewhere. */
    if (!code) {
        entry->stream_index = stream->index;
        entry->event_id = event_id;
        completions->given++;
        pthread_cond_broadcast(&completions->changed);
    }
    pthread_mutex_unlock(&completions->lock);
}

void gpu_completions_drain(struct gpu_device *gpu)
{
    struct gpu_completions *completions = gpu->completions;
    pthread_mutex_lock(&completions->lock);
    uint64_t wanted = completions->given;
    while (completions->reported < wanted)
        pthread_cond_wait(&completions->changed, &completions->lock);
    pthread_mutex_unlock(&completions->lock);
}

/* gpu_upload.c - much memory of the host to the device, at the speed of the link.
 *
 * A mapped file cannot be read by the device, and copying pages out of it takes a processor longer
 * than the link takes to carry them. So several workers each copy pieces into pinned memory of
 * their own and send them; with two halves a worker fills one while the other is on its way. */
#include "device/gpu/gpu_impl.h"

#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

#define WORKER_LIMIT 8u
#define PIECE_BYTES (UINT64_C(4) << 20)
#define HALVES 2u

struct half {
    void *memory;
    void *event; /* passed when the device has read the memory */
    bool used;
};

struct worker {
    void *stream;
    struct half halves[HALVES];
    uint32_t next;
};

struct gpu_upload {
    pthread_mutex_t lock; /* one upload at a time */
    struct worker workers[WORKER_LIMIT];
    uint32_t worker_count;
};

void gpu_upload_destroy(struct gpu_device *gpu)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    struct gpu_upload *upload = gpu->upload;
    if (!upload)
        return;
    for (uint32_t i = 0; i < upload->worker_count; i++) {
        struct worker *worker = &upload->workers[i];
        for (uint32_t h = 0; h < HALVES; h++) {
            if (worker->halves[h].event)
                runtime->event_destroy(runtime->self, worker->halves[h].event);
            if (worker->halves[h].memory)
                runtime->pinned_destroy(runtime->self, worker->halves[h].memory);
        }
        if (worker->stream)
            runtime->stream_destroy(runtime->self, worker->stream);
    }
    pthread_mutex_destroy(&upload->lock);
    free(upload);
    gpu->upload = NULL;
}

static int make_worker(struct gpu_device *gpu, struct worker *worker)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    int code = runtime->stream_create(runtime->self, &worker->stream);
    for (uint32_t h = 0; h < HALVES && !code; h++) {
        uint64_t unused;
        code = runtime->pinned_create(runtime->self, PIECE_BYTES, &worker->halves[h].memory,
                                      &unused);
        if (!code)
            code = runtime->event_create(runtime->self, false, &worker->halves[h].event);
    }
    return code;
}

/* With the device's lock held. Leaves gpu->upload NULL where there is no memory. */
static int make_upload(struct gpu_device *gpu)
{
    struct gpu_upload *upload = calloc(1, sizeof(*upload));
    if (!upload)
        return 0;
    pthread_mutex_init(&upload->lock, NULL);
    gpu->upload = upload;
    uint32_t wanted = parallel_processor_count();
    wanted = wanted > WORKER_LIMIT ? WORKER_LIMIT : wanted;
    int code = 0;
    while (upload->worker_count < wanted && !code)
        code = make_worker(gpu, &upload->workers[upload->worker_count++]);
    if (code)
        gpu_upload_destroy(gpu);
    return code;
}

/* What the workers of one upload share. */
struct job {
    struct gpu_device *gpu;
    uint64_t target;
    const uint8_t *source;
    uint64_t bytes;
    uint64_t next_piece; /* atomic */
    int code;            /* atomic: the first failure */
};

/* Pieces in turn until there are none; worker_index has its own pinned memory. */
static void work(void *context, uint64_t worker_index)
{
    struct job *job = context;
    struct worker *worker = &job->gpu->upload->workers[worker_index];
    const struct gpu_runtime *runtime = &job->gpu->runtime;
    gpu_enter(job->gpu);
    int code = 0;
    while (!code && !__atomic_load_n(&job->code, __ATOMIC_RELAXED)) {
        uint64_t at = __atomic_fetch_add(&job->next_piece, 1, __ATOMIC_RELAXED) * PIECE_BYTES;
        if (at >= job->bytes)
            break;
        uint64_t bytes = job->bytes - at < PIECE_BYTES ? job->bytes - at : PIECE_BYTES;
        struct half *half = &worker->halves[worker->next++ % HALVES];
        if (half->used)
            code = runtime->event_sync(runtime->self, half->event);
        if (code)
            break;
        memcpy(half->memory, job->source + at, (size_t)bytes);
        code = runtime->copy_in(runtime->self, job->target + at, half->memory, bytes,
                                worker->stream);
        if (!code)
            code = runtime->event_record(runtime->self, half->event, worker->stream);
        half->used = !code;
    }
    if (!code)
        code = runtime->stream_sync(runtime->self, worker->stream);
    int none = 0;
    if (code)
        __atomic_compare_exchange_n(&job->code, &none, code, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
}

enum status gpu_upload(struct gpu_device *gpu, uint64_t target, const void *source, uint64_t bytes,
                       struct error *err)
{
    struct job job = { .gpu = gpu, .target = target, .source = source, .bytes = bytes };
    pthread_mutex_lock(&gpu->lock);
    int code = gpu->upload ? 0 : make_upload(gpu);
    pthread_mutex_unlock(&gpu->lock);
    if (code)
        return gpu_failed(gpu, code, "upload", err);
    if (!gpu->upload)
        return error_set(err, STATUS_NO_MEMORY, "no memory for uploads");
    pthread_mutex_lock(&gpu->upload->lock);
    uint64_t pieces = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    uint64_t workers = gpu->upload->worker_count;
    workers = pieces < workers ? pieces : workers;
    if (workers == 1)
        work(&job, 0);
    else
        parallel_run(workers, (uint32_t)workers, work, &job);
    pthread_mutex_unlock(&gpu->upload->lock);
    return job.code ? gpu_failed(gpu, job.code, "upload", err) : STATUS_OK;
}

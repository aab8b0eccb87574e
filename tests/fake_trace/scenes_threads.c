/* scenes_threads.c - the program's scenes with several threads; what greta trace must say of each
 * is in tests/cli/trace_routes_test.sh. */
#include "scenes.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 20 };

/* ---- First calls at once -------------------------------------------------------------------- */

static pthread_barrier_t all_there;

static void *work(void *nothing)
{
    address memory;
    stream own;
    unsigned char bytes[64];
    (void)nothing;
    pthread_barrier_wait(&all_there);
    cuStreamCreate(&own, STREAM_NON_BLOCKING);
    for (int i = 0; i < ROUNDS; i++) {
        cuMemAllocAsync(&memory, sizeof(bytes), own);
        cuMemsetD8Async(memory, 0, sizeof(bytes), own);
        cuMemcpyDtoHAsync_v2(bytes, memory, sizeof(bytes), own);
        cuStreamSynchronize(own);
        cuMemFreeAsync(memory, own);
    }
    cuStreamDestroy_v2(own);
    return NULL;
}

void crowd(struct scene *scene)
{
    pthread_t threads[THREADS];
    (void)scene;
    pthread_barrier_init(&all_there, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- Default streams ------------------------------------------------------------------------ */

static void *fill_there(void *context)
{
    const struct scene *scene = context;
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, NULL);
    launch(scene->add, scene->b, scene->b, NULL);
    return NULL;
}

/* Two threads, one after the other, with stream 0. It is one stream, and they are in order; or each
 * has its own, and they are not. */
void default_streams(struct scene *scene)
{
    pthread_t other;
    void *target;
    cuMemHostAlloc(&target, BYTES, 0);
    pthread_create(&other, NULL, fill_there, scene);
    pthread_join(other, NULL);
    cuMemcpyDtoHAsync_v2(target, scene->a, BYTES, NULL);
    cuStreamSynchronize(NULL);
    cuCtxSynchronize();
    cuMemFreeHost(target);
}

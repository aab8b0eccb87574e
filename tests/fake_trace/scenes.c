/* scenes.c - the program's scenes with the more uncommon calls; what greta trace must say of each
 * is in tests/cli/trace_calls_test.sh. */
#include "scenes.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory --------------------------------------------------------------------------------- */

/* Each kind of memory, used and given back as it must be. */
void all_kinds(struct scene *scene)
{
    address pooled, managed, range;
    size_t pitch;
    address rows;
    static unsigned char own[BYTES];
    cuMemAllocFromPoolAsync(&pooled, BYTES, NULL, scene->first);
    cuMemcpyDtoDAsync_v2(pooled, scene->a, BYTES, scene->first);
    cuMemFreeAsync(pooled, scene->first);
    cuMemAllocManaged(&managed, BYTES, 1);
    launch(scene->add, managed, scene->a, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemFree_v2(managed);
    cuMemAllocPitch_v2(&rows, &pitch, 100, 8, 4);
    cuMemsetD2D16Async(rows, pitch, 0, 50, 8, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemFree_v2(rows);
    /* Two mappings side by side, and a copy over where they meet. */
    cuMemAddressReserve(&range, 2 * BYTES, 0, 0, 0);
    cuMemMap(range, BYTES, 0, 1, 0);
    cuMemMap(range + BYTES, BYTES, 0, 2, 0);
    cuMemcpyDtoH_v2(scene->pinned, range + BYTES / 2, BYTES);
    cuMemUnmap(range, 2 * BYTES);
    cuMemHostRegister_v2(own, BYTES, 0);
    cuMemcpyHtoDAsync_v2(scene->a, own, BYTES, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemHostUnregister(own);
}

/* Memory of a pool: even a plain free does not wait for the copy that reads it. */
void pool_freed(struct scene *scene)
{
    address pooled;
    cuMemAllocAsync(&pooled, BYTES, scene->first);
    cuMemsetD8Async(pooled, 0, BYTES, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, pooled, BYTES, scene->first);
    cuMemFree_v2(pooled);
}

/* Given back on a stream that does not wait for the one that uses it. */
void pool_freed_elsewhere(struct scene *scene)
{
    address pooled;
    cuMemAllocAsync(&pooled, BYTES, scene->first);
    cuMemsetD8Async(pooled, 0, BYTES, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, pooled, BYTES, scene->first);
    cuMemFreeAsync(pooled, scene->second);
}

void unmapped(struct scene *scene)
{
    address range;
    cuMemAddressReserve(&range, BYTES, 0, 0, 0);
    cuMemMap(range, BYTES, 0, 1, 0);
    cuMemUnmap(range, BYTES);
    cuMemcpyDtoH_v2(scene->pinned, range, BYTES);
}

void unregistered(struct scene *scene)
{
    static unsigned char own[BYTES];
    cuMemHostRegister_v2(own, BYTES, 0);
    cuMemcpyDtoHAsync_v2(own, scene->a, BYTES, scene->first);
    cuMemHostUnregister(own);
}

/* As libraries do that do not know of each other: the second gets an error, and goes on. */
void registered_twice(struct scene *scene)
{
    static unsigned char own[BYTES];
    (void)scene;
    cuMemHostRegister_v2(own, BYTES, 0);
    cuMemHostRegister_v2(own, BYTES, 0);
    cuMemHostUnregister(own);
}

/* ---- Shapes --------------------------------------------------------------------------------- */

enum { WIDTH = 256, PITCH = 1024, ROWS = BYTES / PITCH };

static struct copy_2d rows_of(const struct scene *scene, size_t first, size_t count)
{
    return (struct copy_2d){
        .source = { .y = first, .kind = MEMORY_DEVICE, .device = scene->a, .pitch = PITCH },
        .target = { .kind = MEMORY_HOST, .host = scene->pinned, .pitch = WIDTH },
        .width = WIDTH,
        .height = count,
    };
}

static struct copy_3d planes_of(const struct scene *scene, size_t first, size_t count)
{
    return (struct copy_3d){
        .source = { .kind = MEMORY_DEVICE, .device = scene->a, .pitch = WIDTH, .height = 8 },
        .target = { .z = first,
                    .kind = MEMORY_DEVICE,
                    .device = scene->b,
                    .pitch = PITCH,
                    .height = 8 },
        .width = WIDTH,
        .height = 4,
        .depth = count,
    };
}

/* The last of what there is is copied and filled, and not a byte more. */
void all_shapes(struct scene *scene)
{
    struct copy_2d rows = rows_of(scene, ROWS - 8, 8);
    struct copy_3d planes = planes_of(scene, ROWS / 8 - 2, 2);
    cuMemcpy2DAsync_v2(&rows, scene->first);
    cuMemcpy3DAsync_v2(&planes, scene->first);
    cuMemcpyPeerAsync(scene->b, NULL, scene->a, NULL, BYTES, scene->first);
    cuMemsetD32Async(scene->b, 0, BYTES / 4, scene->first);
    cuMemsetD2D16Async(scene->b, PITCH, 0, WIDTH / 2, ROWS, scene->first);
    cuStreamSynchronize(scene->first);
}

void rows_past_end(struct scene *scene)
{
    struct copy_2d rows = rows_of(scene, ROWS - 8, 9);
    cuMemcpy2DAsync_v2(&rows, scene->first);
}

void planes_past_end(struct scene *scene)
{
    struct copy_3d planes = planes_of(scene, ROWS / 8 - 2, 3);
    cuMemcpy3DAsync_v2(&planes, scene->first);
}

/* Bytes where a number of values is meant. */
void fill_past_end(struct scene *scene)
{
    cuMemsetD32Async(scene->a, 0, BYTES, scene->first);
}

void peers_unordered(struct scene *scene)
{
    cuMemcpyPeerAsync(scene->b, NULL, scene->a, NULL, BYTES, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
}

/* ---- Order ---------------------------------------------------------------------------------- */

/* Waits of the host that are no waits by their name: a query that says "done", the whole context.
 */
void waits(struct scene *scene)
{
    event mark;
    cuEventCreate(&mark, 0);
    cuMemcpyDtoDAsync_v2(scene->b, scene->a, BYTES, scene->first);
    cuEventRecord(mark, scene->first);
    while (cuEventQuery(mark) == NOT_READY)
        sched_yield();
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
    cuCtxSynchronize();
    cuMemcpyDtoDAsync_v2(scene->b, scene->a, BYTES, scene->first);
    while (cuStreamQuery(scene->first) == NOT_READY)
        sched_yield();
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
}

/* A query that says "not yet" is none. */
void asked_too_early(struct scene *scene)
{
    cuMemcpyDtoDAsync_v2(scene->b, scene->a, BYTES, scene->first);
    if (cuStreamQuery(scene->first) == NOT_READY)
        cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
}

static void rewrite(void *pinned)
{
    memset(pinned, 9, BYTES);
}

/* A function of the host inside the stream writes what the copy after it reads: no mistake. */
void host_function(struct scene *scene)
{
    cuLaunchHostFunc(scene->first, rewrite, scene->pinned);
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    memset(scene->pinned, 9, BYTES);
    cuStreamSynchronize(scene->first);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

static graph graph_by_hand(struct scene *scene, address source, void **node)
{
    graph made, executable;
    struct copy_3d copy = {
        .source = { .kind = MEMORY_DEVICE, .device = source, .pitch = BYTES, .height = 1 },
        .target = { .kind = MEMORY_DEVICE, .device = scene->b, .pitch = BYTES, .height = 1 },
        .width = BYTES,
        .height = 1,
        .depth = 1,
    };
    struct fill_node fill = { scene->a, 0, 0, 4, BYTES / 4, 1 };
    void *other;
    cuGraphCreate(&made, 0);
    cuGraphAddMemcpyNode(node, made, NULL, 0, &copy, NULL);
    cuGraphAddMemsetNode(&other, made, node, 1, &fill, NULL);
    cuGraphInstantiateWithFlags(&executable, made, 0);
    cuGraphDestroy(made);
    cuGraphLaunch(executable, scene->first);
    cuStreamSynchronize(scene->first);
    return executable;
}

/* A node that was added by hand copies from memory that is gone. */
void stale_node(struct scene *scene)
{
    address extra;
    void *node;
    cuMemAlloc_v2(&extra, BYTES);
    cuMemsetD8Async(extra, 0, BYTES, scene->first);
    graph executable = graph_by_hand(scene, extra, &node);
    cuMemFree_v2(extra);
    cuGraphLaunch(executable, scene->first);
}

/* The same, with the node changed before the memory goes. */
void changed_node(struct scene *scene)
{
    address extra;
    void *node;
    struct copy_3d copy = { .width = BYTES, .height = 1, .depth = 1 };
    cuMemAlloc_v2(&extra, BYTES);
    cuMemsetD8Async(extra, 0, BYTES, scene->first);
    graph executable = graph_by_hand(scene, extra, &node);
    cuGraphExecMemcpyNodeSetParams(executable, node, &copy, NULL);
    cuMemFree_v2(extra);
    cuGraphLaunch(executable, scene->first);
    cuStreamSynchronize(scene->first);
    cuGraphExecDestroy(executable);
}

/* ---- Ends ----------------------------------------------------------------------------------- */

/* A fault that a call without any effect is the first to tell of. */
void fault_at_free(struct scene *scene)
{
    launch(scene->add, scene->b, scene->a, scene->first);
    cuStreamSynchronize(scene->first);
    launch(kernel("out_of_bounds"), scene->a, 0, scene->first);
    if (cuMemFree_v2(0) != OK)
        exit(9);
}

/* A copy that was not waited for, then everything goes, and new work begins. */
void reset(struct scene *scene)
{
    address extra;
    for (volatile int i = 0; i < 10; i++)
        cuMemAlloc_v2(&extra, 1000);
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    cuDevicePrimaryCtxReset_v2(0);
    cuCtxSynchronize();
    open_scene(scene);
}

/* Memory that went with its context, used. */
void after_reset(struct scene *scene)
{
    address before = scene->a;
    cuDevicePrimaryCtxReset_v2(0);
    open_scene(scene);
    cuMemcpyDtoH_v2(scene->pinned, before, BYTES);
}

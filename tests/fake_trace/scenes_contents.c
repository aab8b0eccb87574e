/* scenes_contents.c - the program's scenes about what memory holds; what greta trace must say of
 * each is in tests/cli/trace_contents_test.sh. */
#include "scenes.h"

#include <string.h>

/* ---- Memory that nothing wrote -------------------------------------------------------------- */

void unwritten(struct scene *scene)
{
    address extra;
    cuMemAlloc_v2(&extra, BYTES);
    launch(scene->add, scene->b, scene->a, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, extra, BYTES, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemFree_v2(extra);
}

void unwritten_within(struct scene *scene)
{
    address extra;
    cuMemAllocAsync(&extra, BYTES, scene->first);
    cuMemcpyDtoDAsync_v2(scene->a, extra, BYTES / 2, scene->first);
    cuMemFreeAsync(extra, scene->first);
}

/* One row too many is read: it may also be room that is not used. */
void unwritten_end(struct scene *scene)
{
    address extra;
    cuMemAlloc_v2(&extra, BYTES);
    memset(scene->pinned, 0, BYTES);
    cuMemcpyHtoD_v2(extra, scene->pinned, BYTES - 1000);
    cuMemcpyDtoH_v2(scene->pinned, extra, BYTES);
    cuMemFree_v2(extra);
}

/* The address was written before it was freed and allocated again. */
void unwritten_reused(struct scene *scene)
{
    address extra;
    for (int i = 0; i < 2; i++) {
        cuMemAllocAsync(&extra, BYTES, scene->first);
        if (i == 0)
            cuMemsetD8Async(extra, 0, BYTES, scene->first);
        cuMemcpyDtoHAsync_v2(scene->pinned, extra, BYTES, scene->first);
        cuStreamSynchronize(scene->first);
        cuMemFreeAsync(extra, scene->first);
    }
}

/* ---- Memory that something wrote ------------------------------------------------------------ */

/* Its end is copied; the kernel has a pointer to its beginning. */
void written_by_kernel(struct scene *scene)
{
    address extra;
    cuMemAlloc_v2(&extra, BYTES);
    launch(scene->add, extra, scene->a, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, extra + BYTES / 2, BYTES / 2, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemFree_v2(extra);
}

/* As products of many matrices do: the kernel gets a table of addresses in device memory. */
void written_through_table(struct scene *scene)
{
    address extra, table[3];
    cuMemAlloc_v2(&extra, BYTES);
    memset(table, 0, sizeof(table));
    table[2] = extra;
    cuMemcpyHtoD_v2(scene->a, table, sizeof(table));
    cuCtxSynchronize();
    launch(scene->add, scene->a, 0, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, extra, BYTES, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemFree_v2(extra);
}

/* Another process has a handle to the memory. */
void written_elsewhere(struct scene *scene)
{
    unsigned char handle[64];
    address extra;
    cuMemAlloc_v2(&extra, BYTES);
    cuIpcGetMemHandle(handle, extra);
    cuMemcpyDtoHAsync_v2(scene->pinned, extra, BYTES, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemFree_v2(extra);
}

void written_from_array(struct scene *scene)
{
    address extra;
    cuMemAlloc_v2(&extra, BYTES);
    cuMemcpyAtoD_v2(extra, NULL, 0, BYTES);
    cuMemcpyDtoHAsync_v2(scene->pinned, extra, BYTES, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemFree_v2(extra);
}

/* A kernel gets the memory as a tensor map, which holds no pointer that is known as one. */
void written_through_map(struct scene *scene)
{
    unsigned char map[128];
    address extra;
    cuMemAlloc_v2(&extra, BYTES);
    cuTensorMapReplaceAddress(map, (void *)(uintptr_t)extra);
    launch(scene->add, scene->b, scene->a, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, extra, BYTES, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemFree_v2(extra);
}

/* A buffer with room for more grows: all of it is moved. */
void written_in_part(struct scene *scene)
{
    address small, large;
    cuMemAlloc_v2(&small, BYTES);
    cuMemAlloc_v2(&large, 2 * BYTES);
    memset(scene->pinned, 0, BYTES);
    cuMemcpyHtoD_v2(small, scene->pinned, 1000);
    cuMemcpyDtoDAsync_v2(large, small, BYTES, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, large, BYTES, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemFree_v2(large);
    cuMemFree_v2(small);
}

/* An address may stand far inside a copy that is too large to be looked at. */
void written_after_blob(struct scene *scene)
{
    static unsigned char blob[2 * BYTES];
    address extra, large;
    cuMemAlloc_v2(&large, sizeof(blob));
    cuMemAlloc_v2(&extra, BYTES);
    cuMemcpyHtoD_v2(large, blob, sizeof(blob));
    cuCtxSynchronize();
    launch(scene->add, large, 0, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, extra, BYTES, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemFree_v2(extra);
    cuMemFree_v2(large);
}

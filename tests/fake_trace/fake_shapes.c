/* fake_shapes.c - the emulated driver's copies and fills with rows and planes, between devices, and
 * graphs whose nodes are added by hand. */
#include "fake_driver.h"

#include <stdlib.h>
#include <string.h>

/* ---- Rows and planes ------------------------------------------------------------------------ */

struct side {
    address start;
    size_t pitch, plane;
    int on_device;
};

/* One row after the other. What is not there is refused before anything is copied. */
static result move(const struct side *target, const struct side *source, size_t width, size_t rows,
                   size_t planes)
{
    size_t last_target = (planes - 1) * target->plane + (rows - 1) * target->pitch + width;
    size_t last_source = (planes - 1) * source->plane + (rows - 1) * source->pitch + width;
    if ((target->on_device && !fake_is_device(target->start, last_target)) ||
        (source->on_device && !fake_is_device(source->start, last_source)))
        return INVALID_VALUE;
    for (size_t z = 0; z < planes; z++)
        for (size_t y = 0; y < rows; y++)
            memmove((void *)(uintptr_t)(target->start + z * target->plane + y * target->pitch),
                    (void *)(uintptr_t)(source->start + z * source->plane + y * source->pitch),
                    width);
    return OK;
}

static struct side side_2d(const struct end_2d *end)
{
    int on_device = end->kind != MEMORY_HOST;
    address base = on_device ? end->device : (address)(uintptr_t)end->host;
    return (struct side){ base + end->y * end->pitch + end->x, end->pitch, 0, on_device };
}

static result move_2d(const struct copy_2d *copy)
{
    struct side target = side_2d(&copy->target), source = side_2d(&copy->source);
    return move(&target, &source, copy->width, copy->height, 1);
}

EXPORT result cuMemcpy2D_v2(const struct copy_2d *copy)
{
    CALL(287, "cuMemcpy2D_v2", copy, NULL, move_2d(copy));
}

EXPORT result cuMemcpy2DAsync_v2(const struct copy_2d *copy, stream on)
{
    struct {
        const struct copy_2d *copy;
        stream on;
    } arguments = { copy, on };
    CALL(289, "cuMemcpy2DAsync_v2", arguments, NULL, move_2d(copy));
}

static struct side side_3d(const struct end_3d *end)
{
    int on_device = end->kind != MEMORY_HOST;
    address base = on_device ? end->device : (address)(uintptr_t)end->host;
    return (struct side){ base + (end->z * end->height + end->y) * end->pitch + end->x, end->pitch,
                          end->height * end->pitch, on_device };
}

static result move_3d(const struct copy_3d *copy)
{
    struct side target = side_3d(&copy->target), source = side_3d(&copy->source);
    return move(&target, &source, copy->width, copy->height, copy->depth);
}

EXPORT result cuMemcpy3DAsync_v2(const struct copy_3d *copy, stream on)
{
    struct {
        const struct copy_3d *copy;
        stream on;
    } arguments = { copy, on };
    CALL(291, "cuMemcpy3DAsync_v2", arguments, NULL, move_3d(copy));
}

EXPORT result cuMemcpy(address target, address source, size_t bytes)
{
    struct {
        address target, source;
        size_t bytes;
    } arguments = { target, source, bytes };
    struct side to = { target, 0, 0, 0 }, from = { source, 0, 0, 0 };
    CALL(305, "cuMemcpy", arguments, NULL, move(&to, &from, bytes, 1, 1));
}

EXPORT result cuMemcpyPeer(address target, void *target_context, address source,
                           void *source_context, size_t bytes)
{
    struct {
        address target;
        void *target_context;
        address source;
        void *source_context;
        size_t bytes;
    } arguments = { target, target_context, source, source_context, bytes };
    struct side to = { target, 0, 0, 1 }, from = { source, 0, 0, 1 };
    CALL(318, "cuMemcpyPeer", arguments, NULL, move(&to, &from, bytes, 1, 1));
}

EXPORT result cuMemcpyPeerAsync(address target, void *target_context, address source,
                                void *source_context, size_t bytes, stream on)
{
    struct {
        address target;
        void *target_context;
        address source;
        void *source_context;
        size_t bytes;
        stream on;
    } arguments = { target, target_context, source, source_context, bytes, on };
    struct side to = { target, 0, 0, 1 }, from = { source, 0, 0, 1 };
    CALL(319, "cuMemcpyPeerAsync", arguments, NULL, move(&to, &from, bytes, 1, 1));
}

/* ---- Fills ---------------------------------------------------------------------------------- */

static result fill(address target, size_t pitch, size_t width, size_t height)
{
    if (!fake_is_device(target, (height - 1) * pitch + width))
        return INVALID_VALUE;
    fake_next_grid(); /* a kernel of the driver's own */
    for (size_t y = 0; y < height; y++)
        memset((void *)(uintptr_t)(target + y * pitch), 0, width);
    return OK;
}

EXPORT result cuMemsetD32Async(address target, unsigned int value, size_t count, stream on)
{
    struct {
        address target;
        unsigned int value;
        size_t count;
        stream on;
    } arguments = { target, value, count, on };
    CALL(220, "cuMemsetD32Async", arguments, NULL, fill(target, 0, count * 4, 1));
}

EXPORT result cuMemsetD2D16Async(address target, size_t pitch, unsigned short value, size_t width,
                                 size_t height, stream on)
{
    struct {
        address target;
        size_t pitch;
        unsigned int value;
        size_t width, height;
        stream on;
    } arguments = { target, pitch, value, width, height, on };
    CALL(224, "cuMemsetD2D16Async", arguments, NULL, fill(target, pitch, width * 2, height));
}

/* ---- Graphs by hand ------------------------------------------------------------------------- */

struct node_arguments {
    void **node;
    graph into;
    void **behind;
    size_t behind_count;
    const void *parameters;
    void *context;
};

static result give(void **node)
{
    *node = calloc(1, sizeof(struct fake_graph));
    return *node ? OK : INVALID_VALUE;
}

EXPORT result cuGraphCreate(graph *made, unsigned int flags)
{
    (void)flags;
    return give((void **)made);
}

EXPORT result cuGraphAddMemcpyNode(void **node, graph into, void **behind, size_t behind_count,
                                   const struct copy_3d *copy, void *context)
{
    struct node_arguments arguments = { node, into, behind, behind_count, copy, context };
    CALL(504, "cuGraphAddMemcpyNode", arguments, NULL, give(node));
}

EXPORT result cuGraphAddMemsetNode(void **node, graph into, void **behind, size_t behind_count,
                                   const struct fill_node *parameters, void *context)
{
    struct node_arguments arguments = { node, into, behind, behind_count, parameters, context };
    CALL(506, "cuGraphAddMemsetNode", arguments, NULL, give(node));
}

EXPORT result cuGraphExecMemcpyNodeSetParams(graph executable, void *node,
                                             const struct copy_3d *copy, void *context)
{
    struct {
        graph executable;
        void *node;
        const struct copy_3d *copy;
        void *context;
    } arguments = { executable, node, copy, context };
    CALL(562, "cuGraphExecMemcpyNodeSetParams", arguments, NULL, OK);
}

EXPORT result cuGraphExecDestroy(graph executable)
{
    CALL(516, "cuGraphExecDestroy", executable, NULL, OK);
}

EXPORT result cuGraphDestroy(graph made)
{
    CALL(517, "cuGraphDestroy", made, NULL, OK);
}

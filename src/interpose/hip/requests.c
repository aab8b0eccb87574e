/* requests.c - what a call asks for, in the recording's terms. Structs of the program are read only
 * where the runtime reads them too; a missing one asks for nothing. */
#include "interpose/hip/hip.h"

static enum interpose_direction direction_of(hipMemcpyKind kind)
{
    switch (kind) {
    case HIP_COPY_IN:
        return INTERPOSE_TO_DEVICE;
    case HIP_COPY_OUT:
        return INTERPOSE_TO_HOST;
    case HIP_COPY_WITHIN:
        return INTERPOSE_WITHIN;
    case HIP_COPY_HOST:
        return INTERPOSE_HOST;
    default:
        return INTERPOSE_ANY;
    }
}

/* ---- Copies --------------------------------------------------------------------------------- */

struct interpose_copy hip_line(hipMemcpyKind kind, const void *target, const void *source,
                               size_t bytes, bool async, const struct interpose_stream *stream)
{
    return (struct interpose_copy){ .direction = direction_of(kind),
                                    .source = hip_number(source),
                                    .target = hip_number(target),
                                    .bytes = bytes,
                                    .async = async,
                                    .stream = stream };
}

struct interpose_copy hip_rows(struct interpose_copy copy, size_t rows, size_t target_pitch,
                               size_t source_pitch)
{
    copy.rows = rows;
    copy.target_pitch = target_pitch;
    copy.source_pitch = source_pitch;
    if (rows == 0)
        copy.bytes = 0;
    return copy;
}

struct interpose_copy hip_opaque(bool async, const struct interpose_stream *stream)
{
    return (struct interpose_copy){ .direction = INTERPOSE_ANY,
                                    .source_opaque = true,
                                    .target_opaque = true,
                                    .sides_unknown = true,
                                    .async = async,
                                    .stream = stream };
}

struct interpose_copy hip_to_opaque(struct interpose_copy copy)
{
    copy.target_opaque = true;
    return copy;
}

struct interpose_copy hip_from_opaque(struct interpose_copy copy)
{
    copy.source_opaque = true;
    return copy;
}

struct interpose_copy hip_in_graph(hipGraph_t graph, struct interpose_copy copy)
{
    copy.graph = hip_number(graph);
    return copy;
}

static uint64_t place_of(const hipPitchedPtr *memory, const hipPos *at)
{
    return hip_number(memory->ptr) + (at->z * memory->ysize + at->y) * memory->pitch + at->x;
}

struct interpose_copy hip_planes(const struct hipMemcpy3DParms *copy, bool async,
                                 const struct interpose_stream *stream)
{
    if (!copy)
        return hip_opaque(async, stream);
    const hipExtent *extent = &copy->extent;
    struct interpose_copy reported = {
        .direction = direction_of(copy->kind),
        .source_opaque = copy->srcArray != NULL,
        .target_opaque = copy->dstArray != NULL,
        .source = copy->srcArray ? 0 : place_of(&copy->srcPtr, &copy->srcPos),
        .target = copy->dstArray ? 0 : place_of(&copy->dstPtr, &copy->dstPos),
        .bytes = extent->height && extent->depth ? extent->width : 0,
        .rows = extent->height,
        .source_pitch = copy->srcPtr.pitch,
        .target_pitch = copy->dstPtr.pitch,
        .planes = extent->depth,
        .source_plane = copy->srcPtr.pitch * copy->srcPtr.ysize,
        .target_plane = copy->dstPtr.pitch * copy->dstPtr.ysize,
        .async = async,
        .stream = stream,
    };
    /* For arrays the width is in elements, whose size is not known here. */
    if (reported.source_opaque || reported.target_opaque)
        reported.source_opaque = reported.target_opaque = reported.sides_unknown = true;
    return reported;
}

/* A side is an array, host memory or device memory. A number says which, but its values differ
 * between versions; in practice only the pointer that is meant is set. */
static uint64_t side_of(const void *host, const void *device, const void *array, size_t x, size_t y,
                        size_t pitch, bool *ret_opaque)
{
    *ret_opaque = array || (host != NULL) == (device != NULL);
    return *ret_opaque ? 0 : hip_number(host ? host : device) + y * pitch + x;
}

struct interpose_copy hip_driver_rows(const hip_Memcpy2D *copy, bool async,
                                      const struct interpose_stream *stream)
{
    if (!copy)
        return hip_opaque(async, stream);
    struct interpose_copy reported = { .direction = INTERPOSE_ANY,
                                       .bytes = copy->Height ? copy->WidthInBytes : 0,
                                       .rows = copy->Height,
                                       .source_pitch = copy->srcPitch,
                                       .target_pitch = copy->dstPitch,
                                       .async = async,
                                       .stream = stream };
    reported.source = side_of(copy->srcHost, copy->srcDevice, copy->srcArray, copy->srcXInBytes,
                              copy->srcY, copy->srcPitch, &reported.source_opaque);
    reported.target = side_of(copy->dstHost, copy->dstDevice, copy->dstArray, copy->dstXInBytes,
                              copy->dstY, copy->dstPitch, &reported.target_opaque);
    return reported;
}

/* ---- Fills ---------------------------------------------------------------------------------- */

struct interpose_fill hip_fill(const void *target, size_t count, size_t value_bytes,
                               const struct interpose_stream *stream)
{
    return (struct interpose_fill){ .target = hip_number(target),
                                    .bytes = count * value_bytes,
                                    .stream = stream };
}

struct interpose_fill hip_fill_rows(const void *target, size_t width, size_t height, size_t pitch,
                                    const struct interpose_stream *stream)
{
    return (struct interpose_fill){ .target = hip_number(target),
                                    .bytes = height ? width : 0,
                                    .rows = height,
                                    .pitch = pitch,
                                    .stream = stream };
}

/* Planes follow each other, with ysize rows each. If they are not filled to the end, the rows
 * between them would be recorded as filled too, so only the first plane is recorded then. */
struct interpose_fill hip_fill_planes(hipPitchedPtr memory, hipExtent extent,
                                      const struct interpose_stream *stream)
{
    size_t rows = extent.height;
    if (extent.height == memory.ysize)
        rows *= extent.depth;
    return hip_fill_rows(memory.ptr, extent.width, extent.depth ? rows : 0, memory.pitch, stream);
}

struct interpose_fill hip_fill_in_graph(hipGraph_t graph, const hipMemsetParams *fill)
{
    struct interpose_fill reported = { .graph = hip_number(graph) };
    if (fill) {
        reported.target = hip_number(fill->dst);
        reported.bytes = fill->height ? fill->width * fill->elementSize : 0;
        reported.rows = fill->height;
        reported.pitch = fill->pitch;
    }
    return reported;
}

/* ---- Launches ------------------------------------------------------------------------------- */

static uint32_t blocks_of(uint32_t threads, uint32_t block)
{
    return block ? threads / block + (threads % block != 0) : 0;
}

dim3 hip_blocks(uint32_t x, uint32_t y, uint32_t z, uint32_t block_x, uint32_t block_y,
                uint32_t block_z)
{
    return (dim3){ blocks_of(x, block_x), blocks_of(y, block_y), blocks_of(z, block_z) };
}

struct hip_launch hip_node_launch(hipGraph_t graph, const hipKernelNodeParams *kernel)
{
    if (!kernel)
        return (struct hip_launch){ .graph = graph };
    return (struct hip_launch){ .function = kernel->func,
                                .grid = kernel->gridDim,
                                .block = kernel->blockDim,
                                .shared_bytes = kernel->sharedMemBytes,
                                .params = kernel->kernelParams,
                                .extra = kernel->extra,
                                .graph = graph };
}

struct hip_launch hip_config_launch(const hipLaunchConfig_t *config, const void *function,
                                    void **params, const struct interpose_stream *stream)
{
    struct hip_launch launch = { .function = function, .params = params, .stream = stream };
    if (config) {
        launch.grid = config->gridDim;
        launch.block = config->blockDim;
        launch.shared_bytes = config->dynamicSmemBytes;
    }
    return launch;
}

struct hip_launch hip_driver_launch(const HIP_LAUNCH_CONFIG *config, const void *function,
                                    void **params, void **extra,
                                    const struct interpose_stream *stream)
{
    struct hip_launch launch = {
        .function = function, .params = params, .extra = extra, .stream = stream
    };
    if (config) {
        launch.grid = (dim3){ config->gridDimX, config->gridDimY, config->gridDimZ };
        launch.block = (dim3){ config->blockDimX, config->blockDimY, config->blockDimZ };
        launch.shared_bytes = config->sharedMemBytes;
    }
    return launch;
}

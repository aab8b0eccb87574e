/* calls_memory.c - the driver's calls that make, give back, copy and fill memory. */
#include "interpose/cuda/cuda.h"

static uint64_t memory_of(const struct cuda_call *call)
{
    return call->entry->argument;
}

/* ---- Allocations ---------------------------------------------------------------------------- */

static void begin_alloc(struct cuda_call *call, uint64_t bytes,
                        const struct interpose_stream *stream)
{
    interpose_alloc_begin(call->trace, &call->call, call->entry->name,
                          (enum interpose_memory)memory_of(call), bytes, stream);
    interpose_alloc_context(call->trace, &call->call, cuda_context(call));
}

void cuda_begin_alloc(struct cuda_call *call)
{
    const struct args_alloc *args = call->arguments;
    begin_alloc(call, args->bytes, NULL);
}

void cuda_begin_alloc_host(struct cuda_call *call)
{
    const struct args_alloc_host *args = call->arguments;
    bool slow = (args->flags & CUDA_HOST_WRITE_COMBINED) != 0;
    interpose_alloc_begin(call->trace, &call->call, call->entry->name,
                          slow ? INTERPOSE_PINNED | INTERPOSE_SLOW_TO_READ : INTERPOSE_PINNED,
                          args->bytes, NULL);
    interpose_alloc_context(call->trace, &call->call, cuda_context(call));
}

void cuda_begin_alloc_async(struct cuda_call *call)
{
    const struct args_alloc *args = call->arguments;
    struct interpose_stream stream = cuda_stream(call, args->stream);
    begin_alloc(call, args->bytes, &stream);
}

void cuda_begin_alloc_pool(struct cuda_call *call)
{
    const struct args_alloc_pool *args = call->arguments;
    struct interpose_stream stream = cuda_stream(call, args->stream);
    begin_alloc(call, args->bytes, &stream);
}

void cuda_begin_alloc_pitch(struct cuda_call *call)
{
    const struct args_alloc_pitch *args = call->arguments;
    begin_alloc(call, args->width * args->height, NULL);
}

void cuda_begin_map(struct cuda_call *call)
{
    const struct args_range *args = call->arguments;
    begin_alloc(call, args->bytes, NULL);
}

void cuda_begin_register(struct cuda_call *call)
{
    cuda_begin_map(call);
}

void cuda_end_alloc(struct cuda_call *call)
{
    const struct args_alloc *args = call->arguments;
    uint64_t address = call->code == 0 && args->address ? *args->address : 0;
    interpose_alloc_end(call->trace, &call->call, address, call->code);
}

void cuda_end_alloc_pitch(struct cuda_call *call)
{
    const struct args_alloc_pitch *args = call->arguments;
    uint64_t bytes;
    /* What a row takes is known only now. */
    if (call->code == 0 && args->pitch && call->call.open &&
        !__builtin_mul_overflow(*args->pitch, args->height, &bytes))
        call->call.event.buffer.bytes = bytes;
    cuda_end_alloc(call);
}

void cuda_end_map(struct cuda_call *call)
{
    const struct args_range *args = call->arguments;
    interpose_alloc_end(call->trace, &call->call, args->address, call->code);
}

void cuda_end_register(struct cuda_call *call)
{
    cuda_end_map(call);
}

/* ---- Frees ---------------------------------------------------------------------------------- */

static void begin_free(struct cuda_call *call, uint64_t address, uint64_t bytes,
                       const struct interpose_stream *stream)
{
    interpose_free_begin(call->trace, &call->call, call->entry->name,
                         (enum interpose_memory)memory_of(call), address, bytes, stream);
}

void cuda_begin_free(struct cuda_call *call)
{
    begin_free(call, *(const uint64_t *)call->arguments, 0, NULL);
}

void cuda_begin_free_async(struct cuda_call *call)
{
    const struct args_pair *args = call->arguments;
    struct interpose_stream stream = cuda_stream(call, args->second);
    begin_free(call, args->first, 0, &stream);
}

void cuda_begin_unmap(struct cuda_call *call)
{
    const struct args_range *args = call->arguments;
    begin_free(call, args->address, args->bytes, NULL);
}

/* ---- Copies --------------------------------------------------------------------------------- */

static void begin_copy(struct cuda_call *call, const struct interpose_copy *asked,
                       uint64_t stream_handle)
{
    struct interpose_stream stream = cuda_stream(call, stream_handle);
    struct interpose_copy copy = *asked;
    copy.stream = &stream;
    interpose_copy_begin(call->trace, &call->call, call->entry->name, &copy);
}

static struct interpose_copy linear_copy(const struct cuda_call *call, const struct args_copy *args)
{
    return (struct interpose_copy){ .direction = (enum interpose_direction)call->entry->argument,
                                    .source = args->source,
                                    .target = args->target,
                                    .bytes = args->bytes };
}

void cuda_begin_copy(struct cuda_call *call)
{
    struct interpose_copy copy = linear_copy(call, call->arguments);
    begin_copy(call, &copy, 0);
}

void cuda_begin_copy_async(struct cuda_call *call)
{
    const struct args_copy *args = call->arguments;
    struct interpose_copy copy = linear_copy(call, args);
    copy.async = true;
    begin_copy(call, &copy, args->stream);
}

void cuda_begin_copy_peer(struct cuda_call *call)
{
    const struct args_copy_peer *args = call->arguments;
    struct interpose_copy copy = { .direction = INTERPOSE_WITHIN,
                                   .source = args->source,
                                   .target = args->target,
                                   .bytes = args->bytes,
                                   .async = call->entry->argument != 0,
                                   .peer = true };
    begin_copy(call, &copy, copy.async ? args->stream : 0);
}

void cuda_begin_copy_from_array(struct cuda_call *call)
{
    const struct args_from_array *args = call->arguments;
    struct interpose_copy copy = { .direction = INTERPOSE_TO_HOST,
                                   .source_opaque = true,
                                   .target = args->target,
                                   .bytes = args->bytes,
                                   .async = call->entry->argument != 0 };
    begin_copy(call, &copy, copy.async ? args->stream : 0);
}

void cuda_begin_copy_to_array(struct cuda_call *call)
{
    const struct args_to_array *args = call->arguments;
    struct interpose_copy copy = { .direction = INTERPOSE_TO_DEVICE,
                                   .source = args->source,
                                   .target_opaque = true,
                                   .bytes = args->bytes,
                                   .async = call->entry->argument != 0 };
    begin_copy(call, &copy, copy.async ? args->stream : 0);
}

/* Which way a pitched copy goes, by the kinds of memory it names. */
static enum interpose_direction direction_of(uint32_t source, uint32_t target)
{
    bool from_host = source == CUDA_MEMORY_HOST, to_host = target == CUDA_MEMORY_HOST;
    if (source == CUDA_MEMORY_UNIFIED || target == CUDA_MEMORY_UNIFIED || (from_host && to_host))
        return INTERPOSE_ANY;
    return to_host ? INTERPOSE_TO_HOST : from_host ? INTERPOSE_TO_DEVICE : INTERPOSE_WITHIN;
}

static uint64_t start_2d(const struct cuda_copy_2d_end *end)
{
    uint64_t base = end->memory == CUDA_MEMORY_HOST ? end->host : end->device;
    return base + end->y * end->pitch + end->x;
}

static uint64_t start_3d(const struct cuda_copy_3d_end *end)
{
    uint64_t base = end->memory == CUDA_MEMORY_HOST ? end->host : end->device;
    return base + (end->z * end->height + end->y) * end->pitch + end->x;
}

void cuda_begin_copy_2d(struct cuda_call *call)
{
    const struct args_copy_pitched *args = call->arguments;
    const struct cuda_copy_2d *asked = args->copy;
    if (!asked)
        return;
    const struct cuda_copy_2d_end *source = &asked->source, *target = &asked->target;
    struct interpose_copy copy = {
        .direction = direction_of(source->memory, target->memory),
        .source = start_2d(source),
        .target = start_2d(target),
        .bytes = asked->width,
        .rows = asked->height,
        .source_pitch = source->pitch ? source->pitch : asked->width,
        .target_pitch = target->pitch ? target->pitch : asked->width,
        .source_opaque = source->memory == CUDA_MEMORY_ARRAY,
        .target_opaque = target->memory == CUDA_MEMORY_ARRAY,
        .async = call->entry->argument != 0,
    };
    begin_copy(call, &copy, copy.async ? args->stream : 0);
}

static struct interpose_copy copy_3d(const struct cuda_copy_3d *asked)
{
    const struct cuda_copy_3d_end *source = &asked->source, *target = &asked->target;
    size_t source_pitch = source->pitch ? source->pitch : asked->width;
    size_t target_pitch = target->pitch ? target->pitch : asked->width;
    return (struct interpose_copy){
        .direction = direction_of(source->memory, target->memory),
        .source = start_3d(source),
        .target = start_3d(target),
        .bytes = asked->width,
        .rows = asked->height,
        .source_pitch = source_pitch,
        .target_pitch = target_pitch,
        .planes = asked->depth,
        .source_plane = source_pitch * (source->height ? source->height : asked->height),
        .target_plane = target_pitch * (target->height ? target->height : asked->height),
        .source_opaque = source->memory == CUDA_MEMORY_ARRAY,
        .target_opaque = target->memory == CUDA_MEMORY_ARRAY,
    };
}

void cuda_begin_copy_3d(struct cuda_call *call)
{
    const struct args_copy_pitched *args = call->arguments;
    if (!args->copy)
        return;
    struct interpose_copy copy = copy_3d(args->copy);
    copy.async = (call->entry->argument & 1) != 0;
    copy.peer = (call->entry->argument & 2) != 0;
    begin_copy(call, &copy, copy.async ? args->stream : 0);
}

void cuda_begin_graph_copy(struct cuda_call *call)
{
    const struct args_graph_node *args = call->arguments;
    if (!args->parameters)
        return;
    struct interpose_copy copy = copy_3d(args->parameters);
    copy.graph = args->graph;
    copy.async = true;
    begin_copy(call, &copy, 0);
}

/* ---- Fills ---------------------------------------------------------------------------------- */

static void begin_fill(struct cuda_call *call, const struct interpose_fill *asked,
                       uint64_t stream_handle)
{
    struct interpose_stream stream = cuda_stream(call, stream_handle);
    struct interpose_fill fill = *asked;
    fill.stream = &stream;
    interpose_fill_begin(call->trace, &call->call, call->entry->name, &fill);
}

static void fill_linear(struct cuda_call *call, bool async)
{
    const struct args_fill *args = call->arguments;
    struct interpose_fill fill = { .target = args->target,
                                   .bytes = args->count * call->entry->argument };
    begin_fill(call, &fill, async ? args->stream : 0);
}

void cuda_begin_fill(struct cuda_call *call)
{
    fill_linear(call, false);
}

void cuda_begin_fill_async(struct cuda_call *call)
{
    fill_linear(call, true);
}

static void fill_pitched(struct cuda_call *call, bool async)
{
    const struct args_fill_2d *args = call->arguments;
    struct interpose_fill fill = { .target = args->target,
                                   .bytes = args->width * call->entry->argument,
                                   .rows = args->height,
                                   .pitch = args->pitch };
    begin_fill(call, &fill, async ? args->stream : 0);
}

void cuda_begin_fill_2d(struct cuda_call *call)
{
    fill_pitched(call, false);
}

void cuda_begin_fill_2d_async(struct cuda_call *call)
{
    fill_pitched(call, true);
}

void cuda_begin_graph_fill(struct cuda_call *call)
{
    const struct args_graph_node *args = call->arguments;
    const struct cuda_fill_node *node = args->parameters;
    if (!node)
        return;
    struct interpose_fill fill = { .target = node->target,
                                   .bytes = node->width * node->element_bytes,
                                   .rows = node->height,
                                   .pitch = node->pitch,
                                   .graph = args->graph };
    begin_fill(call, &fill, 0);
}

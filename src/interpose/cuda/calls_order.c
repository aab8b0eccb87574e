/* calls_order.c - the driver's calls that launch, order and wait. */
#include "interpose/cuda/cuda.h"

#include <string.h>

#define CALL(id, name_, begin_, end_, argument_)                                                   \
    [id] = { .name = #name_,                                                                       \
             .begin = cuda_begin_##begin_,                                                         \
             .end = cuda_end_##end_,                                                               \
             .argument = (uint64_t)(argument_),                                                    \
             .per_thread = sizeof(#name_) > 6 && #name_[sizeof(#name_) - 5] == 'p' &&              \
                           #name_[sizeof(#name_) - 4] == 't' },
static const struct cuda_entry entries[CUDA_CALL_LIMIT] = {
#include "interpose/cuda/calls.def"
};
#undef CALL

const struct cuda_entry *cuda_entry(uint32_t id)
{
    return id < CUDA_CALL_LIMIT && entries[id].name ? &entries[id] : NULL;
}

struct interpose_stream cuda_stream(const struct cuda_call *call, uint64_t handle)
{
    if (handle == 0)
        handle = call->entry->per_thread ? INTERPOSE_STREAM_PER_THREAD : INTERPOSE_STREAM_LEGACY;
    bool is_default = handle == INTERPOSE_STREAM_PER_THREAD || handle == INTERPOSE_STREAM_LEGACY;
    return (struct interpose_stream){ is_default ? cuda_context(call) : 0, handle };
}

void cuda_begin_nothing(struct cuda_call *call)
{
    (void)call;
}

/* For calls that are recorded only after success: a failure is recorded as a failure. */
static bool succeeded(struct cuda_call *call)
{
    if (call->code)
        interpose_failed(call->trace, call->entry->name, call->code);
    return call->code == 0;
}

void cuda_end_plain(struct cuda_call *call)
{
    if (call->call.open)
        interpose_end(call->trace, &call->call, call->code);
    else
        (void)succeeded(call); /* there was nothing to record, such as a free at address 0 */
}

/* ---- Launches ------------------------------------------------------------------------------- */

void cuda_begin_launch(struct cuda_call *call)
{
    const struct args_launch *args = call->arguments;
    bool cooperative = call->entry->argument != 0;
    struct interpose_stream stream = cuda_stream(call, args->stream);
    struct interpose_launch launch = { .function = args->function,
                                       .shared_bytes = args->shared_bytes,
                                       .stream = &stream };
    memcpy(launch.grid, args->grid, sizeof(launch.grid));
    memcpy(launch.block, args->block, sizeof(launch.block));
    cuda_tell_launch(call, &launch, args->parameters, cooperative ? NULL : args->extra);
}

void cuda_begin_launch_ex(struct cuda_call *call)
{
    const struct args_launch_ex *args = call->arguments;
    if (!args->config)
        return;
    struct interpose_stream stream = cuda_stream(call, args->config->stream);
    struct interpose_launch launch = { .function = args->function,
                                       .shared_bytes = args->config->shared_bytes,
                                       .stream = &stream };
    memcpy(launch.grid, args->config->grid, sizeof(launch.grid));
    memcpy(launch.block, args->config->block, sizeof(launch.block));
    cuda_tell_launch(call, &launch, args->parameters, args->extra);
}

void cuda_begin_graph_kernel(struct cuda_call *call)
{
    const struct args_graph_node *args = call->arguments;
    const struct cuda_kernel_node *node = args->parameters;
    if (!node)
        return;
    bool has_kernel = call->entry->argument >= 2;
    struct interpose_launch launch = { .function = node->function || !has_kernel ? node->function
                                                                                 : node->kernel,
                                       .shared_bytes = node->shared_bytes,
                                       .graph = args->graph };
    memcpy(launch.grid, node->grid, sizeof(launch.grid));
    memcpy(launch.block, node->block, sizeof(launch.block));
    cuda_tell_launch(call, &launch, node->parameters, node->extra);
}

void cuda_end_unload(struct cuda_call *call)
{
    (void)succeeded(call);
    cuda_parameters_forget();
    cuda_uses_forget();
}

/* ---- Streams -------------------------------------------------------------------------------- */

void cuda_end_stream_create(struct cuda_call *call)
{
    const struct args_stream_create *args = call->arguments;
    if (!succeeded(call) || !args->stream)
        return;
    struct interpose_stream stream = cuda_stream(call, *args->stream);
    interpose_stream_created(call->trace, call->entry->name, &stream,
                             !(args->flags & CUDA_STREAM_NON_BLOCKING));
}

static uint64_t first_argument(const struct cuda_call *call)
{
    return *(const uint64_t *)call->arguments;
}

void cuda_begin_stream_destroy(struct cuda_call *call)
{
    struct interpose_stream stream = cuda_stream(call, first_argument(call));
    interpose_stream_destroy_begin(call->trace, &call->call, call->entry->name, &stream);
}

void cuda_begin_sync(struct cuda_call *call)
{
    struct interpose_stream stream = cuda_stream(call, first_argument(call));
    interpose_sync_begin(call->trace, &call->call, call->entry->name, &stream);
}

void cuda_begin_sync_all(struct cuda_call *call)
{
    interpose_sync_begin(call->trace, &call->call, call->entry->name, NULL);
}

/* 600, not ready, is no failure. */
static bool is_done(struct cuda_call *call)
{
    return call->code != 600 && succeeded(call);
}

void cuda_end_stream_query(struct cuda_call *call)
{
    struct interpose_stream stream = cuda_stream(call, first_argument(call));
    if (is_done(call))
        interpose_query_done(call->trace, call->entry->name, 0, &stream);
}

void cuda_end_event_query(struct cuda_call *call)
{
    if (is_done(call))
        interpose_query_done(call->trace, call->entry->name, first_argument(call), NULL);
}

void cuda_begin_record(struct cuda_call *call)
{
    const struct args_pair *args = call->arguments;
    struct interpose_stream stream = cuda_stream(call, args->second);
    interpose_record_begin(call->trace, &call->call, call->entry->name, args->first, &stream);
}

void cuda_begin_wait(struct cuda_call *call)
{
    const struct args_pair *args = call->arguments;
    struct interpose_stream stream = cuda_stream(call, args->first);
    interpose_wait_begin(call->trace, &call->call, call->entry->name, args->second, &stream);
}

void cuda_begin_event_sync(struct cuda_call *call)
{
    interpose_event_sync_begin(call->trace, &call->call, call->entry->name, first_argument(call));
}

static void hidden(struct cuda_call *call, uint64_t handle)
{
    struct interpose_stream stream = cuda_stream(call, handle);
    if (succeeded(call))
        interpose_hidden_order(call->trace, call->entry->name, &stream);
}

void cuda_end_hidden(struct cuda_call *call)
{
    hidden(call, first_argument(call));
}

/* The stream is the argument with that number. */
void cuda_end_hidden_last(struct cuda_call *call)
{
    const uint64_t *args = call->arguments;
    hidden(call, args[call->entry->argument]);
}

/* To variables of a module, or to other processes. */
void cuda_end_given_away(struct cuda_call *call)
{
    if (succeeded(call))
        interpose_may_tell(call->trace, call->entry->argument != 0);
}

void cuda_end_unseen_writes(struct cuda_call *call)
{
    if (succeeded(call))
        interpose_unseen_writes(call->trace);
}

/* Work on the device that is not followed, perhaps kernels of the driver's own. */
void cuda_end_unseen_work(struct cuda_call *call)
{
    if (!succeeded(call))
        return;
    interpose_unseen_writes(call->trace);
    interpose_unseen_launches(call->trace);
}

void cuda_end_unseen_copies(struct cuda_call *call)
{
    cuda_end_hidden_last(call);
    interpose_unseen_launches(call->trace);
}

/* What a program sets before a network card or another device may use the memory. */
void cuda_end_pointer_attribute(struct cuda_call *call)
{
    const struct args_pointer_attribute *args = call->arguments;
    if (succeeded(call) && args->attribute == CUDA_POINTER_SYNC_MEMOPS && args->value &&
        *args->value) {
        interpose_copies_may_wait(call->trace);
        interpose_unseen_writes(call->trace);
    }
}

/* The flags are the argument with that number. */
void cuda_end_context_flags(struct cuda_call *call)
{
    const uint32_t *args = call->arguments;
    if (succeeded(call) && (args[call->entry->argument] & CUDA_CONTEXT_SYNC_MEMOPS))
        interpose_copies_may_wait(call->trace);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

void cuda_begin_capture_begin(struct cuda_call *call)
{
    struct interpose_stream stream = cuda_stream(call, first_argument(call));
    interpose_capture_begin(call->trace, &call->call, call->entry->name, &stream);
}

/* Into a graph that has nodes already: calls are followed as of a capture, and the graph is one
 * that was changed. */
void cuda_end_capture_to_graph(struct cuda_call *call)
{
    const struct args_pair *args = call->arguments;
    struct interpose_stream stream = cuda_stream(call, args->first);
    if (!succeeded(call))
        return;
    interpose_graph_changed(call->trace, args->second);
    interpose_capture_begin(call->trace, &call->call, call->entry->name, &stream);
    interpose_end(call->trace, &call->call, 0);
}

void cuda_begin_capture_end(struct cuda_call *call)
{
    const struct args_given *args = call->arguments;
    struct interpose_stream stream = cuda_stream(call, args->stream);
    interpose_capture_end(call->trace, &call->call, call->entry->name, &stream);
}

void cuda_end_capture_end(struct cuda_call *call)
{
    const struct args_given *args = call->arguments;
    if (call->code == 0 && args->graph)
        interpose_capture_gave(call->trace, &call->call, *args->graph);
    cuda_end_plain(call);
}

void cuda_end_instantiate(struct cuda_call *call)
{
    const struct args_instantiate *args = call->arguments;
    if (succeeded(call) && args->executable)
        interpose_graph_instantiated(call->trace, args->graph, *args->executable);
}

void cuda_begin_graph_launch(struct cuda_call *call)
{
    const struct args_pair *args = call->arguments;
    struct interpose_stream stream = cuda_stream(call, args->second);
    interpose_graph_launch_begin(call->trace, &call->call, call->entry->name, args->first, &stream);
}

void cuda_end_graph_destroy(struct cuda_call *call)
{
    if (succeeded(call))
        interpose_graph_destroyed(call->trace, first_argument(call));
}

/* The graph is the argument with that number; 2: the call names only a node, of some graph. */
void cuda_end_graph_changed(struct cuda_call *call)
{
    const uint64_t *args = call->arguments;
    uint64_t which = call->entry->argument;
    if (succeeded(call))
        interpose_graph_changed(call->trace, which < 2 ? args[which] : 0);
}

/* graph.c - work recorded once and replayed. All buffers that were recorded must still be alive at
 * every replay.
 *
 * With options.serialise the backend gets no graph. A replay is then its calls, one by one; each is
 * reported as a call of its own and waited for. */
#include "device/device_core.h"

#include <inttypes.h>
#include <stdlib.h>

enum status device_graph_begin(struct device *device, struct device_stream stream,
                               struct device_site site, struct error *err)
{
    struct call call;
    struct stream_slot *slot;
    struct device_tampered asked = { .kind = EVENT_GRAPH_BEGIN, .stream = stream };
    if (device_is_tampered(device) && !tamper_before(device, &asked))
        return STATUS_OK;
    call_init(&call, device, EVENT_GRAPH_BEGIN, site);
    TRY(call_lock_stream(&call, stream, "graph begin", &slot, err));
    enum status status = call_refuse_capture(&call, slot, "graph begin", err);
    if (!status) {
        call_begin(&call);
        slot->builder = calloc(1, sizeof(*slot->builder));
        if (slot->builder)
            slot->builder->id = call.event.id;
        else
            status = error_set(err, STATUS_NO_MEMORY, "graph: no memory to record one");
        call_end(&call, status, err);
    }
    call_unlock_stream(slot);
    return status;
}

/* Gives what was recorded a handle; takes builder, whatever the outcome. */
static enum status finish(struct device *device, void *stream, struct graph_builder *take_builder,
                          struct device_graph *ret_graph, struct error *err)
{
    pthread_mutex_lock(&device->lock);
    uint32_t index = slot_take(&device->graphs);
    pthread_mutex_unlock(&device->lock);
    if (!index) {
        graph_builder_destroy(take_builder);
        return error_set(err, STATUS_LIMIT, "expected fewer than %" PRIu32 " graphs at a time",
                         device->graphs.capacity);
    }
    struct graph_slot *slot = slot_at(&device->graphs, index);
    slot->epoch = 0;
    slot->impl = NULL;
    enum status status = STATUS_OK;
    if (!device->options.serialise)
        status = device->methods->graph_create(device, stream, take_builder->commands,
                                               take_builder->command_count, &slot->impl, err);
    pthread_mutex_lock(&device->lock);
    slot->recorded = status ? NULL : take_builder;
    if (status)
        slot_release(&device->graphs, index);
    else
        *ret_graph = (struct device_graph){ index, slot->head.generation };
    pthread_mutex_unlock(&device->lock);
    if (status)
        graph_builder_destroy(take_builder);
    return status;
}

enum status device_graph_end(struct device *device, struct device_stream stream,
                             struct device_site site, struct device_graph *ret_graph,
                             struct error *err)
{
    struct call call;
    struct stream_slot *slot;
    struct device_tampered asked = { .kind = EVENT_GRAPH_END, .stream = stream };
    if (device_is_tampered(device))
        tamper_before(device, &asked);
    call_init(&call, device, EVENT_GRAPH_END, site);
    TRY(call_lock_stream(&call, stream, "graph end", &slot, err));
    enum status status = STATUS_OK;
    if (!slot->builder)
        status = call_refuse(&call, EVENT_CHECK_CAPTURE, EVENT_NO_OPERAND, 1, 0, err,
                             STATUS_REFUSED,
                             "graph end: expected a graph being recorded, found none");
    if (!status) {
        call.event.cause_id = slot->builder->id;
        call_begin(&call);
        status = finish(device, slot->impl, slot->builder, ret_graph, err);
        slot->builder = NULL;
        call.event.graph.handle = status ? 0 : ret_graph->index;
        call_end(&call, status, err);
    }
    call_unlock_stream(slot);
    return status;
}

/* With device->lock held: the first buffer of the graph that is gone, or NULL. */
static const struct device_buffer *find_stale(const struct device *device,
                                              const struct graph_builder *recorded)
{
    for (size_t i = 0; i < recorded->buffer_count; i++)
        if (!slot_find(&device->buffers, recorded->buffers[i].index,
                       recorded->buffers[i].generation))
            return &recorded->buffers[i];
    return NULL;
}

static enum status check_graph(struct call *call, struct device_graph graph,
                               struct graph_slot **ret_slot, struct error *err)
{
    struct device *device = call->device;
    pthread_mutex_lock(&device->lock);
    struct graph_slot *slot = slot_find(&device->graphs, graph.index, graph.generation);
    const struct device_buffer *stale = slot ? find_stale(device, slot->recorded) : NULL;
    uint32_t now = stale ? slot_generation(&device->buffers, stale->index) : 0;
    char name[BUFFER_NAME_BYTES] = "";
    if (stale)
        event_set_text(name, sizeof(name),
                       ((struct buffer_slot *)slot_at(&device->buffers, stale->index))->name);
    pthread_mutex_unlock(&device->lock);
    if (!slot)
        return call_refuse(call, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, graph.generation, 0, err,
                           STATUS_NOT_FOUND,
                           "graph: expected a live one, found handle %" PRIu32 ".%" PRIu32,
                           graph.index, graph.generation);
    if (stale)
        return call_refuse(
            call, EVENT_CHECK_STALE_GRAPH, EVENT_NO_OPERAND, stale->generation, now, err,
            STATUS_REFUSED,
            "graph: expected every buffer it was recorded with, found buffer %" PRIu32
            " destroyed (generation %" PRIu32 ", now %" PRIu32
            "; its place was last called %s): record the graph again",
            stale->index, stale->generation, now, name);
    *ret_slot = slot;
    return STATUS_OK;
}

/* Begins the recorded call once more, as one of its own. */
static void begin_again(struct call *call, struct device *device, const struct stream_slot *stream,
                        const struct event *recorded, const struct device_site *site)
{
    call_init(call, device, EVENT_LAUNCH, *site);
    if (recorded) {
        uint64_t begin_ns = call->event.begin_ns;
        uint32_t thread_index = call->event.thread_index;
        call->event = *recorded;
        call->event.id = 0;
        event_set_graph_id(&call->event, 0); /* it is run */
        call->event.begin_ns = begin_ns;
        call->event.thread_index = thread_index;
        call->event.scope.step = stream->scope.step;
    }
    call_begin(call);
}

/* The commands [place, end) of one recorded call: its work, and inspections before and after. */
static enum status give_call(struct device *device, const struct stream_slot *stream,
                             const struct graph_builder *recorded, size_t place, size_t end,
                             const struct device_site *site, uint64_t *ret_event_id,
                             struct error *err)
{
    struct call call;
    enum status status = STATUS_OK;
    begin_again(&call, device, stream, recorded->events ? &recorded->events[place] : NULL, site);
    *ret_event_id = call.event.id;
    for (size_t i = place; i < end && !status; i++) {
        struct device_command command = recorded->commands[i];
        command.event_id = call.event.id;
        command.scope.step = stream->scope.step;
        if (command.kind == DEVICE_COMMAND_LAUNCH)
            inspect_note_launch(&call, command.contract->name);
        if (command.kind == DEVICE_COMMAND_INSPECT)
            status = device->methods->submit(device, stream->impl, &command, err);
        else
            status = call_submit_alone(&call, stream, &command, err);
    }
    return call_end(&call, status, err);
}

static enum status give_calls(struct device *device, const struct stream_slot *stream,
                              const struct graph_builder *recorded, const struct device_site *site,
                              uint64_t *ret_event_id, struct error *err)
{
    const struct device_command *commands = recorded->commands;
    enum status status = STATUS_OK;
    for (size_t i = 0, end = 0; i < recorded->command_count && !status; i = end) {
        while (end < recorded->command_count && commands[end].event_id == commands[i].event_id)
            end++;
        status = give_call(device, stream, recorded, i, end, site, ret_event_id, err);
    }
    return status;
}

static enum status give_replay(struct device *device, struct device_stream stream,
                               struct device_graph graph, struct device_site site,
                               uint64_t *ret_event_id, struct error *err)
{
    struct call call;
    struct stream_slot *slot;
    struct graph_slot *graph_slot;
    call_init(&call, device, EVENT_GRAPH_REPLAY, site);
    TRY(call_lock_stream(&call, stream, "graph replay", &slot, err));
    call.event.graph.handle = graph.index;
    enum status status = call_refuse_capture(&call, slot, "graph replay", err);
    if (!status)
        status = check_graph(&call, graph, &graph_slot, err);
    if (!status && device->options.serialise) {
        status = give_calls(device, slot, graph_slot->recorded, &site, &call.event.id, err);
    } else if (!status) {
        uint64_t epoch = __atomic_add_fetch(&graph_slot->epoch, 1, __ATOMIC_RELAXED);
        call.event.graph.epoch = (uint16_t)epoch;
        call.event.cause_id = graph_slot->recorded->id;
        call_begin(&call);
        status = device->methods->graph_replay(device, slot->impl, graph_slot->impl, call.event.id,
                                               &slot->scope, err);
        call_end(&call, status, err);
    }
    call_unlock_stream(slot);
    *ret_event_id = call.event.id;
    return status;
}

enum status device_graph_replay(struct device *device, struct device_stream stream,
                                struct device_graph graph, struct device_site site,
                                struct error *err)
{
    uint64_t event_id = 0;
    struct device_tampered call = { .kind = EVENT_GRAPH_REPLAY, .stream = stream, .graph = graph };
    if (!device_is_tampered(device))
        return give_replay(device, stream, graph, site, &event_id, err);
    if (!tamper_before(device, &call))
        return STATUS_OK;
    enum status status = give_replay(device, call.stream, graph, site, &event_id, err);
    tamper_after(device, &call, status, event_id);
    return status;
}

void graph_slot_release(struct device *device, struct graph_slot *slot)
{
    if (slot->impl)
        device->methods->graph_destroy(device, slot->impl);
    pthread_mutex_lock(&device->lock); /* the lookup of a trap's launch reads it */
    struct graph_builder *recorded = slot->recorded;
    slot->recorded = NULL;
    pthread_mutex_unlock(&device->lock);
    graph_builder_destroy(recorded);
}

static enum status destroy(struct device *device, struct device_graph graph,
                           struct device_site site, struct error *err)
{
    struct call call;
    call_init(&call, device, EVENT_GRAPH_DESTROY, site);
    pthread_mutex_lock(&device->lock);
    struct graph_slot *slot = slot_find(&device->graphs, graph.index, graph.generation);
    pthread_mutex_unlock(&device->lock);
    if (!slot)
        return call_refuse(&call, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, graph.generation, 0, err,
                           STATUS_NOT_FOUND,
                           "graph: expected a live one, found handle %" PRIu32 ".%" PRIu32,
                           graph.index, graph.generation);
    call.event.graph.handle = graph.index;
    call_begin(&call);
    graph_slot_release(device, slot);
    pthread_mutex_lock(&device->lock);
    slot_release(&device->graphs, graph.index);
    pthread_mutex_unlock(&device->lock);
    return call_end(&call, STATUS_OK, err);
}

void device_graph_destroy(struct device *device, struct device_graph graph, struct device_site site)
{
    struct error err;
    if (destroy(device, graph, site, &err))
        device_keep_refusal(device, &err);
}

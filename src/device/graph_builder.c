/* graph_builder.c - what a graph records: commands as they were checked, the events they were
 * reported as, and the buffers they name. */
#include "device/device_core.h"

#include "base/array.h"

#include <stdlib.h>

/* A decode step has a few hundred launches; more than this is a mistake of the caller. */
#define GRAPH_COMMAND_LIMIT 65536u

void graph_builder_destroy(struct graph_builder *builder)
{
    if (!builder)
        return;
    free(builder->commands);
    free(builder->events);
    free(builder->buffers);
    free(builder);
}

uint64_t graph_builder_id(const struct graph_builder *builder)
{
    return builder->id;
}

const struct device_command *graph_find_command(const struct graph_builder *builder,
                                                uint64_t event_id)
{
    for (size_t i = 0; i < builder->command_count; i++)
        if (builder->commands[i].event_id == event_id &&
            builder->commands[i].kind != DEVICE_COMMAND_INSPECT)
            return &builder->commands[i];
    return NULL;
}

static bool add_buffer(struct graph_builder *builder, struct device_buffer buffer)
{
    for (size_t i = 0; i < builder->buffer_count; i++)
        if (builder->buffers[i].index == buffer.index &&
            builder->buffers[i].generation == buffer.generation)
            return true;
    struct device_buffer *buffers = array_reserve(builder->buffers, builder->buffer_count,
                                                  &builder->buffer_capacity, sizeof(*buffers));
    if (!buffers)
        return false;
    builder->buffers = buffers;
    builder->buffers[builder->buffer_count++] = buffer;
    return true;
}

/* Makes room for the event of the next command, if replays will report it again. */
static bool keep_event(struct graph_builder *builder, const struct call *call)
{
    if (!call->device->options.serialise || !device_is_observed(call->device))
        return true;
    struct event *events = array_reserve(builder->events, builder->command_count,
                                         &builder->event_capacity, sizeof(*events));
    if (!events)
        return false;
    builder->events = events;
    builder->events[builder->command_count] = call->event;
    return true;
}

enum status graph_record(struct graph_builder *builder, const struct call *call,
                         const struct device_command *command, const struct device_view *views,
                         size_t view_count, struct error *err)
{
    if (builder->command_count == GRAPH_COMMAND_LIMIT)
        return error_set(err, STATUS_LIMIT, "graph: expected at most %u commands",
                         GRAPH_COMMAND_LIMIT);
    struct device_command *commands = array_reserve(builder->commands, builder->command_count,
                                                    &builder->command_capacity, sizeof(*commands));
    bool good = commands != NULL && keep_event(builder, call);
    if (commands)
        builder->commands = commands;
    for (size_t i = 0; good && i < view_count; i++)
        good = views[i].buffer.index == 0 || add_buffer(builder, views[i].buffer);
    if (!good)
        return error_set(err, STATUS_NO_MEMORY, "graph: no memory for one more command");
    builder->commands[builder->command_count++] = *command;
    return STATUS_OK;
}

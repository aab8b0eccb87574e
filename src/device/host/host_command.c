/* host_command.c - runs commands on the host: a launch is tiles, which the pool's threads share; a
 * copy or fill is a loop over rows.
 *
 * Runs on the stream's thread, one command after the other. Code that may touch bad addresses runs
 * where faults are caught. A fault is reported, the device is lost, and later commands are skipped.
 * The crumbs name the command that was entered last and the one that was finished last. */
#include "device/host/host_stream_item.h"

#include <string.h>

static void copy_rows(uint8_t *target, uint64_t target_stride, const uint8_t *source,
                      uint64_t source_stride, uint64_t row_bytes, uint64_t row_count)
{
    for (uint64_t row = 0; row < row_count; row++)
        memmove(target + row * target_stride, source + row * source_stride, (size_t)row_bytes);
}

/* Everything but launches; runs where a fault is caught. */
static void do_transfer(void *context)
{
    const struct device_command *command = context;
    const struct device_rows *to = &command->target, *from = &command->source;
    uint8_t *target = (uint8_t *)(uintptr_t)to->address;
    const uint8_t *source = (const uint8_t *)(uintptr_t)from->address;
    switch (command->kind) {
    case DEVICE_COMMAND_COPY_IN:
        copy_rows(target, to->stride_bytes, command->staging, to->row_bytes, to->row_bytes,
                  to->row_count);
        break;
    case DEVICE_COMMAND_COPY_OUT:
        copy_rows(command->staging, from->row_bytes, source, from->stride_bytes, from->row_bytes,
                  from->row_count);
        break;
    case DEVICE_COMMAND_COPY_WITHIN:
        copy_rows(target, to->stride_bytes, source, from->stride_bytes, to->row_bytes,
                  to->row_count);
        break;
    case DEVICE_COMMAND_FILL:
        for (uint64_t row = 0; row < to->row_count; row++)
            memset(target + row * to->stride_bytes, command->byte, (size_t)to->row_bytes);
        break;
    case DEVICE_COMMAND_LAUNCH:
    case DEVICE_COMMAND_INSPECT:
        break;
    }
}

static void do_launch(struct host_stream *stream, const struct device_command *command)
{
    struct host_pool *pool = host_of(stream->device)->pool;
    stream->job.command = command;
    stream->job.crumbs = stream->device->crumbs;
    host_pool_begin(pool, &stream->job);
    host_stream_announce_next(stream); /* the workers have begun */
    host_job_finish(&stream->job, stream->scratch);
}

/* event_id: of the command, or of the replay it is part of. */
static void do_command(struct host_stream *stream, const struct device_command *command,
                       uint64_t event_id)
{
    struct device *device = stream->device;
    struct crumb_stream *crumbs = &device->crumbs->streams[stream->index];
    if (device_is_lost(device))
        return;
    if (command->kind == DEVICE_COMMAND_INSPECT) {
        host_inspect(device, stream->index, command, event_id);
        return;
    }
    bool faulted = false;
    struct fault_info info;
    crumb_enter(crumbs, event_id);
    if (command->kind == DEVICE_COMMAND_LAUNCH) {
        do_launch(stream, command);
        faulted = __atomic_load_n(&stream->job.faulted, __ATOMIC_ACQUIRE) != 0;
        info = stream->job.fault;
    } else {
        faulted = !fault_run(do_transfer, (void *)(uintptr_t)command, &info);
    }
    if (!faulted) {
        crumb_finish(crumbs, event_id);
        return;
    }
    /* The finished crumb is not written, so that the crumbs show where the stream stopped. */
    struct device_fault fault = { .caught = true,
                                  .event_id = event_id,
                                  .node_id = command->event_id != event_id ? command->event_id : 0,
                                  .op = device_command_name(command),
                                  .scope = command->scope,
                                  .stream_index = stream->index,
                                  .address_known = info.address_known ? EVENT_ADDRESS_CAUGHT
                                                                      : EVENT_ADDRESS_UNKNOWN,
                                  .address = info.address };
    device_report_fault(device, &fault);
}

void host_command_do(struct host_stream *stream, const struct device_command *command)
{
    do_command(stream, command, command->event_id);
    if (device_wants_completion(stream->device, command))
        device_report_completion(stream->device, stream->index, command->event_id);
}

void host_graph_do(struct host_stream *stream, struct host_graph *graph, uint64_t event_id)
{
    struct crumb_stream *crumbs = &stream->device->crumbs->streams[stream->index];
    uint64_t node = 0;
    for (size_t i = 0; i < graph->count && !device_is_lost(stream->device); i++) {
        if (graph->commands[i].kind != DEVICE_COMMAND_INSPECT)
            __atomic_store_n(&crumbs->node, ++node, __ATOMIC_RELEASE);
        do_command(stream, &graph->commands[i], event_id);
    }
    host_graph_unuse(graph);
    if (stream->device->options.completions)
        device_report_completion(stream->device, stream->index, event_id);
}

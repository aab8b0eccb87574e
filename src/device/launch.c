/* launch.c - launches: the contract, then the views, then the queue. */
#include "device/device_core.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* Prefetches the slots of all operands' buffers at once. Between two tokens the weights have passed
 * through the caches, and missing these lines one by one would cost more than the checks. */
static void fetch_operands(const struct device *device, const struct device_launch *launch)
{
    for (uint32_t i = 0; i < launch->operand_count && i < DEVICE_OPERAND_LIMIT; i++)
        slot_fetch(&device->buffers, launch->operands[i].buffer.index);
}

static enum status resolve_operands(struct call *call, const struct device_launch *launch,
                                    struct device_command *command, struct resolved *ret_resolved,
                                    struct error *err)
{
    for (uint32_t i = 0; i < launch->operand_count; i++) {
        const struct device_view *view = &launch->operands[i];
        const struct device_operand_rule *rule = &launch->contract->operands[i];
        struct device_host_operand *operand = &command->operands[i];
        *operand = (struct device_host_operand){ 0 };
        if (view->buffer.index == 0)
            continue; /* optional and absent: the contract was checked */
        struct resolved *resolved = &ret_resolved[i];
        if (call_resolve(call, view, i, rule->name, rule->mode, resolved, err))
            return error_wrap(err, "%s", launch->contract->name);
        *operand = (struct device_host_operand){
            .data = (void *)(uintptr_t)resolved->rows.address,
            .row_stride_bytes = resolved->rows.stride_bytes,
            .dtype = view->dtype,
            .shape = view->shape,
        };
    }
    return STATUS_OK;
}

void device_begin_alone(struct device *device)
{
    if (device->options.serialise)
        pthread_mutex_lock(&device->serial_lock);
}

void device_end_alone(struct device *device)
{
    if (device->options.serialise)
        pthread_mutex_unlock(&device->serial_lock);
}

enum status call_settle(const struct call *call, const struct stream_slot *stream,
                        struct error *err)
{
    struct device *device = call->device;
    if (!device->options.serialise)
        return STATUS_OK;
    TRY(device->methods->stream_sync(device, stream->impl, err));
    if (device_is_lost(device))
        return device_set_lost(device, call->what, err);
    struct event wait = { .kind = EVENT_STREAM_SYNC,
                          .cause_id = call->event.id,
                          .stream_index = call->event.stream_index,
                          .scope = stream->scope,
                          .operand = EVENT_NO_OPERAND };
    device_tell(device, &wait);
    return device->options.guards ? inspect_sweep(call, stream, err) : STATUS_OK;
}

enum status call_submit_alone(const struct call *call, const struct stream_slot *stream,
                              const struct device_command *command, struct error *err)
{
    struct device *device = call->device;
    device_begin_alone(device);
    enum status status = device->methods->submit(device, stream->impl, command, err);
    if (!status)
        status = call_settle(call, stream, err);
    device_end_alone(device);
    return status;
}

enum status call_submit(struct call *call, struct stream_slot *stream,
                        const struct device_command *command, const struct device_view *views,
                        size_t view_count, struct error *err)
{
    if (stream->builder) {
        event_set_graph_id(&call->event, graph_builder_id(stream->builder));
        return graph_record(stream->builder, call, command, views, view_count, err);
    }
    return call_submit_alone(call, stream, command, err);
}

static enum status give_launch(struct device *device, struct device_stream stream,
                               const struct device_launch *launch, struct device_site site,
                               uint64_t *ret_event_id, struct error *err)
{
    const struct device_contract *contract = launch->contract;
    struct call call;
    struct stream_slot *slot;
    struct resolved resolved[DEVICE_OPERAND_LIMIT];
    fetch_operands(device, launch);
    char what[64]; /* not printed: that would cost as much as the checks */
    size_t name_length = strnlen(contract->name, sizeof(what) - sizeof(" launch"));
    memcpy(what, contract->name, name_length);
    memcpy(what + name_length, " launch", sizeof(" launch"));
    call_init(&call, device, EVENT_LAUNCH, site);
    event_set_text(call.event.op, sizeof(call.event.op), contract->name);
    TRY(call_lock_stream(&call, stream, what, &slot, err));
    /* Clearing all of it costs as much as a check: of its operands only those that it has are
     * looked at. */
    struct device_command command;
    memset(&command, 0, offsetof(struct device_command, operands));
    memset(command.params, 0, sizeof(command.params));
    command.kind = DEVICE_COMMAND_LAUNCH;
    command.contract = contract;
    command.scope = slot->scope;
    command.tile_count = launch->tile_count;
    command.operand_count = launch->operand_count;
    enum status status;
    const struct op_row *op = op_table_find(device, contract);
    if (!op) {
        status = call_refuse(&call, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, 1, 0, err,
                             STATUS_UNSUPPORTED, "%s: no image loaded on this device has this op",
                             contract->name);
        goto done;
    }
    command.kernel = op->kernel;
    status = contract_check(&call, op, launch, err);
    if (status)
        goto done;
    status = resolve_operands(&call, launch, &command, resolved, err);
    if (status)
        goto done;
    if (contract->params_bytes)
        memcpy(command.params, launch->params, contract->params_bytes);
    call_begin(&call);
    command.event_id = call.event.id;
    inspect_note_launch(&call, contract->name);
    bool hashed;
    status = inspect_inputs(&call, slot, launch, resolved, &hashed, err);
    if (!status)
        status = call_submit(&call, slot, &command, launch->operands, launch->operand_count, err);
    if (!status)
        status = inspect_outputs(&call, slot, launch, resolved, hashed, err);
    call_end(&call, status, err);
done:
    call_unlock_stream(slot);
    *ret_event_id = call.event.id;
    return status;
}

enum status device_launch(struct device *device, struct device_stream stream,
                          const struct device_launch *launch, struct device_site site,
                          struct error *err)
{
    uint64_t event_id = 0;
    if (!device_is_tampered(device))
        return give_launch(device, stream, launch, site, &event_id, err);
    struct device_launch changed = *launch;
    struct device_tampered call = { .kind = EVENT_LAUNCH, .stream = stream, .launch = &changed };
    if (!tamper_before(device, &call))
        return STATUS_OK;
    enum status status = give_launch(device, call.stream, &changed, site, &event_id, err);
    tamper_after(device, &call, status, event_id);
    return status;
}

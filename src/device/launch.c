/* launch.c - launches: the contract, then the views, then the queue. */
#include "device/device_core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool find_in_module(const struct device_module *module, const char *op,
                           struct device_kernel *ret_kernel)
{
    for (size_t i = 0; module->host && i < module->host->count; i++) {
        if (strcmp(module->host->entries[i].op, op) == 0) {
            ret_kernel->host = module->host->entries[i].host;
            return true;
        }
    }
    for (size_t i = 0; module->gpu && i < module->gpu->count; i++) {
        if (strcmp(module->gpu->entries[i].op, op) == 0) {
            ret_kernel->gpu = module->gpu->entries[i].plan;
            return true;
        }
    }
    return false;
}

static bool find_kernel(struct device *device, const char *op, struct device_kernel *ret_kernel)
{
    bool found = false;
    pthread_mutex_lock(&device->lock);
    for (size_t i = 0; i < device->module_count && !found; i++) {
        found = find_in_module(&device->modules[i], op, ret_kernel);
        ret_kernel->module_index = (uint32_t)i;
    }
    pthread_mutex_unlock(&device->lock);
    return found;
}

static enum status resolve_operands(struct call *call, const struct device_launch *launch,
                                    struct device_command *command, struct error *err)
{
    for (uint32_t i = 0; i < launch->operand_count; i++) {
        const struct device_view *view = &launch->operands[i];
        const struct device_operand_rule *rule = &launch->contract->operands[i];
        struct device_host_operand *operand = &command->operands[i];
        *operand = (struct device_host_operand){ 0 };
        if (view->buffer.index == 0)
            continue; /* optional and absent: the contract was checked */
        struct resolved resolved;
        if (call_resolve(call, view, i, rule->name, rule->mode, &resolved, err))
            return error_wrap(err, "%s", launch->contract->name);
        *operand = (struct device_host_operand){
            .data = (void *)(uintptr_t)resolved.rows.address,
            .row_stride_bytes = resolved.rows.stride_bytes,
            .dtype = view->dtype,
            .shape = view->shape,
        };
    }
    return STATUS_OK;
}

enum status call_submit(struct call *call, struct stream_slot *stream,
                        const struct device_command *command, const struct device_view *views,
                        size_t view_count, struct error *err)
{
    if (stream->builder) {
        call->event.object = graph_builder_id(stream->builder);
        return graph_record(stream->builder, command, views, view_count, err);
    }
    return call->device->methods->submit(call->device, stream->impl, command, err);
}

enum status device_launch(struct device *device, struct device_stream stream,
                          const struct device_launch *launch, struct device_site site,
                          struct error *err)
{
    const struct device_contract *contract = launch->contract;
    struct call call;
    struct stream_slot *slot;
    struct device_launch tampered;
    char what[64];
    snprintf(what, sizeof(what), "%s launch", contract->name);
    call_init(&call, device, EVENT_LAUNCH, site);
    event_set_text(call.event.op, sizeof(call.event.op), contract->name);
    TRY(call_lock_stream(&call, stream, what, &slot, err));
    if (device->tamper.launch) {
        tampered = *launch;
        device->tamper.launch(device->tamper.context, &tampered, &slot->scope);
        launch = &tampered;
    }
    struct device_command command = { .kind = DEVICE_COMMAND_LAUNCH,
                                      .contract = contract,
                                      .scope = slot->scope,
                                      .tile_count = launch->tile_count,
                                      .operand_count = launch->operand_count };
    enum status status = contract_check(&call, launch, err);
    if (status)
        goto done;
    status = resolve_operands(&call, launch, &command, err);
    if (status)
        goto done;
    if (!find_kernel(device, contract->name, &command.kernel)) {
        status = call_refuse(
            &call, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, 1, 0, err, STATUS_UNSUPPORTED,
            "%s: expected a kernel for it on this device, found none loaded", contract->name);
        goto done;
    }
    if (contract->params_bytes)
        memcpy(command.params, launch->params, contract->params_bytes);
    call_begin(&call);
    command.event_id = call.event.id;
    status = call_submit(&call, slot, &command, launch->operands, launch->operand_count, err);
    call_end(&call, status, err);
done:
    call_unlock_stream(slot);
    return status;
}

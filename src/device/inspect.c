/* inspect.c - what the audit inspects around a launch: hashes of operands, values that are not
 * finite, and the canaries next to what the launch wrote.
 *
 * Inspections are commands of the backend, in stream order after (or before) the call they belong
 * to. Their results come back through device_report_inspection and become events. */
#include "device/device_core.h"

#include "base/size.h"

/* How much of the slack on each side of a buffer is checked after every launch: an overrun begins
 * here. All of it is checked when the buffer is destroyed. */
#define CANARY_BYTES 64u

enum status inspect_queue(struct call *call, struct stream_slot *stream,
                          struct device_command *command, struct error *err)
{
    command->kind = DEVICE_COMMAND_INSPECT;
    command->event_id = call->event.id;
    command->scope = stream->scope;
    if (stream->builder)
        return graph_record(stream->builder, call, command, NULL, 0, err);
    return call->device->methods->submit(call->device, stream->impl, command, err);
}

/* ---- Canaries and values -------------------------------------------------------------------- */

static struct device_rows dense(uint64_t address, uint64_t bytes)
{
    return (struct device_rows){ address, bytes, 1, bytes };
}

/* limit: bytes on each side, counted from the buffer. */
static struct device_command canary_command(const struct device_memory *memory, uint64_t limit,
                                            const struct event_access *access)
{
    uint64_t before = min_u64(memory->slack_before, limit);
    struct device_command command = {
        .source = dense(memory->address - before, before),
        .target = dense(memory->address + memory->bytes, min_u64(memory->slack_after, limit)),
        .byte = memory->canary,
        .inspection = { .what = DEVICE_INSPECT_CANARY,
                        .access = *access,
                        .buffer_bytes = memory->bytes },
    };
    command.inspection.access.address = memory->address;
    command.inspection.access.bytes = memory->bytes;
    return command;
}

static enum status queue_canary(struct call *call, struct stream_slot *stream,
                                const struct device_contract *contract,
                                const struct device_memory *memory,
                                const struct event_access *access, struct error *err)
{
    struct device_command command = canary_command(memory, CANARY_BYTES, access);
    command.contract = contract;
    return inspect_queue(call, stream, &command, err);
}

/* The buffer with that index, if it has canaries. No thread destroys it meanwhile: the launch runs
 * alone. */
static bool find_guarded(struct device *device, uint32_t index, struct device_memory *ret_memory,
                         struct event_access *ret_access)
{
    pthread_mutex_lock(&device->lock);
    const struct buffer_slot *slot = slot_at(&device->buffers, index);
    bool found = slot_is_alive(&device->buffers, index) &&
                 (slot->memory.slack_before || slot->memory.slack_after);
    if (found) {
        *ret_memory = slot->memory;
        *ret_access = (struct event_access){ .buffer_index = index,
                                             .generation = (uint16_t)slot->head.generation,
                                             .mode = EVENT_UPDATE,
                                             .operand = EVENT_NO_OPERAND };
    }
    pthread_mutex_unlock(&device->lock);
    return found;
}

enum status inspect_sweep(const struct call *call, const struct stream_slot *stream,
                          struct error *err)
{
    struct device *device = call->device;
    if (!device_is_observed(device))
        return STATUS_OK;
    pthread_mutex_lock(&device->lock);
    uint32_t used = device->buffers.used;
    pthread_mutex_unlock(&device->lock);
    for (uint32_t i = 1; i < used; i++) {
        struct device_memory memory;
        struct event_access access;
        if (!find_guarded(device, i, &memory, &access))
            continue;
        struct device_command command = canary_command(&memory, UINT64_MAX, &access);
        command.kind = DEVICE_COMMAND_INSPECT;
        command.event_id = call->event.id;
        command.scope = stream->scope;
        command.inspection.swept = true;
        TRY(device->methods->submit(device, stream->impl, &command, err));
    }
    TRY(device->methods->stream_sync(device, stream->impl, err));
    return device_is_lost(device) ? device_set_lost(device, call->what, err) : STATUS_OK;
}

static enum status queue_scan(struct call *call, struct stream_slot *stream,
                              const struct device_contract *contract,
                              const struct resolved *resolved, const struct event_access *access,
                              struct error *err)
{
    struct device_command command = {
        .contract = contract,
        .source = resolved->rows,
        .inspection = { .what = DEVICE_INSPECT_SCAN, .access = *access },
    };
    return inspect_queue(call, stream, &command, err);
}

static bool is_scanned(struct device *device)
{
    uint32_t every = device->options.scan_every;
    return every && __atomic_fetch_add(&device->launch_count, 1, __ATOMIC_RELAXED) % every == 0;
}

/* ---- Hashes of operands --------------------------------------------------------------------- */

static bool is_hashed(struct device *device, const struct stream_slot *stream)
{
    const struct device_hash_choice *choice = &device->options.hash_ops;
    if (!choice->every || !device_is_observed(device) || stream->builder)
        return false;
    uint64_t number = __atomic_fetch_add(&device->run_launches, 1, __ATOMIC_RELAXED);
    return number >= choice->first && (!choice->last || number <= choice->last) &&
           (number - choice->first) % choice->every == 0;
}

/* side: EVENT_READ before the launch, EVENT_WRITE after it. */
static enum status queue_hash(struct call *call, struct stream_slot *stream,
                              const struct device_contract *contract,
                              const struct resolved *resolved, const struct event_access *access,
                              uint8_t side, struct error *err)
{
    struct device_command command = {
        .contract = contract,
        .source = resolved->rows,
        .inspection = { .what = DEVICE_INSPECT_DIGEST, .access = *access },
    };
    command.inspection.access.mode = side;
    return inspect_queue(call, stream, &command, err);
}

enum status inspect_inputs(struct call *call, struct stream_slot *stream,
                           const struct device_launch *launch, const struct resolved *resolved,
                           bool *ret_hashed, struct error *err)
{
    *ret_hashed = is_hashed(call->device, stream);
    if (!*ret_hashed || call->device->options.hash_ops.plain_outputs)
        return STATUS_OK;
    for (uint8_t i = 0; i < call->event.access_count; i++) {
        struct event_access access = call->event.accesses[i];
        /* An output that is written by index keeps its other rows, which are part of it. */
        if (access.mode & EVENT_READ)
            TRY(queue_hash(call, stream, launch->contract, &resolved[access.operand], &access,
                           EVENT_READ, err));
    }
    return STATUS_OK;
}

static enum status hash_outputs(struct call *call, struct stream_slot *stream,
                                const struct device_launch *launch, const struct resolved *resolved,
                                struct error *err)
{
    bool plain = call->device->options.hash_ops.plain_outputs;
    for (uint8_t i = 0; i < call->event.access_count; i++) {
        struct event_access access = call->event.accesses[i];
        bool is_plain = launch->operands[access.operand].dtype == DTYPE_F32 &&
                        !(access.mode & EVENT_SCATTERED);
        if ((access.mode & EVENT_WRITE) && (is_plain || !plain))
            TRY(queue_hash(call, stream, launch->contract, &resolved[access.operand], &access,
                           EVENT_WRITE, err));
    }
    return STATUS_OK;
}

enum status inspect_outputs(struct call *call, struct stream_slot *stream,
                            const struct device_launch *launch, const struct resolved *resolved,
                            bool hashed, struct error *err)
{
    struct device *device = call->device;
    if (hashed)
        TRY(hash_outputs(call, stream, launch, resolved, err));
    if (!device_is_observed(device) || (!device->options.guards && !device->options.scan_every))
        return STATUS_OK;
    bool scanned = is_scanned(device);
    for (uint8_t i = 0; i < call->event.access_count; i++) {
        struct event_access access = call->event.accesses[i];
        const struct resolved *operand = &resolved[access.operand];
        if (!(access.mode & EVENT_WRITE))
            continue;
        bool guarded = operand->memory.slack_before || operand->memory.slack_after;
        if (guarded && !device->options.serialise) /* else all are checked: inspect_sweep */
            TRY(queue_canary(call, stream, launch->contract, &operand->memory, &access, err));
        if (scanned && launch->operands[access.operand].dtype == DTYPE_F32)
            TRY(queue_scan(call, stream, launch->contract, operand, &access, err));
    }
    return STATUS_OK;
}

/* ---- Results -------------------------------------------------------------------------------- */

/* Reported once: from here on nothing is known from canaries that were not found damaged. */
static void tell_unseen_canary(struct device *device, uint32_t stream_index,
                               const struct device_command *command, uint64_t event_id)
{
    if (device_is_lost(device) ||
        __atomic_exchange_n(&device->canary_unseen, true, __ATOMIC_ACQ_REL))
        return;
    struct event event = { .kind = EVENT_CANARY,
                           .cause_id = event_id,
                           .stream_index = stream_index,
                           .scope = command->scope,
                           .access_count = 1,
                           .accesses = { command->inspection.access },
                           .operand = command->inspection.access.operand };
    device_tell(device, &event);
}

void device_report_inspection(struct device *device, uint32_t stream_index,
                              const struct device_command *command, uint64_t event_id,
                              const struct device_inspection_result *result)
{
    const struct device_inspection *inspection = &command->inspection;
    if (inspection->what == DEVICE_INSPECT_DIGEST && inspection->check) {
        transfer_check_set(device, inspection->check, inspection->part, result->digest,
                           result->failed);
        return;
    }
    if (result->failed && inspection->what == DEVICE_INSPECT_CANARY)
        tell_unseen_canary(device, stream_index, command, event_id);
    if (result->failed)
        return;
    struct event event = { .cause_id = event_id,
                           .stream_index = stream_index,
                           .scope = command->scope,
                           .access_count = 1,
                           .accesses = { inspection->access },
                           .operand = inspection->access.operand };
    if (command->contract)
        event_set_text(event.op, sizeof(event.op), command->contract->name);
    if (inspection->what == DEVICE_INSPECT_DIGEST) {
        event.kind = EVENT_OP_HASH;
        event.op_hash = (struct event_op_hash){ result->digest, inspection->access.mode };
        device_tell(device, &event);
    } else if (inspection->what == DEVICE_INSPECT_SCAN) {
        event.kind = EVENT_SCAN;
        event.scan = (struct event_scan){ .value_count = result->count,
                                          .bad_count = result->found,
                                          .first_bad = result->found ? result->first : 0 };
        device_tell(device, &event);
    } else if (result->found) {
        bool all_seen = !__atomic_load_n(&device->canary_unseen, __ATOMIC_ACQUIRE);
        event.kind = EVENT_CANARY;
        event.flags = inspection->swept && all_seen ? EVENT_SWEPT : 0;
        event.canary = (struct event_canary){
            .address = result->first,
            .offset = (int64_t)(result->first - inspection->access.address),
            .damaged_bytes = result->found,
            .buffer_bytes = inspection->buffer_bytes,
        };
        device_tell(device, &event);
    }
}

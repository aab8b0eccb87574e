/* inspect.c - what the audit wants looked at: hashes of transfers and of operands, values that are
 * not finite, canaries beside what a launch wrote, the error state around a copy, and which launch
 * a trap is of. Inspections are commands of the backend in stream order, behind (or before) the
 * call they belong to; their results come back through device_report_inspection and become events.
 */
#include "device/device_core.h"

#include <stdlib.h>
#include <string.h>

/* Of the slack on each side of a buffer, as much is looked at after every launch; all of it when
 * the buffer is destroyed. An overrun begins here. */
#define CANARY_BYTES 64u

struct recent_launch {
    uint64_t event_id;
    const char *op; /* the contract's: static */
    uint32_t stream_index;
    struct event_scope scope;
};

struct transfer_check {
    struct transfer_check *next;
    struct event event; /* as it will be told */
    uint64_t digests[TRANSFER_PARTS];
    uint8_t known; /* bit 1 << part */
    bool failed;   /* one of them could not be read */
};

/* ---- Life ----------------------------------------------------------------------------------- */

enum status inspect_create(struct device *device, struct error *err)
{
    pthread_mutex_init(&device->inspect_lock, NULL);
    if (!device_is_observed(device))
        return STATUS_OK;
    device->recent = calloc(RECENT_LAUNCHES, sizeof(*device->recent));
    return device->recent ? STATUS_OK
                          : error_set(err, STATUS_NO_MEMORY, "no memory to remember launches");
}

void inspect_destroy(struct device *device)
{
    /* Of a device that was lost in between: what is not known by now never will be. */
    while (device->checks) {
        struct transfer_check *check = device->checks;
        device->checks = check->next;
        free(check);
    }
    free(device->recent);
    device->recent = NULL;
    pthread_mutex_destroy(&device->inspect_lock);
}

/* ---- Launches by their id ------------------------------------------------------------------- */

void inspect_note_launch(const struct call *call, const char *op)
{
    struct device *device = call->device;
    if (!device->recent)
        return;
    pthread_mutex_lock(&device->inspect_lock);
    device->recent[call->event.id % RECENT_LAUNCHES] =
        (struct recent_launch){ call->event.id, op, call->event.stream_index, call->event.scope };
    pthread_mutex_unlock(&device->inspect_lock);
}

static bool find_recorded(const struct device *device, uint64_t event_id, struct event *event)
{
    for (uint32_t i = 1; i < device->graphs.used; i++) {
        const struct graph_slot *slot = slot_at(&device->graphs, i);
        const struct device_command *command = slot_is_alive(&device->graphs, i) && slot->recorded
                                                   ? graph_find_command(slot->recorded, event_id)
                                                   : NULL;
        if (!command || !command->contract)
            continue;
        event_set_text(event->op, sizeof(event->op), command->contract->name);
        event->scope = command->scope;
        return true;
    }
    return false;
}

bool inspect_find_launch(struct device *device, uint64_t event_id, struct event *event)
{
    if (!device->recent)
        return false;
    pthread_mutex_lock(&device->inspect_lock);
    struct recent_launch launch = device->recent[event_id % RECENT_LAUNCHES];
    pthread_mutex_unlock(&device->inspect_lock);
    if (launch.event_id != event_id)
        return find_recorded(device, event_id, event);
    event_set_text(event->op, sizeof(event->op), launch.op);
    event->scope = launch.scope;
    event->stream_index = launch.stream_index;
    return true;
}

/* ---- Behind a launch ------------------------------------------------------------------------ */

/* Queued, or recorded where the stream records a graph: then it runs at every replay. */
static enum status queue(struct call *call, struct stream_slot *stream,
                         struct device_command *command, struct error *err)
{
    command->kind = DEVICE_COMMAND_INSPECT;
    command->event_id = call->event.id;
    command->scope = stream->scope;
    if (stream->builder)
        return graph_record(stream->builder, call, command, NULL, 0, err);
    return call->device->methods->submit(call->device, stream->impl, command, err);
}

static struct device_rows dense(uint64_t address, uint64_t bytes)
{
    return (struct device_rows){ address, bytes, 1, bytes };
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* limit: bytes on each side, counted from the buffer. */
static struct device_command canary_command(const struct device_memory *memory, uint64_t limit,
                                            const struct event_access *access)
{
    uint64_t before = least(memory->slack_before, limit);
    struct device_command command = {
        .source = dense(memory->address - before, before),
        .target = dense(memory->address + memory->bytes, least(memory->slack_after, limit)),
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
    return queue(call, stream, &command, err);
}

/* The buffer in that place, if it has canaries. No thread destroys it: the device is alone. */
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
    return device_check(device, err);
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
    return queue(call, stream, &command, err);
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

/* side: EVENT_READ of what is looked at before the launch, EVENT_WRITE after it. */
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
    return queue(call, stream, &command, err);
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
        /* What is written by index keeps its other rows: they are part of the output. */
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

/* ---- Transfers ------------------------------------------------------------------------------ */

struct transfer_check *transfer_check_create(const struct call *call,
                                             const struct device_rows *accessed)
{
    struct device *device = call->device;
    if (!device->options.verify || !device_is_observed(device))
        return NULL;
    struct transfer_check *check = calloc(1, sizeof(*check));
    if (!check)
        return NULL; /* one transfer that is not verified, as the missing event shows */
    const struct event *copy = &call->event;
    check->event = (struct event){ .kind = EVENT_TRANSFER_HASH,
                                   .cause_id = copy->id,
                                   .transfer.bytes = accessed->row_bytes * accessed->row_count,
                                   .stream_index = copy->stream_index,
                                   .scope = copy->scope,
                                   .access_count = 1,
                                   .accesses = { copy->accesses[0] },
                                   .operand = EVENT_NO_OPERAND };
    event_set_text(check->event.op, sizeof(check->event.op), event_kind_name(copy->kind));
    pthread_mutex_lock(&device->inspect_lock);
    check->next = device->checks;
    device->checks = check;
    pthread_mutex_unlock(&device->inspect_lock);
    return check;
}

/* With the lock held. */
static void unlink_check(struct device *device, struct transfer_check *check)
{
    struct transfer_check **at = &device->checks;
    while (*at != check)
        at = &(*at)->next;
    *at = check->next;
}

/* Each part once; the last one tells and frees. */
static void set_part(struct device *device, struct transfer_check *check, uint8_t part,
                     uint64_t digest, bool failed)
{
    pthread_mutex_lock(&device->inspect_lock);
    check->digests[part] = digest;
    check->failed |= failed;
    check->known = (uint8_t)(check->known | 1u << part);
    bool complete = check->known == (1u << TRANSFER_PARTS) - 1;
    if (complete)
        unlink_check(device, check);
    pthread_mutex_unlock(&device->inspect_lock);
    if (!complete)
        return;
    check->event.transfer.source_before = check->digests[TRANSFER_BEFORE];
    check->event.transfer.source_after = check->digests[TRANSFER_AFTER];
    check->event.transfer.destination = check->digests[TRANSFER_LANDED];
    if (!check->failed)
        device_tell(device, &check->event);
    free(check);
}

enum status transfer_check_queue(struct call *call, struct stream_slot *stream,
                                 struct transfer_check *check, enum transfer_part part,
                                 const struct device_rows *rows, void *staging, struct error *err)
{
    if (!check)
        return STATUS_OK;
    struct device_command command = {
        .source = *rows,
        .staging = staging,
        .inspection = { .what = DEVICE_INSPECT_DIGEST,
                        .part = (uint8_t)part,
                        .check = check,
                        .access = call->event.accesses[0] },
    };
    return queue(call, stream, &command, err);
}

void transfer_check_host(struct device *device, struct transfer_check *check,
                         enum transfer_part part, const void *bytes, uint64_t count)
{
    if (check)
        set_part(device, check, (uint8_t)part, device_digest(bytes, count, 1, count), false);
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
        set_part(device, inspection->check, inspection->part, result->digest, result->failed);
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

/* ---- The error state around a copy ---------------------------------------------------------- */

enum status call_ask_before(struct call *call, const struct stream_slot *stream, const char *what,
                            struct error *err)
{
    struct device *device = call->device;
    struct error pending;
    if (!device->options.ask_errors || !device_is_observed(device))
        return STATUS_OK;
    if (device->methods->stream_query(device, stream->impl, &pending) == STATUS_OK) {
        call->event.copy.state_before = EVENT_STATE_CLEAR;
        return STATUS_OK;
    }
    TRY(call_check_lost(call, what, err));
    /* An error that is not an illegal access, and was there before this call. */
    call_set_code(call, &pending);
    return call_refuse(call, EVENT_CHECK_LOST, EVENT_NO_OPERAND, EVENT_STATE_ERROR, 0, err,
                       pending.status, "%s: an error was pending before it: %s", what,
                       pending.text);
}

void call_ask_after(struct call *call, const struct stream_slot *stream)
{
    struct device *device = call->device;
    struct error pending;
    if (!device->options.ask_errors || !device_is_observed(device))
        return;
    bool clear = device->methods->stream_query(device, stream->impl, &pending) == STATUS_OK;
    call->event.copy.state_after = clear ? EVENT_STATE_CLEAR : EVENT_STATE_ERROR;
}

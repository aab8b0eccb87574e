/* flight_old_event.c - an event of version 2 or 3 becomes an event of the current version: see
 * flight_old.h.
 *
 * They had the same fields for all kinds: `object`, `bytes`, `host_address`, `expected` and `found`
 * meant something else in each. Now each kind has a payload with names. */
#include "event/flight_old.h"

#include <string.h>

static uint32_t cut_index(uint64_t index)
{
    return index <= UINT32_MAX ? (uint32_t)index : 0;
}

static void set_copy(const struct old_event *old, struct event_copy *copy)
{
    bool own_transfer = (old->kind == EVENT_COPY_IN || old->kind == EVENT_COPY_OUT) &&
                        !(old->flags & EVENT_FOREIGN);
    bool asked = own_transfer && old->check == EVENT_CHECK_NONE;
    *copy = (struct event_copy){ .bytes = old->bytes,
                                 .host_address = old->host_address,
                                 .graph_id = own_transfer ? 0 : old->object,
                                 .ticket = own_transfer ? cut_index(old->object) : 0,
                                 .generation = own_transfer ? old->epoch : 0 };
    if (asked && old->expected <= EVENT_STATE_ERROR && old->found <= EVENT_STATE_ERROR) {
        copy->state_before = (uint8_t)old->expected;
        copy->state_after = (uint8_t)old->found;
    }
}

static void set_buffer(const struct old_event *old, struct event_buffer *buffer)
{
    bool foreign = (old->flags & EVENT_FOREIGN) != 0;
    bool filled = old->kind == EVENT_BUFFER_CREATE && old->check == EVENT_CHECK_NONE;
    *buffer = (struct event_buffer){ .bytes = old->bytes,
                                     .imported_address = old->host_address,
                                     .graph_id = foreign ? old->object : 0,
                                     .buffer_index = foreign ? 0 : cut_index(old->object),
                                     .fill_byte = filled ? (uint8_t)old->expected : 0 };
}

static void set_ticket(const struct old_event *old, struct event_ticket *ticket)
{
    bool checked = old->check != EVENT_CHECK_NONE;
    *ticket = (struct event_ticket){ .bytes = old->bytes,
                                     .host_address = old->host_address,
                                     .hash = checked ? 0 : old->expected,
                                     .ticket = cut_index(old->object),
                                     .generation = old->epoch,
                                     .waited = !checked && old->found == 1 };
}

/* Findings of the device: what `expected` and `found` meant, by kind. */
static void set_observation(const struct old_event *old, struct event *event)
{
    switch (old->kind) {
    case EVENT_TRAP:
        event->trap = (struct event_trap){ .index = old->found, .bound = old->expected };
        break;
    case EVENT_FAULT:
        event->fault = (struct event_fault){ .address = old->host_address,
                                             .node_id = old->object,
                                             .address_known = old->found < EVENT_ADDRESS_COUNT
                                                                  ? (uint8_t)old->found
                                                                  : EVENT_ADDRESS_UNKNOWN };
        break;
    case EVENT_CANARY:
        event->canary = (struct event_canary){ .address = old->host_address,
                                               .offset = (int64_t)old->found,
                                               .damaged_bytes = old->bytes,
                                               .buffer_bytes = old->expected };
        break;
    case EVENT_RUN:
        event->run = (struct event_run){ .iteration = old->object, .key = old->found };
        break;
    case EVENT_TRANSFER_HASH:
        event->transfer = (struct event_transfer_hash){ .source_before = old->expected,
                                                        .source_after = old->host_address,
                                                        .destination = old->found,
                                                        .bytes = old->bytes };
        break;
    case EVENT_SCAN:
        event->scan = (struct event_scan){ .value_count = old->expected,
                                           .bad_count = old->found,
                                           .first_bad = old->host_address };
        break;
    case EVENT_SOURCE_CHANGED:
        event->source_change = (struct event_source_change){ .address = old->host_address,
                                                             .bytes = old->bytes,
                                                             .digest_before = old->expected,
                                                             .digest_now = old->found };
        break;
    case EVENT_OP_HASH:
        event->op_hash = (struct event_op_hash){ .digest = old->found,
                                                 .when = old->accesses[0].mode };
        break;
    default:
        break;
    }
}

enum event_error_domain flight_old_domain(const struct old_event *old)
{
    char kind[EVENT_OP_BYTES];
    memcpy(kind, old->op, sizeof(kind));
    kind[sizeof(kind) - 1] = '\0';
    return event_error_domain_of(kind);
}

static void set_payload(const struct old_event *old, struct event *event)
{
    switch (event_payload_of((enum event_kind)old->kind)) {
    case EVENT_PAYLOAD_BUFFER:
        set_buffer(old, &event->buffer);
        break;
    case EVENT_PAYLOAD_MARK:
        event->mark.mark = old->object;
        break;
    case EVENT_PAYLOAD_COPY:
        set_copy(old, &event->copy);
        break;
    case EVENT_PAYLOAD_MODULE:
        event->module.kernel_count = old->object;
        break;
    case EVENT_PAYLOAD_LAUNCH:
        event->launch = (struct event_launch){ .graph_id = old->object,
                                               .ordinal = old->bytes,
                                               .name_index = old->name_index };
        break;
    case EVENT_PAYLOAD_GRAPH:
        event->graph = (struct event_graph){ .handle = old->object,
                                             .ordinal = old->bytes,
                                             .epoch = old->epoch };
        break;
    case EVENT_PAYLOAD_TICKET:
        set_ticket(old, &event->ticket);
        break;
    case EVENT_PAYLOAD_CALL:
        event->call.handle = old->object;
        break;
    case EVENT_PAYLOAD_DEVICE:
        event->device.domain = (uint8_t)flight_old_domain(old);
        break;
    default:
        set_observation(old, event);
        break;
    }
}

static uint8_t domain_of(const struct flight_old_file *file, const struct old_event *old)
{
    uint8_t domain = old->phase_and_domain >> 4;
    if (domain == EVENT_ERROR_RUNTIME)
        return (uint8_t)file->runtime;
    return domain <= EVENT_ERROR_RUNTIME ? domain : EVENT_ERROR_DOMAIN_COUNT; /* is refused */
}

struct event flight_old_event(const struct flight_old_file *file, const struct old_event *old)
{
    bool checked = old->check != EVENT_CHECK_NONE;
    struct event event = { .id = old->id,
                           .cause_id = old->cause_id,
                           .begin_ns = old->begin_ns,
                           .process_id = file->process_id,
                           .thread_index = old->thread_index,
                           .stream_index = old->stream_index,
                           .kind = old->kind,
                           .access_count = old->access_count,
                           .scope = old->scope,
                           .flags = old->flags,
                           .stack_index = old->stack_index,
                           .line = old->line <= UINT16_MAX ? (uint16_t)old->line : UINT16_MAX,
                           .check = old->check,
                           .operand = old->operand,
                           .expected = checked ? old->expected : 0,
                           .found = checked ? old->found : 0,
                           .end_ns = old->end_ns,
                           .code = old->code,
                           .domain = domain_of(file, old),
                           .phase = old->phase_and_domain & 15u,
                           .outcome = old->outcome };
    memcpy(event.op, old->op, sizeof(event.op));
    memcpy(event.file, old->file, sizeof(event.file));
    memcpy(event.accesses, old->accesses, sizeof(event.accesses));
    set_payload(old, &event);
    return event;
}

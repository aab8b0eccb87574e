/* events_fields.c - what only events of one kind have, as names and values: the same for every way
 * to show them. */
#include "report/events.h"

#include <inttypes.h>

struct list {
    struct events_field *fields;
    size_t count;
};

static void add(struct list *list, const char *name, enum events_form form, uint64_t value)
{
    ASSERT(list->count < EVENTS_FIELD_LIMIT);
    list->fields[list->count++] = (struct events_field){ name, form, value };
}

static void add_if(struct list *list, const char *name, enum events_form form, uint64_t value)
{
    if (value)
        add(list, name, form, value);
}

static void add_buffer(struct list *list, const struct event_buffer *buffer)
{
    add(list, "bytes", EVENTS_NUMBER, buffer->bytes);
    add_if(list, "buffer", EVENTS_NUMBER, buffer->buffer_index);
    add_if(list, "imported_address", EVENTS_ADDRESS, buffer->imported_address);
    add_if(list, "fill_byte", EVENTS_NUMBER, buffer->fill_byte);
    add_if(list, "graph", EVENTS_NUMBER, buffer->graph_id);
}

static void add_copy(struct list *list, const struct event_copy *copy)
{
    add(list, "bytes", EVENTS_NUMBER, copy->bytes);
    add_if(list, "host_address", EVENTS_ADDRESS, copy->host_address);
    add_if(list, "graph", EVENTS_NUMBER, copy->graph_id);
    add_if(list, "ticket", EVENTS_NUMBER, copy->ticket);
    add_if(list, "generation", EVENTS_NUMBER, copy->generation);
    add_if(list, "state_before", EVENTS_STATE, copy->state_before);
    add_if(list, "state_after", EVENTS_STATE, copy->state_after);
}

static void add_ticket(struct list *list, const struct event_ticket *ticket, bool redeem)
{
    add(list, "bytes", EVENTS_NUMBER, ticket->bytes);
    add_if(list, "host_address", EVENTS_ADDRESS, ticket->host_address);
    add(list, "ticket", EVENTS_NUMBER, ticket->ticket);
    add(list, "generation", EVENTS_NUMBER, ticket->generation);
    add_if(list, "hash", EVENTS_HASH, ticket->hash);
    if (redeem)
        add(list, "waited", EVENTS_NUMBER, ticket->waited);
}

static void add_graph(struct list *list, const struct event_graph *graph)
{
    add_if(list, "handle", EVENTS_NUMBER, graph->handle);
    add_if(list, "epoch", EVENTS_NUMBER, graph->epoch);
    add_if(list, "ordinal", EVENTS_NUMBER, graph->ordinal);
}

static void add_fault(struct list *list, const struct event_fault *fault)
{
    add(list, "address_known", EVENTS_KNOWN, fault->address_known);
    if (fault->address_known)
        add(list, "address", EVENTS_ADDRESS, fault->address);
    add_if(list, "node", EVENTS_NUMBER, fault->node_id);
}

static void add_canary(struct list *list, const struct event_canary *canary)
{
    add(list, "address", EVENTS_ADDRESS, canary->address);
    add(list, "offset", EVENTS_SIGNED, (uint64_t)canary->offset);
    add(list, "damaged_bytes", EVENTS_NUMBER, canary->damaged_bytes);
    add(list, "buffer_bytes", EVENTS_NUMBER, canary->buffer_bytes);
}

static void add_digests(struct list *list, const struct event *event)
{
    if (event->kind == EVENT_TRANSFER_HASH) {
        add(list, "bytes", EVENTS_NUMBER, event->transfer.bytes);
        add(list, "source_before", EVENTS_HASH, event->transfer.source_before);
        add(list, "source_after", EVENTS_HASH, event->transfer.source_after);
        add(list, "destination", EVENTS_HASH, event->transfer.destination);
    } else if (event->kind == EVENT_SOURCE_CHANGED) {
        add(list, "address", EVENTS_ADDRESS, event->source_change.address);
        add(list, "bytes", EVENTS_NUMBER, event->source_change.bytes);
        add(list, "digest_before", EVENTS_HASH, event->source_change.digest_before);
        add(list, "digest_now", EVENTS_HASH, event->source_change.digest_now);
    } else {
        add(list, "digest", EVENTS_HASH, event->op_hash.digest);
        add(list, "when", EVENTS_WHEN, event->op_hash.when);
    }
}

static void add_host(struct list *list, const struct event *event)
{
    if (event->kind == EVENT_HOST_TRAPS) {
        add(list, "state", EVENTS_TRAPS, event->host_traps.state);
        return;
    }
    add(list, "address", EVENTS_ADDRESS, event->host_access.address);
    add_if(list, "bytes", EVENTS_NUMBER, event->host_access.bytes);
    add(list, "copy_address", EVENTS_ADDRESS, event->host_access.copy_address);
    add(list, "copy_bytes", EVENTS_NUMBER, event->host_access.copy_bytes);
}

static void add_values(struct list *list, const struct event *event)
{
    if (event->kind == EVENT_TRAP) {
        add(list, "index", EVENTS_SIGNED, event->trap.index);
        add(list, "bound", EVENTS_NUMBER, event->trap.bound);
    } else if (event->kind == EVENT_RUN) {
        add(list, "iteration", EVENTS_NUMBER, event->run.iteration);
        add(list, "key", EVENTS_NUMBER, event->run.key);
    } else {
        add(list, "values", EVENTS_NUMBER, event->scan.value_count);
        add(list, "not_finite", EVENTS_NUMBER, event->scan.bad_count);
        if (event->scan.bad_count)
            add(list, "first", EVENTS_NUMBER, event->scan.first_bad);
    }
}

size_t events_fields(const struct event *event, struct events_field fields[EVENTS_FIELD_LIMIT])
{
    struct list list = { fields, 0 };
    switch (event_payload_of((enum event_kind)event->kind)) {
    case EVENT_PAYLOAD_BUFFER:
        add_buffer(&list, &event->buffer);
        break;
    case EVENT_PAYLOAD_MARK:
        add(&list, "mark", EVENTS_NUMBER, event->mark.mark);
        break;
    case EVENT_PAYLOAD_COPY:
        add_copy(&list, &event->copy);
        break;
    case EVENT_PAYLOAD_MODULE:
        add(&list, "kernels", EVENTS_NUMBER, event->module.kernel_count);
        break;
    case EVENT_PAYLOAD_LAUNCH:
        add_if(&list, "graph", EVENTS_NUMBER, event->launch.graph_id);
        add_if(&list, "ordinal", EVENTS_NUMBER, event->launch.ordinal);
        break;
    case EVENT_PAYLOAD_GRAPH:
        add_graph(&list, &event->graph);
        break;
    case EVENT_PAYLOAD_TICKET:
        add_ticket(&list, &event->ticket, event->kind == EVENT_TICKET_REDEEM);
        break;
    case EVENT_PAYLOAD_FAULT:
        add_fault(&list, &event->fault);
        break;
    case EVENT_PAYLOAD_CANARY:
        add_canary(&list, &event->canary);
        break;
    case EVENT_PAYLOAD_TRAP:
    case EVENT_PAYLOAD_RUN:
    case EVENT_PAYLOAD_SCAN:
        add_values(&list, event);
        break;
    case EVENT_PAYLOAD_TRANSFER_HASH:
    case EVENT_PAYLOAD_SOURCE_CHANGE:
    case EVENT_PAYLOAD_OP_HASH:
        add_digests(&list, event);
        break;
    case EVENT_PAYLOAD_HOST_ACCESS:
    case EVENT_PAYLOAD_HOST_TRAPS:
        add_host(&list, event);
        break;
    case EVENT_PAYLOAD_CALL:
        add_if(&list, "handle", EVENTS_NUMBER, event->call.handle);
        break;
    default:
        break;
    }
    return list.count;
}

const char *events_field_word(const struct events_field *field)
{
    static const char *const states[] = { "not-asked", "clear", "error" };
    static const char *const known[] = { "unknown", "caught", "runtime", "kernel-log" };
    _Static_assert(COUNT_OF(known) == EVENT_ADDRESS_COUNT, "every way has a word");
    if (field->form == EVENTS_STATE)
        return field->value < COUNT_OF(states) ? states[field->value] : "unknown";
    if (field->form == EVENTS_KNOWN)
        return field->value < COUNT_OF(known) ? known[field->value] : "unknown";
    if (field->form == EVENTS_TRAPS)
        return event_traps_name((enum event_traps)field->value);
    if (field->form == EVENTS_WHEN)
        return field->value == EVENT_READ ? "before" : "after";
    return NULL;
}

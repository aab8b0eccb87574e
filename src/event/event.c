/* event.c - names of the schema. */
#include "event/event.h"
#include "event/crumb.h"

#include "base/status.h"

#include <string.h>

/* Whoever renumbers a value breaks every file that was written before. */
#define FROZEN(value, number, name)                                                                \
    _Static_assert((value) == (number), "the number of " name " is frozen");
#define KIND FROZEN
#define PHASE FROZEN
#define OUTCOME FROZEN
#define CHECK FROZEN
#define DOMAIN FROZEN
#define FLAG FROZEN
#define MODE FROZEN
#define ADDRESS FROZEN
#define STATE FROZEN
#define SIDE FROZEN
#define TRAPS FROZEN
#define ORDER FROZEN
#include "event/numbers.def"

static const char *const kind_names[] = {
#define KIND(value, number, name) [value] = name,
#include "event/numbers.def"
};
_Static_assert(COUNT_OF(kind_names) == EVENT_KIND_COUNT, "every kind has a name");

static const char *const outcome_names[] = {
#define OUTCOME(value, number, name) [value] = name,
#include "event/numbers.def"
};
_Static_assert(COUNT_OF(outcome_names) == EVENT_OUTCOME_COUNT, "every outcome has a name");

static const char *const check_names[] = {
#define CHECK(value, number, name) [value] = name,
#include "event/numbers.def"
};
_Static_assert(COUNT_OF(check_names) == EVENT_CHECK_COUNT, "every check has a name");

static const char *const domain_names[] = {
#define DOMAIN(value, number, name) [value] = name,
#include "event/numbers.def"
};
_Static_assert(COUNT_OF(domain_names) == EVENT_ERROR_DOMAIN_COUNT, "every domain has a name");

static const char *const traps_names[] = {
#define TRAPS(value, number, name) [value] = name,
#include "event/numbers.def"
};
_Static_assert(COUNT_OF(traps_names) == EVENT_TRAPS_COUNT, "every state has a name");

static const uint8_t payloads[] = {
    [EVENT_DEVICE_OPEN] = EVENT_PAYLOAD_DEVICE,
    [EVENT_BUFFER_CREATE] = EVENT_PAYLOAD_BUFFER,
    [EVENT_BUFFER_DESTROY] = EVENT_PAYLOAD_BUFFER,
    [EVENT_MARK_RECORD] = EVENT_PAYLOAD_MARK,
    [EVENT_MARK_WAIT] = EVENT_PAYLOAD_MARK,
    [EVENT_MARK_SYNC] = EVENT_PAYLOAD_MARK,
    [EVENT_COPY_IN] = EVENT_PAYLOAD_COPY,
    [EVENT_COPY_OUT] = EVENT_PAYLOAD_COPY,
    [EVENT_COPY_WITHIN] = EVENT_PAYLOAD_COPY,
    [EVENT_FILL] = EVENT_PAYLOAD_COPY,
    [EVENT_MODULE_LOAD] = EVENT_PAYLOAD_MODULE,
    [EVENT_LAUNCH] = EVENT_PAYLOAD_LAUNCH,
    [EVENT_GRAPH_BEGIN] = EVENT_PAYLOAD_GRAPH,
    [EVENT_GRAPH_END] = EVENT_PAYLOAD_GRAPH,
    [EVENT_GRAPH_REPLAY] = EVENT_PAYLOAD_GRAPH,
    [EVENT_GRAPH_DESTROY] = EVENT_PAYLOAD_GRAPH,
    [EVENT_TICKET_REDEEM] = EVENT_PAYLOAD_TICKET,
    [EVENT_TICKET_RELEASE] = EVENT_PAYLOAD_TICKET,
    [EVENT_TRAP] = EVENT_PAYLOAD_TRAP,
    [EVENT_FAULT] = EVENT_PAYLOAD_FAULT,
    [EVENT_CANARY] = EVENT_PAYLOAD_CANARY,
    [EVENT_RUN] = EVENT_PAYLOAD_RUN,
    [EVENT_TRANSFER_HASH] = EVENT_PAYLOAD_TRANSFER_HASH,
    [EVENT_SCAN] = EVENT_PAYLOAD_SCAN,
    [EVENT_SOURCE_CHANGED] = EVENT_PAYLOAD_SOURCE_CHANGE,
    [EVENT_CALL] = EVENT_PAYLOAD_CALL,
    [EVENT_OP_HASH] = EVENT_PAYLOAD_OP_HASH,
    [EVENT_HOST_ACCESS] = EVENT_PAYLOAD_HOST_ACCESS,
    [EVENT_HOST_TRAPS] = EVENT_PAYLOAD_HOST_TRAPS,
};
_Static_assert(COUNT_OF(payloads) == EVENT_KIND_COUNT, "every kind says what it has");

/* The widest payload decides how large every event is. */
#define FITS(type)                                                                                 \
    _Static_assert(sizeof(struct event_##type) <= EVENT_PAYLOAD_WORDS * sizeof(uint64_t),          \
                   "the payload fits")
FITS(device);
FITS(buffer);
FITS(mark);
FITS(copy);
FITS(module);
FITS(launch);
FITS(graph);
FITS(ticket);
FITS(trap);
FITS(fault);
FITS(canary);
FITS(run);
FITS(transfer_hash);
FITS(scan);
FITS(source_change);
FITS(call);
FITS(op_hash);
FITS(host_access);
FITS(host_traps);

enum event_payload event_payload_of(enum event_kind kind)
{
    return (unsigned)kind < EVENT_KIND_COUNT ? (enum event_payload)payloads[kind]
                                             : EVENT_PAYLOAD_NONE;
}

uint64_t event_bytes(const struct event *event)
{
    switch (event_payload_of((enum event_kind)event->kind)) {
    case EVENT_PAYLOAD_BUFFER:
        return event->buffer.bytes;
    case EVENT_PAYLOAD_COPY:
        return event->copy.bytes;
    case EVENT_PAYLOAD_TICKET:
        return event->ticket.bytes;
    case EVENT_PAYLOAD_TRANSFER_HASH:
        return event->transfer.bytes;
    case EVENT_PAYLOAD_SOURCE_CHANGE:
        return event->source_change.bytes;
    default:
        return 0;
    }
}

const char *event_error_domain_name(enum event_error_domain domain)
{
    return (unsigned)domain < EVENT_ERROR_DOMAIN_COUNT ? domain_names[domain] : "unknown";
}

enum event_error_domain event_error_domain_of(const char *device_kind)
{
    if (strcmp(device_kind, "cuda") == 0)
        return EVENT_ERROR_CUDA;
    return strcmp(device_kind, "hip") == 0 ? EVENT_ERROR_HIP : EVENT_ERROR_NONE;
}

const char *event_traps_name(enum event_traps state)
{
    return (unsigned)state < EVENT_TRAPS_COUNT ? traps_names[state] : "unknown";
}

/* Without a default: a flag that is missing in numbers.def does not compile. */
const char *event_kind_name(enum event_kind kind)
{
    return (unsigned)kind < EVENT_KIND_COUNT ? kind_names[kind] : "unknown";
}

const char *event_outcome_name(enum event_outcome outcome)
{
    return (unsigned)outcome < EVENT_OUTCOME_COUNT ? outcome_names[outcome] : "unknown";
}

const char *event_check_name(enum event_check check)
{
    return (unsigned)check < EVENT_CHECK_COUNT ? check_names[check] : "unknown";
}

void event_set_text(char *field, size_t field_bytes, const char *text)
{
    size_t length = strlen(text);
    if (length >= field_bytes)
        length = field_bytes - 1;
    memcpy(field, text, length);
    memset(field + length, 0, field_bytes - length);
}

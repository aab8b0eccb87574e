/* event.c - names of the schema. */
#include "event/event.h"

#include "base/status.h"

#include <string.h>

static const char *const kind_names[] = {
    [EVENT_DEVICE_OPEN] = "device-open",
    [EVENT_DEVICE_CLOSE] = "device-close",
    [EVENT_BUFFER_CREATE] = "buffer-create",
    [EVENT_BUFFER_DESTROY] = "buffer-destroy",
    [EVENT_STREAM_CREATE] = "stream-create",
    [EVENT_STREAM_DESTROY] = "stream-destroy",
    [EVENT_STREAM_SYNC] = "stream-sync",
    [EVENT_MARK_RECORD] = "mark-record",
    [EVENT_MARK_WAIT] = "mark-wait",
    [EVENT_MARK_SYNC] = "mark-sync",
    [EVENT_COPY_IN] = "copy-in",
    [EVENT_COPY_OUT] = "copy-out",
    [EVENT_COPY_WITHIN] = "copy-within",
    [EVENT_FILL] = "fill",
    [EVENT_MODULE_LOAD] = "module-load",
    [EVENT_LAUNCH] = "launch",
    [EVENT_GRAPH_BEGIN] = "graph-begin",
    [EVENT_GRAPH_END] = "graph-end",
    [EVENT_GRAPH_REPLAY] = "graph-replay",
    [EVENT_GRAPH_DESTROY] = "graph-destroy",
    [EVENT_TICKET_REDEEM] = "ticket-redeem",
    [EVENT_TICKET_RELEASE] = "ticket-release",
    [EVENT_COMPLETION] = "completion",
    [EVENT_TRAP] = "trap",
    [EVENT_FAULT] = "fault",
    [EVENT_CANARY] = "canary",
    [EVENT_RUN] = "run",
    [EVENT_TRANSFER_HASH] = "transfer-hash",
    [EVENT_SCAN] = "scan",
    [EVENT_SOURCE_CHANGED] = "source-changed",
    [EVENT_HIDDEN_ORDER] = "hidden-order",
    [EVENT_CALL] = "call",
    [EVENT_OP_HASH] = "op-hash",
};
_Static_assert(COUNT_OF(kind_names) == EVENT_KIND_COUNT, "every kind has a name");

static const char *const outcome_names[] = {
    [EVENT_PENDING] = "pending",
    [EVENT_DONE] = "done",
    [EVENT_FAILED] = "failed",
    [EVENT_REFUSED] = "refused",
};
_Static_assert(COUNT_OF(outcome_names) == EVENT_OUTCOME_COUNT, "every outcome has a name");

static const char *const check_names[] = {
    [EVENT_CHECK_NONE] = "none",           [EVENT_CHECK_LOST] = "lost",
    [EVENT_CHECK_HANDLE] = "handle",       [EVENT_CHECK_GENERATION] = "generation",
    [EVENT_CHECK_VIEW_END] = "view-end",   [EVENT_CHECK_BYTES] = "bytes",
    [EVENT_CHECK_ALIGNMENT] = "alignment", [EVENT_CHECK_READ_ONLY] = "read-only",
    [EVENT_CHECK_OPERANDS] = "operands",   [EVENT_CHECK_DTYPE] = "dtype",
    [EVENT_CHECK_SHAPE] = "shape",         [EVENT_CHECK_STRIDE] = "stride",
    [EVENT_CHECK_PARAMETER] = "parameter", [EVENT_CHECK_GEOMETRY] = "geometry",
    [EVENT_CHECK_STAGING] = "staging",     [EVENT_CHECK_TICKET] = "ticket",
    [EVENT_CHECK_CAPTURE] = "capture",     [EVENT_CHECK_STALE_GRAPH] = "stale-graph",
    [EVENT_CHECK_MEMORY] = "memory",       [EVENT_CHECK_POINTER] = "pointer",
    [EVENT_CHECK_DIRECTION] = "direction",
};
_Static_assert(COUNT_OF(check_names) == EVENT_CHECK_COUNT, "every check has a name");

static const char *const code_of_names[] = {
    [EVENT_CODE_UNSAID] = "unsaid",
    [EVENT_CODE_GRETA] = "greta",
    [EVENT_CODE_OS] = "os",
    [EVENT_CODE_RUNTIME] = "runtime",
};
_Static_assert(COUNT_OF(code_of_names) == EVENT_CODE_OF_COUNT, "every origin has a name");

const char *event_code_of_name(enum event_code_of of)
{
    return (unsigned)of < EVENT_CODE_OF_COUNT ? code_of_names[of] : "unknown";
}

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

/* bad_pointer.c - an address or index that points where it must not: a view past its buffer, a
 * misaligned one, memory that may only be read, a handle that never was, an index past its bound
 * (the kernel skipped that access and left a trap), an address of which the device's runtime says
 * that it is not what the ledger says. */
#include "analyze/analyze_impl.h"

static bool is_refusal(const struct event *event)
{
    if (!event_is_violation(event))
        return false;
    switch (event->check) {
    case EVENT_CHECK_VIEW_END:
        return !event_is_copy(event->kind);
    case EVENT_CHECK_ALIGNMENT:
    case EVENT_CHECK_READ_ONLY:
    case EVENT_CHECK_POINTER:
    case EVENT_CHECK_DIRECTION:
        return true;
    case EVENT_CHECK_HANDLE:
        /* A launch refused for no operand's handle names no kernel: a matter of the contract. */
        return event->kind != EVENT_STREAM_CREATE && event->kind != EVENT_MODULE_LOAD &&
               !(event->kind == EVENT_LAUNCH && event->operand == EVENT_NO_OPERAND &&
                 !(event->flags & EVENT_FOREIGN));
    default:
        return false;
    }
}

/* A trap is reported where the host waited next; that is where it was seen. */
static void on_trap(struct analyzer *analyzer, const struct event *event)
{
    struct finding draft = finding_draft(HYPOTHESIS_BAD_POINTER, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT; /* the kernel that met the index says so itself */
    draft.cause = place_of_remark(analyzer, event);
    draft.expected = event->trap.bound;
    draft.found = event->trap.index;
    uint32_t thread = event->thread_index < THREAD_LIMIT ? event->thread_index : THREAD_LIMIT - 1;
    uint64_t waiting = analyzer->order.threads[thread].last_id;
    const struct history_entry *entry = history_find(&analyzer->history, waiting);
    if (entry)
        draft.seen = place_of_wait(analyzer, &entry->event);
    finding_add(analyzer, &draft);
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_TRAP)
        on_trap(analyzer, event);
    if (event->kind == EVENT_LAUNCH && event->check != EVENT_CHECK_LOST)
        analyze_count(analyzer, HYPOTHESIS_BAD_POINTER, 1, 1);
    if (!is_refusal(event))
        return;
    struct finding draft = finding_of_refusal(analyzer, HYPOTHESIS_BAD_POINTER, event);
    bool foreign = (event->flags & EVENT_FOREIGN) != 0;
    if (foreign && event->check == EVENT_CHECK_HANDLE && event->outcome == EVENT_DONE) {
        draft.certainty = FINDING_POSSIBLE;
        finding_set_reason(&draft, REASON_STREAM_ACCEPTED);
    }
    /* The view fits its buffer, and the buffer lives: its memory went away before this call. */
    if (!foreign && event->check == EVENT_CHECK_POINTER)
        draft.attribution = FINDING_SEEN_AT;
    finding_add(analyzer, &draft);
}

const struct hypothesis_detector detector_bad_pointer = {
    .info = { .slug = "bad-pointer", .level = AUDIT_LOG, .exact = true },
    .event = on_event,
};

/* use_after_free.c - memory used after it was given back: a handle of an earlier generation, a
 * buffer destroyed while queued work still needs it, a fault in memory that was freed. */
#include "analyze/analyze_impl.h"

#include "base/size.h"

/* The destruction of the buffer a refused call names, if that is known. */
static struct analyze_place find_free(const struct analyzer *analyzer, const struct event *event)
{
    const struct event_access *access = event_operand(event, event->operand);
    const struct ledger *ledger = &analyzer->ledger;
    const struct ledger_entry *found = NULL;
    uint64_t count = min_u64(ledger->freed_count, LEDGER_FREED_LIMIT);
    uint16_t generation = (uint16_t)event->expected;
    for (uint64_t age = 0; age < count; age++) {
        const struct ledger_entry *entry =
            &ledger->freed[(ledger->freed_count - 1 - age) % LEDGER_FREED_LIMIT];
        if (entry->device_index != event->device_index || entry->generation != generation ||
            (access && access->buffer_index != entry->buffer_index))
            continue;
        if (found && !access) /* two of that generation: it may be either */
            return (struct analyze_place){ .scope = { -1, -1, "" },
                                           .stream_index = EVENT_NO_STREAM,
                                           .operand = EVENT_NO_OPERAND };
        found = entry;
        if (access)
            break;
    }
    struct analyze_place place = place_of_id(analyzer, found ? found->destroyed_id : 0, 0);
    place.kind = EVENT_BUFFER_DESTROY;
    return place;
}

/* The illegal access was to memory that had been a buffer. */
static void on_fault(struct analyzer *analyzer, const struct event *event,
                     const struct analyze_neighbourhood *near)
{
    if (!near->known || near->live.bytes || !near->freed.bytes)
        return;
    struct finding draft = finding_draft(HYPOTHESIS_USE_AFTER_FREE, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT; /* unless several are left, or none */
    draft.near = *near;
    if (event->flags & EVENT_CAUGHT)
        draft.cause = place_of_fault(analyzer, event);
    else
        suspects_find(analyzer, event, &draft);
    if (!draft.cause.event_id)
        draft.cause = place_of_event(analyzer, event);
    draft.cause.address = event->fault.address;
    event_set_text(draft.cause.buffer, sizeof(draft.cause.buffer), draft.near.freed.name);
    draft.other = place_of_id(analyzer, draft.near.freed.destroyed_id, 0);
    draft.other.kind = EVENT_BUFFER_DESTROY;
    draft.seen = analyzer->losses[event->device_index].first_failure;
    finding_add(analyzer, &draft);
}

static void on_caught(struct analyzer *analyzer, const struct event *event)
{
    struct analyze_neighbourhood near;
    if (event->fault.address_known == EVENT_ADDRESS_UNKNOWN)
        return;
    ledger_neighbourhood(&analyzer->ledger, event->device_index, event->fault.address, &near);
    on_fault(analyzer, event, &near);
}

static void on_finish(struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < EVENT_DEVICE_LIMIT; i++) {
        const struct event *fault = &analyzer->losses[i].unplaced_fault;
        if (fault->id && !(fault->flags & EVENT_FOREIGN))
            on_fault(analyzer, fault, &analyzer->losses[i].unplaced_near);
    }
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_FAULT && (event->flags & EVENT_CAUGHT))
        on_caught(analyzer, event);
    if (event->kind == EVENT_BUFFER_DESTROY && event->check != EVENT_CHECK_LOST)
        analyze_count(analyzer, HYPOTHESIS_USE_AFTER_FREE, 1, 1);
    if (!event_is_violation(event) || event->check != EVENT_CHECK_GENERATION)
        return;
    struct finding draft = finding_of_refusal(analyzer, HYPOTHESIS_USE_AFTER_FREE, event);
    draft.other = find_free(analyzer, event);
    /* Destroyed twice: the call knows no name, the first one does. */
    if (!draft.cause.buffer[0] && draft.other.event_id)
        event_set_text(draft.cause.buffer, sizeof(draft.cause.buffer), draft.other.scope.tensor);
    if (event->kind == EVENT_BUFFER_DESTROY && !draft.cause.scope.tensor[0])
        event_set_text(draft.cause.scope.tensor, sizeof(draft.cause.scope.tensor),
                       draft.cause.buffer);
    if ((event->flags & EVENT_FOREIGN) &&
        (event->kind == EVENT_LAUNCH || event->outcome == EVENT_DONE)) {
        draft.certainty = FINDING_POSSIBLE;
        finding_set_reason(&draft, event->kind == EVENT_LAUNCH ? REASON_KERNEL_ACCESS
                                                               : REASON_RUNTIME_ACCEPTED);
    }
    finding_add(analyzer, &draft);
}

static void on_work(struct analyzer *analyzer, const struct work *work)
{
    uint32_t count = work->event->access_count;
    analyze_count(analyzer, HYPOTHESIS_USE_AFTER_FREE, count, count);
}

static void on_conflict(struct analyzer *analyzer, const struct conflict *conflict)
{
    if (conflict->kind != CONFLICT_FREED)
        return;
    struct finding draft = finding_draft(HYPOTHESIS_USE_AFTER_FREE, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT;
    draft.cause = place_of_touch(analyzer, &conflict->earlier, conflict->entry, conflict->start,
                                 conflict->bytes);
    draft.other = place_of_event(analyzer, conflict->event);
    finding_weigh(analyzer, conflict, &draft);
    finding_add(analyzer, &draft);
}

const struct hypothesis_detector detector_use_after_free = {
    .info = { .slug = "use-after-free", .level = AUDIT_GUARD, .exact = true },
    .event = on_event,
    .work = on_work,
    .conflict = on_conflict,
    .finish = on_finish,
};

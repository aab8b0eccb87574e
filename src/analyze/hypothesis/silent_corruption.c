/* silent_corruption.c - bytes that changed and nobody said so: a canary beside a buffer was
 * overwritten, or a transfer landed with other bytes than it took, while its origin stood still. */
#include "analyze/analyze_impl.h"

/* The damage begins where the buffer ends, or ends where it begins: an overrun by a launch that
 * writes this buffer. Bytes further away may as well be another launch's, which missed its own. */
static bool touches_edge(const struct event *event)
{
    const struct event_canary *canary = &event->canary;
    uint64_t offset = (uint64_t)canary->offset;
    return offset == canary->buffer_bytes || offset + canary->damaged_bytes == 0;
}

static void on_canary(struct analyzer *analyzer, const struct event *event)
{
    struct finding draft = finding_draft(HYPOTHESIS_SILENT_CORRUPTION, FINDING_DIRECT);
    if (event->cause_id) {
        draft.cause = place_of_remark(analyzer, event);
        /* Of a graph that was swept at its end no launch is known. */
        if (draft.cause.op[0] && touches_edge(event))
            draft.attribution = FINDING_CULPRIT;
    } else {
        draft.cause = place_of_event(analyzer, event);
        finding_set_reason(&draft, REASON_CANARY_LATE);
    }
    draft.cause.address = event->canary.address;
    draft.cause.bytes = event->canary.damaged_bytes;
    const struct ledger_entry *entry = NULL;
    if (event->access_count)
        entry = ledger_find(&analyzer->ledger, event->accesses[0].buffer_index);
    if (entry)
        event_set_text(draft.cause.buffer, sizeof(draft.cause.buffer), entry->name);
    draft.other = place_of_event(analyzer, event);
    draft.expected = event->canary.buffer_bytes;
    draft.found = (uint64_t)event->canary.offset;
    ledger_neighbourhood(&analyzer->ledger, event->canary.address, &draft.near);
    finding_add(analyzer, &draft);
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_CANARY)
        on_canary(analyzer, event);
    if (event->kind != EVENT_TRANSFER_HASH)
        return;
    struct analyze_place copy = place_of_id(analyzer, event->cause_id, 0);
    bool counted = copy.kind != EVENT_COPY_WITHIN && copy.kind != EVENT_FILL;
    analyze_count(analyzer, HYPOTHESIS_SILENT_CORRUPTION, 1, !counted);
    const struct event_transfer_hash *hash = &event->transfer;
    if (hash->source_before != hash->source_after || hash->destination == hash->source_before)
        return;
    struct finding draft = finding_draft(HYPOTHESIS_SILENT_CORRUPTION, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT;
    draft.cause = copy;
    draft.expected = hash->source_before;
    draft.found = hash->destination;
    finding_add(analyzer, &draft);
}

static void on_work(struct analyzer *analyzer, const struct work *work)
{
    uint8_t kind = work->event->kind;
    if (kind == EVENT_COPY_IN || kind == EVENT_COPY_OUT)
        analyze_count(analyzer, HYPOTHESIS_SILENT_CORRUPTION, 0, 1);
}

static void on_finish(struct analyzer *analyzer)
{
    struct hypothesis_coverage *coverage = &analyzer->result.coverage[HYPOTHESIS_SILENT_CORRUPTION];
    if (coverage->total && !coverage->checked)
        coverage->ran = false; /* nobody asked for hashes */
}

const struct hypothesis_detector detector_silent_corruption = {
    .info = { .slug = "silent-corruption",
              .level = AUDIT_VERIFY,
              .exact = false,
              .bound_each = true },
    .event = on_event,
    .work = on_work,
    .finish = on_finish,
};

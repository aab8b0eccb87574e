/* silent_corruption.c - bytes that no declared access changed: a canary next to a buffer was
 * overwritten, or a transfer landed with other bytes than it took, while its origin stood still. */
#include "analyze/analyze_impl.h"

static void on_canary(struct analyzer *analyzer, const struct event *event)
{
    struct finding draft = finding_draft(HYPOTHESIS_SILENT_CORRUPTION, FINDING_DIRECT);
    if (event->canary.damaged_bytes == 0) {
        analyzer->canary_unseen = true;
        return;
    }
    draft.cause = event->cause_id ? place_of_remark(analyzer, event)
                                  : place_of_event(analyzer, event);
    if (event->cause_id && (event->flags & EVENT_SWEPT))
        draft.attribution = FINDING_CULPRIT; /* nothing else ran between two checks */
    else
        damage_find(analyzer, event, &draft);
    draft.cause.address = event->canary.address;
    draft.cause.bytes = event->canary.damaged_bytes;
    const struct ledger_entry *entry = NULL;
    if (event->access_count)
        entry = ledger_find_generation(&analyzer->ledger, event->device_index,
                                       event->accesses[0].buffer_index,
                                       event->accesses[0].generation);
    if (entry)
        event_set_text(draft.cause.buffer, sizeof(draft.cause.buffer), entry->name);
    draft.other = place_of_event(analyzer, event);
    draft.expected = event->canary.buffer_bytes;
    draft.found = (uint64_t)event->canary.offset;
    ledger_neighbourhood(&analyzer->ledger, event->device_index, event->canary.address,
                         &draft.near);
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
        coverage->ran = false; /* hashes were not asked for */
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

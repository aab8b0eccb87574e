/* runtime_defect.c - a valid transfer with wrong bytes, by the fault of the runtime or the
 * hardware. One run cannot tell that from other corruption: it takes runs that differ only in
 * staging or mode, so what is found here is only possible. */
#include "analyze/analyze_impl.h"

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind != EVENT_TRANSFER_HASH)
        return;
    struct analyze_place copy = place_of_id(analyzer, event->cause_id, 0);
    bool counted = copy.kind != EVENT_COPY_WITHIN && copy.kind != EVENT_FILL;
    analyze_count(analyzer, HYPOTHESIS_RUNTIME_DEFECT, 1, !counted);
    const struct event_transfer_hash *hash = &event->transfer;
    if (hash->source_before != hash->source_after || hash->destination == hash->source_before)
        return;
    struct finding draft = finding_draft(HYPOTHESIS_RUNTIME_DEFECT, FINDING_POSSIBLE);
    draft.cause = copy;
    draft.expected = hash->source_before;
    draft.found = hash->destination;
    finding_set_reason(&draft, REASON_NEEDS_COMPARISON);
    finding_add(analyzer, &draft);
}

static void on_work(struct analyzer *analyzer, const struct work *work)
{
    uint8_t kind = work->event->kind;
    if (kind == EVENT_COPY_IN || kind == EVENT_COPY_OUT)
        analyze_count(analyzer, HYPOTHESIS_RUNTIME_DEFECT, 0, 1);
}

static void on_finish(struct analyzer *analyzer)
{
    struct hypothesis_coverage *coverage = &analyzer->result.coverage[HYPOTHESIS_RUNTIME_DEFECT];
    if (coverage->total && !coverage->checked)
        coverage->ran = false;
}

const struct hypothesis_detector detector_runtime_defect = {
    .info = { .slug = "runtime-defect", .level = AUDIT_VERIFY, .exact = false, .bound_each = true },
    .event = on_event,
    .work = on_work,
    .finish = on_finish,
};

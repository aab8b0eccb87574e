/* uninitialised_read.c - a declared range that is read before anything was written to it: by a
 * copy in, a fill, a launch, or an import. In a foreign program only the reads of copies are known
 * (contents.c). */
#include "analyze/analyze_impl.h"

/* A buffer may be larger than what the program puts into it and uses of it. */
static void weigh(const struct analyzer *analyzer, const struct conflict *conflict,
                  struct finding *draft)
{
    enum finding_reason reason = REASON_NONE;
    if (conflict->entry->unsure_known != analyzer->order.unsure_writers ||
        conflict->entry->may_be_told)
        reason = REASON_UNSEEN_WRITER;
    else if (conflict->bytes < conflict->access->bytes)
        reason = REASON_PARTLY_WRITTEN;
    if (reason == REASON_NONE)
        return;
    draft->certainty = FINDING_POSSIBLE;
    finding_set_reason(draft, reason);
}

static void on_conflict(struct analyzer *analyzer, const struct conflict *conflict)
{
    if (conflict->kind != CONFLICT_UNWRITTEN || analyze_is_lost(analyzer, conflict->event))
        return;
    struct finding draft = finding_draft(HYPOTHESIS_UNINITIALISED_READ, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT; /* nothing wrote there before: the read itself is wrong */
    draft.cause = place_of_work(analyzer, conflict->work);
    place_set_access(analyzer, &draft.cause, conflict->access);
    draft.cause.address = conflict->start;
    draft.cause.bytes = conflict->bytes;
    draft.other = place_of_id(analyzer, conflict->entry->created_id, 0);
    draft.other.kind = EVENT_BUFFER_CREATE;
    draft.expected = conflict->access->bytes;
    draft.found = conflict->bytes;
    if (conflict->event->flags & EVENT_FOREIGN)
        weigh(analyzer, conflict, &draft);
    finding_add(analyzer, &draft);
}

const struct hypothesis_detector detector_uninitialised_read = {
    .info = { .slug = "uninitialised-read", .level = AUDIT_LOG, .exact = true },
    .conflict = on_conflict,
};

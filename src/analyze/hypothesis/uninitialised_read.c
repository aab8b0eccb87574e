/* uninitialised_read.c - a declared range that is read before anything was written to it: by a
 * copy in, a fill, a launch, or an import. */
#include "analyze/analyze_impl.h"

static void on_conflict(struct analyzer *analyzer, const struct conflict *conflict)
{
    if (conflict->kind != CONFLICT_UNWRITTEN)
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
    finding_add(analyzer, &draft);
}

const struct hypothesis_detector detector_uninitialised_read = {
    .info = { .slug = "uninitialised-read", .level = AUDIT_LOG, .exact = true },
    .conflict = on_conflict,
};

/* size_mismatch.c - a copy asks for more, or less, than its view or its buffer holds. Every copy
 * is checked before the device is asked; the refusal has the numbers. */
#include "analyze/analyze_impl.h"

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    bool mine = event_is_copy(event->kind) || event->kind == EVENT_BUFFER_CREATE;
    if (!mine || event->check == EVENT_CHECK_LOST)
        return;
    analyze_count(analyzer, HYPOTHESIS_SIZE_MISMATCH, 1, 1);
    if (event_is_violation(event) &&
        (event->check == EVENT_CHECK_BYTES || event->check == EVENT_CHECK_VIEW_END))
        finding_add_refusal(analyzer, HYPOTHESIS_SIZE_MISMATCH, event);
}

const struct hypothesis_detector detector_size_mismatch = {
    .info = { .slug = "size-mismatch", .level = AUDIT_OFF, .exact = true },
    .event = on_event,
};

/* contract_breach.c - a launch that does not keep the contract of its op: number of operands,
 * types, shapes, strides, parameters, geometry; or a call that is not allowed at that point. */
#include "analyze/analyze_impl.h"

static bool is_breach(const struct event *event)
{
    switch (event->check) {
    case EVENT_CHECK_OPERANDS:
    case EVENT_CHECK_DTYPE:
    case EVENT_CHECK_SHAPE:
    case EVENT_CHECK_STRIDE:
    case EVENT_CHECK_PARAMETER:
    case EVENT_CHECK_GEOMETRY:
    case EVENT_CHECK_CAPTURE:
        return true;
    case EVENT_CHECK_HANDLE: /* no such kernel on the device */
        return event->kind == EVENT_LAUNCH && event->operand == EVENT_NO_OPERAND &&
               !(event->flags & EVENT_FOREIGN);
    default:
        return false;
    }
}

/* More groups than the backend can launch: its own limit, not an error of the device. */
static bool is_past_limit(const struct event *event)
{
    bool of_greta = event->domain == EVENT_ERROR_GRETA ||
                    (event->domain == EVENT_ERROR_NONE && !(event->flags & EVENT_FOREIGN));
    return event->kind == EVENT_LAUNCH && event->outcome == EVENT_FAILED && of_greta &&
           event->code == STATUS_LIMIT;
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_LAUNCH && event->check != EVENT_CHECK_LOST)
        analyze_count(analyzer, HYPOTHESIS_CONTRACT_BREACH, 1, 1);
    if ((event->outcome == EVENT_REFUSED && is_breach(event)) || is_past_limit(event))
        finding_add_refusal(analyzer, HYPOTHESIS_CONTRACT_BREACH, event);
}

const struct hypothesis_detector detector_contract_breach = {
    .info = { .slug = "contract-breach", .level = AUDIT_OFF, .exact = true },
    .event = on_event,
};

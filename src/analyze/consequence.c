/* consequence.c - which finding follows from which: wrong bytes that a later call reads make later
 * findings. */
#include "analyze/analyze_impl.h"

/* After a new finding at most this many of the latest ones are looked at again. */
#define RELINK_LIMIT 16u

/* Bytes that are wrong, or gone, for whoever uses them later. */
static bool spoils_bytes(enum hypothesis hypothesis)
{
    switch (hypothesis) {
    case HYPOTHESIS_USE_AFTER_FREE:
    case HYPOTHESIS_MISSING_SYNC:
    case HYPOTHESIS_STAGING_REUSE:
    case HYPOTHESIS_OVERLAPPING_COPIES:
    case HYPOTHESIS_UNINITIALISED_READ:
    case HYPOTHESIS_SILENT_CORRUPTION:
        return true;
    default:
        return false;
    }
}

/* What can come of wrong bytes; the others are wrong by themselves. */
static bool may_follow(enum hypothesis hypothesis)
{
    switch (hypothesis) {
    case HYPOTHESIS_BAD_POINTER:
    case HYPOTHESIS_KERNEL_FAULT:
    case HYPOTHESIS_RUNTIME_DEFECT:
    case HYPOTHESIS_NON_DETERMINISM:
    case HYPOTHESIS_HANG:
    case HYPOTHESIS_NUMERIC:
        return true;
    default:
        return false;
    }
}

bool finding_leads_to(const struct analysis *result, int32_t from, size_t target)
{
    for (size_t hops = 0; from >= 0 && hops <= result->finding_count; hops++) {
        if ((size_t)from == target)
            return true;
        from = result->findings[from].consequence_of;
    }
    return from >= 0; /* a circle */
}

int32_t finding_origin(const struct analyzer *analyzer, const struct finding *finding)
{
    if (!may_follow(finding->hypothesis) || finding->check || finding->cause.event_id == 0)
        return -1;
    for (size_t i = 0; i < analyzer->result.finding_count; i++) {
        const struct finding *other = &analyzer->result.findings[i];
        if (other != finding && other->cause.event_id == finding->cause.event_id &&
            other->cause.node == finding->cause.node && spoils_bytes(other->hypothesis))
            return (int32_t)i;
    }
    int32_t origin = flow_origin(analyzer, finding->cause.event_id);
    if (origin >= 0 && (&analyzer->result.findings[origin] == finding ||
                        analyzer->result.findings[origin].consequence_of >= 0))
        origin = analyzer->result.findings[origin].consequence_of;
    if (origin >= 0 && &analyzer->result.findings[origin] == finding)
        return -1;
    return origin;
}

void finding_relink(struct analyzer *analyzer, size_t added)
{
    struct analysis *result = &analyzer->result;
    size_t first = result->finding_count > RELINK_LIMIT ? result->finding_count - RELINK_LIMIT : 0;
    for (size_t i = first; i < result->finding_count; i++) {
        struct finding *finding = &result->findings[i];
        if (i == added || finding->consequence_of >= 0 ||
            finding->order_id < result->findings[added].order_id)
            continue;
        int32_t origin = finding_origin(analyzer, finding);
        if (origin == (int32_t)added && !finding_leads_to(result, origin, i))
            finding->consequence_of = origin;
    }
}

/* numeric.c - values that are not finite, and the first launch that made them of finite ones. */
#include "analyze/analyze_impl.h"

static bool meets(const struct bad_range *bad, const struct event *launch,
                  const struct event_access *access)
{
    uint64_t a = bad->address, b = access->address;
    return bad->bytes && bad->device_index == launch->device_index &&
           (a < b ? b - a < bad->bytes : a - b < access->bytes);
}

static struct bad_range *bad_at(struct analyzer *analyzer, uint64_t place)
{
    return &analyzer->bad_ranges[place % BAD_RANGE_LIMIT];
}

static uint64_t first_bad(const struct analyzer *analyzer)
{
    return analyzer->bad_range_count > BAD_RANGE_LIMIT ? analyzer->bad_range_count - BAD_RANGE_LIMIT
                                                       : 0;
}

/* The finding whose values the launch read, or -1. */
static int32_t find_source(struct analyzer *analyzer, const struct event *launch)
{
    for (uint32_t i = 0; i < launch->access_count; i++)
        for (uint64_t at = first_bad(analyzer); at < analyzer->bad_range_count; at++)
            if (launch->accesses[i].mode & EVENT_READ &&
                meets(bad_at(analyzer, at), launch, &launch->accesses[i]))
                return bad_at(analyzer, at)->finding;
    return -1;
}

/* An output of the launch is finite. So are those that cannot be scanned, unless another one is
 * not: whatever was there before is gone. */
static void forget_outputs(struct analyzer *analyzer, const struct event *launch,
                           const struct event_access *scanned, bool all)
{
    for (uint32_t i = 0; i < launch->access_count; i++) {
        const struct event_access *output = &launch->accesses[i];
        if (!(output->mode & EVENT_WRITE) || (!all && output != scanned))
            continue;
        for (uint64_t at = first_bad(analyzer); at < analyzer->bad_range_count; at++)
            if (meets(bad_at(analyzer, at), launch, output))
                bad_at(analyzer, at)->bytes = 0;
    }
}

/* An output is not finite: the others, as packed rows of the same values, are not to be trusted. */
static void remember_outputs(struct analyzer *analyzer, const struct event *launch, int32_t finding)
{
    for (uint32_t i = 0; i < launch->access_count; i++) {
        const struct event_access *output = &launch->accesses[i];
        if (output->mode & EVENT_WRITE)
            *bad_at(analyzer, analyzer->bad_range_count++) =
                (struct bad_range){ output->address, output->bytes, launch->device_index, finding };
    }
}

/* The launch made the values only if all it reads is known to be finite. Where what is not known
 * was written by launches whose other outputs are finite, by packing rows or so, it was one of
 * them. */
static struct finding draft_of(const struct analyzer *analyzer, const struct analyze_place *place,
                               const struct event *launch)
{
    const struct history_entry *writers[FINDING_CANDIDATE_LIMIT - 1];
    struct finding draft = finding_draft(HYPOTHESIS_NUMERIC, FINDING_DIRECT);
    draft.cause = *place;
    /* Earlier nodes of a replay are not in the history. */
    uint32_t count = launch && !place->node
                         ? flow_unscanned_writers(analyzer, launch, writers, COUNT_OF(writers))
                         : UINT32_MAX;
    if (count == 0) {
        draft.attribution = FINDING_CULPRIT;
        return draft;
    }
    bool finite = count <= COUNT_OF(writers);
    for (uint32_t i = 0; finite && i < count; i++)
        finite = writers[i]->scanned && !writers[i]->scanned_bad;
    finding_set_reason(&draft, REASON_INPUT_NOT_SCANNED);
    if (!finite)
        return draft;
    draft.candidates[draft.candidate_count++] = *place;
    for (uint32_t i = 0; i < count; i++)
        draft.candidates[draft.candidate_count++] = place_of_event(analyzer, &writers[i]->event);
    return draft;
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind != EVENT_SCAN)
        return;
    struct history_entry *entry = history_find(&analyzer->history, event->cause_id);
    if (!entry || !entry->scanned)
        analyze_count(analyzer, HYPOTHESIS_NUMERIC, 1, 0);
    if (entry) {
        entry->scanned = true;
        entry->scanned_bad = entry->scanned_bad || event->scan.bad_count;
        if (event->operand < EVENT_ACCESS_LIMIT)
            entry->scanned_operands |= (uint16_t)(1u << event->operand);
    }
    struct analyze_place place = place_of_remark(analyzer, event);
    const struct event *launch = analyze_find_call(analyzer, place.event_id, place.node);
    if (event->scan.bad_count == 0) {
        if (launch)
            forget_outputs(analyzer, launch, event_operand(launch, event->operand),
                           !(entry && entry->scanned_bad));
        return;
    }
    int32_t source = launch ? find_source(analyzer, launch) : -1;
    if (source >= 0 && !analyzer->warming && (size_t)source < analyzer->result.finding_count) {
        analyzer->result.findings[source].count++; /* it only passed them on */
    } else {
        struct finding draft = draft_of(analyzer, &place, entry ? launch : NULL);
        draft.expected = event->scan.value_count;
        draft.found = event->scan.bad_count;
        source = finding_add(analyzer, &draft);
    }
    if (launch)
        remember_outputs(analyzer, launch, source);
}

static void on_work(struct analyzer *analyzer, const struct work *work)
{
    if (work->event->kind == EVENT_LAUNCH)
        analyze_count(analyzer, HYPOTHESIS_NUMERIC, 0, 1);
}

static void on_finish(struct analyzer *analyzer)
{
    struct hypothesis_coverage *coverage = &analyzer->result.coverage[HYPOTHESIS_NUMERIC];
    if (coverage->total && !coverage->checked)
        coverage->ran = false; /* nothing was scanned */
}

const struct hypothesis_detector detector_numeric = {
    .info = { .slug = "numeric", .level = AUDIT_LOG, .exact = false },
    .event = on_event,
    .work = on_work,
    .finish = on_finish,
};

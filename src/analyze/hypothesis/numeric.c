/* numeric.c - values that are not finite, and the first launch that made them of finite ones. */
#include "analyze/analyze_impl.h"

static bool meets(const struct bad_range *bad, const struct event_access *access)
{
    uint64_t a = bad->address, b = access->address;
    return bad->bytes && (a < b ? b - a < bad->bytes : a - b < access->bytes);
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
                meets(bad_at(analyzer, at), &launch->accesses[i]))
                return bad_at(analyzer, at)->finding;
    return -1;
}

/* The launch's outputs are finite: whatever was there before is gone. */
static void forget_outputs(struct analyzer *analyzer, const struct event_access *output)
{
    for (uint64_t at = first_bad(analyzer); at < analyzer->bad_range_count; at++)
        if (meets(bad_at(analyzer, at), output))
            bad_at(analyzer, at)->bytes = 0;
}

static void remember_output(struct analyzer *analyzer, const struct event_access *output,
                            int32_t finding)
{
    *bad_at(analyzer, analyzer->bad_range_count++) = (struct bad_range){ output->address,
                                                                         output->bytes, finding };
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind != EVENT_SCAN)
        return;
    struct history_entry *entry = history_find(&analyzer->history, event->cause_id);
    if (!entry || !entry->scanned)
        analyze_count(analyzer, HYPOTHESIS_NUMERIC, 1, 0);
    if (entry)
        entry->scanned = true;
    struct analyze_place place = place_of_remark(analyzer, event);
    const struct event *launch = analyze_find_call(analyzer, place.event_id, place.node);
    const struct event_access *output = launch ? event_operand(launch, event->operand) : NULL;
    if (event->found == 0) {
        if (output)
            forget_outputs(analyzer, output);
        return;
    }
    int32_t source = launch ? find_source(analyzer, launch) : -1;
    if (source >= 0 && !analyzer->warming && (size_t)source < analyzer->result.finding_count) {
        analyzer->result.findings[source].count++; /* it only passed them on */
    } else {
        bool exact = launch && entry && flow_inputs_scanned(analyzer, launch);
        struct finding draft = finding_draft(HYPOTHESIS_NUMERIC, FINDING_DIRECT);
        draft.attribution = exact ? FINDING_CULPRIT : FINDING_SEEN_AT;
        draft.cause = place;
        draft.expected = event->expected;
        draft.found = event->found;
        if (!exact)
            finding_set_reason(&draft, REASON_INPUT_NOT_SCANNED);
        source = finding_add(analyzer, &draft);
    }
    if (output)
        remember_output(analyzer, output, source);
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
    .info = { .slug = "numeric",
              .level = AUDIT_LOG,
              .exact = false,
              .title = { "Values that are not finite", "Valores no finitos" },
              .detector = { "Outputs of sampled launches are scanned for NaN and infinity; the "
                            "first launch that makes them from finite inputs is named.",
                            "Se buscan NaN e infinitos en las salidas de lanzamientos muestreados; "
                            "se nombra el primero que los produce a partir de entradas finitas." },
              .unit = { "launches scanned", "lanzamientos examinados" },
              .advice = { "Look at the inputs and the kernel of the launch named.",
                          "Mire las entradas y el kernel del lanzamiento nombrado." } },
    .event = on_event,
    .work = on_work,
    .finish = on_finish,
};

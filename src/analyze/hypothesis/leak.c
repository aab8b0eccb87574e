/* leak.c - memory of a foreign program that is alive when its process has ended in order. What a
 * caching allocator keeps is no leak: it gives it back to itself, and to the driver at the end. */
#include "analyze/analyze_impl.h"

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_BUFFER_CREATE && event->outcome == EVENT_DONE &&
        (event->flags & EVENT_FOREIGN))
        analyze_count(analyzer, HYPOTHESIS_LEAK, 1, 1);
}

static bool is_kept(const struct analyzer *analyzer, const struct ledger_entry *entry)
{
    const struct analyze_options *options = &analyzer->options;
    return options->is_cached && options->is_cached(options->cached_context, entry->stack_index);
}

/* What one call made again and again is one finding: found counts its bytes. */
static void add_leak(struct analyzer *analyzer, const struct ledger_entry *entry)
{
    struct finding draft = finding_draft(HYPOTHESIS_LEAK, FINDING_DIRECT);
    draft.cause = place_of_id(analyzer, entry->created_id, 0);
    draft.cause.kind = EVENT_BUFFER_CREATE;
    draft.cause.foreign = true;
    draft.cause.stack_index = entry->stack_index;
    draft.cause.address = entry->address;
    draft.cause.bytes = entry->bytes;
    draft.found = entry->bytes;
    event_set_text(draft.cause.buffer, sizeof(draft.cause.buffer), entry->name);
    int32_t index = finding_add(analyzer, &draft);
    if (index >= 0 && analyzer->result.findings[index].count > 1)
        analyzer->result.findings[index].found += entry->bytes;
}

static void on_finish(struct analyzer *analyzer)
{
    /* A process that died had no time to give anything back. */
    if (!analyzer->result.closed || analyzer->result.device_lost)
        return;
    for (uint32_t i = 0; i < analyzer->ledger.used; i++) {
        const struct ledger_entry *entry = &analyzer->ledger.live[i];
        if (entry->bytes && entry->foreign && !is_kept(analyzer, entry))
            add_leak(analyzer, entry);
    }
}

const struct hypothesis_detector detector_leak = {
    .info = { .slug = "leak",
              .seeds = "",
              .level = AUDIT_LOG,
              .exact = true,
              .title = { "Memory leak", "Fuga de memoria" },
              .detector = { "Memory that is alive when the process has ended in order, by the call "
                            "that made it; what a caching allocator keeps is left out.",
                            "Memoria viva cuando el proceso terminó en orden, por la llamada que "
                            "la pidió; se omite lo que retiene un asignador con caché." },
              .unit = { "allocations", "asignaciones" },
              .advice = { "Free what the call named made, before the process ends.",
                          "Liberar lo que pidió la llamada nombrada, antes de que termine el "
                          "proceso." } },
    .event = on_event,
    .finish = on_finish,
};

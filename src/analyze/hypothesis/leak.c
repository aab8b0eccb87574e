/* leak.c - memory that a foreign program takes again and again at one place and does not give back.
 *
 * That some memory is alive when a process ends is nothing: half of all programs leave it to the
 * driver, and weights are kept until then. A leak is what grows: many allocations of one call
 * stack, made with launches in between, and of which all but the last were not used again, alive
 * when the process has ended in order. If others of the same stack were given back, those that are
 * left must come from all of the program's life: what was kept of the first allocations is a
 * reserve, of the last ones a cache. What a caching allocator keeps is none: it gives it out again
 * itself.
 *
 * Calls cannot prove that the memory is not wanted any more: a pointer may lie in memory that is
 * not seen. So a leak is only possible, and the growth is its evidence. */
#include "analyze/analyze_impl.h"

#include <stdlib.h>

/* Minimum number of allocations by one call stack that setting up does not explain. */
#define LEAK_LEAST 8u
/* The allocations of a call stack are cut into so many equal parts; some must be left of each. */
#define LEAK_PARTS 4u

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_BUFFER_CREATE && event->outcome == EVENT_DONE &&
        (event->flags & EVENT_FOREIGN))
        analyze_count(analyzer, HYPOTHESIS_LEAK, 1, 1);
}

static bool is_suspect(const struct ledger_entry *entry)
{
    return entry->bytes && entry->foreign && entry->stack_index && entry->stack_ordinal;
}

static void add_leak(struct analyzer *analyzer, const struct ledger_entry *first, uint64_t count,
                     uint64_t bytes)
{
    struct finding draft = finding_draft(HYPOTHESIS_LEAK, FINDING_POSSIBLE);
    finding_set_reason(&draft, REASON_KEPT);
    draft.attribution = FINDING_CULPRIT;
    draft.cause = place_of_id(analyzer, first->created_id, 0);
    draft.cause.kind = EVENT_BUFFER_CREATE;
    draft.cause.foreign = true;
    draft.cause.stack_index = first->stack_index;
    draft.cause.address = first->address;
    draft.cause.bytes = first->bytes;
    draft.expected = count;
    draft.found = bytes;
    event_set_text(draft.cause.buffer, sizeof(draft.cause.buffer), first->name);
    finding_add(analyzer, &draft);
}

static int compare_created(const void *a, const void *b)
{
    const struct ledger_entry *const *left = a, *const *right = b;
    return (*left)->created_id < (*right)->created_id ? -1 : 1;
}

/* In the order they were made: launches came between enough of them, and enough were not used any
 * more when the last was made. */
static bool grows(const struct ledger_entry **entries, size_t count)
{
    size_t rounds = 1, left = 0;
    if (count < LEAK_LEAST)
        return false;
    qsort(entries, count, sizeof(const struct ledger_entry *), compare_created);
    const struct ledger_entry *last = entries[count - 1];
    for (size_t i = 0; i + 1 < count; i++) {
        rounds += entries[i + 1]->launches != entries[i]->launches;
        left += entries[i]->used_id < last->created_id;
    }
    return rounds >= LEAK_LEAST && left >= LEAK_LEAST - 1;
}

/* made: allocations of the call stack, freed ones too. */
static bool is_spread(const struct ledger_entry *const *entries, size_t count, uint32_t made)
{
    size_t left[LEAK_PARTS] = { 0 };
    if (count == made)
        return true;
    for (size_t i = 0; i < count; i++)
        left[(uint64_t)(entries[i]->stack_ordinal - 1) * LEAK_PARTS / made]++;
    for (size_t i = 0; i < LEAK_PARTS; i++)
        if (left[i] < LEAK_LEAST / LEAK_PARTS)
            return false;
    return true;
}

/* All that one call stack made, from its first place in the ledger on. room: for all of them. */
static void check_stack(struct analyzer *analyzer, uint32_t place, uint32_t made,
                        const struct ledger_entry **room)
{
    const struct ledger *ledger = &analyzer->ledger;
    const struct analyze_options *options = &analyzer->options;
    uint32_t stack = ledger->live[place].stack_index;
    size_t count = 0;
    uint64_t bytes = 0;
    for (uint32_t i = place; i < ledger->used; i++) {
        const struct ledger_entry *entry = &ledger->live[i];
        if (!is_suspect(entry) || entry->stack_index != stack)
            continue;
        room[count++] = entry;
        bytes += entry->bytes;
    }
    bool kept = options->is_cached && options->is_cached(options->cached_context, stack);
    if (!kept && grows(room, count) && is_spread(room, count, made))
        add_leak(analyzer, room[0], count, bytes);
}

static void on_finish(struct analyzer *analyzer)
{
    const struct ledger *ledger = &analyzer->ledger;
    struct idmap *made = &analyzer->made_by_stack;
    /* A process that died had no time to give anything back. */
    if (!analyzer->result.closed || analyzer->result.device_lost)
        return;
    const struct ledger_entry **room = calloc(ledger->used + 1, sizeof(*room));
    for (uint32_t i = 0; room && i < ledger->used; i++) {
        const struct ledger_entry *entry = &ledger->live[i];
        uint32_t count = is_suspect(entry) ? idmap_find(made, entry->stack_index) : IDMAP_NONE;
        if (count == IDMAP_NONE)
            continue; /* or looked at before */
        check_stack(analyzer, i, count, room);
        idmap_remove(made, entry->stack_index);
    }
    free(room);
}

const struct hypothesis_detector detector_leak = {
    .info = { .slug = "leak", .level = AUDIT_LOG, .exact = true },
    .event = on_event,
    .finish = on_finish,
};

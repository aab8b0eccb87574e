/* history.c - the last calls, by id. Ids come in ascending order, so a search is a bisection. */
#include "analyze/analyze_impl.h"

#include <string.h>

/* A launch has three or four ranges as a rule: the rest need not be moved. */
static void copy_event(struct event *target, const struct event *source)
{
    size_t ranges = offsetof(struct event, accesses), rest = offsetof(struct event, end_ns);
    memcpy(target, source, ranges + source->access_count * sizeof(source->accesses[0]));
    memcpy((uint8_t *)target + rest, (const uint8_t *)source + rest, sizeof(*source) - rest);
}

void history_add(struct history *history, const struct event *event, uint64_t iteration)
{
    struct history_entry *entry = &history->entries[history->count++ % HISTORY_LIMIT];
    copy_event(&entry->event, event);
    entry->iteration = iteration;
    entry->scanned = entry->scanned_bad = false;
    entry->scanned_operands = 0;
    entry->op_key = 0;
    entry->inputs_hashed = entry->inputs_differ = 0;
    entry->run_launch = 0;
    entry->outputs_agree = entry->outputs_differ = false;
    entry->first_tick = entry->last_tick = 0;
}

void history_stamp(struct history *history, uint64_t event_id, uint64_t tick,
                   const struct vclock *clock)
{
    if (!history->clocks || !history->count)
        return;
    uint64_t place = (history->count - 1) % HISTORY_LIMIT;
    struct history_entry *entry = &history->entries[place];
    if (entry->event.id != event_id)
        return;
    if (!entry->first_tick) {
        history->clocks[place] = *clock;
        entry->first_tick = tick;
    }
    entry->last_tick = tick;
}

uint64_t history_first(const struct history *history)
{
    return history->count > HISTORY_LIMIT ? history->count - HISTORY_LIMIT : 0;
}

struct history_entry *history_at(const struct history *history, uint64_t position)
{
    return &history->entries[position % HISTORY_LIMIT];
}

uint64_t history_lower(const struct history *history, uint64_t event_id)
{
    uint64_t low = history_first(history), high = history->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (history_at(history, middle)->event.id < event_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct history_entry *history_find(const struct history *history, uint64_t event_id)
{
    uint64_t position = history_lower(history, event_id);
    if (position == history->count)
        return NULL;
    struct history_entry *entry = history_at(history, position);
    return entry->event.id == event_id ? entry : NULL;
}

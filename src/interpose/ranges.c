/* ranges.c - what the program itself calls the part of its work that a thread is in. */
#include "interpose/interpose_impl.h"

/* Deeper ranges are counted, not kept. */
#define RANGE_LIMIT 16u

static _Thread_local struct {
    char names[RANGE_LIMIT][EVENT_TENSOR_BYTES];
    uint32_t depth;
} ranges;

void interpose_range_push(const char *name)
{
    if (ranges.depth < RANGE_LIMIT)
        event_set_text(ranges.names[ranges.depth], EVENT_TENSOR_BYTES, name ? name : "");
    ranges.depth += ranges.depth < UINT32_MAX;
}

void interpose_range_pop(void)
{
    ranges.depth -= ranges.depth > 0;
}

void ranges_name(struct event *event)
{
    uint32_t depth = ranges.depth < RANGE_LIMIT ? ranges.depth : RANGE_LIMIT;
    if (depth && event_is_ranged(event->kind))
        event_set_text(event->scope.tensor, sizeof(event->scope.tensor), ranges.names[depth - 1]);
}

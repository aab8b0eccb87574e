/* order_places.c - where the order keeps streams, host threads and marks. Each has a place in a
 * table of fixed size; how many there are is up to the program. */
#include "analyze/analyze_impl.h"

uint32_t order_place(const struct order *order, uint16_t device_index, uint32_t stream_index)
{
    if (device_index >= EVENT_DEVICE_LIMIT || stream_index >= VCLOCK_STREAM_LIMIT ||
        !order->places[device_index][stream_index])
        return NO_STREAM_PLACE;
    return order->places[device_index][stream_index] - 1u;
}

uint32_t order_place_of(const struct order *order, const struct event *event)
{
    return order_place(order, event->device_index, event->stream_index);
}

void order_take_place(struct order *order, uint16_t device_index, uint32_t stream_index)
{
    if (device_index >= EVENT_DEVICE_LIMIT || stream_index >= VCLOCK_STREAM_LIMIT ||
        order->places[device_index][stream_index])
        return;
    uint32_t place = stream_index;
    for (uint32_t i = VCLOCK_STREAM_LIMIT; order->streams[place].known && i > 0; i--)
        if (!order->streams[i - 1].known)
            place = i - 1;
    struct stream_state *stream = &order->streams[place];
    if (stream->known)
        return;
    stream->known = true;
    stream->device_index = device_index;
    stream->stream_index = stream_index;
    order->places[device_index][stream_index] = (uint8_t)(place + 1);
}

struct stream_state *order_stream_at(const struct order *order, uint32_t place)
{
    return place < VCLOCK_STREAM_LIMIT ? (struct stream_state *)(uintptr_t)&order->streams[place]
                                       : NULL;
}

struct stream_state *order_stream(const struct order *order, const struct event *event)
{
    return order_stream_at(order, order_place_of(order, event));
}

struct thread_state *order_thread(struct order *order, uint32_t thread_index)
{
    /* Threads beyond the limit share one clock: they see more order than there is. */
    uint32_t place = thread_index < THREAD_LIMIT ? thread_index : THREAD_LIMIT - 1;
    struct thread_state *thread = &order->threads[place];
    thread->used = true;
    return thread;
}

/* Marks of foreign programs have any number, those of devices small ones. The key of two marks may
 * be the same in a file that was made up: whose it is stands in the mark. */
static uint64_t mark_key(uint16_t device_index, uint64_t object)
{
    return object ^ (uint64_t)device_index << 48;
}

struct mark_state *order_mark(const struct order *order, uint16_t device_index, uint64_t object)
{
    uint32_t place = idmap_find(&order->mark_map, mark_key(device_index, object));
    if (place == IDMAP_NONE || order->marks[place].device_index != device_index ||
        order->marks[place].object != object)
        return NULL;
    return &order->marks[place];
}

struct mark_state *order_take_mark(struct order *order, uint16_t device_index, uint64_t object)
{
    struct mark_state *mark = order_mark(order, device_index, object);
    if (mark)
        return mark;
    ASSERT(order->marks); /* or order_init has failed */
    uint32_t place = order->mark_count++ % MARK_LIMIT;
    mark = &order->marks[place];
    if (order->mark_count > MARK_LIMIT)
        idmap_remove(&order->mark_map, mark_key(mark->device_index, mark->object));
    *mark = (struct mark_state){ .object = object, .device_index = device_index };
    idmap_set(&order->mark_map, mark_key(device_index, object), place);
    return mark;
}

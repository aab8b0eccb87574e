/* flight_writer.c - writes events into a flight file, and looks at them while it is written: see
 * flight.h.
 *
 * A record is owned by whoever swaps FLIGHT_BUSY into its state, and given back by storing the id
 * there. So a reader, in this process or after its death, sees whole records or busy ones; the
 * checksums tell when even that was torn. */
#define _DEFAULT_SOURCE /* madvise */
#include "event/flight_layout.h"

#include "base/size.h"

#include <string.h>
#include <sys/mman.h>

/* ---- Records -------------------------------------------------------------------------------- */

static void count_dropped(struct flight *flight)
{
    __atomic_fetch_add(&flight->counters->dropped_count, 1, __ATOMIC_RELAXED);
}

/* Takes the record for an event; false if another writer has it or a later event is in it. */
static bool take_record(struct flight *flight, struct flight_record *record, uint64_t id,
                        uint64_t *ret_before)
{
    uint64_t before = __atomic_load_n(&record->event.id, __ATOMIC_RELAXED);
    for (;;) {
        if (before == FLIGHT_BUSY || before > id) {
            count_dropped(flight);
            return false;
        }
        if (__atomic_compare_exchange_n(&record->event.id, &before, FLIGHT_BUSY, true,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            *ret_before = before;
            return true;
        }
    }
}

/* All of the event that its beginning says, except for the id: as long as that is FLIGHT_BUSY, the
 * record is the writer's. */
#define BEGIN_OFFSET offsetof(struct event, cause_id)
#define BEGIN_BYTES (offsetof(struct event, end_ns) - BEGIN_OFFSET)

static void write_begin(struct flight_record *record, const struct event *event)
{
    memcpy((uint8_t *)&record->event + BEGIN_OFFSET, (const uint8_t *)event + BEGIN_OFFSET,
           BEGIN_BYTES);
    record->begin_checksum = flight_begin_checksum(event);
    record->end_checksum = 0;
}

static void write_end(struct flight_record *record, const struct event *event)
{
    size_t start = offsetof(struct event, end_ns);
    memcpy((uint8_t *)&record->event + start, (const uint8_t *)event + start,
           sizeof(*event) - start);
    record->end_checksum = flight_end_checksum(event);
}

static void write_record(struct flight *flight, const struct event *event)
{
    struct flight_record *record = &flight->ring[event->id % flight->record_count];
    uint64_t before;
    if (!take_record(flight, record, event->id, &before))
        return;
    /* Some of a call is known only at its end: the memory of a new buffer, the graph it went to. */
    if (before != event->id || memcmp((const uint8_t *)&record->event + BEGIN_OFFSET,
                                      (const uint8_t *)event + BEGIN_OFFSET, BEGIN_BYTES) != 0)
        write_begin(record, event);
    if (event->phase == EVENT_END)
        write_end(record, event);
    __atomic_store_n(&record->event.id, event->id, __ATOMIC_RELEASE);
}

/* ---- Tables --------------------------------------------------------------------------------- */

static void seal_entry(struct flight_entry *entry)
{
    entry->checksum = flight_entry_checksum(&entry->allocation);
}

/* A free place: a new one, or that of the buffer destroyed longest ago. NULL if all are alive. */
static struct flight_entry *free_entry(struct flight *flight)
{
    uint64_t used = flight->counters->allocation_used;
    if (used < flight->allocation_count) {
        __atomic_store_n(&flight->counters->allocation_used, used + 1, __ATOMIC_RELAXED);
        return &flight->entries[used];
    }
    struct flight_entry *oldest = NULL;
    for (uint64_t i = 0; i < used; i++) {
        struct flight_entry *entry = &flight->entries[i];
        uint64_t destroyed = entry->allocation.destroyed_id;
        if (destroyed && (!oldest || destroyed < oldest->allocation.destroyed_id))
            oldest = entry;
    }
    return oldest;
}

static void note_buffer(struct flight *flight, const struct event *event)
{
    const struct event_access *range = &event->accesses[0];
    pthread_mutex_lock(&flight->lock);
    if (event->kind == EVENT_BUFFER_CREATE) {
        struct flight_entry *entry = free_entry(flight);
        if (entry) {
            entry->allocation = (struct flight_allocation){ .address = range->address,
                                                            .bytes = range->bytes,
                                                            .created_id = event->id,
                                                            .buffer_index = range->buffer_index,
                                                            .generation = range->generation,
                                                            .device_index = event->device_index };
            event_set_text(entry->allocation.name, sizeof(entry->allocation.name),
                           event->scope.tensor);
            seal_entry(entry);
        } else {
            count_dropped(flight);
        }
    }
    for (uint64_t i = flight->counters->allocation_used;
         event->kind == EVENT_BUFFER_DESTROY && i > 0; i--) {
        struct flight_entry *entry = &flight->entries[i - 1];
        if (entry->allocation.destroyed_id == 0 &&
            entry->allocation.device_index == event->device_index &&
            entry->allocation.buffer_index == range->buffer_index &&
            entry->allocation.generation == range->generation) {
            entry->allocation.destroyed_id = event->id;
            seal_entry(entry);
            break;
        }
    }
    pthread_mutex_unlock(&flight->lock);
}

/* A call that was recorded into a graph, not run: the template must outlive the ring. */
static void note_graph_call(struct flight *flight, const struct event *event)
{
    pthread_mutex_lock(&flight->lock);
    uint64_t used = flight->counters->graph_used;
    if (used < flight->graph_record_count) {
        struct flight_record *record = &flight->graph_records[used];
        write_begin(record, event);
        write_end(record, event);
        __atomic_store_n(&record->event.id, event->id, __ATOMIC_RELEASE);
        __atomic_store_n(&flight->counters->graph_used, used + 1, __ATOMIC_RELEASE);
    } else {
        count_dropped(flight);
    }
    pthread_mutex_unlock(&flight->lock);
}

static void note_device(struct flight *flight, const struct event *event)
{
    if (event->device_index >= flight->device_count) {
        count_dropped(flight);
        return;
    }
    struct flight_device_entry *entry = &flight->devices[event->device_index];
    pthread_mutex_lock(&flight->lock);
    entry->device = (struct flight_device){ .opened_id = event->id };
    event_set_text(entry->device.kind, sizeof(entry->device.kind), event->op);
    event_set_text(entry->device.name, sizeof(entry->device.name), event->scope.tensor);
    entry->checksum = flight_table_checksum(&entry->device, sizeof(entry->device));
    pthread_mutex_unlock(&flight->lock);
}

static void notify(void *context, const struct event *event)
{
    struct flight *flight = context;
    write_record(flight, event);
    if (event->phase != EVENT_END || event->outcome != EVENT_DONE)
        return;
    if (event->kind == EVENT_BUFFER_CREATE || event->kind == EVENT_BUFFER_DESTROY)
        note_buffer(flight, event);
    else if (event->kind == EVENT_DEVICE_OPEN)
        note_device(flight, event);
    else if (event_graph_id(event))
        note_graph_call(flight, event);
}

struct event_observer flight_observer(struct flight *flight)
{
    return (struct event_observer){ notify, flight };
}

void flight_checkpoint(struct flight *flight, uint64_t analysed_id, const void *bytes, size_t count)
{
    ASSERT(count <= FLIGHT_CHECKPOINT_BYTES);
    pthread_mutex_lock(&flight->lock);
    uint64_t sequence = ++flight->checkpoint_sequence;
    struct flight_checkpoint_slot *slot = &flight->checkpoints[sequence % 2];
    slot->checksum = 0; /* not whole until it is */
    slot->sequence = sequence;
    slot->analysed_id = analysed_id;
    slot->count = count;
    if (count)
        memcpy(slot->bytes, bytes, count);
    __atomic_store_n(&slot->checksum, flight_checkpoint_checksum(slot), __ATOMIC_RELEASE);
    pthread_mutex_unlock(&flight->lock);
}

/* ---- Following the writers ------------------------------------------------------------------ */

enum flight_state flight_peek(const struct flight *flight, uint64_t id, struct event *ret_event)
{
    const struct flight_record *record = &flight->ring[id % flight->record_count];
    uint64_t state = __atomic_load_n(&record->event.id, __ATOMIC_ACQUIRE);
    if (state == FLIGHT_BUSY || state < id)
        return FLIGHT_ABSENT;
    if (state > id)
        return FLIGHT_GONE;
    if (!flight_record_load(record, id, ret_event))
        return FLIGHT_ABSENT; /* it changed under the copy */
    return ret_event->phase == EVENT_END ? FLIGHT_WHOLE : FLIGHT_OPEN;
}

/* Since Linux 5.14; before, or elsewhere, pages come as they are written. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static void populate(const struct flight *flight, uint64_t first, uint64_t count)
{
    uintptr_t start = (uintptr_t)&flight->ring[first] / FLIGHT_PAGE * FLIGHT_PAGE;
    uintptr_t end = (uintptr_t)&flight->ring[first + count];
    int code = madvise((void *)start, end - start, MADV_POPULATE_WRITE);
    (void)code; /* nothing depends on it */
}

void flight_prepare(const struct flight *flight, uint64_t id, uint32_t count)
{
    uint64_t first = id % flight->record_count, left = flight->record_count - first;
    if (flight->attached || count > flight->record_count)
        return; /* another process's mapping is not ours to fill */
    populate(flight, first, min_u64(count, left));
    if (count > left)
        populate(flight, 0, count - left);
}

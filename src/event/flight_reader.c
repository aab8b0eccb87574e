/* flight_reader.c - opens a flight file and reads its records: see flight.h.
 *
 * The file comes from a process that may have died at any point, or from anyone at all: offsets are
 * computed, never taken from it; records are copied out, checked against their checksums and made
 * safe before a caller sees them. The file may still be written to: a record that changes under the
 * copy fails its checksum and counts as damaged. */
#include "event/flight_reader.h"

#include <stdlib.h>
#include <string.h>

/* ---- Records -------------------------------------------------------------------------------- */

/* The record may change while it is copied: its checksums tell, so the race is one by design.
 * Volatile: each word is read once, and by no function that a sanitizer watches. */
typedef uint64_t __attribute__((may_alias)) record_word;
__attribute__((no_sanitize("thread"))) static void copy_record(const struct flight_record *source,
                                                               struct flight_record *target)
{
    const volatile record_word *from = (const volatile record_word *)source;
    record_word *to = (record_word *)target;
    for (size_t i = 0; i < sizeof(*source) / sizeof(*from); i++)
        to[i] = from[i];
}

bool flight_record_load(const struct flight_record *source, uint64_t id, struct event *ret)
{
    struct flight_record record;
    if (__atomic_load_n(&source->event.id, __ATOMIC_ACQUIRE) != id)
        return false;
    copy_record(source, &record);
    struct event *event = &record.event;
    if (event->id != id || record.begin_checksum != flight_begin_checksum(event))
        return false;
    bool ended = record.end_checksum != 0;
    if (ended && record.end_checksum != flight_end_checksum(event))
        return false;
    if (!ended) {
        event->phase = EVENT_BEGIN;
        event->outcome = EVENT_PENDING;
        event->code = 0;
        event->domain = EVENT_ERROR_NONE;
        event->end_ns = 0;
    }
    if (event->kind >= EVENT_KIND_COUNT || event->outcome >= EVENT_OUTCOME_COUNT ||
        event->check >= EVENT_CHECK_COUNT || event->phase > EVENT_END ||
        event->domain >= EVENT_ERROR_DOMAIN_COUNT || event->device_index >= FLIGHT_DEVICE_LIMIT ||
        event->access_count > EVENT_ACCESS_LIMIT)
        return false;
    flight_end_text(event->op, sizeof(event->op));
    flight_end_text(event->file, sizeof(event->file));
    flight_end_text(event->scope.tensor, sizeof(event->scope.tensor));
    *ret = *event;
    return true;
}

static const struct flight_record *record_of(const struct flight_reader *reader, uint64_t id)
{
    const struct flight_record *ring = (const struct flight_record *)(reader->data +
                                                                      reader->layout.ring_offset);
    return &ring[id % reader->header.record_count];
}

/* A recording that was packed may hold fewer than its ring could. */
static void leave_out(struct flight_reader *reader)
{
    struct flight_info *info = &reader->info;
    uint64_t first;
    memcpy(&first,
           reader->data + FLIGHT_COUNTERS_OFFSET + offsetof(struct flight_counters, first_kept_id),
           sizeof(first));
    if (first <= info->first_id || first > info->last_id)
        return;
    info->left_out_count = first - info->first_id;
    info->first_id = first;
}

/* Ids, and what is missing between them. */
static void survey_ring(struct flight_reader *reader)
{
    struct flight_info *info = &reader->info;
    uint64_t busy_count = 0, count = reader->header.record_count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t state = __atomic_load_n(&record_of(reader, i)->event.id, __ATOMIC_ACQUIRE);
        busy_count += state == FLIGHT_BUSY;
        /* An id stands only in its own record; anything else is damage. */
        if (state != FLIGHT_BUSY && state % count == i && state > info->last_id)
            info->last_id = state;
    }
    info->first_id = info->last_id > count ? info->last_id - count + 1 : info->last_id ? 1 : 0;
    leave_out(reader);
    struct event event;
    for (uint64_t id = info->first_id; id && id <= info->last_id; id++)
        info->damaged_count += !flight_record_load(record_of(reader, id), id, &event);
    /* A busy record newer than the last id is the call in which the process died. */
    if (info->damaged_count < busy_count)
        info->damaged_count = busy_count;
    if (info->first_id > info->analysed_id + 1)
        info->lost_count = info->first_id - info->analysed_id - 1;
}

bool flight_next(const struct flight_reader *reader, uint64_t *id, struct event *ret_event)
{
    uint64_t at = *id < reader->info.first_id ? reader->info.first_id : *id;
    for (; at && at <= reader->info.last_id; at++) {
        if (flight_record_load(record_of(reader, at), at, ret_event)) {
            *id = at + 1;
            return true;
        }
    }
    return false;
}

bool flight_graph_launch(const struct flight_reader *reader, size_t index, struct event *ret_event)
{
    const struct flight_record *records =
        (const struct flight_record *)(reader->data + reader->layout.graph_offset);
    if (index >= reader->graph_launch_count)
        return false;
    uint64_t state = __atomic_load_n(&records[index].event.id, __ATOMIC_ACQUIRE);
    return state != 0 && flight_record_load(&records[index], state, ret_event);
}

size_t flight_graph_launch_count(const struct flight_reader *reader)
{
    return reader->graph_launch_count;
}

/* How many there are, by the counter or by what the table holds, and how many are damaged. */
static void survey_graphs(struct flight_reader *reader)
{
    const struct flight_record *records =
        (const struct flight_record *)(reader->data + reader->layout.graph_offset);
    struct flight_counters counters;
    struct event event;
    size_t count = reader->header.graph_record_count;
    memcpy(&counters, reader->data + FLIGHT_COUNTERS_OFFSET, sizeof(counters));
    while (count > counters.graph_used &&
           __atomic_load_n(&records[count - 1].event.id, __ATOMIC_ACQUIRE) == 0)
        count--;
    reader->graph_launch_count = count;
    for (size_t i = 0; i < count; i++)
        reader->info.damaged_count += !flight_graph_launch(reader, i, &event);
}

/* ---- Opening -------------------------------------------------------------------------------- */

static void fill_info(struct flight_reader *reader)
{
    const struct flight_header *header = &reader->header;
    struct flight_counters counters;
    memcpy(&counters, reader->data + FLIGHT_COUNTERS_OFFSET, sizeof(counters));
    const struct flight_checkpoint_slot *slot = flight_newest_checkpoint(reader);
    struct flight_info *info = &reader->info;
    *info = (struct flight_info){ .version = reader->version,
                                  .device_count = header->device_count,
                                  .pid = header->pid,
                                  .start_wall_ns = header->start_wall_ns,
                                  .start_clock_ns = header->start_clock_ns,
                                  .closed = counters.closed == 1,
                                  .analysed_id = slot ? slot->analysed_id : 0,
                                  .dropped_count = counters.dropped_count,
                                  .foreign = header->call_tables == 1,
                                  .observed_ns = counters.observed_ns,
                                  .observed_count = counters.observed_count };
    memcpy(info->device, header->device, sizeof(info->device));
    memcpy(info->command, header->command, sizeof(info->command));
    flight_end_text(info->device, sizeof(info->device));
    flight_end_text(info->command, sizeof(info->command));
}

/* A file of an earlier version becomes one of this. */
static enum status convert_old(struct flight_reader *reader, const char *name, struct error *err)
{
    uint8_t *bytes;
    uint64_t size;
    if (!flight_is_old(reader->data, reader->size))
        return STATUS_OK;
    memcpy(&reader->version, reader->data + offsetof(struct flight_header, version),
           sizeof(reader->version));
    TRY(flight_convert_old(reader->data, reader->size, name, &bytes, &size, err));
    free(reader->owned);
    reader->owned = bytes;
    reader->data = bytes;
    reader->size = size;
    return STATUS_OK;
}

static enum status read_all(struct flight_reader *reader, const char *name, struct error *err)
{
    TRY(convert_old(reader, name, err));
    TRY(flight_check_header(reader->data, reader->size, name, &reader->header, &reader->layout,
                            err));
    if (!reader->version)
        reader->version = reader->header.version;
    fill_info(reader);
    survey_ring(reader);
    survey_graphs(reader);
    return flight_read_allocations(reader, name, err);
}

static enum status create(struct flight_reader **ret, struct error *err)
{
    *ret = calloc(1, sizeof(**ret));
    return *ret ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory to read a flight file");
}

static enum status finish(struct flight_reader *reader, enum status status,
                          struct flight_reader **ret_reader)
{
    if (status)
        flight_reader_close(reader);
    else
        *ret_reader = reader;
    return status;
}

enum status flight_open_mapped(struct mapfile *map, const char *name,
                               struct flight_reader **ret_reader, struct error *err)
{
    struct flight_reader *reader;
    enum status status = create(&reader, err);
    if (status) {
        mapfile_release(map);
        return status;
    }
    reader->map = *map;
    reader->data = map->data;
    reader->size = map->size;
    return finish(reader, read_all(reader, name, err), ret_reader);
}

enum status flight_open_owned(uint8_t *bytes, uint64_t size, const char *name,
                              struct flight_reader **ret_reader, struct error *err)
{
    struct flight_reader *reader;
    enum status status = create(&reader, err);
    if (status) {
        free(bytes);
        return status;
    }
    reader->owned = bytes;
    reader->data = bytes;
    reader->size = size;
    return finish(reader, read_all(reader, name, err), ret_reader);
}

enum status flight_open_memory(const void *bytes, uint64_t size, const char *name,
                               struct flight_reader **ret_reader, struct error *err)
{
    struct flight_reader *reader;
    TRY(create(&reader, err));
    reader->data = bytes;
    reader->size = size;
    return finish(reader, read_all(reader, name, err), ret_reader);
}

void flight_reader_close(struct flight_reader *reader)
{
    if (!reader)
        return;
    mapfile_release(&reader->map);
    free(reader->owned);
    free(reader->allocations);
    free(reader);
}

const struct flight_info *flight_info(const struct flight_reader *reader)
{
    return &reader->info;
}

const struct crumb_page *flight_reader_crumbs(const struct flight_reader *reader)
{
    return (const struct crumb_page *)(reader->data + reader->layout.crumb_offset);
}

const struct crumb_page *flight_reader_device_crumbs(const struct flight_reader *reader,
                                                     uint32_t device_index)
{
    if (device_index >= reader->header.device_count)
        return NULL;
    return flight_reader_crumbs(reader) + device_index;
}

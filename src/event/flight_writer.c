/* flight_writer.c - see flight.h.
 *
 * A record is owned by whoever swaps FLIGHT_BUSY into its state, and given back by storing the id
 * there. So a reader, in this process or after its death, sees whole records or busy ones; the
 * checksums tell when even that was torn. */
#define _DEFAULT_SOURCE /* madvise */
#include "event/flight_layout.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RECORDS_DEFAULT 65536u
#define ALLOCATIONS_DEFAULT 8192u
#define GRAPH_RECORDS_DEFAULT 4096u
#define COUNT_LIMIT (1u << 24)

/* ---- Creating ------------------------------------------------------------------------------- */

static void fill_header(struct flight_header *header, const struct flight_options *options,
                        const struct flight_plan *plan)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    *header = (struct flight_header){
        .version = FLIGHT_VERSION,
        .header_bytes = FLIGHT_HEADER_BYTES,
        .record_bytes = sizeof(struct flight_record),
        .event_bytes = sizeof(struct event),
        .allocation_bytes = sizeof(struct flight_entry),
        .checkpoint_bytes = sizeof(struct flight_checkpoint_slot),
        .record_count = options->record_count,
        .allocation_count = options->allocation_count,
        .graph_record_count = options->graph_record_count,
        .call_tables = options->call_tables ? 1 : 0,
        .device_count = options->device_count,
        .crumb_offset = plan->crumb_offset,
        .checkpoint_offset = plan->checkpoint_offset,
        .allocation_offset = plan->allocation_offset,
        .graph_offset = plan->graph_offset,
        .ring_offset = plan->ring_offset,
        .file_bytes = plan->file_bytes,
        .pid = (uint64_t)getpid(),
        .start_wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec,
        .start_clock_ns = clock_ns(),
    };
    memcpy(header->magic, FLIGHT_MAGIC, sizeof(header->magic));
    event_set_text(header->device, sizeof(header->device), options->device ? options->device : "");
    event_set_text(header->command, sizeof(header->command),
                   options->command ? options->command : "");
    header->checksum = flight_header_checksum(header);
}

/* Does it begin as a flight file does, or hold nothing? */
static bool may_be_replaced(const char *path)
{
    char magic[sizeof(FLIGHT_MAGIC) - 1];
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    ssize_t count = read(descriptor, magic, sizeof(magic));
    close(descriptor);
    return count == 0 ||
           (count == (ssize_t)sizeof(magic) && memcmp(magic, FLIGHT_MAGIC, sizeof(magic)) == 0);
}

/* Makes room for a new file under this name, at the cost of an older flight file and of nothing
 * else: not of a model or a device a hasty user names. A link is not followed but removed. */
static enum status remove_old(const char *path, struct error *err)
{
    struct stat info, target;
    if (lstat(path, &info) != 0)
        return STATUS_OK;
    bool link = S_ISLNK(info.st_mode);
    if (link && stat(path, &target) == 0)
        info = target;
    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode))
        return error_set(err, STATUS_EXISTS,
                         "%s: expected the name of a file to write, found a folder or a device",
                         path);
    if (!link && !may_be_replaced(path))
        return error_set(err, STATUS_EXISTS,
                         "%s: expected no file or an older flight file, found another file; remove "
                         "it or choose another name",
                         path);
    return unlink(path) == 0 ? STATUS_OK
                             : error_set_os(err, errno, "%s: cannot remove the old file", path);
}

static enum status map_new_file(const char *path, bool keeps_old, uint64_t size, uint8_t **ret_data,
                                struct error *err)
{
    if (!keeps_old)
        TRY(remove_old(path, err));
    int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return error_set_os(err, errno, "%s: cannot create the flight file", path);
    /* In full, now: a sparse mapping on a full disk would be a SIGBUS in the middle of a run. */
    int code = posix_fallocate(descriptor, 0, (off_t)size);
    void *data = MAP_FAILED;
    if (code == 0) {
        data = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        code = data == MAP_FAILED ? errno : 0;
    }
    close(descriptor);
    if (code != 0) {
        unlink(path);
        return error_set_os(err, code, "%s: cannot allocate the %" PRIu64 " bytes of a flight file",
                            path, size);
    }
    *ret_data = data;
    return STATUS_OK;
}

enum status flight_create(const char *path, const struct flight_options *options,
                          struct flight **ret_flight, struct error *err)
{
    struct flight_options filled = *options;
    if (!filled.record_count)
        filled.record_count = RECORDS_DEFAULT;
    if (!filled.allocation_count)
        filled.allocation_count = ALLOCATIONS_DEFAULT;
    if (!filled.graph_record_count)
        filled.graph_record_count = GRAPH_RECORDS_DEFAULT;
    if (!filled.device_count)
        filled.device_count = 1;
    if (filled.device_count > FLIGHT_DEVICE_LIMIT)
        return error_set(err, STATUS_USAGE, "%s: expected at most %u devices", path,
                         FLIGHT_DEVICE_LIMIT);
    if (filled.record_count > COUNT_LIMIT || filled.allocation_count > COUNT_LIMIT ||
        filled.graph_record_count > COUNT_LIMIT)
        return error_set(err, STATUS_USAGE, "%s: expected at most %u records of a kind", path,
                         COUNT_LIMIT);
    struct flight *flight = calloc(1, sizeof(*flight));
    if (!flight)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for a flight file", path);
    struct flight_plan plan = flight_plan_of(filled.record_count, filled.allocation_count,
                                             filled.graph_record_count, filled.call_tables,
                                             filled.device_count);
    flight->size = plan.file_bytes;
    enum status status = map_new_file(path, filled.keeps_old, plan.file_bytes, &flight->data, err);
    if (status) {
        free(flight);
        return status;
    }
    flight->record_count = filled.record_count;
    flight->allocation_count = filled.allocation_count;
    flight->graph_record_count = filled.graph_record_count;
    flight->call_tables = filled.call_tables;
    flight->device_count = filled.device_count;
    flight_place_areas(flight, &plan);
    pthread_mutex_init(&flight->lock, NULL);
    fill_header((struct flight_header *)flight->data, &filled, &plan);
    *ret_flight = flight;
    return STATUS_OK;
}

void flight_mark_closed(struct flight *flight)
{
    __atomic_store_n(&flight->counters->closed, 1, __ATOMIC_RELEASE);
}

void flight_close(struct flight *flight)
{
    if (!flight)
        return;
    if (!flight->attached)
        flight_mark_closed(flight);
    munmap(flight->data, (size_t)flight->size);
    pthread_mutex_destroy(&flight->lock);
    free(flight);
}

struct crumb_page *flight_crumbs(struct flight *flight)
{
    return flight->crumbs;
}

struct crumb_page *flight_device_crumbs(struct flight *flight, uint32_t device_index)
{
    ASSERT(device_index < flight->device_count);
    return &flight->crumbs[device_index];
}

uint32_t flight_device_count(const struct flight *flight)
{
    return flight->device_count;
}

uint64_t *flight_event_ids(struct flight *flight)
{
    return &flight->last_id;
}

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
    populate(flight, first, count < left ? count : left);
    if (count > left)
        populate(flight, 0, count - left);
}

uint32_t flight_record_count(const struct flight *flight)
{
    return flight->record_count;
}

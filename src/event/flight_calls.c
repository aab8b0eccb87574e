/* flight_calls.c - where calls of a foreign program come from: tables of stacks, kernel names and
 * loaded modules in a flight file, writer and reader side by side.
 *
 * Entries are written once and never change; their number is the index plus 1, so that 0 means
 * none. A table that is full gives 0 from then on: the event is there, who called is not. */
#include "event/flight_layout.h"

#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Writing -------------------------------------------------------------------------------- */

/* The next free entry of a table, or limit if there is none. */
static uint64_t take_entry(uint64_t *used, uint64_t limit)
{
    uint64_t place = __atomic_load_n(used, __ATOMIC_RELAXED);
    return min_u64(place, limit);
}

uint32_t flight_add_stack(struct flight *flight, const uint64_t *frames, size_t count)
{
    if (!flight->call_tables || count == 0)
        return 0;
    if (count > FLIGHT_STACK_FRAMES)
        count = FLIGHT_STACK_FRAMES;
    pthread_mutex_lock(&flight->lock);
    uint64_t place = take_entry(&flight->counters->stack_used, FLIGHT_STACK_COUNT);
    if (place < FLIGHT_STACK_COUNT) {
        struct flight_stack *stack = &flight->stacks[place];
        stack->count = (uint32_t)count;
        memcpy(stack->frames, frames, count * sizeof(*frames));
        stack->checksum = flight_table_checksum(stack, offsetof(struct flight_stack, checksum));
        __atomic_store_n(&flight->counters->stack_used, place + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&flight->lock);
    return place < FLIGHT_STACK_COUNT ? (uint32_t)place + 1 : 0;
}

uint32_t flight_add_name(struct flight *flight, const char *text)
{
    if (!flight->call_tables)
        return 0;
    pthread_mutex_lock(&flight->lock);
    uint64_t place = take_entry(&flight->counters->name_used, FLIGHT_NAME_COUNT);
    if (place < FLIGHT_NAME_COUNT) {
        struct flight_name *name = &flight->names[place];
        event_set_text(name->text, sizeof(name->text), text);
        name->checksum = flight_table_checksum(name, offsetof(struct flight_name, checksum));
        __atomic_store_n(&flight->counters->name_used, place + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&flight->lock);
    return place < FLIGHT_NAME_COUNT ? (uint32_t)place + 1 : 0;
}

void flight_add_module(struct flight *flight, const struct flight_module *module)
{
    if (!flight->call_tables)
        return;
    pthread_mutex_lock(&flight->lock);
    uint64_t place = take_entry(&flight->counters->module_used, FLIGHT_MODULE_COUNT);
    if (place < FLIGHT_MODULE_COUNT) {
        struct flight_module_entry *entry = &flight->modules[place];
        entry->module = *module;
        entry->checksum = flight_table_checksum(&entry->module, sizeof(entry->module));
        __atomic_store_n(&flight->counters->module_used, place + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&flight->lock);
}

void flight_add_cost(struct flight *flight, uint64_t ns, uint64_t count)
{
    __atomic_fetch_add(&flight->counters->observed_ns, ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&flight->counters->observed_count, count, __ATOMIC_RELAXED);
}

/* ---- Attaching ------------------------------------------------------------------------------ */

static enum status map_file(const char *path, uint8_t **ret_data, uint64_t *ret_size,
                            struct error *err)
{
    struct stat info;
    int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return error_set_os(err, errno, "%s: cannot open the flight file", path);
    int code = fstat(descriptor, &info) == 0 ? 0 : errno;
    void *data = MAP_FAILED;
    if (code == 0 && info.st_size > 0)
        data = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (code == 0 && data == MAP_FAILED)
        code = info.st_size > 0 ? errno : ENODATA;
    close(descriptor);
    if (code)
        return error_set_os(err, code, "%s: cannot map the flight file", path);
    *ret_data = data;
    *ret_size = (uint64_t)info.st_size;
    return STATUS_OK;
}

bool flight_is_attached(const struct flight *flight)
{
    return flight->attached;
}

enum status flight_attach(const char *path, struct flight **ret_flight, struct error *err)
{
    struct flight_header header;
    struct flight_layout layout;
    struct flight *flight = calloc(1, sizeof(*flight));
    if (!flight)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for a flight file", path);
    enum status status = map_file(path, &flight->data, &flight->size, err);
    if (!status && flight_is_old(flight->data, flight->size))
        status = error_set(err, STATUS_UNSUPPORTED,
                           "%s: a recording of an earlier version can be read, not written to",
                           path);
    if (!status)
        status = flight_check_header(flight->data, flight->size, path, &header, &layout, err);
    if (status) {
        if (flight->data)
            munmap(flight->data, (size_t)flight->size);
        free(flight);
        return status;
    }
    flight->attached = true;
    flight->record_count = header.record_count;
    flight->allocation_count = header.allocation_count;
    flight->graph_record_count = header.graph_record_count;
    flight->call_tables = header.call_tables == 1;
    flight->device_count = header.device_count;
    flight->launch_count = header.launch_count;
    flight_place_areas(flight, &layout);
    pthread_mutex_init(&flight->lock, NULL);
    *ret_flight = flight;
    return STATUS_OK;
}

/* flight_create.c - makes a flight file and maps it, and lets go of it: see flight.h.
 *
 * The file is allocated in full before the first event, so that no event meets a full disk. */
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
                        const struct flight_layout *layout)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    *header = flight_header_of(layout);
    header->record_count = options->record_count;
    header->allocation_count = options->allocation_count;
    header->graph_record_count = options->graph_record_count;
    header->call_tables = options->call_tables ? 1 : 0;
    header->device_count = options->device_count;
    header->launch_count = options->launch_count;
    header->pid = (uint64_t)getpid();
    header->start_wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    header->start_clock_ns = clock_ns();
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
        filled.graph_record_count > COUNT_LIMIT || filled.launch_count > COUNT_LIMIT)
        return error_set(err, STATUS_USAGE, "%s: expected at most %u records of a kind", path,
                         COUNT_LIMIT);
    struct flight *flight = calloc(1, sizeof(*flight));
    if (!flight)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for a flight file", path);
    struct flight_layout layout = flight_layout_of(filled.record_count, filled.allocation_count,
                                                   filled.graph_record_count, filled.call_tables,
                                                   filled.device_count, filled.launch_count);
    flight->size = layout.file_bytes;
    enum status status = map_new_file(path, filled.keeps_old, layout.file_bytes, &flight->data,
                                      err);
    if (status) {
        free(flight);
        return status;
    }
    flight->record_count = filled.record_count;
    flight->allocation_count = filled.allocation_count;
    flight->graph_record_count = filled.graph_record_count;
    flight->call_tables = filled.call_tables;
    flight->device_count = filled.device_count;
    flight->launch_count = filled.launch_count;
    flight_place_areas(flight, &layout);
    pthread_mutex_init(&flight->lock, NULL);
    fill_header((struct flight_header *)flight->data, &filled, &layout);
    *ret_flight = flight;
    return STATUS_OK;
}

/* ---- An open file ---------------------------------------------------------------------------- */

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

uint32_t flight_record_count(const struct flight *flight)
{
    return flight->record_count;
}

uint64_t *flight_event_ids(struct flight *flight)
{
    return &flight->last_id;
}

/* work_transfers.c - every direction a copy can have, in sizes around pages and staging slots,
 * alone and during a kernel; the bytes are compared on the host, and the device hashes both
 * ends where the level says so. How the staging memory is made and how copies are ordered is the
 * device's, so that a child covers one of each. */
#include "campaign/worker.h"

#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES ((uint64_t)1 << 20) /* the device's default */
#define PAGE_BYTES 4096u
#define LARGEST_BYTES (2 * SLOT_BYTES + 3)
/* Two of three copies are small: the boundaries of pages are where the surprises are. */
static const uint64_t sizes[] = { 1,
                                  3,
                                  63,
                                  64,
                                  65,
                                  PAGE_BYTES - 1,
                                  PAGE_BYTES,
                                  PAGE_BYTES + 1,
                                  3 * PAGE_BYTES + 7,
                                  65535,
                                  65536,
                                  65537,
                                  SLOT_BYTES - 1,
                                  SLOT_BYTES,
                                  SLOT_BYTES + 1,
                                  LARGEST_BYTES };

/* Small, middling, a whole staging slot, and several slots' worth. */
#define LARGE_BYTES (4 * WORK_TRANSFERS_SLOT_BYTES)
static const uint64_t timed_sizes[] = { 65536, (uint64_t)1 << 20, WORK_TRANSFERS_SLOT_BYTES,
                                        LARGE_BYTES };

enum direction { COPY_IN, COPY_OUT, COPY_WITHIN, DIRECTION_COUNT };
/* The last is an import. */
static const char *const direction_names[] = { "H2D", "D2H", "D2D", "H2D" };
_Static_assert(COUNT_OF(direction_names) == DIRECTION_COUNT + 1, "every direction has a name");

struct transfers {
    struct worker *worker;
    struct device *device;
    struct device_stream stream, kernel_stream;
    struct device_buffer from, to;
    struct device_view busy, busy_other; /* what the concurrent kernel works on */
    uint8_t *sent, *back;                /* LARGEST_BYTES each */
    uint64_t random;
};

static struct device_view bytes_of(struct device_buffer buffer, uint64_t offset, uint64_t count)
{
    return (struct device_view){
        .buffer = buffer, .dtype = DTYPE_I8, .shape = shape_make(1, &count), .offset_bytes = offset
    };
}

static void make_bytes(struct transfers *transfers, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += 8) {
        uint64_t word = stress_random(&transfers->random);
        memcpy(transfers->sent + i, &word, (size_t)(count - i < 8 ? count - i : 8));
    }
}

/* Some launches on the other stream, so that the copy does not have the device for itself. */
static enum status keep_busy(struct transfers *transfers, struct error *err)
{
    struct ops_target target = { &transfers->worker->ops, transfers->kernel_stream, DEVICE_HERE };
    for (int i = 0; i < 4; i++)
        TRY(ops_add(&target, &transfers->busy, &transfers->busy_other, err));
    return STATUS_OK;
}

/* What a path did. */
struct tally {
    uint64_t copies, bytes, mismatches, ns;
};

static enum status read_back(struct transfers *transfers, struct device_buffer buffer,
                             uint64_t offset, uint64_t count, struct error *err)
{
    struct device_view view = bytes_of(buffer, offset, count);
    return device_read(transfers->device, transfers->stream, &view, transfers->back, DEVICE_HERE,
                       err);
}

/* One copy of a direction; only that copy is timed. The bytes get to the host in the end. */
static enum status copy_once(struct transfers *transfers, enum direction direction, uint64_t offset,
                             uint64_t count, struct tally *tally, struct error *err)
{
    struct device *device = transfers->device;
    struct device_view from = bytes_of(transfers->from, offset, count);
    struct device_view to = bytes_of(transfers->to, offset, count);
    make_bytes(transfers, count);
    uint64_t begin_ns = clock_ns();
    TRY(device_copy_in(device, transfers->stream, &from, transfers->sent, count, DEVICE_HERE, err));
    if (direction == COPY_IN)
        TRY(device_stream_sync(device, transfers->stream, DEVICE_HERE, err));
    if (direction == COPY_IN)
        tally->ns += clock_ns() - begin_ns;
    if (direction == COPY_WITHIN) {
        TRY(device_stream_sync(device, transfers->stream, DEVICE_HERE, err));
        begin_ns = clock_ns();
        TRY(device_copy_within(device, transfers->stream, &to, &from, DEVICE_HERE, err));
        TRY(device_stream_sync(device, transfers->stream, DEVICE_HERE, err));
        tally->ns += clock_ns() - begin_ns;
    }
    if (direction == COPY_OUT)
        TRY(device_stream_sync(device, transfers->stream, DEVICE_HERE, err));
    memset(transfers->back, 0xA5, (size_t)count);
    begin_ns = clock_ns();
    TRY(read_back(transfers, direction == COPY_WITHIN ? transfers->to : transfers->from, offset,
                  count, err));
    if (direction == COPY_OUT)
        tally->ns += clock_ns() - begin_ns;
    tally->copies++;
    tally->bytes += count;
    tally->mismatches += memcmp(transfers->sent, transfers->back, (size_t)count) != 0;
    return STATUS_OK;
}

static void tell_path(struct transfers *transfers, const char *path, const struct tally *tally,
                      bool timed, bool counted)
{
    worker_tell(transfers->worker,
                json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:b, s:b}", "kind", "transfer", "path",
                          path, "copies", (json_int_t)tally->copies, "bytes",
                          (json_int_t)tally->bytes, "mismatches", (json_int_t)tally->mismatches,
                          "ms", (double)tally->ns / 1e6, "timed", timed, "counted", counted));
}

static enum status run_path(struct transfers *transfers, enum direction direction, bool with_kernel,
                            struct error *err)
{
    const struct job *job = transfers->worker->job;
    struct worker_run run = { .work = "transfers", .key = transfers->worker->run_number + 1 };
    struct tally tally = { 0 };
    char path[128];
    struct event_scope scope = { .step = (int32_t)transfers->worker->run_number, .layer = -1 };
    snprintf(path, sizeof(path), "%s/%s/%s%s", direction_names[direction],
             job->pageable ? "pageable" : "pinned", device_d2h_mode_name(job->d2h_mode),
             with_kernel ? "/kernel" : "");
    event_set_text(scope.tensor, sizeof(scope.tensor), path);
    device_scope_set(transfers->device, transfers->stream, &scope);
    enum status status = worker_run_begin(transfers->worker, &run, err);
    struct tally warm_up = { 0 }; /* first touches of pages are not what is timed */
    if (!status && job->level == AUDIT_OFF)
        status = copy_once(transfers, direction, 0, LARGEST_BYTES, &warm_up, err);
    for (uint32_t i = 0; i < job->copies && !status; i++) {
        uint64_t count = job->level == AUDIT_OFF ? LARGEST_BYTES : sizes[i % COUNT_OF(sizes)];
        /* Byte offsets of every alignment. */
        uint64_t offset = stress_random(&transfers->random) % 64;
        if (with_kernel)
            status = keep_busy(transfers, err);
        if (!status)
            status = copy_once(transfers, direction, offset, count, &tally, err);
        worker_beat(transfers->worker);
    }
    tell_path(transfers, path, &tally, job->level == AUDIT_OFF, job->level != AUDIT_OFF);
    worker_run_end(transfers->worker, &run, status, err);
    return status;
}

/* ---- Life ----------------------------------------------------------------------------------- */

static enum status make_busy(struct transfers *transfers, struct device_view *ret_view,
                             struct error *err)
{
    uint64_t dims[] = { 1024, 64 };
    struct device_view view = { .dtype = DTYPE_F32, .shape = shape_make(2, dims) };
    TRY(device_buffer_create(transfers->device, dims[0] * dims[1] * sizeof(float), "transfers.busy",
                             DEVICE_HERE, &view.buffer, err));
    *ret_view = view;
    return device_fill(transfers->device, transfers->kernel_stream, &view, 0, DEVICE_HERE, err);
}

static enum status open_parts(struct transfers *transfers, struct error *err)
{
    struct device *device = transfers->device;
    uint64_t most = transfers->worker->job->large_copies ? LARGE_BYTES : LARGEST_BYTES;
    uint64_t room = most + 64;
    transfers->sent = malloc((size_t)most);
    transfers->back = malloc((size_t)most);
    if (!transfers->sent || !transfers->back)
        return error_set(err, STATUS_NO_MEMORY, "no memory for copies of %" PRIu64 " bytes", most);
    TRY(device_stream_create(device, DEVICE_HERE, &transfers->stream, err));
    TRY(device_stream_create(device, DEVICE_HERE, &transfers->kernel_stream, err));
    TRY(device_buffer_create(device, room, "transfers.from", DEVICE_HERE, &transfers->from, err));
    TRY(device_buffer_create(device, room, "transfers.to", DEVICE_HERE, &transfers->to, err));
    TRY(make_busy(transfers, &transfers->busy, err));
    return make_busy(transfers, &transfers->busy_other, err);
}

static void close_parts(struct transfers *transfers)
{
    const struct device_stream streams[] = { transfers->stream, transfers->kernel_stream };
    const struct device_buffer buffers[] = { transfers->from, transfers->to, transfers->busy.buffer,
                                             transfers->busy_other.buffer };
    for (size_t i = 0; i < COUNT_OF(streams); i++)
        if (streams[i].index)
            device_stream_destroy(transfers->device, streams[i], DEVICE_HERE);
    for (size_t i = 0; i < COUNT_OF(buffers); i++)
        if (buffers[i].index)
            device_buffer_destroy(transfers->device, buffers[i], DEVICE_HERE);
    free(transfers->sent);
    free(transfers->back);
}

/* ---- By size -------------------------------------------------------------------------------- */

/* One copy out, up to where the bytes can be read: of a slot's worth in the slot, else in memory of
 * the caller. */
static enum status read_timed(struct transfers *transfers, const struct device_view *view,
                              uint64_t count, struct tally *tally, struct error *err)
{
    struct device *device = transfers->device;
    struct device_ticket ticket;
    const void *bytes = transfers->back;
    uint64_t begin_ns = clock_ns();
    bool whole = count <= WORK_TRANSFERS_SLOT_BYTES;
    if (whole) {
        TRY(device_copy_out(device, transfers->stream, view, DEVICE_HERE, &ticket, err));
        TRY(device_ticket_redeem(device, ticket, DEVICE_HERE, &bytes, &count, err));
    } else {
        TRY(device_read(device, transfers->stream, view, transfers->back, DEVICE_HERE, err));
    }
    tally->ns += clock_ns() - begin_ns;
    tally->mismatches += memcmp(transfers->sent, bytes, (size_t)count) != 0;
    if (whole)
        device_ticket_release(device, ticket, DEVICE_HERE);
    return STATUS_OK;
}

static enum status copy_timed(struct transfers *transfers, enum direction direction, uint64_t count,
                              struct tally *tally, struct error *err)
{
    struct device *device = transfers->device;
    struct device_view from = bytes_of(transfers->from, 0, count);
    struct device_view to = bytes_of(transfers->to, 0, count);
    struct tally unused = { 0 };
    uint64_t begin_ns = clock_ns();
    if (direction == COPY_IN)
        TRY(device_copy_in(device, transfers->stream, &from, transfers->sent, count, DEVICE_HERE,
                           err));
    else if (direction == COPY_WITHIN)
        TRY(device_copy_within(device, transfers->stream, &to, &from, DEVICE_HERE, err));
    TRY(device_stream_sync(device, transfers->stream, DEVICE_HERE, err));
    if (direction != COPY_OUT)
        tally->ns += clock_ns() - begin_ns;
    tally->copies++;
    tally->bytes += count;
    TRY(read_timed(transfers, direction == COPY_WITHIN ? &to : &from, count,
                   direction == COPY_OUT ? tally : &unused, err));
    tally->mismatches += unused.mismatches;
    return STATUS_OK;
}

/* Memory of the host that becomes a buffer, as weights do: by the device's own best way. */
static enum status import_timed(struct transfers *transfers, uint64_t count, struct tally *tally,
                                struct error *err)
{
    struct device *device = transfers->device;
    struct device_buffer buffer;
    struct tally unused = { 0 };
    uint64_t begin_ns = clock_ns();
    TRY(device_buffer_import(device, transfers->sent, count, "transfers.import", DEVICE_HERE,
                             &buffer, err));
    tally->ns += clock_ns() - begin_ns;
    tally->copies++;
    tally->bytes += count;
    struct device_view view = bytes_of(buffer, 0, count);
    TRY(read_timed(transfers, &view, count, &unused, err));
    tally->mismatches += unused.mismatches;
    device_buffer_destroy(device, buffer, DEVICE_HERE);
    return STATUS_OK;
}

/* direction DIRECTION_COUNT: an import. The first time is not counted: pages are touched. */
static enum status run_size(struct transfers *transfers, enum direction direction, uint64_t count,
                            struct error *err)
{
    const struct job *job = transfers->worker->job;
    bool import = direction == DIRECTION_COUNT;
    struct worker_run run = { .work = "transfers", .key = transfers->worker->run_number + 1 };
    struct tally tally = { 0 }, warm_up = { 0 };
    char path[96], words[TEXT_BYTES_CAPACITY];
    snprintf(path, sizeof(path), "%s/%s/%s%s", direction_names[direction],
             import          ? "import"
             : job->pageable ? "pageable"
                             : "pinned",
             text_bytes(count, words),
             !import && direction != COPY_WITHIN && count == LARGE_BYTES ? " in parts" : "");
    make_bytes(transfers, count);
    enum status status = worker_run_begin(transfers->worker, &run, err);
    struct device_view view = bytes_of(transfers->from, 0, count);
    if (!status)
        status = device_copy_in(transfers->device, transfers->stream, &view, transfers->sent, count,
                                DEVICE_HERE, err);
    for (uint32_t i = 0; i <= job->copies && !status; i++) {
        struct tally *counts = i ? &tally : &warm_up;
        status = import ? import_timed(transfers, count, counts, err)
                        : copy_timed(transfers, direction, count, counts, err);
        worker_beat(transfers->worker);
    }
    tell_path(transfers, path, &tally, true, true);
    worker_run_end(transfers->worker, &run, status, err);
    return status;
}

static enum status run_sizes(struct transfers *transfers, struct error *err)
{
    for (int direction = 0; direction < DIRECTION_COUNT; direction++)
        for (size_t i = 0; i < COUNT_OF(timed_sizes); i++)
            TRY(run_size(transfers, (enum direction)direction, timed_sizes[i], err));
    /* Weights do not come by import where the device has memory of its own. */
    return transfers->worker->job->pageable || device_info(transfers->device)->own_memory
               ? STATUS_OK
               : run_size(transfers, DIRECTION_COUNT, LARGE_BYTES, err);
}

/* ---- All of it ------------------------------------------------------------------------------ */

enum status work_transfers_run(struct worker *worker, struct error *err)
{
    struct transfers transfers = { .worker = worker,
                                   .device = worker->device,
                                   .random = worker->job->seed };
    enum status status = open_parts(&transfers, err);
    if (!status)
        worker_ready(worker);
    if (!status && worker->job->large_copies)
        status = run_sizes(&transfers, err);
    for (int direction = 0; direction < DIRECTION_COUNT && !status && !worker->job->large_copies;
         direction++) {
        status = run_path(&transfers, (enum direction)direction, false, err);
        if (!status && worker->job->level != AUDIT_OFF)
            status = run_path(&transfers, (enum direction)direction, true, err);
    }
    close_parts(&transfers);
    return status;
}

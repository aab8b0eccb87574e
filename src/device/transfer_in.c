/* transfer_in.c - copies in: bytes of the host go through staging to the device.
 *
 * A copy of more than one slot becomes several, each with an event of its own, so that the state of
 * every slot can be followed. Slots are filled in parallel and queued in order: while some are
 * filled, others are being transferred. */
#include "device/transfer.h"

#include "base/copier.h"
#include "base/fault.h"
#include "base/size.h"

#include <inttypes.h>

/* Bytes [at, at + bytes) of a run: all rows if they are contiguous, else one row. */
static struct device_rows slice(const struct device_rows *rows, uint64_t at, uint64_t bytes)
{
    return (struct device_rows){ rows->address + at, bytes, 1, bytes };
}

static bool is_dense(const struct device_rows *rows)
{
    return rows->row_count <= 1 || rows->stride_bytes == rows->row_bytes;
}

/* Chunks that are filled ahead of the one that is queued next. */
#define CHUNK_LIMIT 8u
/* Waking other threads pays from these sizes on: of a chunk, and of the whole copy. */
#define SHARED_BYTES ((uint64_t)512 << 10)
#define SHARED_COPY_BYTES ((uint64_t)2 << 20)
/* A chunk is at most this large, so that the link is not idle while a large slot is filled. */
#define CHUNK_BYTES ((uint64_t)2 << 20)

/* The part of a copy that goes through one slot. */
struct chunk {
    struct device_rows target;
    uint64_t source_at;
    const uint8_t *source; /* NULL: it comes from a reader */
    struct staging_slot *slot;
    bool shared; /* filled by the copier's threads, as `job` */
    struct copier_job job;
};

/* A copy in under way. */
struct copy_in {
    struct device_rows rows;            /* the whole target */
    const uint8_t *source;              /* NULL: the bytes come from the reader */
    const struct device_reader *reader; /* or NULL */
    uint64_t given;                     /* bytes that have been assigned a slot */
    uint64_t run, at;                   /* where the rest begins: run of bytes, offset into it */
    uint64_t first_id;                  /* event of the first chunk; 0: none yet */
    uint64_t taken, queued;             /* chunks; those between the two have slots */
    struct chunk chunks[CHUNK_LIMIT];
};

/* Queues the copy from the slot, with the hashes that the audit wants. */
static enum status give_from_slot(struct call *call, struct stream_slot *stream,
                                  const struct device_rows *target, const void *source,
                                  struct staging_slot *slot, struct error *err)
{
    struct device *device = call->device;
    struct device_command command = { .kind = DEVICE_COMMAND_COPY_IN,
                                      .event_id = call->event.id,
                                      .scope = stream->scope,
                                      .target = *target,
                                      .staging = slot->memory };
    struct transfer_check *check = transfer_check_create(call, target);
    transfer_check_host(device, check, TRANSFER_BEFORE, source, target->row_bytes);
    TRY(device->methods->submit(device, stream->impl, &command, err));
    TRY(transfer_check_queue(call, stream, check, TRANSFER_AFTER, target, slot->memory, err));
    TRY(transfer_check_queue(call, stream, check, TRANSFER_LANDED, target, NULL, err));
    TRY(device->methods->mark_record(device, stream->impl, slot->mark, err));
    staging_queued(device, slot);
    return call_settle(call, stream, err);
}

static enum status queue_copy_in(struct call *call, struct stream_slot *stream,
                                 const struct device_rows *target, const void *source,
                                 struct staging_slot *slot, struct error *err)
{
    device_begin_alone(call->device);
    enum status status = give_from_slot(call, stream, target, source, slot, err);
    device_end_alone(call->device);
    return status;
}

/* Reports and queues a chunk whose slot is filled. The stream is locked. */
static enum status queue_chunk(struct call *call, struct stream_slot *stream, struct copy_in *copy,
                               const struct chunk *chunk, struct error *err)
{
    struct device *device = call->device;
    struct staging_slot *slot = chunk->slot;
    ASSERT(slot); /* it has been filled */
    struct device_ticket place = staging_ticket(device, slot);
    call->event.copy = (struct event_copy){ .bytes = chunk->target.row_bytes,
                                            .host_address = (uint64_t)(uintptr_t)slot->memory,
                                            .ticket = place.index,
                                            .generation = (uint16_t)place.generation,
                                            .state_before = call->event.copy.state_before };
    call->event.cause_id = copy->first_id;
    call->event.accesses[0].address = chunk->target.address;
    call->event.accesses[0].bytes = chunk->target.row_bytes;
    call_begin(call);
    if (!copy->first_id)
        copy->first_id = call->event.id;
    slot->event_id = call->event.id;
    slot->stream_index = call->event.stream_index;
    slot->stream = stream->impl;
    enum status status = queue_copy_in(call, stream, &chunk->target,
                                       chunk->source ? chunk->source : slot->memory, slot, err);
    if (status)
        staging_give_back(device, slot);
    else
        call_ask_after(call, stream);
    return call_end(call, status, err);
}

/* All rows are one run if they are contiguous; else each row is a run. */
static uint64_t run_bytes_of(const struct device_rows *rows)
{
    return is_dense(rows) ? rows->row_bytes * rows->row_count : rows->row_bytes;
}

static bool has_more(const struct copy_in *copy)
{
    return copy->run < (is_dense(&copy->rows) ? 1 : copy->rows.row_count) &&
           run_bytes_of(&copy->rows) > 0;
}

/* Cuts the next chunk off a copy that has more. */
static struct chunk next_chunk(struct copy_in *copy, uint64_t chunk_bytes)
{
    const struct device_rows *rows = &copy->rows;
    uint64_t run_bytes = run_bytes_of(rows), left = run_bytes - copy->at;
    uint64_t bytes = min_u64(left, chunk_bytes);
    struct chunk chunk = { .target = slice(rows, copy->run * rows->stride_bytes + copy->at, bytes),
                           .source_at = copy->given,
                           .source = copy->source ? copy->source + copy->given : NULL,
                           .shared = copy->source && bytes >= SHARED_BYTES &&
                                     rows->row_bytes * rows->row_count >= SHARED_COPY_BYTES };
    copy->given += bytes;
    copy->at += bytes;
    if (copy->at == run_bytes) {
        copy->at = 0;
        copy->run++;
    }
    return chunk;
}

/* Takes slots for the next chunks and begins to fill them: as many as are free, but at most half of
 * all slots, so that the other half can be in transfer. Refuses if there is not even one. */
static enum status fill_slots(struct call *call, const struct stream_slot *stream,
                              struct copy_in *copy, struct error *err)
{
    struct device *device = call->device;
    uint64_t slot_bytes = device->options.staging_slot_bytes;
    uint64_t chunk_bytes = min_u64(slot_bytes, CHUNK_BYTES);
    uint64_t limit = device->options.staging_slot_count / 2;
    limit = limit > CHUNK_LIMIT ? CHUNK_LIMIT : limit ? limit : 1;
    if (copy->reader) /* this thread alone fills slots */
        limit = 1;
    while (has_more(copy) && copy->taken - copy->queued < limit) {
        uint32_t in_use = 0;
        bool first = copy->taken == copy->queued;
        struct staging_slot *slot = staging_take(device, STAGING_FILLING, stream->impl, first,
                                                 &in_use);
        if (!slot)
            return first ? transfer_refuse_staging(call, in_use, err) : STATUS_OK;
        struct chunk *chunk = &copy->chunks[copy->taken++ % CHUNK_LIMIT];
        *chunk = next_chunk(copy, chunk_bytes);
        chunk->slot = slot;
        if (chunk->shared)
            copier_start(device->copier, &chunk->job, slot->memory, chunk->source,
                         (size_t)chunk->target.row_bytes);
    }
    return STATUS_OK;
}

/* Fills the chunk's slot, or waits for the threads that do. */
static enum status finish_filling(struct device *device, const struct copy_in *copy,
                                  struct chunk *chunk, struct error *err)
{
    const struct device_reader *reader = copy->reader;
    ASSERT(chunk->slot); /* it was taken with a slot */
    if (reader)
        return reader->read(reader->context, chunk->source_at, chunk->slot->memory,
                            chunk->target.row_bytes, err);
    bool good = chunk->shared ? copier_wait(device->copier, &chunk->job)
                              : fault_copy(chunk->slot->memory, chunk->source,
                                           (size_t)chunk->target.row_bytes);
    return good ? STATUS_OK
                : error_set(err, STATUS_IO,
                            "copy in: %" PRIu64
                            " bytes could not be read: is their file still whole?",
                            chunk->target.row_bytes);
}

/* Queues the next chunk once its slot is filled. */
static enum status send_chunk(struct call *call, struct stream_slot *stream, struct copy_in *copy,
                              struct error *err)
{
    struct chunk *chunk = &copy->chunks[copy->queued++ % CHUNK_LIMIT];
    if (copy->first_id)
        call_again(call);
    enum status status = finish_filling(call->device, copy, chunk, err);
    if (!status)
        return queue_chunk(call, stream, copy, chunk, err);
    staging_give_back(call->device, chunk->slot);
    call_begin(call);
    return call_end(call, status, err);
}

/* After a failure, gives back the slots of chunks that were not queued. */
static void drop_chunks(struct device *device, struct copy_in *copy)
{
    for (; copy->queued < copy->taken; copy->queued++) {
        struct chunk *chunk = &copy->chunks[copy->queued % CHUNK_LIMIT];
        bool unused = chunk->shared && copier_wait(device->copier, &chunk->job);
        (void)unused;
        staging_give_back(device, chunk->slot);
    }
}

static enum status copy_all_in(struct call *call, struct stream_slot *stream, struct copy_in *copy,
                               struct error *err)
{
    enum status status = STATUS_OK;
    while (!status && (has_more(copy) || copy->queued < copy->taken)) {
        status = fill_slots(call, stream, copy, err);
        if (!status)
            status = send_chunk(call, stream, copy, err);
    }
    drop_chunks(call->device, copy);
    return status;
}

/* From source or, if that is NULL, from the reader. */
static enum status give_copy_in(struct device *device, struct device_stream stream,
                                const struct device_view *target, const void *source,
                                const struct device_reader *reader, uint64_t bytes,
                                struct device_site site, uint64_t *ret_event_id, struct error *err)
{
    struct call call;
    struct stream_slot *slot;
    struct resolved resolved;
    call_init(&call, device, EVENT_COPY_IN, site);
    TRY(call_lock_stream(&call, stream, "copy in", &slot, err));
    call.event.copy.bytes = bytes;
    enum status status = call_refuse_capture(&call, slot, "copy in", err);
    if (!status)
        status = call_resolve(&call, target, 0, "copy in", EVENT_WRITE, &resolved, err);
    if (!status && bytes != transfer_bytes(&resolved))
        status = transfer_refuse_bytes(&call, "copy in", transfer_bytes(&resolved), bytes, err);
    if (!status)
        status = call_ask_before(&call, slot, "copy in", err);
    if (!status) {
        struct copy_in copy = { .rows = resolved.rows, .source = source, .reader = reader };
        status = copy_all_in(&call, slot, &copy, err);
        if (!status && !copy.first_id) { /* an empty copy is reported as well */
            call_begin(&call);
            call_end(&call, STATUS_OK, err);
        }
    }
    call_unlock_stream(slot);
    *ret_event_id = call.event.id;
    return status;
}

static enum status copy_in(struct device *device, struct device_stream stream,
                           const struct device_view *target, const void *source,
                           const struct device_reader *reader, uint64_t bytes,
                           struct device_site site, struct error *err)
{
    uint64_t event_id = 0;
    if (!device_is_tampered(device))
        return give_copy_in(device, stream, target, source, reader, bytes, site, &event_id, err);
    struct device_view changed = *target;
    struct device_tampered call = {
        .kind = EVENT_COPY_IN, .stream = stream, .view = &changed, .byte_count = &bytes
    };
    if (!tamper_before(device, &call))
        return STATUS_OK;
    enum status status = give_copy_in(device, call.stream, &changed, source, reader, bytes, site,
                                      &event_id, err);
    tamper_after(device, &call, status, event_id);
    return status;
}

enum status device_copy_in(struct device *device, struct device_stream stream,
                           const struct device_view *target, const void *source, uint64_t bytes,
                           struct device_site site, struct error *err)
{
    return copy_in(device, stream, target, source, NULL, bytes, site, err);
}

enum status device_copy_in_read(struct device *device, struct device_stream stream,
                                const struct device_view *target,
                                const struct device_reader *reader, uint64_t bytes,
                                struct device_site site, struct error *err)
{
    return copy_in(device, stream, target, NULL, reader, bytes, site, err);
}

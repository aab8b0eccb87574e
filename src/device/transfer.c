/* transfer.c - bytes in and within. A copy that fails a check is refused and told to the
 * observer: never shortened, never retried. */
#include "device/transfer.h"

#include "base/copier.h"
#include "base/fault.h"

#include <inttypes.h>
#include <string.h>

enum status transfer_refuse_staging(struct call *call, uint32_t in_use, struct error *err)
{
    TRY(call_check_lost(call, call->what, err)); /* then no slot was waited for */
    return call_refuse(call, EVENT_CHECK_STAGING, EVENT_NO_OPERAND,
                       call->device->options.staging_slot_count, in_use, err, STATUS_BUSY,
                       "staging: all %" PRIu32 " slots are held by tickets; release one first",
                       in_use);
}

/* ---- In ------------------------------------------------------------------------------------- */

static enum status refuse_bytes(struct call *call, const char *what, uint64_t expected,
                                uint64_t found, struct error *err)
{
    return call_refuse(call, EVENT_CHECK_BYTES, 0, expected, found, err, STATUS_REFUSED,
                       "%s: expected the %" PRIu64 " bytes of the view, found %" PRIu64, what,
                       expected, found);
}

/* Whole rows if they are close together, else row by row: cuts [at, at + bytes) out of dense rows.
 */
static struct device_rows slice(const struct device_rows *rows, uint64_t at, uint64_t bytes)
{
    return (struct device_rows){ rows->address + at, bytes, 1, bytes };
}

static bool is_dense(const struct device_rows *rows)
{
    return rows->row_count <= 1 || rows->stride_bytes == rows->row_bytes;
}

/* Pieces that are filled ahead of the one that is queued next, at most. */
#define PIECE_LIMIT 8u
/* Less is filled sooner than it is given to others: of a piece, and of a whole copy, for which they
 * must be woken. */
#define SHARED_BYTES ((uint64_t)512 << 10)
#define SHARED_COPY_BYTES ((uint64_t)2 << 20)
/* Of a piece: a large slot is not filled in full while the link has nothing to do. */
#define PIECE_BYTES ((uint64_t)2 << 20)

/* Bytes for one slot. */
struct piece {
    struct device_rows target;
    uint64_t source_at;
    const uint8_t *source; /* NULL: a reader has it */
    struct staging_slot *slot;
    bool shared; /* filled by the copier's threads: */
    struct copier_job job;
};

/* A copy in of more than a slot is several, one for each slot's worth: each is an event of its own,
 * so that the states of slots can be followed. Slots are filled side by side and queued in order:
 * while some are filled, others are on their way. */
struct copy_in {
    struct device_rows rows; /* of the whole copy */
    const uint8_t *source;   /* its bytes; NULL: */
    const struct device_reader *reader;
    uint64_t given;         /* bytes that have a slot; of what has none: */
    uint64_t run, at;       /* of which run of bytes, and how far into it */
    uint64_t first_id;      /* event of the first piece; 0: none yet */
    uint64_t taken, queued; /* pieces; those between have slots */
    struct piece pieces[PIECE_LIMIT];
};

/* Queues the copy from the slot, and what the audit wants to see of it. */
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

/* Tells of a piece whose slot is filled, and queues it; the stream is locked. */
static enum status queue_piece(struct call *call, struct stream_slot *stream, struct copy_in *copy,
                               const struct piece *piece, struct error *err)
{
    struct device *device = call->device;
    struct staging_slot *slot = piece->slot;
    ASSERT(slot); /* a piece is only queued when its slot is filled */
    struct device_ticket place = staging_ticket(device, slot);
    call->event.copy = (struct event_copy){ .bytes = piece->target.row_bytes,
                                            .host_address = (uint64_t)(uintptr_t)slot->memory,
                                            .ticket = place.index,
                                            .generation = (uint16_t)place.generation,
                                            .state_before = call->event.copy.state_before };
    call->event.cause_id = copy->first_id;
    call->event.accesses[0].address = piece->target.address;
    call->event.accesses[0].bytes = piece->target.row_bytes;
    call_begin(call);
    if (!copy->first_id)
        copy->first_id = call->event.id;
    slot->event_id = call->event.id;
    slot->stream_index = call->event.stream_index;
    slot->stream = stream->impl;
    enum status status = queue_copy_in(call, stream, &piece->target,
                                       piece->source ? piece->source : slot->memory, slot, err);
    if (status)
        staging_give_back(device, slot);
    else
        call_ask_after(call, stream);
    return call_end(call, status, err);
}

/* Whole rows if they are close together, else row by row. */
static uint64_t run_bytes_of(const struct device_rows *rows)
{
    return is_dense(rows) ? rows->row_bytes * rows->row_count : rows->row_bytes;
}

static bool has_more(const struct copy_in *copy)
{
    return copy->run < (is_dense(&copy->rows) ? 1 : copy->rows.row_count) &&
           run_bytes_of(&copy->rows) > 0;
}

/* The next slot's worth of a copy that has more. */
static struct piece next_piece(struct copy_in *copy, uint64_t piece_bytes)
{
    const struct device_rows *rows = &copy->rows;
    uint64_t run_bytes = run_bytes_of(rows), left = run_bytes - copy->at;
    uint64_t bytes = left < piece_bytes ? left : piece_bytes;
    struct piece piece = { .target = slice(rows, copy->run * rows->stride_bytes + copy->at, bytes),
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
    return piece;
}

/* Slots for the next pieces, which begin to be filled: as many as there are, but half of all at
 * most, so that others are on their way meanwhile. At least one, or refuses. */
static enum status fill_slots(struct call *call, const struct stream_slot *stream,
                              struct copy_in *copy, struct error *err)
{
    struct device *device = call->device;
    uint64_t slot_bytes = device->options.staging_slot_bytes;
    uint64_t piece_bytes = slot_bytes < PIECE_BYTES ? slot_bytes : PIECE_BYTES;
    uint64_t limit = device->options.staging_slot_count / 2;
    limit = limit > PIECE_LIMIT ? PIECE_LIMIT : limit ? limit : 1;
    if (copy->reader) /* nobody else fills slots meanwhile */
        limit = 1;
    while (has_more(copy) && copy->taken - copy->queued < limit) {
        uint32_t in_use = 0;
        bool first = copy->taken == copy->queued;
        struct staging_slot *slot = staging_take(device, STAGING_FILLING, stream->impl, first,
                                                 &in_use);
        if (!slot)
            return first ? transfer_refuse_staging(call, in_use, err) : STATUS_OK;
        struct piece *piece = &copy->pieces[copy->taken++ % PIECE_LIMIT];
        *piece = next_piece(copy, piece_bytes);
        piece->slot = slot;
        if (piece->shared)
            copier_start(device->copier, &piece->job, slot->memory, piece->source,
                         (size_t)piece->target.row_bytes);
    }
    return STATUS_OK;
}

/* Fills the piece's slot, or waits for whoever does. */
static enum status finish_filling(struct device *device, const struct copy_in *copy,
                                  struct piece *piece, struct error *err)
{
    const struct device_reader *reader = copy->reader;
    ASSERT(piece->slot); /* since it was taken */
    if (reader)
        return reader->read(reader->context, piece->source_at, piece->slot->memory,
                            piece->target.row_bytes, err);
    bool good = piece->shared ? copier_wait(device->copier, &piece->job)
                              : fault_copy(piece->slot->memory, piece->source,
                                           (size_t)piece->target.row_bytes);
    return good ? STATUS_OK
                : error_set(err, STATUS_IO,
                            "copy in: %" PRIu64
                            " bytes could not be read: is their file still whole?",
                            piece->target.row_bytes);
}

/* The piece whose turn it is, once its slot is filled. */
static enum status send_piece(struct call *call, struct stream_slot *stream, struct copy_in *copy,
                              struct error *err)
{
    struct piece *piece = &copy->pieces[copy->queued++ % PIECE_LIMIT];
    if (copy->first_id)
        call_again(call);
    enum status status = finish_filling(call->device, copy, piece, err);
    if (!status)
        return queue_piece(call, stream, copy, piece, err);
    staging_give_back(call->device, piece->slot);
    call_begin(call);
    return call_end(call, status, err);
}

/* After a failure: slots that were filled for nothing. */
static void drop_pieces(struct device *device, struct copy_in *copy)
{
    for (; copy->queued < copy->taken; copy->queued++) {
        struct piece *piece = &copy->pieces[copy->queued % PIECE_LIMIT];
        bool unused = piece->shared && copier_wait(device->copier, &piece->job);
        (void)unused;
        staging_give_back(device, piece->slot);
    }
}

static enum status copy_all_in(struct call *call, struct stream_slot *stream, struct copy_in *copy,
                               struct error *err)
{
    enum status status = STATUS_OK;
    while (!status && (has_more(copy) || copy->queued < copy->taken)) {
        status = fill_slots(call, stream, copy, err);
        if (!status)
            status = send_piece(call, stream, copy, err);
    }
    drop_pieces(call->device, copy);
    return status;
}

/* Of source, or of what the reader reads. */
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
        status = refuse_bytes(&call, "copy in", transfer_bytes(&resolved), bytes, err);
    if (!status)
        status = call_ask_before(&call, slot, "copy in", err);
    if (!status) {
        struct copy_in copy = { .rows = resolved.rows, .source = source, .reader = reader };
        status = copy_all_in(&call, slot, &copy, err);
        if (!status && !copy.first_id) { /* of nothing: told all the same */
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

/* ---- Within --------------------------------------------------------------------------------- */

enum status device_copy_within(struct device *device, struct device_stream stream,
                               const struct device_view *target, const struct device_view *source,
                               struct device_site site, struct error *err)
{
    struct call call;
    struct stream_slot *slot;
    struct resolved to, from;
    call_init(&call, device, EVENT_COPY_WITHIN, site);
    TRY(call_lock_stream(&call, stream, "copy within", &slot, err));
    enum status status = call_resolve(&call, target, 0, "target of copy within", EVENT_WRITE, &to,
                                      err);
    if (!status)
        status = call_resolve(&call, source, 1, "source of copy within", EVENT_READ, &from, err);
    if (!status &&
        (to.rows.row_bytes != from.rows.row_bytes || to.rows.row_count != from.rows.row_count))
        status = refuse_bytes(&call, "copy within", transfer_bytes(&to), transfer_bytes(&from),
                              err);
    if (!status) {
        struct device_view views[2] = { *target, *source };
        call.event.copy.bytes = transfer_bytes(&to);
        call_begin(&call);
        struct device_command command = { .kind = DEVICE_COMMAND_COPY_WITHIN,
                                          .event_id = call.event.id,
                                          .scope = slot->scope,
                                          .target = to.rows,
                                          .source = from.rows };
        /* A recorded copy runs many times: its hashes would not be of one event. */
        struct transfer_check *check = slot->builder ? NULL
                                                     : transfer_check_create(&call, &to.rows);
        status = transfer_check_queue(&call, slot, check, TRANSFER_BEFORE, &from.rows, NULL, err);
        if (!status)
            status = call_submit(&call, slot, &command, views, 2, err);
        if (!status)
            status = transfer_check_queue(&call, slot, check, TRANSFER_AFTER, &from.rows, NULL,
                                          err);
        if (!status)
            status = transfer_check_queue(&call, slot, check, TRANSFER_LANDED, &to.rows, NULL, err);
        call_end(&call, status, err);
    }
    call_unlock_stream(slot);
    return status;
}

static enum status give_fill(struct device *device, struct device_stream stream,
                             const struct device_view *target, uint8_t byte,
                             struct device_site site, uint64_t *ret_event_id, struct error *err)
{
    struct call call;
    struct stream_slot *slot;
    struct resolved resolved;
    call_init(&call, device, EVENT_FILL, site);
    TRY(call_lock_stream(&call, stream, "fill", &slot, err));
    enum status status = call_resolve(&call, target, 0, "fill", EVENT_WRITE, &resolved, err);
    if (!status) {
        call.event.copy.bytes = transfer_bytes(&resolved);
        call_begin(&call);
        struct device_command command = { .kind = DEVICE_COMMAND_FILL,
                                          .event_id = call.event.id,
                                          .scope = slot->scope,
                                          .target = resolved.rows,
                                          .byte = byte };
        status = call_submit(&call, slot, &command, target, 1, err);
        call_end(&call, status, err);
    }
    call_unlock_stream(slot);
    *ret_event_id = call.event.id;
    return status;
}

enum status device_fill(struct device *device, struct device_stream stream,
                        const struct device_view *target, uint8_t byte, struct device_site site,
                        struct error *err)
{
    uint64_t event_id = 0;
    if (!device_is_tampered(device))
        return give_fill(device, stream, target, byte, site, &event_id, err);
    struct device_view changed = *target;
    struct device_tampered call = { .kind = EVENT_FILL, .stream = stream, .view = &changed };
    if (!tamper_before(device, &call))
        return STATUS_OK;
    enum status status = give_fill(device, call.stream, &changed, byte, site, &event_id, err);
    tamper_after(device, &call, status, event_id);
    return status;
}

/* transfer.c - bytes in, out, within. A copy that fails a check is refused and told to the
 * observer: never shortened, never retried. */
#include "device/staging.h"

#include "base/size.h"

#include <inttypes.h>
#include <string.h>

/* What the caller asked for, or what a planted bug makes of it. */
static struct device_view asked_view(const struct device *device, const char *op,
                                     const struct device_view *view,
                                     const struct stream_slot *stream)
{
    struct device_view asked = *view;
    if (device->tamper.view)
        device->tamper.view(device->tamper.context, op, &asked, &stream->scope);
    return asked;
}

/* ---- In ------------------------------------------------------------------------------------- */

static uint64_t view_bytes(const struct resolved *resolved)
{
    return resolved->rows.row_bytes * resolved->rows.row_count;
}

static enum status refuse_bytes(struct call *call, const char *what, uint64_t expected,
                                uint64_t found, struct error *err)
{
    return call_refuse(call, EVENT_CHECK_BYTES, 0, expected, found, err, STATUS_REFUSED,
                       "%s: expected the %" PRIu64 " bytes of the view, found %" PRIu64, what,
                       expected, found);
}

static enum status refuse_staging(struct call *call, uint32_t in_use, struct error *err)
{
    return call_refuse(call, EVENT_CHECK_STAGING, EVENT_NO_OPERAND,
                       call->device->options.staging_slot_count, in_use, err, STATUS_BUSY,
                       "staging: all %" PRIu32 " slots are held by tickets; release one first",
                       in_use);
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

/* One piece through one slot; the stream is locked and the event has begun. */
static enum status copy_piece_in(struct call *call, struct stream_slot *stream,
                                 const struct device_rows *target, const void *source,
                                 struct error *err)
{
    struct device *device = call->device;
    uint32_t in_use;
    struct staging_slot *slot = staging_take(device, STAGING_FILLING, &in_use);
    if (!slot)
        return error_set(err, STATUS_BUSY,
                         "staging: all %" PRIu32 " slots are held by tickets; release one first",
                         in_use);
    memcpy(slot->memory, source, (size_t)(target->row_bytes * target->row_count));
    struct device_command command = { .kind = DEVICE_COMMAND_COPY_IN,
                                      .event_id = call->event.id,
                                      .scope = stream->scope,
                                      .target = *target,
                                      .staging = slot->memory };
    enum status status = device->methods->submit(device, stream->impl, &command, err);
    if (!status)
        status = device->methods->mark_record(device, stream->impl, slot->mark, err);
    if (status)
        staging_give_back(device, slot);
    return status;
}

static enum status copy_all_in(struct call *call, struct stream_slot *stream,
                               const struct device_rows *rows, const uint8_t *source,
                               struct error *err)
{
    uint64_t slot_bytes = call->device->options.staging_slot_bytes;
    uint64_t run_bytes = is_dense(rows) ? rows->row_bytes * rows->row_count : rows->row_bytes;
    uint64_t run_count = is_dense(rows) ? 1 : rows->row_count;
    for (uint64_t run = 0; run < run_count; run++) {
        for (uint64_t at = 0; at < run_bytes; at += slot_bytes) {
            uint64_t left = run_bytes - at;
            struct device_rows piece = slice(rows, run * rows->stride_bytes + at,
                                             left < slot_bytes ? left : slot_bytes);
            TRY(copy_piece_in(call, stream, &piece, source, err));
            source += piece.row_bytes;
        }
    }
    return STATUS_OK;
}

enum status device_copy_in(struct device *device, struct device_stream stream,
                           const struct device_view *target, const void *source, uint64_t bytes,
                           struct device_site site, struct error *err)
{
    struct call call;
    struct stream_slot *slot;
    struct resolved resolved;
    call_init(&call, device, EVENT_COPY_IN, site);
    TRY(call_lock_stream(&call, stream, "copy in", &slot, err));
    call.event.bytes = bytes;
    call.event.host_address = (uint64_t)(uintptr_t)source;
    struct device_view asked = asked_view(device, "copy-in", target, slot);
    enum status status = call_refuse_capture(&call, slot, "copy in", err);
    if (!status)
        status = call_resolve(&call, &asked, 0, "copy in", EVENT_WRITE, &resolved, err);
    if (!status && bytes != view_bytes(&resolved))
        status = refuse_bytes(&call, "copy in", view_bytes(&resolved), bytes, err);
    if (!status) {
        call_begin(&call);
        status = copy_all_in(&call, slot, &resolved.rows, source, err);
        call_end(&call, status, err);
    }
    call_unlock_stream(slot);
    return status;
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
        status = refuse_bytes(&call, "copy within", view_bytes(&to), view_bytes(&from), err);
    if (!status) {
        struct device_view views[2] = { *target, *source };
        call.event.bytes = view_bytes(&to);
        call_begin(&call);
        struct device_command command = { .kind = DEVICE_COMMAND_COPY_WITHIN,
                                          .event_id = call.event.id,
                                          .scope = slot->scope,
                                          .target = to.rows,
                                          .source = from.rows };
        status = call_submit(&call, slot, &command, views, 2, err);
        call_end(&call, status, err);
    }
    call_unlock_stream(slot);
    return status;
}

enum status device_fill(struct device *device, struct device_stream stream,
                        const struct device_view *target, uint8_t byte, struct device_site site,
                        struct error *err)
{
    struct call call;
    struct stream_slot *slot;
    struct resolved resolved;
    call_init(&call, device, EVENT_FILL, site);
    TRY(call_lock_stream(&call, stream, "fill", &slot, err));
    enum status status = call_resolve(&call, target, 0, "fill", EVENT_WRITE, &resolved, err);
    if (!status) {
        call.event.bytes = view_bytes(&resolved);
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
    return status;
}

/* ---- Out ------------------------------------------------------------------------------------ */

/* Queues the copy and what the mode wants around it. */
static enum status queue_copy_out(struct call *call, struct stream_slot *stream,
                                  const struct device_rows *source, struct staging_slot *slot,
                                  struct error *err)
{
    struct device *device = call->device;
    const struct device_methods *methods = device->methods;
    struct device_command command = { .kind = DEVICE_COMMAND_COPY_OUT,
                                      .event_id = call->event.id,
                                      .scope = stream->scope,
                                      .source = *source,
                                      .staging = slot->memory };
    enum device_d2h_mode mode = device->options.d2h_mode;
    if (mode == DEVICE_D2H_SYNC)
        TRY(methods->stream_sync(device, stream->impl, err));
    TRY(methods->submit(device, stream->impl, &command, err));
    TRY(methods->mark_record(device, stream->impl, slot->mark, err));
    if (mode == DEVICE_D2H_SYNC)
        TRY(methods->stream_sync(device, stream->impl, err));
    if (mode == DEVICE_D2H_EVENT)
        TRY(methods->mark_sync(device, slot->mark, err));
    return STATUS_OK;
}

enum status device_copy_out(struct device *device, struct device_stream stream,
                            const struct device_view *source, struct device_site site,
                            struct device_ticket *ret_ticket, struct error *err)
{
    struct call call;
    struct stream_slot *slot;
    struct resolved resolved;
    struct staging_slot *staging = NULL;
    uint32_t in_use;
    uint64_t limit = device->options.staging_slot_bytes;
    call_init(&call, device, EVENT_COPY_OUT, site);
    TRY(call_lock_stream(&call, stream, "copy out", &slot, err));
    struct device_view asked = asked_view(device, "copy-out", source, slot);
    enum status status = call_refuse_capture(&call, slot, "copy out", err);
    if (!status)
        status = call_resolve(&call, &asked, 0, "copy out", EVENT_READ, &resolved, err);
    if (!status && view_bytes(&resolved) > limit)
        status = call_refuse(&call, EVENT_CHECK_BYTES, 0, limit, view_bytes(&resolved), err,
                             STATUS_REFUSED,
                             "copy out: expected at most the %" PRIu64
                             " bytes of a staging slot, found %" PRIu64 "; use device_read",
                             limit, view_bytes(&resolved));
    if (!status) {
        staging = staging_take(device, STAGING_LANDING, &in_use);
        if (!staging)
            status = refuse_staging(&call, in_use, err);
    }
    if (!status) {
        staging->bytes = view_bytes(&resolved);
        *ret_ticket = staging_ticket(device, staging);
        call.event.bytes = staging->bytes;
        call.event.host_address = (uint64_t)(uintptr_t)staging->memory;
        call.event.object = ret_ticket->index;
        call_begin(&call);
        staging->event_id = call.event.id;
        status = queue_copy_out(&call, slot, &resolved.rows, staging, err);
        if (status)
            staging_give_back(device, staging);
        call_end(&call, status, err);
    }
    call_unlock_stream(slot);
    return status;
}

static enum status refuse_ticket(struct call *call, struct device_ticket ticket, const char *what,
                                 struct error *err)
{
    return call_refuse(
        call, EVENT_CHECK_TICKET, EVENT_NO_OPERAND, ticket.generation, 0, err, STATUS_NOT_FOUND,
        "ticket %s: expected one that was not released, found ticket %" PRIu32 ".%" PRIu32, what,
        ticket.index, ticket.generation);
}

enum status device_ticket_redeem(struct device *device, struct device_ticket ticket,
                                 struct device_site site, const void **ret_bytes,
                                 uint64_t *ret_count, struct error *err)
{
    struct call call;
    call_init(&call, device, EVENT_TICKET_REDEEM, site);
    TRY(call_check_lost(&call, "copy out", err));
    struct staging_slot *slot = staging_find(device, ticket);
    if (!slot)
        return refuse_ticket(&call, ticket, "redeem", err);
    bool waits = device->options.d2h_mode != DEVICE_D2H_PLAIN;
    call.event.object = ticket.index;
    call.event.cause_id = slot->event_id;
    call.event.bytes = slot->bytes;
    call.event.host_address = (uint64_t)(uintptr_t)slot->memory;
    call_begin(&call);
    enum status status = STATUS_OK;
    if (waits)
        status = device->methods->mark_sync(device, slot->mark, err);
    device_tell_traps(device);
    if (!status && device_is_lost(device)) {
        call.event.cause_id = device->first_fault_id;
        status = error_set(err, STATUS_LOST,
                           "copy out failed: an illegal memory access was encountered (seen here; "
                           "first fault: %s)",
                           device->first_fault);
    }
    call.event.found = waits;
    if (!status) {
        staging_hold(device, slot); /* redeeming twice gives the same bytes */
        *ret_bytes = slot->memory;
        *ret_count = slot->bytes;
    }
    return call_end(&call, status, err);
}

enum status device_ticket_release(struct device *device, struct device_ticket ticket,
                                  struct device_site site, struct error *err)
{
    struct call call;
    struct error unused;
    call_init(&call, device, EVENT_TICKET_RELEASE, site);
    struct staging_slot *slot = staging_find(device, ticket);
    if (!slot)
        return refuse_ticket(&call, ticket, "release", err);
    call.event.object = ticket.index;
    call.event.cause_id = slot->event_id;
    call.event.bytes = slot->bytes;
    call.event.host_address = (uint64_t)(uintptr_t)slot->memory;
    call_begin(&call);
    /* Released unread: the queued copy still needs the slot. */
    if (slot->state == STAGING_LANDING && device->methods->mark_sync(device, slot->mark, &unused))
        call.event.code = (int32_t)unused.status;
    staging_give_back(device, slot);
    return call_end(&call, STATUS_OK, err);
}

/* ---- Dumps ---------------------------------------------------------------------------------- */

/* The view's bytes [at, at + bytes) as bytes; the view is dense. */
static struct device_view byte_view(const struct device_view *view, uint64_t at, uint64_t bytes)
{
    return (struct device_view){ .buffer = view->buffer,
                                 .dtype = DTYPE_I8,
                                 .shape = shape_make(1, &bytes),
                                 .offset_bytes = view->offset_bytes + at };
}

static enum status read_run(struct device *device, struct device_stream stream,
                            const struct device_view *source, uint64_t start, uint64_t bytes,
                            uint8_t *target, struct device_site site, struct error *err)
{
    uint64_t limit = device->options.staging_slot_bytes;
    for (uint64_t at = 0; at < bytes; at += limit) {
        uint64_t count = bytes - at < limit ? bytes - at : limit;
        struct device_view piece = byte_view(source, start + at, count);
        struct device_ticket ticket;
        const void *landed;
        TRY(device_copy_out(device, stream, &piece, site, &ticket, err));
        enum status status = device_ticket_redeem(device, ticket, site, &landed, &count, err);
        if (!status)
            memcpy(target + at, landed, (size_t)count);
        struct error second;
        enum status released = device_ticket_release(device, ticket, site, &second);
        if (!status && released) {
            *err = second;
            status = released;
        }
        TRY(status);
    }
    return STATUS_OK;
}

enum status device_read(struct device *device, struct device_stream stream,
                        const struct device_view *source, void *target, struct device_site site,
                        struct error *err)
{
    uint64_t row_bytes, row_count, bytes;
    if (!dtype_row_bytes(source->dtype, source->shape.dims[0], &row_bytes) ||
        !shape_row_count(&source->shape, &row_count) || !size_mul(row_bytes, row_count, &bytes))
        return error_set(err, STATUS_REFUSED, "read: expected whole blocks of %s within 2^64 bytes",
                         dtype_name(source->dtype));
    uint64_t stride = source->row_stride_bytes ? source->row_stride_bytes : row_bytes;
    if (stride == row_bytes)
        return read_run(device, stream, source, 0, bytes, target, site, err);
    for (uint64_t row = 0; row < row_count; row++)
        TRY(read_run(device, stream, source, row * stride, row_bytes,
                     (uint8_t *)target + row * row_bytes, site, err));
    return STATUS_OK;
}

/* transfer_out.c - the only way from device bytes to host bytes: tickets. */
#include "device/transfer.h"

#include "base/size.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

/* ---- Tickets -------------------------------------------------------------------------------- */

/* Queues the copy and what the mode wants around it. */
static enum status give_to_slot(struct call *call, struct stream_slot *stream,
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
    if (mode == DEVICE_D2H_SYNC) {
        TRY(methods->stream_sync(device, stream->impl, err));
        TRY(call_fail_if_lost(call, "copy out", err)); /* not the copy's doing */
    }
    slot->check = transfer_check_create(call, source);
    TRY(transfer_check_queue(call, stream, slot->check, TRANSFER_BEFORE, source, NULL, err));
    TRY(methods->submit(device, stream->impl, &command, err));
    TRY(transfer_check_queue(call, stream, slot->check, TRANSFER_AFTER, source, NULL, err));
    TRY(methods->mark_record(device, stream->impl, slot->mark, err));
    if (mode == DEVICE_D2H_SYNC)
        TRY(methods->stream_sync(device, stream->impl, err));
    if (mode == DEVICE_D2H_EVENT)
        TRY(methods->mark_sync(device, slot->mark, err));
    return call_settle(call, stream, err);
}

static enum status queue_copy_out(struct call *call, struct stream_slot *stream,
                                  const struct device_rows *source, struct staging_slot *slot,
                                  struct error *err)
{
    device_begin_alone(call->device);
    enum status status = give_to_slot(call, stream, source, slot, err);
    device_end_alone(call->device);
    return status;
}

static enum status give_copy_out(struct device *device, struct device_stream stream,
                                 const struct device_view *source, struct device_site site,
                                 struct device_ticket *ret_ticket, uint64_t *ret_event_id,
                                 struct error *err)
{
    struct call call;
    struct stream_slot *slot;
    struct resolved resolved;
    struct staging_slot *staging = NULL;
    uint32_t in_use;
    uint64_t limit = device->options.staging_slot_bytes;
    call_init(&call, device, EVENT_COPY_OUT, site);
    TRY(call_lock_stream(&call, stream, "copy out", &slot, err));
    enum status status = call_refuse_capture(&call, slot, "copy out", err);
    if (!status)
        status = call_resolve(&call, source, 0, "copy out", EVENT_READ, &resolved, err);
    if (!status && transfer_bytes(&resolved) > limit)
        status = call_refuse(&call, EVENT_CHECK_BYTES, 0, limit, transfer_bytes(&resolved), err,
                             STATUS_REFUSED,
                             "copy out: expected at most the %" PRIu64
                             " bytes of a staging slot, found %" PRIu64 "; use device_read",
                             limit, transfer_bytes(&resolved));
    if (!status)
        status = call_ask_before(&call, slot, "copy out", err);
    if (!status) {
        staging = staging_take(device, STAGING_LANDING, NULL, true, &in_use);
        if (!staging)
            status = transfer_refuse_staging(&call, in_use, err);
    }
    if (!status) {
        ASSERT(staging);
        staging->bytes = transfer_bytes(&resolved);
        *ret_ticket = staging_ticket(device, staging);
        call.event.copy.bytes = staging->bytes;
        call.event.copy.host_address = (uint64_t)(uintptr_t)staging->memory;
        call.event.copy.ticket = ret_ticket->index;
        call.event.copy.generation = (uint16_t)ret_ticket->generation;
        call_begin(&call);
        staging->event_id = call.event.id;
        status = queue_copy_out(&call, slot, &resolved.rows, staging, err);
        if (status)
            staging_give_back(device, staging);
        else
            call_ask_after(&call, slot);
        call_end(&call, status, err);
    }
    call_unlock_stream(slot);
    *ret_event_id = call.event.id;
    return status;
}

enum status device_copy_out(struct device *device, struct device_stream stream,
                            const struct device_view *source, struct device_site site,
                            struct device_ticket *ret_ticket, struct error *err)
{
    uint64_t event_id = 0;
    if (!device_is_tampered(device))
        return give_copy_out(device, stream, source, site, ret_ticket, &event_id, err);
    struct device_view changed = *source;
    struct device_tampered call = { .kind = EVENT_COPY_OUT, .stream = stream, .view = &changed };
    if (!tamper_before(device, &call))
        return STATUS_OK;
    enum status status = give_copy_out(device, call.stream, &changed, site, ret_ticket, &event_id,
                                       err);
    if (!status)
        call.ticket = *ret_ticket;
    tamper_after(device, &call, status, event_id);
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

/* The hash of what the host has of a copy out, once: as it is when it is read, or else given back.
 */
static void tell_landed(struct device *device, struct staging_slot *slot)
{
    struct transfer_check *check = slot->check;
    slot->check = NULL;
    if (!device_is_lost(device))
        transfer_check_host(device, check, TRANSFER_LANDED, slot->memory, slot->bytes);
}

enum status device_ticket_redeem(struct device *device, struct device_ticket ticket,
                                 struct device_site site, const void **ret_bytes,
                                 uint64_t *ret_count, struct error *err)
{
    struct call call;
    struct device_tampered asked = { .kind = EVENT_TICKET_REDEEM, .ticket = ticket };
    if (device_is_tampered(device))
        tamper_before(device, &asked); /* cannot be left out: the caller wants its bytes */
    call_init(&call, device, EVENT_TICKET_REDEEM, site);
    call.event.ticket.ticket = ticket.index;
    call.event.ticket.generation = (uint16_t)ticket.generation;
    struct staging_slot *slot = staging_find(device, ticket);
    if (!slot) {
        TRY(call_check_lost(&call, "copy out", err));
        return refuse_ticket(&call, ticket, "redeem", err);
    }
    /* The runtime is asked about a copy that was queued, also if the device was lost meanwhile: the
     * answer is the same whether the fault came before this call or during it. */
    call.what = "copy out";
    bool waits = device->options.d2h_mode != DEVICE_D2H_PLAIN;
    call.event.cause_id = slot->event_id;
    call.event.ticket.bytes = slot->bytes;
    call.event.ticket.host_address = (uint64_t)(uintptr_t)slot->memory;
    call_begin(&call);
    enum status status = STATUS_OK;
    if (waits)
        status = device->methods->mark_sync(device, slot->mark, err);
    device_tell_traps(device);
    if (!status)
        status = call_fail_if_lost(&call, "copy out", err);
    call.event.ticket.waited = waits;
    if (!status) {
        staging_hold(device, slot); /* redeeming twice gives the same bytes */
        if (device->options.hash_results && device_is_observed(device))
            call.event.ticket.hash = XXH3_64bits(slot->memory, (size_t)slot->bytes);
        tell_landed(device, slot);
        *ret_bytes = staging_show(device, slot);
        *ret_count = slot->bytes;
    }
    return call_end(&call, status, err);
}

void device_ticket_release(struct device *device, struct device_ticket ticket,
                           struct device_site site)
{
    struct call call;
    struct error err;
    enum status waited = STATUS_OK;
    struct device_tampered asked = { .kind = EVENT_TICKET_RELEASE, .ticket = ticket };
    if (device_is_tampered(device) && !tamper_before(device, &asked))
        return;
    call_init(&call, device, EVENT_TICKET_RELEASE, site);
    call.event.ticket.ticket = ticket.index;
    call.event.ticket.generation = (uint16_t)ticket.generation;
    struct staging_slot *slot = staging_find(device, ticket);
    if (!slot) {
        if (refuse_ticket(&call, ticket, "release", &err))
            device_keep_refusal(device, &err);
        return;
    }
    call.event.cause_id = slot->event_id;
    call.event.ticket.bytes = slot->bytes;
    call.event.ticket.host_address = (uint64_t)(uintptr_t)slot->memory;
    call_begin(&call);
    /* Released unread: the queued copy still needs the slot. */
    if (slot->state == STAGING_LANDING) {
        call.what = "copy out";
        waited = device->methods->mark_sync(device, slot->mark, &err);
        if (!waited)
            waited = call_fail_if_lost(&call, call.what, &err);
    }
    tell_landed(device, slot);
    staging_give_back(device, slot);
    call_end(&call, waited, &err); /* if the copy failed, its event says so */
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
        struct device_ticket ticket = { 0, 0 };
        const void *landed = NULL;
        TRY(device_copy_out(device, stream, &piece, site, &ticket, err));
        enum status status = device_ticket_redeem(device, ticket, site, &landed, &count, err);
        if (!status) {
            ASSERT(landed);
            memcpy(target + at, landed, (size_t)count);
        }
        device_ticket_release(device, ticket, site);
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

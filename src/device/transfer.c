/* transfer.c - copies and fills within the device, and the refusals that all transfers share. A
 * copy that fails a check is refused and reported: never shortened, never retried. */
#include "device/transfer.h"

#include <inttypes.h>

enum status transfer_refuse_staging(struct call *call, uint32_t in_use, struct error *err)
{
    TRY(call_check_lost(call, call->what, err)); /* then no slot was waited for */
    return call_refuse(call, EVENT_CHECK_STAGING, EVENT_NO_OPERAND,
                       call->device->options.staging_slot_count, in_use, err, STATUS_BUSY,
                       "staging: all %" PRIu32 " slots are held by tickets; release one first",
                       in_use);
}

enum status transfer_refuse_bytes(struct call *call, const char *what, uint64_t expected,
                                  uint64_t found, struct error *err)
{
    return call_refuse(call, EVENT_CHECK_BYTES, 0, expected, found, err, STATUS_REFUSED,
                       "%s: expected the %" PRIu64 " bytes of the view, found %" PRIu64, what,
                       expected, found);
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
        status = transfer_refuse_bytes(&call, "copy within", transfer_bytes(&to),
                                       transfer_bytes(&from), err);
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

/* transfer_check.c - evidence around a copy: the hashes of both its ends (options.verify), and the
 * stream's error state before and after it (options.ask_errors).
 *
 * The hashes of one transfer come from several places: the host takes some, the backend reports
 * others in stream order. They become one event when all are known. */
#include "device/device_core.h"

#include <stdlib.h>

struct transfer_check {
    struct transfer_check *next;
    struct event event; /* what is reported in the end */
    uint64_t digests[TRANSFER_PARTS];
    uint8_t known; /* bit 1 << part */
    bool failed;   /* some of the bytes could not be read */
};

/* ---- Hashes --------------------------------------------------------------------------------- */

struct transfer_check *transfer_check_create(const struct call *call,
                                             const struct device_rows *accessed)
{
    struct device *device = call->device;
    if (!device->options.verify || !device_is_observed(device))
        return NULL;
    struct transfer_check *check = calloc(1, sizeof(*check));
    if (!check)
        return NULL; /* this transfer is not verified, which its missing event shows */
    const struct event *copy = &call->event;
    check->event = (struct event){ .kind = EVENT_TRANSFER_HASH,
                                   .cause_id = copy->id,
                                   .transfer.bytes = accessed->row_bytes * accessed->row_count,
                                   .stream_index = copy->stream_index,
                                   .scope = copy->scope,
                                   .access_count = 1,
                                   .accesses = { copy->accesses[0] },
                                   .operand = EVENT_NO_OPERAND };
    event_set_text(check->event.op, sizeof(check->event.op), event_kind_name(copy->kind));
    pthread_mutex_lock(&device->inspect_lock);
    check->next = device->checks;
    device->checks = check;
    pthread_mutex_unlock(&device->inspect_lock);
    return check;
}

void transfer_check_drop_all(struct device *device)
{
    while (device->checks) {
        struct transfer_check *check = device->checks;
        device->checks = check->next;
        free(check);
    }
}

/* With inspect_lock held. */
static void unlink_check(struct device *device, struct transfer_check *check)
{
    struct transfer_check **at = &device->checks;
    while (*at != check)
        at = &(*at)->next;
    *at = check->next;
}

void transfer_check_set(struct device *device, struct transfer_check *check, uint8_t part,
                        uint64_t digest, bool failed)
{
    pthread_mutex_lock(&device->inspect_lock);
    check->digests[part] = digest;
    check->failed |= failed;
    check->known = (uint8_t)(check->known | 1u << part);
    bool complete = check->known == (1u << TRANSFER_PARTS) - 1;
    if (complete)
        unlink_check(device, check);
    pthread_mutex_unlock(&device->inspect_lock);
    if (!complete)
        return;
    check->event.transfer.source_before = check->digests[TRANSFER_BEFORE];
    check->event.transfer.source_after = check->digests[TRANSFER_AFTER];
    check->event.transfer.destination = check->digests[TRANSFER_LANDED];
    if (!check->failed)
        device_tell(device, &check->event);
    free(check);
}

enum status transfer_check_queue(struct call *call, struct stream_slot *stream,
                                 struct transfer_check *check, enum transfer_part part,
                                 const struct device_rows *rows, void *staging, struct error *err)
{
    if (!check)
        return STATUS_OK;
    struct device_command command = {
        .source = *rows,
        .staging = staging,
        .inspection = { .what = DEVICE_INSPECT_DIGEST,
                        .part = (uint8_t)part,
                        .check = check,
                        .access = call->event.accesses[0] },
    };
    return inspect_queue(call, stream, &command, err);
}

void transfer_check_host(struct device *device, struct transfer_check *check,
                         enum transfer_part part, const void *bytes, uint64_t count)
{
    if (check)
        transfer_check_set(device, check, (uint8_t)part, device_digest(bytes, count, 1, count),
                           false);
}

/* ---- The error state ------------------------------------------------------------------------ */

enum status call_ask_before(struct call *call, const struct stream_slot *stream, const char *what,
                            struct error *err)
{
    struct device *device = call->device;
    struct error pending;
    if (!device->options.ask_errors || !device_is_observed(device))
        return STATUS_OK;
    if (device->methods->stream_query(device, stream->impl, &pending) == STATUS_OK) {
        call->event.copy.state_before = EVENT_STATE_CLEAR;
        return STATUS_OK;
    }
    TRY(call_check_lost(call, what, err));
    /* An error other than an illegal access, from before this call. */
    call_set_code(call, &pending);
    return call_refuse(call, EVENT_CHECK_LOST, EVENT_NO_OPERAND, EVENT_STATE_ERROR, 0, err,
                       pending.status, "%s: an error was pending before it: %s", what,
                       pending.text);
}

void call_ask_after(struct call *call, const struct stream_slot *stream)
{
    struct device *device = call->device;
    struct error pending;
    if (!device->options.ask_errors || !device_is_observed(device))
        return;
    bool clear = device->methods->stream_query(device, stream->impl, &pending) == STATUS_OK;
    call->event.copy.state_after = clear ? EVENT_STATE_CLEAR : EVENT_STATE_ERROR;
}

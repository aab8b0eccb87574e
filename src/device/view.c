/* view.c - a view compared with its buffer: handle, lifetime, 64-bit footprint, alignment, and
 * whether it may be written. */
#include "device/device_core.h"

#include "base/size.h"

#include <inttypes.h>
#include <string.h>

/* What a plain load of one element needs; blocks are read bytewise or as halves. */
static uint64_t natural_alignment(enum dtype dtype)
{
    const struct dtype_info *info = dtype_info(dtype);
    if (info->block_elements == 1)
        return info->block_bytes;
    return info->block_bytes % 2 ? 1 : 2;
}

/* Rows and the span they cover; false where it does not fit 64 bits or rows are not whole blocks.
 */
static bool measure(const struct device_view *view, struct device_rows *rows, uint64_t *ret_span)
{
    if (!dtype_row_bytes(view->dtype, view->shape.dims[0], &rows->row_bytes) ||
        !shape_row_count(&view->shape, &rows->row_count))
        return false;
    rows->stride_bytes = view->row_stride_bytes ? view->row_stride_bytes : rows->row_bytes;
    *ret_span = 0;
    if (rows->row_count == 0 || rows->row_bytes == 0)
        return true;
    uint64_t before_last;
    return size_mul(rows->row_count - 1, rows->stride_bytes, &before_last) &&
           size_add(before_last, rows->row_bytes, ret_span);
}

static enum status refuse_dead(struct call *call, struct device_buffer buffer, uint32_t operand,
                               const char *operand_name, struct error *err)
{
    const struct device_slot_table *table = &call->device->buffers;
    uint32_t now = slot_generation(table, buffer.index);
    if (now == 0 || buffer.generation % 2 == 0)
        return call_refuse(
            call, EVENT_CHECK_HANDLE, operand, 0, buffer.index, err, STATUS_NOT_FOUND,
            "%s: expected a buffer, found handle %" PRIu32 ".%" PRIu32 ", which never was one",
            operand_name, buffer.index, buffer.generation);
    const struct buffer_slot *slot = slot_at(table, buffer.index);
    return call_refuse(call, EVENT_CHECK_GENERATION, operand, buffer.generation, now, err,
                       STATUS_NOT_FOUND,
                       "%s: expected a live buffer, found %s in its place: destroyed, then used "
                       "(generation %" PRIu32 ", now %" PRIu32 ")",
                       operand_name, now % 2 ? slot->name : "nothing", buffer.generation, now);
}

/* Adds the access to the event before it has been checked, so that a refusal names its buffer as
 * well. NULL if there is no room. */
static struct event_access *note_asked(struct call *call, const struct device_view *view,
                                       uint32_t operand, uint8_t mode)
{
    struct event *event = &call->event;
    if (event->access_count == EVENT_ACCESS_LIMIT)
        return NULL;
    struct event_access *access = &event->accesses[event->access_count++];
    *access = (struct event_access){ .buffer_index = view->buffer.index,
                                     .generation = (uint16_t)view->buffer.generation,
                                     .mode = mode,
                                     .operand = (uint8_t)operand };
    return access;
}

/* Holds what the runtime says of the view's address against what the ledger says. */
static enum status ask_pointer(struct call *call, uint32_t operand, const char *operand_name,
                               const struct resolved *view, struct error *err)
{
    struct device *device = call->device;
    struct device_pointer_facts facts = { .asked = false };
    if (!device->options.ask_pointers || !device_is_observed(device) || view->span_bytes == 0 ||
        device_is_lost(device))
        return STATUS_OK;
    device->methods->memory_ask(device, view->rows.address, view->span_bytes, &facts);
    if (!facts.asked || facts.bytes >= view->span_bytes)
        return STATUS_OK;
    return call_refuse(
        call, EVENT_CHECK_POINTER, operand, view->span_bytes, facts.bytes, err, STATUS_REFUSED,
        "%s: expected %" PRIu64 " bytes of %s at 0x%" PRIx64
        ", found that the runtime knows %" PRIu64 " there: %s",
        operand_name, view->span_bytes, view->name, view->rows.address, facts.bytes, facts.words);
}

static enum status check_view(struct call *call, const struct device_view *view, uint32_t operand,
                              const char *operand_name, uint8_t mode,
                              const struct buffer_slot *slot, struct resolved *ret,
                              struct error *err)
{
    char shape[SHAPE_TEXT_BYTES];
    ret->memory = slot->memory;
    memcpy(ret->name, slot->name, sizeof(ret->name));
    uint64_t end;
    if (!measure(view, &ret->rows, &ret->span_bytes) ||
        !size_add(view->offset_bytes, ret->span_bytes, &end))
        return call_refuse(call, EVENT_CHECK_VIEW_END, operand, slot->memory.bytes, UINT64_MAX, err,
                           STATUS_REFUSED,
                           "%s: expected whole blocks of %s within 2^64 bytes, found shape %s",
                           operand_name, dtype_name(view->dtype), shape_text(&view->shape, shape));
    if (ret->rows.stride_bytes < ret->rows.row_bytes)
        return call_refuse(call, EVENT_CHECK_STRIDE, operand, ret->rows.row_bytes,
                           ret->rows.stride_bytes, err, STATUS_REFUSED,
                           "%s: expected rows at least %" PRIu64 " bytes apart, found %" PRIu64,
                           operand_name, ret->rows.row_bytes, ret->rows.stride_bytes);
    uint64_t alignment = natural_alignment(view->dtype);
    if (view->offset_bytes % alignment || ret->rows.stride_bytes % alignment)
        return call_refuse(call, EVENT_CHECK_ALIGNMENT, operand, alignment, view->offset_bytes, err,
                           STATUS_REFUSED,
                           "%s: expected an offset and stride that are multiples of %" PRIu64
                           " for %s, found %" PRIu64 " and %" PRIu64,
                           operand_name, alignment, dtype_name(view->dtype), view->offset_bytes,
                           ret->rows.stride_bytes);
    if (end > slot->memory.bytes)
        return call_refuse(call, EVENT_CHECK_VIEW_END, operand, slot->memory.bytes, end, err,
                           STATUS_REFUSED,
                           "%s: expected a view within the %" PRIu64
                           " bytes of %s, found one that ends at byte %" PRIu64 " (offset %" PRIu64
                           ", shape %s of %s)",
                           operand_name, slot->memory.bytes, slot->name, end, view->offset_bytes,
                           shape_text(&view->shape, shape), dtype_name(view->dtype));
    if ((mode & EVENT_WRITE) && slot->memory.read_only)
        return call_refuse(call, EVENT_CHECK_READ_ONLY, operand, 0, 1, err, STATUS_REFUSED,
                           "%s: expected memory that may be written, found %s, which was imported "
                           "to be read",
                           operand_name, slot->name);
    ret->rows.address = slot->memory.address + view->offset_bytes;
    return ask_pointer(call, operand, operand_name, ret, err);
}

enum status call_resolve(struct call *call, const struct device_view *view, uint32_t operand,
                         const char *operand_name, uint8_t mode, struct resolved *ret,
                         struct error *err)
{
    struct device *device = call->device;
    ASSERT((unsigned)view->dtype < DTYPE_COUNT);
    struct event_access *access = note_asked(call, view, operand, mode);
    pthread_mutex_lock(&device->lock);
    const struct buffer_slot *found = slot_find(&device->buffers, view->buffer.index,
                                                view->buffer.generation);
    struct buffer_slot slot;
    enum status status = STATUS_OK;
    if (found)
        slot = *found;
    else
        status = refuse_dead(call, view->buffer, operand, operand_name, err);
    pthread_mutex_unlock(&device->lock);
    if (!status)
        status = check_view(call, view, operand, operand_name, mode, &slot, ret, err);
    if (!status && access) {
        access->address = ret->rows.address;
        access->bytes = ret->span_bytes;
    }
    return status;
}

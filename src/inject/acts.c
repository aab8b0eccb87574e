/* acts.c - what a caller with a bug does: made of public calls of the device, without the lock. */
#include "inject/inject_impl.h"

#include <stdlib.h>
#include <string.h>

/* What our own uploads hold: a large negative number as an index, a tiny one as a float. */
#define OWN_BYTE 0xA5

/* What our own calls fail with is not the caller's business. */
static bool went_well(enum status status)
{
    return status == STATUS_OK;
}

void inject_act_destroy(struct inject *inject, struct device_buffer buffer)
{
    device_buffer_destroy(inject->device, buffer, DEVICE_HERE);
}

void inject_act_release(struct inject *inject, struct device_ticket ticket)
{
    device_ticket_release(inject->device, ticket, DEVICE_HERE);
}

void inject_act_name(struct inject *inject, struct device_buffer buffer, char *name)
{
    pthread_mutex_lock(&inject->lock);
    bool known = buffer.index < INJECT_MEMORY_LIMIT;
    memcpy(name, known ? inject->names[buffer.index] : "", known ? EVENT_TENSOR_BYTES : 1);
    pthread_mutex_unlock(&inject->lock);
}

/* Another of the same size and name. Zero handle on failure. */
struct device_buffer inject_act_create_like(struct inject *inject, struct device_buffer buffer,
                                            uint64_t bytes)
{
    struct device_buffer made = { 0 };
    struct error unused;
    char name[EVENT_TENSOR_BYTES];
    inject_act_name(inject, buffer, name);
    went_well(device_buffer_create(inject->device, bytes, name, DEVICE_HERE, &made, &unused));
    return made;
}

static bool make_other_stream(struct inject *inject, const struct event_scope *scope)
{
    struct error unused;
    if (!inject->other.index &&
        !went_well(device_stream_create(inject->device, DEVICE_HERE, &inject->other, &unused)))
        return false;
    device_scope_set(inject->device, inject->other, scope);
    return true;
}

static void want_hold(struct inject *inject)
{
    pthread_mutex_lock(&inject->lock);
    inject->hold_wanted = true;
    pthread_mutex_unlock(&inject->lock);
}

/* The next call on this stream suffers. */
void inject_act_watch(struct inject *inject, struct device_stream stream)
{
    pthread_mutex_lock(&inject->lock);
    inject->victim_stream = stream.index;
    pthread_mutex_unlock(&inject->lock);
}

static void spoil_argument(struct inject *inject, struct device_launch *launch, int operand)
{
    struct device_view *view = &launch->operands[operand];
    uint64_t row_bytes = 0;
    switch (inject->spec.fault) {
    case INJECT_DTYPE_MISMATCH:
        view->dtype = view->dtype == DTYPE_I64 ? DTYPE_I8 : DTYPE_I64;
        break;
    case INJECT_WRONG_STRIDE:
        if (dtype_row_bytes(view->dtype, view->shape.dims[0], &row_bytes))
            view->row_stride_bytes = row_bytes / 2;
        break;
    case INJECT_SHAPE_MISMATCH:
        view->shape.dims[0]++;
        break;
    case INJECT_GRID_LIMIT:
        launch->tile_count = UINT64_MAX;
        break;
    case INJECT_MISALIGNED_VIEW:
        view->offset_bytes++;
        break;
    case INJECT_OFFSET_PAST_END:
        view->offset_bytes = device_buffer_bytes(inject->device, view->buffer);
        break;
    case INJECT_DEAD_HANDLE: /* of a buffer that was there for a moment */
        view->buffer = inject_act_create_like(inject, view->buffer,
                                              device_buffer_bytes(inject->device, view->buffer));
        inject_act_destroy(inject, view->buffer);
        break;
    default:
        break;
    }
}

/* The launch reads memory that was made for it and never written. */
static void swap_operand(struct inject *inject, struct device_view *view)
{
    uint64_t rows, row_bytes;
    if (!dtype_row_bytes(view->dtype, view->shape.dims[0], &row_bytes) ||
        !shape_row_count(&view->shape, &rows))
        return;
    uint64_t stride = view->row_stride_bytes ? view->row_stride_bytes : row_bytes;
    struct device_buffer fresh = inject_act_create_like(inject, view->buffer, rows * stride);
    if (!fresh.index)
        return;
    view->buffer = fresh;
    view->offset_bytes = 0;
}

bool inject_act_launch(struct inject *inject, struct device_tampered *call, int operand)
{
    struct device_view *view = &call->launch->operands[operand];
    switch (inject->spec.fault) {
    case INJECT_EARLY_FREE:
        inject_act_destroy(inject, view->buffer);
        return true;
    case INJECT_FREE_WHILE_QUEUED:
        want_hold(inject);
        return true;
    case INJECT_TWO_STREAMS:
        if (make_other_stream(inject, &call->scope)) {
            inject_act_watch(inject, call->stream);
            call->stream = inject->other;
        }
        return true;
    case INJECT_UNINITIALISED_READ:
        swap_operand(inject, view);
        return true;
    case INJECT_SKIPPED_LAUNCH:
        return false;
    default:
        spoil_argument(inject, call->launch, operand);
        return true;
    }
}

bool inject_act_copy(struct inject *inject, struct device_tampered *call)
{
    struct error unused;
    uint64_t block = dtype_info(call->view->dtype)->block_elements;
    uint64_t *width = &call->view->shape.dims[0];
    switch (inject->spec.fault) {
    case INJECT_VIEW_PAST_END: /* as a wrong count would: the buffer's bytes, not this view's */
        *width += device_buffer_bytes(inject->device, call->view->buffer) + block;
        *width -= *width % block;
        break;
    case INJECT_SIZE_BEYOND_VIEW:
        *call->byte_count += 64;
        break;
    case INJECT_OVERLAPPING_D2H:
    case INJECT_OVERLAPPING_COPIES:
        /* What came before is waited for properly; the two copies are not ordered. */
        if (make_other_stream(inject, &call->scope) &&
            (inject->mark.index ||
             went_well(device_mark_create(inject->device, &inject->mark, &unused))) &&
            went_well(device_mark_record(inject->device, call->stream, inject->mark, DEVICE_HERE,
                                         &unused)))
            want_hold(inject);
        break;
    case INJECT_SLOT_REWRITTEN:
        want_hold(inject);
        break;
    default:
        break;
    }
    return true;
}

void inject_act_lose_mark(struct inject *inject)
{
    pthread_mutex_lock(&inject->lock);
    inject->lose_wanted = true;
    pthread_mutex_unlock(&inject->lock);
}

/* ---- After the call ------------------------------------------------------------------------- */

static void want_slot_again(struct inject *inject, bool again)
{
    pthread_mutex_lock(&inject->lock);
    inject->slots_again = again;
    pthread_mutex_unlock(&inject->lock);
}

/* Fills the slot of the copy that waits once more, for another upload. */
void inject_act_rewrite_slot(struct inject *inject, const struct device_tampered *call)
{
    struct error unused;
    uint64_t bytes = *call->byte_count, most = inject->device->options.staging_slot_bytes;
    if (bytes > most)
        bytes = most;
    struct device_view own = { .dtype = DTYPE_I8, .shape = shape_make(1, &bytes) };
    void *upload = bytes ? malloc((size_t)bytes) : NULL;
    if (upload && went_well(device_buffer_create(inject->device, bytes, "other_upload", DEVICE_HERE,
                                                 &own.buffer, &unused))) {
        memset(upload, OWN_BYTE, (size_t)bytes);
        want_slot_again(inject, true);
        went_well(device_copy_in(inject->device, call->stream, &own, upload, bytes, DEVICE_HERE,
                                 &unused));
        want_slot_again(inject, false);
    }
    free(upload);
}

/* A second copy on our own stream while the caller's waits: out into the same slot, or in over the
 * same bytes. */
void inject_act_overlap(struct inject *inject, const struct device_tampered *call)
{
    struct error unused;
    struct device *device = inject->device;
    const struct device_view *view = call->view;
    uint64_t rows = 0, row_bytes = 0;
    if (!went_well(device_mark_wait(device, inject->other, inject->mark, DEVICE_HERE, &unused)) ||
        !dtype_row_bytes(view->dtype, view->shape.dims[0], &row_bytes) ||
        !shape_row_count(&view->shape, &rows) || rows * row_bytes == 0)
        return;
    if (inject->spec.fault == INJECT_OVERLAPPING_D2H) {
        struct device_ticket same;
        want_slot_again(inject, true);
        went_well(device_copy_out(device, inject->other, view, DEVICE_HERE, &same, &unused));
        want_slot_again(inject, false);
    } else {
        void *upload = malloc((size_t)(rows * row_bytes));
        if (upload) {
            memset(upload, OWN_BYTE, (size_t)(rows * row_bytes));
            went_well(device_copy_in(device, inject->other, view, upload, rows * row_bytes,
                                     DEVICE_HERE, &unused));
        }
        free(upload);
    }
    /* So that the caller's copy runs last, every time. */
    went_well(device_stream_sync(device, inject->other, DEVICE_HERE, &unused));
}

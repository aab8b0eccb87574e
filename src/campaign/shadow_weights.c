/* shadow_weights.c - see shadow_weights.h. */
#include "campaign/shadow_weights.h"

#include "base/array.h"

#include <stdlib.h>

enum status shadow_weights_add(void *context, const char *name, const struct device_view *view,
                               struct error *err)
{
    struct shadow_weights *weights = context;
    const struct gguf_tensor *tensor = gguf_tensor_find(weights->file, name);
    ASSERT(tensor);
    struct shadow_weight *entries = array_reserve(weights->entries, weights->count,
                                                  &weights->capacity, sizeof(*entries));
    if (!entries)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the list of weights");
    weights->entries = entries;
    struct shadow_weight weight = { .device = *view, .host = *view };
    weight.host.dtype = tensor->dtype;
    weight.host.offset_bytes = 0;
    weight.host.row_stride_bytes = 0;
    TRY(device_buffer_import(weights->host, tensor->data, tensor->bytes, name, DEVICE_HERE,
                             &weight.host.buffer, err));
    weights->entries[weights->count++] = weight;
    return STATUS_OK;
}

bool shadow_weights_find(const struct shadow_weights *weights, const struct device_view *view,
                         struct device_view *ret_host)
{
    for (size_t i = 0; i < weights->count; i++) {
        const struct device_view *known = &weights->entries[i].device;
        const struct device_view *host = &weights->entries[i].host;
        uint64_t row_bytes = 0, host_row_bytes = 0;
        if (known->buffer.index != view->buffer.index ||
            known->buffer.generation != view->buffer.generation ||
            known->shape.dims[0] != view->shape.dims[0] ||
            view->offset_bytes < known->offset_bytes ||
            !dtype_row_bytes(known->dtype, known->shape.dims[0], &row_bytes) ||
            !dtype_row_bytes(host->dtype, host->shape.dims[0], &host_row_bytes) || !row_bytes)
            continue;
        *ret_host = *host;
        ret_host->shape = view->shape;
        ret_host->offset_bytes += (view->offset_bytes - known->offset_bytes) / row_bytes *
                                  host_row_bytes;
        return true;
    }
    return false;
}

void shadow_weights_release(struct shadow_weights *weights)
{
    free(weights->entries);
    weights->entries = NULL;
}

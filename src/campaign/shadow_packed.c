/* shadow_packed.c - see shadow_packed.h. */
#include "campaign/shadow_packed.h"

#include <stdlib.h>

/* SHADOW_PACKED_LIMIT: there is none of that buffer. */
static size_t place_of(const struct shadow_packed *all, uint32_t buffer_index)
{
    size_t place = 0;
    while (place < SHADOW_PACKED_LIMIT && all->rows[place].buffer_index != buffer_index)
        place++;
    return place;
}

const struct packed_rows *shadow_packed_find(const struct shadow_packed *all,
                                             const struct device_view *packed)
{
    size_t place = place_of(all, packed->buffer.index);
    return place < SHADOW_PACKED_LIMIT ? &all->rows[place] : NULL;
}

enum status shadow_packed_remember(struct shadow_packed *all, struct device *device,
                                   struct device_stream stream, enum ops_op op,
                                   const struct device_launch *launch, struct error *err)
{
    uint8_t plain, packed;
    if (!ops_packing_operands(op, &plain, &packed) || !launch->operands[packed].buffer.index)
        return STATUS_OK;
    size_t place = place_of(all, launch->operands[packed].buffer.index);
    if (place == SHADOW_PACKED_LIMIT)
        place = place_of(all, 0); /* a free one */
    uint64_t bytes;
    const struct device_view *from = &launch->operands[plain];
    if (place == SHADOW_PACKED_LIMIT || !shape_bytes(&from->shape, from->dtype, &bytes))
        return STATUS_OK; /* the matmul that reads them is counted as not compared */
    float *values = malloc((size_t)bytes);
    if (!values)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the rows of a matmul");
    struct packed_rows *rows = &all->rows[place];
    free(rows->values);
    *rows = (struct packed_rows){ launch->operands[packed].buffer.index, from->shape, values, op };
    return device_read(device, stream, from, values, DEVICE_HERE, err);
}

void shadow_packed_release(struct shadow_packed *all)
{
    for (size_t i = 0; i < SHADOW_PACKED_LIMIT; i++)
        free(all->rows[i].values);
}

/* rows.c - embed and gather_rows: rows picked by indices from memory.
 *
 * Nothing is computed but the exact decoding of a table row, so all paths share these. The output
 * row of a bad index is left as it is. */
#include "ops/host/kernels.h"

#include "ops/host/rows.h"
#include "tensor/quant.h"

#include <string.h>

void host_embed_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct device_host_operand *table = &call->operands[0]; /* [width, vocab] */
    const struct device_host_operand *ids = &call->operands[1];   /* [tokens] */
    const struct device_host_operand *out = &call->operands[2];   /* [width, tokens] */
    struct row_range tokens = tile_tokens(tile, out);
    for (uint64_t t = tokens.first; t < tokens.end; t++) {
        uint64_t id = list_index(ids, t);
        if (device_index_ok(call, 1, id, table->shape.dims[1]))
            quant_decode_row(table->dtype, row_bytes(table, id), table->shape.dims[0],
                             row_f32(out, t));
    }
}

void host_gather_rows_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct device_host_operand *x = &call->operands[0];    /* [width, tokens] */
    const struct device_host_operand *rows = &call->operands[1]; /* [count] */
    const struct device_host_operand *out = &call->operands[2];  /* [width, count] */
    struct row_range range = tile_tokens(tile, out);
    for (uint64_t r = range.first; r < range.end; r++) {
        uint64_t row = list_index(rows, r);
        if (device_index_ok(call, 1, row, x->shape.dims[1]))
            memcpy(row_bytes(out, r), row_bytes(x, row), out->shape.dims[0] * sizeof(float));
    }
}

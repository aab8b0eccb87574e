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
    const struct device_host_operand *table = &call->operands[EMBED_TABLE]; /* [width, vocab] */
    const struct device_host_operand *ids = &call->operands[EMBED_IDS];     /* [tokens] */
    const struct device_host_operand *out = &call->operands[EMBED_OUT];     /* [width, tokens] */
    struct row_range tokens = tile_tokens(tile, out);
    for (uint64_t t = tokens.first; t < tokens.end; t++) {
        uint64_t id = list_index(ids, t);
        if (device_index_ok(call, EMBED_IDS, id, table->shape.dims[1]))
            quant_decode_row(table->dtype, row_bytes(table, id), table->shape.dims[0],
                             row_f32(out, t));
    }
}

void host_gather_rows_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct device_host_operand *x = &call->operands[GATHER_ROWS_X]; /* [width, tokens] */
    const struct device_host_operand *rows = &call->operands[GATHER_ROWS_ROWS]; /* [count] */
    const struct device_host_operand *out = &call->operands[GATHER_ROWS_OUT];   /* [width, count] */
    struct row_range range = tile_tokens(tile, out);
    for (uint64_t r = range.first; r < range.end; r++) {
        uint64_t row = list_index(rows, r);
        if (device_index_ok(call, GATHER_ROWS_ROWS, row, x->shape.dims[1]))
            memcpy(row_bytes(out, r), row_bytes(x, row), out->shape.dims[0] * sizeof(float));
    }
}

/* rows.c - embed and gather_rows: rows picked by indices from memory. The output row of a bad index
 * is left as it is. A block does a part of one row: x counts the parts, y the rows. */
#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/kernels/kernel_call.h"

/* True if an index from the operand `list` is below the bound, for all threads of the block alike.
 * If it is not, one thread leaves the trap. */
INLINE bool row_ok(const struct gpu_call *call, uint32_t list, uint64_t index, uint64_t bound)
{
    if (index < bound)
        return true;
    if (thread_index() == 0 && block_x() == 0)
        index_ok(call, list, index, bound);
    return false;
}

KERNEL(embed)
{
    ENTER(call);
    const struct gpu_operand *table = &call.operands[EMBED_TABLE]; /* [width, vocab] */
    uint64_t token = block_y();
    uint64_t id = list_index(&call.operands[EMBED_IDS], token);
    if (!row_ok(&call, EMBED_IDS, id, table->rows))
        return;
    GLOBAL float *out = row_f32(&call.operands[EMBED_OUT], token); /* [width, tokens] */
    uint32_t i = block_x() * thread_count() + thread_index();
    if (i < table->width)
        out[i] = decode_value(table->dtype, row_at(table, id), i);
}

KERNEL(gather_rows)
{
    ENTER(call);
    const struct gpu_operand *x = &call.operands[GATHER_ROWS_X]; /* [width, tokens] */
    uint64_t row = list_index(&call.operands[GATHER_ROWS_ROWS], block_y());
    if (!row_ok(&call, GATHER_ROWS_ROWS, row, x->rows))
        return;
    uint32_t i = block_x() * thread_count() + thread_index();
    if (i < x->width)
        row_f32(&call.operands[GATHER_ROWS_OUT], block_y())[i] = row_f32(x, row)[i];
}

/* rows.c - embed and gather_rows: rows picked by indices from memory. The output row of a bad index
 * is left as it is. A block does a part of one row: x counts the parts, y the rows. */
#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/kernels/kernel_call.h"

/* Whether an index from the list is below the bound, the same for all threads of the block. If not,
 * one thread leaves the trap. */
INLINE bool row_ok(const struct gpu_call *call, uint64_t index, uint64_t bound)
{
    if (index < bound)
        return true;
    if (thread_index() == 0 && block_x() == 0)
        index_ok(call, 1, index, bound);
    return false;
}

KERNEL(embed)
{
    ENTER(call);
    const struct gpu_operand *table = &call.operands[0]; /* [width, vocab] */
    uint64_t token = block_y();
    uint64_t id = list_index(&call.operands[1], token);
    if (!row_ok(&call, id, table->rows))
        return;
    GLOBAL float *out = row_f32(&call.operands[2], token); /* [width, tokens] */
    uint32_t i = block_x() * thread_count() + thread_index();
    if (i < table->width)
        out[i] = decode_value(table->dtype, row_at(table, id), i);
}

KERNEL(gather_rows)
{
    ENTER(call);
    const struct gpu_operand *x = &call.operands[0]; /* [width, tokens] */
    uint64_t row = list_index(&call.operands[1], block_y());
    if (!row_ok(&call, row, x->rows))
        return;
    uint32_t i = block_x() * thread_count() + thread_index();
    if (i < x->width)
        row_f32(&call.operands[2], block_y())[i] = row_f32(x, row)[i];
}

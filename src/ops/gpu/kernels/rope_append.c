/* rope_append.c - rope of queries and keys and kv_append of several tokens as one kernel, for a
 * cache of F16 and heads that are rotated whole: what joined launches of a graph become. Tokens do
 * not wait for each other: each stores its own rows.
 *
 * A thread has a pair of a query, of a key, or of a value; x counts them in that order, y tokens.
 *
 * Operands: x, positions, table, also of rope; v, slots, keys, values of kv_append. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/rotate.h"
#include "ops/params.h"

INLINE void append_half(const struct gpu_operand *cache, uint64_t slot, uint32_t at, float value)
{
    ((GLOBAL uint16_t *)row_at(cache, slot))[at] = f16_bits(value);
}

KERNEL(rope_append)
{
    ENTER(call);
    const struct params_rope *params = (const void *)call.params;
    const struct gpu_operand *x = &call.operands[ROPE_APPEND_X],
                             *table = &call.operands[ROPE_APPEND_TABLE],
                             *also = &call.operands[ROPE_APPEND_ALSO],
                             *keys = &call.operands[ROPE_APPEND_KEYS];
    uint64_t position = list_index(&call.operands[ROPE_APPEND_POSITIONS], block_y());
    uint64_t slot = list_index(&call.operands[ROPE_APPEND_SLOTS], block_y());
    bool turns = position < table->rows, stores = slot < keys->rows;
    if (thread_index() == 0 && block_x() == 0) {
        if (!turns)
            index_ok(&call, ROPE_POSITIONS, position, table->rows);
        if (!stores)
            index_of_ok(&call, call.more_trap_ids[0], KV_APPEND_SLOTS, slot, keys->rows);
    }
    const GLOBAL float *angles = row_f32(table, turns ? position : 0);
    uint32_t x_pairs = (uint32_t)x->width / 2, key_pairs = (uint32_t)also->width / 2;
    uint32_t pair = block_x() * thread_count() + thread_index();
    if (pair >= x_pairs + key_pairs) { /* of a value */
        uint32_t at = 2 * (pair - x_pairs - key_pairs);
        if (at >= also->width || !stores)
            return;
        append_half(&call.operands[ROPE_APPEND_VALUES], slot, at,
                    row_f32(&call.operands[ROPE_APPEND_V], block_y())[at]);
        append_half(&call.operands[ROPE_APPEND_VALUES], slot, at + 1,
                    row_f32(&call.operands[ROPE_APPEND_V], block_y())[at + 1]);
        return;
    }
    bool is_key = pair >= x_pairs;
    GLOBAL float *row = row_f32(is_key ? also : x, block_y());
    uint32_t pairs = params->head_dim / 2, k;
    pair -= is_key ? x_pairs : 0;
    k = pair % pairs;
    uint32_t at = pair / pairs * params->head_dim + (params->adjacent ? 2 * k : k);
    uint32_t other = at + (params->adjacent ? 1 : pairs);
    float x0 = row[at], x1 = row[other];
    if (turns) {
        rotate(&x0, &x1, angles[k], angles[pairs + k]);
        row[at] = x0;
        row[other] = x1;
    }
    if (is_key && stores) {
        append_half(keys, slot, at, x0);
        append_half(keys, slot, other, x1);
    }
}

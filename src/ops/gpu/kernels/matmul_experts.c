/* matmul_experts.c - products of the experts that slots chose, each slot on its own: a row of
 * blocks for a slot, which reads no other expert. The slot of a bad id is left as it is.
 *
 * Types whose blocks lie at multiples of 16 bytes are streamed as in matmul.c, all others decoded
 * value by value. Which expert it is, an earlier kernel decides: so nothing can be asked for before
 * that one has ended. Operands: those of matmul_experts. Arguments: struct matmul_experts_args. */
#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/matmul_walk.h"
#include "ops/gpu/packing.h"

_Static_assert((int)MATMUL_EXPERTS_PACKED == (int)MATMUL_GROUP_PACKED,
               "matmul_walk.h reads packed rows there");

/* What a block works on: operands of one expert and one row of the output. */
struct slot_work {
    struct gpu_operand weights, bias, out;
    uint32_t input; /* packed row */
    uint32_t block; /* of the slot's blocks */
};

/* False, after one thread left the trap, where the slot's id is bad; for all threads alike. */
INLINE bool enter_slot(const struct gpu_call *call, struct slot_work *work)
{
    const struct gpu_operand *out = &call->operands[MATMUL_EXPERTS_OUT],
                             *bias = &call->operands[MATMUL_EXPERTS_BIAS];
    uint32_t slot = block_x() / matmul_experts_args_of(call)->blocks;
    work->block = block_x() - slot * matmul_experts_args_of(call)->blocks;
    work->weights = call->operands[MATMUL_EXPERTS_WEIGHTS];
    uint32_t rows = (uint32_t)out->width, experts = (uint32_t)(work->weights.rows / rows);
    uint64_t expert = list_index(&call->operands[MATMUL_EXPERTS_IDS], slot);
    if (expert >= experts) {
        if (thread_index() == 0 && work->block == 0)
            index_ok(call, MATMUL_EXPERTS_IDS, expert, experts);
        return false;
    }
    work->weights.address += expert * rows * work->weights.row_stride_bytes;
    work->weights.rows = rows;
    work->bias = *bias;
    if (bias->address)
        work->bias.address += expert * bias->row_stride_bytes;
    /* Whatever row of the output is asked for is the slot's: the input's number is not its own. */
    work->out = *out;
    work->out.address = (uint64_t)row_at(out, slot);
    work->out.row_stride_bytes = 0;
    work->input = slot / (uint32_t)(out->rows / call->operands[MATMUL_EXPERTS_PACKED].rows);
    return true;
}

/* ---- Streamed ------------------------------------------------------------------------------- */

INLINE void multiply_slot(const struct gpu_call *call, bool quants)
{
    const struct matmul_experts_args *args = matmul_experts_args_of(call);
    uint32_t warps = thread_count() / WARP;
    bool waited = true;
    struct slot_work work;
    if (!enter_slot(call, &work))
        return;
    struct way way = { .weights = &work.weights,
                       .bias = &work.bias,
                       .out = &work.out,
                       .group = work.block * warps + warp_index(),
                       .step = args->blocks * warps,
                       .count = ((uint32_t)work.weights.rows + ROWS - 1) / ROWS,
                       .first_token = work.input,
                       .token_count = 1,
                       .ring = shared_memory() + warp_index() * args->ring_bytes };
    if (way.group < way.count)
        walk_part(call, &way, quants, 1, &waited);
}

KERNEL(matmul_experts_quants)
{
    ENTER(call);
    multiply_slot(&call, true);
}

KERNEL(matmul_experts_floats)
{
    ENTER(call);
    multiply_slot(&call, false);
}

/* ---- Decoded -------------------------------------------------------------------------------- */

/* Value i of a packed row of k. */
INLINE float expert_input(uint32_t format, const GLOBAL uint8_t *row, uint64_t k, uint64_t i)
{
    if (format == PACK_F32)
        return ((const GLOBAL float *)row)[i];
    const GLOBAL float *pairs = (const GLOBAL float *)(row + k);
    return pairs[i / 32 * 2] * (float)(int8_t)row[i];
}

KERNEL(matmul_experts_decoded)
{
    ENTER(call);
    uint64_t k = call.operands[MATMUL_EXPERTS_WEIGHTS].width;
    uint32_t format = matmul_experts_args_of(&call)->format;
    struct slot_work work;
    if (!enter_slot(&call, &work))
        return;
    uint32_t row = work.block * (thread_count() / WARP) + warp_index();
    if (row >= work.weights.rows)
        return;
    const GLOBAL uint8_t *input = row_at(&call.operands[MATMUL_EXPERTS_PACKED], work.input);
    float sum = 0;
    for (uint64_t i = lane_index(); i < k; i += WARP)
        sum = __builtin_fmaf(decode_value(work.weights.dtype, row_at(&work.weights, row), i),
                             expert_input(format, input, k, i), sum);
    sum = warp_sum(sum, WARP);
    if (lane_index() == 0)
        store_product(&work.bias, &work.out, 0, row, sum);
}

/* matmul.c - products of weights with few rows of activations, for the types whose blocks lie at
 * multiples of 16 bytes: each weight is read once.
 *
 * A warp takes MATMUL_ROWS rows of weights at a time and streams them through a ring of its own in
 * shared memory, 16 bytes a lane: what is on its way takes no registers, and enough of it fills the
 * memory's pipe. From there each lane takes units of neighbouring weights. Activations stay in the
 * processor's cache.
 *
 * Order of a sum: a lane adds its units in increasing order, then the lanes are added by halves. It
 * depends on the type and k alone. The first weights are asked for before the kernel that makes the
 * activations has ended: weights do not change.
 *
 * Operands: those of matmul_group. Arguments: struct matmul_args. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/matmul_unit.h"
#include "ops/gpu/kernels/matmul_walk.h"
#include "ops/gpu/packing.h"

/* quants: packed as PACK_QUANTS, else as PACK_F32. */
INLINE void multiply(const struct gpu_call *call, bool quants, uint32_t tokens)
{
    uint32_t warps = thread_count() / WARP, step = block_count_x() * warps;
    uint32_t mine = block_x() * warps + warp_index();
    uint32_t first_token = block_y() * tokens;
    uint32_t left = (uint32_t)call->operands[MATMUL_GROUP_PACKED].rows - first_token;
    bool waited = false;
    early_allow();
    for (uint32_t part = 0; part < 3; part++) {
        const struct gpu_operand *weights = &call->operands[MATMUL_GROUP_WEIGHTS + part];
        if (!weights->address)
            continue;
        struct way way = { .weights = weights,
                           .bias = &call->operands[MATMUL_GROUP_BIASES + part],
                           .out = &call->operands[MATMUL_GROUP_OUTS + part],
                           .group = mine,
                           .step = step,
                           .count = ((uint32_t)weights->rows + ROWS - 1) / ROWS,
                           .first_token = first_token,
                           .token_count = left < tokens ? left : tokens,
                           .ring = shared_memory() +
                                   warp_index() * matmul_args_of(call)->ring_bytes };
        if (mine < way.count)
            walk_part(call, &way, quants, tokens, &waited);
        /* The next part goes on with the warp that would be next. */
        mine = (mine + step - way.count % step) % step;
    }
    if (!waited) {
        early_wait();
        leave_crumbs(call);
    }
}

KERNEL(matmul_quants_1)
{
    multiply(&call, true, 1);
}
KERNEL(matmul_quants_2)
{
    multiply(&call, true, 2);
}
KERNEL(matmul_quants_4)
{
    multiply(&call, true, 4);
}
KERNEL(matmul_quants_8)
{
    multiply(&call, true, 8);
}
KERNEL(matmul_floats_1)
{
    multiply(&call, false, 1);
}
KERNEL(matmul_floats_2)
{
    multiply(&call, false, 2);
}
KERNEL(matmul_floats_4)
{
    multiply(&call, false, 4);
}
KERNEL(matmul_floats_8)
{
    multiply(&call, false, 8);
}

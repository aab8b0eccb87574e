/* part_blocks.h - which part of a matmul_group a block does: a group has up to three matmuls.
 */
#ifndef GRETA_OPS_GPU_KERNELS_PART_BLOCKS_H
#define GRETA_OPS_GPU_KERNELS_PART_BLOCKS_H

#include "ops/gpu/kernels/portable.h"

/* Blocks that do all parts, or some of them. */
struct part_blocks {
    uint32_t part_bits;
    uint32_t index, count; /* of the block, of all of them */
};

/* All blocks do all parts, which have one type. */
INLINE struct part_blocks part_blocks_all(void)
{
    return (struct part_blocks){ 7, block_x(), block_count_x() };
}

/* Each part has blocks of its own. second, third: the first of these parts' blocks. */
INLINE struct part_blocks part_blocks_own(const struct gpu_call *call, uint32_t second,
                                          uint32_t third, uint32_t *ret_dtype)
{
    uint32_t block = block_x(), part = block < second ? 0 : block < third ? 1 : 2;
    uint32_t first = part == 0 ? 0 : part == 1 ? second : third;
    uint32_t end = part == 0 ? second : part == 1 ? third : block_count_x();
    *ret_dtype = part == 0   ? call->operands[MATMUL_GROUP_WEIGHTS].dtype
                 : part == 1 ? call->operands[MATMUL_GROUP_WEIGHTS + 1].dtype
                             : call->operands[MATMUL_GROUP_WEIGHTS + 2].dtype;
    return (struct part_blocks){ 1u << part, block - first, end - first };
}

/* Groups of `rows` rows of each part that is done: all of them together. *ret_k: columns, the same
 * of every part. */
INLINE uint32_t part_count_groups(const struct gpu_call *call, uint32_t part_bits, uint32_t rows,
                                  uint32_t counts[3], uint32_t *ret_k)
{
    uint32_t count = 0, k = 0;
    UNROLL
    for (uint32_t part = 0; part < 3; part++) {
        const struct gpu_operand *weights = &call->operands[MATMUL_GROUP_WEIGHTS + part];
        bool done = weights->address && (part_bits >> part & 1);
        counts[part] = done ? ((uint32_t)weights->rows + rows - 1) / rows : 0;
        count += counts[part];
        k |= (uint32_t)weights->width; /* some may be absent */
    }
    *ret_k = k;
    return count;
}

/* The part a group of rows is in, and the groups before it. counts: groups of each part. */
INLINE uint32_t part_of_group(const uint32_t counts[3], uint32_t group, uint32_t *ret_before)
{
    uint32_t two = counts[0] + counts[1];
    *ret_before = group < counts[0] ? 0 : group < two ? counts[0] : two;
    return group < counts[0] ? 0 : group < two ? 1 : 2;
}

#endif

/* repack.c - stores weights of Q8_0 and Q6_K again, with blocks at multiples of 16 bytes:
 * eight blocks become one, their quants side by side, then their scales (tensor/dtype.h). A
 * thread for each two bytes of a row: x counts them, y the rows. */
#include "ops/gpu/kernels/kernel_call.h"
#include "tensor/dtype.h"

/* Where the two bytes at `at` of eight Q8_0 blocks laid side by side come from. */
INLINE uint32_t source_q8_0(uint32_t at)
{
    return at < 256 ? at / 32 * 34 + 2 + at % 32 : (at - 256) / 2 * 34;
}

INLINE uint32_t source_q6_k(uint32_t at)
{
    if (at < 1024)
        return at / 128 * 210 + at % 128;
    if (at < 1536)
        return (at - 1024) / 64 * 210 + 128 + at % 64;
    if (at < 1664)
        return (at - 1536) / 16 * 210 + 192 + at % 16;
    return (at - 1664) / 2 * 210 + 208;
}

KERNEL(repack)
{
    ENTER_ALONE(call);
    const struct gpu_operand *source = &call.operands[REPACK_SOURCE],
                             *target = &call.operands[REPACK_TARGET];
    bool is_q8_0 = target->dtype == DTYPE_Q8_0_X8;
    uint32_t block_bytes = is_q8_0 ? 272 : 1680;
    uint64_t at = 2 * ((uint64_t)block_x() * thread_count() + thread_index());
    if (at >= target->row_stride_bytes)
        return;
    uint64_t block = at / block_bytes * block_bytes;
    uint32_t within = (uint32_t)(at - block);
    for (uint64_t row = block_y(); row < target->rows; row += repack_args_of(&call)->row_step)
        *(GLOBAL uint16_t *)(row_at(target, row) + at) = *(
            const GLOBAL uint16_t *)(row_at(source, row) + block +
                                     (is_q8_0 ? source_q8_0(within) : source_q6_k(within)));
    fence_device();
}

/* matmul_decoded.c - products of weights of any type, value by value: a warp for each row; for
 * types and sizes that need not be fast. Operands: those of matmul_group.
 * Arguments: struct matmul_decoded_args. */
#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/packing.h"
#include "ops/gpu/tiling.h"

/* Value i of a packed row; a factor of the whole row comes last. */
INLINE float packed_value(uint32_t format, const GLOBAL uint8_t *row, uint32_t i)
{
    if (format == PACK_F32)
        return ((const GLOBAL float *)row)[i];
    uint32_t at = format == PACK_LANES ? lane_order(i) : i;
    uint32_t bits = load_half_bits(row + 2 * (uint64_t)at);
    return format == PACK_BF16 ? float_of(bits << 16) : f16_value((uint16_t)bits);
}

KERNEL(matmul_decoded)
{
    ENTER(call);
    const struct matmul_decoded_args *args = matmul_decoded_args_of(&call);
    uint32_t part = args->part, format = args->format;
    const struct gpu_operand *weights = &call.operands[MATMUL_GROUP_WEIGHTS + part];
    const struct gpu_operand *bias = &call.operands[MATMUL_GROUP_BIASES + part],
                             *out = &call.operands[MATMUL_GROUP_OUTS + part];
    uint32_t row = block_x() * (thread_count() / WARP) + warp_index();
    if (row >= weights->rows)
        return;
    uint32_t first_token = block_y() * DECODED_TOKENS;
    uint32_t left = (uint32_t)call.operands[MATMUL_GROUP_PACKED].rows - first_token;
    uint32_t count = left < DECODED_TOKENS ? left : DECODED_TOKENS;
    float sums[DECODED_TOKENS] = { 0 };
    const GLOBAL uint8_t *acts[DECODED_TOKENS];
    UNROLL
    for (uint32_t t = 0; t < DECODED_TOKENS; t++)
        acts[t] = row_at(&call.operands[MATMUL_GROUP_PACKED], first_token + (t < count ? t : 0));
    for (uint32_t i = lane_index(); i < weights->width; i += WARP) {
        float value = decode_value(weights->dtype, row_at(weights, row), i);
        UNROLL
        for (uint32_t t = 0; t < DECODED_TOKENS; t++)
            sums[t] = __builtin_fmaf(value, packed_value(format, acts[t], i), sums[t]);
    }
    UNROLL
    for (uint32_t t = 0; t < DECODED_TOKENS; t++) {
        float sum = warp_sum(sums[t], WARP);
        if (format == PACK_F16 || format == PACK_LANES)
            sum *= *(const GLOBAL float *)(acts[t] + 2 * weights->width);
        if (lane_index() == 0 && t < count)
            row_f32(out, first_token + t)[row] = sum +
                                                 (bias->address ? row_f32(bias, 0)[row] : 0.0f);
    }
}

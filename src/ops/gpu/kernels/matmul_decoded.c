/* matmul_decoded.c - products of weights of any type, value by value: a team for each row; for
 * types and sizes nobody has asked to be fast. Operands as in matmul.c; words[1]: the part;
 * words[2]: format of the packed rows, PACK_F32 or halves. */
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
    uint32_t part = call.words[1], format = call.words[2];
    const struct gpu_operand *weights = &call.operands[1 + part];
    const struct gpu_operand *bias = &call.operands[4 + part], *out = &call.operands[7 + part];
    uint32_t row = block_x() * (thread_count() / TEAM) + team_index();
    if (row >= weights->rows)
        return;
    uint32_t first_token = block_y() * DECODED_TOKENS;
    uint32_t left = (uint32_t)call.operands[0].rows - first_token;
    uint32_t count = left < DECODED_TOKENS ? left : DECODED_TOKENS;
    float sums[DECODED_TOKENS] = { 0 };
    const GLOBAL uint8_t *acts[DECODED_TOKENS];
    UNROLL
    for (uint32_t t = 0; t < DECODED_TOKENS; t++)
        acts[t] = row_at(&call.operands[0], first_token + (t < count ? t : 0));
    for (uint32_t i = lane_index(); i < weights->width; i += TEAM) {
        float value = decode_value(weights->dtype, row_at(weights, row), i);
        UNROLL
        for (uint32_t t = 0; t < DECODED_TOKENS; t++)
            sums[t] = __builtin_fmaf(value, packed_value(format, acts[t], i), sums[t]);
    }
    UNROLL
    for (uint32_t t = 0; t < DECODED_TOKENS; t++) {
        float sum = team_sum(sums[t], TEAM);
        if (format == PACK_F16 || format == PACK_LANES)
            sum *= *(const GLOBAL float *)(acts[t] + 2 * weights->width);
        if (lane_index() == 0 && t < count)
            row_f32(out, first_token + t)[row] = sum +
                                                 (bias->address ? row_f32(bias, 0)[row] : 0.0f);
    }
}

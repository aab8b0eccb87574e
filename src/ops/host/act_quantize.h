/* act_quantize.h - the scale of a block of activations, for the files that quantize them. */
#ifndef GRETA_OPS_HOST_ACT_QUANTIZE_H
#define GRETA_OPS_HOST_ACT_QUANTIZE_H

#include "ops/host/matmul_impl.h"

#include <stdbool.h>

#define LEVEL_LIMIT 127.0f
/* Smaller blocks are zero. 127 / magnitude stays finite, and a scale divided by 16 (as some kernels
 * hold it) stays a normal number, so that the division is exact. */
#define SMALLEST_SCALED 0x1p-110f

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

ALWAYS_INLINE float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* How a block is quantized: quant = value * factor, rounded; if it is not usable, all quants are 0.
 */
struct act_range {
    bool usable;
    float factor;
    float scale;
};

/* largest_bits: of the largest magnitude. As bits, magnitudes are ordered like integers, with
 * infinity and NaN at the top. */
ALWAYS_INLINE struct act_range act_range_of(uint32_t largest_bits)
{
    float largest = float_of(largest_bits);
    bool finite = largest_bits < 0x7F800000u;
    bool usable = finite && largest >= SMALLEST_SCALED;
    return (struct act_range){
        .usable = usable,
        .factor = usable ? LEVEL_LIMIT / largest : 0.0f,
        .scale = usable   ? largest / LEVEL_LIMIT
                 : finite ? 0.0f
                          : float_of(0x7FC00000u),
    };
}

/* Everything except the quants. pair_sums: sums of the quants of each half whose index mod 4 is 0
 * or 1, and of those where it is 2 or 3. */
ALWAYS_INLINE void act_block_finish(struct host_act_block *block, float scale,
                                    int32_t pair_sums[2][2])
{
    int32_t first_sum = pair_sums[0][0] + pair_sums[0][1];
    int32_t second_sum = pair_sums[1][0] + pair_sums[1][1];
    int32_t sum = first_sum + second_sum;
    block->scale = scale;
    block->scaled_sum = scale * (float)sum;
    block->offset_128 = -128 * sum;
    block->offset_8 = -8 * sum;
    block->first_half_offset_32 = -32 * first_sum;
    block->second_half_offset_32 = -32 * second_sum;
    for (size_t half = 0; half < 2; half++)
        for (size_t pair = 0; pair < 2; pair++)
            block->pair_offsets_32[half][pair] = (int16_t)(-32 * pair_sums[half][pair]);
}

#endif

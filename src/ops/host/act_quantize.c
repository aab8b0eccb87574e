/* act_quantize.c - packs rows of activations into the formats of matmul.h.
 *
 * One plain C body per format, compiled once per instruction set: every operation in it is a single
 * IEEE operation on f32 or exact integer arithmetic, so that the vector widths the compiler chooses
 * cannot change a bit. */
#include "ops/host/act_quantize.h"

/* Adding 1.5 * 2^23 leaves the nearest integer (ties to even) in the low mantissa bits. */
#define ROUNDING_SHIFT 0x1.8p23f
#define ROUNDING_SHIFT_BITS 0x4B400000

ALWAYS_INLINE uint32_t largest_magnitude_bits(const float *values)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < ACT_BLOCK; i++) {
        uint32_t bits = bits_of(values[i]) & 0x7FFFFFFFu;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

ALWAYS_INLINE void quantize_block(const float *values, struct host_act_block *block)
{
    struct act_range range = act_range_of(largest_magnitude_bits(values));
    int32_t levels[ACT_BLOCK];
    for (size_t i = 0; i < ACT_BLOCK; i++) {
        float scaled = (range.usable ? values[i] : 0.0f) * range.factor;
        levels[i] = (int32_t)bits_of(scaled + ROUNDING_SHIFT) - ROUNDING_SHIFT_BITS;
        block->levels[i] = (int8_t)levels[i];
    }
    int32_t pair_sums[2][2] = { { 0 } };
    for (size_t i = 0; i < ACT_BLOCK; i++)
        pair_sums[i / 16][i % 4 / 2] += levels[i];
    act_block_finish(block, range.scale, pair_sums);
}

ALWAYS_INLINE void quantize_row(const float *values, size_t k, struct host_act_block *blocks)
{
    size_t block_count = k / ACT_BLOCK;
    for (size_t b = 0; b < block_count; b++)
        quantize_block(values + b * ACT_BLOCK, &blocks[b]);
}

/* As bf16_from_f32, without a branch: rounded to nearest even; a NaN stays one. */
ALWAYS_INLINE void round_row(const float *values, size_t k, uint16_t *packed)
{
    for (size_t i = 0; i < k; i++) {
        uint32_t bits = bits_of(values[i]);
        uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
        uint32_t quiet = bits >> 16 | 0x40u;
        packed[i] = (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
    }
}

void act_pack_q8_portable(const float *values, size_t k, struct host_act_block *blocks)
{
    quantize_row(values, k, blocks);
}

void act_pack_bf16_portable(const float *values, size_t k, uint16_t *packed)
{
    round_row(values, k, packed);
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

AVX2 void act_pack_bf16_avx2(const float *values, size_t k, uint16_t *packed)
{
    round_row(values, k, packed);
}

AVX512 void act_pack_bf16_avx512(const float *values, size_t k, uint16_t *packed)
{
    round_row(values, k, packed);
}

#endif

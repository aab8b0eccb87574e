/* pack_halves.h - rows of activations as halves for matrix units.
 *
 * PACK_F16: k f16 values, then the f32 that they are to be multiplied with, a power of two chosen
 * so that the largest magnitude of the row is from 2^14 up to 2^15: no value is too large for f16,
 * and only those 2^28 times smaller lose digits. A row with a NaN or infinity has the factor NaN
 * and zeros. PACK_LANES: the same in another order (packing.h). PACK_BF16: k bf16 values. All to
 * nearest even. */
#ifndef GRETA_OPS_GPU_KERNELS_PACK_HALVES_H
#define GRETA_OPS_GPU_KERNELS_PACK_HALVES_H

#include "ops/gpu/kernels/portable.h"
#include "ops/gpu/packing.h"

/* Largest over the block; every thread has it. Uses a word of shared memory for each warp. */
INLINE uint32_t block_max_bits(uint32_t bits)
{
    SHARED uint32_t *largest = (SHARED uint32_t *)shared_memory();
    uint32_t warps = thread_count() / WARP;
    bits = warp_max_bits(bits, WARP);
    block_sync(); /* what was there before has been read */
    if (lane_index() == 0)
        largest[warp_index()] = bits;
    block_sync();
    return warp_max_bits(lane_index() < warps ? largest[lane_index()] : 0, WARP);
}

/* What values of a row are multiplied with to become halves. The thread that calls it first stores
 * what undoes it. */
INLINE float enter_packed(uint32_t format, GLOBAL uint8_t *packed, uint32_t k, uint32_t largest)
{
    if (format == PACK_BF16)
        return 1.0f;
    uint32_t exponent = largest >> 23; /* biased */
    bool finite = exponent < 255;
    exponent = exponent < 16 ? 16 : exponent; /* both powers are normal */
    if (thread_index() == 0)
        *(GLOBAL float *)(packed + 2 * k) = finite ? float_of((exponent - 14) << 23)
                                                   : float_of(0x7FC00000u);
    return finite ? float_of((268 - exponent) << 23) : 0.0f; /* 2^(14 - (exponent - 127)) */
}

INLINE uint32_t bf16_bits(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return bits >> 16 | 0x40u; /* stays a NaN */
    return (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}

INLINE uint32_t halves_of(uint32_t format, float low, float high, float factor)
{
    if (format == PACK_BF16)
        return bf16_bits(low) | bf16_bits(high) << 16;
    return factor == 0.0f ? 0 : two_halves(low * factor, high * factor);
}

/* Values i and the next, i even. */
INLINE void store_two_halves(uint32_t format, GLOBAL uint8_t *packed, uint32_t i, float low,
                             float high, float factor)
{
    uint32_t word = halves_of(format, low, high, factor);
    if (format == PACK_LANES) {
        *(GLOBAL uint16_t *)(packed + 2 * lane_order(i)) = (uint16_t)word;
        *(GLOBAL uint16_t *)(packed + 2 * lane_order(i + 1)) = (uint16_t)(word >> 16);
    } else {
        *(GLOBAL uint32_t *)(packed + 2 * i) = word;
    }
}

INLINE void store_halves(uint32_t format, GLOBAL uint8_t *packed, uint32_t four, floats4 values,
                         float factor)
{
    words2 words;
    if (format == PACK_LANES) {
        GLOBAL uint8_t *first = packed + 2 * lane_order(4 * four);
        *(GLOBAL uint32_t *)first = halves_of(format, values[0], values[2], factor);
        *(GLOBAL uint32_t *)(first + 16) = halves_of(format, values[1], values[3], factor);
        return;
    }
    UNROLL
    for (uint32_t i = 0; i < 2; i++)
        words[i] = halves_of(format, values[2 * i], values[2 * i + 1], factor);
    *(GLOBAL words2 *)(packed + 8 * four) = words;
}

#endif

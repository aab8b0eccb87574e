/* pack.h - rows of activations as matmuls want them.
 *
 * PACK_F32: the row. PACK_QUANTS: k signed bytes, then for each 32 of them {scale, scale * sum of
 * the quants} as two floats; k is a multiple of 32. quant = x / scale to nearest even, scale =
 * largest magnitude / 127; a block with a NaN or infinity has scale NaN and quants 0. */
#ifndef GRETA_OPS_GPU_KERNELS_PACK_H
#define GRETA_OPS_GPU_KERNELS_PACK_H

#include "ops/gpu/kernels/portable.h"
#include "ops/gpu/packing.h"

/* Fours that a thread packs together. */
#define PACK_FOURS_MOST 2

/* 127 / magnitude, from 2^-110 on, rounded as a division is, but without its branches: a warp's
 * other work does not wait for them. One step of Newton's makes the reciprocal as good as it can
 * be, the quotient's remainder does the rest; both by as much smaller where the reciprocal would be
 * too small. */
INLINE float pack_factor(float magnitude)
{
    float less = magnitude >= 0x1p64f ? 0x1p-64f : 1.0f;
    float divisor = magnitude * less, dividend = 127.0f * less;
    float inverse = reciprocal_fast(divisor);
    inverse = __builtin_fmaf(inverse, __builtin_fmaf(-divisor, inverse, 1.0f), inverse);
    float quotient = dividend * inverse;
    return __builtin_fmaf(__builtin_fmaf(-divisor, quotient, dividend), inverse, quotient);
}

/* magnitude / 127, rounded as a division is. */
INLINE float pack_scale(float magnitude)
{
    const float inverse = 1.0f / 127.0f;
    float quotient = magnitude * inverse;
    return __builtin_fmaf(__builtin_fmaf(-127.0f, quotient, magnitude), inverse, quotient);
}

/* How 32 values become quants, by the bits of their largest magnitude. */
struct pack_way {
    bool usable; /* else all quants are 0 */
    float scale, factor;
};

INLINE struct pack_way pack_find_way(uint32_t largest)
{
    bool finite = largest < 0x7F800000u;
    float magnitude = float_of(largest);
    bool usable = finite && magnitude >= 0x1p-110f;
    return (struct pack_way){ .usable = usable,
                              .scale = usable   ? pack_scale(magnitude)
                                       : finite ? 0.0f
                                                : float_of(0x7FC00000u),
                              .factor = usable ? pack_factor(magnitude) : 0.0f };
}

INLINE int32_t pack_round(const struct pack_way *way, float value)
{
    return way->usable ? (int32_t)__builtin_rintf(value * way->factor) : 0;
}

/* The quant of a value among 32 neighbours of a row, which all lanes of a warp have together.
 * *ret_pair: of all of them. */
INLINE int32_t pack_quant(float value, floats2 *ret_pair)
{
    struct pack_way way = pack_find_way(warp_max_bits(magnitude_bits(value), WARP));
    int32_t quant = pack_round(&way, value);
    int32_t sum = warp_sum_int(quant, WARP);
    *ret_pair = (floats2){ way.scale, way.scale * (float)sum };
    return quant;
}

/* Packs value i of a row of k values. For PACK_QUANTS all lanes of a warp are here together, with
 * 32 neighbouring values that begin at a multiple of 32. */
INLINE void pack_value(uint32_t format, GLOBAL uint8_t *packed, uint64_t k, uint64_t i, float value)
{
    if (format == PACK_F32) {
        if (i < k)
            ((GLOBAL float *)packed)[i] = value;
        return;
    }
    if (i >= k)
        return; /* the whole warp, since k is a multiple of 32 */
    floats2 pair;
    ((GLOBAL int8_t *)packed)[i] = (int8_t)pack_quant(value, &pair);
    if (lane_index() == 0)
        *(GLOBAL floats2 *)(packed + k + i / 32 * 8) = pair;
}

/* The bits of the largest magnitude of 32 neighbouring values of a row, of which eight lanes have
 * four each; all lanes of a warp are here together. */
INLINE uint32_t four_largest(floats4 values)
{
    return warp_max_bits(largest_of_four(values, 0), 8);
}

/* The same four as quants. largest: of the 32. *ret_pair: of all of them. */
INLINE uint32_t four_quants(floats4 values, uint32_t largest, floats2 *ret_pair)
{
    struct pack_way way = pack_find_way(largest);
    uint32_t quants = 0;
    int32_t sum = 0;
    UNROLL
    for (uint32_t n = 0; n < 4; n++) {
        int32_t quant = pack_round(&way, values[n]);
        quants |= ((uint32_t)quant & 255u) << (8 * n);
        sum += quant;
    }
    sum = warp_sum_int(sum, 8);
    *ret_pair = (floats2){ way.scale, way.scale * (float)sum };
    return quants;
}

/* Where four values from i on go, and their block's pair. */
INLINE void pack_store(GLOBAL uint8_t *packed, uint64_t k, uint64_t i, uint32_t quants,
                       floats2 pair)
{
    if (i < k)
        *(GLOBAL uint32_t *)(packed + i) = quants;
    if (i < k && i % 32 == 0)
        *(GLOBAL floats2 *)(packed + k + i / 32 * 8) = pair;
}

/* The same for four neighbouring values from i on, a multiple of 4. All lanes of a warp are here
 * together; those past the row have zeros. */
INLINE void pack_four(uint32_t format, GLOBAL uint8_t *packed, uint64_t k, uint64_t i,
                      floats4 values)
{
    bool there = i < k;
    if (format == PACK_F32) {
        if (there)
            *(GLOBAL floats4 *)(packed + 4 * i) = values;
        return;
    }
    floats2 pair;
    uint32_t quants = four_quants(values, four_largest(values), &pair);
    pack_store(packed, k, i, quants, pair);
}

/* Packs `count` fours of each thread, a thread's next four after those of the whole block: their
 * work is mixed. largest: of each four's 32. */
INLINE void pack_fours(uint32_t format, GLOBAL uint8_t *packed, uint64_t k, const floats4 *values,
                       const uint32_t *largest, uint32_t count)
{
    if (format == PACK_F32) {
        UNROLL
        for (uint32_t n = 0; n < count; n++) {
            uint64_t i = 4 * (n * thread_count() + thread_index());
            if (i < k)
                *(GLOBAL floats4 *)(packed + 4 * i) = values[n];
        }
        return;
    }
    uint32_t quants[PACK_FOURS_MOST];
    floats2 pairs[PACK_FOURS_MOST];
    UNROLL
    for (uint32_t n = 0; n < count; n++)
        quants[n] = four_quants(values[n], largest[n], &pairs[n]);
    UNROLL
    for (uint32_t n = 0; n < count; n++)
        pack_store(packed, k, 4 * (n * thread_count() + thread_index()), quants[n], pairs[n]);
}

#endif

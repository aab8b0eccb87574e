/* matmul_avx2.h - what the AVX2 kernels share. Each serves few rows and many: ACT_ROWS activation
 * rows at a time, which stay in the first cache, with one weight row after the other, each block of
 * which is unpacked once for all of them; what is left over, one row at a time. No sum sees which
 * it was.
 *
 * Order of the quantised AVX2 kernels: two vectors of 8 accumulators, one for the even blocks of 32
 * and one for the odd. Lane l takes from each block, in order, the exact integer sum of the
 * products k = 4 l .. 4 l + 3, converted, by one fused multiply-add with (weight scale * activation
 * scale), rounded. Q4_K and Q5_K have a third vector: lane j takes min * scaled sum of block j of
 * every 8, by fused multiply-adds; it is taken away from even + odd at the end. Then lanes l and l
 * + 4, l + 2, l + 1 are added. */
#ifndef GRETA_OPS_HOST_MATMUL_AVX2_H
#define GRETA_OPS_HOST_MATMUL_AVX2_H

#include "ops/host/matmul_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma,f16c")))
#define AVX2_INLINE static inline __attribute__((always_inline)) AVX2

AVX2_INLINE __m256i load_256(const void *bytes)
{
    return _mm256_loadu_si256((const __m256i *)bytes);
}

AVX2_INLINE __m128i load_128(const void *bytes)
{
    return _mm_loadu_si128((const __m128i *)bytes);
}

AVX2_INLINE float load_f16(const uint8_t *bytes)
{
    uint16_t bits;
    memcpy(&bits, bytes, sizeof(bits));
    return _cvtsh_ss(bits);
}

/* Activation rows at a time: their sums fill the registers. */
#define ACT_ROWS 4
/* Weight rows that all activation rows pass by before the next ones: they stay in the second cache.
 */
#define WEIGHT_ROWS 32

/* Calls dot_rows(task, o, a, row_count, ...) for every weight row o and activation rows a ..
 * a + row_count - 1; row_count, at_once or 1, is a constant in each call. */
#define FOR_EACH_ROWS(task, at_once, dot_rows, ...)                                                \
    for (size_t first_ = 0; first_ < (task)->weight_rows; first_ += WEIGHT_ROWS) {                 \
        size_t end_ = smaller(first_ + WEIGHT_ROWS, (task)->weight_rows), a_ = 0;                  \
        for (; a_ + (at_once) <= (task)->activation_rows; a_ += (at_once))                         \
            for (size_t o_ = first_; o_ < end_; o_++)                                              \
                dot_rows((task), o_, a_, (at_once), __VA_ARGS__);                                  \
        for (; a_ < (task)->activation_rows; a_++)                                                 \
            for (size_t o_ = first_; o_ < end_; o_++)                                              \
                dot_rows((task), o_, a_, 1, __VA_ARGS__);                                          \
    }

/* Lanes l and l + 4, l + 2, l + 1. */
AVX2_INLINE float sum_lanes(__m256 lanes)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Sums of 4 products of unsigned levels up to 63 with signed ones: two products fit 16 bits. */
AVX2_INLINE __m256 dot_unsigned(__m256i levels, __m256i act_levels)
{
    __m256i pairs = _mm256_maddubs_epi16(levels, act_levels);
    return _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* The same with signed levels: magnitude times activation with the level's sign. -128 becomes 128,
 * unsigned; activations are never -128, so that nothing overflows. */
AVX2_INLINE __m256 dot_signed(__m256i levels, __m256i act_levels)
{
    return dot_unsigned(_mm256_abs_epi8(levels), _mm256_sign_epi8(act_levels, levels));
}

#endif

#endif

/* matmul_avx2.h - what the AVX2 kernels share.
 *
 * Order of the quantized AVX2 kernels: that of AVX-512 (matmul_avx512.h), and so its bits.
 *
 * Few rows: one weight row after the other, eight blocks at a time, which follow each other in
 * memory; lane = block (matmul_avx2_few.h). Many rows: 16 weight rows unpacked to a panel; lane =
 * row (matmul_avx2_panel.h). */
#ifndef GRETA_OPS_HOST_MATMUL_AVX2_H
#define GRETA_OPS_HOST_MATMUL_AVX2_H

#include "ops/host/matmul_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma,f16c")))
#define AVX2_INLINE static inline __attribute__((always_inline)) AVX2

/* The place of a field in a block of activations. */
#define ACT_AT(field) offsetof(struct host_act_block, field)

AVX2_INLINE __m256i load_256(const void *bytes)
{
    return _mm256_loadu_si256((const __m256i *)bytes);
}

AVX2_INLINE __m128i load_128(const void *bytes)
{
    return _mm_loadu_si128((const __m128i *)bytes);
}

AVX2_INLINE void store_256(void *bytes, __m256i values)
{
    _mm256_store_si256((__m256i *)bytes, values);
}

AVX2_INLINE float load_f16(const uint8_t *bytes)
{
    uint16_t bits;
    memcpy(&bits, bytes, sizeof(bits));
    return _cvtsh_ss(bits);
}

AVX2_INLINE short load_i16(const uint8_t *bytes)
{
    short bits;
    memcpy(&bits, bytes, sizeof(bits));
    return bits;
}

/* Eight f16, stride bytes apart, as floats. */
AVX2_INLINE __m256 load_f16_apart(const uint8_t *bytes, size_t stride)
{
    return _mm256_cvtph_ps(_mm_setr_epi16(
        load_i16(bytes), load_i16(bytes + stride), load_i16(bytes + 2 * stride),
        load_i16(bytes + 3 * stride), load_i16(bytes + 4 * stride), load_i16(bytes + 5 * stride),
        load_i16(bytes + 6 * stride), load_i16(bytes + 7 * stride)));
}

AVX2_INLINE __m256i low_nibbles(__m256i bytes)
{
    return _mm256_and_si256(bytes, _mm256_set1_epi8(15));
}

AVX2_INLINE __m256i high_nibbles(__m256i bytes)
{
    return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
}

/* Sums of neighbouring pairs of 16-bit numbers. */
AVX2_INLINE __m256i add_neighbours(__m256i pairs)
{
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* Sums of two products, with signed quants: magnitude times activation with the quant's sign. -128
 * becomes 128, unsigned; activations are never -128, so that nothing overflows. */
AVX2_INLINE __m256i multiply_signed(__m256i levels, __m256i magnitudes, __m256i acts)
{
    return _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(acts, levels));
}

#endif

#endif

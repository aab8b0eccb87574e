/* matmul_avx2_float.h - what the AVX2 kernels for plain and decoded floats share. */
#ifndef GRETA_OPS_HOST_MATMUL_AVX2_FLOAT_H
#define GRETA_OPS_HOST_MATMUL_AVX2_FLOAT_H

#if defined(__x86_64__)

#include "ops/host/matmul_avx2.h"

enum float_source { FLOAT_F32, FLOAT_F16, FLOAT_BF16 };

/* Vectors of sums that take turns, and k per step of all of them. */
#define FLOAT_TURNS 4
#define FLOAT_STEP 32

AVX2_INLINE __m256 load_weights(enum float_source source, const uint8_t *row, size_t k)
{
    switch (source) {
    case FLOAT_F16:
        return _mm256_cvtph_ps(load_128(row + 2 * k));
    case FLOAT_BF16:
        return _mm256_castsi256_ps(
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_128(row + 2 * k)), 16));
    default:
        return _mm256_loadu_ps((const float *)(const void *)(row + 4 * k));
    }
}

/* (vector 0 + 2) + (1 + 3), then lanes l and l + 4, l + 2, l + 1. */
AVX2_INLINE float sum_turns(const __m256 sums[FLOAT_TURNS])
{
    __m256 lanes = _mm256_add_ps(_mm256_add_ps(sums[0], sums[2]), _mm256_add_ps(sums[1], sums[3]));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#endif

#endif

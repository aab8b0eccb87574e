/* matmul_avx512_float.h - what the AVX-512 kernels for plain and decoded floats share. */
#ifndef GRETA_OPS_HOST_MATMUL_AVX512_FLOAT_H
#define GRETA_OPS_HOST_MATMUL_AVX512_FLOAT_H

#include "ops/host/matmul_impl.h"

#if defined(__x86_64__)

#include "ops/host/matmul_avx512.h"

enum float_source { FLOAT_F32, FLOAT_F16 };

/* k per step of both vectors. */
#define FLOAT_STEP 32
#define BF16_STEP 64

/* Lanes l and l + 8, l + 4, l + 2, l + 1. */
AVX512_INLINE float sum_lanes(__m512 lanes)
{
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Scratch of the many-rows kernels, whatever k. */
#define FLOAT_CHUNK_BYTES 4096
#define FLOAT_BLOCK_WEIGHTS 16
#define FLOAT_BLOCK_ACTS 96
#define FLOAT_TILE_WEIGHTS 4
#define FLOAT_TILE_ACTS 3

struct float_sums {
    float lanes[FLOAT_TILE_WEIGHTS][FLOAT_TILE_ACTS][2][16];
};

struct float_scratch {
    uint8_t weights[FLOAT_BLOCK_WEIGHTS][FLOAT_CHUNK_BYTES];
    struct float_sums sums[FLOAT_BLOCK_WEIGHTS / FLOAT_TILE_WEIGHTS]
                          [FLOAT_BLOCK_ACTS / FLOAT_TILE_ACTS];
};

#endif

#endif

/* simd.h - what the AVX2 and AVX-512 kernels of the small ops share: targets, parts of vectors, and
 * the exponential function.
 *
 * exp_avx2 and exp_avx512 give the same bits. n = x / ln 2 to nearest, r = x - n ln 2 in two fused
 * steps, a polynomial in r by Horner's rule with fused steps, times 2^n with one rounding.
 * Within 1.05 units in the last place (subnormal results: within one smallest unit); exp(0) is 1,
 * exp(-inf) is 0, overflow is infinity, NaN stays NaN. */
#ifndef GRETA_OPS_HOST_SIMD_H
#define GRETA_OPS_HOST_SIMD_H

#if defined(__x86_64__)

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define TARGET_AVX2 __attribute__((target("avx2,fma,f16c")))
#define TARGET_AVX512 __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")))
#define INLINE_AVX2 static inline __attribute__((always_inline)) TARGET_AVX2
#define INLINE_AVX512 static inline __attribute__((always_inline)) TARGET_AVX512

/* ---- Parts of vectors: the first count lanes, the others are not touched in memory ---------- */

INLINE_AVX512 __mmask16 mask_avx512(size_t count)
{
    return (__mmask16)(count >= 16 ? 0xFFFFu : (1u << count) - 1);
}

INLINE_AVX2 __m256i mask_avx2(size_t count)
{
    __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count > 8 ? 8 : (int)count), lanes);
}

/* ---- exp ------------------------------------------------------------------------------------ */

/* Below EXP_LOW everything rounds to 0, above EXP_HIGH to infinity. */
#define EXP_LOW -104.0f
#define EXP_HIGH 89.0f
#define EXP_LOG2_E 1.44269504088896341f
/* ln 2 in two parts; the first has so few bits that n times it is exact. */
#define EXP_LN2_HIGH 0.693359375f
#define EXP_LN2_LOW -2.12194440e-4f
/* exp(r) = 1 + r + r^2 (C0 r^5 + ... + C5) for |r| <= ln 2 / 2 */
#define EXP_C0 1.9875691500e-4f
#define EXP_C1 1.3981999507e-3f
#define EXP_C2 8.3334519073e-3f
#define EXP_C3 4.1665795894e-2f
#define EXP_C4 1.6666665459e-1f
#define EXP_C5 5.0000001201e-1f

/* 2^n for -126 <= n <= 127 */
INLINE_AVX2 __m256 power_of_two_avx2(__m256i n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

INLINE_AVX2 __m256 exp_avx2(__m256 x)
{
    /* x stands second: min and max give their second operand if one is NaN. */
    x = _mm256_min_ps(_mm256_set1_ps(EXP_HIGH), _mm256_max_ps(_mm256_set1_ps(EXP_LOW), x));
    __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(EXP_LOG2_E)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(EXP_LN2_HIGH), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(EXP_LN2_LOW), r);
    __m256 p = _mm256_set1_ps(EXP_C0);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C5));
    p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
    p = _mm256_add_ps(p, _mm256_set1_ps(1));
    /* In two steps, since 2^n itself may be out of range; the first step is exact. */
    __m256i whole = _mm256_cvtps_epi32(n);
    __m256i half = _mm256_srai_epi32(whole, 1);
    p = _mm256_mul_ps(p, power_of_two_avx2(half));
    return _mm256_mul_ps(p, power_of_two_avx2(_mm256_sub_epi32(whole, half)));
}

INLINE_AVX512 __m512 exp_avx512(__m512 x)
{
    x = _mm512_min_ps(_mm512_set1_ps(EXP_HIGH), _mm512_max_ps(_mm512_set1_ps(EXP_LOW), x));
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(EXP_LOG2_E)),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(EXP_LN2_HIGH), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(EXP_LN2_LOW), r);
    __m512 p = _mm512_set1_ps(EXP_C0);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C1));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_C5));
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
    p = _mm512_add_ps(p, _mm512_set1_ps(1));
    return _mm512_scalef_ps(p, n);
}

#endif

#endif

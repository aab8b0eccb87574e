/* simd.h - what the AVX2 and AVX-512 kernels of the small ops share: targets, parts of vectors,
 * the exponential function and the hyperbolic tangent.
 *
 * exp_avx2 and exp_avx512 give the same bits. n = x / ln 2 to nearest, r = x - n ln 2 in two fused
 * steps, a polynomial in r by Horner's rule with fused steps, times 2^n with one rounding.
 * Within 1.05 units in the last place (subnormal results: within one smallest unit); exp(0) is 1,
 * exp(-inf) is 0, overflow is infinity, NaN stays NaN.
 *
 * tanh_avx2 and tanh_avx512 give the same bits too: below TANH_SMALL an odd polynomial, else (1 -
 * e) / (1 + e) with e = exp(-2 |x|) and the sign of x. Within 3 units in the last place. */
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

/* ---- tanh ----------------------------------------------------------------------------------- */

#define TANH_SMALL 0.625f
/* tanh(x) = x + x^3 (C0 x^8 + ... + C4) for |x| < TANH_SMALL */
#define TANH_C0 -5.70498872745e-3f
#define TANH_C1 2.06390887954e-2f
#define TANH_C2 -5.37397155531e-2f
#define TANH_C3 1.33314422036e-1f
#define TANH_C4 -3.33332819422e-1f

INLINE_AVX2 __m256 tanh_avx2(__m256 x)
{
    __m256 sign = _mm256_set1_ps(-0.0f), one = _mm256_set1_ps(1);
    __m256 magnitude = _mm256_andnot_ps(sign, x);
    __m256 e = exp_avx2(_mm256_mul_ps(magnitude, _mm256_set1_ps(-2)));
    __m256 large = _mm256_div_ps(_mm256_sub_ps(one, e), _mm256_add_ps(one, e));
    large = _mm256_or_ps(large, _mm256_and_ps(sign, x));
    __m256 square = _mm256_mul_ps(x, x);
    __m256 p = _mm256_set1_ps(TANH_C0);
    p = _mm256_fmadd_ps(p, square, _mm256_set1_ps(TANH_C1));
    p = _mm256_fmadd_ps(p, square, _mm256_set1_ps(TANH_C2));
    p = _mm256_fmadd_ps(p, square, _mm256_set1_ps(TANH_C3));
    p = _mm256_fmadd_ps(p, square, _mm256_set1_ps(TANH_C4));
    p = _mm256_fmadd_ps(_mm256_mul_ps(p, square), x, x);
    __m256 small = _mm256_cmp_ps(magnitude, _mm256_set1_ps(TANH_SMALL), _CMP_LT_OQ);
    return _mm256_blendv_ps(large, p, small);
}

INLINE_AVX512 __m512 tanh_avx512(__m512 x)
{
    __m512 sign = _mm512_set1_ps(-0.0f), one = _mm512_set1_ps(1);
    __m512 magnitude = _mm512_andnot_ps(sign, x);
    __m512 e = exp_avx512(_mm512_mul_ps(magnitude, _mm512_set1_ps(-2)));
    __m512 large = _mm512_div_ps(_mm512_sub_ps(one, e), _mm512_add_ps(one, e));
    large = _mm512_or_ps(large, _mm512_and_ps(sign, x));
    __m512 square = _mm512_mul_ps(x, x);
    __m512 p = _mm512_set1_ps(TANH_C0);
    p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(TANH_C1));
    p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(TANH_C2));
    p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(TANH_C3));
    p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(TANH_C4));
    p = _mm512_fmadd_ps(_mm512_mul_ps(p, square), x, x);
    __mmask16 small = _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(TANH_SMALL), _CMP_LT_OQ);
    return _mm512_mask_blend_ps(small, large, p);
}

#endif

#endif

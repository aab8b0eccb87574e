/* portable.h - everything that differs between the targets of the kernels: NVIDIA GPUs, AMD GPUs,
 * and a CPU that emulates one in tests. Builtins only, no vendor headers. Each target has a file of
 * its own; only this file tests which target it is.
 *
 * The matrix units are in matrix.h, matrix_quants.h and warpgroup.h, chosen by what machines say
 * they have:
 *
 * WAVE             threads that run together, as the compiler has it
 * IS_EMULATED      a processor plays the GPU
 * HAS_F16          the compiler has the type _Float16
 * HAS_WHOLE_WARP   one instruction for the largest, or the sum, of a whole warp
 * HAS_SHORTCUTS    instructions of its own for what others do in several
 * HAS_WARP_MATRIX  matrix units of a warp, whose sums lie as the rows of the next matmul (else
 *                  those of a wide wave, whose sums do not)
 * HAS_WARPGROUPS   matrix units of four warps together (sm_90a) */
#ifndef GRETA_OPS_GPU_KERNELS_PORTABLE_H
#define GRETA_OPS_GPU_KERNELS_PORTABLE_H

#include "device/abi/abi.h"
#include "ops/gpu/kernel_args.h"
#include "ops/gpu/tiling.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kernels are written for warps of 32 neighbouring threads, because quantized weights and packed
 * activations come in blocks of 32 values: a lane for each. A warp is a whole wave on NVIDIA, half
 * of one of AMD's wide waves: its threads run together everywhere. All of them take the same path
 * around warp operations. */
_Static_assert(WARP == 32, "a lane for each value of a block");
#define INLINE static inline __attribute__((always_inline))

typedef uint32_t words4 __attribute__((vector_size(16)));
typedef uint32_t words2 __attribute__((vector_size(8)));
typedef float floats4 __attribute__((vector_size(16)));
typedef float floats2 __attribute__((vector_size(8)));

#if defined(__NVPTX__)
#include "ops/gpu/kernels/portable_nvidia.h"
#elif defined(__AMDGCN__)
#include "ops/gpu/kernels/portable_amd.h"
#else

#define IS_EMULATED 1
#define WAVE WARP
#define HAS_F16 0
#define HAS_WHOLE_WARP 0
#define HAS_SHORTCUTS 0
#define HAS_WARP_MATRIX 1
#define HAS_WARPGROUPS 1
#define UNROLL

#include <emulator.h> /* of the tests */

INLINE words4 load_shared(const uint8_t *at)
{
    return *(const words4 *)(const void *)at;
}
INLINE words4 load_if(bool wanted, const uint8_t *at)
{
    words4 words = wanted ? *(const words4 *)(const void *)at : (words4){ 0, 0, 0, 0 };
    emulator_note_read(&words);
    return words;
}

#endif

_Static_assert(WAVE % WARP == 0, "warps are parts of waves");

/* ---- The same everywhere -------------------------------------------------------------------- */

INLINE uint32_t lane_index(void)
{
    return thread_index() % WARP;
}
INLINE uint32_t warp_index(void)
{
    return thread_index() / WARP;
}

INLINE uint32_t bits_of(float value)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
}
INLINE float float_of(uint32_t bits)
{
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
}

#if HAS_F16
INLINE float f16_value(uint16_t bits)
{
    union {
        uint16_t bits;
        _Float16 value;
    } half = { bits };
    return (float)half.value;
}
INLINE uint16_t f16_bits(float value)
{
    union {
        _Float16 value;
        uint16_t bits;
    } half = { (_Float16)value };
    return half.bits;
}
#endif

/* Bits that order like magnitudes; a NaN is above infinity. */
INLINE uint32_t magnitude_bits(float value)
{
    return bits_of(value) & 0x7FFFFFFFu;
}
INLINE uint32_t largest_of_four(floats4 values, uint32_t largest)
{
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t bits = magnitude_bits(values[i]);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

INLINE float warp_swap_float(float value, uint32_t distance)
{
    return float_of(warp_swap(bits_of(value), distance));
}

/* Over groups of `width` neighbouring lanes; every lane has the result. */
INLINE float warp_sum(float value, uint32_t width)
{
    for (uint32_t distance = width / 2; distance > 0; distance /= 2)
        value += warp_swap_float(value, distance);
    return value;
}
INLINE float warp_max(float value, uint32_t width)
{
    for (uint32_t distance = width / 2; distance > 0; distance /= 2) {
        float other = warp_swap_float(value, distance);
        value = other > value ? other : value;
    }
    return value;
}
/* The sum over all threads of the block; every thread has it. sums: WARP floats, at a multiple of
 * 16 bytes. */
INLINE float block_sum(float value, SHARED float *sums)
{
    uint32_t warps = thread_count() / WARP, i = thread_index();
    value = warp_sum(value, WARP);
    if (i >= warps && i < WARP)
        sums[i] = 0; /* of warps that do not exist */
    if (lane_index() == 0)
        sums[warp_index()] = value;
    block_sync();
    /* Every thread adds all of them itself: exchanging sums between lanes takes longer. */
    floats4 all = { 0 };
    UNROLL
    for (uint32_t t = 0; t < WARP / 4; t++)
        all += ((const SHARED floats4 *)sums)[t];
    return (all[0] + all[1]) + (all[2] + all[3]);
}
INLINE int32_t warp_sum_int(int32_t value, uint32_t width)
{
#if HAS_WHOLE_WARP
    if (width == WARP)
        return whole_warp_sum(value);
#endif
    for (uint32_t distance = width / 2; distance > 0; distance /= 2)
        value += (int32_t)warp_swap((uint32_t)value, distance);
    return value;
}
INLINE uint32_t warp_max_bits(uint32_t value, uint32_t width)
{
#if HAS_WHOLE_WARP
    if (width == WARP)
        return whole_warp_max(value);
#endif
    for (uint32_t distance = width / 2; distance > 0; distance /= 2) {
        uint32_t other = warp_swap(value, distance);
        value = other > value ? other : value;
    }
    return value;
}

#if !HAS_SHORTCUTS
INLINE void prefetch(const GLOBAL void *at)
{
    (void)at;
}
INLINE float reciprocal_fast(float x)
{
    return 1.0f / x;
}
INLINE float inverse_root(float x)
{
    return 1.0f / __builtin_sqrtf(x);
}
INLINE void load_shared_if(bool wanted, const SHARED uint8_t *at, words4 *words)
{
    if (wanted)
        *words = load_shared(at);
}
INLINE uint32_t not_known(uint32_t value)
{
    return value;
}
INLINE void made_here(uint32_t a, uint32_t b, float c)
{
    (void)a;
    (void)b;
    (void)c;
}
INLINE uint32_t two_halves(float low, float high)
{
    return f16_bits(low) | (uint32_t)f16_bits(high) << 16;
}
INLINE uint32_t bits_under(uint32_t word, uint32_t mask, uint32_t above)
{
    return (word & mask) | above;
}
INLINE uint32_t half_twice(uint32_t pair, bool second)
{
    uint32_t half = pair >> (second ? 16 : 0) & 0xFFFFu;
    return half | half << 16;
}
INLINE uint32_t scale_halves(uint32_t values, uint32_t base, uint32_t scale, uint32_t min)
{
    float results[2];
    for (uint32_t i = 0; i < 2; i++) {
        float quant = f16_value((uint16_t)(values >> (16 * i))) -
                      f16_value((uint16_t)(base >> (16 * i)));
        results[i] = __builtin_fmaf(quant, f16_value((uint16_t)(scale >> (16 * i))),
                                    -f16_value((uint16_t)(min >> (16 * i))));
    }
    return two_halves(results[0], results[1]);
}
#endif

/* exp(x) to about 2 units in the last place: what x * log2(e) loses is put back. Without a branch:
 * lanes stay together, and several are on their way at a time. */
INLINE float exp_value(float x)
{
    const float log2e = 1.4426950408889634f, rest = 1.9259629911266175e-8f;
    x = x < -104.0f ? -104.0f : x; /* whose power is 0 */
    float high = x * log2e;
    float low = __builtin_fmaf(x, log2e, -high) + x * rest;
    float power = exp2_fast(high);
    return __builtin_fmaf(power, low * 0.6931471805599453f, power);
}

/* x / (1 + exp(-x)), from exp(-|x|), which cannot overflow. */
INLINE float silu(float x)
{
    float e = exp_value(-__builtin_fabsf(x));
    return x * (x < 0 ? e : 1.0f) / (1.0f + e);
}

/* x / 2 (1 + tanh(u)) = x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3), in the same way.
 */
INLINE float gelu_value(float x)
{
    float twice = x * (1.5957691216057308f + 0.07135481627260025f * (x * x));
    float e = exp_value(-__builtin_fabsf(twice));
    return x * (twice < 0 ? e : 1.0f) / (1.0f + e);
}

/* To about 4 units in the last place: a polynomial where 1 - exp(-2 |x|) would lose bits. */
INLINE float tanh_value(float x)
{
    float magnitude = __builtin_fabsf(x), square = x * x;
    float e = exp_value(-2.0f * magnitude);
    float large = __builtin_copysignf((1.0f - e) * reciprocal_fast(1.0f + e), x);
    float p = -5.70498872745e-3f;
    p = __builtin_fmaf(p, square, 2.06390887954e-2f);
    p = __builtin_fmaf(p, square, -5.37397155531e-2f);
    p = __builtin_fmaf(p, square, 1.33314422036e-1f);
    p = __builtin_fmaf(p, square, -3.33332819422e-1f);
    return magnitude < 0.625f ? __builtin_fmaf(p * square, x, x) : large;
}

#define F32_INFINITY __builtin_inff()

#endif

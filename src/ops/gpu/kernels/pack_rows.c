/* pack_rows.c - rows of activations as halves for matrix units, and the ops that give them, for
 * many tokens: a block for each token.
 *
 * PACK_F16: k f16 values, then the f32 that they are to be multiplied with, a power of two chosen
 * so that the largest magnitude of the row is from 2^14 up to 2^15: no value is too large for f16,
 * and only those 2^28 times smaller lose digits. A row with a NaN or infinity has the factor NaN
 * and zeros. PACK_BF16: k bf16 values. Both to nearest even. */
#include "ops/gpu/kernels/portable.h"
#include "ops/gpu/packing.h"
#include "ops/params.h"

/* Largest over the block; every thread has it. Uses a word of shared memory for each team. */
INLINE uint32_t block_max_bits(uint32_t bits)
{
    SHARED uint32_t *largest = (SHARED uint32_t *)shared_memory();
    uint32_t teams = thread_count() / TEAM;
    bits = team_max_bits(bits, TEAM);
    block_sync(); /* what was there before has been read */
    if (lane_index() == 0)
        largest[team_index()] = bits;
    block_sync();
    return team_max_bits(lane_index() < teams ? largest[lane_index()] : 0, TEAM);
}

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

INLINE uint32_t half_of(uint32_t format, float value, float factor)
{
    if (format == PACK_BF16)
        return bf16_bits(value);
    return factor == 0.0f ? 0 : f16_bits(value * factor);
}

INLINE void store_halves(uint32_t format, GLOBAL uint8_t *packed, uint32_t four, floats4 values,
                         float factor)
{
    words2 words;
    UNROLL
    for (uint32_t i = 0; i < 2; i++)
        words[i] = half_of(format, values[2 * i], factor) |
                   half_of(format, values[2 * i + 1], factor) << 16;
    *(GLOBAL words2 *)(packed + 8 * four) = words;
}

/* Of act_pack and attention: x, packed. words[0]: format. The loads of a thread do not wait for
 * each other: up to KEPT_OF_PACK values stay in registers, those of longer rows are read again. */
#define KEPT_OF_PACK 16
KERNEL(pack_halves)
{
    ENTER(call);
    const struct gpu_operand *x = &call.operands[0]; /* [k, tokens] */
    const GLOBAL float *row = row_f32(x, block_x());
    GLOBAL uint8_t *packed = row_at(&call.operands[1], block_x());
    uint32_t k = (uint32_t)x->width, format = call.words[0], largest = 0;
    uint32_t step = 2 * thread_count(), kept_to = KEPT_OF_PACK / 2 * step;
    float kept[KEPT_OF_PACK];
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_PACK; n++) {
        uint32_t i = n / 2 * step + 2 * thread_index() + n % 2;
        kept[n] = i < k ? row[i] : 0.0f;
    }
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_PACK; n++) {
        uint32_t bits = magnitude_bits(kept[n]);
        largest = bits > largest ? bits : largest;
    }
    for (uint32_t i = kept_to + thread_index(); i < k; i += thread_count()) {
        uint32_t bits = magnitude_bits(row[i]);
        largest = bits > largest ? bits : largest;
    }
    float factor = enter_packed(format, packed, k, block_max_bits(largest));
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_PACK; n += 2) {
        uint32_t i = n / 2 * step + 2 * thread_index();
        if (i < k)
            *(GLOBAL uint32_t *)(packed + 2 * i) = half_of(format, kept[n], factor) |
                                                   half_of(format, kept[n + 1], factor) << 16;
    }
    for (uint32_t i = kept_to + 2 * thread_index(); i < k; i += step)
        *(GLOBAL uint32_t *)(packed + 2 * i) = half_of(format, row[i], factor) |
                                               half_of(format, row[i + 1], factor) << 16;
}

/* Fours of values a thread keeps in registers; those of longer rows are read again. */
#define KEPT_OF_NORM 4
#define KEPT_OF_SWIGLU 8

/* Operands of rms_norm, all rows at multiples of 16 bytes. words[0]: format. */
KERNEL(rms_norm_halves)
{
    ENTER(call);
    const struct params_norm *params = (const void *)call.params;
    uint32_t fours = (uint32_t)call.operands[0].width / 4, step = thread_count();
    uint32_t format = call.words[0];
    GLOBAL floats4 *x = (GLOBAL floats4 *)row_at(&call.operands[0], block_x());
    const GLOBAL floats4 *added = call.operands[1].address
                                      ? (GLOBAL floats4 *)row_at(&call.operands[1], block_x())
                                      : 0;
    const GLOBAL floats4 *weight = (GLOBAL floats4 *)row_at(&call.operands[2], 0);
    GLOBAL floats4 *out = (GLOBAL floats4 *)row_at(&call.operands[3], block_x());
    GLOBAL uint8_t *packed = row_at(&call.operands[4], block_x());
    const floats4 zero = { 0 };
    floats4 kept[KEPT_OF_NORM], more[KEPT_OF_NORM], squares = zero;
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_NORM; n++) {
        uint32_t i = n * step + thread_index();
        kept[n] = i < fours ? x[i] : zero;
        more[n] = added && i < fours ? added[i] : zero;
    }
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_NORM; n++) {
        uint32_t i = n * step + thread_index();
        kept[n] += more[n];
        if (added && i < fours)
            x[i] = kept[n];
        squares += kept[n] * kept[n];
    }
    for (uint32_t i = KEPT_OF_NORM * step + thread_index(); i < fours; i += step) {
        floats4 value = x[i];
        if (added)
            x[i] = value += added[i];
        squares += value * value;
    }
    float mean = block_sum(squares[0] + squares[1] + squares[2] + squares[3],
                           (SHARED float *)shared_memory()) /
                 (float)(4 * fours);
    float scale = 1.0f / __builtin_sqrtf(mean + params->epsilon);
    uint32_t largest = 0;
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_NORM; n++) {
        uint32_t i = n * step + thread_index();
        if (i < fours)
            out[i] = kept[n] = kept[n] * scale * weight[i];
        largest = largest_of_four(kept[n], largest);
    }
    for (uint32_t i = KEPT_OF_NORM * step + thread_index(); i < fours; i += step) {
        floats4 value = x[i] * scale * weight[i];
        out[i] = value;
        largest = largest_of_four(value, largest);
    }
    float factor = enter_packed(format, packed, 4 * fours, block_max_bits(largest));
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_NORM; n++) {
        uint32_t i = n * step + thread_index();
        if (i < fours)
            store_halves(format, packed, i, kept[n], factor);
    }
    for (uint32_t i = KEPT_OF_NORM * step + thread_index(); i < fours; i += step)
        store_halves(format, packed, i, out[i], factor);
}

/* Operands of swiglu, all rows at multiples of 16 bytes. words[0]: format. */
KERNEL(swiglu_halves)
{
    ENTER(call);
    uint32_t fours = (uint32_t)call.operands[2].width / 4, step = thread_count();
    uint32_t format = call.words[0], largest = 0;
    const GLOBAL floats4 *gate = (GLOBAL floats4 *)row_at(&call.operands[0], block_x());
    const GLOBAL floats4 *up = (GLOBAL floats4 *)row_at(&call.operands[1], block_x());
    GLOBAL floats4 *out = (GLOBAL floats4 *)row_at(&call.operands[2], block_x());
    GLOBAL uint8_t *packed = row_at(&call.operands[3], block_x());
    const floats4 zero = { 0 };
    floats4 kept[KEPT_OF_SWIGLU];
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_SWIGLU; n++) {
        uint32_t i = n * step + thread_index();
        kept[n] = zero;
        if (i >= fours)
            continue;
        floats4 x = gate[i], y = up[i];
        UNROLL
        for (uint32_t v = 0; v < 4; v++)
            kept[n][v] = silu(x[v]) * y[v];
        out[i] = kept[n];
        largest = largest_of_four(kept[n], largest);
    }
    for (uint32_t i = KEPT_OF_SWIGLU * step + thread_index(); i < fours; i += step) {
        floats4 x = gate[i], y = up[i];
        UNROLL
        for (uint32_t v = 0; v < 4; v++)
            x[v] = silu(x[v]) * y[v];
        out[i] = x;
        largest = largest_of_four(x, largest);
    }
    float factor = enter_packed(format, packed, 4 * fours, block_max_bits(largest));
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_SWIGLU; n++) {
        uint32_t i = n * step + thread_index();
        if (i < fours)
            store_halves(format, packed, i, kept[n], factor);
    }
    for (uint32_t i = KEPT_OF_SWIGLU * step + thread_index(); i < fours; i += step)
        store_halves(format, packed, i, out[i], factor);
}

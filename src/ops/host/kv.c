/* kv.c - kv_append: rows of keys and values, converted, into the slots of the cache.
 *
 * Every path stores the same bytes. F32: as it is. F16: to nearest even, as f16_from_f32: too large
 * becomes infinity, NaN stays NaN. Q8_0: finite blocks as quant_encode_row; a block of 32 with a
 * NaN or infinity gets the scale NaN and quants 0, so that what is computed with it is NaN and not
 * a plausible number. A token with a bad slot stores neither row. */
#include "ops/host/kernels.h"

#include "ops/host/rows.h"
#include "ops/host/simd.h"
#include "tensor/quant.h"

#include <math.h>
#include <string.h>

/* A Q8_0 block: the scale, f16, then the quants. */
#define BLOCK_VALUES 32
#define BLOCK_BYTES 34
#define F16_NAN_BITS 0x7E00u
#define F32_INFINITY_BITS 0x7F800000u

typedef void (*convert_function)(const float *values, size_t count, uint8_t *bytes);

struct conversions {
    convert_function to_f16, to_q8_0;
};

static void store_row(const struct conversions *convert, const struct device_host_operand *cache,
                      uint64_t slot, const float *values)
{
    uint8_t *target = row_bytes(cache, slot);
    size_t count = cache->shape.dims[0];
    if (cache->dtype == DTYPE_F16)
        convert->to_f16(values, count, target);
    else if (cache->dtype == DTYPE_Q8_0)
        convert->to_q8_0(values, count, target);
    else
        memcpy(target, values, count * sizeof(float));
}

static void append_tile(const struct device_host_call *call, uint64_t tile,
                        const struct conversions *convert)
{
    const struct device_host_operand *k = &call->operands[KV_APPEND_K]; /* [kv_dim, tokens] */
    const struct device_host_operand *v = &call->operands[KV_APPEND_V]; /* [kv_dim, tokens] */
    const struct device_host_operand *slots = &call->operands[KV_APPEND_SLOTS]; /* [tokens] */
    const struct device_host_operand *keys =
        &call->operands[KV_APPEND_KEYS]; /* [kv_dim, slot_count] */
    const struct device_host_operand *values =
        &call->operands[KV_APPEND_VALUES]; /* [kv_dim, slot_count] */
    struct row_range tokens = tile_tokens(tile, k);
    for (uint64_t t = tokens.first; t < tokens.end; t++) {
        uint64_t slot = list_index(slots, t);
        if (!device_index_ok(call, KV_APPEND_SLOTS, slot, keys->shape.dims[1]))
            continue;
        store_row(convert, keys, slot, row_f32(k, t));
        store_row(convert, values, slot, row_f32(v, t));
    }
}

/* ---- Portable ------------------------------------------------------------------------------- */

static void store_half(uint8_t *bytes, uint16_t half)
{
    memcpy(bytes, &half, sizeof(half));
}

static void to_f16_portable(const float *values, size_t count, uint8_t *bytes)
{
    for (size_t i = 0; i < count; i++)
        store_half(bytes + 2 * i, f16_from_f32(values[i]));
}

static void to_q8_0_portable(const float *values, size_t count, uint8_t *bytes)
{
    for (size_t i = 0; i < count; i += BLOCK_VALUES, bytes += BLOCK_BYTES) {
        if (quant_first_bad(values + i, BLOCK_VALUES) < BLOCK_VALUES) {
            store_half(bytes, F16_NAN_BITS);
            memset(bytes + 2, 0, BLOCK_VALUES);
        } else {
            quant_encode_row(DTYPE_Q8_0, values + i, BLOCK_VALUES, bytes);
        }
    }
}

void host_kv_append_tile_portable(const struct device_host_call *call, uint64_t tile)
{
    append_tile(call, tile, &(struct conversions){ to_f16_portable, to_q8_0_portable });
}

/* ---- AVX2 ----------------------------------------------------------------------------------- */

#if defined(__x86_64__)

TARGET_AVX2 static void to_f16_avx2(const float *values, size_t count, uint8_t *bytes)
{
    size_t whole = count - count % 8;
    for (size_t i = 0; i < whole; i += 8) {
        __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(bytes + 2 * i), halves);
    }
    to_f16_portable(values + whole, count - whole, bytes + 2 * whole);
}

/* Bits of the largest magnitude: those of non-negative floats are in the order of their values,
 * with infinity and NaN at the end. */
INLINE_AVX2 uint32_t largest_magnitude_bits(const __m256 x[4])
{
    __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i largest = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++)
        largest = _mm256_max_epu32(largest, _mm256_and_si256(_mm256_castps_si256(x[i]), magnitude));
    __m128i half = _mm_max_epu32(_mm256_castsi256_si128(largest),
                                 _mm256_extracti128_si256(largest, 1));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4E));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(half, _mm_shuffle_epi32(half, 0xB1)));
}

/* x * inverse, cut to -127..127, to nearest, half away from zero. */
INLINE_AVX2 __m256i find_levels(__m256 x, float inverse)
{
    __m256 value = _mm256_mul_ps(x, _mm256_set1_ps(inverse));
    value = _mm256_min_ps(_mm256_max_ps(value, _mm256_set1_ps(-127)), _mm256_set1_ps(127));
    __m256i whole = _mm256_cvttps_epi32(value);
    __m256 rest = _mm256_sub_ps(value, _mm256_cvtepi32_ps(whole));
    __m256 up = _mm256_cmp_ps(rest, _mm256_set1_ps(0.5f), _CMP_GE_OQ); /* -1 where it holds */
    __m256 down = _mm256_cmp_ps(rest, _mm256_set1_ps(-0.5f), _CMP_LE_OQ);
    whole = _mm256_sub_epi32(whole, _mm256_castps_si256(up));
    return _mm256_add_epi32(whole, _mm256_castps_si256(down));
}

/* Four vectors of i32 that fit i8, as 32 bytes. Packing works within halves of 16 bytes. */
INLINE_AVX2 __m256i narrow(const __m256i levels[4])
{
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(levels[0], levels[1]),
                                       _mm256_packs_epi32(levels[2], levels[3]));
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

TARGET_AVX2 static void to_q8_0_avx2(const float *values, size_t count, uint8_t *bytes)
{
    const float overflow = 65520; /* from here on an f16 would be infinity */
    const float limit = 65504;    /* the largest f16 */
    for (size_t i = 0; i < count; i += BLOCK_VALUES, bytes += BLOCK_BYTES) {
        __m256 x[4];
        for (size_t part = 0; part < 4; part++)
            x[part] = _mm256_loadu_ps(values + i + 8 * part);
        uint32_t bits = largest_magnitude_bits(x);
        if (bits >= F32_INFINITY_BITS) {
            to_q8_0_portable(values + i, BLOCK_VALUES, bytes);
            continue;
        }
        float scale;
        memcpy(&scale, &bits, sizeof(scale));
        scale /= 127;
        scale = scale < overflow ? scale : limit;
        float inverse = 1 / scale;
        if (!isfinite(inverse))
            inverse = 0; /* the scale is 0 in f16 */
        __m256i levels[4];
        for (size_t part = 0; part < 4; part++)
            levels[part] = find_levels(x[part], inverse);
        store_half(bytes, f16_from_f32(scale));
        _mm256_storeu_si256((__m256i *)(void *)(bytes + 2), narrow(levels));
    }
}

void host_kv_append_tile_avx2(const struct device_host_call *call, uint64_t tile)
{
    append_tile(call, tile, &(struct conversions){ to_f16_avx2, to_q8_0_avx2 });
}

#endif

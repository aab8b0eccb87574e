/* attention_avx512.c - attention's inner functions on AVX-512.
 *
 * Order. dot: 16 lanes, lane l takes products l, l + 16, ..., by one fused multiply-add each; then
 * in each quarter of the vector (0 + 2) + (1 + 3), and of the quarters (0 + 2) + (1 + 3). Sum of a
 * chunk's weights: 16 lanes, then l and l + 8, l + 4, l + 2, l + 1. Weighted values: one fused
 * multiply-add each. exp: exp_avx512. */
#include "ops/host/attention.h"
#include "ops/host/kernels.h"

#if defined(__x86_64__)

#include "ops/host/simd.h"

#include <string.h>

#define BLOCK_VALUES 32
#define BLOCK_BYTES 34

/* ---- Cache rows ----------------------------------------------------------------------------- */

INLINE_AVX512 __m512 block_scale(const uint8_t *block)
{
    uint16_t half;
    memcpy(&half, block, sizeof(half));
    return _mm512_cvtph_ps(_mm256_set1_epi16((short)half));
}

INLINE_AVX512 __m512 load_levels(const uint8_t *levels)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)levels);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

/* Whole blocks. */
INLINE_AVX512 void decode_blocks(const uint8_t *blocks, size_t count, float *values)
{
    for (size_t i = 0; i < count; i += BLOCK_VALUES, blocks += BLOCK_BYTES) {
        __m512 scale = block_scale(blocks);
        _mm512_store_ps(values + i, _mm512_mul_ps(load_levels(blocks + 2), scale));
        _mm512_store_ps(values + i + 16, _mm512_mul_ps(load_levels(blocks + 18), scale));
    }
}

/* From anywhere in a block to anywhere in another; eight quants never cross a block. */
INLINE_AVX512 void decode_q8_0(const uint8_t *row, size_t first, size_t count, float *values)
{
    for (size_t i = first; i < first + count; i += 8) {
        const uint8_t *block = row + i / BLOCK_VALUES * BLOCK_BYTES;
        const uint8_t *levels = block + 2 + i % BLOCK_VALUES;
        __m256i whole = _mm256_cvtepi8_epi32(
            _mm_loadl_epi64((const __m128i *)(const void *)levels));
        __m256 scale = _mm512_castps512_ps256(block_scale(block));
        _mm256_storeu_ps(values + i - first, _mm256_mul_ps(_mm256_cvtepi32_ps(whole), scale));
    }
}

INLINE_AVX512 void decode_f16(const uint8_t *row, size_t count, float *values)
{
    for (size_t i = 0; i < count; i += 16) {
        __mmask16 mask = mask_avx512(count - i);
        _mm512_store_ps(values + i, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, row + 2 * i)));
    }
}

TARGET_AVX512 static void decode(enum dtype dtype, const uint8_t *row, size_t first, size_t count,
                                 float *values)
{
    if (dtype == DTYPE_F16)
        decode_f16(row + 2 * first, count, values);
    else if (dtype != DTYPE_Q8_0)
        memcpy(values, row + 4 * first, count * sizeof(float));
    else if (first % BLOCK_VALUES == 0 && count % BLOCK_VALUES == 0)
        decode_blocks(row + first / BLOCK_VALUES * BLOCK_BYTES, count, values);
    else
        decode_q8_0(row, first, count, values);
}

/* ---- Scores --------------------------------------------------------------------------------- */

/* Lane r of the result is the sum of the lanes of sums[r]. */
INLINE_AVX512 __m128 sum_rows(const __m512 sums[ATTENTION_ROWS])
{
    __m512 rows_01 = _mm512_add_ps(_mm512_unpacklo_ps(sums[0], sums[1]),
                                   _mm512_unpackhi_ps(sums[0], sums[1]));
    __m512 rows_23 = _mm512_add_ps(_mm512_unpacklo_ps(sums[2], sums[3]),
                                   _mm512_unpackhi_ps(sums[2], sums[3]));
    __m512 quarters = _mm512_add_ps(_mm512_shuffle_ps(rows_01, rows_23, 0x44),
                                    _mm512_shuffle_ps(rows_01, rows_23, 0xEE));
    __m256 halves = _mm256_add_ps(_mm512_castps512_ps256(quarters),
                                  _mm512_extractf32x8_ps(quarters, 1));
    return _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
}

/* head_count heads from the first one on; a constant where this is inlined. */
INLINE_AVX512 void score_heads(const struct attention_heads *heads, size_t first, size_t head_count,
                               const float *rows, size_t slot, float scale)
{
    size_t dims = heads->dims;
    const float *queries = heads->queries + first * dims;
    __m512 sums[4][ATTENTION_ROWS];
    for (size_t h = 0; h < head_count; h++) {
        for (size_t r = 0; r < ATTENTION_ROWS; r++)
            sums[h][r] = _mm512_setzero_ps();
    }
    for (size_t d = 0; d < dims; d += 16) {
        __m512 keys[ATTENTION_ROWS];
        for (size_t r = 0; r < ATTENTION_ROWS; r++)
            keys[r] = _mm512_load_ps(rows + r * dims + d);
        for (size_t h = 0; h < head_count; h++) {
            __m512 query = _mm512_load_ps(queries + h * dims + d);
            for (size_t r = 0; r < ATTENTION_ROWS; r++)
                sums[h][r] = _mm512_fmadd_ps(query, keys[r], sums[h][r]);
        }
    }
    for (size_t h = 0; h < head_count; h++)
        _mm_store_ps(heads->scores + (first + h) * ATTENTION_SCORES + slot,
                     _mm_mul_ps(sum_rows(sums[h]), _mm_set1_ps(scale)));
}

TARGET_AVX512 static void score(const struct attention_heads *heads, const float *rows, size_t slot,
                                float scale)
{
    size_t head = 0;
    for (; head + 4 <= heads->count; head += 4)
        score_heads(heads, head, 4, rows, slot, scale);
    for (; head + 2 <= heads->count; head += 2)
        score_heads(heads, head, 2, rows, slot, scale);
    if (head < heads->count)
        score_heads(heads, head, 1, rows, slot, scale);
}

/* ---- Weights -------------------------------------------------------------------------------- */

TARGET_AVX512 static void limit(float *scores, size_t count, float cap)
{
    __m512 most = _mm512_set1_ps(cap);
    for (size_t i = 0; i < count; i += 16)
        _mm512_store_ps(
            scores + i,
            _mm512_mul_ps(most, tanh_avx512(_mm512_div_ps(_mm512_load_ps(scores + i), most))));
}

TARGET_AVX512 static float largest(const float *scores, size_t count)
{
    __m512 lanes = _mm512_load_ps(scores);
    for (size_t i = 16; i < count; i += 16)
        lanes = _mm512_max_ps(lanes, _mm512_load_ps(scores + i));
    return _mm512_reduce_max_ps(lanes);
}

TARGET_AVX512 static float weigh(float *scores, size_t count, float maximum)
{
    __m512 sums = _mm512_setzero_ps();
    for (size_t i = 0; i < count; i += 16) {
        __m512 weights = exp_avx512(
            _mm512_sub_ps(_mm512_load_ps(scores + i), _mm512_set1_ps(maximum)));
        _mm512_store_ps(scores + i, weights);
        sums = _mm512_add_ps(sums, weights);
    }
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(sums), _mm512_extractf32x8_ps(sums, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

/* ---- Weighted values ------------------------------------------------------------------------ */

/* head_count and row_count are constants where this is inlined. */
INLINE_AVX512 void gather_heads(const struct attention_heads *heads, size_t first,
                                size_t head_count, const float *rows, size_t row_count, size_t slot)
{
    size_t dims = heads->dims;
    __m512 weights[4][ATTENTION_ROWS];
    for (size_t h = 0; h < head_count; h++) {
        for (size_t r = 0; r < row_count; r++)
            weights[h][r] = _mm512_set1_ps(
                heads->scores[(first + h) * ATTENTION_SCORES + slot + r]);
    }
    for (size_t d = 0; d < dims; d += 16) {
        __m512 values[ATTENTION_ROWS];
        for (size_t r = 0; r < row_count; r++)
            values[r] = _mm512_load_ps(rows + r * dims + d);
        for (size_t h = 0; h < head_count; h++) {
            float *chunk = heads->chunk + (first + h) * dims + d;
            __m512 sum = _mm512_load_ps(chunk);
            for (size_t r = 0; r < row_count; r++)
                sum = _mm512_fmadd_ps(weights[h][r], values[r], sum);
            _mm512_store_ps(chunk, sum);
        }
    }
}

INLINE_AVX512 void gather_rows(const struct attention_heads *heads, const float *rows,
                               size_t row_count, size_t slot)
{
    size_t head = 0;
    for (; head + 4 <= heads->count; head += 4)
        gather_heads(heads, head, 4, rows, row_count, slot);
    for (; head < heads->count; head++)
        gather_heads(heads, head, 1, rows, row_count, slot);
}

TARGET_AVX512 static void gather(const struct attention_heads *heads, const float *rows,
                                 size_t row_count, size_t slot)
{
    if (row_count == ATTENTION_ROWS) {
        gather_rows(heads, rows, ATTENTION_ROWS, slot);
        return;
    }
    for (size_t r = 0; r < row_count; r++)
        gather_rows(heads, rows + r * heads->dims, 1, slot + r);
}

void host_attention_tile_avx512(const struct device_host_call *call, uint64_t tile)
{
    host_attention_tile(
        call, tile, &(struct attention_methods){ decode, score, limit, largest, weigh, gather });
}

#endif

/* attention_avx2.c - attention's inner functions on AVX2.
 *
 * Order. dot: 8 lanes, lane l takes products l, l + 8, ..., by one fused multiply-add each; then
 * lanes l and l + 1, those sums and their neighbours, and the two halves of the vector: in each
 * half (0 + 1) + (2 + 3), then low + high. Sum of a chunk's weights: 8 lanes, then l and l + 4, l +
 * 2, l + 1. Weighted values: one fused multiply-add each. exp: exp_avx2. */
#include "ops/host/attention.h"
#include "ops/host/kernels.h"

#if defined(__x86_64__)

#include "ops/host/simd.h"

#include <string.h>

#define BLOCK_VALUES 32
#define BLOCK_BYTES 34

/* ---- Cache rows ----------------------------------------------------------------------------- */

INLINE_AVX2 __m256 block_scale(const uint8_t *block)
{
    uint16_t half;
    memcpy(&half, block, sizeof(half));
    return _mm256_cvtph_ps(_mm_set1_epi16((short)half));
}

INLINE_AVX2 __m256 load_levels(const uint8_t *levels)
{
    __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)levels);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

/* Whole blocks. */
INLINE_AVX2 void decode_blocks(const uint8_t *blocks, size_t count, float *values)
{
    for (size_t i = 0; i < count; i += BLOCK_VALUES, blocks += BLOCK_BYTES) {
        __m256 scale = block_scale(blocks);
        for (size_t part = 0; part < BLOCK_VALUES; part += 8)
            _mm256_store_ps(values + i + part,
                            _mm256_mul_ps(load_levels(blocks + 2 + part), scale));
    }
}

/* From anywhere in a block to anywhere in another; eight quants never cross a block. */
INLINE_AVX2 void decode_q8_0(const uint8_t *row, size_t first, size_t count, float *values)
{
    for (size_t i = first; i < first + count; i += 8) {
        const uint8_t *block = row + i / BLOCK_VALUES * BLOCK_BYTES;
        __m256 levels = load_levels(block + 2 + i % BLOCK_VALUES);
        _mm256_store_ps(values + i - first, _mm256_mul_ps(levels, block_scale(block)));
    }
}

INLINE_AVX2 void decode_f16(const uint8_t *row, size_t count, float *values)
{
    for (size_t i = 0; i < count; i += 8) {
        __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)(row + 2 * i));
        _mm256_store_ps(values + i, _mm256_cvtph_ps(halves));
    }
}

TARGET_AVX2 static void decode(enum dtype dtype, const uint8_t *row, size_t first, size_t count,
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
INLINE_AVX2 __m128 sum_rows(const __m256 sums[ATTENTION_ROWS])
{
    __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(sums[0], sums[1]),
                                  _mm256_hadd_ps(sums[2], sums[3]));
    return _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
}

/* head_count heads from the first one on; a constant where this is inlined. */
INLINE_AVX2 void score_heads(const struct attention_heads *heads, size_t first, size_t head_count,
                             const float *rows, size_t slot, float scale)
{
    size_t dims = heads->dims;
    const float *queries = heads->queries + first * dims;
    __m256 sums[2][ATTENTION_ROWS];
    for (size_t h = 0; h < head_count; h++) {
        for (size_t r = 0; r < ATTENTION_ROWS; r++)
            sums[h][r] = _mm256_setzero_ps();
    }
    for (size_t d = 0; d < dims; d += 8) {
        __m256 keys[ATTENTION_ROWS];
        for (size_t r = 0; r < ATTENTION_ROWS; r++)
            keys[r] = _mm256_load_ps(rows + r * dims + d);
        for (size_t h = 0; h < head_count; h++) {
            __m256 query = _mm256_load_ps(queries + h * dims + d);
            for (size_t r = 0; r < ATTENTION_ROWS; r++)
                sums[h][r] = _mm256_fmadd_ps(query, keys[r], sums[h][r]);
        }
    }
    for (size_t h = 0; h < head_count; h++)
        _mm_store_ps(heads->scores + (first + h) * ATTENTION_SCORES + slot,
                     _mm_mul_ps(sum_rows(sums[h]), _mm_set1_ps(scale)));
}

TARGET_AVX2 static void score(const struct attention_heads *heads, const float *rows, size_t slot,
                              float scale)
{
    size_t head = 0;
    for (; head + 2 <= heads->count; head += 2)
        score_heads(heads, head, 2, rows, slot, scale);
    if (head < heads->count)
        score_heads(heads, head, 1, rows, slot, scale);
}

/* ---- Weights -------------------------------------------------------------------------------- */

TARGET_AVX2 static void limit(float *scores, size_t count, float cap)
{
    __m256 most = _mm256_set1_ps(cap);
    for (size_t i = 0; i < count; i += 8)
        _mm256_store_ps(
            scores + i,
            _mm256_mul_ps(most, tanh_avx2(_mm256_div_ps(_mm256_load_ps(scores + i), most))));
}

TARGET_AVX2 static float largest(const float *scores, size_t count)
{
    __m256 lanes = _mm256_load_ps(scores);
    for (size_t i = 8; i < count; i += 8)
        lanes = _mm256_max_ps(lanes, _mm256_load_ps(scores + i));
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

TARGET_AVX2 static float weigh(float *scores, size_t count, float maximum)
{
    __m256 sums = _mm256_setzero_ps();
    for (size_t i = 0; i < count; i += 8) {
        __m256 weights = exp_avx2(
            _mm256_sub_ps(_mm256_load_ps(scores + i), _mm256_set1_ps(maximum)));
        _mm256_store_ps(scores + i, weights);
        sums = _mm256_add_ps(sums, weights);
    }
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

/* ---- Weighted values ------------------------------------------------------------------------ */

/* head_count and row_count are constants where this is inlined. The weights stay in registers, and
 * each load of a row serves all heads. */
INLINE_AVX2 void gather_heads(const struct attention_heads *heads, size_t first, size_t head_count,
                              const float *rows, size_t row_count, size_t slot)
{
    size_t dims = heads->dims;
    __m256 weights[2][ATTENTION_ROWS];
    float *chunk = heads->chunk + first * dims;
    for (size_t h = 0; h < head_count; h++)
        for (size_t r = 0; r < row_count; r++)
            weights[h][r] = _mm256_broadcast_ss(heads->scores + (first + h) * ATTENTION_SCORES +
                                                slot + r);
    for (size_t d = 0; d < dims; d += 8) {
        __m256 sums[2];
        for (size_t h = 0; h < head_count; h++)
            sums[h] = _mm256_load_ps(chunk + h * dims + d);
        for (size_t r = 0; r < row_count; r++) {
            __m256 values = _mm256_load_ps(rows + r * dims + d);
            /* In a register, or gcc would load it again for each use. */
            __asm__("" : "+x"(values));
            for (size_t h = 0; h < head_count; h++)
                sums[h] = _mm256_fmadd_ps(weights[h][r], values, sums[h]);
        }
        for (size_t h = 0; h < head_count; h++)
            _mm256_store_ps(chunk + h * dims + d, sums[h]);
    }
}

INLINE_AVX2 void gather_rows(const struct attention_heads *heads, const float *rows,
                             size_t row_count, size_t slot)
{
    size_t head = 0;
    for (; head + 2 <= heads->count; head += 2)
        gather_heads(heads, head, 2, rows, row_count, slot);
    if (head < heads->count)
        gather_heads(heads, head, 1, rows, row_count, slot);
}

TARGET_AVX2 static void gather(const struct attention_heads *heads, const float *rows,
                               size_t row_count, size_t slot)
{
    if (row_count == ATTENTION_ROWS) {
        gather_rows(heads, rows, ATTENTION_ROWS, slot);
        return;
    }
    for (size_t r = 0; r < row_count; r++)
        gather_rows(heads, rows + r * heads->dims, 1, slot + r);
}

void host_attention_tile_avx2(const struct device_host_call *call, uint64_t tile)
{
    host_attention_tile(
        call, tile, &(struct attention_methods){ decode, score, limit, largest, weigh, gather });
}

#endif

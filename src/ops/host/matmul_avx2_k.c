/* matmul_avx2_k.c - Q4_K, Q5_K and Q6_K on AVX2. Order: see matmul_avx2.h. */
#include "ops/host/matmul_avx2.h"

#if defined(__x86_64__)

/* The 8 scales and 8 mins of a Q4_K or Q5_K block, d and dmin applied. */
struct k_scales {
    float scales[8];
    __m256 mins;
};

/* 12 bytes, three dwords: see matmul_avx512_q4_k.c for the picture. */
AVX2_INLINE struct k_scales load_scales(const uint8_t *block)
{
    uint32_t words[3];
    memcpy(words, block + 4, sizeof(words));
    uint64_t scales = (uint64_t)(words[0] & 0x3F3F3F3Fu) |
                      (uint64_t)((words[2] & 0x0F0F0F0Fu) | (words[0] >> 2 & 0x30303030u)) << 32;
    uint64_t mins = (uint64_t)(words[1] & 0x3F3F3F3Fu) |
                    (uint64_t)((words[2] >> 4 & 0x0F0F0F0Fu) | (words[1] >> 2 & 0x30303030u)) << 32;
    __m256i scale_words = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)scales));
    __m256i min_words = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)mins));
    struct k_scales result;
    _mm256_storeu_ps(result.scales, _mm256_mul_ps(_mm256_set1_ps(load_f16(block)),
                                                  _mm256_cvtepi32_ps(scale_words)));
    result.mins = _mm256_mul_ps(_mm256_set1_ps(load_f16(block + 2)), _mm256_cvtepi32_ps(min_words));
    return result;
}

/* 32 nibbles of block j: low ones if j is even, else high. */
AVX2_INLINE __m256i unpack_nibbles(__m256i bytes, size_t j)
{
    return _mm256_and_si256(j % 2 == 0 ? bytes : _mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
}

/* Bit j of each byte, as 16 or 0. */
AVX2_INLINE __m256i fifth_bits(__m256i bytes, size_t j)
{
    __m256i bit = _mm256_set1_epi8((char)(1u << j));
    __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

AVX2_INLINE void dot_rows_q45_k(const struct host_matmul_task *task, size_t o, size_t a,
                                size_t row_count, bool has_fifth_bits)
{
    const struct host_act_block *acts[ACT_ROWS];
    __m256 sums[2][ACT_ROWS];
    __m256 min_sums[ACT_ROWS];
    const uint8_t *weights = weight_row(task, o);
    size_t block_bytes = has_fifth_bits ? Q5_K_BYTES : Q4_K_BYTES;
    for (size_t r = 0; r < row_count; r++) {
        acts[r] = act_blocks(task, a + r);
        sums[0][r] = sums[1][r] = min_sums[r] = _mm256_setzero_ps();
    }
    for (size_t i = 0; i < task->k / K_BLOCK; i++, weights += block_bytes) {
        const uint8_t *nibbles = weights + (has_fifth_bits ? 48 : 16);
        struct k_scales scales = load_scales(weights);
        for (size_t r = 0; r < row_count; r++) {
            const struct host_act_block *blocks = acts[r] + 8 * i;
            __m256 act_sums = _mm256_setr_ps(blocks[0].scaled_sum, blocks[1].scaled_sum,
                                             blocks[2].scaled_sum, blocks[3].scaled_sum,
                                             blocks[4].scaled_sum, blocks[5].scaled_sum,
                                             blocks[6].scaled_sum, blocks[7].scaled_sum);
            min_sums[r] = _mm256_fmadd_ps(scales.mins, act_sums, min_sums[r]);
        }
        for (size_t j = 0; j < 8; j++) {
            __m256i levels = unpack_nibbles(load_256(nibbles + 32 * (j / 2)), j);
            if (has_fifth_bits)
                levels = _mm256_or_si256(levels, fifth_bits(load_256(weights + 16), j));
            for (size_t r = 0; r < row_count; r++) {
                const struct host_act_block *block = acts[r] + 8 * i + j;
                __m256 dots = dot_unsigned(levels, load_256(block->levels));
                sums[j % 2][r] = _mm256_fmadd_ps(
                    dots, _mm256_set1_ps(scales.scales[j] * block->scale), sums[j % 2][r]);
            }
        }
    }
    for (size_t r = 0; r < row_count; r++)
        task->output[(a + r) * task->output_stride + o] = sum_lanes(
            _mm256_sub_ps(_mm256_add_ps(sums[0][r], sums[1][r]), min_sums[r]));
}

/* Levels of block j of 8, -32 to 31 (matmul_avx512_q6_k.c says where they are). */
AVX2_INLINE __m256i unpack_q6_k(const uint8_t *block, size_t j)
{
    size_t half = j / 4;
    size_t g = j % 4;
    __m256i nibbles = unpack_nibbles(load_256(block + 64 * half + 32 * (g % 2)), g / 2);
    __m256i bits = load_256(block + 128 + 32 * half);
    __m256i moved = g == 0   ? _mm256_slli_epi16(bits, 4)
                    : g == 1 ? _mm256_slli_epi16(bits, 2)
                    : g == 2 ? bits
                             : _mm256_srli_epi16(bits, 2);
    __m256i upper = _mm256_and_si256(moved, _mm256_set1_epi8(0x30));
    return _mm256_sub_epi8(_mm256_or_si256(nibbles, upper), _mm256_set1_epi8(32));
}

/* Lanes 0-3 belong to the first 16 values of a block and their scale, lanes 4-7 to the second. */
AVX2_INLINE void dot_rows_q6_k(const struct host_matmul_task *task, size_t o, size_t a,
                               size_t row_count, size_t k)
{
    const struct host_act_block *acts[ACT_ROWS];
    __m256 sums[2][ACT_ROWS];
    const uint8_t *weights = weight_row(task, o);
    for (size_t r = 0; r < row_count; r++) {
        acts[r] = act_blocks(task, a + r);
        sums[0][r] = sums[1][r] = _mm256_setzero_ps();
    }
    for (size_t i = 0; i < k / K_BLOCK; i++, weights += Q6_K_BYTES) {
        float d = load_f16(weights + 208);
        for (size_t j = 0; j < 8; j++) {
            float first = d * (float)(int8_t)weights[192 + 2 * j];
            float second = d * (float)(int8_t)weights[193 + 2 * j];
            __m256 scales = _mm256_set_m128(_mm_set1_ps(second), _mm_set1_ps(first));
            __m256i levels = unpack_q6_k(weights, j);
            for (size_t r = 0; r < row_count; r++) {
                const struct host_act_block *block = acts[r] + 8 * i + j;
                __m256 factors = _mm256_mul_ps(scales, _mm256_set1_ps(block->scale));
                __m256 dots = dot_signed(levels, load_256(block->levels));
                sums[j % 2][r] = _mm256_fmadd_ps(dots, factors, sums[j % 2][r]);
            }
        }
    }
    for (size_t r = 0; r < row_count; r++)
        task->output[(a + r) * task->output_stride + o] = sum_lanes(
            _mm256_add_ps(sums[0][r], sums[1][r]));
}

AVX2 void matmul_avx2_q4_k(const struct host_matmul_task *task)
{
    FOR_EACH_ROWS(task, ACT_ROWS, dot_rows_q45_k, false);
}

AVX2 void matmul_avx2_q5_k(const struct host_matmul_task *task)
{
    FOR_EACH_ROWS(task, ACT_ROWS, dot_rows_q45_k, true);
}

AVX2 void matmul_avx2_q6_k(const struct host_matmul_task *task)
{
    FOR_EACH_ROWS(task, ACT_ROWS, dot_rows_q6_k, task->k);
}

#endif

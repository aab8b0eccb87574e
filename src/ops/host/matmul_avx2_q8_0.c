/* matmul_avx2_q8_0.c - Q8_0 and Q4_0 on AVX2. Order: see matmul_avx2.h. */
#include "ops/host/matmul_avx2.h"

#if defined(__x86_64__)

/* 16 bytes of nibbles: values 0-15 are in the low ones, 16-31 in the high. */
AVX2_INLINE __m256i unpack_q4_0(const uint8_t *nibbles)
{
    __m128i bytes = load_128(nibbles);
    __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes), _mm_srli_epi16(bytes, 4),
                                           1);
    __m256i levels = _mm256_and_si256(both, _mm256_set1_epi8(15));
    return _mm256_sub_epi8(levels, _mm256_set1_epi8(8));
}

enum simple_format { SIMPLE_Q8_0, SIMPLE_Q4_0 };

AVX2_INLINE size_t block_bytes(enum simple_format format)
{
    return format == SIMPLE_Q8_0 ? Q8_0_BYTES : Q4_0_BYTES;
}

AVX2_INLINE __m256 add_block(enum simple_format format, const uint8_t *weights,
                             const struct host_act_block *block, __m256 sums)
{
    __m256i levels = format == SIMPLE_Q8_0 ? load_256(weights + 2) : unpack_q4_0(weights + 2);
    float scale = load_f16(weights) * block->scale;
    return _mm256_fmadd_ps(dot_signed(levels, load_256(block->levels)), _mm256_set1_ps(scale),
                           sums);
}

AVX2_INLINE float dot_row(enum simple_format format, const uint8_t *weights,
                          const struct host_act_block *blocks, size_t block_count)
{
    __m256 even = _mm256_setzero_ps();
    __m256 odd = _mm256_setzero_ps();
    size_t b = 0;
    for (; b + 2 <= block_count; b += 2) {
        even = add_block(format, weights, &blocks[b], even);
        odd = add_block(format, weights + block_bytes(format), &blocks[b + 1], odd);
        weights += 2 * block_bytes(format);
    }
    if (b < block_count)
        even = add_block(format, weights, &blocks[b], even);
    return sum_lanes(_mm256_add_ps(even, odd));
}

AVX2 void matmul_avx2_q8_0(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++) {
        for (size_t a = 0; a < task->activation_rows; a++)
            task->output[a * task->output_stride + o] = dot_row(
                SIMPLE_Q8_0, weight_row(task, o), act_blocks(task, a), task->k / ACT_BLOCK);
    }
}

AVX2 void matmul_avx2_q4_0(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++) {
        for (size_t a = 0; a < task->activation_rows; a++)
            task->output[a * task->output_stride + o] = dot_row(
                SIMPLE_Q4_0, weight_row(task, o), act_blocks(task, a), task->k / ACT_BLOCK);
    }
}

#endif

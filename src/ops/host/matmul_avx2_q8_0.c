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

/* Block number b of one weight row with that of row_count activation rows. */
AVX2_INLINE void add_block(enum simple_format format, const uint8_t *weights,
                           const struct host_act_block *const *acts, size_t row_count, size_t b,
                           __m256 *sums)
{
    __m256i levels = format == SIMPLE_Q8_0 ? load_256(weights + 2) : unpack_q4_0(weights + 2);
    float d = load_f16(weights);
    for (size_t r = 0; r < row_count; r++) {
        const struct host_act_block *block = acts[r] + b;
        sums[r] = _mm256_fmadd_ps(dot_signed(levels, load_256(block->levels)),
                                  _mm256_set1_ps(d * block->scale), sums[r]);
    }
}

AVX2_INLINE void dot_rows(const struct host_matmul_task *task, size_t o, size_t a, size_t row_count,
                          enum simple_format format)
{
    const struct host_act_block *acts[ACT_ROWS];
    __m256 even[ACT_ROWS];
    __m256 odd[ACT_ROWS];
    size_t block_count = task->k / ACT_BLOCK;
    const uint8_t *weights = weight_row(task, o);
    for (size_t r = 0; r < row_count; r++) {
        acts[r] = act_blocks(task, a + r);
        even[r] = _mm256_setzero_ps();
        odd[r] = _mm256_setzero_ps();
    }
    size_t b = 0;
    for (; b + 2 <= block_count; b += 2) {
        add_block(format, weights, acts, row_count, b, even);
        add_block(format, weights + block_bytes(format), acts, row_count, b + 1, odd);
        weights += 2 * block_bytes(format);
    }
    if (b < block_count)
        add_block(format, weights, acts, row_count, b, even);
    for (size_t r = 0; r < row_count; r++)
        task->output[(a + r) * task->output_stride + o] = sum_lanes(_mm256_add_ps(even[r], odd[r]));
}

AVX2 void matmul_avx2_q8_0(const struct host_matmul_task *task)
{
    FOR_EACH_ROWS(task, ACT_ROWS, dot_rows, SIMPLE_Q8_0);
}

AVX2 void matmul_avx2_q4_0(const struct host_matmul_task *task)
{
    FOR_EACH_ROWS(task, ACT_ROWS, dot_rows, SIMPLE_Q4_0);
}

#endif

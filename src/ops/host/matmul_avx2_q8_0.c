/* matmul_avx2_q8_0.c - Q8_0 and Q4_0 on AVX2: blocks of 32 with an f16 scale in front. Order: see
 * matmul_avx2.h. */
#include "ops/host/matmul_avx2_few.h"
#include "ops/host/matmul_avx2_panel.h"

#if defined(__x86_64__)

enum simple_format { SIMPLE_Q8_0, SIMPLE_Q4_0 };

AVX2_INLINE size_t block_bytes(enum simple_format format)
{
    return format == SIMPLE_Q8_0 ? Q8_0_BYTES : Q4_0_BYTES;
}

/* ---- Few rows ------------------------------------------------------------------------------- */

/* 16 bytes of nibbles: values 0-15 are in the low ones, 16-31 in the high. Each is its quant + 8.
 */
AVX2_INLINE __m256i unpack_nibbles(const uint8_t *nibbles)
{
    __m256i twice = _mm256_broadcastsi128_si256(load_128(nibbles));
    __m256i shifts = _mm256_setr_epi64x(0, 0, 4, 4);
    return low_nibbles(_mm256_srlv_epi64(twice, shifts));
}

/* Dot products of eight blocks, times the weights' scales. */
AVX2_INLINE __m256 multiply_group(enum simple_format format, const uint8_t *blocks,
                                  const struct act_step *act)
{
    __m256i partial[GROUP_BLOCKS];
    __m256i dots;
    for (size_t b = 0; b < GROUP_BLOCKS; b++) {
        const uint8_t *block = blocks + b * block_bytes(format);
        __m256i acts = load_256(act->levels[b]);
        if (format == SIMPLE_Q8_0) {
            __m256i levels = load_256(block + 2);
            partial[b] = add_neighbours(multiply_signed(levels, _mm256_abs_epi8(levels), acts));
        } else {
            partial[b] = _mm256_maddubs_epi16(unpack_nibbles(block + 2), acts);
        }
    }
    if (format == SIMPLE_Q8_0)
        dots = sum_each_32(partial);
    else
        dots = _mm256_add_epi32(sum_each_16(partial), load_256(act->numbers[0]));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(dots), load_f16_apart(blocks, block_bytes(format)));
}

/* The last block_count blocks of a row, less than a group: the classes of the others stay. */
AVX2_INLINE __m128 add_tail(enum simple_format format, const uint8_t *blocks, size_t block_count,
                            const struct act_step *act, __m128 classes)
{
    uint8_t copy[GROUP_BLOCKS * Q8_0_BYTES] = { 0 };
    memcpy(copy, blocks, block_count * block_bytes(format));
    __m256 terms = multiply_group(format, copy, act);
    __m128i lanes = _mm_setr_epi32(0, 1, 2, 3);
    for (int turn = 0; turn < 2; turn++) {
        __m128i there = _mm_cmpgt_epi32(_mm_set1_epi32((int)block_count - 4 * turn), lanes);
        __m128 four = turn ? _mm256_extractf128_ps(terms, 1) : _mm256_castps256_ps128(terms);
        classes = _mm_blendv_ps(classes,
                                _mm_fmadd_ps(four, _mm_load_ps(act->scales + 4 * turn), classes),
                                _mm_castsi128_ps(there));
    }
    return classes;
}

AVX2_INLINE __m128 sum_row(enum simple_format format, const struct host_matmul_task *task,
                           const uint8_t *row, const struct act_step *act)
{
    size_t block_count = task->k / ACT_BLOCK;
    size_t group_bytes = GROUP_BLOCKS * block_bytes(format);
    __m128 classes = _mm_setzero_ps();
    for (size_t b = 0; b + GROUP_BLOCKS <= block_count; b += GROUP_BLOCKS) {
        fetch_ahead(task, row, group_bytes);
        classes = add_terms(classes, multiply_group(format, row, act), act);
        row += group_bytes;
        act++;
    }
    if (block_count % GROUP_BLOCKS != 0)
        classes = add_tail(format, row, block_count % GROUP_BLOCKS, act, classes);
    return classes;
}

AVX2_INLINE __m128 sum_row_q8_0(const struct host_matmul_task *task, const uint8_t *row,
                                const struct act_step *act)
{
    return sum_row(SIMPLE_Q8_0, task, row, act);
}

AVX2_INLINE __m128 sum_row_q4_0(const struct host_matmul_task *task, const uint8_t *row,
                                const struct act_step *act)
{
    return sum_row(SIMPLE_Q4_0, task, row, act);
}

AVX2 void matmul_avx2_q8_0_few(const struct host_matmul_task *task)
{
    few_rows(task, ACT_AT(offset_8), ACT_AT(offset_8), sum_row_q8_0);
}

AVX2 void matmul_avx2_q4_0_few(const struct host_matmul_task *task)
{
    few_rows(task, ACT_AT(offset_8), ACT_AT(offset_8), sum_row_q4_0);
}

/* ---- Many rows ------------------------------------------------------------------------------ */

/* Two blocks for each of the panel: quants, then their magnitudes. */
AVX2 static void unpack_q8_0(const uint8_t *const rows[PANEL_ROWS], size_t k,
                             struct panel_block *panel)
{
    size_t block_count = k / ACT_BLOCK;
    for (size_t b = 0; b < block_count; b++) {
        struct panel_block *block = &panel[2 * panel_position(b, block_count)];
        size_t offset = b * Q8_0_BYTES;
        for (size_t r = 0; r < PANEL_ROWS; r += 8) {
            for (size_t half = 0; half < 2; half++) {
                __m256i words[4];
                panel_transpose(rows + r, offset + 2 + 16 * half, words);
                for (size_t i = 0; i < 4; i++) {
                    store_256(block[0].levels[4 * half + i] + 4 * r, words[i]);
                    store_256(block[1].levels[4 * half + i] + 4 * r, _mm256_abs_epi8(words[i]));
                }
            }
            _mm256_store_ps(block->scales + r, panel_halfs(rows + r, offset));
        }
    }
}

AVX2 static void unpack_q4_0(const uint8_t *const rows[PANEL_ROWS], size_t k,
                             struct panel_block *panel)
{
    size_t block_count = k / ACT_BLOCK;
    for (size_t b = 0; b < block_count; b++) {
        struct panel_block *block = &panel[panel_position(b, block_count)];
        size_t offset = b * Q4_0_BYTES;
        for (size_t r = 0; r < PANEL_ROWS; r += 8) {
            __m256i words[4];
            panel_transpose(rows + r, offset + 2, words);
            for (size_t i = 0; i < 4; i++) {
                store_256(block->levels[i] + 4 * r, low_nibbles(words[i]));
                store_256(block->levels[4 + i] + 4 * r, high_nibbles(words[i]));
            }
            _mm256_store_ps(block->scales + r, panel_halfs(rows + r, offset));
        }
    }
}

void matmul_avx2_q8_0_many(const struct host_matmul_task *task)
{
    avx2_panel_matmul(task, unpack_q8_0, AVX2_PANEL_SIGNED);
}

void matmul_avx2_q4_0_many(const struct host_matmul_task *task)
{
    avx2_panel_matmul(task, unpack_q4_0, AVX2_PANEL_OFFSET_8);
}

#endif

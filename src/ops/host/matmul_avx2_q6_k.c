/* matmul_avx2_q6_k.c - Q6_K on AVX2. Order: see matmul_avx2.h; how a block is laid out: see
 * matmul_avx512_q6_k.c. Weights enter the dot product as quant + 32; the sums of 8 products in each
 * lane of 16 bits wrap around, and fit again when the offset has been taken away. */
#include "ops/host/matmul_avx2_few.h"
#include "ops/host/matmul_avx2_panel.h"

#if defined(__x86_64__)

/* Bits 2 g and 2 g + 1 of each byte, as bits 4 and 5. */
AVX2_INLINE __m256i upper_bits(__m256i bytes, unsigned g)
{
    __m256i moved = g == 0   ? _mm256_slli_epi16(bytes, 4)
                    : g == 1 ? _mm256_slli_epi16(bytes, 2)
                    : g == 2 ? bytes
                             : _mm256_srli_epi16(bytes, 2);
    return _mm256_and_si256(moved, _mm256_set1_epi8(0x30));
}

/* ---- Few rows ------------------------------------------------------------------------------- */

/* Block j of 8, each quant + 32. */
AVX2_INLINE __m256i unpack_block(const uint8_t *weights, unsigned j)
{
    unsigned half = j / 4, g = j % 4;
    __m256i bytes = load_256(weights + 64 * half + 32 * (g % 2));
    __m256i upper = load_256(weights + 128 + 32 * half);
    return _mm256_or_si256(g < 2 ? low_nibbles(bytes) : high_nibbles(bytes), upper_bits(upper, g));
}

/* Signed scales first, first + 2, ... of 16, as floats. */
AVX2_INLINE __m256 every_other_scale(__m128i scales, bool second)
{
    __m128i low = second ? _mm_srai_epi16(scales, 8) : _mm_srai_epi16(_mm_slli_epi16(scales, 8), 8);
    return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(low));
}

/* Dot products of the eight blocks, times the weights' scales. */
AVX2_INLINE __m256 multiply_group(const uint8_t *weights, const struct act_step *act)
{
    __m256i partial[GROUP_BLOCKS];
    for (unsigned j = 0; j < GROUP_BLOCKS; j++)
        partial[j] = _mm256_maddubs_epi16(unpack_block(weights, j), load_256(act->levels[j]));
    __m256i low, high;
    sum_lanes_16(partial, &low, &high);
    __m256i first = _mm256_add_epi16(low_halves(low, high), load_256(act->numbers[0]));
    __m256i second = _mm256_add_epi16(high_halves(low, high), load_256(act->numbers[1]));
    __m256 d = _mm256_set1_ps(load_f16(weights + 208));
    __m128i scales = load_128(weights + 192);
    __m256 first_scales = _mm256_mul_ps(d, every_other_scale(scales, false));
    __m256 second_scales = _mm256_mul_ps(d, every_other_scale(scales, true));
    __m256 terms = _mm256_mul_ps(_mm256_cvtepi32_ps(add_neighbours(first)), first_scales);
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(add_neighbours(second)), second_scales, terms);
}

AVX2_INLINE __m128 sum_row(const struct host_matmul_task *task, const uint8_t *row,
                           const struct act_step *act)
{
    __m128 classes = _mm_setzero_ps();
    for (size_t i = 0; i < task->k / K_BLOCK; i++, row += Q6_K_BYTES, act++) {
        fetch_ahead(task, row, Q6_K_BYTES);
        classes = add_terms(classes, multiply_group(row, act), act);
    }
    return classes;
}

AVX2 void matmul_avx2_q6_k_few(const struct host_matmul_task *task)
{
    few_rows(task, ACT_AT(pair_offsets_32[0]), ACT_AT(pair_offsets_32[1]), sum_row);
}

/* ---- Many rows ------------------------------------------------------------------------------ */

/* Signed byte `byte` of each dword, as floats. */
AVX2_INLINE __m256 signed_byte_floats(__m256i words, unsigned byte)
{
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(words, 24 - 8 * (int)byte), 24));
}

/* Rows rows[0] to rows[7], which are the panel's first_row on. blocks: where the 8 blocks go. */
AVX2_INLINE void unpack_scales(const uint8_t *const rows[8], size_t offset, size_t first_row,
                               struct panel_block *const blocks[8])
{
    __m256i scales[4];
    __m256 d = panel_halfs(rows, offset + 208);
    panel_transpose(rows, offset + 192, scales);
    for (unsigned j = 0; j < 8; j++) {
        unsigned byte = 2 * j % 4;
        _mm256_store_ps(blocks[j]->scales + first_row,
                        _mm256_mul_ps(d, signed_byte_floats(scales[j / 2], byte)));
        _mm256_store_ps(blocks[j]->extras + first_row,
                        _mm256_mul_ps(d, signed_byte_floats(scales[j / 2], byte + 1)));
    }
}

/* Values 16 half to 16 half + 15 of four blocks, whose nibbles and upper bits begin at an offset.
 */
AVX2_INLINE void unpack_levels(const uint8_t *const rows[8], size_t nibbles_offset,
                               size_t upper_offset, size_t half, size_t first_row,
                               struct panel_block *const blocks[4])
{
    __m256i upper[4];
    panel_transpose(rows, upper_offset + 16 * half, upper);
    for (unsigned pair = 0; pair < 2; pair++) {
        __m256i words[4];
        panel_transpose(rows, nibbles_offset + 32 * pair + 16 * half, words);
        for (size_t i = 0; i < 4; i++) {
            uint8_t *low = blocks[pair]->levels[4 * half + i] + 4 * first_row;
            uint8_t *high = blocks[2 + pair]->levels[4 * half + i] + 4 * first_row;
            store_256(low, _mm256_or_si256(low_nibbles(words[i]), upper_bits(upper[i], pair)));
            store_256(high,
                      _mm256_or_si256(high_nibbles(words[i]), upper_bits(upper[i], 2 + pair)));
        }
    }
}

AVX2 static void unpack_q6_k(const uint8_t *const rows[PANEL_ROWS], size_t k,
                             struct panel_block *panel)
{
    size_t block_count = k / ACT_BLOCK;
    for (size_t i = 0; i < k / K_BLOCK; i++) {
        size_t offset = i * Q6_K_BYTES;
        struct panel_block *blocks[8];
        for (size_t j = 0; j < 8; j++)
            blocks[j] = &panel[panel_position(8 * i + j, block_count)];
        for (size_t r = 0; r < PANEL_ROWS; r += 8) {
            unpack_scales(rows + r, offset, r, blocks);
            for (size_t four = 0; four < 2; four++)
                for (size_t half = 0; half < 2; half++)
                    unpack_levels(rows + r, offset + 64 * four, offset + 128 + 32 * four, half, r,
                                  blocks + 4 * four);
        }
    }
}

void matmul_avx2_q6_k_many(const struct host_matmul_task *task)
{
    avx2_panel_matmul(task, unpack_q6_k, AVX2_PANEL_HALVES);
}

#endif

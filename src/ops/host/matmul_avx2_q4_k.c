/* matmul_avx2_q4_k.c - Q4_K and Q5_K on AVX2. Order: see matmul_avx2.h; how a block is laid out:
 * see matmul_avx512_q4_k.c. */
#include "ops/host/matmul_avx2_few.h"
#include "ops/host/matmul_avx2_panel.h"

#if defined(__x86_64__)

enum k_format { K_Q4, K_Q5 };

AVX2_INLINE size_t block_bytes(enum k_format format)
{
    return format == K_Q4 ? Q4_K_BYTES : Q5_K_BYTES;
}

AVX2_INLINE size_t nibbles_at(enum k_format format)
{
    return format == K_Q4 ? 16 : 48;
}

/* Bit `bit` of each byte, as 16 or 0. */
AVX2_INLINE __m256i fifth_bits(__m256i bytes, unsigned bit)
{
    __m256i moved = bit < 4    ? _mm256_slli_epi16(bytes, 4 - (int)bit)
                    : bit == 4 ? bytes
                               : _mm256_srli_epi16(bytes, (int)bit - 4);
    return _mm256_and_si256(moved, _mm256_set1_epi8(16));
}

/* ---- Few rows ------------------------------------------------------------------------------- */

/* The 8 scales and 8 mins of a block, d and dmin applied. */
struct k_scales {
    __m256 scales;
    __m256 mins;
};

AVX2_INLINE __m256 scaled_bytes(uint64_t bytes, float factor)
{
    __m256i words = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
    return _mm256_mul_ps(_mm256_set1_ps(factor), _mm256_cvtepi32_ps(words));
}

AVX2_INLINE struct k_scales load_scales(const uint8_t *block)
{
    uint32_t words[3];
    memcpy(words, block + 4, sizeof(words));
    uint64_t scales = (uint64_t)(words[0] & 0x3F3F3F3Fu) |
                      (uint64_t)((words[2] & 0x0F0F0F0Fu) | (words[0] >> 2 & 0x30303030u)) << 32;
    uint64_t mins = (uint64_t)(words[1] & 0x3F3F3F3Fu) |
                    (uint64_t)((words[2] >> 4 & 0x0F0F0F0Fu) | (words[1] >> 2 & 0x30303030u)) << 32;
    return (struct k_scales){ scaled_bytes(scales, load_f16(block)),
                              scaled_bytes(mins, load_f16(block + 2)) };
}

/* Dot products of the eight blocks. */
AVX2_INLINE __m256i dot_group(enum k_format format, const uint8_t *block,
                              const struct act_step *act)
{
    const uint8_t *nibbles = block + nibbles_at(format);
    __m256i partial[GROUP_BLOCKS];
    for (unsigned j = 0; j < GROUP_BLOCKS; j++) {
        __m256i bytes = load_256(nibbles + 32 * (j / 2));
        __m256i levels = j % 2 == 0 ? low_nibbles(bytes) : high_nibbles(bytes);
        if (format == K_Q5)
            levels = _mm256_or_si256(levels, fifth_bits(load_256(block + 16), j));
        partial[j] = _mm256_maddubs_epi16(levels, load_256(act->levels[j]));
        /* Eight times twice 31 * 127 would not fit 16 bits. */
        if (format == K_Q5)
            partial[j] = add_neighbours(partial[j]);
    }
    return format == K_Q4 ? sum_each_16(partial) : sum_each_32(partial);
}

/* Blocks 4 turn to 4 turn + 3. */
AVX2_INLINE __m128 add_turn(__m128 terms, __m128 mins, const struct act_step *act, size_t turn,
                            __m128 classes)
{
    classes = _mm_fmadd_ps(terms, _mm_load_ps(act->scales + 4 * turn), classes);
    __m128 scaled_sums = _mm_castsi128_ps(load_128(act->numbers[0] + 4 * turn));
    return _mm_fnmadd_ps(mins, scaled_sums, classes);
}

AVX2_INLINE __m128 sum_row(enum k_format format, const struct host_matmul_task *task,
                           const uint8_t *row, const struct act_step *act)
{
    __m128 classes = _mm_setzero_ps();
    for (size_t i = 0; i < task->k / K_BLOCK; i++, row += block_bytes(format), act++) {
        fetch_ahead(task, row, block_bytes(format));
        struct k_scales scales = load_scales(row);
        __m256 terms = _mm256_mul_ps(_mm256_cvtepi32_ps(dot_group(format, row, act)),
                                     scales.scales);
        classes = add_turn(_mm256_castps256_ps128(terms), _mm256_castps256_ps128(scales.mins), act,
                           0, classes);
        classes = add_turn(_mm256_extractf128_ps(terms, 1), _mm256_extractf128_ps(scales.mins, 1),
                           act, 1, classes);
    }
    return classes;
}

AVX2_INLINE __m128 sum_row_q4_k(const struct host_matmul_task *task, const uint8_t *row,
                                const struct act_step *act)
{
    return sum_row(K_Q4, task, row, act);
}

AVX2_INLINE __m128 sum_row_q5_k(const struct host_matmul_task *task, const uint8_t *row,
                                const struct act_step *act)
{
    return sum_row(K_Q5, task, row, act);
}

AVX2 void matmul_avx2_q4_k_few(const struct host_matmul_task *task)
{
    few_rows(task, ACT_AT(scaled_sum), ACT_AT(scaled_sum), sum_row_q4_k);
}

AVX2 void matmul_avx2_q5_k_few(const struct host_matmul_task *task)
{
    few_rows(task, ACT_AT(scaled_sum), ACT_AT(scaled_sum), sum_row_q5_k);
}

/* ---- Many rows ------------------------------------------------------------------------------ */

/* Byte `byte` of each dword, as floats. */
AVX2_INLINE __m256 byte_floats(__m256i words, unsigned byte)
{
    __m256i shifted = _mm256_srli_epi32(words, 8 * (int)byte);
    return _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(255)));
}

/* Two bits at 6 and 7 of each byte, to 4 and 5. */
AVX2_INLINE __m256i upper_bits(__m256i bytes)
{
    return _mm256_and_si256(_mm256_srli_epi32(bytes, 2), _mm256_set1_epi8(0x30));
}

/* Rows rows[0] to rows[7], which are the panel's first_row on. blocks: where the 8 blocks go. */
AVX2_INLINE void unpack_scales(const uint8_t *const rows[8], size_t offset, size_t first_row,
                               struct panel_block *const blocks[8])
{
    const __m256i six_bits = _mm256_set1_epi8(63);
    __m256i headers[4];
    panel_transpose(rows, offset, headers);
    __m256 d = panel_halfs(rows, offset);
    __m256 dmin = panel_halfs(rows, offset + 2);
    __m256i scales[2] = {
        _mm256_and_si256(headers[1], six_bits),
        _mm256_or_si256(low_nibbles(headers[3]), upper_bits(headers[1])),
    };
    __m256i mins[2] = {
        _mm256_and_si256(headers[2], six_bits),
        _mm256_or_si256(high_nibbles(headers[3]), upper_bits(headers[2])),
    };
    for (unsigned j = 0; j < 8; j++) {
        _mm256_store_ps(blocks[j]->scales + first_row,
                        _mm256_mul_ps(d, byte_floats(scales[j / 4], j % 4)));
        _mm256_store_ps(blocks[j]->extras + first_row,
                        _mm256_mul_ps(dmin, byte_floats(mins[j / 4], j % 4)));
    }
}

AVX2_INLINE void unpack_levels(enum k_format format, const uint8_t *const rows[8], size_t offset,
                               size_t first_row, struct panel_block *const blocks[8])
{
    for (unsigned half = 0; half < 2; half++) {
        __m256i bits[4];
        if (format == K_Q5)
            panel_transpose(rows, offset + 16 + 16 * half, bits);
        for (unsigned pair = 0; pair < 4; pair++) {
            __m256i words[4];
            panel_transpose(rows, offset + nibbles_at(format) + 32 * pair + 16 * half, words);
            for (unsigned i = 0; i < 4; i++) {
                __m256i even = low_nibbles(words[i]);
                __m256i odd = high_nibbles(words[i]);
                if (format == K_Q5) {
                    even = _mm256_or_si256(even, fifth_bits(bits[i], 2 * pair));
                    odd = _mm256_or_si256(odd, fifth_bits(bits[i], 2 * pair + 1));
                }
                store_256(blocks[2 * pair]->levels[4 * half + i] + 4 * first_row, even);
                store_256(blocks[2 * pair + 1]->levels[4 * half + i] + 4 * first_row, odd);
            }
        }
    }
}

AVX2_INLINE void unpack(enum k_format format, const uint8_t *const rows[PANEL_ROWS], size_t k,
                        struct panel_block *panel)
{
    size_t block_count = k / ACT_BLOCK;
    for (size_t i = 0; i < k / K_BLOCK; i++) {
        struct panel_block *blocks[8];
        for (size_t j = 0; j < 8; j++)
            blocks[j] = &panel[panel_position(8 * i + j, block_count)];
        for (size_t r = 0; r < PANEL_ROWS; r += 8) {
            unpack_scales(rows + r, i * block_bytes(format), r, blocks);
            unpack_levels(format, rows + r, i * block_bytes(format), r, blocks);
        }
    }
}

AVX2 static void unpack_q4_k(const uint8_t *const rows[PANEL_ROWS], size_t k,
                             struct panel_block *panel)
{
    unpack(K_Q4, rows, k, panel);
}

AVX2 static void unpack_q5_k(const uint8_t *const rows[PANEL_ROWS], size_t k,
                             struct panel_block *panel)
{
    unpack(K_Q5, rows, k, panel);
}

void matmul_avx2_q4_k_many(const struct host_matmul_task *task)
{
    avx2_panel_matmul(task, unpack_q4_k, AVX2_PANEL_MINS_15);
}

void matmul_avx2_q5_k_many(const struct host_matmul_task *task)
{
    avx2_panel_matmul(task, unpack_q5_k, AVX2_PANEL_MINS_31);
}

#endif

/* matmul_avx512_q4_k.c - Q4_K and Q5_K on AVX-512: 8 blocks of 32 with a scale and a min each.
 *
 * Q4_K  d f16, dmin f16, 12 bytes of scales, 128 of nibbles
 * Q5_K  the same with 32 bytes of fifth bits before the nibbles
 * The first 16 bytes are one header in four dwords:
 *     0: d, dmin
 *     1: scales of blocks 0-3 (6 bits); above them, the upper 2 bits of scales 4-7
 *     2: mins of blocks 0-3; above them, the upper 2 bits of mins 4-7
 *     3: lower 4 bits of scales 4-7; above them, of mins 4-7
 * Each 32 bytes of nibbles hold one block in the low nibbles and the next in the high ones. Bit j
 * of byte i of the fifth bits belongs to value i of block j. */
#include "ops/host/matmul_avx512.h"
#include "ops/host/matmul_avx512_pairs.h"
#include "ops/host/matmul_avx512_panel.h"
#include "ops/host/matmul_impl.h"

#if defined(__x86_64__)

enum k_format { K_Q4, K_Q5 };

AVX512_INLINE size_t block_bytes(enum k_format format)
{
    return format == K_Q4 ? Q4_K_BYTES : Q5_K_BYTES;
}

AVX512_INLINE size_t nibbles_at(enum k_format format)
{
    return format == K_Q4 ? 16 : 48;
}

/* Lane 4 p + v is class 2 (p % 2) + v % 2 of row p / 2 + 2 (v / 2): see matmul_avx512_pairs.h. The
 * high nibbles of Q4_K stay where they are, 16 times too large; the activations' scales make up for
 * it, exactly. */
struct act_step {
    int8_t even_first[64]; /* blocks 0 and 2 */
    int8_t even_second[64];
    int8_t odd_first[64]; /* blocks 1 and 3 */
    int8_t odd_second[64];
    float scales[16];
    float scaled_sums[16];
};
_Static_assert(sizeof(struct act_step) <= ACT_STEP_LIMIT_BYTES, "scratch has room");

AVX512_INLINE __m512 spread_classes(__m128i elements)
{
    const __m512i index = _mm512_setr_epi32(0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3);
    return _mm512_castsi512_ps(_mm512_permutexvar_epi32(index, _mm512_castsi128_si512(elements)));
}

AVX512_INLINE void spread_activations(enum k_format format, const struct host_act_block *blocks,
                                      size_t count, struct act_step *step)
{
    const float odd = format == K_Q4 ? 1.0f / 16 : 1.0f;
    const __m512 factors = _mm512_setr_ps(1, odd, 1, odd, 1, odd, 1, odd, 1, odd, 1, odd, 1, odd, 1,
                                          odd);
    for (size_t g = 0; g < count; g++, blocks += 4, step++) {
        _mm512_store_si512(step->even_first, repeat_levels(blocks[0].levels, blocks[2].levels));
        _mm512_store_si512(step->even_second,
                           repeat_levels(blocks[0].levels + 16, blocks[2].levels + 16));
        _mm512_store_si512(step->odd_first, repeat_levels(blocks[1].levels, blocks[3].levels));
        _mm512_store_si512(step->odd_second,
                           repeat_levels(blocks[1].levels + 16, blocks[3].levels + 16));
        _mm512_store_ps(step->scales,
                        _mm512_mul_ps(spread_classes(ACT_FIELD(blocks, scale)), factors));
        _mm512_store_ps(step->scaled_sums, spread_classes(ACT_FIELD(blocks, scaled_sum)));
    }
}

/* Scales and mins of 4 rows, d and dmin applied, of blocks 0 to 3 and 4 to 7. */
struct k_scales {
    __m512 scales[2];
    __m512 mins[2];
};

/* Byte first + class of the header of the lane's row, as float. headers: part r is row r's. */
AVX512_INLINE __m512 spread_bytes(__m512i headers, int first)
{
    const __m512i index = _mm512_setr_epi32(0, 1, 32, 33, 2, 3, 34, 35, 16, 17, 48, 49, 18, 19, 50,
                                            51);
    __m512i moved = _mm512_add_epi32(index, _mm512_set1_epi32(first));
    const __mmask64 lowest_bytes = 0x1111111111111111u;
    return _mm512_cvtepi32_ps(_mm512_maskz_permutexvar_epi8(lowest_bytes, moved, headers));
}

/* f16 word first of the header of the lane's row. */
AVX512_INLINE __m512 spread_halfs(__m512i headers, short first)
{
    const __m512i index = _mm512_castsi256_si512(
        _mm256_setr_epi16(0, 0, 16, 16, 0, 0, 16, 16, 8, 8, 24, 24, 8, 8, 24, 24));
    __m512i moved = _mm512_add_epi16(index, _mm512_set1_epi16(first));
    return _mm512_cvtph_ps(_mm512_castsi512_si256(_mm512_permutexvar_epi16(moved, headers)));
}

/* Dwords 1 and 2: scales and mins of blocks 4-7, from the headers. */
AVX512_INLINE __m512i join_upper_scales(__m512i headers)
{
    const __m512i shifts = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0, 4, 0));
    __m512i low = _mm512_srlv_epi32(_mm512_shuffle_epi32(headers, _MM_PERM_DDDD), shifts);
    __m512i high = _mm512_and_si512(_mm512_srli_epi32(headers, 2), _mm512_set1_epi8(0x30));
    return and_or(low, _mm512_set1_epi8(15), high);
}

AVX512_INLINE struct k_scales load_scales(const uint8_t *const blocks[TILE_ROWS])
{
    __m512i headers = load_4x128(blocks[0], blocks[1], blocks[2], blocks[3]);
    __m512i lower = _mm512_and_si512(headers, _mm512_set1_epi8(63));
    __m512i upper = join_upper_scales(headers);
    __m512 d = spread_halfs(headers, 0);
    __m512 dmin = spread_halfs(headers, 1);
    return (struct k_scales){
        .scales = { _mm512_mul_ps(d, spread_bytes(lower, 4)),
                    _mm512_mul_ps(d, spread_bytes(upper, 4)) },
        .mins = { _mm512_mul_ps(dmin, spread_bytes(lower, 8)),
                  _mm512_mul_ps(dmin, spread_bytes(upper, 8)) },
    };
}

/* 32 bytes at offset of each row, of upper bits, which the two blocks of a half share: each 16 of
 * them twice. */
AVX512_INLINE struct row_pairs load_upper_pairs(const uint8_t *const rows[TILE_ROWS], size_t offset)
{
    struct row_pairs pairs;
    for (size_t i = 0; i < 2; i++) {
        __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(load_256(rows[2 * i] + offset)),
                                          load_256(rows[2 * i + 1] + offset), 1);
        pairs.first[i] = _mm512_shuffle_i64x2(both, both, 0xA0);
        pairs.second[i] = _mm512_shuffle_i64x2(both, both, 0xF5);
    }
    return pairs;
}

/* Low nibbles with the fifth bits of blocks 4 half and 4 half + 2, or high ones with those of the
 * blocks that follow. upper: what load_upper_pairs made of the fifth bits. */
AVX512_INLINE __m512i join_fifth_bits(__m512i nibbles, __m512i upper, int half, bool high)
{
    int bit = 4 * half + high;
    __m512i matrices = part_matrices(MOVE_BIT(bit, 4), MOVE_BIT(bit + 2, 4));
    __m512i bits = _mm512_gf2p8affine_epi64_epi8(upper, matrices, 0);
    return and_or(high ? _mm512_srli_epi16(nibbles, 4) : nibbles, _mm512_set1_epi8(15), bits);
}

AVX512_INLINE __m512i even_levels(enum k_format format, __m512i nibbles, __m512i upper, int half)
{
    return format == K_Q4 ? low_nibbles(nibbles) : join_fifth_bits(nibbles, upper, half, false);
}

AVX512_INLINE __m512i odd_levels(enum k_format format, __m512i nibbles, __m512i upper, int half)
{
    return format == K_Q4 ? _mm512_and_si512(nibbles, _mm512_set1_epi8((char)0xF0))
                          : join_fifth_bits(nibbles, upper, half, true);
}

AVX512_INLINE __m512i dot_two(__m512i first, const int8_t *act_first, __m512i second,
                              const int8_t *act_second)
{
    __m512i partial = _mm512_dpbusd_epi32(_mm512_setzero_si512(), first,
                                          _mm512_load_si512(act_first));
    return _mm512_dpbusd_epi32(partial, second, _mm512_load_si512(act_second));
}

/* Blocks 4 half to 4 half + 3 of 4 rows. */
AVX512_INLINE __m512 add_half(enum k_format format, const uint8_t *const blocks[TILE_ROWS],
                              int half, const struct row_pairs *upper,
                              const struct k_scales *scales, const struct act_step *act, __m512 sum)
{
    struct row_pairs pairs = load_pairs(blocks, nibbles_at(format) + 64 * (size_t)half);
    __m512i partial[4];
    for (size_t i = 0; i < 2; i++) {
        partial[2 * i] = dot_two(
            even_levels(format, pairs.first[i], upper->first[i], half), act->even_first,
            even_levels(format, pairs.second[i], upper->second[i], half), act->even_second);
        partial[2 * i + 1] = dot_two(
            odd_levels(format, pairs.first[i], upper->first[i], half), act->odd_first,
            odd_levels(format, pairs.second[i], upper->second[i], half), act->odd_second);
    }
    __m512 terms = _mm512_mul_ps(_mm512_cvtepi32_ps(sum_parts(partial)), scales->scales[half]);
    sum = _mm512_fmadd_ps(terms, _mm512_load_ps(act->scales), sum);
    return _mm512_fnmadd_ps(scales->mins[half], _mm512_load_ps(act->scaled_sums), sum);
}

AVX512_INLINE __m512 sum_rows(enum k_format format, const struct host_matmul_task *task,
                              size_t first_row, const struct act_step *act,
                              struct tile_prefetch *prefetch)
{
    const uint8_t *blocks[TILE_ROWS];
    tile_rows(task, first_row, blocks);
    __m512 sum = _mm512_setzero_ps();
    for (size_t k = 0; k < task->k; k += K_BLOCK, act += 2) {
        tile_prefetch_step(prefetch, TILE_ROWS * block_bytes(format), PREFETCH_STREAMS);
        struct row_pairs upper = { 0 };
        if (format == K_Q5)
            upper = load_upper_pairs(blocks, 16);
        struct k_scales scales = load_scales(blocks);
        sum = add_half(format, blocks, 0, &upper, &scales, &act[0], sum);
        sum = add_half(format, blocks, 1, &upper, &scales, &act[1], sum);
        for (size_t r = 0; r < TILE_ROWS; r++)
            blocks[r] += block_bytes(format);
    }
    return sum;
}

/* The four classes of each row, added: 0 and 1 (2 and 3) are neighbours in a part. */
AVX512_INLINE void store_rows(__m512 classes, float *output, size_t row_count)
{
    __m512 halves = _mm512_add_ps(classes, _mm512_permute_ps(classes, 0xB1));
    __m128 rows_02 = _mm_add_ps(_mm512_castps512_ps128(halves), _mm512_extractf32x4_ps(halves, 1));
    __m128 rows_13 = _mm_add_ps(_mm512_extractf32x4_ps(halves, 2),
                                _mm512_extractf32x4_ps(halves, 3));
    store_first(_mm_movelh_ps(_mm_unpacklo_ps(rows_02, rows_13), _mm_unpackhi_ps(rows_02, rows_13)),
                output, row_count);
}

/* At most FEW_ROWS_LIMIT activation rows, from first_act on. */
AVX512_INLINE void few_rows(enum k_format format, const struct host_matmul_task *task,
                            size_t first_act, size_t act_count)
{
    struct act_step *steps = (struct act_step *)(void *)task->scratch;
    size_t step_count = task->k / ACT_GROUP;
    for (size_t a = 0; a < act_count && !task->scratch_is_ready; a++)
        spread_activations(format, act_blocks(task, first_act + a), step_count,
                           steps + a * step_count);
    for (size_t o = 0; o < task->weight_rows; o += TILE_ROWS) {
        struct tile_prefetch prefetch = tile_prefetch_begin(task, o);
        for (size_t a = 0; a < act_count; a++) {
            __m512 sum = sum_rows(format, task, o, steps + a * step_count, &prefetch);
            store_rows(sum, task->output + (first_act + a) * task->output_stride + o,
                       task->weight_rows - o);
        }
    }
}

AVX512 void matmul_avx512_q4_k_few(const struct host_matmul_task *task)
{
    for (size_t a = 0; a < task->activation_rows; a += FEW_ROWS_LIMIT)
        few_rows(K_Q4, task, a, smaller(FEW_ROWS_LIMIT, task->activation_rows - a));
}

AVX512 void matmul_avx512_q5_k_few(const struct host_matmul_task *task)
{
    for (size_t a = 0; a < task->activation_rows; a += FEW_ROWS_LIMIT)
        few_rows(K_Q5, task, a, smaller(FEW_ROWS_LIMIT, task->activation_rows - a));
}

/* Many rows. Lane = row. */

/* Byte `byte` of each dword, as floats. */
AVX512_INLINE __m512 byte_floats(__m512i words, unsigned byte)
{
    __m512i shifted = _mm512_srli_epi32(words, 8 * byte);
    return _mm512_cvtepi32_ps(_mm512_and_si512(shifted, _mm512_set1_epi32(255)));
}

/* headers: the four dwords of the header, each of 16 rows. blocks: where the 8 blocks go. */
AVX512_INLINE void unpack_scales(const __m512i headers[4], struct panel_block *const blocks[8])
{
    const __m512i six_bits = _mm512_set1_epi8(63);
    const __m512i two_bits = _mm512_set1_epi8(0x30);
    __m512 d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(headers[0]));
    __m512 dmin = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(headers[0], 16)));
    __m512i scales[2] = {
        _mm512_and_si512(headers[1], six_bits),
        _mm512_or_si512(low_nibbles(headers[3]),
                        _mm512_and_si512(_mm512_srli_epi32(headers[1], 2), two_bits)),
    };
    __m512i mins[2] = {
        _mm512_and_si512(headers[2], six_bits),
        _mm512_or_si512(high_nibbles(headers[3]),
                        _mm512_and_si512(_mm512_srli_epi32(headers[2], 2), two_bits)),
    };
    for (unsigned j = 0; j < 8; j++) {
        _mm512_store_ps(blocks[j]->scales, _mm512_mul_ps(d, byte_floats(scales[j / 4], j % 4)));
        _mm512_store_ps(blocks[j]->extras, _mm512_mul_ps(dmin, byte_floats(mins[j / 4], j % 4)));
    }
}

/* Bit `bit` of each byte, as 16 or 0. */
AVX512_INLINE __m512i panel_fifth_bits(__m512i bits, unsigned bit)
{
    __mmask64 set = _mm512_test_epi8_mask(bits, _mm512_set1_epi8((char)(1u << bit)));
    return _mm512_maskz_mov_epi8(set, _mm512_set1_epi8(16));
}

AVX512_INLINE void unpack_levels(enum k_format format, const uint8_t *const rows[PANEL_ROWS],
                                 size_t offset, struct panel_block *const blocks[8])
{
    for (unsigned half = 0; half < 2; half++) {
        __m512i bits[4];
        if (format == K_Q5)
            panel_transpose(rows, offset + 16 + 16 * half, bits);
        for (unsigned pair = 0; pair < 4; pair++) {
            __m512i words[4];
            panel_transpose(rows, offset + nibbles_at(format) + 32 * pair + 16 * half, words);
            for (unsigned i = 0; i < 4; i++) {
                __m512i even = low_nibbles(words[i]);
                __m512i odd = high_nibbles(words[i]);
                if (format == K_Q5) {
                    even = _mm512_or_si512(even, panel_fifth_bits(bits[i], 2 * pair));
                    odd = _mm512_or_si512(odd, panel_fifth_bits(bits[i], 2 * pair + 1));
                }
                _mm512_store_si512(blocks[2 * pair]->levels[4 * half + i], even);
                _mm512_store_si512(blocks[2 * pair + 1]->levels[4 * half + i], odd);
            }
        }
    }
}

AVX512_INLINE void unpack(enum k_format format, const uint8_t *const rows[PANEL_ROWS], size_t k,
                          struct panel_block *panel)
{
    size_t block_count = k / ACT_BLOCK;
    for (size_t i = 0; i < k / K_BLOCK; i++) {
        struct panel_block *blocks[8];
        __m512i headers[4];
        for (size_t j = 0; j < 8; j++)
            blocks[j] = &panel[panel_position(8 * i + j, block_count)];
        panel_transpose(rows, i * block_bytes(format), headers);
        unpack_scales(headers, blocks);
        unpack_levels(format, rows, i * block_bytes(format), blocks);
    }
}

AVX512 static void unpack_q4_k(const uint8_t *const rows[PANEL_ROWS], size_t k,
                               struct panel_block *panel)
{
    unpack(K_Q4, rows, k, panel);
}

AVX512 static void unpack_q5_k(const uint8_t *const rows[PANEL_ROWS], size_t k,
                               struct panel_block *panel)
{
    unpack(K_Q5, rows, k, panel);
}

AVX512 void matmul_avx512_q4_k_many(const struct host_matmul_task *task)
{
    panel_matmul(task, unpack_q4_k, PANEL_MINS);
}

AVX512 void matmul_avx512_q5_k_many(const struct host_matmul_task *task)
{
    panel_matmul(task, unpack_q5_k, PANEL_MINS);
}

#endif

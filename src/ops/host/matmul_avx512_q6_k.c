/* matmul_avx512_q6_k.c - Q6_K on AVX-512: 16 groups of 16 values with a signed 8-bit scale each.
 *
 * 128 bytes of lower nibbles, 64 of upper 2 bits, 16 scales, d f16. A half of 128 values, blocks 0
 * to 3, has 64 bytes of nibbles (0 and 1 in the low ones, 2 and 3 in the high) and 32 of upper bits
 * (block g at bit 2 g). Weights enter the dot product as quant + 32. */
#include "ops/host/matmul_avx512.h"
#include "ops/host/matmul_avx512_pairs.h"
#include "ops/host/matmul_avx512_panel.h"
#include "ops/host/matmul_impl.h"

#if defined(__x86_64__)

/* Lane 4 p + v is class p % 2 + 2 (v % 2) of row p / 2 + 2 (v / 2): see matmul_avx512_pairs.h. */
struct act_step {
    int8_t low_first[64]; /* blocks 0 and 1 */
    int8_t low_second[64];
    int8_t high_first[64]; /* blocks 2 and 3 */
    int8_t high_second[64];
    int32_t
        first_offsets[16]; /* what the offset of the weights adds to the dot products, negated */
    int32_t second_offsets[16];
    float scales[16];
};
_Static_assert(sizeof(struct act_step) <= ACT_STEP_LIMIT_BYTES, "scratch has room");

AVX512_INLINE __m512i spread_classes(__m128i elements)
{
    const __m512i index = _mm512_setr_epi32(0, 2, 0, 2, 1, 3, 1, 3, 0, 2, 0, 2, 1, 3, 1, 3);
    return _mm512_permutexvar_epi32(index, _mm512_castsi128_si512(elements));
}

AVX512_INLINE void spread_activations(const struct host_act_block *blocks, size_t count,
                                      struct act_step *step)
{
    for (size_t g = 0; g < count; g++, blocks += 4, step++) {
        _mm512_store_si512(step->low_first, repeat_levels(blocks[0].levels, blocks[1].levels));
        _mm512_store_si512(step->low_second,
                           repeat_levels(blocks[0].levels + 16, blocks[1].levels + 16));
        _mm512_store_si512(step->high_first, repeat_levels(blocks[2].levels, blocks[3].levels));
        _mm512_store_si512(step->high_second,
                           repeat_levels(blocks[2].levels + 16, blocks[3].levels + 16));
        _mm512_store_si512(step->first_offsets,
                           spread_classes(ACT_FIELD(blocks, first_half_offset_32)));
        _mm512_store_si512(step->second_offsets,
                           spread_classes(ACT_FIELD(blocks, second_half_offset_32)));
        _mm512_store_si512(step->scales, spread_classes(ACT_FIELD(blocks, scale)));
    }
}

/* Upper bits to bits 4 and 5: of blocks 0 and 1 (bits 0 and 2 on), or 2 and 3 (bits 4 and 6 on). */
AVX512_INLINE __m512i upper_bits(__m512i upper, int bit)
{
    __m512i matrices = part_matrices(MOVE_BIT(bit, 4) | MOVE_BIT(bit + 1, 5),
                                     MOVE_BIT(bit + 2, 4) | MOVE_BIT(bit + 3, 5));
    return _mm512_gf2p8affine_epi64_epi8(upper, matrices, 0);
}

AVX512_INLINE __m512i low_levels(__m512i nibbles, __m512i upper)
{
    return and_or(nibbles, _mm512_set1_epi8(15), upper_bits(upper, 0));
}

AVX512_INLINE __m512i high_levels(__m512i nibbles, __m512i upper)
{
    return and_or(_mm512_srli_epi16(nibbles, 4), _mm512_set1_epi8(15), upper_bits(upper, 4));
}

AVX512_INLINE __m512i dot(__m512i levels, const int8_t *act_levels)
{
    return _mm512_dpbusd_epi32(_mm512_setzero_si512(), levels, _mm512_load_si512(act_levels));
}

/* Scale first + 2 class of the lane's row, as float. scales: part r is row r's. */
AVX512_INLINE __m512 spread_scales(__m512i scales, int first)
{
    const __m512i index = _mm512_setr_epi32(0, 4, 32, 36, 2, 6, 34, 38, 16, 20, 48, 52, 18, 22, 50,
                                            54);
    /* To the highest byte of the dword; the shift back brings the sign along. */
    __m512i moved = _mm512_slli_epi32(_mm512_add_epi32(index, _mm512_set1_epi32(first)), 24);
    const __mmask64 highest_bytes = 0x8888888888888888u;
    __m512i bytes = _mm512_maskz_permutexvar_epi8(highest_bytes, moved, scales);
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(bytes, 24));
}

/* As sum_parts, for partial sums that fit 16 bits: 4 * 63 * 127 does. */
AVX512_INLINE __m512i sum_small_parts(const __m512i partial[4])
{
    const __m512i ones = _mm512_set1_epi16(1);
    __m512i pairs_01 = _mm512_madd_epi16(_mm512_packs_epi32(partial[0], partial[1]), ones);
    __m512i pairs_23 = _mm512_madd_epi16(_mm512_packs_epi32(partial[2], partial[3]), ones);
    __m512 floats_01 = _mm512_castsi512_ps(pairs_01);
    __m512 floats_23 = _mm512_castsi512_ps(pairs_23);
    return _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(floats_01, floats_23, 0x88)),
                            _mm512_castps_si512(_mm512_shuffle_ps(floats_01, floats_23, 0xDD)));
}

AVX512_INLINE __m512 dots_of(const __m512i partial[4], const int32_t *offsets)
{
    __m512i dots = _mm512_add_epi32(sum_small_parts(partial), _mm512_load_si512(offsets));
    return _mm512_cvtepi32_ps(dots);
}

/* The upper bits of one half of two pairs of rows: each 16 bytes twice, for the two blocks that
 * share them. whole: 64 bytes of each row, both halves. */
AVX512_INLINE struct row_pairs upper_pairs(const __m512i whole[TILE_ROWS], int half)
{
    struct row_pairs pairs;
    for (size_t i = 0; i < 2; i++) {
        __m512i a = whole[2 * i];
        __m512i b = whole[2 * i + 1];
        pairs.first[i] = half == 0 ? _mm512_shuffle_i64x2(a, b, 0x00)
                                   : _mm512_shuffle_i64x2(a, b, 0xAA);
        pairs.second[i] = half == 0 ? _mm512_shuffle_i64x2(a, b, 0x55)
                                    : _mm512_shuffle_i64x2(a, b, 0xFF);
    }
    return pairs;
}

/* Half a block, 128 values, of 4 rows. */
AVX512_INLINE __m512 add_half(const uint8_t *const blocks[TILE_ROWS], int half,
                              const __m512i whole_upper[TILE_ROWS], __m512i scales, __m512 d,
                              const struct act_step *act, __m512 sum)
{
    struct row_pairs pairs = load_pairs(blocks, 64 * (size_t)half);
    struct row_pairs upper = upper_pairs(whole_upper, half);
    __m512i first[4];
    __m512i second[4];
    for (size_t i = 0; i < 2; i++) {
        first[2 * i] = dot(low_levels(pairs.first[i], upper.first[i]), act->low_first);
        first[2 * i + 1] = dot(high_levels(pairs.first[i], upper.first[i]), act->high_first);
        second[2 * i] = dot(low_levels(pairs.second[i], upper.second[i]), act->low_second);
        second[2 * i + 1] = dot(high_levels(pairs.second[i], upper.second[i]), act->high_second);
    }
    __m512 first_scales = _mm512_mul_ps(d, spread_scales(scales, 8 * half));
    __m512 second_scales = _mm512_mul_ps(d, spread_scales(scales, 8 * half + 1));
    __m512 terms = _mm512_mul_ps(dots_of(first, act->first_offsets), first_scales);
    terms = _mm512_fmadd_ps(dots_of(second, act->second_offsets), second_scales, terms);
    return _mm512_fmadd_ps(terms, _mm512_load_ps(act->scales), sum);
}

/* d of the lane's row. */
AVX512_INLINE __m512 load_d(const uint8_t *const blocks[TILE_ROWS])
{
    const __m512i index = _mm512_setr_epi32(0, 0, 2, 2, 0, 0, 2, 2, 1, 1, 3, 3, 1, 1, 3, 3);
    __m128i words = _mm_setr_epi16(
        (short)load_u16(blocks[0] + 208), (short)load_u16(blocks[1] + 208),
        (short)load_u16(blocks[2] + 208), (short)load_u16(blocks[3] + 208), 0, 0, 0, 0);
    return _mm512_permutexvar_ps(index, _mm512_castps128_ps512(_mm_cvtph_ps(words)));
}

AVX512_INLINE __m512 sum_rows(const struct host_matmul_task *task, size_t first_row,
                              const struct act_step *act, struct tile_prefetch *prefetch)
{
    const uint8_t *blocks[TILE_ROWS];
    tile_rows(task, first_row, blocks);
    __m512 sum = _mm512_setzero_ps();
    for (size_t k = 0; k < task->k; k += K_BLOCK, act += 2) {
        tile_prefetch_step(prefetch, TILE_ROWS * Q6_K_BYTES, PREFETCH_STREAMS);
        __m512 d = load_d(blocks);
        __m512i scales = load_4x128(blocks[0] + 192, blocks[1] + 192, blocks[2] + 192,
                                    blocks[3] + 192);
        __m512i whole_upper[TILE_ROWS];
        for (size_t r = 0; r < TILE_ROWS; r++)
            whole_upper[r] = load_512(blocks[r] + 128);
        sum = add_half(blocks, 0, whole_upper, scales, d, &act[0], sum);
        sum = add_half(blocks, 1, whole_upper, scales, d, &act[1], sum);
        for (size_t r = 0; r < TILE_ROWS; r++)
            blocks[r] += Q6_K_BYTES;
    }
    return sum;
}

/* The four classes of each row, added: 0 and 1 (2 and 3) are in neighbouring parts. */
AVX512_INLINE void store_rows(__m512 classes, float *output, size_t row_count)
{
    __m128 rows_02 = _mm_add_ps(_mm512_castps512_ps128(classes),
                                _mm512_extractf32x4_ps(classes, 1));
    __m128 rows_13 = _mm_add_ps(_mm512_extractf32x4_ps(classes, 2),
                                _mm512_extractf32x4_ps(classes, 3));
    rows_02 = _mm_add_ps(rows_02, _mm_permute_ps(rows_02, 0xB1));
    rows_13 = _mm_add_ps(rows_13, _mm_permute_ps(rows_13, 0xB1));
    store_first(_mm_movelh_ps(_mm_unpacklo_ps(rows_02, rows_13), _mm_unpackhi_ps(rows_02, rows_13)),
                output, row_count);
}

/* At most FEW_ROWS_LIMIT activation rows, from first_act on. */
AVX512_INLINE void few_rows(const struct host_matmul_task *task, size_t first_act, size_t act_count)
{
    struct act_step *steps = (struct act_step *)(void *)task->scratch;
    size_t step_count = task->k / ACT_GROUP;
    for (size_t a = 0; a < act_count && !task->scratch_is_ready; a++)
        spread_activations(act_blocks(task, first_act + a), step_count, steps + a * step_count);
    for (size_t o = 0; o < task->weight_rows; o += TILE_ROWS) {
        struct tile_prefetch prefetch = tile_prefetch_begin(task, o);
        for (size_t a = 0; a < act_count; a++) {
            __m512 sum = sum_rows(task, o, steps + a * step_count, &prefetch);
            store_rows(sum, task->output + (first_act + a) * task->output_stride + o,
                       task->weight_rows - o);
        }
    }
}

AVX512 void matmul_avx512_q6_k_few(const struct host_matmul_task *task)
{
    for (size_t a = 0; a < task->activation_rows; a += FEW_ROWS_LIMIT)
        few_rows(task, a, smaller(FEW_ROWS_LIMIT, task->activation_rows - a));
}

/* Many rows. Lane = row. */

/* Signed byte `byte` of each dword, as floats. */
AVX512_INLINE __m512 signed_byte_floats(__m512i words, unsigned byte)
{
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(words, 24 - 8 * byte), 24));
}

AVX512_INLINE void unpack_scales(const uint8_t *const rows[PANEL_ROWS], size_t offset,
                                 struct panel_block *const blocks[8])
{
    uint16_t d_words[PANEL_ROWS];
    __m512i scales[4];
    for (size_t r = 0; r < PANEL_ROWS; r++)
        d_words[r] = load_u16(rows[r] + offset + 208);
    __m512 d = _mm512_cvtph_ps(load_256(d_words));
    panel_transpose(rows, offset + 192, scales);
    for (unsigned j = 0; j < 8; j++) {
        unsigned byte = 2 * j % 4;
        _mm512_store_ps(blocks[j]->scales,
                        _mm512_mul_ps(d, signed_byte_floats(scales[j / 2], byte)));
        _mm512_store_ps(blocks[j]->extras,
                        _mm512_mul_ps(d, signed_byte_floats(scales[j / 2], byte + 1)));
    }
}

/* 16 bytes of nibbles of two blocks: low nibbles to `low`, high ones to `high`. */
AVX512_INLINE void unpack_pair(const uint8_t *const rows[PANEL_ROWS], size_t nibbles_offset,
                               const __m512i upper[4], unsigned low_block, size_t half,
                               struct panel_block *low, struct panel_block *high)
{
    const __m512i mask = _mm512_set1_epi8(0x30);
    __m512i words[4];
    panel_transpose(rows, nibbles_offset, words);
    for (size_t i = 0; i < 4; i++) {
        /* The low block is 0 or 1, with its bits at 0 or 2; the high one has them 4 further up. */
        __m512i low_upper = _mm512_slli_epi32(upper[i], low_block == 0 ? 4 : 2);
        __m512i high_upper = low_block == 0 ? upper[i] : _mm512_srli_epi32(upper[i], 2);
        _mm512_store_si512(
            low->levels[4 * half + i],
            _mm512_or_si512(low_nibbles(words[i]), _mm512_and_si512(low_upper, mask)));
        _mm512_store_si512(
            high->levels[4 * half + i],
            _mm512_or_si512(high_nibbles(words[i]), _mm512_and_si512(high_upper, mask)));
    }
}

AVX512 static void unpack_q6_k(const uint8_t *const rows[PANEL_ROWS], size_t k,
                               struct panel_block *panel)
{
    size_t block_count = k / ACT_BLOCK;
    for (size_t i = 0; i < k / K_BLOCK; i++) {
        size_t offset = i * Q6_K_BYTES;
        struct panel_block *blocks[8];
        for (size_t j = 0; j < 8; j++)
            blocks[j] = &panel[panel_position(8 * i + j, block_count)];
        unpack_scales(rows, offset, blocks);
        for (size_t half = 0; half < 4; half++) {
            /* Halves 0 and 1 of the 32 values of blocks 0-3, then of blocks 4-7. */
            struct panel_block *const *four = blocks + 4 * (half / 2);
            size_t nibbles_offset = offset + 64 * (half / 2) + 16 * (half % 2);
            __m512i upper[4];
            panel_transpose(rows, offset + 128 + 32 * (half / 2) + 16 * (half % 2), upper);
            unpack_pair(rows, nibbles_offset, upper, 0, half % 2, four[0], four[2]);
            unpack_pair(rows, nibbles_offset + 32, upper, 1, half % 2, four[1], four[3]);
        }
    }
}

AVX512 void matmul_avx512_q6_k_many(const struct host_matmul_task *task)
{
    panel_matmul(task, unpack_q6_k, PANEL_HALVES);
}

#endif

/* matmul_avx512_q8_0.c - Q8_0 and Q4_0 on AVX-512: blocks of 32 under one f16 scale.
 *
 * Weights enter the dot product as unsigned bytes: quant + 128 (Q8_0), quant + 8 (Q4_0). What the
 * offset adds is taken away with the sums of the activations. */
#include "ops/host/matmul_avx512.h"
#include "ops/host/matmul_avx512_panel.h"
#include "ops/host/matmul_impl.h"

#if defined(__x86_64__)

#define Q8_0_GROUP_BYTES (4 * Q8_0_BYTES)
/* The least work per byte of all quantized formats: more lines have to be in flight. */
#define Q8_0_STREAMS 4

/* A group of 4 blocks of activations. Quants: block c in 128-bit part c. Others: in lanes 4 c to
 * 4 c + 3. In the vector of accumulators lane 4 c + r is class c of row r. */
struct act_step {
    int8_t first_levels[64];
    int8_t second_levels[64];
    int32_t offsets[16]; /* offset terms */
    float scales[16];
};
_Static_assert(sizeof(struct act_step) <= ACT_STEP_LIMIT_BYTES, "scratch has room");

/* Which of the two formats a function is compiled for. */
enum simple_format { SIMPLE_Q8_0, SIMPLE_Q4_0 };

AVX512_INLINE size_t block_bytes(enum simple_format format)
{
    return format == SIMPLE_Q8_0 ? Q8_0_BYTES : Q4_0_BYTES;
}

/* Element c of 4 to lanes 4 c .. 4 c + 3. */
AVX512_INLINE __m512i spread(__m128i elements)
{
    const __m512i index = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_permutexvar_epi32(index, _mm512_castsi128_si512(elements));
}

AVX512_INLINE void spread_activations(enum simple_format format,
                                      const struct host_act_block *blocks, size_t count,
                                      struct act_step *step)
{
    for (size_t g = 0; g < count; g++, blocks += 4, step++) {
        _mm512_store_si512(step->first_levels, load_4x128(blocks[0].levels, blocks[1].levels,
                                                          blocks[2].levels, blocks[3].levels));
        _mm512_store_si512(step->second_levels,
                           load_4x128(blocks[0].levels + 16, blocks[1].levels + 16,
                                      blocks[2].levels + 16, blocks[3].levels + 16));
        _mm512_store_si512(step->offsets,
                           spread(format == SIMPLE_Q8_0 ? ACT_FIELD(blocks, offset_128)
                                                        : ACT_FIELD(blocks, offset_8)));
        _mm512_store_si512(step->scales, spread(ACT_FIELD(blocks, scale)));
    }
}

/* A row's 4 blocks, their quants as two vectors, times the activations. */
AVX512_INLINE __m512i dot_levels(__m512i first, __m512i second, const struct act_step *act)
{
    __m512i partial = _mm512_dpbusd_epi32(_mm512_setzero_si512(), first,
                                          _mm512_load_si512(act->first_levels));
    return _mm512_dpbusd_epi32(partial, second, _mm512_load_si512(act->second_levels));
}

/* The two blocks that begin at bytes, 32 quants each. */
AVX512_INLINE __m512i load_two_q8_0(const uint8_t *bytes)
{
    __m512i low = _mm512_castsi256_si512(load_256(bytes + 2));
    return _mm512_inserti64x4(low, load_256(bytes + Q8_0_BYTES + 2), 1);
}

AVX512_INLINE __m512i dot_q8_0(const uint8_t *group, const struct act_step *act)
{
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    __m512i blocks_01 = _mm512_xor_si512(load_two_q8_0(group), sign);
    __m512i blocks_23 = _mm512_xor_si512(load_two_q8_0(group + 2 * Q8_0_BYTES), sign);
    return dot_levels(_mm512_shuffle_i64x2(blocks_01, blocks_23, 0x88),
                      _mm512_shuffle_i64x2(blocks_01, blocks_23, 0xDD), act);
}

/* f16 words: scales of a block of each row, then of the next block. */
AVX512_INLINE __m128i load_scales_q8_0(const uint8_t *const groups[TILE_ROWS], size_t block)
{
    size_t at = block * Q8_0_BYTES;
    size_t behind = at + Q8_0_BYTES;
    return _mm_setr_epi16((short)load_u16(groups[0] + at), (short)load_u16(groups[1] + at),
                          (short)load_u16(groups[2] + at), (short)load_u16(groups[3] + at),
                          (short)load_u16(groups[0] + behind), (short)load_u16(groups[1] + behind),
                          (short)load_u16(groups[2] + behind), (short)load_u16(groups[3] + behind));
}

/* Lane 4 c + r: scale of block c of row r. */
AVX512_INLINE __m512 scales_q8_0(const uint8_t *const groups[TILE_ROWS])
{
    return _mm512_cvtph_ps(
        _mm256_set_m128i(load_scales_q8_0(groups, 2), load_scales_q8_0(groups, 0)));
}

/* dot * d, of 4 rows x 4 blocks. */
AVX512_INLINE __m512 finish_step(const __m512i partial[TILE_ROWS], __m512 scales,
                                 const struct act_step *act)
{
    __m512i dots = _mm512_add_epi32(sum_parts(partial), _mm512_load_si512(act->offsets));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(dots), scales);
}

AVX512_INLINE __m512 step_q8_0(const uint8_t *const groups[TILE_ROWS], const struct act_step *act)
{
    __m512i partial[TILE_ROWS];
    for (size_t r = 0; r < TILE_ROWS; r++)
        partial[r] = dot_q8_0(groups[r], act);
    return finish_step(partial, scales_q8_0(groups), act);
}

/* 72 bytes of 4 blocks: the 16 bytes of nibbles of block c to 128-bit part c. One load has the
 * first three, and all scales. */
AVX512_INLINE __m512i gather_nibbles(__m512i bytes, const uint8_t *group)
{
    const __m512i index = _mm512_set_epi8(
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43,
        42, 41, 40, 39, 38, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 17, 16,
        15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2);
    __m512i three = _mm512_permutexvar_epi8(index, bytes);
    return _mm512_mask_broadcast_i32x4(three, 0xF000, load_128(group + 3 * Q4_0_BYTES + 2));
}

AVX512_INLINE __m512 step_q4_0(const uint8_t *const groups[TILE_ROWS], const struct act_step *act)
{
    /* Word of the scale of block c: 9 c. */
    const __m512i scale_index = _mm512_castsi256_si512(
        _mm256_setr_epi16(0, 0, 0, 0, 9, 9, 9, 9, 18, 18, 18, 18, 27, 27, 27, 27));
    __m512i partial[TILE_ROWS];
    __m512i scales = _mm512_setzero_si512();
    for (size_t r = 0; r < TILE_ROWS; r++) {
        __m512i bytes = load_512(groups[r]);
        scales = _mm512_mask_permutexvar_epi16(scales, 0x1111u << r, scale_index, bytes);
        __m512i nibbles = gather_nibbles(bytes, groups[r]);
        partial[r] = dot_levels(low_nibbles(nibbles), high_nibbles(nibbles), act);
    }
    return finish_step(partial, _mm512_cvtph_ps(_mm512_castsi512_si256(scales)), act);
}

AVX512_INLINE __m512 compute_step(enum simple_format format, const uint8_t *const groups[TILE_ROWS],
                                  const struct act_step *act)
{
    return format == SIMPLE_Q8_0 ? step_q8_0(groups, act) : step_q4_0(groups, act);
}

/* The last 1 to 3 blocks of each row, copied: a whole group must not be read past the row's end. */
AVX512_INLINE __m512 add_tail(enum simple_format format, const uint8_t *const tails[TILE_ROWS],
                              size_t block_count, const struct act_step *act, __m512 sum)
{
    uint8_t copies[TILE_ROWS][Q8_0_GROUP_BYTES];
    const uint8_t *groups[TILE_ROWS];
    memset(copies, 0, sizeof(copies));
    for (size_t r = 0; r < TILE_ROWS; r++) {
        memcpy(copies[r], tails[r], block_count * block_bytes(format));
        groups[r] = copies[r];
    }
    __m512 terms = compute_step(format, groups, act);
    __mmask16 mask = (__mmask16)((1u << (4 * block_count)) - 1);
    return _mm512_mask3_fmadd_ps(terms, _mm512_load_ps(act->scales), sum, mask);
}

AVX512_INLINE __m512 sum_rows(enum simple_format format, const struct host_matmul_task *task,
                              size_t first_row, const struct act_step *act,
                              struct tile_prefetch *prefetch)
{
    size_t block_count = task->k / ACT_BLOCK;
    size_t group_bytes = 4 * block_bytes(format);
    const uint8_t *groups[TILE_ROWS];
    for (size_t r = 0; r < TILE_ROWS; r++)
        groups[r] = weight_row_clamped(task, first_row + r);
    __m512 sum = _mm512_setzero_ps();
    for (size_t g = 0; g < block_count / ACT_GROUP_BLOCKS; g++, act++) {
        tile_prefetch_step(prefetch, TILE_ROWS * group_bytes,
                           format == SIMPLE_Q8_0 ? Q8_0_STREAMS : PREFETCH_STREAMS);
        __m512 terms = compute_step(format, groups, act);
        sum = _mm512_fmadd_ps(terms, _mm512_load_ps(act->scales), sum);
        for (size_t r = 0; r < TILE_ROWS; r++)
            groups[r] += group_bytes;
    }
    if (block_count % ACT_GROUP_BLOCKS != 0)
        sum = add_tail(format, groups, block_count % ACT_GROUP_BLOCKS, act, sum);
    return sum;
}

/* The four classes of each row, added. */
AVX512_INLINE void store_rows(__m512 classes, float *output, size_t row_count)
{
    __m128 c0 = _mm512_castps512_ps128(classes);
    __m128 c1 = _mm512_extractf32x4_ps(classes, 1);
    __m128 c2 = _mm512_extractf32x4_ps(classes, 2);
    __m128 c3 = _mm512_extractf32x4_ps(classes, 3);
    store_first(_mm_add_ps(_mm_add_ps(c0, c1), _mm_add_ps(c2, c3)), output, row_count);
}

/* At most FEW_ROWS_LIMIT activation rows, from first_act on. */
AVX512_INLINE void few_rows(enum simple_format format, const struct host_matmul_task *task,
                            size_t first_act, size_t act_count)
{
    struct act_step *steps = (struct act_step *)(void *)task->scratch;
    size_t step_count = (task->k + ACT_GROUP - 1) / ACT_GROUP;
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

AVX512 void matmul_avx512_q8_0_few(const struct host_matmul_task *task)
{
    for (size_t a = 0; a < task->activation_rows; a += FEW_ROWS_LIMIT)
        few_rows(SIMPLE_Q8_0, task, a, smaller(FEW_ROWS_LIMIT, task->activation_rows - a));
}

AVX512 void matmul_avx512_q4_0_few(const struct host_matmul_task *task)
{
    for (size_t a = 0; a < task->activation_rows; a += FEW_ROWS_LIMIT)
        few_rows(SIMPLE_Q4_0, task, a, smaller(FEW_ROWS_LIMIT, task->activation_rows - a));
}

/* Many rows. */

AVX512_INLINE __m512 panel_scales(const uint8_t *const rows[PANEL_ROWS], size_t offset)
{
    uint16_t words[PANEL_ROWS];
    for (size_t r = 0; r < PANEL_ROWS; r++)
        words[r] = load_u16(rows[r] + offset);
    return _mm512_cvtph_ps(load_256(words));
}

AVX512 static void unpack_q8_0(const uint8_t *const rows[PANEL_ROWS], size_t k,
                               struct panel_block *panel)
{
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    size_t block_count = k / ACT_BLOCK;
    for (size_t b = 0; b < block_count; b++) {
        struct panel_block *block = &panel[panel_position(b, block_count)];
        size_t offset = b * Q8_0_BYTES;
        for (size_t half = 0; half < 2; half++) {
            __m512i words[4];
            panel_transpose(rows, offset + 2 + 16 * half, words);
            for (size_t i = 0; i < 4; i++)
                _mm512_store_si512(block->levels[4 * half + i], _mm512_xor_si512(words[i], sign));
        }
        _mm512_store_ps(block->scales, panel_scales(rows, offset));
    }
}

AVX512 static void unpack_q4_0(const uint8_t *const rows[PANEL_ROWS], size_t k,
                               struct panel_block *panel)
{
    size_t block_count = k / ACT_BLOCK;
    for (size_t b = 0; b < block_count; b++) {
        struct panel_block *block = &panel[panel_position(b, block_count)];
        size_t offset = b * Q4_0_BYTES;
        __m512i words[4];
        panel_transpose(rows, offset + 2, words);
        for (size_t i = 0; i < 4; i++) {
            _mm512_store_si512(block->levels[i], low_nibbles(words[i]));
            _mm512_store_si512(block->levels[4 + i], high_nibbles(words[i]));
        }
        _mm512_store_ps(block->scales, panel_scales(rows, offset));
    }
}

AVX512 void matmul_avx512_q8_0_many(const struct host_matmul_task *task)
{
    panel_matmul(task, unpack_q8_0, PANEL_OFFSET_128);
}

AVX512 void matmul_avx512_q4_0_many(const struct host_matmul_task *task)
{
    panel_matmul(task, unpack_q4_0, PANEL_OFFSET_8);
}

#endif

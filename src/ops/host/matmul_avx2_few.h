/* matmul_avx2_few.h - few rows of quantized weights on AVX2: a weight row is read once, from its
 * beginning to its end, a group of eight blocks of 32 at a time, and multiplied with one activation
 * row. Lane = block of the group; blocks 0-3 and 4-7 are the four classes of two turns.
 *
 * The dot product of a block is a sum over the lanes of a vector; eight of them are added together
 * by halving eight vectors until one is left. The activations are copied first, once per call, so
 * that what a group needs of them lies together. */
#ifndef GRETA_OPS_HOST_MATMUL_AVX2_FEW_H
#define GRETA_OPS_HOST_MATMUL_AVX2_FEW_H

#if defined(__x86_64__)

#include "ops/host/matmul_avx2.h"

#define GROUP_BLOCKS 8

/* What a group of activations is made of; numbers[] as the format wants them. */
struct act_step {
    int8_t levels[GROUP_BLOCKS][ACT_BLOCK];
    float scales[GROUP_BLOCKS];
    int32_t numbers[2][GROUP_BLOCKS];
};
_Static_assert(sizeof(struct act_step) <= AVX2_ACT_STEP_BYTES, "scratch has room");

AVX2_INLINE size_t group_count(size_t k)
{
    return (k / ACT_BLOCK + GROUP_BLOCKS - 1) / GROUP_BLOCKS;
}

/* first_at, second_at: offsetof(struct host_act_block, ...) of the fields wanted as numbers. */
AVX2_INLINE void gather_activations(const struct host_act_block *blocks, size_t k, size_t first_at,
                                    size_t second_at, struct act_step *steps)
{
    size_t block_count = k / ACT_BLOCK;
    memset(&steps[group_count(k) - 1], 0, sizeof(*steps));
    for (size_t b = 0; b < block_count; b++) {
        struct act_step *step = &steps[b / GROUP_BLOCKS];
        const uint8_t *bytes = (const uint8_t *)&blocks[b];
        size_t i = b % GROUP_BLOCKS;
        memcpy(step->levels[i], blocks[b].levels, ACT_BLOCK);
        step->scales[i] = blocks[b].scale;
        memcpy(&step->numbers[0][i], bytes + first_at, sizeof(int32_t));
        memcpy(&step->numbers[1][i], bytes + second_at, sizeof(int32_t));
    }
}

/* ---- Eight sums over lanes ------------------------------------------------------------------ */

/* From two vectors: 64 bits of each, in turn, in each half. */
AVX2_INLINE __m256i halve_16(__m256i a, __m256i b)
{
    return _mm256_add_epi16(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/* From two pairs that were halved before: 32 bits of each. */
AVX2_INLINE __m256i quarter_16(__m256i ab, __m256i cd)
{
    __m256 first = _mm256_castsi256_ps(ab), second = _mm256_castsi256_ps(cd);
    return _mm256_add_epi16(_mm256_castps_si256(_mm256_shuffle_ps(first, second, 0x88)),
                            _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xDD)));
}

/* Sums of 16-bit lanes, modulo 2^16, over the halves of eight vectors: dword j of a half of
 * ret_low is what is left of that half of vector j, two sums, of its even and its odd lanes;
 * ret_high: of vector 4 + j. */
AVX2_INLINE void sum_lanes_16(const __m256i vectors[8], __m256i *ret_low, __m256i *ret_high)
{
    *ret_low = quarter_16(halve_16(vectors[0], vectors[1]), halve_16(vectors[2], vectors[3]));
    *ret_high = quarter_16(halve_16(vectors[4], vectors[5]), halve_16(vectors[6], vectors[7]));
}

AVX2_INLINE __m256i low_halves(__m256i a, __m256i b)
{
    return _mm256_permute2x128_si256(a, b, 0x20);
}

AVX2_INLINE __m256i high_halves(__m256i a, __m256i b)
{
    return _mm256_permute2x128_si256(a, b, 0x31);
}

/* Lane j: the sum of vector j, whose sums over even and odd lanes fit 16 bits. */
AVX2_INLINE __m256i sum_each_16(const __m256i vectors[8])
{
    __m256i low, high;
    sum_lanes_16(vectors, &low, &high);
    return add_neighbours(_mm256_add_epi16(low_halves(low, high), high_halves(low, high)));
}

AVX2_INLINE __m256i halve_32(__m256i a, __m256i b)
{
    return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

AVX2_INLINE __m256i quarter_32(__m256i ab, __m256i cd)
{
    __m256 first = _mm256_castsi256_ps(ab), second = _mm256_castsi256_ps(cd);
    return _mm256_add_epi32(_mm256_castps_si256(_mm256_shuffle_ps(first, second, 0x88)),
                            _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xDD)));
}

/* Lane j: the sum of the 32-bit lanes of vector j. */
AVX2_INLINE __m256i sum_each_32(const __m256i vectors[8])
{
    __m256i low = quarter_32(halve_32(vectors[0], vectors[1]), halve_32(vectors[2], vectors[3]));
    __m256i high = quarter_32(halve_32(vectors[4], vectors[5]), halve_32(vectors[6], vectors[7]));
    return _mm256_add_epi32(low_halves(low, high), high_halves(low, high));
}

/* ---- Sums of a row -------------------------------------------------------------------------- */

/* terms: of eight blocks, to be multiplied with the activations' scales. */
AVX2_INLINE __m128 add_terms(__m128 classes, __m256 terms, const struct act_step *act)
{
    classes = _mm_fmadd_ps(_mm256_castps256_ps128(terms), _mm_load_ps(act->scales), classes);
    return _mm_fmadd_ps(_mm256_extractf128_ps(terms, 1), _mm_load_ps(act->scales + 4), classes);
}

/* (class 0 + class 1) + (class 2 + class 3) */
AVX2_INLINE float add_classes(__m128 classes)
{
    __m128 pairs = _mm_hadd_ps(classes, classes);
    return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_movehdup_ps(pairs)));
}

/* Prefetches FETCH_AHEAD bytes after the group a row is at; past the task's rows, the rows of the
 * thread's next task. */
#define FETCH_AHEAD 2048

AVX2_INLINE void fetch_ahead(const struct host_matmul_task *task, const uint8_t *group,
                             size_t bytes)
{
    uintptr_t at = (uintptr_t)group + FETCH_AHEAD;
    uintptr_t end = (uintptr_t)task->weights + task->weight_rows * task->weight_row_bytes;
    if (at >= end && task->next_weights)
        at = (uintptr_t)task->next_weights + (at - end);
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)(at + i), 0, 2);
}

typedef __m128 (*sum_row_function)(const struct host_matmul_task *task, const uint8_t *row,
                                   const struct act_step *act);

/* Every weight row with every activation row. sum_row gives the four classes. */
AVX2_INLINE void few_rows(const struct host_matmul_task *task, size_t first_at, size_t second_at,
                          sum_row_function sum_row)
{
    struct act_step *steps = (struct act_step *)(void *)task->scratch;
    size_t step_count = group_count(task->k);
    for (size_t a = 0; a < task->activation_rows; a += AVX2_FEW_ROWS) {
        size_t act_count = smaller(AVX2_FEW_ROWS, task->activation_rows - a);
        for (size_t r = 0; r < act_count && !task->scratch_is_ready; r++)
            gather_activations(act_blocks(task, a + r), task->k, first_at, second_at,
                               steps + r * step_count);
        for (size_t o = 0; o < task->weight_rows; o++)
            for (size_t r = 0; r < act_count; r++)
                task->output[(a + r) * task->output_stride + o] = add_classes(
                    sum_row(task, weight_row(task, o), steps + r * step_count));
    }
}

#endif

#endif

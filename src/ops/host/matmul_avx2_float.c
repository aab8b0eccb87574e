/* matmul_avx2_float.c - F32, F16, BF16 and everything decoded to f32, on AVX2; activations are f32.
 *
 * Order: four vectors of 8 f32 accumulators; vector v, lane l takes k = 8 v + l, then + 32, + 64,
 * ..., each by one fused multiply-add; where k ends inside a step, the rest takes zeros. Then
 * (vector 0 + 1) + (2 + 3), and lanes l and l + 4, l + 2, l + 1. */
#include "ops/host/matmul_avx2.h"

#if defined(__x86_64__)

#include "tensor/quant.h"

#define STEP 32

enum float_source { FLOAT_F32, FLOAT_F16, FLOAT_BF16 };

AVX2_INLINE __m256 load_weights(enum float_source source, const uint8_t *row, size_t k)
{
    switch (source) {
    case FLOAT_F16:
        return _mm256_cvtph_ps(load_128(row + 2 * k));
    case FLOAT_BF16:
        return _mm256_castsi256_ps(
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_128(row + 2 * k)), 16));
    default:
        return _mm256_loadu_ps((const float *)(const void *)(row + 4 * k));
    }
}

/* Activation rows at a time: 4 vectors of sums each leave room for the weights. */
#define FLOAT_ACT_ROWS 3

AVX2_INLINE void add_step(enum float_source source, const uint8_t *row, const float *const *acts,
                          size_t row_count, size_t k, __m256 sums[][4])
{
    for (size_t v = 0; v < 4; v++) {
        __m256 weights = load_weights(source, row, k + 8 * v);
        for (size_t r = 0; r < row_count; r++)
            sums[r][v] = _mm256_fmadd_ps(weights, _mm256_loadu_ps(acts[r] + k + 8 * v), sums[r][v]);
    }
}

/* The rest of k, less than a step, with zeros behind it. */
AVX2_INLINE void add_rest(enum float_source source, const uint8_t *row, const float *const *acts,
                          size_t row_count, size_t whole, size_t k, __m256 sums[][4])
{
    size_t bytes = source == FLOAT_F32 ? 4 : 2;
    uint8_t last_weights[4 * STEP] = { 0 };
    float last_values[FLOAT_ACT_ROWS][STEP] = { { 0 } };
    const float *last_acts[FLOAT_ACT_ROWS];
    memcpy(last_weights, row + bytes * whole, bytes * (k - whole));
    for (size_t r = 0; r < row_count; r++) {
        memcpy(last_values[r], acts[r] + whole, sizeof(float) * (k - whole));
        last_acts[r] = last_values[r];
    }
    add_step(source, last_weights, last_acts, row_count, 0, sums);
}

/* Weight row o with activation rows a .. a + row_count - 1. decoded: the row, or NULL if it is used
 * as it is. */
AVX2_INLINE void dot_rows(const struct host_matmul_task *task, size_t o, size_t a, size_t row_count,
                          enum float_source source, const uint8_t *decoded)
{
    const uint8_t *row = decoded ? decoded : weight_row(task, o);
    const float *acts[FLOAT_ACT_ROWS];
    __m256 sums[FLOAT_ACT_ROWS][4];
    size_t whole = task->k - task->k % STEP;
    for (size_t r = 0; r < row_count; r++) {
        acts[r] = (const float *)(const void *)(task->activations +
                                                (a + r) * task->activation_row_bytes);
        for (size_t v = 0; v < 4; v++)
            sums[r][v] = _mm256_setzero_ps();
    }
    for (size_t i = 0; i < whole; i += STEP)
        add_step(source, row, acts, row_count, i, sums);
    if (whole < task->k)
        add_rest(source, row, acts, row_count, whole, task->k, sums);
    for (size_t r = 0; r < row_count; r++)
        task->output[(a + r) * task->output_stride + o] = sum_lanes(_mm256_add_ps(
            _mm256_add_ps(sums[r][0], sums[r][1]), _mm256_add_ps(sums[r][2], sums[r][3])));
}

AVX2 void matmul_avx2_f32(const struct host_matmul_task *task)
{
    FOR_EACH_ROWS(task, FLOAT_ACT_ROWS, dot_rows, FLOAT_F32, NULL);
}

AVX2 void matmul_avx2_f16(const struct host_matmul_task *task)
{
    FOR_EACH_ROWS(task, FLOAT_ACT_ROWS, dot_rows, FLOAT_F16, NULL);
}

AVX2 void matmul_avx2_bf16(const struct host_matmul_task *task)
{
    FOR_EACH_ROWS(task, FLOAT_ACT_ROWS, dot_rows, FLOAT_BF16, NULL);
}

/* Each weight row is decoded once, for all activation rows. */
AVX2 void matmul_avx2_decoded(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++) {
        float *decoded = (float *)(void *)task->scratch;
        size_t a = 0;
        quant_decode_row(task->dtype, weight_row(task, o), task->k, decoded);
        for (; a + FLOAT_ACT_ROWS <= task->activation_rows; a += FLOAT_ACT_ROWS)
            dot_rows(task, o, a, FLOAT_ACT_ROWS, FLOAT_F32, task->scratch);
        for (; a < task->activation_rows; a++)
            dot_rows(task, o, a, 1, FLOAT_F32, task->scratch);
    }
}

#endif

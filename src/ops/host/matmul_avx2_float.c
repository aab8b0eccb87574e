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

AVX2_INLINE void add_step(enum float_source source, const uint8_t *row, const float *activations,
                          size_t k, __m256 sums[4])
{
    for (size_t v = 0; v < 4; v++)
        sums[v] = _mm256_fmadd_ps(load_weights(source, row, k + 8 * v),
                                  _mm256_loadu_ps(activations + k + 8 * v), sums[v]);
}

AVX2_INLINE float dot_row(enum float_source source, const uint8_t *row, const float *activations,
                          size_t k)
{
    __m256 sums[4] = { _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                       _mm256_setzero_ps() };
    size_t whole = k - k % STEP;
    size_t bytes = source == FLOAT_F32 ? 4 : 2;
    for (size_t i = 0; i < whole; i += STEP)
        add_step(source, row, activations, i, sums);
    if (whole < k) {
        uint8_t last_weights[4 * STEP] = { 0 };
        float last_activations[STEP] = { 0 };
        memcpy(last_weights, row + bytes * whole, bytes * (k - whole));
        memcpy(last_activations, activations + whole, sizeof(float) * (k - whole));
        add_step(source, last_weights, last_activations, 0, sums);
    }
    return sum_lanes(
        _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
}

AVX2_INLINE void multiply_row(enum float_source source, const struct host_matmul_task *task,
                              size_t o, const uint8_t *row)
{
    for (size_t a = 0; a < task->activation_rows; a++) {
        const uint8_t *activations = task->activations + a * task->activation_row_bytes;
        task->output[a * task->output_stride + o] = dot_row(
            source, row, (const float *)(const void *)activations, task->k);
    }
}

AVX2 void matmul_avx2_f32(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++)
        multiply_row(FLOAT_F32, task, o, weight_row(task, o));
}

AVX2 void matmul_avx2_f16(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++)
        multiply_row(FLOAT_F16, task, o, weight_row(task, o));
}

AVX2 void matmul_avx2_bf16(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++)
        multiply_row(FLOAT_BF16, task, o, weight_row(task, o));
}

AVX2 void matmul_avx2_decoded(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++) {
        float *decoded = (float *)(void *)task->scratch;
        quant_decode_row(task->dtype, weight_row(task, o), task->k, decoded);
        multiply_row(FLOAT_F32, task, o, task->scratch);
    }
}

#endif

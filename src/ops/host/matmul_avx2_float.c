/* matmul_avx2_float.c - F32, F16, BF16 and everything decoded to f32, on AVX2; activations are f32.
 *
 * Order: four vectors of 8 f32 accumulators; vector v, lane l takes k = 8 v + l, then + 32, + 64,
 * ..., each by one fused multiply-add; where k ends inside a step, the rest takes zeros. Then
 * (vector 0 + 2) + (1 + 3), and lanes l and l + 4, l + 2, l + 1. For F32, F16 and decoded weights
 * that is the order of AVX-512, and gives its bits.
 *
 * Few rows: one weight row after the other, in place. Many rows: matmul_avx2_float_many.c. */
#include "ops/host/matmul_avx2_float.h"

#if defined(__x86_64__)

#include "tensor/quant.h"

/* Sums of one weight row and one activation row. */
AVX2_INLINE void add_step(enum float_source source, const uint8_t *row, const float *acts, size_t k,
                          __m256 sums[FLOAT_TURNS])
{
    for (size_t v = 0; v < FLOAT_TURNS; v++)
        sums[v] = _mm256_fmadd_ps(load_weights(source, row, k + 8 * v),
                                  _mm256_loadu_ps(acts + k + 8 * v), sums[v]);
}

/* The rest of k, less than a step, followed by zeros. */
AVX2_INLINE void add_rest(enum float_source source, const uint8_t *row, const float *acts,
                          size_t whole, size_t k, __m256 sums[FLOAT_TURNS])
{
    size_t bytes = source == FLOAT_F32 ? 4 : 2;
    uint8_t last_weights[4 * FLOAT_STEP] = { 0 };
    float last_acts[FLOAT_STEP] = { 0 };
    memcpy(last_weights, row + bytes * whole, bytes * (k - whole));
    memcpy(last_acts, acts + whole, sizeof(float) * (k - whole));
    add_step(source, last_weights, last_acts, 0, sums);
}

AVX2_INLINE float dot_row(enum float_source source, const uint8_t *row, const float *acts, size_t k)
{
    __m256 sums[FLOAT_TURNS];
    size_t whole = k - k % FLOAT_STEP;
    for (size_t v = 0; v < FLOAT_TURNS; v++)
        sums[v] = _mm256_setzero_ps();
    for (size_t i = 0; i < whole; i += FLOAT_STEP)
        add_step(source, row, acts, i, sums);
    if (whole < k)
        add_rest(source, row, acts, whole, k, sums);
    return sum_turns(sums);
}

/* One weight row with every activation row. */
AVX2_INLINE void dot_rows(const struct host_matmul_task *task, enum float_source source,
                          const uint8_t *row, size_t o)
{
    for (size_t a = 0; a < task->activation_rows; a++) {
        const uint8_t *acts = task->activations + a * task->activation_row_bytes;
        task->output[a * task->output_stride + o] = dot_row(
            source, row, (const float *)(const void *)acts, task->k);
    }
}

AVX2 void matmul_avx2_f32_few(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++)
        dot_rows(task, FLOAT_F32, weight_row(task, o), o);
}

AVX2 void matmul_avx2_f16_few(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++)
        dot_rows(task, FLOAT_F16, weight_row(task, o), o);
}

AVX2 void matmul_avx2_bf16_few(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++)
        dot_rows(task, FLOAT_BF16, weight_row(task, o), o);
}

/* Each weight row is decoded once, for all activation rows. */
AVX2 void matmul_avx2_decoded_few(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++) {
        quant_decode_row(task->dtype, weight_row(task, o), task->k, (float *)(void *)task->scratch);
        dot_rows(task, FLOAT_F32, task->scratch, o);
    }
}

#endif

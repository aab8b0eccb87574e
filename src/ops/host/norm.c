/* norm.c - rms_norm, head_norm and layer_norm.
 *
 * out = (x * scale) * weight, both products rounded to f32; scale = 1 / sqrt(mean(x^2) + epsilon),
 * computed in f64 and rounded to f32 once. The squares are exact in f64; 16 f64 lanes take them,
 * lane l those of x[l], x[l + 16], ..., in order; then lanes l and l + 8, l + 4, l + 2, l + 1 are
 * added. With `added`, x + added is rounded to f32, stored in x, and normalised.
 *
 * Every path does just this, so all give the same bits (a fused multiply-add of an exact product is
 * the sum). out may be x.
 *
 * layer_norm, for each group of a row: out = (x - mean) * scale * weight + bias. Mean and variance
 * (of x - mean) are summed in f64 in those lanes; x - mean and its product with scale are in f64
 * and rounded to f32 once, the rest is in f32. All paths share it. */
#include "ops/host/kernels.h"

#include "ops/host/matmul_tiles.h"
#include "ops/host/rows.h"
#include "ops/host/simd.h"

#include <math.h>

/* Compiled once for each path, inside its functions: one IEEE operation after the other, so that
 * the width of the vectors the compiler chooses cannot change a bit. */
#define INLINE_ANY static inline __attribute__((always_inline))

/* The sum of squares of a row's values, in the order above. */
typedef double (*square_function)(const float *x, size_t width);

INLINE_ANY void normalise(const float *x, const float *weight, float *out, size_t width,
                          float epsilon, square_function sum_of_squares)
{
    double mean = sum_of_squares(x, width) / (double)width;
    float scale = (float)(1 / sqrt(mean + (double)epsilon));
    for (size_t i = 0; i < width; i++)
        out[i] = x[i] * scale * weight[i];
}

INLINE_ANY void add_row(float *x, const float *added, size_t width)
{
    for (size_t i = 0; i < width; i++)
        x[i] += added[i];
}

INLINE_ANY void rms_norm_tile(const struct device_host_call *call, uint64_t tile,
                              square_function sum_of_squares)
{
    const struct params_norm *params = call->params;
    const struct device_host_operand *x = &call->operands[RMS_NORM_X]; /* [width, tokens] */
    const struct device_host_operand *added =
        &call->operands[RMS_NORM_ADDED]; /* the same, or absent */
    const struct device_host_operand *weight = &call->operands[RMS_NORM_WEIGHT]; /* [width] */
    const struct device_host_operand *out = &call->operands[RMS_NORM_OUT]; /* [width, tokens] */
    size_t width = x->shape.dims[0];
    struct row_range tokens = tile_tokens(tile, x);
    for (uint64_t t = tokens.first; t < tokens.end; t++) {
        if (added->data)
            add_row(row_f32(x, t), row_f32(added, t), width);
        normalise(row_f32(x, t), weight->data, row_f32(out, t), width, params->epsilon,
                  sum_of_squares);
        host_pack_row(&params->packing, out, &call->operands[RMS_NORM_PACKED], t);
    }
}

INLINE_ANY void head_norm_tile(const struct device_host_call *call, uint64_t tile,
                               square_function sum_of_squares)
{
    const struct params_norm *params = call->params;
    const struct device_host_operand *x =
        &call->operands[HEAD_NORM_X]; /* [head_dim * heads, tokens] */
    const struct device_host_operand *weight = &call->operands[HEAD_NORM_WEIGHT]; /* [head_dim] */
    size_t head_dim = weight->shape.dims[0];
    struct row_range tokens = tile_tokens(tile, x);
    for (uint64_t t = tokens.first; t < tokens.end; t++) {
        float *row = row_f32(x, t);
        for (size_t i = 0; i < x->shape.dims[0]; i += head_dim)
            normalise(row + i, weight->data, row + i, head_dim, params->epsilon, sum_of_squares);
    }
}

/* The sum of (x - mean)^power, for a power of 1 or 2. */
static double sum_powers(const float *x, size_t width, double mean, int power);

static void normalise_group(const struct params_layer_norm *params, const float *x,
                            const float *weight, const float *bias, float *out, size_t width)
{
    double mean = sum_powers(x, width, 0, 1) / (double)width;
    double variance = sum_powers(x, width, mean, 2) / (double)width;
    double scale = 1 / sqrt(variance + (double)params->epsilon);
    for (size_t i = 0; i < width; i++) {
        float value = (float)(((double)x[i] - mean) * scale) * weight[i];
        out[i] = bias ? value + bias[i] : value;
    }
}

void host_layer_norm_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct params_layer_norm *params = call->params;
    const struct device_host_operand *x = &call->operands[LAYER_NORM_X]; /* [width, tokens] */
    const struct device_host_operand *added = &call->operands[LAYER_NORM_ADDED]; /* or absent */
    const struct device_host_operand *out = &call->operands[LAYER_NORM_OUT]; /* [width, tokens] */
    const float *weight = call->operands[LAYER_NORM_WEIGHT].data;            /* [width] */
    const float *bias = call->operands[LAYER_NORM_BIAS].data;                /* [width], or NULL */
    size_t width = x->shape.dims[0], group = params->group ? params->group : width;
    struct row_range tokens = tile_tokens(tile, x);
    for (uint64_t t = tokens.first; t < tokens.end; t++) {
        if (added->data)
            add_row(row_f32(x, t), row_f32(added, t), width);
        for (size_t i = 0; i < width; i += group)
            normalise_group(params, row_f32(x, t) + i, weight + i, bias ? bias + i : NULL,
                            row_f32(out, t) + i, group);
        host_pack_row(&params->packing, out, &call->operands[LAYER_NORM_PACKED], t);
    }
}

/* ---- Sums of squares ------------------------------------------------------------------------ */

#define LANES 16

static double sum_lanes(double lanes[LANES])
{
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    }
    return lanes[0];
}

/* The last width % LANES values. */
static void add_rest(const float *x, size_t width, double lanes[LANES])
{
    size_t whole = width - width % LANES;
    for (size_t i = whole; i < width; i++)
        lanes[i - whole] += (double)x[i] * (double)x[i];
}

static double sum_powers(const float *x, size_t width, double mean, int power)
{
    double lanes[LANES] = { 0 };
    for (size_t i = 0; i < width; i += LANES) {
        size_t count = width - i < LANES ? width - i : LANES;
        for (size_t l = 0; l < count; l++) {
            double value = (double)x[i + l] - mean;
            lanes[l] += power == 2 ? value * value : value;
        }
    }
    return sum_lanes(lanes);
}

static double squares_portable(const float *x, size_t width)
{
    double lanes[LANES] = { 0 };
    for (size_t i = 0; i + LANES <= width; i += LANES) {
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += (double)x[i + l] * (double)x[i + l];
    }
    add_rest(x, width, lanes);
    return sum_lanes(lanes);
}

void host_rms_norm_tile_portable(const struct device_host_call *call, uint64_t tile)
{
    rms_norm_tile(call, tile, squares_portable);
}

void host_head_norm_tile_portable(const struct device_host_call *call, uint64_t tile)
{
    head_norm_tile(call, tile, squares_portable);
}

#if defined(__x86_64__)

TARGET_AVX2 static double squares_avx2(const float *x, size_t width)
{
    __m256d sums[4];
    double lanes[LANES];
    for (size_t part = 0; part < 4; part++)
        sums[part] = _mm256_setzero_pd();
    for (size_t i = 0; i + LANES <= width; i += LANES) {
        for (size_t part = 0; part < 4; part++) {
            __m256d values = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4 * part));
            sums[part] = _mm256_fmadd_pd(values, values, sums[part]);
        }
    }
    for (size_t part = 0; part < 4; part++)
        _mm256_storeu_pd(lanes + 4 * part, sums[part]);
    add_rest(x, width, lanes);
    return sum_lanes(lanes);
}

TARGET_AVX2 void host_rms_norm_tile_avx2(const struct device_host_call *call, uint64_t tile)
{
    rms_norm_tile(call, tile, squares_avx2);
}

TARGET_AVX2 void host_head_norm_tile_avx2(const struct device_host_call *call, uint64_t tile)
{
    head_norm_tile(call, tile, squares_avx2);
}

TARGET_AVX512 static double squares_avx512(const float *x, size_t width)
{
    __m512d low = _mm512_setzero_pd();
    __m512d high = _mm512_setzero_pd();
    double lanes[LANES];
    for (size_t i = 0; i + LANES <= width; i += LANES) {
        __m512d first = _mm512_cvtps_pd(_mm256_loadu_ps(x + i));
        __m512d second = _mm512_cvtps_pd(_mm256_loadu_ps(x + i + 8));
        low = _mm512_fmadd_pd(first, first, low);
        high = _mm512_fmadd_pd(second, second, high);
    }
    _mm512_storeu_pd(lanes, low);
    _mm512_storeu_pd(lanes + 8, high);
    add_rest(x, width, lanes);
    return sum_lanes(lanes);
}

TARGET_AVX512 void host_rms_norm_tile_avx512(const struct device_host_call *call, uint64_t tile)
{
    rms_norm_tile(call, tile, squares_avx512);
}

TARGET_AVX512 void host_head_norm_tile_avx512(const struct device_host_call *call, uint64_t tile)
{
    head_norm_tile(call, tile, squares_avx512);
}

#endif

/* gelu.c - gelu and scale: one value at a time, so there is no order to keep.
 *
 * gelu(x) = x / 2 (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3), is x / (1 + exp(-2 u)): as
 * silu it is computed from e = exp(-|2 u|), which cannot overflow, without a difference of numbers
 * that are nearly equal: x / (1 + e) for u >= 0, x e / (1 + e) below. 2 u is x (A + B x^2), each
 * step rounded. scale rounds the product, the quotient by the cap, tanh and the last product.
 * Paths differ in exp and tanh: those of the C library; exp_avx2 and tanh_avx2, exp_avx512 and
 * tanh_avx512 (same bits). */
#include "ops/host/kernels.h"

#include "ops/host/matmul_tiles.h"
#include "ops/host/rows.h"
#include "ops/host/simd.h"

#include <math.h>

/* 2 sqrt(2 / pi), and that times 0.044715. */
#define GELU_A 1.5957691216057308f
#define GELU_B 0.07135481627260025f

/* The rows and columns of a tile. per_tile: columns, 0: all. */
struct part {
    struct row_range tokens, columns;
};

static struct part part_of(uint64_t tile, const struct device_host_operand *rows, uint64_t per_tile)
{
    uint64_t width = rows->shape.dims[0];
    per_tile = per_tile && per_tile < width ? per_tile : width;
    uint64_t parts = per_tile ? (width + per_tile - 1) / per_tile : 1;
    return (struct part){ .tokens = tile_tokens(tile / parts, rows),
                          .columns = tile_range(tile % parts, per_tile, width) };
}

/* up: NULL if there is none. */
typedef void (*gelu_row_function)(const float *x, const float *up, float *out, size_t width);

static void gelu_tile(const struct device_host_call *call, uint64_t tile,
                      gelu_row_function gelu_row)
{
    const struct device_host_operand *x = &call->operands[GELU_X];   /* all [width, tokens] */
    const struct device_host_operand *up = &call->operands[GELU_UP]; /* or absent */
    const struct device_host_operand *out = &call->operands[GELU_OUT];
    const struct params_swiglu *params = call->params;
    struct part part = part_of(tile, out, params->tile_columns);
    size_t first = part.columns.first, count = part.columns.end - first;
    for (uint64_t t = part.tokens.first; t < part.tokens.end; t++) {
        gelu_row(row_f32(x, t) + first, up->data ? row_f32(up, t) + first : NULL,
                 row_f32(out, t) + first, count);
        host_pack_part(&params->packing, out, &call->operands[GELU_PACKED], t, first, count);
    }
}

typedef void (*scale_row_function)(const struct params_scale *params, float *x, size_t width);

static void scale_tile(const struct device_host_call *call, uint64_t tile,
                       scale_row_function scale_row)
{
    const struct device_host_operand *x = &call->operands[SCALE_X]; /* [width, tokens] */
    const struct params_scale *params = call->params;
    struct part part = part_of(tile, x, params->tile_columns);
    for (uint64_t t = part.tokens.first; t < part.tokens.end; t++)
        scale_row(params, row_f32(x, t) + part.columns.first,
                  part.columns.end - part.columns.first);
}

/* ---- Portable ------------------------------------------------------------------------------- */

static void gelu_row_portable(const float *x, const float *up, float *out, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        float twice = x[i] * (GELU_A + GELU_B * (x[i] * x[i]));
        float e = expf(-fabsf(twice));
        float value = x[i] * (twice < 0 ? e : 1) / (1 + e);
        out[i] = up ? value * up[i] : value;
    }
}

void host_gelu_tile_portable(const struct device_host_call *call, uint64_t tile)
{
    gelu_tile(call, tile, gelu_row_portable);
}

static void scale_row_portable(const struct params_scale *params, float *x, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        x[i] *= params->factor;
        if (params->cap != 0)
            x[i] = params->cap * tanhf(x[i] / params->cap);
    }
}

void host_scale_tile_portable(const struct device_host_call *call, uint64_t tile)
{
    scale_tile(call, tile, scale_row_portable);
}

#if defined(__x86_64__)

/* ---- AVX2 ----------------------------------------------------------------------------------- */

INLINE_AVX2 __m256 gelu_avx2(__m256 x)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 twice = _mm256_mul_ps(_mm256_set1_ps(GELU_B), _mm256_mul_ps(x, x));
    twice = _mm256_mul_ps(x, _mm256_add_ps(_mm256_set1_ps(GELU_A), twice));
    __m256 e = exp_avx2(_mm256_or_ps(twice, sign));
    __m256 below = _mm256_cmp_ps(twice, _mm256_setzero_ps(), _CMP_LT_OQ);
    __m256 top = _mm256_blendv_ps(x, _mm256_mul_ps(x, e), below);
    return _mm256_div_ps(top, _mm256_add_ps(e, _mm256_set1_ps(1)));
}

TARGET_AVX2 static void gelu_row_avx2(const float *x, const float *up, float *out, size_t width)
{
    for (size_t i = 0; i < width; i += 8) {
        __m256i mask = mask_avx2(width - i);
        __m256 values = gelu_avx2(_mm256_maskload_ps(x + i, mask));
        if (up)
            values = _mm256_mul_ps(values, _mm256_maskload_ps(up + i, mask));
        _mm256_maskstore_ps(out + i, mask, values);
    }
}

void host_gelu_tile_avx2(const struct device_host_call *call, uint64_t tile)
{
    gelu_tile(call, tile, gelu_row_avx2);
}

TARGET_AVX2 static void scale_row_avx2(const struct params_scale *params, float *x, size_t width)
{
    __m256 factor = _mm256_set1_ps(params->factor), cap = _mm256_set1_ps(params->cap);
    for (size_t i = 0; i < width; i += 8) {
        __m256i mask = mask_avx2(width - i);
        __m256 values = _mm256_mul_ps(_mm256_maskload_ps(x + i, mask), factor);
        if (params->cap != 0)
            values = _mm256_mul_ps(cap, tanh_avx2(_mm256_div_ps(values, cap)));
        _mm256_maskstore_ps(x + i, mask, values);
    }
}

void host_scale_tile_avx2(const struct device_host_call *call, uint64_t tile)
{
    scale_tile(call, tile, scale_row_avx2);
}

/* ---- AVX-512 -------------------------------------------------------------------------------- */

INLINE_AVX512 __m512 gelu_avx512(__m512 x)
{
    __m512 twice = _mm512_mul_ps(_mm512_set1_ps(GELU_B), _mm512_mul_ps(x, x));
    twice = _mm512_mul_ps(x, _mm512_add_ps(_mm512_set1_ps(GELU_A), twice));
    __m512 e = exp_avx512(_mm512_or_ps(twice, _mm512_set1_ps(-0.0f)));
    __mmask16 below = _mm512_cmp_ps_mask(twice, _mm512_setzero_ps(), _CMP_LT_OQ);
    __m512 top = _mm512_mask_mul_ps(x, below, x, e);
    return _mm512_div_ps(top, _mm512_add_ps(e, _mm512_set1_ps(1)));
}

TARGET_AVX512 static void gelu_row_avx512(const float *x, const float *up, float *out, size_t width)
{
    for (size_t i = 0; i < width; i += 16) {
        __mmask16 mask = mask_avx512(width - i);
        __m512 values = gelu_avx512(_mm512_maskz_loadu_ps(mask, x + i));
        if (up)
            values = _mm512_mul_ps(values, _mm512_maskz_loadu_ps(mask, up + i));
        _mm512_mask_storeu_ps(out + i, mask, values);
    }
}

void host_gelu_tile_avx512(const struct device_host_call *call, uint64_t tile)
{
    gelu_tile(call, tile, gelu_row_avx512);
}

TARGET_AVX512 static void scale_row_avx512(const struct params_scale *params, float *x,
                                           size_t width)
{
    __m512 factor = _mm512_set1_ps(params->factor), cap = _mm512_set1_ps(params->cap);
    for (size_t i = 0; i < width; i += 16) {
        __mmask16 mask = mask_avx512(width - i);
        __m512 values = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), factor);
        if (params->cap != 0)
            values = _mm512_mul_ps(cap, tanh_avx512(_mm512_div_ps(values, cap)));
        _mm512_mask_storeu_ps(x + i, mask, values);
    }
}

void host_scale_tile_avx512(const struct device_host_call *call, uint64_t tile)
{
    scale_tile(call, tile, scale_row_avx512);
}

#endif

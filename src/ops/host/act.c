/* act.c - swiglu and add: one value at a time, so there is no order to keep.
 *
 * silu(x) = x / (1 + exp(-x)), computed from e = exp(-|x|), which cannot overflow: x / (1 + e) for
 * x >= 0, x e / (1 + e) below. swiglu rounds x e, 1 + e, the quotient and the product with up once
 * each. Paths differ in their exp: expf of the C library; exp_avx2, exp_avx512 (same bits). */
#include "ops/host/kernels.h"

#include "ops/host/matmul_tiles.h"
#include "ops/host/rows.h"
#include "ops/host/simd.h"

#include <math.h>

void host_add_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct device_host_operand *x = &call->operands[ADD_X];         /* [width, tokens] */
    const struct device_host_operand *added = &call->operands[ADD_ADDED]; /* [width, tokens] */
    struct row_range tokens = tile_tokens(tile, x);
    for (uint64_t t = tokens.first; t < tokens.end; t++) {
        float *row = row_f32(x, t);
        const float *more = row_f32(added, t);
        for (uint64_t i = 0; i < x->shape.dims[0]; i++)
            row[i] += more[i];
    }
}

/* ---- swiglu --------------------------------------------------------------------------------- */

typedef void (*swiglu_row_function)(const float *gate, const float *up, float *out, size_t width);

static void swiglu_tile(const struct device_host_call *call, uint64_t tile,
                        swiglu_row_function swiglu_row)
{
    const struct device_host_operand *gate = &call->operands[SWIGLU_GATE]; /* all [width, tokens] */
    const struct device_host_operand *up = &call->operands[SWIGLU_UP];
    const struct device_host_operand *out = &call->operands[SWIGLU_OUT];
    const struct params_swiglu *params = call->params;
    uint64_t width = out->shape.dims[0], per_tile = params->tile_columns;
    per_tile = per_tile && per_tile < width ? per_tile : width;
    uint64_t parts = per_tile ? (width + per_tile - 1) / per_tile : 1;
    struct row_range columns = tile_range(tile % parts, per_tile, width);
    struct row_range tokens = tile_tokens(tile / parts, out);
    size_t count = columns.end - columns.first;
    for (uint64_t t = tokens.first; t < tokens.end; t++) {
        swiglu_row(row_f32(gate, t) + columns.first, row_f32(up, t) + columns.first,
                   row_f32(out, t) + columns.first, count);
        host_pack_part(&params->packing, out, &call->operands[SWIGLU_PACKED], t, columns.first,
                       count);
    }
}

static void swiglu_row_portable(const float *gate, const float *up, float *out, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        float x = gate[i];
        float e = expf(-fabsf(x));
        float top = x * (x < 0 ? e : 1); /* both factors by a choice, not by a jump */
        out[i] = top / (1 + e) * up[i];
    }
}

void host_swiglu_tile_portable(const struct device_host_call *call, uint64_t tile)
{
    swiglu_tile(call, tile, swiglu_row_portable);
}

#if defined(__x86_64__)

INLINE_AVX2 __m256 swiglu_avx2(__m256 x, __m256 up)
{
    __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 e = exp_avx2(_mm256_or_ps(x, sign));
    __m256 below = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);
    __m256 top = _mm256_blendv_ps(x, _mm256_mul_ps(x, e), below);
    return _mm256_mul_ps(_mm256_div_ps(top, _mm256_add_ps(e, _mm256_set1_ps(1))), up);
}

TARGET_AVX2 static void swiglu_row_avx2(const float *gate, const float *up, float *out,
                                        size_t width)
{
    size_t whole = width - width % 8;
    for (size_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(out + i, swiglu_avx2(_mm256_loadu_ps(gate + i), _mm256_loadu_ps(up + i)));
    if (whole < width) {
        __m256i mask = mask_avx2(width - whole);
        __m256 rest = swiglu_avx2(_mm256_maskload_ps(gate + whole, mask),
                                  _mm256_maskload_ps(up + whole, mask));
        _mm256_maskstore_ps(out + whole, mask, rest);
    }
}

void host_swiglu_tile_avx2(const struct device_host_call *call, uint64_t tile)
{
    swiglu_tile(call, tile, swiglu_row_avx2);
}

INLINE_AVX512 __m512 swiglu_avx512(__m512 x, __m512 up)
{
    __m512 e = exp_avx512(_mm512_or_ps(x, _mm512_set1_ps(-0.0f)));
    __mmask16 below = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    __m512 top = _mm512_mask_mul_ps(x, below, x, e);
    return _mm512_mul_ps(_mm512_div_ps(top, _mm512_add_ps(e, _mm512_set1_ps(1))), up);
}

TARGET_AVX512 static void swiglu_row_avx512(const float *gate, const float *up, float *out,
                                            size_t width)
{
    for (size_t i = 0; i < width; i += 16) {
        __mmask16 mask = mask_avx512(width - i);
        __m512 values = swiglu_avx512(_mm512_maskz_loadu_ps(mask, gate + i),
                                      _mm512_maskz_loadu_ps(mask, up + i));
        _mm512_mask_storeu_ps(out + i, mask, values);
    }
}

void host_swiglu_tile_avx512(const struct device_host_call *call, uint64_t tile)
{
    swiglu_tile(call, tile, swiglu_row_avx512);
}

#endif

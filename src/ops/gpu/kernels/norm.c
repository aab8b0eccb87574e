/* norm.c - rms_norm, a block for each token; head_norm, a warp for each head; layer_norm, a block
 * for each token (x) and group of its values (y).
 *
 * out = x * weight * scale (one token by four: in this order, else scale first), scale = 1 /
 * sqrt(mean(x^2) + epsilon); sums in f32, each thread its own values first. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/pack.h"
#include "ops/params.h"

/* Values a thread keeps in registers; those of longer rows are read again. */
#define KEPT 4

KERNEL(rms_norm)
{
    early_allow();
    const struct params_norm *params = (const void *)call.params;
    uint32_t width = (uint32_t)call.operands[RMS_NORM_X].width, step = thread_count();
    GLOBAL float *x = row_f32(&call.operands[RMS_NORM_X], block_x()); /* [width, tokens] */
    const GLOBAL float *added = call.operands[RMS_NORM_ADDED].address
                                    ? row_f32(&call.operands[RMS_NORM_ADDED], block_x())
                                    : 0;
    const GLOBAL float *weight = row_f32(&call.operands[RMS_NORM_WEIGHT], 0); /* [width] */
    GLOBAL float *out = row_f32(&call.operands[RMS_NORM_OUT], block_x());     /* [width, tokens] */
    float kept[KEPT], more[KEPT], weights[KEPT];
    float squares = 0;
    /* Weights do not change: they are asked for before the kernel before this one has ended. */
    UNROLL
    for (uint32_t n = 0; n < KEPT; n++) {
        uint32_t i = n * step + thread_index();
        weights[n] = i < width ? weight[i] : 0;
    }
    early_wait();
    leave_crumbs(&call);
    /* All loads before the first store, which might be to the same memory. */
    UNROLL
    for (uint32_t n = 0; n < KEPT; n++) {
        uint32_t i = n * step + thread_index();
        kept[n] = i < width ? x[i] : 0;
        more[n] = added && i < width ? added[i] : 0;
    }
    UNROLL
    for (uint32_t n = 0; n < KEPT; n++) {
        uint32_t i = n * step + thread_index();
        if (added && i < width)
            x[i] = kept[n] += more[n];
        squares += kept[n] * kept[n];
    }
    for (uint32_t i = KEPT * step + thread_index(); i < width; i += step) {
        float value = x[i];
        if (added)
            x[i] = value += added[i];
        squares += value * value;
    }
    float mean = block_sum(squares, (SHARED float *)shared_memory()) / (float)width;
    float scale = inverse_root(mean + params->epsilon);
    GLOBAL uint8_t *packed = call.operands[RMS_NORM_PACKED].address
                                 ? row_at(&call.operands[RMS_NORM_PACKED], block_x())
                                 : 0;
    UNROLL
    for (uint32_t n = 0; n < KEPT; n++) {
        uint32_t i = n * step + thread_index();
        if (n * step >= width)
            break;
        float value = kept[n] * scale * weights[n];
        if (i < width)
            out[i] = value;
        if (packed)
            pack_value(params->packing.format, packed, width, i, value);
    }
    for (uint32_t first = KEPT * step; first < width; first += step) {
        uint32_t i = first + thread_index();
        float value = i < width ? x[i] * scale * weight[i] : 0;
        if (i < width)
            out[i] = value;
        if (packed)
            pack_value(params->packing.format, packed, width, i, value);
    }
}

/* The same where rows can be read 16 bytes at a time: four values a thread and step. */
#define KEPT_FOURS 2

/* Scales the values in registers, and packs them. largest: bits of the largest magnitude of each
 * four. packed: NULL if the call has no such operand. */
INLINE void scale_by_four(const struct params_norm *params, GLOBAL uint8_t *packed, float scale,
                          uint32_t width, floats4 kept[KEPT_FOURS], uint32_t largest[KEPT_FOURS])
{
    UNROLL
    for (uint32_t n = 0; n < KEPT_FOURS; n++) {
        kept[n] *= scale;
        largest[n] = bits_of(float_of(largest[n]) * scale);
    }
    if (packed)
        pack_fours(params->packing.format, packed, width, kept, largest, KEPT_FOURS);
}

/* Stores the values that do not fit into registers; they are read again. packed: NULL if the call
 * has no such operand. */
INLINE void store_rest_by_four(const struct gpu_call *call, GLOBAL uint8_t *packed, float scale)
{
    const struct params_norm *params = (const void *)call->params;
    uint32_t fours = (uint32_t)call->operands[RMS_NORM_X].width / 4, step = thread_count();
    const GLOBAL floats4 *x = (GLOBAL floats4 *)row_at(&call->operands[RMS_NORM_X], block_x());
    const GLOBAL floats4 *weight = (GLOBAL floats4 *)row_at(&call->operands[RMS_NORM_WEIGHT], 0);
    GLOBAL floats4 *out = (GLOBAL floats4 *)row_at(&call->operands[RMS_NORM_OUT], block_x());
    const floats4 zero = { 0 };
    for (uint32_t first = KEPT_FOURS * step; first < fours; first += step) {
        uint32_t i = first + thread_index();
        floats4 value = i < fours ? x[i] * weight[i] * scale : zero;
        if (i < fours)
            out[i] = value;
        if (packed)
            pack_four(params->packing.format, packed, 4 * fours, 4 * i, value);
    }
}

/* part: 1 / width. The mean is rounded as a division rounds it. */
INLINE float scale_of(float sum, uint32_t width, float part, float epsilon)
{
    float mean = sum * part;
    mean = __builtin_fmaf(__builtin_fmaf(-(float)width, mean, sum), part, mean);
    return inverse_root(mean + epsilon);
}

KERNEL(rms_norm_by_four)
{
    early_allow();
    const struct params_norm *params = (const void *)call.params;
    uint32_t fours = (uint32_t)call.operands[RMS_NORM_X].width / 4, step = thread_count();
    uint32_t width = 4 * fours;
    GLOBAL floats4 *x = (GLOBAL floats4 *)row_at(&call.operands[RMS_NORM_X], block_x());
    const GLOBAL floats4 *added = call.operands[RMS_NORM_ADDED].address
                                      ? (GLOBAL floats4 *)row_at(&call.operands[RMS_NORM_ADDED],
                                                                 block_x())
                                      : 0;
    const GLOBAL floats4 *weight = (GLOBAL floats4 *)row_at(&call.operands[RMS_NORM_WEIGHT], 0);
    GLOBAL floats4 *out = (GLOBAL floats4 *)row_at(&call.operands[RMS_NORM_OUT], block_x());
    const floats4 zero = { 0 };
    floats4 kept[KEPT_FOURS], more[KEPT_FOURS], weights[KEPT_FOURS], squares = zero;
    UNROLL
    for (uint32_t n = 0; n < KEPT_FOURS; n++) {
        uint32_t i = n * step + thread_index();
        weights[n] = i < fours ? weight[i] : zero;
        /* What was read long ago may have left the cache by now. */
        if (i < fours && lane_index() % 8 == 0)
            prefetch(&x[i]);
    }
    float part = 1.0f / (float)width;
    early_wait();
    leave_crumbs(&call);
    UNROLL
    for (uint32_t n = 0; n < KEPT_FOURS; n++) {
        uint32_t i = n * step + thread_index();
        kept[n] = i < fours ? x[i] : zero;
        more[n] = added && i < fours ? added[i] : zero;
    }
    UNROLL
    for (uint32_t n = 0; n < KEPT_FOURS; n++) {
        uint32_t i = n * step + thread_index();
        kept[n] += more[n];
        if (added && i < fours)
            x[i] = kept[n];
        squares += kept[n] * kept[n];
    }
    for (uint32_t i = KEPT_FOURS * step + thread_index(); i < fours; i += step) {
        floats4 value = x[i];
        if (added)
            x[i] = value += added[i];
        squares += value * value;
    }
    /* As much as can be is done before the sum is there; the scale does not change which of 32
     * values is the largest. */
    uint32_t largest[KEPT_FOURS];
    UNROLL
    for (uint32_t n = 0; n < KEPT_FOURS; n++) {
        kept[n] *= weights[n];
        largest[n] = four_largest(kept[n]);
    }
    float sum = block_sum(squares[0] + squares[1] + squares[2] + squares[3],
                          (SHARED float *)shared_memory());
    float scale = scale_of(sum, width, part, params->epsilon);
    GLOBAL uint8_t *packed = call.operands[RMS_NORM_PACKED].address
                                 ? row_at(&call.operands[RMS_NORM_PACKED], block_x())
                                 : 0;
    scale_by_four(params, packed, scale, width, kept, largest);
    UNROLL
    for (uint32_t n = 0; n < KEPT_FOURS; n++) {
        uint32_t i = n * step + thread_index();
        if (i < fours)
            out[i] = kept[n];
    }
    store_rest_by_four(&call, packed, scale);
}

KERNEL(head_norm)
{
    ENTER(call);
    const struct params_norm *params = (const void *)call.params;
    uint32_t head_dim = (uint32_t)call.operands[HEAD_NORM_WEIGHT].width;
    uint32_t heads = (uint32_t)call.operands[HEAD_NORM_X].width / head_dim;
    uint32_t head = block_x() * (thread_count() / WARP) + warp_index();
    if (head >= heads)
        return;
    GLOBAL float *x = row_f32(&call.operands[HEAD_NORM_X], block_y()) + head * head_dim;
    const GLOBAL float *weight = row_f32(&call.operands[HEAD_NORM_WEIGHT], 0); /* [head_dim] */
    float squares = 0;
    for (uint32_t i = lane_index(); i < head_dim; i += WARP)
        squares += x[i] * x[i];
    float mean = warp_sum(squares, WARP) / (float)head_dim;
    float scale = inverse_root(mean + params->epsilon);
    for (uint32_t i = lane_index(); i < head_dim; i += WARP)
        x[i] = x[i] * scale * weight[i];
}

KERNEL(layer_norm)
{
    ENTER(call);
    const struct params_layer_norm *params = (const void *)call.params;
    uint32_t width = (uint32_t)call.operands[LAYER_NORM_X].width, step = thread_count();
    uint32_t group = params->group ? params->group : width, first = block_y() * group;
    GLOBAL float *x = row_f32(&call.operands[LAYER_NORM_X], block_x()) + first;
    const GLOBAL float *added = call.operands[LAYER_NORM_ADDED].address
                                    ? row_f32(&call.operands[LAYER_NORM_ADDED], block_x()) + first
                                    : 0;
    const GLOBAL float *weight = row_f32(&call.operands[LAYER_NORM_WEIGHT], 0) + first;
    const GLOBAL float *bias = call.operands[LAYER_NORM_BIAS].address
                                   ? row_f32(&call.operands[LAYER_NORM_BIAS], 0) + first
                                   : 0;
    GLOBAL float *out = row_f32(&call.operands[LAYER_NORM_OUT], block_x()) + first;
    GLOBAL uint8_t *packed = call.operands[LAYER_NORM_PACKED].address
                                 ? row_at(&call.operands[LAYER_NORM_PACKED], block_x())
                                 : 0;
    float sum = 0, squares = 0;
    for (uint32_t i = thread_index(); i < group; i += step) {
        float value = x[i];
        if (added)
            x[i] = value += added[i];
        sum += value;
    }
    float mean = block_sum(sum, (SHARED float *)shared_memory()) / (float)group;
    for (uint32_t i = thread_index(); i < group; i += step)
        squares += (x[i] - mean) * (x[i] - mean);
    block_sync(); /* the memory of the first sum is used again */
    float variance = block_sum(squares, (SHARED float *)shared_memory()) / (float)group;
    float scale = inverse_root(variance + params->epsilon);
    for (uint32_t base = 0; base < group; base += step) {
        uint32_t i = base + thread_index();
        float value = i < group ? (x[i] - mean) * scale * weight[i] : 0;
        if (bias && i < group)
            value += bias[i];
        if (i < group)
            out[i] = value;
        if (packed)
            pack_value(params->packing.format, packed, width, i, value);
    }
}

/* pack_rows.c - rows of activations as halves for matrix units, and the ops that give them, for
 * many tokens: a block for each token. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/pack_halves.h"
#include "ops/params.h"

/* Operands of act_pack. Arguments: struct pack_halves_args. The loads of a thread do not wait for
 * each other: up to KEPT_OF_PACK values stay in registers, those of longer rows are read again. */
#define KEPT_OF_PACK 16
KERNEL(pack_halves)
{
    ENTER(call);
    const struct gpu_operand *x = &call.operands[ACT_PACK_X]; /* [k, tokens] */
    const GLOBAL float *row = row_f32(x, block_x());
    GLOBAL uint8_t *packed = row_at(&call.operands[ACT_PACK_PACKED], block_x());
    uint32_t k = (uint32_t)x->width, format = pack_halves_args_of(&call)->format, largest = 0;
    uint32_t step = 2 * thread_count(), kept_to = KEPT_OF_PACK / 2 * step;
    float kept[KEPT_OF_PACK];
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_PACK; n++) {
        uint32_t i = n / 2 * step + 2 * thread_index() + n % 2;
        kept[n] = i < k ? row[i] : 0.0f;
    }
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_PACK; n++) {
        uint32_t bits = magnitude_bits(kept[n]);
        largest = bits > largest ? bits : largest;
    }
    for (uint32_t i = kept_to + thread_index(); i < k; i += thread_count()) {
        uint32_t bits = magnitude_bits(row[i]);
        largest = bits > largest ? bits : largest;
    }
    float factor = enter_packed(format, packed, k, block_max_bits(largest));
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_PACK; n += 2) {
        uint32_t i = n / 2 * step + 2 * thread_index();
        if (i < k)
            store_two_halves(format, packed, i, kept[n], kept[n + 1], factor);
    }
    for (uint32_t i = kept_to + 2 * thread_index(); i < k; i += step)
        store_two_halves(format, packed, i, row[i], row[i + 1], factor);
}

/* Fours of values a thread keeps in registers; those of longer rows are read again. */
#define KEPT_OF_NORM 4
#define KEPT_OF_SWIGLU 8

/* Operands of rms_norm, all rows at multiples of 16 bytes. Arguments: struct pack_halves_args. */
KERNEL(rms_norm_halves)
{
    const struct params_norm *params = (const void *)call.params;
    uint32_t fours = (uint32_t)call.operands[RMS_NORM_X].width / 4, step = thread_count();
    uint32_t format = pack_halves_args_of(&call)->format;
    GLOBAL floats4 *x = (GLOBAL floats4 *)row_at(&call.operands[RMS_NORM_X], block_x());
    const GLOBAL floats4 *added = call.operands[RMS_NORM_ADDED].address
                                      ? (GLOBAL floats4 *)row_at(&call.operands[RMS_NORM_ADDED],
                                                                 block_x())
                                      : 0;
    const GLOBAL floats4 *weight = (GLOBAL floats4 *)row_at(&call.operands[RMS_NORM_WEIGHT], 0);
    GLOBAL floats4 *out = (GLOBAL floats4 *)row_at(&call.operands[RMS_NORM_OUT], block_x());
    GLOBAL uint8_t *packed = row_at(&call.operands[RMS_NORM_PACKED], block_x());
    const floats4 zero = { 0 };
    floats4 kept[KEPT_OF_NORM], more[KEPT_OF_NORM], weights[KEPT_OF_NORM], squares = zero;
    early_allow();
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_NORM; n++) { /* which no kernel before this one wrote */
        uint32_t i = n * step + thread_index();
        weights[n] = i < fours ? weight[i] : zero;
    }
    early_wait();
    leave_crumbs(&call);
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_NORM; n++) {
        uint32_t i = n * step + thread_index();
        kept[n] = i < fours ? x[i] : zero;
        more[n] = added && i < fours ? added[i] : zero;
    }
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_NORM; n++) {
        uint32_t i = n * step + thread_index();
        kept[n] += more[n];
        if (added && i < fours)
            x[i] = kept[n];
        squares += kept[n] * kept[n];
    }
    for (uint32_t i = KEPT_OF_NORM * step + thread_index(); i < fours; i += step) {
        floats4 value = x[i];
        if (added)
            x[i] = value += added[i];
        squares += value * value;
    }
    float mean = block_sum(squares[0] + squares[1] + squares[2] + squares[3],
                           (SHARED float *)shared_memory()) /
                 (float)(4 * fours);
    float scale = inverse_root(mean + params->epsilon);
    uint32_t largest = 0;
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_NORM; n++) {
        uint32_t i = n * step + thread_index();
        if (i < fours)
            out[i] = kept[n] = kept[n] * scale * weights[n];
        largest = largest_of_four(kept[n], largest);
    }
    for (uint32_t i = KEPT_OF_NORM * step + thread_index(); i < fours; i += step) {
        floats4 value = x[i] * scale * weight[i];
        out[i] = value;
        largest = largest_of_four(value, largest);
    }
    float factor = enter_packed(format, packed, 4 * fours, block_max_bits(largest));
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_NORM; n++) {
        uint32_t i = n * step + thread_index();
        if (i < fours)
            store_halves(format, packed, i, kept[n], factor);
    }
    for (uint32_t i = KEPT_OF_NORM * step + thread_index(); i < fours; i += step)
        store_halves(format, packed, i, out[i], factor);
}

/* Operands of swiglu, all rows at multiples of 16 bytes. Arguments: struct pack_halves_args. */
KERNEL(swiglu_halves)
{
    ENTER(call);
    uint32_t fours = (uint32_t)call.operands[SWIGLU_OUT].width / 4, step = thread_count();
    uint32_t format = pack_halves_args_of(&call)->format, largest = 0;
    const GLOBAL floats4 *gate = (GLOBAL floats4 *)row_at(&call.operands[SWIGLU_GATE], block_x());
    const GLOBAL floats4 *up = (GLOBAL floats4 *)row_at(&call.operands[SWIGLU_UP], block_x());
    GLOBAL floats4 *out = (GLOBAL floats4 *)row_at(&call.operands[SWIGLU_OUT], block_x());
    GLOBAL uint8_t *packed = row_at(&call.operands[SWIGLU_PACKED], block_x());
    const floats4 zero = { 0 };
    floats4 kept[KEPT_OF_SWIGLU], more[KEPT_OF_SWIGLU];
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_SWIGLU; n++) { /* all before the first store */
        uint32_t i = n * step + thread_index();
        kept[n] = i < fours ? gate[i] : zero;
        more[n] = i < fours ? up[i] : zero;
    }
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_SWIGLU; n++) {
        uint32_t i = n * step + thread_index();
        if (i >= fours)
            continue;
        UNROLL
        for (uint32_t v = 0; v < 4; v++)
            kept[n][v] = silu(kept[n][v]) * more[n][v];
        out[i] = kept[n];
        largest = largest_of_four(kept[n], largest);
    }
    for (uint32_t i = KEPT_OF_SWIGLU * step + thread_index(); i < fours; i += step) {
        floats4 x = gate[i], y = up[i];
        UNROLL
        for (uint32_t v = 0; v < 4; v++)
            x[v] = silu(x[v]) * y[v];
        out[i] = x;
        largest = largest_of_four(x, largest);
    }
    float factor = enter_packed(format, packed, 4 * fours, block_max_bits(largest));
    UNROLL
    for (uint32_t n = 0; n < KEPT_OF_SWIGLU; n++) {
        uint32_t i = n * step + thread_index();
        if (i < fours)
            store_halves(format, packed, i, kept[n], factor);
    }
    for (uint32_t i = KEPT_OF_SWIGLU * step + thread_index(); i < fours; i += step)
        store_halves(format, packed, i, out[i], factor);
}

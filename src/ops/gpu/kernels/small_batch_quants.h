/* small_batch_quants.h - what a warp of matmul_small_batch.c multiplies at a time: 256 columns of
 * 16 rows, which are in a stage of its ring, with those of 8 tokens, whose quants it has in
 * registers and whose scales in shared memory. */
#ifndef GRETA_OPS_GPU_KERNELS_FEW_QUANTS_H
#define GRETA_OPS_GPU_KERNELS_FEW_QUANTS_H

#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/kernels/matrix_quants.h"
#include "ops/gpu/tiling.h"

#if HAS_WARP_MATRIX

/* Activations of 256 columns, as matrix_quants.h wants them. */
struct small_batch_acts {
    words2 quants[8]; /* of each 32 columns */
    words2 high, low; /* Q4_K: sums of quants, scaled, as two floats of 11 bits that make them */
};

/* A lane's sums: rows lane / 4 and lane / 4 + 8, of each tokens 2 (lane % 4) and the next. */
struct small_batch_sums {
    float values[4];
};

/* The scales of 32 columns, of the lane's two tokens. */
INLINE const SHARED float *small_batch_scales(uint32_t dtype, const SHARED float *scales,
                                              uint32_t j)
{
    return scales +
           (j * SMALL_BATCH_TOKENS + 2 * (lane_index() % 4)) * small_batch_scale_floats(dtype);
}

/* 144 bytes a row: d and dmin, scales and mins, 128 bytes of nibbles. Scales become floats in the
 * low bits of 2^23 as in matmul_1tok_dot.h, for activations as large as there. */
INLINE void small_batch_add_q4_k(const SHARED uint8_t *stage, const struct small_batch_acts *acts,
                                 const SHARED float *scales, struct small_batch_sums *sums)
{
    const uint32_t row_bytes = small_batch_row_bytes(DTYPE_Q4_K);
    const SHARED uint8_t *mine = stage + lane_index() / 4 * row_bytes;
    words4 heads[2] = { load_shared(mine), load_shared(mine + 8 * row_bytes) };
    float quants[4] = { 0, 0, 0, 0 }, mins[4] = { 0, 0, 0, 0 };
    uint32_t scale_bytes[2][2];
    words4 min_floats;
    UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        uint32_t a = heads[r][1], b = heads[r][2], c = heads[r][3], place = lane_index() % 4;
        scale_bytes[r][0] = a & 0x3F3F3F3Fu;
        scale_bytes[r][1] = (c & 0x0F0F0F0Fu) | (a >> 2 & 0x30303030u);
        uint32_t front = b & 0x3F3F3F3Fu, back = (c >> 4 & 0x0F0F0F0Fu) | (b >> 2 & 0x30303030u);
        min_floats[r] = bits_of(byte_float(front, place) - 0x1p23f);
        min_floats[2 + r] = bits_of(byte_float(back, place) - 0x1p23f);
    }
    quants_multiply_add(mins, min_floats, acts->high);
    quants_multiply_add(mins, min_floats, acts->low);
    UNROLL
    for (uint32_t j = 0; j < 8; j += 2) {
        words4 nibbles = quants_load(stage + 16 + 16 * j, row_bytes);
        UNROLL
        for (uint32_t n = 0; n < 2; n++) {
            /* Upper nibbles are taken sixteenfold, as their scales are a sixteenth. */
            words4 weights = nibbles & (n ? 0xF0F0F0F0u : 0x0F0F0F0Fu);
            words4 dots = quants_multiply(true, weights, acts->quants[j + n]);
            floats4 by = *(const SHARED floats4 *)small_batch_scales(DTYPE_Q4_K, scales, j + n);
            UNROLL
            for (uint32_t i = 0; i < 4; i++) {
                float scale = byte_float(scale_bytes[i / 2][j / 4], (j + n) % 4);
                scale = __builtin_fmaf(scale, by[i % 2 * 2], by[i % 2 * 2 + 1]);
                quants[i] = __builtin_fmaf(scale, quants_sum(dots[i]), quants[i]);
            }
        }
    }
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t head = heads[i / 2][0];
        float d = f16_value((uint16_t)head), dmin = f16_value((uint16_t)(head >> 16));
        sums->values[i] = __builtin_fmaf(d, quants[i], sums->values[i]);
        sums->values[i] = __builtin_fmaf(-dmin, mins[i], sums->values[i]);
    }
}

/* 128 bytes of nibbles, 64 of upper bits, 16 scales of 16 columns each, d of eight blocks. Sums are
 * of four times the quant times both scales before d is taken: for activations below 2^106. */
INLINE void small_batch_add_q6_k(const SHARED uint8_t *stage, uint32_t block,
                                 const struct small_batch_acts *acts, const SHARED float *scales,
                                 struct small_batch_sums *sums)
{
    const uint32_t row_bytes = small_batch_row_bytes(DTYPE_Q6_K_X8);
    const SHARED uint8_t *mine = stage + lane_index() / 4 * row_bytes;
    /* 128 more: without sign. */
    words4 more[2] = { load_shared(mine + 192) ^ 0x80808080u,
                       load_shared(mine + 8 * row_bytes + 192) ^ 0x80808080u };
    float quants[4] = { 0, 0, 0, 0 };
    UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        words4 tops = quants_load(stage + 128 + 32 * half, row_bytes) ^ 0xAAAAAAAAu;
        words4 nibbles[2] = { quants_load(stage + 64 * half, row_bytes),
                              quants_load(stage + 64 * half + 32, row_bytes) };
        UNROLL
        for (uint32_t g = 0; g < 4; g++) {
            const uint32_t j = 4 * half + g;
            words2 by = *(const SHARED words2 *)small_batch_scales(DTYPE_Q6_K_X8, scales, j);
            words4 weights;
            UNROLL
            for (uint32_t w = 0; w < 4; w++) {
                /* 4 * quant - 128 as a signed byte: flipping bit 7 subtracts 128. */
                uint32_t low = nibbles[g % 2][w], top = tops[w] << (6 - 2 * g);
                low = (g < 2 ? low << 2 : low >> 2) & 0x3C3C3C3Cu;
                weights[w] = bits_under(top, 0xC0C0C0C0u, low);
            }
            UNROLL
            for (uint32_t side = 0; side < 2; side++) {
                words2 part = { weights[2 * side], weights[2 * side + 1] };
                words4 dots = quants_multiply_half(part, acts->quants[j][side]);
                UNROLL
                for (uint32_t i = 0; i < 4; i++) {
                    float scale = byte_float(more[i / 2][j / 2], 2 * (j % 2) + side) -
                                  (0x1p23f + 128.0f);
                    quants[i] = __builtin_fmaf(scale * float_of(by[i % 2]), quants_sum(dots[i]),
                                               quants[i]);
                }
            }
        }
    }
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const SHARED uint8_t *ds = mine + i / 2 * 8 * row_bytes + 208;
        float d = f16_value(((const SHARED uint16_t *)ds)[block % 8]);
        sums->values[i] = __builtin_fmaf(0.25f * d, quants[i], sums->values[i]);
    }
}

/* 256 quants, then eight scales. */
INLINE void small_batch_add_q8_0(const SHARED uint8_t *stage, const struct small_batch_acts *acts,
                                 const SHARED float *scales, struct small_batch_sums *sums)
{
    const uint32_t row_bytes = small_batch_row_bytes(DTYPE_Q8_0_X8);
    const SHARED uint8_t *mine = stage + lane_index() / 4 * row_bytes + 256;
    words4 ds[2] = { load_shared(mine), load_shared(mine + 8 * row_bytes) };
    UNROLL
    for (uint32_t j = 0; j < 8; j++) {
        words4 dots = quants_multiply(false, quants_load(stage + 32 * j, row_bytes),
                                      acts->quants[j]);
        words2 by = *(const SHARED words2 *)small_batch_scales(DTYPE_Q8_0_X8, scales, j);
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            float d = f16_value((uint16_t)(ds[i / 2][j / 2] >> (16 * (j % 2))));
            sums->values[i] = __builtin_fmaf(d * float_of(by[i % 2]), quants_sum(dots[i]),
                                             sums->values[i]);
        }
    }
}

/* block: of the row, which the stage has. */
INLINE void small_batch_add(uint32_t dtype, const SHARED uint8_t *stage, uint32_t block,
                            const struct small_batch_acts *acts, const SHARED float *scales,
                            struct small_batch_sums *sums)
{
    if (dtype == DTYPE_Q4_K)
        small_batch_add_q4_k(stage, acts, scales, sums);
    else if (dtype == DTYPE_Q6_K_X8)
        small_batch_add_q6_k(stage, block, acts, scales, sums);
    else
        small_batch_add_q8_0(stage, acts, scales, sums);
}

#endif
#endif

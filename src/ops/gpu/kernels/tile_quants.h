/* tile_quants.h - quants of quantized weights as halves: 256 values of a row as they lie in shared
 * memory (tile_raw_bytes), 64 of them at a time to a row of a panel. */
#ifndef GRETA_OPS_GPU_KERNELS_TILE_QUANTS_H
#define GRETA_OPS_GPU_KERNELS_TILE_QUANTS_H

#include "ops/gpu/kernels/matmul_unit.h"
#include "ops/gpu/kernels/matrix.h"
#include "ops/gpu/tiling.h"

/* Eight quants of one byte each, scaled, to a segment of a panel: (quant - base) * scale - min.
 * Quants become f16 as the digits of 1024 and something. */
INLINE void store_quants(SHARED uint8_t *panel, uint32_t row, uint32_t segment, words2 quants,
                         float base, float scale, float min)
{
    uint32_t bases = two_halves(1024.0f + base, 1024.0f + base);
    uint32_t scales = two_halves(scale, scale), mins = two_halves(min, min);
    words4 halves;
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t even = (quants[i] & 0x00FF00FFu) | 0x64006400u;
        uint32_t odd = (quants[i] >> 8 & 0x00FF00FFu) | 0x64006400u;
        even = scale_halves(even, bases, scales, mins);
        odd = scale_halves(odd, bases, scales, mins);
        halves[2 * i] = (even & 0xFFFFu) | odd << 16;
        halves[2 * i + 1] = even >> 16 | (odd & 0xFFFF0000u);
    }
    *(SHARED words4 *)(panel + panel_segment(row, segment)) = halves;
}

/* Low or high nibbles of eight bytes, with the bits above them. */
INLINE words2 join_quants(words2 bytes, uint32_t shift, words2 above)
{
    return (bytes >> shift & 0x0F0F0F0Fu) | above;
}

/* Quarter q of 256 values of a row; `part` of it: 8 columns of both groups of 32. */
INLINE void unpack_k(const SHARED uint8_t *raw, bool has_fifth, uint32_t q, uint32_t row,
                     uint32_t part, SHARED uint8_t *panel)
{
    words4 head = *(const SHARED words4 *)raw;
    uint32_t scales, mins;
    unpack_scales(head, q, &scales, &mins);
    float d = f16_value((uint16_t)head[0]), dmin = f16_value((uint16_t)(head[0] >> 16));
    words2 bytes = *(const SHARED words2 *)(raw + (has_fifth ? 48 : 16) + 32 * q + 8 * part);
    words2 fifth = { 0, 0 }, low = { 0, 0 }, high = { 0, 0 };
    if (has_fifth) {
        fifth = *(const SHARED words2 *)(raw + 16 + 8 * part);
        UNROLL
        for (uint32_t i = 0; i < 2; i++) {
            low[i] = (fifth[i] >> (2 * q) & 0x01010101u) << 4;
            high[i] = (fifth[i] >> (2 * q + 1) & 0x01010101u) << 4;
        }
    }
    store_quants(panel, row, part, join_quants(bytes, 0, low), 0, d * small_float(scales & 255u),
                 dmin * small_float(mins & 255u));
    store_quants(panel, row, 4 + part, join_quants(bytes, 4, high), 0, d * small_float(scales >> 8),
                 dmin * small_float(mins >> 8));
}

/* Quarter q is groups 2 (q % 2) and the next of half q / 2: one of the two words of nibbles has low
 * ones for it, or both high ones. */
INLINE void unpack_q6_k(const SHARED uint8_t *raw, uint32_t in_eight, uint32_t q, uint32_t row,
                        uint32_t part, SHARED uint8_t *panel)
{
    float d = f16_value(*(const SHARED uint16_t *)(raw + 208 + 2 * in_eight));
    words2 top = *(const SHARED words2 *)(raw + 128 + 32 * (q / 2) + 8 * part);
    UNROLL
    for (uint32_t g = 0; g < 2; g++) {
        uint32_t group = 2 * (q % 2) + g;
        words2 bytes = *(const SHARED words2 *)(raw + 64 * (q / 2) + 32 * g + 8 * part);
        float scale = d * (float)(int8_t)raw[192 + 8 * (q / 2) + 2 * group + part / 2];
        words2 upper;
        UNROLL
        for (uint32_t i = 0; i < 2; i++)
            upper[i] = (top[i] >> (2 * group) & 0x03030303u) << 4;
        store_quants(panel, row, 4 * g + part, join_quants(bytes, 4 * (q % 2), upper), 32, scale,
                     0);
    }
}

/* `part`: 8 quants of both blocks of 32. */
INLINE void unpack_q8_0(const SHARED uint8_t *raw, uint32_t q, uint32_t row, uint32_t part,
                        SHARED uint8_t *panel)
{
    UNROLL
    for (uint32_t g = 0; g < 2; g++) {
        words2 bytes = *(const SHARED words2 *)(raw + 64 * q + 32 * g + 8 * part);
        float scale = f16_value(*(const SHARED uint16_t *)(raw + 256 + 2 * (2 * q + g)));
        store_quants(panel, row, 4 * g + part, bytes ^ 0x80808080u, 128, scale, 0);
    }
}

/* 64 values of k of all rows become halves. */
INLINE void unpack_panel(uint32_t dtype, uint32_t tile_rows, const SHARED uint8_t *stage,
                         uint32_t block, uint32_t q, SHARED uint8_t *panel)
{
    UNROLL
    for (uint32_t i = 0; i < tile_rows * 4; i += TILE_THREADS) {
        uint32_t row = (i + thread_index()) / 4, part = thread_index() % 4;
        const SHARED uint8_t *raw = stage + row * tile_raw_bytes(dtype);
        if (dtype == DTYPE_Q6_K_X8)
            unpack_q6_k(raw, block % 8, q, row, part, panel);
        else if (dtype == DTYPE_Q8_0_X8)
            unpack_q8_0(raw, q, row, part, panel);
        else
            unpack_k(raw, dtype == DTYPE_Q5_K, q, row, part, panel);
    }
}

#endif

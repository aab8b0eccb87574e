/* matmul_avx512_panel.h - panels (matmul_panel.h) on AVX-512: one vpdpbusd takes 64 products, 4 k
 * of each of 16 rows. */
#ifndef GRETA_OPS_HOST_MATMUL_AVX512_PANEL_H
#define GRETA_OPS_HOST_MATMUL_AVX512_PANEL_H

#if defined(__x86_64__)

#include "ops/host/matmul_avx512.h"
#include "ops/host/matmul_panel.h"

/* What the quants of a panel stand for. */
enum panel_kind {
    PANEL_OFFSET_128, /* quant - 128, one scale */
    PANEL_OFFSET_8,   /* quant - 8, one scale */
    PANEL_MINS,       /* quant, one scale, one min */
    PANEL_HALVES      /* quant - 32, a scale for each half */
};

/* 16 bytes at offset of each row; words[i] lane r: bytes 4 i .. 4 i + 3 of row r. */
AVX512_INLINE void panel_transpose(const uint8_t *const rows[PANEL_ROWS], size_t offset,
                                   __m512i words[4])
{
    __m512i parts[4];
    for (size_t j = 0; j < 4; j++)
        parts[j] = load_4x128(rows[j] + offset, rows[4 + j] + offset, rows[8 + j] + offset,
                              rows[12 + j] + offset);
    __m512i low_01 = _mm512_unpacklo_epi32(parts[0], parts[1]);
    __m512i high_01 = _mm512_unpackhi_epi32(parts[0], parts[1]);
    __m512i low_23 = _mm512_unpacklo_epi32(parts[2], parts[3]);
    __m512i high_23 = _mm512_unpackhi_epi32(parts[2], parts[3]);
    words[0] = _mm512_unpacklo_epi64(low_01, low_23);
    words[1] = _mm512_unpackhi_epi64(low_01, low_23);
    words[2] = _mm512_unpacklo_epi64(high_01, high_23);
    words[3] = _mm512_unpackhi_epi64(high_01, high_23);
}

/* The whole task, in panels. kind and unpack belong to the dtype. */
void panel_matmul(const struct host_matmul_task *task, panel_unpack_function unpack,
                  enum panel_kind kind);

#endif

#endif

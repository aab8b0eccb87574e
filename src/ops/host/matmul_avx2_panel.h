/* matmul_avx2_panel.h - panels (matmul_panel.h) on AVX2. */
#ifndef GRETA_OPS_HOST_MATMUL_AVX2_PANEL_H
#define GRETA_OPS_HOST_MATMUL_AVX2_PANEL_H

#if defined(__x86_64__)

#include "ops/host/matmul_avx2.h"
#include "ops/host/matmul_panel.h"

/* What the quants of a panel stand for. */
enum avx2_panel_kind {
    AVX2_PANEL_SIGNED,   /* signed quants and their magnitudes; one scale: Q8_0 */
    AVX2_PANEL_OFFSET_8, /* quant - 8, one scale: Q4_0 */
    AVX2_PANEL_MINS_15,  /* quant, up to 15, one scale, one min: Q4_K */
    AVX2_PANEL_MINS_31,  /* the same, up to 31: Q5_K */
    AVX2_PANEL_HALVES    /* quant - 32, a scale for each half: Q6_K */
};

/* 16 bytes at offset of eight rows; words[i] lane r: bytes 4 i .. 4 i + 3 of row r. */
AVX2_INLINE void panel_transpose(const uint8_t *const rows[8], size_t offset, __m256i words[4])
{
    __m256i parts[4];
    for (size_t j = 0; j < 4; j++)
        parts[j] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_128(rows[j] + offset)),
                                           load_128(rows[4 + j] + offset), 1);
    __m256i low_01 = _mm256_unpacklo_epi32(parts[0], parts[1]);
    __m256i high_01 = _mm256_unpackhi_epi32(parts[0], parts[1]);
    __m256i low_23 = _mm256_unpacklo_epi32(parts[2], parts[3]);
    __m256i high_23 = _mm256_unpackhi_epi32(parts[2], parts[3]);
    words[0] = _mm256_unpacklo_epi64(low_01, low_23);
    words[1] = _mm256_unpackhi_epi64(low_01, low_23);
    words[2] = _mm256_unpacklo_epi64(high_01, high_23);
    words[3] = _mm256_unpackhi_epi64(high_01, high_23);
}

/* The f16 at offset of each of eight rows, as floats. */
AVX2_INLINE __m256 panel_halfs(const uint8_t *const rows[8], size_t offset)
{
    return _mm256_cvtph_ps(_mm_setr_epi16(load_i16(rows[0] + offset), load_i16(rows[1] + offset),
                                          load_i16(rows[2] + offset), load_i16(rows[3] + offset),
                                          load_i16(rows[4] + offset), load_i16(rows[5] + offset),
                                          load_i16(rows[6] + offset), load_i16(rows[7] + offset)));
}

/* The whole task, in panels. kind and unpack belong to the dtype. */
void avx2_panel_matmul(const struct host_matmul_task *task, panel_unpack_function unpack,
                       enum avx2_panel_kind kind);

#endif

#endif

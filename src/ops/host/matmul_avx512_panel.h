/* matmul_avx512_panel.h - many rows: 16 weight rows unpacked once, then multiplied with every
 * activation row.
 *
 * A panel has the blocks of 16 rows in the order in which they are visited: class 0 (blocks 0, 4,
 * 8, ...), class 1, ... In every vector, lane = row; a vector of levels has 4 consecutive k of each
 * row, so that one vpdpbusd takes 64 products with 4 activations, the same for all rows. */
#ifndef GRETA_OPS_HOST_MATMUL_AVX512_PANEL_H
#define GRETA_OPS_HOST_MATMUL_AVX512_PANEL_H

#if defined(__x86_64__)

#include "ops/host/matmul_avx512.h"

#define PANEL_ROWS 16

/* 32 k of 16 rows. */
struct panel_block {
    uint8_t levels[8][64];
    float scales[PANEL_ROWS]; /* Q6_K: of the first 16 k */
    float extras[PANEL_ROWS]; /* Q4_K, Q5_K: dmin * min; Q6_K: scales of the second 16 k */
};

/* What the levels of a panel stand for. */
enum panel_kind {
    PANEL_OFFSET_128, /* level - 128, one scale */
    PANEL_OFFSET_8,   /* level - 8, one scale */
    PANEL_MINS,       /* level, one scale, one min */
    PANEL_HALVES      /* level - 32, a scale for each half */
};

typedef void (*panel_unpack_function)(const uint8_t *const rows[PANEL_ROWS], size_t k,
                                      struct panel_block *panel);

#define PANEL_SCRATCH_BYTES_PER_K (sizeof(struct panel_block) / ACT_BLOCK)

/* Where block b of block_count is in the panel. */
static inline size_t panel_position(size_t b, size_t block_count)
{
    size_t class = b % ACT_GROUP_BLOCKS;
    size_t whole = block_count / ACT_GROUP_BLOCKS;
    size_t rest = block_count % ACT_GROUP_BLOCKS;
    return class * whole + smaller(class, rest) + b / ACT_GROUP_BLOCKS;
}

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

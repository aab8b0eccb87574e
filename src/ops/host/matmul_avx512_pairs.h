/* matmul_avx512_pairs.h - few rows of the K formats: rows in pairs.
 *
 * 64 bytes of nibbles hold 4 blocks of one row; a 128-bit part holds 16 values of two blocks, one
 * in the low nibbles, one in the high. Two rows are shuffled into a vector with the first and one
 * with the second 16 values of every block:
 *     parts 0 and 1 from row 0 (of the other pair: 2), parts 2 and 3 from row 1 (3)
 * The partial sums of low and high nibbles of both pairs go to sum_parts as vectors 0 to 3. Lane
 * 4 p + v of the accumulators then belongs to
 *     row p / 2 + 2 (v / 2)
 *     low nibbles if v is even, else high ones
 *     the first of the two blocks that these hold if p is even, else the second */
#ifndef GRETA_OPS_HOST_MATMUL_AVX512_PAIRS_H
#define GRETA_OPS_HOST_MATMUL_AVX512_PAIRS_H

#include "ops/host/matmul_impl.h"

#if defined(__x86_64__)

#include "ops/host/matmul_avx512.h"

/* Index 0: rows 0 and 1; index 1: rows 2 and 3. */
struct row_pairs {
    __m512i first[2];
    __m512i second[2];
};

/* 64 bytes at offset of each row. */
AVX512_INLINE struct row_pairs load_pairs(const uint8_t *const rows[TILE_ROWS], size_t offset)
{
    struct row_pairs pairs;
    for (size_t i = 0; i < 2; i++) {
        __m512i a = load_512(rows[2 * i] + offset);
        __m512i b = load_512(rows[2 * i + 1] + offset);
        pairs.first[i] = _mm512_shuffle_i64x2(a, b, 0x88);
        pairs.second[i] = _mm512_shuffle_i64x2(a, b, 0xDD);
    }
    return pairs;
}

/* The matrix that moves bit `from` of a byte to bit `to`, for vgf2p8affineqb; matrices of several
 * bits are ored. */
#define MOVE_BIT(from, to) ((int64_t)1 << (8 * (7 - (to)) + (from)))

/* One matrix for the even 128-bit parts, one for the odd. */
AVX512_INLINE __m512i part_matrices(int64_t even, int64_t odd)
{
    return _mm512_setr_epi64(even, even, odd, odd, even, even, odd, odd);
}

/* 16 quants of each of two blocks, twice, for both rows of a pair: block a, block b, a, b. */
AVX512_INLINE __m512i repeat_levels(const int8_t *block_a, const int8_t *block_b)
{
    __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(load_128(block_a)),
                                           load_128(block_b), 1);
    return _mm512_broadcast_i64x4(both);
}

#endif

#endif

/* matrix_quants.h - matrix units that multiply quants: 16 rows of weights times 8 rows of
 * activations, bytes each, to whole numbers; by a warp together.
 *
 * A lane has of rows lane / 4 and lane / 4 + 8 of the weights four neighbouring bytes from
 * 4 (lane % 4) on, of the activations the same of row lane / 4, and sums of rows lane / 4 (0 and 1)
 * and lane / 4 + 8 (2 and 3), columns 2 (lane % 4) and the next. */
#ifndef GRETA_OPS_GPU_KERNELS_MATRIX_QUANTS_H
#define GRETA_OPS_GPU_KERNELS_MATRIX_QUANTS_H

#include "ops/gpu/kernels/matrix.h"

#if HAS_WARP_MATRIX

/* What every sum of quants begins with: the bits of 1.5 * 2^23, in whose low bits a whole number
 * below 2^22 makes a float. */
#define QUANTS_NONE 0x4B400000u

INLINE float quants_sum(uint32_t sum)
{
    return float_of(sum) - 0x1.8p23f;
}

#if !IS_EMULATED

/* 32 bytes of 16 rows in shared memory, at multiples of 16: of the first 16 bytes rows lane / 4 and
 * lane / 4 + 8 in words 0 and 1, of the others in 2 and 3. */
INLINE words4 quants_load(const SHARED uint8_t *rows, uint32_t row_bytes)
{
    uint32_t a, b, c, d, lane = lane_index();
    const SHARED uint8_t *at = rows + lane % 16 * row_bytes + lane / 16 * 16;
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"((uint32_t)(uintptr_t)at)
                     : "memory");
    return (words4){ a, b, c, d };
}

#define QUANTS_MULTIPLY(type)                                                                      \
    __asm__("mma.sync.aligned.m16n8k32.row.col.s32." type ".s8.s32 {%0, %1, %2, %3}, "             \
            "{%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"                                    \
            : "=r"(s0), "=r"(s1), "=r"(s2), "=r"(s3)                                               \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(QUANTS_NONE))

/* Sums of 32 columns; weights with sign or without. */
INLINE words4 quants_multiply(bool is_unsigned, words4 a, words2 b)
{
    uint32_t s0, s1, s2, s3;
    if (is_unsigned)
        QUANTS_MULTIPLY("u8");
    else
        QUANTS_MULTIPLY("s8");
    return (words4){ s0, s1, s2, s3 };
}
/* With sign, of 16 columns. */
INLINE words4 quants_multiply_half(words2 a, uint32_t b)
{
    uint32_t s0, s1, s2, s3;
    __asm__("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
            "{%7, %7, %7, %7};"
            : "=r"(s0), "=r"(s1), "=r"(s2), "=r"(s3)
            : "r"(a[0]), "r"(a[1]), "r"(b), "r"(QUANTS_NONE));
    return (words4){ s0, s1, s2, s3 };
}

/* Sums += 16 rows times 8 rows of 8 floats, of which the unit reads the first 11 bits. A lane has
 * of rows lane / 4 and lane / 4 + 8 value lane % 4 (words 0 and 1) and value lane % 4 + 4 (words 2
 * and 3); of the other rows, row lane / 4, the same two. */
INLINE void quants_multiply_add(float sums[4], words4 a, words2 b)
{
    __asm__("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#else

INLINE words4 quants_load(const SHARED uint8_t *rows, uint32_t row_bytes)
{
    words4 words;
    uint32_t lane = lane_index();
    for (uint32_t w = 0; w < 4; w++) {
        uint32_t word;
        memcpy(&word, rows + (lane / 4 + 8 * (w % 2)) * row_bytes + 16 * (w / 2) + lane % 4 * 4, 4);
        words[w] = word;
    }
    emulator_warp_sync();
    return words;
}

INLINE words4 emulated_quants(const uint32_t mine[8], uint32_t sixteens, bool is_unsigned)
{
    uint32_t all[WARP][8];
    words4 sums;
    emulator_warp_gather(mine, all);
    for (uint32_t i = 0; i < 4; i++) {
        int32_t sum = (int32_t)QUANTS_NONE;
        for (uint32_t n = 0; n < 4 * sixteens; n++) {
            uint32_t a = all[lane_index() / 4 * 4 + n % 4][i / 2 + n / 4 * 2];
            uint32_t b = all[(2 * (lane_index() % 4) + i % 2) * 4 + n % 4][4 + n / 4];
            sum = is_unsigned ? dot4_unsigned(a, b, sum) : dot4(a, b, sum);
        }
        sums[i] = (uint32_t)sum;
    }
    return sums;
}
INLINE words4 quants_multiply(bool is_unsigned, words4 a, words2 b)
{
    const uint32_t mine[8] = { a[0], a[1], a[2], a[3], b[0], b[1] };
    return emulated_quants(mine, 2, is_unsigned);
}
INLINE words4 quants_multiply_half(words2 a, uint32_t b)
{
    const uint32_t mine[8] = { a[0], a[1], 0, 0, b };
    return emulated_quants(mine, 1, false);
}
INLINE void quants_multiply_add(float sums[4], words4 a, words2 b)
{
    const uint32_t kept = 0xFFFFE000u;
    uint32_t mine[8] = { a[0], a[1], a[2], a[3], b[0], b[1] }, all[WARP][8];
    emulator_warp_gather(mine, all);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 8; k++) {
            uint32_t x = all[lane_index() / 4 * 4 + k % 4][i / 2 + k / 4 * 2];
            uint32_t y = all[(2 * (lane_index() % 4) + i % 2) * 4 + k % 4][4 + k / 4];
            sums[i] += float_of(x & kept) * float_of(y & kept);
        }
}

#endif
#endif
#endif

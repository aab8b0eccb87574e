/* matrix.h - the matrix units all chips have: 16 x 16 sums += 16 rows times 16 rows, each of 16
 * halves (f16 or bf16), by MATRIX_LANES neighbouring threads together: a warp on NVIDIA
 * (mma.sync), a wide wave on AMD (MFMA).
 *
 * Rows come from panels in shared memory: rows of 128 bytes, whose 16-byte segments are exchanged
 * by segment ^ (row % 8), so that eight rows of a column of segments meet different banks. */
#ifndef GRETA_OPS_GPU_KERNELS_MATRIX_H
#define GRETA_OPS_GPU_KERNELS_MATRIX_H

#include "ops/gpu/kernels/portable.h"

#define PANEL_ROW_BYTES 128u
#define PANEL_K 64u

/* Where segment `segment` of a row of a panel is. */
INLINE uint32_t panel_segment(uint32_t row, uint32_t segment)
{
    return row * PANEL_ROW_BYTES + (segment ^ row % 8) * 16;
}

/* Threads that multiply together, and of 16 rows of 16 halves (in words) and 16 x 16 sums the part
 * that each has. */
#define MATRIX_LANES WAVE
#define MATRIX_WORDS (16 * 16 / 2 / MATRIX_LANES)
#define MATRIX_SUMS (16 * 16 / MATRIX_LANES)

/* 16 rows of 16 halves, a part in each lane. */
struct matrix_rows {
    uint32_t words[MATRIX_WORDS];
};
/* A lane's part of 16 x 16 sums: see matrix_row and matrix_column. */
struct matrix_sums {
    float values[MATRIX_SUMS];
};

#if !HAS_WARP_MATRIX

_Static_assert(MATRIX_LANES == 64, "MFMA as wide waves have it");

typedef _Float16 halves4 __attribute__((ext_vector_type(4)));
typedef short shorts4 __attribute__((ext_vector_type(4)));
typedef float sums4 __attribute__((ext_vector_type(4)));

INLINE uint32_t matrix_lane(void)
{
    return thread_index() % MATRIX_LANES;
}
INLINE uint32_t matrix_row(uint32_t i)
{
    return matrix_lane() / 16 * 4 + i;
}
INLINE uint32_t matrix_column(uint32_t i)
{
    (void)i;
    return matrix_lane() % 16;
}
/* Rows from `row` on, values of k from 8 * segment on. */
INLINE struct matrix_rows matrix_load(const SHARED uint8_t *panel, uint32_t row, uint32_t segment)
{
    struct matrix_rows rows;
    uint32_t lane = matrix_lane();
    words2 words = *(const SHARED words2 *)(panel +
                                            panel_segment(row + lane % 16, segment + lane / 32) +
                                            lane / 16 % 2 * 8);
    rows.words[0] = words[0];
    rows.words[1] = words[1];
    return rows;
}
INLINE void matrix_multiply(bool is_bf16, struct matrix_sums *sums, const struct matrix_rows *a,
                            const struct matrix_rows *b)
{
    sums4 total;
    __builtin_memcpy(&total, sums->values, sizeof(total));
    if (is_bf16) {
        shorts4 x, y;
        __builtin_memcpy(&x, a->words, sizeof(x));
        __builtin_memcpy(&y, b->words, sizeof(y));
        total = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, total, 0, 0, 0);
    } else {
        halves4 x, y;
        __builtin_memcpy(&x, a->words, sizeof(x));
        __builtin_memcpy(&y, b->words, sizeof(y));
        total = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, total, 0, 0, 0);
    }
    __builtin_memcpy(sums->values, &total, sizeof(total));
}

#else

_Static_assert(MATRIX_LANES == WARP, "mma.sync is a warp's");

INLINE uint32_t matrix_row(uint32_t i)
{
    return lane_index() / 4 + 8 * (i % 4 / 2);
}
INLINE uint32_t matrix_column(uint32_t i)
{
    return 8 * (i / 4) + 2 * (lane_index() % 4) + i % 2;
}

#if !IS_EMULATED

INLINE struct matrix_rows matrix_load(const SHARED uint8_t *panel, uint32_t row, uint32_t segment)
{
    struct matrix_rows rows;
    uint32_t lane = lane_index();
    const SHARED uint8_t *at = panel + panel_segment(row + lane % 16, segment + lane / 16);
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(rows.words[0]), "=r"(rows.words[1]), "=r"(rows.words[2]),
                       "=r"(rows.words[3])
                     : "r"((uint32_t)(uintptr_t)at)
                     : "memory");
    return rows;
}

/* The same of columns: 16 of them from 8 * segment on, whose k are the rows of the panel from
 * `row` on. */
INLINE struct matrix_rows matrix_load_turned(const SHARED uint8_t *panel, uint32_t row,
                                             uint32_t segment)
{
    struct matrix_rows rows;
    uint32_t lane = lane_index();
    const SHARED uint8_t *at = panel + panel_segment(row + lane / 16 * 8 + lane % 8,
                                                     segment + lane / 8 % 2);
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(rows.words[0]), "=r"(rows.words[1]), "=r"(rows.words[2]),
                       "=r"(rows.words[3])
                     : "r"((uint32_t)(uintptr_t)at)
                     : "memory");
    return rows;
}

#define MATRIX_STEP(type, half)                                                                    \
    __asm__("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, "       \
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                        \
            : "+f"(sums->values[4 * (half)]), "+f"(sums->values[4 * (half) + 1]),                  \
              "+f"(sums->values[4 * (half) + 2]), "+f"(sums->values[4 * (half) + 3])               \
            : "r"(a->words[0]), "r"(a->words[1]), "r"(a->words[2]), "r"(a->words[3]),              \
              "r"(b->words[half]), "r"(b->words[(half) + 2]))

INLINE void matrix_multiply(bool is_bf16, struct matrix_sums *sums, const struct matrix_rows *a,
                            const struct matrix_rows *b)
{
    if (is_bf16) {
        MATRIX_STEP("bf16", 0);
        MATRIX_STEP("bf16", 1);
    } else {
        MATRIX_STEP("f16", 0);
        MATRIX_STEP("f16", 1);
    }
}

/* 16 rows times 8 rows of 16 f16. A lane has of rows lane / 4 and lane / 4 + 8 of a (words 0 and 1)
 * the halves 2 (lane % 4) and the next, then (2 and 3) those eight further; of b row lane / 4; sums
 * of rows lane / 4 (0 and 1) and lane / 4 + 8, columns 2 (lane % 4) and the next. */
INLINE void matrix_multiply_narrow(float sums[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                   uint32_t a3, uint32_t b0, uint32_t b1)
{
    __asm__("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* Rows and columns of 8 x 8 halves exchanged; a lane has two neighbours of row lane / 4. */
INLINE uint32_t matrix_turned(uint32_t word)
{
    uint32_t turned;
    __asm__ volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(word));
    return turned;
}

#else

/* As NVIDIA's lanes hold them. */
INLINE struct matrix_rows matrix_load(const SHARED uint8_t *panel, uint32_t row, uint32_t segment)
{
    struct matrix_rows rows;
    uint32_t lane = lane_index();
    for (uint32_t w = 0; w < 4; w++)
        memcpy(&rows.words[w],
               panel + panel_segment(row + lane / 4 + 8 * (w % 2), segment + w / 2) + lane % 4 * 4,
               4);
    emulator_warp_sync();
    return rows;
}
INLINE struct matrix_rows matrix_load_turned(const SHARED uint8_t *panel, uint32_t row,
                                             uint32_t segment)
{
    struct matrix_rows rows;
    uint32_t lane = lane_index();
    for (uint32_t w = 0; w < 4; w++) {
        uint16_t pair[2];
        for (uint32_t i = 0; i < 2; i++)
            memcpy(&pair[i],
                   panel + panel_segment(row + 8 * (w / 2) + 2 * (lane % 4) + i, segment + w % 2) +
                       lane / 4 * 2,
                   2);
        rows.words[w] = pair[0] | (uint32_t)pair[1] << 16;
    }
    emulator_warp_sync();
    return rows;
}
INLINE float emulated_half(bool is_bf16, uint32_t word, uint32_t which)
{
    uint16_t bits = (uint16_t)(word >> (16 * which));
    return is_bf16 ? float_of((uint32_t)bits << 16) : f16_value(bits);
}
INLINE void matrix_multiply_narrow(float sums[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                   uint32_t a3, uint32_t b0, uint32_t b1)
{
    uint32_t mine[8] = { a0, a1, a2, a3, b0, b1 }, all[WARP][8];
    emulator_warp_gather(mine, all);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 16; k++) {
            const uint32_t *of_row = all[lane_index() / 4 * 4 + k % 8 / 2];
            const uint32_t *of_column = all[(2 * (lane_index() % 4) + i % 2) * 4 + k % 8 / 2];
            sums[i] += emulated_half(false, of_row[i / 2 + k / 8 * 2], k % 2) *
                       emulated_half(false, of_column[4 + k / 8], k % 2);
        }
}
INLINE uint32_t matrix_turned(uint32_t word)
{
    uint32_t mine[8] = { word }, all[WARP][8], row = lane_index() / 4, column = lane_index() % 4;
    emulator_warp_gather(mine, all);
    uint32_t low = all[8 * column + row / 2][0] >> (16 * (row % 2)) & 0xFFFFu;
    return low | (all[8 * column + 4 + row / 2][0] >> (16 * (row % 2)) & 0xFFFFu) << 16;
}
INLINE void matrix_multiply(bool is_bf16, struct matrix_sums *sums, const struct matrix_rows *a,
                            const struct matrix_rows *b)
{
    uint32_t mine[8], all[WARP][8];
    memcpy(mine, a->words, sizeof(a->words));
    memcpy(mine + 4, b->words, sizeof(b->words));
    emulator_warp_gather(mine, all);
    for (uint32_t i = 0; i < MATRIX_SUMS; i++) {
        uint32_t row = matrix_row(i), column = matrix_column(i);
        for (uint32_t k = 0; k < 16; k++) {
            /* Which lane and word has it. */
            const uint32_t *of_row = all[row % 8 * 4 + k % 8 / 2];
            const uint32_t *of_column = all[column % 8 * 4 + k % 8 / 2];
            sums->values[i] += emulated_half(is_bf16, of_row[row / 8 + 2 * (k / 8)], k % 2) *
                               emulated_half(is_bf16, of_column[4 + column / 8 + 2 * (k / 8)],
                                             k % 2);
        }
    }
}

#endif
#endif
#endif

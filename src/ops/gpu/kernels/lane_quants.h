/* lane_quants.h - quants of quantized weights as halves in the registers that warpgroups multiply
 * from: a warp's 16 rows, 256 values of k of each as they lie in shared memory, 32 at a time.
 *
 * Lane l has rows l / 4 and l / 4 + 8. From every 32 values it takes the eight from 8 * (l % 4)
 * on, which lie together in all types. What the matrix unit calls column 16 j + 8 h + 2 c + b of
 * them is value 8 c + 4 j + h + 2 b, so that bytes of a word two apart become a pair of halves:
 * activations are packed in that order (PACK_LANES).
 *
 * Bytes of 16 rows: the quants, rows 32 bytes further apart than they are long, so that four rows
 * of a column meet different banks; then what else the type has, part by part. */
#ifndef GRETA_OPS_GPU_KERNELS_LANE_QUANTS_H
#define GRETA_OPS_GPU_KERNELS_LANE_QUANTS_H

#include "ops/gpu/kernels/matmul_unit.h"
#include "ops/gpu/kernels/tile_quants.h"
#include "ops/gpu/tiling.h"

/* Where the parts that follow the quants begin. */
#define LANE_QUANTS_APART(dtype) ((dtype) == DTYPE_Q8_0_X8 ? 288u : 160u)
#define LANE_QUANTS_END(dtype) (16 * LANE_QUANTS_APART(dtype))
#define LANE_TOPS_APART 96u
/* Q4_K and Q5_K: heads, then fifth bits. Q6_K: scales, then d, then upper bits. Q8_0: scales. */
#define LANE_Q6_TOPS (LANE_QUANTS_END(DTYPE_Q6_K_X8) + 512)
#define LANE_FIFTHS (LANE_QUANTS_END(DTYPE_Q5_K) + 256)

/* ---- From memory ---------------------------------------------------------------------------- */

/* The 16 rows of a warp. All of the weights are less than 4 GiB. */
struct lane_rows {
    const GLOBAL uint8_t *weights;
    uint32_t first_bytes, stride_bytes;
};

/* In how many copies of each lane 256 values of all 16 rows come: quants, at_once rows of them at a
 * time, then the rest. */
INLINE uint32_t lane_quant_copies(uint32_t dtype)
{
    return dtype == DTYPE_Q8_0_X8 ? 8 : 4;
}
INLINE uint32_t lane_copies(uint32_t dtype)
{
    return lane_quant_copies(dtype) + (dtype == DTYPE_Q6_K_X8 ? 3 : dtype == DTYPE_Q5_K ? 2 : 1);
}

/* Asks for one of them. */
INLINE void copy_lane_bytes(uint32_t dtype, const struct lane_rows *rows, uint32_t block,
                            uint32_t copy, SHARED uint8_t *target)
{
    const uint32_t quant_copies = lane_quant_copies(dtype), at_once = 16 / quant_copies;
    const uint32_t across = WARP / at_once; /* lanes of a row, 16 bytes each */
    uint32_t lane = lane_index(), in = block % 8, stride = rows->stride_bytes;
    uint32_t at = rows->first_bytes +
                  (dtype == DTYPE_Q6_K_X8 ? block / 8 * 1680 : block * tile_raw_bytes(dtype));
    if (copy < quant_copies) {
        uint32_t row = lane / across + copy * at_once;
        uint32_t quants = dtype == DTYPE_Q4_K      ? 16
                          : dtype == DTYPE_Q5_K    ? 48
                          : dtype == DTYPE_Q6_K_X8 ? in * 128
                                                   : 0;
        copy_async_kept(target + row * LANE_QUANTS_APART(dtype) + lane % across * 16,
                        rows->weights + (at + quants + row * stride + lane % across * 16));
        return;
    }
    copy -= quant_copies;
    target += LANE_QUANTS_END(dtype);
    uint32_t head = at + lane % 16 * stride;
    if (copy == 0 && dtype == DTYPE_Q6_K_X8)
        copy_async_kept(target + lane * 16,
                        rows->weights + (head + (lane < 16 ? 1536 + in * 16 : 1664)));
    else if (copy == 0 && lane < 16)
        copy_async_kept(target + lane * 16,
                        rows->weights + (head + (dtype == DTYPE_Q8_0_X8 ? 256 : 0)));
    else if (copy > 0 && dtype == DTYPE_Q6_K_X8) {
        uint32_t row = lane / 4 + 8 * (copy - 1);
        copy_async_kept(target + 512 + row * LANE_TOPS_APART + lane % 4 * 16,
                        rows->weights + (at + 1024 + in * 64 + row * stride + lane % 4 * 16));
    } else if (copy > 0) /* Q5_K */
        copy_async_kept(target + 256 + lane * 16,
                        rows->weights + (at + 16 + lane / 2 * stride + lane % 2 * 16));
}

/* ---- Scales --------------------------------------------------------------------------------- */

/* What the four lanes of a row hold of its scales, each a part, as pairs of halves. */
struct lane_scales {
    uint32_t pairs[2]; /* Q4_K, Q5_K: scales and mins of quarter lane % 4; Q6_K: of two quarters */
};

INLINE struct lane_scales load_lane_scales(uint32_t dtype, const SHARED uint8_t *raw, uint32_t row,
                                           uint32_t in_eight)
{
    struct lane_scales held = { { 0, 0 } };
    uint32_t c = lane_index() % 4;
    raw += LANE_QUANTS_END(dtype) + row * 16;
    if (dtype == DTYPE_Q4_K || dtype == DTYPE_Q5_K) {
        words4 head = *(const SHARED words4 *)raw;
        uint32_t scales, mins;
        unpack_scales(head, c, &scales, &mins);
        float d = f16_value((uint16_t)head[0]), dmin = f16_value((uint16_t)(head[0] >> 16));
        held.pairs[0] = two_halves(d * small_float(scales & 255u), d * small_float(scales >> 8));
        held.pairs[1] = two_halves(dmin * small_float(mins & 255u), dmin * small_float(mins >> 8));
    } else if (dtype == DTYPE_Q6_K_X8) {
        /* Quarters 2 (c % 2) and the next; of 32 values, the half that lanes with this c / 2 have.
         */
        words2 scales = *(const SHARED words2 *)(raw + c % 2 * 8);
        float d = f16_value(*(const SHARED uint16_t *)(raw + 256 + in_eight * 2));
        UNROLL
        for (uint32_t n = 0; n < 2; n++) {
            uint32_t mine = (scales[n] ^ 0x80808080u) >> (8 * (c / 2));
            held.pairs[n] = two_halves(d * (small_float(mine & 255u) - 128.0f),
                                       d * (small_float(mine >> 16 & 255u) - 128.0f));
        }
    }
    return held;
}

/* ---- Quants --------------------------------------------------------------------------------- */

/* 64 values of one of the lane's rows: scales, what is taken off, quants a byte each. */
struct lane_quarter {
    uint32_t scales, mins;
    words2 bytes[2], top;
};

INLINE struct lane_quarter load_lane_quarter(uint32_t dtype, const SHARED uint8_t *raw, uint32_t q,
                                             uint32_t row, const struct lane_scales *held)
{
    struct lane_quarter quarter = { 0 };
    uint32_t quad = lane_index() & 28u, c = lane_index() % 4;
    const SHARED uint8_t *quants = raw + row * LANE_QUANTS_APART(dtype) + c * 8;
    if (dtype == DTYPE_Q8_0_X8) {
        quarter.scales = *(const SHARED uint32_t *)(raw + LANE_QUANTS_END(dtype) + row * 16 +
                                                    4 * q);
        quarter.bytes[0] = *(const SHARED words2 *)(quants + 64 * q);
        quarter.bytes[1] = *(const SHARED words2 *)(quants + 64 * q + 32);
    } else if (dtype == DTYPE_Q6_K_X8) {
        quarter.scales = warp_pick(held->pairs[q % 2], quad | (lane_index() & 2u) | q / 2);
        quarter.bytes[0] = *(const SHARED words2 *)(quants + 64 * (q / 2));
        quarter.bytes[1] = *(const SHARED words2 *)(quants + 64 * (q / 2) + 32);
        quarter.top = *(const SHARED words2 *)(raw + LANE_Q6_TOPS + row * LANE_TOPS_APART +
                                               32 * (q / 2) + c * 8);
    } else {
        quarter.scales = warp_pick(held->pairs[0], quad | q);
        quarter.mins = warp_pick(held->pairs[1], quad | q);
        quarter.bytes[0] = *(const SHARED words2 *)(quants + 32 * q);
        if (dtype == DTYPE_Q5_K)
            quarter.top = *(const SHARED words2 *)(raw + LANE_FIFTHS + row * 32 + c * 8);
    }
    return quarter;
}

/* Eight quants of group g of 32, a byte each. */
INLINE words2 lane_group(uint32_t dtype, const struct lane_quarter *quarter, uint32_t q, uint32_t g)
{
    if (dtype == DTYPE_Q8_0_X8)
        return quarter->bytes[g] ^ 0x80808080u;
    if (dtype == DTYPE_Q6_K_X8) {
        uint32_t group = 2 * (q % 2) + g;
        words2 upper = group < 2    ? quarter->top << (4 - 2 * group)
                       : group == 2 ? quarter->top
                                    : quarter->top >> 2;
        return join_quants(quarter->bytes[g], 4 * (q % 2), upper & 0x30303030u);
    }
    words2 fifth = { 0, 0 };
    if (dtype == DTYPE_Q5_K)
        fifth = (quarter->top >> (2 * q + g) & 0x01010101u) << 4;
    return join_quants(quarter->bytes[0], 4 * g, fifth);
}

/* Two quants, bytes 0 and 2 of a word, or 1 and 3, as f16 by ORing them into the mantissa of 1024
 * (0x6400), whose last bit is 1; Q4_K's high nibbles, unshifted, into that of 64 (0x5400), whose
 * last bit is 1/16. lane_base is subtracted later. */
INLINE uint32_t lane_pair(uint32_t dtype, const struct lane_quarter *quarter, uint32_t g,
                          words2 quants, uint32_t j, uint32_t odd)
{
    if (dtype == DTYPE_Q4_K)
        return bits_under(quarter->bytes[0][j] >> (8 * odd), g ? 0x00F000F0u : 0x000F000Fu,
                          g ? 0x54005400u : 0x64006400u);
    return pick_bytes(quants[j], 0x64646464u,
                      odd ? byte_selector(1, 4, 3, 4) : byte_selector(0, 4, 2, 4));
}

INLINE float lane_base(uint32_t dtype, uint32_t g)
{
    if (dtype == DTYPE_Q4_K)
        return g ? 64.0f : 1024.0f;
    return dtype == DTYPE_Q8_0_X8 ? 1152.0f : dtype == DTYPE_Q6_K_X8 ? 1056.0f : 1024.0f;
}

/* Group g of 32 values of one of the lane's rows (which: 0, or 1 for the row eight further), to the
 * words of warpgroup_multiply_held. */
INLINE void hold_lane_group(uint32_t dtype, const struct lane_quarter *quarter, uint32_t q,
                            uint32_t g, uint32_t which, uint32_t words[8])
{
    uint32_t bases = two_halves(lane_base(dtype, g), lane_base(dtype, g));
    uint32_t scale = half_twice(quarter->scales, g), min = half_twice(quarter->mins, g);
    words2 quants = lane_group(dtype, quarter, q, g);
    UNROLL
    for (uint32_t j = 0; j < 2; j++) {
        uint32_t even = lane_pair(dtype, quarter, g, quants, j, 0);
        uint32_t odd = lane_pair(dtype, quarter, g, quants, j, 1);
        words[4 * j + which] = scale_halves(even, bases, scale, min);
        words[4 * j + which + 2] = scale_halves(odd, bases, scale, min);
    }
}

#endif

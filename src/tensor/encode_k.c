/* encode_k.c - writes Q4_K, Q5_K and Q6_K blocks.
 *
 * A block is encoded in three steps. First the best real scales of its groups (k_search.c). Then
 * the f16 scale of the block and the integer scales of the groups that come nearest to those, tried
 * with their neighbours. Then the quants of the values. Each step works with what the decoder will
 * compute from the step before, not with the exact number. */
#include "tensor/k_search.h"

#include <math.h>

/* More than any K block can hold (65504 * 128 * 32), and small enough to sum up squares. Larger
 * values saturate anyway. */
#define VALUE_LIMIT 0x1p30f

/* Integer scales and mins of Q4_K and Q5_K are 0..63, scales of Q6_K -128..127. */
#define AFFINE_SCALE_LIMIT 63
#define SIGNED_SCALE_LOW (-128)
#define SIGNED_SCALE_HIGH 127

static float clamp(float value, float low, float high)
{
    value = value < low ? low : value;
    return value > high ? high : value;
}

/* Returns, as float, the f16 number whose multiple by count is about largest (which is >= 0): the
 * largest group scale should get the largest integer. */
static float block_scale(float largest, float count)
{
    float wanted = largest / count;
    if (wanted >= F16_LIMIT)
        return F16_LIMIT;
    uint16_t bits = f16_from_f32(wanted);
    /* A nearest subnormal f16 can be so much too small that the largest scales would not fit. The
     * next larger one loses less. */
    if (wanted > f16_to_f32(bits) * (1 + 0.5f / count))
        bits++;
    return f16_to_f32(bits);
}

/* The number of steps that comes nearest to value, clamped to low..high. */
static int nearest_steps(float value, float step, int low, int high)
{
    if (step == 0)
        return 0;
    float steps = clamp(value / step, (float)low, (float)high);
    return (int)floorf(steps + 0.5f);
}

/* A Q4_K or Q5_K block before packing. */
struct affine_block {
    float d; /* exact f16 values */
    float dmin;
    int scale[AFFINE_GROUPS]; /* 0..63 */
    int min[AFFINE_GROUPS];
};

static int clamp_steps(int steps, int low, int high)
{
    return steps < low ? low : steps > high ? high : steps;
}

/* The values that the decoder computes from the integers of block. */
static void affine_fit_of(const struct affine_block *block, struct affine_fit *ret_fit)
{
    for (size_t g = 0; g < AFFINE_GROUPS; g++) {
        ret_fit->scale[g] = block->d * (float)block->scale[g];
        ret_fit->offset[g] = block->dmin * (float)block->min[g];
    }
}

/* The integers of other become those of block, moved by this many steps. */
static void affine_move(const struct affine_block *block, int scale_steps, int min_steps,
                        struct affine_block *ret_other)
{
    *ret_other = *block;
    for (size_t g = 0; g < AFFINE_GROUPS; g++) {
        ret_other->scale[g] = clamp_steps(block->scale[g] + scale_steps, 0, AFFINE_SCALE_LIMIT);
        ret_other->min[g] = clamp_steps(block->min[g] + min_steps, 0, AFFINE_SCALE_LIMIT);
    }
}

/* For each group, takes the pair of integers with the smallest error among those next to the ones
 * in block: rounding scale and min separately often misses it. */
static void affine_choose_integers(const struct affine_columns *columns, float limit,
                                   struct affine_block *block)
{
    const struct affine_block start = *block;
    float best[AFFINE_GROUPS], error[AFFINE_GROUPS];
    for (size_t g = 0; g < AFFINE_GROUPS; g++)
        best[g] = INFINITY;
    for (int scale_steps = -1; scale_steps <= 1; scale_steps++) {
        for (int min_steps = -1; min_steps <= 1; min_steps++) {
            struct affine_block other;
            struct affine_fit fit;
            affine_move(&start, scale_steps, min_steps, &other);
            affine_fit_of(&other, &fit);
            k_affine_measure(columns, limit, &fit, error);
            for (size_t g = 0; g < AFFINE_GROUPS; g++) {
                if (error[g] < best[g]) {
                    best[g] = error[g];
                    block->scale[g] = other.scale[g];
                    block->min[g] = other.min[g];
                }
            }
        }
    }
}

/* The f16 scales of the block and the integers nearest to the fit. */
static void affine_round(const struct affine_fit *fit, struct affine_block *ret_block)
{
    float largest_scale = 0;
    float largest_offset = 0;
    for (size_t g = 0; g < AFFINE_GROUPS; g++) {
        largest_scale = fmaxf(largest_scale, fit->scale[g]);
        largest_offset = fmaxf(largest_offset, fit->offset[g]);
    }
    ret_block->d = block_scale(largest_scale, AFFINE_SCALE_LIMIT);
    ret_block->dmin = block_scale(largest_offset, AFFINE_SCALE_LIMIT);
    for (size_t g = 0; g < AFFINE_GROUPS; g++) {
        ret_block->scale[g] = nearest_steps(fit->scale[g], ret_block->d, 0, AFFINE_SCALE_LIMIT);
        ret_block->min[g] = nearest_steps(fit->offset[g], ret_block->dmin, 0, AFFINE_SCALE_LIMIT);
    }
}

static void encode_affine(const float *values, float limit, struct affine_block *ret_block,
                          struct affine_quants *ret_quants)
{
    struct affine_columns columns;
    for (size_t g = 0; g < AFFINE_GROUPS; g++) {
        for (size_t i = 0; i < AFFINE_GROUP_SIZE; i++)
            columns.x[i][g] = clamp(values[AFFINE_GROUP_SIZE * g + i], -VALUE_LIMIT, VALUE_LIMIT);
    }
    struct affine_fit fit;
    k_affine_search(&columns, limit, &fit);
    affine_round(&fit, ret_block);
    affine_choose_integers(&columns, limit, ret_block);
    affine_fit_of(ret_block, &fit);
    k_affine_assign(&columns, limit, &fit, ret_quants);
}

/* 12 bytes: one for each scale and min of the groups 0..3, whose upper two bits are those of the
 * groups 4..7; then one for the lower four bits of scale and min of each of these. */
static void pack_affine_scales(const struct affine_block *block, uint8_t *bytes)
{
    for (size_t j = 0; j < 4; j++) {
        int scale = block->scale[j + 4];
        int min = block->min[j + 4];
        bytes[j] = (uint8_t)(block->scale[j] | (scale >> 4) << 6);
        bytes[j + 4] = (uint8_t)(block->min[j] | (min >> 4) << 6);
        bytes[j + 8] = (uint8_t)((scale & 15) | (min & 15) << 4);
    }
}

/* 128 bytes; each 32 of them hold one group in the low nibbles and the next in the high ones. */
static void pack_affine_nibbles(const struct affine_quants *quants, uint8_t *bytes)
{
    for (size_t pair = 0; pair < AFFINE_GROUPS / 2; pair++) {
        for (size_t k = 0; k < AFFINE_GROUP_SIZE; k++) {
            const uint8_t *quant = quants->quant[k] + 2 * pair;
            bytes[AFFINE_GROUP_SIZE * pair + k] = (uint8_t)((quant[0] & 15) | (quant[1] & 15) << 4);
        }
    }
}

void quant_encode_q4_k(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t b = 0; b < block_count; b++, blocks += 144, values += K_BLOCK) {
        struct affine_block block;
        struct affine_quants quants;
        encode_affine(values, 15, &block, &quants);
        store_f16(blocks, block.d);
        store_f16(blocks + 2, block.dmin);
        pack_affine_scales(&block, blocks + 4);
        pack_affine_nibbles(&quants, blocks + 16);
    }
}

void quant_encode_q5_k(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t b = 0; b < block_count; b++, blocks += 176, values += K_BLOCK) {
        struct affine_block block;
        struct affine_quants quants;
        encode_affine(values, 31, &block, &quants);
        store_f16(blocks, block.d);
        store_f16(blocks + 2, block.dmin);
        pack_affine_scales(&block, blocks + 4);
        for (size_t k = 0; k < AFFINE_GROUP_SIZE; k++) {
            unsigned fifth_bits = 0;
            for (size_t g = 0; g < AFFINE_GROUPS; g++)
                fifth_bits |= (unsigned)(quants.quant[k][g] >> 4) << g;
            blocks[16 + k] = (uint8_t)fifth_bits;
        }
        pack_affine_nibbles(&quants, blocks + 48);
    }
}

/* A Q6_K block before packing. */
struct signed_block {
    float d;                  /* an exact f16 value */
    int scale[SIGNED_GROUPS]; /* -128..127 */
};

static void signed_fit_of(const struct signed_block *block, struct signed_fit *ret_fit)
{
    for (size_t g = 0; g < SIGNED_GROUPS; g++)
        ret_fit->scale[g] = block->d * (float)block->scale[g];
}

/* As affine_choose_integers. */
static void signed_choose_integers(const struct signed_columns *columns, struct signed_block *block)
{
    const struct signed_block start = *block;
    float best[SIGNED_GROUPS], error[SIGNED_GROUPS];
    for (size_t g = 0; g < SIGNED_GROUPS; g++)
        best[g] = INFINITY;
    for (int steps = -1; steps <= 1; steps++) {
        struct signed_block other = start;
        struct signed_fit fit;
        for (size_t g = 0; g < SIGNED_GROUPS; g++)
            other.scale[g] = clamp_steps(start.scale[g] + steps, SIGNED_SCALE_LOW,
                                         SIGNED_SCALE_HIGH);
        signed_fit_of(&other, &fit);
        k_signed_measure(columns, &fit, error);
        for (size_t g = 0; g < SIGNED_GROUPS; g++) {
            if (error[g] < best[g]) {
                best[g] = error[g];
                block->scale[g] = other.scale[g];
            }
        }
    }
}

/* The f16 scale of the block and the integers nearest to the fit. The largest scale becomes -128,
 * which has no positive counterpart. */
static void signed_round(const struct signed_fit *fit, struct signed_block *ret_block)
{
    float peak = 0;
    for (size_t g = 0; g < SIGNED_GROUPS; g++) {
        if (fabsf(fit->scale[g]) > fabsf(peak))
            peak = fit->scale[g];
    }
    float magnitude = block_scale(fabsf(peak), -SIGNED_SCALE_LOW);
    ret_block->d = peak > 0 ? -magnitude : magnitude;
    for (size_t g = 0; g < SIGNED_GROUPS; g++)
        ret_block->scale[g] = nearest_steps(fit->scale[g], ret_block->d, SIGNED_SCALE_LOW,
                                            SIGNED_SCALE_HIGH);
}

static void encode_signed(const float *values, struct signed_block *ret_block,
                          struct signed_quants *ret_quants)
{
    struct signed_columns columns;
    for (size_t g = 0; g < SIGNED_GROUPS; g++) {
        for (size_t i = 0; i < SIGNED_GROUP_SIZE; i++)
            columns.x[i][g] = clamp(values[SIGNED_GROUP_SIZE * g + i], -VALUE_LIMIT, VALUE_LIMIT);
    }
    struct signed_fit fit;
    k_signed_search(&columns, &fit);
    signed_round(&fit, ret_block);
    signed_choose_integers(&columns, ret_block);
    signed_fit_of(ret_block, &fit);
    k_signed_assign(&columns, &fit, ret_quants);
}

/* Nibbles and upper bits of the quants, as quant_decode_q6_k describes them. */
static void pack_signed_quants(const struct signed_quants *quants, uint8_t *nibbles, uint8_t *high)
{
    memset(nibbles, 0, K_BLOCK / 2);
    memset(high, 0, K_BLOCK / 4);
    for (size_t s = 0; s < SIGNED_GROUPS; s++) {
        size_t half = s / 8;
        size_t group = s % 8 / 2;
        size_t start = 16 * (s % 2);
        uint8_t *group_nibbles = nibbles + 64 * half + 32 * (group % 2) + start;
        uint8_t *group_high = high + 32 * half + start;
        for (size_t k = 0; k < SIGNED_GROUP_SIZE; k++) {
            unsigned quant = quants->quant[k][s];
            group_nibbles[k] |= (uint8_t)((quant & 15) << (4 * (group / 2)));
            group_high[k] |= (uint8_t)((quant >> 4) << (2 * group));
        }
    }
}

void quant_encode_q6_k(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t b = 0; b < block_count; b++, blocks += 210, values += K_BLOCK) {
        struct signed_block block;
        struct signed_quants quants;
        encode_signed(values, &block, &quants);
        pack_signed_quants(&quants, blocks, blocks + 128);
        for (size_t g = 0; g < SIGNED_GROUPS; g++)
            blocks[192 + g] = (uint8_t)block.scale[g];
        store_f16(blocks + 208, block.d);
    }
}

/* k_search.c - least-squares search for the scales of the groups of a K block.
 *
 * The quants depend on the scale, and the best scale depends on the quants, so there is no closed
 * solution. From each of several starting scales the search finds the quants, and then the scale
 * (and offset) that fits them best; the candidate with the smallest error wins. */
#include "tensor/k_search.h"

#include "base/status.h"

#include <math.h>

/* Adding and subtracting this rounds |value| < 2^22 to the nearest whole number, in two additions
 * that vectorise; lrintf would be a call. */
#define ROUND_BIAS 12582912.0f /* 1.5 * 2^23 */

/* A scale below this counts as 0. The smallest positive scale a block can hold is that of f16,
 * 2^-24; the search has to look at somewhat smaller ones, and 1 / scale has to stay finite. */
#define SCALE_FLOOR 0x1p-40f

#define SIGNED_LOW (-32.0f)
#define SIGNED_HIGH 31.0f

/* Starting scales of the search, as the number of steps that the range of a group is divided into,
 * relative to the largest quant. More steps than quants cut off the extreme values. More starting
 * scales than these gain nothing for gaussian weights. */
static const float affine_extra_steps[] = { -1.5f, -1.0f, -0.5f, 0.0f, 0.5f, 1.0f };

/* Starting offsets, as steps below the smallest value: one that cuts it off a little, and one that
 * leaves a little room. */
static const float affine_offset_steps[] = { -0.3f, 0.3f };

/* The same for Q6_K: the value of largest magnitude gets quant -32 with the first and about -27
 * with the last. */
static const float signed_steps[] = {
    -32.0f, -31.5f, -31.0f, -30.5f, -30.0f, -29.5f, -29.0f, -28.5f, -28.0f, -27.5f, -27.0f,
};

static inline float nearest_quant(float position, float low, float high)
{
    position = position < low ? low : position;
    position = position > high ? high : position;
    return (position + ROUND_BIAS) - ROUND_BIAS;
}

static float inverse_or_zero(float scale)
{
    return fabsf(scale) >= SCALE_FLOOR ? 1 / scale : 0;
}

/* Per group: sums over its values x and their quants q. */
struct affine_sums {
    float q[AFFINE_GROUPS];
    float qq[AFFINE_GROUPS];
    float qx[AFFINE_GROUPS];
};

static void affine_sum(const struct affine_columns *columns, float limit, const float *inverse,
                       const float *offset, struct affine_sums *ret_sums)
{
    struct affine_sums sums = { { 0 }, { 0 }, { 0 } };
    for (size_t i = 0; i < AFFINE_GROUP_SIZE; i++) {
        for (size_t g = 0; g < AFFINE_GROUPS; g++) {
            float x = columns->x[i][g];
            float q = nearest_quant((x + offset[g]) * inverse[g], 0, limit);
            sums.q[g] += q;
            sums.qq[g] += q * q;
            sums.qx[g] += q * x;
        }
    }
    *ret_sums = sums;
}

void k_affine_measure(const struct affine_columns *columns, float limit,
                      const struct affine_fit *fit, float *error)
{
    float inverse[AFFINE_GROUPS];
    float sums[AFFINE_GROUPS] = { 0 };
    for (size_t g = 0; g < AFFINE_GROUPS; g++)
        inverse[g] = inverse_or_zero(fit->scale[g]);
    for (size_t i = 0; i < AFFINE_GROUP_SIZE; i++) {
        for (size_t g = 0; g < AFFINE_GROUPS; g++) {
            float x = columns->x[i][g];
            float q = nearest_quant((x + fit->offset[g]) * inverse[g], 0, limit);
            float difference = fit->scale[g] * q - fit->offset[g] - x;
            sums[g] += difference * difference;
        }
    }
    memcpy(error, sums, sizeof(sums));
}

void k_affine_assign(const struct affine_columns *columns, float limit,
                     const struct affine_fit *fit, struct affine_quants *ret_quants)
{
    float inverse[AFFINE_GROUPS];
    for (size_t g = 0; g < AFFINE_GROUPS; g++)
        inverse[g] = inverse_or_zero(fit->scale[g]);
    for (size_t i = 0; i < AFFINE_GROUP_SIZE; i++) {
        for (size_t g = 0; g < AFFINE_GROUPS; g++) {
            float q = nearest_quant((columns->x[i][g] + fit->offset[g]) * inverse[g], 0, limit);
            ret_quants->quant[i][g] = (uint8_t)(int)q;
        }
    }
}

/* The best line through the (quant, value) pairs of group g. The format cannot store a negative
 * offset; instead, the best line through the origin. */
static void affine_solve(const struct affine_sums *sums, const float *sum_x, size_t g,
                         struct affine_fit *fit)
{
    const float n = AFFINE_GROUP_SIZE;
    float determinant = n * sums->qq[g] - sums->q[g] * sums->q[g]; /* exact: whole, below 2^24 */
    float scale = 0;
    float offset = -sum_x[g] / n;
    if (determinant > 0) {
        scale = (n * sums->qx[g] - sums->q[g] * sum_x[g]) / determinant;
        offset = (scale * sums->q[g] - sum_x[g]) / n;
    }
    if (offset < 0 || (determinant <= 0 && sums->qq[g] > 0)) {
        offset = 0;
        scale = sums->qq[g] > 0 ? sums->qx[g] / sums->qq[g] : 0;
    }
    fit->scale[g] = scale > 0 ? scale : 0;
    fit->offset[g] = offset;
}

/* Keeps the better of best and other for each group. */
static void affine_keep_better(const struct affine_fit *other, const float *other_error,
                               struct affine_fit *best, float *best_error)
{
    for (size_t g = 0; g < AFFINE_GROUPS; g++) {
        if (other_error[g] < best_error[g]) {
            best->scale[g] = other->scale[g];
            best->offset[g] = other->offset[g];
            best_error[g] = other_error[g];
        }
    }
}

/* Fits the quants that the values have under (inverse, offset); replaces best where that is an
 * improvement. */
static void affine_refit(const struct affine_columns *columns, float limit, const float *sum_x,
                         const float *inverse, const float *offset, struct affine_fit *best,
                         float *best_error)
{
    struct affine_sums sums;
    struct affine_fit fit;
    float error[AFFINE_GROUPS];
    affine_sum(columns, limit, inverse, offset, &sums);
    for (size_t g = 0; g < AFFINE_GROUPS; g++)
        affine_solve(&sums, sum_x, g, &fit);
    k_affine_measure(columns, limit, &fit, error);
    affine_keep_better(&fit, error, best, best_error);
}

/* Smallest value or 0, whichever is lower, and largest value of each group, and their sum. */
static void affine_ranges(const struct affine_columns *columns, float *min, float *max, float *sum)
{
    for (size_t g = 0; g < AFFINE_GROUPS; g++) {
        min[g] = 0;
        max[g] = columns->x[0][g];
        sum[g] = 0;
    }
    for (size_t i = 0; i < AFFINE_GROUP_SIZE; i++) {
        for (size_t g = 0; g < AFFINE_GROUPS; g++) {
            float x = columns->x[i][g];
            min[g] = x < min[g] ? x : min[g];
            max[g] = x > max[g] ? x : max[g];
            sum[g] += x;
        }
    }
}

void k_affine_search(const struct affine_columns *columns, float limit, struct affine_fit *ret_fit)
{
    float min[AFFINE_GROUPS], max[AFFINE_GROUPS], sum_x[AFFINE_GROUPS];
    float offset[AFFINE_GROUPS], inverse[AFFINE_GROUPS], error[AFFINE_GROUPS];
    affine_ranges(columns, min, max, sum_x);
    for (size_t g = 0; g < AFFINE_GROUPS; g++) {
        ret_fit->scale[g] = (max[g] - min[g]) / limit;
        ret_fit->offset[g] = -min[g];
    }
    k_affine_measure(columns, limit, ret_fit, error);
    for (size_t c = 0; c < COUNT_OF(affine_extra_steps); c++) {
        float steps = limit + affine_extra_steps[c];
        for (size_t o = 0; o < COUNT_OF(affine_offset_steps); o++) {
            for (size_t g = 0; g < AFFINE_GROUPS; g++) {
                float range = max[g] - min[g];
                float shifted = affine_offset_steps[o] * range / limit - min[g];
                inverse[g] = steps * inverse_or_zero(range);
                offset[g] = shifted > 0 ? shifted : 0;
            }
            affine_refit(columns, limit, sum_x, inverse, offset, ret_fit, error);
        }
    }
    /* One more step from the winner, whose quants are not quite those it was fitted to. */
    for (size_t g = 0; g < AFFINE_GROUPS; g++) {
        inverse[g] = inverse_or_zero(ret_fit->scale[g]);
        offset[g] = ret_fit->offset[g];
    }
    affine_refit(columns, limit, sum_x, inverse, offset, ret_fit, error);
}

/* Per group: sums over its values x and their quants q. */
struct signed_sums {
    float qq[SIGNED_GROUPS];
    float qx[SIGNED_GROUPS];
};

static void signed_sum(const struct signed_columns *columns, const float *inverse,
                       struct signed_sums *ret_sums)
{
    struct signed_sums sums = { { 0 }, { 0 } };
    for (size_t i = 0; i < SIGNED_GROUP_SIZE; i++) {
        for (size_t g = 0; g < SIGNED_GROUPS; g++) {
            float x = columns->x[i][g];
            float q = nearest_quant(x * inverse[g], SIGNED_LOW, SIGNED_HIGH);
            sums.qq[g] += q * q;
            sums.qx[g] += q * x;
        }
    }
    *ret_sums = sums;
}

void k_signed_measure(const struct signed_columns *columns, const struct signed_fit *fit,
                      float *error)
{
    float inverse[SIGNED_GROUPS];
    float sums[SIGNED_GROUPS] = { 0 };
    for (size_t g = 0; g < SIGNED_GROUPS; g++)
        inverse[g] = inverse_or_zero(fit->scale[g]);
    for (size_t i = 0; i < SIGNED_GROUP_SIZE; i++) {
        for (size_t g = 0; g < SIGNED_GROUPS; g++) {
            float x = columns->x[i][g];
            float q = nearest_quant(x * inverse[g], SIGNED_LOW, SIGNED_HIGH);
            float difference = fit->scale[g] * q - x;
            sums[g] += difference * difference;
        }
    }
    memcpy(error, sums, sizeof(sums));
}

void k_signed_assign(const struct signed_columns *columns, const struct signed_fit *fit,
                     struct signed_quants *ret_quants)
{
    float inverse[SIGNED_GROUPS];
    for (size_t g = 0; g < SIGNED_GROUPS; g++)
        inverse[g] = inverse_or_zero(fit->scale[g]);
    for (size_t i = 0; i < SIGNED_GROUP_SIZE; i++) {
        for (size_t g = 0; g < SIGNED_GROUPS; g++) {
            float q = nearest_quant(columns->x[i][g] * inverse[g], SIGNED_LOW, SIGNED_HIGH);
            ret_quants->quant[i][g] = (uint8_t)(int)(q - SIGNED_LOW);
        }
    }
}

/* The value of largest magnitude of each group, with its sign. */
static void signed_peaks(const struct signed_columns *columns, float *peak)
{
    float min[SIGNED_GROUPS] = { 0 };
    float max[SIGNED_GROUPS] = { 0 };
    for (size_t i = 0; i < SIGNED_GROUP_SIZE; i++) {
        for (size_t g = 0; g < SIGNED_GROUPS; g++) {
            float x = columns->x[i][g];
            min[g] = x < min[g] ? x : min[g];
            max[g] = x > max[g] ? x : max[g];
        }
    }
    for (size_t g = 0; g < SIGNED_GROUPS; g++)
        peak[g] = -min[g] > max[g] ? min[g] : max[g];
}

void k_signed_search(const struct signed_columns *columns, struct signed_fit *ret_fit)
{
    float peak[SIGNED_GROUPS], inverse[SIGNED_GROUPS], gain[SIGNED_GROUPS] = { 0 };
    struct signed_sums sums;
    signed_peaks(columns, peak);
    memset(ret_fit, 0, sizeof(*ret_fit));
    for (size_t c = 0; c < COUNT_OF(signed_steps); c++) {
        for (size_t g = 0; g < SIGNED_GROUPS; g++)
            inverse[g] = signed_steps[c] * inverse_or_zero(peak[g]);
        signed_sum(columns, inverse, &sums);
        /* With the best scale for its quants, qx / qq, the squared error of a group is
         * xx - qx * qx / qq: the larger the last term, the better. */
        for (size_t g = 0; g < SIGNED_GROUPS; g++) {
            float scale = sums.qq[g] > 0 ? sums.qx[g] / sums.qq[g] : 0;
            if (scale * sums.qx[g] > gain[g]) {
                ret_fit->scale[g] = scale;
                gain[g] = scale * sums.qx[g];
            }
        }
    }
}

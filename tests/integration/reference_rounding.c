/* reference_rounding.c - rounding by formula; see reference_model.h for what a witness is. */
#include "reference_rounding.h"

#include "tensor/quant.h"

#include <math.h>
#include <string.h>

#define BLOCK 32
/* In levels; f32's noise is a thousandth of this. */
#define TIE 0.01

/* The level of x, or that of the witness where x is as near to one as to the other. */
static double choose(double x, double level, double witnessed)
{
    double middle = (level + witnessed) / 2, apart = fabs(level - witnessed);
    return fabs(x - middle) < TIE * apart ? witnessed : level;
}

/* ---- Rows for matmul ------------------------------------------------------------------------ */

static float largest_of(const double *x)
{
    float largest = 0;
    for (size_t i = 0; i < BLOCK; i++)
        largest = fmaxf(largest, fabsf((float)x[i]));
    return largest;
}

static float largest_of_floats(const float *x)
{
    float largest = 0;
    for (size_t i = 0; i < BLOCK; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    return largest;
}

void reference_round_q8(double *x, size_t count, const float *witness)
{
    for (size_t first = 0; first < count; first += BLOCK, x += BLOCK) {
        float largest = largest_of(x);
        float factor = largest > 0 ? 127.0f / largest : 0;
        float other = witness ? largest_of_floats(witness + first) : 0;
        for (size_t i = 0; i < BLOCK; i++) {
            double level = (double)rintf((float)x[i] * factor);
            if (witness && other > 0)
                level = choose(x[i] * (double)factor, level,
                               (double)rintf(witness[first + i] * (127.0f / other)));
            x[i] = level * (double)(largest / 127.0f);
        }
    }
}

void reference_round_bf16(double *x, size_t count, const float *witness)
{
    for (size_t i = 0; i < count; i++) {
        double level = (double)bf16_to_f32(bf16_from_f32((float)x[i]));
        x[i] = witness ? choose(x[i], level, (double)bf16_to_f32(bf16_from_f32(witness[i])))
                       : level;
    }
}

/* ---- The cache ------------------------------------------------------------------------------ */

static void round_f16(double *x, size_t count, const float *witness)
{
    for (size_t i = 0; i < count; i++) {
        double level = (double)f16_to_f32(f16_from_f32((float)x[i]));
        x[i] = witness ? choose(x[i], level, (double)f16_to_f32(f16_from_f32(witness[i]))) : level;
    }
}

/* The scale of a block, a half float, is rounded too. */
static void round_q8_0_block(double *x, const float *witness)
{
    float values[BLOCK];
    uint8_t block[34], other[34];
    uint16_t scale, other_scale;
    for (size_t i = 0; i < BLOCK; i++)
        values[i] = (float)x[i];
    quant_encode_row(DTYPE_Q8_0, values, BLOCK, block);
    quant_encode_row(DTYPE_Q8_0, witness, BLOCK, other);
    memcpy(&scale, block, sizeof(scale));
    memcpy(&other_scale, other, sizeof(other_scale));
    double step = choose((double)largest_of(x) / 127, (double)f16_to_f32(scale),
                         (double)f16_to_f32(other_scale));
    double exact_step = (double)largest_of(x) / 127; /* levels are of the scale before rounding */
    for (size_t i = 0; i < BLOCK; i++)
        x[i] = step * choose(exact_step > 0 ? x[i] / exact_step : 0, (int8_t)block[2 + i],
                             (int8_t)other[2 + i]);
}

void reference_round_cached(enum dtype dtype, double *x, size_t count, const float *witness)
{
    if (dtype == DTYPE_F16)
        round_f16(x, count, witness);
    for (size_t i = 0; dtype == DTYPE_Q8_0 && i < count; i += BLOCK) {
        float own[BLOCK];
        for (size_t j = 0; j < BLOCK; j++)
            own[j] = witness ? witness[i + j] : (float)x[i + j];
        round_q8_0_block(x + i, own);
    }
}

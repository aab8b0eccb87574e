/* k_search.h - finds the scales of the groups of a K block; used by encode_k.c only.
 *
 * A block is passed as columns: x[i][g] is value i of group g. All groups advance together, one per
 * vector lane, so that no sum crosses lanes and compilers vectorise every loop. Values must be
 * finite, and small enough that their squares can be summed in f32. */
#ifndef GRETA_TENSOR_K_SEARCH_H
#define GRETA_TENSOR_K_SEARCH_H

#include "tensor/quant_impl.h"

/* Q4_K and Q5_K: value = scale * quant - offset; offset >= 0, scale >= 0, quant 0..limit. */
#define AFFINE_GROUPS 8
#define AFFINE_GROUP_SIZE 32

/* Q6_K: value = scale * quant, quant -32..31; the scale may have either sign. */
#define SIGNED_GROUPS 16
#define SIGNED_GROUP_SIZE 16

struct affine_columns {
    float x[AFFINE_GROUP_SIZE][AFFINE_GROUPS];
};

struct affine_fit {
    float scale[AFFINE_GROUPS];
    float offset[AFFINE_GROUPS];
};

struct affine_quants {
    uint8_t quant[AFFINE_GROUP_SIZE][AFFINE_GROUPS];
};

struct signed_columns {
    float x[SIGNED_GROUP_SIZE][SIGNED_GROUPS];
};

struct signed_fit {
    float scale[SIGNED_GROUPS];
};

struct signed_quants {
    uint8_t quant[SIGNED_GROUP_SIZE][SIGNED_GROUPS]; /* plus 32: 0..63, as in the file */
};

/* The scale and offset of each group with the smallest sum of squared errors that was found. */
void k_affine_search(const struct affine_columns *columns, float limit, struct affine_fit *ret_fit);
void k_signed_search(const struct signed_columns *columns, struct signed_fit *ret_fit);

/* The sum of squared errors of each group if its values take their nearest quants under fit.
 * error has a float per group. */
void k_affine_measure(const struct affine_columns *columns, float limit,
                      const struct affine_fit *fit, float *error);
void k_signed_measure(const struct signed_columns *columns, const struct signed_fit *fit,
                      float *error);

/* The nearest quant of each value under fit. */
void k_affine_assign(const struct affine_columns *columns, float limit,
                     const struct affine_fit *fit, struct affine_quants *ret_quants);
void k_signed_assign(const struct signed_columns *columns, const struct signed_fit *fit,
                     struct signed_quants *ret_quants);

#endif

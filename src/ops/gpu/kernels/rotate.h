/* rotate.h - a pair of values of a head, rotated: the same bits in every kernel that does it. */
#ifndef GRETA_OPS_GPU_KERNELS_ROTATE_H
#define GRETA_OPS_GPU_KERNELS_ROTATE_H

#include "ops/gpu/kernels/portable.h"

INLINE void rotate(float *first, float *second, float cosine, float sine)
{
    float x0 = *first, x1 = *second;
    *first = x0 * cosine - x1 * sine;
    *second = x0 * sine + x1 * cosine;
}

#endif

/* tiling.h - how the matrix product is cut; shared by the plan and the kernels. */
#ifndef GRETA_OPS_GPU_TILING_H
#define GRETA_OPS_GPU_TILING_H

#include "tensor/dtype.h"

#include <stdint.h>

/* Rows of weights a team takes at a time. */
#define MATMUL_ROWS 2u
/* Chunks of them that are in its ring, all but one on their way. */
#define MATMUL_STAGES 4u
/* Tokens of the widest kernel. */
#define MATMUL_TOKENS 8u
/* Tokens at a time where weights are decoded one by one. */
#define DECODED_TOKENS 4u

/* Weights of a chunk of a row: its bytes are a multiple of 16, and about a thousand. 0 for a type
 * that has no kernel of its own. */
static inline uint32_t matmul_chunk_weights(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_F32:
        return 256;
    case DTYPE_F16:
    case DTYPE_BF16:
        return 512;
    case DTYPE_Q8_0:
        return 1024;
    case DTYPE_Q4_0:
    case DTYPE_Q4_K:
    case DTYPE_Q5_K:
    case DTYPE_Q6_K:
        return 2048;
    default:
        return 0;
    }
}

static inline uint32_t matmul_chunk_bytes(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q8_0:
        return 1024 / 32 * 34;
    case DTYPE_Q4_0:
        return 2048 / 32 * 18;
    case DTYPE_Q4_K:
        return 2048 / 256 * 144;
    case DTYPE_Q5_K:
        return 2048 / 256 * 176;
    case DTYPE_Q6_K:
        return 2048 / 256 * 210;
    default:
        return matmul_chunk_weights(dtype) ? 1024 : 0;
    }
}

#endif

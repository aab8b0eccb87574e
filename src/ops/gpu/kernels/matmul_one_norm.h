/* matmul_one_norm.h - rms_norm in front of a product with one row, as one kernel: every block
 * normalises and packs the row for itself, with the operations of rms_norm_by_four. What the norm
 * writes is written once: normed and packed rows by the first block, the sum of x and added by the
 * block that read them last. */
#ifndef GRETA_OPS_GPU_KERNELS_MATMUL_ONE_NORM_H
#define GRETA_OPS_GPU_KERNELS_MATMUL_ONE_NORM_H

#include "ops/gpu/kernels/pack.h"
#include "ops/params.h"

/* Fours of a thread; the row is not longer. */
#define ONE_NORM_FOURS 2u

struct one_norm {
    floats4 weights[ONE_NORM_FOURS];
};

/* Operands 4, 5, 6: x, added, weights; 11: normed; 0: packed. */
INLINE void one_norm_begin(const struct gpu_call *call, struct one_norm *norm)
{
    const GLOBAL floats4 *weight = (const GLOBAL floats4 *)row_at(&call->operands[6], 0);
    uint32_t fours = (uint32_t)call->operands[4].width / 4;
    const floats4 zero = { 0 };
    UNROLL
    for (uint32_t n = 0; n < ONE_NORM_FOURS; n++) {
        uint32_t i = n * thread_count() + thread_index();
        norm->weights[n] = i < fours ? weight[i] : zero;
    }
}

/* memory: TEAM floats, a flag (16 bytes), the packed row, which every thread may read afterwards.
 */
INLINE void one_norm_end(const struct gpu_call *call, const struct one_norm *norm,
                         SHARED uint8_t *memory)
{
    const struct params_norm *params = (const void *)call->params;
    uint32_t fours = (uint32_t)call->operands[4].width / 4, width = 4 * fours;
    GLOBAL floats4 *x = (GLOBAL floats4 *)row_at(&call->operands[4], 0);
    const GLOBAL floats4 *added = call->operands[5].address
                                      ? (const GLOBAL floats4 *)row_at(&call->operands[5], 0)
                                      : 0;
    SHARED uint32_t *flag = (SHARED uint32_t *)(memory + TEAM * sizeof(float));
    uint8_t *row = (uint8_t *)(memory + TEAM * sizeof(float) + 16);
    const floats4 zero = { 0 };
    floats4 kept[ONE_NORM_FOURS], squares = zero;
    UNROLL
    for (uint32_t n = 0; n < ONE_NORM_FOURS; n++) {
        uint32_t i = n * thread_count() + thread_index();
        floats4 more = added && i < fours ? added[i] : zero;
        kept[n] = (i < fours ? x[i] : zero) + more;
        squares += kept[n] * kept[n];
    }
    float sum = block_sum(squares[0] + squares[1] + squares[2] + squares[3],
                          (SHARED float *)memory);
    if (thread_index() == 0) { /* all threads have read: they were at the sum */
        GLOBAL uint32_t *counter = (GLOBAL uint32_t *)call->workspace;
        uint32_t before = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
        *flag = before == block_count_x() - 1;
        if (*flag)
            *counter = 0;
    }
    float scale = 1.0f / __builtin_sqrtf(sum / (float)width + params->epsilon);
    bool first = block_x() == 0;
    UNROLL
    for (uint32_t n = 0; n < ONE_NORM_FOURS; n++) {
        uint32_t i = n * thread_count() + thread_index();
        floats4 value = kept[n] * scale * norm->weights[n];
        pack_four(params->packing.format, row, width, 4 * i, value);
        if (!first)
            continue;
        if (i < fours)
            ((GLOBAL floats4 *)row_at(&call->operands[11], 0))[i] = value;
        pack_four(params->packing.format, (uint8_t *)row_at(&call->operands[0], 0), width, 4 * i,
                  value);
    }
    block_sync();
    UNROLL
    for (uint32_t n = 0; n < ONE_NORM_FOURS; n++) {
        uint32_t i = n * thread_count() + thread_index();
        if (added && *flag && i < fours)
            x[i] = kept[n];
    }
}

#endif

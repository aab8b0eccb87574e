/* lanes_store.h - what becomes of the sums of matmul_lanes.c: shares and splits of k are put
 * together, and stored. */
#ifndef GRETA_OPS_GPU_KERNELS_LANES_STORE_H
#define GRETA_OPS_GPU_KERNELS_LANES_STORE_H

#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/lanes_share.h"

#if HAS_WARPGROUPS

/* Four sums, the n-th four of a thread, of columns / 8: two rows, two tokens. */
INLINE void store_lanes_four(const struct lanes_share *share, const SHARED float *factors,
                             uint32_t n, floats4 sums)
{
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t row = share->warp_row + lane_index() / 4 + 8 * (i / 2);
        uint32_t token = 8 * n + 2 * (lane_index() % 4) + i % 2;
        /* Rows before its own are another warp's. */
        if (row < share->first_row + warp_index() % 4 * 16 || token >= share->tokens)
            continue;
        float sum = sums[i] * factors[token];
        if (share->bias->address)
            sum += row_f32(share->bias, 0)[row];
        row_f32(share->out, share->first_token + token)[row] = sum;
    }
}

/* The thread's fours of a split in the workspace, WARPGROUP apart. */
INLINE GLOBAL floats4 *lanes_split_at(const struct gpu_call *call, const struct lanes_share *share,
                                      uint32_t split)
{
    uint64_t tiles = block_count_x() / share->splits;
    uint64_t tile = share->tile + tiles * block_y();
    uint32_t units = LANES_GROUPS / share->shares;
    return (GLOBAL floats4 *)(call->workspace + GPU_COUNTER_BYTES) +
           ((tile * share->splits + split) * units + share->unit) *
               (share->columns / 8 * WARPGROUP) +
           thread_index() % WARPGROUP;
}

/* Which of a thread's fours it puts together and stores: warpgroups with the same rows share. */
INLINE uint32_t first_lanes_four(const struct lanes_share *share)
{
    return share->columns / 8 / share->shares * share->share;
}

/* Splits that are asked for together, and fours of a thread: those it has where shares are two. */
#define LANES_JOINED_AT_ONCE 4
#define LANES_FOURS_AT_ONCE (LANES_TOKENS / 16)

/* Adds the splits of a tile, in their order; the block that comes last does it, all its threads. */
INLINE void join_lanes(const struct gpu_call *call, const struct lanes_share *share,
                       const SHARED float *factors, SHARED uint32_t *flag)
{
    uint32_t tiles = block_count_x() / share->splits;
    GLOBAL uint32_t *counter = (GLOBAL uint32_t *)call->workspace + share->tile + tiles * block_y();
    if (!block_is_last(counter, share->splits, flag))
        return;
    const uint32_t fours = share->columns / 8, at_once = fours / 2;
    const uint64_t apart = (uint64_t)(LANES_GROUPS / share->shares) * fours * WARPGROUP;
    uint32_t from = first_lanes_four(share);
    for (uint32_t n = from; n < from + fours / share->shares; n += at_once) {
        volatile GLOBAL floats4 *first = lanes_split_at(call, share, 0) + n * WARPGROUP;
        floats4 sums[LANES_FOURS_AT_ONCE] = { { 0 } };
        for (uint32_t split = 0; split < share->splits; split += LANES_JOINED_AT_ONCE) {
            floats4 parts[LANES_JOINED_AT_ONCE][LANES_FOURS_AT_ONCE];
            UNROLL
            for (uint32_t i = 0; i < LANES_JOINED_AT_ONCE * at_once; i++) {
                uint32_t which = split + i / at_once;
                parts[i / at_once][i % at_once] =
                    first[apart * (which < share->splits ? which : split) +
                          i % at_once * WARPGROUP];
            }
            UNROLL
            for (uint32_t i = 0; i < LANES_JOINED_AT_ONCE * at_once; i++)
                if (split + i / at_once < share->splits)
                    sums[i % at_once] += parts[i / at_once][i % at_once];
        }
        UNROLL
        for (uint32_t i = 0; i < at_once; i++)
            store_lanes_four(share, factors, n + i, sums[i]);
    }
}

/* Through shared memory, where the shares of k meet, and which can be counted through: registers
 * cannot, and long code takes long to fetch. */
INLINE void store_lanes(const struct gpu_call *call, const struct lanes_share *share,
                        uint32_t rounds, const float sums[WARPGROUP_SUMS_32])
{
    SHARED floats4 *all = (SHARED floats4 *)shared_memory() + thread_index() % WARPGROUP;
    const SHARED float *factors =
        (const SHARED float *)(shared_memory() + (rounds + 2) * lanes_stage_bytes(share->columns));
    const uint32_t fours = share->columns / 8;
    SHARED uint32_t *flag = (SHARED uint32_t *)(factors + LANES_TOKENS);
    UNROLL
    for (uint32_t n = 0; n < fours; n++) {
        floats4 four;
        UNROLL
        for (uint32_t i = 0; i < 4; i++)
            four[i] = sums[4 * n + i];
        all[(thread_index() / WARPGROUP * fours + n) * WARPGROUP] = four;
    }
    if (share->shares == 2)
        block_sync(); /* else each has its own */
    GLOBAL floats4 *split = lanes_split_at(call, share, share->split);
    uint32_t from = first_lanes_four(share), units = LANES_GROUPS / share->shares;
    for (uint32_t n = from; n < from + fours / share->shares; n++) {
        floats4 four = all[(share->unit * fours + n) * WARPGROUP];
        if (share->shares == 2)
            four += all[((units + share->unit) * fours + n) * WARPGROUP];
        if (share->splits == 1)
            store_lanes_four(share, factors, n, four);
        else
            split[n * WARPGROUP] = four;
    }
    if (share->splits > 1)
        join_lanes(call, share, factors, flag);
}

#endif
#endif

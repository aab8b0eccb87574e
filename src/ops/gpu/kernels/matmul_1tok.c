/* matmul_1tok.c - GEMV, weights times one row of activations: decoding one sequence.
 *
 * A warp owns a slice of columns, keeps their activations in registers for the whole kernel, and
 * takes its slice of one row of weights after the other; the warps of a row (its members) each
 * have a slice. Weights come through a ring of the warp's own in shared memory, 16 bytes a lane:
 * what is on its way takes no registers. It is asked for before the kernel that makes the
 * activations has ended, as much as the ring holds: weights do not change. It is prefetched one
 * group after the other, each when the one before it is there: what the kernels before this one
 * still read would have to wait for all that the SMs have prefetched, and 19 MB are 4 us of
 * memory's time. A block is small enough that the next kernel's block fits on the same SM, and
 * fills its ring while this one still computes.
 *
 * A block does neighbouring rows. What its warps sum up for each of them lies in shared memory
 * until all are done; so no warp waits for another on the way.
 *
 * Order of a sum: a lane adds its units in increasing order, the lanes are added by halves, then
 * the slices in increasing order. It depends on the type and k alone.
 *
 * Operands: those of matmul_group. Arguments: struct matmul_1tok_args. Where parts have different
 * types, each has blocks of its own. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/matmul_1tok_dot.h"
#include "ops/gpu/kernels/part_blocks.h"

/* ---- Weights to the ring -------------------------------------------------------------------- */

INLINE void one_fetch(const struct one_work *work, uint32_t dtype, uint32_t group,
                      SHARED uint8_t *stage)
{
    uint32_t before, part = part_of_group(work->counts, group, &before);
    const struct gpu_operand *weights = &work->call->operands[MATMUL_GROUP_WEIGHTS + part];
    const uint32_t slice = one_slice_bytes(dtype), rows = one_rows(dtype);
    uint32_t skipped = work->member * slice, lane_at = lane_index() * 16;
    uint32_t row_bytes = (uint32_t)weights->width / 256 * (slice / (one_columns(dtype) / 256));
    uint32_t there = row_bytes - skipped;
    uint32_t row = (group - before) * rows;
    const GLOBAL uint8_t *source = row_at(weights, row) + skipped + lane_at;
    /* A row that is not there is read as the one before. */
    uint64_t stride = row + 1 < weights->rows ? weights->row_stride_bytes : 0;
    SHARED uint8_t *target = stage + lane_at;
    UNROLL
    for (uint32_t r = 0; r < ONE_ROWS_MOST; r++) {
        if (r >= rows)
            break;
        UNROLL
        for (uint32_t i = 0; i < ONE_SLICE_MOST; i += WARP * 16)
            if (i < slice && i + lane_at < slice && i + lane_at < there)
                copy_async_once(target + r * slice + i, source + r * stride + i);
    }
}

/* Slices of a row that are loaded together when they are added up. */
#define ONE_SLICES_AT_ONCE 8u

/* ---- The kernel ----------------------------------------------------------------------------- */

/* Multiplies the slices of a group's rows, which are in the stage. */
INLINE void one_add(const struct one_work *work, uint32_t dtype, const SHARED uint8_t *stage,
                    const struct one_acts *acts, float sums[ONE_ROWS_MOST])
{
    uint32_t left = work->k - work->member * one_columns(dtype);
    UNROLL
    for (uint32_t r = 0; r < one_rows(dtype); r++)
        sums[r] = one_dot(dtype, stage + r * one_slice_bytes(dtype), left, acts);
}

/* Where the lane's sum of a group's row goes. If there are two rows, half of the lanes add up each.
 */
INLINE SHARED float *one_find_sum(const struct one_work *work, uint32_t group, uint32_t rows)
{
    uint32_t row = lane_index() / (WARP / rows);
    return work->sums + ((group - work->first) * ONE_ROWS_MOST + row) * work->members +
           work->member;
}

/* Adds up what the lanes have of a group's rows, and stores it. */
INLINE void one_keep(SHARED float *place, uint32_t rows, const float sums[ONE_ROWS_MOST])
{
    uint32_t lanes = WARP / rows, row = lane_index() / lanes;
    float sum = sums[0];
    if (rows == 2) {
        bool second = row != 0;
        sum = (second ? sums[1] : sums[0]) + warp_swap_float(second ? sums[0] : sums[1], lanes);
    }
    sum = warp_sum(sum, lanes);
    if (lane_index() % lanes == 0)
        *place = sum;
}

/* Where a sum of the block goes: row i % ONE_ROWS_MOST of its group i / ONE_ROWS_MOST. */
struct one_place {
    GLOBAL float *out; /* 0: there is no such row */
    float bias;
};

INLINE struct one_place one_find_place(const struct one_work *work, uint32_t dtype, uint32_t i)
{
    struct one_place place = { 0 };
    uint32_t before, group = work->first + i / ONE_ROWS_MOST, r = i % ONE_ROWS_MOST;
    if (group >= work->end || r >= one_rows(dtype))
        return place;
    uint32_t part = part_of_group(work->counts, group, &before);
    const struct gpu_operand *bias = &work->call->operands[MATMUL_GROUP_BIASES + part];
    const struct gpu_operand *out = &work->call->operands[MATMUL_GROUP_OUTS + part];
    uint32_t row = (group - before) * one_rows(dtype) + r;
    if (row < out->width)
        place.out = row_f32(out, 0) + row;
    if (row < out->width && bias->address)
        place.bias = row_f32(bias, 0)[row];
    return place;
}

/* Adds up the slices of a row. */
INLINE void one_store(const struct one_work *work, uint32_t i, const struct one_place *place)
{
    if (!place->out)
        return;
    const SHARED float *slices = work->sums + i * work->members;
    float sum = 0;
    for (uint32_t first = 0; first < work->members; first += ONE_SLICES_AT_ONCE) {
        float loaded[ONE_SLICES_AT_ONCE];
        UNROLL
        for (uint32_t m = 0; m < ONE_SLICES_AT_ONCE; m++)
            loaded[m] = first + m < work->members ? slices[first + m] : 0.0f;
        UNROLL
        for (uint32_t m = 0; m < ONE_SLICES_AT_ONCE; m++)
            sum += loaded[m];
    }
    *place->out = sum + place->bias;
}

INLINE void one_multiply(const struct gpu_call *call, uint32_t dtype, struct part_blocks blocks)
{
    const struct matmul_1tok_args *args = matmul_1tok_args_of(call);
    uint32_t warps = thread_count() / WARP;
    struct one_work work = { .call = call,
                             .members = args->members,
                             .member = warp_index() % args->members,
                             .slots = warps / args->members,
                             .ring = shared_memory() + warp_index() * args->ring_bytes,
                             .sums = (SHARED float *)(shared_memory() + warps * args->ring_bytes) };
    early_allow();
    uint32_t count = part_count_groups(call, blocks.part_bits, one_rows(dtype), work.counts,
                                       &work.k);
    work.first = (uint32_t)((uint64_t)count * blocks.index / blocks.count);
    work.end = (uint32_t)((uint64_t)count * (blocks.index + 1) / blocks.count);
    const uint32_t stage_bytes = args->ring_bytes / ONE_STAGES;
    uint32_t now = work.first + warp_index() / work.members, ahead = now;
    SHARED uint8_t *empty = work.ring;
    UNROLL
    for (uint32_t s = 0; s < ONE_STAGES - 1; s++, ahead += work.slots, empty += stage_bytes) {
        if (ahead < work.end)
            one_fetch(&work, dtype, ahead, empty);
        copy_commit();
        if (s < args->waited)
            copy_wait(0);
    }
    early_wait();
    leave_crumbs(call);
    struct one_acts acts = { .lane = lane_index() };
    one_load_acts(&work, dtype, &acts);
    /* Not in the loop: every round of it would pay. */
    made_here(acts.words[0][0], acts.words[3][3], acts.scales[0]);
    SHARED uint8_t *full = work.ring, *behind = work.ring + args->ring_bytes;
    SHARED float *place_of_sum = one_find_sum(&work, now, one_rows(dtype));
    const uint32_t sums_apart = work.slots * ONE_ROWS_MOST * work.members;
    for (; now < work.end; now += work.slots, ahead += work.slots) {
        float sums[ONE_ROWS_MOST];
        copy_wait(ONE_STAGES - 2);
        warp_sync();
        if (ahead < work.end)
            one_fetch(&work, dtype, ahead, empty);
        copy_commit();
        one_add(&work, dtype, full, &acts, sums);
        one_keep(place_of_sum, one_rows(dtype), sums);
        place_of_sum += sums_apart;
        empty = full;
        full = full + stage_bytes < behind ? full + stage_bytes : work.ring;
    }
    /* Where the first sums go is found before all are there. */
    struct one_place place = one_find_place(&work, dtype, thread_index());
    block_sync();
    one_store(&work, thread_index(), &place);
    uint32_t sums = (work.end - work.first) * ONE_ROWS_MOST;
    for (uint32_t i = thread_index() + thread_count(); i < sums; i += thread_count()) {
        place = one_find_place(&work, dtype, i);
        one_store(&work, i, &place);
    }
}

/* All parts have one type. */
INLINE void one_multiply_all(const struct gpu_call *call, uint32_t dtype)
{
    one_multiply(call, dtype, part_blocks_all());
}

KERNEL(matmul_1tok_q4_k)
{
    one_multiply_all(&call, DTYPE_Q4_K);
}
KERNEL(matmul_1tok_q6_k)
{
    one_multiply_all(&call, DTYPE_Q6_K_X8);
}
KERNEL(matmul_1tok_q8_0)
{
    one_multiply_all(&call, DTYPE_Q8_0_X8);
}
KERNEL(matmul_1tok_bf16)
{
    one_multiply_all(&call, DTYPE_BF16);
}
KERNEL(matmul_1tok_f16)
{
    one_multiply_all(&call, DTYPE_F16);
}

/* Each part has its own type, of those packed as quants. */
KERNEL(matmul_1tok_quants)
{
    const struct matmul_1tok_args *args = matmul_1tok_args_of(&call);
    uint32_t dtype;
    struct part_blocks blocks = part_blocks_own(&call, args->second_block, args->third_block,
                                                &dtype);
    if (dtype == DTYPE_Q4_K)
        one_multiply(&call, DTYPE_Q4_K, blocks);
    else if (dtype == DTYPE_Q6_K_X8)
        one_multiply(&call, DTYPE_Q6_K_X8, blocks);
    else
        one_multiply(&call, DTYPE_Q8_0_X8, blocks);
}

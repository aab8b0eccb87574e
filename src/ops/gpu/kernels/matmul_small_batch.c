/* matmul_small_batch.c - products of quants with a few rows of activations, two to eight: several
 * sequences that are decoded together. Each weight is read once, and multiplied on matrix units.
 *
 * As in matmul_1tok.c, weights come through a ring of the warp's own in shared memory, asked for
 * before the kernel that makes the activations has ended; one block a processor. A warp owns one or
 * two blocks of 256 columns and keeps their activations in registers for the whole
 * kernel; it takes 16 rows at a time. The warps of a row (its members) add up in shared memory what
 * they have, in their order, after each 16 rows. Rows too long for the warps of a block are cut
 * into shares of k, each a block of its own; the last of them to be done adds all up.
 *
 * Order of a sum: blocks of a warp in increasing order, then warps, then shares; within a block by
 * small_batch_quants.h. It depends on the type, k, the number of rows and the number of processors.
 *
 * Operands: those of matmul_group. Arguments: struct matmul_small_batch_args. Where parts have
 * different types, each has blocks of its own and rows are not cut. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/part_blocks.h"
#include "ops/gpu/kernels/small_batch_quants.h"
#include "ops/gpu/packing.h"

#if HAS_WARP_MATRIX

/* What a warp does. */
struct small_batch_work {
    const struct gpu_call *call;
    uint32_t k, tokens;
    uint32_t members, member; /* warps of a row, and which of them this is */
    uint32_t slots, slot;     /* 16 rows each that the block does at once, and whose this warp is */
    uint32_t shares, share;   /* of k */
    uint32_t blocks;          /* of 256 columns, of a warp */
    uint32_t block;           /* the warp's first */
    uint32_t first, end;      /* groups of 16 rows of the block, counted over all parts */
    uint32_t counts[3];       /* groups of each part */
    SHARED uint8_t *ring;
    SHARED float *scales;
    SHARED float *sums; /* of all warps of the block, one set or two */
};

/* ---- Weights to the ring -------------------------------------------------------------------- */

/* Where a segment of a row's block is, in bytes of the row: the map of matmul_quant_tiles.c's
 * copy_raw. One text for both would change the instructions that are made of either. */
INLINE uint32_t small_batch_segment_at(uint32_t dtype, uint32_t block, uint32_t segment)
{
    if (dtype != DTYPE_Q6_K_X8)
        return (block * small_batch_segments(dtype) + segment) * 16;
    uint32_t eight = block / 8 * 1680, of = block % 8;
    return segment < 8    ? eight + of * 128 + segment * 16
           : segment < 12 ? eight + 1024 + of * 64 + (segment - 8) * 16
           : segment < 13 ? eight + 1536 + of * 16
                          : eight + 1664;
}

/* The segments of 16 rows one after the other, so that neighbouring lanes copy neighbours. */
INLINE void small_batch_fetch(const struct small_batch_work *work, uint32_t dtype, uint32_t group,
                              uint32_t block, SHARED uint8_t *stage)
{
    uint32_t before, part = part_of_group(work->counts, group, &before);
    const struct gpu_operand *weights = &work->call->operands[MATMUL_GROUP_WEIGHTS + part];
    const uint32_t segments = small_batch_segments(dtype), all = SMALL_BATCH_ROWS * segments;
    uint32_t first = (group - before) * SMALL_BATCH_ROWS,
             last = (uint32_t)weights->rows - 1 - first;
    uint32_t stride = (uint32_t)weights->row_stride_bytes;
    const GLOBAL uint8_t *rows = row_at(weights, first);
    UNROLL
    for (uint32_t i = 0; i < all; i += WARP) {
        uint32_t which = i + lane_index(), r = which / segments, segment = which % segments;
        /* A row that is not there is read as the last. */
        uint32_t from = (r < last ? r : last) * stride +
                        small_batch_segment_at(dtype, block, segment);
        if (which < all)
            copy_async_once(stage + r * small_batch_row_bytes(dtype) + segment * 16, rows + from);
    }
}

/* Where a warp is in its ring, and what it asks for next. */
struct small_batch_ring {
    SHARED uint8_t *full, *empty; /* stages */
    uint32_t group, block;        /* block: of the warp's */
};

/* Asks for what comes next. */
INLINE void small_batch_prefetch(const struct small_batch_work *work, uint32_t dtype,
                                 struct small_batch_ring *ring)
{
    uint32_t block = work->block + ring->block;
    if (ring->group < work->end && block * 256 < work->k)
        small_batch_fetch(work, dtype, ring->group, block, ring->empty);
    copy_commit();
    bool last = ++ring->block == work->blocks;
    ring->block = last ? 0 : ring->block;
    ring->group += last ? work->slots : 0;
}

/* The oldest stage is there; all others but one are on their way. */
INLINE void small_batch_wait(uint32_t dtype)
{
    if (small_batch_stages(dtype) == 5)
        copy_wait(3);
    else
        copy_wait(1);
    warp_sync();
}

/* ---- Activations ---------------------------------------------------------------------------- */

/* Bytes between tokens where quants pass through shared memory: eight rows meet different banks. */
#define SMALL_BATCH_QUANTS_APART 272u

/* Quants, and of Q4_K scaled sums, of a block to registers; scales to shared memory. A token that
 * is not there has zeros. through: a stage that is empty. */
INLINE void small_batch_load_acts(const struct small_batch_work *work, uint32_t dtype,
                                  uint32_t block, SHARED uint8_t *through, SHARED float *scales,
                                  struct small_batch_acts *acts)
{
    uint32_t token = lane_index() / 4, place = lane_index() % 4;
    bool there = token < work->tokens && block * 256 < work->k;
    const GLOBAL uint8_t *row = row_at(&work->call->operands[MATMUL_GROUP_PACKED],
                                       there ? token : 0);
    const GLOBAL uint8_t *quants = row + (there ? block * 256 : 0) + 16 * place;
    const GLOBAL floats2 *pairs = (const GLOBAL floats2 *)(row + work->k) + (there ? block * 8 : 0);
    words4 loaded[4];
    floats2 pair[2] = { pairs[place], pairs[place + 4] };
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        loaded[i] = load_if(there, quants + 64 * i);
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        *(SHARED words4 *)(through + token * SMALL_BATCH_QUANTS_APART + 16 * place +
                           64 * i) = loaded[i];
    warp_sync();
    const SHARED uint32_t *mine =
        (const SHARED uint32_t *)(through + token * SMALL_BATCH_QUANTS_APART) + place;
    UNROLL
    for (uint32_t j = 0; j < 8; j++)
        acts->quants[j] = (words2){ mine[8 * j], mine[8 * j + 4] };
    UNROLL
    for (uint32_t n = 0; n < 2; n++) {
        uint32_t j = place + 4 * n;
        float scale = there ? pair[n][0] : 0.0f, sum = there ? pair[n][1] : 0.0f;
        SHARED float *to = scales +
                           (j * SMALL_BATCH_TOKENS + token) * small_batch_scale_floats(dtype);
        if (dtype == DTYPE_Q4_K) {
            scale *= j % 2 ? 0.0625f : 1.0f; /* see few_add_q4_k */
            to[1] = scale * -0x1p23f;
            float high = float_of(bits_of(sum) & 0xFFFFE000u);
            acts->high[n] = bits_of(high);
            acts->low[n] = bits_of(sum - high);
        }
        to[0] = scale;
    }
    warp_sync(); /* what others have read is free */
}

/* ---- Sums ----------------------------------------------------------------------------------- */

/* all: the sums of all warps. */
INLINE void small_batch_keep(SHARED float *all, const struct small_batch_sums *sums)
{
    SHARED float *mine = all + warp_index() * (SMALL_BATCH_SUMS_BYTES / 4);
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t token = 2 * (lane_index() % 4) + i % 2, row = lane_index() / 4 + 8 * (i / 2);
        mine[token * SMALL_BATCH_SUMS_APART + row] = sums->values[i];
    }
}

/* Stores a sum of a group, row i % 16 of token i / 16. */
INLINE void small_batch_store(const struct small_batch_work *work, uint32_t group, uint32_t i,
                              float sum)
{
    uint32_t before, part = part_of_group(work->counts, group, &before);
    const struct gpu_operand *bias = &work->call->operands[MATMUL_GROUP_BIASES + part];
    const struct gpu_operand *out = &work->call->operands[MATMUL_GROUP_OUTS + part];
    uint32_t row = (group - before) * SMALL_BATCH_ROWS + i % SMALL_BATCH_ROWS,
             token = i / SMALL_BATCH_ROWS;
    if (row >= out->width || token >= work->tokens)
        return;
    row_f32(out, token)[row] = sum + (bias->address ? row_f32(bias, 0)[row] : 0.0f);
}

/* Where the sums of a group are of which several blocks have a share. */
INLINE volatile GLOBAL float *small_batch_parts(const struct small_batch_work *work, uint32_t group,
                                                uint32_t share)
{
    return (volatile GLOBAL float *)(work->call->workspace + GPU_COUNTER_BYTES) +
           ((uint64_t)group * work->shares + share) * (SMALL_BATCH_ROWS * SMALL_BATCH_TOKENS);
}

/* Warps whose sums are loaded together when they are added up. */
#define SMALL_BATCH_WARPS_AT_ONCE 8u

/* Adds up what the warps have of the groups from `first` on, one for each slot. */
INLINE void small_batch_add_up(const struct small_batch_work *work, const SHARED float *all,
                               uint32_t first)
{
    const uint32_t each = SMALL_BATCH_ROWS * SMALL_BATCH_TOKENS;
    for (uint32_t n = thread_index(); n < work->slots * each; n += thread_count()) {
        uint32_t group = first + n / each, i = n % each;
        if (group >= work->end)
            break;
        const SHARED float *from = all + n / each * work->members * (SMALL_BATCH_SUMS_BYTES / 4) +
                                   i / SMALL_BATCH_ROWS * SMALL_BATCH_SUMS_APART +
                                   i % SMALL_BATCH_ROWS;
        float sum = 0;
        for (uint32_t m = 0; m < work->members; m += SMALL_BATCH_WARPS_AT_ONCE) {
            float loaded[SMALL_BATCH_WARPS_AT_ONCE];
            UNROLL
            for (uint32_t t = 0; t < SMALL_BATCH_WARPS_AT_ONCE; t++)
                loaded[t] = m + t < work->members ? from[(m + t) * (SMALL_BATCH_SUMS_BYTES / 4)]
                                                  : 0.0f;
            UNROLL
            for (uint32_t t = 0; t < SMALL_BATCH_WARPS_AT_ONCE; t++)
                sum += loaded[t];
        }
        if (work->shares == 1)
            small_batch_store(work, group, i, sum);
        else
            small_batch_parts(work, group, work->share)[i] = sum;
    }
}

/* The last block of those that share its rows adds up what they have. */
INLINE void small_batch_join(const struct small_batch_work *work, uint32_t which)
{
    const uint32_t each = SMALL_BATCH_ROWS * SMALL_BATCH_TOKENS;
    GLOBAL uint32_t *counter = (GLOBAL uint32_t *)work->call->workspace + which;
    if (!block_is_last(counter, work->shares, (SHARED uint32_t *)work->sums))
        return;
    for (uint32_t n = thread_index(); n < (work->end - work->first) * each; n += thread_count()) {
        uint32_t group = work->first + n / each;
        float sum = 0;
        for (uint32_t s = 0; s < work->shares; s++)
            sum += small_batch_parts(work, group, s)[n % each];
        small_batch_store(work, group, n % each, sum);
    }
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* The scales of the warp's block b. */
INLINE SHARED float *small_batch_block_scales(const struct small_batch_work *work, uint32_t dtype,
                                              uint32_t b)
{
    return work->scales + b * (small_batch_scales_bytes(dtype) / 4 / SMALL_BATCH_BLOCKS);
}

/* Multiplies the warp's block b of 16 rows; mine: there are any. */
INLINE void small_batch_round(const struct small_batch_work *work, uint32_t dtype, uint32_t b,
                              bool mine, struct small_batch_ring *ring,
                              const struct small_batch_acts *acts, struct small_batch_sums *sums)
{
    const uint32_t stage_bytes = SMALL_BATCH_ROWS * small_batch_row_bytes(dtype);
    small_batch_wait(dtype);
    small_batch_prefetch(work, dtype, ring);
    if (mine && (work->block + b) * 256 < work->k)
        small_batch_add(dtype, ring->full, work->block + b, acts,
                        small_batch_block_scales(work, dtype, b), sums);
    ring->empty = ring->full;
    ring->full += stage_bytes;
    if (ring->full == work->ring + small_batch_ring_bytes(dtype))
        ring->full = work->ring;
}

INLINE void small_batch_multiply(const struct gpu_call *call, uint32_t dtype,
                                 struct part_blocks blocks)
{
    const struct matmul_small_batch_args *args = matmul_small_batch_args_of(call);
    uint32_t warps = thread_count() / WARP, shares = args->shares;
    uint32_t which = blocks.index / shares, ranges = blocks.count / shares;
    SHARED uint8_t *behind = shared_memory() + warps * small_batch_ring_bytes(dtype);
    struct small_batch_work work = { .call = call,
                                     .tokens = (uint32_t)call->operands[MATMUL_GROUP_PACKED].rows,
                                     .members = args->members,
                                     .member = warp_index() % args->members,
                                     .slots = warps / args->members,
                                     .slot = warp_index() / args->members,
                                     .shares = shares,
                                     .share = blocks.index % shares,
                                     .blocks = args->blocks,
                                     .ring = shared_memory() +
                                             warp_index() * small_batch_ring_bytes(dtype) };
    work.scales = (SHARED float *)(behind + warp_index() * small_batch_scales_bytes(dtype));
    work.sums = (SHARED float *)(behind + warps * small_batch_scales_bytes(dtype));
    work.block = (work.share * work.members + work.member) * work.blocks;
    early_allow();
    uint32_t count = part_count_groups(call, blocks.part_bits, SMALL_BATCH_ROWS, work.counts,
                                       &work.k);
    work.first = (uint32_t)((uint64_t)count * which / ranges);
    work.end = (uint32_t)((uint64_t)count * (which + 1) / ranges);
    const uint32_t stage_bytes = SMALL_BATCH_ROWS * small_batch_row_bytes(dtype);
    struct small_batch_ring ring = { work.ring, work.ring, work.first + work.slot, 0 };
    for (uint32_t s = 0; s < small_batch_stages(dtype) - 1; s++, ring.empty += stage_bytes)
        small_batch_prefetch(&work, dtype, &ring);
    early_wait();
    leave_crumbs(call);
    struct small_batch_acts acts[SMALL_BATCH_BLOCKS];
    UNROLL
    for (uint32_t b = 0; b < SMALL_BATCH_BLOCKS; b++)
        small_batch_load_acts(&work, dtype, work.block + b, ring.empty,
                              small_batch_block_scales(&work, dtype, b), &acts[b]);
    SHARED float *all = work.sums;
    for (uint32_t first = work.first; first < work.end; first += work.slots) {
        bool mine = first + work.slot < work.end;
        struct small_batch_sums sums = { { 0, 0, 0, 0 } };
        UNROLL
        for (uint32_t b = 0; b < SMALL_BATCH_BLOCKS; b++)
            if (b < work.blocks)
                small_batch_round(&work, dtype, b, mine, &ring, &acts[b], &sums);
        if (small_batch_sum_sets(dtype) == 1)
            block_sync(); /* all have added up the round before; of two sets its barrier says so */
        small_batch_keep(all, &sums);
        block_sync();
        small_batch_add_up(&work, all, first);
        if (small_batch_sum_sets(dtype) == 2)
            all = all == work.sums ? all + warps * (SMALL_BATCH_SUMS_BYTES / 4) : work.sums;
    }
    if (work.shares > 1)
        small_batch_join(&work, which);
}

/* All parts have one type. */
INLINE void small_batch_multiply_all(const struct gpu_call *call, uint32_t dtype)
{
    small_batch_multiply(call, dtype, part_blocks_all());
}

KERNEL(matmul_small_batch_q4_k)
{
    small_batch_multiply_all(&call, DTYPE_Q4_K);
}
KERNEL(matmul_small_batch_q6_k)
{
    small_batch_multiply_all(&call, DTYPE_Q6_K_X8);
}
KERNEL(matmul_small_batch_q8_0)
{
    small_batch_multiply_all(&call, DTYPE_Q8_0_X8);
}

/* Each part has its own type. */
KERNEL(matmul_small_batch_quants)
{
    const struct matmul_small_batch_args *args = matmul_small_batch_args_of(&call);
    uint32_t dtype;
    struct part_blocks blocks = part_blocks_own(&call, args->second_block, args->third_block,
                                                &dtype);
    if (dtype == DTYPE_Q4_K)
        small_batch_multiply(&call, DTYPE_Q4_K, blocks);
    else if (dtype == DTYPE_Q6_K_X8)
        small_batch_multiply(&call, DTYPE_Q6_K_X8, blocks);
    else
        small_batch_multiply(&call, DTYPE_Q8_0_X8, blocks);
}

#else

/* Never planned here. */
KERNEL(matmul_small_batch_q4_k)
{
    ENTER(call);
}
KERNEL(matmul_small_batch_q6_k)
{
    ENTER(call);
}
KERNEL(matmul_small_batch_q8_0)
{
    ENTER(call);
}
KERNEL(matmul_small_batch_quants)
{
    ENTER(call);
}

#endif

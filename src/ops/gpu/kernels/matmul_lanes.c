/* matmul_lanes.c - products of quants (Q4_K, Q5_K, Q6_K_X8, Q8_0_X8) with up to LANES_TOKENS rows
 * of activations at a time, or LANES_TOKENS_FEW, on the matrix units of sm_90a, weights straight
 * from registers.
 *
 * A block has four warpgroups. Each has LANES_ROWS rows of weights and a share of k: four times as
 * many rows and one share (shares is 1), or twice as many and two shares, which meet in shared
 * memory at the end. Bytes of weights go through a ring of each warp's own, 256 values of k of its
 * 16 rows at a time, and become halves in registers (lane_quants.h); activations through a ring of
 * the block, 64 values of k of two panels at a time. So weights are read once, activations once for
 * every tile, and only activations pass a barrier of the block. While the matrix units work, the
 * next quarter of 256 values is unpacked.
 *
 * Order of a sum: k in steps of 16 values in the order of lane_quants.h, each as the matrix unit
 * adds it, accumulated in f32, in blocks of 256 from one on that depends on the tile and around to
 * it; then the two shares of a block; then the splits in their order. It depends on type and k, on
 * the row, on the chip's number of SMs, and on how many rows and tokens the matmul has, by the
 * number of splits and shares; not on what the other tokens are.
 *
 * Operands: those of matmul_group, packed as PACK_LANES. Arguments: struct matmul_lanes_args.
 * x counts splits, then
 * tiles of rows of all parts; y tiles of tokens. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/lanes_store.h"

#if HAS_WARPGROUPS

/* ---- Activations ---------------------------------------------------------------------------- */

/* A thread copies 16 bytes of a token's row, of both panels, or of one where half the threads fill
 * it. */
_Static_assert(LANES_THREADS == LANES_TOKENS * 8 && LANES_THREADS == 2 * LANES_TOKENS_32 * 8,
               "segments of a panel for all threads, or for half of them");

struct lanes_tokens {
    const GLOBAL uint8_t *mine;   /* the thread's segment of its row */
    bool there;                   /* else the row is none, and what is multiplied is not stored */
    uint32_t target;              /* in a panel */
    struct lanes_place panels[2]; /* bytes of a row, of the stage to ask for next */
    uint32_t step;                /* from stage to stage */
};

/* Panels of a stage: one share's next two quarters of a block, or each share's next. */
INLINE struct lanes_tokens find_lanes_tokens(const struct gpu_call *call,
                                             const struct lanes_share *share)
{
    const struct gpu_operand *packed = &call->operands[MATMUL_GROUP_PACKED];
    uint32_t row = thread_index() / 8 % share->columns, segment = thread_index() % 8;
    bool two = share->shares == 2;
    struct lanes_tokens tokens = { .step = two ? 128 : 256 };
    tokens.there = row < share->tokens;
    tokens.mine = row_at(packed, share->first_token + (tokens.there ? row : 0)) + 16 * segment;
    tokens.target = panel_segment(row, segment);
    UNROLL
    for (uint32_t n = 0; n < 2; n++) {
        uint32_t unused, behind = two ? 0 : 128 * n;
        struct lanes_place blocks = find_lanes_blocks(call, share, two ? n : 0, &unused);
        tokens.panels[n] = (struct lanes_place){ blocks.at * 512 + behind,
                                                 blocks.begin * 512 + behind,
                                                 blocks.end * 512 + behind };
    }
    return tokens;
}

/* ---- Walking -------------------------------------------------------------------------------- */

/* Places of rings begin at 0. */
struct lanes_walk {
    struct lane_rows rows;       /* of the warp */
    SHARED uint8_t *acts, *ring; /* ring: of the warp */
    struct lanes_tokens tokens;
    struct lanes_place blocks;           /* of weights, the one to ask for next */
    uint32_t asked;                      /* blocks of weights so far */
    uint32_t stage;                      /* the next */
    struct lanes_place full, empty, raw; /* of stages: at hand, to fill next; of weights: to fill */
};

/* Asks for the next block of 256 values of weights, or a share of it: copies `part` and every
 * `parts` further. The last of them moves on. */
INLINE void ask_lanes_block(uint32_t dtype, const struct lanes_share *share,
                            struct lanes_walk *walk, uint32_t part, uint32_t parts)
{
    if (walk->asked >= share->blocks)
        return;
    UNROLL
    for (uint32_t copy = part; copy < lane_copies(dtype); copy += parts)
        copy_lane_bytes(dtype, &walk->rows, walk->blocks.at, copy, walk->ring + walk->raw.at);
    if (part < parts - 1)
        return;
    walk->asked++;
    advance_lanes(&walk->blocks, 1);
    advance_lanes(&walk->raw, 16 * lanes_raw_bytes(dtype));
}

/* Asks for panel n of a stage; the second moves on. */
INLINE void ask_lanes_panel(const struct lanes_share *share, struct lanes_walk *walk,
                            uint32_t stage, uint32_t n)
{
    struct lanes_tokens *tokens = &walk->tokens;
    bool mine = share->columns == LANES_TOKENS || n == thread_index() / (LANES_THREADS / 2);
    if (stage < share->stages && tokens->there && mine)
        copy_async(walk->acts + walk->empty.at + n * lanes_panel_bytes(share->columns) +
                       tokens->target,
                   tokens->mine + tokens->panels[n].at);
    advance_lanes(&tokens->panels[n], tokens->step);
    if (n == 1)
        advance_lanes(&walk->empty, lanes_stage_bytes(share->columns));
}

/* Waits for the next stage. What is asked for in it has the place that was multiplied from two
 * stages ago, and all have waited for that. */
INLINE void enter_lanes_stage(uint32_t dtype, const struct lanes_share *share,
                              struct lanes_walk *walk)
{
    walk->stage++;
    advance_lanes(&walk->full, lanes_stage_bytes(share->columns));
    if (lanes_rounds(dtype) == 3) /* rounds - 1, which must be a number */
        copy_wait(2);
    else
        copy_wait(1);
    warpgroup_publish();
    block_sync();
}

INLINE void begin_lanes(const struct gpu_call *call, uint32_t dtype, struct lanes_share *share,
                        struct lanes_walk *walk)
{
    const uint32_t rounds = lanes_rounds(dtype), stage_bytes = lanes_stage_bytes(share->columns);
    const uint32_t ring = (rounds + 2) * stage_bytes;
    const uint32_t raw_bytes = 16 * lanes_raw_bytes(dtype);
    uint32_t stride = (uint32_t)share->weights->row_stride_bytes, counts[2];
    SHARED float *factors = (SHARED float *)(shared_memory() + ring);
    struct lanes_place first = find_lanes_blocks(call, share, 0, &counts[0]), second = first;
    counts[1] = 0;
    if (share->shares == 2)
        second = find_lanes_blocks(call, share, 1, &counts[1]);
    share->blocks = share->rows == 0 ? 0 : share->share ? counts[1] : counts[0];
    share->stages = (counts[0] > counts[1] ? counts[0] : counts[1]) * 2 * share->shares;
    walk->rows = (struct lane_rows){ (const GLOBAL uint8_t *)share->weights->address,
                                     share->warp_row * stride, stride };
    walk->blocks = share->share ? second : first;
    walk->acts = shared_memory();
    walk->ring = shared_memory() + ring + LANES_EXTRA_BYTES + warp_index() * rounds * raw_bytes;
    walk->full = (struct lanes_place){ ring - stage_bytes, 0, ring };
    walk->empty = (struct lanes_place){ 0, 0, ring };
    walk->raw = (struct lanes_place){ 0, 0, rounds * raw_bytes };
    walk->stage = walk->asked = 0;
    for (uint32_t n = 0; n < rounds - 1; n++)
        ask_lanes_block(dtype, share, walk, 0, 1);
    early_wait();
    leave_crumbs(call);
    walk->tokens = find_lanes_tokens(call, share);
    for (uint32_t stage = 0; stage < rounds; stage++) {
        ask_lanes_panel(share, walk, stage, 0);
        ask_lanes_panel(share, walk, stage, 1);
        copy_commit();
    }
    if (thread_index() < share->tokens)
        factors[thread_index()] = *(
            const GLOBAL float *)(row_at(&call->operands[MATMUL_GROUP_PACKED],
                                         share->first_token + thread_index()) +
                                  2 * share->weights->width);
}

/* The scales of both rows of a lane. */
INLINE void load_lanes_scales(uint32_t dtype, const SHARED uint8_t *raw, uint32_t in_eight,
                              struct lane_scales scales[2])
{
    UNROLL
    for (uint32_t which = 0; which < 2; which++)
        scales[which] = load_lane_scales(dtype, raw, lane_index() / 4 + 8 * which, in_eight);
}
INLINE void load_lanes_quarters(uint32_t dtype, const SHARED uint8_t *raw, uint32_t q,
                                const struct lane_scales scales[2], struct lane_quarter quarters[2])
{
    UNROLL
    for (uint32_t which = 0; which < 2; which++)
        quarters[which] = load_lane_quarter(dtype, raw, q, lane_index() / 4 + 8 * which,
                                            &scales[which]);
}

/* What a warp unpacks: the block of its ring, and in registers what comes next of it. */
struct lanes_unpacking {
    struct lanes_place raw, block;
    struct lane_scales scales[2];
    struct lane_quarter quarters[2];
};

INLINE void load_lanes_first(uint32_t dtype, const struct lanes_walk *walk,
                             struct lanes_unpacking *unpacking)
{
    const SHARED uint8_t *raw = walk->ring + unpacking->raw.at;
    load_lanes_scales(dtype, raw, unpacking->block.at % 8, unpacking->scales);
    load_lanes_quarters(dtype, raw, 0, unpacking->scales, unpacking->quarters);
}

/* Multiplies a block of 256 values. What is multiplied next is loaded before the wait; `more`: so
 * is the next block's beginning, whose bytes came a stage ago. Copies are queued after that, a few
 * at a time: many at once would keep the loads waiting. */
INLINE void multiply_lanes_block(uint32_t dtype, const struct lanes_share *share,
                                 struct lanes_walk *walk, bool more,
                                 struct lanes_unpacking *unpacking, uint32_t words[2][8],
                                 float sums[WARPGROUP_SUMS_32])
{
    const SHARED uint8_t *raw = walk->ring + unpacking->raw.at;
    const uint32_t rounds = lanes_rounds(dtype);
    bool two = share->shares == 2;
    advance_lanes(&unpacking->raw, 16 * lanes_raw_bytes(dtype));
    advance_lanes(&unpacking->block, 1);
    UNROLL
    for (uint32_t q = 0; q < 4; q++) {
        if (q > 0 && (two || q % 2 == 0)) {
            copy_commit();
            enter_lanes_stage(dtype, share, walk);
        }
        uint64_t panel = warpgroup_place(walk->acts) +
                         (walk->full.at +
                          (two ? share->share : q % 2) * lanes_panel_bytes(share->columns)) /
                             WARPGROUP_PLACE_BYTES;
        UNROLL
        for (uint32_t g = 0; g < 2; g++) {
            hold_lane_group(dtype, &unpacking->quarters[0], q, g, 0, words[g]);
            hold_lane_group(dtype, &unpacking->quarters[1], q, g, 1, words[g]);
            uint64_t b = panel + g * (64 / WARPGROUP_PLACE_BYTES);
            if (share->columns == LANES_TOKENS)
                warpgroup_multiply_held(sums, words[g], b);
            else
                warpgroup_multiply_held_32(sums, words[g], b);
            if (g == 1 && q < 3)
                load_lanes_quarters(dtype, raw, q + 1, unpacking->scales, unpacking->quarters);
            else if (g == 1 && more)
                load_lanes_first(dtype, walk, unpacking);
            if (two || q % 2 == 0)
                ask_lanes_panel(share, walk, walk->stage - 1 + rounds, g);
            if (q < 2) /* early enough for all types, however k is shared */
                ask_lanes_block(dtype, share, walk, 2 * q + g, 4);
            warpgroup_wait(1); /* the words of the one before are free */
        }
    }
}

INLINE void walk_lanes(const struct gpu_call *call, uint32_t dtype, struct lanes_share *share,
                       float sums[WARPGROUP_SUMS_32])
{
    /* Bytes of a block come with the activations of the stage before it, or with those of its own.
     */
    const bool ahead = lanes_rounds(dtype) == 3;
    struct lanes_walk walk;
    struct lanes_unpacking unpacking;
    uint32_t words[2][8], unused;
    begin_lanes(call, dtype, share, &walk);
    unpacking.raw = (struct lanes_place){ 0, 0, lanes_rounds(dtype) * 16 * lanes_raw_bytes(dtype) };
    unpacking.block = find_lanes_blocks(call, share, share->share, &unused);
    for (uint32_t n = 0; n < share->blocks; n++) {
        enter_lanes_stage(dtype, share, &walk);
        if (n == 0 || !ahead)
            load_lanes_first(dtype, &walk, &unpacking);
        multiply_lanes_block(dtype, share, &walk, ahead && n + 1 < share->blocks, &unpacking, words,
                             sums);
        copy_commit();
    }
    warpgroup_wait(0);
    while (walk.stage < share->stages) { /* the others go on */
        enter_lanes_stage(dtype, share, &walk);
        ask_lanes_panel(share, &walk, walk.stage - 1 + lanes_rounds(dtype), 0);
        ask_lanes_panel(share, &walk, walk.stage - 1 + lanes_rounds(dtype), 1);
        copy_commit();
    }
    copy_wait(0);
    block_sync();
}

INLINE void multiply_lanes(const struct gpu_call *call, struct lanes_share *share, uint32_t dtype)
{
    float sums[WARPGROUP_SUMS_32];
    UNROLL
    for (uint32_t i = 0; i < WARPGROUP_SUMS_32; i++)
        sums[i] = 0;
    walk_lanes(call, dtype, share, sums);
    store_lanes(call, share, lanes_rounds(dtype), sums);
}

/* Parts of any type. */
INLINE void multiply_any_lanes(const struct gpu_call *call, struct lanes_share *share,
                               uint32_t unused)
{
    (void)unused;
    uint32_t dtype = share->weights->dtype;
    if (dtype == DTYPE_Q4_K)
        multiply_lanes(call, share, DTYPE_Q4_K);
    else if (dtype == DTYPE_Q6_K_X8)
        multiply_lanes(call, share, DTYPE_Q6_K_X8);
    else if (dtype == DTYPE_Q8_0_X8)
        multiply_lanes(call, share, DTYPE_Q8_0_X8);
    else
        multiply_lanes(call, share, DTYPE_Q5_K);
}

#define LANES_KERNEL(name, columns, multiply, dtype)                                               \
    KERNEL(name)                                                                                   \
    {                                                                                              \
        early_allow();                                                                             \
        struct lanes_share share = find_lanes(&call, columns);                                     \
        multiply(&call, &share, dtype);                                                            \
    }

#else

/* Never planned on these chips; the image has all names. */
#define LANES_KERNEL(name, columns, multiply, dtype)                                               \
    KERNEL(name)                                                                                   \
    {                                                                                              \
        ENTER(call);                                                                               \
    }

#endif

/* All parts of one type, or of any: short code is fetched faster. */
LANES_KERNEL(matmul_lanes_q4_k, LANES_TOKENS, multiply_lanes, DTYPE_Q4_K)
LANES_KERNEL(matmul_lanes_q6_k, LANES_TOKENS, multiply_lanes, DTYPE_Q6_K_X8)
LANES_KERNEL(matmul_lanes_q8_0, LANES_TOKENS, multiply_lanes, DTYPE_Q8_0_X8)
LANES_KERNEL(matmul_lanes, LANES_TOKENS, multiply_any_lanes, 0)
LANES_KERNEL(matmul_lanes_32_q4_k, LANES_TOKENS_32, multiply_lanes, DTYPE_Q4_K)
LANES_KERNEL(matmul_lanes_32_q6_k, LANES_TOKENS_32, multiply_lanes, DTYPE_Q6_K_X8)
LANES_KERNEL(matmul_lanes_32_q8_0, LANES_TOKENS_32, multiply_lanes, DTYPE_Q8_0_X8)
LANES_KERNEL(matmul_lanes_32, LANES_TOKENS_32, multiply_any_lanes, 0)

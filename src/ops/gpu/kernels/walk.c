/* walk.c - a whole recorded sequence of launches as one kernel, for decoding one sequence on sm_90.
 *
 * As many blocks as there are processors go through the rows of a table (walking.h) together. A row
 * is done as its own kernel does it, value by value in the same order: the bits are the same.
 * Weights stream into the teams' rings all the while (walk_stream.h), and what blocks need of each
 * other comes through cells (walk_cells.h). The first block leaves a row's number, so that a fault
 * has its op's name.
 *
 * Every wait is bounded: a block that waits for longer than WALK_LIMIT_MS ends the kernel with an
 * error, under the number of the row it was at.
 *
 * Operands: the table, the walk's memory. */
#include "ops/gpu/kernels/walk_attention.h"
#include "ops/gpu/kernels/walk_norm.h"
#include "ops/gpu/kernels/walk_stream.h"

#if HAS_BULK

/* ---- Products ------------------------------------------------------------------------------- */

/* The sums of two rows, the second `slots` behind the first. */
INLINE void walk_keep(const struct one_work *work, uint32_t row, bool both, float first,
                      float second)
{
    bool upper = lane_index() & 16;
    float sum = (upper ? second : first) + team_swap_float(upper ? first : second, 16);
    sum = team_sum(sum, 16);
    row += upper ? work->slots : 0;
    if (lane_index() % 16 == 0 && (both || !upper))
        work->sums[row * work->members + work->member] = sum;
}

/* Rows of one type from `now` to `end`, as long as the ring knows what is to come; says how far it
 * came. A loop for each type, with registers for what it needs. */
INLINE uint32_t walk_rows(const struct walk *walk, const struct one_work *work, uint32_t type,
                          uint32_t now, uint32_t end, struct walk_ring *ring)
{
    uint32_t left = work->k - work->member * one_columns(type);
    struct one_acts acts = { .lane = from_here(lane_index()) };
    one_load_acts(work, type, &acts);
    do {
        uint32_t at = ring->at, parity = ring->parity;
        bool both = now + work->slots < end;
        const SHARED uint8_t *first = walk_ring_read(walk, ring, at, parity), *second = first;
        if (both) {
            walk_ring_step(walk, &at, &parity);
            second = walk_ring_read(walk, ring, at, parity);
        }
        float sums[2] = { one_dot(type, first, left, &acts), one_dot(type, second, left, &acts) };
        uint32_t stages = both ? 2 : 1;
        walk_ring_go_on(walk, ring, stages);
        walk_keep(work, now, both, sums[0], sums[1]);
        now += stages * work->slots;
    } while (now < end && (ring->left || ring->done));
    return now;
}

/* The team's share of a product. type: of all parts, or ONE_ANY. */
INLINE void walk_multiply(const struct walk *walk, const struct walk_shares *shares,
                          const struct one_work *work, uint32_t now, uint32_t only)
{
    if (now >= work->end)
        return;
    struct walk_ring ring = walk_ring_take(walk);
    while (now < work->end) {
        uint32_t type = only, end = work->end;
        if (only == ONE_ANY) { /* of a part */
            uint32_t part = walk_part_of(shares, now);
            type = walk_choose(shares->types, part);
            end = walk_choose(shares->ends, part);
        }
        switch (type) {
        case DTYPE_BF16:
            now = walk_rows(walk, work, DTYPE_BF16, now, end, &ring);
            break;
        case DTYPE_F16:
            now = walk_rows(walk, work, DTYPE_F16, now, end, &ring);
            break;
        case DTYPE_Q4_K:
            now = walk_rows(walk, work, DTYPE_Q4_K, now, end, &ring);
            break;
        case DTYPE_Q6_K_X8:
            now = walk_rows(walk, work, DTYPE_Q6_K_X8, now, end, &ring);
            break;
        default:
            now = walk_rows(walk, work, DTYPE_Q8_0_X8, now, end, &ring);
            break;
        }
        walk_ring_fill_all(walk, &ring);
    }
    walk_ring_leave(walk, &ring);
}

/* The sum of a row of the block. */
INLINE float walk_row_sum(const struct walk *walk, uint32_t members, uint32_t row)
{
    const SHARED float *sums = (const SHARED float *)walk_place(walk, WALK_AT_SCRATCH);
    float sum = 0;
    for (uint32_t m = 0; m < members; m++)
        sum += sums[row * members + m];
    return sum;
}

/* Sums to the outputs and, for the row behind, to cells. */
INLINE void walk_finish_product(const struct walk *walk, const struct gpu_call *call,
                                const SHARED struct walk_product *product)
{
    struct walk_shares shares = walk_shares(product);
    uint32_t target = call->words[WALK_TARGET], tag = walk_state(walk)->tag;
    for (uint32_t i = thread_index(); i < shares.ends[2]; i += thread_count()) {
        uint32_t part = walk_part_of(&shares, i);
        const struct gpu_operand *bias = &call->operands[4 + part];
        const struct gpu_operand *out = &call->operands[7 + part];
        uint32_t row = product->firsts[part] + i -
                       (part == 0   ? 0
                        : part == 1 ? shares.ends[0]
                                    : shares.ends[1]);
        float sum = walk_row_sum(walk, product->members, i);
        if (bias->address)
            sum += row_f32(bias, 0)[row];
        row_f32(out, 0)[row] = sum;
        if (target == WALK_NOWHERE)
            continue;
        uint32_t before = part > 0 ? (uint32_t)call->operands[7].width : 0;
        before += part > 1 ? (uint32_t)call->operands[8].width : 0;
        cell_store(walk_cells(walk, target + before + row), bits_of(sum), tag);
    }
}

INLINE void walk_product(const struct walk *walk, const struct gpu_call *call)
{
    const SHARED struct walk_product *product = walk_products(walk) +
                                                call->words[WALK_PRODUCT_NUMBER];
    if (call->words[WALK_SOURCE] != WALK_NOWHERE) {
        walk_take_words(walk, walk_cells(walk, call->words[WALK_SOURCE]),
                        call->words[WALK_PRODUCT_WORDS],
                        (SHARED uint32_t *)walk_place(walk, WALK_AT_PACKED));
        walk_name(call, 0);
        block_sync();
    } else {
        walk_name(call, 0);
    }
    struct walk_shares shares = walk_shares(product);
    struct walk_seat_of_team seat = walk_team_seat(product, team_same(team_index()));
    struct one_work work = { .call = call,
                             .packed = (const uint8_t *)walk_place(walk, WALK_AT_PACKED),
                             .k = team_same(product->k),
                             .members = team_same(product->members),
                             .member = team_same(seat.member),
                             .slots = team_same(product->slots),
                             .end = shares.ends[2],
                             .sums = (SHARED float *)walk_place(walk, WALK_AT_SCRATCH) };
    /* A team without a place among whole rows has nothing to do. */
    uint32_t slot = team_same(seat.slot);
    walk_multiply(walk, &shares, &work, slot < work.slots ? slot : work.end,
                  team_same(call->words[WALK_PRODUCT_TYPE]));
    if (call->words[WALK_PRODUCT_GATED])
        return; /* the next row takes the sums */
    block_sync();
    walk_finish_product(walk, call, product);
}

/* ---- Small rows ----------------------------------------------------------------------------- */

/* Every block has all of it. */
INLINE void walk_embed(const struct walk *walk, const struct gpu_call *call)
{
    const struct gpu_operand *table = &call->operands[0]; /* [width, vocab] */
    walk_name(call, 0);
    uint64_t id = list_index(&call->operands[1], 0);
    if (id >= table->rows) {
        if (block_x() == 0 && thread_index() == 0)
            index_ok(call, 1, id, table->rows);
        id = 0; /* what comes of it is not used */
    }
    SHARED float *stream = (SHARED float *)walk_place(walk, WALK_AT_STREAM);
    GLOBAL float *out = row_f32(&call->operands[2], 0); /* [width] */
    uint32_t width = (uint32_t)table->width, first = width * block_x() / block_count_x();
    uint32_t end = width * (block_x() + 1) / block_count_x();
    for (uint32_t i = thread_index(); i < width; i += thread_count()) {
        stream[i] = decode_value(table->dtype, row_at(table, id), i);
        if (i >= first && i < end)
            out[i] = stream[i];
    }
}

/* Behind its product: a team does 32 neighbouring values. */
INLINE void walk_swiglu(const struct walk *walk, const struct gpu_call *call)
{
    const struct params_swiglu *params = (const void *)call->params;
    const SHARED struct walk_product *product = walk_products(walk) +
                                                call->words[WALK_SWIGLU_NUMBER];
    uint32_t width = (uint32_t)call->operands[2].width; /* all [width] */
    uint32_t count = product->counts[0], members = product->members;
    GLOBAL uint8_t *packed = call->operands[3].address ? row_at(&call->operands[3], 0) : 0;
    walk_name(call, 0);
    for (uint32_t n = thread_index(); n < count; n += thread_count()) {
        uint32_t i = product->firsts[0] + n;
        float gate = walk_row_sum(walk, members, n), up = walk_row_sum(walk, members, count + n);
        float value = silu(gate) * up;
        row_f32(&call->operands[0], 0)[i] = gate;
        row_f32(&call->operands[1], 0)[i] = up;
        row_f32(&call->operands[2], 0)[i] = value;
        walk_put_packed(walk, params->packing.format, packed, call->words[WALK_TARGET], width, i,
                        value);
    }
}

/* ---- The walk ------------------------------------------------------------------------------- */

/* The block's memory for rows of the table: the one at hand and the next. */
INLINE SHARED struct gpu_call *walk_row(const struct walk *walk, uint32_t row)
{
    return (SHARED struct gpu_call *)walk_place(walk, WALK_AT_CALLS) + row % 2;
}

/* A row of the table to the block's memory, in the background; seen behind walk_keep_row and a
 * block_sync. */
INLINE void walk_ask_row(const struct walk *walk, uint32_t row)
{
    uint32_t at = 16 * thread_index();
    if (at < sizeof(struct gpu_call) && row < walk->call->words[WALK_ROWS])
        copy_async((SHARED uint8_t *)walk_row(walk, row) + at,
                   row_at(&walk->call->operands[0], row) + at);
    copy_commit();
}
INLINE void walk_keep_row(void)
{
    copy_wait(0);
}

INLINE void walk_do_row(const struct walk *walk, const struct gpu_call *call)
{
    switch (call->words[WALK_KIND]) {
    case WALK_EMBED:
        walk_embed(walk, call);
        break;
    case WALK_NORM:
        walk_norm(walk, call);
        break;
    case WALK_PRODUCT:
        walk_product(walk, call);
        break;
    case WALK_ATTENTION:
        walk_attention(walk, call);
        break;
    default:
        walk_swiglu(walk, call);
        break;
    }
}

/* What the next row reads and is there already: asked for before the others are waited for. */
INLINE void walk_ask_ahead(const struct walk *walk, uint32_t row)
{
    if (row + 1 == walk->call->words[WALK_ROWS])
        return;
    const struct gpu_call *next = (const struct gpu_call *)walk_row(walk, row + 1);
    if (next->words[WALK_KIND] == WALK_NORM)
        walk_norm_ask(next);
    else if (next->words[WALK_KIND] == WALK_ATTENTION)
        walk_attention_ask(walk, next);
}

KERNEL(walk_graph)
{
    struct walk walk = { .call = &call };
    early_wait();
    leave_crumbs(&call);
    walk_begin(&walk);
    walk_list_products(&walk);
    walk_ask_row(&walk, 0);
    walk_keep_row();
    block_sync();
    walk_ring_start(&walk);
    for (uint32_t row = 0; row < call.words[WALK_ROWS]; row++) {
        const struct gpu_call *now = (const struct gpu_call *)walk_row(&walk, row);
        if (thread_index() == 0)
            walk_state(&walk)->node = now->node;
        walk_ask_row(&walk, row + 1);
        walk_do_row(&walk, now);
        walk_keep_row();
        block_sync();
        walk_ask_ahead(&walk, row);
    }
    walk_end(&walk);
}

#else

KERNEL(walk_graph)
{
    (void)call; /* never launched: DEVICE_GPU_WALKS is not among the features */
}

#endif

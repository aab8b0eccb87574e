/* walk.c - a whole recorded sequence of launches as one kernel, for decoding one sequence on sm_90.
 *
 * As many blocks as there are processors go through the rows of a table (walking.h) together. A row
 * is done as its own kernel does it, value by value in the same order: the bits are the same.
 * Weights stream into the teams' rings all the while (walk_stream.h). Before a row the first block
 * leaves its number, so that a fault has its op's name; blocks are never more than one meeting
 * apart.
 *
 * Every wait is bounded: a block that waits for longer than WALK_LIMIT_MS ends the kernel with an
 * error, under the number of the row it was at.
 *
 * Operands: the table, the counter of the meetings. */
#include "ops/gpu/kernels/walk_attention.h"
#include "ops/gpu/kernels/walk_norm.h"
#include "ops/gpu/kernels/walk_stream.h"

#if HAS_BULK

/* ---- Products ------------------------------------------------------------------------------- */

/* The sums of two rows: of a group that has two, or of it and the one behind it. */
INLINE void walk_keep(const struct one_work *work, uint32_t group, bool one_group, bool both,
                      float first, float second)
{
    bool upper = lane_index() & 16;
    float sum = (upper ? second : first) + team_swap_float(upper ? first : second, 16);
    sum = team_sum(sum, 16);
    uint32_t behind = one_group ? 1 : work->slots * ONE_ROWS_MOST;
    uint32_t row = (group - work->first) * ONE_ROWS_MOST + (upper ? behind : 0);
    if (lane_index() % 16 == 0 && (both || !upper))
        work->sums[row * work->members + work->member] = sum;
}

/* Groups of one type from `now` to `end`, as long as the ring knows what is to come; says how far
 * it came. A loop for each type, with registers for what it needs. */
INLINE uint32_t walk_rows(const struct walk *walk, const struct one_work *work, uint32_t type,
                          uint32_t now, uint32_t end, struct walk_ring *ring)
{
    const bool one_group = one_rows(type) > 1;
    uint32_t left = work->k - work->member * one_columns(type);
    struct one_acts acts = { .lane = from_here(lane_index()) };
    one_load_acts(work, type, &acts);
    do {
        uint32_t at = ring->at, parity = ring->parity;
        bool both = one_group || now + work->slots < end;
        const SHARED uint8_t *first = walk_ring_read(walk, ring, at, parity), *second = first;
        if (one_group) {
            second += WALK_SECOND_ROW;
        } else if (both) {
            walk_ring_step(walk, &at, &parity);
            second = walk_ring_read(walk, ring, at, parity);
        }
        float sums[2] = { one_dot(type, first, left, &acts), one_dot(type, second, left, &acts) };
        uint32_t stages = both && !one_group ? 2 : 1;
        walk_ring_go_on(walk, ring, stages);
        walk_keep(work, now, one_group, both, sums[0], sums[1]);
        now += stages * work->slots;
    } while (now < end && (ring->left || ring->done));
    return now;
}

/* The team's share of a product. type: of all parts, or ONE_ANY. */
INLINE void walk_multiply(const struct walk *walk, const struct one_work *work, uint32_t only)
{
    uint32_t team = team_same(team_index());
    uint32_t now = work->first + team / work->members;
    if (team >= work->slots * work->members || now >= work->end)
        return;
    struct walk_ring ring = walk_ring_take(walk);
    while (now < work->end) {
        uint32_t type = only, end = work->end;
        if (only == ONE_ANY) { /* of a part */
            uint32_t before, part = one_part(work, now, &before);
            uint32_t two = work->counts[0] + work->counts[1];
            uint32_t behind = part == 0 ? work->counts[0] : part == 1 ? two : end;
            type = team_same(work->call->operands[1 + part].dtype);
            end = behind < end ? behind : end;
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

INLINE struct one_work walk_work(const struct walk *walk, const struct gpu_call *call)
{
    const SHARED struct walk_product *product = (const SHARED struct walk_product *)walk_place(
                                                    walk, WALK_AT_PRODUCTS) +
                                                call->words[WALK_PRODUCT_NUMBER];
    uint32_t members = team_same(product->members);
    struct one_work work = { .call = call,
                             .k = team_same(product->k),
                             .members = members,
                             .member = team_same(team_index()) % members,
                             .slots = WALK_TEAMS / members,
                             .first = team_same(product->first),
                             .end = team_same(product->end),
                             .sums = (SHARED float *)walk_place(walk, WALK_AT_SCRATCH) };
    if (call->words[WALK_PRODUCT_SHARED])
        work.packed = (const uint8_t *)walk_place(walk, WALK_AT_PACKED);
    UNROLL
    for (uint32_t part = 0; part < 3; part++)
        work.counts[part] = walk_part_groups(product, part);
    return work;
}

INLINE void walk_product(const struct walk *walk, const struct gpu_call *call)
{
    struct one_work work = walk_work(walk, call);
    walk_multiply(walk, &work, team_same(call->words[WALK_PRODUCT_TYPE]));
    block_sync();
    work = walk_work(walk, call);
    one_finish(&work, ONE_ANY); /* rows of a group by the part's own type */
}

/* ---- Small rows ----------------------------------------------------------------------------- */

INLINE void walk_embed(const struct gpu_call *call)
{
    const struct gpu_operand *table = &call->operands[0]; /* [width, vocab] */
    uint64_t id = list_index(&call->operands[1], 0);
    if (id >= table->rows) {
        if (block_x() == 0 && thread_index() == 0)
            index_ok(call, 1, id, table->rows);
        return;
    }
    GLOBAL float *out = row_f32(&call->operands[2], 0); /* [width] */
    for (uint32_t i = block_x() * thread_count() + thread_index(); i < table->width;
         i += block_count_x() * thread_count())
        out[i] = decode_value(table->dtype, row_at(table, id), i);
}

INLINE void walk_add(const struct gpu_call *call)
{
    const struct gpu_operand *x = &call->operands[0]; /* both [width, rows] */
    for (uint64_t row = block_x(); row < x->rows; row += block_count_x())
        for (uint32_t i = thread_index(); i < x->width; i += thread_count())
            row_f32(x, row)[i] += row_f32(&call->operands[1], row)[i];
}

/* A team does 32 neighbouring values, the teams of all blocks in turn. */
INLINE void walk_swiglu(const struct gpu_call *call)
{
    const struct params_swiglu *params = (const void *)call->params;
    uint32_t width = (uint32_t)call->operands[2].width; /* all [width] */
    const GLOBAL float *gate = row_f32(&call->operands[0], 0), *up = row_f32(&call->operands[1], 0);
    for (uint32_t unit = team_index() * block_count_x() + block_x(); unit * TEAM < width;
         unit += WALK_TEAMS * block_count_x()) {
        uint32_t i = unit * TEAM + lane_index();
        float value = 0;
        if (i < width) {
            value = silu(gate[i]) * up[i];
            row_f32(&call->operands[2], 0)[i] = value;
        }
        if (call->operands[3].address)
            pack_value(params->packing.format, row_at(&call->operands[3], 0), width, i, value);
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
        walk_embed(call);
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
    case WALK_SWIGLU:
        walk_swiglu(call);
        break;
    default:
        walk_add(call);
        break;
    }
}

/* Behind a row. */
INLINE void walk_leave_row(const struct walk *walk, uint32_t row)
{
    if (!walk_row(walk, row)->words[WALK_MEET]) {
        block_sync();
        return;
    }
    walk_arrive(walk);
    bool last = row + 1 == walk->call->words[WALK_ROWS];
    const struct gpu_call *next = (const struct gpu_call *)walk_row(walk, last ? row : row + 1);
    if (next->words[WALK_KIND] == WALK_NORM)
        walk_norm_ask(next);
    else if (next->words[WALK_KIND] == WALK_ATTENTION)
        walk_attention_ask(walk, next);
    walk_await(walk, next);
    walk_store_kept(walk);
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
        walk_name(now, 0);
        walk_ask_row(&walk, row + 1);
        walk_do_row(&walk, now);
        walk_keep_row();
        walk_leave_row(&walk, row);
    }
}

#else

KERNEL(walk_graph)
{
    (void)call; /* never launched: DEVICE_GPU_WALKS is not among the features */
}

#endif

/* walk_stream.h - weights on their way to the teams of a walk.
 *
 * Every team has a ring of stages in shared memory. What it will multiply, of all products of the
 * walk in their order, is known from the beginning: a stage that was read is filled again at once
 * with what comes next, whatever product that is of. So memory is kept busy while a block waits for
 * others or does something else, as long as the ring lasts. */
#ifndef GRETA_OPS_GPU_KERNELS_WALK_STREAM_H
#define GRETA_OPS_GPU_KERNELS_WALK_STREAM_H

#include "ops/gpu/kernels/bulk.h"
#include "ops/gpu/walking.h"

#if HAS_BULK

/* Where a stage has its second row: only Q4_K has two. */
#define WALK_SECOND_ROW one_slice_bytes(DTYPE_Q4_K)

struct walk {
    const struct gpu_call *call; /* of the walk itself */
};

INLINE SHARED uint8_t *walk_place(const struct walk *walk, enum walk_word word)
{
    return shared_memory() + walk->call->words[word];
}

INLINE SHARED struct walk_state *walk_state(const struct walk *walk)
{
    return (SHARED struct walk_state *)walk_place(walk, WALK_AT_STATE);
}

/* Which launch of a row is at it, for a fault: by the first block, and by another thread than the
 * one that meets others, which should not wait for the host. */
INLINE void walk_name(const struct gpu_call *call, uint32_t launch)
{
    if (block_x() == 0 && thread_index() == TEAM && call->crumbs)
        store_crumb(call->crumbs + GPU_CRUMB_NODE, call->node + launch);
}

/* ---- Waits ---------------------------------------------------------------------------------- */

#define WALK_POLLS 256u

/* A thread that waits calls this each time it has not seen what it waits for. */
INLINE void walk_poll(const struct walk *walk, uint32_t *polls, uint64_t *since)
{
    pause_here();
    if (++*polls % WALK_POLLS)
        return;
    uint64_t now = clock_ns();
    if (*since == 0)
        *since = now;
    if (now - *since < (uint64_t)walk->call->words[WALK_LIMIT_MS] * 1000000u)
        return;
    /* The row at hand is what the failed kernel is named by. */
    if (walk->call->crumbs)
        store_crumb(walk->call->crumbs + GPU_CRUMB_NODE, walk_state(walk)->node);
    fence_system();
    give_up();
}

/* Between walk_arrive and walk_await no thread writes what other blocks read; behind both all
 * blocks have come, and what each wrote before is seen by all. */
INLINE GLOBAL uint64_t *walk_counter(const struct walk *walk)
{
    return (GLOBAL uint64_t *)walk->call->operands[1].address;
}
INLINE void walk_arrive(const struct walk *walk)
{
    block_sync();
    if (thread_index() == 0)
        counter_add(walk_counter(walk));
}
/* next: the row that is begun then. The first block says so before it goes on; emulated ones do not
 * overtake it. */
INLINE void walk_await(const struct walk *walk, const struct gpu_call *next)
{
    if (thread_index() == 0) {
        uint32_t polls = 0;
        uint64_t since = 0, goal = walk_state(walk)->goal + block_count_x();
        while (counter_load(walk_counter(walk)) < goal)
            walk_poll(walk, &polls, &since);
        walk_state(walk)->goal = goal;
        if (block_x() != 0)
            pause_here();
        else if (next->crumbs)
            store_crumb(next->crumbs + GPU_CRUMB_NODE, next->node);
    }
    block_sync();
}

/* Every replay adds a multiple of the blocks to the counter, and nobody passes the first meeting
 * before all have read it here. */
INLINE void walk_begin(const struct walk *walk)
{
    if (thread_index() == 0) {
        uint64_t count = counter_load(walk_counter(walk));
        walk_state(walk)->node = walk->call->node;
        walk_state(walk)->goal = count - count % block_count_x();
        walk_state(walk)->kept_count = 0;
        walk_state(walk)->lists.from[0] = 0;
    }
}

/* ---- The ring ------------------------------------------------------------------------------- */

struct walk_ring {
    SHARED uint8_t *stages;
    SHARED uint64_t *full;
    uint32_t at, parity; /* the stage that is read next, and of which round it is */
    uint32_t fill, owed; /* the stage that is filled next, and how many may be */
    /* What is fetched next: `left` groups of rows, `advance` bytes apart. 0: to be sought, unless
     * nothing is to come. */
    uint32_t left, advance;
    bool done;
    uint32_t bytes;  /* of the slice of a row */
    uint32_t second; /* from a group's first row to its second; 0: there is none */
    uint64_t source;
};

INLINE SHARED struct walk_cursor *walk_cursor(const struct walk *walk)
{
    return &walk_state(walk)->cursors[team_index()];
}

INLINE uint64_t walk_same(uint64_t value)
{
    return (uint64_t)team_same((uint32_t)(value >> 32)) << 32 | team_same((uint32_t)value);
}

/* The team's ring, as it was left. Between products it takes no registers. */
INLINE struct walk_ring walk_ring_take(const struct walk *walk)
{
    const SHARED struct walk_cursor *cursor = walk_cursor(walk);
    uint32_t first = team_same(team_index()) * walk->call->words[WALK_STAGES];
    return (struct walk_ring){ .stages = shared_memory() +
                                         first * walk->call->words[WALK_STAGE_BYTES],
                               .full = (SHARED uint64_t *)walk_place(walk, WALK_AT_FULL) + first,
                               .at = team_same(cursor->at),
                               .fill = team_same(cursor->at),
                               .parity = team_same(cursor->parity),
                               .left = team_same(cursor->left),
                               .done = team_same(cursor->left) == 0,
                               .advance = team_same(cursor->advance),
                               .bytes = team_same(cursor->bytes),
                               .second = team_same(cursor->second),
                               .source = walk_same(cursor->source) };
}
INLINE void walk_ring_leave(const struct walk *walk, const struct walk_ring *ring)
{
    SHARED struct walk_cursor *cursor = walk_cursor(walk);
    if (lane_index() == 0) {
        cursor->at = ring->at;
        cursor->parity = ring->parity;
        cursor->left = ring->left;
        cursor->advance = ring->advance;
        cursor->bytes = ring->bytes;
        cursor->second = ring->second;
        cursor->source = ring->source;
    }
    team_sync(); /* it may be taken at once */
}

/* Groups of a part. */
INLINE uint32_t walk_part_groups(const SHARED struct walk_product *product, uint32_t part)
{
    uint32_t rows = one_rows(product->types[part]);
    return product->addresses[part] ? (product->rows[part] + rows - 1) / rows : 0;
}

/* The groups that are left of the part the cursor is in, but a last one with one row for itself. */
INLINE void walk_ring_open(const SHARED struct walk_product *product,
                           SHARED struct walk_cursor *cursor, struct walk_ring *ring)
{
    uint32_t part = 0, group = cursor->group, groups = walk_part_groups(product, 0), before = 0;
    while (group >= before + groups) {
        before += groups;
        groups = walk_part_groups(product, ++part);
    }
    uint32_t dtype = product->types[part], rows = one_rows(dtype), slice = one_slice_bytes(dtype);
    uint32_t slots = WALK_TEAMS / product->members, stride = product->strides[part];
    uint32_t first = (group - before) * rows, whole = product->rows[part] / rows;
    uint32_t row_bytes = product->k / 256 * (slice / (one_columns(dtype) / 256));
    uint32_t skipped = team_index() % product->members * slice;
    uint32_t last = before + whole < cursor->end ? before + whole : cursor->end;
    bool both = group < before + whole;
    ring->left = team_same(both ? (last - group + slots - 1) / slots : 1);
    ring->advance = team_same(slots * rows * stride);
    ring->bytes = team_same(row_bytes - skipped < slice ? row_bytes - skipped : slice);
    ring->second = team_same(both && rows > 1 ? stride : 0);
    ring->source = walk_same(product->addresses[part] + (uint64_t)first * stride + skipped);
    team_sync(); /* the cursor was read by all */
    if (lane_index() == 0)
        cursor->group = group + ring->left * slots;
    team_sync();
}

/* Finds what comes next; false: nothing does. */
INLINE bool walk_ring_seek(const struct walk *walk, struct walk_ring *ring)
{
    const SHARED struct walk_product *products = (const SHARED struct walk_product *)walk_place(
        walk, WALK_AT_PRODUCTS);
    SHARED struct walk_cursor *cursor = walk_cursor(walk);
    uint32_t number = cursor->number, group = cursor->group, end = cursor->end;
    while (group >= end && number < walk->call->words[WALK_PRODUCTS]) {
        const SHARED struct walk_product *product = &products[number++];
        uint32_t members = product->members;
        end = product->end;
        /* A team without a place among whole rows has nothing to do. */
        group = team_index() < WALK_TEAMS / members * members
                    ? product->first + team_index() / members
                    : end;
    }
    team_sync();
    if (lane_index() == 0) {
        cursor->number = number;
        cursor->group = group;
        cursor->end = end;
    }
    team_sync();
    if (group >= end)
        return false;
    walk_ring_open(&products[number - 1], cursor, ring);
    return true;
}

INLINE void walk_ring_step(const struct walk *walk, uint32_t *at, uint32_t *parity)
{
    bool last = *at + 1 == walk->call->words[WALK_STAGES];
    *at = last ? 0 : *at + 1;
    *parity ^= last;
}

/* Fills stages that no lane reads any longer, as far as is known with what. */
INLINE void walk_ring_fill(const struct walk *walk, struct walk_ring *ring)
{
    uint32_t unused = 0;
    for (; ring->owed && ring->left; ring->owed--, ring->left--) {
        if (team_elect()) {
            SHARED uint8_t *target = ring->stages +
                                     ring->fill * walk->call->words[WALK_STAGE_BYTES];
            SHARED uint64_t *full = ring->full + ring->fill;
            full_expect(full, ring->second ? 2 * ring->bytes : ring->bytes);
            bulk_copy(target, (const GLOBAL uint8_t *)ring->source, ring->bytes, full);
            if (ring->second)
                bulk_copy(target + WALK_SECOND_ROW,
                          (const GLOBAL uint8_t *)(ring->source + ring->second), ring->bytes, full);
        }
        ring->source += ring->advance;
        walk_ring_step(walk, &ring->fill, &unused);
    }
}

/* The same with whatever there is: behind it what follows is known, or nothing does. */
INLINE void walk_ring_fill_all(const struct walk *walk, struct walk_ring *ring)
{
    walk_ring_fill(walk, ring);
    while (ring->left == 0 && !ring->done) {
        ring->done = !walk_ring_seek(walk, ring);
        walk_ring_fill(walk, ring);
    }
}

/* Waits for the stage that is read next. */
INLINE const SHARED uint8_t *walk_ring_read(const struct walk *walk, const struct walk_ring *ring,
                                            uint32_t at, uint32_t parity)
{
    uint32_t polls = 0;
    uint64_t since = 0;
    while (!full_ready(ring->full + at, parity))
        walk_poll(walk, &polls, &since);
    return ring->stages + at * walk->call->words[WALK_STAGE_BYTES];
}

/* All lanes have read `count` stages. */
INLINE void walk_ring_go_on(const struct walk *walk, struct walk_ring *ring, uint32_t count)
{
    team_sync();
    for (uint32_t i = 0; i < count; i++)
        walk_ring_step(walk, &ring->at, &ring->parity);
    ring->owed += count;
    walk_ring_fill(walk, ring);
}

/* A product of the table, for the block. */
INLINE void walk_list_product(const GLOBAL struct gpu_call *row,
                              SHARED struct walk_product *product)
{
    uint32_t k = 0, groups = 0;
    UNROLL
    for (uint32_t part = 0; part < 3; part++) {
        product->addresses[part] = row->operands[1 + part].address;
        product->strides[part] = (uint32_t)row->operands[1 + part].row_stride_bytes;
        product->rows[part] = (uint32_t)row->operands[1 + part].rows;
        product->types[part] = (uint8_t)row->operands[1 + part].dtype;
        groups += walk_part_groups(product, part);
        k |= (uint32_t)row->operands[1 + part].width;
    }
    product->members = row->words[WALK_PRODUCT_MEMBERS];
    product->k = k;
    product->first = groups * block_x() / block_count_x();
    product->end = groups * (block_x() + 1) / block_count_x();
}

/* What the teams must know, and their barriers: seen behind a block_sync. */
INLINE void walk_list_products(const struct walk *walk)
{
    SHARED struct walk_product *products = (SHARED struct walk_product *)walk_place(
        walk, WALK_AT_PRODUCTS);
    SHARED uint64_t *full = (SHARED uint64_t *)walk_place(walk, WALK_AT_FULL);
    for (uint32_t i = thread_index(); i < walk->call->words[WALK_ROWS]; i += thread_count()) {
        const GLOBAL struct gpu_call *row = (const GLOBAL struct gpu_call *)row_at(
            &walk->call->operands[0], i);
        if (row->words[WALK_KIND] == WALK_PRODUCT)
            walk_list_product(row, &products[row->words[WALK_PRODUCT_NUMBER]]);
    }
    uint32_t barriers = WALK_TEAMS * walk->call->words[WALK_STAGES];
    for (uint32_t i = thread_index(); i < barriers; i += thread_count())
        full_init(full + i);
    if (thread_index() < WALK_TEAMS)
        walk_state(walk)->cursors[thread_index()] = (struct walk_cursor){ .number = 0 };
    full_publish();
}

/* Behind it: fills the team's ring for the first time. */
INLINE void walk_ring_start(const struct walk *walk)
{
    struct walk_ring ring = walk_ring_take(walk);
    ring.owed = walk->call->words[WALK_STAGES];
    ring.done = false;
    walk_ring_fill_all(walk, &ring);
    walk_ring_leave(walk, &ring);
}

#endif
#endif

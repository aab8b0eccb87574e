/* walk_stream.h - weights on their way to the teams of a walk.
 *
 * Every team has a ring of stages in shared memory. What it will multiply, of all products of the
 * walk in their order, is known from the beginning: a stage that was read is filled again at once
 * with what comes next, whatever product that is of. So memory is kept busy while a block waits for
 * others or does something else, as long as the ring lasts. */
#ifndef GRETA_OPS_GPU_KERNELS_WALK_STREAM_H
#define GRETA_OPS_GPU_KERNELS_WALK_STREAM_H

#include "ops/gpu/kernels/walk_cells.h"

#if HAS_BULK

/* ---- The ring ------------------------------------------------------------------------------- */

struct walk_ring {
    SHARED uint8_t *stages;
    SHARED uint64_t *full;
    uint32_t at, parity; /* the stage that is read next, and of which round it is */
    uint32_t fill, owed; /* the stage that is filled next, and how many may be */
    /* What is fetched next: `left` slices, `advance` bytes apart. 0: to be sought, unless nothing
     * is to come. */
    uint32_t left, advance;
    uint32_t bytes; /* of a slice */
    bool done;
    uint64_t source;
};

INLINE SHARED struct walk_cursor *walk_cursor(const struct walk *walk)
{
    return &walk_state(walk)->cursors[team_index()];
}

INLINE const SHARED struct walk_product *walk_products(const struct walk *walk)
{
    return (const SHARED struct walk_product *)walk_place(walk, WALK_AT_PRODUCTS);
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
        cursor->source = ring->source;
    }
    team_sync(); /* it may be taken at once */
}

/* Which row of `slots` and which slice of it a team has. */
struct walk_seat_of_team {
    uint32_t slot, member;
};
INLINE struct walk_seat_of_team walk_team_seat(const SHARED struct walk_product *product,
                                               uint32_t team)
{
    uint32_t slot = team * product->inverse >> 16;
    return (struct walk_seat_of_team){ slot, team - slot * product->members };
}

/* The team's slices of a part; false: it has none. */
INLINE bool walk_ring_open(const SHARED struct walk_product *product, uint32_t part,
                           struct walk_ring *ring)
{
    struct walk_seat_of_team seat = walk_team_seat(product, team_index());
    uint32_t slots = product->slots, turn = product->turns[part];
    uint32_t row = seat.slot < turn ? seat.slot + slots - turn : seat.slot - turn;
    uint32_t count = product->counts[part], stride = product->strides[part];
    uint32_t slice = product->slices[part];
    if (seat.slot >= slots || row >= count) /* a team without a place among whole rows */
        return false;
    bool is_last = seat.member + 1 == product->members;
    /* Rows row, row + slots, ... before count. */
    ring->left = team_same((count - row + slots - 1) / slots);
    ring->advance = team_same(slots * stride);
    ring->bytes = team_same(is_last ? product->lasts[part] : slice);
    ring->source = walk_same(product->addresses[part] + (uint64_t)row * stride +
                             seat.member * slice);
    return true;
}

/* Finds what comes next; false: nothing does. */
INLINE bool walk_ring_seek(const struct walk *walk, struct walk_ring *ring)
{
    SHARED struct walk_cursor *cursor = walk_cursor(walk);
    uint32_t number = team_same(cursor->product), part = team_same(cursor->part);
    bool found = false;
    while (!found && number < walk->call->words[WALK_PRODUCTS]) {
        found = walk_ring_open(&walk_products(walk)[number], part, ring);
        number += part == 2;
        part = part == 2 ? 0 : part + 1;
    }
    team_sync();
    if (lane_index() == 0) {
        cursor->product = number;
        cursor->part = part;
    }
    team_sync();
    return found;
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
            SHARED uint64_t *full = ring->full + ring->fill;
            full_expect(full, ring->bytes);
            bulk_copy(ring->stages + ring->fill * walk->call->words[WALK_STAGE_BYTES],
                      (const GLOBAL uint8_t *)ring->source, ring->bytes, full);
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

/* Waits for a stage. */
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

/* ---- Products ------------------------------------------------------------------------------- */

/* Where the parts of a product end among the block's rows, and their types. */
struct walk_shares {
    uint32_t ends[3], types[3];
};
INLINE struct walk_shares walk_shares(const SHARED struct walk_product *product)
{
    struct walk_shares shares;
    uint32_t end = 0;
    UNROLL
    for (uint32_t part = 0; part < 3; part++) {
        end += team_same(product->counts[part]);
        shares.ends[part] = end;
        shares.types[part] = team_same(product->types[part]);
    }
    return shares;
}
INLINE uint32_t walk_part_of(const struct walk_shares *shares, uint32_t row)
{
    return row < shares->ends[0] ? 0 : row < shares->ends[1] ? 1 : 2;
}
/* One of three: an index would take them out of registers. */
INLINE uint32_t walk_choose(const uint32_t of_parts[3], uint32_t part)
{
    return part == 0 ? of_parts[0] : part == 1 ? of_parts[1] : of_parts[2];
}

/* A product of the table, for the block. */
INLINE void walk_list_product(const GLOBAL struct gpu_call *row,
                              SHARED struct walk_product *product)
{
    uint32_t unit = row->words[WALK_PRODUCT_GATED] ? WALK_GATE_ROWS : 1;
    uint32_t k = 0, before = 0, members = row->words[WALK_PRODUCT_MEMBERS];
    uint32_t slots = WALK_TEAMS / members;
    UNROLL
    for (uint32_t part = 0; part < 3; part++) {
        const GLOBAL struct gpu_operand *weights = &row->operands[1 + part];
        uint32_t units = weights->address ? (uint32_t)weights->rows / unit : 0;
        uint32_t first = units * block_x() / block_count_x() * unit;
        uint32_t end = units * (block_x() + 1) / block_count_x() * unit;
        uint32_t stride = (uint32_t)weights->row_stride_bytes, dtype = weights->dtype;
        uint32_t slice = one_slice_bytes(dtype);
        uint32_t row_bytes = (uint32_t)weights->width / 256 *
                             (slice ? slice / (one_columns(dtype) / 256) : 0);
        product->addresses[part] = weights->address + (uint64_t)first * stride;
        product->strides[part] = stride;
        product->firsts[part] = first;
        product->counts[part] = (uint16_t)(end - first);
        product->slices[part] = (uint16_t)slice;
        product->lasts[part] = (uint16_t)(row_bytes - (members - 1) * slice);
        product->turns[part] = (uint8_t)(before % slots);
        product->types[part] = (uint8_t)dtype;
        before += end - first;
        k |= (uint32_t)weights->width;
    }
    product->members = members;
    product->slots = slots;
    product->inverse = 65536 / members + 1;
    product->k = k;
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
        walk_state(walk)->cursors[thread_index()] = (struct walk_cursor){ .product = 0 };
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

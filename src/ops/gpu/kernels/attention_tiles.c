/* attention_tiles.c - attention of many tokens that lie together, on the matrix units of a warp
 * (NVIDIA). Keys and values are F16.
 *
 * A block does a tile of tokens and the query heads that share a kv head: row r of its
 * ATTENTION_ROWS is token r / group, head r % group; 16 rows a warp. Slots are taken in chunks of
 * ATTENTION_SLOTS with a running maximum, in powers of two; scores and totals stay in registers.
 * Tokens of a tile may be of different sequences: each is gone through in turn, and the rows of the
 * others stay as they are. Only slots that a token of the tile may see are read.
 *
 * Order of a sum: chunks in their order, a chunk in steps of 16 as the matrix unit adds it. It
 * depends on the token's position alone: a chunk that has none of its slots adds exact zeros.
 *
 * Operands as in attention.c. x counts kv heads, y tiles of tokens from the last one on: those take
 * longest. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/matrix.h"
#include "ops/gpu/tiling.h"
#include "ops/params.h"

#if HAS_WARP_MATRIX

#define TILE_WARPS (ATTENTION_ROWS / 16)
_Static_assert(TILE_WARPS == ATTENTION_WARPS, "16 rows a warp");
#define SLOT_BLOCKS (ATTENTION_SLOTS / 16)
#define HEAD_BLOCKS_MOST 8
#define NO_TOKEN UINT64_MAX
/* Two chunks of keys and of values. */
#define RING_BYTES(head_dim) (2 * 2 * ATTENTION_SLOTS * (head_dim)*2)

struct attention_tile {
    uint32_t first_token, tokens, group, kv_head;
    uint64_t start, end; /* of the sequence at hand: slots [start, start + end) */
};

/* Two rows of a lane: lane / 4, and eight further. */
struct attention_row {
    uint64_t start, position; /* NO_TOKEN: there is no token, or its indices are bad */
    float largest, sum;
};

struct attention_state {
    struct matrix_sums totals[HEAD_BLOCKS_MOST];
    struct attention_row rows[2];
};

INLINE bool indices_ok(const struct gpu_call *call, uint64_t start, uint64_t position)
{
    uint64_t slots = call->operands[ATTENTION_KEYS].rows;
    return start < slots && position < slots - start;
}

INLINE void trap_indices(const struct gpu_call *call, uint32_t token)
{
    uint64_t slots = call->operands[ATTENTION_KEYS].rows;
    uint64_t start = list_index(&call->operands[ATTENTION_STARTS], token);
    if (index_ok(call, ATTENTION_STARTS, start, slots))
        index_ok(call, ATTENTION_POSITIONS, list_index(&call->operands[ATTENTION_POSITIONS], token),
                 slots - start);
}

INLINE void enter_rows(const struct gpu_call *call, const struct attention_tile *tile,
                       struct attention_row rows[2])
{
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t row = 16 * warp_index() + lane_index() / 4 + 8 * i, token = row / tile->group;
        rows[i] = (struct attention_row){ NO_TOKEN, NO_TOKEN, -F32_INFINITY, 0 };
        if (token >= tile->tokens)
            continue;
        token += tile->first_token;
        uint64_t start = list_index(&call->operands[ATTENTION_STARTS], token);
        uint64_t position = list_index(&call->operands[ATTENTION_POSITIONS], token);
        if (indices_ok(call, start, position)) {
            rows[i].start = start;
            rows[i].position = position;
        }
    }
}

/* The next sequence of the tile, from the token `from` on: its start and how many slots its tokens
 * see. Returns the token, or tokens where there is none. */
INLINE uint32_t find_sequence(const struct gpu_call *call, struct attention_tile *tile,
                              uint32_t from)
{
    for (uint32_t t = from; t < tile->tokens; t++) {
        uint64_t start = list_index(&call->operands[ATTENTION_STARTS], tile->first_token + t);
        bool fresh = indices_ok(
            call, start, list_index(&call->operands[ATTENTION_POSITIONS], tile->first_token + t));
        for (uint32_t before = 0; before < t && fresh; before++)
            fresh = list_index(&call->operands[ATTENTION_STARTS], tile->first_token + before) !=
                    start;
        if (!fresh)
            continue;
        tile->start = start;
        tile->end = 0;
        for (uint32_t i = t; i < tile->tokens; i++) {
            uint64_t position = list_index(&call->operands[ATTENTION_POSITIONS],
                                           tile->first_token + i);
            if (list_index(&call->operands[ATTENTION_STARTS], tile->first_token + i) == start &&
                indices_ok(call, start, position) && position + 1 > tile->end)
                tile->end = position + 1;
        }
        return t;
    }
    return tile->tokens;
}

/* Queries as halves, scaled for powers of two, to their panels in shared memory, which follow the
 * ring of keys and values. */
INLINE void load_queries(const struct gpu_call *call, const struct attention_tile *tile,
                         uint32_t head_dim)
{
    const struct params_attention *params = (const void *)call->params;
    const struct gpu_operand *queries = &call->operands[ATTENTION_Q];
    SHARED uint8_t *memory = shared_memory() + RING_BYTES(head_dim);
    const uint32_t segments = head_dim / 8;
    float factor = params->scale * 1.4426950408889634f;
    for (uint32_t i = thread_index(); i < ATTENTION_ROWS * segments; i += TILE_WARPS * WARP) {
        uint32_t row = i / segments, segment = i % segments, token = row / tile->group;
        words4 halves = { 0, 0, 0, 0 };
        if (token < tile->tokens) {
            uint32_t head = tile->kv_head * tile->group + row % tile->group;
            const GLOBAL float *q = row_f32(queries, tile->first_token + token) + head * head_dim +
                                    8 * segment;
            UNROLL
            for (uint32_t n = 0; n < 4; n++)
                halves[n] = f16_bits(q[2 * n] * factor) | (uint32_t)f16_bits(q[2 * n + 1] * factor)
                                                              << 16;
        }
        *(SHARED words4 *)(memory + segment / 8 * ATTENTION_ROWS * PANEL_ROW_BYTES +
                           panel_segment(row, segment % 8)) = halves;
    }
}

/* Asks for a chunk of keys or values, a panel for each 64 of the head. Slots that are not there are
 * read as the last. */
INLINE void copy_slots(const struct gpu_operand *cache, const struct attention_tile *tile,
                       uint32_t head_dim, uint64_t first, SHARED uint8_t *target)
{
    const uint32_t segments = head_dim / 8;
    uint32_t segment = thread_index() % segments;
    SHARED uint8_t *panel = target + segment / 8 * ATTENTION_SLOTS * PANEL_ROW_BYTES;
    UNROLL
    for (uint32_t i = 0; i < ATTENTION_SLOTS * segments; i += TILE_WARPS * WARP) {
        uint32_t row = (i + thread_index()) / segments;
        uint64_t slot = first + row < tile->end ? first + row : tile->end - 1;
        copy_async(panel + panel_segment(row, segment % 8),
                   row_at(cache, tile->start + slot) +
                       (tile->kv_head * head_dim + 8 * segment) * 2);
    }
}

INLINE void score_slots(const SHARED uint8_t *keys, uint32_t head_dim,
                        struct matrix_sums scores[SLOT_BLOCKS])
{
    const SHARED uint8_t *queries = shared_memory() + RING_BYTES(head_dim);
    UNROLL
    for (uint32_t s = 0; s < SLOT_BLOCKS; s++) {
        UNROLL
        for (uint32_t i = 0; i < MATRIX_SUMS; i++)
            scores[s].values[i] = 0;
    }
    UNROLL
    for (uint32_t d = 0; d < head_dim / 16; d++) {
        struct matrix_rows a = matrix_load(queries + d / 4 * ATTENTION_ROWS * PANEL_ROW_BYTES,
                                           16 * warp_index(), 2 * (d % 4));
        UNROLL
        for (uint32_t s = 0; s < SLOT_BLOCKS; s++) {
            struct matrix_rows b = matrix_load(keys + d / 4 * ATTENTION_SLOTS * PANEL_ROW_BYTES,
                                               16 * s, 2 * (d % 4));
            matrix_multiply(false, &scores[s], &a, &b);
        }
    }
}

/* Which of the lane's two rows a sum is of. */
#define ROW_OF(i) ((i) % 4 / 2)

/* Scores become weights; what came before shrinks. */
INLINE void weigh_slots(const struct attention_tile *tile, uint32_t head_dim, uint64_t first,
                        struct attention_state *state, struct matrix_sums scores[SLOT_BLOCKS])
{
    float largest[2], factors[2], sums[2] = { 0, 0 };
    UNROLL
    for (uint32_t n = 0; n < 2; n++) {
        const struct attention_row *row = &state->rows[n];
        /* Slots from here on are not this row's. */
        uint64_t seen = row->start == tile->start ? row->position + 1 : 0;
        uint32_t count = seen <= first                    ? 0
                         : seen - first > ATTENTION_SLOTS ? ATTENTION_SLOTS
                                                          : (uint32_t)(seen - first);
        largest[n] = row->largest;
        UNROLL
        for (uint32_t s = 0; s < SLOT_BLOCKS && count < ATTENTION_SLOTS; s++) {
            UNROLL
            for (uint32_t i = 0; i < MATRIX_SUMS; i++)
                if (ROW_OF(i) == n && 16 * s + matrix_column(i) >= count)
                    scores[s].values[i] = -F32_INFINITY;
        }
        UNROLL
        for (uint32_t s = 0; s < SLOT_BLOCKS; s++) {
            UNROLL
            for (uint32_t i = 0; i < MATRIX_SUMS; i++)
                if (ROW_OF(i) == n) /* a NaN comes back below */
                    largest[n] = __builtin_fmaxf(largest[n], scores[s].values[i]);
        }
        largest[n] = warp_max(largest[n], 4);
    }
    UNROLL
    for (uint32_t n = 0; n < 2; n++) {
        struct attention_row *row = &state->rows[n];
        float base = largest[n] == -F32_INFINITY ? 0.0f : largest[n];
        factors[n] = exp2_fast(row->largest - base);
        UNROLL
        for (uint32_t s = 0; s < SLOT_BLOCKS; s++) {
            UNROLL
            for (uint32_t i = 0; i < MATRIX_SUMS; i++) {
                if (ROW_OF(i) != n)
                    continue;
                float weight = exp2_fast(scores[s].values[i] - base);
                scores[s].values[i] = weight;
                sums[n] += weight;
            }
        }
        row->largest = largest[n];
        row->sum = row->sum * factors[n] + sums[n]; /* of this lane's columns */
    }
    UNROLL
    for (uint32_t d = 0; d < head_dim / 16; d++) {
        UNROLL
        for (uint32_t i = 0; i < MATRIX_SUMS; i++)
            state->totals[d].values[i] *= factors[ROW_OF(i)];
    }
}

INLINE void gather_slots(const SHARED uint8_t *values, uint32_t head_dim,
                         struct attention_state *state,
                         const struct matrix_sums scores[SLOT_BLOCKS])
{
    UNROLL
    for (uint32_t s = 0; s < SLOT_BLOCKS; s++) {
        struct matrix_rows weights;
        UNROLL
        for (uint32_t w = 0; w < 4; w++) /* sums lie as the rows of a matmul do */
            weights.words[w] = two_halves(scores[s].values[2 * w], scores[s].values[2 * w + 1]);
        UNROLL
        for (uint32_t d = 0; d < head_dim / 16; d++) {
            struct matrix_rows b = matrix_load_turned(
                values + d / 4 * ATTENTION_SLOTS * PANEL_ROW_BYTES, 16 * s, 2 * (d % 4));
            matrix_multiply(false, &state->totals[d], &weights, &b);
        }
    }
}

INLINE void attend_sequence(const struct gpu_call *call, const struct attention_tile *tile,
                            uint32_t head_dim, struct attention_state *state)
{
    const struct gpu_operand *keys = &call->operands[ATTENTION_KEYS],
                             *values = &call->operands[ATTENTION_VALUES];
    const uint32_t chunk_bytes = ATTENTION_SLOTS * head_dim * 2;
    SHARED uint8_t *memory = shared_memory();
    copy_slots(keys, tile, head_dim, 0, memory);
    copy_commit();
    copy_slots(values, tile, head_dim, 0, memory + chunk_bytes);
    copy_commit();
    uint32_t full = 0;
    for (uint64_t first = 0; first < tile->end; first += ATTENTION_SLOTS) {
        struct matrix_sums scores[SLOT_BLOCKS];
        SHARED uint8_t *next = memory + (full ^ 1) * 2 * chunk_bytes;
        const SHARED uint8_t *now = memory + full * 2 * chunk_bytes;
        bool more = first + ATTENTION_SLOTS < tile->end;
        if (more)
            copy_slots(keys, tile, head_dim, first + ATTENTION_SLOTS, next);
        copy_commit();
        if (more)
            copy_slots(values, tile, head_dim, first + ATTENTION_SLOTS, next + chunk_bytes);
        copy_commit();
        copy_wait(3);
        block_sync();
        score_slots(now, head_dim, scores);
        weigh_slots(tile, head_dim, first, state, scores);
        copy_wait(2);
        block_sync();
        gather_slots(now + chunk_bytes, head_dim, state, scores);
        block_sync();
        full ^= 1;
    }
    copy_wait(0);
    block_sync();
}

INLINE void store_heads(const struct gpu_call *call, const struct attention_tile *tile,
                        uint32_t head_dim, const struct attention_state *state)
{
    UNROLL
    for (uint32_t n = 0; n < 2; n++) {
        float sum = warp_sum(state->rows[n].sum, 4);
        uint32_t row = 16 * warp_index() + lane_index() / 4 + 8 * n, token = row / tile->group;
        if (token >= tile->tokens)
            continue;
        bool there = state->rows[n].start != NO_TOKEN;
        uint32_t head = tile->kv_head * tile->group + row % tile->group;
        GLOBAL float *out = row_f32(&call->operands[ATTENTION_OUT], tile->first_token + token) +
                            head * head_dim;
        UNROLL
        for (uint32_t d = 0; d < head_dim / 16; d++) {
            UNROLL
            for (uint32_t i = 0; i < MATRIX_SUMS; i++)
                if (ROW_OF(i) == n)
                    out[16 * d + matrix_column(i)] = there ? state->totals[d].values[i] / sum
                                                           : 0.0f;
        }
    }
}

INLINE void attend_tile(const struct gpu_call *call, uint32_t head_dim)
{
    const struct gpu_operand *q = &call->operands[ATTENTION_Q];
    struct attention_tile tile = {
        .group = (uint32_t)(q->width / call->operands[ATTENTION_KEYS].width), .kv_head = block_x()
    };
    uint32_t tile_tokens = ATTENTION_ROWS / tile.group;
    tile.first_token = (attention_tiles_args_of(call)->tiles - 1 - block_y()) * tile_tokens;
    uint32_t left = (uint32_t)q->rows - tile.first_token;
    tile.tokens = left < tile_tokens ? left : tile_tokens;
    if (block_x() == 0 && thread_index() < tile.tokens)
        trap_indices(call, tile.first_token + thread_index());
    struct attention_state state;
    UNROLL
    for (uint32_t d = 0; d < head_dim / 16; d++) {
        UNROLL
        for (uint32_t i = 0; i < MATRIX_SUMS; i++)
            state.totals[d].values[i] = 0;
    }
    enter_rows(call, &tile, state.rows);
    load_queries(call, &tile, head_dim); /* seen after the first barrier */
    for (uint32_t t = find_sequence(call, &tile, 0); t < tile.tokens;
         t = find_sequence(call, &tile, t + 1))
        attend_sequence(call, &tile, head_dim, &state);
    store_heads(call, &tile, head_dim, &state);
}

KERNEL(attention_tiles_128)
{
    ENTER(call);
    attend_tile(&call, 128);
}
KERNEL(attention_tiles_64)
{
    ENTER(call);
    attend_tile(&call, 64);
}

#else

/* Never planned on chips whose sums do not lie as the rows of the next matmul. */
KERNEL(attention_tiles_128)
{
    ENTER(call);
}
KERNEL(attention_tiles_64)
{
    ENTER(call);
}

#endif

/* attention_apart.c - attention of tokens that are each of another sequence, on the matrix units of
 * a warp (NVIDIA). Keys and values are F16, rows at multiples of 16 bytes; up to eight query heads
 * share a kv head.
 *
 * A block does one token and one kv head: x counts kv heads, y tokens. Its warps take 16 slots at a
 * time in turn, straight from memory to registers: keys as the rows of a matmul with the queries,
 * values as those of a matmul with the weights. Each keeps a running maximum, in powers of two,
 * and its own totals; at the end they meet in shared memory.
 *
 * Both matmuls have heads as their columns: slots times queries, then values (rows and columns
 * exchanged) times weights. From every 32 values of a head lane l takes the eight from 8 * (l % 4)
 * on, of query head l / 4 and of the keys of slots l / 4 and l / 4 + 8. From every 64 of the cached
 * values it takes those from 8 * (l / 4) on, of four slots. It has the scores and totals of heads
 * 2 (l % 4) and the next.
 *
 * Order of a sum: 16 slots as the matrix unit adds them, those of a warp in their order, then the
 * warps. It depends on the token's position and on how many warps a block has.
 *
 * The block of a token that comes last packs its row.
 *
 * Operands: those of attention. Arguments: struct attention_apart_args. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/matrix.h"
#include "ops/gpu/kernels/pack_halves.h"
#include "ops/gpu/tiling.h"
#include "ops/params.h"

#if HAS_WARP_MATRIX

#define APART_SLOTS 16u
#define APART_HEAD_MOST 128
/* Maxima and sums of the heads, of a warp. */
#define APART_NUMBERS (2 * APART_GROUP_MOST)

struct apart_share {
    uint32_t group, kv_head, token;
    uint64_t start, count; /* slots [start, start + count) */
};

struct apart_state {
    uint32_t queries[APART_HEAD_MOST / 32][4]; /* of head l / 4 */
    /* Value 64 p + 8 (l / 4) + 2 x + i / 2 of head 2 (l % 4) + i % 2 at [p][x][i]. */
    float totals[APART_HEAD_MOST / 64][4][4];
    float largest[2], sums[2]; /* of heads 2 (l % 4) and the next; sums of this lane's slots */
};

INLINE bool find_apart(const struct gpu_call *call, struct apart_share *share)
{
    const struct gpu_operand *keys = &call->operands[ATTENTION_KEYS];
    uint64_t start = list_index(&call->operands[ATTENTION_STARTS], share->token);
    uint64_t position = list_index(&call->operands[ATTENTION_POSITIONS], share->token);
    bool bad_start = start >= keys->rows, bad_position = position >= keys->rows - start;
    share->start = start;
    share->count = position + 1;
    if (!(bad_start | bad_position)) /* both are asked for at once */
        return true;
    if (block_x() == 0 && thread_index() == 0) {
        if (bad_start)
            index_ok(call, ATTENTION_STARTS, start, keys->rows);
        else
            index_ok(call, ATTENTION_POSITIONS, position, keys->rows - start);
    }
    return false;
}

/* Scaled for powers of two. Columns of heads that are not there are those of the last head; their
 * results are not used. */
INLINE void load_apart_queries(const struct gpu_call *call, const struct apart_share *share,
                               uint32_t head_dim, uint32_t queries[APART_HEAD_MOST / 32][4])
{
    const struct params_attention *params = (const void *)call->params;
    uint32_t head = lane_index() / 4;
    head = head < share->group ? head : share->group - 1;
    const GLOBAL float *row = row_f32(&call->operands[ATTENTION_Q], share->token) +
                              (share->kv_head * share->group + head) * head_dim +
                              lane_index() % 4 * 8;
    float factor = params->scale * 1.4426950408889634f;
    UNROLL
    for (uint32_t s = 0; s < head_dim / 32; s++) {
        floats4 low = *(const GLOBAL floats4 *)(row + 32 * s) * factor;
        floats4 high = *(const GLOBAL floats4 *)(row + 32 * s + 4) * factor;
        queries[s][0] = two_halves(low[0], low[1]);
        queries[s][1] = two_halves(low[2], low[3]);
        queries[s][2] = two_halves(high[0], high[1]);
        queries[s][3] = two_halves(high[2], high[3]);
    }
}

/* From value `at` on of one of 16 slots; those from `there` on are read as the last. */
INLINE const GLOBAL uint8_t *find_apart_slot(const struct gpu_operand *cache, uint64_t first,
                                             uint32_t there, uint32_t slot, uint32_t at)
{
    slot = slot < there ? slot : there - 1;
    return row_at(cache, first) + (slot * (uint32_t)cache->row_stride_bytes + 2 * at);
}

/* Scores of 16 slots: i is slot l / 4 + 8 (i / 2), head 2 (l % 4) + i % 2. */
INLINE void score_apart(const struct apart_state *state, uint32_t head_dim,
                        words4 keys[2][APART_HEAD_MOST / 32], float scores[4])
{
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        scores[i] = 0;
    UNROLL
    for (uint32_t s = 0; s < head_dim / 32; s++) {
        UNROLL
        for (uint32_t j = 0; j < 4; j += 2)
            matrix_multiply_narrow(scores, keys[0][s][j], keys[1][s][j], keys[0][s][j + 1],
                                   keys[1][s][j + 1], state->queries[s][j],
                                   state->queries[s][j + 1]);
    }
}

/* Scores become weights; what came before shrinks. */
INLINE void weigh_apart(uint32_t head_dim, uint32_t there, struct apart_state *state,
                        float scores[4])
{
    float factors[2];
    UNROLL
    for (uint32_t h = 0; h < 2; h++) {
        float largest = state->largest[h];
        UNROLL
        for (uint32_t i = h; i < 4; i += 2) {
            if (lane_index() / 4 + 8 * (i / 2) >= there)
                scores[i] = -F32_INFINITY;
            largest = __builtin_fmaxf(largest, scores[i]); /* a NaN comes back below */
        }
        UNROLL
        for (uint32_t distance = 4; distance < WARP; distance *= 2)
            largest = __builtin_fmaxf(largest, warp_swap_float(largest, distance));
        float base = largest == -F32_INFINITY ? 0.0f : largest;
        factors[h] = exp2_fast(state->largest[h] - base);
        scores[h] = exp2_fast(scores[h] - base);
        scores[h + 2] = exp2_fast(scores[h + 2] - base);
        state->largest[h] = largest;
        state->sums[h] = state->sums[h] * factors[h] + scores[h] + scores[h + 2];
    }
    UNROLL
    for (uint32_t p = 0; p < head_dim / 64; p++) {
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            state->totals[p][i / 4][i % 4] *= factors[i % 2];
    }
}

/* values[n][b]: of slot 8 n + 2 (l % 4) + b, the eight from 64 p + 8 (l / 4) on. */
INLINE void gather_apart(words4 values[2][2], const uint32_t weights[2], float totals[4][4])
{
    const uint32_t lows = byte_selector(0, 1, 4, 5), highs = byte_selector(2, 3, 6, 7);
    UNROLL
    for (uint32_t x = 0; x < 4; x++)
        matrix_multiply_narrow(totals[x], pick_bytes(values[0][0][x], values[0][1][x], lows),
                               pick_bytes(values[0][0][x], values[0][1][x], highs),
                               pick_bytes(values[1][0][x], values[1][1][x], lows),
                               pick_bytes(values[1][0][x], values[1][1][x], highs), weights[0],
                               weights[1]);
}

INLINE void attend_apart_slots(const struct gpu_call *call, const struct apart_share *share,
                               uint32_t head_dim, uint64_t first, struct apart_state *state)
{
    const struct gpu_operand *keys_of = &call->operands[ATTENTION_KEYS],
                             *values_of = &call->operands[ATTENTION_VALUES];
    const uint32_t halves = head_dim / 64;
    uint32_t lane = lane_index(), head = share->kv_head * head_dim;
    uint64_t left = share->count - first;
    uint32_t there = left < APART_SLOTS ? (uint32_t)left : APART_SLOTS;
    const GLOBAL uint8_t *value_rows[4];
    words4 keys[2][APART_HEAD_MOST / 32], values[APART_HEAD_MOST / 64][2][2];
    float scores[4];
    UNROLL
    for (uint32_t n = 0; n < 2; n++) {
        const GLOBAL uint8_t *row = find_apart_slot(keys_of, share->start + first, there,
                                                    8 * n + lane / 4, head + lane % 4 * 8);
        UNROLL
        for (uint32_t s = 0; s < head_dim / 32; s++)
            keys[n][s] = *(const GLOBAL words4 *)(row + 64 * s);
    }
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        value_rows[i] = find_apart_slot(values_of, share->start + first, there,
                                        8 * (i / 2) + 2 * (lane % 4) + i % 2, head + lane / 4 * 8);
    /* The second half of the values takes the place of the keys. */
    UNROLL
    for (uint32_t p = 0; p < halves; p++) {
        if (p == halves - 1)
            score_apart(state, head_dim, keys, scores);
        UNROLL
        for (uint32_t i = 0; i < 4; i++)
            values[p][i / 2][i % 2] = *(const GLOBAL words4 *)(value_rows[i] + 128 * p);
    }
    weigh_apart(head_dim, there, state, scores);
    uint32_t weights[2] = { matrix_turned(two_halves(scores[0], scores[1])),
                            matrix_turned(two_halves(scores[2], scores[3])) };
    UNROLL
    for (uint32_t p = 0; p < halves; p++)
        gather_apart(values[p], weights, state->totals[p]);
}

/* Shared memory: of each warp and head its maximum and its sum, then its totals. */
INLINE SHARED float *apart_totals(uint32_t head_dim, uint32_t warps, uint32_t warp, uint32_t head)
{
    return (SHARED float *)shared_memory() + APART_NUMBERS * warps +
           (warp * APART_GROUP_MOST + head) * head_dim;
}

INLINE void store_apart_state(uint32_t head_dim, uint32_t group, struct apart_state *state)
{
    SHARED float *numbers = (SHARED float *)shared_memory() + APART_NUMBERS * warp_index();
    uint32_t warps = thread_count() / WARP, lane = lane_index();
    UNROLL
    for (uint32_t h = 0; h < 2; h++) {
        uint32_t head = 2 * (lane % 4) + h;
        float sum = state->sums[h];
        UNROLL
        for (uint32_t distance = 4; distance < WARP; distance *= 2)
            sum += warp_swap_float(sum, distance);
        if (lane < 4) {
            numbers[head] = state->largest[h];
            numbers[APART_GROUP_MOST + head] = sum;
        }
        SHARED float *totals = apart_totals(head_dim, warps, warp_index(), head) + 8 * (lane / 4);
        UNROLL
        for (uint32_t n = 0; n < head_dim / 32 && head < group; n++) {
            uint32_t p = n / 2, x = n % 2 * 2;
            floats4 four = { state->totals[p][x][h], state->totals[p][x][2 + h],
                             state->totals[p][x + 1][h], state->totals[p][x + 1][2 + h] };
            *(SHARED floats4 *)(totals + 64 * p + 2 * x) = four;
        }
    }
}

/* The warps' totals together; a warp without slots has none. */
INLINE void join_apart(const struct gpu_call *call, const struct apart_share *share,
                       uint32_t head_dim)
{
    const SHARED float *numbers = (const SHARED float *)shared_memory();
    uint32_t warps = thread_count() / WARP;
    GLOBAL float *out = row_f32(&call->operands[ATTENTION_OUT], share->token) +
                        share->kv_head * share->group * head_dim;
    for (uint32_t at = 4 * thread_index(); at < share->group * head_dim; at += 4 * thread_count()) {
        uint32_t head = at / head_dim;
        float largest = -F32_INFINITY, sum = 0;
        floats4 total = { 0 };
        for (uint32_t warp = 0; warp < warps; warp++)
            largest = __builtin_fmaxf(largest, numbers[APART_NUMBERS * warp + head]);
        float base = largest == -F32_INFINITY ? 0.0f : largest;
        for (uint32_t warp = 0; warp < warps; warp++) {
            float part = numbers[APART_NUMBERS * warp + APART_GROUP_MOST + head];
            if (part == 0.0f)
                continue;
            float factor = exp2_fast(numbers[APART_NUMBERS * warp + head] - base);
            sum += part * factor;
            total += *(const SHARED floats4 *)(apart_totals(head_dim, warps, warp, head) +
                                               at % head_dim) *
                     factor;
        }
        *(GLOBAL floats4 *)(out + at) = total / sum;
    }
}

/* Whether this block is the last of its token to have stored its heads. */
INLINE bool is_last_apart(const struct gpu_call *call, const struct apart_share *share,
                          uint32_t head_dim)
{
    uint32_t blocks = (uint32_t)call->operands[ATTENTION_Q].width / (share->group * head_dim);
    return block_is_last((GLOBAL uint32_t *)call->workspace + share->token, blocks,
                         (SHARED uint32_t *)shared_memory());
}

/* Fours of a row that a thread keeps in registers; those of longer rows are read again. */
#define APART_KEPT 8

INLINE void pack_apart(const struct gpu_call *call, const struct apart_share *share)
{
    const struct gpu_operand *out = &call->operands[ATTENTION_OUT];
    volatile GLOBAL floats4 *row = (volatile GLOBAL floats4 *)row_at(out, share->token);
    GLOBAL uint8_t *packed = row_at(&call->operands[ATTENTION_PACKED], share->token);
    uint32_t fours = (uint32_t)out->width / 4, step = thread_count(), largest = 0;
    uint32_t format = attention_apart_args_of(call)->format;
    floats4 kept[APART_KEPT];
    const floats4 zero = { 0 };
    UNROLL
    for (uint32_t n = 0; n < APART_KEPT; n++)
        kept[n] = n * step + thread_index() < fours ? row[n * step + thread_index()] : zero;
    UNROLL
    for (uint32_t n = 0; n < APART_KEPT; n++)
        largest = largest_of_four(kept[n], largest);
    for (uint32_t i = APART_KEPT * step + thread_index(); i < fours; i += step)
        largest = largest_of_four(row[i], largest);
    float factor = enter_packed(format, packed, 4 * fours, block_max_bits(largest));
    UNROLL
    for (uint32_t n = 0; n < APART_KEPT; n++)
        if (n * step + thread_index() < fours)
            store_halves(format, packed, n * step + thread_index(), kept[n], factor);
    for (uint32_t i = APART_KEPT * step + thread_index(); i < fours; i += step)
        store_halves(format, packed, i, row[i], factor);
}

INLINE void attend_apart_token(const struct gpu_call *call, const struct apart_share *share,
                               uint32_t head_dim, struct apart_state *state)
{
    UNROLL
    for (uint32_t p = 0; p < head_dim / 64; p++) {
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            state->totals[p][i / 4][i % 4] = 0;
    }
    for (uint64_t first = APART_SLOTS * warp_index(); first < share->count;
         first += APART_SLOTS * (thread_count() / WARP))
        attend_apart_slots(call, share, head_dim, first, state);
    store_apart_state(head_dim, share->group, state);
    block_sync();
    join_apart(call, share, head_dim);
}

INLINE void attend_apart(const struct gpu_call *call, uint32_t head_dim)
{
    struct apart_share share = {
        .group = (uint32_t)call->operands[ATTENTION_Q].width /
                 (uint32_t)call->operands[ATTENTION_KEYS].width,
        .kv_head = block_x(),
        .token = block_y(),
    };
    struct apart_state state = { .largest = { -F32_INFINITY, -F32_INFINITY } };
    load_apart_queries(call, &share, head_dim, state.queries);
    if (find_apart(call, &share)) {
        attend_apart_token(call, &share, head_dim, &state);
    } else {
        GLOBAL float *out = row_f32(&call->operands[ATTENTION_OUT], share.token) +
                            share.kv_head * share.group * head_dim;
        for (uint32_t at = thread_index(); at < share.group * head_dim; at += thread_count())
            out[at] = 0;
    }
    if (attention_apart_args_of(call)->packs && is_last_apart(call, &share, head_dim))
        pack_apart(call, &share);
}

KERNEL(attention_apart_128)
{
    ENTER(call);
    attend_apart(&call, 128);
}
KERNEL(attention_apart_64)
{
    ENTER(call);
    attend_apart(&call, 64);
}

#else

/* Never planned on chips whose sums do not lie as the rows of the next matmul. */
KERNEL(attention_apart_128)
{
    ENTER(call);
}
KERNEL(attention_apart_64)
{
    ENTER(call);
}

#endif

/* matmul_tiles.c - products with more than a few rows of activations on the matrix units every chip
 * has. A block does TILE_TOKENS tokens times `tile_rows` rows of weights, over all of k or a part
 * of it (a split). Each weight is read once for TILE_TOKENS tokens.
 *
 * Levels (Q4_K, Q5_K, Q6_K_X8, Q8_0_X8): bytes of 256 values of k of each row pass through a ring
 * in shared memory; while the matrix units work on 64 values of k, the next 64 become halves in a
 * panel beside it. Halves (F16 and BF16, or what unpack.c made): straight to panels.
 *
 * Order of a sum: k in steps of 16, each as the matrix unit adds it, accumulated in f32, from a
 * place on that depends on the tile and around to it; then the splits in their order. It depends on
 * type and k, on the row, and on how many rows and tokens the product has, by the number of splits.
 *
 * Operands: packed (PACK_F16, or PACK_BF16 for BF16), three weights, three biases, three outputs.
 * words[0]: splits, words[1]: values of k of a split; for halves also words[2]: first row,
 * words[3]: rows, words[4]: they are in the workspace, of one part alone. x counts splits, then
 * tiles of rows of all parts; y tiles of tokens. */
#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/tile_levels.h"
#include "ops/gpu/kernels/tile_part.h"
#include "ops/gpu/kernels/warpgroup.h"
#include "ops/gpu/packing.h"
#include "ops/gpu/tiling.h"

#define TILE_WAVES (TILE_THREADS / MATRIX_LANES)
/* How waves share a tile: rows in pieces of 32 (or 64 where waves are few), then tokens. */
#define WAVE_ROWS_OF(tile_rows) ((tile_rows) == 128 && TILE_WAVES == 4 ? 64u : 32u)
#define WAVE_TOKENS_OF(tile_rows)                                                                  \
    (TILE_TOKENS_WIDE * (tile_rows) / WAVE_ROWS_OF(tile_rows) / TILE_WAVES)
#define WAVE_ROW_BLOCKS_MOST 4
#define WAVE_TOKEN_BLOCKS_MOST 2

/* A block's share of the work. */
struct tile_share {
    const struct gpu_operand *weights, *bias, *out;
    uint32_t tile;                                 /* over all parts */
    uint32_t first_row, rows, first_token, tokens; /* what there is of it */
    uint32_t split, first_k, k;                    /* values of k of the split */
};

INLINE bool find_tile(const struct gpu_call *call, uint32_t tile_rows, struct tile_share *share)
{
    uint32_t splits = call->words[0], tile;
    share->split = block_x() % splits;
    share->tile = block_x() / splits;
    uint32_t part = part_of_tile(call, share->tile, tile_rows, &tile);
    share->weights = &call->operands[1 + part];
    share->bias = &call->operands[4 + part];
    share->out = &call->operands[7 + part];
    share->first_row = tile * tile_rows;
    uint32_t all_rows = call->words[3] ? call->words[3] : (uint32_t)share->weights->rows;
    uint32_t left = all_rows - share->first_row;
    share->rows = left < tile_rows ? left : tile_rows;
    share->first_token = block_y() * TILE_TOKENS_WIDE;
    left = (uint32_t)call->operands[0].rows - share->first_token;
    share->tokens = left < TILE_TOKENS_WIDE ? left : TILE_TOKENS_WIDE;
    uint32_t k = (uint32_t)share->weights->width;
    share->first_k = share->split * call->words[1];
    left = share->first_k < k ? k - share->first_k : 0;
    share->k = left < call->words[1] ? left : call->words[1];
    return true;
}

/* ---- Products of panels --------------------------------------------------------------------- */

struct tile_sums {
    struct matrix_sums values[WAVE_TOKEN_BLOCKS_MOST][WAVE_ROW_BLOCKS_MOST];
};

/* Which rows and tokens of the tile this wave has. */
INLINE uint32_t wave_row(uint32_t tile_rows)
{
    uint32_t wave = thread_index() / MATRIX_LANES;
    return wave % (tile_rows / WAVE_ROWS_OF(tile_rows)) * WAVE_ROWS_OF(tile_rows);
}
INLINE uint32_t wave_token(uint32_t tile_rows)
{
    uint32_t wave = thread_index() / MATRIX_LANES;
    return wave / (tile_rows / WAVE_ROWS_OF(tile_rows)) * WAVE_TOKENS_OF(tile_rows);
}

INLINE void clear_sums(struct tile_sums *sums)
{
    UNROLL
    for (uint32_t t = 0; t < WAVE_TOKEN_BLOCKS_MOST; t++) {
        UNROLL
        for (uint32_t r = 0; r < WAVE_ROW_BLOCKS_MOST; r++) {
            UNROLL
            for (uint32_t i = 0; i < MATRIX_SUMS; i++)
                sums->values[t][r].values[i] = 0;
        }
    }
}

/* 64 values of k. */
INLINE void multiply_panels(bool is_bf16, uint32_t tile_rows, const SHARED uint8_t *tokens,
                            const SHARED uint8_t *rows, struct tile_sums *sums)
{
    UNROLL
    for (uint32_t piece = 0; piece < 8; piece += 2) {
        struct matrix_rows a[WAVE_TOKEN_BLOCKS_MOST];
        UNROLL
        for (uint32_t t = 0; t < WAVE_TOKENS_OF(tile_rows) / 16; t++)
            a[t] = matrix_load(tokens, wave_token(tile_rows) + 16 * t, piece);
        UNROLL
        for (uint32_t r = 0; r < WAVE_ROWS_OF(tile_rows) / 16; r++) {
            struct matrix_rows b = matrix_load(rows, wave_row(tile_rows) + 16 * r, piece);
            UNROLL
            for (uint32_t t = 0; t < WAVE_TOKENS_OF(tile_rows) / 16; t++)
                matrix_multiply(is_bf16, &sums->values[t][r], &a[t], &b);
        }
    }
}

/* ---- Results -------------------------------------------------------------------------------- */

INLINE void store_result(const struct gpu_call *call, const struct tile_share *share, uint32_t row,
                         uint32_t token, float sum)
{
    const struct gpu_operand *packed = &call->operands[0];
    token += share->first_token;
    row += share->first_row + call->words[2];
    if (share->weights->dtype != DTYPE_BF16)
        sum *= *(const GLOBAL float *)(row_at(packed, token) + 2 * share->weights->width);
    if (share->bias->address)
        sum += row_f32(share->bias, 0)[row];
    row_f32(share->out, token)[row] = sum;
}

/* Sums of a tile in the workspace, one split behind the other. */
INLINE GLOBAL float *split_at(const struct gpu_call *call, const struct tile_share *share,
                              uint32_t tile_rows, uint32_t split)
{
    uint64_t tiles_x = block_count_x() / call->words[0];
    uint64_t tile = share->tile + tiles_x * block_y();
    return (GLOBAL float *)(call->workspace + GPU_COUNTER_BYTES) +
           (tile * call->words[0] + split) * tile_rows * TILE_TOKENS_WIDE;
}

#define JOINED_AT_ONCE 8

/* Adds the splits of a tile, in their order; the block that comes last does it. */
INLINE void join_splits(const struct gpu_call *call, const struct tile_share *share,
                        uint32_t tile_rows)
{
    SHARED uint32_t *flag = (SHARED uint32_t *)shared_memory();
    uint32_t tiles_x = block_count_x() / call->words[0];
    GLOBAL uint32_t *counter = (GLOBAL uint32_t *)call->workspace + share->tile +
                               tiles_x * block_y();
    if (!block_is_last(counter, call->words[0], flag))
        return;
    const uint64_t apart = (uint64_t)tile_rows * TILE_TOKENS_WIDE / 4;
    volatile GLOBAL floats4 *first = (volatile GLOBAL floats4 *)split_at(call, share, tile_rows, 0);
    for (uint32_t i = thread_index(); i < apart; i += TILE_THREADS) {
        uint32_t token = 4 * i / tile_rows, row = 4 * i % tile_rows;
        floats4 sum = { 0 }, parts[JOINED_AT_ONCE];
        for (uint32_t split = 0; split < call->words[0]; split += JOINED_AT_ONCE) {
            /* Asked for together: one after the other would take longer than the product. */
            UNROLL
            for (uint32_t n = 0; n < JOINED_AT_ONCE; n++)
                parts[n] = first[i + apart * (split + n < call->words[0] ? split + n : split)];
            UNROLL
            for (uint32_t n = 0; n < JOINED_AT_ONCE; n++)
                if (split + n < call->words[0])
                    sum += parts[n];
        }
        UNROLL
        for (uint32_t n = 0; n < 4; n++)
            if (token < share->tokens && row + n < share->rows)
                store_result(call, share, row + n, token, sum[n]);
    }
}

/* A sum of the tile: the result, or one of the split. */
INLINE void store_sum(const struct gpu_call *call, const struct tile_share *share,
                      uint32_t tile_rows, GLOBAL float *split, uint32_t row, uint32_t token,
                      float sum)
{
    if (token >= share->tokens || row >= share->rows)
        return;
    if (call->words[0] == 1)
        store_result(call, share, row, token, sum);
    else
        split[token * tile_rows + row] = sum;
}

INLINE void store_sums_of_tile(const struct gpu_call *call, const struct tile_share *share,
                               uint32_t tile_rows, const struct tile_sums *sums)
{
    GLOBAL float *split = split_at(call, share, tile_rows, share->split);
    UNROLL
    for (uint32_t t = 0; t < WAVE_TOKENS_OF(tile_rows) / 16; t++) {
        UNROLL
        for (uint32_t r = 0; r < WAVE_ROWS_OF(tile_rows) / 16; r++) {
            UNROLL
            for (uint32_t i = 0; i < MATRIX_SUMS; i++)
                store_sum(
                    call, share, tile_rows, split, wave_row(tile_rows) + 16 * r + matrix_column(i),
                    wave_token(tile_rows) + 16 * t + matrix_row(i), sums->values[t][r].values[i]);
        }
    }
    if (call->words[0] > 1)
        join_splits(call, share, tile_rows);
}

/* ---- Copies --------------------------------------------------------------------------------- */

/* Asks for a panel: `rows` rows of 64 halves from byte `at` of each on. Rows that are not there are
 * read as the last. */
INLINE void copy_panel(SHARED uint8_t *panel, const GLOBAL uint8_t *first, uint64_t stride_bytes,
                       uint32_t rows, uint32_t there, uint32_t at)
{
    UNROLL
    for (uint32_t i = 0; i < rows; i += TILE_THREADS / 8) {
        uint32_t row = i + thread_index() / 8, piece = thread_index() % 8;
        uint32_t from = row < there ? row : there - 1;
        copy_async(panel + panel_piece(row, piece), first + from * stride_bytes + at + piece * 16);
    }
}

/* Where a tile is in its k at a step. Tiles begin at different places, so that they do not all ask
 * the same part of the cache for the same activations. */
INLINE uint32_t turned(uint32_t step, uint32_t start, uint32_t count)
{
    return step + start < count ? step + start : step + start - count;
}

/* ---- Levels --------------------------------------------------------------------------------- */

/* Bytes of 256 values of a row, gathered where the type has them in several places. */
INLINE void copy_raw(const struct tile_share *share, uint32_t dtype, uint32_t tile_rows,
                     uint32_t block, SHARED uint8_t *stage)
{
    const uint32_t row_bytes = tile_raw_bytes(dtype), pieces = row_bytes / 16;
    for (uint32_t i = thread_index(); i < tile_rows * pieces; i += TILE_THREADS) {
        uint32_t row = i / pieces, piece = i % pieces;
        uint32_t from = row < share->rows ? row : share->rows - 1;
        uint32_t at = block * row_bytes + piece * 16;
        if (dtype == DTYPE_Q6_K_X8) {
            uint32_t in = block % 8;
            at = block / 8 * 1680 + (piece < 8    ? 128 * in + 16 * piece
                                     : piece < 12 ? 1024 + 64 * in + 16 * (piece - 8)
                                     : piece < 13 ? 1536 + 16 * in
                                                  : 1664);
        }
        copy_async(stage + row * row_bytes + piece * 16,
                   row_at(share->weights, share->first_row + from) + at);
    }
}

/* Warpgroups, where the chip has them, multiply while the threads unpack: 64 rows each. */
#define BY_WARPGROUPS(tile_rows) (HAS_WARPGROUPS && (tile_rows) == 128)

struct level_sums {
    struct tile_sums tile;
#if HAS_WARPGROUPS
    float wide[WARPGROUP_FEW_SUMS];
#endif
};

INLINE void clear_level_sums(struct level_sums *sums)
{
    clear_sums(&sums->tile);
#if HAS_WARPGROUPS
    UNROLL
    for (uint32_t i = 0; i < WARPGROUP_FEW_SUMS; i++)
        sums->wide[i] = 0;
#endif
}

/* Before the barrier behind which panels are multiplied. */
INLINE void publish_panels(uint32_t tile_rows)
{
#if HAS_WARPGROUPS
    if (BY_WARPGROUPS(tile_rows))
        warpgroup_publish();
#else
    (void)tile_rows;
#endif
}

/* What a warpgroup does runs until end_product; other waves do it all there. */
INLINE void begin_product(uint32_t tile_rows, const SHARED uint8_t *tokens,
                          const SHARED uint8_t *rows, struct level_sums *sums)
{
#if HAS_WARPGROUPS
    if (BY_WARPGROUPS(tile_rows))
        warpgroup_multiply_few(sums->wide, tokens,
                               rows +
                                   thread_index() / WARPGROUP * WARPGROUP_ROWS * PANEL_ROW_BYTES);
#else
    (void)tile_rows, (void)tokens, (void)rows, (void)sums;
#endif
}
INLINE void end_product(uint32_t tile_rows, const SHARED uint8_t *tokens,
                        const SHARED uint8_t *rows, struct level_sums *sums)
{
    if (!BY_WARPGROUPS(tile_rows)) {
        multiply_panels(false, tile_rows, tokens, rows, &sums->tile);
        return;
    }
#if HAS_WARPGROUPS
    warpgroup_wait(0);
#endif
}

INLINE void store_level_sums(const struct gpu_call *call, const struct tile_share *share,
                             uint32_t tile_rows, const struct level_sums *sums)
{
    if (!BY_WARPGROUPS(tile_rows)) {
        store_sums_of_tile(call, share, tile_rows, &sums->tile);
        return;
    }
#if HAS_WARPGROUPS
    GLOBAL float *split = split_at(call, share, tile_rows, share->split);
    UNROLL
    for (uint32_t i = 0; i < WARPGROUP_FEW_SUMS; i++)
        store_sum(call, share, tile_rows, split,
                  thread_index() / WARPGROUP * WARPGROUP_ROWS + i / 4 * 8 + 2 * (lane_index() % 4) +
                      i % 2,
                  16 * (team_index() % 4) + lane_index() / 4 + i % 4 / 2 * 8, sums->wide[i]);
    if (call->words[0] > 1)
        join_splits(call, share, tile_rows);
#endif
}

INLINE void walk_levels(const struct gpu_call *call, const struct tile_share *share,
                        uint32_t tile_rows, uint32_t dtype, struct level_sums *sums)
{
    const uint32_t raw_stage = tile_rows * tile_raw_bytes(dtype);
    const uint32_t panel_bytes = tile_rows * PANEL_ROW_BYTES;
    SHARED uint8_t *acts = shared_memory(), *panels = acts + TILE_ACT_STAGES * TILE_ACT_BYTES;
    SHARED uint8_t *raws = panels + 2 * panel_bytes;
    const struct gpu_operand *packed = &call->operands[0];
    const GLOBAL uint8_t *tokens = row_at(packed, share->first_token) + 2 * share->first_k;
    uint64_t stride = packed->row_stride_bytes;
    uint32_t first_block = share->first_k / 256, blocks = share->k / 256, quarters = 4 * blocks;
    uint32_t start = share->tile % blocks;
    copy_raw(share, dtype, tile_rows, first_block + start, raws);
    early_wait();
    leave_crumbs(call);
    copy_panel(acts, tokens, stride, TILE_TOKENS_WIDE, share->tokens, start * 512);
    copy_commit();
    copy_panel(acts + TILE_ACT_BYTES, tokens, stride, TILE_TOKENS_WIDE, share->tokens,
               start * 512 + 128);
    copy_commit();
    copy_wait(1);
    block_sync();
    unpack_panel(dtype, tile_rows, raws, first_block + start, 0, panels);
    uint32_t act = 0, next_act = 2 * TILE_ACT_BYTES;
    for (uint32_t quarter = 0; quarter < quarters; quarter++) {
        copy_wait(1);
        publish_panels(tile_rows);
        block_sync();
        begin_product(tile_rows, acts + act, panels + quarter % 2 * panel_bytes, sums);
        if (quarter + 2 < quarters)
            copy_panel(acts + next_act, tokens, stride, TILE_TOKENS_WIDE, share->tokens,
                       turned((quarter + 2) / 4, start, blocks) * 512 + (quarter + 2) % 4 * 128);
        if (quarter % 4 == 0 && quarter + 4 < quarters)
            copy_raw(share, dtype, tile_rows, first_block + turned(quarter / 4 + 1, start, blocks),
                     raws + (quarter / 4 + 1) % 2 * raw_stage);
        copy_commit();
        uint32_t next = quarter + 1;
        if (next < quarters)
            unpack_panel(dtype, tile_rows, raws + next / 4 % 2 * raw_stage,
                         first_block + turned(next / 4, start, blocks), next % 4,
                         panels + next % 2 * panel_bytes);
        end_product(tile_rows, acts + act, panels + quarter % 2 * panel_bytes, sums);
        act = act == (TILE_ACT_STAGES - 1) * TILE_ACT_BYTES ? 0 : act + TILE_ACT_BYTES;
        next_act = next_act == (TILE_ACT_STAGES - 1) * TILE_ACT_BYTES ? 0
                                                                      : next_act + TILE_ACT_BYTES;
    }
    copy_wait(0);
    block_sync();
}

INLINE void multiply_levels(const struct gpu_call *call, uint32_t tile_rows)
{
    struct tile_share share;
    struct level_sums sums;
    early_allow();
    find_tile(call, tile_rows, &share);
    clear_level_sums(&sums);
    uint32_t dtype = share.weights->dtype;
    if (dtype == DTYPE_Q4_K)
        walk_levels(call, &share, tile_rows, DTYPE_Q4_K, &sums);
    else if (dtype == DTYPE_Q6_K_X8)
        walk_levels(call, &share, tile_rows, DTYPE_Q6_K_X8, &sums);
    else if (dtype == DTYPE_Q8_0_X8)
        walk_levels(call, &share, tile_rows, DTYPE_Q8_0_X8, &sums);
    else
        walk_levels(call, &share, tile_rows, DTYPE_Q5_K, &sums);
    store_level_sums(call, &share, tile_rows, &sums);
}

KERNEL(matmul_level_tiles_128)
{
    multiply_levels(&call, 128);
}
KERNEL(matmul_level_tiles_64)
{
    multiply_levels(&call, 64);
}

/* ---- Halves --------------------------------------------------------------------------------- */

INLINE void walk_halves(const struct gpu_call *call, const struct tile_share *share,
                        uint32_t tile_rows, bool is_bf16, struct tile_sums *sums)
{
    const uint32_t stage_bytes = TILE_ACT_BYTES + tile_rows * PANEL_ROW_BYTES;
    SHARED uint8_t *ring = shared_memory();
    const struct gpu_operand *packed = &call->operands[0], *weights = share->weights;
    bool unpacked = call->words[4];
    uint64_t stride = unpacked ? 2 * weights->width : weights->row_stride_bytes;
    uint64_t base = unpacked ? call->workspace + GPU_COUNTER_BYTES
                             : weights->address + call->words[2] * stride;
    const GLOBAL uint8_t *rows = (const GLOBAL uint8_t *)(base + share->first_row * stride) +
                                 2 * share->first_k;
    const GLOBAL uint8_t *tokens = row_at(packed, share->first_token) + 2 * share->first_k;
    uint32_t steps = share->k / PANEL_K, start = share->tile * 4 % steps;
    for (uint32_t s = 0; s < steps + TILE_HALF_STAGES - 1; s++) {
        /* The stage that was multiplied last is free behind the barrier. */
        if (s >= TILE_HALF_STAGES - 1) {
            copy_wait(TILE_HALF_STAGES - 2);
            block_sync();
        }
        SHARED uint8_t *stage = ring + s % TILE_HALF_STAGES * stage_bytes;
        if (s < steps) {
            uint32_t at = turned(s, start, steps) * 128;
            copy_panel(stage, tokens, packed->row_stride_bytes, TILE_TOKENS_WIDE, share->tokens,
                       at);
            copy_panel(stage + TILE_ACT_BYTES, rows, stride, tile_rows, share->rows, at);
        }
        copy_commit();
        if (s >= TILE_HALF_STAGES - 1) {
            const SHARED uint8_t *full = ring + (s + 1) % TILE_HALF_STAGES * stage_bytes;
            multiply_panels(is_bf16, tile_rows, full, full + TILE_ACT_BYTES, sums);
        }
    }
    copy_wait(0);
    block_sync();
}

INLINE void multiply_half_tiles(const struct gpu_call *call, uint32_t tile_rows)
{
    struct tile_share share;
    struct tile_sums sums;
    early_allow();
    early_wait();
    leave_crumbs(call);
    find_tile(call, tile_rows, &share);
    clear_sums(&sums);
    if (share.weights->dtype == DTYPE_BF16)
        walk_halves(call, &share, tile_rows, true, &sums);
    else
        walk_halves(call, &share, tile_rows, false, &sums);
    store_sums_of_tile(call, &share, tile_rows, &sums);
}

KERNEL(matmul_half_tiles_128)
{
    multiply_half_tiles(&call, 128);
}
KERNEL(matmul_half_tiles_64)
{
    multiply_half_tiles(&call, 64);
}

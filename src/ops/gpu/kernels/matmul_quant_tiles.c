/* matmul_quant_tiles.c - tiles of quants (Q4_K, Q5_K, Q6_K_X8, Q8_0_X8): bytes of 256 values of k
 * of each row pass through a ring in shared memory; while the matrix units work on 64 values of k,
 * the next 64 become halves in a second panel. Operands and order of a sum: tile_multiply.h. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/tile_multiply.h"
#include "ops/gpu/kernels/tile_quants.h"
#include "ops/gpu/kernels/warpgroup.h"
#include "ops/gpu/tiling.h"

/* Bytes of 256 values of a row, gathered where the type has them in several places. */
INLINE void copy_raw(const struct tile_share *share, uint32_t dtype, uint32_t tile_rows,
                     uint32_t block, SHARED uint8_t *stage)
{
    const uint32_t row_bytes = tile_raw_bytes(dtype), segments = row_bytes / 16;
    for (uint32_t i = thread_index(); i < tile_rows * segments; i += TILE_THREADS) {
        uint32_t row = i / segments, segment = i % segments;
        uint32_t from = row < share->rows ? row : share->rows - 1;
        uint32_t at = block * row_bytes + segment * 16;
        if (dtype == DTYPE_Q6_K_X8) {
            uint32_t in = block % 8;
            at = block / 8 * 1680 + (segment < 8    ? 128 * in + 16 * segment
                                     : segment < 12 ? 1024 + 64 * in + 16 * (segment - 8)
                                     : segment < 13 ? 1536 + 16 * in
                                                    : 1664);
        }
        copy_async(stage + row * row_bytes + segment * 16,
                   row_at(share->weights, share->first_row + from) + at);
    }
}

/* Warpgroups, where the chip has them, multiply while the threads unpack: 64 rows each. */
#define BY_WARPGROUPS(tile_rows) (HAS_WARPGROUPS && (tile_rows) == 128)

struct quant_sums {
    struct tile_sums tile;
#if HAS_WARPGROUPS
    float wide[WARPGROUP_SUMS_32];
#endif
};

INLINE void clear_quant_sums(struct quant_sums *sums)
{
    clear_sums(&sums->tile);
#if HAS_WARPGROUPS
    UNROLL
    for (uint32_t i = 0; i < WARPGROUP_SUMS_32; i++)
        sums->wide[i] = 0;
#endif
}

/* Called before the barrier after which panels are multiplied. */
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
                          const SHARED uint8_t *rows, struct quant_sums *sums)
{
#if HAS_WARPGROUPS
    if (BY_WARPGROUPS(tile_rows))
        warpgroup_multiply_32(sums->wide, tokens,
                              rows + thread_index() / WARPGROUP * WARPGROUP_ROWS * PANEL_ROW_BYTES);
#else
    (void)tile_rows, (void)tokens, (void)rows, (void)sums;
#endif
}
INLINE void end_product(uint32_t tile_rows, const SHARED uint8_t *tokens,
                        const SHARED uint8_t *rows, struct quant_sums *sums)
{
    if (!BY_WARPGROUPS(tile_rows)) {
        multiply_panels(false, tile_rows, tokens, rows, &sums->tile);
        return;
    }
#if HAS_WARPGROUPS
    warpgroup_wait(0);
#endif
}

INLINE void store_quant_sums(const struct gpu_call *call, const struct tile_share *share,
                             uint32_t tile_rows, const struct quant_sums *sums)
{
    if (!BY_WARPGROUPS(tile_rows)) {
        store_sums_of_tile(call, share, tile_rows, &sums->tile);
        return;
    }
#if HAS_WARPGROUPS
    GLOBAL float *split = split_at(call, share, tile_rows, share->split);
    UNROLL
    for (uint32_t i = 0; i < WARPGROUP_SUMS_32; i++)
        store_sum(call, share, tile_rows, split,
                  thread_index() / WARPGROUP * WARPGROUP_ROWS + i / 4 * 8 + 2 * (lane_index() % 4) +
                      i % 2,
                  16 * (warp_index() % 4) + lane_index() / 4 + i % 4 / 2 * 8, sums->wide[i]);
    if (matmul_tiles_args_of(call)->splits > 1)
        join_splits(call, share, tile_rows);
#endif
}

INLINE void walk_quants(const struct gpu_call *call, const struct tile_share *share,
                        uint32_t tile_rows, uint32_t dtype, struct quant_sums *sums)
{
    const uint32_t raw_stage = tile_rows * tile_raw_bytes(dtype);
    const uint32_t panel_bytes = tile_rows * PANEL_ROW_BYTES;
    SHARED uint8_t *acts = shared_memory(), *panels = acts + TILE_ACT_STAGES * TILE_ACT_BYTES;
    SHARED uint8_t *raws = panels + 2 * panel_bytes;
    const struct gpu_operand *packed = &call->operands[MATMUL_GROUP_PACKED];
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

INLINE void multiply_quants(const struct gpu_call *call, uint32_t tile_rows)
{
    struct tile_share share;
    struct quant_sums sums;
    early_allow();
    find_tile(call, tile_rows, &share);
    clear_quant_sums(&sums);
    uint32_t dtype = share.weights->dtype;
    if (dtype == DTYPE_Q4_K)
        walk_quants(call, &share, tile_rows, DTYPE_Q4_K, &sums);
    else if (dtype == DTYPE_Q6_K_X8)
        walk_quants(call, &share, tile_rows, DTYPE_Q6_K_X8, &sums);
    else if (dtype == DTYPE_Q8_0_X8)
        walk_quants(call, &share, tile_rows, DTYPE_Q8_0_X8, &sums);
    else
        walk_quants(call, &share, tile_rows, DTYPE_Q5_K, &sums);
    store_quant_sums(call, &share, tile_rows, &sums);
}

KERNEL(matmul_quant_tiles_128)
{
    multiply_quants(&call, 128);
}
KERNEL(matmul_quant_tiles_64)
{
    multiply_quants(&call, 64);
}

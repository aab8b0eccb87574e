/* matmul_half_tiles.c - tiles of halves (F16 and BF16, or what unpack.c made): rows of weights go
 * straight to panels, as activations do. Operands and order of a sum: tile_multiply.h. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/tile_multiply.h"
#include "ops/gpu/tiling.h"

INLINE void walk_halves(const struct gpu_call *call, const struct tile_share *share,
                        uint32_t tile_rows, bool is_bf16, struct tile_sums *sums)
{
    const uint32_t stage_bytes = TILE_ACT_BYTES + tile_rows * PANEL_ROW_BYTES;
    SHARED uint8_t *ring = shared_memory();
    const struct gpu_operand *packed = &call->operands[MATMUL_GROUP_PACKED],
                             *weights = share->weights;
    const struct matmul_tiles_args *args = matmul_tiles_args_of(call);
    bool unpacked = args->unpacked;
    uint64_t stride = unpacked ? 2 * weights->width : weights->row_stride_bytes;
    uint64_t base = unpacked ? call->workspace + GPU_COUNTER_BYTES
                             : weights->address + args->first_row * stride;
    const GLOBAL uint8_t *rows = (const GLOBAL uint8_t *)(base + share->first_row * stride) +
                                 2 * share->first_k;
    const GLOBAL uint8_t *tokens = row_at(packed, share->first_token) + 2 * share->first_k;
    uint32_t steps = share->k / PANEL_K, start = share->tile * 4 % steps;
    for (uint32_t s = 0; s < steps + TILE_HALF_STAGES - 1; s++) {
        /* The stage that was multiplied last is free after the barrier. */
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

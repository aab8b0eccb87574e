/* plan_lanes.c - how products of quants are cut for matmul_lanes.c. */
#include "ops/gpu/plan_impl.h"

#include "base/size.h"
#include "ops/gpu/tiling.h"

/* The fewest and the most tokens: fewer are faster with the kernels for small batches, more with
 * weights that are unpacked to halves first. */
#define LANES_TOKENS_LEAST 5u
#define LANES_TOKENS_MOST 768u
/* Splits of k over blocks at most. */
#define LANES_SPLITS_MOST 16u
/* What a wave of blocks costs in addition to its bytes, as bytes of one block. */
#define LANES_WAVE_BYTES 65536u

/* One way to cut a matmul. */
struct lanes_cut {
    uint64_t tiles, each;             /* tiles of rows; blocks of 256 values of a share */
    uint32_t splits, shares, columns; /* columns: tokens of a tile */
    uint64_t cost;                    /* bytes that the busiest processor moves */
};

/* Kernels for 32 tokens stand in kernels.def as those for 64 do. */
#define IS_LIKE_LANES(type)                                                                        \
    (KERNEL_matmul_lanes_32_##type - KERNEL_matmul_lanes_32 ==                                     \
     KERNEL_matmul_lanes_##type - KERNEL_matmul_lanes)
_Static_assert(IS_LIKE_LANES(q4_k) && IS_LIKE_LANES(q6_k) && IS_LIKE_LANES(q8_0),
               "plan_lanes counts from the first");

bool plan_wants_lanes(uint32_t features, enum dtype weight_dtype, uint64_t k, uint64_t tokens)
{
    return features & DEVICE_GPU_WARPGROUPS && tile_raw_bytes((uint32_t)weight_dtype) && k > 0 &&
           k % 256 == 0 && k < UINT32_MAX / 1024 && tokens >= LANES_TOKENS_LEAST &&
           tokens <= LANES_TOKENS_MOST;
}

bool plan_has_lanes(const struct device_gpu_request *request,
                    const struct device_host_operand *weights)
{
    uint32_t dtype = (uint32_t)weights->dtype;
    return tile_raw_bytes(dtype) && is_aligned(weights) && rows_of(weights) >= 16 &&
           rows_of(weights) * weights->row_stride_bytes <= UINT32_MAX &&
           lanes_shared_bytes(dtype, LANES_TOKENS) <= request->chip->shared_bytes;
}

static uint64_t lanes_tiles(const struct device_host_operand *weights, uint32_t count,
                            uint32_t part_bits, uint32_t shares)
{
    uint64_t tiles = 0;
    for (uint32_t part = 0; part < count; part++)
        if (part_bits >> part & 1)
            tiles += divide_up(rows_of(&weights[part]), LANES_GROUPS * LANES_ROWS / shares);
    return tiles;
}

/* False if it leaves a split without work, or has no room for its sums. */
static bool weigh_cut(const struct device_gpu_chip *chip, uint64_t blocks, uint64_t token_tiles,
                      uint32_t raw_bytes, struct lanes_cut *cut)
{
    uint64_t groups = cut->tiles * token_tiles, units = LANES_GROUPS / cut->shares;
    uint64_t sums = units * LANES_ROWS * cut->columns * sizeof(float);
    cut->each = divide_up(blocks, (uint64_t)cut->splits * cut->shares);
    if (cut->splits > 1 && ((cut->splits - 1) * cut->shares * cut->each >= blocks ||
                            groups * cut->splits * sums > GPU_WORKSPACE_BYTES - GPU_COUNTER_BYTES ||
                            groups * sizeof(uint32_t) > GPU_COUNTER_BYTES))
        return false;
    uint64_t waves = divide_up(groups * cut->splits, chip->sm_count);
    uint64_t activations = (uint64_t)cut->shares * 4 * lanes_panel_bytes(cut->columns);
    cut->cost = waves *
                (cut->each * (activations + (uint64_t)LANES_GROUPS * LANES_ROWS * raw_bytes) +
                 LANES_WAVE_BYTES);
    if (cut->splits > 1) /* stored by all, read by the last */
        cut->cost += (cut->splits + 1) * sums;
    return true;
}

struct device_gpu_step plan_lanes(const struct device_gpu_request *request,
                                  const struct group_places *places, uint32_t part_bits,
                                  uint64_t tokens)
{
    const struct device_host_operand *weights = &request->operands[places->weights];
    bool few = tokens <= LANES_TOKENS_32;
    uint32_t columns = few ? LANES_TOKENS_32 : LANES_TOKENS;
    enum gpu_kernel kernel = few ? KERNEL_matmul_lanes_32 : KERNEL_matmul_lanes;
    uint64_t token_tiles = divide_up(tokens, columns), blocks = 0;
    uint32_t shared_bytes = 0, raw_bytes = 0, first = 0;
    bool same = true;
    for (uint32_t part = places->count; part-- > 0;) {
        if (!(part_bits >> part & 1))
            continue;
        uint32_t dtype = (uint32_t)weights[part].dtype, bytes = lanes_shared_bytes(dtype, columns);
        same = blocks == 0 || (same && weights[part].dtype == weights[first].dtype);
        shared_bytes = max_u64(bytes, shared_bytes);
        raw_bytes = max_u64(tile_raw_bytes(dtype), raw_bytes);
        blocks = width_of(&weights[part]) / 256;
        first = part;
    }
    if (same && weights[first].dtype == DTYPE_Q4_K)
        kernel += KERNEL_matmul_lanes_q4_k - KERNEL_matmul_lanes;
    else if (same && weights[first].dtype == DTYPE_Q6_K_X8)
        kernel += KERNEL_matmul_lanes_q6_k - KERNEL_matmul_lanes;
    else if (same && weights[first].dtype == DTYPE_Q8_0_X8)
        kernel += KERNEL_matmul_lanes_q8_0 - KERNEL_matmul_lanes;
    struct lanes_cut best = { .cost = UINT64_MAX };
    for (uint32_t shares = 1; shares <= 2; shares++)
        for (uint32_t splits = 1; splits <= LANES_SPLITS_MOST; splits++) {
            struct lanes_cut cut = { .splits = splits, .shares = shares, .columns = columns };
            cut.tiles = lanes_tiles(weights, places->count, part_bits, shares);
            if (weigh_cut(request->chip, blocks, token_tiles, raw_bytes, &cut) &&
                cut.cost < best.cost)
                best = cut;
        }
    struct device_gpu_step step = step_of(kernel, best.tiles * best.splits, token_tiles,
                                          LANES_THREADS);
    set_matmul_lanes_args(&step, (struct matmul_lanes_args){ .splits = best.splits,
                                                             .each = (uint32_t)best.each,
                                                             .shares = best.shares });
    step.shared_bytes = shared_bytes;
    place_operands(places, part_bits, &step);
    return step;
}

/* plan_small_batch.c - how products of quants with a few tokens are cut for matmul_small_batch.c.
 * Measured on sm_90a, and left to it. */
#include "ops/gpu/plan_impl.h"

#include "base/size.h"
#include "ops/gpu/tiling.h"

/* Warps of a block. */
#define SMALL_BATCH_WARPS_MOST 16u
/* Tokens from which on it is faster than kernels that add up lane by lane. */
#define SMALL_BATCH_TOKENS_LEAST 3u
#define SMALL_BATCH_TOKENS_LEAST_Q8_0 2u
/* Shares of k, each a block's, at most. */
#define SMALL_BATCH_SHARES_MOST 4u

/* The longest row that can be cut so. */
#define SMALL_BATCH_K_MOST                                                                         \
    (SMALL_BATCH_SHARES_MOST * SMALL_BATCH_WARPS_MOST * SMALL_BATCH_BLOCKS * 256)

/* One way to cut a matmul. */
struct small_batch_cut {
    uint64_t members, blocks, slots, shares, ranges;
    uint64_t cost; /* blocks of 256 columns that a warp has, of 16 rows each */
};

/* Parts that are multiplied together. */
struct small_batch_set {
    uint64_t k, groups; /* of 16 rows */
    uint32_t first;     /* part */
    uint32_t warp_bytes;
    bool same; /* type */
};

bool plan_wants_small_batch(uint32_t features, enum dtype weight_dtype, uint64_t k, uint64_t tokens)
{
    uint64_t least = weight_dtype == DTYPE_Q8_0_X8 ? SMALL_BATCH_TOKENS_LEAST_Q8_0
                                                   : SMALL_BATCH_TOKENS_LEAST;
    return features & DEVICE_GPU_WARPGROUPS && small_batch_segments((uint32_t)weight_dtype) &&
           k > 0 && k % 256 == 0 && k <= SMALL_BATCH_K_MOST && tokens >= least &&
           tokens <= SMALL_BATCH_TOKENS;
}

static struct small_batch_cut cut_small_batch(const struct device_gpu_chip *chip,
                                              const struct small_batch_set *set, uint64_t blocks)
{
    struct small_batch_cut cut = { .blocks = blocks };
    uint64_t all = divide_up(set->k / 256, blocks);
    cut.shares = divide_up(all, SMALL_BATCH_WARPS_MOST);
    cut.members = divide_up(all, cut.shares);
    cut.slots = SMALL_BATCH_WARPS_MOST / cut.members;
    cut.ranges = chip->sm_count / cut.shares;
    uint64_t most = divide_up(set->groups, cut.slots);
    cut.ranges = min_u64(most, cut.ranges);
    cut.ranges = max_u64(cut.ranges, 1);
    cut.cost = divide_up(divide_up(set->groups, cut.ranges), cut.slots) * blocks;
    return cut;
}

/* Where parts have blocks of their own, rows are not cut into shares. */
static bool can_cut(const struct device_gpu_chip *chip, const struct small_batch_set *set,
                    const struct small_batch_cut *cut)
{
    uint64_t warps = cut->members * cut->slots, room = GPU_WORKSPACE_BYTES - GPU_COUNTER_BYTES;
    uint64_t sums = set->groups * cut->shares * SMALL_BATCH_ROWS * SMALL_BATCH_TOKENS *
                    sizeof(float);
    bool joins = set->same && sums <= room && cut->ranges * sizeof(uint32_t) <= GPU_COUNTER_BYTES;
    return cut->shares <= SMALL_BATCH_SHARES_MOST && (cut->shares == 1 || joins) &&
           warps * WARP <= chip->thread_limit && warps * set->warp_bytes <= chip->shared_bytes &&
           set->groups <= UINT32_MAX / SMALL_BATCH_ROWS / SMALL_BATCH_TOKENS;
}

static enum gpu_kernel small_batch_kernel(uint32_t dtype)
{
    return dtype == DTYPE_Q4_K      ? KERNEL_matmul_small_batch_q4_k
           : dtype == DTYPE_Q6_K_X8 ? KERNEL_matmul_small_batch_q6_k
                                    : KERNEL_matmul_small_batch_q8_0;
}

/* False where a part cannot be done so. The kernel counts bytes of 16 rows by 32 bits. */
static bool collect_set(const struct device_gpu_request *request, const struct group_places *places,
                        uint32_t part_bits, struct small_batch_set *ret_set)
{
    const struct device_host_operand *weights = &request->operands[places->weights];
    uint64_t tokens = rows_of(&request->operands[places->packed]);
    struct small_batch_set set = { .same = true };
    for (uint32_t part = places->count; part-- > 0;) {
        if (!(part_bits >> part & 1))
            continue;
        uint32_t bytes = small_batch_warp_bytes((uint32_t)weights[part].dtype);
        if (!plan_wants_small_batch(request->chip->features, weights[part].dtype,
                                    width_of(&weights[part]), tokens) ||
            !is_aligned(&weights[part]) ||
            weights[part].row_stride_bytes > UINT32_MAX / SMALL_BATCH_ROWS)
            return false;
        set.warp_bytes = max_u64(bytes, set.warp_bytes);
        set.same = set.same && (set.k == 0 || weights[part].dtype == weights[set.first].dtype);
        set.k = width_of(&weights[part]);
        set.groups += divide_up(rows_of(&weights[part]), SMALL_BATCH_ROWS);
        set.first = part;
    }
    *ret_set = set;
    return set.k > 0 && set.groups > 0;
}

static bool plan_set(const struct device_gpu_request *request, const struct group_places *places,
                     uint32_t part_bits, struct device_gpu_step *step)
{
    const struct device_host_operand *weights = &request->operands[places->weights];
    const struct device_gpu_chip *chip = request->chip;
    struct small_batch_set set;
    if (!collect_set(request, places, part_bits, &set))
        return false;
    struct small_batch_cut cut = cut_small_batch(chip, &set, SMALL_BATCH_BLOCKS),
                           other = cut_small_batch(chip, &set, 1);
    bool possible = can_cut(chip, &set, &cut);
    if (can_cut(chip, &set, &other) && (!possible || other.cost < cut.cost)) {
        cut = other;
        possible = true;
    }
    if (!possible)
        return false;
    uint32_t warps = (uint32_t)(cut.members * cut.slots);
    *step = step_of(set.same ? small_batch_kernel((uint32_t)weights[set.first].dtype)
                             : KERNEL_matmul_small_batch_quants,
                    cut.ranges * cut.shares, 1, warps * WARP);
    struct matmul_small_batch_args args = { .members = (uint32_t)cut.members,
                                            .blocks = (uint32_t)cut.blocks,
                                            .shares = (uint32_t)cut.shares };
    if (!set.same) {
        uint32_t first_blocks[3];
        step->grid_x = plan_cut_blocks(weights, places->count, part_bits, step->grid_x,
                                       first_blocks);
        args.second_block = first_blocks[1];
        args.third_block = first_blocks[2];
    }
    set_matmul_small_batch_args(step, args);
    step->shared_bytes = warps * set.warp_bytes;
    place_operands(places, part_bits, step);
    return true;
}

uint32_t plan_small_batch(const struct device_gpu_request *request,
                          const struct group_places *places, uint32_t part_bits,
                          struct device_gpu_step *steps)
{
    if (plan_set(request, places, part_bits, &steps[0]))
        return 1;
    /* Rows of several types may be too long to be done together: each part by itself then. */
    uint32_t count = 0;
    for (uint32_t part = 0; part < places->count; part++) {
        if (!(part_bits >> part & 1))
            continue;
        if (!plan_set(request, places, 1u << part, &steps[count++]))
            return 0;
    }
    return count;
}

/* plan_1tok.c - how matmuls of one token are cut for matmul_1tok.c. */
#include "ops/gpu/gpu.h"

#include "base/size.h"

#include "ops/gpu/packing.h"
#include "ops/gpu/plan_impl.h"
#include "ops/gpu/tiling.h"

/* Warps of a block. */
#define ONE_WARPS_MOST 16u
/* Warps of a row that is not long. */
#define ONE_MEMBERS_FEW 2u
/* Groups of a ring that are waited for, where not all are. */
#define ONE_WAITED_FEW 2u

/* How the parts of a way are done for one token. */
struct one_cut {
    enum gpu_kernel kernel;
    uint32_t members; /* warps of a row */
    uint32_t warps;   /* of a block */
    uint32_t ring_bytes;
    uint32_t shared_bytes;
    uint32_t blocks;
    uint32_t first_blocks[3]; /* of each part, where each has its own */
    uint32_t waited;          /* groups that are waited for before the activations are */
};

static enum gpu_kernel one_kernel(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_Q4_K:
        return KERNEL_matmul_1tok_q4_k;
    case DTYPE_Q6_K_X8:
        return KERNEL_matmul_1tok_q6_k;
    case DTYPE_Q8_0_X8:
        return KERNEL_matmul_1tok_q8_0;
    case DTYPE_BF16:
        return KERNEL_matmul_1tok_bf16;
    default:
        return KERNEL_matmul_1tok_f16;
    }
}

/* Shared memory of a processor that is left for small kernels. */
#define ONE_SPARE_BYTES 24576u

/* Groups of rows that a block has at most, where each part has its own blocks. */
static uint64_t most_of_block(const struct device_host_operand *weights, uint32_t count,
                              uint32_t part_bits, const struct one_cut *cut)
{
    uint64_t most = 0;
    for (uint32_t part = 0; part < count; part++) {
        if (!(part_bits >> part & 1))
            continue;
        uint32_t end = part < 2 ? cut->first_blocks[part + 1] : cut->blocks;
        uint64_t groups = divide_up(rows_of(&weights[part]),
                                    one_rows((uint32_t)weights[part].dtype));
        uint64_t each = divide_up(groups, end - cut->first_blocks[part]);
        most = max_u64(each, most);
    }
    return most;
}

/* The number of blocks of a matmul. A single matmul leaves SMs free where it can: the next one
 * begins there and prefetches its weights meanwhile.
 *
 * Attention's output, which gate and up follow, is short: half of the SMs do it if their rings hold
 * its weights before its activations are there, two thirds if they hold most of them. A matmul also
 * has no more blocks than it takes for the longest to have no more rows: down has 4,096 rows, which
 * are 32 for each of 128 blocks. Parts that are multiplied together take all SMs: attention, which
 * follows q, k and v, has no weights to prefetch; gate and up keep all SMs busy. */
static uint64_t one_blocks(const struct device_gpu_chip *chip, uint64_t groups, uint32_t parts,
                           uint64_t members, uint64_t slots)
{
    uint64_t all = chip->sm_count;
    if (parts != 1 || groups <= all)
        return min_u64(groups, all);
    uint64_t blocks = all, half = all / 2, more = all * 2 / 3;
    uint64_t held = slots * (ONE_STAGES - 1); /* groups in the rings of a block */
    if (members <= ONE_MEMBERS_FEW && half > 0) {
        if (divide_up(groups, half) <= held)
            blocks = half;
        else if (divide_up(groups, more) <= held + held / 2)
            blocks = more;
    }
    return divide_up(groups, divide_up(groups, blocks));
}

/* False where it cannot be: a type without a kernel, rows too long. A processor holds one block: if
 * there were room for two, blocks that start early would double up on processors that are free
 * first, and others go without. */
static bool cut_one(const struct device_gpu_request *request, const struct group_places *places,
                    uint32_t part_bits, struct one_cut *ret_cut)
{
    const struct device_host_operand *weights = &request->operands[places->weights];
    uint64_t groups = 0, k = 0;
    uint32_t stage_bytes = 0, first = 0, parts = 0;
    bool same = true, has_q4_k = false;
    for (uint32_t part = places->count; part-- > 0;) {
        if (!(part_bits >> part & 1))
            continue;
        uint32_t dtype = (uint32_t)weights[part].dtype, rows = one_rows(dtype);
        has_q4_k = has_q4_k || dtype == DTYPE_Q4_K;
        if (one_slice_bytes(dtype) == 0 || width_of(&weights[part]) % 256)
            return false;
        uint32_t bytes = rows * one_slice_bytes(dtype);
        stage_bytes = max_u64(bytes, stage_bytes);
        same = same && (k == 0 || weights[part].dtype == weights[first].dtype);
        groups += divide_up(rows_of(&weights[part]), rows);
        parts++;
        k = width_of(&weights[part]);
        first = part;
    }
    if (k == 0)
        return false;
    enum dtype dtype = weights[first].dtype;
    uint64_t members = divide_up(k, one_columns((uint32_t)dtype));
    const struct device_gpu_chip *chip = request->chip;
    uint64_t most = chip->thread_limit / WARP;
    most = min_u64(most, ONE_WARPS_MOST);
    uint64_t slots = members <= most ? most / members : 1;
    uint64_t blocks = one_blocks(chip, groups, parts, members, slots);
    if (members > most || groups / blocks > UINT32_MAX / 4096 ||
        (!same && gpu_pack_format(chip->features, dtype, k, 1) != PACK_QUANTS))
        return false;
    struct one_cut cut = { .kernel = same ? one_kernel(dtype) : KERNEL_matmul_1tok_quants,
                           .members = (uint32_t)members,
                           .blocks = (uint32_t)blocks,
                           .waited = ONE_STAGES - 1 };
    /* Gate and up follow a short matmul and begin on the SMs it leaves free, when their activations
     * are nearly there: they need not wait for all of the ring, and neither need q, k and v. This
     * was measured for Q4_K, alone and with other types; Q8_0 loses by it where rows are short. */
    if (parts > 1 && has_q4_k)
        cut.waited = ONE_WAITED_FEW;
    uint64_t each = divide_up(groups, blocks);
    if (!same) {
        cut.blocks = plan_cut_blocks(weights, places->count, part_bits, cut.blocks,
                                     cut.first_blocks);
        each = most_of_block(weights, places->count, part_bits, &cut);
    }
    uint64_t sums = each * ONE_ROWS_MOST * members * sizeof(float);
    uint64_t room = chip->processor_shared_bytes - ONE_SPARE_BYTES;
    uint32_t ring_bytes = ONE_STAGES * stage_bytes;
    uint64_t warps = most / members * members;
    while (warps > members && warps * ring_bytes + sums > room)
        warps -= members;
    if (warps * ring_bytes + sums > chip->shared_bytes)
        return false;
    cut.warps = (uint32_t)warps;
    cut.ring_bytes = ring_bytes;
    cut.shared_bytes = (uint32_t)(warps * ring_bytes + sums);
    *ret_cut = cut;
    return true;
}

uint32_t plan_1tok(const struct device_gpu_request *request, const struct group_places *places,
                   uint32_t part_bits, struct device_gpu_step *step)
{
    struct one_cut cut;
    if (!cut_one(request, places, part_bits, &cut))
        return 0;
    *step = step_of(cut.kernel, cut.blocks, 1, cut.warps * WARP);
    set_matmul_1tok_args(step, (struct matmul_1tok_args){ .ring_bytes = cut.ring_bytes,
                                                          .members = cut.members,
                                                          .second_block = cut.first_blocks[1],
                                                          .third_block = cut.first_blocks[2],
                                                          .waited = cut.waited });
    step->shared_bytes = cut.shared_bytes;
    place_operands(places, part_bits, step);
    return 1;
}

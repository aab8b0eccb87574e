/* plan_matmul.c - how matrix products are done on a GPU, and what their weights and activations are
 * laid out as for them. */
#include "ops/gpu/gpu.h"

#include "ops/gpu/packing.h"
#include "ops/gpu/plan_impl.h"
#include "ops/gpu/tiling.h"
#include "tensor/quant.h"

enum dtype gpu_weight_dtype(enum dtype dtype, uint64_t k)
{
    if (dtype == DTYPE_Q8_0 && k % dtype_info(DTYPE_Q8_0_X8)->block_elements == 0)
        return DTYPE_Q8_0_X8;
    if (dtype == DTYPE_Q6_K && k % dtype_info(DTYPE_Q6_K_X8)->block_elements == 0)
        return DTYPE_Q6_K_X8;
    return dtype;
}

bool gpu_can_multiply(enum dtype weight_dtype)
{
    return quant_can_decode(weight_dtype) || matmul_is_direct(weight_dtype);
}

uint32_t gpu_pack_format(uint32_t features, enum dtype weight_dtype, uint64_t k, uint64_t tokens)
{
    if (plan_wants_few(features, weight_dtype, k, tokens))
        return PACK_LEVELS;
    if (plan_wants_lanes(features, weight_dtype, k, tokens))
        return PACK_LANES;
    if (plan_is_many(weight_dtype, k, tokens))
        return weight_dtype == DTYPE_BF16 ? PACK_BF16 : PACK_F16;
    bool own = matmul_is_direct(weight_dtype) || matmul_chunk_bytes(weight_dtype);
    return own && dtype_info(weight_dtype)->block_elements > 1 ? PACK_LEVELS : PACK_F32;
}

uint64_t gpu_packed_row_bytes(uint32_t format, uint64_t k)
{
    switch (format) {
    case PACK_LEVELS:
        return (k + k / 32 * 8 + 15) / 16 * 16;
    case PACK_F16:
    case PACK_LANES: /* with a factor, and its place aligned */
        return 2 * k + 16;
    case PACK_BF16:
        return 2 * k;
    default:
        return (4 * k + 15) / 16 * 16;
    }
}

/* How a product is done. */
enum product_way { WAY_DIRECT, WAY_RING, WAY_DECODED, WAY_COUNT };

static enum product_way way_of(const struct device_host_operand *weights)
{
    uint64_t address = (uint64_t)(uintptr_t)weights->data, k = width_of(weights);
    if (matmul_is_direct((uint32_t)weights->dtype)) {
        bool aligned = (address | weights->row_stride_bytes) % 16 == 0;
        return aligned && k < UINT32_MAX / 4 ? WAY_DIRECT : WAY_DECODED;
    }
    bool ring = matmul_chunk_bytes((uint32_t)weights->dtype) &&
                weights->row_stride_bytes < (UINT64_C(1) << 31);
    return ring ? WAY_RING : WAY_DECODED;
}

/* Teams of a block, so that its ring fits. */
static uint32_t ring_teams(const struct device_gpu_chip *chip, uint32_t ring_bytes)
{
    uint32_t teams = TEAMS_OF_VALUES;
    while (teams > 1 && teams * ring_bytes > chip->shared_bytes)
        teams /= 2;
    return teams;
}

/* Blocks of a processor: what its registers hold. */
#define BLOCKS_MOST 3u

static struct device_gpu_step plan_streamed(const struct device_gpu_request *request,
                                            const struct group_places *places, enum product_way way,
                                            uint32_t part_bits, uint64_t tokens)
{
    const struct device_host_operand *weights = &request->operands[places->weights];
    const struct device_gpu_chip *chip = request->chip;
    uint32_t stage_bytes = 0, first = 0;
    uint64_t groups = 0;
    for (uint32_t part = places->count; part-- > 0;) {
        if (!(part_bits >> part & 1))
            continue;
        uint32_t dtype = (uint32_t)weights[part].dtype;
        uint32_t bytes = way == WAY_RING ? matmul_chunk_bytes(dtype) : matmul_direct_bytes(dtype);
        stage_bytes = bytes > stage_bytes ? bytes : stage_bytes;
        groups += divide_up(rows_of(&weights[part]), MATMUL_ROWS);
        first = part;
    }
    uint32_t ring_bytes = MATMUL_STAGES * MATMUL_ROWS * stage_bytes;
    uint32_t teams = ring_teams(chip, ring_bytes);
    uint32_t wide = tokens > 4 ? 3 : tokens > 2 ? 2 : tokens > 1 ? 1 : 0; /* log2 */
    bool levels = gpu_pack_format(chip->features, weights[first].dtype, width_of(&weights[first]),
                                  tokens) == PACK_LEVELS;
    enum gpu_kernel kernel = (levels ? KERNEL_matmul_levels_1 : KERNEL_matmul_floats_1) + wide;
    if (way == WAY_RING) {
        wide = tokens > 1 ? 3 : 0;
        kernel = wide ? KERNEL_matmul_ring_8 : KERNEL_matmul_ring_1;
    }
    uint64_t fitting = chip->processor_shared_bytes / (teams * ring_bytes + 1024);
    fitting = fitting > BLOCKS_MOST ? BLOCKS_MOST : fitting < 1 ? 1 : fitting;
    uint64_t most = fitting * chip->processor_count;
    uint64_t blocks = divide_up(groups, teams);
    struct device_gpu_step step = step_of(kernel, blocks < most ? blocks : most,
                                          divide_up(tokens, UINT64_C(1) << wide), teams * TEAM);
    step.words[0] = way == WAY_RING ? stage_bytes : ring_bytes;
    step.shared_bytes = teams * ring_bytes;
    place_operands(places, part_bits, &step);
    return step;
}

struct device_gpu_step plan_decoded(const struct device_gpu_request *request,
                                    const struct group_places *places, uint32_t part,
                                    uint32_t format, uint64_t tokens)
{
    const struct device_host_operand *weights = &request->operands[places->weights + part];
    struct device_gpu_step step = step_of(KERNEL_matmul_decoded,
                                          divide_up(rows_of(weights), TEAMS_OF_VALUES),
                                          divide_up(tokens, DECODED_TOKENS), VALUE_THREADS);
    step.words[1] = part;
    step.words[2] = format;
    place_operands(places, 1u << part, &step);
    return step;
}

/* ---- One token ------------------------------------------------------------------------------ */

/* Teams of a block. */
#define ONE_TEAMS_MOST 16u
/* Teams of a row that is not long. */
#define ONE_MEMBERS_FEW 2u
/* Groups of a ring that are waited for, where not all are. */
#define ONE_WAITED_FEW 2u

/* How the parts of a way are done for one token. */
struct one_cut {
    enum gpu_kernel kernel;
    uint32_t members; /* teams of a row */
    uint32_t teams;   /* of a block */
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
        return KERNEL_matmul_one_q4_k;
    case DTYPE_Q6_K_X8:
        return KERNEL_matmul_one_q6_k;
    case DTYPE_Q8_0_X8:
        return KERNEL_matmul_one_q8_0;
    case DTYPE_BF16:
        return KERNEL_matmul_one_bf16;
    default:
        return KERNEL_matmul_one_f16;
    }
}

/* Shared memory of a processor that is left for small kernels. */
#define ONE_SPARE_BYTES 24576u

uint32_t plan_cut_blocks(const struct device_host_operand *weights, uint32_t count,
                         uint32_t part_bits, uint32_t blocks, uint32_t first_blocks[3])
{
    uint64_t bytes[3] = { 0 }, all = 0, before = 0;
    uint32_t parts = 0, first = 0;
    for (uint32_t part = 0; part < count; part++) {
        if (!(part_bits >> part & 1))
            continue;
        bytes[part] = rows_of(&weights[part]) * weights[part].row_stride_bytes;
        all += bytes[part];
        parts++;
    }
    blocks = blocks < parts ? parts : blocks;
    for (uint32_t part = 0; part < 3; part++) {
        first_blocks[part] = first;
        if (bytes[part] == 0)
            continue;
        /* Each part has a block at least, and so do those behind it. */
        parts--;
        before += bytes[part];
        uint64_t end = before * blocks / all;
        end = end <= first ? first + 1 : end;
        end = end > blocks - parts ? blocks - parts : end;
        first = (uint32_t)end;
    }
    return blocks;
}

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
        most = each > most ? each : most;
    }
    return most;
}

/* How many blocks do a product. A product by itself does not take all processors if it need not: on
 * the others the next one begins, and asks for its weights meanwhile.
 *
 * Attention's output, with gate and up behind it, is short: half of the processors do it where
 * their rings hold it before its activations are there, two thirds where they hold most of it. And
 * no more blocks than are needed for the longest to have no more rows: that is down, whose 4,096
 * rows are 32 for each of 128 blocks. Not where parts are multiplied together: behind q, k and v
 * comes attention, which has no weights; gate and up keep all processors busy. */
static uint64_t one_blocks(const struct device_gpu_chip *chip, uint64_t groups, uint32_t parts,
                           uint64_t members, uint64_t slots)
{
    uint64_t all = chip->processor_count;
    if (parts != 1 || groups <= all)
        return groups < all ? groups : all;
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
        stage_bytes = bytes > stage_bytes ? bytes : stage_bytes;
        same = same && (k == 0 || weights[part].dtype == weights[first].dtype);
        groups += divide_up(rows_of(&weights[part]), rows);
        parts++;
        k = width_of(&weights[part]);
        first = part;
    }
    enum dtype dtype = weights[first].dtype;
    uint64_t members = divide_up(k, one_columns((uint32_t)dtype));
    const struct device_gpu_chip *chip = request->chip;
    uint64_t most = chip->thread_limit / TEAM;
    most = most < ONE_TEAMS_MOST ? most : ONE_TEAMS_MOST;
    uint64_t slots = members <= most ? most / members : 1;
    uint64_t blocks = one_blocks(chip, groups, parts, members, slots);
    if (members > most || groups / blocks > UINT32_MAX / 4096 ||
        (!same && gpu_pack_format(chip->features, dtype, k, 1) != PACK_LEVELS))
        return false;
    struct one_cut cut = { .kernel = same ? one_kernel(dtype) : KERNEL_matmul_one_levels,
                           .members = (uint32_t)members,
                           .blocks = (uint32_t)blocks,
                           .waited = ONE_STAGES - 1 };
    /* Gate and up begin behind a short product, on half of the processors when their activations
     * are nearly there: these need not wait for all of the ring, and q, k and v neither. Measured
     * for Q4_K, also beside others; Q8_0 loses by it where rows are short. */
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
    uint64_t teams = most / members * members;
    while (teams > members && teams * ring_bytes + sums > room)
        teams -= members;
    if (teams * ring_bytes + sums > chip->shared_bytes)
        return false;
    cut.teams = (uint32_t)teams;
    cut.ring_bytes = ring_bytes;
    cut.shared_bytes = (uint32_t)(teams * ring_bytes + sums);
    *ret_cut = cut;
    return true;
}

static struct device_gpu_step plan_one(const struct group_places *places, uint32_t part_bits,
                                       const struct one_cut *cut)
{
    struct device_gpu_step step = step_of(cut->kernel, cut->blocks, 1, cut->teams * TEAM);
    step.words[0] = cut->ring_bytes;
    step.words[1] = cut->members;
    step.words[2] = cut->first_blocks[1];
    step.words[3] = cut->first_blocks[2];
    step.words[4] = cut->waited;
    step.shared_bytes = cut->shared_bytes;
    place_operands(places, part_bits, &step);
    return step;
}

/* ---- Any product ---------------------------------------------------------------------------- */

/* One step for all parts of a way, but one for each that is decoded. */
static uint32_t plan_products(const struct device_gpu_request *request,
                              const struct group_places *places, struct device_gpu_step *steps)
{
    const struct device_host_operand *weights = &request->operands[places->weights];
    uint64_t tokens = rows_of(&request->operands[places->packed]);
    uint32_t bits[WAY_COUNT] = { 0 }, count = 0;
    if (tokens == 0)
        return 0;
    ASSERT(tokens <= GRID_Y_LIMIT);
    uint32_t first = 0;
    while (first + 1 < places->count && !weights[first].data)
        first++;
    /* All parts want the same packing. */
    uint32_t format = gpu_pack_format(request->chip->features, weights[first].dtype,
                                      width_of(&weights[first]), tokens);
    if (format != PACK_LEVELS && format != PACK_F32)
        return plan_many_products(request, places, format, steps);
    for (uint32_t part = 0; part < places->count; part++)
        if (weights[part].data && rows_of(&weights[part]) > 0)
            bits[way_of(&weights[part])] |= 1u << part;
    struct one_cut cut;
    if (tokens == 1 && bits[WAY_DIRECT] && cut_one(request, places, bits[WAY_DIRECT], &cut)) {
        steps[count++] = plan_one(places, bits[WAY_DIRECT], &cut);
        bits[WAY_DIRECT] = 0;
    }
    uint32_t few = tokens > 1 && bits[WAY_DIRECT]
                       ? plan_few(request, places, bits[WAY_DIRECT], &steps[count])
                       : 0;
    if (few) {
        bits[WAY_DIRECT] = 0;
        count += few;
    }
    for (enum product_way way = WAY_DIRECT; way <= WAY_RING; way++)
        if (bits[way])
            steps[count++] = plan_streamed(request, places, way, bits[way], tokens);
    for (uint32_t part = 0; part < places->count; part++)
        if (bits[WAY_DECODED] >> part & 1)
            steps[count++] = plan_decoded(request, places, part, format, tokens);
    return count;
}

static const struct group_places single_places = {
    .packed = 1, .weights = 0, .biases = 2, .outs = 3, .count = 1
};
static const struct group_places group_places = {
    .packed = 0, .weights = 1, .biases = 4, .outs = 7, .count = 3
};

uint32_t plan_matmul(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    return plan_products(request, &single_places, steps);
}

uint32_t plan_matmul_group(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    return plan_products(request, &group_places, steps);
}

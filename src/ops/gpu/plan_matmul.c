/* plan_matmul.c - how matrix products are done on a GPU, and what their weights and activations are
 * laid out as for them. */
#include "ops/gpu/gpu.h"

#include "ops/gpu/packing.h"
#include "ops/gpu/plan_impl.h"
#include "ops/gpu/tiling.h"
#include "tensor/quant.h"

#include <string.h>

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

uint32_t gpu_pack_format(enum dtype weight_dtype)
{
    bool own = matmul_is_direct(weight_dtype) || matmul_chunk_bytes(weight_dtype);
    return own && dtype_info(weight_dtype)->block_elements > 1 ? PACK_LEVELS : PACK_F32;
}

uint64_t gpu_packed_row_bytes(uint32_t format, uint64_t k)
{
    uint64_t bytes = format == PACK_LEVELS ? k + k / 32 * 8 : 4 * k;
    return (bytes + 15) / 16 * 16;
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

/* Where a group's operands stand in the launch. */
struct group_places {
    uint8_t packed, weights, biases, outs;
    uint32_t count;
};

/* Parts that are not in the set are absent for the kernel. */
static void place_operands(const struct group_places *places, uint32_t part_bits,
                           struct device_gpu_step *step)
{
    memset(step->operands, DEVICE_GPU_ABSENT, sizeof(step->operands));
    step->operands[0] = places->packed;
    for (uint8_t part = 0; part < places->count; part++) {
        if (!(part_bits >> part & 1))
            continue;
        step->operands[1 + part] = (uint8_t)(places->weights + part);
        step->operands[4 + part] = (uint8_t)(places->biases + part);
        step->operands[7 + part] = (uint8_t)(places->outs + part);
    }
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
    bool levels = gpu_pack_format(weights[first].dtype) == PACK_LEVELS;
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

static struct device_gpu_step plan_decoded(const struct device_gpu_request *request,
                                           const struct group_places *places, uint32_t part,
                                           uint64_t tokens)
{
    const struct device_host_operand *weights = &request->operands[places->weights + part];
    struct device_gpu_step step = step_of(KERNEL_matmul_decoded,
                                          divide_up(rows_of(weights), TEAMS_OF_VALUES),
                                          divide_up(tokens, DECODED_TOKENS), VALUE_THREADS);
    step.words[1] = part;
    place_operands(places, 1u << part, &step);
    return step;
}

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
    for (uint32_t part = 0; part < places->count; part++)
        if (weights[part].data && rows_of(&weights[part]) > 0)
            bits[way_of(&weights[part])] |= 1u << part;
    for (enum product_way way = WAY_DIRECT; way <= WAY_RING; way++)
        if (bits[way])
            steps[count++] = plan_streamed(request, places, way, bits[way], tokens);
    for (uint32_t part = 0; part < places->count; part++)
        if (bits[WAY_DECODED] >> part & 1)
            steps[count++] = plan_decoded(request, places, part, tokens);
    return count;
}

uint32_t plan_matmul(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct group_places places = {
        .packed = 1, .weights = 0, .biases = 2, .outs = 3, .count = 1
    };
    return plan_products(request, &places, steps);
}

uint32_t plan_matmul_group(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct group_places places = {
        .packed = 0, .weights = 1, .biases = 4, .outs = 7, .count = 3
    };
    return plan_products(request, &places, steps);
}

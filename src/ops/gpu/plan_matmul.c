/* plan_matmul.c - how matmuls are done on a GPU, and how their weights and activations are laid out
 * for that. The kernels that stream weights for a small batch, or decode them, are planned here;
 * one token, small and large batches on matrix units have files of their own. */
#include "ops/gpu/gpu.h"

#include "base/size.h"

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
    if (plan_wants_small_batch(features, weight_dtype, k, tokens))
        return PACK_QUANTS;
    if (plan_wants_lanes(features, weight_dtype, k, tokens))
        return PACK_LANES;
    if (plan_is_many(weight_dtype, k, tokens))
        return weight_dtype == DTYPE_BF16 ? PACK_BF16 : PACK_F16;
    bool own = matmul_is_direct(weight_dtype) || matmul_chunk_bytes(weight_dtype);
    return own && dtype_info(weight_dtype)->block_elements > 1 ? PACK_QUANTS : PACK_F32;
}

uint64_t gpu_packed_row_bytes(uint32_t format, uint64_t k)
{
    switch (format) {
    case PACK_QUANTS:
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

/* How a matmul is done. */
enum matmul_way { WAY_DIRECT, WAY_RING, WAY_DECODED, WAY_COUNT };

static enum matmul_way way_of(const struct device_host_operand *weights)
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

uint32_t plan_ring_warps(const struct device_gpu_chip *chip, uint32_t ring_bytes)
{
    uint32_t warps = WARPS_OF_VALUES;
    while (warps > 1 && warps * ring_bytes > chip->shared_bytes)
        warps /= 2;
    return warps;
}

/* Blocks of a processor: what its registers hold. */
#define BLOCKS_MOST 3u

/* Kernels for 1, 2, 4 and 8 tokens follow each other in kernels.def. */
#define IS_IN_ORDER(kind)                                                                          \
    (KERNEL_matmul_##kind##_2 == KERNEL_matmul_##kind##_1 + 1 &&                                   \
     KERNEL_matmul_##kind##_4 == KERNEL_matmul_##kind##_1 + 2 &&                                   \
     KERNEL_matmul_##kind##_8 == KERNEL_matmul_##kind##_1 + 3)
_Static_assert(IS_IN_ORDER(quants) && IS_IN_ORDER(floats), "plan_streamed counts from the first");

static struct device_gpu_step plan_streamed(const struct device_gpu_request *request,
                                            const struct group_places *places, enum matmul_way way,
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
        stage_bytes = max_u64(bytes, stage_bytes);
        groups += divide_up(rows_of(&weights[part]), MATMUL_ROWS);
        first = part;
    }
    uint32_t ring_bytes = MATMUL_STAGES * MATMUL_ROWS * stage_bytes;
    uint32_t warps = plan_ring_warps(chip, ring_bytes);
    uint32_t wide = tokens > 4 ? 3 : tokens > 2 ? 2 : tokens > 1 ? 1 : 0; /* log2 */
    bool quants = gpu_pack_format(chip->features, weights[first].dtype, width_of(&weights[first]),
                                  tokens) == PACK_QUANTS;
    enum gpu_kernel kernel = (quants ? KERNEL_matmul_quants_1 : KERNEL_matmul_floats_1) + wide;
    if (way == WAY_RING) {
        wide = tokens > 1 ? 3 : 0;
        kernel = wide ? KERNEL_matmul_ring_8 : KERNEL_matmul_ring_1;
    }
    uint64_t fitting = chip->processor_shared_bytes / (warps * ring_bytes + 1024);
    fitting = fitting > BLOCKS_MOST ? BLOCKS_MOST : fitting < 1 ? 1 : fitting;
    uint64_t most = fitting * chip->sm_count;
    uint64_t blocks = divide_up(groups, warps);
    struct device_gpu_step step = step_of(kernel, min_u64(blocks, most),
                                          divide_up(tokens, UINT64_C(1) << wide), warps * WARP);
    if (way == WAY_RING)
        set_matmul_ring_args(&step, (struct matmul_ring_args){ .row_bytes = stage_bytes });
    else
        set_matmul_args(&step, (struct matmul_args){ .ring_bytes = ring_bytes });
    step.shared_bytes = warps * ring_bytes;
    place_operands(places, part_bits, &step);
    return step;
}

struct device_gpu_step plan_decoded(const struct device_gpu_request *request,
                                    const struct group_places *places, uint32_t part,
                                    uint32_t format, uint64_t tokens)
{
    const struct device_host_operand *weights = &request->operands[places->weights + part];
    struct device_gpu_step step = step_of(KERNEL_matmul_decoded,
                                          divide_up(rows_of(weights), WARPS_OF_VALUES),
                                          divide_up(tokens, DECODED_TOKENS), VALUE_THREADS);
    set_matmul_decoded_args(&step, (struct matmul_decoded_args){ .part = part, .format = format });
    place_operands(places, 1u << part, &step);
    return step;
}

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
    blocks = max_u64(blocks, parts);
    for (uint32_t part = 0; part < 3; part++) {
        first_blocks[part] = first;
        if (bytes[part] == 0)
            continue;
        /* Each part has a block at least, and so do those that follow it. */
        parts--;
        before += bytes[part];
        uint64_t end = before * blocks / all;
        end = end <= first ? first + 1 : end;
        end = end > blocks - parts ? blocks - parts : end;
        first = (uint32_t)end;
    }
    return blocks;
}

/* ---- Any matmul ----------------------------------------------------------------------------- */

/* One step for all parts of a way, but one for each that is decoded. */
static uint32_t plan_parts(const struct device_gpu_request *request,
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
    if (format != PACK_QUANTS && format != PACK_F32)
        return plan_large_batch(request, places, format, steps);
    for (uint32_t part = 0; part < places->count; part++)
        if (weights[part].data && rows_of(&weights[part]) > 0)
            bits[way_of(&weights[part])] |= 1u << part;
    if (bits[WAY_DIRECT]) {
        count = tokens == 1 ? plan_1tok(request, places, bits[WAY_DIRECT], steps)
                            : plan_small_batch(request, places, bits[WAY_DIRECT], steps);
        bits[WAY_DIRECT] = count ? 0 : bits[WAY_DIRECT];
    }
    for (enum matmul_way way = WAY_DIRECT; way <= WAY_RING; way++)
        if (bits[way])
            steps[count++] = plan_streamed(request, places, way, bits[way], tokens);
    for (uint32_t part = 0; part < places->count; part++)
        if (bits[WAY_DECODED] >> part & 1)
            steps[count++] = plan_decoded(request, places, part, format, tokens);
    return count;
}

static const struct group_places single_places = { .packed = MATMUL_PACKED,
                                                   .weights = MATMUL_WEIGHTS,
                                                   .biases = MATMUL_BIAS,
                                                   .outs = MATMUL_OUT,
                                                   .count = 1 };
static const struct group_places group_places = { .packed = MATMUL_GROUP_PACKED,
                                                  .weights = MATMUL_GROUP_WEIGHTS,
                                                  .biases = MATMUL_GROUP_BIASES,
                                                  .outs = MATMUL_GROUP_OUTS,
                                                  .count = MATMUL_GROUP_PARTS };

uint32_t plan_matmul(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    return plan_parts(request, &single_places, steps);
}

uint32_t plan_matmul_group(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    return plan_parts(request, &group_places, steps);
}

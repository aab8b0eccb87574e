/* plan_attention.c - how attention is done: tiles of many tokens of a sequence or a block for each
 * token and kv head, on matrix units (attention_tiles.c, attention_apart.c), else blocks that share
 * a token's slots (attention.c), as always with a window, a cap or sinks. */
#include "ops/gpu/packing.h"

#include "base/size.h"
#include "ops/gpu/plan_impl.h"
#include "ops/gpu/tiling.h"
#include "ops/params.h"

bool plan_is_masked(const struct device_gpu_request *request)
{
    const struct params_attention *params = request->params;
    return params->window != 0 || params->cap != 0 || request->operands[ATTENTION_SINKS].data;
}

#define ATTENTION_PARTS_MOST 32u
#define ATTENTION_SLOTS_LEAST 64u

static bool is_aligned_f16(const struct device_host_operand *cache)
{
    return cache->dtype == DTYPE_F16 && is_aligned(cache);
}

/* Tokens from which on tiles are worth it: two of them. */
#define ATTENTION_TILES_LEAST 2u

/* Whether tiles on matrix units can do it, and are worth it. */
static bool has_attention_tiles(const struct device_gpu_request *request)
{
    const struct params_attention *params = request->params;
    const struct device_host_operand *q = &request->operands[ATTENTION_Q],
                                     *keys = &request->operands[ATTENTION_KEYS];
    uint64_t group = width_of(q) / width_of(keys);
    return request->chip->features & DEVICE_GPU_WARP_MATRIX && params->same_sequence &&
           (params->head_dim == 64 || params->head_dim == 128) && group <= 16 &&
           rows_of(q) * group >= ATTENTION_TILES_LEAST * ATTENTION_ROWS && is_aligned_f16(keys) &&
           is_aligned_f16(&request->operands[ATTENTION_VALUES]);
}

static struct device_gpu_step plan_attention_tiles(const struct device_gpu_request *request)
{
    const struct params_attention *params = request->params;
    const struct device_host_operand *q = &request->operands[ATTENTION_Q],
                                     *keys = &request->operands[ATTENTION_KEYS];
    uint64_t tile_tokens = ATTENTION_ROWS / (width_of(q) / width_of(keys));
    uint64_t tiles = divide_up(rows_of(q), tile_tokens);
    struct device_gpu_step step = step_of(
        params->head_dim == 128 ? KERNEL_attention_tiles_128 : KERNEL_attention_tiles_64,
        width_of(keys) / params->head_dim, tiles, ATTENTION_THREADS);
    set_attention_tiles_args(&step, (struct attention_tiles_args){ .tiles = (uint32_t)tiles });
    /* Two chunks of keys and values, and the queries, all halves. */
    step.shared_bytes = (2 * 2 * ATTENTION_SLOTS + ATTENTION_ROWS) * params->head_dim * 2;
    return step;
}

/* Whether a block for each token and kv head can do it, and is worth it: blocks for most
 * processors. Measured on sm_90a, and left to it.
 */
static bool has_attention_apart(const struct device_gpu_request *request)
{
    const struct params_attention *params = request->params;
    const struct device_gpu_chip *chip = request->chip;
    const struct device_host_operand *q = &request->operands[ATTENTION_Q],
                                     *keys = &request->operands[ATTENTION_KEYS];
    uint64_t kv_heads = width_of(keys) / params->head_dim;
    return chip->features & DEVICE_GPU_WARPGROUPS && rows_of(q) > 1 &&
           (params->head_dim == 64 || params->head_dim == 128) &&
           width_of(q) / width_of(keys) <= APART_GROUP_MOST && is_aligned(q) &&
           is_aligned(&request->operands[ATTENTION_OUT]) && is_aligned_f16(keys) &&
           is_aligned_f16(&request->operands[ATTENTION_VALUES]) &&
           4 * rows_of(q) * kv_heads >= 3 * (uint64_t)chip->sm_count;
}

/* packs: the blocks write the packed rows as well. */
static struct device_gpu_step plan_attention_apart(const struct device_gpu_request *request,
                                                   bool packs)
{
    const struct params_attention *params = request->params;
    const struct device_host_operand *q = &request->operands[ATTENTION_Q],
                                     *keys = &request->operands[ATTENTION_KEYS];
    uint64_t kv_heads = width_of(keys) / params->head_dim, blocks = rows_of(q) * kv_heads;
    /* 16 warps a processor, in blocks of four, or of eight where those are few. */
    uint32_t warps = blocks > 3 * (uint64_t)request->chip->sm_count ? 4 : 8;
    struct device_gpu_step step = step_of(params->head_dim == 128 ? KERNEL_attention_apart_128
                                                                  : KERNEL_attention_apart_64,
                                          kv_heads, rows_of(q), warps * WARP);
    if (packs)
        set_attention_apart_args(
            &step, (struct attention_apart_args){ .packs = 1, .format = params->packing.format });
    step.shared_bytes = warps * apart_warp_floats(params->head_dim) * (uint32_t)sizeof(float);
    return step;
}

static enum gpu_kernel parts_kernel(const struct device_gpu_request *request, uint64_t heads)
{
    const struct params_attention *params = request->params;
    bool f16 = is_aligned_f16(&request->operands[ATTENTION_KEYS]) &&
               is_aligned_f16(&request->operands[ATTENTION_VALUES]);
    bool masked = plan_is_masked(request);
    if (params->head_dim > 256)
        return masked ? KERNEL_attention_masked_512 : KERNEL_attention_1_large_head;
    if (params->head_dim > 128)
        return f16 ? KERNEL_attention_masked_256_f16 : KERNEL_attention_masked_256;
    if (masked)
        return f16 ? KERNEL_attention_masked_128_f16 : KERNEL_attention_masked_128;
    if (f16)
        return heads == 1 ? KERNEL_attention_1_head_f16 : KERNEL_attention_4_heads_f16;
    return heads == 1 ? KERNEL_attention_1_head : KERNEL_attention_4_heads;
}

static struct device_gpu_step plan_attention_parts(const struct device_gpu_request *request,
                                                   bool packs)
{
    const struct params_attention *params = request->params;
    const struct device_host_operand *q = &request->operands[ATTENTION_Q],
                                     *keys = &request->operands[ATTENTION_KEYS];
    uint64_t tokens = rows_of(q), kv_heads = width_of(keys) / params->head_dim;
    uint64_t group = width_of(q) / width_of(keys);
    /* Heads that share a block share what it reads of the cache; where blocks are few, a head each
     * is faster: the time goes into steps one after the other, not into reading. */
    uint64_t most_blocks = 8 * (uint64_t)request->chip->sm_count;
    bool shared = params->head_dim <= 128 && !plan_is_masked(request) && group > 1 &&
                  tokens * kv_heads * group >= most_blocks;
    uint64_t heads = shared ? ATTENTION_HEADS_MOST : 1;
    uint64_t sets = divide_up(group, heads), units = tokens * kv_heads * sets;
    /* Two blocks for each processor, but no part too small to be worth one. */
    uint64_t parts = divide_up(2 * (uint64_t)request->chip->sm_count, units);
    uint64_t slots = rows_of(keys);
    if (params->window)
        slots = min_u64(slots, params->window);
    uint64_t most = slots / ATTENTION_SLOTS_LEAST;
    most = most < 1 ? 1 : most > ATTENTION_PARTS_MOST ? ATTENTION_PARTS_MOST : most;
    parts = min_u64(parts, most);
    uint64_t part_bytes = heads * (params->head_dim + 2) * sizeof(float);
    if (units * sizeof(uint32_t) > GPU_COUNTER_BYTES ||
        units * parts * part_bytes > GPU_WORKSPACE_BYTES - GPU_COUNTER_BYTES)
        parts = 1;
    struct device_gpu_step step = step_of(parts_kernel(request, heads), parts * sets * kv_heads,
                                          tokens, ATTENTION_THREADS);
    set_attention_share_args(&step, (struct attention_share_args){ .parts = (uint32_t)parts,
                                                                   .sets = (uint32_t)sets,
                                                                   .packs = packs });
    step.shared_bytes = attention_shared_floats((uint32_t)heads, params->head_dim) *
                        (uint32_t)sizeof(float);
    return step;
}

uint32_t plan_attention(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct params_attention *params = request->params;
    const struct device_host_operand *q = &request->operands[ATTENTION_Q];
    if (rows_of(q) == 0)
        return 0;
    ASSERT(rows_of(q) <= GRID_Y_LIMIT);
    const struct device_host_operand *packed = &request->operands[ATTENTION_PACKED];
    bool masked = plan_is_masked(request);
    bool tiles = !masked && has_attention_tiles(request);
    bool apart = !masked && !tiles && has_attention_apart(request);
    bool halves = packed->data && pack_is_halves(params->packing.format);
    bool packs = false; /* in the same step */
    if (apart)
        packs = halves && is_aligned(packed) && rows_of(q) * sizeof(uint32_t) <= GPU_COUNTER_BYTES;
    else if (!tiles) /* warps have whole blocks of packed values */
        packs = packed->data && !halves && params->head_dim % WARP == 0;
    steps[0] = tiles   ? plan_attention_tiles(request)
               : apart ? plan_attention_apart(request, packs)
                       : plan_attention_parts(request, packs);
    if (!packed->data || packs)
        return 1;
    if (halves) {
        steps[1] = plan_halves(ATTENTION_OUT, ATTENTION_PACKED, params->packing.format, rows_of(q));
        return 2;
    }
    plan_values(KERNEL_attention_pack, width_of(q), rows_of(q), &steps[1]);
    steps[1].operands[ACT_PACK_X] = ATTENTION_OUT;
    steps[1].operands[ACT_PACK_PACKED] = ATTENTION_PACKED;
    return 2;
}

/* plan_large_batch.c - how matmuls of a large batch are done: on matrix units, over rows packed as
 * halves.
 *
 * Few enough tokens for weights to be read once: tiles that unpack them as they go (to registers,
 * plan_lanes.c, which wants rows in an order of its own, or to shared memory). Many more: tiles of
 * a warpgroup where the chip has them, over halves, which are unpacked first, a chunk at a time
 * that stays in the chip's cache. What fits none of these is decoded value by value. */
#include "ops/gpu/gpu.h"

#include "base/size.h"

#include "ops/gpu/packing.h"
#include "ops/gpu/plan_impl.h"
#include "ops/gpu/tiling.h"

/* From how many tokens on unpacking weights first pays. */
#define WARPGROUP_TOKENS_FROM 384u
/* Bytes of unpacked weights at a time: with activations they stay in the cache. */
#define CHUNK_BYTES (UINT64_C(32) << 20)
#define CHUNK_BYTES_MOST (GPU_WORKSPACE_BYTES - GPU_COUNTER_BYTES)
/* Splits of k of a tile at most; each is worth at least so many values. */
#define SPLITS_MOST 16u
#define SPLIT_K_LEAST 512u

_Static_assert(KERNEL_matmul_quant_tiles_64 == KERNEL_matmul_quant_tiles_128 + 1 &&
                   KERNEL_matmul_half_tiles_64 == KERNEL_matmul_half_tiles_128 + 1,
               "the kernel for tiles of 64 rows is the next");

bool plan_is_many(enum dtype weight_dtype, uint64_t k, uint64_t tokens)
{
    /* F32 stays with sums of f32. */
    return tokens > MATMUL_TOKENS && k >= 64 && k % 64 == 0 && k < UINT32_MAX / 1024 &&
           weight_dtype != DTYPE_F32 && gpu_can_multiply(weight_dtype);
}

/* Halves as they are. */
static bool is_halves(const struct device_host_operand *weights)
{
    return (weights->dtype == DTYPE_F16 || weights->dtype == DTYPE_BF16) && is_aligned(weights);
}

/* ---- Tiles ---------------------------------------------------------------------------------- */

static uint32_t quant_tile_bytes(uint32_t tile_rows, uint32_t raw_bytes)
{
    return TILE_ACT_STAGES * TILE_ACT_BYTES + 2 * tile_rows * (128 + raw_bytes);
}

static uint32_t half_tile_bytes(uint32_t tile_rows)
{
    return TILE_HALF_STAGES * (TILE_ACT_BYTES + tile_rows * 128);
}

/* Rows of a tile whose memory a block can have; 0: none. */
static uint32_t quant_tile_rows(const struct device_gpu_chip *chip, uint32_t raw_bytes)
{
    if (raw_bytes == 0)
        return 0;
    if (quant_tile_bytes(128, raw_bytes) <= chip->shared_bytes)
        return 128;
    return quant_tile_bytes(64, raw_bytes) <= chip->shared_bytes ? 64 : 0;
}

static uint32_t half_tile_rows(const struct device_gpu_chip *chip)
{
    return half_tile_bytes(128) <= chip->shared_bytes ? 128 : 64;
}

/* Splits k so that all processors have a block or two. */
static struct matmul_tiles_args split(const struct device_gpu_chip *chip, uint64_t k,
                                      uint64_t blocks, uint32_t tile_rows)
{
    uint64_t splits = 2 * (uint64_t)chip->sm_count / blocks;
    uint64_t most = k / SPLIT_K_LEAST < SPLITS_MOST ? k / SPLIT_K_LEAST : SPLITS_MOST;
    splits = min_u64(splits, most);
    uint64_t bytes = blocks * splits * tile_rows * TILE_TOKENS_WIDE * sizeof(float);
    if (splits < 1 || bytes > CHUNK_BYTES_MOST || blocks * sizeof(uint32_t) > GPU_COUNTER_BYTES)
        splits = 1;
    uint64_t each = splits > 1 ? divide_up(k / 64, 4 * splits) * 256 : k;
    return (struct matmul_tiles_args){ .splits = (uint32_t)divide_up(k, each),
                                       .split_k = (uint32_t)each };
}

/* One step for the parts of part_bits, all quants or all halves. */
static struct device_gpu_step plan_tiles(const struct device_gpu_request *request,
                                         const struct group_places *places, uint32_t part_bits,
                                         bool quants, uint64_t tokens)
{
    const struct device_host_operand *weights = &request->operands[places->weights];
    uint32_t raw_bytes = 0;
    uint64_t tiles = 0, k = 0;
    for (uint32_t part = 0; part < places->count; part++) {
        uint32_t bytes = part_bits >> part & 1 ? tile_raw_bytes((uint32_t)weights[part].dtype) : 0;
        raw_bytes = max_u64(bytes, raw_bytes);
    }
    uint32_t tile_rows = quants ? quant_tile_rows(request->chip, raw_bytes)
                                : half_tile_rows(request->chip);
    ASSERT(tile_rows > 0); /* parts without such tiles are not among them */
    for (uint32_t part = 0; part < places->count; part++) {
        if (!(part_bits >> part & 1))
            continue;
        tiles += divide_up(rows_of(&weights[part]), tile_rows);
        k = width_of(&weights[part]);
    }
    enum gpu_kernel kernel = quants ? KERNEL_matmul_quant_tiles_128 : KERNEL_matmul_half_tiles_128;
    struct device_gpu_step step = step_of(kernel + (tile_rows == 64), tiles,
                                          divide_up(tokens, TILE_TOKENS_WIDE), TILE_THREADS);
    step.shared_bytes = quants ? quant_tile_bytes(tile_rows, raw_bytes)
                               : half_tile_bytes(tile_rows);
    struct matmul_tiles_args args = split(request->chip, k, tiles * step.grid_y, tile_rows);
    set_matmul_tiles_args(&step, args);
    step.grid_x *= args.splits;
    place_operands(places, part_bits, &step);
    return step;
}

/* ---- Chunks of unpacked weights ------------------------------------------------------------- */

static uint64_t chunk_rows(uint64_t k, uint64_t bytes)
{
    uint64_t rows = bytes / (2 * k) < GRID_Y_LIMIT ? bytes / (2 * k) : GRID_Y_LIMIT;
    return rows / WARPGROUP_WEIGHTS * WARPGROUP_WEIGHTS;
}

static struct device_gpu_step plan_unpack(const struct group_places *places, uint32_t part,
                                          const struct device_host_operand *weights, uint64_t first,
                                          uint64_t rows)
{
    uint32_t unit = UNPACK_UNIT(weights->dtype);
    struct device_gpu_step step = step_of(KERNEL_unpack_halves,
                                          divide_up(width_of(weights) / unit, VALUE_THREADS), rows,
                                          VALUE_THREADS);
    step.operands[UNPACK_WEIGHTS] = (uint8_t)(places->weights + part);
    set_unpack_args(&step,
                    (struct unpack_args){ .first_row = (uint32_t)first, .rows = (uint32_t)rows });
    return step;
}

/* The product of `rows` rows of one part, which are in the workspace or halves as they are. */
static struct device_gpu_step plan_chunk(const struct device_gpu_request *request,
                                         const struct group_places *places, uint32_t part,
                                         uint64_t first, uint64_t rows, bool unpacked)
{
    const struct device_host_operand *weights = &request->operands[places->weights + part];
    const struct device_host_operand *out = &request->operands[places->outs + part];
    uint64_t tokens = rows_of(&request->operands[places->packed]);
    if (request->chip->features & DEVICE_GPU_WARPGROUPS && tokens >= WARPGROUP_TOKENS_FROM) {
        uint64_t token_tiles = divide_up(tokens, WARPGROUP_TOKENS);
        struct device_gpu_step step = step_of(
            weights->dtype == DTYPE_BF16 ? KERNEL_matmul_warpgroup_bf16
                                         : KERNEL_matmul_warpgroup_f16,
            token_tiles * divide_up(rows, WARPGROUP_WEIGHTS), 1, VALUE_THREADS);
        step.operands[MATMUL_WARPGROUP_PACKED] = places->packed;
        step.operands[MATMUL_WARPGROUP_WEIGHTS] = (uint8_t)(places->weights + part);
        step.operands[MATMUL_WARPGROUP_BIAS] = (uint8_t)(places->biases + part);
        step.operands[MATMUL_WARPGROUP_OUT] = (uint8_t)(places->outs + part);
        bool pairs = ((uint64_t)(uintptr_t)out->data | out->row_stride_bytes) % 8 == 0;
        set_matmul_warpgroup_args(
            &step, (struct matmul_warpgroup_args){ .token_tiles = (uint32_t)token_tiles,
                                                   .first_row = (uint32_t)first,
                                                   .rows = (uint32_t)rows,
                                                   .unpacked = unpacked,
                                                   .stores_pairs = pairs });
        step.shared_bytes = WARPGROUP_STAGES * WARPGROUP_STAGE_BYTES;
        return step;
    }
    uint32_t tile_rows = half_tile_rows(request->chip);
    struct device_gpu_step step = step_of(KERNEL_matmul_half_tiles_128 + (tile_rows == 64),
                                          divide_up(rows, tile_rows),
                                          divide_up(tokens, TILE_TOKENS_WIDE), TILE_THREADS);
    step.shared_bytes = half_tile_bytes(tile_rows);
    place_operands(places, 1u << part, &step);
    set_matmul_tiles_args(&step, (struct matmul_tiles_args){ .splits = 1,
                                                             .split_k = (uint32_t)width_of(weights),
                                                             .first_row = (uint32_t)first,
                                                             .rows = (uint32_t)rows,
                                                             .unpacked = unpacked });
    return step;
}

/* Steps for one part; 0: they would be too many, or a chunk too small. */
static uint32_t plan_chunks(const struct device_gpu_request *request,
                            const struct group_places *places, uint32_t part, uint32_t room,
                            struct device_gpu_step *steps)
{
    const struct device_host_operand *weights = &request->operands[places->weights + part];
    uint64_t rows = rows_of(weights), k = width_of(weights), each = chunk_rows(k, CHUNK_BYTES);
    uint32_t count = 0;
    if (is_halves(weights)) {
        steps[0] = plan_chunk(request, places, part, 0, rows, false);
        return 1;
    }
    if (each == 0 || 2 * divide_up(rows, each) > room)
        each = chunk_rows(k, CHUNK_BYTES_MOST);
    if (each == 0 || 2 * divide_up(rows, each) > room)
        return 0;
    for (uint64_t first = 0; first < rows; first += each) {
        uint64_t now = rows - first < each ? rows - first : each;
        steps[count++] = plan_unpack(places, part, weights, first, now);
        steps[count++] = plan_chunk(request, places, part, first, now, true);
    }
    return count;
}

/* ---- All of it ------------------------------------------------------------------------------ */

/* For rows packed in the order of lanes; a type without a kernel for them is decoded. */
static uint32_t plan_lane_parts(const struct device_gpu_request *request,
                                const struct group_places *places, uint64_t tokens,
                                struct device_gpu_step *steps)
{
    const struct device_host_operand *weights = &request->operands[places->weights];
    uint32_t lanes = 0, count = 0;
    for (uint32_t part = 0; part < places->count; part++) {
        if (!weights[part].data || rows_of(&weights[part]) == 0)
            continue;
        if (plan_has_lanes(request, &weights[part]))
            lanes |= 1u << part;
        else
            steps[count++] = plan_decoded(request, places, part, PACK_LANES, tokens);
    }
    if (lanes)
        steps[count++] = plan_lanes(request, places, lanes, tokens);
    return count;
}

uint32_t plan_large_batch(const struct device_gpu_request *request,
                          const struct group_places *places, uint32_t format,
                          struct device_gpu_step *steps)
{
    const struct device_host_operand *weights = &request->operands[places->weights];
    uint64_t tokens = rows_of(&request->operands[places->packed]);
    if (format == PACK_LANES)
        return plan_lane_parts(request, places, tokens, steps);
    bool wide = request->chip->features & DEVICE_GPU_WARPGROUPS && tokens >= WARPGROUP_TOKENS_FROM;
    uint32_t quants = 0, halves = 0, others = 0, count = 0;
    for (uint32_t part = 0; part < places->count; part++) {
        if (!weights[part].data || rows_of(&weights[part]) == 0)
            continue;
        uint32_t raw_bytes = tile_raw_bytes((uint32_t)weights[part].dtype);
        if (!wide && is_aligned(&weights[part]) && quant_tile_rows(request->chip, raw_bytes))
            quants |= 1u << part;
        else if (!wide && is_halves(&weights[part]))
            halves |= 1u << part;
        else
            others |= 1u << part;
    }
    if (quants)
        steps[count++] = plan_tiles(request, places, quants, true, tokens);
    if (halves)
        steps[count++] = plan_tiles(request, places, halves, false, tokens);
    for (uint32_t part = 0; part < places->count; part++) {
        if (!(others >> part & 1))
            continue;
        /* The parts that follow have room for a step each. */
        uint32_t room = DEVICE_GPU_STEP_LIMIT - count - places->count;
        uint32_t more = plan_chunks(request, places, part, room, steps + count);
        if (more == 0)
            steps[count + more++] = plan_decoded(request, places, part, format, tokens);
        count += more;
    }
    return count;
}

/* backend_gpu.c - weights and packed rows on GPUs, where the plan cuts a launch into blocks. */
#include "ops/backend.h"
#include "ops/gpu/gpu.h"

static uint32_t gpu_ops_pack_format(const struct ops *ops, enum dtype weight_dtype, uint64_t k,
                                    uint64_t tokens)
{
    return gpu_pack_format(device_info(ops->device)->gpu_features, weight_dtype, k, tokens);
}

/* The plan cuts a launch into blocks; a GPU does not look at tiles. */
#define GPU_TILE_ROWS 64u
#define GPU_TILE_TOKENS 256u

static struct params_matmul gpu_cut_matmul(const struct ops *ops, enum dtype weight_dtype,
                                           uint64_t k, uint64_t tokens)
{
    struct params_matmul params = { .tile_rows = GPU_TILE_ROWS, .tile_tokens = GPU_TILE_TOKENS };
    if (k <= UINT32_MAX / 4 && gpu_can_multiply(weight_dtype))
        params.packed_row_bytes = (uint32_t)ops_packed_row_bytes(ops, weight_dtype, k, tokens);
    return params;
}

static bool gpu_attention_packs(uint32_t format, uint64_t group_width)
{
    (void)format, (void)group_width;
    return true;
}

const struct ops_backend ops_gpu_backend = {
    .weight_dtype = gpu_weight_dtype,
    .pack_format = gpu_ops_pack_format,
    .packed_row_bytes = gpu_packed_row_bytes,
    .cut_matmul = gpu_cut_matmul,
    .attention_packs = gpu_attention_packs,
};

/* backend_host.c - weights, packed rows and tiles on the host. */
#include "ops/backend.h"
#include "ops/host/kernels.h"
#include "ops/host/matmul.h"

static enum dtype host_weight_dtype(enum dtype dtype, uint64_t k)
{
    (void)k;
    return dtype;
}

static uint32_t host_pack_format(const struct ops *ops, enum dtype weight_dtype, uint64_t k,
                                 uint64_t tokens)
{
    (void)k, (void)tokens;
    const struct host_matmul_kernel *kernel = host_matmul_kernel(ops->host_path, weight_dtype);
    ASSERT(kernel);
    return (uint32_t)kernel->act_format;
}

static uint64_t host_packed_row_bytes(uint32_t format, uint64_t k)
{
    return host_act_row_bytes((enum host_act_format)format, (size_t)k);
}

/* Weight bytes that a tile reads: the smallest unit of work at the end of a launch, when runs are
 * short; few enough that a slow core delays little. */
#define FEW_TILE_BYTES 16384u
/* The kernels prefetch the next rows while they compute; in shorter tiles that is not faster. */
#define FEW_TILE_ROWS_MIN 8u
/* Output rows and tokens of a tile of a large batch: the packed tokens stay in the core's cache
 * while all weight rows of the tile pass by. */
#define MANY_TILE_ROWS 64u
#define MANY_TILE_TOKENS 256u

static struct params_matmul host_cut_matmul(const struct ops *ops, enum dtype weight_dtype,
                                            uint64_t k, uint64_t tokens)
{
    struct params_matmul params = { .tile_rows = MANY_TILE_ROWS, .tile_tokens = MANY_TILE_TOKENS };
    uint64_t row_bytes;
    const struct host_matmul_kernel *kernel = host_matmul_kernel(ops->host_path, weight_dtype);
    /* Refused by the contract, whose packed rows cannot be 0 bytes long. */
    if (!kernel || !dtype_row_bytes(weight_dtype, k, &row_bytes) || row_bytes == 0 ||
        k > UINT32_MAX / 4 || host_matmul_scratch_bytes(kernel, (size_t)k) > DEVICE_SCRATCH_BYTES)
        return params;
    params.packed_row_bytes = (uint32_t)ops_packed_row_bytes(ops, weight_dtype, k, tokens);
    if (tokens >= kernel->many_rows_from)
        return params;
    uint64_t rows = FEW_TILE_BYTES / row_bytes / 4 * 4;
    params.tile_rows = rows < FEW_TILE_ROWS_MIN ? FEW_TILE_ROWS_MIN
                       : rows > 256             ? 256
                                                : (uint32_t)rows;
    params.tile_tokens = (uint32_t)kernel->many_rows_from;
    return params;
}

/* A tile packs what it computes, if that is whole blocks. */
static bool host_attention_packs(uint32_t format, uint64_t group_width)
{
    return group_width > 0 &&
           host_act_can_pack_part((enum host_act_format)format, (size_t)group_width);
}

const struct ops_backend ops_host_backend = {
    .weight_dtype = host_weight_dtype,
    .pack_format = host_pack_format,
    .packed_row_bytes = host_packed_row_bytes,
    .cut_matmul = host_cut_matmul,
    .attention_packs = host_attention_packs,
};

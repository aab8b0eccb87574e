/* images.c - which kernel does which op on which path. Where a path has none of its own, it takes
 * that of a path before it. */
#include "ops/host/kernels.h"

#include "base/status.h"
#include "ops/host/matmul_tiles.h"

/* Matrix products take runs of tiles and have weights to fetch early. */
#define MATMUL(kernel)                                                                             \
    {                                                                                              \
        .op = "matmul", .host = (kernel), .takes_runs = true, .reads = host_matmul_reads           \
    }
#define MATMUL_GROUP(kernel)                                                                       \
    {                                                                                              \
        .op = "matmul_group", .host = (kernel), .takes_runs = true,                                \
        .reads = host_matmul_group_reads                                                           \
    }

static const struct device_kernel_entry portable_entries[] = {
    { .op = "embed", .host = host_embed_tile },
    { .op = "rms_norm", .host = host_rms_norm_tile_portable },
    { .op = "head_norm", .host = host_head_norm_tile_portable },
    { .op = "act_pack", .host = host_act_pack_tile },
    MATMUL(host_matmul_run_portable),
    MATMUL_GROUP(host_matmul_group_run_portable),
    { .op = "rope_table", .host = host_rope_table_tile },
    { .op = "rope", .host = host_rope_tile },
    { .op = "kv_append", .host = host_kv_append_tile_portable },
    { .op = "attention", .host = host_attention_tile_portable },
    { .op = "swiglu", .host = host_swiglu_tile_portable },
    { .op = "add", .host = host_add_tile },
    { .op = "gather_rows", .host = host_gather_rows_tile },
    { .op = "argmax", .host = host_argmax_tile },
    { .op = "top_k", .host = host_top_k_tile },
};

#if defined(__x86_64__)

static const struct device_kernel_entry avx2_entries[] = {
    { .op = "embed", .host = host_embed_tile },
    { .op = "rms_norm", .host = host_rms_norm_tile_avx2 },
    { .op = "head_norm", .host = host_head_norm_tile_avx2 },
    { .op = "act_pack", .host = host_act_pack_tile },
    MATMUL(host_matmul_run_avx2),
    MATMUL_GROUP(host_matmul_group_run_avx2),
    { .op = "rope_table", .host = host_rope_table_tile },
    { .op = "rope", .host = host_rope_tile },
    { .op = "kv_append", .host = host_kv_append_tile_avx2 },
    { .op = "attention", .host = host_attention_tile_avx2 },
    { .op = "swiglu", .host = host_swiglu_tile_avx2 },
    { .op = "add", .host = host_add_tile },
    { .op = "gather_rows", .host = host_gather_rows_tile },
    { .op = "argmax", .host = host_argmax_tile },
    { .op = "top_k", .host = host_top_k_tile },
};

static const struct device_kernel_entry avx512_entries[] = {
    { .op = "embed", .host = host_embed_tile },
    { .op = "rms_norm", .host = host_rms_norm_tile_avx512 },
    { .op = "head_norm", .host = host_head_norm_tile_avx512 },
    { .op = "act_pack", .host = host_act_pack_tile },
    MATMUL(host_matmul_run_avx512),
    MATMUL_GROUP(host_matmul_group_run_avx512),
    { .op = "rope_table", .host = host_rope_table_tile },
    { .op = "rope", .host = host_rope_tile },
    { .op = "kv_append", .host = host_kv_append_tile_avx2 },
    { .op = "attention", .host = host_attention_tile_avx512 },
    { .op = "swiglu", .host = host_swiglu_tile_avx512 },
    { .op = "add", .host = host_add_tile },
    { .op = "gather_rows", .host = host_gather_rows_tile },
    { .op = "argmax", .host = host_argmax_tile },
    { .op = "top_k", .host = host_top_k_tile },
};

#endif

static const struct device_image images[] = {
    [CPU_PATH_PORTABLE] = { portable_entries, COUNT_OF(portable_entries) },
#if defined(__x86_64__)
    [CPU_PATH_AVX2] = { avx2_entries, COUNT_OF(avx2_entries) },
    [CPU_PATH_AVX512] = { avx512_entries, COUNT_OF(avx512_entries) },
#endif
};

const struct device_image *host_kernels_image(enum cpu_path path)
{
    ASSERT((unsigned)path < CPU_PATH_COUNT);
    return &images[path];
}

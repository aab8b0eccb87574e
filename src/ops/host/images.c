/* images.c - the kernel of each op on each path. A path without a kernel of its own uses that of a
 * path before it. */
#include "ops/host/kernels.h"

#include "base/status.h"
#include "ops/contract.h"
#include "ops/host/matmul_tiles.h"

/* A matmul takes runs of tiles and prefetches weights. */
#define MATMUL(kernel)                                                                             \
    {                                                                                              \
        .contract = &ops_contracts[OPS_MATMUL], .host = (kernel), .takes_runs = true,              \
        .reads = host_matmul_reads                                                                 \
    }
#define MATMUL_GROUP(kernel)                                                                       \
    {                                                                                              \
        .contract = &ops_contracts[OPS_MATMUL_GROUP], .host = (kernel), .takes_runs = true,        \
        .reads = host_matmul_group_reads                                                           \
    }
/* Which weights it reads, an earlier launch decides: there is nothing to prefetch. */
#define MATMUL_EXPERTS(kernel)                                                                     \
    {                                                                                              \
        .contract = &ops_contracts[OPS_MATMUL_EXPERTS], .host = (kernel), .takes_runs = true       \
    }

static const struct device_kernel_entry portable_entries[] = {
    { .contract = &ops_contracts[OPS_EMBED], .host = host_embed_tile },
    { .contract = &ops_contracts[OPS_RMS_NORM], .host = host_rms_norm_tile_portable },
    { .contract = &ops_contracts[OPS_HEAD_NORM], .host = host_head_norm_tile_portable },
    { .contract = &ops_contracts[OPS_LAYER_NORM], .host = host_layer_norm_tile },
    { .contract = &ops_contracts[OPS_ACT_PACK], .host = host_act_pack_tile },
    MATMUL(host_matmul_run_portable),
    MATMUL_GROUP(host_matmul_group_run_portable),
    { .contract = &ops_contracts[OPS_ROPE_TABLE], .host = host_rope_table_tile },
    { .contract = &ops_contracts[OPS_ROPE], .host = host_rope_tile },
    { .contract = &ops_contracts[OPS_KV_APPEND], .host = host_kv_append_tile_portable },
    { .contract = &ops_contracts[OPS_ATTENTION], .host = host_attention_tile_portable },
    { .contract = &ops_contracts[OPS_SWIGLU], .host = host_swiglu_tile_portable },
    { .contract = &ops_contracts[OPS_GELU], .host = host_gelu_tile_portable },
    { .contract = &ops_contracts[OPS_SCALE], .host = host_scale_tile_portable },
    { .contract = &ops_contracts[OPS_ADD], .host = host_add_tile },
    { .contract = &ops_contracts[OPS_GATHER_ROWS], .host = host_gather_rows_tile },
    { .contract = &ops_contracts[OPS_ARGMAX], .host = host_argmax_tile },
    { .contract = &ops_contracts[OPS_TOP_K], .host = host_top_k_tile },
    { .contract = &ops_contracts[OPS_ROUTE_EXPERTS], .host = host_route_experts_tile },
    MATMUL_EXPERTS(host_matmul_experts_run_portable),
    { .contract = &ops_contracts[OPS_GATE_EXPERTS], .host = host_gate_experts_tile_portable },
    { .contract = &ops_contracts[OPS_SUM_EXPERTS], .host = host_sum_experts_tile_portable },
};

#if defined(__x86_64__)

static const struct device_kernel_entry avx2_entries[] = {
    { .contract = &ops_contracts[OPS_EMBED], .host = host_embed_tile },
    { .contract = &ops_contracts[OPS_RMS_NORM], .host = host_rms_norm_tile_avx2 },
    { .contract = &ops_contracts[OPS_HEAD_NORM], .host = host_head_norm_tile_avx2 },
    { .contract = &ops_contracts[OPS_LAYER_NORM], .host = host_layer_norm_tile },
    { .contract = &ops_contracts[OPS_ACT_PACK], .host = host_act_pack_tile },
    MATMUL(host_matmul_run_avx2),
    MATMUL_GROUP(host_matmul_group_run_avx2),
    { .contract = &ops_contracts[OPS_ROPE_TABLE], .host = host_rope_table_tile },
    { .contract = &ops_contracts[OPS_ROPE], .host = host_rope_tile },
    { .contract = &ops_contracts[OPS_KV_APPEND], .host = host_kv_append_tile_avx2 },
    { .contract = &ops_contracts[OPS_ATTENTION], .host = host_attention_tile_avx2 },
    { .contract = &ops_contracts[OPS_SWIGLU], .host = host_swiglu_tile_avx2 },
    { .contract = &ops_contracts[OPS_GELU], .host = host_gelu_tile_avx2 },
    { .contract = &ops_contracts[OPS_SCALE], .host = host_scale_tile_avx2 },
    { .contract = &ops_contracts[OPS_ADD], .host = host_add_tile },
    { .contract = &ops_contracts[OPS_GATHER_ROWS], .host = host_gather_rows_tile },
    { .contract = &ops_contracts[OPS_ARGMAX], .host = host_argmax_tile },
    { .contract = &ops_contracts[OPS_TOP_K], .host = host_top_k_tile },
    { .contract = &ops_contracts[OPS_ROUTE_EXPERTS], .host = host_route_experts_tile },
    MATMUL_EXPERTS(host_matmul_experts_run_avx2),
    { .contract = &ops_contracts[OPS_GATE_EXPERTS], .host = host_gate_experts_tile_avx2 },
    { .contract = &ops_contracts[OPS_SUM_EXPERTS], .host = host_sum_experts_tile_avx2 },
};

static const struct device_kernel_entry avx512_entries[] = {
    { .contract = &ops_contracts[OPS_EMBED], .host = host_embed_tile },
    { .contract = &ops_contracts[OPS_RMS_NORM], .host = host_rms_norm_tile_avx512 },
    { .contract = &ops_contracts[OPS_HEAD_NORM], .host = host_head_norm_tile_avx512 },
    { .contract = &ops_contracts[OPS_LAYER_NORM], .host = host_layer_norm_tile },
    { .contract = &ops_contracts[OPS_ACT_PACK], .host = host_act_pack_tile },
    MATMUL(host_matmul_run_avx512),
    MATMUL_GROUP(host_matmul_group_run_avx512),
    { .contract = &ops_contracts[OPS_ROPE_TABLE], .host = host_rope_table_tile },
    { .contract = &ops_contracts[OPS_ROPE], .host = host_rope_tile },
    { .contract = &ops_contracts[OPS_KV_APPEND], .host = host_kv_append_tile_avx2 },
    { .contract = &ops_contracts[OPS_ATTENTION], .host = host_attention_tile_avx512 },
    { .contract = &ops_contracts[OPS_SWIGLU], .host = host_swiglu_tile_avx512 },
    { .contract = &ops_contracts[OPS_GELU], .host = host_gelu_tile_avx512 },
    { .contract = &ops_contracts[OPS_SCALE], .host = host_scale_tile_avx512 },
    { .contract = &ops_contracts[OPS_ADD], .host = host_add_tile },
    { .contract = &ops_contracts[OPS_GATHER_ROWS], .host = host_gather_rows_tile },
    { .contract = &ops_contracts[OPS_ARGMAX], .host = host_argmax_tile },
    { .contract = &ops_contracts[OPS_TOP_K], .host = host_top_k_tile },
    { .contract = &ops_contracts[OPS_ROUTE_EXPERTS], .host = host_route_experts_tile },
    MATMUL_EXPERTS(host_matmul_experts_run_avx512),
    { .contract = &ops_contracts[OPS_GATE_EXPERTS], .host = host_gate_experts_tile_avx512 },
    { .contract = &ops_contracts[OPS_SUM_EXPERTS], .host = host_sum_experts_tile_avx512 },
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

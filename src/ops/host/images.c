/* images.c - which kernel does which op on which path. Where a path has none of its own, it takes
 * that of a path before it. */
#include "ops/host/kernels.h"

#include "base/status.h"
#include "ops/host/matmul_tiles.h"

static const struct device_kernel_entry portable_entries[] = {
    { "embed", host_embed_tile },
    { "rms_norm", host_rms_norm_tile_portable },
    { "head_norm", host_head_norm_tile_portable },
    { "act_pack", host_act_pack_tile },
    { "matmul", host_matmul_tile_portable },
    { "matmul_group", host_matmul_group_tile_portable },
    { "rope_table", host_rope_table_tile },
    { "rope", host_rope_tile },
    { "kv_append", host_kv_append_tile_portable },
    { "attention", host_attention_tile_portable },
    { "swiglu", host_swiglu_tile_portable },
    { "add", host_add_tile },
    { "gather_rows", host_gather_rows_tile },
    { "argmax", host_argmax_tile },
    { "top_k", host_top_k_tile },
};

#if defined(__x86_64__)

static const struct device_kernel_entry avx2_entries[] = {
    { "embed", host_embed_tile },
    { "rms_norm", host_rms_norm_tile_avx2 },
    { "head_norm", host_head_norm_tile_avx2 },
    { "act_pack", host_act_pack_tile },
    { "matmul", host_matmul_tile_avx2 },
    { "matmul_group", host_matmul_group_tile_avx2 },
    { "rope_table", host_rope_table_tile },
    { "rope", host_rope_tile },
    { "kv_append", host_kv_append_tile_avx2 },
    { "attention", host_attention_tile_avx2 },
    { "swiglu", host_swiglu_tile_avx2 },
    { "add", host_add_tile },
    { "gather_rows", host_gather_rows_tile },
    { "argmax", host_argmax_tile },
    { "top_k", host_top_k_tile },
};

static const struct device_kernel_entry avx512_entries[] = {
    { "embed", host_embed_tile },
    { "rms_norm", host_rms_norm_tile_avx512 },
    { "head_norm", host_head_norm_tile_avx512 },
    { "act_pack", host_act_pack_tile },
    { "matmul", host_matmul_tile_avx512 },
    { "matmul_group", host_matmul_group_tile_avx512 },
    { "rope_table", host_rope_table_tile },
    { "rope", host_rope_tile },
    { "kv_append", host_kv_append_tile_avx2 },
    { "attention", host_attention_tile_avx512 },
    { "swiglu", host_swiglu_tile_avx512 },
    { "add", host_add_tile },
    { "gather_rows", host_gather_rows_tile },
    { "argmax", host_argmax_tile },
    { "top_k", host_top_k_tile },
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
    ASSERT(cpu_path_is_supported(path));
    return &images[path];
}

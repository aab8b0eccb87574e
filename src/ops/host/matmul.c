/* matmul.c - which kernel multiplies weights of which dtype on which path. */
#include "ops/host/matmul_avx512_float.h"
#include "ops/host/matmul_avx512_panel.h"
#include "ops/host/matmul_impl.h"
#include "ops/host/matmul_panel.h"

#include "base/status.h"
#include "tensor/quant.h"

#include <stdbool.h>

/* A kernel that serves few rows and many alike. */
#define ONE_KERNEL(format, function)                                                               \
    {                                                                                              \
        .act_format = (format), .few_rows = (function), .many_rows = (function),                   \
        .many_rows_from = 1                                                                        \
    }

/* Every dtype without a row of its own is decoded to f32 first. */
static const struct host_matmul_kernel portable_decoded = {
    .act_format = HOST_ACT_F32,
    .few_rows = matmul_portable_decoded,
    .many_rows = matmul_portable_decoded,
    .many_rows_from = 1,
    .scratch_bytes_per_k = PORTABLE_DECODED_BYTES_PER_K,
};

static const struct host_matmul_kernel portable_kernels[DTYPE_COUNT] = {
    [DTYPE_Q8_0] = ONE_KERNEL(HOST_ACT_Q8, matmul_portable_q8_0),
    [DTYPE_Q4_0] = ONE_KERNEL(HOST_ACT_Q8, matmul_portable_q4_0),
    [DTYPE_Q4_K] = ONE_KERNEL(HOST_ACT_Q8, matmul_portable_q4_k),
    [DTYPE_Q5_K] = ONE_KERNEL(HOST_ACT_Q8, matmul_portable_q5_k),
    [DTYPE_Q6_K] = ONE_KERNEL(HOST_ACT_Q8, matmul_portable_q6_k),
};

#if defined(__x86_64__)

/* Rows from which unpacking a panel, or converting a tile to f32, pays for itself, measured. */
#define AVX2_PANEL_FROM 4
#define AVX2_FLOAT_FROM 6

static const struct host_matmul_kernel avx2_decoded = {
    .act_format = HOST_ACT_F32,
    .few_rows = matmul_avx2_decoded_few,
    .many_rows = matmul_avx2_float_many,
    .many_rows_from = AVX2_FLOAT_FROM,
    .scratch_fixed_bytes = AVX2_FLOAT_SCRATCH_BYTES,
    .scratch_bytes_per_k = sizeof(float),
};

#define AVX2_FLOAT_KERNEL(few)                                                                     \
    {                                                                                              \
        .act_format = HOST_ACT_F32, .few_rows = (few), .many_rows = matmul_avx2_float_many,        \
        .many_rows_from = AVX2_FLOAT_FROM, .scratch_fixed_bytes = AVX2_FLOAT_SCRATCH_BYTES         \
    }

/* panels: in how many blocks the panel has what is unpacked of one. */
#define AVX2_PANEL_KERNEL(few, many, panels)                                                       \
    {                                                                                              \
        .act_format = HOST_ACT_Q8, .few_rows = (few), .many_rows = (many),                         \
        .many_rows_from = AVX2_PANEL_FROM, .scratch_fixed_bytes = AVX2_PANEL_SUMS_BYTES,           \
        .scratch_bytes_per_k = (panels)*PANEL_SCRATCH_BYTES_PER_K                                  \
    }
_Static_assert(AVX2_FEW_ROWS *(AVX2_ACT_STEP_BYTES / AVX2_ACT_STEP + 1) <=
                       PANEL_SCRATCH_BYTES_PER_K &&
                   AVX2_FEW_ROWS * AVX2_ACT_STEP_BYTES <= AVX2_PANEL_SUMS_BYTES,
               "a panel's scratch has room for the activations of few rows");

static const struct host_matmul_kernel avx2_kernels[DTYPE_COUNT] = {
    [DTYPE_F32] = AVX2_FLOAT_KERNEL(matmul_avx2_f32_few),
    [DTYPE_F16] = AVX2_FLOAT_KERNEL(matmul_avx2_f16_few),
    [DTYPE_BF16] = AVX2_FLOAT_KERNEL(matmul_avx2_bf16_few),
    [DTYPE_Q8_0] = AVX2_PANEL_KERNEL(matmul_avx2_q8_0_few, matmul_avx2_q8_0_many, 2),
    [DTYPE_Q4_0] = AVX2_PANEL_KERNEL(matmul_avx2_q4_0_few, matmul_avx2_q4_0_many, 1),
    [DTYPE_Q4_K] = AVX2_PANEL_KERNEL(matmul_avx2_q4_k_few, matmul_avx2_q4_k_many, 1),
    [DTYPE_Q5_K] = AVX2_PANEL_KERNEL(matmul_avx2_q5_k_few, matmul_avx2_q5_k_many, 1),
    [DTYPE_Q6_K] = AVX2_PANEL_KERNEL(matmul_avx2_q6_k_few, matmul_avx2_q6_k_many, 1),
};

/* Rows from which unpacking a panel pays for itself, measured. */
#define PANEL_FROM (FEW_ROWS_LIMIT + 1)
#define FLOAT_FROM 3

#define PANEL_KERNEL(few, many)                                                                    \
    {                                                                                              \
        .act_format = HOST_ACT_Q8, .few_rows = (few), .many_rows = (many),                         \
        .many_rows_from = PANEL_FROM,                                                              \
        .scratch_fixed_bytes = FEW_ROWS_LIMIT * ACT_STEP_LIMIT_BYTES,                              \
        .scratch_bytes_per_k = PANEL_SCRATCH_BYTES_PER_K                                           \
    }
_Static_assert(FEW_ROWS_LIMIT *ACT_STEP_LIMIT_BYTES <= PANEL_SCRATCH_BYTES_PER_K * ACT_GROUP,
               "a panel's scratch has room for the activations of few rows");

#define FLOAT_KERNEL(format, few, many)                                                            \
    {                                                                                              \
        .act_format = (format), .few_rows = (few), .many_rows = (many),                            \
        .many_rows_from = FLOAT_FROM, .scratch_fixed_bytes = sizeof(struct float_scratch)          \
    }

static const struct host_matmul_kernel avx512_decoded = {
    .act_format = HOST_ACT_F32,
    .few_rows = matmul_avx512_decoded_few,
    .many_rows = matmul_avx512_float_many,
    .many_rows_from = FLOAT_FROM,
    .scratch_fixed_bytes = sizeof(struct float_scratch),
    .scratch_bytes_per_k = sizeof(float),
};

static const struct host_matmul_kernel avx512_kernels[DTYPE_COUNT] = {
    [DTYPE_F32] = FLOAT_KERNEL(HOST_ACT_F32, matmul_avx512_f32_few, matmul_avx512_float_many),
    [DTYPE_F16] = FLOAT_KERNEL(HOST_ACT_F32, matmul_avx512_f16_few, matmul_avx512_float_many),
    [DTYPE_BF16] = FLOAT_KERNEL(HOST_ACT_BF16, matmul_avx512_bf16_few, matmul_avx512_bf16_many),
    [DTYPE_Q8_0] = PANEL_KERNEL(matmul_avx512_q8_0_few, matmul_avx512_q8_0_many),
    [DTYPE_Q4_0] = PANEL_KERNEL(matmul_avx512_q4_0_few, matmul_avx512_q4_0_many),
    [DTYPE_Q4_K] = PANEL_KERNEL(matmul_avx512_q4_k_few, matmul_avx512_q4_k_many),
    [DTYPE_Q5_K] = PANEL_KERNEL(matmul_avx512_q5_k_few, matmul_avx512_q5_k_many),
    [DTYPE_Q6_K] = PANEL_KERNEL(matmul_avx512_q6_k_few, matmul_avx512_q6_k_many),
};

#endif

/* The dtypes of a path, and what takes the rest. */
struct path_kernels {
    const struct host_matmul_kernel *by_dtype;
    const struct host_matmul_kernel *decoded;
};

static const struct path_kernels paths[] = {
    [CPU_PATH_PORTABLE] = { portable_kernels, &portable_decoded },
#if defined(__x86_64__)
    [CPU_PATH_AVX2] = { avx2_kernels, &avx2_decoded },
    [CPU_PATH_AVX512] = { avx512_kernels, &avx512_decoded },
#else
    [CPU_PATH_AVX2] = { portable_kernels, &portable_decoded },
    [CPU_PATH_AVX512] = { portable_kernels, &portable_decoded },
#endif
};
_Static_assert(COUNT_OF(paths) == CPU_PATH_COUNT, "every path has its kernels");

const struct host_matmul_kernel *host_matmul_kernel(enum cpu_path path, enum dtype dtype)
{
    if (paths[path].by_dtype[dtype].few_rows)
        return &paths[path].by_dtype[dtype];
    return quant_can_decode(dtype) ? paths[path].decoded : NULL;
}

size_t host_matmul_scratch_bytes(const struct host_matmul_kernel *kernel, size_t k)
{
    size_t bytes = kernel->scratch_fixed_bytes + kernel->scratch_bytes_per_k * k;
    return (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
}

void host_matmul(const struct host_matmul_kernel *kernel, const struct host_matmul_task *task)
{
    if (task->activation_rows >= kernel->many_rows_from)
        kernel->many_rows(task);
    else
        kernel->few_rows(task);
}

/* An odd number of cache lines: rows then spread over all sets of a cache, whatever k is. */
static size_t odd_lines(size_t bytes)
{
    return ((bytes + 63) / 64 | 1) * 64;
}

size_t host_act_row_bytes(enum host_act_format format, size_t k)
{
    switch (format) {
    case HOST_ACT_BF16:
        return odd_lines((k + 63) / 64 * 64 * sizeof(uint16_t));
    case HOST_ACT_Q8:
        return odd_lines((k + ACT_GROUP - 1) / ACT_GROUP * ACT_GROUP_BLOCKS *
                         sizeof(struct host_act_block));
    default:
        return odd_lines(k * sizeof(float));
    }
}

/* How a path packs. */
struct path_packers {
    void (*q8)(const float *values, size_t k, struct host_act_block *blocks);
    void (*bf16)(const float *values, size_t k, uint16_t *packed);
};

static const struct path_packers packers[] = {
    [CPU_PATH_PORTABLE] = { act_pack_q8_portable, act_pack_bf16_portable },
#if defined(__x86_64__)
    [CPU_PATH_AVX2] = { act_pack_q8_avx2, act_pack_bf16_avx2 },
    [CPU_PATH_AVX512] = { act_pack_q8_avx512, act_pack_bf16_avx512 },
#else
    [CPU_PATH_AVX2] = { act_pack_q8_portable, act_pack_bf16_portable },
    [CPU_PATH_AVX512] = { act_pack_q8_portable, act_pack_bf16_portable },
#endif
};
_Static_assert(COUNT_OF(packers) == CPU_PATH_COUNT, "every path packs");

/* Writes zeros after the last of k values. */
static void fill_up(enum host_act_format format, size_t k, uint8_t *packed)
{
    if (format == HOST_ACT_Q8) {
        struct host_act_block *blocks = (struct host_act_block *)(void *)packed;
        for (size_t b = k / ACT_BLOCK; b % ACT_GROUP_BLOCKS != 0; b++)
            blocks[b] = (struct host_act_block){ 0 };
    } else if (format == HOST_ACT_BF16) {
        for (size_t i = k; i % 64 != 0; i++)
            ((uint16_t *)(void *)packed)[i] = 0;
    }
}

bool host_act_can_pack_part(enum host_act_format format, size_t count)
{
    return format != HOST_ACT_Q8 || count % ACT_BLOCK == 0;
}

void host_act_pack_part(enum cpu_path path, enum host_act_format format, const float *values,
                        size_t first, size_t count, size_t k, uint8_t *packed)
{
    switch (format) {
    case HOST_ACT_Q8:
        packers[path].q8(values + first, count,
                         (struct host_act_block *)(void *)packed + first / ACT_BLOCK);
        break;
    case HOST_ACT_BF16:
        packers[path].bf16(values + first, count, (uint16_t *)(void *)packed + first);
        break;
    default:
        memcpy(packed + first * sizeof(float), values + first, count * sizeof(float));
    }
    if (first + count == k)
        fill_up(format, k, packed);
}

void host_act_pack(enum cpu_path path, enum host_act_format format, const float *values, size_t k,
                   uint8_t *packed)
{
    host_act_pack_part(path, format, values, 0, k, k, packed);
}

/* matmul_impl.h - what the files of matmul.h share: the kernels of each path, and the constants
 * they agree on. Not for use outside src/ops/host. */
#ifndef GRETA_OPS_HOST_MATMUL_IMPL_H
#define GRETA_OPS_HOST_MATMUL_IMPL_H

#include "ops/host/matmul.h"

#include <stdint.h>
#include <string.h>

/* Kernels round each multiplication and each addition where the source says so. gcc does not
 * contract in ISO C mode; clang does without a flag. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

/* Values per quantized block; blocks, and values, that the AVX-512 kernels take in one step. */
#define ACT_BLOCK 32
#define ACT_GROUP_BLOCKS 4
#define ACT_GROUP 128
/* Values per block of the K formats. */
#define K_BLOCK 256

/* Bytes of a block of weights. */
#define Q4_0_BYTES 18
#define Q8_0_BYTES 34
#define Q4_K_BYTES 144
#define Q5_K_BYTES 176
#define Q6_K_BYTES 210

#define SCRATCH_ALIGNMENT 64

static inline const struct host_act_block *act_blocks(const struct host_matmul_task *task,
                                                      size_t row)
{
    return (const struct host_act_block *)(const void *)(task->activations +
                                                         row * task->activation_row_bytes);
}

static inline const uint8_t *weight_row(const struct host_matmul_task *task, size_t row)
{
    return task->weights + row * task->weight_row_bytes;
}

/* Row `row` or, past the end, the last one: a tile is always whole, and what it computes twice is
 * not stored. */
static inline const uint8_t *weight_row_clamped(const struct host_matmul_task *task, size_t row)
{
    return weight_row(task, row < task->weight_rows ? row : task->weight_rows - 1);
}

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Portable: these serve few rows and many. matmul_portable_decoded takes every dtype that
 * quant_decode_row knows. */
void matmul_portable_decoded(const struct host_matmul_task *task);
void matmul_portable_q8_0(const struct host_matmul_task *task);
void matmul_portable_q4_0(const struct host_matmul_task *task);
void matmul_portable_q4_k(const struct host_matmul_task *task);
void matmul_portable_q5_k(const struct host_matmul_task *task);
void matmul_portable_q6_k(const struct host_matmul_task *task);
/* Scratch: one decoded row. */
#define PORTABLE_DECODED_BYTES_PER_K sizeof(float)

/* Values only, k of them; what a row is filled up with is not theirs. */
void act_pack_q8_portable(const float *values, size_t k, struct host_act_block *blocks);
void act_pack_bf16_portable(const float *values, size_t k, uint16_t *packed);

#if defined(__x86_64__)

void act_pack_q8_avx2(const float *values, size_t k, struct host_act_block *blocks);
void act_pack_q8_avx512(const float *values, size_t k, struct host_act_block *blocks);
void act_pack_bf16_avx2(const float *values, size_t k, uint16_t *packed);
void act_pack_bf16_avx512(const float *values, size_t k, uint16_t *packed);

void matmul_avx2_f32_few(const struct host_matmul_task *task);
void matmul_avx2_f16_few(const struct host_matmul_task *task);
void matmul_avx2_bf16_few(const struct host_matmul_task *task);
void matmul_avx2_decoded_few(const struct host_matmul_task *task);
void matmul_avx2_float_many(const struct host_matmul_task *task);
#define AVX2_FLOAT_SCRATCH_BYTES ((size_t)120 << 10)

void matmul_avx2_q8_0_few(const struct host_matmul_task *task);
void matmul_avx2_q4_0_few(const struct host_matmul_task *task);
void matmul_avx2_q4_k_few(const struct host_matmul_task *task);
void matmul_avx2_q5_k_few(const struct host_matmul_task *task);
void matmul_avx2_q6_k_few(const struct host_matmul_task *task);
void matmul_avx2_q8_0_many(const struct host_matmul_task *task);
void matmul_avx2_q4_0_many(const struct host_matmul_task *task);
void matmul_avx2_q4_k_many(const struct host_matmul_task *task);
void matmul_avx2_q5_k_many(const struct host_matmul_task *task);
void matmul_avx2_q6_k_many(const struct host_matmul_task *task);
/* Scratch for few rows: activation rows at a time, bytes for a group of 256 activations. For many:
 * activation rows that a panel is multiplied with at a time, the bytes of their sums. */
#define AVX2_FEW_ROWS 4
#define AVX2_ACT_STEP 256
#define AVX2_ACT_STEP_BYTES 352
#define AVX2_PANEL_ACTS 256
#define AVX2_PANEL_SUMS_BYTES ((size_t)256 * AVX2_PANEL_ACTS)

void matmul_avx512_f32_few(const struct host_matmul_task *task);
void matmul_avx512_f16_few(const struct host_matmul_task *task);
void matmul_avx512_bf16_few(const struct host_matmul_task *task);
void matmul_avx512_decoded_few(const struct host_matmul_task *task);
void matmul_avx512_float_many(const struct host_matmul_task *task);
void matmul_avx512_bf16_many(const struct host_matmul_task *task);

void matmul_avx512_q8_0_few(const struct host_matmul_task *task);
void matmul_avx512_q4_0_few(const struct host_matmul_task *task);
void matmul_avx512_q4_k_few(const struct host_matmul_task *task);
void matmul_avx512_q5_k_few(const struct host_matmul_task *task);
void matmul_avx512_q6_k_few(const struct host_matmul_task *task);
void matmul_avx512_q8_0_many(const struct host_matmul_task *task);
void matmul_avx512_q4_0_many(const struct host_matmul_task *task);
void matmul_avx512_q4_k_many(const struct host_matmul_task *task);
void matmul_avx512_q5_k_many(const struct host_matmul_task *task);
void matmul_avx512_q6_k_many(const struct host_matmul_task *task);

#endif

#endif

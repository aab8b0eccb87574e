/* matmul.h - the compute cores of matmul on the host: pure functions over the bytes
 * they are given. No locks, no allocation, no globals; any number of threads, each with its own
 * output rows and its own scratch.
 *
 *     output[a][o] = sum over k of weights[o][k] * activations[a][k]
 *
 * Weights stay in the layout of the GGUF file, at any address, and are never read outside their
 * rows. Activations are packed first, by host_act_pack, into the format the kernel of the weights'
 * dtype wants. Then host_matmul computes any rectangle of the output.
 *
 * Bits. Every output element is computed by one fixed sequence of operations, which depends on the
 * path, the dtype and k only: not on how many rows of either side are in the task, how they were
 * split over tasks and threads, or whether few or many activation rows came together. Each path has
 * its own sequence ("order"), written down at the top of its files. Packed activations are the same
 * bytes on every path. All arithmetic is in the default floating-point environment (round to
 * nearest, subnormals kept).
 *
 * Sizes of tasks. few_rows prepares the activations once per call and prefetches its first rows
 * only when it begins, which costs noticeable time below some 64 weight rows per call. many_rows
 * unpacks 16 weight rows at a time for all activation rows of the call, which costs noticeable time
 * below some 64 activation rows.
 *
 * NaN and infinity: a quantized block of 32 activations that holds one makes every output of that
 * row NaN. Plain formats follow IEEE arithmetic. Which NaN it is, is not part of the contract. */
#ifndef GRETA_OPS_HOST_MATMUL_H
#define GRETA_OPS_HOST_MATMUL_H

#include "base/cpu.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum host_act_format {
    HOST_ACT_F32,  /* k floats; a caller may pass its own rows in place, at any stride */
    HOST_ACT_BF16, /* k rounded to bf16 (nearest even), zeros up to a multiple of 64 */
    HOST_ACT_Q8,   /* struct host_act_block, below; k is a multiple of 32 */
    HOST_ACT_FORMAT_COUNT
};

/* 32 activations, in a cache line of their own. quant = x / scale rounded to nearest even,
 * -127..127; scale = largest magnitude / 127. A block with a NaN or infinity has scale NaN and
 * quants 0. A row is filled up with blocks of zeros to a multiple of four. Kernels multiply
 * unsigned weights, quant + offset; the offset terms take away what the offset adds to the dot
 * product. */
struct host_act_block {
    int8_t levels[32];
    float scale;
    float scaled_sum;              /* scale * sum of the quants */
    int32_t offset_128;            /* -128 * sum of the quants: Q8_0 */
    int32_t offset_8;              /* -8 * sum: Q4_0 */
    int32_t first_half_offset_32;  /* -32 * sum of quants 0..15: Q6_K */
    int32_t second_half_offset_32; /* -32 * sum of quants 16..31 */
    /* -32 * sums of those quants of a half whose number mod 4 is 0 or 1, and 2 or 3: Q6_K where
     * products are added up in 16 bits */
    int16_t pair_offsets_32[2][2];
};

/* Bytes from one packed row to the next: a multiple of 64, odd so that rows spread over the sets of
 * a cache. */
size_t host_act_row_bytes(enum host_act_format format, size_t k);

/* Packs one row of k values. packed: host_act_row_bytes bytes, 64-byte aligned. Same bytes on every
 * path. */
void host_act_pack(enum cpu_path path, enum host_act_format format, const float *values, size_t k,
                   uint8_t *packed);

/* Packs values first .. first + count - 1 of a row of k, to the same bytes as in the whole row.
 * values and packed are the whole row's. Parts may be packed at the same time if
 * host_act_can_pack_part is true for first and for count. */
void host_act_pack_part(enum cpu_path path, enum host_act_format format, const float *values,
                        size_t first, size_t count, size_t k, uint8_t *packed);
bool host_act_can_pack_part(enum host_act_format format, size_t count);

/* A rectangle of the output. */
struct host_matmul_task {
    enum dtype dtype;
    size_t k;               /* whole blocks of dtype */
    const uint8_t *weights; /* [weight_rows] rows, any alignment */
    size_t weight_row_bytes;
    size_t weight_rows;
    const uint8_t *activations; /* [activation_rows] packed rows; 64-byte aligned, F32: 4 */
    size_t activation_row_bytes;
    size_t activation_rows;
    float *output;        /* [activation_rows][weight_rows] */
    size_t output_stride; /* floats from one activation row to the next */
    uint8_t *scratch;     /* host_matmul_scratch_bytes, 64-byte aligned, for this call alone */
    /* What a thread that does several tasks knows about the task before and the next one; may all
     * be 0. */
    const uint8_t *next_weights; /* it goes on there: worth fetching towards the end */
    bool weights_are_coming;     /* the task before prefetched these */
    bool scratch_is_ready;       /* the task before had the same scratch, dtype and activations, and
                                    few of them */
};

typedef void (*host_matmul_function)(const struct host_matmul_task *task);

struct host_matmul_kernel {
    enum host_act_format act_format;
    host_matmul_function few_rows;  /* streams each weight row once; for decode */
    host_matmul_function many_rows; /* unpacks a tile of weights once for all rows; for prefill */
    size_t many_rows_from;          /* activation rows from which many_rows is the faster one */
    size_t scratch_fixed_bytes;
    size_t scratch_bytes_per_k;
};

/* Static, or NULL if weights of this dtype cannot be multiplied. */
const struct host_matmul_kernel *host_matmul_kernel(enum cpu_path path, enum dtype dtype);

size_t host_matmul_scratch_bytes(const struct host_matmul_kernel *kernel, size_t k);

/* few_rows or many_rows, whichever is faster for the task; the bits are the same. */
void host_matmul(const struct host_matmul_kernel *kernel, const struct host_matmul_task *task);

#endif

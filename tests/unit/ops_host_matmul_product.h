/* ops_host_matmul_product.h - a product of random weights and activations, in memory that ends
 * where an inaccessible page begins, with an output whose margins show what was written outside.
 */
#ifndef GRETA_TESTS_OPS_HOST_MATMUL_PRODUCT_H
#define GRETA_TESTS_OPS_HOST_MATMUL_PRODUCT_H

#include "test.h"

#include "ops/host/matmul.h"
#include "tensor/quant.h"
#include "tensor_random.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory that ends where an inaccessible page begins. */
struct guarded {
    uint8_t *bytes;
    void *mapping;
    size_t mapping_bytes;
};

static inline struct guarded guarded_create(size_t bytes, size_t alignment)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = (bytes + alignment + page) / page * page;
    struct guarded guarded = { .mapping_bytes = usable + page };
    int flags = MAP_PRIVATE | 0x20; /* MAP_ANONYMOUS, which POSIX has no name for */
    guarded.mapping = mmap(NULL, guarded.mapping_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert_true(guarded.mapping != MAP_FAILED);
    assert_int_equal(mprotect((uint8_t *)guarded.mapping + usable, page, PROT_NONE), 0);
    guarded.bytes = (uint8_t *)guarded.mapping + (usable - bytes) / alignment * alignment;
    return guarded;
}

static inline void guarded_destroy(struct guarded *guarded)
{
    munmap(guarded->mapping, guarded->mapping_bytes);
}

/* Where the f16 fields of a block are; -1: none. Other bytes may have any value. */
static const struct {
    enum dtype dtype;
    int f16_offsets[2];
} dtype_rows[] = {
    { DTYPE_F32, { -1, -1 } },   { DTYPE_F16, { 0, -1 } },    { DTYPE_BF16, { -1, -1 } },
    { DTYPE_Q8_0, { 0, -1 } },   { DTYPE_Q4_0, { 0, -1 } },   { DTYPE_Q4_K, { 0, 2 } },
    { DTYPE_Q5_K, { 0, 2 } },    { DTYPE_Q6_K, { 208, -1 } }, { DTYPE_Q4_1, { 0, 2 } },
    { DTYPE_Q5_0, { 0, -1 } },   { DTYPE_Q5_1, { 0, 2 } },    { DTYPE_Q2_K, { 80, 82 } },
    { DTYPE_Q3_K, { 108, -1 } }, { DTYPE_IQ4_NL, { 0, -1 } }, { DTYPE_IQ4_XS, { 0, -1 } },
    { DTYPE_MXFP4, { -1, -1 } },
};

/* Sane values for the scales of each block. */
static inline void fill_scales(size_t row, uint8_t *bytes, size_t byte_count,
                               struct random_state *random)
{
    enum dtype dtype = dtype_rows[row].dtype;
    size_t block_bytes = dtype_info(dtype)->block_bytes;
    for (size_t start = 0; start < byte_count; start += block_bytes) {
        if (dtype == DTYPE_MXFP4)
            bytes[start] = (uint8_t)(120 + bytes[start] % 10);
        for (size_t i = 0; i < 2; i++) {
            if (dtype_rows[row].f16_offsets[i] < 0)
                continue;
            uint16_t scale = f16_from_f32(random_gaussian(random) * 0.05f);
            memcpy(bytes + start + dtype_rows[row].f16_offsets[i], &scale, sizeof(scale));
        }
    }
}

static inline void fill_weights(size_t row, uint8_t *bytes, size_t byte_count,
                                struct random_state *random)
{
    enum dtype dtype = dtype_rows[row].dtype;
    if (dtype == DTYPE_F32 || dtype == DTYPE_BF16) {
        size_t count = byte_count / dtype_info(dtype)->block_bytes;
        for (size_t i = 0; i < count; i++) {
            float value = random_gaussian(random);
            quant_encode_row(dtype, &value, 1, bytes + i * dtype_info(dtype)->block_bytes);
        }
        return;
    }
    for (size_t i = 0; i < byte_count; i++)
        bytes[i] = (uint8_t)(random_u64(random) >> 40);
    fill_scales(row, bytes, byte_count, random);
}

/* The activations a kernel sees, as doubles. */
static inline void unpack_activations(enum host_act_format format, const uint8_t *packed, size_t k,
                                      double *values)
{
    const struct host_act_block *blocks = (const struct host_act_block *)(const void *)packed;
    for (size_t i = 0; i < k; i++) {
        uint16_t half;
        float plain;
        switch (format) {
        case HOST_ACT_BF16:
            memcpy(&half, packed + 2 * i, sizeof(half));
            values[i] = (double)bf16_to_f32(half);
            break;
        case HOST_ACT_Q8:
            values[i] = (double)blocks[i / 32].scale * blocks[i / 32].levels[i % 32];
            break;
        default:
            memcpy(&plain, packed + 4 * i, sizeof(plain));
            values[i] = (double)plain;
        }
    }
}

/* One matmul with everything it needs. */
struct product {
    const struct host_matmul_kernel *kernel;
    struct host_matmul_task task;
    struct guarded weights;
    struct guarded activations;
    struct guarded scratch;
    char name[64];
};

static inline void product_init(struct product *product, enum cpu_path path, size_t dtype_row,
                                size_t k, size_t weight_rows, size_t activation_rows)
{
    enum dtype dtype = dtype_rows[dtype_row].dtype;
    struct random_state random = { .counter = 77 + k };
    uint64_t row_bytes;
    assert_true(dtype_row_bytes(dtype, k, &row_bytes));
    *product = (struct product){ .kernel = host_matmul_kernel(path, dtype) };
    assert_non_null(product->kernel);
    snprintf(product->name, sizeof(product->name), "%s %s k %zu, %zu x %zu", cpu_path_name(path),
             dtype_name(dtype), k, weight_rows, activation_rows);
    enum host_act_format format = product->kernel->act_format;
    size_t act_bytes = host_act_row_bytes(format, k);
    product->weights = guarded_create(row_bytes * weight_rows, 1);
    product->activations = guarded_create(act_bytes * activation_rows,
                                          format == HOST_ACT_F32 ? 4 : 64);
    product->scratch = guarded_create(host_matmul_scratch_bytes(product->kernel, k), 64);
    fill_weights(dtype_row, product->weights.bytes, row_bytes * weight_rows, &random);
    float *values = malloc(k * sizeof(float));
    for (size_t a = 0; a < activation_rows; a++) {
        for (size_t i = 0; i < k; i++)
            values[i] = random_gaussian(&random);
        host_act_pack(path, format, values, k, product->activations.bytes + a * act_bytes);
    }
    free(values);
    product->task = (struct host_matmul_task){
        .dtype = dtype,
        .k = k,
        .weights = product->weights.bytes,
        .weight_row_bytes = row_bytes,
        .weight_rows = weight_rows,
        .activations = product->activations.bytes,
        .activation_row_bytes = act_bytes,
        .activation_rows = activation_rows,
        .scratch = product->scratch.bytes,
    };
}

static inline void product_release(struct product *product)
{
    guarded_destroy(&product->weights);
    guarded_destroy(&product->activations);
    guarded_destroy(&product->scratch);
}

/* Output with a margin around every row, filled with a value no kernel computes. */
#define MARGIN 5
#define UNTOUCHED -12345.678f

static inline float *output_create(const struct product *product)
{
    size_t count = (product->task.weight_rows + MARGIN) * product->task.activation_rows + MARGIN;
    float *output = malloc(count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        output[i] = UNTOUCHED;
    return output;
}

static inline bool margins_are_untouched(const struct product *product, const float *output)
{
    size_t stride = product->task.weight_rows + MARGIN;
    bool untouched = true;
    for (size_t a = 0; a < product->task.activation_rows + 1; a++) {
        for (size_t i = 0; i < MARGIN; i++)
            untouched &= output[a * stride + i] == UNTOUCHED;
    }
    return untouched;
}

/* Computes the rectangle [o, o_end) x [a, a_end) into its place of the output. */
static inline void compute(const struct product *product, host_matmul_function function, size_t o,
                           size_t o_end, size_t a, size_t a_end, float *output)
{
    struct host_matmul_task task = product->task;
    size_t stride = task.weight_rows + MARGIN;
    task.weights += o * task.weight_row_bytes;
    task.weight_rows = o_end - o;
    task.activations += a * task.activation_row_bytes;
    task.activation_rows = a_end - a;
    task.output = output + MARGIN + a * stride + o;
    task.output_stride = stride;
    if (function)
        function(&task);
    else
        host_matmul(product->kernel, &task);
}

static inline void compute_all(const struct product *product, host_matmul_function function,
                               float *output)
{
    compute(product, function, 0, product->task.weight_rows, 0, product->task.activation_rows,
            output);
}

#endif

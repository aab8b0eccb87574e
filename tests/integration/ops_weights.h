/* ops_weights.h - for tests of matmul: which types a contract allows, and weights of each. */
#ifndef GRETA_TESTS_OPS_WEIGHTS_H
#define GRETA_TESTS_OPS_WEIGHTS_H

#include "ops_lab.h"

/* Types are asked of the contract, so that one that is added is tested, or has a test fail. */
static inline bool contract_allows(enum ops_op op, size_t operand, int dtype)
{
    return ops_contract(op)->operands[operand].dtype_bits >> dtype & 1;
}

/* Random blocks whose scales are small normal numbers, of any type that can be decoded. */
static inline uint8_t *lab_weights(struct lab *lab, enum dtype dtype, size_t k, size_t rows,
                                   float *decoded)
{
    uint64_t row_bytes = 0;
    assert_true(dtype_row_bytes(dtype, k, &row_bytes));
    uint8_t *bytes = malloc((size_t)row_bytes * rows);
    assert_non_null(bytes);
    if (quant_can_encode(dtype)) {
        for (size_t i = 0; i < k * rows; i++)
            decoded[i] = lab_random(lab);
        quant_encode_row(dtype, decoded, k * rows, bytes);
    } else {
        const struct dtype_info *info = dtype_info(dtype);
        size_t blocks = k * rows / info->block_elements;
        for (size_t i = 0; i < (size_t)row_bytes * rows; i++)
            bytes[i] = (uint8_t)(int)(lab_random(lab) * 127);
        for (size_t b = 0; b < blocks; b++) {
            uint8_t *block = bytes + b * info->block_bytes;
            static const struct {
                enum dtype dtype;
                size_t offsets[2];
                size_t count;
            } scales[] = {
                { DTYPE_Q2_K, { 80, 82 }, 2 },
                { DTYPE_Q3_K, { 108 }, 1 },
                { DTYPE_IQ4_NL, { 0 }, 1 },
                { DTYPE_IQ4_XS, { 0 }, 1 },
            };
            for (size_t s = 0; s < COUNT_OF(scales); s++)
                for (size_t i = 0; scales[s].dtype == dtype && i < scales[s].count; i++) {
                    block[scales[s].offsets[i]] = 0;
                    block[scales[s].offsets[i] + 1] = 0x20; /* f16 0.0078125 */
                }
            if (dtype == DTYPE_MXFP4)
                block[0] = 120;
        }
    }
    quant_decode_row(dtype, bytes, k * rows, decoded);
    return bytes;
}

/* What weights of a type are made of: themselves, or what ops_repack lays out as it. */
static inline enum dtype lab_weight_source(const struct lab *lab, enum dtype dtype, uint64_t k)
{
    if (quant_can_decode(dtype))
        return dtype;
    for (int source = 0; source < DTYPE_COUNT; source++)
        if (quant_can_decode((enum dtype)source) &&
            ops_weight_dtype(&lab->ops, (enum dtype)source, k) == dtype)
            return (enum dtype)source;
    fail_msg("%s: expected a type that it is laid out from, found none", dtype_name(dtype));
    return dtype;
}

/* Values of a short row of any type: whole blocks. */
static inline uint64_t lab_weight_k(enum dtype dtype)
{
    uint64_t block = dtype_info(dtype)->block_elements;
    return block > 256 ? block : 256;
}

/* Weights [k, rows] on the device. decoded: their values. A buffer is gone at once, whatever is
 * queued: the kernel that reads it is waited for. */
static inline struct device_view lab_put_weights(struct lab *lab, enum dtype dtype, uint64_t k,
                                                 uint64_t rows, float *decoded)
{
    enum dtype source = lab_weight_source(lab, dtype, k);
    uint8_t *bytes = lab_weights(lab, source, k, rows, decoded);
    struct device_view weights = lab_put_new(lab, source, k, rows, bytes);
    if (source != dtype) {
        struct device_view repacked = lab_view(lab, dtype, k, rows);
        LAB_OK(lab, ops_repack(&lab->target, &weights, &repacked, &lab->err));
        LAB_OK(lab, device_stream_sync(lab->device, lab->target.stream, DEVICE_HERE, &lab->err));
        lab_drop(lab, weights);
        weights = repacked;
    }
    free(bytes);
    return weights;
}

/* out [rows, tokens] = weights x activations + bias (or NULL), all in f64. */
static inline void multiply_exactly(const float *weights, const float *x, const float *bias,
                                    size_t k, size_t rows, size_t tokens, double *out)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t r = 0; r < rows; r++) {
            double sum = bias ? (double)bias[r] : 0;
            for (size_t i = 0; i < k; i++)
                sum += (double)weights[r * k + i] * (double)x[t * k + i];
            out[t * rows + r] = sum;
        }
}

#endif

/* quant_impl.h - what the files of quant.h share; not for use outside of the module. */
#ifndef GRETA_TENSOR_QUANT_IMPL_H
#define GRETA_TENSOR_QUANT_IMPL_H

#include "tensor/quant.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Elements per block of the two families of block formats. */
#define SMALL_BLOCK 32
#define K_BLOCK 256

/* The largest finite f16: no scale may be larger. */
#define F16_LIMIT 65504.0f

/* blocks: block_count blocks of the dtype; values: block_count * block_elements floats. */
typedef void (*quant_decode_function)(const uint8_t *blocks, size_t block_count, float *values);
typedef void (*quant_encode_function)(const float *values, size_t block_count, uint8_t *blocks);

static inline uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint16_t load_u16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t load_u32(const uint8_t *bytes)
{
    return (uint32_t)load_u16(bytes) | (uint32_t)load_u16(bytes + 2) << 16;
}

static inline void store_u16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

static inline void store_u32(uint8_t *bytes, uint32_t value)
{
    store_u16(bytes, (uint16_t)value);
    store_u16(bytes + 2, (uint16_t)(value >> 16));
}

static inline float load_f16(const uint8_t *bytes)
{
    return f16_to_f32(load_u16(bytes));
}

static inline void store_f16(uint8_t *bytes, float value)
{
    store_u16(bytes, f16_from_f32(value));
}

void quant_decode_f32(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_f16(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_bf16(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_q8_0(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_q4_0(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_q4_1(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_q5_0(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_q5_1(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_q2_k(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_q3_k(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_q4_k(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_q5_k(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_q6_k(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_iq4_nl(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_iq4_xs(const uint8_t *blocks, size_t block_count, float *values);
void quant_decode_mxfp4(const uint8_t *blocks, size_t block_count, float *values);

void quant_encode_f32(const float *values, size_t block_count, uint8_t *blocks);
void quant_encode_f16(const float *values, size_t block_count, uint8_t *blocks);
void quant_encode_bf16(const float *values, size_t block_count, uint8_t *blocks);
void quant_encode_q8_0(const float *values, size_t block_count, uint8_t *blocks);
void quant_encode_q4_0(const float *values, size_t block_count, uint8_t *blocks);
void quant_encode_q4_1(const float *values, size_t block_count, uint8_t *blocks);
void quant_encode_q5_0(const float *values, size_t block_count, uint8_t *blocks);
void quant_encode_q5_1(const float *values, size_t block_count, uint8_t *blocks);
void quant_encode_mxfp4(const float *values, size_t block_count, uint8_t *blocks);
void quant_encode_q4_k(const float *values, size_t block_count, uint8_t *blocks);
void quant_encode_q5_k(const float *values, size_t block_count, uint8_t *blocks);
void quant_encode_q6_k(const float *values, size_t block_count, uint8_t *blocks);

#endif

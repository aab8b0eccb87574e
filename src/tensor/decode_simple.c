/* decode_simple.c - plain element types, and the blocks of 32 values with linear quants.
 *
 * In a block of 32 the nibble byte k holds element k (low) and element k + 16 (high). */
#include "tensor/quant_impl.h"

#define HALF_BLOCK (SMALL_BLOCK / 2)

void quant_decode_f32(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t i = 0; i < block_count; i++)
        values[i] = f32_from_bits(load_u32(blocks + 4 * i));
}

void quant_decode_f16(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t i = 0; i < block_count; i++)
        values[i] = load_f16(blocks + 2 * i);
}

void quant_decode_bf16(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t i = 0; i < block_count; i++)
        values[i] = bf16_to_f32(load_u16(blocks + 2 * i));
}

/* d f16, 32 x i8 */
void quant_decode_q8_0(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 34, values += SMALL_BLOCK) {
        float d = load_f16(blocks);
        for (size_t i = 0; i < SMALL_BLOCK; i++)
            values[i] = d * (float)(int8_t)blocks[2 + i];
    }
}

/* d f16, 16 nibble bytes */
void quant_decode_q4_0(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 18, values += SMALL_BLOCK) {
        float d = load_f16(blocks);
        for (size_t k = 0; k < HALF_BLOCK; k++) {
            uint8_t byte = blocks[2 + k];
            values[k] = d * (float)((byte & 15) - 8);
            values[k + HALF_BLOCK] = d * (float)((byte >> 4) - 8);
        }
    }
}

/* d f16, m f16, 16 nibble bytes */
void quant_decode_q4_1(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 20, values += SMALL_BLOCK) {
        float d = load_f16(blocks);
        float m = load_f16(blocks + 2);
        for (size_t k = 0; k < HALF_BLOCK; k++) {
            uint8_t byte = blocks[4 + k];
            values[k] = d * (float)(byte & 15) + m;
            values[k + HALF_BLOCK] = d * (float)(byte >> 4) + m;
        }
    }
}

/* The 5-bit quants of elements k and k + 16: nibbles in byte, fifth bits k and k + 16 of high. */
static inline int low_quant(uint8_t byte, uint32_t high, size_t k)
{
    return (int)((byte & 15u) | (high >> k & 1u) << 4);
}

static inline int high_quant(uint8_t byte, uint32_t high, size_t k)
{
    return (int)((byte >> 4) | (high >> (k + HALF_BLOCK) & 1u) << 4);
}

/* d f16, fifth bits u32, 16 nibble bytes */
void quant_decode_q5_0(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 22, values += SMALL_BLOCK) {
        float d = load_f16(blocks);
        uint32_t high = load_u32(blocks + 2);
        for (size_t k = 0; k < HALF_BLOCK; k++) {
            uint8_t byte = blocks[6 + k];
            values[k] = d * (float)(low_quant(byte, high, k) - 16);
            values[k + HALF_BLOCK] = d * (float)(high_quant(byte, high, k) - 16);
        }
    }
}

/* d f16, m f16, fifth bits u32, 16 nibble bytes */
void quant_decode_q5_1(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 24, values += SMALL_BLOCK) {
        float d = load_f16(blocks);
        float m = load_f16(blocks + 2);
        uint32_t high = load_u32(blocks + 4);
        for (size_t k = 0; k < HALF_BLOCK; k++) {
            uint8_t byte = blocks[8 + k];
            values[k] = d * (float)low_quant(byte, high, k) + m;
            values[k + HALF_BLOCK] = d * (float)high_quant(byte, high, k) + m;
        }
    }
}

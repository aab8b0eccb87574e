/* unpack.c - rows of weights as halves in the stream's workspace, for matrix units: f16, but bf16
 * of BF16. The values are those of decode.h, rounded once. A thread takes a unit of weights that
 * lie together in the file and stores them 16 bytes at a time.
 *
 * Operands: enum unpack_operand. Arguments: struct unpack_args. x counts parts of a row, y rows. */
#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/tiling.h"

INLINE void store_8(GLOBAL uint8_t *row, uint32_t at, const float values[8])
{
    words4 words = { two_halves(values[0], values[1]), two_halves(values[2], values[3]),
                     two_halves(values[4], values[5]), two_halves(values[6], values[7]) };
    *(GLOBAL words4 *)(row + 2 * at) = words;
}

/* Byte i of eight. */
INLINE uint32_t byte_of(words2 words, uint32_t i)
{
    return words[i / 4] >> (8 * (i % 4)) & 255u;
}

/* Eight columns of two neighbouring groups of a block. */
INLINE void unpack_q4_k(block_pointer row, uint32_t unit, GLOBAL uint8_t *target)
{
    uint32_t block = unit / 16, pair = unit % 16 / 4, column = unit % 4 * 8;
    block_pointer b = row + 144 * block;
    words2 quants = *(const GLOBAL words2 *)(b + 16 + 32 * pair + column);
    float d = load_f16(b), dmin = load_f16(b + 2), values[8];
    UNROLL
    for (uint32_t g = 0; g < 2; g++) {
        float scale, min;
        scale_min(b + 4, 2 * pair + g, &scale, &min);
        UNROLL
        for (uint32_t i = 0; i < 8; i++)
            values[i] = scale * d * small_float(byte_of(quants, i) >> (4 * g) & 15u) - min * dmin;
        store_8(target, 256 * block + 64 * pair + 32 * g + column, values);
    }
}

/* Eight columns of the four groups of half a block. */
INLINE void unpack_q6_k_x8(block_pointer row, uint32_t unit, GLOBAL uint8_t *target)
{
    uint32_t eight = unit / 64, block = unit % 64 / 8, half = unit % 8 / 4, column = unit % 4 * 8;
    block_pointer b = row + 1680 * eight;
    block_pointer low = b + 128 * block + 64 * half + column;
    words2 nibbles[2] = { *(const GLOBAL words2 *)low, *(const GLOBAL words2 *)(low + 32) };
    words2 top = *(const GLOBAL words2 *)(b + 1024 + 64 * block + 32 * half + column);
    float d = load_f16(b + 1664 + 2 * block), values[8];
    UNROLL
    for (uint32_t g = 0; g < 4; g++) {
        float scale = d * (float)(int8_t)b[1536 + 16 * block + 8 * half + 2 * g + column / 16];
        UNROLL
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t quant = byte_of(nibbles[g % 2], i) >> (4 * (g / 2)) & 15u;
            quant |= (byte_of(top, i) >> (2 * g) & 3u) << 4;
            values[i] = scale * (small_float(quant) - 32.0f);
        }
        store_8(target, 2048 * eight + 256 * block + 128 * half + 32 * g + column, values);
    }
}

/* Sixteen of a block of 32. */
INLINE void unpack_q8_0_x8(block_pointer row, uint32_t unit, GLOBAL uint8_t *target)
{
    block_pointer b = row + 272 * (unit / 16);
    words4 quants = *(const GLOBAL words4 *)(b + 16 * (unit % 16));
    float scale = load_f16(b + 256 + 2 * (unit % 16 / 2)), values[8];
    UNROLL
    for (uint32_t g = 0; g < 2; g++) {
        UNROLL
        for (uint32_t i = 0; i < 8; i++)
            values[i] = scale * (float)(int8_t)(quants[2 * g + i / 4] >> (8 * (i % 4)));
        store_8(target, 16 * unit + 8 * g, values);
    }
}

/* Bytes that need not lie at multiples of anything but two. */
INLINE void copy_bf16(block_pointer row, uint32_t at, GLOBAL uint8_t *target)
{
    words4 words;
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        words[i] = load_half_bits(row + 2 * (at + 2 * i)) |
                   load_half_bits(row + 2 * (at + 2 * i + 1)) << 16;
    *(GLOBAL words4 *)(target + 2 * at) = words;
}

KERNEL(unpack_halves)
{
    ENTER(call);
    const struct gpu_operand *weights = &call.operands[UNPACK_WEIGHTS]; /* [k, rows] */
    uint32_t k = (uint32_t)weights->width, dtype = weights->dtype;
    uint32_t unit = block_x() * thread_count() + thread_index();
    uint32_t size = UNPACK_UNIT(dtype);
    if (unit * size >= k)
        return;
    GLOBAL uint8_t *target = (GLOBAL uint8_t *)(call.workspace + GPU_COUNTER_BYTES) +
                             (uint64_t)block_y() * 2 * k;
    block_pointer row = row_at(weights, unpack_args_of(&call)->first_row + block_y());
    if (dtype == DTYPE_BF16) {
        copy_bf16(row, 8 * unit, target);
    } else if (dtype == DTYPE_Q4_K) {
        unpack_q4_k(row, unit, target);
    } else if (dtype == DTYPE_Q6_K_X8) {
        unpack_q6_k_x8(row, unit, target);
    } else if (dtype == DTYPE_Q8_0_X8) {
        unpack_q8_0_x8(row, unit, target);
    } else {
        float values[8];
        UNROLL
        for (uint32_t i = 0; i < 8; i++)
            values[i] = decode_value(dtype, row, 8 * unit + i);
        store_8(target, 8 * unit, values);
    }
}

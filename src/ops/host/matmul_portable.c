/* matmul_portable.c - the reference path, in plain C.
 *
 * Order of the quantized kernels: the integer dot product of each block of 32 is exact; one f32
 * accumulator takes the blocks in order, for each: weight scale * dot, rounded; times activation
 * scale, rounded; added, rounded. Q4_K and Q5_K then take min * scaled sum away in the same manner.
 * Q6_K adds (scale of the first 16 * their dot) and (scale of the second 16 * theirs) first.
 *
 * Order of matmul_portable_decoded: the row is decoded to f32; lane l of 8 takes k = l, l + 8, ...
 * in order, product and sum rounded separately; then lanes l and l + 4, l + 2, l + 1 are added. */
#include "ops/host/matmul_impl.h"

#include "tensor/quant.h"

#define LANES 8

static float dot_f32(const float *weights, const float *activations, size_t k)
{
    float lanes[LANES] = { 0 };
    size_t whole = k - k % LANES;
    for (size_t i = 0; i < whole; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            float product = weights[i + l] * activations[i + l];
            lanes[l] += product;
        }
    }
    for (size_t i = whole; i < k; i++) {
        float product = weights[i] * activations[i];
        lanes[i - whole] += product;
    }
    for (size_t width = LANES / 2; width > 0; width /= 2) {
        for (size_t l = 0; l < width; l++)
            lanes[l] += lanes[l + width];
    }
    return lanes[0];
}

void matmul_portable_decoded(const struct host_matmul_task *task)
{
    float *decoded = (float *)(void *)task->scratch;
    for (size_t o = 0; o < task->weight_rows; o++) {
        quant_decode_row(task->dtype, weight_row(task, o), task->k, decoded);
        for (size_t a = 0; a < task->activation_rows; a++) {
            const uint8_t *row = task->activations + a * task->activation_row_bytes;
            const float *activations = (const float *)(const void *)row;
            task->output[a * task->output_stride + o] = dot_f32(decoded, activations, task->k);
        }
    }
}

static float load_f16(const uint8_t *bytes)
{
    return f16_to_f32((uint16_t)(bytes[0] | bytes[1] << 8));
}

static int32_t dot_levels(const int8_t *weights, const int8_t *activations, size_t count)
{
    int32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += weights[i] * activations[i];
    return sum;
}

/* One step of the order above. */
static float add_term(float sum, float weight_scale, float act_scale, int32_t dot)
{
    float term = weight_scale * (float)dot;
    term *= act_scale;
    return sum + term;
}

static float dot_row_q8_0(const uint8_t *weights, const struct host_act_block *blocks, size_t k)
{
    float sum = 0;
    for (size_t b = 0; b < k / ACT_BLOCK; b++, weights += Q8_0_BYTES) {
        int8_t levels[ACT_BLOCK];
        memcpy(levels, weights + 2, sizeof(levels));
        int32_t dot = dot_levels(levels, blocks[b].levels, ACT_BLOCK);
        sum = add_term(sum, load_f16(weights), blocks[b].scale, dot);
    }
    return sum;
}

static float dot_row_q4_0(const uint8_t *weights, const struct host_act_block *blocks, size_t k)
{
    float sum = 0;
    for (size_t b = 0; b < k / ACT_BLOCK; b++, weights += Q4_0_BYTES) {
        int8_t levels[ACT_BLOCK];
        for (size_t i = 0; i < 16; i++) {
            levels[i] = (int8_t)((weights[2 + i] & 15) - 8);
            levels[16 + i] = (int8_t)((weights[2 + i] >> 4) - 8);
        }
        int32_t dot = dot_levels(levels, blocks[b].levels, ACT_BLOCK);
        sum = add_term(sum, load_f16(weights), blocks[b].scale, dot);
    }
    return sum;
}

/* Scale and min of block j of 8 (matmul_avx512_q4_k.c has the picture). */
static void scale_and_min(const uint8_t *scales, size_t j, int *ret_scale, int *ret_min)
{
    if (j < 4) {
        *ret_scale = scales[j] & 63;
        *ret_min = scales[j + 4] & 63;
    } else {
        *ret_scale = (scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4;
        *ret_min = (scales[j + 4] >> 4) | (scales[j] >> 6) << 4;
    }
}

/* Q4_K, and Q5_K, which has 32 bytes of fifth bits between the scales and the nibbles. */
static float dot_row_q45_k(const uint8_t *weights, const struct host_act_block *blocks, size_t k,
                           bool fifth_bits)
{
    float sum = 0;
    for (size_t b = 0; b < k / ACT_BLOCK; b++) {
        size_t j = b % 8;
        const uint8_t *high = weights + 16;
        const uint8_t *nibbles = weights + (fifth_bits ? 48 : 16) + 32 * (j / 2);
        int8_t levels[ACT_BLOCK];
        for (size_t i = 0; i < ACT_BLOCK; i++) {
            int level = nibbles[i] >> (4 * (j % 2)) & 15;
            if (fifth_bits)
                level |= (high[i] >> j & 1) << 4;
            levels[i] = (int8_t)level;
        }
        int32_t dot = dot_levels(levels, blocks[b].levels, ACT_BLOCK);
        int scale, min;
        scale_and_min(weights + 4, j, &scale, &min);
        sum = add_term(sum, load_f16(weights) * (float)scale, blocks[b].scale, dot);
        float offset = load_f16(weights + 2) * (float)min;
        offset *= blocks[b].scaled_sum;
        sum -= offset;
        if (j == 7)
            weights += fifth_bits ? Q5_K_BYTES : Q4_K_BYTES;
    }
    return sum;
}

static float dot_row_q4_k(const uint8_t *weights, const struct host_act_block *blocks, size_t k)
{
    return dot_row_q45_k(weights, blocks, k, false);
}

static float dot_row_q5_k(const uint8_t *weights, const struct host_act_block *blocks, size_t k)
{
    return dot_row_q45_k(weights, blocks, k, true);
}

/* Quants of block g of 4 in a half of 128 values. */
static void unpack_q6_k(const uint8_t *nibbles, const uint8_t *high, size_t g, int8_t *levels)
{
    nibbles += 32 * (g % 2);
    for (size_t i = 0; i < ACT_BLOCK; i++) {
        int level = (nibbles[i] >> (4 * (g / 2)) & 15) | (high[i] >> (2 * g) & 3) << 4;
        levels[i] = (int8_t)(level - 32);
    }
}

static float dot_row_q6_k(const uint8_t *weights, const struct host_act_block *blocks, size_t k)
{
    float sum = 0;
    for (size_t b = 0; b < k / ACT_BLOCK; b++) {
        size_t g = b % 4;
        size_t half = b % 8 / 4;
        int8_t levels[ACT_BLOCK];
        unpack_q6_k(weights + 64 * half, weights + 128 + 32 * half, g, levels);
        const uint8_t *scales = weights + 192 + 8 * half + 2 * g;
        float d = load_f16(weights + 208);
        int32_t first = dot_levels(levels, blocks[b].levels, 16);
        int32_t second = dot_levels(levels + 16, blocks[b].levels + 16, 16);
        float first_term = d * (float)(int8_t)scales[0] * (float)first;
        float second_term = d * (float)(int8_t)scales[1] * (float)second;
        float term = first_term + second_term;
        term *= blocks[b].scale;
        sum += term;
        if (b % 8 == 7)
            weights += Q6_K_BYTES;
    }
    return sum;
}

typedef float (*dot_row_function)(const uint8_t *weights, const struct host_act_block *blocks,
                                  size_t k);

static void for_each_output(const struct host_matmul_task *task, dot_row_function dot_row)
{
    for (size_t o = 0; o < task->weight_rows; o++) {
        for (size_t a = 0; a < task->activation_rows; a++)
            task->output[a * task->output_stride + o] = dot_row(weight_row(task, o),
                                                                act_blocks(task, a), task->k);
    }
}

void matmul_portable_q8_0(const struct host_matmul_task *task)
{
    for_each_output(task, dot_row_q8_0);
}

void matmul_portable_q4_0(const struct host_matmul_task *task)
{
    for_each_output(task, dot_row_q4_0);
}

void matmul_portable_q4_k(const struct host_matmul_task *task)
{
    for_each_output(task, dot_row_q4_k);
}

void matmul_portable_q5_k(const struct host_matmul_task *task)
{
    for_each_output(task, dot_row_q5_k);
}

void matmul_portable_q6_k(const struct host_matmul_task *task)
{
    for_each_output(task, dot_row_q6_k);
}

/* attention_portable.c - attention's inner functions in plain C.
 *
 * Order. dot: 8 lanes, lane l takes products l, l + 8, ..., each rounded and then added; then lanes
 * l and l + 4, l + 2, l + 1. Sum of a chunk's weights: 8 lanes, the same. Weighted values: product
 * rounded, then added. exp: expf of the C library. */
#include "ops/host/attention.h"
#include "ops/host/kernels.h"

#include <math.h>
#include <string.h>

#define LANES 8
#define BLOCK_VALUES 32
#define BLOCK_BYTES 34

/* f16_to_f32 without branches, so that it becomes vector code. The bits of a half, moved to the
 * place of an f32's, are the value times 2^-112; infinity and NaN need their exponent filled up. */
static inline float half_value(const uint8_t *bytes)
{
    uint16_t half;
    memcpy(&half, bytes, sizeof(half));
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t bits = (uint32_t)(half & 0x7FFFu) << 13;
    float scaled;
    memcpy(&scaled, &bits, sizeof(scaled));
    scaled *= 0x1p112f;
    uint32_t magnitude;
    memcpy(&magnitude, &scaled, sizeof(magnitude));
    uint32_t result = sign | magnitude | ((half & 0x7C00u) == 0x7C00u ? 0x7F800000u : 0);
    float value;
    memcpy(&value, &result, sizeof(value));
    return value;
}

static void decode_f16(const uint8_t *halves, size_t count, float *values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = half_value(halves + 2 * i);
}

/* Part of a row of blocks that may begin and end inside a block; eight quants never cross one. */
static void decode_q8_0(const uint8_t *row, size_t first, size_t count, float *values)
{
    for (size_t i = 0; i < count; i += 8) {
        size_t place = first + i;
        const uint8_t *block = row + place / BLOCK_VALUES * BLOCK_BYTES;
        float scale = half_value(block);
        for (size_t l = 0; l < 8; l++)
            values[i + l] = scale * (float)(int8_t)block[2 + place % BLOCK_VALUES + l];
    }
}

static void decode(enum dtype dtype, const uint8_t *row, size_t first, size_t count, float *values)
{
    if (dtype == DTYPE_F16)
        decode_f16(row + 2 * first, count, values);
    else if (dtype == DTYPE_Q8_0)
        decode_q8_0(row, first, count, values);
    else
        memcpy(values, row + 4 * first, count * sizeof(float));
}

static float sum_lanes(float lanes[LANES])
{
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    }
    return lanes[0];
}

static float dot(const float *a, const float *b, size_t dims)
{
    float lanes[LANES] = { 0 };
    for (size_t d = 0; d < dims; d += LANES) {
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += a[d + l] * b[d + l];
    }
    return sum_lanes(lanes);
}

static void score(const struct attention_heads *heads, const float *rows, size_t slot, float scale)
{
    for (size_t head = 0; head < heads->count; head++) {
        const float *query = heads->queries + head * heads->dims;
        float *scores = heads->scores + head * ATTENTION_SCORES + slot;
        for (size_t r = 0; r < ATTENTION_ROWS; r++)
            scores[r] = dot(query, rows + r * heads->dims, heads->dims) * scale;
    }
}

static void limit(float *scores, size_t count, float cap)
{
    for (size_t i = 0; i < count; i++)
        scores[i] = cap * tanhf(scores[i] / cap);
}

static float largest(const float *scores, size_t count)
{
    float lanes[LANES];
    memcpy(lanes, scores, sizeof(lanes));
    for (size_t i = LANES; i < count; i += LANES) {
        for (size_t l = 0; l < LANES; l++)
            lanes[l] = scores[i + l] > lanes[l] ? scores[i + l] : lanes[l];
    }
    float result = lanes[0];
    for (size_t l = 1; l < LANES; l++)
        result = lanes[l] > result ? lanes[l] : result;
    return result;
}

static float weigh(float *scores, size_t count, float maximum)
{
    float lanes[LANES] = { 0 };
    for (size_t i = 0; i < count; i++) {
        scores[i] = expf(scores[i] - maximum);
        lanes[i % LANES] += scores[i];
    }
    return sum_lanes(lanes);
}

static void gather(const struct attention_heads *heads, const float *rows, size_t row_count,
                   size_t slot)
{
    for (size_t head = 0; head < heads->count; head++) {
        const float *weights = heads->scores + head * ATTENTION_SCORES + slot;
        float *chunk = heads->chunk + head * heads->dims;
        for (size_t r = 0; r < row_count; r++) {
            for (size_t d = 0; d < heads->dims; d++)
                chunk[d] += weights[r] * rows[r * heads->dims + d];
        }
    }
}

void host_attention_tile_portable(const struct device_host_call *call, uint64_t tile)
{
    host_attention_tile(
        call, tile, &(struct attention_methods){ decode, score, limit, largest, weigh, gather });
}

/* routing.h - the arithmetic of route_experts, the same bits on every device: additions,
 * multiplications and divisions of float in one order, and no function of a library. GPU kernels
 * include this header too, so it is freestanding. It must be compiled without floating-point
 * contraction.
 *
 * Order of sums: 32 sums, of the experts whose ids are equal mod 32, in increasing order; these are
 * added by halves. The sum of the chosen ones is in the order of the choice. */
#ifndef GRETA_OPS_ROUTING_H
#define GRETA_OPS_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#define ROUTING_LANES 32u
/* Sums of chosen scores below this divide as this. */
#define ROUTING_SUM_LEAST 0x1p-14f

static inline uint32_t routing_bits(float value)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float routing_float(uint32_t bits)
{
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline bool routing_is_finite(float value)
{
    return (routing_bits(value) & 0x7F800000u) != 0x7F800000u;
}

/* exp(x) for x <= 0, within 3 units in the last place; 0 below -87, where results end that have all
 * their bits, and for NaN. */
static inline float routing_exp(float x)
{
    const float log2e = 1.44269504088896341f, high = 0.693359375f, low = -2.12194440e-4f;
    bool usable = x >= -87.0f;
    float y = usable ? x : 0.0f;
    int32_t n = (int32_t)(y * log2e - 0.5f); /* to nearest: y is not positive */
    float r = y - (float)n * high;
    r = r - (float)n * low;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r;
    p = p + 1.0f;
    return usable ? p * routing_float((uint32_t)(n + 127) << 23) : 0.0f;
}

static inline float routing_sigmoid(float x)
{
    float e = routing_exp(x < 0 ? x : -x);
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

/* Larger keys come first: the value's order, then the smaller id; no two are equal, and none is 0.
 * A NaN is smaller than every number. */
static inline uint64_t routing_key(float value, uint32_t id)
{
    uint32_t bits = routing_bits(value == 0.0f ? 0.0f : value);
    uint32_t order = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    if (value != value)
        order = 0;
    return (uint64_t)order << 32 | (uint32_t)~id;
}

static inline uint32_t routing_id(uint64_t key)
{
    return ~(uint32_t)key;
}

/* Weight of a chosen score. sum: of all chosen ones. */
static inline float routing_weight(float score, float sum, bool normalise, float scale)
{
    float divisor = sum > ROUTING_SUM_LEAST ? sum : ROUTING_SUM_LEAST;
    return (normalise ? score / divisor : score) * scale;
}

#endif

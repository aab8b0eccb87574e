/* synth_random.h - random numbers that are the same on every machine: integer arithmetic only. */
#ifndef GRETA_CONVERT_SYNTH_RANDOM_H
#define GRETA_CONVERT_SYNTH_RANDOM_H

#include <stdint.h>

/* SplitMix64: the state is a counter, every seed gives a full-period stream of its own. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Each name has a stream of its own, so that tensors do not depend on each other's order. */
static inline uint64_t random_seed(uint64_t seed, const char *name)
{
    uint64_t state = seed;
    for (; *name; name++)
        state = random_next(&state) ^ (unsigned char)*name;
    return random_next(&state);
}

/* The sum of twelve uniform 16-bit numbers has variance 1 in units of 65536: gaussian to 6 sigma,
 * exact on every machine. */
static inline float random_gaussian(uint64_t *state)
{
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t bits = random_next(state);
        sum += (int64_t)(bits & 0xFFFF) + (int64_t)(bits >> 16 & 0xFFFF) +
               (int64_t)(bits >> 32 & 0xFFFF) + (int64_t)(bits >> 48);
    }
    return (float)(sum - 6 * 65535) / 65536.0f;
}

#endif

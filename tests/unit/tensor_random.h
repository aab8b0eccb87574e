/* tensor_random.h - repeatable pseudo-random numbers for the tests of src/tensor. */
#ifndef GRETA_TESTS_TENSOR_RANDOM_H
#define GRETA_TESTS_TENSOR_RANDOM_H

#include <math.h>
#include <stdint.h>

/* A Weyl sequence through a mixing function: any seed will do. */
struct random_state {
    uint64_t counter;
};

static inline uint64_t random_u64(struct random_state *state)
{
    state->counter += 0x9E3779B97F4A7C15u;
    uint64_t mixed = state->counter;
    mixed = (mixed ^ mixed >> 31) * 0xD6E8FEB86659FD93u;
    mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93u;
    return mixed ^ mixed >> 32;
}

/* Uniform in (0, 1); never 0, so that it has a logarithm. */
static inline double random_unit(struct random_state *state)
{
    return ((double)(random_u64(state) >> 12) + 0.5) * 0x1p-52;
}

/* Mean 0, variance 1. */
static inline float random_gaussian(struct random_state *state)
{
    const double full_turn = 6.283185307179586;
    double radius = sqrt(-2 * log(random_unit(state)));
    return (float)(radius * cos(full_turn * random_unit(state)));
}

#endif

/* ops_host_attention_setup.h - for tests of attention: calls with caches of any type, and the same
 * in float64. */
#ifndef GRETA_TESTS_OPS_HOST_ATTENTION_SETUP_H
#define GRETA_TESTS_OPS_HOST_ATTENTION_SETUP_H

#include "ops_host_rig.h"

#include "tensor/quant.h"

/* Operands, in the order of the contract. */
enum { Q, KEYS, VALUES, STARTS, POSITIONS, OUT };

struct span {
    int32_t start, position;
};

#define SLOT_COUNT 1024u

/* Around vectors, groups of rows and chunks; the last one ends with the last slot. */
static const struct span spans[] = { { 0, 0 },     { 1023, 0 }, { 7, 2 },    { 3, 3 },
                                     { 3, 4 },     { 90, 15 },  { 11, 16 },  { 0, 254 },
                                     { 1, 255 },   { 2, 256 },  { 3, 257 },  { 500, 511 },
                                     { 511, 512 }, { 0, 1000 }, { 23, 1000 } };

struct setup {
    enum dtype dtype;
    uint32_t head_dim, heads, kv_heads;
    float query_size;
};

struct attention {
    struct rig rig;
    struct params_attention params;
    struct setup setup;
    uint64_t token_count;
};

/* A cache of the values that fit the type, so that encoding is part of no test. */
static inline void fill_cache(struct rig *rig, size_t index, uint64_t seed)
{
    const struct device_host_operand *cache = &rig->operands[index];
    struct random_state random = { .counter = seed };
    float *values = malloc(cache->shape.dims[0] * sizeof(float));
    for (uint64_t s = 0; s < cache->shape.dims[1]; s++) {
        for (uint64_t i = 0; i < cache->shape.dims[0]; i++)
            values[i] = random_gaussian(&random);
        quant_encode_row(cache->dtype, values, cache->shape.dims[0],
                         rig->memory[index].bytes + s * cache->row_stride_bytes);
    }
    free(values);
}

static inline void attention_init(struct attention *attention, const struct setup *setup,
                                  const struct span *tokens, uint64_t token_count,
                                  uint64_t slot_count)
{
    uint64_t width = (uint64_t)setup->head_dim * setup->heads;
    uint64_t kv_dim = (uint64_t)setup->head_dim * setup->kv_heads;
    struct rig *rig = &attention->rig;
    attention->setup = *setup;
    attention->token_count = token_count;
    attention->params = (struct params_attention){ .head_dim = setup->head_dim,
                                                   .scale = 1 / sqrtf((float)setup->head_dim) };
    rig_init(rig, &attention->params, "");
    rig_operand(rig, Q, DTYPE_F32, width, token_count, 4);
    rig_operand(rig, KEYS, setup->dtype, kv_dim, slot_count, 0);
    rig_operand(rig, VALUES, setup->dtype, kv_dim, slot_count, 0);
    rig_list(rig, STARTS, NULL, token_count);
    rig_list(rig, POSITIONS, NULL, token_count);
    rig_operand(rig, OUT, DTYPE_F32, width, token_count, 12);
    for (uint64_t t = 0; t < token_count; t++) {
        ((int32_t *)rig->operands[STARTS].data)[t] = tokens[t].start;
        ((int32_t *)rig->operands[POSITIONS].data)[t] = tokens[t].position;
    }
    rig_fill(rig, Q, 11, setup->query_size);
    fill_cache(rig, KEYS, 12);
    fill_cache(rig, VALUES, 13);
}

static inline void attention_run(struct attention *attention, enum cpu_path path, bool backwards)
{
    const struct setup *setup = &attention->setup;
    snprintf(attention->rig.name, sizeof(attention->rig.name),
             "%s %s head_dim %u, %u on %u heads, size %g", cpu_path_name(path),
             dtype_name(setup->dtype), setup->head_dim, setup->heads, setup->kv_heads,
             (double)setup->query_size);
    uint64_t tile_tokens = attention_tile_tokens(&attention->params);
    rig_run(&attention->rig, rig_kernel(path, "attention"),
            (attention->token_count + tile_tokens - 1) / tile_tokens * setup->kv_heads, backwards);
}

/* ---- Against float64 ------------------------------------------------------------------------ */

/* One cache as plain floats, [slot_count][kv_dim]. */
static inline float *decode_cache(const struct rig *rig, size_t index)
{
    const struct device_host_operand *cache = &rig->operands[index];
    uint64_t kv_dim = cache->shape.dims[0];
    float *values = malloc(kv_dim * cache->shape.dims[1] * sizeof(float));
    for (uint64_t s = 0; s < cache->shape.dims[1]; s++)
        quant_decode_row(cache->dtype, rig->memory[index].bytes + s * cache->row_stride_bytes,
                         kv_dim, values + s * kv_dim);
    return values;
}

/* For each slot: the weight, and by what part of itself it may be off in the kernels. */
struct slot_weight {
    double score, weight, error;
};

/* In units u = 2^-24. Roundings are independent, so n of them add up like the square root of n. The
 * score: a lane takes head_dim / 8 multiply-adds at most and 4 more sums, each of which rounds a
 * partial sum of at most, and mostly half of, sum |q k|. The difference to the maximum rounds once, exp is
 * within 2.1, the quotient rounds once. Sums of weights and of weighted values: 256 + count / 256
 * roundings at most, of partial sums a quarter as large as the whole or less. Weights below the
 * smallest float are 0. Worst found: half of what this allows. */
static inline void weigh_slots(const struct attention *attention, const float *q, const float *keys,
                               uint64_t kv_dim, uint64_t count, struct slot_weight *slots)
{
    const double unit = 0x1p-24;
    uint32_t head_dim = attention->setup.head_dim;
    double scale = (double)attention->params.scale;
    double maximum = -INFINITY;
    for (uint64_t s = 0; s < count; s++) {
        double dot = 0, magnitude = 0;
        for (uint32_t d = 0; d < head_dim; d++) {
            double term = (double)q[d] * (double)keys[s * kv_dim + d];
            dot += term;
            magnitude += fabs(term);
        }
        slots[s].score = dot * scale;
        slots[s].error = unit * sqrt(head_dim / 8 + 5) / 2 * magnitude * scale;
        maximum = fmax(maximum, slots[s].score);
    }
    for (uint64_t s = 0; s < count; s++) {
        double below = maximum - slots[s].score;
        slots[s].weight = exp(-below);
        slots[s].error += unit * (below + 4 + sqrt(256 + (double)count / 256) / 4);
    }
}

static inline void check_head(const struct attention *attention, uint64_t token, uint32_t head,
                              const float *keys, const float *values)
{
    const struct rig *rig = &attention->rig;
    uint32_t head_dim = attention->setup.head_dim;
    uint64_t kv_dim = (uint64_t)head_dim * attention->setup.kv_heads;
    uint32_t kv_head = head / (attention->setup.heads / attention->setup.kv_heads);
    uint64_t start = (uint64_t)((const int32_t *)rig->operands[STARTS].data)[token];
    uint64_t count = (uint64_t)((const int32_t *)rig->operands[POSITIONS].data)[token] + 1;
    uint64_t first = start * kv_dim + (uint64_t)kv_head * head_dim;
    struct slot_weight *slots = malloc(count * sizeof(*slots));
    weigh_slots(attention, rig_row(rig, Q, token) + head * head_dim, keys + first, kv_dim, count,
                slots);
    double sum = 0, sum_error = 0;
    for (uint64_t s = 0; s < count; s++) {
        sum += slots[s].weight;
        sum_error += slots[s].weight * slots[s].error;
    }
    for (uint32_t d = 0; d < head_dim; d++) {
        double total = 0, error = 0;
        for (uint64_t s = 0; s < count; s++) {
            double term = slots[s].weight * (double)values[first + s * kv_dim + d];
            total += term;
            error += fabs(term) * slots[s].error;
        }
        rig_check_near(rig, token, head * head_dim + d,
                       rig_row(rig, OUT, token)[head * head_dim + d], total / sum,
                       (error + fabs(total / sum) * sum_error) / sum + (double)count * 0x1p-146);
    }
    free(slots);
}

static inline void check_against_doubles(const struct attention *attention)
{
    float *keys = decode_cache(&attention->rig, KEYS);
    float *values = decode_cache(&attention->rig, VALUES);
    for (uint64_t t = 0; t < attention->token_count; t++) {
        for (uint32_t head = 0; head < attention->setup.heads; head++)
            check_head(attention, t, head, keys, values);
    }
    free(keys);
    free(values);
}

#endif

/* experts.c - what is done around the matmuls of experts. The arithmetic is ops/routing.h's, so the
 * results have the same bits as the host's.
 *
 * route_experts: a block of one warp for each token. gate_experts, sum_experts: a thread for each
 * value of a row; x counts the parts of a row, y the rows. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/pack.h"
#include "ops/params.h"
#include "ops/routing.h"

_Static_assert(WARP == ROUTING_LANES, "a lane for each of the sums");

/* ---- route_experts -------------------------------------------------------------------------- */

/* A token's experts, in shared memory. */
struct route {
    const GLOBAL float *logits, *bias; /* bias: NULL if there is none */
    SHARED uint64_t *keys;             /* [count] by which they are chosen; 0: not any more */
    SHARED uint64_t *groups;           /* [group_count] the same of groups; 0: chosen */
    SHARED float *scores;              /* [count] */
    uint32_t count;
};

INLINE uint64_t larger_key(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Every lane has it. */
INLINE uint64_t largest_key(const SHARED uint64_t *keys, uint32_t count)
{
    uint64_t key = 0;
    for (uint32_t i = lane_index(); i < count; i += WARP)
        key = larger_key(key, keys[i]);
    for (uint32_t distance = WARP / 2; distance > 0; distance /= 2) {
        uint32_t low = warp_swap((uint32_t)key, distance);
        uint32_t high = warp_swap((uint32_t)(key >> 32), distance);
        key = larger_key(key, (uint64_t)high << 32 | low);
    }
    return key;
}

INLINE bool route_is_finite(const struct route *route)
{
    uint32_t bad = 0;
    for (uint32_t i = lane_index(); i < route->count; i += WARP)
        bad |= !routing_is_finite(route->logits[i]);
    return warp_max_bits(bad, WARP) == 0;
}

INLINE void route_softmax(const struct route *route)
{
    float largest = route->logits[0], sum = 0;
    for (uint32_t i = lane_index(); i < route->count; i += WARP)
        largest = route->logits[i] > largest ? route->logits[i] : largest;
    largest = warp_max(largest, WARP);
    for (uint32_t i = lane_index(); i < route->count; i += WARP) {
        float score = routing_exp(route->logits[i] - largest);
        route->scores[i] = score;
        sum += score;
    }
    sum = warp_sum(sum, WARP);
    for (uint32_t i = lane_index(); i < route->count; i += WARP)
        route->scores[i] /= sum;
}

INLINE float route_choice(const struct route *route, uint32_t id)
{
    return route->scores[id] + (route->bias ? route->bias[id] : 0.0f);
}

/* The sum of the two best of a group, by one lane. */
INLINE float route_group(const struct route *route, uint32_t first, uint32_t size)
{
    uint64_t best = 0, second = 0;
    for (uint32_t i = first; i < first + size; i++) {
        uint64_t key = route->keys[i];
        second = key > best ? best : larger_key(second, key);
        best = larger_key(best, key);
    }
    float sum = route_choice(route, routing_id(best));
    return size > 1 ? sum + route_choice(route, routing_id(second)) : sum;
}

/* Leaves the keys of the best groups. */
INLINE void route_keep_groups(const struct route *route, const struct params_route_experts *params)
{
    uint32_t size = route->count / params->group_count;
    for (uint32_t g = lane_index(); g < params->group_count; g += WARP)
        route->groups[g] = routing_key(route_group(route, g * size, size), g);
    block_sync();
    for (uint32_t n = 0; n < params->groups_used; n++) {
        uint64_t best = largest_key(route->groups, params->group_count);
        block_sync();
        if (lane_index() == 0)
            route->groups[routing_id(best)] = 0;
        block_sync();
    }
    for (uint32_t i = lane_index(); i < route->count; i += WARP)
        if (route->groups[i / size])
            route->keys[i] = 0;
    block_sync();
}

INLINE void route_choose(const struct route *route, const struct params_route_experts *params,
                         GLOBAL int32_t *ids, GLOBAL float *weights, uint32_t k)
{
    float sum = 0;
    for (uint32_t n = 0; n < k; n++) {
        uint32_t best = routing_id(largest_key(route->keys, route->count));
        sum += route->scores[best];
        block_sync();
        if (lane_index() == 0) {
            ids[n] = (int32_t)best;
            weights[n] = route->scores[best];
            route->keys[best] = 0;
        }
        block_sync();
    }
    if (lane_index() == 0)
        for (uint32_t n = 0; n < k; n++)
            weights[n] = routing_weight(weights[n], sum, params->normalise, params->weight_scale);
}

KERNEL(route_experts)
{
    ENTER(call);
    const struct params_route_experts *params = (const void *)call.params;
    uint32_t k = (uint32_t)call.operands[ROUTE_EXPERTS_IDS].width;
    struct route route = { .count = (uint32_t)call.operands[ROUTE_EXPERTS_LOGITS].width };
    route.logits = row_f32(&call.operands[ROUTE_EXPERTS_LOGITS], block_x());
    route.bias = (const GLOBAL float *)call.operands[ROUTE_EXPERTS_BIAS].address;
    route.keys = (SHARED uint64_t *)shared_memory();
    route.groups = route.keys + route.count;
    route.scores = (SHARED float *)(route.groups + params->group_count);
    GLOBAL int32_t *ids = (GLOBAL int32_t *)row_at(&call.operands[ROUTE_EXPERTS_IDS], block_x());
    GLOBAL float *weights = row_f32(&call.operands[ROUTE_EXPERTS_WEIGHTS], block_x());
    if (!route_is_finite(&route)) {
        for (uint32_t n = lane_index(); n < k; n += WARP) {
            ids[n] = (int32_t)n;
            weights[n] = routing_float(0x7FC00000u);
        }
        return;
    }
    if (params->sigmoid)
        for (uint32_t i = lane_index(); i < route.count; i += WARP)
            route.scores[i] = routing_sigmoid(route.logits[i]);
    else
        route_softmax(&route);
    block_sync();
    bool by_logits = !route.bias && params->group_count == 1;
    for (uint32_t i = lane_index(); i < route.count; i += WARP)
        route.keys[i] = routing_key(by_logits ? route.logits[i] : route_choice(&route, i), i);
    block_sync();
    if (params->group_count > 1)
        route_keep_groups(&route, params);
    route_choose(&route, params, ids, weights, k);
}

/* ---- gate_experts --------------------------------------------------------------------------- */

INLINE float gate_value(const struct params_gate_experts *params, float gate, float up)
{
    if (params->limit <= 0)
        return gate * routing_sigmoid(gate) * up;
    gate = gate > params->limit ? params->limit : gate;
    up = up > params->limit ? params->limit : up < -params->limit ? -params->limit : up;
    return gate * routing_sigmoid(params->alpha * gate) * (up + 1.0f);
}

KERNEL(gate_experts)
{
    ENTER(call);
    const struct params_gate_experts *params = (const void *)call.params;
    const struct gpu_operand *out = &call.operands[GATE_EXPERTS_OUT]; /* all [width, slots] */
    const struct gpu_operand *weights = &call.operands[GATE_EXPERTS_WEIGHTS];
    uint32_t i = block_x() * thread_count() + thread_index();
    for (uint64_t slot = block_y(); slot < out->rows; slot += experts_args_of(&call)->row_step) {
        float weight = weights->address ? row_f32(weights, 0)[slot] : 1.0f, value = 0;
        if (i < out->width) {
            value = gate_value(params, row_f32(&call.operands[GATE_EXPERTS_GATE], slot)[i] * weight,
                               row_f32(&call.operands[GATE_EXPERTS_UP], slot)[i] * weight);
            row_f32(out, slot)[i] = value;
        }
        if (call.operands[GATE_EXPERTS_PACKED].address)
            pack_value(params->packing.format, row_at(&call.operands[GATE_EXPERTS_PACKED], slot),
                       out->width, i, value);
    }
}

/* ---- sum_experts ---------------------------------------------------------------------------- */

KERNEL(sum_experts)
{
    ENTER(call);
    const struct gpu_operand *x = &call.operands[SUM_EXPERTS_X];     /* [width, slots] */
    const struct gpu_operand *out = &call.operands[SUM_EXPERTS_OUT]; /* [width, tokens] */
    const struct gpu_operand *weights = &call.operands[SUM_EXPERTS_WEIGHTS],
                             *shared = &call.operands[SUM_EXPERTS_SHARED],
                             *gates = &call.operands[SUM_EXPERTS_SHARED_GATE];
    uint32_t i = block_x() * thread_count() + thread_index();
    if (i >= out->width)
        return;
    uint64_t k = x->rows / out->rows;
    for (uint64_t t = block_y(); t < out->rows; t += experts_args_of(&call)->row_step) {
        float sum = 0;
        for (uint64_t n = 0; n < k; n++) {
            float weight = weights->address ? row_f32(weights, 0)[t * k + n] : 1.0f;
            float product = weight * row_f32(x, t * k + n)[i];
            sum = n ? sum + product : product;
        }
        if (shared->address) {
            float gate = gates->address ? routing_sigmoid(row_f32(gates, 0)[t]) : 1.0f;
            sum = sum + gate * row_f32(shared, t)[i];
        }
        row_f32(out, t)[i] = sum;
    }
}

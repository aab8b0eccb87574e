/* experts.c - what is done around the matmuls of experts: route_experts, gate_experts, sum_experts.
 * All paths have the same bits: the arithmetic is ops/routing.h's, and the loops are compiled for
 * each path from the same source.
 *
 * gate_experts: with e = exp(-|z|), z = gate or alpha * gate, the sigmoid of z is (z < 0 ? e : 1) /
 * (1 + e); silu multiplies gate by it, then by up. sum_experts adds product after product in the
 * order of the slots, each rounded, then the shared expert's. */
#include "ops/host/kernels.h"

#include "ops/host/matmul_tiles.h"
#include "ops/host/rows.h"
#include "ops/host/simd.h"
#include "ops/routing.h"

#include <string.h>

/* ---- route_experts -------------------------------------------------------------------------- */

/* A token's experts. */
struct scores {
    float values[ROUTE_EXPERTS_LIMIT];  /* what the weights are made of */
    uint64_t keys[ROUTE_EXPERTS_LIMIT]; /* by which they are chosen; 0: not any more */
    uint32_t count;
};

static float join_lanes(float lanes[ROUTING_LANES])
{
    for (uint32_t distance = ROUTING_LANES / 2; distance > 0; distance /= 2)
        for (uint32_t l = 0; l < distance; l++)
            lanes[l] += lanes[l + distance];
    return lanes[0];
}

static void softmax(const float *logits, struct scores *scores)
{
    float largest = logits[0], lanes[ROUTING_LANES] = { 0 };
    for (uint32_t i = 1; i < scores->count; i++)
        largest = logits[i] > largest ? logits[i] : largest;
    for (uint32_t i = 0; i < scores->count; i++) {
        scores->values[i] = routing_exp(logits[i] - largest);
        lanes[i % ROUTING_LANES] += scores->values[i];
    }
    float sum = join_lanes(lanes);
    for (uint32_t i = 0; i < scores->count; i++)
        scores->values[i] /= sum;
}

/* The place of the largest key of a range. */
static uint32_t largest_key(const uint64_t *keys, uint32_t first, uint32_t end)
{
    uint32_t best = first;
    for (uint32_t i = first + 1; i < end; i++)
        best = keys[i] > keys[best] ? i : best;
    return best;
}

/* What a key was made of. */
static float key_value(const struct scores *scores, const float *bias, uint32_t id)
{
    return scores->values[id] + (bias ? bias[id] : 0.0f);
}

/* Leaves the keys of the best groups. */
static void keep_groups(struct scores *scores, const float *bias,
                        const struct params_route_experts *params)
{
    uint64_t groups[ROUTE_EXPERTS_LIMIT];
    uint32_t size = scores->count / params->group_count;
    for (uint32_t g = 0; g < params->group_count; g++) {
        uint64_t *keys = scores->keys + g * size;
        uint32_t best = largest_key(keys, 0, size);
        float sum = key_value(scores, bias, g * size + best);
        if (size > 1) {
            uint64_t kept = keys[best];
            keys[best] = 0;
            sum += key_value(scores, bias, g * size + largest_key(keys, 0, size));
            keys[best] = kept;
        }
        groups[g] = routing_key(sum, g);
    }
    for (uint32_t n = 0; n < params->groups_used; n++)
        groups[largest_key(groups, 0, params->group_count)] = 0;
    for (uint32_t g = 0; g < params->group_count; g++)
        if (groups[g])
            memset(scores->keys + g * size, 0, size * sizeof(scores->keys[0]));
}

static void route_token(const struct params_route_experts *params, const float *logits,
                        const float *bias, struct scores *scores, int32_t *ids, float *weights,
                        uint32_t k)
{
    bool by_logits = !bias && params->group_count == 1;
    if (!params->sigmoid)
        softmax(logits, scores);
    else
        for (uint32_t i = 0; i < scores->count; i++)
            scores->values[i] = routing_sigmoid(logits[i]);
    for (uint32_t i = 0; i < scores->count; i++)
        scores->keys[i] = routing_key(by_logits ? logits[i] : key_value(scores, bias, i), i);
    if (params->group_count > 1)
        keep_groups(scores, bias, params);
    float sum = 0;
    for (uint32_t n = 0; n < k; n++) {
        uint32_t best = largest_key(scores->keys, 0, scores->count);
        ids[n] = (int32_t)best;
        scores->keys[best] = 0;
        sum += scores->values[best];
    }
    for (uint32_t n = 0; n < k; n++)
        weights[n] = routing_weight(scores->values[ids[n]], sum, params->normalise,
                                    params->weight_scale);
}

static void refuse_token(int32_t *ids, float *weights, uint32_t k)
{
    for (uint32_t n = 0; n < k; n++) {
        ids[n] = (int32_t)n;
        weights[n] = routing_float(0x7FC00000u);
    }
}

void host_route_experts_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct device_host_operand *logits = &call->operands[ROUTE_EXPERTS_LOGITS];
    const struct device_host_operand *ids = &call->operands[ROUTE_EXPERTS_IDS]; /* [k, tokens] */
    struct scores *scores = call->scratch;
    struct row_range tokens = tile_tokens(tile, logits); /* [experts, tokens] */
    uint32_t k = (uint32_t)ids->shape.dims[0];
    for (uint64_t t = tokens.first; t < tokens.end; t++) {
        const float *row = row_f32(logits, t);
        int32_t *chosen = (int32_t *)(void *)row_bytes(ids, t);
        float *weights = row_f32(&call->operands[ROUTE_EXPERTS_WEIGHTS], t);
        bool finite = true;
        scores->count = (uint32_t)logits->shape.dims[0];
        for (uint32_t i = 0; i < scores->count; i++)
            finite = finite && routing_is_finite(row[i]);
        if (finite)
            route_token(call->params, row, call->operands[ROUTE_EXPERTS_BIAS].data, scores, chosen,
                        weights, k);
        else
            refuse_token(chosen, weights, k);
    }
}

/* ---- gate_experts --------------------------------------------------------------------------- */

#define INLINE static inline __attribute__((always_inline))

INLINE float silu_gated(float gate, float up)
{
    return gate * routing_sigmoid(gate) * up;
}

/* A comparison with NaN keeps the NaN. */
INLINE float clamped_gated(float gate, float up, const struct params_gate_experts *params)
{
    gate = gate > params->limit ? params->limit : gate;
    up = up > params->limit ? params->limit : up < -params->limit ? -params->limit : up;
    return gate * routing_sigmoid(params->alpha * gate) * (up + 1.0f);
}

INLINE void gate_row(const struct params_gate_experts *params, const float *gate, const float *up,
                     float weight, float *out, uint64_t width)
{
    if (params->limit > 0)
        for (uint64_t i = 0; i < width; i++)
            out[i] = clamped_gated(gate[i] * weight, up[i] * weight, params);
    else
        for (uint64_t i = 0; i < width; i++)
            out[i] = silu_gated(gate[i] * weight, up[i] * weight);
}

INLINE void gate_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct params_gate_experts *params = call->params;
    const struct device_host_operand *weights = &call->operands[GATE_EXPERTS_WEIGHTS]; /* [slots] */
    const struct device_host_operand *out = &call->operands[GATE_EXPERTS_OUT]; /* [width, slots] */
    struct row_range slots = tile_tokens(tile, out);
    for (uint64_t s = slots.first; s < slots.end; s++) {
        float weight = weights->data ? ((const float *)weights->data)[s] : 1.0f;
        gate_row(params, row_f32(&call->operands[GATE_EXPERTS_GATE], s),
                 row_f32(&call->operands[GATE_EXPERTS_UP], s), weight, row_f32(out, s),
                 out->shape.dims[0]);
        host_pack_row(&params->packing, out, &call->operands[GATE_EXPERTS_PACKED], s);
    }
}

void host_gate_experts_tile_portable(const struct device_host_call *call, uint64_t tile)
{
    gate_tile(call, tile);
}

/* ---- sum_experts ---------------------------------------------------------------------------- */

INLINE void sum_row(const struct device_host_call *call, uint64_t token, uint64_t k)
{
    const struct device_host_operand *x = &call->operands[SUM_EXPERTS_X]; /* [width, slots] */
    const float *weights = call->operands[SUM_EXPERTS_WEIGHTS].data;      /* [slots] */
    const struct device_host_operand *shared = &call->operands[SUM_EXPERTS_SHARED];
    const float *gates = call->operands[SUM_EXPERTS_SHARED_GATE].data; /* [tokens] */
    float *out = row_f32(&call->operands[SUM_EXPERTS_OUT], token);     /* [width, tokens] */
    uint64_t width = x->shape.dims[0];
    for (uint64_t n = 0; n < k; n++) {
        const float *row = row_f32(x, token * k + n);
        float weight = weights ? weights[token * k + n] : 1.0f;
        for (uint64_t i = 0; i < width; i++)
            out[i] = n ? out[i] + weight * row[i] : weight * row[i];
    }
    if (!shared->data)
        return;
    const float *row = row_f32(shared, token);
    float gate = gates ? routing_sigmoid(gates[token]) : 1.0f;
    for (uint64_t i = 0; i < width; i++)
        out[i] = out[i] + gate * row[i];
}

INLINE void sum_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct device_host_operand *out = &call->operands[SUM_EXPERTS_OUT];
    struct row_range tokens = tile_tokens(tile, out);
    uint64_t k = call->operands[SUM_EXPERTS_X].shape.dims[1] / out->shape.dims[1];
    for (uint64_t t = tokens.first; t < tokens.end; t++)
        sum_row(call, t, k);
}

void host_sum_experts_tile_portable(const struct device_host_call *call, uint64_t tile)
{
    sum_tile(call, tile);
}

/* ---- Wider instructions --------------------------------------------------------------------- */

#if defined(__x86_64__)

TARGET_AVX2 void host_gate_experts_tile_avx2(const struct device_host_call *call, uint64_t tile)
{
    gate_tile(call, tile);
}

TARGET_AVX2 void host_sum_experts_tile_avx2(const struct device_host_call *call, uint64_t tile)
{
    sum_tile(call, tile);
}

TARGET_AVX512 void host_gate_experts_tile_avx512(const struct device_host_call *call, uint64_t tile)
{
    gate_tile(call, tile);
}

TARGET_AVX512 void host_sum_experts_tile_avx512(const struct device_host_call *call, uint64_t tile)
{
    sum_tile(call, tile);
}

#endif

/* reference_experts.c - see reference_experts.h. */
#include "reference_experts.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void multiply(const struct reference_multiplier *by, const char *name, size_t skipped,
                     const double *h, size_t rows, double *out)
{
    by->multiply(by->context, by->layer, name, skipped, "ffn_norm.out", 1, 0, h,
                 by->config->embedding_length, rows, out);
}

static double gelu(double x)
{
    return x / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

/* gate becomes what a gated unit gives of gate and up. */
static void activate(const struct model_config *config, bool clamped, double *gate,
                     const double *up, size_t feed)
{
    bool silu = model_arch_info(config->arch)->activation == MODEL_ACTIVATION_SILU;
    for (size_t i = 0; i < feed; i++) {
        double g = clamped ? fmin(gate[i], 7) : gate[i];
        double u = clamped ? fmax(fmin(up[i], 7), -7) + 1 : up[i];
        gate[i] = silu ? g / (1 + exp(clamped ? -1.702 * g : -g)) * u : gelu(g) * u;
    }
}

/* The sum of a group's two best. */
static double group_score(const double *scores, size_t count)
{
    double first = -INFINITY, second = -INFINITY;
    for (size_t e = 0; e < count; e++) {
        second = fmax(second, fmin(first, scores[e]));
        first = fmax(first, scores[e]);
    }
    return count > 1 ? first + second : first;
}

/* Leaves the groups out that a token may not use. */
static void leave_groups_out(const struct model_experts *experts, double *left)
{
    double scores[MODEL_EXPERT_LIMIT];
    size_t groups = experts->group_count, size = experts->count / groups;
    for (size_t g = 0; g < groups; g++)
        scores[g] = group_score(left + g * size, size);
    for (size_t g = 0; g < groups; g++) {
        size_t better = 0;
        for (size_t other = 0; other < groups; other++)
            better += scores[other] > scores[g] || (scores[other] == scores[g] && other < g);
        for (size_t e = 0; better >= experts->groups_used && e < size; e++)
            left[g * size + e] = -INFINITY;
    }
}

/* The experts of a token, best first, and their weights. */
static void choose(const struct model_experts *experts, const double *logits, const double *bias,
                   size_t *ids, double *weights)
{
    double all = 0, used = 0, largest = -INFINITY;
    double scores[MODEL_EXPERT_LIMIT], left[MODEL_EXPERT_LIMIT];
    bool sigmoid = experts->sigmoid || experts->weighs_input;
    for (size_t e = 0; e < experts->count; e++)
        largest = fmax(largest, logits[e]);
    for (size_t e = 0; e < experts->count; e++)
        all += exp(logits[e] - largest);
    for (size_t e = 0; e < experts->count; e++) {
        scores[e] = sigmoid ? 1 / (1 + exp(-logits[e])) : exp(logits[e] - largest) / all;
        left[e] = scores[e] + (bias ? bias[e] : 0);
    }
    if (experts->group_count > 1)
        leave_groups_out(experts, left);
    for (size_t n = 0; n < experts->used; n++) {
        ids[n] = 0;
        for (size_t e = 1; e < experts->count; e++)
            ids[n] = left[e] > left[ids[n]] ? e : ids[n];
        left[ids[n]] = -INFINITY;
        weights[n] = scores[ids[n]];
        used += weights[n];
    }
    for (size_t n = 0; n < experts->used; n++)
        weights[n] *= (double)experts->weight_scale / (experts->normalised ? used : 1);
}

static void add_shared(const struct reference_multiplier *by, const double *h, double *added)
{
    size_t width = by->config->embedding_length, feed = by->config->experts.shared_feed_length;
    double *gate = calloc(2 * feed + width, sizeof(*gate)), *up = gate + feed, *out = up + feed;
    double part = 1;
    ASSERT(gate);
    multiply(by, "ffn_gate_shexp", 0, h, feed, gate);
    multiply(by, "ffn_up_shexp", 0, h, feed, up);
    activate(by->config, false, gate, up, feed);
    by->multiply(by->context, by->layer, "ffn_down_shexp", 0, "ffn_shared_swiglu", 1, 0, gate, feed,
                 width, out);
    if (by->config->arch == MODEL_ARCH_QWEN2MOE) {
        multiply(by, "ffn_gate_inp_shexp", 0, h, 1, &part);
        part = 1 / (1 + exp(-part));
    }
    for (size_t i = 0; i < width; i++)
        added[i] += part * out[i];
    free(gate);
}

void reference_feed_experts(const struct reference_multiplier *by, const double *h,
                            const double *routed_by, const double *bias, const double *scales,
                            double *added)
{
    const struct model_experts *experts = &by->config->experts;
    size_t width = by->config->embedding_length, feed = experts->feed_length;
    size_t ids[MODEL_EXPERT_USED_LIMIT];
    double logits[MODEL_EXPERT_LIMIT], weights[MODEL_EXPERT_USED_LIMIT];
    double *gate = calloc(2 * feed + width, sizeof(*gate)), *up = gate + feed, *out = up + feed;
    ASSERT(gate);
    multiply(by, "ffn_gate_inp", 0, routed_by, experts->count, logits);
    choose(experts, logits, bias, ids, weights);
    memset(added, 0, width * sizeof(*added));
    for (size_t n = 0; n < experts->used; n++) {
        if (experts->fused) {
            multiply(by, "ffn_gate_up_exps", 2 * ids[n] * feed, h, feed, gate);
            multiply(by, "ffn_gate_up_exps", (2 * ids[n] + 1) * feed, h, feed, up);
        } else {
            multiply(by, "ffn_gate_exps", ids[n] * feed, h, feed, gate);
            multiply(by, "ffn_up_exps", ids[n] * feed, h, feed, up);
        }
        /* What an expert reads may be rounded, but not once more by its weight. */
        for (size_t i = 0; experts->weighs_input && i < feed; i++) {
            gate[i] *= weights[n];
            up[i] *= weights[n];
        }
        activate(by->config, experts->clamped, gate, up, feed);
        by->multiply(by->context, by->layer, "ffn_down_exps", ids[n] * width, "ffn_experts_gated",
                     experts->used, n, gate, feed, width, out);
        for (size_t i = 0; i < width; i++)
            added[i] += (scales ? scales[ids[n]] : 1) * (experts->weighs_input ? 1 : weights[n]) *
                        out[i];
    }
    if (experts->shared_feed_length)
        add_shared(by, h, added);
    free(gate);
}

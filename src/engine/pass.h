/* pass.h - a batch on its way through the layers, and what every part of the forward pass needs. */
#ifndef GRETA_ENGINE_PASS_H
#define GRETA_ENGINE_PASS_H

#include "engine/engine_impl.h"

/* A batch while it goes through the layers. */
struct pass {
    struct engine *engine;
    const struct model_arch_info *arch;
    struct model_layer layer; /* at which it is */
    struct ops_target target;
    uint64_t tokens;
    struct device_view x, normed, q, attn_out, k, v, added, gate, up; /* [.., tokens] */
    struct device_view ids, positions, starts, slots;                 /* I32 [tokens] */
    struct device_view chunk_positions, chunk_starts;                 /* where there are chunks */
    const struct device_view *input; /* of the block at hand: normed, or x where it has no norm */
    bool is_packed;                  /* the input is packed for the block's first weights */
    bool is_pending;                 /* `added` has yet to be added to x */
    struct error *err;
};

/* Names the next calls for the device's observer: layer (-1: none), tensor, and the line that makes
 * them. */
void pass_label(struct pass *pass, int32_t layer, const char *tensor, struct device_site site);

/* Taps what was just computed, before its buffer is reused. */
MUST_CHECK enum status pass_reach(struct pass *pass, enum engine_moment moment, int32_t layer);

/* The op that computes the input of a matmul also packs it, for the first of the weights. */
struct ops_packing pass_packing(struct device_view *ret_packed, const struct pass *pass,
                                const struct device_view *weights);

/* out = weights x input for up to three weights. is_packed: the input is packed for the first
 * weights already. It is packed again for each type that needs another packing. */
MUST_CHECK enum status pass_multiply(struct pass *pass, const struct device_view *input,
                                     bool is_packed, size_t count,
                                     const struct device_view *const *weights,
                                     const struct device_view *const *biases,
                                     const struct device_view *const *outs);
MUST_CHECK enum status pass_multiply_one(struct pass *pass, const struct device_view *input,
                                         bool is_packed, const struct device_view *weights,
                                         const struct device_view *bias,
                                         const struct device_view *out);

/* x += added, if that is pending. */
MUST_CHECK enum status pass_settle(struct pass *pass);

/* heads.c: queries, keys and values, ready to be looked up. */
MUST_CHECK enum status pass_make_heads(struct pass *pass, int32_t index);

/* latent.c, the same where they are made of short rows; and the values of all heads, of what
 * attention gave. */
MUST_CHECK enum status pass_make_latent_heads(struct pass *pass, int32_t index);
MUST_CHECK enum status pass_make_latent_values(struct pass *pass, int32_t index);

/* layer_input.c, for models whose layers have inputs of their own: makes them for the tokens, whose
 * embedding is in x; and adds what layer `index` makes of its own. */
MUST_CHECK enum status layer_inputs_make(struct pass *pass);
MUST_CHECK enum status layer_input_add(struct pass *pass, int32_t index);

/* experts.c: the feed-forward of a layer with experts, into `added`. In two parts: the router reads
 * the block's input and chooses; the chosen ones read it, and the sum of what they give is `out`.
 */
MUST_CHECK enum status pass_feed_experts(struct pass *pass, int32_t index);
MUST_CHECK enum status pass_route(struct pass *pass, int32_t index);
MUST_CHECK enum status pass_run_experts(struct pass *pass, int32_t index,
                                        const struct device_view *out);

/* experts_add.c: adds what experts give to the layer's own feed-forward, which is in `added`. */
MUST_CHECK enum status pass_add_experts(struct pass *pass, int32_t index);

/* NULL for an absent weight. */
static inline const struct device_view *pass_optional(const struct device_view *view)
{
    return engine_has(view) ? view : NULL;
}

#endif

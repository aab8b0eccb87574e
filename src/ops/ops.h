/* ops.h - what a model is computed with: one typed launch function per op.
 *
 * Activations are rows of f32, one row per token: [width, tokens]. A batch is ragged: its tokens
 * may belong to several sequences, each with a position of its own. Everything an op computes for a
 * token depends on that token alone, never on its neighbours in the batch, and in a fixed order; so
 * on the host results have the same bits whatever the chunking, batch or number of threads. On a
 * GPU the same calls give the same bits, and another batch may give others, within the same
 * tolerance: one token, a small batch and a large batch use different kernels, each with its own
 * order of sums (ops/gpu/plan_large_batch.c).
 *
 * Each op has a contract row (contract.c): operands with access, types and shapes, parameters,
 * footprint. A launch that breaks it is refused by the device with the numbers. Indices that live
 * on the device (token ids, positions, cache slots) are checked by the kernels, which skip a bad
 * one and leave a trap.
 *
 * The functions here fill a launch from views; the device checks and queues it. */
#ifndef GRETA_OPS_OPS_H
#define GRETA_OPS_OPS_H

#include "base/cpu.h"
#include "device/device.h"
#include "ops/operands.h"

struct device_contract; /* device/kernel.h */
struct device_launch;

enum ops_op {
    OPS_EMBED,
    OPS_RMS_NORM,
    OPS_HEAD_NORM,
    OPS_LAYER_NORM,
    OPS_ACT_PACK,
    OPS_MATMUL,
    OPS_MATMUL_GROUP,
    OPS_ROPE_TABLE,
    OPS_ROPE,
    OPS_KV_APPEND,
    OPS_ATTENTION,
    OPS_SWIGLU,
    OPS_GELU,
    OPS_SCALE,
    OPS_ADD,
    OPS_GATHER_ROWS,
    OPS_ARGMAX,
    OPS_TOP_K,
    OPS_REPACK,
    OPS_ROUTE_EXPERTS,
    OPS_MATMUL_EXPERTS,
    OPS_GATE_EXPERTS,
    OPS_SUM_EXPERTS,
    OPS_COUNT
};

/* Static. */
const struct device_contract *ops_contract(enum ops_op op);
/* The name that an op's contract gives an operand; NULL: there is none. Static. */
const char *ops_operand_name(const char *op, uint8_t operand);

struct ops_target;
struct ops_backend;
struct ops_watch; /* ops/again.h */

/* The loaded kernels of one device. On the host a path (portable, AVX2, AVX-512) is fixed here:
 * each has its own order of operations, and a model stays with one. */
struct ops {
    struct device *device;
    enum cpu_path host_path; /* on the host */
    bool on_gpu;
    const struct ops_backend *backend; /* static */
    const struct ops_watch *watch;     /* may be NULL; set by the owner before the first launch */
};

/* The ops of a host without a device: they answer how much memory is needed, and launch nothing. */
struct ops ops_for_budget(enum cpu_path host_path);

/* Loads the best kernels of this device. host_path may be lower, for comparison; CPU_PATH_COUNT
 * means the best. STATUS_UNSUPPORTED for a path that this processor does not have. */
MUST_CHECK enum status ops_load(struct ops *ops, struct device *device, enum cpu_path host_path,
                                struct error *err);

/* The GPU kernels of this build, for device_options: a GPU that they do not run on is not opened
 * then. */
const struct device_gpu_image *ops_gpu_image(void);

/* Where launches go, and which call site and scope they carry. */
struct ops_target {
    const struct ops *ops;
    struct device_stream stream;
    struct device_site site;
};

/* Packed rows in addition to plain ones, so that the next matmul need not pack them. */
struct ops_packing {
    const struct device_view *packed; /* as ops_act_pack makes them */
    enum dtype weight_dtype;
};

/* ---- Token rows ----------------------------------------------------------------------------- */

/* out[t] = table[ids[t]]. table [width, vocab] of any type, ids I32 [tokens], out [width, tokens].
 */
MUST_CHECK enum status ops_embed(const struct ops_target *target, const struct device_view *table,
                                 const struct device_view *ids, const struct device_view *out,
                                 struct error *err);

/* If added is not NULL: x += added. Then out = x / sqrt(mean(x^2) + epsilon) * weight. All
 * [width, tokens] but weight [width]. packing may be NULL. */
MUST_CHECK enum status ops_rms_norm(const struct ops_target *target, const struct device_view *x,
                                    const struct device_view *added,
                                    const struct device_view *weight, const struct device_view *out,
                                    const struct ops_packing *packing, float epsilon,
                                    struct error *err);

/* The same over each head of x [head_dim * heads, tokens], in place; weight [head_dim]. */
MUST_CHECK enum status ops_head_norm(const struct ops_target *target, const struct device_view *x,
                                     const struct device_view *weight, float epsilon,
                                     struct error *err);

struct ops_layer_norm_settings {
    float epsilon;
    uint32_t group; /* neighbouring values of a row that are normalised together; 0: all */
};

/* If added is not NULL: x += added. Then out = (x - mean) / sqrt(variance + epsilon) * weight, +
 * bias (or NULL). All [width, tokens] but weight and bias [width]; out may be x. packing may be
 * NULL; it needs rows that are one group. */
MUST_CHECK enum status ops_layer_norm(const struct ops_target *target, const struct device_view *x,
                                      const struct device_view *added,
                                      const struct device_view *weight,
                                      const struct device_view *bias, const struct device_view *out,
                                      const struct ops_packing *packing,
                                      const struct ops_layer_norm_settings *settings,
                                      struct error *err);

/* x *= factor, then, if cap is not 0, x = cap tanh(x / cap). [width, tokens]. */
MUST_CHECK enum status ops_scale(const struct ops_target *target, const struct device_view *x,
                                 float factor, float cap, struct error *err);

/* x += added, both [width, tokens]. */
MUST_CHECK enum status ops_add(const struct ops_target *target, const struct device_view *x,
                               const struct device_view *added, struct error *err);

/* out = silu(gate) * up, all [width, tokens]. packing may be NULL. */
MUST_CHECK enum status ops_swiglu(const struct ops_target *target, const struct device_view *gate,
                                  const struct device_view *up, const struct device_view *out,
                                  const struct ops_packing *packing, struct error *err);

/* out = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), times up (or NULL), all [width, tokens].
 * packing may be NULL. */
MUST_CHECK enum status ops_gelu(const struct ops_target *target, const struct device_view *x,
                                const struct device_view *up, const struct device_view *out,
                                const struct ops_packing *packing, struct error *err);

/* out[r] = x[rows[r]]. x [width, tokens], rows I32 [count], out [width, count]. */
MUST_CHECK enum status ops_gather_rows(const struct ops_target *target, const struct device_view *x,
                                       const struct device_view *rows,
                                       const struct device_view *out, struct error *err);

/* ---- Weights -------------------------------------------------------------------------------- */

/* The type in which this device prefers to hold a matrix with k values a row of a file's type: the
 * same type, or one that ops_repack makes of it, with as many bytes. */
enum dtype ops_weight_dtype(const struct ops *ops, enum dtype dtype, uint64_t k);

/* target = source, repacked. Both [k, rows]. */
MUST_CHECK enum status ops_repack(const struct ops_target *target, const struct device_view *source,
                                  const struct device_view *repacked, struct error *err);

/* ---- Matmul --------------------------------------------------------------------------------- */

/* Bytes of a packed row of k activations for weights of a type; a GPU packs large batches in
 * another way than small ones. Types that need the same format give the same number and can share
 * packed rows: see ops_same_packing. */
uint64_t ops_packed_row_bytes(const struct ops *ops, enum dtype weight_dtype, uint64_t k,
                              uint64_t tokens);
bool ops_same_packing(const struct ops *ops, enum dtype one, enum dtype other, uint64_t k,
                      uint64_t tokens);

/* Packs x [k, tokens] for weights of weight_dtype into packed, I8 [packed_row_bytes, tokens]. */
MUST_CHECK enum status ops_act_pack(const struct ops_target *target, const struct device_view *x,
                                    const struct device_view *packed, enum dtype weight_dtype,
                                    struct error *err);

/* out [rows, tokens] = weights [k, rows] x activations, + bias [rows] (or NULL). packed as made by
 * ops_act_pack for the same type and k. */
MUST_CHECK enum status ops_matmul(const struct ops_target *target,
                                  const struct device_view *weights,
                                  const struct device_view *packed, const struct device_view *bias,
                                  const struct device_view *out, struct error *err);

/* Up to OPS_GROUP_LIMIT matmuls of the same activations in one launch: q, k and v, or gate and up.
 * biases may be NULL, or hold NULLs. All types must need the same packing. */
#define OPS_GROUP_LIMIT MATMUL_GROUP_PARTS
MUST_CHECK enum status ops_matmul_group(const struct ops_target *target, size_t count,
                                        const struct device_view *const *weights,
                                        const struct device_view *packed,
                                        const struct device_view *const *biases,
                                        const struct device_view *const *outs, struct error *err);

/* ---- Attention ------------------------------------------------------------------------------ */

struct ops_rope_settings {
    float base;
    float frequency_scale; /* 1 / factor of linear scaling or YaRN; 1 without */
    float attention_factor;
    float ext_factor; /* YaRN; 0: off */
    float beta_fast, beta_slow;
    float log_multiplier;
    uint32_t original_context_length;
    bool yarn;
    /* The cosines and sines of position p are multiplied by 1 + temperature_scale ln(1 + floor(p /
     * temperature_length)) as well; 0: they are not. */
    float temperature_scale;
    uint32_t temperature_length;
};

/* table [dimensions, positions]: for each position the cosines of all pairs, then the sines.
 * factors [dimensions / 2] (or NULL) divide the frequencies. */
MUST_CHECK enum status ops_rope_table(const struct ops_target *target,
                                      const struct device_view *factors,
                                      const struct device_view *table,
                                      const struct ops_rope_settings *settings, struct error *err);

/* Rotates every head of x [head_dim * heads, tokens], and of also (or NULL), in place by its
 * token's position. adjacent: pairs (2k, 2k + 1); else (k, k + dimensions / 2). */
MUST_CHECK enum status ops_rope(const struct ops_target *target, const struct device_view *x,
                                const struct device_view *also, const struct device_view *positions,
                                const struct device_view *table, uint32_t head_dim, bool adjacent,
                                struct error *err);

/* keys[slots[t]] = k[t], values[slots[t]] = v[t], converted. k, v [kv_dim, tokens]; caches
 * [kv_dim, slot_count] of F32, F16 or Q8_0. */
MUST_CHECK enum status ops_kv_append(const struct ops_target *target, const struct device_view *k,
                                     const struct device_view *v, const struct device_view *slots,
                                     const struct device_view *keys,
                                     const struct device_view *values, struct error *err);

struct ops_attention_settings {
    uint32_t head_dim;
    float scale; /* of q.k before the softmax */
    /* Most neighbouring tokens of the batch belong to one sequence. This changes only the speed
     * and, on a GPU, the order of sums. */
    bool same_sequence;
    uint32_t window; /* a token sees so many, itself included; 0: all */
    float cap;       /* a score s becomes cap tanh(s / cap); 0: none */
    /* [heads] or NULL: a score of each head that takes part in the softmax and has no value. */
    const struct device_view *sinks;
};

/* For each token t and head: softmax(scale * q.k) v over cache slots starts[t] .. starts[t] +
 * positions[t], the last `window` of them. q, out [head_dim * heads, tokens]; starts, positions I32
 * [tokens]. packing may be NULL. */
MUST_CHECK enum status
ops_attention(const struct ops_target *target, const struct device_view *q,
              const struct device_view *keys, const struct device_view *values,
              const struct device_view *starts, const struct device_view *positions,
              const struct device_view *out, const struct ops_packing *packing,
              const struct ops_attention_settings *settings, struct error *err);

/* ---- Experts -------------------------------------------------------------------------------- */

/* Each token of a batch chooses k experts. A slot is one such choice: slot t * k + n is the n-th
 * expert of token t. Ids live on the device and are indices: see the top of this page. */

/* How the scores of experts are made from the router's logits. */
enum ops_expert_score { OPS_SCORE_SOFTMAX, OPS_SCORE_SIGMOID };

struct ops_routing {
    enum ops_expert_score score;
    bool normalise;       /* divide the weights by their sum, or by 2^-14 if that is larger */
    float weight_scale;   /* of the weights, after that */
    uint32_t group_count; /* consecutive experts form a group; 0 or 1: no groups */
    uint32_t groups_used; /* the others are left out; a group counts by its two best experts */
};

/* ids[t] = the k best experts of token t, the best first, the first of equals first; weights[t] =
 * their scores. logits [experts, tokens]; ids I32, weights F32, both [k, tokens]. bias [experts]
 * (or NULL) is added to the scores for the choice alone. If a logit is NaN or infinite, the token's
 * weights are NaN and its ids 0 to k - 1. The same bits on every device. */
MUST_CHECK enum status ops_route_experts(const struct ops_target *target,
                                         const struct device_view *logits,
                                         const struct device_view *bias,
                                         const struct device_view *ids,
                                         const struct device_view *weights,
                                         const struct ops_routing *routing, struct error *err);

/* Rows for experts are packed in the same format however many there are: bytes of a packed row of k
 * activations for weights of a type, whether two types need the same, and packing x [k, inputs]
 * into packed, I8 [bytes, inputs]. */
uint64_t ops_expert_row_bytes(const struct ops *ops, enum dtype weight_dtype, uint64_t k);
bool ops_same_expert_packing(const struct ops *ops, enum dtype one, enum dtype other, uint64_t k);
MUST_CHECK enum status ops_pack_for_experts(const struct ops_target *target,
                                            const struct device_view *x,
                                            const struct device_view *packed,
                                            enum dtype weight_dtype, struct error *err);

/* out[s] = weights of expert ids[s] x activations of row s * inputs / slots, + its bias. weights
 * [k, rows * experts], expert after expert; packed as made by ops_pack_for_experts, [bytes,
 * inputs], where inputs divides slots: a row for each token, or one for each slot. bias [rows,
 * experts] or NULL; ids I32 [slots]; out [rows, slots]. Reads no expert but those in ids. */
MUST_CHECK enum status
ops_matmul_experts(const struct ops_target *target, const struct device_view *weights,
                   const struct device_view *packed, const struct device_view *bias,
                   const struct device_view *ids, const struct device_view *out, struct error *err);

struct ops_expert_gate {
    /* 0: silu(gate) * up. Else both are clamped, the gate from above only, and the result is gate /
     * (1 + exp(-alpha * gate)) * (up + 1). */
    float limit, alpha;
};

/* All [width, slots]; packing (or NULL) as ops_pack_for_experts makes it. weights [slots] (or NULL)
 * multiply gate and up before that, which is the same as multiplying what the expert read. */
MUST_CHECK enum status
ops_gate_experts(const struct ops_target *target, const struct device_view *gate,
                 const struct device_view *up, const struct device_view *weights,
                 const struct device_view *out, const struct ops_packing *packing,
                 const struct ops_expert_gate *settings, struct error *err);

/* out[t] = sum over a token's slots, in their order, of weights[s] * x[s], + shared[t] times the
 * sigmoid of shared_gate[t]. x [width, slots], weights [slots] (or NULL: 1), shared [width, tokens]
 * (or NULL), shared_gate [tokens] (or NULL: 1), out [width, tokens]. */
MUST_CHECK enum status ops_sum_experts(const struct ops_target *target, const struct device_view *x,
                                       const struct device_view *weights,
                                       const struct device_view *shared,
                                       const struct device_view *shared_gate,
                                       const struct device_view *out, struct error *err);

/* ---- Choosing ------------------------------------------------------------------------------- */

/* ids[r] = index of the largest of logits[r], the first of equals; -1 if any of them is NaN or
 * infinite. logits [vocab, rows], ids I32 [rows]. next (or NULL), I32 [rows]: the same with 0 in
 * place of -1, so that whoever looks rows up by it before the ids are known finds one. */
MUST_CHECK enum status ops_argmax(const struct ops_target *target, const struct device_view *logits,
                                  const struct device_view *ids, const struct device_view *next,
                                  struct error *err);

/* The k largest of each row, largest first, the first of equals first; NaN counts as smallest.
 * values F32 [k, rows], ids I32 [k, rows]. */
MUST_CHECK enum status ops_top_k(const struct ops_target *target, const struct device_view *logits,
                                 const struct device_view *values, const struct device_view *ids,
                                 struct error *err);

#endif

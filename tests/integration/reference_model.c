/* reference_model.c - see reference_model.h. */
#include "reference_model.h"
#include "reference_experts.h"
#include "reference_rope.h"
#include "reference_rounding.h"

#include "tensor/quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tensors -------------------------------------------------------------------------------- */

#define TENSOR_LIMIT 320

struct loaded {
    char name[96];
    enum dtype dtype;
    size_t rows;
    double *values; /* rows one after the other; NULL if the file has none */
};

/* A model and how it is run. */
struct subject {
    const struct gguf_file *file;
    const struct model_config *config;
    const struct model_arch_info *arch;
    double *keys[MODEL_UNLIKE_LIMIT], *values[MODEL_UNLIKE_LIMIT]; /* of layers that own them */
    uint32_t context;                          /* that the engine is opened with */
    const struct reference_rounding *rounding; /* or NULL */
    size_t token;                              /* at which we are */
    struct loaded tensors[TENSOR_LIMIT];       /* what was asked for until now */
    size_t tensor_count;
};

static void decode(const struct gguf_file *file, struct loaded *loaded)
{
    const struct gguf_tensor *tensor = gguf_tensor_find(file, loaded->name);
    if (!tensor)
        return;
    size_t count = (size_t)(tensor->shape.dims[0] * tensor->shape.dims[1] * tensor->shape.dims[2]);
    float *decoded = malloc(count * sizeof(*decoded));
    loaded->values = malloc(count * sizeof(*loaded->values));
    ASSERT(decoded && loaded->values);
    quant_decode_row(tensor->dtype, tensor->data, count, decoded);
    for (size_t i = 0; i < count; i++)
        loaded->values[i] = (double)decoded[i];
    loaded->dtype = tensor->dtype;
    loaded->rows = (size_t)tensor->shape.dims[1];
    free(decoded);
}

/* Borrowed from the subject. */
static const struct loaded *find(struct subject *subject, int layer, const char *suffix)
{
    char name[96];
    if (layer >= 0)
        snprintf(name, sizeof(name), "blk.%d.%s", layer, suffix);
    else
        snprintf(name, sizeof(name), "%s", suffix);
    for (size_t i = 0; i < subject->tensor_count; i++)
        if (strcmp(subject->tensors[i].name, name) == 0)
            return &subject->tensors[i];
    ASSERT(subject->tensor_count < TENSOR_LIMIT);
    struct loaded *loaded = &subject->tensors[subject->tensor_count++];
    *loaded = (struct loaded){ .values = NULL };
    memcpy(loaded->name, name, sizeof(name));
    decode(subject->file, loaded);
    return loaded;
}

static const double *load(struct subject *subject, int layer, const char *suffix)
{
    return find(subject, layer, suffix)->values;
}

static void forget(struct subject *subject)
{
    for (size_t i = 0; i < subject->tensor_count; i++)
        free(subject->tensors[i].values);
    for (size_t i = 0; i < MODEL_UNLIKE_LIMIT; i++)
        free(subject->keys[i]);
}

/* ---- Rounding ------------------------------------------------------------------------------- */

/* What the implementation had there: the row of this token, or NULL. */
static const float *witness(const struct subject *subject, const char *tensor, int layer, size_t k)
{
    const struct reference_rounding *rounding = subject->rounding;
    const float *rows = rounding->witness ? rounding->witness(rounding->context, tensor, layer)
                                          : NULL;
    return rows ? rows + subject->token * k : NULL;
}

/* Rounds a row that meets weights of a type; input_name is what the row is called. */
static void round_row(const struct subject *subject, enum dtype weight_dtype,
                      const char *input_name, int layer, double *x, size_t k)
{
    const struct reference_rounding *rounding = subject->rounding;
    bool plain = weight_dtype == DTYPE_F32 || weight_dtype == DTYPE_F16 ||
                 weight_dtype == DTYPE_MXFP4; /* decoded, and multiplied as F32 */
    if (!rounding || plain)
        return;
    if (weight_dtype == DTYPE_BF16 && rounding->bf16_rows)
        reference_round_bf16(x, k, witness(subject, input_name, layer, k));
    if (weight_dtype != DTYPE_BF16 && rounding->q8_rows)
        reference_round_q8(x, k, witness(subject, input_name, layer, k));
}

static void round_cached(const struct subject *subject, const char *name, int layer, double *x,
                         size_t k)
{
    if (subject->rounding)
        reference_round_cached(subject->rounding->kv, x, k, witness(subject, name, layer, k));
}

/* ---- Parts of a model ----------------------------------------------------------------------- */

/* Eight sums side by side: one alone would wait for itself. */
static double dot(const double *a, const double *b, size_t count)
{
    double sums[8] = { 0 };
    size_t whole = count - count % 8;
    for (size_t i = 0; i < whole; i += 8)
        for (size_t lane = 0; lane < 8; lane++)
            sums[lane] += a[i + lane] * b[i + lane];
    for (size_t i = whole; i < count; i++)
        sums[0] += a[i] * b[i];
    return sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
}

/* The weights of that name and their first row, *ret_first: a tensor of their own, or rows of one
 * that several share. */
static const struct loaded *find_weights(struct subject *subject, int layer, const char *name,
                                         size_t *ret_first)
{
    const struct model_config *config = subject->config;
    struct model_layer numbers = model_layer(config, layer < 0 ? 0 : (uint32_t)layer);
    size_t query = (size_t)config->head_count * numbers.head_dim;
    size_t kv = (size_t)numbers.head_count_kv * numbers.head_dim;
    char weight_name[64];
    snprintf(weight_name, sizeof(weight_name), "%s.weight", name);
    const struct loaded *weights = find(subject, layer, weight_name);
    *ret_first = 0;
    if (strcmp(name, "ffn_up") == 0 && weights->rows == 2 * (size_t)numbers.feed_forward_length)
        *ret_first = numbers.feed_forward_length; /* the gate's rows stand first */
    if (weights->values)
        return weights;
    if (strcmp(name, "ffn_gate") == 0)
        return find(subject, layer, "ffn_up.weight");
    if (strcmp(name, "attn_v") == 0 && !find(subject, layer, "attn_qkv.weight")->values)
        return find(subject, layer, "attn_k.weight"); /* values are what keys are made of */
    if (strcmp(name, "attn_k") == 0)
        *ret_first = query;
    if (strcmp(name, "attn_v") == 0)
        *ret_first = query + kv;
    return strcmp(name, "output") == 0 ? find(subject, layer, "token_embd.weight") /* tied */
                                       : find(subject, layer, "attn_qkv.weight");
}

/* out[rows] = weights [k, rows] x + bias, from a row of those named on. */
static void multiply_from(struct subject *subject, int layer, const char *name, size_t skipped,
                          const char *input_name, const double *input, size_t k, size_t rows,
                          double *out)
{
    char bias_name[64];
    size_t first;
    double *x = malloc(k * sizeof(*x));
    ASSERT(x);
    memcpy(x, input, k * sizeof(*x));
    snprintf(bias_name, sizeof(bias_name), "%s.bias", name);
    const struct loaded *weights = find_weights(subject, layer, name, &first);
    const double *bias = load(subject, layer, bias_name);
    first += skipped;
    round_row(subject, weights->dtype, input_name, layer, x, k);
    for (size_t r = 0; r < rows; r++)
        out[r] = (bias ? bias[skipped + r] : 0) + dot(weights->values + (first + r) * k, x, k);
    free(x);
}

static void multiply(struct subject *subject, int layer, const char *name, const char *input_name,
                     const double *input, size_t k, size_t rows, double *out)
{
    multiply_from(subject, layer, name, 0, input_name, input, k, rows, out);
}

/* weight or bias may be NULL. is_layer: less the mean. */
static void normalise(const double *x, const double *weight, const double *bias, size_t n,
                      bool is_layer, double epsilon, double *out)
{
    double mean = 0, sum = 0;
    for (size_t i = 0; i < n && is_layer; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    double scale = 1 / sqrt(sum / (double)n + epsilon);
    for (size_t i = 0; i < n; i++)
        out[i] = (x[i] - mean) * scale * weight[i] + (bias ? bias[i] : 0);
}

/* What enters a block: the row as it is where there is no such norm. */
static void enter(struct subject *subject, int layer, const char *name, const double *x,
                  double *out)
{
    char weight_name[64], bias_name[64];
    size_t width = subject->config->embedding_length;
    snprintf(weight_name, sizeof(weight_name), "%s.weight", name);
    snprintf(bias_name, sizeof(bias_name), "%s.bias", name);
    const double *weight = load(subject, layer, weight_name);
    if (weight)
        normalise(x, weight, load(subject, layer, bias_name), width,
                  subject->arch->norm == MODEL_NORM_LAYER, (double)subject->config->rms_epsilon,
                  out);
    else
        memcpy(out, x, width * sizeof(*out));
}

/* x += what a block gives, after its norm and scale. */
static void leave(struct subject *subject, int layer, const char *post_norm, double *added,
                  double *x)
{
    size_t width = subject->config->embedding_length;
    const double *weight = load(subject, layer, post_norm);
    if (weight)
        normalise(added, weight, NULL, width, false, (double)subject->config->rms_epsilon, added);
    for (size_t i = 0; i < width; i++)
        x[i] += (double)subject->config->residual_scale * added[i];
}

static double capped(double x, double cap)
{
    return cap > 0 ? cap * tanh(x / cap) : x;
}

static void normalise_plainly(double *x, size_t n, double epsilon)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        x[i] /= sqrt(sum / (double)n + epsilon);
}

/* The temperature of attention at a position. */
static void warm(double *x, size_t n, const struct model_config *config, size_t position)
{
    double times = floor((double)position / config->temperature_length);
    for (size_t i = 0; i < n; i++)
        x[i] *= 1 + (double)config->temperature_scale * log(1 + times);
}

/* Norm of each head (where the model has one), then rotation by the position. */
static void prepare_heads(struct subject *subject, int layer, bool is_query, double *x,
                          size_t position)
{
    const struct model_config *config = subject->config;
    struct model_layer numbers = model_layer(config, (uint32_t)layer);
    size_t dim = numbers.head_dim, heads = is_query ? config->head_count : numbers.head_count_kv;
    double epsilon = (double)config->rms_epsilon;
    const double *norm = load(subject, layer,
                              is_query ? "attn_q_norm.weight" : "attn_k_norm.weight");
    bool own = subject->arch->head_norm == MODEL_HEAD_NORM_OWN;
    if (norm && subject->arch->head_norm == MODEL_HEAD_NORM_ROW)
        normalise(x, norm, NULL, heads * dim, false, epsilon, x);
    else
        for (size_t h = 0; norm && h < heads; h++)
            normalise(x + h * dim, own ? norm + h * dim : norm, NULL, dim, own, epsilon,
                      x + h * dim);
    enum model_layer_rope rope = numbers.rope;
    if (rope == MODEL_LAYER_UNROTATED) {
        if (is_query && subject->arch->resting_temperature > 0)
            warm(x, heads * dim, config, position + 1);
        return;
    }
    const double *factors = load(subject, -1, "rope_freqs.weight");
    bool is_long = (subject->context + 255) / 256 * 256 > config->rope.original_context_length;
    if (!factors)
        factors = load(subject, -1,
                       is_long ? "rope_factors_long.weight" : "rope_factors_short.weight");
    bool warms = is_query && subject->arch->resting_temperature == 0;
    double size = warms && config->temperature_scale > 0
                      ? 1 + (double)config->temperature_scale *
                                log(1 + floor((double)position / config->temperature_length))
                      : 1;
    for (size_t h = 0; h < heads; h++)
        reference_rotate(rope == MODEL_LAYER_LOCAL_ROPE ? &config->local_rope : &config->rope,
                         rope == MODEL_LAYER_LOCAL_ROPE ? NULL : factors, position, size,
                         x + h * dim);
    for (size_t h = 0; config->norms_rotated && h < heads; h++)
        normalise_plainly(x + h * dim, dim, epsilon);
}

static void attend(const struct model_config *config, const struct model_layer *layer,
                   const double *q, const double *keys, const double *values, const double *sinks,
                   size_t length, double *out)
{
    size_t dim = layer->head_dim, kv = (size_t)layer->head_count_kv * dim;
    uint32_t window = layer->window;
    size_t first = window && length > window ? length - window : 0;
    if (layer->chunk)
        first = (length - 1) / layer->chunk * layer->chunk;
    double *scores = malloc(length * sizeof(*scores));
    ASSERT(scores);
    for (size_t h = 0; h < config->head_count; h++) {
        size_t shared = h / (config->head_count / layer->head_count_kv) * dim;
        double largest = sinks ? sinks[h] : -INFINITY, sum = 0;
        for (size_t s = first; s < length; s++) {
            scores[s] = 0;
            for (size_t i = 0; i < dim; i++)
                scores[s] += q[h * dim + i] * keys[s * kv + shared + i];
            scores[s] = capped(scores[s] * (double)config->attention_scale,
                               (double)config->attention_cap);
            largest = scores[s] > largest ? scores[s] : largest;
        }
        for (size_t s = first; s < length; s++)
            sum += scores[s] = exp(scores[s] - largest);
        sum += sinks ? exp(sinks[h] - largest) : 0; /* it has no value */
        for (size_t i = 0; i < dim; i++) {
            out[h * dim + i] = 0;
            for (size_t s = first; s < length; s++)
                out[h * dim + i] += scores[s] / sum * values[s * kv + shared + i];
        }
    }
    free(scores);
}

static double activated(const struct subject *subject, double x)
{
    double cube = x * x * x;
    return subject->arch->activation == MODEL_ACTIVATION_SILU
               ? x / (1 + exp(-x))
               : x / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * cube)));
}

/* h: the input, called input_name; added: the output; rooms: 2 * feed values. */
static void feed_forward(struct subject *subject, int layer, const char *input_name,
                         const double *h, double *added, double *rooms)
{
    const struct model_config *config = subject->config;
    size_t width = config->embedding_length;
    size_t feed = model_layer(config, (uint32_t)layer).feed_forward_length;
    double *gate = rooms, *up = rooms + feed;
    bool gated = load(subject, layer, "ffn_gate.weight") ||
                 find(subject, layer, "ffn_up.weight")->rows == 2 * feed;
    multiply(subject, layer, "ffn_up", input_name, h, width, feed, up);
    if (gated)
        multiply(subject, layer, "ffn_gate", input_name, h, width, feed, gate);
    for (size_t i = 0; i < feed; i++)
        gate[i] = gated ? activated(subject, gate[i]) * up[i] : activated(subject, up[i]);
    multiply(subject, layer, "ffn_down", "ffn_swiglu", gate, feed, width, added);
}

/* A row of a layer's keys and of its values. */
static void append(struct subject *subject, int layer, const double *h, size_t token)
{
    struct model_layer numbers = model_layer(subject->config, (uint32_t)layer);
    size_t width = subject->config->embedding_length, dim = numbers.head_dim;
    size_t kv = numbers.head_count_kv * dim;
    double *key = subject->keys[layer] + token * kv, *value = subject->values[layer] + token * kv;
    multiply(subject, layer, "attn_k", "attn_norm.out", h, width, kv, key);
    multiply(subject, layer, "attn_v", "attn_norm.out", h, width, kv, value);
    prepare_heads(subject, layer, false, key, token);
    for (size_t i = 0; subject->arch->reads & MODEL_NORMS_VALUES && i < kv; i += dim)
        normalise_plainly(value + i, dim, (double)subject->config->rms_epsilon);
    round_cached(subject, "rope_k", layer, key, kv);
    round_cached(subject, "attn_v", layer, value, kv);
}

/* Queries of a token, unfolded: of each head the part that does not rotate, then the one that does.
 */
static void make_latent_queries(struct subject *subject, int layer, const double *h, size_t token,
                                double *q)
{
    const struct model_config *config = subject->config;
    size_t length = config->latent.key_length, rotated = config->rope.dimension_count;
    size_t low = config->latent.query_rank, width = config->embedding_length;
    size_t query = config->head_count * (length + rotated);
    double *row = malloc((low + 1) * sizeof(*row));
    ASSERT(row);
    if (low) {
        multiply(subject, layer, "attn_q_a", "attn_norm.out", h, width, low, row);
        normalise(row, load(subject, layer, "attn_q_a_norm.weight"), NULL, low, false,
                  (double)config->rms_epsilon, row);
        multiply(subject, layer, "attn_q_b", "latent_query", row, low, query, q);
    } else {
        multiply(subject, layer, "attn_q", "attn_norm.out", h, width, query, q);
    }
    for (size_t head = 0; head < config->head_count; head++)
        reference_rotate(&config->rope, NULL, token, 1, q + head * (length + rotated) + length);
    free(row);
}

/* The key and the value of every head for a token, made of its row. keys: the cache of this layer,
 * of whole heads; values follow it. */
static void append_latent(struct subject *subject, int layer, const double *h, size_t token)
{
    const struct model_config *config = subject->config;
    const struct model_latent *latent = &config->latent;
    size_t length = latent->key_length, rotated = config->rope.dimension_count, rank = latent->rank,
           heads = config->head_count;
    const double *k_b = load(subject, layer, "attn_k_b.weight");
    const double *v_b = load(subject, layer, "attn_v_b.weight");
    double *row = malloc((rank + rotated) * sizeof(*row));
    double *key = subject->keys[layer] + token * heads * (length + rotated);
    double *value = subject->values[layer] + token * heads * latent->value_length;
    ASSERT(row);
    multiply(subject, layer, "attn_kv_a_mqa", "attn_norm.out", h, config->embedding_length,
             rank + rotated, row);
    normalise(row, load(subject, layer, "attn_kv_a_norm.weight"), NULL, rank, false,
              (double)config->rms_epsilon, row);
    reference_rotate(&config->rope, NULL, token, 1, row + rank);
    for (size_t head = 0; head < heads; head++) {
        double *own = key + head * (length + rotated);
        memset(own, 0, length * sizeof(*own));
        for (size_t i = 0; i < length * rank; i++)
            own[i % length] += k_b[head * rank * length + i] * row[i / length];
        memcpy(own + length, row + rank, rotated * sizeof(*own));
        for (size_t i = 0; i < latent->value_length; i++)
            value[head * latent->value_length + i] = dot(
                v_b + (head * latent->value_length + i) * rank, row, rank);
    }
    free(row);
}

static void attend_latent(const struct subject *subject, int layer, const double *q, size_t length,
                          double *out)
{
    const struct model_config *config = subject->config;
    size_t heads = config->head_count, part = config->latent.value_length;
    size_t dim = config->latent.key_length + config->rope.dimension_count;
    double *scores = malloc(length * sizeof(*scores));
    ASSERT(scores);
    for (size_t h = 0; h < heads; h++) {
        double largest = -INFINITY, sum = 0;
        for (size_t s = 0; s < length; s++) {
            scores[s] = (double)config->attention_scale *
                        dot(q + h * dim, subject->keys[layer] + (s * heads + h) * dim, dim);
            largest = fmax(largest, scores[s]);
        }
        for (size_t s = 0; s < length; s++)
            sum += scores[s] = exp(scores[s] - largest);
        memset(out + h * part, 0, part * sizeof(*out));
        for (size_t s = 0; s < length; s++)
            for (size_t i = 0; i < part; i++)
                out[h * part + i] += scores[s] / sum *
                                     subject->values[layer][(s * heads + h) * part + i];
    }
    free(scores);
}

/* Attention of a token of a layer with ordinary heads, or with latent ones. */
static void attend_token(struct subject *subject, int layer, const double *h, size_t token,
                         double *q, double *mixed)
{
    const struct model_config *config = subject->config;
    struct model_layer numbers = model_layer(config, (uint32_t)layer);
    if (config->latent.rank) {
        make_latent_queries(subject, layer, h, token, q);
        append_latent(subject, layer, h, token);
        attend_latent(subject, layer, q, token + 1, mixed);
        return;
    }
    multiply(subject, layer, "attn_q", "attn_norm.out", h, config->embedding_length,
             (size_t)config->head_count * numbers.head_dim, q);
    prepare_heads(subject, layer, true, q, token);
    if (numbers.cache == (uint32_t)layer)
        append(subject, layer, h, token);
    attend(config, &numbers, q, subject->keys[numbers.cache], subject->values[numbers.cache],
           load(subject, layer, "attn_sinks.weight"), token + 1, mixed);
}

/* The part of this layer, of what a token gives each layer: from its embedding x and a table. */
static void find_layer_input(struct subject *subject, int layer, int32_t id, const double *x,
                             double *out)
{
    const struct model_config *config = subject->config;
    size_t width = config->embedding_length, length = config->layer_input_length;
    const double *norm = load(subject, -1, "per_layer_proj_norm.weight");
    const double *table = load(subject, -1, "per_layer_token_embd.weight");
    const double *proj = load(subject, -1, "per_layer_model_proj.weight");
    size_t first = (size_t)layer * length;
    for (size_t i = 0; i < length; i++)
        out[i] = dot(proj + (first + i) * width, x, width) / sqrt((double)width);
    normalise(out, norm, NULL, length, false, (double)config->rms_epsilon, out);
    for (size_t i = 0; i < length; i++)
        out[i] = (out[i] + sqrt((double)length) *
                               table[(size_t)id * length * config->block_count + first + i]) /
                 sqrt(2);
}

static void add_layer_input(struct subject *subject, int layer, const double *part, double *x)
{
    const struct model_config *config = subject->config;
    size_t width = config->embedding_length, length = config->layer_input_length;
    double *gate = malloc((length + width) * sizeof(*gate)), *added = gate + length;
    ASSERT(gate);
    multiply(subject, layer, "inp_gate", "layer_input", x, width, length, gate);
    for (size_t i = 0; i < length; i++)
        gate[i] = activated(subject, gate[i]) * part[i];
    multiply(subject, layer, "proj", "layer_gate", gate, length, width, added);
    leave(subject, layer, "post_norm.weight", added, x);
    free(gate);
}

/* For reference_experts.c. slot: where the input is one of several rows of a token. */
static void multiply_experts(void *context, int layer, const char *name, size_t skipped,
                             const char *input_name, size_t slots, size_t slot, const double *input,
                             size_t k, size_t rows, double *out)
{
    struct subject *subject = context;
    size_t token = subject->token;
    subject->token = token * slots + slot;
    multiply_from(subject, layer, name, skipped, input_name, input, k, rows, out);
    subject->token = token;
}

/* A feed-forward and experts, each with norms of its own. x: the residual stream; h: by the norm
 * before the feed-forward. */
static void feed_both(const struct reference_multiplier *by, const double *x, double *h,
                      double *fed, double *rooms)
{
    struct subject *subject = by->context;
    size_t width = by->config->embedding_length;
    double epsilon = (double)by->config->rms_epsilon;
    double *routed_by = malloc(2 * width * sizeof(*routed_by)), *more = routed_by + width;
    const double *scales = load(subject, by->layer, "ffn_down_exps.scale");
    ASSERT(routed_by);
    feed_forward(subject, by->layer, "ffn_norm.out", h, fed, rooms);
    normalise(fed, load(subject, by->layer, "post_ffw_norm_1.weight"), NULL, width, false, epsilon,
              fed);
    normalise(x, load(subject, by->layer, "ffn_gate_inp.scale"), NULL, width, false, epsilon,
              routed_by);
    for (size_t i = 0; i < width; i++)
        routed_by[i] /= sqrt((double)width);
    normalise(x, load(subject, by->layer, "pre_ffw_norm_2.weight"), NULL, width, false, epsilon, h);
    reference_feed_experts(by, h, routed_by, NULL, scales, more);
    normalise(more, load(subject, by->layer, "post_ffw_norm_2.weight"), NULL, width, false, epsilon,
              more);
    for (size_t i = 0; i < width; i++)
        fed[i] += more[i];
    free(routed_by);
}

/* ids and embedded: the tokens and what they were embedded as. */
static void run_layer(struct subject *subject, int layer, const int32_t *ids,
                      const double *embedded, double *x, size_t count)
{
    const struct model_config *config = subject->config;
    struct model_layer numbers = model_layer(config, (uint32_t)layer);
    size_t width = config->embedding_length, feed = numbers.feed_forward_length;
    size_t query = (size_t)config->head_count * numbers.head_dim;
    size_t kv = (size_t)numbers.head_count_kv * numbers.head_dim;
    if (config->latent.rank) { /* of all heads: these are not folded */
        kv = (size_t)config->head_count *
             (config->latent.key_length + config->rope.dimension_count +
              config->latent.value_length);
        query = kv;
    }
    const double *scale = load(subject, layer, "layer_output_scale.weight");
    double *h = calloc(3 * width + 2 * query + 2 * feed + config->layer_input_length, sizeof(*h));
    double *q = h + width, *mixed = q + query, *added = mixed + query, *fed = added + width;
    double *rooms = fed + width, *part = rooms + 2 * feed;
    subject->keys[layer] = calloc(2 * count * kv, sizeof(*h));
    ASSERT(h && subject->keys[layer]);
    subject->values[layer] = subject->keys[layer] + count * kv;
    const struct reference_multiplier multiplier = { config, multiply_experts, subject, layer };
    for (size_t t = 0; t < count; t++) {
        double *row = x + t * width;
        subject->token = t;
        enter(subject, layer, "attn_norm", row, h);
        attend_token(subject, layer, h, t, q, mixed);
        multiply(subject, layer, "attn_output", "attn_vector", mixed,
                 config->latent.rank ? config->head_count * config->latent.value_length : query,
                 width, added);
        if (subject->arch->is_parallel)
            feed_forward(subject, layer, "attn_norm.out", h, fed, rooms);
        bool renamed = config->arch == MODEL_ARCH_GPT_OSS; /* this norm stands before the experts */
        leave(subject, layer, renamed ? "none" : "post_attention_norm.weight", added, row);
        if (!subject->arch->is_parallel) {
            enter(subject, layer, renamed ? "post_attention_norm" : "ffn_norm", row, h);
            if (load(subject, layer, "post_ffw_norm_1.weight"))
                feed_both(&multiplier, row, h, fed, rooms);
            else if (load(subject, layer, "ffn_gate_inp.weight"))
                reference_feed_experts(&multiplier, h, h, load(subject, layer, "exp_probs_b.bias"),
                                       NULL, fed);
            else
                feed_forward(subject, layer, "ffn_norm.out", h, fed, rooms);
        }
        leave(subject, layer, "post_ffw_norm.weight", fed, row);
        if (config->layer_input_length) {
            find_layer_input(subject, layer, ids[t], embedded + t * width, part);
            add_layer_input(subject, layer, part, row);
        }
        for (size_t i = 0; scale && i < width; i++)
            row[i] *= scale[0];
    }
    free(h);
}

void reference_logits(const struct gguf_file *file, const struct model_config *config,
                      const struct reference_rounding *rounding, const int32_t *ids, size_t count,
                      double *logits)
{
    struct subject subject = { .file = file,
                               .config = config,
                               .arch = model_arch_info(config->arch),
                               .context = config->context_length,
                               .rounding = rounding };
    size_t width = config->embedding_length, vocab = config->vocab_size;
    const double *table = load(&subject, -1, "token_embd.weight");
    double *x = malloc(count * width * sizeof(*x)), *h = malloc(width * sizeof(*h));
    double *embedded = malloc(count * width * sizeof(*x));
    ASSERT(table && x && h && embedded && config->block_count <= MODEL_UNLIKE_LIMIT);
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < width; i++)
            x[t * width + i] = table[(size_t)ids[t] * width + i] * (double)config->embedding_scale;
    memcpy(embedded, x, count * width * sizeof(*x));
    for (uint32_t layer = 0; layer < config->block_count; layer++)
        run_layer(&subject, (int)layer, ids, embedded, x, count);
    for (size_t t = 0; t < count; t++) {
        subject.token = t;
        enter(&subject, -1, "output_norm", x + t * width, h);
        multiply(&subject, -1, "output", "output_norm.out", h, width, vocab, logits + t * vocab);
        for (size_t i = t * vocab; i < (t + 1) * vocab; i++)
            logits[i] = capped(logits[i] * (double)config->logit_scale, (double)config->logit_cap);
    }
    forget(&subject);
    free(embedded);
    free(x);
    free(h);
}

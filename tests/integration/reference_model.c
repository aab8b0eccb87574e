/* reference_model.c - see reference_model.h. */
#include "reference_model.h"
#include "reference_rounding.h"

#include "tensor/quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tensors -------------------------------------------------------------------------------- */

#define TENSOR_LIMIT 128

struct loaded {
    char name[96];
    enum dtype dtype;
    double *values; /* rows one after the other; NULL if the file has none */
};

/* A model and how it is run. */
struct subject {
    const struct gguf_file *file;
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
    size_t count = (size_t)(tensor->shape.dims[0] * tensor->shape.dims[1]);
    float *decoded = malloc(count * sizeof(*decoded));
    loaded->values = malloc(count * sizeof(*loaded->values));
    ASSERT(decoded && loaded->values);
    quant_decode_row(tensor->dtype, tensor->data, count, decoded);
    for (size_t i = 0; i < count; i++)
        loaded->values[i] = (double)decoded[i];
    loaded->dtype = tensor->dtype;
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
    bool plain = weight_dtype == DTYPE_F32 || weight_dtype == DTYPE_F16;
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

/* out[rows] = weights [k, rows] x + bias. */
static void multiply(struct subject *subject, int layer, const char *name, const char *input_name,
                     const double *input, size_t k, size_t rows, double *out)
{
    char weight_name[64], bias_name[64];
    double *x = malloc(k * sizeof(*x));
    ASSERT(x);
    memcpy(x, input, k * sizeof(*x));
    snprintf(weight_name, sizeof(weight_name), "%s.weight", name);
    snprintf(bias_name, sizeof(bias_name), "%s.bias", name);
    const struct loaded *weights = find(subject, layer, weight_name);
    const double *bias = load(subject, layer, bias_name);
    if (!weights->values)
        weights = find(subject, layer, "token_embd.weight"); /* tied */
    round_row(subject, weights->dtype, input_name, layer, x, k);
    for (size_t r = 0; r < rows; r++)
        out[r] = (bias ? bias[r] : 0) + dot(weights->values + r * k, x, k);
    free(x);
}

static void normalise(const double *x, const double *weight, size_t n, double epsilon, double *out)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    double scale = 1 / sqrt(sum / (double)n + epsilon);
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * scale * weight[i];
}

/* Norm of each head (where the model has one), then rotation by the position. */
static void prepare_heads(struct subject *subject, const struct model_config *config, int layer,
                          const char *norm_name, double *x, size_t heads, size_t position)
{
    size_t dim = config->head_dim, rotated = config->rope.dimension_count;
    const double *norm = load(subject, layer, norm_name);
    const double *factors = load(subject, -1, "rope_freqs.weight");
    for (size_t h = 0; h < heads; h++) {
        double *head = x + h * dim;
        if (norm)
            normalise(head, norm, dim, (double)config->rms_epsilon, head);
        for (size_t p = 0; p < rotated / 2; p++) {
            double angle = (double)position *
                           pow((double)config->rope.base, -2.0 * (double)p / (double)rotated) /
                           (factors ? factors[p] : 1) / (double)config->rope.scaling_factor;
            bool adjacent = config->rope.kind == MODEL_ROPE_ADJACENT;
            size_t a = adjacent ? 2 * p : p, b = adjacent ? 2 * p + 1 : p + rotated / 2;
            double first = head[a], second = head[b];
            head[a] = first * cos(angle) - second * sin(angle);
            head[b] = first * sin(angle) + second * cos(angle);
        }
    }
}

static void attend(const struct model_config *config, const double *q, const double *keys,
                   const double *values, size_t length, double *out)
{
    size_t dim = config->head_dim, kv = (size_t)config->head_count_kv * dim;
    double *scores = malloc(length * sizeof(*scores));
    ASSERT(scores);
    for (size_t h = 0; h < config->head_count; h++) {
        size_t shared = h / (config->head_count / config->head_count_kv) * dim;
        double largest = -INFINITY, sum = 0;
        for (size_t s = 0; s < length; s++) {
            scores[s] = 0;
            for (size_t i = 0; i < dim; i++)
                scores[s] += q[h * dim + i] * keys[s * kv + shared + i];
            scores[s] *= (double)config->attention_scale;
            largest = scores[s] > largest ? scores[s] : largest;
        }
        for (size_t s = 0; s < length; s++)
            sum += scores[s] = exp(scores[s] - largest);
        for (size_t i = 0; i < dim; i++) {
            out[h * dim + i] = 0;
            for (size_t s = 0; s < length; s++)
                out[h * dim + i] += scores[s] / sum * values[s * kv + shared + i];
        }
    }
    free(scores);
}

static void run_layer(struct subject *subject, const struct model_config *config, int layer,
                      double *x, size_t count)
{
    size_t width = config->embedding_length, feed = config->feed_forward_length;
    size_t query = (size_t)config->head_count * config->head_dim;
    size_t kv = (size_t)config->head_count_kv * config->head_dim;
    const double *attn_norm = load(subject, layer, "attn_norm.weight");
    const double *ffn_norm = load(subject, layer, "ffn_norm.weight");
    double *h = calloc(width + 2 * query + 2 * count * kv + width + 2 * feed, sizeof(*h));
    ASSERT(h && attn_norm && ffn_norm);
    double *q = h + width, *mixed = q + query, *keys = mixed + query, *values = keys + count * kv;
    double *added = values + count * kv, *gate = added + width, *up = gate + feed;
    for (size_t t = 0; t < count; t++) {
        double *row = x + t * width;
        subject->token = t;
        normalise(row, attn_norm, width, (double)config->rms_epsilon, h);
        multiply(subject, layer, "attn_q", "attn_norm.out", h, width, query, q);
        multiply(subject, layer, "attn_k", "attn_norm.out", h, width, kv, keys + t * kv);
        multiply(subject, layer, "attn_v", "attn_norm.out", h, width, kv, values + t * kv);
        prepare_heads(subject, config, layer, "attn_q_norm.weight", q, config->head_count, t);
        prepare_heads(subject, config, layer, "attn_k_norm.weight", keys + t * kv,
                      config->head_count_kv, t);
        round_cached(subject, "rope_k", layer, keys + t * kv, kv);
        round_cached(subject, "attn_v", layer, values + t * kv, kv);
        attend(config, q, keys, values, t + 1, mixed);
        multiply(subject, layer, "attn_output", "attn_vector", mixed, query, width, added);
        for (size_t i = 0; i < width; i++)
            row[i] += added[i];
        normalise(row, ffn_norm, width, (double)config->rms_epsilon, h);
        multiply(subject, layer, "ffn_gate", "ffn_norm.out", h, width, feed, gate);
        multiply(subject, layer, "ffn_up", "ffn_norm.out", h, width, feed, up);
        for (size_t i = 0; i < feed; i++)
            gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
        multiply(subject, layer, "ffn_down", "ffn_swiglu", gate, feed, width, added);
        for (size_t i = 0; i < width; i++)
            row[i] += added[i];
    }
    free(h);
}

void reference_logits(const struct gguf_file *file, const struct model_config *config,
                      const struct reference_rounding *rounding, const int32_t *ids, size_t count,
                      double *logits)
{
    struct subject subject = { .file = file, .rounding = rounding };
    size_t width = config->embedding_length, vocab = config->vocab_size;
    const double *table = load(&subject, -1, "token_embd.weight");
    const double *norm = load(&subject, -1, "output_norm.weight");
    double *x = malloc(count * width * sizeof(*x)), *h = malloc(width * sizeof(*h));
    ASSERT(table && norm && x && h);
    for (size_t t = 0; t < count; t++)
        memcpy(x + t * width, table + (size_t)ids[t] * width, width * sizeof(*x));
    for (uint32_t layer = 0; layer < config->block_count; layer++)
        run_layer(&subject, config, (int)layer, x, count);
    for (size_t t = 0; t < count; t++) {
        subject.token = t;
        normalise(x + t * width, norm, width, (double)config->rms_epsilon, h);
        multiply(&subject, -1, "output", "output_norm.out", h, width, vocab, logits + t * vocab);
    }
    forget(&subject);
    free(x);
    free(h);
}

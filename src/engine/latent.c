/* latent.c - attention to short rows (struct model_latent). The matrix that makes a head's key of a
 * row is applied to the head's query in its place, and the one that makes its value to what
 * attention gives: so the row itself is cached, once for all heads. Keys and queries are the part
 * that rotates, then the row; values are the same rows. */
#include "engine/pass.h"

static struct device_view weight_rows(const struct device_view *weights, uint64_t first,
                                      uint64_t count)
{
    struct device_view part = *weights;
    uint64_t row_bytes = 0;
    ASSERT(dtype_row_bytes(weights->dtype, weights->shape.dims[0], &row_bytes)); /* expected */
    part.shape.dims[1] = count;
    part.offset_bytes += first * row_bytes;
    return part;
}

static struct device_view columns(const struct device_view *rows, uint64_t first, uint64_t count)
{
    struct device_view part = *rows;
    part.row_stride_bytes = rows->shape.dims[0] * sizeof(float);
    part.offset_bytes += first * sizeof(float);
    part.shape.dims[0] = count;
    return part;
}

/* The row of each token and the part of its key that rotates, which stands first in the cache. */
static enum status make_rows(struct pass *pass, int32_t index)
{
    const struct model_config *config = &pass->engine->config;
    const struct device_view *weights = pass->engine->layers[index].weights;
    uint64_t rank = config->latent.rank, rotated = config->rope.dimension_count;
    struct device_view parts[] = { weight_rows(&weights[MODEL_ATTN_KV_A], 0, rank),
                                   weight_rows(&weights[MODEL_ATTN_KV_A], rank, rotated) };
    struct device_view rows[] = { columns(&pass->k, rotated, rank), columns(&pass->k, 0, rotated) };
    const struct device_view *inputs[] = { &parts[0], &parts[1] }, *outs[] = { &rows[0], &rows[1] };
    const struct device_view *biases[] = { NULL, NULL };
    TRY(pass_multiply(pass, pass->input, false, 2, inputs, biases, outs));
    return ops_rms_norm(&pass->target, &rows[0], NULL, &weights[MODEL_ATTN_KV_A_NORM], &rows[0],
                        NULL, config->rms_epsilon, pass->err);
}

/* Each head has a part that does not rotate, and one that does, which goes into its place. */
static enum status make_queries(struct pass *pass, int32_t index)
{
    const struct model_config *config = &pass->engine->config;
    const struct device_view *weights = pass->engine->layers[index].weights;
    struct device_view low = engine_rows(&pass->engine->scratch.latent_query, pass->tokens);
    struct device_view still = engine_rows(&pass->engine->scratch.latent_still, pass->tokens);
    const struct device_view *from = pass->input, *matrix = &weights[MODEL_ATTN_Q];
    uint64_t length = config->latent.key_length, rotated = config->rope.dimension_count;
    if (config->latent.query_rank) {
        TRY(pass_multiply_one(pass, pass->input, pass->is_packed, &weights[MODEL_ATTN_Q_A], NULL,
                              &low));
        TRY(ops_rms_norm(&pass->target, &low, NULL, &weights[MODEL_ATTN_Q_A_NORM], &low, NULL,
                         config->rms_epsilon, pass->err));
        from = &low;
        matrix = &weights[MODEL_ATTN_Q_B];
    }
    for (uint64_t head = 0; head < config->head_count; head++) {
        uint64_t first = head * (length + rotated);
        struct device_view parts[] = { weight_rows(matrix, first, length),
                                       weight_rows(matrix, first + length, rotated) };
        struct device_view rows[] = { columns(&still, head * length, length),
                                      columns(&pass->q, head * pass->layer.head_dim, rotated) };
        const struct device_view *inputs[] = { &parts[0], &parts[1] };
        const struct device_view *outs[] = { &rows[0], &rows[1] }, *biases[] = { NULL, NULL };
        bool packed = head > 0 || (from == pass->input && pass->is_packed);
        TRY(pass_multiply(pass, from, packed, 2, inputs, biases, outs));
    }
    return STATUS_OK;
}

/* For each head: a part of `source` by a part of a matrix into a part of `out`. */
static enum status multiply_heads(struct pass *pass, const struct device_view *matrix,
                                  const struct device_view *source, uint64_t source_length,
                                  const struct device_view *out, uint64_t out_length)
{
    const struct model_config *config = &pass->engine->config;
    uint64_t heads = config->head_count, k = matrix->shape.dims[0];
    uint64_t rows = matrix->shape.dims[1] / heads;
    for (uint64_t head = 0; head < heads; head++) {
        /* What a head has besides stands before. */
        struct device_view part = weight_rows(matrix, head * rows, rows);
        struct device_view from = columns(source, (head + 1) * source_length - k, k);
        struct device_view to = columns(out, (head + 1) * out_length - rows, rows);
        TRY(pass_multiply_one(pass, &from, false, &part, NULL, &to));
    }
    return STATUS_OK;
}

enum status pass_make_latent_heads(struct pass *pass, int32_t index)
{
    struct engine_layer *layer = &pass->engine->layers[index];
    const struct engine_scratch *scratch = &pass->engine->scratch;
    uint32_t head_dim = pass->layer.head_dim;
    struct device_view still = engine_rows(&scratch->latent_still, pass->tokens);
    pass_label(pass, index, "attn_qkv", DEVICE_HERE);
    TRY(make_queries(pass, index));
    TRY(make_rows(pass, index));
    TRY(pass_reach(pass, ENGINE_QKV_MULTIPLIED, index));
    pass_label(pass, index, "attn_fold", DEVICE_HERE);
    TRY(multiply_heads(pass, &layer->weights[MODEL_ATTN_K_B], &still,
                       pass->engine->config.latent.key_length, &pass->q, head_dim));
    pass_label(pass, index, "rope_qk", DEVICE_HERE);
    TRY(ops_rope(&pass->target, &pass->q, &pass->k, &pass->positions, &scratch->rope_table,
                 head_dim, true, pass->err));
    TRY(pass_reach(pass, ENGINE_HEADS_READY, index));
    pass_label(pass, index, "kv_append", DEVICE_HERE);
    TRY(ops_kv_append(&pass->target, &pass->k, &pass->k, &pass->slots, &layer->keys, &layer->values,
                      pass->err));
    return pass_reach(pass, ENGINE_KV_APPENDED, index);
}

enum status pass_make_latent_values(struct pass *pass, int32_t index)
{
    const struct device_view *weights = pass->engine->layers[index].weights;
    struct device_view values = engine_rows(&pass->engine->scratch.latent_values, pass->tokens);
    pass_label(pass, index, "attn_unfold", DEVICE_HERE);
    return multiply_heads(pass, &weights[MODEL_ATTN_V_B], &pass->attn_out, pass->layer.head_dim,
                          &values, pass->engine->config.latent.value_length);
}

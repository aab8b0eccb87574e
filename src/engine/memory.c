/* memory.c - how much device memory an engine needs, and allocating it: one budget, fixed when the
 * engine is opened. */
#include "engine/engine_impl.h"

#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Tokens of a batch. A GPU does better with larger ones: it unpacks weights once for each. */
#define BATCH_DEFAULT 512u
#define BATCH_DEFAULT_GPU 2048u

uint32_t engine_batch_default(bool on_gpu)
{
    return on_gpu ? BATCH_DEFAULT_GPU : BATCH_DEFAULT;
}

/* ---- Sizes ---------------------------------------------------------------------------------- */

struct sizes {
    uint64_t width, query, kv, feed, vocab, rotated;
    uint64_t rotated_local; /* 0: no table of their own */
    uint64_t inputs;        /* of all layers */
    uint64_t ones;
    uint64_t packed; /* bytes of the longest packed row of any weight type */
    bool own_q_table;
    bool fused, scaled; /* experts */
    struct model_latent latent;
    uint64_t heads;
    uint64_t q_rows_before;                      /* of that table: engine_make_tables */
    uint64_t chunk;                              /* 0: none */
    uint64_t experts, used, expert_feed, shared; /* shared: the width, or 0 */
    uint64_t expert_packed;                      /* as packed, of expert_feed values */
};

/* The longest packed row of any input of a matmul. */
static void find_packed(struct sizes *sizes, const struct model_config *config,
                        const struct ops *ops)
{
    uint64_t inputs[MODEL_UNLIKE_LIMIT + 8] = { sizes->width, sizes->query, sizes->feed,
                                                config->layer_input_length };
    const uint64_t latent[] = { config->latent.rank, config->latent.query_rank,
                                config->latent.key_length,
                                sizes->heads * config->latent.value_length };
    size_t count = 4;
    for (size_t i = 0; i < COUNT_OF(latent); i++)
        inputs[count++] = latent[i];
    for (uint32_t i = 0; i < config->block_count && i < MODEL_UNLIKE_LIMIT; i++) {
        struct model_layer layer = model_layer(config, i);
        inputs[count++] = layer.feed_forward_length;
    }
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        if (!model_dtype_allowed(true, (enum dtype)dtype))
            continue;
        if (sizes->expert_feed % dtype_info((enum dtype)dtype)->block_elements == 0)
            sizes->expert_packed = max_u64(
                sizes->expert_packed,
                ops_expert_row_bytes(ops, (enum dtype)dtype, sizes->expert_feed));
        for (size_t i = 0; i < count; i++) {
            /* A row that is not a whole number of a type's blocks has no weights of that type. */
            if (!inputs[i] || inputs[i] % dtype_info((enum dtype)dtype)->block_elements)
                continue;
            /* A device may pack one token and many tokens differently. */
            uint64_t one = ops_packed_row_bytes(ops, (enum dtype)dtype, inputs[i], 1);
            uint64_t many = ops_packed_row_bytes(ops, (enum dtype)dtype, inputs[i], UINT32_MAX);
            sizes->packed = max_u64(max_u64(one, many), sizes->packed);
        }
    }
}

static struct sizes sizes_of(const struct model_config *config, const struct ops *ops)
{
    bool both = config->experts.count && model_arch_info(config->arch)->reads & MODEL_KEEPS_DENSE;
    struct sizes sizes = {
        .width = config->embedding_length,
        .vocab = config->vocab_size,
        .rotated = config->rope.dimension_count,
        .rotated_local = config->has_local_rope ? config->local_rope.dimension_count : 0,
        .inputs = (uint64_t)config->layer_input_length * config->block_count,
        .feed = config->experts.shared_feed_length,
        .experts = config->experts.count,
        .used = config->experts.used,
        .expert_feed = config->experts.feed_length,
        .fused = config->experts.fused,
        .scaled = both,
        .latent = config->latent,
        .heads = config->head_count,
        .shared = config->experts.shared_feed_length || both ? config->embedding_length : 0,
        .own_q_table = config->temperature_scale != 0,
        .q_rows_before = model_arch_info(config->arch)->resting_temperature > 0,
        .chunk = config->chunk
    };
    uint64_t dim = 0;
    for (uint32_t i = 0; i < config->block_count; i++) {
        struct model_layer layer = model_layer(config, i);
        uint64_t head_dim = layer.head_dim;
        sizes.query = max_u64(sizes.query, config->head_count * head_dim);
        sizes.kv = max_u64(sizes.kv, layer.head_count_kv * head_dim);
        if (!layer.has_experts || both)
            sizes.feed = max_u64(sizes.feed, layer.feed_forward_length);
        dim = max_u64(dim, head_dim);
    }
    sizes.feed = max_u64(sizes.feed, config->layer_input_length);
    if (model_arch_info(config->arch)->reads & MODEL_NORMS_VALUES || config->norms_rotated)
        sizes.ones = dim;
    find_packed(&sizes, config, ops);
    return sizes;
}

/* A scratch buffer; rows are in the order of struct engine_scratch. */
struct scratch_row {
    size_t offset; /* of the view in struct engine_scratch */
    const char *name;
    enum dtype dtype;
    uint64_t width, rows;
};

#define SCRATCH_ROWS 36

#define SCRATCH(field) offsetof(struct engine_scratch, field)

static size_t list_scratch(const struct sizes *sizes, const struct engine_options *options,
                           struct scratch_row *rows)
{
    uint64_t tokens = options->batch_limit, logits = options->logits_limit;
    uint64_t slots = tokens * sizes->used; /* at most 2^32 * 64 */
    uint64_t lists = sizes->chunk && sizes->chunk < options->context ? ENGINE_CHUNK_LISTS
                                                                     : ENGINE_LISTS;
    const struct scratch_row all[] = {
        { SCRATCH(x), "x", DTYPE_F32, sizes->width, tokens },
        { SCRATCH(normed), "normed", DTYPE_F32, sizes->width, tokens },
        { SCRATCH(q), "q", DTYPE_F32, sizes->query, tokens },
        { SCRATCH(attn_out), "attn_out", DTYPE_F32, sizes->query, tokens },
        { SCRATCH(k), "k", DTYPE_F32, sizes->kv, tokens },
        { SCRATCH(v), "v", DTYPE_F32, sizes->kv, tokens },
        { SCRATCH(added), "added", DTYPE_F32, sizes->width, tokens },
        { SCRATCH(gate), "gate", DTYPE_F32, sizes->feed, tokens },
        { SCRATCH(up), "up", DTYPE_F32, sizes->feed, tokens },
        { SCRATCH(layer_inputs), "layer_inputs", DTYPE_F32, sizes->inputs, tokens },
        { SCRATCH(layer_projected), "layer_projected", DTYPE_F32, sizes->inputs, tokens },
        { SCRATCH(packed), "packed", DTYPE_I8, sizes->packed, tokens },
        { SCRATCH(router_logits), "router_logits", DTYPE_F32, sizes->experts, tokens },
        { SCRATCH(expert_ids), "expert_ids", DTYPE_I32, sizes->used, tokens },
        { SCRATCH(expert_weights), "expert_weights", DTYPE_F32, sizes->used, tokens },
        { SCRATCH(expert_gate), "expert_gate", DTYPE_F32, sizes->expert_feed, slots },
        { SCRATCH(expert_up), "expert_up", DTYPE_F32, sizes->fused ? 0 : sizes->expert_feed,
          slots },
        { SCRATCH(expert_gate_up), "expert_gate_up", DTYPE_F32,
          sizes->fused ? 2 * sizes->expert_feed : 0, slots },
        { SCRATCH(expert_scales), "expert_scales", DTYPE_F32, sizes->scaled ? sizes->used : 0,
          tokens },
        { SCRATCH(expert_scaled), "expert_scaled", DTYPE_F32, sizes->scaled ? sizes->used : 0,
          tokens },
        { SCRATCH(expert_out), "expert_out", DTYPE_F32, sizes->used ? sizes->width : 0, slots },
        { SCRATCH(expert_packed), "expert_packed", DTYPE_I8, sizes->used ? sizes->expert_packed : 0,
          slots },
        { SCRATCH(shared), "shared", DTYPE_F32, sizes->shared, tokens },
        { SCRATCH(shared_gate), "shared_gate", DTYPE_F32, sizes->shared ? 1 : 0, tokens },
        { SCRATCH(latent_query), "latent_query", DTYPE_F32, sizes->latent.query_rank, tokens },
        { SCRATCH(latent_still), "latent_still", DTYPE_F32, sizes->heads * sizes->latent.key_length,
          tokens },
        { SCRATCH(latent_values), "latent_values", DTYPE_F32,
          sizes->heads * sizes->latent.value_length, tokens },
        { SCRATCH(gathered), "gathered", DTYPE_F32, sizes->width, logits },
        { SCRATCH(logits_buffer[0]), "logits", DTYPE_F32, sizes->vocab, logits },
        { SCRATCH(logits_buffer[1]), "logits.1", DTYPE_F32, sizes->vocab,
          logits < options->sequence_limit ? logits : options->sequence_limit },
        { SCRATCH(argmax_ids), "argmax_ids", DTYPE_I32, logits, ENGINE_ARGMAX_LIMIT },
        { SCRATCH(indices), "indices", DTYPE_I32, (lists + 1) * tokens, 1 },
        { SCRATCH(rope_table), "rope_table", DTYPE_F32, sizes->rotated, options->context },
        { SCRATCH(rope_table_q), "rope_table.q", DTYPE_F32, sizes->own_q_table ? sizes->rotated : 0,
          options->context + sizes->q_rows_before },
        { SCRATCH(rope_table_local), "rope_table.local", DTYPE_F32, sizes->rotated_local,
          options->context },
        { SCRATCH(ones), "ones", DTYPE_F32, sizes->ones, 1 },
    };
    _Static_assert(COUNT_OF(all) <= SCRATCH_ROWS, "the list has room");
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (all[i].width > 0)
            rows[count++] = all[i];
    return count;
}

/* ---- The budget ----------------------------------------------------------------------------- */

static enum status fill_options(const struct model_config *config, const struct ops *ops,
                                struct engine_options *options, struct error *err)
{
    uint32_t batch = engine_batch_default(ops->on_gpu);
    if (!options->context)
        options->context = config->context_length;
    if (!options->sequence_limit)
        options->sequence_limit = 1;
    if (!options->batch_limit)
        options->batch_limit = min_u64(options->context, batch);
    if (!options->logits_limit)
        options->logits_limit = options->sequence_limit;
    if (options->logits_limit > options->batch_limit)
        options->logits_limit = options->batch_limit;
    uint64_t slots = (uint64_t)options->context * options->sequence_limit;
    if (slots > INT32_MAX)
        return error_set(err, STATUS_USAGE,
                         "context: expected at most %d tokens over all sequences, found %" PRIu64
                         " (%" PRIu32 " for each of %" PRIu32 ")",
                         INT32_MAX, slots, options->context, options->sequence_limit);
    if (options->kv_dtype != DTYPE_F32 && options->kv_dtype != DTYPE_F16 &&
        options->kv_dtype != DTYPE_Q8_0)
        return error_set(err, STATUS_USAGE, "kv cache type: expected f32, f16 or q8_0, found %s",
                         dtype_name(options->kv_dtype));
    for (uint32_t i = 0; i < config->block_count; i++) {
        struct model_layer layer = model_layer(config, i);
        uint64_t kv = (uint64_t)layer.head_count_kv * layer.head_dim;
        if (kv % dtype_info(options->kv_dtype)->block_elements == 0)
            continue;
        return error_set(err, STATUS_USAGE,
                         "kv cache type %s: expected keys of a multiple of %" PRIu32
                         " values, found %" PRIu64 "; use f16",
                         dtype_name(options->kv_dtype),
                         dtype_info(options->kv_dtype)->block_elements, kv);
    }
    return STATUS_OK;
}

enum status engine_budget_make(const struct model_report *report, const struct ops *ops,
                               const struct engine_options *options,
                               struct engine_budget *ret_budget, struct error *err)
{
    struct engine_budget budget = { .options = *options, .weight_bytes = report->weight_bytes };
    TRY(fill_options(&report->config, ops, &budget.options, err));
    uint64_t slots = (uint64_t)budget.options.context * budget.options.sequence_limit;
    budget.kv_bytes = model_kv_bytes(&report->config, slots, budget.options.kv_dtype);
    struct sizes sizes = sizes_of(&report->config, ops);
    struct scratch_row rows[SCRATCH_ROWS];
    size_t count = list_scratch(&sizes, &budget.options, rows);
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        struct shape shape = shape_make(2, (uint64_t[]){ rows[i].width, rows[i].rows });
        uint64_t bytes = 0;
        fits = fits && shape_bytes(&shape, rows[i].dtype, &bytes) &&
               size_add(budget.scratch_bytes, bytes, &budget.scratch_bytes);
    }
    fits = fits && size_add(budget.weight_bytes, budget.kv_bytes, &budget.total_bytes) &&
           size_add(budget.total_bytes, budget.scratch_bytes, &budget.total_bytes);
    if (!fits)
        return error_set(err, STATUS_USAGE, "memory: expected a size below 2^64 bytes");
    *ret_budget = budget;
    return STATUS_OK;
}

uint64_t engine_layer_width(const struct engine *engine, size_t offset, int32_t layer)
{
    if (layer < 0)
        return 0;
    struct model_layer numbers = model_layer(&engine->config, (uint32_t)layer);
    uint64_t dim = numbers.head_dim;
    if (offset == offsetof(struct engine_scratch, q) ||
        offset == offsetof(struct engine_scratch, attn_out))
        return engine->config.head_count * dim;
    if (offset == offsetof(struct engine_scratch, k) ||
        offset == offsetof(struct engine_scratch, v))
        return numbers.head_count_kv * dim;
    if (offset == offsetof(struct engine_scratch, gate) ||
        offset == offsetof(struct engine_scratch, up))
        return numbers.feed_forward_length;
    return 0;
}

/* ---- Allocating ----------------------------------------------------------------------------- */

uint64_t engine_reserved_bytes(const struct engine *engine, uint64_t bytes)
{
    uint64_t alignment = device_info(engine->device)->alignment;
    return (bytes + alignment - 1) / alignment * alignment;
}

static enum status make(struct engine *engine, const char *name, enum dtype dtype, uint64_t width,
                        uint64_t rows, struct device_view *ret_view, struct error *err)
{
    struct device_view view = { .dtype = dtype,
                                .shape = shape_make(2, (uint64_t[]){ width, rows }) };
    uint64_t bytes = 0;
    ASSERT(shape_bytes(&view.shape, dtype, &bytes)); /* expected */
    TRY(device_buffer_create(engine->device, bytes, name, DEVICE_HERE, &view.buffer, err));
    *ret_view = view;
    return STATUS_OK;
}

/* False for RoPE tables, which are made once, and for the indices, which every batch writes. */
static bool is_activation(const struct scratch_row *row)
{
    return row->offset < offsetof(struct engine_scratch, indices);
}
_Static_assert(offsetof(struct engine_scratch, rope_table) >
                       offsetof(struct engine_scratch, indices) &&
                   offsetof(struct engine_scratch, ones) + sizeof(struct device_view) ==
                       sizeof(struct engine_scratch),
               "activations stand first");

enum status engine_clear(struct engine *engine, struct error *err)
{
    struct sizes sizes = sizes_of(&engine->config, engine->ops);
    struct scratch_row rows[SCRATCH_ROWS];
    size_t count = list_scratch(&sizes, &engine->budget.options, rows);
    struct event_scope scope = { .step = -1, .layer = -1, .tensor = "clear" };
    device_scope_set(engine->device, engine->stream, &scope);
    for (size_t i = 0; i < count; i++) {
        const struct device_view *view = (void *)((char *)&engine->scratch + rows[i].offset);
        if (is_activation(&rows[i]))
            TRY(device_fill(engine->device, engine->stream, view, 0, DEVICE_HERE, err));
    }
    for (uint32_t i = 0; i < engine->config.block_count; i++) {
        struct engine_layer *layer = &engine->layers[i];
        if (!engine_has(&layer->keys))
            continue;
        TRY(device_fill(engine->device, engine->stream, &layer->keys, 0, DEVICE_HERE, err));
        TRY(device_fill(engine->device, engine->stream, &layer->values, 0, DEVICE_HERE, err));
    }
    return STATUS_OK;
}

enum status engine_make_memory(struct engine *engine, struct error *err)
{
    const struct engine_options *options = &engine->budget.options;
    struct sizes sizes = sizes_of(&engine->config, engine->ops);
    struct scratch_row rows[SCRATCH_ROWS];
    size_t count = list_scratch(&sizes, options, rows);
    uint64_t slack = engine_reserved_bytes(engine, 1) * (count + 2 * engine->config.block_count);
    device_reserve(engine->device, engine->budget.scratch_bytes + engine->budget.kv_bytes + slack);
    for (size_t i = 0; i < count; i++) {
        struct device_view *view = (void *)((char *)&engine->scratch + rows[i].offset);
        TRY(make(engine, rows[i].name, rows[i].dtype, rows[i].width, rows[i].rows, view, err));
    }
    uint64_t slots = (uint64_t)options->context * options->sequence_limit;
    for (uint32_t i = 0; i < engine->config.block_count; i++) {
        struct engine_layer *layer = &engine->layers[i];
        char keys[EVENT_TENSOR_BYTES], values[EVENT_TENSOR_BYTES];
        snprintf(keys, sizeof(keys), "kv.keys.%" PRIu32, i);
        snprintf(values, sizeof(values), "kv.values.%" PRIu32, i);
        struct model_layer numbers = model_layer(&engine->config, i);
        uint64_t kv = (uint64_t)numbers.head_count_kv * numbers.head_dim;
        if (numbers.cache != i)
            continue;
        TRY(make(engine, keys, options->kv_dtype, kv, slots, &layer->keys, err));
        TRY(make(engine, values, options->kv_dtype, kv, slots, &layer->values, err));
    }
    return engine_make_tables(engine, err);
}

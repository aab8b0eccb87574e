/* synth.c - synthetic models: the exact shapes of real ones, weights from a seed.
 *
 * Weights are gaussian. A matrix with `in` columns has the deviation 1/sqrt(in), so that it keeps
 * the magnitude of its input. The two that write into the residual stream have 1/sqrt(2 layers) of
 * that, so that the magnitude of the stream does not grow with depth.
 *
 * Quantizing billions of values would take minutes. So a pool of blocks is quantized once for each
 * type and deviation, and tensors are drawn from it block by block: 16 blocks out of 4,096 make a
 * row that no other row equals. If rows are too short for that, every block is made for itself.
 * Everything follows from the seed by integer arithmetic, on any machine. */
#include "convert/convert_impl.h"

#include "base/parallel.h"
#include "base/size.h"
#include "convert/synth_random.h"
#include "tensor/quant.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A draw has at least this many values: plain types are drawn in runs, not one by one. */
#define UNIT_ELEMENTS_MIN 32u
#define POOL_UNITS 4096u
/* Rows of this many draws are distinct: 4096^4 is far more than the square of any vocabulary. */
#define ROW_UNITS_MIN 4u
#define POOL_LIMIT 32u
#define SLAB_BYTES ((size_t)4 << 20)

/* ---- Pools ---------------------------------------------------------------------------------- */

struct pool {
    enum dtype dtype;
    float deviation;
    uint32_t unit_elements;
    size_t unit_bytes;
    uint64_t seed;
    uint8_t *units; /* POOL_UNITS of them; owned; NULL until they are needed */
};

static void fill_pool_unit(void *context, uint64_t index)
{
    struct pool *pool = context;
    float values[256];
    uint64_t state = pool->seed + index * 0x632BE59BD9B4E019u;
    random_next(&state);
    for (uint32_t i = 0; i < pool->unit_elements; i++)
        values[i] = random_gaussian(&state) * pool->deviation;
    quant_encode_row(pool->dtype, values, pool->unit_elements,
                     pool->units + index * pool->unit_bytes);
}

struct synthesis {
    const struct convert_synth *request;
    const struct progress *progress;
    struct model_config config;
    struct convert_mix mix;
    struct gguf_writer *writer;
    struct pool pools[POOL_LIMIT];
    size_t pool_count;
    uint8_t *slab; /* SLAB_BYTES */
    uint64_t done_bytes;
};

/* The pool of that kind; empty if it is new. */
static struct pool *find_pool(struct synthesis *synthesis, enum dtype dtype, float deviation)
{
    for (size_t i = 0; i < synthesis->pool_count; i++) {
        struct pool *pool = &synthesis->pools[i];
        if (pool->dtype == dtype && pool->deviation == deviation)
            return pool;
    }
    /* One for each type and deviation; a model has only a handful of deviations. */
    ASSERT(synthesis->pool_count < POOL_LIMIT);
    struct pool *pool = &synthesis->pools[synthesis->pool_count++];
    uint32_t block = dtype_info(dtype)->block_elements;
    *pool = (struct pool){ .dtype = dtype,
                           .deviation = deviation,
                           .unit_elements = max_u64(block, UNIT_ELEMENTS_MIN),
                           .seed = random_seed(synthesis->request->seed, "pool") };
    pool->unit_bytes = pool->unit_elements / block * dtype_info(dtype)->block_bytes;
    return pool;
}

static enum status fill_pool(struct pool *pool, struct error *err)
{
    if (pool->units)
        return STATUS_OK;
    pool->units = malloc(POOL_UNITS * pool->unit_bytes);
    if (!pool->units)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a pool of weights");
    parallel_run(POOL_UNITS, 0, fill_pool_unit, pool);
    return STATUS_OK;
}

/* ---- Tensors -------------------------------------------------------------------------------- */

/* Appends count bytes of slab and reports progress. */
static enum status append(struct synthesis *synthesis, size_t count, struct error *err)
{
    TRY(gguf_writer_append(synthesis->writer, synthesis->slab, count, err));
    synthesis->done_bytes += count;
    return progress_step(synthesis->progress, synthesis->done_bytes,
                         gguf_writer_size_bytes(synthesis->writer), err);
}

/* Fill the slab with units of a pool's kind: from the pool, or made here. */
static void draw_units(struct synthesis *synthesis, const struct pool *pool, uint64_t unit_count,
                       uint64_t *state)
{
    for (uint64_t i = 0; i < unit_count; i++) {
        uint64_t unit = random_next(state) % POOL_UNITS;
        memcpy(synthesis->slab + i * pool->unit_bytes, pool->units + unit * pool->unit_bytes,
               pool->unit_bytes);
    }
}

static void make_units(struct synthesis *synthesis, const struct pool *pool, uint64_t unit_count,
                       uint64_t *state)
{
    struct pool made = *pool;
    made.units = synthesis->slab;
    made.seed = random_next(state);
    parallel_run(unit_count, 0, fill_pool_unit, &made);
}

static enum status write_matrix(struct synthesis *synthesis, const struct model_tensor *expected,
                                enum dtype dtype, float deviation, struct error *err)
{
    struct pool *pool = find_pool(synthesis, dtype, deviation);
    uint64_t state = random_seed(synthesis->request->seed, expected->name);
    uint64_t left;
    ASSERT(shape_bytes(&expected->shape, dtype, &left));
    bool anew = expected->shape.dims[0] < (uint64_t)ROW_UNITS_MIN * pool->unit_elements;
    if (!anew)
        TRY(fill_pool(pool, err));
    size_t slab_units = SLAB_BYTES / pool->unit_bytes;
    while (left > 0) {
        /* The last unit of a tensor may be cut: rows of 172 floats are not whole units. */
        uint64_t units = (left + pool->unit_bytes - 1) / pool->unit_bytes;
        units = min_u64(units, slab_units);
        if (anew)
            make_units(synthesis, pool, units, &state);
        else
            draw_units(synthesis, pool, units, &state);
        uint64_t bytes = units * pool->unit_bytes < left ? units * pool->unit_bytes : left;
        TRY(append(synthesis, (size_t)bytes, err));
        left -= bytes;
    }
    return STATUS_OK;
}

/* Llama 3.1's rule: frequencies of long waves are divided by factor, those of short waves are not,
 * those between are blended. Trained for 8192 tokens; the bounds are 1 and 4 waves in those. */
static float rope_divisor(const struct model_shape *shape, uint64_t pair)
{
    const double trained = 8192, low = 1, high = 4, pi = 3.14159265358979323846;
    double wave = 2 * pi * pow(shape->rope_base, 2.0 * (double)pair / shape->head_dim);
    double waves = trained / wave;
    if (waves >= high)
        return 1.0f;
    if (waves <= low)
        return shape->rope_freqs_factor;
    double blend = (waves - low) / (high - low);
    return (float)(1.0 / ((1 - blend) / shape->rope_freqs_factor + blend));
}

/* From 1 for the fastest pair to what makes the slowest one last as long in a longer context; next
 * to nothing of that for short ones. */
static float long_divisor(const struct model_shape *shape, enum model_role role, uint64_t pair,
                          uint64_t pairs)
{
    float most = (float)shape->context_length / (float)shape->rope_original_context;
    if (role == MODEL_ROPE_FACTORS_SHORT)
        most = 1.1f;
    return 1 + (most - 1) * (float)(pair + 1) / (float)pairs;
}

static enum status write_vector(struct synthesis *synthesis, enum model_role role,
                                const struct model_tensor *expected, struct error *err)
{
    const struct model_shape *shape = &synthesis->request->shape;
    uint64_t state = random_seed(synthesis->request->seed, expected->name);
    size_t length = strlen(expected->name);
    bool bias = length > 5 && strcmp(expected->name + length - 5, ".bias") == 0;
    uint64_t count = expected->shape.dims[0] * expected->shape.dims[1];
    size_t used = 0;
    for (uint64_t i = 0; i < count; i++) {
        /* Norms near one, biases near zero; neither exactly, so that leaving them out shows. */
        float value = (bias ? 0.0f : 1.0f) + 0.05f * random_gaussian(&state);
        if (role == MODEL_ROPE_FREQS)
            value = rope_divisor(shape, i);
        else if (role == MODEL_FFN_SHARED_ROUTER) /* the one row of a matrix */
            value = random_gaussian(&state) / sqrtf((float)count);
        else if (role == MODEL_ROPE_FACTORS_SHORT || role == MODEL_ROPE_FACTORS_LONG)
            value = long_divisor(shape, role, i, count);
        memcpy(synthesis->slab + used, &value, sizeof(value));
        used += sizeof(value);
        if (used == SLAB_BYTES || i + 1 == count) {
            TRY(append(synthesis, used, err));
            used = 0;
        }
    }
    return STATUS_OK;
}

static float matrix_deviation(const struct synthesis *synthesis, enum model_role role,
                              const struct model_tensor *expected)
{
    /* With a separate output matrix, the embedding can have the magnitude of the stream. */
    if (role == MODEL_TOKEN_EMBD && !synthesis->config.tied_embeddings)
        return 1.0f;
    float deviation = 1.0f / sqrtf((float)expected->shape.dims[0]);
    if (role == MODEL_ATTN_OUTPUT || role == MODEL_FFN_DOWN || role == MODEL_FFN_DOWN_EXPERTS ||
        role == MODEL_FFN_SHARED_DOWN)
        deviation /= sqrtf(2.0f * (float)synthesis->config.block_count);
    return deviation;
}

/* Calls `visit` for every tensor of the model, in the order of the file. */
typedef enum status (*tensor_visitor)(struct synthesis *synthesis, enum model_role role,
                                      const struct model_tensor *expected, enum dtype dtype,
                                      struct error *err);

static bool is_wanted(const struct synthesis *synthesis, enum model_role role,
                      enum model_presence presence)
{
    if (role == MODEL_OUTPUT)
        return presence == MODEL_REQUIRED ||
               (presence == MODEL_OPTIONAL && !synthesis->config.tied_embeddings);
    if (role == MODEL_ROPE_FREQS)
        return synthesis->config.has_rope_freqs && presence != MODEL_ABSENT;
    if (role == MODEL_ATTN_V || role == MODEL_FFN_CHOICE_BIAS || role == MODEL_LAYER_OUTPUT_SCALE)
        return presence != MODEL_ABSENT;
    if (role == MODEL_ATTN_Q_BIAS || role == MODEL_ATTN_K_BIAS || role == MODEL_ATTN_V_BIAS)
        return presence == MODEL_REQUIRED ||
               (presence == MODEL_OPTIONAL && synthesis->request->shape.has_qkv_biases);
    if (role == MODEL_ATTN_Q_NORM || role == MODEL_ATTN_K_NORM)
        return presence == MODEL_REQUIRED ||
               (presence == MODEL_OPTIONAL && synthesis->request->shape.has_head_norms);
    return presence == MODEL_REQUIRED;
}

static enum status visit_role(struct synthesis *synthesis, enum model_role role, uint32_t layer,
                              tensor_visitor visit, struct error *err)
{
    struct model_tensor expected = model_tensor(&synthesis->config, role, layer);
    if (!is_wanted(synthesis, role, expected.presence))
        return STATUS_OK;
    enum dtype dtype = DTYPE_F32;
    if (expected.is_matrix && convert_is_quantized(text_view_of(expected.name), &expected.shape))
        dtype = convert_dtype(&synthesis->mix, text_view_of(expected.name), &expected.shape);
    return visit(synthesis, role, &expected, dtype, err);
}

static enum status visit_all(struct synthesis *synthesis, tensor_visitor visit, struct error *err)
{
    for (size_t role = 0; role < MODEL_ROLE_COUNT; role++)
        if (!model_role_is_per_layer((enum model_role)role))
            TRY(visit_role(synthesis, (enum model_role)role, 0, visit, err));
    for (uint32_t layer = 0; layer < synthesis->config.block_count; layer++)
        for (size_t role = 0; role < MODEL_ROLE_COUNT; role++)
            if (model_role_is_per_layer((enum model_role)role))
                TRY(visit_role(synthesis, (enum model_role)role, layer, visit, err));
    return STATUS_OK;
}

static enum status declare(struct synthesis *synthesis, enum model_role role,
                           const struct model_tensor *expected, enum dtype dtype, struct error *err)
{
    (void)role;
    return gguf_writer_add_tensor(synthesis->writer, text_view_of(expected->name), dtype,
                                  &expected->shape, err);
}

static enum status write_one(struct synthesis *synthesis, enum model_role role,
                             const struct model_tensor *expected, enum dtype dtype,
                             struct error *err)
{
    if (!expected->is_matrix)
        return write_vector(synthesis, role, expected, err);
    return write_matrix(synthesis, expected, dtype, matrix_deviation(synthesis, role, expected),
                        err);
}

/* ---- The whole ------------------------------------------------------------------------------ */

static enum status check_shape(const struct model_shape *shape, struct error *err)
{
    const struct {
        const char *name;
        uint32_t value, least, most;
    } numbers[] = {
        { "--width", shape->embedding_length, 1, 1u << 20 },
        { "--layers", shape->block_count, 1, 4096 },
        { "--ffn", shape->feed_forward_length, 1, 1u << 20 },
        { "--heads", shape->head_count, 1, 65536 },
        { "--kv-heads", shape->head_count_kv, 1, 65536 },
        { "--head-dim", shape->head_dim, 8, 65536 },
        { "--vocab", shape->vocab_size, CONVERT_VOCAB_MIN, 1u << 22 },
        { "--context", shape->context_length, 1, 1u << 30 },
        { "--experts", shape->experts.count, 0, MODEL_EXPERT_LIMIT },
        { "--experts-used", shape->experts.used, shape->experts.count > 0,
          MODEL_EXPERT_USED_LIMIT },
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (numbers[i].value < numbers[i].least || numbers[i].value > numbers[i].most)
            return error_set(err, STATUS_USAGE,
                             "%s: expected %" PRIu32 " to %" PRIu32 ", found %" PRIu32,
                             numbers[i].name, numbers[i].least, numbers[i].most, numbers[i].value);
    if (shape->head_count % shape->head_count_kv)
        return error_set(err, STATUS_USAGE,
                         "--kv-heads: expected a divisor of --heads %" PRIu32 ", found %" PRIu32,
                         shape->head_count, shape->head_count_kv);
    if (shape->experts.used > shape->experts.count)
        return error_set(err, STATUS_USAGE,
                         "--experts-used: expected at most --experts %" PRIu32 ", found %" PRIu32,
                         shape->experts.count, shape->experts.used);
    if (shape->head_dim % 8)
        return error_set(err, STATUS_USAGE, "--head-dim: expected a multiple of 8, found %" PRIu32,
                         shape->head_dim);
    return STATUS_OK;
}

static struct model_config config_of(const struct model_shape *shape)
{
    struct model_config config = {
        .arch = shape->arch,
        .context_length = shape->context_length,
        .embedding_length = shape->embedding_length,
        .block_count = shape->block_count,
        .feed_forward_length = shape->feed_forward_length,
        .head_count = shape->head_count,
        .head_count_kv = shape->head_count_kv,
        .head_dim = shape->head_dim,
        .vocab_size = shape->vocab_size,
        .rope = { .dimension_count = shape->rope_dimensions ? shape->rope_dimensions
                                                            : shape->head_dim },
        .tied_embeddings = shape->tied_embeddings,
        .has_rope_freqs = shape->rope_freqs_factor > 0,
        .has_rope_factors = shape->rope_scaling == MODEL_ROPE_SCALING_LONG,
        .has_fused_qkv = shape->has_fused_qkv,
        .experts = shape->experts,
        .latent = shape->latent
    };
    convert_unlike_layers(shape, &config);
    return config;
}

static enum status synthesise(struct synthesis *synthesis, struct error *err)
{
    const struct convert_synth *request = synthesis->request;
    TRY(gguf_writer_create(&synthesis->writer, err));
    TRY(convert_put_metadata(synthesis->writer, request, &synthesis->config, err));
    TRY(visit_all(synthesis, declare, err));
    TRY(gguf_writer_begin_data(synthesis->writer, request->path, request->replace, err));
    TRY(visit_all(synthesis, write_one, err));
    return gguf_writer_finish(synthesis->writer, err);
}

enum status convert_synth(const struct convert_synth *request, const struct progress *progress,
                          uint64_t *ret_bytes, struct error *err)
{
    struct convert_synth whole = *request;
    convert_complete_experts(&whole.shape);
    convert_complete_latent(&whole.shape);
    TRY(check_shape(&whole.shape, err));
    struct synthesis synthesis = { .request = &whole,
                                   .progress = progress,
                                   .config = config_of(&whole.shape),
                                   .slab = malloc(SLAB_BYTES) };
    synthesis.mix = (struct convert_mix){ request->type, request->shape.block_count,
                                          request->shape.tied_embeddings };
    enum status status;
    if (!synthesis.slab)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for a slab of weights");
    else
        status = synthesise(&synthesis, err);
    if (!status)
        *ret_bytes = gguf_writer_size_bytes(synthesis.writer);
    gguf_writer_destroy(synthesis.writer);
    for (size_t i = 0; i < synthesis.pool_count; i++)
        free(synthesis.pools[i].units);
    free(synthesis.slab);
    return status;
}

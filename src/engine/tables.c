/* tables.c - what is computed once, when an engine is opened: RoPE tables, and the weights of norms
 * that have none. */
#include "engine/engine_impl.h"

#include <math.h>

/* The divisors of the frequencies; NULL: none. Those of a long context are for engines that are
 * opened with one: what is cached cannot be turned again. */
static const struct device_view *rope_factors(const struct engine *engine)
{
    uint64_t context = engine->budget.options.context;
    bool is_long = (context + 255) / 256 * 256 > engine->config.rope.original_context_length;
    const struct device_view *globals = engine->globals;
    if (engine_has(&globals[MODEL_ROPE_FREQS]))
        return &globals[MODEL_ROPE_FREQS];
    if (engine_has(&globals[MODEL_ROPE_FACTORS_LONG]))
        return &globals[is_long ? MODEL_ROPE_FACTORS_LONG : MODEL_ROPE_FACTORS_SHORT];
    return NULL;
}

static enum status make_rope_table(struct engine *engine, const struct model_rope *rope,
                                   const struct device_view *factors, float temperature,
                                   const struct device_view *table, struct error *err)
{
    struct ops_target target = { engine->ops, engine->stream, DEVICE_HERE };
    struct ops_rope_settings settings = {
        .base = rope->base,
        .frequency_scale = 1 / rope->scaling_factor,
        .attention_factor = rope->attention_factor,
        .ext_factor = rope->yarn_ext_factor,
        .beta_fast = rope->yarn_beta_fast,
        .beta_slow = rope->yarn_beta_slow,
        .log_multiplier = rope->yarn_log_multiplier,
        .original_context_length = rope->original_context_length,
        .yarn = rope->scaling == MODEL_ROPE_SCALING_YARN,
        .temperature_scale = temperature,
        .temperature_length = engine->config.temperature_length,
    };
    return ops_rope_table(&target, factors, table, &settings, err);
}

/* For queries that do not turn but have a temperature: turned by no angle. The temperature counts
 * from position 1 on, so position p is in row p + 1. */
static enum status make_resting_table(struct engine *engine, struct error *err)
{
    struct device_view *table = &engine->scratch.rope_table_q;
    struct model_rope rope = { .base = engine->config.rope.base,
                               .scaling_factor = INFINITY,
                               .attention_factor = 1 };
    TRY(make_rope_table(engine, &rope, NULL, engine->config.temperature_scale, table, err));
    table->offset_bytes = table->shape.dims[0] * sizeof(float);
    table->shape.dims[1]--;
    return STATUS_OK;
}

static enum status make_rope_tables(struct engine *engine, struct error *err)
{
    const struct model_config *config = &engine->config;
    const struct engine_scratch *scratch = &engine->scratch;
    const struct device_view *factors = rope_factors(engine);
    TRY(make_rope_table(engine, &config->rope, factors, 0, &scratch->rope_table, err));
    if (model_arch_info(config->arch)->resting_temperature > 0)
        TRY(make_resting_table(engine, err));
    else if (engine_has(&scratch->rope_table_q))
        TRY(make_rope_table(engine, &config->rope, factors, config->temperature_scale,
                            &scratch->rope_table_q, err));
    if (engine_has(&scratch->rope_table_local))
        TRY(make_rope_table(engine, &config->local_rope, NULL, 0, &scratch->rope_table_local, err));
    return STATUS_OK;
}

static enum status make_ones(struct engine *engine, struct error *err)
{
    static const float one = 1;
    const struct device_view *ones = &engine->scratch.ones;
    for (uint64_t i = 0; engine_has(ones) && i < ones->shape.dims[0]; i++) {
        struct device_view place = *ones;
        place.shape = shape_make(1, (uint64_t[]){ 1 });
        place.offset_bytes = i * sizeof(one);
        TRY(device_copy_in(engine->device, engine->stream, &place, &one, sizeof(one), DEVICE_HERE,
                           err));
    }
    return STATUS_OK;
}

enum status engine_make_tables(struct engine *engine, struct error *err)
{
    TRY(make_ones(engine, err));
    return make_rope_tables(engine, err);
}

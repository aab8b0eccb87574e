/* layer_input.c - inputs that each layer has of its own: for a token, one row of a table and one
 * projection of its embedding, cut into a part for each layer. At the end of a layer its part,
 * times an activation of the residual stream, is projected, normed and added. */
#include "engine/pass.h"

#include <math.h>

/* The table's row and the projection count the same: the sum of both over the root of 2. */
enum status layer_inputs_make(struct pass *pass)
{
    const struct engine *engine = pass->engine;
    const struct model_config *config = &engine->config;
    const struct device_view *proj = &engine->globals[MODEL_LAYER_PROJ];
    struct device_view sum = engine_rows(&engine->scratch.layer_inputs, pass->tokens);
    struct device_view part = engine_rows(&engine->scratch.layer_projected, pass->tokens);
    float half = sqrtf(0.5f);
    pass_label(pass, -1, "layer_inputs", DEVICE_HERE);
    TRY(ops_embed(&pass->target, &engine->globals[MODEL_LAYER_TOKEN_EMBD], &pass->ids, &sum,
                  pass->err));
    TRY(ops_scale(&pass->target, &sum, sqrtf((float)config->layer_input_length) * half, 0,
                  pass->err));
    TRY(pass_multiply_one(pass, &pass->x, false, proj, NULL, &part));
    TRY(ops_scale(&pass->target, &part, 1 / sqrtf((float)config->embedding_length), 0, pass->err));
    TRY(ops_head_norm(&pass->target, &part, &engine->globals[MODEL_LAYER_PROJ_NORM],
                      config->rms_epsilon, pass->err));
    TRY(ops_scale(&pass->target, &part, half, 0, pass->err));
    return ops_add(&pass->target, &sum, &part, pass->err);
}

enum status layer_input_add(struct pass *pass, int32_t index)
{
    const struct engine *engine = pass->engine;
    const struct device_view *weights = engine->layers[index].weights;
    uint64_t length = engine->config.layer_input_length;
    struct device_view own = engine_rows(&engine->scratch.layer_inputs, pass->tokens);
    struct device_view gate = pass->gate, packed;
    struct ops_packing packing = pass_packing(&packed, pass, &weights[MODEL_LAYER_INPUT_PROJ]);
    own.row_stride_bytes = own.shape.dims[0] * sizeof(float);
    own.shape.dims[0] = gate.shape.dims[0] = length;
    own.offset_bytes = (uint64_t)index * length * sizeof(float);
    pass_label(pass, index, "layer_input_gate", DEVICE_HERE);
    TRY(pass_settle(pass));
    TRY(pass_multiply_one(pass, &pass->x, false, &weights[MODEL_LAYER_INPUT_GATE], NULL, &gate));
    TRY(ops_gelu(&pass->target, &gate, &own, &gate, &packing, pass->err));
    pass_label(pass, index, "layer_input_proj", DEVICE_HERE);
    TRY(pass_multiply_one(pass, &gate, true, &weights[MODEL_LAYER_INPUT_PROJ], NULL, &pass->added));
    TRY(ops_rms_norm(&pass->target, &pass->added, NULL, &weights[MODEL_LAYER_INPUT_NORM],
                     &pass->added, NULL, engine->config.rms_epsilon, pass->err));
    pass->is_pending = true;
    return STATUS_OK;
}

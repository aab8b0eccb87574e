/* experts_add.c - experts of a layer that has a feed-forward of its own too. Both read the residual
 * stream, each by a norm of its own, and the router reads it by a third; what they give is normed
 * and added. */
#include "engine/pass.h"

/* The residual stream, normed, is the input of what comes next. */
static enum status read_stream(struct pass *pass, int32_t index, enum model_role norm,
                               const char *label)
{
    const struct device_view *weights = pass->engine->layers[index].weights;
    pass->input = &pass->normed;
    pass->is_packed = false;
    pass_label(pass, index, label, DEVICE_HERE);
    return ops_rms_norm(&pass->target, &pass->x, NULL, &weights[norm], &pass->normed, NULL,
                        pass->engine->config.rms_epsilon, pass->err);
}

static enum status norm_result(struct pass *pass, int32_t index, enum model_role norm,
                               const char *label, const struct device_view *rows)
{
    const struct device_view *weights = pass->engine->layers[index].weights;
    pass_label(pass, index, label, DEVICE_HERE);
    return ops_rms_norm(&pass->target, rows, NULL, &weights[norm], rows, NULL,
                        pass->engine->config.rms_epsilon, pass->err);
}

enum status pass_add_experts(struct pass *pass, int32_t index)
{
    struct device_view sum = engine_rows(&pass->engine->scratch.shared, pass->tokens);
    ASSERT(!pass->is_pending); /* the norm before the feed-forward added it */
    TRY(norm_result(pass, index, MODEL_FFN_DENSE_POST_NORM, "ffn_dense_post_norm", &pass->added));
    TRY(read_stream(pass, index, MODEL_FFN_ROUTER_SCALE, "ffn_router_norm"));
    TRY(pass_route(pass, index));
    TRY(read_stream(pass, index, MODEL_FFN_EXPERTS_NORM, "ffn_experts_norm"));
    TRY(pass_run_experts(pass, index, &sum));
    TRY(norm_result(pass, index, MODEL_FFN_EXPERTS_POST_NORM, "ffn_experts_post_norm", &sum));
    pass_label(pass, index, "ffn_experts_add", DEVICE_HERE);
    return ops_add(&pass->target, &pass->added, &sum, pass->err);
}

/* pass.c - see pass.h. */
#include "engine/pass.h"

void pass_label(struct pass *pass, int32_t layer, const char *tensor, struct device_site site)
{
    pass->target.site = site;
    struct event_scope *scope = &pass->engine->scope;
    *scope = (struct event_scope){ .step = pass->engine->step, .layer = layer };
    event_set_text(scope->tensor, sizeof(scope->tensor), tensor);
    device_scope_set(pass->engine->device, pass->engine->stream, scope);
}

enum status pass_reach(struct pass *pass, enum engine_moment moment, int32_t layer)
{
    if (!pass->engine->taps)
        return STATUS_OK;
    return engine_tap_moment(pass->engine, moment, layer, pass->tokens, pass->err);
}

/* ---- Matmuls -------------------------------------------------------------------------------- */

static struct device_view packed_view(const struct pass *pass, enum dtype weight_dtype, uint64_t k)
{
    struct device_view packed = engine_rows(&pass->engine->scratch.packed, pass->tokens);
    packed.shape.dims[0] = ops_packed_row_bytes(pass->engine->ops, weight_dtype, k, pass->tokens);
    return packed;
}

struct ops_packing pass_packing(struct device_view *ret_packed, const struct pass *pass,
                                const struct device_view *weights)
{
    *ret_packed = packed_view(pass, weights->dtype, weights->shape.dims[0]);
    return (struct ops_packing){ ret_packed, weights->dtype };
}

enum status pass_multiply(struct pass *pass, const struct device_view *input, bool is_packed,
                          size_t count, const struct device_view *const *weights,
                          const struct device_view *const *biases,
                          const struct device_view *const *outs)
{
    size_t done = 0;
    while (done < count) {
        enum dtype dtype = weights[done]->dtype;
        size_t run = 1;
        while (done + run < count &&
               ops_same_packing(pass->engine->ops, dtype, weights[done + run]->dtype,
                                input->shape.dims[0], pass->tokens))
            run++;
        struct device_view packed = packed_view(pass, dtype, input->shape.dims[0]);
        if (done > 0 || !is_packed)
            TRY(ops_act_pack(&pass->target, input, &packed, dtype, pass->err));
        TRY(ops_matmul_group(&pass->target, run, weights + done, &packed, biases + done,
                             outs + done, pass->err));
        done += run;
    }
    return STATUS_OK;
}

enum status pass_multiply_one(struct pass *pass, const struct device_view *input, bool is_packed,
                              const struct device_view *weights, const struct device_view *bias,
                              const struct device_view *out)
{
    return pass_multiply(pass, input, is_packed, 1, &weights, &bias, &out);
}

enum status pass_settle(struct pass *pass)
{
    if (!pass->is_pending)
        return STATUS_OK;
    pass->is_pending = false;
    return ops_add(&pass->target, &pass->x, &pass->added, pass->err);
}

/* weights.c - binds the tensors of a file by the model's plan. Where the device copies them, the
 * file's pages are given back as it goes: there is never more than one tensor twice. Some devices
 * like some types laid out anew. */
#include "engine/engine_impl.h"

/* A buffer in the type this device likes, instead of `raw`, which is given back. */
static enum status relay(struct engine *engine, const char *name, enum dtype dtype,
                         struct device_view *raw, struct error *err)
{
    struct ops_target target = { engine->ops, engine->stream, DEVICE_HERE };
    struct device_view relaid = { .dtype = dtype, .shape = raw->shape };
    uint64_t bytes = device_buffer_bytes(engine->device, raw->buffer);
    TRY(device_buffer_create(engine->device, bytes, name, DEVICE_HERE, &relaid.buffer, err));
    struct device_buffer old = raw->buffer;
    enum status status = ops_relay(&target, raw, &relaid, err);
    if (!status)
        status = device_stream_sync(engine->device, engine->stream, DEVICE_HERE, err);
    if (!status)
        status = device_buffer_seal(engine->device, relaid.buffer, err);
    *raw = relaid; /* closed with the engine, whatever came */
    struct error second;
    enum status dropped = device_buffer_destroy(engine->device, old, DEVICE_HERE, &second);
    if (!status && dropped)
        *err = second;
    return status ? status : dropped;
}

static enum status bind(struct engine *engine, const struct gguf_file *file, enum model_role role,
                        uint32_t layer, struct device_view *ret_view, struct error *err)
{
    struct model_planned planned = model_plan(&engine->config, role, layer);
    const struct gguf_tensor *tensor = planned.presence == MODEL_ABSENT
                                           ? NULL
                                           : gguf_tensor_find(file, planned.name);
    *ret_view = (struct device_view){ 0 };
    if (!tensor)
        return STATUS_OK; /* optional: the guard rail has seen to the rest */
    ret_view->dtype = tensor->dtype;
    ret_view->shape = planned.shape;
    TRY(device_buffer_import(engine->device, tensor->data, tensor->bytes, planned.name, DEVICE_HERE,
                             &ret_view->buffer, err));
    if (device_buffer_is_copy(engine->device, ret_view->buffer))
        gguf_tensor_drop(file, tensor);
    enum dtype wanted = ops_weight_dtype(engine->ops, tensor->dtype, planned.shape.dims[0]);
    if (wanted == tensor->dtype || role == MODEL_TOKEN_EMBD) /* rows are taken of it as it is */
        return STATUS_OK;
    return relay(engine, planned.name, wanted, ret_view, err);
}

enum status engine_bind_weights(struct engine *engine, const struct gguf_file *file,
                                struct error *err)
{
    for (int role = 0; role < MODEL_ROLE_COUNT; role++) {
        if (!model_role_is_per_layer((enum model_role)role)) {
            TRY(bind(engine, file, (enum model_role)role, 0, &engine->globals[role], err));
            continue;
        }
        for (uint32_t layer = 0; layer < engine->config.block_count; layer++)
            TRY(bind(engine, file, (enum model_role)role, layer,
                     &engine->layers[layer].weights[role], err));
    }
    return gguf_check_whole(file, err);
}

enum status engine_weights_visit(const struct engine *engine, engine_weight_visitor visit,
                                 void *context, struct error *err)
{
    for (int role = 0; role < MODEL_ROLE_COUNT; role++) {
        bool per_layer = model_role_is_per_layer((enum model_role)role);
        uint32_t count = per_layer ? engine->config.block_count : 1;
        for (uint32_t layer = 0; layer < count; layer++) {
            const struct device_view *view = per_layer ? &engine->layers[layer].weights[role]
                                                       : &engine->globals[role];
            struct model_planned planned = model_plan(&engine->config, (enum model_role)role,
                                                      layer);
            if (engine_has(view))
                TRY(visit(context, planned.name, view, err));
        }
    }
    return STATUS_OK;
}

/* weights.c - binds the tensors of a file to the model's tensor table. To a device with memory of
 * its own they are uploaded, in the layout it prefers (upload.c); any other device imports them
 * where they are mapped. If importing copies a tensor, its pages of the file are released at once,
 * so at most one tensor is in memory twice. */
#include "engine/engine_impl.h"

#include "base/size.h"

#include <string.h>

struct binding {
    struct engine *engine;
    const struct gguf_file *file;
    struct engine_upload *upload; /* NULL: tensors are imported */
    uint64_t done_bytes;          /* imported */
};

/* A tensor of the table that the file has. */
struct found_weight {
    struct model_tensor expected;
    const struct gguf_tensor *tensor;
    enum dtype dtype; /* on the device */
    int32_t layer;    /* -1: belongs to no layer */
    struct device_view *view;
};

typedef enum status (*weight_visitor)(struct binding *binding, const struct found_weight *weight,
                                      void *context, struct error *err);

static enum status visit_one(struct binding *binding, enum model_role role, uint32_t layer,
                             weight_visitor visit, void *context, struct error *err)
{
    struct engine *engine = binding->engine;
    bool per_layer = model_role_is_per_layer(role);
    struct found_weight weight = { .expected = model_tensor(&engine->config, role, layer),
                                   .layer = per_layer ? (int32_t)layer : -1,
                                   .view = per_layer ? &engine->layers[layer].weights[role]
                                                     : &engine->globals[role] };
    if (weight.expected.presence != MODEL_ABSENT)
        weight.tensor = gguf_tensor_find(binding->file, weight.expected.name);
    if (!weight.tensor)
        return STATUS_OK; /* optional: the guard rail refuses a file that lacks another one */
    weight.dtype = weight.tensor->dtype;
    /* embed reads rows in the layout of the file */
    if (role != MODEL_TOKEN_EMBD && role != MODEL_LAYER_TOKEN_EMBD)
        weight.dtype = ops_weight_dtype(engine->ops, weight.dtype, weight.expected.shape.dims[0]);
    return visit(binding, &weight, context, err);
}

static enum status visit_all(struct binding *binding, weight_visitor visit, void *context,
                             struct error *err)
{
    for (int role = 0; role < MODEL_ROLE_COUNT; role++) {
        bool per_layer = model_role_is_per_layer((enum model_role)role);
        uint32_t count = per_layer ? binding->engine->config.block_count : 1;
        for (uint32_t layer = 0; layer < count; layer++)
            TRY(visit_one(binding, (enum model_role)role, layer, visit, context, err));
    }
    return STATUS_OK;
}

/* What the tensors to upload need together. */
struct upload_size {
    size_t count;
    uint64_t bytes;     /* of device memory */
    uint64_t raw_bytes; /* the most that one needs */
};

static enum status measure(struct binding *binding, const struct found_weight *weight,
                           void *context, struct error *err)
{
    struct upload_size *size = context;
    (void)err;
    size->count++;
    size->bytes += engine_reserved_bytes(binding->engine, weight->tensor->bytes);
    if (weight->dtype == weight->tensor->dtype)
        return STATUS_OK;
    uint64_t bytes = engine_upload_raw_bytes(weight->tensor->dtype, &weight->expected.shape);
    size->raw_bytes = max_u64(bytes, size->raw_bytes);
    return STATUS_OK;
}

static enum status import(struct binding *binding, const struct found_weight *weight,
                          struct error *err)
{
    const struct engine *engine = binding->engine;
    struct device *device = engine->device;
    ASSERT(weight->dtype == weight->tensor->dtype);
    TRY(device_buffer_import(device, weight->tensor->data, weight->tensor->bytes,
                             weight->expected.name, DEVICE_HERE, &weight->view->buffer, err));
    if (device_buffer_is_copy(device, weight->view->buffer))
        gguf_tensor_drop(binding->file, weight->tensor);
    binding->done_bytes += weight->tensor->bytes;
    return progress_step(engine->budget.options.progress, binding->done_bytes,
                         engine->budget.weight_bytes, err);
}

static enum status bind(struct binding *binding, const struct found_weight *weight, void *context,
                        struct error *err)
{
    struct event_scope scope = { .step = -1, .layer = weight->layer };
    (void)context;
    event_set_text(scope.tensor, sizeof(scope.tensor), weight->expected.name);
    *weight->view = (struct device_view){ .dtype = weight->dtype, .shape = weight->expected.shape };
    if (weight->expected.shape.rank > 2) { /* the rows of all experts, one after the other */
        const uint64_t *dims = weight->expected.shape.dims;
        weight->view->shape = shape_make(2, (uint64_t[]){ dims[0], dims[1] * dims[2] });
    }
    if (!binding->upload)
        return import(binding, weight, err);
    return engine_upload_add(binding->upload, weight->tensor, &scope, weight->view, err);
}

static enum status upload_all(struct binding *binding, struct error *err)
{
    struct upload_size size = { 0 };
    TRY(visit_all(binding, measure, &size, err));
    TRY(engine_upload_create(binding->engine, binding->file, size.count, size.raw_bytes,
                             &binding->upload, err));
    device_reserve(binding->engine->device, size.bytes);
    enum status status = visit_all(binding, bind, NULL, err);
    if (!status)
        status = engine_upload_finish(binding->upload, err);
    engine_upload_destroy(binding->upload);
    struct error cut;
    if (status == STATUS_IO && gguf_check_whole(binding->file, &cut))
        *err = cut; /* says the same more precisely */
    return status;
}

/* Numbers that launches take as parameters. */
static void read_output_scales(struct engine *engine, const struct gguf_file *file)
{
    for (uint32_t i = 0; i < engine->config.block_count; i++) {
        struct model_tensor wanted = model_tensor(&engine->config, MODEL_LAYER_OUTPUT_SCALE, i);
        const struct gguf_tensor *tensor = NULL;
        if (wanted.presence != MODEL_ABSENT)
            tensor = gguf_tensor_find(file, wanted.name);
        engine->layers[i].output_scale = 1;
        if (tensor)
            memcpy(&engine->layers[i].output_scale, tensor->data, sizeof(float));
    }
}

enum status engine_bind_weights(struct engine *engine, const struct gguf_file *file,
                                struct error *err)
{
    struct binding binding = { .engine = engine, .file = file };
    TRY(device_info(engine->device)->own_memory ? upload_all(&binding, err)
                                                : visit_all(&binding, bind, NULL, err));
    engine_find_projections(engine);
    read_output_scales(engine, file);
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
            struct model_tensor expected = model_tensor(&engine->config, (enum model_role)role,
                                                        layer);
            if (engine_has(view))
                TRY(visit(context, expected.name, view, err));
        }
    }
    return STATUS_OK;
}

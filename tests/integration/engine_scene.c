/* engine_scene.c - see engine_scene.h. */
#include "engine_scene.h"

#include "test.h"

#include "device/host/host.h"

#include <math.h>
#include <stdio.h>

/* Heads by short rows, and all that files say of routing. */
static void vary_latent(struct model_shape *shape)
{
    shape->latent =
        (struct model_latent){ .rank = 96, .query_rank = 64, .key_length = 32, .value_length = 48 };
    shape->rope_dimensions = 16;
    shape->rope_scaling = MODEL_ROPE_SCALING_YARN;
    shape->rope_scaling_factor = 4;
    shape->rope_original_context = 8;
    shape->experts = (struct model_experts){ .count = 8,
                                             .used = 3,
                                             .feed_length = 128,
                                             .shared_feed_length = 256,
                                             .first = 1,
                                             .sigmoid = true,
                                             .weight_scale = 2.5f,
                                             .group_count = 4,
                                             .groups_used = 2 };
}

/* What real models of a family have, so small that it shows in a short sequence. */
static void vary_shape(struct model_shape *shape)
{
    uint32_t reads = model_arch_info(shape->arch)->reads;
    shape->has_qkv_biases = shape->arch == MODEL_ARCH_GLM4 || shape->arch == MODEL_ARCH_PHI3;
    if (shape->arch == MODEL_ARCH_PHI3 || shape->arch == MODEL_ARCH_GLM4)
        shape->rope_dimensions = 48;
    shape->tied_embeddings |= reads & (MODEL_SCALES_EMBEDDING | MODEL_MULTIPLIES_LOGITS);
    if (reads & MODEL_READS_WINDOW) {
        shape->window = 5;
        shape->block_count = model_arch_info(shape->arch)->window_period + 1;
    }
    if (reads & MODEL_LAYERS_DIFFER) {
        shape->block_count = 7; /* four with a cache of their own */
        shape->shared_kv_count = 3;
        shape->local_head_dim = 32;
        shape->layer_input_length = 32;
        shape->rope_freqs_factor = 8;
    }
    if (shape->arch == MODEL_ARCH_GEMMA3) {
        shape->rope_base = 1e6f;
        shape->rope_scaling = MODEL_ROPE_SCALING_LINEAR;
        shape->rope_scaling_factor = 8;
    }
    if (model_arch_info(shape->arch)->local_rope == MODEL_LOCAL_ROPE_UNSCALED ||
        reads & MODEL_READS_YARN) {
        shape->rope_scaling = MODEL_ROPE_SCALING_YARN;
        shape->rope_scaling_factor = 4;
        shape->rope_original_context = 8;
    }
    if (reads & MODEL_READS_LONGROPE && !(reads & MODEL_READS_YARN)) {
        shape->rope_scaling = MODEL_ROPE_SCALING_LONG;
        shape->rope_original_context = 32;
        shape->rope_attention_factor = 1.2f;
        shape->has_fused_qkv = true;
    }
    if (model_arch_info(shape->arch)->unrotated_every)
        shape->block_count = model_arch_info(shape->arch)->unrotated_every + 1;
    if (reads & MODEL_READS_TEMPERATURE)
        shape->temperature_scale = 0.3f;
    if (reads & MODEL_READS_SCALES) {
        shape->embedding_scale = 3;
        shape->residual_scale = 0.4f;
        shape->attention_scale = 0.07f;
    }
    if (reads & (MODEL_MULTIPLIES_LOGITS | MODEL_DIVIDES_LOGITS))
        shape->logit_scale = 0.25f;
    if (reads & MODEL_MUST_HAVE_EXPERTS) {
        shape->experts = (struct model_experts){ .count = 6, .used = 2, .feed_length = 256 };
        if (!(reads & MODEL_EXPERTS_OWN_LENGTH))
            shape->experts.feed_length = shape->feed_forward_length;
        if (reads & (MODEL_MAY_SHARE_EXPERT | MODEL_MUST_SHARE_EXPERT))
            shape->experts.shared_feed_length = 160;
        if (reads & MODEL_EXPERTS_BY_STEP)
            shape->experts.step = 2;
    }
    if (model_arch_info(shape->arch)->is_latent)
        vary_latent(shape);
    shape->has_head_norms = model_arch_info(shape->arch)->head_norm == MODEL_HEAD_NORM_OWN;
}

void scene_shorten(struct model_config *config)
{
    if (config->chunk)
        config->chunk = config->temperature_length = 6;
}

void scene_give_experts(struct model_shape *shape)
{
    bool own = model_arch_info(shape->arch)->reads & MODEL_EXPERTS_OWN_LENGTH;
    shape->experts = (struct model_experts){
        .count = 6, .used = 2, .feed_length = own ? 256 : shape->feed_forward_length
    };
}

struct model_shape scene_shape(enum model_arch arch)
{
    struct model_shape shape = *model_shape_find("tiny");
    shape.arch = arch;
    shape.block_count = 3;
    shape.feed_forward_length = 512;
    shape.head_count = 4;
    shape.head_count_kv = 2;
    shape.head_dim = 64;
    shape.vocab_size = 320;
    shape.context_length = 64;
    if (arch == MODEL_ARCH_QWEN2) {
        shape.tied_embeddings = true;
        shape.head_dim = 40; /* not a multiple of a vector */
        shape.head_count_kv = 4;
    }
    if (arch == MODEL_ARCH_LLAMA)
        shape.rope_freqs_factor = 8;
    vary_shape(&shape);
    return shape;
}

void scene_write(struct scene *scene, const struct model_shape *shape, enum convert_type type)
{
    temp_folder_init(&scene->folder);
    struct temp_path path = temp_folder_path(&scene->folder, "model.gguf");
    struct convert_synth request = { .shape = *shape, .type = type, .seed = 5, .path = path.text };
    uint64_t bytes;
    CHECK_OK(convert_synth(&request, NULL, &bytes, &scene->err), &scene->err);
    CHECK_OK(gguf_open(path.text, &scene->file, &scene->err), &scene->err);
    model_check(scene->file, NULL, &scene->report);
    assert_false(model_report_refuses(&scene->report, false));
    scene_shorten(&scene->report.config);
}

void scene_start(struct scene *scene, enum cpu_path path, uint32_t threads,
                 struct engine_options options)
{
    struct device_options device_options = { .guards = true,
                                             .poison = true,
                                             .thread_count = threads };
    CHECK_OK(host_device_open(&device_options, &scene->device, &scene->err), &scene->err);
    CHECK_OK(ops_load(&scene->ops, scene->device, path, &scene->err), &scene->err);
    CHECK_OK(engine_open(&scene->ops, scene->file, &scene->report, &options, &scene->engine,
                         &scene->err),
             &scene->err);
}

void scene_stop(struct scene *scene)
{
    engine_close(scene->engine);
    assert_int_equal(device_used_bytes(scene->device), 0);
    device_close(scene->device);
}

void scene_end(struct scene *scene)
{
    gguf_close(scene->file);
    temp_folder_release(&scene->folder);
}

void scene_poke(struct scene *scene, uint64_t at, const void *bytes, size_t count)
{
    struct temp_path path = temp_folder_path(&scene->folder, "model.gguf");
    gguf_close(scene->file);
    FILE *file = fopen(path.text, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    CHECK_OK(gguf_open(path.text, &scene->file, &scene->err), &scene->err);
    model_check(scene->file, NULL, &scene->report);
}

void scene_poke_nan(struct scene *scene, const char *name, uint32_t id)
{
    const struct gguf_tensor *table = gguf_tensor_find(scene->file, name);
    float value = NAN;
    assert_non_null(table);
    uint64_t row_bytes = table->bytes / scene->report.config.vocab_size;
    scene_poke(scene, table->offset_bytes + id * row_bytes, &value, sizeof(value));
}

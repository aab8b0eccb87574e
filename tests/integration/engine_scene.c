/* engine_scene.c - see engine_scene.h. */
#include "engine_scene.h"

#include "test.h"

#include "device/host/host.h"

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

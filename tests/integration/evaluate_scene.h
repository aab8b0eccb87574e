/* evaluate_scene.h - a small model in a file, its tokenizer and a text to evaluate it on. */
#ifndef GRETA_TESTS_EVALUATE_SCENE_H
#define GRETA_TESTS_EVALUATE_SCENE_H

#include "test.h"

#include "convert/convert.h"
#include "device/host/host.h"
#include "evaluate/evaluate.h"
#include "reference_model.h"
#include "temp_folder.h"

#define VOCAB 320u
#define CONTEXT 16u
#define SCORED 7u /* tokens 9 to 15 */
#define CHUNKS 3u
#define TOKENS (CHUNKS * CONTEXT + 5u) /* what is left over is not used */

/* A model in a file, its tokenizer, a text, and what the reference says about it. */
struct scene {
    struct temp_folder folder;
    struct gguf_file *file;
    struct model_report report;
    struct tokenizer *tokenizer;
    struct device *device;
    struct ops ops;
    struct engine *engine;
    uint32_t ids[TOKENS];
    double logits[CHUNKS][CONTEXT][VOCAB]; /* of the reference */
    struct error err;
};

static inline void scene_begin(struct scene *scene, enum model_arch arch, enum convert_type type)
{
    struct model_shape shape = *model_shape_find("tiny");
    shape.arch = arch;
    shape.block_count = 2;
    shape.feed_forward_length = 512;
    shape.vocab_size = VOCAB;
    shape.context_length = 64;
    *scene = (struct scene){ 0 };
    temp_folder_init(&scene->folder);
    struct temp_path path = temp_folder_path(&scene->folder, "model.gguf");
    struct convert_synth request = { .shape = shape, .type = type, .seed = 9, .path = path.text };
    uint64_t bytes;
    CHECK_OK(convert_synth(&request, NULL, &bytes, &scene->err), &scene->err);
    CHECK_OK(gguf_open(path.text, &scene->file, &scene->err), &scene->err);
    model_check(scene->file, NULL, &scene->report);
    assert_false(model_report_refuses(&scene->report, false));
    CHECK_OK(tokenizer_create(scene->file, &scene->tokenizer, &scene->err), &scene->err);
    for (uint32_t i = 0, id = 5; i < TOKENS; i++)
        scene->ids[i] = (id = (id * 1103515245u + 12345u) & 0x7FFFFFFFu) % VOCAB;
}

static inline void scene_start(struct scene *scene, uint32_t threads, uint32_t batch, uint32_t rows)
{
    struct device_options device_options = { .guards = true,
                                             .poison = true,
                                             .thread_count = threads };
    struct engine_options options = {
        .context = CONTEXT, .batch_limit = batch, .logits_limit = rows, .kv_dtype = DTYPE_F32
    };
    CHECK_OK(host_device_open(&device_options, &scene->device, &scene->err), &scene->err);
    CHECK_OK(ops_load(&scene->ops, scene->device, CPU_PATH_COUNT, &scene->err), &scene->err);
    CHECK_OK(engine_open(&scene->ops, scene->file, &scene->report, &options, &scene->engine,
                         &scene->err),
             &scene->err);
}

static inline void scene_stop(struct scene *scene)
{
    engine_close(scene->engine);
    device_close(scene->device);
}

static inline void scene_end(struct scene *scene)
{
    tokenizer_destroy(scene->tokenizer);
    gguf_close(scene->file);
    temp_folder_release(&scene->folder);
}

static inline struct evaluate_result scene_run(struct scene *scene,
                                               const struct evaluate_options *options)
{
    struct evaluate_result result;
    CHECK_OK(evaluate_run(scene->engine, scene->tokenizer, scene->ids, TOKENS, options, &result,
                          &scene->err),
             &scene->err);
    return result;
}

#endif

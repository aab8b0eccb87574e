/* engine_ahead.h - a small model on the device under test: what the tests of steps that are queued
 * ahead share. */
#ifndef GRETA_TESTS_ENGINE_AHEAD_H
#define GRETA_TESTS_ENGINE_AHEAD_H

#include "ops_lab.h"

#include "engine_scene.h"

#define STEPS 8u
#define SEQUENCES 3u
#define CONTEXT 24u
#define VOCABULARY 1024u /* room for the words of a tokenizer */

static inline void ahead_write_model(struct scene *scene)
{
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    shape.vocab_size = VOCABULARY;
    shape.block_count = lab_is_host() ? 2 : 1; /* an emulated GPU takes its time */
    scene_write(scene, &shape, CONVERT_F32);
}

static inline void ahead_start(struct scene *scene, uint32_t sequences, uint32_t context)
{
    struct device_options device_options = { .guards = true, .poison = true, .thread_count = 2 };
    struct engine_options options = { .kv_dtype = DTYPE_F16,
                                      .context = context,
                                      .sequence_limit = sequences };
    CHECK_OK(all_open(lab_device, &device_options, &scene->device, &scene->err), &scene->err);
    CHECK_OK(ops_load(&scene->ops, scene->device, CPU_PATH_COUNT, &scene->err), &scene->err);
    CHECK_OK(engine_open(&scene->ops, scene->file, &scene->report, &options, &scene->engine,
                         &scene->err),
             &scene->err);
}

/* No index was out of bounds, and nothing is left. */
static inline void ahead_stop(struct scene *scene)
{
    assert_int_equal(device_trap_count(scene->device), 0);
    scene_stop(scene);
}

#endif

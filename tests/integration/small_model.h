/* small_model.h - a model of three layers in a file of its own, for tests that plant faults in a
 * whole one: group setup and teardown of cmocka. */
#ifndef GRETA_TESTS_SMALL_MODEL_H
#define GRETA_TESTS_SMALL_MODEL_H

#include "convert/convert.h"
#include "engine/engine.h"
#include "temp_folder.h"
#include "test.h"

#define SMALL_MODEL_VOCABULARY 320u

/* The model of this test. */
static struct {
    struct temp_folder folder;
    struct gguf_file *file;
    struct model_report report;
} model;

static inline int write_model(void **state)
{
    (void)state;
    struct error err;
    struct model_shape shape = *model_shape_find("tiny");
    shape.block_count = 3;
    shape.feed_forward_length = 256;
    shape.head_count = 4;
    shape.head_count_kv = 2;
    shape.head_dim = 32;
    shape.vocab_size = SMALL_MODEL_VOCABULARY;
    shape.context_length = 64;
    temp_folder_init(&model.folder);
    struct temp_path path = temp_folder_path(&model.folder, "model.gguf");
    struct convert_synth request = {
        .shape = shape, .type = CONVERT_F32, .seed = 5, .path = path.text
    };
    uint64_t bytes;
    CHECK_OK(convert_synth(&request, NULL, &bytes, &err), &err);
    CHECK_OK(gguf_open(path.text, &model.file, &err), &err);
    model_check(model.file, NULL, &model.report);
    return 0;
}

static inline int remove_model(void **state)
{
    (void)state;
    gguf_close(model.file);
    temp_folder_release(&model.folder);
    return 0;
}

#endif

/* evaluate_refused_test.c - evaluations that are refused or stopped: bases that do not fit, texts
 * that are too short, a caller that ends it. */
#include "evaluate_scene.h"

#include <stdlib.h>
#include <string.h>

static bool stop_at_once(void *context, uint64_t done, uint64_t total)
{
    *(uint64_t *)context = total;
    return done < 1;
}

/* A logit of the last row is not a number. */
static void spoil_last_row(const struct temp_folder *folder)
{
    struct text bytes;
    text_init(&bytes);
    temp_folder_read(folder, "logits", &bytes);
    memset(bytes.bytes + bytes.length - 8, 0xFF, 4);
    temp_folder_write(folder, "logits", bytes.bytes, bytes.length);
    text_release(&bytes);
}

static void test_refusals(void **state)
{
    (void)state;
    struct scene *scene = malloc(sizeof(*scene));
    assert_non_null(scene);
    scene_begin(scene, MODEL_ARCH_LLAMA, CONVERT_Q8_0);
    scene_start(scene, 1, 0, SCORED);
    struct temp_path path = temp_folder_path(&scene->folder, "logits");
    struct evaluate_options options = { .context = CONTEXT,
                                        .chunk_limit = 2,
                                        .save_path = path.text };
    struct evaluate_result result = scene_run(scene, &options);
    assert_int_equal(result.chunk_count, 2);

    /* Interrupted: nothing is left under the name, nor next to it. */
    uint64_t total = 0;
    struct progress progress = { stop_at_once, &total };
    struct temp_path other = temp_folder_path(&scene->folder, "other");
    options = (struct evaluate_options){ .context = CONTEXT,
                                         .save_path = other.text,
                                         .progress = &progress };
    CHECK_FAILS(evaluate_run(scene->engine, scene->tokenizer, scene->ids, TOKENS, &options, &result,
                             &scene->err),
                STATUS_INTERRUPTED, &scene->err);
    assert_int_equal(total, CHUNKS);
    assert_int_equal(temp_folder_count(&scene->folder), 2);

    options = (struct evaluate_options){ .context = CONTEXT };
    CHECK_FAILS(evaluate_run(scene->engine, scene->tokenizer, scene->ids, CONTEXT - 1, &options,
                             &result, &scene->err),
                STATUS_USAGE, &scene->err);
    check_contains("short", scene->err.text, "at least a chunk of 16 tokens, found 15");

    CHECK_OK(evaluate_recording_open(path.text, &options.base, &scene->err), &scene->err);
    CHECK_FAILS(evaluate_run(scene->engine, scene->tokenizer, scene->ids, TOKENS, &options, &result,
                             &scene->err),
                STATUS_USAGE, &scene->err);
    check_contains("chunks", scene->err.text, "3 chunks as the text's, found 2");
    options.chunk_limit = 2;
    scene_run(scene, &options);
    scene->ids[CONTEXT + 3] ^= 1;
    CHECK_FAILS(evaluate_run(scene->engine, scene->tokenizer, scene->ids, TOKENS, &options, &result,
                             &scene->err),
                STATUS_USAGE, &scene->err);
    check_contains("tokens", scene->err.text, "the tokens of this text, found others");
    scene->ids[CONTEXT + 3] ^= 1;
    options.context = CONTEXT - 1;
    CHECK_FAILS(evaluate_run(scene->engine, scene->tokenizer, scene->ids, TOKENS, &options, &result,
                             &scene->err),
                STATUS_USAGE, &scene->err);
    check_contains("context", scene->err.text, "chunks of 15 tokens, found 16");
    evaluate_recording_close(options.base);

    spoil_last_row(&scene->folder);
    options = (struct evaluate_options){ .context = CONTEXT, .chunk_limit = 2 };
    CHECK_OK(evaluate_recording_open(path.text, &options.base, &scene->err), &scene->err);
    CHECK_FAILS(evaluate_run(scene->engine, scene->tokenizer, scene->ids, TOKENS, &options, &result,
                             &scene->err),
                STATUS_REFUSED, &scene->err);
    check_contains("NaN", scene->err.text, "scored token 13");
    evaluate_recording_close(options.base);
    scene_stop(scene);
    scene_end(scene);
    free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

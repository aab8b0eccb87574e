/* engine_tap_choice_test.c - taps: only what was chosen comes out, by layer, step and name, and the
 * search for values that are not finite finds none in a sound model. */
#include "engine_taps.h"

static void test_choices(void **state)
{
    (void)state;
    struct scene scene;
    struct kept *kept = calloc(1, sizeof(*kept));
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    assert_non_null(kept);
    scene_write(&scene, &shape, CONVERT_Q8_0);
    struct engine_options options = { .kv_dtype = DTYPE_F16, .sequence_limit = 3 };
    scene_start(&scene, CPU_PATH_COUNT, 1, options);
    static const struct {
        const char *text;
        size_t count; /* of three steps with one, one and two sequences */
    } rows[] = {
        { "wo", 9 },
        { "wo@layer=1", 3 },
        { "wo@layer=0-1,step=2", 2 },
        { "logits", 3 },
        { "logits@step=1", 1 },
        { "norm@layer=2,step=0", 6 },
        { "norm", 3 * 21 },
        { "mlp@layer=0,step=1", 6 },
        { "kv@layer=0", 2 + 2 + 4 },
        { "attn@layer=2", 4 + 4 + 6 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        scene_stop(&scene);
        scene_start(&scene, CPU_PATH_COUNT, 1, options);
        set_taps(&scene, kept, 1, &rows[i].text);
        forward_ids(&scene, 0, ids, 3);
        forward_ids(&scene, 2, ids, 2);
        struct engine_token both[] = { { 5, 2, true }, { 6, 0, true } };
        CHECK_OK(engine_forward(scene.engine, both, 2, &scene.err), &scene.err);
        if (kept->count != rows[i].count)
            fail_msg("%s: %zu taps, expected %zu", rows[i].text, kept->count, rows[i].count);
        taps_forget(kept);
    }
    /* None any more; then a sink that ends the batch: the sequence has not grown. */
    CHECK_OK(engine_tap_set(scene.engine, NULL, 0, NULL, NULL, &scene.err), &scene.err);
    forward_ids(&scene, 0, ids, 1);
    assert_int_equal(kept->count, 0);
    set_taps(&scene, kept, 1, (const char *const[]){ "wo" });
    kept->stop_after = 1;
    struct engine_token token = { 5, 0, true };
    uint32_t length = engine_length(scene.engine, 0);
    CHECK_FAILS(engine_forward(scene.engine, &token, 1, &scene.err), STATUS_LIMIT, &scene.err);
    assert_int_equal(engine_length(scene.engine, 0), length);
    taps_forget(kept);
    struct engine_tap_choice choice = parse_tap("wo@layer=3");
    CHECK_FAILS(engine_tap_set(scene.engine, &choice, 1, taps_keep, kept, &scene.err), STATUS_USAGE,
                &scene.err);
    check_contains("layer", scene.err.text, "below the model's 3, found 3");
    choice = parse_tap("attn@head=4");
    CHECK_FAILS(engine_tap_set(scene.engine, &choice, 1, taps_keep, kept, &scene.err), STATUS_USAGE,
                &scene.err);
    free(kept);
    scene_stop(&scene);
    scene_end(&scene);
}

static void test_parse(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "w",
        "wo@",
        "wo@layer",
        "wo@layer=",
        "wo@layer=x",
        "wo@layer=-1",
        "wo@layer=3-1",
        "wo@layer=1-2-3",
        "wo@layer=1,",
        "wo@head=1-2",
        "wo@step=1 ",
        "WO",
        "wo@layer=1;step=2",
        "wo@layer=4294967296",
    };
    struct engine_tap_choice choice;
    struct error err;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        CHECK_FAILS(engine_tap_parse(wrong[i], &choice, &err), STATUS_USAGE, &err);
        check_contains(wrong[i], err.text, "tap: expected KIND");
    }
    choice = parse_tap("attn@layer=3-5,step=7,head=2");
    assert_int_equal(choice.kinds, ENGINE_TAP_ATTN);
    assert_int_equal(choice.first_layer, 3);
    assert_int_equal(choice.last_layer, 5);
    assert_int_equal(choice.first_step, 7);
    assert_int_equal(choice.last_step, 7);
    assert_int_equal(choice.head, 2);
}

/* Nothing is found in a healthy model, and the sequence goes on as if nothing had been. */
static void test_find_nothing(void **state)
{
    (void)state;
    struct scene scene;
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    scene_write(&scene, &shape, CONVERT_Q4_K_M);
    struct engine_options options = { .kv_dtype = DTYPE_F16, .batch_limit = 2 };
    scene_start(&scene, CPU_PATH_COUNT, 2, options);
    for (size_t i = 0; i < 4; i++)
        forward_ids(&scene, 0, ids + i, 1);
    bool found = true;
    struct tap_record record;
    uint32_t position;
    float *logits = calloc(2 * (size_t)scene.report.config.vocab_size, sizeof(*logits));
    float *again = logits + scene.report.config.vocab_size;
    assert_non_null(logits);
    CHECK_OK(engine_find_bad(scene.engine, 0, &found, &record, &position, &scene.err), &scene.err);
    assert_false(found);
    assert_int_equal(engine_length(scene.engine, 0), 4);
    forward_ids(&scene, 0, ids + 4, 1);
    CHECK_OK(engine_logits(scene.engine, 0, logits, &scene.err), &scene.err);
    engine_rewind(scene.engine, 0, 0);
    for (size_t i = 0; i < 5; i++)
        forward_ids(&scene, 0, ids + i, 1);
    CHECK_OK(engine_logits(scene.engine, 0, again, &scene.err), &scene.err);
    assert_memory_equal(logits, again, scene.report.config.vocab_size * sizeof(*logits));
    free(logits);
    scene_stop(&scene);
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_find_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

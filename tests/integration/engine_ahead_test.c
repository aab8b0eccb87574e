/* engine_ahead_test.c - steps of the engine that are queued before the ids of the one before are
 * known: the same ids as without, also of sequences that are run again; and what is refused.
 *
 *     engine_ahead_test [DEVICE]      the host without */
#include "engine_ahead.h"

static const int32_t first_ids[SEQUENCES] = { 7, 300, 45 };

static void forward(struct scene *scene, const int32_t *ids, uint32_t count)
{
    struct engine_token tokens[SEQUENCES];
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = (struct engine_token){ ids ? ids[i] : ENGINE_TOKEN_FROM_DEVICE, i, true };
    CHECK_OK(engine_forward(scene->engine, tokens, count, &scene->err), &scene->err);
}

static void choose(struct scene *scene)
{
    CHECK_OK(engine_argmax_submit(scene->engine, &scene->err), &scene->err);
}

static void chosen(struct scene *scene, int32_t *ids)
{
    CHECK_OK(engine_argmax_wait(scene->engine, ids, &scene->err), &scene->err);
}

struct decoded {
    int32_t ids[STEPS][SEQUENCES];
    float logits[STEPS][SEQUENCES][VOCABULARY];
};

static void decode_one_by_one(struct scene *scene, uint32_t count, struct decoded *decoded)
{
    engine_restart(scene->engine);
    for (uint32_t step = 0; step < STEPS; step++) {
        forward(scene, step ? decoded->ids[step - 1] : first_ids, count);
        for (uint32_t row = 0; row < count; row++)
            CHECK_OK(engine_logits(scene->engine, row, decoded->logits[step][row], &scene->err),
                     &scene->err);
        CHECK_OK(engine_argmax(scene->engine, decoded->ids[step], &scene->err), &scene->err);
    }
}

/* The logits of every step are read when the step after it is queued. */
static void decode_ahead(struct scene *scene, uint32_t count, struct decoded *decoded)
{
    engine_restart(scene->engine);
    forward(scene, first_ids, count);
    choose(scene);
    for (uint32_t step = 0; step < STEPS; step++) {
        if (step + 1 < STEPS) {
            forward(scene, NULL, count);
            choose(scene);
            assert_int_equal(engine_argmax_pending(scene->engine), 2);
        }
        chosen(scene, decoded->ids[step]);
        for (uint32_t row = 0; row < count; row++)
            CHECK_OK(
                engine_argmax_logits(scene->engine, row, decoded->logits[step][row], &scene->err),
                &scene->err);
    }
    assert_int_equal(engine_argmax_pending(scene->engine), 0);
}

static void test_same_ids(void **state)
{
    (void)state;
    static struct decoded wanted, found;
    struct scene scene;
    ahead_write_model(&scene);
    ahead_start(&scene, SEQUENCES, CONTEXT);
    for (uint32_t count = 1; count <= SEQUENCES; count += 2) {
        decode_one_by_one(&scene, count, &wanted);
        decode_ahead(&scene, count, &found);
        for (uint32_t step = 0; step < STEPS; step++) {
            assert_memory_equal(found.ids[step], wanted.ids[step], count * sizeof(int32_t));
            assert_memory_equal(found.logits[step], wanted.logits[step],
                                count * sizeof(wanted.logits[step][0]));
        }
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(engine_length(scene.engine, i), STEPS);
        /* It also goes on from an id that was waited for before. */
        forward(&scene, NULL, count);
        CHECK_OK(engine_argmax(scene.engine, found.ids[0], &scene.err), &scene.err);
        for (uint32_t i = 0; i < count; i++)
            engine_rewind(scene.engine, i, STEPS);
        forward(&scene, wanted.ids[STEPS - 1], count);
        CHECK_OK(engine_argmax(scene.engine, wanted.ids[0], &scene.err), &scene.err);
        assert_memory_equal(found.ids[0], wanted.ids[0], count * sizeof(int32_t));
    }
    ahead_stop(&scene);
    scene_end(&scene);
}

static void check_refused(struct scene *scene, const struct engine_token *tokens, size_t count,
                          enum status status, const char *words)
{
    uint32_t length = engine_length(scene->engine, 0);
    CHECK_FAILS(engine_forward(scene->engine, tokens, count, &scene->err), status, &scene->err);
    check_contains("a refused batch", scene->err.text, words);
    assert_int_equal(engine_length(scene->engine, 0), length);
}

static void test_refusals(void **state)
{
    (void)state;
    struct scene scene;
    int32_t ids[SEQUENCES];
    float logits[VOCABULARY];
    struct tap_record record;
    uint32_t position;
    bool was_found;
    const struct engine_token best[SEQUENCES] = { { ENGINE_TOKEN_FROM_DEVICE, 0, true },
                                                  { ENGINE_TOKEN_FROM_DEVICE, 1, true },
                                                  { ENGINE_TOKEN_FROM_DEVICE, 2, true } };
    const struct engine_token mixed[2] = { { ENGINE_TOKEN_FROM_DEVICE, 0, true }, { 5, 1, true } };
    ahead_write_model(&scene);
    ahead_start(&scene, SEQUENCES, 4);
    check_refused(&scene, best, 1, STATUS_USAGE, "each of the 0 ids");
    forward(&scene, first_ids, 2);
    check_refused(&scene, best, 2, STATUS_USAGE, "each of the 0 ids"); /* nothing was chosen */
    CHECK_FAILS(engine_argmax_wait(scene.engine, ids, &scene.err), STATUS_USAGE, &scene.err);
    choose(&scene);
    check_refused(&scene, best, 1, STATUS_USAGE, "each of the 2 ids");
    check_refused(&scene, best, 3, STATUS_USAGE, "each of the 2 ids");
    check_refused(&scene, mixed, 2, STATUS_USAGE, "found 1 of 2 tokens");
    CHECK_FAILS(engine_argmax(scene.engine, ids, &scene.err), STATUS_USAGE, &scene.err);
    CHECK_FAILS(engine_fork(scene.engine, 0, 2, &scene.err), STATUS_USAGE, &scene.err);
    CHECK_FAILS(engine_find_bad(scene.engine, 0, &was_found, &record, &position, &scene.err),
                STATUS_USAGE, &scene.err);
    forward(&scene, NULL, 2); /* what was refused has not spoiled it */
    choose(&scene);
    CHECK_FAILS(engine_argmax_submit(scene.engine, &scene.err), STATUS_LIMIT, &scene.err);
    chosen(&scene, ids);
    CHECK_OK(engine_argmax_logits(scene.engine, 1, logits, &scene.err), &scene.err);
    forward(&scene, NULL, 2);
    CHECK_FAILS(engine_argmax_logits(scene.engine, 1, logits, &scene.err), STATUS_USAGE,
                &scene.err);
    check_contains("logits that are gone", scene.err.text, "overwritten");
    choose(&scene);
    chosen(&scene, ids);
    forward(&scene, NULL, 2);
    choose(&scene);
    check_refused(&scene, best, 2, STATUS_LIMIT, "at most the 4 tokens of the context");
    chosen(&scene, ids);
    chosen(&scene, ids);
    CHECK_FAILS(engine_argmax_wait(scene.engine, ids, &scene.err), STATUS_USAGE, &scene.err);
    /* A known id writes over those that were chosen. */
    engine_restart(scene.engine);
    forward(&scene, first_ids, 1);
    choose(&scene);
    forward(&scene, first_ids, 1);
    check_refused(&scene, best, 1, STATUS_USAGE, "each of the 0 ids");
    ahead_stop(&scene); /* with an argmax that was never waited for */
    scene_end(&scene);
}

static void find_bad(struct scene *scene, bool wanted, uint32_t wanted_position)
{
    struct tap_record record;
    uint32_t position;
    bool was_found;
    CHECK_OK(engine_find_bad(scene->engine, 0, &was_found, &record, &position, &scene->err),
             &scene->err);
    assert_int_equal(was_found, wanted);
    if (wanted)
        assert_int_equal(position, wanted_position);
}

/* A sequence that is run again is run with the ids it had, also with those the host learned later;
 * and not with those of a step that was rewound over. */
static void test_sequences_run_again(void **state)
{
    (void)state;
    static struct decoded wanted;
    struct scene scene;
    int32_t ids[SEQUENCES];
    ahead_write_model(&scene);
    ahead_start(&scene, 1, CONTEXT);
    decode_one_by_one(&scene, 1, &wanted);
    ahead_stop(&scene);
    int32_t bad = wanted.ids[0][0];
    scene_poke_nan(&scene, "token_embd.weight", (uint32_t)bad);
    ahead_start(&scene, 1, CONTEXT);
    forward(&scene, first_ids, 1); /* its logits say `bad` */
    choose(&scene);
    forward(&scene, NULL, 1);
    choose(&scene);
    forward(&scene, NULL, 1); /* of logits that are NaN: runs token 0 */
    chosen(&scene, ids);
    assert_int_equal(ids[0], bad);
    chosen(&scene, ids);
    assert_int_equal(ids[0], -1);
    find_bad(&scene, true, 1);
    /* Rewound while it is queued, and another token put in its place. */
    engine_restart(scene.engine);
    forward(&scene, first_ids, 1);
    choose(&scene);
    forward(&scene, NULL, 1);
    engine_rewind(scene.engine, 0, 1);
    forward(&scene, (int32_t[]){ first_ids[1] }, 1);
    chosen(&scene, ids);
    assert_int_equal(ids[0], bad);
    assert_int_equal(engine_length(scene.engine, 0), 2);
    find_bad(&scene, false, 0);
    ahead_stop(&scene);
    scene_end(&scene);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_ids),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_sequences_run_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

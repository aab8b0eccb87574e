/* session_test.c - what a session promises: a request writes the same tokens whatever other
 * requests join, wait or leave, also with a step queued ahead and with events that are taken late.
 * What fails is in session_failure_test.c, what is done with prompts in session_prompt_test.c.
 *
 *     session_test [DEVICE]      the host without; on a GPU steps are queued ahead */
#include "session_stage.h"

/* ---- Joining -------------------------------------------------------------------------------- */

/* Requests with different temperatures, seeds, penalties and limits in the same batches; each joins
 * when the one before has written two tokens. */
static void test_joining(void **state)
{
    (void)state;
    static const struct session_options options[] = {
        { 0 },
        { .prompt_chunk = 2 },
        { .mix_prompts = true },
        { .mix_prompts = true, .prompt_chunk = 2, .wait_for_chunks = true }
    };
    struct session_request requests[SEQUENCES];
    struct written alone[SEQUENCES];
    struct stage stage;
    stage_begin(&stage);
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        requests[i] = request_of(i);
        requests[i].token_limit = 12 + i;
    }
    write_alone(&stage, requests, SEQUENCES, alone);
    for (size_t o = 0; o < (lab_is_host() ? COUNT_OF(options) : 1); o++) {
        stage_open_session(&stage, &options[o]);
        for (uint32_t i = 0; i < SEQUENCES; i++) {
            assert_int_equal(stage_add(&stage, &requests[i]), i);
            stage_step_until(&stage, i, 2);
        }
        assert_int_equal(session_active_count(stage.session), SEQUENCES); /* side by side */
        stage_run(&stage);
        for (uint32_t i = 0; i < SEQUENCES; i++)
            check_written_same(&stage.written[i], &alone[i]);
        stage_close_session(&stage);
    }
    written_release(alone, SEQUENCES);
    stage_end(&stage);
}

/* Twice as many requests as sequences: the others wait, and come in the order they were added. */
static void test_waiting(void **state)
{
    (void)state;
    struct session_request requests[REQUESTS];
    struct written alone[REQUESTS];
    struct stage stage;
    stage_begin(&stage);
    for (uint32_t i = 0; i < REQUESTS; i++)
        requests[i] = request_of(i);
    write_alone(&stage, requests, REQUESTS, alone);
    for (int mixes = 0; mixes < (lab_is_host() ? 2 : 1); mixes++) {
        const struct session_options options = { .mix_prompts = mixes };
        stage_open_session(&stage, &options);
        for (uint32_t i = 0; i < REQUESTS; i++)
            stage_add(&stage, &requests[i]);
        stage_step_until(&stage, SEQUENCES - 1, 1);
        assert_int_equal(stage.written[SEQUENCES].prompt_count, 0); /* it was not begun */
        assert_int_equal(session_active_count(stage.session), REQUESTS);
        stage_step_until(&stage, SEQUENCES, 1);
        assert_int_equal(stage.written[0].reason, SESSION_LENGTH); /* whose sequence it has */
        stage_run(&stage);
        for (uint32_t i = 0; i < REQUESTS; i++)
            check_written_same(&stage.written[i], &alone[i]);
        stage_close_session(&stage);
    }
    written_release(alone, REQUESTS);
    stage_end(&stage);
}

/* ---- Temperatures --------------------------------------------------------------------------- */

/* Two requests that differ in nothing but their temperature, in the same batches from the first
 * token on: each writes what it writes alone, and not what the other one writes. */
static void test_temperatures(void **state)
{
    (void)state;
    static const float temperatures[][2] = { { 0.7f, 1.5f }, { 1.5f, 0.7f }, { 0, 1.5f } };
    const struct session_options options = { .mix_prompts = true };
    struct stage stage;
    stage_begin(&stage);
    for (size_t pair = 0; pair < COUNT_OF(temperatures); pair++) {
        struct session_request requests[2];
        struct written alone[2];
        for (uint32_t i = 0; i < 2; i++) {
            requests[i] = request_of(1);
            requests[i].token_limit = 12;
            requests[i].sampling.temperature = temperatures[pair][i];
        }
        write_alone(&stage, requests, 2, alone);
        assert_memory_not_equal(alone[0].ids, alone[1].ids, 12 * sizeof(uint32_t));
        stage_open_session(&stage, &options);
        for (uint32_t i = 0; i < 2; i++)
            stage_add(&stage, &requests[i]);
        while (session_active_count(stage.session)) {
            stage_step(&stage);
            assert_int_equal(stage.written[0].count, stage.written[1].count); /* one batch */
        }
        for (uint32_t i = 0; i < 2; i++)
            check_written_same(&stage.written[i], &alone[i]);
        stage_close_session(&stage);
        written_release(alone, 2);
    }
    stage_end(&stage);
}

/* ---- Cancelling ----------------------------------------------------------------------------- */

static void test_cancelling(void **state)
{
    (void)state;
    struct session_request requests[REQUESTS];
    struct written alone[REQUESTS];
    struct stage stage;
    stage_begin(&stage);
    for (uint32_t i = 0; i < REQUESTS; i++)
        requests[i] = request_of(i);
    write_alone(&stage, requests, 4, alone);
    stage_open_session(&stage, NULL);
    for (uint32_t i = 0; i < 5; i++)
        stage_add(&stage, &requests[i]);
    stage_step_until(&stage, 1, 3);
    assert_true(session_cancel(stage.session, 1)); /* it runs */
    assert_true(session_cancel(stage.session, 4)); /* it waits */
    assert_false(session_cancel(stage.session, 1));
    assert_false(session_cancel(stage.session, 77));
    assert_int_equal(session_active_count(stage.session), 3);
    stage_run(&stage);
    assert_int_equal(stage.written[1].reason, SESSION_CANCELLED);
    assert_int_equal(stage.written[1].count, 3);
    check_written_begins(&stage.written[1], &alone[1]);
    assert_int_equal(stage.written[4].reason, SESSION_CANCELLED);
    assert_int_equal(stage.written[4].count, 0);
    for (uint32_t i = 0; i < 4; i++)
        if (i != 1)
            check_written_same(&stage.written[i], &alone[i]);
    stage_close_session(&stage);
    /* In the middle of its prompt; its sequence goes to the next one. */
    const struct session_options chunks = { .prompt_chunk = 2, .wait_for_chunks = true };
    stage_open_session(&stage, &chunks);
    stage_add(&stage, &requests[2]);
    stage_step(&stage);
    stage_step(&stage);
    assert_int_equal(stage.written[0].read_count, 2);
    assert_true(session_cancel(stage.session, 0));
    stage_add(&stage, &requests[0]);
    stage_run(&stage);
    assert_int_equal(stage.written[0].reason, SESSION_CANCELLED);
    check_written_same(&stage.written[1], &alone[0]);
    stage_close_session(&stage);
    written_release(alone, 4);
    stage_end(&stage);
}

/* ---- With a step queued ahead --------------------------------------------------------------- */

/* All are greedy, so that on a GPU there is a step ahead of the tokens that were taken; requests
 * leave and join while it is. */
static void test_ahead(void **state)
{
    (void)state;
    struct session_request requests[4];
    struct written alone[4];
    struct stage stage;
    stage_begin(&stage);
    for (uint32_t i = 0; i < 4; i++)
        requests[i] = greedy_of(i);
    write_alone(&stage, requests, 4, alone);
    stage_open_session(&stage, NULL);
    for (uint32_t i = 0; i < 2; i++)
        stage_add(&stage, &requests[i]);
    stage_step_until(&stage, 1, 3);
    assert_int_equal(engine_argmax_pending(stage.scene.engine), lab_is_host() ? 0 : 1);
    stage_add(&stage, &requests[2]); /* the step is taken first, then the prompt is read */
    stage_step_until(&stage, 2, 2);
    assert_int_equal(engine_argmax_pending(stage.scene.engine), lab_is_host() ? 0 : 1);
    uint32_t length = engine_length(stage.scene.engine, 1);
    assert_true(session_cancel(stage.session, 1));
    assert_int_equal(engine_length(stage.scene.engine, 1), lab_is_host() ? length : length - 1);
    stage_add(&stage, &requests[3]); /* waits for the step, then has the sequence */
    stage_run(&stage);
    assert_int_equal(stage.written[1].reason, SESSION_CANCELLED);
    check_written_begins(&stage.written[1], &alone[1]);
    check_written_same(&stage.written[0], &alone[0]);
    check_written_same(&stage.written[2], &alone[2]);
    check_written_same(&stage.written[3], &alone[3]);
    stage_close_session(&stage);
    /* All leave, and the session ends: nothing stays queued. */
    stage_open_session(&stage, NULL);
    stage_add(&stage, &requests[0]);
    stage_step_until(&stage, 0, 3);
    assert_int_equal(engine_argmax_pending(stage.scene.engine), lab_is_host() ? 0 : 1);
    stage_close_session(&stage);
    assert_int_equal(engine_length(stage.scene.engine, 0), requests[0].id_count + 2);
    written_release(alone, 4);
    stage_end(&stage);
}

/* ---- Events --------------------------------------------------------------------------------- */

/* Events that are not taken stay, in order. */
static void test_late_events(void **state)
{
    (void)state;
    struct session_request requests[REQUESTS];
    struct written alone[REQUESTS];
    struct stage stage;
    stage_begin(&stage);
    for (uint32_t i = 0; i < REQUESTS; i++)
        requests[i] = request_of(i);
    write_alone(&stage, requests, REQUESTS, alone);
    stage_open_session(&stage, NULL);
    for (uint32_t i = 0; i < REQUESTS; i++)
        stage_add(&stage, &requests[i]);
    while (session_active_count(stage.session))
        CHECK_OK(session_step(stage.session, &stage.scene.err), &stage.scene.err);
    CHECK_OK(session_step(stage.session, &stage.scene.err), &stage.scene.err); /* does nothing */
    stage_take_events(&stage);
    for (uint32_t i = 0; i < REQUESTS; i++)
        check_written_same(&stage.written[i], &alone[i]);
    stage_close_session(&stage);
    /* Never taken at all. */
    stage_open_session(&stage, NULL);
    for (uint32_t i = 0; i < REQUESTS; i++)
        stage_add(&stage, &requests[i]);
    for (uint32_t i = 0; i < 8; i++)
        CHECK_OK(session_step(stage.session, &stage.scene.err), &stage.scene.err);
    assert_true(session_cancel(stage.session, REQUESTS - 1));
    stage_close_session(&stage);
    written_release(alone, REQUESTS);
    stage_end(&stage);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joining),      cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_temperatures), cmocka_unit_test(test_cancelling),
        cmocka_unit_test(test_ahead),        cmocka_unit_test(test_late_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

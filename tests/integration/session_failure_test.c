/* session_failure_test.c - how a session fails: what is wrong with one request ends that request
 * alone, and the others write what they would have written; what fails in the engine ends all.
 *
 *     session_failure_test [DEVICE]      the host without */
#include "session_stage.h"

static void check_refused(struct stage *stage, const struct session_request *request,
                          enum status status, const char *words)
{
    uint64_t id;
    size_t count = session_active_count(stage->session);
    CHECK_FAILS(session_add(stage->session, request, &id, &stage->scene.err), status,
                &stage->scene.err);
    check_contains("a refused request", stage->scene.err.text, words);
    assert_int_equal(session_active_count(stage->session), count);
}

/* A request that makes no sense is refused alone. */
static void test_refusals(void **state)
{
    (void)state;
    static uint32_t ids[CONTEXT + 1];
    static const char *const empty[] = { "" };
    struct session_request requests[2] = { request_of(0), request_of(1) }, wrong = requests[1];
    struct written alone[2];
    struct stage stage;
    stage_begin(&stage);
    write_alone(&stage, requests, 2, alone);
    stage_open_session(&stage, NULL);
    stage_add(&stage, &requests[0]);
    stage_step(&stage);
    wrong.ids = ids;
    wrong.id_count = CONTEXT + 1;
    check_refused(&stage, &wrong, STATUS_LIMIT, "at most the 32 tokens of the context, found 33");
    wrong.id_count = 0;
    check_refused(&stage, &wrong, STATUS_USAGE, "at least one token");
    wrong.ids = (const uint32_t[]){ 5, VOCABULARY };
    wrong.id_count = 2;
    check_refused(&stage, &wrong, STATUS_USAGE, "below the vocabulary of 1024, found 1024");
    wrong = requests[1];
    wrong.stops = empty;
    wrong.stop_count = 1;
    check_refused(&stage, &wrong, STATUS_USAGE, "stop string");
    wrong = requests[1];
    wrong.sampling.top_p = 2;
    check_refused(&stage, &wrong, STATUS_USAGE, "top-p");
    assert_int_equal(stage_add(&stage, &requests[1]), 1); /* refusals have no number */
    /* As long as the context: one token follows. */
    wrong = greedy_of(2);
    wrong.ids = ids;
    wrong.id_count = CONTEXT;
    stage_add(&stage, &wrong);
    stage_run(&stage);
    check_written_same(&stage.written[0], &alone[0]);
    check_written_same(&stage.written[1], &alone[1]);
    assert_int_equal(stage.written[2].reason, SESSION_CONTEXT);
    assert_int_equal(stage.written[2].count, 1);
    stage_close_session(&stage);
    written_release(alone, 2);
    stage_end(&stage);
}

/* Logits that are not finite end the request whose they are, and say why; the others go on. */
static void test_one_fails(void **state)
{
    (void)state;
    const struct engine_options options = { .kv_dtype = DTYPE_F16,
                                            .context = CONTEXT,
                                            .sequence_limit = SEQUENCES };
    struct session_request requests[3] = { greedy_of(0), greedy_of(1), greedy_of(2) };
    struct written alone[2];
    struct stage stage;
    stage_write_model(&stage);
    scene_poke_nan(&stage.scene, "token_embd.weight", 8); /* in the prompt of request 2 */
    stage_open(&stage, &options);
    write_alone(&stage, requests, 2, alone);
    stage_open_session(&stage, NULL);
    stage_add(&stage, &requests[0]);
    stage_add(&stage, &requests[1]);
    stage_step_until(&stage, 1, 2);
    stage_add(&stage, &requests[2]);
    stage_run(&stage);
    check_written_same(&stage.written[0], &alone[0]);
    check_written_same(&stage.written[1], &alone[1]);
    assert_int_equal(stage.written[2].reason, SESSION_FAILED);
    assert_int_equal(stage.written[2].error.status, STATUS_BAD_FILE);
    check_contains("the error", stage.written[2].error.text, "logits of token 0: expected finite");
    check_contains("the error", stage.written[2].error.text, "token_embd, position 1 (token 8)");
    stage_close_session(&stage);
    /* A request that allows them goes on. */
    stage_open_session(&stage, NULL);
    requests[2].allow_bad = true;
    stage_add(&stage, &requests[2]);
    stage_run(&stage);
    assert_int_equal(stage.written[0].reason, SESSION_LENGTH);
    stage_close_session(&stage);
    written_release(alone, 2);
    stage_end(&stage);
}

static enum status fail_after(void *context, uint64_t request, uint32_t position,
                              const float *logits, struct error *err)
{
    uint32_t *left = context;
    (void)request;
    (void)position;
    (void)logits;
    return (*left)-- ? STATUS_OK : error_set(err, STATUS_IO, "the sink is full");
}

static void test_sink_fails(void **state)
{
    (void)state;
    struct session_request requests[2] = { request_of(0), request_of(1) };
    struct written alone[2];
    struct stage stage;
    uint32_t left = 3;
    stage_begin(&stage);
    write_alone(&stage, requests, 2, alone);
    stage_open_session(&stage, NULL);
    requests[1].logits = fail_after;
    requests[1].logits_context = &left;
    stage_add(&stage, &requests[1]);
    CHECK_FAILS(session_run(stage.session, &stage.scene.err), STATUS_IO, &stage.scene.err);
    assert_string_equal(stage.scene.err.text, "the sink is full");
    stage_close_session(&stage);
    left = 3;
    stage_open_session(&stage, NULL);
    stage_add(&stage, &requests[0]);
    stage_add(&stage, &requests[1]);
    stage_run(&stage);
    check_written_same(&stage.written[0], &alone[0]);
    check_written_begins(&stage.written[1], &alone[1]);
    assert_int_equal(stage.written[1].count, 3);
    assert_int_equal(stage.written[1].reason, SESSION_FAILED);
    assert_string_equal(stage.written[1].error.text, "the sink is full");
    stage_close_session(&stage);
    written_release(alone, 2);
    stage_end(&stage);
}

static enum status refuse_tap(void *context, const struct tap_record *record, const float *values,
                              struct error *err)
{
    (void)context;
    (void)record;
    (void)values;
    return error_set(err, STATUS_LOST, "the engine is broken");
}

/* What fails in the engine fails all requests, those that wait too, and whatever comes later. */
static void test_all_fail(void **state)
{
    (void)state;
    struct session_request request = greedy_of(0);
    struct engine_tap_choice choice;
    struct stage stage;
    uint64_t id;
    stage_begin(&stage);
    CHECK_OK(engine_tap_parse("wo", &choice, &stage.scene.err), &stage.scene.err);
    stage_open_session(&stage, NULL);
    for (uint32_t i = 0; i < SEQUENCES + 1; i++)
        stage_add(&stage, &request);
    stage_step_until(&stage, SEQUENCES - 1, 2);
    CHECK_OK(engine_tap_set(stage.scene.engine, &choice, 1, refuse_tap, NULL, &stage.scene.err),
             &stage.scene.err);
    enum status status = STATUS_OK;
    while (!status)
        status = session_step(stage.session, &stage.scene.err);
    assert_int_equal(status, STATUS_LOST);
    stage_take_events(&stage);
    assert_int_equal(session_active_count(stage.session), 0);
    for (uint32_t i = 0; i < SEQUENCES + 1; i++) {
        assert_int_equal(stage.written[i].reason, SESSION_FAILED);
        assert_string_equal(stage.written[i].error.text, "the engine is broken");
    }
    CHECK_FAILS(session_step(stage.session, &stage.scene.err), STATUS_LOST, &stage.scene.err);
    CHECK_FAILS(session_add(stage.session, &request, &id, &stage.scene.err), STATUS_LOST,
                &stage.scene.err);
    stage_close_session(&stage);
    stage_end(&stage);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_one_fails),
        cmocka_unit_test(test_sink_fails),
        cmocka_unit_test(test_all_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
